// X[k] = Σ_j x[j] e^{−i2πjk/LENGTH}: one transform by TEAM threads, in registers and, between stages, in
// shared memory (Stockham).
//
//   LENGTH      length of the transform.
//   RADICES     radices of the stages, in order. Their product is LENGTH.
//   REVERSED    the radices from the last to the first.
//   TEAM        threads per line.
//   COLUMNS     0: lines lie one after the other, LINES of them in a block.
//               Otherwise the lines of a block are COLUMNS neighbouring columns, counted by the threads'
//   lowest index. RESIDENT blocks that a multiprocessor should hold at once. It bounds the registers per
//   thread. PAD one unused element in shared memory after each PAD elements of a line, against bank
//   conflicts.
//
// Thread t of a line works on butterflies t, t + TEAM, … of each stage. Before the first stage element m of
// butterfly b is x[b + m LENGTH/R]; after the last one of radix R it is X[b + m LENGTH/R]. The inverse is the
// forward transform with real and imaginary parts exchanged, which loads and stores do.

#if COLUMNS
#define LINES 1
#define WIDTH COLUMNS
#else
#define WIDTH 1
#endif
#define THREADS (TEAM * WIDTH * LINES)
// Elements of a line in shared memory, holes included.
#define PITCH (LENGTH + (LENGTH - 1) / PAD)

static __host__ __device__ constexpr int rounds(int radix) { return (LENGTH / radix + TEAM - 1) / TEAM; }

template <typename... Radix>
static __host__ __device__ constexpr int most(Radix... radix) {
    int elements = 0;
    ((elements = rounds(radix) * radix > elements ? rounds(radix) * radix : elements), ...);
    return elements;
}
// Elements that a thread holds.
#define ELEMENTS (most(RADICES))

template <int FIRST, int... REST>
static __host__ __device__ constexpr int first_of() { return FIRST; }
#define FIRST_RADIX (first_of<RADICES>())
#define LAST_RADIX (first_of<REVERSED>())

static __device__ __forceinline__ cplx swapped(cplx a) { return make_cplx(a.y, a.x); }
// −i a
static __device__ __forceinline__ cplx turned(cplx a) { return make_cplx(a.y, -a.x); }

// Transforms of R elements, in place, in natural order. HALF: the upper half of the input is 0 and not read.
template <bool HALF>
static __device__ __forceinline__ void radix2(cplx& a, cplx& b) {
    cplx sum = HALF ? a : a + b;
    b = HALF ? a : a - b;
    a = sum;
}

template <bool HALF>
static __device__ __forceinline__ void radix4(cplx& a, cplx& b, cplx& c, cplx& d) {
    cplx even = HALF ? a : a + c, even_ = HALF ? a : a - c;
    cplx odd = HALF ? b : b + d, odd_ = turned(HALF ? b : b - d);
    a = even + odd;
    b = even_ + odd_;
    c = even - odd;
    d = even_ - odd_;
}

template <bool HALF>
static __device__ __forceinline__ void radix8(cplx* v) {
    const real h = (real)0.70710678118654752440;
#pragma unroll
    for (int i = 0; i < 4; i++) radix2<HALF>(v[i], v[i + 4]);
    v[5] = make_cplx(h * (v[5].x + v[5].y), h * (v[5].y - v[5].x));
    v[6] = turned(v[6]);
    v[7] = make_cplx(h * (v[7].y - v[7].x), -h * (v[7].x + v[7].y));
    radix4<false>(v[0], v[1], v[2], v[3]);
    radix4<false>(v[4], v[5], v[6], v[7]);
    cplx e1 = v[1], e2 = v[2], e3 = v[3];
    v[1] = v[4];
    v[2] = e1;
    v[3] = v[5];
    v[4] = e2;
    v[5] = v[6];
    v[6] = e3;
}

