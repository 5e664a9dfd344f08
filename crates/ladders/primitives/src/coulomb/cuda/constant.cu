// Atoms in constant memory, as many as it holds: it gives one of them to all threads of a warp at once. A
// launch adds a few of them: warps walk through these at their own pace, and are served by the small first
// cache where all of them fit it.

#ifndef UNROLL
#define UNROLL 16
#endif
#define PIECE 4096
__constant__ float4 piece[PIECE];

// Atoms `from` to `to` of the piece.
extern "C" __global__ void __launch_bounds__(512)
constant(int from, int to, int add, float* __restrict__ v, int nx, int ny, int nz, float ox, float oy, float oz,
         float spacing) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)nx * ny * nz) return;
    const long long row = at / nx, plane = row / ny;
    const float x = place(ox, spacing, (int)(at - row * nx)), y = place(oy, spacing, (int)(row - plane * ny));
    const float z = place(oz, spacing, (int)plane);
    float sum = 0;
#pragma unroll UNROLL
    for (int i = from; i < to; i++) {
        const float4 atom = piece[i];
        const float dx = x - atom.x, dy = y - atom.y, dz = z - atom.z;
        sum += atom.w / sqrtf(dx * dx + dy * dy + dz * dz);
    }
    v[at] = add ? v[at] + sum : sum;
}

// The same with the special-function unit for the root and its inverse.
extern "C" __global__ void __launch_bounds__(512)
special(int from, int to, int add, float* __restrict__ v, int nx, int ny, int nz, float ox, float oy, float oz,
        float spacing) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)nx * ny * nz) return;
    const long long row = at / nx, plane = row / ny;
    const float x = place(ox, spacing, (int)(at - row * nx)), y = place(oy, spacing, (int)(row - plane * ny));
    const float z = place(oz, spacing, (int)plane);
    float sum = 0;
#pragma unroll UNROLL
    for (int i = from; i < to; i++) {
        const float4 atom = piece[i];
        const float dx = x - atom.x, dy = y - atom.y, dz = z - atom.z;
        sum += atom.w * inverse_root(dx * dx + dy * dy + dz * dz);
    }
    v[at] = add ? v[at] + sum : sum;
}
