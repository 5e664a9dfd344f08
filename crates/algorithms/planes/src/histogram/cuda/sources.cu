// One step of the lab journal after the other. `wide` holds 32-bit counts, those that cannot be lost; the
// result goes to `bytes` where it stops at 255, else to `words`. Samples of `bins` or more are not counted.

static __device__ __forceinline__ void give(unsigned char* bytes, unsigned* words, unsigned limit, unsigned bin, unsigned count) {
    if (limit == 255) {
        bytes[bin] = (unsigned char)count;
    } else {
        words[bin] = count;
    }
}

// A bin that is full is not added to. Several threads may find it one short of that at once: a count of 32
// bits then passes the limit, and is clamped at the end.
static __device__ __forceinline__ void count_tested(unsigned* counts, unsigned v, unsigned bins, unsigned limit) {
    if (v < bins && *(volatile unsigned*)&counts[v] < limit) atomicAdd(&counts[v], 1u);
}

extern "C" __global__ void one_thread(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit,
                                      unsigned* __restrict__ wide, unsigned char* bytes, unsigned* words) {
    for (unsigned b = 0; b < bins; b++) wide[b] = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned v = samples[i];
        if (v < bins && wide[v] < limit) wide[v]++;
    }
    for (unsigned b = 0; b < bins; b++) give(bytes, words, limit, b, wide[b]);
}

static __device__ __forceinline__ void clear_by_block(unsigned* counts, unsigned bins) {
    for (unsigned b = threadIdx.x; b < bins; b += blockDim.x) counts[b] = 0;
    __syncthreads();
}

static __device__ __forceinline__ void give_by_block(const unsigned* counts, unsigned bins, unsigned limit, unsigned char* bytes,
                                                     unsigned* words) {
    __syncthreads();
    for (unsigned b = threadIdx.x; b < bins; b += blockDim.x) {
        unsigned count = counts[b];
        if (count > limit) count = limit;
        give(bytes, words, limit, b, count);
    }
}

extern "C" __global__ void one_block(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit, unsigned* wide,
                                     unsigned char* bytes, unsigned* words) {
    clear_by_block(wide, bins);
    const size_t each = (n + blockDim.x - 1) / blockDim.x, first = each * threadIdx.x;
    for (size_t i = first; i < first + each && i < n; i++) {
        count_tested(wide, samples[i], bins, limit);
    }
    give_by_block(wide, bins, limit, bytes, words);
}

extern "C" __global__ void interleaved(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit, unsigned* wide,
                                       unsigned char* bytes, unsigned* words) {
    clear_by_block(wide, bins);
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        count_tested(wide, samples[i], bins, limit);
    }
    give_by_block(wide, bins, limit, bytes, words);
}

extern "C" __global__ void in_shared(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit,
                                     unsigned char* bytes, unsigned* words) {
    extern __shared__ unsigned counts[];
    clear_by_block(counts, bins);
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        count_tested(counts, samples[i], bins, limit);
    }
    give_by_block(counts, bins, limit, bytes, words);
}

extern "C" __global__ void clear(unsigned bins, unsigned* wide) {
    const unsigned b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < bins) wide[b] = 0;
}

static __device__ __forceinline__ void add_to_all(const unsigned* counts, unsigned bins, unsigned* wide) {
    __syncthreads();
    for (unsigned b = threadIdx.x; b < bins; b += blockDim.x) {
        if (counts[b]) atomicAdd(&wide[b], counts[b]);
    }
}

// The same where the bin of all blocks is not full yet.
static __device__ __forceinline__ void add_where_not_full(const unsigned* counts, unsigned bins, unsigned limit, unsigned* wide) {
    __syncthreads();
    for (unsigned b = threadIdx.x; b < bins; b += blockDim.x) {
        if (counts[b] && *(volatile unsigned*)&wide[b] < limit) atomicAdd(&wide[b], counts[b]);
    }
}

