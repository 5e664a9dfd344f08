// Pairs of points on the unit sphere, counted by |a - b|² between edges. Row 0 counts the pairs of set 0,
// rows 1 to `sets` the pairs of a point of set 0 and a point of set `row`, the others the pairs of set row -
// sets. A set is n numbers x, n numbers y and n numbers z.

#define EDGES 21
#define BINS 22
#ifndef THREADS
#define THREADS 128
#define EACH 4
#define ATOMIC 0
#endif

struct Pair {
    const float* a;
    const float* b;
    bool own;  // One set: a pair counts once.
};

static __device__ __forceinline__ Pair sets_of(const float* points, unsigned n, unsigned sets, unsigned row) {
    const size_t size = 3 * (size_t)n;
    Pair pair;
    pair.own = row == 0 || row > sets;
    pair.a = points + size * (row > sets ? row - sets : 0);
    pair.b = points + size * (row > sets ? row - sets : row);
    return pair;
}

static __device__ __forceinline__ float chord(float dx, float dy, float dz) {
    return fmaf(dx, dx, fmaf(dy, dy, dz * dz));
}

// How many edges are at most `square`: five comparisons that each wait for the one before.
static __device__ __forceinline__ int search(float square, const float* edges) {
    int low = 0, high = EDGES;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (square >= edges[middle]) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The same by a logarithm. Chords are a little shorter than arcs, so the estimate is right or one too low. A
// comparison corrects it. 10^(2/5) is the ratio of neighbouring edges; 0.0001 keeps rounding on the low side.
static __device__ __forceinline__ int estimate(float square, const float* edges) {
    const float at = __log2f(square * (1 / 8.461594e-8f)) * 0.75257499f + 0.9999f;
    const int low = (int)fminf(fmaxf(at, 0), EDGES - 1);
    return low + (square >= edges[low]);
}

// A thread a point: it goes over all points of the other set and adds to the counts of all threads.
extern "C" __global__ void naive(const float* __restrict__ points, unsigned n, unsigned sets,
                                 const float* __restrict__ edges, unsigned* counts) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i >= n) return;
    const Pair pair = sets_of(points, n, sets, row);
    const float x = pair.a[i], y = pair.a[n + i], z = pair.a[2 * n + i];
    for (unsigned j = pair.own ? i + 1 : 0; j < n; j++) {
        const float square = chord(x - pair.b[j], y - pair.b[n + j], z - pair.b[2 * n + j]);
        atomicAdd(&counts[row * BINS + search(square, edges)], 1u);
    }
}

// Points `from` to `from` + THREADS of a set in shared memory.
static __device__ __forceinline__ void stage(float4* tile, const float* set, unsigned n, unsigned from) {
    const unsigned j = from + threadIdx.x;
    __syncthreads();
    if (j < n) tile[threadIdx.x] = make_float4(set[j], set[n + j], set[2 * n + j], 0);
    __syncthreads();
}

// Points and counts of a block in shared memory.
extern "C" __global__ void __launch_bounds__(THREADS)
shared(const float* __restrict__ points, unsigned n, unsigned sets, const float* __restrict__ edges, unsigned* counts) {
    __shared__ float4 tile[THREADS];
    __shared__ float near[EDGES];
    __shared__ unsigned all[BINS];
    const unsigned t = threadIdx.x, begin = blockIdx.x * THREADS, i = begin + t, row = blockIdx.y;
    const Pair pair = sets_of(points, n, sets, row);
    if (t < EDGES) near[t] = edges[t];
    if (t < BINS) all[t] = 0;
    const unsigned at = min(i, n - 1);
    const float x = pair.a[at], y = pair.a[n + at], z = pair.a[2 * n + at];
    for (unsigned from = pair.own ? begin : 0; from < n; from += THREADS) {
        stage(tile, pair.b, n, from);
        const unsigned here = i < n ? min(n - from, (unsigned)THREADS) : 0;
        for (unsigned k = pair.own && from == begin ? t + 1 : 0; k < here; k++) {
            const float4 other = tile[k];
            atomicAdd(&all[search(chord(x - other.x, y - other.y, z - other.z), near)], 1u);
        }
    }
    __syncthreads();
    if (t < BINS) atomicAdd(&counts[row * BINS + t], all[t]);
}

// Adds the counts of all threads, a column each: a warp a bin.
static __device__ __forceinline__ void add_columns(const unsigned* columns, unsigned* counts) {
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    for (unsigned bin = threadIdx.x / 32; bin < BINS; bin += THREADS / 32) {
        unsigned sum = 0;
        for (unsigned k = lane; k < THREADS; k += 32) sum += columns[bin * THREADS + k];
        for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) atomicAdd(&counts[bin], sum);
    }
}

