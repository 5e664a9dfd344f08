// What every kernel may use. `DOUBLE` is 1 where a program is compiled for f64.
#ifndef DOUBLE
#define DOUBLE 0
#endif
#if DOUBLE
typedef double real;
typedef double2 cplx;
#define make_cplx make_double2
#else
typedef float real;
typedef float2 cplx;
#define make_cplx make_float2
#endif

static __device__ __forceinline__ cplx operator+(cplx a, cplx b) { return make_cplx(a.x + b.x, a.y + b.y); }
static __device__ __forceinline__ cplx operator-(cplx a, cplx b) { return make_cplx(a.x - b.x, a.y - b.y); }
static __device__ __forceinline__ cplx operator*(real s, cplx a) { return make_cplx(s * a.x, s * a.y); }
// a · b
static __device__ __forceinline__ cplx mul(cplx a, cplx b) {
    return make_cplx(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// conj(a) · b
static __device__ __forceinline__ cplx mul_conj(cplx a, cplx b) {
    return make_cplx(a.x * b.x + a.y * b.y, a.x * b.y - a.y * b.x);
}
// c + a · b
static __device__ __forceinline__ cplx fma(cplx a, cplx b, cplx c) {
    return make_cplx(c.x + a.x * b.x - a.y * b.y, c.y + a.x * b.y + a.y * b.x);
}
static __device__ __forceinline__ cplx conj(cplx a) { return make_cplx(a.x, -a.y); }
static __device__ __forceinline__ real norm_sqr(cplx a) { return a.x * a.x + a.y * a.y; }
