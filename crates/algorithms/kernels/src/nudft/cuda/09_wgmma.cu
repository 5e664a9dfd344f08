// The product of 08_tensor.cu by whole groups of four warps (Hopper's wgmma): 64 real rows at once by all
// columns of a tile, which the units read from shared memory themselves. One warp queues the copies, and
// eight multiply. Clusters of two blocks that fetch columns for each other gained nothing (8.4e13 pairs/s,
// 8.6e13 without), and clusters of four were slower: the second-level cache is not the limit.

#ifndef TILES
#define TILES 16
#endif
// Samples of a stage. The sum of this number of products is added to an f32 register with rounding.
#define DEPTH 64
#define STEPS (DEPTH / 16)
#define STAGES 4
#define GROUPS 2
// Rows of 512 bytes, spaced so that reads of 64 bytes of two rows use all banks.
#define LONG_ROW_BYTES (DEPTH * 8 + 64)
#define COLUMN_BYTES (TILES * DEPTH * 32)
#define LONG_STAGE_BYTES ((TILE_U + TILE_V) * LONG_ROW_BYTES + COLUMN_BYTES)
// Bytes of the columns' halves of one kind, and from one group of 8 samples to the next within them.
#define HALF_BYTES (COLUMN_BYTES / 2)
#define EIGHT_BYTES (TILES * 128)

#if defined(RAYSPIN_EMULATED)
static __device__ void fence_products() {}
static __device__ void commit_products() {}
static __device__ void keep_here(float&) {}
template <int LEFT>
static __device__ void wait_products() {}
// C = A B, or C += A B, of 16×16 and 16×8·TILES halves a warp.
static __device__ void multiply_group(float (&c)[TILES * 4], const unsigned (&a)[4], const unsigned char* b, bool add) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int n = 0; n < TILES; n++) {
        float own[4];
        const unsigned char* at = b + n * 128 + g * 16 + t * 4;
        for (int j = 0; j < 4; j++) own[j] = add ? c[4 * n + j] : 0;
        multiply_halves(own, a, *(const unsigned*)at, *(const unsigned*)(at + EIGHT_BYTES));
        for (int j = 0; j < 4; j++) c[4 * n + j] = own[j];
    }
}
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
static __device__ __forceinline__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Not before what precedes it here: a register's name alone does not say that it is still written to.
static __device__ __forceinline__ void keep_here(float& c) { asm volatile("" : "+f"(c)::"memory"); }
static __device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT>
static __device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
// The groups that multiply take turns: one makes rows while the units work for the other.
static __device__ __forceinline__ void await_turn(int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(GROUPS * 128) : "memory");
}
static __device__ __forceinline__ void give_turn(int group) {
    asm volatile("bar.arrive %0, %1;" ::"r"(1 + group), "n"(GROUPS * 128) : "memory");
}
#define C4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define C16(i) C4(i), C4(i + 4), C4(i + 8), C4(i + 12)
// Groups of 8 samples of the columns are EIGHT_BYTES apart, of 8 columns 128, not swizzled.
static __device__ __forceinline__ void multiply_group(float (&c)[TILES * 4], const unsigned (&a)[4],
                                                      const unsigned char* b, bool add) {
    unsigned address = (unsigned)__cvta_generic_to_shared(b);
    unsigned long long where = (unsigned long long)(address >> 4 & 0x3fff) |
                               (unsigned long long)(EIGHT_BYTES >> 4) << 16 | (unsigned long long)(128 >> 4) << 32;
#if TILES == 16
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                 "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, "
                 "%33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "
                 "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 0; }"
                 : C16(0), C16(16), C16(32), C16(48)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(where), "r"((int)add));
#else
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                 "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1, 0; }"
                 : C16(0), C16(16)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(where), "r"((int)add));
#endif
}

