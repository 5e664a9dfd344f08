// A step in one pass, from one array to another. A thread computes the new H of its cell. It also computes
// the new H of the neighbours behind it, since its E needs them. Memory is read once, the rest comes from
// caches.

static __device__ __forceinline__ float new_hx(const float* f, const Box& b, int x, int y, int z) {
    const unsigned long long n = index(b, x, y, z);
    float curl = e_at(f, b, EZ, x, y + 1, z) - f[EZ * b.cells + n];
#if DIMS == 3
    curl -= e_at(f, b, 1, x, y, z + 1) - f[b.cells + n];
#endif
    return f[HX * b.cells + n] - COURANT * curl;
}

static __device__ __forceinline__ float new_hy(const float* f, const Box& b, int x, int y, int z) {
    const unsigned long long n = index(b, x, y, z);
    float curl = f[EZ * b.cells + n] - e_at(f, b, EZ, x + 1, y, z);
#if DIMS == 3
    curl += e_at(f, b, 0, x, y, z + 1) - f[n];
#endif
    return f[HY * b.cells + n] - COURANT * curl;
}

#if DIMS == 3
static __device__ __forceinline__ float new_hz(const float* f, const Box& b, int x, int y, int z) {
    const unsigned long long n = index(b, x, y, z);
    const float curl = (e_at(f, b, 1, x + 1, y, z) - f[b.cells + n]) - (e_at(f, b, 0, x, y + 1, z) - f[n]);
    return f[5 * b.cells + n] - COURANT * curl;
}
#endif

extern "C" __global__ void fused(const float* __restrict__ from, float* __restrict__ to, int nx, int ny, int nz) {
    const Box b = box(nx, ny, nz);
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= nx || y >= ny) return;
    const unsigned long long n = index(b, x, y, z);
    const float hx = new_hx(from, b, x, y, z), hy = new_hy(from, b, x, y, z);
    float ez = from[EZ * b.cells + n];
    if (x && y) ez += COURANT * ((hy - new_hy(from, b, x - 1, y, z)) - (hx - new_hx(from, b, x, y - 1, z)));
    to[EZ * b.cells + n] = ez;
    to[HX * b.cells + n] = hx;
    to[HY * b.cells + n] = hy;
#if DIMS == 3
    const float hz = new_hz(from, b, x, y, z);
    float ex = from[n], ey = from[b.cells + n];
    if (y && z) ex += COURANT * ((hz - new_hz(from, b, x, y - 1, z)) - (hy - new_hy(from, b, x, y, z - 1)));
    if (x && z) ey += COURANT * ((hx - new_hx(from, b, x, y, z - 1)) - (hz - new_hz(from, b, x - 1, y, z)));
    to[n] = ex;
    to[b.cells + n] = ey;
    to[5 * b.cells + n] = hz;
#endif
}
