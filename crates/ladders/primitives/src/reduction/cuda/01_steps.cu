// The published steps. Every one takes the elements of a (and b) in blocks and leaves one number a block in
// out; the host launches it again on those numbers until one is left, which alone is scaled.

extern "C" __global__ void k1_modulo(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n,
                                     ACC* __restrict__ out, double scale) {
    extern __shared__ ACC s[];
    const unsigned t = threadIdx.x;
    s[t] = at_or_none(a, b, (u64)blockIdx.x * blockDim.x + t, n);
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step *= 2) {
        if (t % (2 * step) == 0) s[t] = join(s[t], s[t + step]);
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = scaled(s[0], scale);
}

extern "C" __global__ void k2_strided(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n,
                                      ACC* __restrict__ out, double scale) {
    extern __shared__ ACC s[];
    const unsigned t = threadIdx.x;
    s[t] = at_or_none(a, b, (u64)blockIdx.x * blockDim.x + t, n);
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step *= 2) {
        const unsigned i = 2 * step * t;
        if (i < blockDim.x) s[i] = join(s[i], s[i + step]);
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = scaled(s[0], scale);
}

// The tree that halves from above, down to `last` numbers.
static __device__ __forceinline__ void halve(ACC* s, unsigned t, unsigned last) {
    for (unsigned step = blockDim.x / 2; step >= last; step /= 2) {
        if (t < step) s[t] = join(s[t], s[t + step]);
        __syncthreads();
    }
}

extern "C" __global__ void k3_sequential(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b,
                                         unsigned long long n, ACC* __restrict__ out, double scale) {
    extern __shared__ ACC s[];
    const unsigned t = threadIdx.x;
    s[t] = at_or_none(a, b, (u64)blockIdx.x * blockDim.x + t, n);
    __syncthreads();
    halve(s, t, 1);
    if (t == 0) out[blockIdx.x] = scaled(s[0], scale);
}

extern "C" __global__ void k4_first_add(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b,
                                        unsigned long long n, ACC* __restrict__ out, double scale) {
    extern __shared__ ACC s[];
    const unsigned t = threadIdx.x;
    const u64 i = (u64)blockIdx.x * blockDim.x * 2 + t;
    s[t] = join(at_or_none(a, b, i, n), at_or_none(a, b, i + blockDim.x, n));
    __syncthreads();
    halve(s, t, 1);
    if (t == 0) out[blockIdx.x] = scaled(s[0], scale);
}

// The last 64 numbers, by the first warp. Lanes of a warp need not run together: each step's reads are parted
// from its writes.
static __device__ __forceinline__ ACC last_warp(ACC* s, unsigned t) {
    ACC v = s[t];
#pragma unroll
    for (unsigned step = 32; step > 0; step /= 2) {
        v = join(v, s[t + step]);
        __syncwarp();
        s[t] = v;
        __syncwarp();
    }
    return v;
}

extern "C" __global__ void k5_last_warp(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b,
                                        unsigned long long n, ACC* __restrict__ out, double scale) {
    extern __shared__ ACC s[];
    const unsigned t = threadIdx.x;
    const u64 i = (u64)blockIdx.x * blockDim.x * 2 + t;
    s[t] = join(at_or_none(a, b, i, n), at_or_none(a, b, i + blockDim.x, n));
    __syncthreads();
    halve(s, t, 64);
    if (t < 32) {
        const ACC v = last_warp(s, t);
        if (t == 0) out[blockIdx.x] = scaled(v, scale);
    }
}

// All steps written out for THREADS threads.
static __device__ __forceinline__ void unrolled(ACC* s, unsigned t, ACC* out, double scale) {
#pragma unroll
    for (unsigned step = THREADS / 2; step >= 64; step /= 2) {
        if (t < step) s[t] = join(s[t], s[t + step]);
        __syncthreads();
    }
    if (t < 32) {
        const ACC v = last_warp(s, t);
        if (t == 0) out[blockIdx.x] = scaled(v, scale);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    k6_unrolled(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n,
                ACC* __restrict__ out, double scale) {
    extern __shared__ ACC s[];
    const unsigned t = threadIdx.x;
    const u64 i = (u64)blockIdx.x * (THREADS * 2) + t;
    s[t] = join(at_or_none(a, b, i, n), at_or_none(a, b, i + THREADS, n));
    __syncthreads();
    unrolled(s, t, out, scale);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    k7_many(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n, ACC* __restrict__ out,
            double scale) {
    extern __shared__ ACC s[];
    const unsigned t = threadIdx.x;
    ACC v = identity();
    for (u64 i = (u64)blockIdx.x * (THREADS * 2) + t; i < n; i += (u64)gridDim.x * (THREADS * 2)) {
        v = join(v, join(at(a, b, i), at_or_none(a, b, i + THREADS, n)));
    }
    s[t] = v;
    __syncthreads();
    unrolled(s, t, out, scale);
}

// A binary tree in every block of a fixed grid; the same again, of one block, is the second level.
extern "C" __global__ void two_level(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n,
                                     ACC* __restrict__ out, double scale) {
    extern __shared__ ACC s[];
    const unsigned t = threadIdx.x;
    ACC v = identity();
    for (u64 i = (u64)blockIdx.x * blockDim.x + t; i < n; i += (u64)gridDim.x * blockDim.x) v = join(v, at(a, b, i));
    s[t] = v;
    __syncthreads();
    halve(s, t, 1);
    if (t == 0) out[blockIdx.x] = scaled(s[0], scale);
}
