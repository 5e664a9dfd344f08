// Sums of absolute differences between 4 × 4 pixels of a frame and 4 × 4 pixels of a reference frame,
// displaced by −radius … radius. Beyond its edges a frame goes on as its edge.

static __device__ __forceinline__ int inside(int at, int size) { return min(max(at, 0), size - 1); }

// A thread a block of pixels and displacement, bytes from global memory.
extern "C" __global__ void naive(const unsigned char* __restrict__ current, const unsigned char* __restrict__ reference,
                                 unsigned short* __restrict__ sums, int height, int width, int radius) {
    const int side = 2 * radius + 1, across = (width + 3) / 4, down = (height + 3) / 4;
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long long)across * down * side * side) return;
    const int dx = (int)(i % side) - radius, dy = (int)(i / side % side) - radius;
    const long long block = i / side / side;
    const int x = (int)(block % across) * 4, y = (int)(block / across) * 4;
    int sum = 0;
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
            sum += abs((int)current[(long long)inside(y + r, height) * width + inside(x + c, width)] -
                       (int)reference[(long long)inside(y + r + dy, height) * width + inside(x + c + dx, width)]);
    sums[i] = (unsigned short)sum;
}

// The same through textures, whose hardware knows the edge and has a cache of its own.
extern "C" __global__ void textured(cudaTextureObject_t current, cudaTextureObject_t reference,
                                    unsigned short* __restrict__ sums, int height, int width, int radius) {
    const int side = 2 * radius + 1, across = (width + 3) / 4, down = (height + 3) / 4;
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long long)across * down * side * side) return;
    const int dx = (int)(i % side) - radius, dy = (int)(i / side % side) - radius;
    const long long block = i / side / side;
    const int x = (int)(block % across) * 4, y = (int)(block / across) * 4;
    float sum = 0;
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
            sum += fabsf(tex2D<float>(current, x + c + 0.5f, y + r + 0.5f) -
                         tex2D<float>(reference, x + c + dx + 0.5f, y + r + dy + 0.5f));
    // Texels are 255ths.
    sums[i] = (unsigned short)(int)(255.0f * sum + 0.5f);
}

// A thread block takes BLOCKS blocks of pixels side by side. Their part of the reference lies in shared
// memory.
#ifndef BLOCKS
#define BLOCKS 4
#define THREADS 256
#endif

// Bytes of a row of the window: what groups of 4 displacements read, rounded to whole words.
static __device__ __forceinline__ int window_words(int radius) { return (4 * BLOCKS + 2 * radius + 11) / 4; }

static __device__ __forceinline__ void load_window(unsigned* window, const unsigned char* __restrict__ reference, int x,
                                                   int y, int height, int width, int radius) {
    const int words = window_words(radius), rows = 4 + 2 * radius;
    const int left = x - radius;
    const bool whole = left >= 0 && left + 4 * words <= width && left % 4 == 0 && width % 4 == 0;
    for (int i = threadIdx.x; i < words * rows; i += THREADS) {
        const unsigned char* row = reference + (long long)inside(y - radius + i / words, height) * width;
        const int at = left + i % words * 4;
        unsigned word;
        if (whole) {
            word = *(const unsigned*)(row + at);
        } else {
            word = row[inside(at, width)] | row[inside(at + 1, width)] << 8 | row[inside(at + 2, width)] << 16 |
                   (unsigned)row[inside(at + 3, width)] << 24;
        }
        window[i] = word;
    }
}

