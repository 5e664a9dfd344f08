// The same with VOXELS voxels of a row a thread: the phase of the first takes three multiply-adds, each
// further one an addition; a sample's load serves them all. Integer to float by putting 23 bits into a
// mantissa: the conversion instruction would take a third place in the special-function units' queue.

#ifndef VOXELS
#define VOXELS 8
#endif

// Samples `from` to `to` of the piece.
extern "C" __global__ void __launch_bounds__(512)
adjoint(int from, int to, int add, cplx* __restrict__ image, int cz, int cy, int cx, int fz, int fy, int fx) {
    int runs = (cx + VOXELS - 1) / VOXELS;
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= (long long)cz * cy * runs) return;
    int ix = (int)(i % runs) * VOXELS;
    unsigned x = fx + ix, y = fy + (int)(i / runs % cy), z = fz + (int)(i / runs / cy);
    cplx sum[VOXELS];
#pragma unroll
    for (int r = 0; r < VOXELS; r++) sum[r] = make_cplx(0, 0);
#pragma unroll UNROLL
    for (int m = from; m < to; m++) {
        unsigned step = piece[m].x;
        // Half a unit of the 23 bits that are kept.
        unsigned phase = step * x + piece[m].y * y + piece[m].z * z + 0x80000100u;
        cplx d = piece[m].d;
#pragma unroll
        for (int r = 0; r < VOXELS; r++) {
            // 1.5 is phase 0: [1, 2) is a turn.
            float at = __uint_as_float(phase >> 9 | 0x3f800000u);
            float s, c;
            __sincosf((at - 1.5f) * 6.28318530717958648f, &s, &c);
            sum[r] = fma(d, make_cplx(c, s), sum[r]);
            phase += step;
        }
    }
    cplx* row = image + i / runs * cx + ix;
#pragma unroll
    for (int r = 0; r < VOXELS; r++)
        if (ix + r < cx) row[r] = add ? row[r] + sum[r] : sum[r];
}
