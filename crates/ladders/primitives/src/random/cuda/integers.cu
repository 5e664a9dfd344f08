// KIND: 0 the words themselves, 1 Poisson numbers by a table in shared memory, 2 by one that stays where it
// is. Four of a block.

#ifndef KIND
#define KIND 0
#endif

// `columns` has a column of the alias table for each value of a word's upper bits. x is the upper half of its
// threshold. The lower half of y is the number for words below the threshold, the upper half the number for
// other words, both less `first`.
struct Law {
    const uint2* columns;
    // The same as 64-bit numbers, and after them the lower halves of the thresholds.
    const size_t* table;
    unsigned bits, first;
};

static __device__ __forceinline__ uint2 column(unsigned word, Law law) { return law.columns[word >> (32 - law.bits)]; }

static __device__ __forceinline__ unsigned number(unsigned word, uint2 column, Law law) {
    return law.first + __byte_perm(column.y, 0, word < column.x ? 0x4410 : 0x4432);
}

static __device__ __noinline__ uint4 lower_halves(size_t block, size_t stream, size_t seed) {
    return philox(block | 1ull << 63, stream, seed);
}

// The number of 64 bits.
static __device__ __forceinline__ unsigned decide(unsigned word, unsigned lower, Law law) {
    const size_t column = word >> (32 - law.bits), values = law.table[column] >> 32;
    const bool below = ((size_t)word << 32 | lower) < (law.table[column] << 32 | law.table[((size_t)1 << law.bits) + column]);
    return law.first + (unsigned)(below ? values & 0xffffu : values >> 16);
}

static __device__ __forceinline__ uint4 make(size_t block, size_t seed, size_t stream, Law law) {
    const uint4 w = philox(block, stream, seed);
    if (KIND == 0) return w;
    const uint2 c0 = column(w.x, law), c1 = column(w.y, law), c2 = column(w.z, law), c3 = column(w.w, law);
    // A word at the upper half of a threshold, as happens once in millions, is the upper half of 64 bits,
    // whose lower half is the same word of a block that no array reaches. All four are asked at once: a
    // branch for each would wait for each load by itself.
    if ((w.x == c0.x) | (w.y == c1.x) | (w.z == c2.x) | (w.w == c3.x)) {
        const uint4 lower = lower_halves(block, stream, seed);
        return make_uint4(decide(w.x, lower.x, law), decide(w.y, lower.y, law), decide(w.z, lower.z, law), decide(w.w, lower.w, law));
    }
    return make_uint4(number(w.x, c0, law), number(w.y, c1, law), number(w.z, c2, law), number(w.w, c3, law));
}

static __device__ __forceinline__ void give(unsigned* __restrict__ out, size_t n, size_t block, uint4 w) {
    const size_t at = 4 * block;
    if (at + 4 <= n) {
        *(uint4*)(out + at) = w;
    } else {
        if (at < n) out[at] = w.x;
        if (at + 1 < n) out[at + 1] = w.y;
        if (at + 2 < n) out[at + 2] = w.z;
    }
}

// The law, with its table copied to shared memory where KIND is 1. Every thread of a block has to come here.
static __device__ __forceinline__ Law prepare(const size_t* __restrict__ table, unsigned bits, unsigned first) {
    Law law = {(const uint2*)table, table, bits, first};
#if KIND == 1
    extern __shared__ uint2 copied[];
    for (unsigned i = threadIdx.x; i < 1u << bits; i += blockDim.x) copied[i] = law.columns[i];
    __syncthreads();
    law.columns = copied;
#endif
    return law;
}

extern "C" __global__ void __launch_bounds__(1024)
    fill(size_t seed, size_t stream, const size_t* __restrict__ table, unsigned bits, unsigned first, unsigned* __restrict__ out,
         size_t n) {
    const Law law = prepare(table, bits, first);
    const size_t whole = n / 4;
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t block = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    while (block < whole) {
        const size_t upper = block & ~0xffffffffull;
        const unsigned steps = alike(block, whole, stride);
        uint4* to = (uint4*)out + block;
        unsigned lower = (unsigned)block;
        for (unsigned step = 0; step < steps; step++, to += stride, lower += (unsigned)stride) *to = make(upper | lower, seed, stream, law);
        block += steps * stride;
    }
    if (block == whole) give(out, n, block, make(block, seed, stream, law));
}

extern "C" __global__ void __launch_bounds__(1024)
    from_states(uint4* __restrict__ states, unsigned threads, size_t seed, const size_t* __restrict__ table, unsigned bits,
                unsigned first, unsigned* __restrict__ out, size_t n) {
    const Law law = prepare(table, bits, first);
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    const uint4 state = states[t];
    size_t next = (size_t)state.y << 32 | state.x;
    const size_t blocks = (n + 3) / 4, stream = (size_t)state.w << 32 | state.z;
    for (; next < blocks; next += threads) give(out, n, next, make(next, seed, stream, law));
    states[t] = make_uint4((unsigned)next, (unsigned)(next >> 32), state.z, state.w);
}
