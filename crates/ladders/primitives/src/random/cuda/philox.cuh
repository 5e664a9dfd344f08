// Philox4x32-10 and what is made of its words. Every operation is rounded as written, so that the CPU's
// numbers are the same bits: the functions of draw.rs, line by line.

// Lower and upper half of a product. As one number of 64 bits the compiler would add nothing to its upper
// half.
static __device__ __forceinline__ uint2 product(unsigned a, unsigned b) { return make_uint2(a * b, __umulhi(a, b)); }

// What the rounds add to a key: two words each.
struct Keys {
    unsigned words[20];
};

static __device__ __forceinline__ Keys keys_of(size_t seed) {
    Keys keys;
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        keys.words[2 * round] = k0;
        keys.words[2 * round + 1] = k1;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return keys;
}

// Block `block` of a stream: four words of 32 bits.
static __device__ __forceinline__ uint4 philox(size_t block, size_t stream, const Keys& keys) {
    unsigned c0 = (unsigned)block, c1 = (unsigned)(block >> 32), c2 = (unsigned)stream, c3 = (unsigned)(stream >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint2 a = product(0xD2511F53u, c0), b = product(0xCD9E8D57u, c2);
        c0 = b.y ^ c1 ^ keys.words[2 * round];
        c2 = a.y ^ c3 ^ keys.words[2 * round + 1];
        c1 = b.x;
        c3 = a.x;
    }
    return make_uint4(c0, c1, c2, c3);
}

static __device__ __forceinline__ uint4 philox(size_t block, size_t stream, size_t seed) {
    return philox(block, stream, keys_of(seed));
}

// How many of the blocks `block`, `block` + stride, ... below `end` have the same upper half: what of a round
// it alone decides is made once for all of them.
static __device__ __forceinline__ unsigned alike(size_t block, size_t end, size_t stride) {
    const size_t next = ((block >> 32) + 1) << 32, left = (next != 0 && next < end ? next : end) - block - 1;
    // The quotient takes as long as a block of the stream.
    return left < stride ? 1 : (unsigned)(left / stride + 1);
}

// A state is the next counter of a thread.
extern "C" __global__ void initialise(size_t stream, uint4* __restrict__ states, unsigned threads) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < threads) states[t] = make_uint4(t, 0, (unsigned)stream, (unsigned)(stream >> 32));
}
