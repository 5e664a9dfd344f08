// The product on the FP64 tensor cores: as exact as the library's sine and cosine, in the registers and
// stages of the FP16 variant. Sums are f64 throughout.

#define TILES 8
#define STAGES 3
#ifndef BLOCKS
#define BLOCKS 2
#endif
#define STAGE_BYTES (ROWS_BYTES + TILES * 1024)

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
adjoint(const double2* __restrict__ p, const double2* __restrict__ y, const double2* __restrict__ b, int stages,
        cplx* __restrict__ out, int columns, int nu, int nv, int limit, int wu, int wv, int wx, long long base,
        long long su, long long sv, long long sx, long long whole, int add) {
    extern __shared__ uint4 memory[];
    unsigned char* shared = (unsigned char*)memory;
    int column_tiles = (columns + (columns & 1) + TILES * 8 - 1) / (TILES * 8);
    Place at = place(nu, nv, column_tiles);
    p += (long long)blockIdx.y * nu * stages * 16;
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    bool busy = at.u + 2 * warp < nu;

    double sum[2][TILES][4];
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

        const double2* right = (const double2*)(stage + ROWS_BYTES) + threadIdx.x % 32;
        const unsigned char* own = stage + t * 16;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            // Real and imaginary parts of two samples for each u.
            double left[2][4];
#pragma unroll
            for (int k = 0; k < 2; k++) {
                int piece = (half * 2 + k) * 64;
                double2 y0 = *(const double2*)(own + (TILE_U + g) * ROW_BYTES + piece);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    double2 p0 = *(const double2*)(own + (2 * warp + i) * ROW_BYTES + piece);
                    left[i][2 * k] = p0.x * y0.x - p0.y * y0.y;
                    left[i][2 * k + 1] = p0.x * y0.y + p0.y * y0.x;
                }
            }
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                double2 f = right[n * 64 + half * 32];
#pragma unroll
                for (int i = 0; i < 2; i++) multiply_doubles(sum[i][n], left[i], f.x, f.y);
            }
        }
    }
    wait_copies<0>();
    if (!busy) return;
    Output o{out + (blockIdx.z * (long long)gridDim.y + blockIdx.y) * whole + base, columns, nu, nv, limit, wu, wv, wx, su, sv, sx, add};
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            const double* c = sum[i][n];
            store<double>(o, at.u + 2 * warp + i, at.v + g, (at.columns * TILES + n) * 4 + t, c[0], c[1], c[2], c[3]);
        }
}
