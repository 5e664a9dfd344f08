// One kernel: a private histogram of each block in shared memory, added to the counts of all; the block that
// ends last gives the result and leaves the counts at zero for the next run. UNROLL: 16-byte loads of a
// thread that are on their way at once. SAMPLE: the unsigned type of a sample.
//
// `wide`: a count for each bin and the number of blocks that have ended, all zero.

#ifndef UNROLL
#define UNROLL 2
#endif
#ifndef SAMPLE
#define SAMPLE unsigned
#endif

// Samples of a 16-byte load, and the bits of one.
constexpr unsigned OF_A_LOAD = 16 / sizeof(SAMPLE), BITS = 8 * sizeof(SAMPLE);

// A value that no bin has.
constexpr unsigned NONE = 0xffffffffu;

extern __shared__ unsigned memory[];

// How a sample is counted. A bin has 2^shift words in a row, the lane's own first, so that lanes meet neither
// in a word nor, with 32 of them, in a bank.
struct Each {
    unsigned bins, shift, copy;
    __device__ void operator()(unsigned v) {
        if (v < bins) atomicAdd(&memory[(v << shift) + copy], 1u);
    }
    __device__ void end() {}
};

// Equal neighbours are added at once.
struct Runs {
    unsigned bins, shift, copy, value, length;
    __device__ void operator()(unsigned v) {
        if (v != value) {
            end();
            value = v;
            length = 0;
        }
        length++;
    }
    __device__ void end() {
        if (value < bins) atomicAdd(&memory[(value << shift) + copy], length);
    }
};

// Two bins in a word, 16 bits each: the caller sees to it that no word counts 65536.
struct Packed {
    unsigned bins, shift, copy, value, length;
    __device__ void operator()(unsigned v) {
        if (v != value) {
            end();
            value = v;
            length = 0;
        }
        length++;
    }
    __device__ void end() {
        if (value < bins) atomicAdd(&memory[(value >> 1 << shift) + copy], length << (value & 1) * 16);
    }
};

// Lanes with equal values are counted by the first of them.
struct Matched {
    unsigned bins, shift, copy;
    __device__ void operator()(unsigned v) {
        const unsigned same = __match_any_sync(0xffffffffu, v);
        if (v < bins && (unsigned)__ffs((int)same) - 1 == threadIdx.x % 32) {
            atomicAdd(&memory[(v << shift) + copy], (unsigned)__popc(same));
        }
    }
    __device__ void end() {}
};

// Counts that stop at 255 are read before they are added to: most samples find theirs full, and reads of one
// word are one read.
struct Tested {
    unsigned bins, shift, copy;
    __device__ void operator()(unsigned v) {
        if (v >= bins) return;
        unsigned* at = &memory[(v << shift) + copy];
        if (*(volatile unsigned*)at < 255u) atomicAdd(at, 1u);
    }
    __device__ void end() {}
};

static __device__ __forceinline__ void load(const SAMPLE* __restrict__ samples, size_t loads, size_t from, size_t stride,
                                            uint4* v) {
#pragma unroll
    for (int k = 0; k < UNROLL; k++) {
        const size_t at = from + k * stride;
        v[k] = at < loads ? __ldcs((const uint4*)samples + at) : make_uint4(NONE, NONE, NONE, NONE);
    }
}

// The samples of a word, if it was loaded: narrow samples may have the value that others have as none.
template <class Count>
static __device__ __forceinline__ void count_word(Count& count, unsigned word, bool loaded) {
    if (BITS == 32) {
        count(word);
    } else {
#pragma unroll
        for (unsigned bit = 0; bit < 32; bit += BITS) count(loaded ? word >> bit & 0xffffffffu >> (32 - BITS) : NONE);
    }
}

template <class Count>
static __device__ __forceinline__ void count_all(Count count, const SAMPLE* __restrict__ samples, size_t n, unsigned words) {
    const size_t loads = n / OF_A_LOAD, stride = (size_t)gridDim.x * blockDim.x;
    const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    // The first samples are on their way while the words are cleared.
    uint4 v[UNROLL], next[UNROLL];
    load(samples, loads, first, stride, v);
    for (unsigned w = threadIdx.x; w < words; w += blockDim.x) memory[w] = 0;
    __syncthreads();
    // All threads of a block make as many turns, so that warps are whole.
    for (size_t q = (size_t)blockIdx.x * blockDim.x; q < loads; q += UNROLL * stride) {
        load(samples, loads, q + threadIdx.x + UNROLL * stride, stride, next);
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const bool loaded = BITS == 32 || q + threadIdx.x + k * stride < loads;
            count_word(count, v[k].x, loaded);
            count_word(count, v[k].y, loaded);
            count_word(count, v[k].z, loaded);
            count_word(count, v[k].w, loaded);
        }
#pragma unroll
        for (int k = 0; k < UNROLL; k++) v[k] = next[k];
    }
    if (blockIdx.x == 0 && threadIdx.x < 32) {
        const size_t at = loads * OF_A_LOAD + threadIdx.x;
        count(at < n ? (unsigned)samples[at] : NONE);
    }
    count.end();
    __syncthreads();
}

