// Normal numbers of double precision: ziggurat.rs, operation by operation. KIND: 1 normal, 2 log-normal, 3
// log-normal whose location and scale let no power of 2 leave the normal numbers. A block gives two numbers.
// For log-normal numbers location and scale belong to the exponent of 2, not of e.

#ifndef KIND
#define KIND 1
#endif

#define FMA __fma_rn
#define MUL __dmul_rn
#define ADD __dadd_rn
constexpr unsigned LAYERS = 1u << 11;
constexpr double TAIL = 4.216370409511897;

// For each layer: the factor that turns a word into a number, and the edge within which all numbers are under
// the curve.
__device__ double2 layers[LAYERS];
// For each layer: the y where it begins, and its height.
__device__ double2 sides[LAYERS];

static __device__ __forceinline__ double logarithm(double u) {
    const long long i = __double_as_longlong(u) - 0x3fe6a09e667f3bcdll;
    const double e = (double)(int)(i >> 52);
    const double f = ADD(__longlong_as_double((i & 0xfffffffffffffll) + 0x3fe6a09e667f3bcdll), -1.0), s = __ddiv_rn(f, ADD(2.0, f));
    const double z = MUL(s, s), half = MUL(0.5, MUL(f, f));
    double p = 1.479819860511658591e-1;
    p = FMA(p, z, 1.531383769920937332e-1);
    p = FMA(p, z, 1.818357216161805012e-1);
    p = FMA(p, z, 2.222219843214978396e-1);
    p = FMA(p, z, 2.857142874366239149e-1);
    p = FMA(p, z, 3.999999999940941908e-1);
    p = FMA(p, z, 6.666666666666735130e-1);
    const double low = FMA(s, FMA(p, z, half), MUL(e, 1.90821492927058770002e-10));
    return FMA(e, 6.93147180369123816490e-1, ADD(f, ADD(low, -half)));
}

// An instruction takes a double from constant memory as it is; two more would have to make it of its halves.
static __constant__ double POWERS[11] = {7.037278846726901e-09, 1.0208537929657404e-07, 1.3215662835959238e-06,
                                          1.5252658116409854e-05, 0.00015403529961127076, 0.0013333558228561767,
                                          0.009618129108034596, 0.05550410866445883, 0.24022650695908768,
                                          0.6931471805599497, 1.0};

// 2^x by shifting the exponent, for |x| below 1020.
static __device__ __forceinline__ double power(double x) {
    const double m = ADD(x, 6755399441055744.0), f = ADD(x, -ADD(m, -6755399441055744.0));
    double p = POWERS[0];
#pragma unroll
    for (int i = 1; i < 11; i++) p = FMA(p, f, POWERS[i]);
    return __longlong_as_double(__double_as_longlong(p) + (__double_as_longlong(m) << 52));
}

// e^(-x²/2)
static __device__ __forceinline__ double density(double x) { return power(MUL(MUL(x, x), -0.7213475204444817)); }

// 2^x for any x.
static __device__ __forceinline__ double any_power(double x) {
    x = x < -1100.0 ? -1100.0 : x > 1030.0 ? 1030.0 : x;
    const double n = ADD(ADD(x, 6755399441055744.0), -6755399441055744.0), y = power(ADD(x, -n));
    const int whole = (int)n, half = whole >> 1;
    return MUL(MUL(y, __longlong_as_double((long long)(half + 1023) << 52)),
               __longlong_as_double((long long)(whole - half + 1023) << 52));
}

static __device__ __forceinline__ double shaped(double z, double location, double scale) {
    const double value = FMA(scale, z, location);
    return KIND == 3 ? power(value) : KIND == 2 ? any_power(value) : value;
}

static __device__ __forceinline__ size_t word_of(uint4 w, unsigned slot) {
    return slot == 0 ? (size_t)w.y << 32 | w.x : (size_t)w.w << 32 | w.z;
}

// A number on (0, 1).
static __device__ __forceinline__ double open_number(size_t word) {
    return MUL(ADD((double)(long long)(word >> 12), 0.5), 2.220446049250313e-16);
}

// The number that a word stands for where `layer` decides that.
static __device__ __forceinline__ double point(size_t word, double2 layer) { return MUL((double)(long long)word, layer.x); }
static __device__ __forceinline__ bool decided(double value, double2 layer) { return fabs(value) < layer.y; }

// The number of a word of a block, decided by blocks of the stream that no array reaches where its layer does
// not.
static __device__ __forceinline__ double number(size_t word, size_t block, unsigned slot, size_t stream, const Keys& keys,
                                                const double2* table) {
    block += (size_t)(slot + 1) << 48;
#pragma unroll 1
    for (;; block += (size_t)2 << 48) {
        const unsigned at = (unsigned)word & (LAYERS - 1);
        const double2 layer = table[at];
        const double value = point(word, layer);
        if (decided(value, layer)) return value;
        const uint4 spare = philox(block, stream, keys);
        const double u = open_number(word_of(spare, 0));
        if (at == 0) {
            const double beyond = MUL(-logarithm(u), 1.0 / TAIL), y = MUL(-2.0, logarithm(open_number(word_of(spare, 1))));
            if (y > MUL(beyond, beyond)) return copysign(ADD(TAIL, beyond), value);
        } else {
            const double2 side = sides[at];
            if (FMA(u, side.y, side.x) < density(value)) return value;
            word = word_of(spare, 1);
        }
    }
}

