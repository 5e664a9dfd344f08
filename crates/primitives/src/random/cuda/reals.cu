// KIND: 0 uniform on [0, 1), 1 normal, 2 log-normal. Four floats or two doubles of a block.

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
static __device__ __forceinline__ float logarithm(float u) {
    const int i = __float_as_int(u) - 0x3f3504f3;
    const float e = (float)(i >> 23), f = ADD(__int_as_float((i & 0x7fffff) + 0x3f3504f3), -1.0f), f2 = MUL(f, f);
    float p = 7.0376836292e-2f;
    p = FMA(p, f, -1.1514610310e-1f);
    p = FMA(p, f, 1.1676998740e-1f);
    p = FMA(p, f, -1.2420140846e-1f);
    p = FMA(p, f, 1.4249322787e-1f);
    p = FMA(p, f, -1.6668057665e-1f);
    p = FMA(p, f, 2.0000714765e-1f);
    p = FMA(p, f, -2.4999993993e-1f);
    p = FMA(p, f, 3.3333331174e-1f);
    float y = MUL(MUL(f, f2), p);
    y = FMA(e, -2.12194440e-4f, y);
    y = FMA(-0.5f, f2, y);
    return FMA(e, 0.693359375f, ADD(f, y));
}

// sin and cos of w / 2^32 turns.
static __device__ __forceinline__ float2 sine_cosine(unsigned w) {
    const unsigned quadrant = (w + 0x20000000u) >> 30;
    const float t = MUL((float)(int)(w - (quadrant << 30)), 1.4629180792671596e-9f), z = MUL(t, t);
    float s = FMA(FMA(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f);
    s = FMA(MUL(s, z), t, t);
    float c = FMA(FMA(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
    c = FMA(c, MUL(z, z), FMA(-0.5f, z, 1.0f));
    const bool swap = quadrant & 1;
    const unsigned a = __float_as_uint(swap ? c : s) ^ (quadrant & 2) << 30;
    const unsigned b = __float_as_uint(swap ? s : c) ^ ((quadrant + 1) & 2) << 30;
    return make_float2(__uint_as_float(a), __uint_as_float(b));
}

static __device__ __forceinline__ float2 normals(unsigned w0, unsigned w1) {
    const float u = FMA((float)w0, 2.3283064365386963e-10f, 1.1641532182693481e-10f);
    const float r = __fsqrt_rn(MUL(-2.0f, logarithm(u)));
    const float2 sc = sine_cosine(w1);
    return make_float2(MUL(r, sc.y), MUL(r, sc.x));
}

static __device__ __forceinline__ float exponential(float x) {
    x = x < -110.0f ? -110.0f : x > 100.0f ? 100.0f : x;
    const float n = ADD(FMA(x, 1.4426950408889634f, 12582912.0f), -12582912.0f);
    const float r = FMA(n, 2.12194440e-4f, FMA(n, -0.693359375f, x));
    float p = 1.9875691500e-4f;
    p = FMA(p, r, 1.3981999507e-3f);
    p = FMA(p, r, 8.3334519073e-3f);
    p = FMA(p, r, 4.1665795894e-2f);
    p = FMA(p, r, 1.6666665459e-1f);
    p = FMA(p, r, 5.0000001201e-1f);
    const float y = ADD(FMA(p, MUL(r, r), r), 1.0f);
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
    return KIND == 2 ? exponential(value) : value;
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
#if DOUBLE
        if (at < n) out[at] = d.x;
#else
        if (at < n) out[at] = d.x;
        if (at + 1 < n) out[at + 1] = d.y;
        if (at + 2 < n) out[at + 2] = d.z;
#endif
    }
}

extern "C" __global__ void fill(size_t seed, size_t stream, real location, real scale, real* __restrict__ out, size_t n) {
    const size_t blocks = (n + EACH - 1) / EACH, stride = (size_t)gridDim.x * blockDim.x;
    for (size_t b = (size_t)blockIdx.x * blockDim.x + threadIdx.x; b < blocks; b += stride) {
        give(out, n, b, draw(philox(b, stream, seed), location, scale));
    }
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
