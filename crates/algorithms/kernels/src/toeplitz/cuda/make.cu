// Q of a convolution from adjoint transforms of phases.

#define THREADS 256
#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

// e^{i2πk·s} of every sample, s in fields of view.
extern "C" __global__ void __launch_bounds__(THREADS)
phases(const double* __restrict__ k, int dims, double x, double y, double z, cplx* __restrict__ out,
       unsigned long long samples) {
    EACH(m, samples) {
        double s, c;
        sincospi(2.0 * turns_at(k + m * dims, dims, x, y, z), &s, &c);
        out[m] = make_cplx((real)c, (real)s);
    }
}

// Displacements −n0 < d < 0 of the first axis of a centred kernel q[2 n0][m1][m2] from those above 0.
// Displacement −n of an axis of 2n, at index 0, has no opposite in the grid, and occurs between no two
// voxels; an axis of 1 is its own opposite.
extern "C" __global__ void __launch_bounds__(THREADS)
mirror(cplx* __restrict__ q, unsigned long long n0, unsigned m1, unsigned m2) {
    unsigned long long plane = (unsigned long long)m1 * m2;
    EACH(at, n0 * plane) {
        unsigned long long i0 = at / plane;
        unsigned i1 = at / m2 % m1, i2 = at % m2;
        bool paired = i0 > 0 && (m1 == 1 || i1 > 0) && (m2 == 1 || i2 > 0);
        unsigned b1 = i1 ? m1 - i1 : 0, b2 = i2 ? m2 - i2 : 0;
        q[at] = paired ? conj(q[((2 * n0 - i0) * m1 + b1) * m2 + b2]) : make_cplx(0, 0);
    }
}
