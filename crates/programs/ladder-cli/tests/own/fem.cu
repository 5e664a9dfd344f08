// A thread a node. sums[2 * step] is r.r before a step, sums[2 * step + 1] is d.q.
// launch: clear<<<1, 256>>>(sums, step)
// launch: begin<<<dim3(nx / 32 + 1, ny / 4 + 1, nz + 1), dim3(32, 4)>>>(b, u, r, d, sums, nx, ny, nz, step)
// launch: apply<<<dim3(nx / 32 + 1, ny / 4 + 1, nz + 1), dim3(32, 4)>>>(kappa, d, q, sums, nx, ny, nz, step)
// launch: update<<<dim3(nx / 32 + 1, ny / 4 + 1, nz + 1), dim3(32, 4)>>>(u, r, d, q, sums, nx, ny, nz, step)
// launch: turn<<<dim3(nx / 32 + 1, ny / 4 + 1, nz + 1), dim3(32, 4)>>>(r, d, sums, nx, ny, nz, step)
__device__ bool inside(int i, int nx, int ny, int nz) {
    int x = i % (nx + 1), y = i / (nx + 1) % (ny + 1), z = i / (nx + 1) / (ny + 1);
    return x > 0 && x < nx && y > 0 && y < ny && z > 0 && z < nz;
}

// The node of a thread; -1 beyond the last.
__device__ int node(int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    return x <= nx && y <= ny ? (z * (ny + 1) + y) * (nx + 1) + x : -1;
}

__global__ void clear(double* sums, int step) {
    for (int i = threadIdx.x; step == 0 && i < 32768; i += blockDim.x) sums[i] = 0;
}

__global__ void begin(const float* b, float* u, float* r, float* d, double* sums, int nx, int ny, int nz, int step) {
    int i = node(nx, ny, nz);
    if (step > 0 || i < 0) return;
    u[i] = 0;
    r[i] = d[i] = inside(i, nx, ny, nz) ? b[i] : 0;
    atomicAdd(&sums[0], (double)r[i] * r[i]);
}

__global__ void apply(const float* kappa, const float* d, float* q, double* sums, int nx, int ny, int nz, int step) {
    int i = node(nx, ny, nz), mx = nx + 1, my = ny + 1;
    if (i < 0) return;
    int x = i % mx, y = i / mx % my, z = i / mx / my;
    double sum = 0, stiffness[4] = {4 / 12.0, 0, -1 / 12.0, -1 / 12.0};
    for (int octant = 0; inside(i, nx, ny, nz) && octant < 8; octant++) {
        int ex = x - (octant & 1), ey = y - (octant >> 1 & 1), ez = z - (octant >> 2);
        for (int corner = 0; corner < 8; corner++) {
            int j = ((ez + (corner >> 2)) * my + ey + (corner >> 1 & 1)) * mx + ex + (corner & 1);
            sum += kappa[(ez * ny + ey) * nx + ex] * stiffness[__popc(octant ^ corner)] * d[j];
        }
    }
    q[i] = (float)sum;
    atomicAdd(&sums[2 * step + 1], (double)d[i] * q[i]);
}

__global__ void update(float* u, float* r, const float* d, const float* q, double* sums, int nx, int ny, int nz, int step) {
    int i = node(nx, ny, nz);
    if (i < 0) return;
    float alpha = sums[2 * step + 1] > 0 ? (float)(sums[2 * step] / sums[2 * step + 1]) : 0;
    u[i] += alpha * d[i];
    r[i] -= alpha * q[i];
    atomicAdd(&sums[2 * step + 2], (double)r[i] * r[i]);
}

__global__ void turn(const float* r, float* d, const double* sums, int nx, int ny, int nz, int step) {
    int i = node(nx, ny, nz);
    if (i < 0) return;
    float beta = sums[2 * step] > 0 ? (float)(sums[2 * step + 2] / sums[2 * step]) : 0;
    d[i] = r[i] + beta * d[i];
}
