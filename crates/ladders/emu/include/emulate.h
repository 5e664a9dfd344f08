// The part of CUDA C++ that kernels are written in, for a C++ compiler of the host: see fibres.h for how
// threads run.

#define RAYSPIN_EMULATED 1
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900

#ifdef EMU_COUNT
// As a compiler for GPUs, which has one function of a kernel.
#define __global__ __attribute__((flatten))
#else
#define __global__
#endif
#define __device__
#define __host__
#define __constant__
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(x) ((void)0)
#define __assume(x) ((void)0)

#ifdef EMU_LOOPS
// A function that uses one of them is given it.
#define threadIdx (emu_place.thread)
#define blockIdx (emu_place.block)
#define blockDim (emu_place.block_dim)
#define gridDim (emu_place.grid_dim)
#elif defined(EMU_COUNT)
// They stay the same while a thread runs.
namespace emu {
static __attribute__((noinline, const)) EMU_PLUMBING Index thread_index() { return self->threads[self->running].index; }
static __attribute__((noinline, const)) EMU_PLUMBING Index block_index() { return self->block; }
static __attribute__((noinline, const)) EMU_PLUMBING Index block_size() { return self->block_dim; }
static __attribute__((noinline, const)) EMU_PLUMBING Index grid_size() { return self->grid_dim; }
}  // namespace emu
#define threadIdx (emu::thread_index())
#define blockIdx (emu::block_index())
#define blockDim (emu::block_size())
#define gridDim (emu::grid_size())
#else
#define threadIdx (emu::self->threads[emu::self->running].index)
#define blockIdx (emu::self->block)
#define blockDim (emu::self->block_dim)
#define gridDim (emu::self->grid_dim)
#endif
constexpr int warpSize = 32;

#define __syncthreads() ((void)emu::barrier(emu::PLAIN, __LINE__, false))
#define __syncthreads_count(v) (emu::barrier(emu::COUNT, __LINE__, (v) != 0))
#define __syncthreads_and(v) (emu::barrier(emu::AND, __LINE__, (v) != 0))
#define __syncthreads_or(v) (emu::barrier(emu::OR, __LINE__, (v) != 0))
// Barriers with numbers, which inline PTX names (barriers.rs).
#define __emu_bar_sync(barrier, count) (emu::numbered_barrier((barrier), (count), true, __LINE__))
#define __emu_bar_arrive(barrier, count) (emu::numbered_barrier((barrier), (count), false, __LINE__))
#define __syncwarp(...) ((void)emu::exchange(emu::SYNC, __LINE__, emu::mask_of(__VA_ARGS__), 0, 0))
#define __shfl_sync(...) (emu::shuffle<emu::INDEX>(__LINE__, __VA_ARGS__))
#define __shfl_up_sync(...) (emu::shuffle<emu::UP>(__LINE__, __VA_ARGS__))
#define __shfl_down_sync(...) (emu::shuffle<emu::DOWN>(__LINE__, __VA_ARGS__))
#define __shfl_xor_sync(...) (emu::shuffle<emu::XOR>(__LINE__, __VA_ARGS__))
#define __ballot_sync(mask, v) ((unsigned)emu::exchange(emu::BALLOT, __LINE__, (mask), (v) != 0, 0))
#define __any_sync(mask, v) ((int)(emu::exchange(emu::BALLOT, __LINE__, (mask), (v) != 0, 0) != 0))
#define __all_sync(mask, v) ((int)(emu::exchange(emu::BALLOT, __LINE__, (mask), (v) == 0, 0) == 0))
#define __match_any_sync(mask, v) ((unsigned)emu::exchange(emu::MATCH, __LINE__, (mask), emu::bits_of(v), 0))
#define __reduce_add_sync(mask, v) (emu::reduce<emu::ADD, emu::ADD>(__LINE__, mask, v))
#define __reduce_min_sync(mask, v) (emu::reduce<emu::MIN, emu::MIN_SIGNED>(__LINE__, mask, v))
#define __reduce_max_sync(mask, v) (emu::reduce<emu::MAX, emu::MAX_SIGNED>(__LINE__, mask, v))
#define __reduce_and_sync(mask, v) (emu::reduce<emu::BIT_AND, emu::BIT_AND>(__LINE__, mask, v))
#define __reduce_or_sync(mask, v) (emu::reduce<emu::BIT_OR, emu::BIT_OR>(__LINE__, mask, v))
#define __reduce_xor_sync(mask, v) (emu::reduce<emu::BIT_XOR, emu::BIT_XOR>(__LINE__, mask, v))

