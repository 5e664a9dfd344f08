// TM × TN outputs a thread: what it reads from shared memory it uses TN or TM times, from registers.

#ifndef BM
#define BM 64
#define BN 64
#define BK 8
#define TM 4
#define TN 4
#endif
#define ACROSS (BN / TN)
#define DOWN (BM / TM)
#define THREADS (ACROSS * DOWN)

extern "C" __global__ void __launch_bounds__(THREADS)
registers(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    // The odd row length keeps the stores of a column apart.
    __shared__ float at[BK][BM + 1];
    __shared__ float bt[BK][BN];
    const int thread = threadIdx.x, x = thread % ACROSS, y = thread / ACROSS;
    const unsigned across = (n + BN - 1) / BN;
    const long long row = (long long)(blockIdx.x / across) * BM, column = (long long)(blockIdx.x % across) * BN;
    float sum[TM][TN] = {};
    for (int from = 0; from < k; from += BK) {
        for (int i = thread; i < BM * BK; i += THREADS) {
            const long long r = row + i / BK;
            const int d = from + i % BK;
            at[i % BK][i / BK] = r < m && d < k ? a[r * k + d] : 0.0f;
        }
        for (int i = thread; i < BK * BN; i += THREADS) {
            const int d = from + i / BN;
            const long long s = column + i % BN;
            bt[i / BN][i % BN] = d < k && s < n ? b[(long long)d * n + s] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < BK; d++) {
            float p[TM], q[TN];
            // Neighbouring threads read neighbouring numbers: no bank conflicts, and the stores below
            // coalesce.
#pragma unroll
            for (int i = 0; i < TM; i++) p[i] = at[d][y + i * DOWN];
#pragma unroll
            for (int j = 0; j < TN; j++) q[j] = bt[d][x + j * ACROSS];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) sum[i][j] += p[i] * q[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
            const long long r = row + y + i * DOWN, s = column + x + j * ACROSS;
            if (r < m && s < n) c[r * n + s] = sum[i][j];
        }
}
