extern "C" __global__ void zero(float* __restrict__ v, unsigned long long count) {
    const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) v[i] = 0;
}

// A thread an atom: it adds to every point, and all atoms meet there.
extern "C" __global__ void scatter(const float4* __restrict__ atoms, int count, float* v, int nx, int ny, int nz,
                                   float ox, float oy, float oz, float spacing) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float4 atom = atoms[i];
    const long long points = (long long)nx * ny * nz;
    for (long long n = 0; n < points; n++) {
        // Threads begin at different points.
        const long long at = (n + i) % points;
        const float dx = place(ox, spacing, (int)(at % nx)) - atom.x;
        const float dy = place(oy, spacing, (int)(at / nx % ny)) - atom.y;
        const float dz = place(oz, spacing, (int)(at / nx / ny)) - atom.z;
        atomicAdd(v + at, atom.w / sqrtf(dx * dx + dy * dy + dz * dz));
    }
}

// A thread a point: its sum stays in a register.
extern "C" __global__ void gather(const float4* __restrict__ atoms, int count, float* __restrict__ v, int nx, int ny,
                                  int nz, float ox, float oy, float oz, float spacing) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)nx * ny * nz) return;
    const float x = place(ox, spacing, (int)(at % nx)), y = place(oy, spacing, (int)(at / nx % ny));
    const float z = place(oz, spacing, (int)(at / nx / ny));
    float sum = 0;
    for (int i = 0; i < count; i++) {
        const float4 atom = atoms[i];
        const float dx = x - atom.x, dy = y - atom.y, dz = z - atom.z;
        sum += atom.w / sqrtf(dx * dx + dy * dy + dz * dz);
    }
    v[at] = sum;
}

#ifndef THREADS
#define THREADS 128
#define POINTS 8
#define UNROLL 4
#define SOFT 2
#endif

// 1/√v within 8e-7 by arithmetic (Moroz et al., "Fast calculation of inverse square root with the use of
// magic constant", 2018); finite at 0.
static __device__ __forceinline__ float soft_inverse_root(float v) {
    float y = __int_as_float(0x5f376908 - (__float_as_int(v) >> 1));
    const float h = -0.5f * v;
    y *= fmaf(h, y * y, 1.50087896f);
    return y * fmaf(h, y * y, 1.50000057f);
}

// POINTS points of a row a thread, THREADS apart: an atom and its dy² + dz² serve all of them. Atoms come to
// shared memory, THREADS at a time. Of SOFT of the points the root is arithmetic, beside the special-function
// unit, which is the narrower of the two.
extern "C" __global__ void __launch_bounds__(THREADS)
points(const float4* __restrict__ atoms, int count, float* __restrict__ v, int nx, int ny, int nz, float ox, float oy,
       float oz, float spacing) {
    __shared__ float4 near[THREADS];
    const unsigned across = (nx + THREADS * POINTS - 1) / (THREADS * POINTS);
    const unsigned row = blockIdx.x / across;
    const long long first = (long long)(blockIdx.x % across) * (THREADS * POINTS) + threadIdx.x;
    const float y = place(oy, spacing, row % ny), z = place(oz, spacing, row / ny);
    float x[POINTS], sum[POINTS] = {}, least = 1;
#pragma unroll
    for (int p = 0; p < POINTS; p++) x[p] = place(ox, spacing, (int)(first + p * THREADS));
    for (int from = 0; from < count; from += THREADS) {
        const int here = min(THREADS, count - from);
        __syncthreads();
        if (threadIdx.x < here) near[threadIdx.x] = atoms[from + threadIdx.x];
        __syncthreads();
#pragma unroll UNROLL
        for (int i = 0; i < here; i++) {
            const float4 atom = near[i];
            const float dy = y - atom.y, dz = z - atom.z, across2 = dy * dy + dz * dz;
#pragma unroll
            for (int p = 0; p < POINTS; p++) {
                const float dx = x[p] - atom.x, square = fmaf(dx, dx, across2);
                if (p < SOFT) {
                    least = fminf(least, square);
                    sum[p] = fmaf(atom.w, soft_inverse_root(square), sum[p]);
                } else {
                    sum[p] = fmaf(atom.w, inverse_root(square), sum[p]);
                }
            }
        }
    }
    if (SOFT > 0 && least < 1e-37f) {
        // A point where an atom is: what arithmetic gave there is no infinity.
        for (int p = 0; p < SOFT && p < POINTS; p++) {
            const float px = place(ox, spacing, (int)(first + p * THREADS));
            float again = 0;
            for (int i = 0; i < count; i++) {
                const float4 atom = atoms[i];
                const float dx = px - atom.x, dy = y - atom.y, dz = z - atom.z;
                again = fmaf(atom.w, inverse_root(dx * dx + dy * dy + dz * dz), again);
            }
#pragma unroll
            for (int s = 0; s < POINTS; s++)
                if (s == p) sum[s] = again;
        }
    }
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        if (first + p * THREADS < nx) v[(long long)row * nx + first + p * THREADS] = sum[p];
}
