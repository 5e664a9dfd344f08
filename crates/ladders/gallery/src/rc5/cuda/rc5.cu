// RC5-32/12/9 for consecutive keys. Bytes 0 to 3 of a key are the number `upper`, bytes 4 to 8 the 40 bits of
// `lower`, and key i is the i-th after these. A candidate is a key whose ciphertext agrees with `cipher` in
// the first word, as far as `mask` has bits. found[0] counts candidates, and found[1 ...] holds as many as
// there is room for.

#ifndef THREADS
#define THREADS 128
#define TURNS 16
#endif
#define WORDS 26
#define P 0xb7e15163u
#define Q 0x9e3779b9u

struct Block {
    unsigned a, b, cipher, mask;
};

static __device__ __forceinline__ void report(unsigned word, const Block& block, unsigned at, unsigned* found,
                                              unsigned room) {
    if (((word ^ block.cipher) & block.mask) != 0) return;
    const unsigned to = 1 + atomicAdd(&found[0], 1u);
    if (to < room) found[to] = at;
}

static __device__ __forceinline__ unsigned swap_bytes(unsigned word) { return __byte_perm(word, 0, 0x0123); }

// The words of key `at` as the cipher reads its bytes: the lowest first.
static __device__ __forceinline__ void words(unsigned long long upper, unsigned long long lower, unsigned at, unsigned* l) {
    lower += at;
    l[0] = swap_bytes((unsigned)(upper + (lower >> 40)));
    l[1] = swap_bytes((unsigned)(lower >> 8));
    l[2] = (unsigned)lower & 255;
}

// A shift by 32 or more has no meaning in C.
static __device__ __forceinline__ unsigned shifted(unsigned word, unsigned by) {
    return word << (by & 31) | word >> (-by & 31);
}

// A key a thread, as the definition has it. The places of words are known only as it runs, so that they lie
// in memory.
extern "C" __global__ void __launch_bounds__(1024)
naive(unsigned upper, unsigned long long lower, unsigned keys, unsigned plain_a, unsigned plain_b, unsigned cipher,
      unsigned mask, unsigned* found, unsigned room) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= keys) return;
    unsigned s[WORDS], l[3], a = 0, b = 0;
    words(upper, lower, at, l);
    for (int i = 0; i < WORDS; i++) s[i] = P + Q * i;
    int i = 0, j = 0;
#pragma unroll 1
    for (int step = 0; step < 3 * WORDS; step++) {
        a = s[i] = shifted(s[i] + a + b, 3);
        b = l[j] = shifted(l[j] + a + b, a + b);
        i = (i + 1) % WORDS;
        j = (j + 1) % 3;
    }
    a = plain_a + s[0];
    b = plain_b + s[1];
#pragma unroll 1
    for (int i = 2; i < WORDS; i += 2) {
        a = shifted(a ^ b, b) + s[i];
        b = shifted(b ^ a, a) + s[i + 1];
    }
    const Block block = {plain_a, plain_b, cipher, mask};
    report(a, block, at, found, room);
}

// One instruction on a GPU: it shifts a word that is joined with itself.
static __device__ __forceinline__ unsigned rotated(unsigned word, unsigned by) { return __funnelshift_l(word, word, by); }

// A step of the schedule.
static __device__ __forceinline__ void mix(unsigned& s, unsigned& l, unsigned& a, unsigned& b) {
    a = s = rotated(s + a + b, 3);
    const unsigned by = a + b;
    b = l = rotated(l + by, by);
}

// The first word of the ciphertext, from step FROM of the schedule on. All loops are unrolled, so that every
// word has a register, and what the first word does not need is left out by the compiler: the last word of
// the schedule and half of the last round.
template <int FROM>
static __device__ __forceinline__ unsigned first_word(unsigned (&s)[WORDS], unsigned (&l)[3], unsigned a, unsigned b,
                                                      const Block& block) {
#pragma unroll
    for (int step = FROM; step < 3 * WORDS; step++) mix(s[step % WORDS], l[step % 3], a, b);
    a = block.a + s[0];
    b = block.b + s[1];
#pragma unroll
    for (int i = 2; i < WORDS; i += 2) {
        a = rotated(a ^ b, b) + s[i];
        b = rotated(b ^ a, a) + s[i + 1];
    }
    return a;
}

extern "C" __global__ void __launch_bounds__(1024)
registers(unsigned upper, unsigned long long lower, unsigned keys, unsigned plain_a, unsigned plain_b, unsigned cipher,
          unsigned mask, unsigned* found, unsigned room) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= keys) return;
    const Block block = {plain_a, plain_b, cipher, mask};
    unsigned s[WORDS], l[3];
    words(upper, lower, at, l);
#pragma unroll
    for (int i = 0; i < WORDS; i++) s[i] = P + Q * i;
    report(first_word<0>(s, l, 0, 0, block), block, at, found, room);
}

// Keys that share their first eight bytes share the first two steps of the schedule. A thread makes these
// once and tries TURNS keys of such a group of 256.
extern "C" __global__ void __launch_bounds__(THREADS)
several(unsigned upper, unsigned long long lower, unsigned keys, unsigned plain_a, unsigned plain_b, unsigned cipher,
        unsigned mask, unsigned* found, unsigned room) {
    // Groups begin where the last byte is 0, at or before the first key.
    const unsigned before = (unsigned)lower & 255;
    const unsigned long long first = ((unsigned long long)blockIdx.x * THREADS + threadIdx.x) * TURNS;
    if (first >= (unsigned long long)keys + before || first + TURNS <= before) return;
    const Block block = {plain_a, plain_b, cipher, mask};
    unsigned key[3], s0 = P, s1 = P + Q, a = 0, b = 0;
    words(upper, lower - before, (unsigned)first, key);
    mix(s0, key[0], a, b);
    mix(s1, key[1], a, b);
#pragma unroll 1
    for (unsigned turn = 0; turn < TURNS; turn++) {
        unsigned s[WORDS] = {s0, s1}, l[3] = {key[0], key[1], key[2] + turn};
#pragma unroll
        for (int i = 2; i < WORDS; i++) s[i] = P + Q * i;
        const unsigned word = first_word<2>(s, l, a, b, block);
        // Before the first key this wraps to a large number.
        const unsigned at = (unsigned)first + turn - before;
        if (at < keys) report(word, block, at, found, room);
    }
}
