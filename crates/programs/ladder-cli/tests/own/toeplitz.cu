// The convolution as its formula says, a thread a voxel.
extern "C" __global__ void toeplitz(const float2* q, const float2* images, float2* out, int count, int nz, int ny, int nx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = nz * ny * nx;
    if (i >= count * all) return;
    int x = i % nx, y = i / nx % ny, z = i / nx / ny % nz;
    const float2* image = images + i / all * all;
    double re = 0, im = 0;
    for (int j = 0; j < all; j++) {
        int dx = x - j % nx, dy = y - j / nx % ny, dz = z - j / nx / ny;
        float2 a = q[((dz + nz) * 2 * ny + dy + ny) * 2 * nx + dx + nx], b = image[j];
        re += (double)a.x * b.x - (double)a.y * b.y;
        im += (double)a.x * b.y + (double)a.y * b.x;
    }
    out[i] = make_float2((float)re, (float)im);
}