// Entries of the list of a block's numbers that are left open: several times what a block of a full grid
// leaves.
constexpr unsigned OPEN = 1024;

// Blocks `from` to `from` + `end` of the stream, and of the block after them the first `rest` numbers. `from`
// is a multiple of 2^29: entries tell 2^29 blocks apart, and hold the place in a block in their lowest bits.
//
// What a layer does not decide is listed, and written again when the block of threads has its part: decided
// at once it would keep waiting a whole warp, whose other lanes have nothing to decide. The layers are copied
// to where all lanes can ask at once.
extern "C" __global__ void __launch_bounds__(640, 2)
    grid(uint4 k0, uint4 k1, uint4 k2, uint4 k3, uint4 k4, size_t stream, double location, double scale, double* __restrict__ out, size_t from,
         unsigned end, unsigned rest, unsigned stride) {
    __shared__ double2 table[LAYERS];
    __shared__ unsigned open[OPEN], listed;
    // As arguments the keys are operands of the instructions that need them. Made here, they would be made
    // for every block.
    const Keys keys = {k0.x, k0.y, k0.z, k0.w, k1.x, k1.y, k1.z, k1.w, k2.x, k2.y,
                       k2.z, k2.w, k3.x, k3.y, k3.z, k3.w, k4.x, k4.y, k4.z, k4.w};
    for (unsigned i = threadIdx.x; i < LAYERS; i += blockDim.x) table[i] = layers[i];
    if (threadIdx.x == 0) {
        listed = blockIdx.x == 0 ? rest : 0;
        open[0] = end << 2;
    }
    __syncthreads();
    unsigned block = blockIdx.x * blockDim.x + threadIdx.x;
    for (;;) {
        for (; block < end; block += stride) {
            const uint4 w = philox(from | block, stream, keys);
            double values[2];
            bool left[2], any = false;
#pragma unroll
            for (unsigned i = 0; i < 2; i++) {
                const size_t mine = word_of(w, i);
                const double2 layer = table[(unsigned)mine & (LAYERS - 1)];
                const double z = point(mine, layer);
                left[i] = !decided(z, layer);
                any |= left[i];
                values[i] = shaped(z, location, scale);
            }
            ((double2*)out)[block] = make_double2(values[0], values[1]);
            if (any) {
                bool full = false;
#pragma unroll
                for (unsigned i = 0; i < 2; i++) {
                    if (left[i]) {
                        const unsigned at = atomicAdd(&listed, 1);
                        if (at < OPEN) open[at] = block << 2 | i;
                        else full = true;
                    }
                }
                // This block comes again when there is room.
                if (full) break;
            }
        }
        const bool more = __syncthreads_or(block < end);
        const unsigned count = listed < OPEN ? listed : OPEN;
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
            const unsigned slot = open[i] & 3;
            const size_t of = from | open[i] >> 2;
            const double z = number(word_of(philox(of, stream, keys), slot), of, slot, stream, keys, table);
            out[(size_t)(open[i] >> 2) * 2 + slot] = shaped(z, location, scale);
        }
        if (!more) break;
        __syncthreads();
        if (threadIdx.x == 0) listed = 0;
        __syncthreads();
    }
}

static __device__ __forceinline__ void give(size_t block, size_t stream, const Keys& keys, double location, double scale,
                                            double* __restrict__ out, size_t n) {
    const uint4 w = philox(block, stream, keys);
    double first = 0, second = 0;
    // One after the other: side by side they take more registers than some processors have for them.
#pragma unroll 1
    for (unsigned slot = 0; slot < 2; slot++) {
        first = second;
        second = shaped(number(word_of(w, slot), block, slot, stream, keys, layers), location, scale);
    }
    if (2 * block + 2 <= n) {
        ((double2*)out)[block] = make_double2(first, second);
    } else {
        out[2 * block] = first;
    }
}

// A block of the stream a thread, each number decided in its turn.
extern "C" __global__ void __launch_bounds__(512)
    fill(size_t seed, size_t stream, double location, double scale, double* __restrict__ out, size_t n) {
    const size_t block = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * block < n) give(block, stream, keys_of(seed), location, scale, out, n);
}

extern "C" __global__ void __launch_bounds__(512)
    from_states(uint4* __restrict__ states, unsigned threads, size_t seed, double location, double scale, double* __restrict__ out, size_t n) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    uint4 state = states[t];
    size_t next = (size_t)state.y << 32 | state.x;
    const size_t blocks = (n + 1) / 2, stream = (size_t)state.w << 32 | state.z;
    const Keys keys = keys_of(seed);
    for (; next < blocks; next += threads) give(next, stream, keys, location, scale, out, n);
    states[t] = make_uint4((unsigned)next, (unsigned)(next >> 32), state.z, state.w);
}
