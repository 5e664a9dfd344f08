// One output a thread; every sample and every phase from the formula, library sine and cosine.

// x = (first + i)/n along z, y, x. `samples` is [batch][count], `image` [batch][z][y][x]; blockIdx.y is the
// batch.
extern "C" __global__ void __launch_bounds__(512)
adjoint(const double* __restrict__ k, int dims, int count, const cplx* __restrict__ samples, cplx* __restrict__ image,
        int cz, int cy, int cx, int fz, int fy, int fx, int nz, int ny, int nx) {
    long long points = (long long)cz * cy * cx;
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= points) return;
    double x = (double)(fx + (int)(i % cx)) / nx, y = (double)(fy + (int)(i / cx % cy)) / ny;
    double z = (double)(fz + (int)(i / cx / cy)) / nz;
    const cplx* d = samples + (long long)blockIdx.y * count;
    cplx sum = make_cplx(0, 0);
    for (int m = 0; m < count; m++) {
        real s, c;
        sincospi((real)(2 * turns_at(k + (long long)m * dims, dims, x, y, z)), &s, &c);
        sum = fma(d[m], make_cplx(c, s), sum);
    }
    image[blockIdx.y * points + i] = sum;
}

extern "C" __global__ void __launch_bounds__(512)
forward(const double* __restrict__ k, int dims, int count, const cplx* __restrict__ image, cplx* __restrict__ samples,
        int cz, int cy, int cx, int fz, int fy, int fx, int nz, int ny, int nx) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= count) return;
    const double* own = k + (long long)m * dims;
    const cplx* voxel = image + (long long)blockIdx.y * cz * cy * cx;
    cplx sum = make_cplx(0, 0);
    for (int iz = 0; iz < cz; iz++)
        for (int iy = 0; iy < cy; iy++) {
            cplx row = make_cplx(0, 0);
            for (int ix = 0; ix < cx; ix++) {
                real s, c;
                double turns = turns_at(own, dims, (double)(fx + ix) / nx, (double)(fy + iy) / ny,
                                        (double)(fz + iz) / nz);
                sincospi((real)(-2 * turns), &s, &c);
                row = fma(*voxel++, make_cplx(c, s), row);
            }
            sum = sum + row;
        }
    samples[(long long)blockIdx.y * count + m] = sum;
}
