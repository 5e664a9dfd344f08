// Both passes from one tile with an apron in shared memory: along rows from the tile into a second one, along
// columns from that.

static __device__ __forceinline__ int held(int i, int n) { return min(max(i, 0), n - 1); }

extern "C" __global__ void tile(const float* __restrict__ image, const float* __restrict__ taps, float* __restrict__ out, int rows,
                                int columns, int rx, int ry, int height) {
    extern __shared__ float memory[];
    const int width = blockDim.x, wide = width + 2 * rx, high = height + 2 * ry, nx = 2 * rx + 1, ny = 2 * ry + 1;
    float* own = memory;                  // nx + ny taps
    float* pixels = own + nx + ny;      // high x wide
    float* filtered = pixels + high * wide;  // high x width
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    const int x0 = blockIdx.x * width, y0 = blockIdx.y * height;
    for (int i = thread; i < nx + ny; i += threads) own[i] = taps[i];
    for (int j = threadIdx.y; j < high; j += blockDim.y) {
        const float* row = image + (size_t)held(y0 + j - ry, rows) * columns;
        for (int i = threadIdx.x; i < wide; i += blockDim.x) pixels[j * wide + i] = row[held(x0 + i - rx, columns)];
    }
    __syncthreads();
    for (int j = threadIdx.y; j < high; j += blockDim.y) {
        const float* at = pixels + j * wide + threadIdx.x;
        float sum = 0;
        for (int i = 0; i < nx; i++) sum += own[nx - 1 - i] * at[i];
        filtered[j * width + threadIdx.x] = sum;
    }
    __syncthreads();
    const int x = x0 + threadIdx.x;
    if (x >= columns) return;
    for (int j = threadIdx.y; j < height && y0 + j < rows; j += blockDim.y) {
        const float* at = filtered + j * width + threadIdx.x;
        float sum = 0;
        for (int i = 0; i < ny; i++) sum += own[nx + ny - 1 - i] * at[i * width];
        out[(size_t)(y0 + j) * columns + x] = sum;
    }
}
