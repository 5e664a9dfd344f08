// The arithmetic that all variants share. The scaled sum is the f32 product, rounded to nearest, cut towards
// zero and held to 255.

static __device__ __forceinline__ int held(int i, int n) { return min(max(i, 0), n - 1); }

static __device__ __forceinline__ int scaled(int sum, float scale) {
    return (int)fminf(__fmul_rn((float)sum, scale), 255.0f);
}

// |H| + |V| of the eight neighbours, row by row.
static __device__ __forceinline__ int gradients(int a0, int a1, int a2, int b0, int b2, int c0, int c1, int c2) {
    const int across = a2 + 2 * b2 + c2 - a0 - 2 * b0 - c0;
    const int down = c0 + 2 * c1 + c2 - a0 - 2 * a1 - a2;
    return abs(across) + abs(down);
}
