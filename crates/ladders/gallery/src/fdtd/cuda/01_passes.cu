// All of H, then all of E: a pass each. The first step reads the start and writes the result, later ones
// change the result.
// STRIDED 1: the threads of a warp go along the slowest axis.

#ifndef STRIDED
#define STRIDED 0
#endif

// The thread's cell; false beyond the box.
static __device__ __forceinline__ bool cell(const Box& b, int& x, int& y, int& z) {
    const unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
#if STRIDED
    z = (int)(at % b.nz), y = (int)(at / b.nz % b.ny), x = (int)(at / b.nz / b.ny);
#else
    x = (int)(at % b.nx), y = (int)(at / b.nx % b.ny), z = (int)(at / b.nx / b.ny);
#endif
    return at < b.cells;
}

extern "C" __global__ void magnetic(const float* __restrict__ start, float* f, int nx, int ny, int nz, int first) {
    const Box b = box(nx, ny, nz);
    int x, y, z;
    if (!cell(b, x, y, z)) return;
    const float* from = first ? start : f;
    const unsigned long long n = index(b, x, y, z);
    const float ez = from[EZ * b.cells + n];
    float curl_x = e_at(from, b, EZ, x, y + 1, z) - ez, curl_y = ez - e_at(from, b, EZ, x + 1, y, z);
#if DIMS == 3
    const float ex = from[n], ey = from[b.cells + n];
    curl_x -= e_at(from, b, 1, x, y, z + 1) - ey;
    curl_y += e_at(from, b, 0, x, y, z + 1) - ex;
    const float curl_z = (e_at(from, b, 1, x + 1, y, z) - ey) - (e_at(from, b, 0, x, y + 1, z) - ex);
    f[5 * b.cells + n] = from[5 * b.cells + n] - COURANT * curl_z;
#endif
    f[HX * b.cells + n] = from[HX * b.cells + n] - COURANT * curl_x;
    f[HY * b.cells + n] = from[HY * b.cells + n] - COURANT * curl_y;
}

extern "C" __global__ void electric(const float* __restrict__ start, float* f, int nx, int ny, int nz, int first) {
    const Box b = box(nx, ny, nz);
    int x, y, z;
    if (!cell(b, x, y, z)) return;
    const float* from = first ? start : f;
    const unsigned long long n = index(b, x, y, z);
    const float *hx = f + HX * b.cells + n, *hy = f + HY * b.cells + n;
    f[EZ * b.cells + n] = from[EZ * b.cells + n] + (x && y ? COURANT * ((hy[0] - hy[-1]) - (hx[0] - hx[-nx])) : 0);
#if DIMS == 3
    const float* hz = f + 5 * b.cells + n;
    const long long plane = (long long)ny * nx;
    f[n] = from[n] + (y && z ? COURANT * ((hz[0] - hz[-nx]) - (hy[0] - hy[-plane])) : 0);
    f[b.cells + n] = from[b.cells + n] + (x && z ? COURANT * ((hx[0] - hx[-plane]) - (hz[0] - hz[-1])) : 0);
#endif
}
