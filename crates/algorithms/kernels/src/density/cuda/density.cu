// One step of Pipe and Menon's iteration, and what it ends with.

#define THREADS 256
#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

// w ← w s^−ω, of the real parts.
extern "C" __global__ void __launch_bounds__(THREADS)
correct(cplx* __restrict__ weights, const cplx* __restrict__ smoothed, double exponent, unsigned long long n) {
    EACH(i, n) weights[i] = make_cplx(weights[i].x * pow(smoothed[i].x, (real)-exponent), 0);
}

// The real parts times `scale`.
extern "C" __global__ void __launch_bounds__(THREADS)
scaled(const cplx* __restrict__ weights, double scale, real* __restrict__ out, unsigned long long n) {
    EACH(i, n) out[i] = (real)(weights[i].x * scale);
}
