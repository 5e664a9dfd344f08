// 16 bytes a load, from global and from shared memory; outputs of a warp are 4 × 8 threads of 4 × 4 patches,
// so that a warp's reads from shared memory are few and without conflicts. With BUFFERS 2 the next tile
// travels while this one is multiplied.

#ifndef BUFFERS
#define BUFFERS 1
#endif
// Keeps rows of the transposed tile at multiples of 16 bytes, and its stores in different banks.
#define AROW (BM + 4)
#define LOADS_A ((BM * BK / 4 + THREADS - 1) / THREADS)
#define LOADS_B ((BK * BN / 4 + THREADS - 1) / THREADS)

struct Ahead {
    float4 a[LOADS_A], b[LOADS_B];
};

static __device__ __forceinline__ void fetch(Ahead& ahead, const float* __restrict__ a, const float* __restrict__ b,
                                             long long row, long long column, int from, int m, int n, int k) {
#pragma unroll
    for (int l = 0; l < LOADS_A; l++) {
        const int i = threadIdx.x + l * THREADS, d = from + i % (BK / 4) * 4;
        const long long r = row + i / (BK / 4);
        ahead.a[l] = four<WIDE_A>(a + r * k + d, i < BM * BK / 4 && r < m ? k - d : 0);
    }
#pragma unroll
    for (int l = 0; l < LOADS_B; l++) {
        const int i = threadIdx.x + l * THREADS, d = from + i / (BN / 4);
        const long long s = column + i % (BN / 4) * 4;
        ahead.b[l] = four<WIDE_B>(b + (long long)d * n + s, i < BK * BN / 4 && d < k ? at_most(n - s) : 0);
    }
}

static __device__ __forceinline__ void put(const Ahead& ahead, float* at, float* bt) {
#pragma unroll
    for (int l = 0; l < LOADS_A; l++) {
        const int i = threadIdx.x + l * THREADS, r = i / (BK / 4), d = i % (BK / 4) * 4;
        if (BM * BK / 4 % THREADS == 0 || i < BM * BK / 4) {
            at[(d + 0) * AROW + r] = ahead.a[l].x;
            at[(d + 1) * AROW + r] = ahead.a[l].y;
            at[(d + 2) * AROW + r] = ahead.a[l].z;
            at[(d + 3) * AROW + r] = ahead.a[l].w;
        }
    }
#pragma unroll
    for (int l = 0; l < LOADS_B; l++) {
        const int i = threadIdx.x + l * THREADS;
        if (BK * BN / 4 % THREADS == 0 || i < BK * BN / 4) ((float4*)bt)[i] = ahead.b[l];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
wide(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ __align__(16) float at[BUFFERS * BK * AROW];
    __shared__ __align__(16) float bt[BUFFERS * BK * BN];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int y = warp / WARPS_X * 4 * TM + lane / 8 * 4, x = warp % WARPS_X * 8 * TN + lane % 8 * 4;
    const unsigned across = (n + BN - 1) / BN;
    const long long row = (long long)(blockIdx.x / across) * BM, column = (long long)(blockIdx.x % across) * BN;

    float sum[TM][TN] = {};
    Ahead ahead;
    if (BUFFERS == 2) {
        fetch(ahead, a, b, row, column, 0, m, n, k);
        put(ahead, at, bt);
        __syncthreads();
    }
    for (int from = 0, now = 0; from < k; from += BK, now ^= BUFFERS - 1) {
        const bool more = from + BK < k;
        if (BUFFERS == 1) {
            fetch(ahead, a, b, row, column, from, m, n, k);
            __syncthreads();
            put(ahead, at, bt);
            __syncthreads();
        } else if (more) {
            fetch(ahead, a, b, row, column, from + BK, m, n, k);
        }
        const float* p = at + now * BK * AROW + y;
        const float* q = bt + now * BK * BN + x;
#pragma unroll
        for (int d = 0; d < BK; d++) {
            float u[TM], v[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4) *(float4*)(u + i) = *(const float4*)(p + d * AROW + 4 * i);
#pragma unroll
            for (int j = 0; j < TN; j += 4) *(float4*)(v + j) = *(const float4*)(q + d * BN + 8 * j);
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) sum[i][j] += u[i] * v[j];
        }
        if (BUFFERS == 2) {
            // Nobody reads the other buffer since the barrier before.
            if (more) put(ahead, at + (now ^ 1) * BK * AROW, bt + (now ^ 1) * BK * BN);
            __syncthreads();
        }
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
        const long long r = row + y + i / 4 * 16 + i % 4;
        if (r >= m) continue;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const long long s = column + x + 8 * j;
            store(c + r * n + s, at_most(n - s), make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]));
        }
    }
}
