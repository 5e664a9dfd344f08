// Linear maps of coils, and the covariances that they are found from.

#define THREADS 256
#define ROWS 8
#define TILE 4
#define LANES 32
#define WARPS (THREADS / LANES)

// out[i][at + s] = Σ_j matrices[i][j][s mod positions] samples[j][s]: a thread a sample and ROWS coils.
// Threads of a warp read the same matrix, or neighbouring positions'.
extern "C" __global__ void __launch_bounds__(THREADS)
mix(const cplx* __restrict__ matrices, const cplx* __restrict__ samples, cplx* __restrict__ out,
    unsigned long long points, unsigned coils, unsigned kept, unsigned long long positions,
    unsigned long long stride, unsigned long long at) {
    unsigned first = blockIdx.y * ROWS;
    unsigned count = min(kept - first, (unsigned)ROWS);
    unsigned long long row = coils * positions;
    for (unsigned long long s = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; s < points;
         s += gridDim.x * (unsigned long long)THREADS) {
        const cplx* m = matrices + first * row + (positions == 1 ? 0 : s % positions);
        cplx sum[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) sum[r] = make_cplx(0, 0);
        for (unsigned j = 0; j < coils; j++, m += positions) {
            cplx y = samples[j * points + s];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < count) sum[r] = sum[r] + mul(m[r * row], y);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r < count) out[(first + r) * stride + at + s] = sum[r];
    }
}

// Tiles (i, j ≤ i), numbered i(i+1)/2 + j.
static __device__ __forceinline__ unsigned first_tile(unsigned pair) {
    unsigned i = 0;
    while ((i + 1) * (i + 2) / 2 <= pair) i++;
    return i;
}

// out[p][a][b] (+)= Σ_l y_a(l, p) conj(y_b(l, p)): a block LANES positions and a tile of TILE × TILE coils, a
// warp every WARPS-th line; the warps' sums are added in one order.
extern "C" __global__ void __launch_bounds__(THREADS)
covariances(const cplx* __restrict__ samples, double2* __restrict__ out, unsigned long long points, unsigned coils,
            unsigned positions, int add) {
    __shared__ double2 sums[WARPS][LANES];
    unsigned i = first_tile(blockIdx.y), j = blockIdx.y - i * (i + 1) / 2;
    unsigned lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    unsigned p = blockIdx.x * LANES + lane;
    double2 sum[TILE][TILE];
#pragma unroll
    for (int u = 0; u < TILE; u++)
#pragma unroll
        for (int v = 0; v < TILE; v++) sum[u][v] = make_double2(0, 0);
    if (p < positions) {
        for (unsigned long long s = warp * (unsigned long long)positions + p; s < points;
             s += WARPS * (unsigned long long)positions) {
            double2 a[TILE], b[TILE];
#pragma unroll
            for (int u = 0; u < TILE; u++) {
                unsigned of_a = i * TILE + u, of_b = j * TILE + u;
                cplx left = of_a < coils ? samples[of_a * points + s] : make_cplx(0, 0);
                cplx right = of_b < coils ? samples[of_b * points + s] : make_cplx(0, 0);
                a[u] = make_double2(left.x, left.y);
                b[u] = make_double2(right.x, right.y);
            }
#pragma unroll
            for (int u = 0; u < TILE; u++)
#pragma unroll
                for (int v = 0; v < TILE; v++) {
                    sum[u][v].x = fma(a[u].x, b[v].x, fma(a[u].y, b[v].y, sum[u][v].x));
                    sum[u][v].y = fma(a[u].y, b[v].x, fma(-a[u].x, b[v].y, sum[u][v].y));
                }
        }
    }
#pragma unroll
    for (int u = 0; u < TILE; u++)
#pragma unroll
        for (int v = 0; v < TILE; v++) {
            __syncthreads();
            sums[warp][lane] = sum[u][v];
            __syncthreads();
            unsigned a = i * TILE + u, b = j * TILE + v;
            if (warp == 0 && p < positions && a < coils && b <= a) {
                double2 total = make_double2(0, 0);
                for (int w = 0; w < WARPS; w++) {
                    total.x += sums[w][lane].x;
                    total.y += sums[w][lane].y;
                }
                if (a == b) total.y = 0;
                double2* matrix = out + (unsigned long long)p * coils * coils;
                double2 below = add ? matrix[a * coils + b] : make_double2(0, 0);
                below = make_double2(below.x + total.x, below.y + total.y);
                matrix[a * coils + b] = below;
                if (a != b) matrix[b * coils + a] = make_double2(below.x, -below.y);
            }
        }
}
