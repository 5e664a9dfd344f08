// Copies into shared memory that bypass registers, and products on the tensor cores. The emulator runs the
// same kernels with the same operands in the same registers, and replaces only these instructions.

#ifdef RAYSPIN_EMULATED
static __device__ void copy_async(void* shared, const void* global) { *(uint4*)shared = *(const uint4*)global; }
static __device__ void commit_copies() {}
template <int LEFT>
static __device__ void wait_copies() {}

static __device__ unsigned half_of(float v) {
    unsigned b = __float_as_uint(v), sign = b >> 16 & 0x8000u;
    b &= 0x7fffffffu;
    if (b > 0x7f800000u) return sign | 0x7fffu;
    if (b >= 0x477ff000u) return sign | 0x7c00u;
    if (b < 0x38800000u) return sign | (unsigned)rint((double)__uint_as_float(b) * 16777216.0);
    return sign | (b + 0xfffu + (b >> 13 & 1) - 0x38000000u) >> 13;
}
static __device__ float of_half(unsigned h) {
    unsigned exponent = h >> 10 & 31, mantissa = h & 1023;
    float size = exponent == 0    ? mantissa * 5.9604644775390625e-8f
                 : exponent == 31 ? __uint_as_float(0x7f800000u | mantissa << 13)
                                  : __uint_as_float((exponent + 112) << 23 | mantissa << 13);
    return h & 0x8000u ? -size : size;
}
static __device__ unsigned pack(float first, float second) { return half_of(first) | half_of(second) << 16; }
static __device__ void unpack(unsigned both, float& first, float& second) {
    first = of_half(both & 0xffffu);
    second = of_half(both >> 16);
}

// C += A B of 16×16 and 16×8 halves.
static __device__ void multiply_halves(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    __shared__ float left[8][16][16], right[8][16][8];
    int w = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int r = 0; r < 4; r++) {
        float* at = &left[w][g + r % 2 * 8][2 * t + r / 2 * 8];
        unpack(a[r], at[0], at[1]);
    }
    unpack(b0, right[w][2 * t][g], right[w][2 * t + 1][g]);
    unpack(b1, right[w][2 * t + 8][g], right[w][2 * t + 9][g]);
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        float sum = 0;
        for (int k = 0; k < 16; k++) sum += left[w][g + i / 2 * 8][k] * right[w][k][2 * t + i % 2];
        c[i] += sum;
    }
    __syncwarp();
}
static __device__ void multiply_halves_anew(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    for (int i = 0; i < 4; i++) c[i] = 0;
    multiply_halves(c, a, b0, b1);
}
// C += A B of 16×8 and 8×8 doubles.
static __device__ void multiply_doubles(double (&c)[4], const double (&a)[4], double b0, double b1) {
    __shared__ double left[8][16][8], right[8][8][8];
    int w = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int r = 0; r < 4; r++) left[w][g + r % 2 * 8][t + r / 2 * 4] = a[r];
    right[w][t][g] = b0;
    right[w][t + 4][g] = b1;
    __syncwarp();
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++) c[i] += left[w][g + i / 2 * 8][k] * right[w][k][2 * t + i % 2];
    __syncwarp();
}
#else
static __device__ __forceinline__ void copy_async(void* shared, const void* global) {
    unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global));
}
static __device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT>
static __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
static __device__ __forceinline__ unsigned pack(float first, float second) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
static __device__ __forceinline__ void unpack(unsigned both, float& first, float& second) {
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
        : "=f"(first), "=f"(second)
        : "r"(both));
}
static __device__ __forceinline__ void multiply_halves(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                                       unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// C = A B: no register need be set to 0 first.
static __device__ __forceinline__ void multiply_halves_anew(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                                            unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}
static __device__ __forceinline__ void multiply_doubles(double (&c)[4], const double (&a)[4], double b0, double b1) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(c[i % 2 * 2]), "+d"(c[i % 2 * 2 + 1])
            : "d"(a[i]), "d"(i < 2 ? b0 : b1));
#endif
}
#endif

// A pair of numbers as halves, and what these leave of them as halves: 22 bits of each together.
static __device__ __forceinline__ void split(float first, float second, unsigned& high, unsigned& low) {
    float a, b;
    high = pack(first, second);
    unpack(high, a, b);
    low = pack(first - a, second - b);
}
