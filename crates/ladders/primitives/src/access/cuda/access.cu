// What a pattern of accesses costs. All values are 32-bit words, so that results are exact.

#define THIS ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x)

// Every word once, with no division: blockIdx.y is the place within a line of `stride` words. What does not
// fill a line stays where it is.
extern "C" __global__ void stride(const unsigned* __restrict__ in, unsigned* __restrict__ out, unsigned long long n,
                                  unsigned long long lines, unsigned long long stride) {
    const unsigned long long line = THIS, place = blockIdx.y;
    if (place < stride) {
        if (line < lines) out[place * lines + line] = in[line * stride + place];
    } else if (stride * lines + line < n) {
        out[stride * lines + line] = in[stride * lines + line];
    }
}

extern "C" __global__ void offset(const unsigned* __restrict__ in, unsigned* __restrict__ out, unsigned long long n,
                                  unsigned long long by) {
    const unsigned long long i = THIS;
    if (i < n) out[i] = in[i + by < n ? i + by : i + by - n];
}

// Within each segment of a power of two of words the neighbours are 5 apart.
extern "C" __global__ void permuted(const unsigned* __restrict__ in, unsigned* __restrict__ out, unsigned long long n,
                                    unsigned long long segment) {
    const unsigned long long i = THIS, first = i & ~(segment - 1);
    if (i < n) out[i] = in[first + segment <= n ? first + ((i - first) * 5 & (segment - 1)) : i];
}

extern "C" __global__ void indexed(const unsigned* __restrict__ in, const unsigned* __restrict__ index,
                                   unsigned* __restrict__ out, unsigned long long n) {
    const unsigned long long i = THIS;
    if (i < n) out[i] = in[index[i]];
}

// A thread a record: the sum of `fields` of its words, which are `next` apart, records `record` apart.
extern "C" __global__ void records(const unsigned* __restrict__ in, unsigned* __restrict__ out, unsigned long long n,
                                   unsigned long long record, unsigned long long next, int fields) {
    const unsigned long long i = THIS;
    if (i >= n) return;
    unsigned sum = 0;
    for (int f = 0; f < fields; f++) sum += in[i * record + f * next];
    out[i] = sum;
}

// 16 times 16 reads a thread of what lies `stride` elements from its neighbour's, from 16 KB that repeat
// their beginning.
#define READS 16
#define WORDS 4096
static __device__ __forceinline__ unsigned word(unsigned at) { return at % WORDS * 2654435761u >> 8; }
static __device__ __forceinline__ unsigned value(unsigned char v) { return v; }
static __device__ __forceinline__ unsigned value(unsigned v) { return v; }
static __device__ __forceinline__ unsigned value(uint2 v) { return v.x + v.y; }
static __device__ __forceinline__ unsigned value(uint4 v) { return v.x + v.y + v.z + v.w; }

template <class T>
static __device__ __forceinline__ unsigned reads(const T* tile, unsigned stride) {
    constexpr unsigned LENGTH = WORDS * 4 / sizeof(T);
    unsigned sum = 0;
    for (unsigned o = 0; o < READS; o++) {
        const T* at = tile + (threadIdx.x * stride + o * READS) % LENGTH;
#pragma unroll
        for (int u = 0; u < READS; u++) sum += value(at[u]);
    }
    return sum;
}

extern "C" __global__ void banks(unsigned* __restrict__ out, unsigned long long n, unsigned stride, int width) {
    __shared__ __align__(16) unsigned tile[WORDS + 4 * READS];
    for (unsigned i = threadIdx.x; i < WORDS + 4 * READS; i += blockDim.x) tile[i] = word(i);
    __syncthreads();
    unsigned sum;
    switch (width) {
        case 1: sum = reads((const unsigned char*)tile, stride); break;
        case 4: sum = reads(tile, stride); break;
        case 8: sum = reads((const uint2*)tile, stride); break;
        default: sum = reads((const uint4*)tile, stride);
    }
    if (THIS < n) out[THIS] = sum;
}

__constant__ unsigned constants[WORDS + READS];

extern "C" __global__ void constant_memory(unsigned* __restrict__ out, unsigned long long n, unsigned stride) {
    const unsigned sum = reads(constants, stride);
    if (THIS < n) out[THIS] = sum;
}

extern "C" __global__ void global_memory(const unsigned* __restrict__ in, unsigned* __restrict__ out,
                                         unsigned long long n,
                                         unsigned stride) {
    const unsigned sum = reads(in, stride);
    if (THIS < n) out[THIS] = sum;
}
