// One-dimensional phases, made once in f64 for all outputs. The separable variants multiply them.
//
// Points of a list are a + b i, i < count, three coordinates x, y, z each. Tables are [..][point][sample],
// `width` samples from sample `first` on, with finite numbers past the last and 0 where a weight is a factor.

#define THREADS 128
// FP16 has 5 bits of exponent: operands of at most 2^14, so that what a number's first half leaves is a
// normal number for all that matter.
#define FP16_SCALE 16384.0

struct List {
    double ax, ay, az, bx, by, bz;
};

static __device__ __forceinline__ double2 phase(const double* k, int dims, long long m, double i, List list) {
    double2 out;
    double turns = turns_at(k + m * dims, dims, list.ax + list.bx * i, list.ay + list.by * i, list.az + list.bz * i);
    sincospi(2 * turns, &out.y, &out.x);
    return out;
}

template <class C>
static __device__ __forceinline__ void write_phases(const double* k, int dims, int first, int samples, int width,
                                                    List list, C* table) {
    int m = blockIdx.x * THREADS + threadIdx.x;
    if (m >= width) return;
    double2 value = make_double2(0, 0);
    if (first + m < samples) value = phase(k, dims, first + m, blockIdx.y, list);
    C* at = table + (long long)blockIdx.y * width + m;
    at->x = value.x;
    at->y = value.y;
}

template <class C, class D>
static __device__ __forceinline__ void write_weighted(const double* k, int dims, int first, int samples, int width,
                                                      List list, const D* d, double factor, C* table) {
    int m = blockIdx.x * THREADS + threadIdx.x;
    if (m >= width) return;
    double2 value = make_double2(0, 0);
    if (first + m < samples) {
        double2 p = phase(k, dims, first + m, blockIdx.y, list);
        D w = d[(long long)blockIdx.z * samples + first + m];
        double re = factor * w.x, im = factor * w.y;
        value = make_double2(re * p.x - im * p.y, re * p.y + im * p.x);
    }
    C* at = table + ((long long)blockIdx.z * gridDim.y + blockIdx.y) * width + m;
    at->x = value.x;
    at->y = value.y;
}

extern "C" __global__ void __launch_bounds__(THREADS)
phases_single(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
              double az, double bx, double by, double bz, float2* __restrict__ table) {
    write_phases(k, dims, first, samples, width, List{ax, ay, az, bx, by, bz}, table);
}

extern "C" __global__ void __launch_bounds__(THREADS)
phases_double(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
              double az, double bx, double by, double bz, double2* __restrict__ table) {
    write_phases(k, dims, first, samples, width, List{ax, ay, az, bx, by, bz}, table);
}

// Phases times the samples' values: [batch][point][sample].
extern "C" __global__ void __launch_bounds__(THREADS)
weighted_single(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
                double az, double bx, double by, double bz, const cplx* __restrict__ d, float2* __restrict__ table) {
    write_weighted(k, dims, first, samples, width, List{ax, ay, az, bx, by, bz}, d, 1, table);
}

extern "C" __global__ void __launch_bounds__(THREADS)
weighted_double(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
                double az, double bx, double by, double bz, const cplx* __restrict__ d, double2* __restrict__ table) {
    write_weighted(k, dims, first, samples, width, List{ax, ay, az, bx, by, bz}, d, 1, table);
}

