// A thread for each tile and displacement.
__global__ void sad(const unsigned char* current, const unsigned char* reference, unsigned short* sums, int height, int width, int radius) {
    int s = 2 * radius + 1, across = (width + 3) / 4, down = (height + 3) / 4;
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = i / (s * s);
    if (t >= across * down) return;
    int dy = i / s % s - radius, dx = i % s - radius, sum = 0;
    for (int j = 0; j < 16; j++) {
        int y = t / across * 4 + j / 4, x = t % across * 4 + j % 4;
        int now = current[min(y, height - 1) * width + min(x, width - 1)];
        int then = reference[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)];
        sum += abs(now - then);
    }
    sums[i] = sum;
}
