// One level of the transform in one pass. An element is a sum over all axes at once (up to TAPS³ terms, from
// the cache). A level therefore reads and writes its box once; one pass per axis would do so three times.

#define TAPS 4
#define THREADS 128

// An element of a transformed axis as a sum of elements of the axis before.
struct Term {
    int count;
    int from[TAPS];
    real factor[TAPS];
};

// Element i of an axis of n elements after one level that shifts by `shift`; an axis that is not split stays
// as it is.
static __device__ void term_of(Term& term, int i, int n, int shift, bool split, bool inverse, int taps,
                               const real* filter) {
    const real* low = filter;
    const real* high = filter + TAPS;
    int half = n / 2;
    int at = inverse && split ? (i + n - shift) % n : i;
    if (!split || at == 2 * half) {
        term.count = 1;
        term.from[0] = split && !inverse ? (at + shift) % n : at;
        term.factor[0] = 1;
    } else if (!inverse) {
        int k = at < half ? at : at - half;
        const real* h = at < half ? low : high;
        term.count = taps;
#pragma unroll
        for (int j = 0; j < TAPS; j++) {
            term.from[j] = j < taps ? ((2 * k + j) % (2 * half) + shift) % n : 0;
            term.factor[j] = j < taps ? h[j] : 0;
        }
    } else {
        int k = at / 2, odd = at % 2;
        term.count = taps;
#pragma unroll
        for (int p = 0; p < TAPS / 2; p++) {
            bool there = 2 * p < taps;
            int from = (k + p * (half - 1)) % half;
            term.from[2 * p] = there ? from : 0;
            term.factor[2 * p] = there ? low[2 * p + odd] : 0;
            term.from[2 * p + 1] = there ? half + from : 0;
            term.factor[2 * p + 1] = there ? high[2 * p + odd] : 0;
        }
    }
}

// `from` and `to` are boxes of (nz, ny, nx) elements at the origin of arrays whose rows and planes are
// `*_row` and `*_plane` elements apart; `filter` holds the low-pass and the high-pass coefficients, TAPS
// places each.
extern "C" __global__ void __launch_bounds__(THREADS)
level(const cplx* __restrict__ from, unsigned long long from_plane, unsigned long long from_row,
      cplx* __restrict__ to, unsigned long long to_plane, unsigned long long to_row, const real* __restrict__ filter,
      int taps, int inverse, int nz, int ny, int nx, int split_z, int split_y, int split_x, int shift_z, int shift_y,
      int shift_x) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z;
    if (x >= nx || y >= ny) return;
    Term tz, ty, tx;
    term_of(tz, z, nz, shift_z, split_z, inverse, taps, filter);
    term_of(ty, y, ny, shift_y, split_y, inverse, taps, filter);
    term_of(tx, x, nx, shift_x, split_x, inverse, taps, filter);
    cplx sum = make_cplx(0, 0);
#pragma unroll
    for (int a = 0; a < TAPS; a++) {
        if (a >= tz.count) break;
        const cplx* plane = from + tz.from[a] * from_plane;
        cplx rows = make_cplx(0, 0);
#pragma unroll
        for (int b = 0; b < TAPS; b++) {
            if (b >= ty.count) break;
            const cplx* row = plane + ty.from[b] * from_row;
            cplx line = make_cplx(0, 0);
#pragma unroll
            for (int c = 0; c < TAPS; c++)
                if (c < tx.count) line = line + tx.factor[c] * row[tx.from[c]];
            rows = rows + ty.factor[b] * line;
        }
        sum = sum + tz.factor[a] * rows;
    }
    to[z * to_plane + y * to_row + x] = sum;
}

// A box from one array to another.
extern "C" __global__ void __launch_bounds__(THREADS)
copy_box(const cplx* __restrict__ from, unsigned long long from_plane, unsigned long long from_row,
         cplx* __restrict__ to, unsigned long long to_plane, unsigned long long to_row, int ny, int nx) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z;
    if (x < nx && y < ny) to[z * to_plane + y * to_row + x] = from[z * from_plane + y * from_row + x];
}
