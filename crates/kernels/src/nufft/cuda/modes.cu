// Between images and the low modes of fine grids: factors are 1/φ̂ along z, y, x, one array after the other.
#define THREADS 256

// grid[mode of x] = image[x] / φ̂, zero elsewhere.
extern "C" __global__ void __launch_bounds__(THREADS)
pad(const cplx* __restrict__ images, const real* __restrict__ factors, cplx* __restrict__ grids, unsigned nz, unsigned ny,
    unsigned nx, unsigned fz, unsigned fy, unsigned fx) {
    unsigned cells = fz * fy * fx, cell = blockIdx.x * THREADS + threadIdx.x;
    if (cell >= cells) return;
    unsigned row = cell / fx, x = cell % fx + nx / 2, y = row % fy + ny / 2, z = row / fy + nz / 2;
    if (x >= fx) x -= fx;
    if (y >= fy) y -= fy;
    if (z >= fz) z -= fz;
    cplx value = make_cplx(0, 0);
    if (x < nx && y < ny && z < nz) {
        real factor = factors[z] * factors[nz + y] * factors[nz + ny + x];
        value = factor * images[(unsigned long long)blockIdx.y * nz * ny * nx + (z * ny + y) * nx + x];
    }
    grids[(unsigned long long)blockIdx.y * cells + cell] = value;
}

// image[x] = grid[mode of x] / φ̂.
extern "C" __global__ void __launch_bounds__(THREADS)
crop(const cplx* __restrict__ grids, const real* __restrict__ factors, cplx* __restrict__ images, unsigned nz, unsigned ny,
     unsigned nx, unsigned fz, unsigned fy, unsigned fx) {
    unsigned voxels = nz * ny * nx, voxel = blockIdx.x * THREADS + threadIdx.x;
    if (voxel >= voxels) return;
    unsigned row = voxel / nx, x = voxel % nx, y = row % ny, z = row / ny;
    unsigned gx = x + fx - nx / 2, gy = y + fy - ny / 2, gz = z + fz - nz / 2;
    if (gx >= fx) gx -= fx;
    if (gy >= fy) gy -= fy;
    if (gz >= fz) gz -= fz;
    real factor = factors[z] * factors[nz + y] * factors[nz + ny + x];
    images[(unsigned long long)blockIdx.y * voxels + voxel] =
        factor * grids[(unsigned long long)blockIdx.y * fz * fy * fx + (gz * fy + gy) * fx + gx];
}
