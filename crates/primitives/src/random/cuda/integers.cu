// KIND: 0 the words themselves, four of a block; 1 Poisson numbers, two of a block, each from 64 bits.

#ifndef KIND
#define KIND 0
#endif

constexpr unsigned EACH = KIND == 0 ? 4 : 2;

// How many of `table`, which ascends, are not above w.
static __device__ __forceinline__ unsigned found(const size_t* __restrict__ table, unsigned len, size_t w) {
    unsigned low = 0;
    while (len > 0) {
        const unsigned half = len / 2;
        const bool above = __ldg(table + low + half) > w;
        low = above ? low : low + half + 1;
        len = above ? half : len - half - 1;
    }
    return low;
}

static __device__ __forceinline__ void make(size_t block, size_t seed, size_t stream, const size_t* __restrict__ table, unsigned len,
                                            unsigned first, unsigned* __restrict__ out, size_t n) {
    uint4 w = philox(block, stream, seed);
    const size_t at = block * EACH;
    if (KIND == 0) {
        if (at + 4 <= n) {
            *(uint4*)(out + at) = w;
            return;
        }
    } else {
        w.x = first + found(table, len, (size_t)w.y << 32 | w.x);
        w.y = first + found(table, len, (size_t)w.w << 32 | w.z);
        if (at + 2 <= n) {
            *(uint2*)(out + at) = make_uint2(w.x, w.y);
            return;
        }
    }
    if (at < n) out[at] = w.x;
    if (EACH > 2 && at + 1 < n) out[at + 1] = w.y;
    if (EACH > 2 && at + 2 < n) out[at + 2] = w.z;
}

extern "C" __global__ void fill(size_t seed, size_t stream, const size_t* __restrict__ table, unsigned len, unsigned first,
                                unsigned* __restrict__ out, size_t n) {
    const size_t blocks = (n + EACH - 1) / EACH, stride = (size_t)gridDim.x * blockDim.x;
    for (size_t b = (size_t)blockIdx.x * blockDim.x + threadIdx.x; b < blocks; b += stride) {
        make(b, seed, stream, table, len, first, out, n);
    }
}

extern "C" __global__ void initialise(size_t stream, uint4* __restrict__ states, unsigned threads) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < threads) states[t] = make_uint4(t, 0, (unsigned)stream, (unsigned)(stream >> 32));
}

extern "C" __global__ void from_states(uint4* __restrict__ states, unsigned threads, size_t seed, const size_t* __restrict__ table,
                                       unsigned len, unsigned first, unsigned* __restrict__ out, size_t n) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    const uint4 state = states[t];
    size_t next = (size_t)state.y << 32 | state.x;
    const size_t blocks = (n + EACH - 1) / EACH, stream = (size_t)state.w << 32 | state.z;
    for (; next < blocks; next += threads) make(next, seed, stream, table, len, first, out, n);
    states[t] = make_uint4((unsigned)next, (unsigned)(next >> 32), state.z, state.w);
}
