// Points sorted by tile, once a trajectory: a stable radix sort whose result depends on the points alone.
// DIMS: axes of the transform. Axes of arguments are x, y, z.

#define THREADS 256
#define WARPS (THREADS / 32)
// Keys of a thread; consecutive keys belong to a warp.
#define ITEMS 16
#define DIGITS 256

// First cell of the footprint of a point at k, and the polynomials' argument z = 2(first − u + W/2) − 1 in
// [−1, 1). Every product that could be fused with a sum is fused, so that all kernels get the same result.
static __device__ __forceinline__ int footprint(double k, double inverse, double fine, double half, double* z) {
    double turns = fma(k, inverse, -floor(k * inverse));
    // Where neighbouring numbers are more than a turn apart, no part of a turn is left.
    if (!(turns >= -0.5 && turns < 1.0)) turns = 0.0;
    double first = ceil(fma(turns, fine, -half));
    *z = 2.0 * fma(-turns, fine, first + half) - 1.0;
    // u < the grid's length, so only the left border folds.
    if (first < 0.0) first += fine;
    return (int)first;
}

// Tile t begins at cell ⌈t · fine / tiles⌉. Quotients of such integers are never rounded to the next one.
static __device__ __forceinline__ unsigned tile_of(int cell, double fine, double tiles) {
    return (unsigned)floor((double)cell * tiles / fine);
}
static __device__ __forceinline__ int first_of(unsigned tile, double fine, double tiles) {
    return (int)ceil((double)tile * fine / tiles);
}

#define AXES                                                                                                          \
    double inverse[3] = {inverse_x, inverse_y, inverse_z}, fine[3] = {fine_x, fine_y, fine_z},                        \
           tiles[3] = {tiles_x, tiles_y, tiles_z};

// What `locate` computes of a point and `place` brings into order: the polynomials' arguments, and the first
// cell of the footprint in its tile, x + 2^10 y + 2^20 z. One aligned read, for the points of a tile lie
// anywhere in memory.
struct __align__(DIMS == 1 && !DOUBLE ? 8 : 16) Record {
    real arguments[DIMS];
    unsigned place;
};

// keys[j] = tile of point j, order[j] = j. Raises *not_finite to n − j for a point with a number that is not
// finite.
extern "C" __global__ void __launch_bounds__(THREADS)
locate(const unsigned* __restrict__ x, const unsigned* __restrict__ y, const unsigned* __restrict__ z, long long start_x,
       long long start_y, long long start_z, long long stride_x, long long stride_y, long long stride_z, unsigned singles,
       unsigned n, double half, double inverse_x, double inverse_y, double inverse_z, double fine_x, double fine_y,
       double fine_z, double tiles_x, double tiles_y, double tiles_z, unsigned* __restrict__ keys,
       unsigned* __restrict__ order, unsigned* __restrict__ records, unsigned* __restrict__ not_finite) {
    AXES
    COMPONENTS
    unsigned j = blockIdx.x * THREADS + threadIdx.x;
    if (j >= n) return;
    unsigned key = 0;
    bool finite = true;
    Record record;
    record.place = 0;
#pragma unroll
    for (int d = DIMS - 1; d >= 0; d--) {
        double argument, k = number(numbers[d], (singles >> d) & 1, start[d] + stride[d] * j);
        finite = finite && fabs(k) <= 1.7976931348623157e308;
        int first = footprint(k, inverse[d], fine[d], half, &argument);
        unsigned tile = tile_of(first, fine[d], tiles[d]);
        key = key * (unsigned)tiles[d] + tile;
        record.place |= (unsigned)(first - first_of(tile, fine[d], tiles[d])) << (10 * d);
        record.arguments[d] = (real)argument;
    }
    if (!finite) atomicMax(not_finite, n - j);
    keys[j] = key;
    order[j] = j;
    ((Record*)records)[j] = record;
}

// counts[digit][block]: how many keys of each block have each digit.
extern "C" __global__ void __launch_bounds__(THREADS)
count(const unsigned* __restrict__ keys, unsigned n, unsigned shift, unsigned digits, unsigned* __restrict__ counts) {
    __shared__ unsigned found[DIGITS];
    found[threadIdx.x] = 0;
    __syncthreads();
    unsigned first = blockIdx.x * (THREADS * ITEMS) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        unsigned at = first + i * THREADS;
        if (at < n) atomicAdd(&found[(keys[at] >> shift) & (digits - 1)], 1u);
    }
    __syncthreads();
    if (threadIdx.x < digits) counts[threadIdx.x * gridDim.x + blockIdx.x] = found[threadIdx.x];
}

