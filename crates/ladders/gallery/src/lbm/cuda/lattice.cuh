// D3Q19 with one relaxation time. A population g_i is f_i less its weight w_i, so that it has the digits of
// what moves. Directions
// come in nine pairs: 2k + 1 is (CX, CY, CZ), 2k + 2 its opposite. No first of a pair points to -x.

// HALF 1: populations are stored as halves, in units of 2^-15: so |g| < 2 is at the upper end of what halves
// hold.
#ifndef HALF
#define HALF 0
#endif

// Calls a function for every pair.
#define PAIRS(F, ...)                                                                                       \
    F<0, 1, 0, 0>(__VA_ARGS__); F<1, 0, 1, 0>(__VA_ARGS__); F<2, 0, 0, 1>(__VA_ARGS__);                      \
    F<3, 1, 1, 0>(__VA_ARGS__); F<4, 1, 0, 1>(__VA_ARGS__); F<5, 0, 1, 1>(__VA_ARGS__);                      \
    F<6, 1, -1, 0>(__VA_ARGS__); F<7, 1, 0, -1>(__VA_ARGS__); F<8, 0, 1, -1>(__VA_ARGS__)

#if HALF
typedef unsigned short number;
#define UNIT 32768.0f
#ifdef RAYSPIN_EMULATED
// The float with the same bits of exponent and mantissa is 2^-112 times the half.
static __device__ float wide(number h) {
    return 5.192296858534828e33f * __int_as_float((int)((h & 0x8000u) << 16 | (h & 0x7fffu) << 13));
}
static __device__ number narrow(float v) {
    const unsigned bits = (unsigned)__float_as_int(1.925929944387236e-34f * v), size = bits & 0x7fffffffu;
    return (number)(bits >> 16 & 0x8000u | (size + 0xfffu + (size >> 13 & 1)) >> 13);  // the nearest, of two the even one
}
#else
static __device__ __forceinline__ float wide(number h) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
static __device__ __forceinline__ number narrow(float v) {
    number h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
#endif
#else
typedef float number;
#define UNIT 1.0f
static __device__ __forceinline__ float wide(number v) { return v; }
static __device__ __forceinline__ number narrow(float v) { return v; }
#endif

// A thread's cell and its box; a bit of `walls` for x, y and z.
struct Site {
    unsigned cells, n;
    int x, y, z, nx, ny, nz, walls;

    // Whether a step along y and z crosses a wall.
    __device__ __forceinline__ bool blocked(int cy, int cz) const {
        return (walls & 2 && (cy > 0 ? y == ny - 1 : cy < 0 && y == 0)) ||
               (walls & 4 && (cz > 0 ? z == nz - 1 : cz < 0 && z == 0));
    }
    // The first cell of the row one step along y and z; beyond the last row is the first.
    __device__ __forceinline__ unsigned row(int cy, int cz) const {
        int ty = y + cy, tz = z + cz;
        ty = ty < 0 ? ny - 1 : ty == ny ? 0 : ty;
        tz = tz < 0 ? nz - 1 : tz == nz ? 0 : tz;
        return ((unsigned)tz * ny + ty) * nx;
    }
    __device__ __forceinline__ bool under_lid() const { return walls & 2 && y == ny - 1; }
};

static __device__ __forceinline__ Site site(int nx, int ny, int nz, int walls) {
    Site s;
    s.nx = nx, s.ny = ny, s.nz = nz, s.walls = walls;
    s.x = blockIdx.x * blockDim.x + threadIdx.x;
    s.y = blockIdx.y * blockDim.y + threadIdx.y;
    s.z = blockIdx.z;
    s.cells = (unsigned)nz * ny * nx;
    s.n = ((unsigned)s.z * ny + s.y) * nx + s.x;
    return s;
}

// Whether a step along y or z may leave the box.
static __device__ __forceinline__ bool at_edge(const Site& s) {
    return s.y == 0 || s.y == s.ny - 1 || s.z == 0 || s.z == s.nz - 1;
}

struct Moments {
    float d, x, y, z;  // density less 1, momentum
};

static __device__ __forceinline__ Moments moments(const float* g) {
    float sum[9], less[9];
#pragma unroll
    for (int k = 0; k < 9; k++) sum[k] = g[2 * k + 1] + g[2 * k + 2], less[k] = g[2 * k + 1] - g[2 * k + 2];
    Moments m;
    m.d = (1 / UNIT) * (g[0] + ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])) + sum[8]);
    m.x = (1 / UNIT) * (less[0] + less[3] + less[4] + less[6] + less[7]);
    m.y = (1 / UNIT) * (less[1] + less[3] + less[5] - less[6] + less[8]);
    m.z = (1 / UNIT) * (less[2] + less[4] + less[5] - less[7] - less[8]);
    return m;
}

static __device__ __forceinline__ void write_moments(const Moments& m, float* at, unsigned cells, float force) {
    const float inverse = 1 / (1 + m.d);
    at[0] = m.d;
    at[cells] = inverse * (m.x + 0.5f * force);  // the mean of before and after a collision
    at[2ull * cells] = inverse * m.y;
    at[3ull * cells] = inverse * m.z;
}

// g + omega (equilibrium - g), and what the force along x adds.
static __device__ __forceinline__ void toward(float* g, float d, float ux, float uy, float uz, float omega, float force) {
    const float rho = 1 + d, base = d - 1.5f * rho * (ux * ux + uy * uy + uz * uz);
    const float along[9] = {ux, uy, uz, ux + uy, ux + uz, uy + uz, ux - uy, ux - uz, uy - uz};
    g[0] += omega * (UNIT / 3 * base - g[0]);
#pragma unroll
    for (int k = 0; k < 9; k++) {
        const float w = k < 3 ? UNIT / 18 : UNIT / 36, kick = k == 1 || k == 2 || k == 5 || k == 8 ? 0 : 3 * w * force;
        const float even = w * (base + 4.5f * rho * along[k] * along[k]), odd = 3 * w * rho * along[k];
        g[2 * k + 1] += omega * (even + odd - g[2 * k + 1]) + kick;
        g[2 * k + 2] += omega * (even - odd - g[2 * k + 2]) - kick;
    }
}

static __device__ __forceinline__ void collide(float* g, float omega, float force) {
    const Moments m = moments(g);
    const float inverse = 1 / (1 + m.d);
    toward(g, m.d, inverse * m.x, inverse * m.y, inverse * m.z, omega, force);
}