// Barriers in shared memory, by their 32-bit addresses there.
static __device__ __forceinline__ void init_barrier(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
static __device__ __forceinline__ void expect_bytes(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
static __device__ __forceinline__ void wait_barrier(unsigned barrier, unsigned parity) {
    asm volatile("{ .reg .pred p;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again; }" ::"r"(barrier), "r"(parity)
                 : "memory");
}
static __device__ __forceinline__ void arrive_at(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
static __device__ __forceinline__ void copy_bulk(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
// A stage of the ring as the groups that multiply go through it.
struct Slot {
    unsigned full, empty;
    const unsigned char* shared;
    int slot, round;
    __device__ __forceinline__ const unsigned char* at() const { return shared + slot * LONG_STAGE_BYTES; }
    __device__ __forceinline__ const unsigned char* arrived() const {
        wait_barrier(full + 8 * slot, round);
        return at();
    }
    __device__ __forceinline__ void leave() const { arrive_at(empty + 8 * slot); }
    __device__ __forceinline__ Slot next() const {
        bool last = slot + 1 == STAGES;
        return Slot{full, empty, shared, last ? 0 : slot + 1, last ? round ^ 1 : round};
    }
};
#else
#define NO_WGMMA
#endif

#ifndef NO_WGMMA
// A thread's part of the left operand of a stage, in halves.
struct Rows {
    unsigned high[STEPS][4], low[STEPS][4];
};

// `stage` is 8 rows of P, 8 of Y, then the columns.
static __device__ __forceinline__ void make_rows(const unsigned char* stage, Rows& a) {
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const unsigned char *own_p = stage + warp * LONG_ROW_BYTES + t * 16, *own_y = stage + (TILE_U + g) * LONG_ROW_BYTES + t * 16;
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        float4 y0 = *(const float4*)(own_y + k * 128), y8 = *(const float4*)(own_y + k * 128 + 64);
        float4 p0 = *(const float4*)(own_p + k * 128), p8 = *(const float4*)(own_p + k * 128 + 64);
        split(p0.x * y0.x - p0.y * y0.y, p0.z * y0.z - p0.w * y0.w, a.high[k][0], a.low[k][0]);
        split(p0.x * y0.y + p0.y * y0.x, p0.z * y0.w + p0.w * y0.z, a.high[k][1], a.low[k][1]);
        split(p8.x * y8.x - p8.y * y8.y, p8.z * y8.z - p8.w * y8.w, a.high[k][2], a.low[k][2]);
        split(p8.x * y8.y + p8.y * y8.x, p8.z * y8.w + p8.w * y8.z, a.high[k][3], a.low[k][3]);
    }
}

// A stage's products, the small ones before the large ones; nearly done when it returns.
static __device__ __forceinline__ void multiply_stage(float (&c)[TILES * 4], const Rows& a, const unsigned char* stage) {
    const unsigned char* columns = stage + (TILE_U + TILE_V) * LONG_ROW_BYTES;
    fence_products();
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        multiply_group(c, a.low[k], columns + 2 * k * EIGHT_BYTES, k > 0);
        multiply_group(c, a.high[k], columns + HALF_BYTES + 2 * k * EIGHT_BYTES, true);
    }
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        if (k == STEPS - 2) commit_products();
        multiply_group(c, a.high[k], columns + 2 * k * EIGHT_BYTES, true);
    }
    commit_products();
    wait_products<1>();
}

static __device__ __forceinline__ void add_products(float (&sum)[TILES * 4], float (&c)[TILES * 4]) {
    wait_products<0>();
#pragma unroll
    for (int i = 0; i < TILES * 4; i++) {
        keep_here(c[i]);
        sum[i] += c[i];
    }
}

static __device__ __forceinline__ void store_sums(const float (&sum)[TILES * 4], const Output& o, const unsigned* largest_bits,
                                                  Place at) {
    // Operands were 2^14 times as large, and the left one divided by the largest value.
    float most = __uint_as_float(*largest_bits), factor = (most == 0 ? 16384.0f : most) * 3.7252902984619140625e-9f;
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        const float* c = sum + 4 * n;
        store<float>(o, at.u + warp, at.v + g, (at.columns * TILES + n) * 4 + t, factor * c[0], factor * c[1], factor * c[2],
                     factor * c[3]);
    }
}

