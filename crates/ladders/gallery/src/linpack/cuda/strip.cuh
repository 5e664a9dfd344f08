// What a strip of STRIP columns, at most 32, means for the columns beside it: rows change, and rows of U
// follow.

#ifndef STRIP
#define STRIP 16
#endif

// The row changes of a strip in all other columns, a thread a column. First the first warp works out where
// each changed row's numbers come from, so that all loads come before all stores. Its lane k knows row
// begin + k and the k-th row below the strip.
extern "C" __global__ void exchange(double* a, const int* pivots, int n, int begin, int end) {
    __shared__ int to[2 * STRIP], from[2 * STRIP], below;
    if (threadIdx.x < 32) {
        const unsigned all = 0xffffffffu;
        const int lane = threadIdx.x, width = end - begin, pivot = lane < width ? pivots[begin + lane] : -1;
        int near = begin + lane, far = -1, from_near = near, from_far = -1, count = 0;
        for (int k = 0; k < width; k++) {
            const int row = __shfl_sync(all, pivot, k);
            const bool within = row < end;
            const unsigned found = __ballot_sync(all, far == row);
            const int at = within ? row - begin : found ? __ffs(found) - 1 : count;
            if (!within && !found) {
                if (lane == count) far = from_far = row;
                count++;
            }
            const int one = __shfl_sync(all, from_near, k);
            const int near_other = __shfl_sync(all, from_near, at), far_other = __shfl_sync(all, from_far, at);
            if (lane == k) from_near = within ? near_other : far_other;
            if (lane == at) (within ? from_near : from_far) = one;
        }
        if (lane < STRIP) {
            to[lane] = near, from[lane] = lane < width ? from_near : near;
            to[STRIP + lane] = far, from[STRIP + lane] = from_far;
        }
        if (lane == 0) below = count;
    }
    __syncthreads();
    const int j = blockIdx.x * blockDim.x + threadIdx.x, width = end - begin;
    if (j >= n || (j >= begin && j < end)) return;
    double v[2 * STRIP];
#pragma unroll
    for (int i = 0; i < 2 * STRIP; i++)
        if (i < STRIP ? i < width : i - STRIP < below) v[i] = a[(long long)from[i] * n + j];
#pragma unroll
    for (int i = 0; i < 2 * STRIP; i++)
        if (i < STRIP ? i < width : i - STRIP < below) a[(long long)to[i] * n + j] = v[i];
}

// Rows of U of a strip in the columns from `column` to `column_end`: L of the strip, inverted, times what is
// there. A thread a column.
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
