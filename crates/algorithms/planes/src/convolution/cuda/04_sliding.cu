// Both passes in registers. A thread has four columns and slides down some rows. It reads the pixels of each
// row that its four columns need, by loads of 16 bytes that neighbouring threads share in the first-level
// cache. It filters them along x, and adds the four results to the 2 RY + 1 rows of output that they belong
// to. A sum that has all its rows is written. Sums take turns by unrolling, so that none is moved.

#ifndef RX
#define RX 4
#define RY 4
#endif
#define COUNT (2 * RY + 1)
#define SIDE ((RX + 3) / 4)      // groups of four pixels to either side
#define WIDTH (4 * (2 * SIDE + 1))

static __device__ __forceinline__ int held(int i, int n) { return min(max(i, 0), n - 1); }

extern "C" __global__ void sliding(const float* __restrict__ image, const float* __restrict__ taps, float* __restrict__ out,
                                   int rows, int columns, int each, int across_blocks) {
    const int x = 4 * ((int)(blockIdx.x % across_blocks) * blockDim.x + threadIdx.x);
    const int first = (int)(blockIdx.x / across_blocks) * each, last = min(first + each, rows);
    if (x >= columns) return;
    float across[2 * RX + 1], down[COUNT];
#pragma unroll
    for (int i = 0; i < 2 * RX + 1; i++) across[i] = taps[i];
#pragma unroll
    for (int i = 0; i < COUNT; i++) down[i] = taps[2 * RX + 1 + i];
    const bool aligned = columns % 4 == 0, whole = aligned && x >= 4 * SIDE && x + 4 * SIDE + 4 <= columns;
    float sums[COUNT][4];
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
        for (int c = 0; c < 4; c++) sums[k][c] = 0;
    for (int turn = first - RY; turn < last + RY; turn += COUNT) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            const int y = turn + k;  // the row that is read; the row that it completes is y - RY
            if (y >= last + RY) break;
            const float* row = image + (size_t)held(y, rows) * columns;
            float pixels[WIDTH];
            if (whole) {
#pragma unroll
                for (int g = 0; g < WIDTH / 4; g++) {
                    const float4 v = *(const float4*)(row + x + 4 * (g - SIDE));
                    pixels[4 * g] = v.x, pixels[4 * g + 1] = v.y, pixels[4 * g + 2] = v.z, pixels[4 * g + 3] = v.w;
                }
            } else {
#pragma unroll
                for (int i = 4 * SIDE - RX; i < 4 * SIDE + 4 + RX; i++) pixels[i] = row[held(x + i - 4 * SIDE, columns)];
            }
            float filtered[4] = {0, 0, 0, 0};
#pragma unroll
            for (int i = -RX; i <= RX; i++)
#pragma unroll
                for (int c = 0; c < 4; c++) filtered[c] += across[RX + i] * pixels[4 * SIDE + c - i];
            // The sum in place p ends with the row where k = p. This row is number (k - p - 1) mod COUNT of
            // its rows.
#pragma unroll
            for (int p = 0; p < COUNT; p++) {
                const int place = (k + COUNT - p - 1 + COUNT) % COUNT;
#pragma unroll
                for (int c = 0; c < 4; c++)
                    sums[p][c] = place == 0 ? down[COUNT - 1] * filtered[c] : sums[p][c] + down[COUNT - 1 - place] * filtered[c];
            }
            const int done = y - RY;
            if (done >= first) {
                float* to = out + (size_t)done * columns + x;
                if (aligned) {
                    *(float4*)to = make_float4(sums[k][0], sums[k][1], sums[k][2], sums[k][3]);
                } else {
#pragma unroll
                    for (int c = 0; c < 4; c++)
                        if (x + c < columns) to[c] = sums[k][c];
                }
            }
        }
    }
}