#ifdef RAYSPIN_EMULATED
// Stage by stage, with all threads.
static __device__ void sum_and_store(unsigned char* shared, const float2* p, const float2* y, const unsigned char* columns,
                                  int stages, Place at, int nu, int nv, const Output& o, const unsigned* largest_bits) {
    int from, to;
    own_stages(stages, from, to);
    float sum[TILES * 4] = {};
    for (int s = from; s < to; s++) {
        for (int i = threadIdx.x; i < (TILE_U + TILE_V) * DEPTH / 2; i += THREADS) {
            int r = i / (DEPTH / 2), piece = i % (DEPTH / 2);
            const float2* row = r < TILE_U ? p + (long long)min(at.u + r, nu - 1) * stages * DEPTH
                                           : y + (long long)min(at.v + r - TILE_U, nv - 1) * stages * DEPTH;
            *(uint4*)(shared + r * LONG_ROW_BYTES + piece * 16) = *(const uint4*)(row + s * DEPTH + piece * 2);
        }
        for (int i = threadIdx.x; i < COLUMN_BYTES / 16; i += THREADS)
            ((uint4*)(shared + (TILE_U + TILE_V) * LONG_ROW_BYTES))[i] =
                ((const uint4*)(columns + (long long)s * COLUMN_BYTES))[i];
        __syncthreads();
        if (threadIdx.x < GROUPS * 128) {
            float c[TILES * 4];
            Rows a;
            make_rows(shared, a);
            multiply_stage(c, a, shared);
            add_products(sum, c);
        }
        __syncthreads();
    }
    if (threadIdx.x < GROUPS * 128) store_sums(sum, o, largest_bits, at);
}
#else
// Queues the copies of every stage as room for it comes: one warp.
static __device__ __forceinline__ void feed(Slot to, const float2* p, const float2* y, const unsigned char* columns, int stages,
                                            int first, int end, Place at, int nu, int nv) {
    int lane = threadIdx.x % 32;
    const float2* row = lane < TILE_U ? p + (long long)min(at.u + lane, nu - 1) * stages * DEPTH
                                      : y + (long long)min(at.v + lane - TILE_U, nv - 1) * stages * DEPTH;
    for (int s = first; s < end; s++, to = to.next()) {
        unsigned stage = (unsigned)__cvta_generic_to_shared(to.at()), full = to.full + 8 * to.slot;
        wait_barrier(to.empty + 8 * to.slot, 1 ^ to.round);
        if (lane == 0) {
            expect_bytes(full, COLUMN_BYTES + (TILE_U + TILE_V) * DEPTH * 8);
            copy_bulk(stage + (TILE_U + TILE_V) * LONG_ROW_BYTES, columns + (long long)s * COLUMN_BYTES, COLUMN_BYTES, full);
        }
        __syncwarp();
        if (lane < TILE_U + TILE_V) copy_bulk(stage + lane * LONG_ROW_BYTES, row + (long long)s * DEPTH, DEPTH * 8, full);
    }
}

static __device__ __forceinline__ void sum_and_store(unsigned char* shared, const float2* p, const float2* y,
                                                  const unsigned char* columns, int stages, Place at, int nu, int nv,
                                                  const Output& o, const unsigned* largest_bits) {
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    unsigned full = (unsigned)__cvta_generic_to_shared(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            init_barrier(full + 8 * s, 1);
            init_barrier(empty + 8 * s, GROUPS * 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int from, to, group = threadIdx.x / 128;
    own_stages(stages, from, to);
    Slot now{full, empty, shared, 0, 0};
    // The groups that multiply take registers that the third leaves.
    if (group == GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x < GROUPS * 128 + 32) feed(now, p, y, columns, stages, from, to, at, nu, nv);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float sum[TILES * 4];
#pragma unroll
        for (int i = 0; i < TILES * 4; i++) sum[i] = 0;
        float c[TILES * 4];
        Rows a;
        if (group == 1 && from < to) give_turn(0);
        for (int s = from; s < to; s++, now = now.next()) {
            make_rows(now.arrived(), a);
            await_turn(group);
            multiply_stage(c, a, now.at());
            if (group == 0 || s + 1 < to) give_turn(1 - group);
            add_products(sum, c);
            now.leave();
        }
        store_sums(sum, o, largest_bits, at);
    }
}
#endif
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1)
adjoint(const float2* __restrict__ p, const float2* __restrict__ y, const uint4* __restrict__ b, int stages,
        const unsigned* __restrict__ largest_bits, cplx* __restrict__ out, int columns, int nu, int nv, int limit,
        int wu, int wv, int wx, long long base, long long su, long long sv, long long sx, long long whole, int add) {
#ifndef NO_WGMMA
    extern __shared__ uint4 memory[];
    int column_tiles = (columns + (columns & 1) + TILES * 8 - 1) / (TILES * 8);
    Place at = place(nu, nv, column_tiles);
    Output o{out + (blockIdx.z * (long long)gridDim.y + blockIdx.y) * whole + base, columns, nu, nv, limit, wu, wv, wx, su, sv, sx, add};
    sum_and_store((unsigned char*)memory, p + (long long)blockIdx.y * nu * stages * DEPTH, y,
                  (const unsigned char*)b + (long long)at.columns * stages * COLUMN_BYTES, stages, at, nu, nv, o, largest_bits);
#endif
}
