// A thread a point and row.
extern "C" __global__ void tpacf(const float* points, int n, int sets, const float* edges, unsigned* counts) {
    int index = blockIdx.x * blockDim.x + threadIdx.x, i = index % n, row = index / n;
    if (row > 2 * sets) return;
    bool own = row == 0 || row > sets;
    const float* a = points + (row > sets ? row - sets : 0) * 3 * n;
    const float* b = points + (row > sets ? row - sets : row) * 3 * n;
    for (int j = own ? i + 1 : 0; j < n; j++) {
        float x = a[i] - b[j], y = a[n + i] - b[n + j], z = a[2 * n + i] - b[2 * n + j], square = x * x + y * y + z * z;
        int k = 0;
        while (k < 21 && edges[k] <= square) k++;
        atomicAdd(&counts[row * 22 + k], 1);
    }
}
