// Tiles go from global to shared memory without passing through registers, STAGES − 1 of them ahead of the
// one that is multiplied, with one barrier a tile. The tile of A stays as it is in memory: a thread reads 4
// steps of its row at once.

#ifndef STAGES
#define STAGES 3
#endif
// Puts the 16 bytes that the 4 rows of a warp read into different banks.
#define AROW (BK + 4)
#define STAGE (BM * AROW + BK * BN)

// Copies 16 bytes where WIDE, else 4, or zeros where there is nothing to copy.
template <bool WIDE>
static __device__ __forceinline__ void copy(float* to, const float* from, bool inside) {
#ifdef RAYSPIN_EMULATED
    for (int i = 0; i < (WIDE ? 4 : 1); i++) to[i] = inside ? from[i] : 0.0f;
#else
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    if (WIDE) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(inside ? 4 : 0) : "memory");
    }
#endif
}

static __device__ __forceinline__ void commit() {
#ifndef RAYSPIN_EMULATED
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most STAGES − 2 groups are under way.
static __device__ __forceinline__ void wait() {
#ifndef RAYSPIN_EMULATED
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
#endif
}

static __device__ __forceinline__ void fetch(float* stage, const float* __restrict__ a, const float* __restrict__ b,
                                             long long row, long long column, int from, int m, int n, int k) {
    constexpr int A = WIDE_A ? 4 : 1, B = WIDE_B ? 4 : 1;
#pragma unroll
    for (int i = threadIdx.x; i < BM * BK / A; i += THREADS) {
        const int r = i / (BK / A), d = i % (BK / A) * A;
        const bool inside = row + r < m && from + d < k;
        copy<WIDE_A>(stage + r * AROW + d, inside ? a + (row + r) * k + from + d : a, inside);
    }
#pragma unroll
    for (int i = threadIdx.x; i < BK * BN / B; i += THREADS) {
        const int d = i / (BN / B), s = i % (BN / B) * B;
        const bool inside = from + d < k && column + s < n;
        copy<WIDE_B>(stage + BM * AROW + d * BN + s, inside ? b + (long long)(from + d) * n + column + s : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
stages(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    extern __shared__ __align__(16) float tiles[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // A thread's rows are 4 apart: neighbours read neighbouring rows, which the padding keeps in different
    // banks.
    const int y = warp / WARPS_X * 4 * TM + lane / 8, x = warp % WARPS_X * 8 * TN + lane % 8 * 4;
    const unsigned across = (n + BN - 1) / BN;
    const long long row = (long long)(blockIdx.x / across) * BM, column = (long long)(blockIdx.x % across) * BN;
    const int count = (int)(((long long)k + BK - 1) / BK);

    for (int t = 0; t < STAGES - 1; t++) {
        if (t < count) fetch(tiles + t * STAGE, a, b, row, column, t * BK, m, n, k);
        commit();
    }
    float sum[TM][TN] = {};
    int now = 0, next = STAGES - 1;
    for (int t = 0; t < count; t++) {
        // This thread's share of tile t is there; after the barrier everybody's, and all are done with tile t
        // − 1.
        wait();
        __syncthreads();
        if (t + STAGES - 1 < count) fetch(tiles + next * STAGE, a, b, row, column, (t + STAGES - 1) * BK, m, n, k);
        commit();
        const float* p = tiles + now * STAGE + y * AROW;
        const float* q = tiles + now * STAGE + BM * AROW + x;
#pragma unroll
        for (int d = 0; d < BK; d += 4) {
            float4 u[TM];
#pragma unroll
            for (int i = 0; i < TM; i++) u[i] = *(const float4*)(p + 4 * i * AROW + d);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float v[TN];
#pragma unroll
                for (int j = 0; j < TN; j += 4) *(float4*)(v + j) = *(const float4*)(q + (d + e) * BN + 8 * j);
#pragma unroll
                for (int i = 0; i < TM; i++) {
                    const float w = e == 0 ? u[i].x : e == 1 ? u[i].y : e == 2 ? u[i].z : u[i].w;
#pragma unroll
                    for (int j = 0; j < TN; j++) sum[i][j] += w * v[j];
                }
            }
        }
        now = now + 1 == STAGES ? 0 : now + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
        const long long r = row + y + 4 * i;
        if (r >= m) continue;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const long long s = column + x + 8 * j;
            store(c + r * n + s, at_most(n - s), make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]));
        }
    }
}
