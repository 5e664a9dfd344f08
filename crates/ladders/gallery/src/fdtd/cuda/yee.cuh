// Yee's grid. Arrays: Ex, Ey, Ez, Hx, Hy, Hz, or with DIMS 2 (nothing varies along z) Ez, Hx, Hy. Ahead of
// the box E is 0; where x, y or z is 0 the components of E that lie in the conductor are never changed.

#ifndef DIMS
#define DIMS 3
#endif
#if DIMS == 3
#define EZ 2
#define HX 3
#define HY 4
#else
#define EZ 0
#define HX 1
#define HY 2
#endif
#define COURANT 0.5f

struct Box {
    int nx, ny, nz;
    unsigned long long cells;
};

static __device__ __forceinline__ Box box(int nx, int ny, int nz) {
    return Box{nx, ny, nz, (unsigned long long)nz * ny * nx};
}

static __device__ __forceinline__ unsigned long long index(const Box& b, int x, int y, int z) {
    return ((unsigned long long)z * b.ny + y) * b.nx + x;
}

// A component of E, which is 0 ahead of the box.
static __device__ __forceinline__ float e_at(const float* f, const Box& b, int field, int x, int y, int z) {
    return x < b.nx && y < b.ny && z < b.nz ? f[field * b.cells + index(b, x, y, z)] : 0;
}