extern "C" __global__ void many_blocks(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit,
                                       unsigned* wide) {
    extern __shared__ unsigned counts[];
    clear_by_block(counts, bins);
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        count_tested(counts, samples[i], bins, limit);
    }
    add_to_all(counts, bins, wide);
}

extern "C" __global__ void clamp_by_branch(unsigned bins, unsigned limit, const unsigned* __restrict__ wide, unsigned char* bytes,
                                           unsigned* words) {
    const unsigned b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= bins) return;
    if (wide[b] > limit) {
        give(bytes, words, limit, b, limit);
    } else {
        give(bytes, words, limit, b, wide[b]);
    }
}

extern "C" __global__ void clamp_by_min(unsigned bins, unsigned limit, const unsigned* __restrict__ wide, unsigned char* bytes,
                                        unsigned* words) {
    const unsigned b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < bins) give(bytes, words, limit, b, min(wide[b], limit));
}

// UNROLL samples of a thread are loaded before the first is counted; what lies beyond the last counts as a
// value that no bin has.
template <int UNROLL>
static __device__ __forceinline__ void count_unrolled(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit,
                                                      unsigned* counts) {
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += UNROLL * stride) {
        unsigned v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const size_t at = i + k * stride;
            v[k] = at < n ? samples[at] : 0xffffffffu;
        }
#pragma unroll
        for (int k = 0; k < UNROLL; k++) count_tested(counts, v[k], bins, limit);
    }
}

extern "C" __global__ void tested(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit, unsigned* wide) {
    extern __shared__ unsigned counts[];
    clear_by_block(counts, bins);
    count_unrolled<1>(samples, n, bins, limit, counts);
    add_where_not_full(counts, bins, limit, wide);
}

extern "C" __global__ void unrolled_4(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit, unsigned* wide) {
    extern __shared__ unsigned counts[];
    clear_by_block(counts, bins);
    count_unrolled<4>(samples, n, bins, limit, counts);
    add_where_not_full(counts, bins, limit, wide);
}

extern "C" __global__ void unrolled_12(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit,
                                       unsigned* wide) {
    extern __shared__ unsigned counts[];
    clear_by_block(counts, bins);
    count_unrolled<12>(samples, n, bins, limit, counts);
    add_where_not_full(counts, bins, limit, wide);
}

// `parts`: a row of `bins` for every block.
static __device__ __forceinline__ void store_row(const unsigned* counts, unsigned bins, unsigned* parts) {
    __syncthreads();
    for (unsigned b = threadIdx.x; b < bins; b += blockDim.x) parts[(size_t)blockIdx.x * bins + b] = counts[b];
}

extern "C" __global__ void stored(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit, unsigned* parts) {
    extern __shared__ unsigned counts[];
    clear_by_block(counts, bins);
    count_unrolled<12>(samples, n, bins, limit, counts);
    store_row(counts, bins, parts);
}

extern "C" __global__ void stored_wide(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned limit,
                                       unsigned* parts) {
    extern __shared__ unsigned counts[];
    clear_by_block(counts, bins);
    const size_t stride = (size_t)gridDim.x * blockDim.x, first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint4* __restrict__ quads = (const uint4*)samples;
    for (size_t q = first; q < n / 4; q += stride) {
        const uint4 v = quads[q];
        count_tested(counts, v.x, bins, limit);
        count_tested(counts, v.y, bins, limit);
        count_tested(counts, v.z, bins, limit);
        count_tested(counts, v.w, bins, limit);
    }
    for (size_t i = n / 4 * 4 + first; i < n; i += stride) count_tested(counts, samples[i], bins, limit);
    store_row(counts, bins, parts);
}

extern "C" __global__ void second_pass(unsigned rows, unsigned bins, unsigned limit, const unsigned* __restrict__ parts,
                                       unsigned char* bytes, unsigned* words) {
    const unsigned b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= bins) return;
    unsigned count = 0;
    for (unsigned row = 0; row < rows; row++) count += parts[(size_t)row * bins + b];
    give(bytes, words, limit, b, min(count, limit));
}
