// The product on the FP16 tensor cores with both operands in two halves, three products: (high + low)(high +
// low) less low·low. The units cut sums short instead of rounding them, so of each 16 samples the two small
// products are summed first, then the large one, and the sum joins an f32 register with proper rounding (H.
// Ootomo, R. Yokota, Int J High Perform Comput Appl 36:475, 2022). The left operand is made in the registers
// that hold it; the right one lies in memory as registers take it.

#ifndef TILES
#define TILES 8
#endif
#ifndef STEP
#define STEP 4
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#define STAGES 3
#define STAGE_BYTES (ROWS_BYTES + TILES * 1024)

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
adjoint(const float2* __restrict__ p, const float2* __restrict__ y, const uint4* __restrict__ b, int stages,
        const unsigned* __restrict__ largest_bits, cplx* __restrict__ out, int columns, int nu, int nv, int limit,
        int wu, int wv, int wx, long long base, long long su, long long sv, long long sx, long long whole, int add) {
    extern __shared__ uint4 memory[];
    unsigned char* shared = (unsigned char*)memory;
    int column_tiles = (columns + (columns & 1) + TILES * 8 - 1) / (TILES * 8);
    Place at = place(nu, nv, column_tiles);
    p += (long long)blockIdx.y * nu * stages * 32;
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    bool busy = at.u + 2 * warp < nu;

    float sum[2][TILES][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][n][j] = 0;

    int from, to;
    own_stages(stages, from, to);
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (from + s < to) load<TILES>(shared + s * STAGE_BYTES, p, y, b, from + s, stages, at, nu, nv);
        commit_copies();
    }
    int slot = 0, next = STAGES - 1;
    for (int s = from; s < to; s++) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        if (s + STAGES - 1 < to)
            load<TILES>(shared + next * STAGE_BYTES, p, y, b, s + STAGES - 1, stages, at, nu, nv);
        commit_copies();
        const unsigned char* stage = shared + slot * STAGE_BYTES;
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
        if (!busy) continue;

        const uint4* right = (const uint4*)(stage + ROWS_BYTES) + threadIdx.x % 32;
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            unsigned high[2][4], low[2][4];
            const unsigned char* own = stage + k * 128 + t * 16;
            float4 y0 = *(const float4*)(own + (TILE_U + g) * ROW_BYTES);
            float4 y8 = *(const float4*)(own + (TILE_U + g) * ROW_BYTES + 64);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float4 p0 = *(const float4*)(own + (2 * warp + i) * ROW_BYTES);
                float4 p8 = *(const float4*)(own + (2 * warp + i) * ROW_BYTES + 64);
                split(p0.x * y0.x - p0.y * y0.y, p0.z * y0.z - p0.w * y0.w, high[i][0], low[i][0]);
                split(p0.x * y0.y + p0.y * y0.x, p0.z * y0.w + p0.w * y0.z, high[i][1], low[i][1]);
                split(p8.x * y8.x - p8.y * y8.y, p8.z * y8.z - p8.w * y8.w, high[i][2], low[i][2]);
                split(p8.x * y8.y + p8.y * y8.x, p8.z * y8.w + p8.w * y8.z, high[i][3], low[i][3]);
            }
#pragma unroll
            for (int n = 0; n < TILES; n += STEP) {
                uint4 f[STEP];
                float c[STEP][2][4];
#pragma unroll
                for (int m = 0; m < STEP; m++) f[m] = right[(n + m) * 64 + k * 32];
                // Neighbours in this order are independent of each other.
#pragma unroll
                for (int m = 0; m < STEP; m++)
#pragma unroll
                    for (int i = 0; i < 2; i++) multiply_halves_anew(c[m][i], low[i], f[m].x, f[m].y);
#pragma unroll
                for (int m = 0; m < STEP; m++)
#pragma unroll
                    for (int i = 0; i < 2; i++) multiply_halves(c[m][i], high[i], f[m].z, f[m].w);
#pragma unroll
                for (int m = 0; m < STEP; m++)
#pragma unroll
                    for (int i = 0; i < 2; i++) multiply_halves(c[m][i], high[i], f[m].x, f[m].y);
#pragma unroll
                for (int m = 0; m < STEP; m++)
#pragma unroll
                    for (int i = 0; i < 2; i++)
#pragma unroll
                        for (int j = 0; j < 4; j++) sum[i][n + m][j] += c[m][i][j];
            }
        }
    }
    wait_copies<0>();
    if (!busy) return;
    Output o{out + (blockIdx.z * (long long)gridDim.y + blockIdx.y) * whole + base, columns, nu, nv, limit, wu, wv, wx, su, sv, sx, add};
    // Operands were 2^14 times as large, and the left one divided by the largest value.
    float most = __uint_as_float(*largest_bits), factor = (most == 0 ? 16384.0f : most) * 3.7252902984619140625e-9f;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            const float* c = sum[i][n];
            store<float>(o, at.u + 2 * warp + i, at.v + g, (at.columns * TILES + n) * 4 + t, factor * c[0],
                         factor * c[1], factor * c[2], factor * c[3]);
        }
}
