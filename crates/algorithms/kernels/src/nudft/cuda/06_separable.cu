// The product by f32 multiply-adds: 8 rows (4 complex) by 16 columns of sums in a thread's registers. A
// sample costs a thread 128 multiply-adds, 16 more for its rows P Y, and 6 reads of 16 bytes.

#define DEPTH 16
#define COLUMNS 128
#define STAGES 3
// 16 bytes more than there are, so that reads of four rows meet different banks.
#define PIECE_BYTES (DEPTH * 8 + 16)
#define STAGE_BYTES ((TILE_U + TILE_V) * PIECE_BYTES + DEPTH * COLUMNS * 4)

static __device__ __forceinline__ void load_stage(unsigned char* stage, const float2* p, const float2* y,
                                                  const float* b, int s, int stages, Place at, int nu, int nv) {
    long long width = (long long)stages * DEPTH;
    for (int i = threadIdx.x; i < (TILE_U + TILE_V) * 8; i += THREADS) {
        int r = i / 8;
        const float2* from = r < TILE_U ? p + min(at.u + r, nu - 1) * width : y + min(at.v + r - TILE_U, nv - 1) * width;
        copy_async(stage + r * PIECE_BYTES + i % 8 * 16, from + s * DEPTH + i % 8 * 2);
    }
    const float* columns = b + (at.columns * width + s * DEPTH) * COLUMNS;
    for (int i = threadIdx.x; i < DEPTH * COLUMNS / 4; i += THREADS)
        copy_async(stage + (TILE_U + TILE_V) * PIECE_BYTES + i * 16, columns + i * 4);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
adjoint(const float2* __restrict__ p, const float2* __restrict__ y, const float* __restrict__ b, int stages,
        cplx* __restrict__ out, int columns, int nu, int nv, int limit, int wu, int wv, int wx, long long base,
        long long su, long long sv, long long sx, long long whole, int add) {
    extern __shared__ uint4 memory[];
    unsigned char* shared = (unsigned char*)memory;
    int column_tiles = (columns + (columns & 1) + COLUMNS - 1) / COLUMNS;
    Place at = place(nu, nv, column_tiles);
    p += (long long)blockIdx.y * nu * stages * DEPTH;
    int warp = threadIdx.x / 32, across = threadIdx.x % 8, down = threadIdx.x % 32 / 8;

    // Row (i, j) is u = 2 warp + i, v = 2 down + j; part 0 is real.
    float sum[2][2][2][16];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int c = 0; c < 16; c++) sum[i][j][0][c] = sum[i][j][1][c] = 0;

    int from, to;
    own_stages(stages, from, to);
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (from + s < to) load_stage(shared + s * STAGE_BYTES, p, y, b, from + s, stages, at, nu, nv);
        commit_copies();
    }
    int slot = 0, next = STAGES - 1;
    for (int s = from; s < to; s++) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        if (s + STAGES - 1 < to)
            load_stage(shared + next * STAGE_BYTES, p, y, b, s + STAGES - 1, stages, at, nu, nv);
        commit_copies();
        const unsigned char* stage = shared + slot * STAGE_BYTES;
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
        const float4* right = (const float4*)(stage + (TILE_U + TILE_V) * PIECE_BYTES) + across;
#pragma unroll 2
        for (int k = 0; k < DEPTH; k++) {
            float2 pk[2], yk[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                pk[i] = ((const float2*)(stage + (2 * warp + i) * PIECE_BYTES))[k];
                yk[i] = ((const float2*)(stage + (TILE_U + 2 * down + i) * PIECE_BYTES))[k];
            }
            float4 f[4];
#pragma unroll
            for (int q = 0; q < 4; q++) f[q] = right[k * (COLUMNS / 4) + q * 8];
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    float2 a = mul(pk[i], yk[j]);
#pragma unroll
                    for (int q = 0; q < 4; q++) {
                        float* re = sum[i][j][0] + 4 * q;
                        float* im = sum[i][j][1] + 4 * q;
                        re[0] += a.x * f[q].x;
                        re[1] += a.x * f[q].y;
                        re[2] += a.x * f[q].z;
                        re[3] += a.x * f[q].w;
                        im[0] += a.y * f[q].x;
                        im[1] += a.y * f[q].y;
                        im[2] += a.y * f[q].z;
                        im[3] += a.y * f[q].w;
                    }
                }
        }
    }
    wait_copies<0>();
    Output o{out + (blockIdx.z * (long long)gridDim.y + blockIdx.y) * whole + base, columns, nu, nv, limit, wu, wv, wx, su, sv, sx, add};
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int c = 0; c < 16; c += 2) {
                const float* re = sum[i][j][0] + c;
                const float* im = sum[i][j][1] + c;
                int pair = at.columns * (COLUMNS / 2) + (c / 4 * 32 + across * 4 + c % 4) / 2;
                store<float>(o, at.u + 2 * warp + i, at.v + 2 * down + j, pair, re[0], re[1], im[0], im[1]);
            }
}
