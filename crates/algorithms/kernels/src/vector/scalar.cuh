// Numbers of vectors that are real or complex: `scalar` is `real` or `cplx`.

static __device__ __forceinline__ real mul(real a, real b) { return a * b; }
static __device__ __forceinline__ real mul_conj(real a, real b) { return a * b; }
static __device__ __forceinline__ real norm_sqr(real a) { return a * a; }
// c + a · b
static __device__ __forceinline__ real mul_add(real a, real b, real c) { return c + a * b; }
static __device__ __forceinline__ cplx mul_add(cplx a, cplx b, cplx c) { return fma(a, b, c); }
// conj(a) · b
static __device__ __forceinline__ double2 dot_of(real a, real b) { return make_double2((double)a * b, 0.0); }
static __device__ __forceinline__ double2 dot_of(cplx a, cplx b) {
    double ar = a.x, ai = a.y, br = b.x, bi = b.y;
    return make_double2(ar * br + ai * bi, ar * bi - ai * br);
}
static __device__ __forceinline__ double square(real a) { return (double)a * a; }
static __device__ __forceinline__ double square(cplx a) { return (double)a.x * a.x + (double)a.y * a.y; }
// v - v is 0 for finite numbers only; the compiler is not told that all are.
static __device__ __forceinline__ bool is_number(real a) { return a - a == 0; }
static __device__ __forceinline__ bool is_number(cplx a) { return a.x - a.x == 0 && a.y - a.y == 0; }
static __device__ __forceinline__ void set(real* a, real value) { *a = value; }
static __device__ __forceinline__ void set(cplx* a, real value) { *a = make_cplx(value, 0); }
