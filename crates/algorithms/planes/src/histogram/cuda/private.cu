// Samples of 8 bits: each thread counts in a table of its own, 8 bits a count. Nobody else writes there, so
// no addition is atomic and the time does not depend on the values. Before a count can pass 255 the block
// adds its tables to the counts of all.
//
// The counts of values 4j to 4j + 3 of thread t are the word [j][t]: the lanes of a warp use 32 banks,
// whatever their values are.

#ifndef THREADS
#define THREADS 256
#endif
static_assert(THREADS % 32 == 0 && THREADS <= 256, "sums of a row fit 16 bits");

// 16-byte loads of a thread between two additions, and how many of them are on their way at once.
constexpr int LOADS = 15, AT_ONCE = 5;

extern __shared__ unsigned tables[];

static __device__ __forceinline__ void count_word(unsigned char* mine, unsigned word) {
#pragma unroll
    for (int byte = 0; byte < 4; byte++) {
        const unsigned v = word >> 8 * byte & 255u;
        mine[(v >> 2) * (4 * THREADS) + (v & 3)]++;
    }
}

// A warp takes a row: even and odd bytes of its words are summed in halves of 16 bits.
static __device__ __forceinline__ void add_tables(unsigned bins, unsigned* wide) {
    __syncthreads();
    for (unsigned row = threadIdx.x / 32; row < 64; row += THREADS / 32) {
        unsigned even = 0, odd = 0;
#pragma unroll
        for (unsigned t = threadIdx.x % 32; t < THREADS; t += 32) {
            const unsigned word = tables[row * THREADS + t];
            tables[row * THREADS + t] = 0;
            even += word & 0x00ff00ffu;
            odd += word >> 8 & 0x00ff00ffu;
        }
#pragma unroll
        for (int lane = 16; lane > 0; lane /= 2) {
            even += __shfl_xor_sync(0xffffffffu, even, lane);
            odd += __shfl_xor_sync(0xffffffffu, odd, lane);
        }
        const unsigned lane = threadIdx.x % 32, bin = 4 * row + lane;
        const unsigned count = ((lane & 1) ? odd : even) >> (lane & 2) * 8 & 0xffffu;
        if (lane < 4 && bin < bins && count) atomicAdd(&wide[bin], count);
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS) private_tables(const unsigned char* __restrict__ samples, size_t n, unsigned bins,
                                                                    unsigned limit, unsigned* wide, unsigned char* bytes,
                                                                    unsigned* words) {
    const size_t loads = n / 16, stride = (size_t)gridDim.x * THREADS;
    unsigned char* mine = (unsigned char*)(tables + threadIdx.x);
    for (unsigned w = threadIdx.x; w < 64 * THREADS; w += THREADS) tables[w] = 0;
    __syncthreads();
    for (size_t q = (size_t)blockIdx.x * THREADS; q < loads; q += LOADS * stride) {
        for (int k = 0; k < LOADS; k += AT_ONCE) {
            uint4 v[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const size_t at = q + threadIdx.x + (k + i) * stride;
                if (at < loads) v[i] = __ldcs((const uint4*)samples + at);
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                if (q + threadIdx.x + (k + i) * stride >= loads) break;
                count_word(mine, v[i].x);
                count_word(mine, v[i].y);
                count_word(mine, v[i].z);
                count_word(mine, v[i].w);
            }
        }
        add_tables(bins, wide);
    }
    if (blockIdx.x == 0 && threadIdx.x < n % 16) {
        const unsigned v = samples[16 * loads + threadIdx.x];
        if (v < bins) atomicAdd(&wide[v], 1u);
    }
    last_gives(bins, limit, wide, bytes, words);
}
