// Points of a stream: two of a block, (w0, w1) and (w2, w3), whose coordinates are the middles of 2^25 cells of an axis, so that
// squares and their sum are exact in 64-bit integers and in doubles alike.

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

extern "C" __global__ void initialise(size_t stream, uint4* __restrict__ states, unsigned threads) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < threads) states[t] = make_uint4(t, 0, (unsigned)stream, (unsigned)(stream >> 32));
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

extern "C" __global__ void shuffled(size_t seed, size_t stream, size_t points, unsigned long long* hits) {
    unsigned long long found = count(seed, stream, points);
    __shared__ unsigned long long warps[32];
    for (int by = 16; by > 0; by /= 2) found += __shfl_down_sync(0xffffffffu, found, by);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = found;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    found = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
    for (int by = 16; by > 0; by /= 2) found += __shfl_down_sync(0xffffffffu, found, by);
    if (threadIdx.x == 0) atomicAdd(hits, found);
}
