// The same with RUN voxels of a row a thread: the phase of the first takes three multiply-adds, each further one an
// addition; a sample's load serves them all. Integer to float by putting 23 bits into a mantissa: the conversion
// instruction would take a third place in the special-function units' queue.

#define THREADS 128
#define PIECE 2048
#define RUN 8

struct Sample {
    unsigned x, y, z, none;
    cplx d;
};
__constant__ Sample piece[PIECE];

extern "C" __global__ void __launch_bounds__(THREADS)
adjoint(int count, int add, cplx* __restrict__ image, int cz, int cy, int cx, int fz, int fy, int fx) {
    int runs = (cx + RUN - 1) / RUN;
    long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= (long long)cz * cy * runs) return;
    int ix = (int)(i % runs) * RUN;
    unsigned x = fx + ix, y = fy + (int)(i / runs % cy), z = fz + (int)(i / runs / cy);
    cplx sum[RUN];
#pragma unroll
    for (int r = 0; r < RUN; r++) sum[r] = make_cplx(0, 0);
#pragma unroll 2
    for (int m = 0; m < count; m++) {
        unsigned step = piece[m].x;
        // Half a unit of the 23 bits that are kept.
        unsigned phase = step * x + piece[m].y * y + piece[m].z * z + 0x80000100u;
        cplx d = piece[m].d;
#pragma unroll
        for (int r = 0; r < RUN; r++) {
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
    for (int r = 0; r < RUN; r++)
        if (ix + r < cx) row[r] = add ? row[r] + sum[r] : sum[r];
}
