// Samples in constant memory, a piece at a time: all threads of a warp read the same one, which the constant cache
// broadcasts, so that a voxel's sums stay in registers and no load is left in the loop but that.

#define THREADS 128
#define PIECE 1024

// k_x, k_y, k_z (0 where there are fewer), then the value.
struct Sample {
    double x, y, z;
    cplx d;
};
__constant__ Sample piece[PIECE];

extern "C" __global__ void __launch_bounds__(THREADS)
adjoint(int count, int add, cplx* __restrict__ image, int cz, int cy, int cx, int fz, int fy, int fx, int nz, int ny,
        int nx) {
    long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= (long long)cz * cy * cx) return;
    double x = (double)(fx + (int)(i % cx)) / nx, y = (double)(fy + (int)(i / cx % cy)) / ny;
    double z = (double)(fz + (int)(i / cx / cy)) / nz;
    cplx sum = make_cplx(0, 0);
    for (int m = 0; m < count; m++) {
        double turns = piece[m].x * x + piece[m].y * y + piece[m].z * z;
        real s, c;
        sincospi((real)(2 * (turns - rint(turns))), &s, &c);
        sum = fma(piece[m].d, make_cplx(c, s), sum);
    }
    image[i] = add ? image[i] + sum : sum;
}
