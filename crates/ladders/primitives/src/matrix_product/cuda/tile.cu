// What the kernels with warp tiles share. A warp is 4 × 8 threads and makes 4 TM × 8 TN outputs; a block is
// BM × BN outputs.

#ifndef BM
#define BM 64
#define BN 64
#define BK 8
#define TM 8
#define TN 8
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
// Whether rows of A, and of B and C, begin at multiples of 16 bytes.
#ifndef WIDE_A
#define WIDE_A 0
#define WIDE_B 0
#endif
#define WARPS_X (BN / (8 * TN))
#define THREADS (BM / TM * (BN / TN))

// Four numbers from `at` on in a row of `length`; 0 beyond `left` of them.
template <bool WIDE>
static __device__ __forceinline__ float4 four(const float* at, int left) {
    if (WIDE) return left > 0 ? *(const float4*)at : make_float4(0, 0, 0, 0);
    return make_float4(left > 0 ? at[0] : 0.0f, left > 1 ? at[1] : 0.0f, left > 2 ? at[2] : 0.0f,
                       left > 3 ? at[3] : 0.0f);
}

// Four outputs in a row that has `left` more.
static __device__ __forceinline__ void store(float* at, int left, float4 v) {
    if (WIDE_B) {
        if (left > 0) *(float4*)at = v;
        return;
    }
    if (left > 0) at[0] = v.x;
    if (left > 1) at[1] = v.y;
    if (left > 2) at[2] = v.z;
    if (left > 3) at[3] = v.w;
}

static __device__ __forceinline__ int at_most(long long v) { return v > BM + BN + BK ? BM + BN + BK : (int)v; }
