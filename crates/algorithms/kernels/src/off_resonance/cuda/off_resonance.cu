// Off-resonance: a thread a voxel or a sample, the images or coils of a batch in turn.

#define THREADS 256
#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

// y = e^{i2πfτ} x, optionally added to y. The product fτ is formed and reduced in double precision; the
// remainder is small.
extern "C" __global__ void __launch_bounds__(THREADS)
modulate(const real* __restrict__ field, double tau, const cplx* __restrict__ x, cplx* __restrict__ y,
         unsigned long long voxels, unsigned batch, unsigned add) {
    EACH(i, voxels) {
        double turns = tau * (double)field[i];
        real s, c;
        sincospi((real)(2 * (turns - rint(turns))), &s, &c);
        cplx phase = make_cplx(c, s);
        for (unsigned b = 0; b < batch; b++) {
            unsigned long long at = b * voxels + i;
            y[at] = add ? fma(phase, x[at], y[at]) : mul(phase, x[at]);
        }
    }
}

// y[m] = w[index[m]] x[m] or its conjugate's product, or that added to y
extern "C" __global__ void __launch_bounds__(THREADS)
weigh(const cplx* __restrict__ weights, const unsigned* __restrict__ index, const cplx* __restrict__ x,
      cplx* __restrict__ y, unsigned long long samples, unsigned batch, unsigned conjugate, unsigned add) {
    EACH(m, samples) {
        cplx w = weights[index[m]];
        if (conjugate) w = conj(w);
        for (unsigned b = 0; b < batch; b++) {
            unsigned long long at = b * samples + m;
            y[at] = add ? fma(w, x[at], y[at]) : mul(w, x[at]);
        }
    }
}
