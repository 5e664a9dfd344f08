// A block's part of the separable transform, common to its variants.
//
// out(u, v, x) = Σ_m P_m(u) Y_m(v) X_m(x): complex rows (u, v) of a real matrix, real columns cos and sin of
// X. A thread's sums of a row's real and imaginary part (c0, c2 with the cosine, c1, c3 with the sine) give
// two mirrored points.

#ifndef THREADS
#define THREADS 256
// Points u and v of a tile; a warp has two of u.
#define TILE_U 16
#endif
#define TILE_V 8

// The stages that this block sums: blockIdx.z is one of gridDim.z parts of them, each with an output of its
// own.
static __device__ __forceinline__ void own_stages(int stages, int& from, int& to) {
    int each = (stages + gridDim.z - 1) / gridDim.z;
    from = min((int)blockIdx.z * each, stages);
    to = min(from + each, stages);
}

// Where a tile's outputs lie.
struct Place {
    int u, v, columns;
};
static __device__ __forceinline__ Place place(int nu, int nv, int column_tiles) {
    int v_tiles = (nv + TILE_V - 1) / TILE_V, i = blockIdx.x / column_tiles;
    return Place{i / v_tiles * TILE_U, i % v_tiles * TILE_V, (int)(blockIdx.x % column_tiles)};
}

// The outputs of a transform. Point (u, v, x) is at base + u su + v sv + x sx if u wu + v wv + x wx < limit.
// The limit cuts off the excess points of axes that are split into two.
struct Output {
    cplx* out;
    int columns, nu, nv, limit, wu, wv, wx;
    long long su, sv, sx;
    int add;
};

template <class T>
static __device__ __forceinline__ void store(const Output& o, int u, int v, int pair, T c0, T c1, T c2, T c3) {
    int plus = o.columns / 2 + pair, minus = o.columns - 1 - plus;
    if (u >= o.nu || v >= o.nv || minus < 0) return;
    cplx* row = o.out + u * o.su + v * o.sv;
    int at = u * o.wu + v * o.wv;
    if (at + plus * o.wx < o.limit) {
        cplx value = make_cplx(c0 - c3, c1 + c2);
        row[plus * o.sx] = o.add ? row[plus * o.sx] + value : value;
    }
    if (minus != plus && at + minus * o.wx < o.limit) {
        cplx value = make_cplx(c0 + c3, c2 - c1);
        row[minus * o.sx] = o.add ? row[minus * o.sx] + value : value;
    }
}

// Shared memory of a stage: 256 bytes of every row of P and Y, then the columns. The rows lie 320 bytes
// apart, so that reads of 64 bytes of two rows use all banks.
#define ROW_BYTES 320
#define ROWS_BYTES ((TILE_U + TILE_V) * ROW_BYTES)

// Queues the copies of stage `s`: rows of P from `u`, of Y from `v` on (past the last one that one again),
// and `N` pieces of 1024 bytes of the columns.
template <int N>
static __device__ __forceinline__ void load(unsigned char* stage, const void* p, const void* y, const void* b, int s,
                                            int stages, Place at, int nu, int nv) {
    long long row = (long long)stages * 256;
    for (int i = threadIdx.x; i < (TILE_U + TILE_V) * 16; i += THREADS) {
        int r = i / 16, piece = i % 16 * 16;
        const unsigned char* from = r < TILE_U ? (const unsigned char*)p + min(at.u + r, nu - 1) * row
                                               : (const unsigned char*)y + min(at.v + r - TILE_U, nv - 1) * row;
        copy_async(stage + r * ROW_BYTES + piece, from + s * 256ll + piece);
    }
    const unsigned char* columns = (const unsigned char*)b + ((long long)at.columns * N * stages + s) * 1024;
    for (int i = threadIdx.x; i < N * 64; i += THREADS) {
        int tile = i / 64, piece = i % 64 * 16;
        copy_async(stage + ROWS_BYTES + tile * 1024 + piece, columns + (long long)tile * stages * 1024 + piece);
    }
}
