// Convolutions with taps across[-rx .. rx] and down[-ry .. ry]: out[y, x] = Σ down[j] across[i] image[y - j,
// x - i]. Beyond an edge the nearest pixel counts.

static __device__ __forceinline__ int held(int i, int n) { return min(max(i, 0), n - 1); }

// The whole square of products of taps, taps in global memory.
extern "C" __global__ void naive(const float* __restrict__ image, const float* __restrict__ taps, float* __restrict__ out,
                                 int rows, int columns, int rx, int ry) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    const float* across = taps + rx;
    const float* down = taps + 2 * rx + 1 + ry;
    float sum = 0;
    for (int j = -ry; j <= ry; j++) {
        const float* row = image + (size_t)held(y - j, rows) * columns;
        for (int i = -rx; i <= rx; i++) sum += down[j] * across[i] * row[held(x - i, columns)];
    }
    out[(size_t)y * columns + x] = sum;
}

// Along rows, then along columns.
extern "C" __global__ void along_rows(const float* __restrict__ image, const float* __restrict__ taps, float* __restrict__ out,
                                      int rows, int columns, int rx, int ry) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    const float* row = image + (size_t)y * columns;
    float sum = 0;
    for (int i = -rx; i <= rx; i++) sum += taps[rx + i] * row[held(x - i, columns)];
    out[(size_t)y * columns + x] = sum;
}
extern "C" __global__ void along_columns(const float* __restrict__ image, const float* __restrict__ taps, float* __restrict__ out,
                                         int rows, int columns, int rx, int ry) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    const float* down = taps + 2 * rx + 1 + ry;
    float sum = 0;
    for (int j = -ry; j <= ry; j++) sum += down[j] * image[(size_t)held(y - j, rows) * columns + x];
    out[(size_t)y * columns + x] = sum;
}
