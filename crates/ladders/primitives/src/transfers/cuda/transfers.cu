// Kernels that reach into the host's memory, and one that does work on what was copied.

// Copies n values: 16 bytes a thread where both places allow it.
static __device__ __forceinline__ void copy_one(const float* from, float* to, unsigned long long n, unsigned long long i) {
    const unsigned long long quads = ((unsigned long long)from % 16 == 0 && (unsigned long long)to % 16 == 0) ? n / 4 : 0;
    if (i < quads) ((float4*)to)[i] = ((const float4*)from)[i];
    for (unsigned long long at = 4 * quads + i; at < n; at += (unsigned long long)gridDim.x * blockDim.x) to[at] = from[at];
}

extern "C" __global__ void copy(const float* from, float* to, unsigned long long n) {
    copy_one(from, to, n, blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x);
}

extern "C" __global__ void copy_both(const float* from, float* to, const float* of, float* into, unsigned long long n) {
    const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    copy_one(from, to, n, i);
    copy_one(of, into, n, i);
}

// x ← a x + b, `rounds` times, on values that all threads take four of: four chains hide the latency of one.
static __device__ __forceinline__ void grow_four(const float* from, float* to, unsigned long long n, int rounds, float a, float b) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    const unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    float x[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) x[j] = first + j * step < n ? from[first + j * step] : 0.f;
#pragma unroll 16
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) x[j] = fmaf(x[j], a, b);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
        if (first + j * step < n) to[first + j * step] = x[j];
}

extern "C" __global__ void grow(float* values, unsigned long long n, int rounds, float a, float b) {
    grow_four(values, values, n, rounds, a, b);
}

extern "C" __global__ void grow_there(const float* from, float* to, unsigned long long n, int rounds, float a, float b) {
    grow_four(from, to, n, rounds, a, b);
}
