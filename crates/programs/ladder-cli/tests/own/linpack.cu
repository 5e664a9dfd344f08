// One block finds the pivot and swaps, then a thread for each row divides, then one for each number.
// launch: pivot<<<1, 256>>>(lu, pivots, n, k)
// launch: divide<<<(n + 255) / 256, 256>>>(lu, n, k)
// launch: eliminate<<<(n * n + 255) / 256, 256>>>(lu, n, k)
__global__ void pivot(double* lu, int* pivots, int n, int k) {
    __shared__ int row;
    if (threadIdx.x == 0) {
        row = k;
        for (int r = k + 1; r < n; r++) {
            if (fabs(lu[r * n + k]) > fabs(lu[row * n + k])) row = r;
        }
        pivots[k] = row;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < n && row != k; c += blockDim.x) {
        double kept = lu[k * n + c];
        lu[k * n + c] = lu[row * n + c];
        lu[row * n + c] = kept;
    }
}

__global__ void divide(double* lu, int n, int k) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r > k && r < n) lu[r * n + k] /= lu[k * n + k];
}

__global__ void eliminate(double* lu, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / n, c = i % n;
    if (r > k && r < n && c > k) lu[i] -= lu[r * n + k] * lu[k * n + c];
}
