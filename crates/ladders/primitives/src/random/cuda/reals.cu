// Uniform numbers on [0, 1), four floats or two doubles of a block; and of floats normal and log-normal ones
// by Box and Muller's method: draw.rs, operation by operation. KIND: 0 uniform, 1 normal, 2 log-normal, 3
// log-normal whose location and scale let no power of 2 leave the normal numbers. Double normal numbers are
// in ziggurat.cu.

#ifndef KIND
#define KIND 0
#endif

// Polynomials with the parameters multiplied in, packed as in draw.rs.
struct Polynomials {
    float4 a, b, c, d, e;
};

#if DOUBLE
typedef double2 drawn;

static __device__ __forceinline__ double uniform(size_t w) { return __dmul_rn((double)(long long)(w >> 11), 1.1102230246251565e-16); }

static __device__ __forceinline__ drawn draw(uint4 w, const Polynomials&) {
    return make_double2(uniform((size_t)w.y << 32 | w.x), uniform((size_t)w.w << 32 | w.z));
}
#else
#define FMA __fmaf_rn
#define MUL __fmul_rn
#define ADD __fadd_rn
typedef float4 drawn;

// -2 ln(u / 2^32) s^2 for u to 2^32, and not quite 0 at 2^32.
static __device__ __forceinline__ float radius_squared(float u, const Polynomials& k) {
    const int i = __float_as_int(u) - 0x4f3504f3, e = i & (int)0xff800000;
    const float f = ADD(__int_as_float(__float_as_int(u) - e - 0x10000000), -1.0f);
    float p = FMA(k.a.x, f, k.a.y);
    p = FMA(p, f, k.a.z);
    p = FMA(p, f, k.a.w);
    p = FMA(p, f, k.b.x);
    p = FMA(p, f, k.b.y);
    p = FMA(p, f, k.b.z);
    return FMA((float)e, k.b.w, FMA(p, f, k.c.x));
}

// The root of a normal number, rounded to nearest: what __fsqrt_rn does where neither overflow nor underflow
// threatens.
static __device__ __forceinline__ float root(float a) {
#ifdef RAYSPIN_EMULATED
    return __fsqrt_rn(a);
#else
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
    const float s = MUL(a, y);
    return FMA(FMA(-s, s, a), MUL(0.5f, y), s);
#endif
}

// 2^x for any x.
static __device__ __forceinline__ float exponential(float x) {
    x = x < -160.0f ? -160.0f : x > 130.0f ? 130.0f : x;
    const float n = ADD(ADD(x, 12582912.0f), -12582912.0f), f = ADD(x, -n);
    float p = FMA(1.327647129073739e-3f, f, 9.675540961325169e-3f);
    p = FMA(p, f, 5.550713092088699e-2f);
    p = FMA(p, f, 2.4022120237350464e-1f);
    p = FMA(p, f, 6.931469440460205e-1f);
    p = FMA(p, f, 1.0000001192092896f);
    const int whole = (int)n, half = whole >> 1;
    return MUL(MUL(p, __int_as_float((half + 127) << 23)), __int_as_float((whole - half + 127) << 23));
}

// The result for the normal number r q. The scale multiplies r q unless r contains it already.
static __device__ __forceinline__ float number(float r, float q, const Polynomials& k) {
#if KIND == 3
    const float m = FMA(r, q, k.c.y), f = FMA(r, q, ADD(k.c.y, -m));
    float p = FMA(k.c.z, f, k.c.w);
    p = FMA(p, f, k.d.x);
    p = FMA(p, f, k.d.y);
    p = FMA(p, f, k.d.z);
    p = FMA(p, f, k.d.w);
    // The lowest bits of m are a whole number, which the exponent is shifted by.
    return __int_as_float(__float_as_int(p) + (__float_as_int(m) << 23));
#else
    const float value = FMA(k.e.y, MUL(r, q), k.e.x);
    return KIND == 2 ? exponential(value) : value;
#endif
}

