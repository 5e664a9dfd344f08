// Means over (2 radius + 1)² pixels, of bytes and of f32. Beyond an edge the nearest pixel counts.
//
// LARGE: totals of bytes need 64 bits and their means double precision. Below, 32 bits hold a total and the
// f32 product rounds as the exact quotient does: a mean is no nearer to a half than 1 / (2 area), which is
// more than the product's error.

#ifndef LARGE
#define LARGE 0
#endif
#ifndef V
#define V 8
#endif

template <class P>
struct Of;
template <>
struct Of<unsigned char> {
    typedef unsigned sum;
#if LARGE
    typedef unsigned long long total;
#else
    typedef unsigned total;
#endif
    typedef unsigned long long carry;
    static __device__ __forceinline__ unsigned char mean(total t, double inverse) {
#if LARGE
        return (unsigned char)(int)((double)t * inverse + 0.5);
#else
        return (unsigned char)(int)((float)t * (float)inverse + 0.5f);
#endif
    }
};
template <>
struct Of<float> {
    typedef float sum;
    typedef float total;
    typedef double carry;
    static __device__ __forceinline__ float mean(float t, double inverse) { return t * (float)inverse; }
};

static __device__ __forceinline__ int held(int i, int n) { return min(max(i, 0), n - 1); }

template <class P>
static __device__ void naive(const P* __restrict__ image, P* __restrict__ out, int rows, int columns, int radius,
                             double inverse) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    typename Of<P>::total total = 0;
    for (int j = -radius; j <= radius; j++) {
        const P* row = image + (size_t)held(y + j, rows) * columns;
        typename Of<P>::sum sum = 0;
        for (int i = -radius; i <= radius; i++) sum += row[held(x + i, columns)];
        total += sum;
    }
    out[(size_t)y * columns + x] = Of<P>::mean(total, inverse);
}

// Sums along y, then of those along x: 2 (2 radius + 1) reads instead of their product.
template <class P>
static __device__ void columns_direct(const P* __restrict__ image, typename Of<P>::sum* __restrict__ sums, int rows, int columns,
                                      int radius) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    typename Of<P>::sum sum = 0;
    for (int j = -radius; j <= radius; j++) sum += image[(size_t)held(y + j, rows) * columns + x];
    sums[(size_t)y * columns + x] = sum;
}

template <class P>
static __device__ void rows_direct(const typename Of<P>::sum* __restrict__ sums, P* __restrict__ out, int rows, int columns,
                                   int radius, double inverse) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    const typename Of<P>::sum* row = sums + (size_t)y * columns;
    typename Of<P>::total total = 0;
    for (int i = -radius; i <= radius; i++) total += row[held(x + i, columns)];
    out[(size_t)y * columns + x] = Of<P>::mean(total, inverse);
}

// A thread a column and `each` rows: a pixel enters the sum and one leaves it.
template <class P>
static __device__ void columns_running(const P* __restrict__ image, typename Of<P>::sum* __restrict__ sums, int rows,
                                       int columns, int radius, int each, int across) {
    const int x = (int)(blockIdx.x % across) * blockDim.x + threadIdx.x, first = (int)(blockIdx.x / across) * each;
    if (x >= columns) return;
    typename Of<P>::sum sum = 0;
    for (int j = -radius; j < radius; j++) sum += image[(size_t)held(first + j, rows) * columns + x];
    for (int y = first; y < min(first + each, rows); y++) {
        sum += image[(size_t)held(y + radius, rows) * columns + x];
        sums[(size_t)y * columns + x] = sum;
        sum -= image[(size_t)held(y - radius, rows) * columns + x];
    }
}

// A thread a row: neighbouring threads read addresses a row apart.
template <class P>
static __device__ void rows_running(const typename Of<P>::sum* __restrict__ sums, P* __restrict__ out, int rows, int columns,
                                    int radius, double inverse) {
    const int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= rows) return;
    const typename Of<P>::sum* row = sums + (size_t)y * columns;
    typename Of<P>::total total = 0;
    for (int i = -radius; i < radius; i++) total += row[held(i, columns)];
    for (int x = 0; x < columns; x++) {
        total += row[held(x + radius, columns)];
        out[(size_t)y * columns + x] = Of<P>::mean(total, inverse);
        total -= row[held(x - radius, columns)];
    }
}