#define __trap() emu::fail("the kernel trapped")
#undef assert
#define assert(x) ((x) ? (void)0 : emu::fail("assertion failed: " #x))
#define __nanosleep(ns) emu::yield()

namespace emu {

static inline uint32_t mask_of(uint32_t mask = 0xffffffffu) { return mask; }

template <class T>
static inline uint64_t bits_of(T value) {
    static_assert(sizeof(T) <= 8, "exchanged values have at most 64 bits");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

enum Way { INDEX, UP, DOWN, XOR };

template <Way WAY, class T>
static inline EMU_CALLED T shuffle(int line, uint32_t mask, T value, int by, int width = 32) {
    EMU_TELL(emu_count_sync(EMU_HERE, TOLD_WARP));
    int lane = (int)lane_of((unsigned)self->running), first = lane & ~(width - 1), last = first + width - 1;
    int source = WAY == INDEX  ? first + (by & (width - 1))
                 : WAY == UP   ? (lane - by < first ? lane : lane - by)
                 : WAY == DOWN ? (lane + by > last ? lane : lane + by)
                               : ((lane ^ by) > last ? lane : lane ^ by);
    uint64_t bits = exchange(LANE, line, mask, bits_of(value), (uint32_t)source);
    T result;
    __builtin_memcpy(&result, &bits, sizeof(T));
    return result;
}

template <Exchange UNSIGNED, Exchange SIGNED>
static inline EMU_CALLED unsigned reduce(int line, uint32_t mask, unsigned value) {
    EMU_TELL(emu_count_sync(EMU_HERE, TOLD_WARP));
    return (unsigned)exchange(UNSIGNED, line, mask, value, 0);
}
template <Exchange UNSIGNED, Exchange SIGNED>
static inline EMU_CALLED int reduce(int line, uint32_t mask, int value) {
    EMU_TELL(emu_count_sync(EMU_HERE, TOLD_WARP));
    return (int)exchange(SIGNED, line, mask, (unsigned)value, 0);
}

}  // namespace emu

// A warp need not be together: each lane may find itself alone.
static inline EMU_PLUMBING unsigned __activemask() { return 1u << (emu::self->running % 32); }

// Vectors.
#define EMU_VECTORS(T, NAME, ALIGN2, ALIGN4)                                                                          \
    struct NAME##1 { T x; };                                                                                          \
    struct alignas(ALIGN2) NAME##2 { T x, y; };                                                                       \
    struct NAME##3 { T x, y, z; };                                                                                    \
    struct alignas(ALIGN4) NAME##4 { T x, y, z, w; };                                                                 \
    static inline NAME##1 make_##NAME##1(T x) { return NAME##1{x}; }                                                  \
    static inline NAME##2 make_##NAME##2(T x, T y) { return NAME##2{x, y}; }                                          \
    static inline NAME##3 make_##NAME##3(T x, T y, T z) { return NAME##3{x, y, z}; }                                  \
    static inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return NAME##4{x, y, z, w}; }
EMU_VECTORS(signed char, char, 2, 4)
EMU_VECTORS(unsigned char, uchar, 2, 4)
EMU_VECTORS(short, short, 4, 8)
EMU_VECTORS(unsigned short, ushort, 4, 8)
EMU_VECTORS(int, int, 8, 16)
EMU_VECTORS(unsigned, uint, 8, 16)
EMU_VECTORS(long long, longlong, 16, 16)
EMU_VECTORS(unsigned long long, ulonglong, 16, 16)
EMU_VECTORS(float, float, 8, 16)
EMU_VECTORS(double, double, 16, 16)
#undef EMU_VECTORS
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Atomics. Blocks run on several threads of the host, so that these are atomic there too.
namespace emu {
template <class T, class F>
static inline EMU_PLUMBING T change(T* at, F f) {
    T seen, next;
    __atomic_load(at, &seen, __ATOMIC_RELAXED);
    do {
        next = f(seen);
    } while (!__atomic_compare_exchange(at, &seen, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return seen;
}
template <class T>
struct Same {
    typedef T type;
};
}  // namespace emu
#define EMU_ATOMIC EMU_TELL(emu_count_atomic(EMU_HERE, at, sizeof *at))
#define EMU_ATOMICS(T)                                                                                                \
    static inline EMU_CALLED T atomicAdd(T* at, T v) { EMU_ATOMIC; return emu::change(at, [=](T o) { return (T)(o + v); }); }                \
    static inline EMU_CALLED T atomicExch(T* at, T v) { EMU_ATOMIC; return emu::change(at, [=](T) { return v; }); }
EMU_ATOMICS(float)
EMU_ATOMICS(double)
#undef EMU_ATOMICS
#define EMU_ATOMICS(T)                                                                                                \
    static inline EMU_CALLED T atomicAdd(T* at, T v) { EMU_ATOMIC; return __atomic_fetch_add(at, v, __ATOMIC_RELAXED); }                     \
    static inline EMU_CALLED T atomicSub(T* at, T v) { EMU_ATOMIC; return __atomic_fetch_sub(at, v, __ATOMIC_RELAXED); }                     \
    static inline EMU_CALLED T atomicExch(T* at, T v) { EMU_ATOMIC; return __atomic_exchange_n(at, v, __ATOMIC_RELAXED); }                   \
    static inline EMU_CALLED T atomicAnd(T* at, T v) { EMU_ATOMIC; return __atomic_fetch_and(at, v, __ATOMIC_RELAXED); }                     \
    static inline EMU_CALLED T atomicOr(T* at, T v) { EMU_ATOMIC; return __atomic_fetch_or(at, v, __ATOMIC_RELAXED); }                       \
    static inline EMU_CALLED T atomicXor(T* at, T v) { EMU_ATOMIC; return __atomic_fetch_xor(at, v, __ATOMIC_RELAXED); }                     \
    static inline EMU_CALLED T atomicMin(T* at, T v) { EMU_ATOMIC; return emu::change(at, [=](T o) { return v < o ? v : o; }); }             \
    static inline EMU_CALLED T atomicMax(T* at, T v) { EMU_ATOMIC; return emu::change(at, [=](T o) { return v > o ? v : o; }); }             \
    static inline EMU_CALLED T atomicCAS(T* at, T seen, T next) {                                                     \
        EMU_ATOMIC;                                                                                                   \
        __atomic_compare_exchange_n(at, &seen, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                      \
        return seen;                                                                                                  \
    }
EMU_ATOMICS(int)
EMU_ATOMICS(unsigned)
EMU_ATOMICS(unsigned long long)
EMU_ATOMICS(long long)
#undef EMU_ATOMICS
static inline EMU_CALLED unsigned atomicInc(unsigned* at, unsigned most) {
    EMU_ATOMIC;
    return emu::change(at, [=](unsigned o) { return o >= most ? 0u : o + 1; });
}
static inline EMU_CALLED unsigned atomicDec(unsigned* at, unsigned most) {
    EMU_ATOMIC;
    return emu::change(at, [=](unsigned o) { return o == 0 || o > most ? most : o - 1; });
}
// Of a vector each component by itself, as the hardware does.
static inline float2 atomicAdd(float2* at, float2 v) { return float2{atomicAdd(&at->x, v.x), atomicAdd(&at->y, v.y)}; }
static inline float4 atomicAdd(float4* at, float4 v) {
    return float4{atomicAdd(&at->x, v.x), atomicAdd(&at->y, v.y), atomicAdd(&at->z, v.z), atomicAdd(&at->w, v.w)};
}
template <class T>
static inline T atomicAdd_block(T* at, typename emu::Same<T>::type v) { return atomicAdd(at, v); }
template <class T>
static inline T atomicAdd_system(T* at, typename emu::Same<T>::type v) { return atomicAdd(at, v); }
static inline EMU_CALLED void __threadfence() {
    EMU_ORDER(emu_check_fence(true));
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline EMU_CALLED void __threadfence_block() {
    EMU_ORDER(emu_check_fence(false));
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system() { __threadfence(); }

// Loads and stores with a wish about caches.
#define EMU_LOAD(NAME)                                                                                                \
    template <class T>                                                                                                \
    static inline T NAME(const T* at) { return *at; }
EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
EMU_LOAD(__ldcv)
#undef EMU_LOAD
#define EMU_STORE(NAME)                                                                                               \
    template <class T>                                                                                                \
    static inline void NAME(T* at, typename emu::Same<T>::type value) { *at = value; }
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)
#undef EMU_STORE

// Integers. What a GPU does in an instruction or a few is out of line where instructions are counted: the
// host's loops and shifts are not a GPU's, and assembly.rs knows the name that is called.
#if defined(EMU_COUNT) && !defined(EMU_CHECK)
#define EMU_ONE static __attribute__((noinline, noclone, const)) EMU_PLUMBING
#define EMU_FEW static __attribute__((noinline, noclone)) EMU_PLUMBING
#else
#define EMU_ONE static inline
#define EMU_FEW static inline
#endif
EMU_ONE int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
EMU_ONE int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
EMU_ONE int __popc(unsigned v) { return __builtin_popcount(v); }
EMU_ONE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
EMU_ONE int __ffs(int v) { return __builtin_ffs(v); }
EMU_ONE int __ffsll(long long v) { return __builtin_ffsll(v); }
EMU_ONE unsigned __brev(unsigned v) {
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
}
EMU_ONE unsigned long long __brevll(unsigned long long v) {
    return (unsigned long long)__brev((unsigned)v) << 32 | __brev((unsigned)(v >> 32));
}
EMU_ONE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
EMU_ONE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
EMU_ONE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
EMU_ONE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
EMU_ONE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
EMU_ONE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
EMU_ONE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned by) {
    return (unsigned)(((unsigned long long)hi << 32 | lo) << (by & 31) >> 32);
}
EMU_ONE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned by) {
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (by & 31));
}
#define EMU_PAIRS(NAME, PICK)                                                                                         \
    EMU_ONE unsigned NAME(unsigned a, unsigned b) {                                                             \
        unsigned al = a & 0xffff, bl = b & 0xffff, ah = a >> 16, bh = b >> 16;                                        \
        return (al PICK bl ? al : bl) | (ah PICK bh ? ah : bh) << 16;                                                 \
    }
EMU_PAIRS(__vmaxu2, >)
EMU_PAIRS(__vminu2, <)
#undef EMU_PAIRS
EMU_ONE unsigned __sad(int a, int b, unsigned c) { return c + (a < b ? (unsigned)b - (unsigned)a : (unsigned)a - (unsigned)b); }
EMU_ONE unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }
// Four bytes at once.
EMU_ONE unsigned __vabsdiffu4(unsigned a, unsigned b) {
    unsigned result = 0;
    for (int i = 0; i < 32; i += 8) result |= __usad(a >> i & 0xff, b >> i & 0xff, 0) << i;
    return result;
}
EMU_ONE unsigned __vsadu4(unsigned a, unsigned b) {
    unsigned result = 0;
    for (int i = 0; i < 32; i += 8) result = __usad(a >> i & 0xff, b >> i & 0xff, result);
    return result;
}
EMU_ONE unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
    unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) result |= (unsigned)(bytes >> (which >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}
namespace emu {
template <class A, class B>
using Common = decltype(true ? A() : B());
template <class T>
struct Number {};
#define EMU_NUMBER(T) template <> struct Number<T> { typedef T type; };
EMU_NUMBER(char) EMU_NUMBER(signed char) EMU_NUMBER(unsigned char) EMU_NUMBER(short) EMU_NUMBER(unsigned short)
EMU_NUMBER(int) EMU_NUMBER(unsigned) EMU_NUMBER(long) EMU_NUMBER(unsigned long)
EMU_NUMBER(long long) EMU_NUMBER(unsigned long long) EMU_NUMBER(float) EMU_NUMBER(double)
#undef EMU_NUMBER
}  // namespace emu
EMU_ONE int emu_least(int a, int b) { return a < b ? a : b; }
EMU_ONE int emu_most(int a, int b) { return a > b ? a : b; }
EMU_ONE unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
EMU_ONE unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
namespace emu {
static inline int smaller(int a, int b) { return emu_least(a, b); }
static inline unsigned smaller(unsigned a, unsigned b) { return umin(a, b); }
static inline float smaller(float a, float b) { return fminf(a, b); }
static inline double smaller(double a, double b) { return fmin(a, b); }
template <class T>
static inline T smaller(T a, T b) { return b < a ? b : a; }
static inline int larger(int a, int b) { return emu_most(a, b); }
static inline unsigned larger(unsigned a, unsigned b) { return umax(a, b); }
static inline float larger(float a, float b) { return fmaxf(a, b); }
static inline double larger(double a, double b) { return fmax(a, b); }
template <class T>
static inline T larger(T a, T b) { return a < b ? b : a; }
}  // namespace emu
template <class A, class B>
static inline emu::Common<typename emu::Number<A>::type, typename emu::Number<B>::type> min(A a, B b) {
    typedef emu::Common<A, B> C;
    return emu::smaller((C)a, (C)b);
}
template <class A, class B>
static inline emu::Common<typename emu::Number<A>::type, typename emu::Number<B>::type> max(A a, B b) {
    typedef emu::Common<A, B> C;
    return emu::larger((C)a, (C)b);
}

// Numbers as bits, and the other way.
#define EMU_BITS(NAME, FROM, TO)                                                                                      \
    static inline TO NAME(FROM v) {                                                                                   \
        static_assert(sizeof(FROM) == sizeof(TO), "");                                                                \
        TO result;                                                                                                    \
        __builtin_memcpy(&result, &v, sizeof v);                                                                      \
        return result;                                                                                                \
    }
EMU_BITS(__float_as_int, float, int)
EMU_BITS(__int_as_float, int, float)
EMU_BITS(__float_as_uint, float, unsigned)
EMU_BITS(__uint_as_float, unsigned, float)
EMU_BITS(__double_as_longlong, double, long long)
EMU_BITS(__longlong_as_double, long long, double)
#undef EMU_BITS
static inline int __double2hiint(double v) { return (int)(__double_as_longlong(v) >> 32); }
static inline int __double2loint(double v) { return (int)__double_as_longlong(v); }
static inline double __hiloint2double(int hi, int lo) {
    return __longlong_as_double((long long)hi << 32 | (unsigned)lo);
}

// Conversions: out of range to the nearest number there is, NaN to 0, as the hardware does.
namespace emu {
template <class I, class F>
static inline EMU_CALLED I whole(F v) {
    constexpr int BITS = sizeof(I) * 8 - ((I)-1 < (I)0);
    const F end = (F)2 * (F)(1ull << (BITS - 1));
    const I most = (I)(~0ull >> (64 - BITS)), least = (I)-1 < (I)0 ? (I)(-most - 1) : (I)0;
    if (v != v) return 0;
    return v >= end ? most : v < (F)least ? least : (I)v;
}
}  // namespace emu
#define EMU_CONVERT(NAME, F, I)                                                                                       \
    EMU_ONE I NAME##_rn(F v) { return emu::whole<I>((F)__builtin_rint(v)); }                                    \
    EMU_ONE I NAME##_rd(F v) { return emu::whole<I>((F)__builtin_floor(v)); }                                   \
    EMU_ONE I NAME##_ru(F v) { return emu::whole<I>((F)__builtin_ceil(v)); }                                    \
    EMU_ONE I NAME##_rz(F v) { return emu::whole<I>((F)__builtin_trunc(v)); }
EMU_CONVERT(__float2int, float, int)
EMU_CONVERT(__float2uint, float, unsigned)
EMU_CONVERT(__float2ll, float, long long)
EMU_CONVERT(__float2ull, float, unsigned long long)
EMU_CONVERT(__double2int, double, int)
EMU_CONVERT(__double2uint, double, unsigned)
EMU_CONVERT(__double2ll, double, long long)
EMU_CONVERT(__double2ull, double, unsigned long long)
#undef EMU_CONVERT
static inline float __int2float_rn(int v) { return (float)v; }
static inline float __uint2float_rn(unsigned v) { return (float)v; }
static inline float __ll2float_rn(long long v) { return (float)v; }
static inline float __ull2float_rn(unsigned long long v) { return (float)v; }
static inline double __int2double_rn(int v) { return v; }
static inline double __uint2double_rn(unsigned v) { return v; }
static inline double __ll2double_rn(long long v) { return (double)v; }
static inline double __ull2double_rn(unsigned long long v) { return (double)v; }
static inline float __double2float_rn(double v) { return (float)v; }

// Arithmetic with a stated rounding; out of line, so that the compiler joins none with another.
#define EMU_ROUNDED(NAME, T, EXPRESSION)                                                                              \
    static __attribute__((noinline)) EMU_PLUMBING T NAME(T a, T b) { return EXPRESSION; }
EMU_ROUNDED(__fadd_rn, float, a + b)
EMU_ROUNDED(__fsub_rn, float, a - b)
EMU_ROUNDED(__fmul_rn, float, a * b)
EMU_ROUNDED(__fdiv_rn, float, a / b)
EMU_ROUNDED(__dadd_rn, double, a + b)
EMU_ROUNDED(__dsub_rn, double, a - b)
EMU_ROUNDED(__dmul_rn, double, a * b)
EMU_ROUNDED(__ddiv_rn, double, a / b)
#undef EMU_ROUNDED
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float __fsqrt_rn(float v) { return __builtin_sqrtf(v); }
static inline double __dsqrt_rn(double v) { return __builtin_sqrt(v); }
static inline float __frcp_rn(float v) { return 1.0f / v; }
static inline double __drcp_rn(double v) { return 1.0 / v; }
static inline float __frsqrt_rn(float v) { return (float)(1.0 / __builtin_sqrt((double)v)); }

// Functions.
EMU_ONE float rsqrtf(float v) { return 1.0f / __builtin_sqrtf(v); }
EMU_ONE double rsqrt(double v) { return 1.0 / __builtin_sqrt(v); }
static inline float rsqrt(float v) { return rsqrtf(v); }
EMU_ONE float __saturatef(float v) { return v != v ? 0.0f : v < 0 ? 0.0f : v > 1 ? 1.0f : v; }
static inline float saturate(float v) { return __saturatef(v); }
namespace emu {
// sin(πv) and cos(πv), exact at multiples of ½.
static inline EMU_CALLED void sincos_pi(double v, double* s, double* c) {
    double turns = v - 2 * __builtin_rint(v / 2);
    double quarter = __builtin_rint(2 * turns), rest = (turns - quarter / 2) * 3.14159265358979323846;
    double a = __builtin_sin(rest), b = __builtin_cos(rest);
    switch ((int)quarter & 3) {
        case 0: *s = a, *c = b; break;
        case 1: *s = b, *c = -a; break;
        case 2: *s = -a, *c = -b; break;
        default: *s = -b, *c = a;
    }
    if (v - v != 0) *s = *c = v - v;
}
}  // namespace emu
EMU_FEW void sincospi(double v, double* s, double* c) { emu::sincos_pi(v, s, c); }
EMU_FEW void sincospif(float v, float* s, float* c) {
    double a, b;
    emu::sincos_pi(v, &a, &b);
    *s = (float)a, *c = (float)b;
}
EMU_ONE double sinpi(double v) { double s, c; sincospi(v, &s, &c); return s; }
EMU_ONE double cospi(double v) { double s, c; sincospi(v, &s, &c); return c; }
EMU_ONE float sinpif(float v) { float s, c; sincospif(v, &s, &c); return s; }
EMU_ONE float cospif(float v) { float s, c; sincospif(v, &s, &c); return c; }
static inline float sinpi(float v) { return sinpif(v); }
static inline float cospi(float v) { return cospif(v); }
static inline void sincospi(float v, float* s, float* c) { sincospif(v, s, c); }
// Overloads that the host's library does not have.
static inline void sincos(float v, float* s, float* c) { sincosf(v, s, c); }
// The fast ones are as exact as the others here.
EMU_ONE float emu_fast_sin(float v) { return sinf(v); }
EMU_ONE float emu_fast_cos(float v) { return cosf(v); }
EMU_ONE float emu_fast_exp(float v) { return expf(v); }
EMU_ONE float emu_fast_log(float v) { return log2f(v); }
EMU_ONE float emu_fast_div(float a, float b) { return a / b; }
EMU_FEW void emu_fast_sincos(float v, float* s, float* c) { sincosf(v, s, c); }
#define __sinf(v) (emu_fast_sin(v))
#define __cosf(v) (emu_fast_cos(v))
#define __tanf(v) (tanf(v))
#define __sincosf(v, s, c) (emu_fast_sincos((v), (s), (c)))
#define __expf(v) (emu_fast_exp(v))
#define __exp10f(v) (exp10f(v))
#define __logf(v) (logf(v))
#define __log2f(v) (emu_fast_log(v))
#define __log10f(v) (log10f(v))
#define __powf(a, b) (powf(a, b))
#define __fdividef(a, b) (emu_fast_div((float)(a), (float)(b)))
static inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
static inline double norm3d(double a, double b, double c) { return sqrt(a * a + b * b + c * c); }
static inline float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
static inline double rhypot(double a, double b) { return 1.0 / hypot(a, b); }
static inline float rcbrtf(float v) { return 1.0f / cbrtf(v); }
namespace emu {
// Modified Bessel functions of the first kind, order 0 and 1: Σ (v²/4)ᵏ / (k! (k + order)!).
static inline EMU_CALLED double bessel_i(double v, int order) {
    double quarter = v * v / 4, term = order ? v / 2 : 1, sum = term;
    for (int k = 1; k < 1000 && term > sum * 1e-17; k++) {
        term *= quarter / ((double)k * (k + order));
        sum += term;
    }
    return sum;
}
}  // namespace emu
static inline double cyl_bessel_i0(double v) { return emu::bessel_i(fabs(v), 0); }
static inline double cyl_bessel_i1(double v) { return copysign(emu::bessel_i(fabs(v), 1), v); }
static inline float cyl_bessel_i0f(float v) { return (float)cyl_bessel_i0(v); }
static inline float cyl_bessel_i1f(float v) { return (float)cyl_bessel_i1(v); }

static inline EMU_CALLED long long clock64() { return (long long)emu::self->serial; }
