// Phases as 32-bit fractions of a turn, sine and cosine by the special-function units. A wrapping integer product takes
// off whole turns for nothing, and keeps the argument within ±π, where the units are exact to 2^-21; κ = k/n rounded to
// 2^-32 turns leaves 2^-24 turns at 256 points from the centre.

#define THREADS 128
#define PIECE 2048

// κ of x, y, z as fractions of 2^32; then the value.
struct Sample {
    unsigned x, y, z, none;
    cplx d;
};
__constant__ Sample piece[PIECE];

extern "C" __global__ void __launch_bounds__(THREADS)
adjoint(int count, int add, cplx* __restrict__ image, int cz, int cy, int cx, int fz, int fy, int fx) {
    long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= (long long)cz * cy * cx) return;
    unsigned x = fx + (int)(i % cx), y = fy + (int)(i / cx % cy), z = fz + (int)(i / cx / cy);
    cplx sum = make_cplx(0, 0);
    for (int m = 0; m < count; m++) {
        unsigned phase = piece[m].x * x + piece[m].y * y + piece[m].z * z;
        float s, c;
        __sincosf((int)phase * 1.46291807926715968e-9f, &s, &c);
        sum = fma(piece[m].d, make_cplx(c, s), sum);
    }
    image[i] = add ? image[i] + sum : sum;
}
