// STEPS steps a pass (temporal blocking). A block of TX x TY threads goes through planes along z. Each plane
// passes STEPS stages, one step each: stage s makes plane q - s new when plane q has come from memory. A
// thread keeps its column of each stage in registers; neighbours along x and y meet in shared memory. Each
// stage makes the outermost threads' values wrong by one cell more, so the block writes (TX - 2 STEPS) x
// (TY - 2 STEPS) cells of a plane, and begins STEPS planes before those that it writes.

#ifndef STEPS
#define STEPS 2
#endif
#ifndef TX
#define TX 32
#endif
#ifndef TY
#define TY 16
#endif

struct Cell {
    float ez, hx, hy;
#if DIMS == 3
    float ex, ey, hz;
#endif
};

static __device__ __forceinline__ Cell none() {
    Cell c;
    c.ez = c.hx = c.hy = 0;
#if DIMS == 3
    c.ex = c.ey = c.hz = 0;
#endif
    return c;
}

static __device__ __forceinline__ Cell load(const float* at, const Box& b) {
    Cell c;
    c.ez = at[EZ * b.cells], c.hx = at[HX * b.cells], c.hy = at[HY * b.cells];
#if DIMS == 3
    c.ex = at[0], c.ey = at[b.cells], c.hz = at[5 * b.cells];
#endif
    return c;
}

extern "C" __global__ void __launch_bounds__(TX * TY)
blocked(const float* __restrict__ from, float* __restrict__ to, int nx, int ny, int nz, int planes) {
    // One row and one column of padding on either side: what is there does not matter.
    __shared__ float ez[TY + 2][TX + 2], hx[TY + 2][TX + 2], hy[TY + 2][TX + 2];
#if DIMS == 3
    __shared__ float ex[TY + 2][TX + 2], ey[TY + 2][TX + 2], hz[TY + 2][TX + 2];
#endif
    const Box b = box(nx, ny, nz);
    const int i = threadIdx.x + 1, j = threadIdx.y + 1;
    const int x = (int)(blockIdx.x * (TX - 2 * STEPS) + threadIdx.x) - STEPS;
    const int y = (int)(blockIdx.y * (TY - 2 * STEPS) + threadIdx.y) - STEPS;
    const bool inside = x >= 0 && x < nx && y >= 0 && y < ny;
    const bool mine = inside && threadIdx.x >= STEPS && threadIdx.x < TX - STEPS && threadIdx.y >= STEPS &&
                      threadIdx.y < TY - STEPS;
    const int z0 = blockIdx.z * planes, z1 = min(z0 + planes, nz);
    const int begin = max(z0 - STEPS, 0), end = min(z1 + STEPS, nz);
    // Padding is read and thrown away, but it must be a number.
    for (int at = threadIdx.y * TX + threadIdx.x; at < (TY + 2) * (TX + 2); at += TX * TY) {
        ez[at / (TX + 2)][at % (TX + 2)] = hx[at / (TX + 2)][at % (TX + 2)] = hy[at / (TX + 2)][at % (TX + 2)] = 0;
#if DIMS == 3
        ex[at / (TX + 2)][at % (TX + 2)] = ey[at / (TX + 2)][at % (TX + 2)] = hz[at / (TX + 2)][at % (TX + 2)] = 0;
#endif
    }
    __syncthreads();
    Cell held[STEPS];  // before stage s, of plane q - s - 1
#if DIMS == 3
    float hx_behind[STEPS], hy_behind[STEPS];  // after stage s, of the plane behind that
#endif
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        held[s] = none();
#if DIMS == 3
        hx_behind[s] = hy_behind[s] = 0;
#endif
    }
    // A plane is under way while the one before it passes the stages.
    const unsigned long long plane = (unsigned long long)ny * nx;
    const float* at = from + (inside ? index(b, x, y, begin) : 0);
    Cell under_way = inside ? load(at, b) : none();
    for (int q = begin; q < z1 + STEPS; q++) {
        Cell come = under_way;
        at += plane;
        under_way = inside && q + 1 < end ? load(at, b) : none();
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const int z = q - s - 1;
            Cell now = held[s];
            held[s] = come;
            if (z >= begin && z < end) {
                ez[j][i] = now.ez;
#if DIMS == 3
                ex[j][i] = now.ex, ey[j][i] = now.ey;
#endif
                __syncthreads();
                float curl_x = ez[j + 1][i] - now.ez, curl_y = now.ez - ez[j][i + 1];
#if DIMS == 3
                curl_x -= come.ey - now.ey;
                curl_y += come.ex - now.ex;
                now.hz -= COURANT * ((ey[j][i + 1] - now.ey) - (ex[j + 1][i] - now.ex));
                hz[j][i] = now.hz;
#endif
                now.hx -= COURANT * curl_x;
                now.hy -= COURANT * curl_y;
                hx[j][i] = now.hx, hy[j][i] = now.hy;
                __syncthreads();
                // E changes inside of the box: ahead of it, and in the conductor, it stays as it is.
                if (inside) {
                    if (x && y) now.ez += COURANT * ((now.hy - hy[j][i - 1]) - (now.hx - hx[j - 1][i]));
#if DIMS == 3
                    if (y && z) now.ex += COURANT * ((now.hz - hz[j - 1][i]) - (now.hy - hy_behind[s]));
                    if (x && z) now.ey += COURANT * ((now.hx - hx_behind[s]) - (now.hz - hz[j][i - 1]));
#endif
                }
            }
#if DIMS == 3
            hx_behind[s] = now.hx, hy_behind[s] = now.hy;
#endif
            come = now;
        }
        const int z = q - STEPS;
        if (mine && z >= z0 && z < z1) {
            float* made = to + index(b, x, y, z);
            made[EZ * b.cells] = come.ez, made[HX * b.cells] = come.hx, made[HY * b.cells] = come.hy;
#if DIMS == 3
            made[0] = come.ex, made[b.cells] = come.ey, made[5 * b.cells] = come.hz;
#endif
        }
    }
}
