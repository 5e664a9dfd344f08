// The number of a whole warp, in its first lane.
static __device__ __forceinline__ ACC of_warp(ACC v) {
#pragma unroll
    for (unsigned step = 16; step > 0; step /= 2) v = join(v, __shfl_down_sync(0xffffffffu, v, step));
    return v;
}

// The number of a whole block of whole warps, in its first thread.
static __device__ __forceinline__ ACC of_block(ACC v) {
    __shared__ ACC parts[32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = of_warp(v);
    if (lane == 0) parts[warp] = v;
    __syncthreads();
    if (warp == 0) v = of_warp(lane < blockDim.x / 32 ? parts[lane] : identity());
    return v;
}

extern "C" __global__ void shuffle(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n,
                                   ACC* __restrict__ out, double scale) {
    ACC v = identity();
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
        v = join(v, at(a, b, i));
    }
    v = of_block(v);
    if (threadIdx.x == 0) out[blockIdx.x] = scaled(v, scale);
}

static __device__ __forceinline__ void add_atomically(double* to, double v) { atomicAdd(to, v); }
static __device__ __forceinline__ void add_atomically(float* to, float v) { atomicAdd(to, v); }
static __device__ __forceinline__ void add_atomically(int* to, int v) { atomicAdd(to, v); }
static __device__ __forceinline__ void add_atomically(long long* to, long long v) {
    atomicAdd((unsigned long long*)to, (unsigned long long)v);
}

extern "C" __global__ void atomic_start(ACC* out) { out[0] = 0; }

extern "C" __global__ void atomic_sum(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b,
                                      unsigned long long n, ACC* __restrict__ out, double scale) {
    ACC v = identity();
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
        v = join(v, at(a, b, i));
    }
    v = of_block(v);
    if (threadIdx.x == 0) add_atomically(out, scaled(v, scale));
}

// 16 bytes as elements.
#define PACK ((unsigned)(16 / sizeof(ELEMENT)))
static __device__ __forceinline__ void unpack(int4 r, int* v) { v[0] = r.x, v[1] = r.y, v[2] = r.z, v[3] = r.w; }
static __device__ __forceinline__ void unpack(int4 r, float* v) {
    v[0] = __int_as_float(r.x), v[1] = __int_as_float(r.y), v[2] = __int_as_float(r.z), v[3] = __int_as_float(r.w);
}
static __device__ __forceinline__ void unpack(int4 r, double* v) {
    v[0] = __hiloint2double(r.y, r.x), v[1] = __hiloint2double(r.w, r.z);
}
static __device__ __forceinline__ void unpack(int4 r, long long* v) {
    v[0] = (long long)r.y << 32 | (unsigned)r.x, v[1] = (long long)r.w << 32 | (unsigned)r.z;
}

// Two arrays take twice the registers.
#if OP == 3
#define MOST_THREADS 512
#else
#define MOST_THREADS 1024
#endif

struct Pair {
    int4 a;
#if OP == 3
    int4 b;
#endif
};

// Read once: what is streamed shall not drive out of the caches what is not.
static __device__ __forceinline__ Pair load(const ELEMENT* a, const ELEMENT* b, u64 i) {
    Pair p;
    p.a = __ldcs((const int4*)a + i);
#if OP == 3
    p.b = __ldcs((const int4*)b + i);
#endif
    return p;
}

static __device__ __forceinline__ ACC of_pair(Pair p) {
    ELEMENT x[PACK], y[PACK];
    unpack(p.a, x);
#if OP == 3
    unpack(p.b, y);
#else
    unpack(p.a, y);
#endif
    ACC v = join(share(x[0], y[0]), share(x[1], y[1]));
    if (PACK == 4) v = join(v, join(share(x[PACK - 2], y[PACK - 2]), share(x[PACK - 1], y[PACK - 1])));
    return v;
}

