// A column after another: find its pivot and change rows, make a column of L, update all that is left.

// One block.
extern "C" __global__ void __launch_bounds__(256) pivot(double* a, int* pivots, int n, int k) {
    __shared__ int found;
    Best best{-1, n};
    for (int i = k + threadIdx.x; i < n; i += blockDim.x) better(best, fabs(a[(long long)i * n + k]), i);
    best = best_of_block(best);
    if (threadIdx.x == 0) pivots[k] = found = best.row < n ? best.row : k;
    __syncthreads();
    double *one = a + (long long)k * n, *other = a + (long long)found * n;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        const double v = one[j];
        one[j] = other[j], other[j] = v;
    }
}

extern "C" __global__ void scale(double* a, int n, int k) {
    const int i = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[(long long)i * n + k] /= a[(long long)k * n + k];
}

extern "C" __global__ void eliminate(double* a, int n, int k) {
    const int j = k + 1 + blockIdx.x * blockDim.x + threadIdx.x, i = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) a[(long long)i * n + j] -= a[(long long)i * n + k] * a[(long long)k * n + j];
}
