// Points of a stream: two of a block, (w0, w1) and (w2, w3). The sizes of their coordinates are the middles
// of 2^25 cells; signs do not matter to squares. So squares and their sum are exact in 64-bit integers and in
// doubles alike.

static __device__ __forceinline__ unsigned cell(unsigned word) { return word >> 6 | 1; }

static __device__ __forceinline__ bool inside(unsigned x, unsigned y) {
    const unsigned a = cell(x), b = cell(y);
    return (unsigned long long)a * a + (unsigned long long)b * b < 1ull << 52;
}

static __device__ __forceinline__ bool inside_f64(unsigned x, unsigned y) {
    const double a = cell(x) / 67108864.0, b = cell(y) / 67108864.0;
    return a * a + b * b < 1;
}

extern "C" __global__ void clear(double* sum, unsigned long long* hits) {
    *sum = 0;
    *hits = 0;
}

static __device__ __forceinline__ double count_f64(size_t& block, size_t stride, size_t seed, size_t stream, size_t points) {
    double found = 0;
    for (; 2 * block < points; block += stride) {
        const uint4 w = philox(block, stream, seed);
        if (inside_f64(w.x, w.y)) found += 1;
        if (2 * block + 1 < points && inside_f64(w.z, w.w)) found += 1;
    }
    return found;
}

extern "C" __global__ void from_states(uint4* __restrict__ states, unsigned threads, size_t seed, size_t points, double* sum) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    const uint4 state = states[t];
    size_t block = (size_t)state.y << 32 | state.x;
    const double found = count_f64(block, threads, seed, (size_t)state.w << 32 | state.z, points);
    states[t] = make_uint4((unsigned)block, (unsigned)(block >> 32), state.z, state.w);
    atomicAdd(sum, found);
}

extern "C" __global__ void one_kernel(size_t seed, size_t stream, size_t points, double* sum) {
    size_t block = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(sum, count_f64(block, (size_t)gridDim.x * blockDim.x, seed, stream, points));
}

static __device__ __forceinline__ unsigned long long count(size_t seed, size_t stream, size_t points) {
    unsigned long long found = 0;
    const size_t stride = (size_t)gridDim.x * blockDim.x, whole = points / 2;
    size_t block = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; block < whole; block += stride) {
        const uint4 w = philox(block, stream, seed);
        found += (unsigned)inside(w.x, w.y) + (unsigned)inside(w.z, w.w);
    }
    if (block == whole && points % 2) {
        const uint4 w = philox(block, stream, seed);
        found += inside(w.x, w.y);
    }
    return found;
}

extern "C" __global__ void integers(size_t seed, size_t stream, size_t points, unsigned long long* hits) {
    atomicAdd(hits, count(seed, stream, points));
}

// Warps and blocks add first. Every thread of a block has to come here.
static __device__ __forceinline__ void add_by_blocks(unsigned long long found, unsigned long long* hits) {
    __shared__ unsigned long long warps[32];
    for (int by = 16; by > 0; by /= 2) found += __shfl_down_sync(0xffffffffu, found, by);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = found;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    found = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
    for (int by = 16; by > 0; by /= 2) found += __shfl_down_sync(0xffffffffu, found, by);
    if (threadIdx.x == 0) atomicAdd(hits, found);
}

extern "C" __global__ void shuffled(size_t seed, size_t stream, size_t points, unsigned long long* hits) {
    add_by_blocks(count(seed, stream, points), hits);
}

// Adds 1 to `outside` where a^2 + b^2 carries out of 64 bits: where the middles of cells, scaled by 2^6, lie
// outside the disc.
static __device__ __forceinline__ void add_carry(unsigned& outside, unsigned a, unsigned b) {
#ifdef RAYSPIN_EMULATED
    const unsigned long long square = (unsigned long long)a * a, sum = square + (unsigned long long)b * b;
    outside += sum < square;
#else
    asm("{.reg .u32 low, high;\n"
        "mul.lo.u32 low, %1, %1;\n"
        "mul.hi.u32 high, %1, %1;\n"
        "mad.lo.cc.u32 low, %2, %2, low;\n"
        "madc.hi.cc.u32 high, %2, %2, high;\n"
        "addc.u32 %0, %0, 0;}"
        : "+r"(outside)
        : "r"(a), "r"(b));
#endif
}

// 2^6 cell(word).
static __device__ __forceinline__ unsigned raised(unsigned word) {
#ifdef RAYSPIN_EMULATED
    return (word & 0xffffffc0u) | 0x40u;
#else
    // One instruction, which the compiler does not find: only one of the two constants fits into it.
    unsigned made;
    asm("lop3.b32 %0, %1, %2, 0x40, 0xea;" : "=r"(made) : "r"(word), "r"(0xffffffc0u));
    return made;
#endif
}

extern "C" __global__ void carried(size_t seed, size_t stream, size_t points, unsigned long long* hits) {
    const size_t whole = points / 2, stride = (size_t)gridDim.x * blockDim.x;
    size_t block = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long found = 0;
    while (block < whole) {
        const size_t upper = block & ~0xffffffffull;
        const unsigned steps = alike(block, whole, stride);
        unsigned lower = (unsigned)block, outside = 0;
#pragma unroll 4
        for (unsigned step = 0; step < steps; step++, lower += (unsigned)stride) {
            const uint4 w = philox(upper | lower, stream, seed);
            add_carry(outside, raised(w.x), raised(w.y));
            add_carry(outside, raised(w.z), raised(w.w));
        }
        found += 2ull * steps - outside;
        block += steps * stride;
    }
    if (block == whole && points % 2) {
        const uint4 w = philox(block, stream, seed);
        found += inside(w.x, w.y);
    }
    add_by_blocks(found, hits);
}
