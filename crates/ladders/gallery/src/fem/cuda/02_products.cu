// q = A d.

#ifndef LANES
#define LANES 8
#endif

// The assembled matrix, a thread a row: neighbours read rows that lie 168 bytes apart.
extern "C" __global__ void rows(const unsigned* __restrict__ starts, const unsigned* __restrict__ columns,
                                const float* __restrict__ values, const float* __restrict__ d, float* q, long long n) {
    EACH(i, n) {
        float sum = 0;
        for (unsigned k = starts[i]; k < starts[i + 1]; k++) sum += values[k] * d[columns[k]];
        q[i] = sum;
    }
}

// LANES threads a row, which read its numbers side by side.
extern "C" __global__ void lanes(const unsigned* __restrict__ starts, const unsigned* __restrict__ columns,
                                 const float* __restrict__ values, const float* __restrict__ d, float* q, long long n) {
    const int lane = threadIdx.x % LANES;
    // All threads of a warp take as many turns.
    for (long long first = (long long)blockIdx.x * (blockDim.x / LANES); first < n;
         first += (long long)gridDim.x * (blockDim.x / LANES)) {
        const long long i = first + threadIdx.x / LANES;
        float sum = 0;
        if (i < n)
            for (unsigned k = starts[i] + lane; k < starts[i + 1]; k += LANES) sum += values[k] * d[columns[k]];
#pragma unroll
        for (int half = LANES / 2; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
        if (lane == 0 && i < n) q[i] = sum;
    }
}

extern "C" __global__ void clear(float* q, long long n) {
    EACH(i, n) q[i] = 0;
}

// No matrix: a thread an element adds to the element's eight nodes.
extern "C" __global__ void elements(const float* __restrict__ kappa, const float* __restrict__ d, float* q, int nx, int ny,
                                    int nz) {
    const Mesh m{nx, ny, nz};
    EACH(e, m.element(0, 0, nz)) {
        const int x = (int)(e % nx), y = (int)(e / nx % ny), z = (int)(e / nx / ny);
        const float k = kappa[e] / 12;
        float v[8], sum = 0;
#pragma unroll
        for (int c = 0; c < 8; c++) v[c] = d[m.node(x + (c & 1), y + (c >> 1 & 1), z + (c >> 2))], sum += v[c];
#pragma unroll
        for (int c = 0; c < 8; c++) {
            const int cx = x + (c & 1), cy = y + (c >> 1 & 1), cz = z + (c >> 2);
            // 4 v less the corners that differ along two or three axes: all but itself and three.
            const float far = sum - v[c] - v[c ^ 1] - v[c ^ 2] - v[c ^ 4];
            if (m.inner(cx, cy, cz)) atomicAdd(q + m.node(cx, cy, cz), k * (4 * v[c] - far));
        }
    }
}

// No matrix, no atomics: a thread a node goes through its eight elements.
extern "C" __global__ void nodes(const float* __restrict__ kappa, const float* __restrict__ d, float* q, int nx, int ny,
                                 int nz) {
    const Mesh m{nx, ny, nz};
    EACH(i, m.node(0, 0, nz + 1)) {
        const int x = (int)(i % (nx + 1)), y = (int)(i / (nx + 1) % (ny + 1)), z = (int)(i / (nx + 1) / (ny + 1));
        float sum = 0;
        if (m.inner(x, y, z)) {
            const float four = 4 * d[i];
#pragma unroll
            for (int c = 0; c < 8; c++) {
                const int fx = x + (c & 1 ? 1 : -1), fy = y + (c & 2 ? 1 : -1), fz = z + (c & 4 ? 1 : -1);
                const float far = d[m.node(x, fy, fz)] + d[m.node(fx, y, fz)] + d[m.node(fx, fy, z)] + d[m.node(fx, fy, fz)];
                sum += kappa[m.element(min(x, fx), min(y, fy), min(z, fz))] * (four - far);
            }
        }
        q[i] = sum / 12;
    }
}
