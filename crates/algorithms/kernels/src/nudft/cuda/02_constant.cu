// Samples fill constant memory. All threads of a warp read the same sample, which the constant cache
// broadcasts. A voxel's sums stay in registers, so this is the only load in the loop. A launch sums a few of
// the samples.

#ifndef UNROLL
#define UNROLL 4
#endif
// 64 KB of f32 samples, 48 KB of f64 ones.
#define CAPACITY (DOUBLE ? 1024 : 2048)

// Turns that a step along x, y, z adds (0 for a missing axis), then the value.
struct Sample {
    double x, y, z;
    cplx d;
};
__constant__ Sample piece[CAPACITY];

extern "C" __global__ void table(const double* __restrict__ k, int dims, int count, const cplx* __restrict__ samples,
                                 unsigned* __restrict__ out, int nz, int ny, int nx) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= count) return;
    const double* own = k + (long long)m * dims;
    ((Sample*)out)[m] = Sample{own[0] / nx, dims > 1 ? own[1] / ny : 0, dims > 2 ? own[2] / nz : 0, samples[m]};
}

// Samples `from` to `to` of the piece.
extern "C" __global__ void __launch_bounds__(512)
adjoint(int from, int to, int add, cplx* __restrict__ image, int cz, int cy, int cx, int fz, int fy, int fx) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= (long long)cz * cy * cx) return;
    double x = fx + (int)(i % cx), y = fy + (int)(i / cx % cy), z = fz + (int)(i / cx / cy);
    cplx sum = make_cplx(0, 0);
#pragma unroll UNROLL
    for (int m = from; m < to; m++) {
        double turns = piece[m].x * x + piece[m].y * y + piece[m].z * z;
        real s, c;
        sincospi((real)(2 * (turns - rint(turns))), &s, &c);
        sum = fma(piece[m].d, make_cplx(c, s), sum);
    }
    image[i] = add ? image[i] + sum : sum;
}