// Σ of the values of the threads before this one, and of all.
static __device__ __forceinline__ unsigned sum_before(unsigned value, unsigned* all) {
    __shared__ unsigned sums[WARPS];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = value;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        unsigned other = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane >= (unsigned)step) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    unsigned before = sum - value;
    *all = 0;
#pragma unroll
    for (unsigned w = 0; w < WARPS; w++) {
        if (w < warp) before += sums[w];
        *all += sums[w];
    }
    __syncthreads();
    return before;
}

// One block per row, as of a digit: each count becomes the sum of the counts before it, and totals[row] the
// sum of all.
extern "C" __global__ void __launch_bounds__(THREADS)
add_counts(unsigned* __restrict__ counts, unsigned blocks, unsigned* __restrict__ totals) {
    unsigned* row = counts + blockIdx.x * blocks;
    unsigned carry = 0;
    for (unsigned first = 0; first < blocks; first += THREADS) {
        unsigned at = first + threadIdx.x, all;
        unsigned value = at < blocks ? row[at] : 0;
        unsigned before = sum_before(value, &all);
        if (at < blocks) row[at] = carry + before;
        carry += all;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = carry;
}

// One stable pass: keys of equal digits keep their order. A block sorts its keys in shared memory first, so
// that threads which follow each other write to places that do.
extern "C" __global__ void __launch_bounds__(THREADS)
move_keys(const unsigned* __restrict__ keys, const unsigned* __restrict__ order, unsigned n, unsigned shift,
          unsigned digits, const unsigned* __restrict__ counts, const unsigned* __restrict__ totals,
          unsigned* __restrict__ keys_out, unsigned* __restrict__ order_out) {
    __shared__ unsigned places[WARPS][DIGITS], offsets[DIGITS], sorted[THREADS * ITEMS];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int w = 0; w < WARPS; w++) places[w][threadIdx.x] = 0;
    __syncthreads();
    unsigned block = blockIdx.x * (THREADS * ITEMS), first = block + warp * (32 * ITEMS) + lane;
    unsigned key[ITEMS], rank[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        unsigned at = first + i * 32;
        bool inside = at < n;
        key[i] = inside ? keys[at] : 0;
        unsigned digit = (key[i] >> shift) & (digits - 1);
        unsigned alike = __ballot_sync(0xffffffffu, inside);
        for (unsigned bit = 1; bit < digits; bit *= 2) {
            unsigned set = __ballot_sync(0xffffffffu, (digit & bit) != 0);
            alike &= digit & bit ? set : ~set;
        }
        unsigned before = __popc(alike & ((1u << lane) - 1));
        rank[i] = places[warp][digit] + before;
        __syncwarp();
        if (inside && before == 0) places[warp][digit] += __popc(alike);
        __syncwarp();
    }
    __syncthreads();
    unsigned all, digit = threadIdx.x, own = 0;
    for (int w = 0; w < WARPS; w++) own += places[w][digit];
    unsigned start = sum_before(own, &all), there = sum_before(digit < digits ? totals[digit] : 0, &all);
    if (digit < digits) offsets[digit] = there + counts[digit * gridDim.x + blockIdx.x] - start;
    for (int w = 0; w < WARPS; w++) {
        unsigned count = places[w][digit];
        places[w][digit] = start;
        start += count;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        rank[i] += places[warp][(key[i] >> shift) & (digits - 1)];
        if (first + i * 32 < n) sorted[rank[i]] = key[i];
    }
    __syncthreads();
    unsigned count = min(n - block, (unsigned)(THREADS * ITEMS));
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        unsigned from = i * THREADS + threadIdx.x;
        if (from >= count) continue;
        unsigned moved = sorted[from], to = offsets[(moved >> shift) & (digits - 1)] + from;
        keys_out[to] = moved;
        key[i] = to;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        unsigned at = first + i * 32;
        if (at < n) sorted[rank[i]] = order[at];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        unsigned from = i * THREADS + threadIdx.x;
        if (from < count) order_out[key[i]] = sorted[from];
    }
}

