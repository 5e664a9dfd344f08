// A thread a number, which makes the whole block of four for it.
__device__ unsigned word(unsigned long long i, unsigned long long stream, unsigned long long seed) {
    unsigned long long block = i / 4;
    unsigned w[4] = {(unsigned)block, (unsigned)(block >> 32), (unsigned)stream, (unsigned)(stream >> 32)};
    unsigned k[2] = {(unsigned)seed, (unsigned)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        unsigned long long p = 0xD2511F53ull * w[0], q = 0xCD9E8D57ull * w[2];
        unsigned next[4] = {(unsigned)(q >> 32) ^ w[1] ^ k[0], (unsigned)q, (unsigned)(p >> 32) ^ w[3] ^ k[1], (unsigned)p};
        for (int j = 0; j < 4; j++) w[j] = next[j];
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    return w[i % 4];
}

extern "C" __global__ void random_uniform(float* out, unsigned long long n, unsigned long long stream, unsigned long long seed) {
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (word(i, stream, seed) >> 8) / 16777216.0f;
}

extern "C" __global__ void random_bits(unsigned* out, unsigned long long n, unsigned long long stream, unsigned long long seed) {
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = word(i, stream, seed);
}
