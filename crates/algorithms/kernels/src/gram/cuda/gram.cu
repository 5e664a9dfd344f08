// AᴴA in double precision, of a matrix whose rows are gathered from single-precision values.

#define THREADS 256
// A thread's products along either axis of a tile of TILE × TILE.
#define TILE (16 * EACH)
// Rows of A in shared memory at once.
#define DEPTH 16

// Tiles (i, j ≤ i), numbered i(i+1)/2 + j.
static __device__ __forceinline__ unsigned first_tile(unsigned pair) {
    unsigned i = 0;
    while ((i + 1) * (i + 2) / 2 <= pair) i++;
    return i;
}

// A block a tile and a part of the rows: partial[part][pair][TILE][TILE] ← Σ conj(A[r][a]) A[r][b], with
// A[r][c] = values[r-th row + columns[c]]. Rows are those `listed`, else 0, 1, 2 and so on.
extern "C" __global__ void __launch_bounds__(THREADS)
products(const cplx* __restrict__ values, const unsigned* __restrict__ rows, int listed, unsigned count,
         const unsigned* __restrict__ columns, unsigned n, unsigned part, double2* __restrict__ partial) {
    // A column more, so that threads of neighbouring rows write to different banks.
    __shared__ double2 left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    unsigned i = first_tile(blockIdx.x), j = blockIdx.x - i * (i + 1) / 2;
    unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
    unsigned begin = blockIdx.y * part, end = min(begin + part, count);
    double2 sum[EACH][EACH];
#pragma unroll
    for (int u = 0; u < EACH; u++)
#pragma unroll
        for (int v = 0; v < EACH; v++) sum[u][v] = make_double2(0, 0);
    for (unsigned first = begin; first < end; first += DEPTH) {
        __syncthreads();
#pragma unroll
        for (unsigned s = threadIdx.x; s < DEPTH * TILE; s += THREADS) {
            unsigned k = s % DEPTH, c = s / DEPTH, a = i * TILE + c, b = j * TILE + c;
            double2 of_a = make_double2(0, 0), of_b = make_double2(0, 0);
            if (first + k < end) {
                unsigned long long row = listed ? rows[first + k] : first + k;
                if (a < n) {
                    cplx value = values[row + columns[a]];
                    of_a = make_double2(value.x, value.y);
                }
                if (b < n) {
                    cplx value = values[row + columns[b]];
                    of_b = make_double2(value.x, value.y);
                }
            }
            left[k][c] = of_a;
            right[k][c] = of_b;
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < DEPTH; k++) {
            double2 a[EACH], b[EACH];
#pragma unroll
            for (int u = 0; u < EACH; u++) {
                a[u] = left[k][y + 16 * u];
                b[u] = right[k][x + 16 * u];
            }
#pragma unroll
            for (int u = 0; u < EACH; u++)
#pragma unroll
                for (int v = 0; v < EACH; v++) {
                    sum[u][v].x = fma(a[u].x, b[v].x, fma(a[u].y, b[v].y, sum[u][v].x));
                    sum[u][v].y = fma(a[u].x, b[v].y, fma(-a[u].y, b[v].x, sum[u][v].y));
                }
        }
    }
    double2* out = partial + ((unsigned long long)blockIdx.y * gridDim.x + blockIdx.x) * (TILE * TILE);
#pragma unroll
    for (int u = 0; u < EACH; u++)
#pragma unroll
        for (int v = 0; v < EACH; v++) out[(y + 16 * u) * TILE + x + 16 * v] = sum[u][v];
}

// gram[a][b] (+)= the sum over the parts, in their order; what lies above the diagonal is the conjugate of
// what lies below.
extern "C" __global__ void __launch_bounds__(THREADS)
finish(const double2* __restrict__ partial, unsigned parts, unsigned pairs, unsigned n, int add,
       double2* __restrict__ gram) {
    unsigned long long at = blockIdx.x * (unsigned long long)THREADS + threadIdx.x;
    if (at >= (unsigned long long)n * n) return;
    unsigned a = at / n, b = at % n, high = max(a, b), low = min(a, b);
    unsigned i = high / TILE, j = low / TILE;
    const double2* from = partial + (unsigned long long)(i * (i + 1) / 2 + j) * (TILE * TILE)
                        + (high % TILE) * TILE + low % TILE;
    double2 sum = make_double2(0, 0);
    for (unsigned p = 0; p < parts; p++) {
        double2 value = from[(unsigned long long)p * pairs * (TILE * TILE)];
        sum.x += value.x;
        sum.y += value.y;
    }
    if (a < b) sum.y = -sum.y;
    if (a == b) sum.y = 0;
    double2 before = add ? gram[at] : make_double2(0, 0);
    gram[at] = make_double2(before.x + sum.x, before.y + sum.y);
}
