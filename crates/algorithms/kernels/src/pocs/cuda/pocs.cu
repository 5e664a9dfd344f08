// Projections of partial Fourier imaging: a thread an element.

#define THREADS 256
#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

// x ← u Re(ū x), u = p/|p|
extern "C" __global__ void __launch_bounds__(THREADS)
project_phase(const cplx* __restrict__ phase, cplx* __restrict__ image, unsigned long long n) {
    EACH(i, n) {
        cplx p = phase[i], x = image[i];
        real size = norm_sqr(p);
        image[i] = size > 0 ? (p.x * x.x + p.y * x.y) / size * p : make_cplx(0, 0);
    }
}

// k ← d where the mask is not 0
extern "C" __global__ void __launch_bounds__(THREADS)
restore_samples(const real* __restrict__ mask, const cplx* __restrict__ measured, cplx* __restrict__ kspace,
        unsigned long long n) {
    EACH(i, n) {
        if (mask[i] != 0) kspace[i] = measured[i];
    }
}
