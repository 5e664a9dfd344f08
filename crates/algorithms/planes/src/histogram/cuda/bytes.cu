// Counts of 8 bits that stop at 255, four in a word of 32 bits: bin b is byte b % 4 of word b / 4, in shared
// memory and in the row that a block stores.
//
// An addition of 1 to a byte that holds 255 would carry into the next bin, and two lanes may find 254 at the
// same time. So a word changes only by a comparison with what its lane has read: where another lane was
// first, the lane reads and tests again.

static __device__ __forceinline__ void count_byte(unsigned* words, unsigned v, unsigned bins) {
    if (v >= bins) return;
    unsigned* const word = &words[v / 4];
    const unsigned place = v % 4 * 8;
    unsigned seen = *(volatile unsigned*)word;
    while ((seen >> place & 255u) != 255u) {
        const unsigned before = atomicCAS(word, seen, seen + (1u << place));
        if (before == seen) return;
        seen = before;
    }
}

// `parts`: a row of (bins + 3) / 4 words for every block. Twelve samples of a thread are on their way at
// once; what lies beyond the last counts as a value that no bin has.
extern "C" __global__ void count_bytes(const unsigned* __restrict__ samples, size_t n, unsigned bins, unsigned* parts) {
    extern __shared__ unsigned words[];
    const unsigned each = (bins + 3) / 4;
    for (unsigned w = threadIdx.x; w < each; w += blockDim.x) words[w] = 0;
    __syncthreads();
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 12 * stride) {
        unsigned v[12];
#pragma unroll
        for (int k = 0; k < 12; k++) {
            const size_t at = i + k * stride;
            v[k] = at < n ? samples[at] : 0xffffffffu;
        }
#pragma unroll
        for (int k = 0; k < 12; k++) count_byte(words, v[k], bins);
    }
    __syncthreads();
    for (unsigned w = threadIdx.x; w < each; w += blockDim.x) parts[(size_t)blockIdx.x * each + w] = words[w];
}

// A thread a word: where a block's byte has stopped at 255 the sum is at least that, too.
extern "C" __global__ void add_bytes(unsigned rows, unsigned bins, const unsigned* __restrict__ parts, unsigned char* bytes) {
    const unsigned w = blockIdx.x * blockDim.x + threadIdx.x, each = (bins + 3) / 4;
    if (w >= each) return;
    unsigned counts[4] = {0, 0, 0, 0};
    for (unsigned row = 0; row < rows; row++) {
        const unsigned word = parts[(size_t)row * each + w];
#pragma unroll
        for (int k = 0; k < 4; k++) counts[k] += word >> 8 * k & 255u;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (4 * w + k < bins) bytes[4 * w + k] = (unsigned char)min(counts[k], 255u);
    }
}
