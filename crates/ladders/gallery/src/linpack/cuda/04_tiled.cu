// The same update by blocks of BM x BN numbers: 8 x 4 sums a thread, tiles of L and U in shared memory, the
// next tiles under way meanwhile.

#ifndef BM
#define BM 64
#define BN 64
#endif
#define BK 8
#define THREADS (BM / 8 * (BN / 4))
#define LOADS_L (BM * BK / THREADS)
#define LOADS_U (BK * BN / THREADS)

struct Ahead {
    double l[LOADS_L], u[LOADS_U];
};

static __device__ __forceinline__ void fetch(Ahead& ahead, const double* a, int n, int i0, int row_end, int j0, int column_end,
                                             int k0, int to) {
#pragma unroll
    for (int t = 0; t < LOADS_L; t++) {
        const int at = threadIdx.x + t * THREADS, i = i0 + at / BK, k = k0 + at % BK;
        ahead.l[t] = i < row_end && k < to ? a[(long long)i * n + k] : 0;
    }
#pragma unroll
    for (int t = 0; t < LOADS_U; t++) {
        const int at = threadIdx.x + t * THREADS, k = k0 + at / BN, j = j0 + at % BN;
        ahead.u[t] = j < column_end && k < to ? a[(long long)k * n + j] : 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
update_tiled(double* a, int n, int row, int row_end, int column, int column_end, int from, int to) {
    // A column of L is a row here; its padding keeps 16-byte loads aligned and stores apart.
    __shared__ __align__(16) double lt[BK][BM + 2];
    __shared__ __align__(16) double ut[BK][BN];
    const int i0 = row + blockIdx.y * BM, j0 = column + blockIdx.x * BN;
    // A thread's columns are two pairs, half a tile apart, so that neighbours read neighbouring 16 bytes.
    const int y = threadIdx.x / (BN / 4) * 8, x = threadIdx.x % (BN / 4) * 2;
    double sum[8][4] = {};
    Ahead ahead;
    fetch(ahead, a, n, i0, row_end, j0, column_end, from, to);
    for (int k0 = from; k0 < to; k0 += BK) {
        __syncthreads();
#pragma unroll
        for (int t = 0; t < LOADS_L; t++) {
            const int at = threadIdx.x + t * THREADS;
            lt[at % BK][at / BK] = ahead.l[t];
        }
#pragma unroll
        for (int t = 0; t < LOADS_U; t++) {
            const int at = threadIdx.x + t * THREADS;
            ut[at / BN][at % BN] = ahead.u[t];
        }
        __syncthreads();
        if (k0 + BK < to) fetch(ahead, a, n, i0, row_end, j0, column_end, k0 + BK, to);
#pragma unroll
        for (int k = 0; k < BK; k++) {
            double l[8], u[4];
#pragma unroll
            for (int i = 0; i < 8; i += 2) *(double2*)(l + i) = *(const double2*)&lt[k][y + i];
            *(double2*)u = *(const double2*)&ut[k][x];
            *(double2*)(u + 2) = *(const double2*)&ut[k][x + BN / 2];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += l[i] * u[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int r = i0 + y + i, c = j0 + x + j % 2 + j / 2 * (BN / 2);
            if (r < row_end && c < column_end) a[(long long)r * n + c] -= sum[i][j];
        }
}