template <bool PACKED>
static __device__ __forceinline__ void add_to_all(unsigned bins, unsigned shift, unsigned* wide) {
    const unsigned copies = 1u << shift;
    // Blocks begin apart, so that they do not queue for the same counts.
    const unsigned apart = blockIdx.x * 32 % bins;
    for (unsigned i = threadIdx.x; i < bins; i += blockDim.x) {
        const unsigned b = i + apart < bins ? i + apart : i + apart - bins;
        const unsigned row = PACKED ? b >> 1 : b;
        unsigned count = 0;
        for (unsigned k = 0; k < copies; k++) {
            // Lanes read from different banks: their rows together are 32 words or several times that.
            const unsigned word = memory[(row << shift) + (((row << shift >> 5) + k) & (copies - 1))];
            count += PACKED ? word >> (b & 1) * 16 & 0xffffu : word;
        }
        if (count) atomicAdd(&wide[b], count);
    }
}

extern "C" __global__ void __launch_bounds__(1024) each(const SAMPLE* __restrict__ samples, size_t n, unsigned bins, unsigned shift,
                                                       unsigned limit, unsigned* wide, unsigned char* bytes, unsigned* words) {
    count_all(Each{bins, shift, threadIdx.x & ((1u << shift) - 1)}, samples, n, bins << shift);
    add_to_all<false>(bins, shift, wide);
    last_gives(bins, limit, wide, bytes, words);
}

extern "C" __global__ void __launch_bounds__(1024) runs(const SAMPLE* __restrict__ samples, size_t n, unsigned bins, unsigned shift,
                                                       unsigned limit, unsigned* wide, unsigned char* bytes, unsigned* words) {
    count_all(Runs{bins, shift, threadIdx.x & ((1u << shift) - 1), NONE, 0}, samples, n, bins << shift);
    add_to_all<false>(bins, shift, wide);
    last_gives(bins, limit, wide, bytes, words);
}

extern "C" __global__ void __launch_bounds__(1024) packed(const SAMPLE* __restrict__ samples, size_t n, unsigned bins,
                                                         unsigned shift, unsigned limit, unsigned* wide, unsigned char* bytes,
                                                         unsigned* words) {
    count_all(Packed{bins, shift, threadIdx.x & ((1u << shift) - 1), NONE, 0}, samples, n, (bins + 1) / 2 << shift);
    add_to_all<true>(bins, shift, wide);
    last_gives(bins, limit, wide, bytes, words);
}

extern "C" __global__ void __launch_bounds__(1024) matched(const SAMPLE* __restrict__ samples, size_t n, unsigned bins,
                                                          unsigned shift, unsigned limit, unsigned* wide, unsigned char* bytes,
                                                          unsigned* words) {
    count_all(Matched{bins, shift, 0}, samples, n, bins << shift);
    add_to_all<false>(bins, shift, wide);
    last_gives(bins, limit, wide, bytes, words);
}

extern "C" __global__ void __launch_bounds__(1024) tested_one_pass(const SAMPLE* __restrict__ samples, size_t n, unsigned bins,
                                                                  unsigned shift, unsigned* wide, unsigned char* bytes,
                                                                  unsigned* words) {
    count_all(Tested{bins, shift, threadIdx.x & ((1u << shift) - 1)}, samples, n, bins << shift);
    add_to_all<false>(bins, shift, wide);
    last_gives(bins, 255, wide, bytes, words);
}

// Counts in the device's memory, for more bins than shared memory holds.
extern "C" __global__ void __launch_bounds__(1024) everywhere(const SAMPLE* __restrict__ samples, size_t n, unsigned bins,
                                                             unsigned limit, unsigned* wide, unsigned char* bytes, unsigned* words) {
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const unsigned v = samples[i];
        if (v < bins) atomicAdd(&wide[v], 1u);
    }
    last_gives(bins, limit, wide, bytes, words);
}
