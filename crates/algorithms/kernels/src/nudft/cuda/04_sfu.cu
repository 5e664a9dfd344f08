// Sine and cosine by the special-function units: phases are taken within ±π, where these are exact to 2^-21.

// Samples `from` to `to` of the piece.
extern "C" __global__ void __launch_bounds__(512)
adjoint(int from, int to, int add, cplx* __restrict__ image, int cz, int cy, int cx, int fz, int fy, int fx) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= (long long)cz * cy * cx) return;
    unsigned x = fx + (int)(i % cx), y = fy + (int)(i / cx % cy), z = fz + (int)(i / cx / cy);
    cplx sum = make_cplx(0, 0);
#pragma unroll UNROLL
    for (int m = from; m < to; m++) {
        unsigned phase = piece[m].x * x + piece[m].y * y + piece[m].z * z;
        float s, c;
        __sincosf((int)phase * 1.46291807926715968e-9f, &s, &c);
        sum = fma(piece[m].d, make_cplx(c, s), sum);
    }
    image[i] = add ? image[i] + sum : sum;
}
