// A block an output tile: TILE × TILE numbers of A and of B at a time come to shared memory, where each is
// read TILE times.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void __launch_bounds__(TILE * TILE)
tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ float at[TILE][TILE];
    __shared__ float bt[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const unsigned across = (n + TILE - 1) / TILE;
    const long long row = (long long)(blockIdx.x / across) * TILE + y;
    const long long column = (long long)(blockIdx.x % across) * TILE + x;
    float sum = 0;
    for (int from = 0; from < k; from += TILE) {
        // The last tile may be narrower than the others, and threads beyond the edge still load for the
        // others.
        at[y][x] = row < m && from + x < k ? a[row * k + from + x] : 0.0f;
        bt[y][x] = column < n && from + y < k ? b[(long long)(from + y) * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) sum += at[y][i] * bt[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
