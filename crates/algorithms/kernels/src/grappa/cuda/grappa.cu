// Lines of k-space as weighted sums of their neighbours.

#define THREADS 128
// Target coils of a thread: as many uses of each sample that it reads.
#define TARGETS 4

// out[line][coil][x] = Σ_r Σ_j w[coil][r][j] s_j(k + r); a thread a position along x of a line, blockIdx.y
// the coils.
extern "C" __global__ void __launch_bounds__(THREADS)
lines(const cplx* __restrict__ kspace, const int4* __restrict__ sources, const cplx* __restrict__ weights,
      const uint2* __restrict__ targets, unsigned coils, unsigned count, int nz, int ny, int nx, unsigned tiles,
      cplx* __restrict__ out) {
    unsigned line = blockIdx.x / tiles;
    int x = blockIdx.x % tiles * THREADS + threadIdx.x;
    if (x >= nx) return;
    unsigned first = blockIdx.y * TARGETS;
    uint2 at = targets[line];
    cplx sums[TARGETS];
#pragma unroll
    for (unsigned t = 0; t < TARGETS; t++) sums[t] = make_cplx(0, 0);
    for (unsigned r = 0; r < count; r++) {
        int4 step = sources[r];
        int z = (int)at.x + step.x, y = (int)at.y + step.y, from = x + step.z;
        if (z < 0 || z >= nz || y < 0 || y >= ny || from < 0 || from >= nx) continue;
        for (unsigned j = 0; j < coils; j++) {
            cplx s = kspace[(((unsigned long long)j * nz + z) * ny + y) * nx + from];
#pragma unroll
            for (unsigned t = 0; t < TARGETS; t++)
                if (first + t < coils)
                    sums[t] = fma(weights[((unsigned long long)(first + t) * count + r) * coils + j], s, sums[t]);
        }
    }
#pragma unroll
    for (unsigned t = 0; t < TARGETS; t++)
        if (first + t < coils) out[((unsigned long long)line * coils + first + t) * nx + x] = sums[t];
}

// k-space's lines from out[line][coil][x].
extern "C" __global__ void __launch_bounds__(THREADS)
place(const cplx* __restrict__ out, const uint2* __restrict__ targets, unsigned coils, unsigned long long elements, int nz,
      int ny, int nx, cplx* __restrict__ kspace) {
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < elements;
         i += gridDim.x * (unsigned long long)THREADS) {
        unsigned long long row = i / nx;
        unsigned coil = row % coils;
        uint2 at = targets[row / coils];
        kspace[(((unsigned long long)coil * nz + at.x) * ny + at.y) * nx + i % nx] = out[i];
    }
}
