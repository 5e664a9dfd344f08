// Strips of PIXELS columns, a thread each, that slide down some rows with the last two rows in registers: a
// row is read once a strip, by loads of ALIGN bytes, and no shared memory. A register holds two pixels, and
// even and odd columns have registers of their own. So a neighbour to the side is the other register or one
// permutation away.
//
// HALVES 0: pairs of 16-bit integers. HALVES 1: pairs of half-precision numbers, which hold integers to 2048
// exactly; the largest is 2040. Their absolute value is part of an addition and their multiply-add one
// instruction.

#ifndef ALIGN
#define ALIGN 16
#endif
#ifndef ONE
#define ONE 1
#endif
#ifndef HALVES
#define HALVES 0
#endif
#define PIXELS (ALIGN < 4 ? 4 : ALIGN)
#define WORDS (PIXELS / 4)

#if !HALVES
typedef unsigned pair;
static __device__ __forceinline__ pair even(unsigned word) { return word & 0x00ff00ffu; }
static __device__ __forceinline__ pair odd(unsigned word) { return word >> 8 & 0x00ff00ffu; }
// The second of a and the first of b.
static __device__ __forceinline__ pair between(pair a, pair b) { return __byte_perm(a, b, 0x5432); }
// a + 2b + c. No sum reaches 2^16, so that nothing is carried from one pixel to the next.
static __device__ __forceinline__ pair smooth(pair a, pair b, pair c) { return a + 2 * b + c; }
// |a - b| + |c - d|.
static __device__ __forceinline__ pair steps(pair a, pair b, pair c, pair d) {
    return __vmaxu2(a, b) - __vminu2(a, b) + __vmaxu2(c, d) - __vminu2(c, d);
}
static __device__ __forceinline__ unsigned finished(pair e, pair o, float scale) {
#if ONE
    return __vminu2(e, 0x00ff00ffu) | __vminu2(o, 0x00ff00ffu) << 8;
#else
    return (unsigned)scaled(e & 0xffff, scale) | (unsigned)scaled(o & 0xffff, scale) << 8 |
           (unsigned)scaled(e >> 16, scale) << 16 | (unsigned)scaled(o >> 16, scale) << 24;
#endif
}
#elif defined(RAYSPIN_EMULATED)
typedef float2 pair;
static __device__ __forceinline__ pair even(unsigned w) { return make_float2(w & 255, w >> 16 & 255); }
static __device__ __forceinline__ pair odd(unsigned w) { return make_float2(w >> 8 & 255, w >> 24); }
static __device__ __forceinline__ pair between(pair a, pair b) { return make_float2(a.y, b.x); }
static __device__ __forceinline__ pair smooth(pair a, pair b, pair c) {
    return make_float2(a.x + 2 * b.x + c.x, a.y + 2 * b.y + c.y);
}
static __device__ __forceinline__ pair steps(pair a, pair b, pair c, pair d) {
    return make_float2(fabsf(a.x - b.x) + fabsf(c.x - d.x), fabsf(a.y - b.y) + fabsf(c.y - d.y));
}
static __device__ __forceinline__ unsigned finished(pair e, pair o, float scale) {
    return (unsigned)scaled((int)e.x, scale) | (unsigned)scaled((int)o.x, scale) << 8 |
           (unsigned)scaled((int)e.y, scale) << 16 | (unsigned)scaled((int)o.y, scale) << 24;
}
#else
typedef unsigned pair;
#define BINARY(NAME, INSTRUCTION)                                                     \
    static __device__ __forceinline__ pair NAME(pair a, pair b) {                     \
        pair r;                                                                       \
        asm(INSTRUCTION " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                   \
        return r;                                                                     \
    }
BINARY(added, "add.f16x2")
BINARY(less, "sub.f16x2")
BINARY(smaller, "min.f16x2")
static __device__ __forceinline__ pair magnitude(pair a) {
    pair r;
    asm("abs.f16x2 %0, %1;" : "=r"(r) : "r"(a));
    return r;
}
// A byte below 0x64 is 1024 and the byte.
static __device__ __forceinline__ pair even(unsigned w) { return less(__byte_perm(w, 0x64646464u, 0x4240), 0x64006400u); }
static __device__ __forceinline__ pair odd(unsigned w) { return less(__byte_perm(w, 0x64646464u, 0x4341), 0x64006400u); }
static __device__ __forceinline__ pair between(pair a, pair b) { return __byte_perm(a, b, 0x5432); }
static __device__ __forceinline__ pair smooth(pair a, pair b, pair c) {
    pair r;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(b), "r"(0x40004000u), "r"(added(a, c)));
    return r;
}
static __device__ __forceinline__ pair steps(pair a, pair b, pair c, pair d) {
    return added(magnitude(less(a, b)), magnitude(less(c, d)));
}
static __device__ __forceinline__ float2 wide(pair a) {
    float2 r;
    asm("{ .reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }" : "=f"(r.x), "=f"(r.y) : "r"(a));
    return r;
}
static __device__ __forceinline__ unsigned cut(float sum, float scale) {
    return (unsigned)fminf(__fmul_rn(sum, scale), 255.0f);
}
static __device__ __forceinline__ unsigned finished(pair e, pair o, float scale) {
#if ONE
    e = added(smaller(e, 0x5bf85bf8u), 0x64006400u);
    o = added(smaller(o, 0x5bf85bf8u), 0x64006400u);
    return __byte_perm(e, o, 0x6240);
#else
    const float2 a = wide(e), b = wide(o);
    return cut(a.x, scale) | cut(b.x, scale) << 8 | cut(a.y, scale) << 16 | cut(b.y, scale) << 24;
#endif
}
#endif

// A row of a strip and what it gives: values at even and odd columns with a neighbour at either end, and a +
// 2b + c along x.
struct Row {
    pair e[WORDS + 1], o[WORDS + 1];  // o[0] holds the left neighbour, e[WORDS] the right one.
    pair along_e[WORDS], along_o[WORDS];
};

static __device__ __forceinline__ Row read(const unsigned char* __restrict__ image, int y, int x, int rows, int columns) {
    const unsigned char* row = image + (size_t)held(y, rows) * columns;
    unsigned words[WORDS];
#if ALIGN == 16
    const uint4 v = *(const uint4*)(row + x);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
#elif ALIGN == 8
    const uint2 v = *(const uint2*)(row + x);
    words[0] = v.x, words[1] = v.y;
#elif ALIGN == 4
    words[0] = *(const unsigned*)(row + x);
#else
    words[0] = row[x] | (unsigned)row[min(x + 1, columns - 1)] << 8 | (unsigned)row[min(x + 2, columns - 1)] << 16 |
               (unsigned)row[min(x + 3, columns - 1)] << 24;
#endif
    const unsigned left = row[max(x - 1, 0)], right = row[min(x + PIXELS, columns - 1)];
    Row r;
    r.o[0] = even(left << 16);
    r.e[WORDS] = even(right);
#pragma unroll
    for (int k = 0; k < WORDS; k++) r.e[k] = even(words[k]), r.o[k + 1] = odd(words[k]);
#pragma unroll
    for (int k = 0; k < WORDS; k++) {
        r.along_e[k] = smooth(between(r.o[k], r.o[k + 1]), r.e[k], r.o[k + 1]);
        r.along_o[k] = smooth(r.e[k], r.o[k + 1], between(r.e[k], r.e[k + 1]));
    }
    return r;
}

extern "C" __global__ void sliding(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows, int columns,
                                   int across, int each, float scale) {
    const int x = PIXELS * ((int)(blockIdx.x % across) * blockDim.x + threadIdx.x);
    const int first = (int)(blockIdx.x / across) * each;
    if (x >= columns) return;
    Row a = read(image, first - 1, x, rows, columns), b = read(image, first, x, rows, columns);
    // Three rows take turns without being moved.
#pragma unroll 3
    for (int y = first; y < min(first + each, rows); y++) {
        const Row c = read(image, y + 1, x, rows, columns);
        pair e[WORDS + 1], o[WORDS + 1];
#pragma unroll
        for (int k = 0; k <= WORDS; k++) {
            e[k] = smooth(a.e[k], b.e[k], c.e[k]);
            o[k] = smooth(a.o[k], b.o[k], c.o[k]);
        }
        unsigned words[WORDS];
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            const pair at_e = steps(o[k + 1], between(o[k], o[k + 1]), c.along_e[k], a.along_e[k]);
            const pair at_o = steps(between(e[k], e[k + 1]), e[k], c.along_o[k], a.along_o[k]);
            words[k] = finished(at_e, at_o, scale);
        }
        unsigned char* to = out + (size_t)y * columns + x;
#if ALIGN == 16
        *(uint4*)to = make_uint4(words[0], words[1], words[2], words[3]);
#elif ALIGN == 8
        *(uint2*)to = make_uint2(words[0], words[1]);
#elif ALIGN == 4
        *(unsigned*)to = words[0];
#else
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (x + i < columns) to[i] = (unsigned char)(words[0] >> 8 * i);
#endif
        a = b;
        b = c;
    }
}
