// The two passes with taps in constant memory, which gives all threads of a warp one number at the price of
// none. TAPS lists those along x, then those along y. The unrolled ones have the loop over taps written out,
// which leaves no counters, no jumps, and taps that are operands of their multiply-adds.

#ifndef RX
#define RX 1
#define RY 1
#endif
#ifndef TAPS
#define TAPS 0.25f, 0.5f, 0.25f, 0.25f, 0.5f, 0.25f
#endif

__constant__ float taps[2 * (RX + RY + 1)] = {TAPS};

static __device__ __forceinline__ int held(int i, int n) { return min(max(i, 0), n - 1); }

template <bool UNROLLED>
static __device__ __forceinline__ void across_rows(const float* __restrict__ image, float* __restrict__ out, int rows, int columns) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    const float* row = image + (size_t)y * columns;
    float sum = 0;
    if (UNROLLED && x >= RX && x + RX < columns) {
#pragma unroll
        for (int i = -RX; i <= RX; i++) sum += taps[RX + i] * row[x - i];
    } else {
#pragma unroll 1
        for (int i = -RX; i <= RX; i++) sum += taps[RX + i] * row[held(x - i, columns)];
    }
    out[(size_t)y * columns + x] = sum;
}

template <bool UNROLLED>
static __device__ __forceinline__ void down_columns(const float* __restrict__ image, float* __restrict__ out, int rows,
                                                    int columns) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    const float* down = taps + 2 * RX + 1 + RY;
    float sum = 0;
    if (UNROLLED && y >= RY && y + RY < rows) {
        const float* at = image + (size_t)(y - RY) * columns + x;
#pragma unroll
        for (int j = RY; j >= -RY; j--, at += columns) sum += down[j] * *at;
    } else {
#pragma unroll 1
        for (int j = -RY; j <= RY; j++) sum += down[j] * image[(size_t)held(y - j, rows) * columns + x];
    }
    out[(size_t)y * columns + x] = sum;
}

extern "C" __global__ void rows_looped(const float* __restrict__ image, float* __restrict__ out, int rows, int columns) {
    across_rows<false>(image, out, rows, columns);
}
extern "C" __global__ void columns_looped(const float* __restrict__ image, float* __restrict__ out, int rows, int columns) {
    down_columns<false>(image, out, rows, columns);
}
extern "C" __global__ void rows_unrolled(const float* __restrict__ image, float* __restrict__ out, int rows, int columns) {
    across_rows<true>(image, out, rows, columns);
}
extern "C" __global__ void columns_unrolled(const float* __restrict__ image, float* __restrict__ out, int rows, int columns) {
    down_columns<true>(image, out, rows, columns);
}
