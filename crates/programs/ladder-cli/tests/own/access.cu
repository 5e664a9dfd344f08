// A thread a word.
extern "C" __global__ void access_copy(const unsigned* in, unsigned* out, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

extern "C" __global__ void access_records(const unsigned* rows, const unsigned* columns, const unsigned* padded, unsigned* out, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned sum = 0;
    for (int f = 0; f < 30; f++) sum += columns[f * n + i];
    out[i] = sum;
}

extern "C" __global__ void access_line(const float* table, cudaTextureObject_t texture, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned m = 2654435761u * i, p = (m ^ (m >> 15)) % 1048320;
    float a = p % 256 / 256.0f;
    out[i] = (1 - a) * table[p / 256] + a * table[p / 256 + 1];
}