template <class T>
static __device__ __forceinline__ T scan_of_warp(T value) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int by = 1; by < 32; by *= 2) {
        const T other = __shfl_up_sync(0xffffffffu, value, by);
        if (lane >= by) value += other;
    }
    return value;
}

// A block a row, which it walks in pieces of a pixel a thread: what enters less what leaves, summed over the
// piece by a scan, added to the total before.
template <class P>
static __device__ void rows_scanned(const typename Of<P>::sum* __restrict__ sums, P* __restrict__ out, int columns, int radius,
                                    double inverse) {
    typedef typename Of<P>::total total;
    typedef typename Of<P>::carry wide;
    __shared__ total parts[2][32];
    __shared__ wide firsts[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const typename Of<P>::sum* row = sums + (size_t)blockIdx.x * columns;
    // The window of the pixel before the first.
    wide carry = 0;
    for (int i = (int)threadIdx.x - radius - 1; i < radius; i += blockDim.x) carry += row[held(i, columns)];
    for (int by = 16; by > 0; by /= 2) carry += __shfl_xor_sync(0xffffffffu, carry, by);
    if (lane == 0) firsts[warp] = carry;
    __syncthreads();
    carry = 0;
    for (int w = 0; w < warps; w++) carry += firsts[w];
    int turn = 0;
    for (int from = 0; from < columns; from += blockDim.x, turn ^= 1) {
        const int x = from + threadIdx.x;
        total step = 0;
        if (x < columns) step = (total)row[held(x + radius, columns)] - (total)row[held(x - radius - 1, columns)];
        step = scan_of_warp(step);
        if (lane == 31) parts[turn][warp] = step;
        __syncthreads();
        total before = 0, whole = 0;
        for (int w = 0; w < warps; w++) {
            if (w == warp) before = whole;
            whole += parts[turn][w];
        }
        if (x < columns) out[(size_t)blockIdx.x * columns + x] = Of<P>::mean((total)(carry + (wide)(before + step)), inverse);
        carry += (wide)whole;
    }
}

template <class P>
struct alignas(sizeof(P) * V < 16 ? sizeof(P) * V : 16) Block {
    P v[V];
};

template <class P>
static __device__ __forceinline__ Block<P> load(const P* row, int x, int columns, bool whole) {
    if (whole) return *(const Block<P>*)(row + x);
    Block<P> block;
#pragma unroll
    for (int i = 0; i < V; i++) block.v[i] = row[held(x + i, columns)];
    return block;
}

// Both passes at once. A warp has 32 V columns and slides down `each` rows with V running sums a lane. Along
// a row it scans the columns' sums. A window is the difference of two prefixes, which lie in shared memory of
// the warp's own. So the block needs no barrier, and nothing between the passes goes through memory. `left`
// and `right` columns at the ends only serve the others.
template <class P>
static __device__ void fused(const P* __restrict__ image, P* __restrict__ out, int rows, int columns, int radius, int each,
                             int across, int left, int right, double inverse) {
    typedef typename Of<P>::total total;
    extern __shared__ unsigned long long memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, width = 32 * V;
    total* prefix = (total*)memory + warp * width;
    const int strip = (int)(blockIdx.x % across) * (blockDim.x / 32) + warp, first = (int)(blockIdx.x / across) * each;
    const int base = strip * (width - left - right) - left, x = base + lane * V;
    if (base + left >= columns) return;
    const bool whole = x >= 0 && x <= columns - V && columns % V == 0;
    typename Of<P>::sum sums[V];
#pragma unroll
    for (int i = 0; i < V; i++) sums[i] = 0;
    for (int j = -radius; j < radius; j++) {
        const Block<P> block = load(image + (size_t)held(first + j, rows) * columns, x, columns, whole);
#pragma unroll
        for (int i = 0; i < V; i++) sums[i] += block.v[i];
    }
    for (int y = first; y < min(first + each, rows); y++) {
        const Block<P> enters = load(image + (size_t)held(y + radius, rows) * columns, x, columns, whole);
        const Block<P> leaves = load(image + (size_t)held(y - radius, rows) * columns, x, columns, whole);
        total here[V], sum = 0;
#pragma unroll
        for (int i = 0; i < V; i++) {
            sums[i] += enters.v[i];
            sum += sums[i];
            here[i] = sum;
            sums[i] -= leaves.v[i];
        }
        const total before = scan_of_warp(sum) - sum;
#pragma unroll
        for (int i = 0; i < V; i++) prefix[lane * V + i] = before + here[i];
        __syncwarp();
        P* to = out + (size_t)y * columns;
        for (int c = left + lane; c < width - right; c += 32)
            if (base + c < columns) to[base + c] = Of<P>::mean(prefix[c + radius] - prefix[c - radius - 1], inverse);
        __syncwarp();
    }
}

extern "C" __global__ void naive_u8(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows, int columns, int radius,
                                     double inverse) {
    naive<unsigned char>(image, out, rows, columns, radius, inverse);
}
extern "C" __global__ void columns_direct_u8(const unsigned char* __restrict__ image, unsigned* __restrict__ sums, int rows, int columns,
                                              int radius) {
    columns_direct<unsigned char>(image, sums, rows, columns, radius);
}
extern "C" __global__ void rows_direct_u8(const unsigned* __restrict__ sums, unsigned char* __restrict__ out, int rows, int columns, int radius,
                                           double inverse) {
    rows_direct<unsigned char>(sums, out, rows, columns, radius, inverse);
}
extern "C" __global__ void columns_running_u8(const unsigned char* __restrict__ image, unsigned* __restrict__ sums, int rows, int columns,
                                               int radius, int each, int across) {
    columns_running<unsigned char>(image, sums, rows, columns, radius, each, across);
}
extern "C" __global__ void rows_running_u8(const unsigned* __restrict__ sums, unsigned char* __restrict__ out, int rows, int columns, int radius,
                                            double inverse) {
    rows_running<unsigned char>(sums, out, rows, columns, radius, inverse);
}
extern "C" __global__ void rows_scanned_u8(const unsigned* __restrict__ sums, unsigned char* __restrict__ out, int columns, int radius,
                                            double inverse) {
    rows_scanned<unsigned char>(sums, out, columns, radius, inverse);
}
extern "C" __global__ void fused_u8(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows, int columns, int radius,
                                     int each, int across, int left, int right, double inverse) {
    fused<unsigned char>(image, out, rows, columns, radius, each, across, left, right, inverse);
}
extern "C" __global__ void naive_f32(const float* __restrict__ image, float* __restrict__ out, int rows, int columns, int radius,
                                     double inverse) {
    naive<float>(image, out, rows, columns, radius, inverse);
}
extern "C" __global__ void columns_direct_f32(const float* __restrict__ image, float* __restrict__ sums, int rows, int columns,
                                              int radius) {
    columns_direct<float>(image, sums, rows, columns, radius);
}
extern "C" __global__ void rows_direct_f32(const float* __restrict__ sums, float* __restrict__ out, int rows, int columns, int radius,
                                           double inverse) {
    rows_direct<float>(sums, out, rows, columns, radius, inverse);
}
extern "C" __global__ void columns_running_f32(const float* __restrict__ image, float* __restrict__ sums, int rows, int columns,
                                               int radius, int each, int across) {
    columns_running<float>(image, sums, rows, columns, radius, each, across);
}
extern "C" __global__ void rows_running_f32(const float* __restrict__ sums, float* __restrict__ out, int rows, int columns, int radius,
                                            double inverse) {
    rows_running<float>(sums, out, rows, columns, radius, inverse);
}
extern "C" __global__ void rows_scanned_f32(const float* __restrict__ sums, float* __restrict__ out, int columns, int radius,
                                            double inverse) {
    rows_scanned<float>(sums, out, columns, radius, inverse);
}
extern "C" __global__ void fused_f32(const float* __restrict__ image, float* __restrict__ out, int rows, int columns, int radius,
                                     int each, int across, int left, int right, double inverse) {
    fused<float>(image, out, rows, columns, radius, each, across, left, right, inverse);
}
