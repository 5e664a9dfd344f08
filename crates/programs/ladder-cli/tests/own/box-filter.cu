// A thread a pixel, which reads its whole window.
extern "C" __global__ void box_filter(const PIXEL* image, PIXEL* out, int rows, int columns, int radius) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % columns, y = i / columns;
    if (y >= rows) return;
    double sum = 0;
    for (int j = -radius; j <= radius; j++) {
        for (int k = -radius; k <= radius; k++) {
            sum += image[(size_t)min(max(y + j, 0), rows - 1) * columns + min(max(x + k, 0), columns - 1)];
        }
    }
    double side = 2 * radius + 1, mean = sum / (side * side);
    out[i] = sizeof(PIXEL) == 1 ? (PIXEL)(mean + 0.5) : (PIXEL)mean;
}
