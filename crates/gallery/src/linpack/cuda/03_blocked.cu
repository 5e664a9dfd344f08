// Strips of STRIP columns, a kernel a column; panels of several strips; the rest of the matrix once a panel.

#define STRIP 16

// A step within the strip of columns from `begin` to `end`: eliminates with column j - 1, if the strip has it, and finds the pivot of column j, if the
// strip has that. 16 threads a row. The last block to finish changes the rows, of these columns alone.
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

// The row changes of a strip in all other columns, a thread a column. First it is worked out where each changed row's numbers come from, so
// that all loads come before all stores.
extern "C" __global__ void exchange(double* a, const int* pivots, int n, int begin, int end) {
    __shared__ int to[2 * STRIP], from[2 * STRIP], count;
    if (threadIdx.x == 0) {
        int c = 0;
        for (int k = begin; k < end; k++) to[c] = from[c] = k, c++;
        for (int k = begin; k < end; k++) {
            int at = 0;
            while (at < c && to[at] != pivots[k]) at++;
            if (at == c) to[c] = from[c] = pivots[k], c++;
            const int f = from[k - begin];
            from[k - begin] = from[at], from[at] = f;
        }
        count = c;
    }
    __syncthreads();
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n || (j >= begin && j < end)) return;
    double v[2 * STRIP];
#pragma unroll
    for (int i = 0; i < 2 * STRIP; i++)
        if (i < count) v[i] = a[(long long)from[i] * n + j];
#pragma unroll
    for (int i = 0; i < 2 * STRIP; i++)
        if (i < count) a[(long long)to[i] * n + j] = v[i];
}

// Rows of U of a strip in the columns from `column` to `column_end`: L of the strip, inverted, times what is there. A thread a column.
extern "C" __global__ void solve(double* a, int n, int begin, int end, int column, int column_end) {
    __shared__ double l[STRIP][STRIP];
    for (int at = threadIdx.x; at < STRIP * STRIP; at += blockDim.x) {
        const int i = begin + at / STRIP, k = begin + at % STRIP;
        l[at / STRIP][at % STRIP] = i < end && k < i ? a[(long long)i * n + k] : 0;
    }
    __syncthreads();
    const int j = column + blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= column_end) return;
    double u[STRIP];
#pragma unroll
    for (int i = 0; i < STRIP; i++) u[i] = begin + i < end ? a[(long long)(begin + i) * n + j] : 0;
#pragma unroll
    for (int k = 0; k < STRIP; k++)
#pragma unroll
        for (int i = k + 1; i < STRIP; i++) u[i] -= l[i][k] * u[k];
#pragma unroll
    for (int i = 0; i < STRIP; i++)
        if (begin + i < end) a[(long long)(begin + i) * n + j] = u[i];
}

// Rows from `row` to `row_end`, columns from `column` to `column_end`: less L U with the columns of L from `from` to `to`. A thread a number.
extern "C" __global__ void __launch_bounds__(256)
update_each(double* a, int n, int row, int row_end, int column, int column_end, int from, int to) {
    const int j = column + blockIdx.x * 32 + threadIdx.x % 32, i = row + blockIdx.y * 8 + threadIdx.x / 32;
    if (i >= row_end || j >= column_end) return;
    double sum = 0;
    for (int k = from; k < to; k++) sum += a[(long long)i * n + k] * a[(long long)k * n + j];
    a[(long long)i * n + j] -= sum;
}