template <bool HALF>
static __device__ __forceinline__ void radix16(cplx* v) {
    const real h = (real)0.70710678118654752440;
    const real c = (real)0.92387953251128675613, s = (real)0.38268343236508977173;
#pragma unroll
    for (int i = 0; i < 4; i++) radix4<HALF>(v[i], v[i + 4], v[i + 8], v[i + 12]);
    // Element i + 4k holds frequency k of the i-th quarter: times e^{−i2πik/16}.
    v[5] = mul(make_cplx(c, -s), v[5]);
    v[9] = make_cplx(h * (v[9].x + v[9].y), h * (v[9].y - v[9].x));
    v[13] = mul(make_cplx(s, -c), v[13]);
    v[6] = make_cplx(h * (v[6].x + v[6].y), h * (v[6].y - v[6].x));
    v[10] = turned(v[10]);
    v[14] = make_cplx(h * (v[14].y - v[14].x), -h * (v[14].x + v[14].y));
    v[7] = mul(make_cplx(s, -c), v[7]);
    v[11] = make_cplx(h * (v[11].y - v[11].x), -h * (v[11].x + v[11].y));
    v[15] = mul(make_cplx(-c, s), v[15]);
#pragma unroll
    for (int k = 0; k < 4; k++) radix4<false>(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
    // Element 4k + m holds frequency k + 4m.
#pragma unroll
    for (int k = 0; k < 4; k++) {
#pragma unroll
        for (int m = k + 1; m < 4; m++) {
            cplx other = v[4 * k + m];
            v[4 * k + m] = v[4 * m + k];
            v[4 * m + k] = other;
        }
    }
}

// The R-th root of unity to the power k: cos and sin of 2πk/R, k = 1 … ⌊R/2⌋.
template <int R>
struct UnitRoot;
template <>
struct UnitRoot<3> {
    static __device__ __forceinline__ real cos(int) { return (real)-0.5; }
    static __device__ __forceinline__ real sin(int) { return (real)0.86602540378443864676; }
};
template <>
struct UnitRoot<5> {
    static __device__ __forceinline__ real cos(int k) {
        return k == 1 ? (real)0.30901699437494742410 : (real)-0.80901699437494742410;
    }
    static __device__ __forceinline__ real sin(int k) {
        return k == 1 ? (real)0.95105651629515357212 : (real)0.58778525229247312917;
    }
};
template <>
struct UnitRoot<7> {
    static __device__ __forceinline__ real cos(int k) {
        return k == 1 ? (real)0.62348980185873353053 : k == 2 ? (real)-0.22252093395631440429 : (real)-0.90096886790241912624;
    }
    static __device__ __forceinline__ real sin(int k) {
        return k == 1 ? (real)0.78183148246802980871 : k == 2 ? (real)0.97492791218182360702 : (real)0.43388373911755812048;
    }
};

// Odd primes: elements j and R − j share a cosine and, but for its sign, a sine.
template <int R>
static __device__ __forceinline__ void odd(cplx* v) {
    constexpr int H = R / 2;
    cplx sum[H], difference[H], total = v[0];
#pragma unroll
    for (int j = 1; j <= H; j++) {
        sum[j - 1] = v[j] + v[R - j];
        difference[j - 1] = v[j] - v[R - j];
        total = total + sum[j - 1];
    }
#pragma unroll
    for (int k = 1; k <= H; k++) {
        cplx a = v[0], b = make_cplx(0, 0);
#pragma unroll
        for (int j = 1; j <= H; j++) {
            const int turns = j * k % R;
            const real c = UnitRoot<R>::cos(turns <= H ? turns : R - turns);
            const real s = turns <= H ? UnitRoot<R>::sin(turns) : -UnitRoot<R>::sin(R - turns);
            a = make_cplx(a.x + c * sum[j - 1].x, a.y + c * sum[j - 1].y);
            b = make_cplx(b.x + s * difference[j - 1].x, b.y + s * difference[j - 1].y);
        }
        v[k] = make_cplx(a.x + b.y, a.y - b.x);
        v[R - k] = make_cplx(a.x - b.y, a.y + b.x);
    }
    v[0] = total;
}

template <int R, bool HALF>
static __device__ __forceinline__ void butterfly(cplx* v) {
    static_assert(!HALF || R % 2 == 0, "half of an odd number of elements");
    if constexpr (R == 2) radix2<HALF>(v[0], v[1]);
    else if constexpr (R == 4) radix4<HALF>(v[0], v[1], v[2], v[3]);
    else if constexpr (R == 8) radix8<HALF>(v);
    else if constexpr (R == 16) radix16<HALF>(v);
    else if constexpr (R > 1) odd<R>(v);
}

// Keeps the compiler from hoisting reads through `pointer` out of a loop. Their values would take registers
// away from the transform.
#ifdef RAYSPIN_EMULATED
#define PREVENT_HOISTING(pointer)
#else
#define PREVENT_HOISTING(pointer) asm volatile("" : "+l"(pointer))
#endif

// Where element `index` of a line lies in shared memory.
static __device__ __forceinline__ int slot(int index) { return (index + index / PAD) * WIDTH; }
// Where element `index` + m · STEP lies, m < COUNT, for an index whose part below ALIGNED is less than STEP.
// Where the holes allow, that is a constant distance away from the first, which costs no arithmetic.
template <int STEP, int COUNT, int ALIGNED>
static __device__ __forceinline__ int slot(int index, int m) {
    if constexpr (STEP % PAD == 0 || (PAD % STEP == 0 && ALIGNED % PAD == 0))
        return slot(index) + (m * STEP + m * STEP / PAD) * WIDTH;
    else if constexpr (ALIGNED % (STEP * COUNT) == 0 && PAD % ALIGNED == 0)
        return slot(index) + m * STEP * WIDTH;
    else
        return slot(index + m * STEP);
}

// Waits until all threads that share a line's memory have written or read it.
static __device__ __forceinline__ void sync_line() {
#if !COLUMNS && TEAM <= 32 && 32 % TEAM == 0 && THREADS % 32 == 0
    __syncwarp();
#else
    __syncthreads();
#endif
}

// `work(b, i)` for each butterfly b of thread t, whose R elements are the thread's own from i on.
template <int R, typename Work>
static __device__ __forceinline__ void butterflies(int t, Work work) {
#pragma unroll
    for (int q = 0; q < rounds(R); q++) {
        const int b = t + q * TEAM;
        if (LENGTH / R % TEAM == 0 || b < LENGTH / R) work(b, q * R);
    }
}

// The stages after NS points are transformed, the next of radix R. `table` holds e^{−i2πjm/(NS R)} as [m −
// 1][j], for every stage but the first.
template <bool HALF, int NS, int R, int... REST>
static __device__ __forceinline__ void stages(cplx* v, cplx* line, const cplx* __restrict__ table, int t) {
    butterflies<R>(t, [&](int b, int i) {
        if constexpr (NS > 1) {
#pragma unroll
            for (int m = 1; m < R; m++) v[i + m] = mul(table[(m - 1) * NS + b % NS], v[i + m]);
        }
        butterfly<R, HALF>(v + i);
    });
    if constexpr (sizeof...(REST) > 0) {
        if constexpr (NS > 1) sync_line();
        butterflies<R>(t, [&](int b, int i) {
            const int to = b / NS * (NS * R) + b % NS;
#pragma unroll
            for (int m = 0; m < R; m++) line[slot<NS, R, NS * R>(to, m)] = v[i + m];
        });
        sync_line();
        constexpr int next = first_of<REST...>();
        butterflies<next>(t, [&](int b, int i) {
#pragma unroll
            for (int m = 0; m < next; m++) v[i + m] = line[slot<LENGTH / next, next, LENGTH>(b, m)];
        });
        stages<false, NS * R, REST...>(v, line, table + (NS > 1 ? NS * (R - 1) : 0), t);
    }
}

// Transforms the elements in registers: from the elements of the first stage to the elements of the last.
// Before the call, all threads of the line must be done with its shared memory. HALF: elements from LENGTH/2
// on are 0 and need not be set.
template <bool HALF>
static __device__ __forceinline__ void transform(cplx* v, cplx* line, const cplx* table, int t) {
    stages<HALF, 1, RADICES>(v, line, table, t);
}
// The same transform with the stages in the opposite order. It begins with the distribution of elements with
// which the other ends.
template <bool HALF>
static __device__ __forceinline__ void transform_reversed(cplx* v, cplx* line, const cplx* table, int t) {
    stages<HALF, 1, REVERSED>(v, line, table, t);
}

// This thread's line of the block, and its place in it.
struct Place {
    int t;
    int line;
    cplx* shared;
};
static __device__ __forceinline__ Place my_place(cplx* shared) {
    const int thread = threadIdx.x;
#if COLUMNS
    return {thread / COLUMNS, thread % COLUMNS, shared + thread % COLUMNS};
#else
    return {thread % TEAM, thread / TEAM, shared + thread / TEAM * PITCH};
#endif
}

// Which line of a pass, which of its columns, and whether there is one.
struct Which {
    unsigned line, column;
    bool live;
};

// Of `lines` rows, or of the columns that begin at `inner` neighbouring elements.
static __device__ __forceinline__ Which my_line(const Place& place, unsigned lines, unsigned inner) {
#if COLUMNS
    const unsigned blocks = (inner + COLUMNS - 1) / COLUMNS;
    const unsigned column = blockIdx.x % blocks * COLUMNS + place.line;
    return {blockIdx.x / blocks, column, column < inner};
#else
    const unsigned line = blockIdx.x * LINES + place.line;
    return {line, 0u, line < lines};
#endif
}

// `work(j, i)` for each element of a stage of radix R that is the first or the last: element j of the line is
// the thread's own i. HALF: for those below LENGTH/2 only.
template <int R, bool HALF, typename Work>
static __device__ __forceinline__ void each(int t, Work work) {
    static_assert(!HALF || R % 2 == 0, "half of an odd number of elements");
    butterflies<R>(t, [&](int b, int i) {
#pragma unroll
        for (int m = 0; m < (HALF ? R / 2 : R); m++) work(b + m * (LENGTH / R), i + m);
    });
}
