// A strip of columns in one launch. Each block keeps its rows in shared memory. A column costs one exchange
// of messages between blocks: each block tells its best row and its numbers, reads what all others tell, and
// knows the pivot. Every block must run at once.
//
// A message is made of words: 32 bits and the turn in which they were written. A word is written whole, so a
// reader that finds the turn has the bits too, and nobody waits for a fence. Two sets of words take turns. A
// block writes a set again only after it has read the other, which others write after they have read this
// one.

#define THREADS 256
// With 4 numbers of padding, eight rows by four columns lie in each bank of shared memory twice, which is the
// least.
#define ROW (STRIP + 4)
// Words of a block: the size of its best number, the row of that, and the numbers of this row.
#define SLOT (4 + 2 * STRIP)

typedef unsigned long long word;

static __device__ __forceinline__ void post(word* at, unsigned bits, unsigned turn) {
    *(volatile word*)at = (word)turn << 32 | bits;
}

static __device__ __forceinline__ unsigned await(const word* at, unsigned turn) {
    word found;
    do found = *(const volatile word*)at;
    while (found >> 32 != turn);
    return (unsigned)found;
}

static __device__ __forceinline__ void post(word* at, double v, unsigned turn) {
    const long long bits = __double_as_longlong(v);
    post(at, (unsigned)bits, turn);
    post(at + 1, (unsigned)(bits >> 32), turn);
}

static __device__ __forceinline__ double await_number(const word* at, unsigned turn) {
    word low, high;
    do low = ((const volatile word*)at)[0], high = ((const volatile word*)at)[1];
    while (low >> 32 != turn || high >> 32 != turn);
    return __longlong_as_double((long long)(high << 32 | (low & 0xffffffffu)));
}

static __device__ __forceinline__ Best best_of_lanes(Best best) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        const double size = __shfl_xor_sync(0xffffffffu, best.size, step);
        const int row = __shfl_xor_sync(0xffffffffu, best.row, step);
        better(best, size, row);
    }
    return best;
}

// Columns `begin` to `end`, rows from `begin` on, `rows` a block.
extern "C" __global__ void __launch_bounds__(THREADS)
strip(double* a, int* pivots, unsigned long long* words, int n, int begin, int end, int rows) {
    extern __shared__ double tile[];
    __shared__ double top_row[STRIP], sizes[THREADS / 32];
    __shared__ int best_rows[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, width = end - begin;
    const int first = begin + blockIdx.x * rows, count = min(rows, n - first);
    for (int at = threadIdx.x; at < count * STRIP; at += THREADS) {
        const int r = at / STRIP, k = at % STRIP;
        tile[r * ROW + k] = k < width ? a[(long long)(first + r) * n + begin + k] : 0;
    }
    __syncthreads();
    Best best{-1, n};
    for (int r = threadIdx.x; r < count; r += THREADS) better(best, fabs(tile[r * ROW]), first + r);
    for (int j = 0; j < width; j++) {
        best = best_of_lanes(best);
        if (lane == 0) sizes[warp] = best.size, best_rows[warp] = best.row;
        __syncthreads();
        if (warp == 0) {
            const int top = begin + j;
            const unsigned turn = top + 1;
            word* set = words + j % 2 * (gridDim.x * SLOT + 2 * STRIP);
            word* displaced = set + gridDim.x * SLOT;
            best = lane < THREADS / 32 ? Best{sizes[lane], best_rows[lane]} : Best{-1, n};
            best = best_of_lanes(best);
            word* own = set + blockIdx.x * SLOT;
            if (lane == 0) post(own, best.size, turn), post(own + 2, (unsigned)best.row, turn);
            if (lane < STRIP) {
                if (best.row < n) post(own + 4 + 2 * lane, tile[(best.row - first) * ROW + lane], turn);
                if (top >= first && top < first + count) post(displaced + 2 * lane, tile[(top - first) * ROW + lane], turn);
            }
            __syncwarp();
            best = Best{-1, n};
            for (int b = lane; b < gridDim.x; b += 32)
                better(best, await_number(set + b * SLOT, turn), (int)await(set + b * SLOT + 2, turn));
            best = best_of_lanes(best);
            // A column of nothing but NaN has no best row.
            const int pivot = best.row < n ? best.row : top;
            if (blockIdx.x == 0 && lane == 0) pivots[top] = pivot;
            if (lane < STRIP) {
                const word* chosen = pivot == top ? displaced : set + (pivot - begin) / rows * SLOT + 4;
                const double v = await_number(chosen + 2 * lane, turn);
                top_row[lane] = v;
                if (pivot != top && pivot >= first && pivot < first + count)
                    tile[(pivot - first) * ROW + lane] = await_number(displaced + 2 * lane, turn);
                if (top >= first && top < first + count) tile[(top - first) * ROW + lane] = v;
            }
        }
        __syncthreads();
        best = Best{-1, n};
        // Four threads a row. All threads of a warp take as many turns.
        const int quarter = threadIdx.x % 4;
        for (int r0 = 0; r0 < count; r0 += THREADS / 4) {
            const int r = r0 + threadIdx.x / 4;
            const bool below = r < count && first + r > begin + j;
            double* row = tile + r * ROW;
            const bool divides = below && quarter == j % 4;
            const double l = __shfl_sync(0xffffffffu, divides ? row[j] / top_row[j] : 0, j % 4, 4);
            if (divides) row[j] = l;
            if (!below) continue;
            for (int k = j + 1 + ((quarter - j - 1) & 3); k < width; k += 4) {
                const double v = row[k] - l * top_row[k];
                row[k] = v;
                if (k == j + 1) better(best, fabs(v), first + r);
            }
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < count * STRIP; at += THREADS) {
        const int r = at / STRIP, k = at % STRIP;
        if (k < width) a[(long long)(first + r) * n + begin + k] = tile[r * ROW + k];
    }
}
