// What leaves each cell, a block a line of cells; then the moments after the last step, a thread a cell.
// launch: stream<<<ny * nz, 64>>>(start, before, after, nx, ny, nz, step, walls, omega, lid, force)
// launch: finish<<<(nx * ny * nz + 127) / 128, 128>>>(after, out, nx * ny * nz, step, steps, force)
__device__ const int C[19][3] = {{0, 0, 0}, {1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}, {1, 1, 0}, {-1, -1, 0}, {1, 0, 1}, {-1, 0, -1}, {0, 1, 1}, {0, -1, -1}, {1, -1, 0}, {-1, 1, 0}, {1, 0, -1}, {-1, 0, 1}, {0, 1, -1}, {0, -1, 1}};

__device__ float weight(int i) { return i == 0 ? 1 / 3.0f : i < 7 ? 1 / 18.0f : 1 / 36.0f; }

__device__ float equilibrium(int i, const float* m) {
    float along = C[i][0] * m[1] + C[i][1] * m[2] + C[i][2] * m[3], square = m[1] * m[1] + m[2] * m[2] + m[3] * m[3];
    return weight(i) * (m[0] + (1 + m[0]) * (3 * along + 4.5f * along * along - 1.5f * square));
}

__device__ void moments(const float* g, float* m) {
    for (int f = 0; f < 4; f++) m[f] = 0;
    for (int i = 0; i < 19; i++) {
        m[0] += g[i];
        for (int a = 0; a < 3; a++) m[1 + a] += C[i][a] * g[i];
    }
    for (int a = 0; a < 3; a++) m[1 + a] /= 1 + m[0];
}

__global__ void stream(const float* start, const float* before, float* after, int nx, int ny, int nz, int step, int walls, float omega, float lid, float force) {
    int line = blockIdx.x, cells = nx * ny * nz, n[3] = {nx, ny, nz};
    for (int x = threadIdx.x; x < nx; x += blockDim.x) {
        int cell = line * nx + x, place[3] = {x, line % ny, line / ny};
        float g[19], m[4];
        if (step == 0) {
            for (int f = 0; f < 4; f++) m[f] = start[f * cells + cell];
            for (int i = 0; i < 19; i++) g[i] = equilibrium(i, m);
        } else {
            for (int i = 0; i < 19; i++) g[i] = before[i * cells + cell];
        }
        moments(g, m);
        for (int i = 0; i < 19; i++) {
            float leaves = g[i] + omega * (equilibrium(i, m) - g[i]) + 3 * weight(i) * C[i][0] * force;
            int to[3], wall = 0;
            for (int a = 0; a < 3; a++) {
                to[a] = place[a] + C[i][a];
                wall |= (walls >> a & 1) && (to[a] < 0 || to[a] >= n[a]);
                to[a] = (to[a] + n[a]) % n[a];
            }
            if (wall) {
                bool moving = (walls >> 1 & 1) && C[i][1] == 1 && place[1] == ny - 1;
                int opposite = i == 0 ? 0 : i % 2 ? i + 1 : i - 1;
                after[opposite * cells + cell] = leaves - (moving ? 6 * weight(i) * C[i][0] * lid : 0);
            } else {
                after[i * cells + (to[2] * ny + to[1]) * nx + to[0]] = leaves;
            }
        }
    }
}

__global__ void finish(const float* after, float* out, int cells, int step, int steps, float force) {
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells || step < steps - 1) return;
    float g[19], m[4];
    for (int i = 0; i < 19; i++) g[i] = after[i * cells + cell];
    moments(g, m);
    m[1] += 0.5f * force / (1 + m[0]);
    for (int f = 0; f < 4; f++) out[f * cells + cell] = m[f];
}
