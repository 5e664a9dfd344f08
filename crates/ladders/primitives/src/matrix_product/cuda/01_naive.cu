// A thread an output. Rows lie in a row of A and of C along blockIdx.x, which has no small limit.

extern "C" __global__ void naive(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m,
                                 int n, int k) {
    const unsigned across = (n + blockDim.x - 1) / blockDim.x;
    const long long row = (long long)(blockIdx.x / across) * blockDim.y + threadIdx.y;
    const long long column = (long long)(blockIdx.x % across) * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[(long long)i * n + column];
    c[row * n + column] = sum;
}
