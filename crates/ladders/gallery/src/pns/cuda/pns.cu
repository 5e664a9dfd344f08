// Runs of a stochastic Petri net of n x 2n places, n even. Tile (i, j) of half step h has rows 2i - o, 2i -
// o + 1 and columns 2j + o, 2j + o + 1, where o = h mod 2. Row -1 is row n - 1 and column 2n is column 0.

#ifndef WORDS
#define WORDS 1
#endif
#define RUNS 32  // of a word

// Tokens of a place: of one run in a byte, 0 or 1, or of 32 runs in each of EACH words, a bit each. They are
// loaded at once.
template <class Word, int EACH>
struct __align__(EACH * sizeof(Word)) Tokens {
    static constexpr int words = EACH;
    Word of[EACH];

    // The bit of this thread's run where a word holds one run, otherwise the bits of all 32 runs.
    static __device__ __forceinline__ unsigned mine(unsigned bits) {
        return sizeof(Word) == 1 ? bits >> threadIdx.x % RUNS & 1 : bits;
    }
};
typedef Tokens<unsigned char, 1> Run;
typedef Tokens<unsigned, 1> Runs;

// The place of row y and column 2k + side is at y * down + side * odd + k * along.
template <class T, class Index>
struct Net {
    T* at;
    Index down, odd, along;
    unsigned n;

    __device__ __forceinline__ T* row(unsigned y, unsigned side) const { return at + (y * down + side * odd); }
};

// Neighbouring places `stride` apart.
template <class T, class Index>
static __device__ __forceinline__ Net<T, Index> plain(T* at, Index stride, unsigned n) {
    return {at, 2 * n * stride, stride, 2 * stride, n};
}

// Even columns, then odd ones: lanes of a warp, which have neighbouring tiles, have neighbouring words.
template <class T>
static __device__ __forceinline__ Net<T, unsigned> planes_of(T* at, unsigned n) {
    return {at, n, n * n, 1, n};
}

// Which tiles or places a thread has: the first, and how far it is to the next.
struct Part {
    unsigned y, x, down, along;
};

static __device__ __forceinline__ Part all() { return {0, 0, 1, 1}; }
static __device__ __forceinline__ Part of_block() { return {threadIdx.y, threadIdx.x, blockDim.y, blockDim.x}; }

template <class T, class Index>
static __device__ __forceinline__ void mark(const Net<T, Index>& net, const Part& part, const unsigned* marking) {
    for (unsigned y = part.y; y < net.n; y += part.down)
        for (unsigned x = part.x; x < 2 * net.n; x += part.along)
            for (int w = 0; w < T::words; w++)
                net.row(y, x & 1)[(x >> 1) * net.along].of[w] = T::mine(0 - marking[(size_t)y * 2 * net.n + x]);
}

// The two transitions between two places of a row: what they hold changes places where `bits` are 1. An
// instruction for each place.
template <class Word>
static __device__ __forceinline__ void exchange(Word& a, Word& b, unsigned bits) {
    const unsigned from = a;
    a = (from & ~bits) | (b & bits), b = (b & ~bits) | (from & bits);
}

// Those between a place and the place below it: a token falls always and climbs where `bits` are 1, where the
// way is open.
template <class Word>
static __device__ __forceinline__ void fall(Word& above, Word& below, unsigned bits, unsigned open) {
    const unsigned moves = (above ^ below) & (above | bits) & open;
    above ^= moves, below ^= moves;
}

