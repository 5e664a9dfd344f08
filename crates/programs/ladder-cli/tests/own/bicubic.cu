// A thread a pixel: the weights of four columns and four rows.
__device__ float weight(float t, float a, int spline) {
    t = fabsf(t);
    if (spline) return t < 1 ? 2.0f / 3 - t * t + t * t * t / 2 : t < 2 ? (2 - t) * (2 - t) * (2 - t) / 6 : 0;
    if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? a * (((t - 5) * t + 8) * t - 4) : 0;
}

extern "C" __global__ void bicubic(const PIXEL* image, PIXEL* out, int rows, int columns, int high, int wide, float a, int spline) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % wide, y = i / wide;
    if (y >= high) return;
    double across = (x + 0.5) * columns / wide - 0.5, down = (y + 0.5) * rows / high - 0.5;
    int column = (int)floor(across), row = (int)floor(down);
    float u = (float)(across - column), v = (float)(down - row), sum = 0;
    for (int j = -1; j <= 2; j++) {
        const PIXEL* line = image + (size_t)min(max(row + j, 0), rows - 1) * columns;
        float part = 0;
        for (int k = -1; k <= 2; k++) part += weight(u - k, a, spline) * line[min(max(column + k, 0), columns - 1)];
        sum += weight(v - j, a, spline) * part;
    }
    out[i] = sizeof(PIXEL) == 1 ? (PIXEL)(fminf(fmaxf(sum, 0), 255) + 0.5f) : (PIXEL)sum;
}