// A block takes tiles of UNROLL vectors a thread; all loads of a tile are under way before the first is used.
// Only the last tile may be a part of one.
static __device__ __forceinline__ ACC of_tiles(const ELEMENT* a, const ELEMENT* b, u64 n) {
    const u64 vectors = n / PACK;
    const u64 tile = (u64)blockDim.x * UNROLL, stride = tile * gridDim.x;
    u64 from = tile * blockIdx.x + threadIdx.x;
    ACC v = identity();
    Pair p[UNROLL];
    for (; from + (u64)blockDim.x * (UNROLL - 1) < vectors; from += stride) {
#pragma unroll
        for (unsigned u = 0; u < UNROLL; ++u) p[u] = load(a, b, from + u * blockDim.x);
#pragma unroll
        for (unsigned u = 0; u < UNROLL; ++u) v = join(v, of_pair(p[u]));
    }
#pragma unroll
    for (unsigned u = 0; u < UNROLL; ++u) {
        if (from + u * blockDim.x < vectors) p[u] = load(a, b, from + u * blockDim.x);
    }
#pragma unroll
    for (unsigned u = 0; u < UNROLL; ++u) {
        if (from + u * blockDim.x < vectors) v = join(v, of_pair(p[u]));
    }
    // The elements behind the last whole vector.
    if (blockIdx.x == 0 && threadIdx.x < n % PACK) v = join(v, at(a, b, vectors * PACK + threadIdx.x));
    return v;
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1)
    wide(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n, ACC* __restrict__ out,
         double scale) {
    const ACC v = of_block(of_tiles(a, b, n));
    if (threadIdx.x == 0) out[blockIdx.x] = scaled(v, scale);
}

// The block that draws the last ticket joins the numbers of all blocks, always in the order of the blocks.
// The ticket ends at 0, where it began.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1)
    one_pass(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n, ACC* parts,
             unsigned* ticket, ACC* out, double scale) {
    __shared__ unsigned drawn;
    ACC v = of_block(of_tiles(a, b, n));
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = v;
        __threadfence();
        drawn = atomicInc(ticket, gridDim.x - 1);
    }
    __syncthreads();
    if (drawn != gridDim.x - 1) return;
    __threadfence();
    v = identity();
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) v = join(v, __ldcg(parts + i));
    v = of_block(v);
    if (threadIdx.x == 0) out[0] = scaled(v, scale);
}

static __device__ __forceinline__ u64 bits_of(int v) { return (unsigned)v; }
static __device__ __forceinline__ u64 bits_of(long long v) { return (u64)v; }
static __device__ __forceinline__ u64 bits_of(float v) { return (unsigned)__float_as_int(v); }
static __device__ __forceinline__ u64 bits_of(double v) { return (u64)__double_as_longlong(v); }
static __device__ __forceinline__ void of_bits(u64 bits, int* v) { *v = (int)bits; }
static __device__ __forceinline__ void of_bits(u64 bits, long long* v) { *v = (long long)bits; }
static __device__ __forceinline__ void of_bits(u64 bits, float* v) { *v = __int_as_float((int)bits); }
static __device__ __forceinline__ void of_bits(u64 bits, double* v) { *v = __longlong_as_double((long long)bits); }

// A block's number in two words of 64 bits, each half of it beside a flag: whoever reads a flag has read the
// half. Block by block they are joined by the last block, which nothing has to tell when; flags end at 0,
// where they began.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1)
    flags(const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, unsigned long long n,
          unsigned long long* words, ACC* out, double scale) {
#if !defined(RAYSPIN_EMULATED) && __CUDA_ARCH__ >= 900
    // An early launch waits here: nothing before this touches memory.
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    const u64 flag = 1ull << 32;
    const unsigned others = gridDim.x - 1;
    ACC v = of_block(of_tiles(a, b, n));
    if (blockIdx.x != others) {
        if (threadIdx.x == 0) {
            volatile u64* mine = words + 2 * (size_t)blockIdx.x;
            mine[0] = flag | (unsigned)bits_of(v);
            mine[1] = flag | bits_of(v) >> 32;
        }
        return;
    }
    if (threadIdx.x != 0) v = identity();
    for (unsigned i = threadIdx.x; i < others; i += blockDim.x) {
        volatile u64* theirs = words + 2 * (size_t)i;
        u64 low, high;
        do {
            low = theirs[0], high = theirs[1];
        } while (!(low & high & flag));
        ACC part;
        of_bits(high << 32 | (unsigned)low, &part);
        v = join(v, part);
        theirs[0] = 0, theirs[1] = 0;
    }
    __syncthreads();
    v = of_block(v);
    if (threadIdx.x == 0) out[0] = scaled(v, scale);
}