// A half step of the runs of a net, whose first word is `word`.
template <class T, class Index>
static __device__ __forceinline__ void half_step(const Net<T, Index>& net, const Part& part, unsigned half, unsigned word,
                                                 const Keys& keys) {
    const unsigned n = net.n, o = half & 1;
    for (unsigned i = part.y; i < n / 2; i += part.down) {
        // No token moves between the last row and the first.
        const bool ends = o && i == 0;
        const unsigned open = ends ? 0 : ~0u, above = ends ? n - 1 : 2 * i - o, below = 2 * i - o + 1;
        T *const above_left = net.row(above, o), *const above_right = net.row(above, o ^ 1);
        T *const below_left = net.row(below, o), *const below_right = net.row(below, o ^ 1);
        for (unsigned j = part.x; j < n; j += part.along) {
            const Index left = j * net.along, right = (j + o == n ? 0 : j + o) * net.along;
            T a = above_left[left], b = above_right[right], c = below_left[left], d = below_right[right];
#pragma unroll
            for (int w = 0; w < T::words; w++) {
                const uint4 bits = philox((size_t)half << 32 | (i * n + j), word + w, keys);
                exchange(a.of[w], b.of[w], T::mine(bits.x));
                exchange(c.of[w], d.of[w], T::mine(bits.y));
                fall(a.of[w], c.of[w], T::mine(bits.z), open);
                fall(b.of[w], d.of[w], T::mine(bits.w), open);
            }
            above_left[left] = a, above_right[right] = b, below_left[left] = c, below_right[right] = d;
        }
    }
}

// The sum and the sum of squares over a warp's lanes.
static __device__ __forceinline__ void moments(unsigned long long tokens, unsigned lane, unsigned long long* to) {
    unsigned long long squares = tokens * tokens;
    for (unsigned step = 16; step > 0; step /= 2) {
        tokens += __shfl_xor_sync(0xffffffffu, tokens, step);
        squares += __shfl_xor_sync(0xffffffffu, squares, step);
    }
    if (lane == 0) to[0] = tokens, to[1] = squares;
}

// The tokens of a row in the run of a lane, which belongs to word w.
template <class T, class Index>
static __device__ __forceinline__ unsigned tokens_of(const Net<T, Index>& net, unsigned y, unsigned w, unsigned lane) {
    unsigned tokens = 0;
    for (unsigned side = 0; side < 2; side++) {
        const T* row = net.row(y, side);
        // Unrolled further, `count` spills a register on sm_120.
#pragma unroll 2
        for (unsigned k = 0; k < net.n; k++) tokens += row[k * net.along].of[w] >> lane & 1;
    }
    return tokens;
}

// A thread a run: a warp has the 32 runs of a word.
static __device__ __forceinline__ void by_runs(const Net<Run, size_t>& net, const unsigned* marking, unsigned run, unsigned steps,
                                               size_t seed, unsigned long long* sums) {
    const unsigned word = run / RUNS, lane = threadIdx.x % RUNS;
    const Keys keys = keys_of(seed);
    mark(net, all(), marking);
    for (unsigned half = 0; half < 2 * steps; half++) half_step(net, all(), half, word, keys);
    unsigned long long* to = sums + (size_t)word * 2 * (net.n + 1);
    unsigned whole = 0;
    for (unsigned y = 0; y < net.n; y++) {
        const unsigned tokens = tokens_of(net, y, 0, 0);
        moments(tokens, lane, to + 2 * y);
        whole += tokens;
    }
    moments(whole, lane, to + 2 * net.n);
}

// A run's places side by side: lanes of a warp have bytes that are a net apart.
extern "C" __global__ void __launch_bounds__(256)
naive(const unsigned* __restrict__ marking, unsigned n, unsigned runs, unsigned steps, size_t seed, unsigned* state,
      unsigned long long* sums) {
    const unsigned run = blockIdx.x * blockDim.x + threadIdx.x;
    if (run < runs) by_runs(plain((Run*)state + (size_t)run * 2 * n * n, (size_t)1, n), marking, run, steps, seed, sums);
}

// The runs of a place side by side.
extern "C" __global__ void __launch_bounds__(256)
columns(const unsigned* __restrict__ marking, unsigned n, unsigned runs, unsigned steps, size_t seed, unsigned* state,
        unsigned long long* sums) {
    const unsigned run = blockIdx.x * blockDim.x + threadIdx.x;
    if (run < runs) by_runs(plain((Run*)state + run, (size_t)runs, n), marking, run, steps, seed, sums);
}

