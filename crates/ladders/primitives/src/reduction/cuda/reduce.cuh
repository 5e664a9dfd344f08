// One number of many. ELEMENT is what is read, ACC what is joined, OP how:
// 0 Σa, 1 the least a, 2 the greatest a, 3 Σ(a − b)².
#ifndef ELEMENT
#define ELEMENT float
#define ACC double
#define OP 0
#endif
// Threads of a block, where a kernel knows them beforehand.
#ifndef THREADS
#define THREADS 256
#endif
// Loads of 16 bytes that a thread has under way at once.
#ifndef UNROLL
#define UNROLL 8
#endif

typedef unsigned long long u64;

#if OP == 1
static __device__ __forceinline__ void most(int* v) { *v = 0x7fffffff; }
static __device__ __forceinline__ void most(float* v) { *v = __int_as_float(0x7f800000); }
static __device__ __forceinline__ void most(double* v) { *v = __longlong_as_double(0x7ff0000000000000ll); }
#elif OP == 2
static __device__ __forceinline__ void most(int* v) { *v = -0x7fffffff - 1; }
static __device__ __forceinline__ void most(float* v) { *v = __int_as_float((int)0xff800000u); }
static __device__ __forceinline__ void most(double* v) { *v = __longlong_as_double((long long)0xfff0000000000000ull); }
#else
static __device__ __forceinline__ void most(ACC* v) { *v = 0; }
#endif

// What changes nothing that it is joined with.
static __device__ __forceinline__ ACC identity() {
    ACC v;
    most(&v);
    return v;
}

static __device__ __forceinline__ ACC join(ACC x, ACC y) {
    // NaN wins over every number: y is taken where it is one, x kept where it is one, since no comparison
    // with it is true.
#if OP == 1
    return y < x || y != y ? y : x;
#elif OP == 2
    return y > x || y != y ? y : x;
#else
    return x + y;
#endif
}

static __device__ __forceinline__ ACC share(ELEMENT a, ELEMENT b) {
#if OP == 3
    const double d = (double)a - (double)b;
    return (ACC)(d * d);
#else
    return (ACC)a;
#endif
}

static __device__ __forceinline__ ACC at(const ELEMENT* a, const ELEMENT* b, u64 i) {
#if OP == 3
    return share(a[i], b[i]);
#else
    return share(a[i], a[i]);
#endif
}

// An element's share; behind the last element the identity, which changes nothing.
static __device__ __forceinline__ ACC at_or_none(const ELEMENT* a, const ELEMENT* b, u64 i, u64 n) {
    return i < n ? at(a, b, i) : identity();
}

static __device__ __forceinline__ int scaled(int v, double) { return v; }
static __device__ __forceinline__ long long scaled(long long v, double) { return v; }
static __device__ __forceinline__ float scaled(float v, double) { return v; }
static __device__ __forceinline__ double scaled(double v, double scale) { return v * scale; }