// Four pixels of each row of the blocks, packed.
static __device__ __forceinline__ void load_blocks(unsigned (*pixels)[4], const unsigned char* __restrict__ current,
                                                   int x, int y, int height, int width) {
    for (int i = threadIdx.x; i < 4 * BLOCKS; i += THREADS) {
        const unsigned char* row = current + (long long)inside(y + i % 4, height) * width;
        const int at = x + i / 4 * 4;
        pixels[i / 4][i % 4] = row[inside(at, width)] | row[inside(at + 1, width)] << 8 |
                               row[inside(at + 2, width)] << 16 | (unsigned)row[inside(at + 3, width)] << 24;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
shared_bytes(const unsigned char* __restrict__ current, const unsigned char* __restrict__ reference,
             unsigned short* __restrict__ sums, int height, int width, int radius) {
    extern __shared__ unsigned window[];
    __shared__ unsigned pixels[BLOCKS][4];
    const int side = 2 * radius + 1, across = (width + 3) / 4, groups = (across + BLOCKS - 1) / BLOCKS;
    const int x = (int)(blockIdx.x % groups) * BLOCKS * 4, y = (int)(blockIdx.x / groups) * 4;
    load_window(window, reference, x, y, height, width, radius);
    load_blocks(pixels, current, x, y, height, width);
    __syncthreads();
    const int here = min(BLOCKS, across - x / 4), stride = 4 * window_words(radius);
    unsigned short* out = sums + ((long long)(y / 4) * across + x / 4) * side * side;
    const unsigned char* bytes = (const unsigned char*)window;
    for (int i = threadIdx.x; i < here * side * side; i += THREADS) {
        const int block = i / (side * side), dy = i / side % side, dx = i % side;
        const unsigned char* at = bytes + dy * stride + 4 * block + dx;
        int sum = 0;
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < 4; c++) sum += abs((int)(pixels[block][r] >> 8 * c & 255) - (int)at[r * stride + c]);
        out[i] = (unsigned short)sum;
    }
}

// Four differences an instruction: a thread makes four displacements along x from two words of a row, which a
// shift of both joins.
extern "C" __global__ void __launch_bounds__(THREADS)
packed(const unsigned char* __restrict__ current, const unsigned char* __restrict__ reference,
       unsigned short* __restrict__ sums, int height, int width, int radius) {
    extern __shared__ unsigned window[];
    __shared__ unsigned pixels[BLOCKS][4];
    const int side = 2 * radius + 1, across = (width + 3) / 4, groups = (across + BLOCKS - 1) / BLOCKS;
    const int x = (int)(blockIdx.x % groups) * BLOCKS * 4, y = (int)(blockIdx.x / groups) * 4;
    const int words = window_words(radius);
    unsigned short* made = (unsigned short*)(window + words * (4 + 2 * radius));
    load_window(window, reference, x, y, height, width, radius);
    load_blocks(pixels, current, x, y, height, width);
    __syncthreads();
    const int here = min(BLOCKS, across - x / 4), fours = (side + 3) / 4;
    for (int i = threadIdx.x; i < here * side * fours; i += THREADS) {
        const int block = i / (side * fours), dy = i / fours % side, four = i % fours;
        const unsigned* at = window + dy * words + block + four;
        unsigned sum[4] = {};
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const unsigned low = at[r * words], high = at[r * words + 1], pixel = pixels[block][r];
#pragma unroll
            for (int s = 0; s < 4; s++) sum[s] += __vsadu4(__funnelshift_r(low, high, 8 * s), pixel);
        }
        unsigned short* to = made + (block * side + dy) * side + 4 * four;
#pragma unroll
        for (int s = 0; s < 4; s++)
            if (4 * four + s < side) to[s] = (unsigned short)sum[s];
    }
    __syncthreads();
    // Neighbouring threads store neighbouring pairs; the first sum may lie at an odd place.
    const long long from = ((long long)(y / 4) * across + x / 4) * side * side;
    const int count = here * side * side, odd = (int)(from & 1);
    unsigned short* out = sums + from;
    if (threadIdx.x == 0 && odd) out[0] = made[0];
    for (int i = odd + 2 * threadIdx.x; i < count; i += 2 * THREADS) {
        if (i + 1 < count) {
            *(unsigned*)(out + i) = made[i] | (unsigned)made[i + 1] << 16;
        } else {
            out[i] = made[i];
        }
    }
}