// A thread a word of runs. `count` then makes the sums.
extern "C" __global__ void __launch_bounds__(256)
bits(const unsigned* __restrict__ marking, unsigned n, unsigned words, unsigned steps, size_t seed, unsigned* state) {
    const unsigned word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= words) return;
    const Net<Runs, size_t> net = plain((Runs*)state + word, (size_t)words, n);
    const Keys keys = keys_of(seed);
    mark(net, all(), marking);
    for (unsigned half = 0; half < 2 * steps; half++) half_step(net, all(), half, word, keys);
}

// The sums of word w of a net's runs, by a block of whole warps: a warp a row, a lane a run.
template <class T, class Index>
static __device__ __forceinline__ void record(const Net<T, Index>& net, unsigned w, unsigned* whole, unsigned long long* to) {
    const unsigned t = threadIdx.y * blockDim.x + threadIdx.x, lane = t % RUNS;
    if (t < RUNS) whole[t] = 0;
    __syncthreads();
    for (unsigned y = t / RUNS; y < net.n; y += blockDim.x * blockDim.y / RUNS) {
        const unsigned tokens = tokens_of(net, y, w, lane);
        moments(tokens, lane, to + 2 * y);
        atomicAdd(&whole[lane], tokens);
    }
    __syncthreads();
    if (t < RUNS) moments(whole[t], lane, to + 2 * net.n);
}

extern "C" __global__ void __launch_bounds__(256)
count(const unsigned* __restrict__ state, unsigned n, unsigned words, unsigned long long* sums) {
    __shared__ unsigned whole[RUNS];
    record(plain((const Runs*)state + blockIdx.x, (size_t)words, n), 0, whole, sums + (size_t)blockIdx.x * 2 * (n + 1));
}

// A block has the runs of a net in shared memory; its threads have the tiles.
template <class T>
static __device__ __forceinline__ void by_blocks(const Net<T, unsigned>& net, const unsigned* marking, unsigned words, unsigned steps,
                                                 const Keys& keys, unsigned* whole, unsigned long long* sums) {
    const unsigned word = blockIdx.x * T::words;
    mark(net, of_block(), marking);
    for (unsigned half = 0; half < 2 * steps; half++) {
        __syncthreads();
        half_step(net, of_block(), half, word, keys);
    }
    // The last block may have runs that nobody asked for.
    for (unsigned w = 0; w < T::words && word + w < words; w++) {
        __syncthreads();
        record(net, w, whole, sums + (size_t)(word + w) * 2 * (net.n + 1));
    }
}

extern "C" __global__ void __launch_bounds__(512)
shared(const unsigned* __restrict__ marking, unsigned n, unsigned words, unsigned steps, size_t seed, unsigned long long* sums) {
    extern __shared__ uint4 places[];
    __shared__ unsigned whole[RUNS];
    by_blocks(plain((Runs*)places, 1u, n), marking, words, steps, keys_of(seed), whole, sums);
}

extern "C" __global__ void __launch_bounds__(512)
planes(const unsigned* __restrict__ marking, unsigned n, unsigned words, unsigned steps, size_t seed, unsigned long long* sums) {
    extern __shared__ uint4 places[];
    __shared__ unsigned whole[RUNS];
    by_blocks(planes_of((Runs*)places, n), marking, words, steps, keys_of(seed), whole, sums);
}

// Several words of runs, which a thread loads and stores at once. As arguments the keys of the rounds are
// operands of the instructions that need them. Made of a seed, they take 23 registers more for two words, and
// 23 instructions more a turn of the loop for four (sm_90).
extern "C" __global__ void __launch_bounds__(512)
several(const unsigned* __restrict__ marking, unsigned n, unsigned words, unsigned steps, uint4 k0, uint4 k1, uint4 k2, uint4 k3,
        uint4 k4, unsigned long long* sums) {
    extern __shared__ uint4 places[];
    __shared__ unsigned whole[RUNS];
    const Keys keys = {k0.x, k0.y, k0.z, k0.w, k1.x, k1.y, k1.z, k1.w, k2.x, k2.y,
                       k2.z, k2.w, k3.x, k3.y, k3.z, k3.w, k4.x, k4.y, k4.z, k4.w};
    by_blocks(planes_of((Tokens<unsigned, WORDS>*)places, n), marking, words, steps, keys, whole, sums);
}