// starts[tile] = number of sorted keys below tile, for 0 … tiles.
extern "C" __global__ void __launch_bounds__(THREADS)
find_starts(const unsigned* __restrict__ keys, unsigned n, unsigned tiles, unsigned* __restrict__ starts) {
    unsigned tile = blockIdx.x * THREADS + threadIdx.x;
    if (tile > tiles) return;
    unsigned low = 0, high = n;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (keys[middle] < tile) low = middle + 1;
        else high = middle;
    }
    starts[tile] = low;
}

// Brings the records into the order of the sorted points: first cells, and arguments [axis][point].
extern "C" __global__ void __launch_bounds__(THREADS)
place(const unsigned* __restrict__ records, const unsigned* __restrict__ order, unsigned n, unsigned* __restrict__ places,
      real* __restrict__ arguments) {
    unsigned p = blockIdx.x * THREADS + threadIdx.x;
    if (p >= n) return;
    Record record = ((const Record*)records)[order[p]];
#pragma unroll
    for (int d = 0; d < DIMS; d++) arguments[(unsigned long long)d * n + p] = record.arguments[d];
    places[p] = record.place;
}

// Slots are runs of at most `most` points of one tile.
static __device__ __forceinline__ unsigned slots_of(const unsigned* starts, unsigned tile, unsigned tiles, unsigned most) {
    return tile < tiles ? (starts[tile + 1] - starts[tile] + most - 1) / most : 0;
}

// sums[0][block]: the slots of a block's tiles. sums[1][block]: its tiles that have more than one.
extern "C" __global__ void __launch_bounds__(THREADS)
count_slots(const unsigned* __restrict__ starts, unsigned tiles, unsigned most, unsigned* __restrict__ sums) {
    unsigned slots, runs, own = slots_of(starts, blockIdx.x * THREADS + threadIdx.x, tiles, most);
    sum_before(own, &slots);
    sum_before(own > 1, &runs);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = slots;
        sums[gridDim.x + blockIdx.x] = runs;
    }
}

// Numbers the slots. sums: the slots, and the runs, of the blocks before each block. before[tile]: the slots
// of the tiles before a tile, for 0 … tiles. slot_of[tile]: a tile's first slot, or 2^32 − 1 where it has
// none. runs[…]: the first slot and the number of slots of each tile with more than one.
extern "C" __global__ void __launch_bounds__(THREADS)
number_slots(const unsigned* __restrict__ starts, unsigned tiles, unsigned most, const unsigned* __restrict__ sums,
             unsigned* __restrict__ before, unsigned* __restrict__ slot_of, uint2* __restrict__ runs) {
    unsigned tile = blockIdx.x * THREADS + threadIdx.x, own = slots_of(starts, tile, tiles, most), all;
    unsigned slot = sums[blockIdx.x] + sum_before(own, &all);
    unsigned run = sums[gridDim.x + blockIdx.x] + sum_before(own > 1, &all);
    if (tile >= tiles) return;
    before[tile] = slot;
    slot_of[tile] = own == 0 ? 0xffffffffu : slot;
    if (own > 1) runs[run] = make_uint2(slot, own);
    if (tile + 1 == tiles) before[tiles] = slot + own;
}

// Each slot's tile, first point and number of points: a tile's points in about equal parts.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_slots(const unsigned* __restrict__ starts, const unsigned* __restrict__ before, unsigned tiles, uint4* __restrict__ slots) {
    unsigned slot = blockIdx.x * THREADS + threadIdx.x;
    if (slot >= before[tiles]) return;
    // The last tile with no more slots before it. It has slots of its own: another tile without any has as
    // many before it.
    unsigned low = 0, high = tiles;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (before[middle] <= slot) low = middle + 1;
        else high = middle;
    }
    unsigned tile = low - 1, part = slot - before[tile], parts = before[tile + 1] - before[tile];
    unsigned long long points = starts[tile + 1] - starts[tile];
    unsigned first = (unsigned)(points * part / parts), end = (unsigned)(points * (part + 1) / parts);
    slots[slot] = make_uint4(tile, starts[tile] + first, end - first, 0);
}
