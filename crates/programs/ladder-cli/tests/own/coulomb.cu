// A thread for each point, which adds up all atoms.
__global__ void coulomb(const float4* atoms, int count, float* v, int nx, int ny, int nz, float ox, float oy, float oz, float h) {
    int point = blockIdx.x * blockDim.x + threadIdx.x, x = point % nx, y = point / nx % ny, z = point / nx / ny;
    if (z >= nz) return;
    float sum = 0;
    for (int i = 0; i < count; i++) {
        float dx = ox + x * h - atoms[i].x, dy = oy + y * h - atoms[i].y, dz = oz + z * h - atoms[i].z;
        sum += atoms[i].w / sqrtf(dx * dx + dy * dy + dz * dz);
    }
    v[point] = sum;
}
