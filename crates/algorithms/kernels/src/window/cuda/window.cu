// Weights of a grid that are products of one number an axis: a thread a weight.

#define THREADS 256
#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

// Row r has rows[r] p for each p of the last axis, `width` long.
extern "C" __global__ void __launch_bounds__(THREADS)
separable(const real* __restrict__ rows, const real* __restrict__ last, real* __restrict__ out, unsigned long long n,
          unsigned width) {
    EACH(i, n) out[i] = rows[i / width] * last[i % width];
}

// The same where a byte of `known` is set, 0 elsewhere.
extern "C" __global__ void __launch_bounds__(THREADS)
masked(const real* __restrict__ rows, const real* __restrict__ last, const unsigned char* __restrict__ known,
       real* __restrict__ out, unsigned long long n, unsigned width) {
    EACH(i, n) out[i] = known[i] ? rows[i / width] * last[i % width] : (real)0;
}

// 1 where a byte of `known` is set, 0 elsewhere.
extern "C" __global__ void __launch_bounds__(THREADS)
indicator(const unsigned char* __restrict__ known, real* __restrict__ out, unsigned long long n) {
    EACH(i, n) out[i] = known[i] ? (real)1 : (real)0;
}
