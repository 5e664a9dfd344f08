// KIND: 0 uniform on [0, 1), 1 normal, 2 log-normal, 3 log-normal whose location and scale let no power of 2 leave the normal
// numbers. Four floats of a block, or two uniform doubles: ziggurat.cu has the others. Location and scale of log-normal numbers are
// those of the power of 2.

#ifndef KIND
#define KIND 0
#endif

#if DOUBLE
typedef double2 drawn;

static __device__ __forceinline__ double uniform(size_t w) { return __dmul_rn((double)(long long)(w >> 11), 1.1102230246251565e-16); }

static __device__ __forceinline__ drawn draw(uint4 w, double, double) {
    return make_double2(uniform((size_t)w.y << 32 | w.x), uniform((size_t)w.w << 32 | w.z));
}
#else
#define FMA __fmaf_rn
#define MUL __fmul_rn
#define ADD __fadd_rn
typedef float4 drawn;

// -2 ln(u / 2^31) for u to 2^31, and not quite 0 at 2^31.
static __device__ __forceinline__ float radius_squared(float u) {
    const int i = __float_as_int(u) - 0x4eb504f3, e = i & (int)0xff800000;
    const float f = ADD(__int_as_float(__float_as_int(u) - e - 0x0f800000), -1.0f);
    float p = 2.0213785767555237e-1f;
    p = FMA(p, f, -3.2445159554481506e-1f);
    p = FMA(p, f, 3.4501659870147705e-1f);
    p = FMA(p, f, -3.9800330996513367e-1f);
    p = FMA(p, f, 4.993981719017029e-1f);
    p = FMA(p, f, -6.667011976242065e-1f);
    p = FMA(p, f, 1.0000072717666626f);
    p = FMA(p, f, -1.9999998807907104f);
    return FMA((float)e, -1.6525917e-7f, FMA(p, f, 1e-14f));
}

// The root of 1e-14 to 100, rounded to nearest: what __fsqrt_rn does where neither overflow nor underflow threatens.
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

// The angle runs over a half turn; the first word's uppermost bit says over which.
static __device__ __forceinline__ float2 normals(unsigned w0, unsigned w1) {
    const float r = root(radius_squared(ADD(fabsf((float)(int)w0), 0.25f)));
    const float t = MUL((float)(int)w1, 2.3283064365386963e-10f), z = MUL(t, t);
    float s = 7.756038755178452e-2f;
    s = FMA(s, z, -5.982421040534973e-1f);
    s = FMA(s, z, 2.550069808959961f);
    s = FMA(s, z, -5.167709827423096f);
    s = FMA(s, z, 3.1415927410125732f);
    float c = 2.196968048810959e-1f;
    c = FMA(c, z, -1.3318802118301392f);
    c = FMA(c, z, 4.058412075042725f);
    c = FMA(c, z, -4.934792995452881f);
    c = FMA(c, z, 9.999999403953552e-1f);
    const float signed_r = __int_as_float(__float_as_int(r) ^ (int)(w0 & 0x80000000u));
    return make_float2(MUL(signed_r, c), MUL(r, MUL(s, t)));
}

// 2^x by shifting the exponent, for |x| below 125.
static __device__ __forceinline__ float power(float x) {
    const float m = ADD(x, 12582912.0f), f = ADD(x, -ADD(m, -12582912.0f));
    float p = 1.327647129073739e-3f;
    p = FMA(p, f, 9.675540961325169e-3f);
    p = FMA(p, f, 5.550713092088699e-2f);
    p = FMA(p, f, 2.4022120237350464e-1f);
    p = FMA(p, f, 6.931469440460205e-1f);
    p = FMA(p, f, 1.0000001192092896f);
    return __int_as_float(__float_as_int(p) + (__float_as_int(m) << 23));
}

// 2^x for any x.
static __device__ __forceinline__ float exponential(float x) {
    if (fabsf(x) < 125.0f) return power(x);
    x = x < -160.0f ? -160.0f : x > 130.0f ? 130.0f : x;
    const float n = ADD(ADD(x, 12582912.0f), -12582912.0f), y = power(ADD(x, -n));
    const int whole = (int)n, half = whole >> 1;
    return MUL(MUL(y, __int_as_float((half + 127) << 23)), __int_as_float((whole - half + 127) << 23));
}

static __device__ __forceinline__ float uniform(unsigned w) { return MUL((float)(w >> 8), 5.9604644775390625e-8f); }

static __device__ __forceinline__ float shaped(float z, float location, float scale) {
    const float value = FMA(scale, z, location);
#if KIND == 3
    return power(value);
#else
    return KIND == 2 ? exponential(value) : value;
#endif
}

static __device__ __forceinline__ drawn draw(uint4 w, float location, float scale) {
    if (KIND == 0) return make_float4(uniform(w.x), uniform(w.y), uniform(w.z), uniform(w.w));
    const float2 z0 = normals(w.x, w.y), z1 = normals(w.z, w.w);
    return make_float4(shaped(z0.x, location, scale), shaped(z0.y, location, scale), shaped(z1.x, location, scale),
                       shaped(z1.y, location, scale));
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

extern "C" __global__ void fill(size_t seed, size_t stream, real location, real scale, real* __restrict__ out, size_t n) {
    const size_t whole = n / EACH;
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t block = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    while (block < whole) {
        const size_t upper = block & ~0xffffffffull;
        const unsigned steps = alike(block, whole, stride);
        drawn* to = (drawn*)out + block;
        unsigned lower = (unsigned)block;
        for (unsigned step = 0; step < steps; step++, to += stride, lower += (unsigned)stride) {
            *to = draw(philox(upper | lower, stream, seed), location, scale);
        }
        block += steps * stride;
    }
    if (block == whole) give(out, n, block, draw(philox(block, stream, seed), location, scale));
}

// A state is the next counter of a thread.
extern "C" __global__ void initialise(size_t stream, uint4* __restrict__ states, unsigned threads) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < threads) states[t] = make_uint4(t, 0, (unsigned)stream, (unsigned)(stream >> 32));
}

extern "C" __global__ void from_states(uint4* __restrict__ states, unsigned threads, size_t seed, real location, real scale,
                                       real* __restrict__ out, size_t n) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    uint4 state = states[t];
    size_t next = (size_t)state.y << 32 | state.x;
    const size_t blocks = (n + EACH - 1) / EACH, stream = (size_t)state.w << 32 | state.z;
    for (; next < blocks; next += threads) give(out, n, next, draw(philox(next, stream, seed), location, scale));
    states[t] = make_uint4((unsigned)next, (unsigned)(next >> 32), state.z, state.w);
}
