// H of all cells, then E of all cells, a thread a cell.
// launch: magnetic<<<(nx * ny * nz + 255) / 256, 256>>>(before, after, nx, ny, nz)
// launch: electric<<<(nx * ny * nz + 255) / 256, 256>>>(before, after, nx, ny, nz)
__device__ int component(int c, int nz) { return nz > 1 ? c : c >= 2 && c < 5 ? c - 2 : -1; }

__device__ float at(const float* fields, int c, int x, int y, int z, int nx, int ny, int nz) {
    c = component(c, nz);
    if (c < 0 || x < 0 || y < 0 || z < 0 || x >= nx || y >= ny || z >= nz) return 0;
    return fields[((c * nz + z) * ny + y) * nx + x];
}

__device__ void put(float* fields, int c, int x, int y, int z, int nx, int ny, int nz, float value) {
    c = component(c, nz);
    if (c >= 0) fields[((c * nz + z) * ny + y) * nx + x] = value;
}

#define BEFORE(c, dx, dy, dz) at(before, c, x + dx, y + dy, z + dz, nx, ny, nz)
#define AFTER(c, dx, dy, dz) at(after, c, x + dx, y + dy, z + dz, nx, ny, nz)

__global__ void magnetic(const float* before, float* after, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % nx, y = i / nx % ny, z = i / nx / ny;
    if (z >= nz) return;
    float ex = BEFORE(0, 0, 0, 0), ey = BEFORE(1, 0, 0, 0), ez = BEFORE(2, 0, 0, 0);
    float cx = (BEFORE(2, 0, 1, 0) - ez) - (BEFORE(1, 0, 0, 1) - ey);
    float cy = (BEFORE(0, 0, 0, 1) - ex) - (BEFORE(2, 1, 0, 0) - ez);
    float cz = (BEFORE(1, 1, 0, 0) - ey) - (BEFORE(0, 0, 1, 0) - ex);
    put(after, 3, x, y, z, nx, ny, nz, BEFORE(3, 0, 0, 0) - 0.5f * cx);
    put(after, 4, x, y, z, nx, ny, nz, BEFORE(4, 0, 0, 0) - 0.5f * cy);
    put(after, 5, x, y, z, nx, ny, nz, BEFORE(5, 0, 0, 0) - 0.5f * cz);
}

__global__ void electric(const float* before, float* after, int nx, int ny, int nz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % nx, y = i / nx % ny, z = i / nx / ny;
    if (z >= nz) return;
    float hx = AFTER(3, 0, 0, 0), hy = AFTER(4, 0, 0, 0), hz = AFTER(5, 0, 0, 0);
    float cx = (hz - AFTER(5, 0, -1, 0)) - (hy - AFTER(4, 0, 0, -1));
    float cy = (hx - AFTER(3, 0, 0, -1)) - (hz - AFTER(5, -1, 0, 0));
    float cz = (hy - AFTER(4, -1, 0, 0)) - (hx - AFTER(3, 0, -1, 0));
    put(after, 0, x, y, z, nx, ny, nz, BEFORE(0, 0, 0, 0) + (y > 0 && z > 0 ? 0.5f * cx : 0));
    put(after, 1, x, y, z, nx, ny, nz, BEFORE(1, 0, 0, 0) + (x > 0 && z > 0 ? 0.5f * cy : 0));
    put(after, 2, x, y, z, nx, ny, nz, BEFORE(2, 0, 0, 0) + (x > 0 && y > 0 ? 0.5f * cz : 0));
}