// The angle runs over a half turn; the first word's uppermost bit says over which. Both polynomials begin
// with 1: their first step is an addition, and needs no constant in a register.
static __device__ __forceinline__ float2 pair(unsigned w0, unsigned w1, const Polynomials& k) {
    const float r = root(radius_squared((float)(w0 << 1 | 1), k));
    const float t = MUL((float)(int)w1, 8.219707553491773e-11f), z = MUL(t, t);
    const float s = FMA(FMA(FMA(ADD(z, -0.96132326f), z, 0.5107131f), z, -0.12898985f), z, 0.0097732665f);
    const float c = FMA(FMA(FMA(ADD(z, -0.75556856f), z, 0.28694412f), z, -0.04348531f), z, 0.0010982623f);
    const float signed_r = __int_as_float(__float_as_int(r) ^ (int)(w0 & 0x80000000u));
    return make_float2(number(signed_r, c, k), number(r, MUL(s, t), k));
}

static __device__ __forceinline__ float uniform(unsigned w) { return MUL((float)(w >> 8), 5.9604644775390625e-8f); }

static __device__ __forceinline__ drawn draw(uint4 w, const Polynomials& k) {
    if (KIND == 0) return make_float4(uniform(w.x), uniform(w.y), uniform(w.z), uniform(w.w));
    const float2 a = pair(w.x, w.y, k), b = pair(w.z, w.w, k);
    return make_float4(a.x, a.y, b.x, b.y);
}
#endif

constexpr unsigned EACH = sizeof(drawn) / sizeof(real);

static __device__ __forceinline__ void give(real* __restrict__ out, size_t n, size_t block, drawn d) {
    const size_t at = block * EACH;
    if (at + EACH <= n) {
        *(drawn*)(out + at) = d;
    } else {
        if (at < n) out[at] = d.x;
#if !DOUBLE
        if (at + 1 < n) out[at + 1] = d.y;
        if (at + 2 < n) out[at + 2] = d.z;
#endif
    }
}

extern "C" __global__ void fill(size_t seed, size_t stream, float4 a, float4 b, float4 c, float4 d, float4 e, real* __restrict__ out,
                                size_t n) {
    const Polynomials k = {a, b, c, d, e};
    const size_t whole = n / EACH;
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t block = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    while (block < whole) {
        const size_t upper = block & ~0xffffffffull;
        const unsigned steps = alike(block, whole, stride);
        drawn* to = (drawn*)out + block;
        unsigned lower = (unsigned)block;
        for (unsigned step = 0; step < steps; step++, to += stride, lower += (unsigned)stride) {
            *to = draw(philox(upper | lower, stream, seed), k);
        }
        block += steps * stride;
    }
    if (block == whole) give(out, n, block, draw(philox(block, stream, seed), k));
}

// Blocks `from` to `from` + `end` of the stream, and of the block after them the first `rest` numbers. Keys
// and coefficients are arguments, and so operands of the instructions that need them; `stride` is the number
// of threads.
extern "C" __global__ void __launch_bounds__(768)
    grid(uint4 k0, uint4 k1, uint4 k2, uint4 k3, uint4 k4, size_t stream, float4 a, float4 b, float4 c, float4 d, float4 e,
         real* __restrict__ out, size_t from, unsigned end, unsigned rest, unsigned stride) {
    const Polynomials k = {a, b, c, d, e};
    const Keys keys = {k0.x, k0.y, k0.z, k0.w, k1.x, k1.y, k1.z, k1.w, k2.x, k2.y,
                       k2.z, k2.w, k3.x, k3.y, k3.z, k3.w, k4.x, k4.y, k4.z, k4.w};
    const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (unsigned block = first; block < end; block += stride) ((drawn*)out)[block] = draw(philox(from | block, stream, keys), k);
    if (first == 0 && rest > 0) give(out, (size_t)end * EACH + rest, end, draw(philox(from + end, stream, keys), k));
}

extern "C" __global__ void from_states(uint4* __restrict__ states, unsigned threads, size_t seed, float4 a, float4 b, float4 c, float4 d,
                                       float4 e, real* __restrict__ out, size_t n) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    const Polynomials k = {a, b, c, d, e};
    uint4 state = states[t];
    size_t next = (size_t)state.y << 32 | state.x;
    const size_t blocks = (n + EACH - 1) / EACH, stream = (size_t)state.w << 32 | state.z;
    for (; next < blocks; next += threads) give(out, n, next, draw(philox(next, stream, seed), k));
    states[t] = make_uint4((unsigned)next, (unsigned)(next >> 32), state.z, state.w);
}
