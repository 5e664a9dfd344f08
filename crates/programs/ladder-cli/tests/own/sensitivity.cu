// A thread a voxel, which goes over the coils.
extern "C" __global__ void sensitivity_expand(const float2* maps, const float2* image, float2* images, int coils, int voxels) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= voxels) return;
    float2 b = image[v];
    for (int j = 0; j < coils; j++) {
        float2 a = maps[j * voxels + v];
        images[j * voxels + v] = make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
    }
}

extern "C" __global__ void sensitivity_combine(const float2* maps, const float2* images, float2* image, int coils, int voxels) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= voxels) return;
    float2 sum = make_float2(0, 0);
    for (int j = 0; j < coils; j++) {
        float2 a = maps[j * voxels + v], b = images[j * voxels + v];
        sum.x += a.x * b.x + a.y * b.y;
        sum.y += a.x * b.y - a.y * b.x;
    }
    image[v] = sum;
}

extern "C" __global__ void sensitivity_sum_of_squares(const float2* images, float* roots, int coils, int voxels) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= voxels) return;
    float sum = 0;
    for (int j = 0; j < coils; j++) {
        float2 a = images[j * voxels + v];
        sum += a.x * a.x + a.y * a.y;
    }
    roots[v] = sqrtf(sum);
}
