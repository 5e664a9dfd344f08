// The sum along each axis as its formula says, a thread a number.
// array: float2 room[count * nz * ny * nx]
// launch: along<<<(count * nz * ny * nx + 255) / 256, 256>>>(data, room, count * nz * ny * nx, nx, 1)
// launch: along<<<(count * nz * ny * nx + 255) / 256, 256>>>(room, data, count * nz * ny * nx, ny, nx)
// launch: along<<<(count * nz * ny * nx + 255) / 256, 256>>>(data, room, count * nz * ny * nx, nz, nx * ny)
// launch: copy<<<(count * nz * ny * nx + 255) / 256, 256>>>(room, data, count * nz * ny * nx)
__global__ void along(const float2* from, float2* to, int all, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = i / step % n;
    if (i >= all) return;
    double re = 0, im = 0;
    for (int j = 0; j < n; j++) {
        float2 x = from[i + (j - k) * step];
        double s, c;
        sincospi(-2.0 * (j * k % n) / n, &s, &c);
        re += c * x.x - s * x.y;
        im += c * x.y + s * x.x;
    }
    to[i] = make_float2((float)re, (float)im);
}

__global__ void copy(const float2* from, float2* to, int all) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < all) to[i] = from[i];
}
