// Strips of STRIP columns, a kernel a column; panels of several strips; the rest of the matrix once a panel.

// A step within the strip of columns from `begin` to `end`: eliminates with column j - 1, if the strip has
// it, and finds the pivot of column j, if the strip has that. 16 threads a row. The last block to finish
// changes the rows, of these columns alone.
extern "C" __global__ void __launch_bounds__(256)
column(double* a, int* pivots, double* sizes, int* rows, unsigned* ticket, int n, int begin, int end, int j) {
    __shared__ bool last;
    const int lane = threadIdx.x % STRIP, group = threadIdx.x / STRIP, before = j - 1 - begin;
    const bool there = begin + lane < end;
    Best best{-1, n};
    const double* top = a + (long long)(j - 1) * n + begin;
    const double diagonal = before >= 0 ? top[before] : 1, u = before >= 0 && there ? top[lane] : 0;
    // All threads of a warp take as many turns.
    for (int first = j + blockIdx.x * (256 / STRIP); first < n; first += gridDim.x * (256 / STRIP)) {
        const int i = first + group;
        double* at = a + (long long)i * n + begin + lane;
        double v = i < n && there ? *at : 0;
        if (before >= 0) {
            const double l = __shfl_sync(0xffffffffu, v, before, STRIP) / diagonal;
            if (lane == before) v = l;
            if (lane > before) v -= l * u;
            if (i < n && there && lane >= before) *at = v;
        }
        if (i < n && begin + lane == j) better(best, fabs(v), i);
    }
    if (j >= end) return;
    best = best_of_block(best);
    if (threadIdx.x == 0) {
        sizes[blockIdx.x] = best.size, rows[blockIdx.x] = best.row;
        __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    best = Best{-1, n};
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x)
        better(best, ((volatile double*)sizes)[b], ((volatile int*)rows)[b]);
    best = best_of_block(best);
    if (threadIdx.x == 0) pivots[j] = rows[0] = best.row < n ? best.row : j, *ticket = 0;
    __syncthreads();
    if (threadIdx.x < end - begin) {
        double* one = a + (long long)j * n + begin + threadIdx.x;
        double* other = a + (long long)rows[0] * n + begin + threadIdx.x;
        const double v = *one;
        *one = *other, *other = v;
    }
}

// Rows from `row` to `row_end`, columns from `column` to `column_end`: less L U with the columns of L from
// `from` to `to`. A thread a number.
extern "C" __global__ void __launch_bounds__(256)
update_each(double* a, int n, int row, int row_end, int column, int column_end, int from, int to) {
    const int j = column + blockIdx.x * 32 + threadIdx.x % 32, i = row + blockIdx.y * 8 + threadIdx.x / 32;
    if (i >= row_end || j >= column_end) return;
    double sum = 0;
    for (int k = from; k < to; k++) sum += a[(long long)i * n + k] * a[(long long)k * n + j];
    a[(long long)i * n + j] -= sum;
}
