// KIND: 0 uniform on [0, 1), 1 normal, 2 log-normal, 3 log-normal whose location and scale let no power of 2 leave the normal
// numbers. Four floats or two doubles of a block. Location and scale of single log-normal numbers are those of the power of 2.

#ifndef KIND
#define KIND 0
#endif

#if DOUBLE
#define FMA __fma_rn
#define MUL __dmul_rn
#define ADD __dadd_rn
typedef double2 drawn;
#else
#define FMA __fmaf_rn
#define MUL __fmul_rn
#define ADD __fadd_rn
typedef float4 drawn;
#endif

#if !DOUBLE
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
#else
static __device__ __forceinline__ double logarithm(double u) {
    const long long i = __double_as_longlong(u) - 0x3fe6a09e667f3bcdll;
    const double e = (double)(int)(i >> 52);
    const double f = ADD(__longlong_as_double((i & 0xfffffffffffffll) + 0x3fe6a09e667f3bcdll), -1.0), s = __ddiv_rn(f, ADD(2.0, f));
    const double z = MUL(s, s), half = MUL(0.5, MUL(f, f));
    double p = 1.479819860511658591e-1;
    p = FMA(p, z, 1.531383769920937332e-1);
    p = FMA(p, z, 1.818357216161805012e-1);
    p = FMA(p, z, 2.222219843214978396e-1);
    p = FMA(p, z, 2.857142874366239149e-1);
    p = FMA(p, z, 3.999999999940941908e-1);
    p = FMA(p, z, 6.666666666666735130e-1);
    const double low = FMA(s, FMA(p, z, half), MUL(e, 1.90821492927058770002e-10));
    return FMA(e, 6.93147180369123816490e-1, ADD(f, ADD(low, -half)));
}

// sin and cos of w / 2^64 turns.
static __device__ __forceinline__ double2 sine_cosine(size_t w) {
    const size_t quadrant = (w + 0x2000000000000000ull) >> 62;
    const double t = MUL((double)(long long)(w - (quadrant << 62)), 3.4061215800865545e-19), z = MUL(t, t);
    double s = 1.58969099521155010221e-10;
    s = FMA(s, z, -2.50507602534068634195e-8);
    s = FMA(s, z, 2.75573137070700676789e-6);
    s = FMA(s, z, -1.98412698298579493134e-4);
    s = FMA(s, z, 8.33333333332248946124e-3);
    s = FMA(s, z, -1.66666666666666324348e-1);
    s = FMA(MUL(s, z), t, t);
    double c = -1.13596475577881948265e-11;
    c = FMA(c, z, 2.08757232129817482790e-9);
    c = FMA(c, z, -2.75573143513906633035e-7);
    c = FMA(c, z, 2.48015872894767294178e-5);
    c = FMA(c, z, -1.38888888888741095749e-3);
    c = FMA(c, z, 4.16666666666666019037e-2);
    c = FMA(c, MUL(z, z), FMA(-0.5, z, 1.0));
    const bool swap = quadrant & 1;
    const long long a = __double_as_longlong(swap ? c : s) ^ (long long)((quadrant & 2) << 62);
    const long long b = __double_as_longlong(swap ? s : c) ^ (long long)(((quadrant + 1) & 2) << 62);
    return make_double2(__longlong_as_double(a), __longlong_as_double(b));
}

static __device__ __forceinline__ double2 normals(size_t w0, size_t w1) {
    const double u = MUL((double)(long long)((w0 >> 11) + 1), 1.1102230246251565e-16);
    const double r = __dsqrt_rn(MUL(-2.0, logarithm(u)));
    const double2 sc = sine_cosine(w1);
    return make_double2(MUL(r, sc.y), MUL(r, sc.x));
}

static __device__ __forceinline__ double exponential(double x) {
    x = x < -760.0 ? -760.0 : x > 720.0 ? 720.0 : x;
    const double n = ADD(FMA(x, 1.4426950408889634, 6755399441055744.0), -6755399441055744.0);
    const double r = FMA(n, -1.90821492927058770002e-10, FMA(n, -6.93147180369123816490e-1, x));
    double p = 1.6059043836821613e-10;
    p = FMA(p, r, 2.08767569878681e-9);
    p = FMA(p, r, 2.505210838544172e-8);
    p = FMA(p, r, 2.755731922398589e-7);
    p = FMA(p, r, 2.7557319223985893e-6);
    p = FMA(p, r, 2.48015873015873e-5);
    p = FMA(p, r, 1.984126984126984e-4);
    p = FMA(p, r, 1.388888888888889e-3);
    p = FMA(p, r, 8.333333333333333e-3);
    p = FMA(p, r, 4.1666666666666664e-2);
    p = FMA(p, r, 1.6666666666666666e-1);
    p = FMA(p, r, 0.5);
    const double y = ADD(FMA(p, MUL(r, r), r), 1.0);
    const int whole = (int)n, half = whole >> 1;
    return MUL(MUL(y, __longlong_as_double((long long)(half + 1023) << 52)),
               __longlong_as_double((long long)(whole - half + 1023) << 52));
}

static __device__ __forceinline__ double uniform(size_t w) { return MUL((double)(long long)(w >> 11), 1.1102230246251565e-16); }
#endif

static __device__ __forceinline__ real shaped(real z, real location, real scale) {
    const real value = FMA(scale, z, location);
#if KIND == 3
    return power(value);
#else
    return KIND == 2 ? exponential(value) : value;
#endif
}

static __device__ __forceinline__ drawn draw(uint4 w, real location, real scale) {
#if DOUBLE
    const size_t a = (size_t)w.y << 32 | w.x, b = (size_t)w.w << 32 | w.z;
    if (KIND == 0) return make_double2(uniform(a), uniform(b));
    const double2 z = normals(a, b);
    return make_double2(shaped(z.x, location, scale), shaped(z.y, location, scale));
#else
    if (KIND == 0) return make_float4(uniform(w.x), uniform(w.y), uniform(w.z), uniform(w.w));
    const float2 z0 = normals(w.x, w.y), z1 = normals(w.z, w.w);
    return make_float4(shaped(z0.x, location, scale), shaped(z0.y, location, scale), shaped(z1.x, location, scale),
                       shaped(z1.y, location, scale));
#endif
}

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