// A column of counts a thread: nobody else adds to it, and each lane of a warp has a bank of its own.
template <bool LOGARITHM>
static __device__ __forceinline__ void by_columns(const float* points, unsigned n, unsigned sets, const float* edges,
                                                  unsigned* counts, float4* tile, float* near, unsigned* columns) {
    const unsigned t = threadIdx.x, begin = blockIdx.x * THREADS, i = begin + t, row = blockIdx.y;
    const Pair pair = sets_of(points, n, sets, row);
    if (t < EDGES) near[t] = edges[t];
    for (unsigned bin = 0; bin < BINS; bin++) columns[bin * THREADS + t] = 0;
    const unsigned at = min(i, n - 1);
    const float x = pair.a[at], y = pair.a[n + at], z = pair.a[2 * n + at];
    for (unsigned from = pair.own ? begin : 0; from < n; from += THREADS) {
        stage(tile, pair.b, n, from);
        const unsigned here = i < n ? min(n - from, (unsigned)THREADS) : 0;
        for (unsigned k = pair.own && from == begin ? t + 1 : 0; k < here; k++) {
            const float4 other = tile[k];
            const float square = chord(x - other.x, y - other.y, z - other.z);
            const int bin = LOGARITHM ? estimate(square, near) : search(square, near);
            columns[bin * THREADS + t] += 1;
        }
    }
    add_columns(columns, counts + row * BINS);
}

extern "C" __global__ void __launch_bounds__(THREADS)
columns(const float* __restrict__ points, unsigned n, unsigned sets, const float* __restrict__ edges, unsigned* counts) {
    extern __shared__ unsigned own[];
    __shared__ float4 tile[THREADS];
    __shared__ float near[EDGES];
    by_columns<false>(points, n, sets, edges, counts, tile, near, own);
}

extern "C" __global__ void __launch_bounds__(THREADS)
logarithm(const float* __restrict__ points, unsigned n, unsigned sets, const float* __restrict__ edges, unsigned* counts) {
    extern __shared__ unsigned own[];
    __shared__ float4 tile[THREADS];
    __shared__ float near[EDGES];
    by_columns<true>(points, n, sets, edges, counts, tile, near, own);
}

// The exponent of a number and the first bit of its mantissa are a logarithm already: they choose one of
// INTERVALS intervals, up to infinity, which has one edge at most. A thread has EACH points: a point of the
// other set is loaded once for all of them, and they find their bins together.
#define DROPPED 22
#define LEAST 5.9604645e-8f
#define FIRST (0x33800000u >> DROPPED)
#define INTERVALS 305u

extern "C" __global__ void __launch_bounds__(THREADS)
bits(const float* __restrict__ points, unsigned n, unsigned sets, const uint2* __restrict__ intervals, unsigned* counts) {
    extern __shared__ unsigned own[];
    __shared__ float4 tile[THREADS];
    __shared__ uint2 near[INTERVALS];
    const unsigned t = threadIdx.x, begin = blockIdx.x * (THREADS * EACH), row = blockIdx.y;
    const Pair pair = sets_of(points, n, sets, row);
    for (unsigned k = t; k < INTERVALS; k += THREADS) near[k] = make_uint2(intervals[k].x, 4 * THREADS * intervals[k].y);
    for (unsigned bin = 0; bin < BINS; bin++) own[bin * THREADS + t] = 0;
    float x[EACH], y[EACH], z[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        // Beyond the end: a point so far away that it counts in no bin but the last, from where it is
        // subtracted again.
        const unsigned i = begin + e * THREADS + t;
        x[e] = i < n ? pair.a[i] : 8;
        y[e] = i < n ? pair.a[n + i] : 0;
        z[e] = i < n ? pair.a[2 * n + i] : 0;
    }
    unsigned* column = own + t;
    for (unsigned from = pair.own ? begin : 0; from < n; from += THREADS) {
        stage(tile, pair.b, n, from);
        const unsigned here = min(n - from, (unsigned)THREADS);
        const bool mixed = pair.own && from < begin + THREADS * EACH;
        for (unsigned k = 0; k < here; k++) {
            const float4 other = tile[k];
            unsigned* to[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const float square = chord(x[e] - other.x, y[e] - other.y, z[e] - other.z);
                const uint2 found = near[(__float_as_uint(fmaxf(square, LEAST)) >> DROPPED) - FIRST];
                to[e] = (unsigned*)((char*)column + found.y + (square >= __uint_as_float(found.x) ? 4 * THREADS : 0));
            }
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (mixed && from + k <= begin + e * THREADS + t) continue;
                if (ATOMIC) atomicAdd(to[e], 1u);
                else *to[e] += 1;
            }
        }
    }
    // Points beyond the end met all points of the other set, or, in one set, none.
    if (!pair.own) {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (begin + e * THREADS + t >= n) column[(BINS - 1) * THREADS] -= n;
    }
    add_columns(own, counts + row * BINS);
}