// The largest part of any value, as the bits of a float.
extern "C" __global__ void __launch_bounds__(THREADS)
largest(const float2* __restrict__ d, unsigned long long count, unsigned* __restrict__ bits) {
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < count;
         i += gridDim.x * (unsigned long long)THREADS) {
        unsigned x = __float_as_uint(d[i].x) & 0x7fffffffu, y = __float_as_uint(d[i].y) & 0x7fffffffu;
        unsigned own = x > y ? x : y;
        // Most values are smaller than one seen before.
        if (own > *(volatile unsigned*)bits) atomicMax(bits, own);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
weighted_scaled(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
                double az, double bx, double by, double bz, const float2* __restrict__ d,
                const unsigned* __restrict__ largest_bits, float2* __restrict__ table) {
    double most = __uint_as_float(*largest_bits);
    write_weighted(k, dims, first, samples, width, List{ax, ay, az, bx, by, bz}, d,
                   most == 0 ? 1.0 : FP16_SCALE / most, table);
}

// Columns: cosines (even) and sines (odd) of pairs of mirrored points; 0 past the last pair or sample.
static __device__ __forceinline__ double column(const double* k, int dims, int first, int samples, int m, int column,
                                                int pairs, List list) {
    if (first + m >= samples || column / 2 >= pairs) return 0;
    double2 p = phase(k, dims, first + m, column / 2, list);
    return column % 2 ? p.y : p.x;
}

// [tile of 128 columns][sample][column].
extern "C" __global__ void __launch_bounds__(THREADS)
columns_single(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
               double az, double bx, double by, double bz, int pairs, float* __restrict__ table) {
    int m = blockIdx.x;
    double value = column(k, dims, first, samples, m, blockIdx.y * 128 + threadIdx.x, pairs,
                          List{ax, ay, az, bx, by, bz});
    table[((long long)blockIdx.y * width + m) * 128 + threadIdx.x] = (float)value;
}

// In the layout in which the lanes of a warp hold the right operand of two 8×8×4 products: [tile of 8
// columns][8 samples][lane].
extern "C" __global__ void __launch_bounds__(THREADS)
columns_double(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
               double az, double bx, double by, double bz, int pairs, double2* __restrict__ table) {
    int i = blockIdx.x * THREADS + threadIdx.x, lane = i % 32, m = i / 32 * 8 + lane % 4;
    if (i >= width * 4) return;
    List list{ax, ay, az, bx, by, bz};
    int c = blockIdx.y * 8 + lane / 4;
    table[(long long)blockIdx.y * (width * 4) + i] =
        make_double2(column(k, dims, first, samples, m, c, pairs, list),
                     column(k, dims, first, samples, m + 4, c, pairs, list));
}

// In the layout in which the lanes of a warp hold the right operand of a 16×8×16 product: [tile of 8
// columns][16 samples][lane]. The two registers of first halves come first, then the two registers of the
// remainders.
extern "C" __global__ void __launch_bounds__(THREADS)
columns_fp16(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
             double az, double bx, double by, double bz, int pairs, uint4* __restrict__ table) {
    int i = blockIdx.x * THREADS + threadIdx.x, lane = i % 32, m = i / 32 * 16 + lane % 4 * 2;
    if (i >= width * 2) return;
    List list{ax, ay, az, bx, by, bz};
    int c = blockIdx.y * 8 + lane / 4;
    uint4 out;
    split((float)(FP16_SCALE * column(k, dims, first, samples, m, c, pairs, list)),
          (float)(FP16_SCALE * column(k, dims, first, samples, m + 1, c, pairs, list)), out.x, out.z);
    split((float)(FP16_SCALE * column(k, dims, first, samples, m + 8, c, pairs, list)),
          (float)(FP16_SCALE * column(k, dims, first, samples, m + 9, c, pairs, list)), out.y, out.w);
    table[(long long)blockIdx.y * (width * 2) + i] = out;
}

// In the layout in which shared memory holds the right operand of wgmma: [tile of `strip` columns][64
// samples][first halves, remainders] [8 samples][column][sample].
extern "C" __global__ void __launch_bounds__(THREADS)
columns_wgmma(const double* __restrict__ k, int dims, int first, int samples, int width, double ax, double ay,
              double az, double bx, double by, double bz, int pairs, int strip, uint4* __restrict__ table) {
    int i = blockIdx.x * THREADS + threadIdx.x, c = i % strip, eight = i / strip;
    if (eight >= width / 8) return;
    List list{ax, ay, az, bx, by, bz};
    unsigned high[4], low[4];
    for (int j = 0; j < 4; j++) {
        int m = eight * 8 + 2 * j;
        split((float)(FP16_SCALE * column(k, dims, first, samples, m, blockIdx.y * strip + c, pairs, list)),
              (float)(FP16_SCALE * column(k, dims, first, samples, m + 1, blockIdx.y * strip + c, pairs, list)), high[j],
              low[j]);
    }
    uint4* stage = table + ((long long)blockIdx.y * (width / 64) + eight / 8) * (strip * 16) + eight % 8 * strip + c;
    stage[0] = make_uint4(high[0], high[1], high[2], high[3]);
    stage[8 * strip] = make_uint4(low[0], low[1], low[2], low[3]);
}

// Real weights as complex numbers.
extern "C" __global__ void __launch_bounds__(THREADS)
widen(const real* __restrict__ from, unsigned long long count, cplx* __restrict__ to) {
    unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x;
    if (i < count) to[i] = make_cplx(from[i], 0);
}

// Q(−x) = conj Q(x) into the displacements of negative first coordinate whose mirror image is on the grid;
// index n is displacement 0. Absent leading axes have n = 0; `lead` is the first axis that is there.
extern "C" __global__ void __launch_bounds__(THREADS)
mirror(cplx* __restrict__ q, int nz, int ny, int nx, int lead) {
    int cz = nz ? 2 * nz : 1, cy = ny ? 2 * ny : 1, cx = 2 * nx;
    long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= (long long)cz * cy * cx) return;
    int x = (int)(i % cx), y = (int)(i / cx % cy), z = (int)(i / cx / cy);
    int own = lead == 0 ? z : lead == 1 ? y : x, half = lead == 0 ? nz : lead == 1 ? ny : nx;
    if (own >= half || x == 0 || (ny && y == 0) || (nz && z == 0)) return;
    int mz = nz ? 2 * nz - z : 0, my = ny ? 2 * ny - y : 0, mx = 2 * nx - x;
    q[i] = conj(q[((long long)mz * cy + my) * cx + mx]);
}

// The outputs of a target: c2 runs of c1 runs of c0 elements. Each is a sum over `parts` arrays
// [part][batch][c2][c1][c0]. Element (i2, i1, i0) goes to base + i2 s2 + i1 s1 + i0 s0 of batch entry
// blockIdx.y.
extern "C" __global__ void __launch_bounds__(THREADS)
gather(const cplx* __restrict__ sums, int parts, int c2, int c1, int c0, cplx* __restrict__ out, long long base,
       long long s2, long long s1, long long s0, long long whole) {
    long long count = (long long)c2 * c1 * c0, i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i >= count) return;
    double2 sum = make_double2(0, 0);
    for (int p = 0; p < parts; p++) {
        cplx value = sums[(p * (long long)gridDim.y + blockIdx.y) * count + i];
        sum.x += value.x;
        sum.y += value.y;
    }
    out[blockIdx.y * whole + base + i / c0 / c1 * s2 + i / c0 % c1 * s1 + i % c0 * s0] = make_cplx(sum.x, sum.y);
}
