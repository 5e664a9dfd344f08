// A frame coded as its difference from displaced 16 × 16 pixels of a reference frame. Beyond its edges a
// frame goes on as its edge.

#ifndef THREADS
#define THREADS 160
#endif

static __device__ __forceinline__ int inside(int at, int size) { return min(max(at, 0), size - 1); }

static __device__ __forceinline__ unsigned four(const unsigned char* frame, int y, int x, int height, int width) {
    const unsigned char* row = frame + inside(y, height) * width;
    return row[inside(x, width)] | row[inside(x + 1, width)] << 8 | row[inside(x + 2, width)] << 16 |
           (unsigned)row[inside(x + 3, width)] << 24;
}

// The sums of four displacements along x, of `rows` rows of `words` words.
static __device__ __forceinline__ void add(unsigned (&sums)[4], const unsigned* pixels, const unsigned* window, int stride,
                                           int rows, int words) {
#pragma unroll
    for (int y = 0; y < rows; y++) {
#pragma unroll
        for (int w = 0; w < words; w++) {
            const unsigned low = window[y * stride + w], high = window[y * stride + w + 1];
#pragma unroll
            for (int s = 0; s < 4; s++) sums[s] += __vsadu4(__funnelshift_r(low, high, 8 * s), pixels[4 * y + w]);
        }
    }
}

// A block a macroblock. Its part of the reference lies in shared memory as words; a thread makes four
// displacements from two words, four differences an instruction. No sum is stored: keys of sum, length and
// order are compared, and their least is the displacement.
extern "C" __global__ void __launch_bounds__(THREADS)
search(const unsigned char* __restrict__ current, const unsigned char* __restrict__ reference, short2* __restrict__ vectors,
       int height, int width, int radius) {
    extern __shared__ unsigned window[];
    __shared__ unsigned pixels[64];
    __shared__ unsigned long long least;
    const int across = (width + 3) / 4, down = (height + 3) / 4, columns = (across + 3) / 4, side = 2 * radius + 1;
    const int x = (int)blockIdx.x % columns * 16, y = (int)blockIdx.x / columns * 16;
    const int rows = min(16, 4 * down - y), words = min(4, across - x / 4);
    const int stride = (2 * radius + 20) / 4, fours = (side + 3) / 4;
    for (int i = threadIdx.x; i < stride * (rows + 2 * radius); i += THREADS)
        window[i] = four(reference, y - radius + i / stride, x - radius + i % stride * 4, height, width);
    for (int i = threadIdx.x; i < 64; i += THREADS) pixels[i] = four(current, y + i / 4, x + i % 4 * 4, height, width);
    if (threadIdx.x == 0) least = ~0ull;
    __syncthreads();
    unsigned long long own = ~0ull;
    for (int i = threadIdx.x; i < side * fours; i += THREADS) {
        const int v = i / fours, u = i % fours * 4;
        unsigned sums[4] = {};
        const unsigned* at = window + v * stride + u / 4;
        // Loops of known length are unrolled.
        if (rows == 16 && words == 4) add(sums, pixels, at, stride, 16, 4);
        else add(sums, pixels, at, stride, rows, words);
#pragma unroll
        for (int s = 0; s < 4; s++) {
            const unsigned far = abs(v - radius) + abs(u + s - radius);
            const unsigned long long key = (unsigned long long)sums[s] << 32 | far << 20 | (unsigned)(v * side + u + s);
            if (u + s < side && key < own) own = key;
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffffu, own, step);
        if (other < own) own = other;
    }
    if (threadIdx.x % 32 == 0) atomicMin(&least, own);
    __syncthreads();
    if (threadIdx.x == 0) {
        const int order = (int)(least & 0xfffff);
        vectors[blockIdx.x] = make_short2((short)(order / side - radius), (short)(order % side - radius));
    }
}

// Rows 1, 1, 1, 1; 2, 1, -1, -2; 1, -1, -1, 1; 1, -2, 2, -1 times four numbers.
static __device__ __forceinline__ void forward(int& a, int& b, int& c, int& d) {
    const int s = a + d, t = a - d, m = b + c, n = b - c;
    a = s + m, b = 2 * t + n, c = s - m, d = t - 2 * n;
}

// What decoders make of four coefficients: halves are rounded down.
static __device__ __forceinline__ void inverse(int& a, int& b, int& c, int& d) {
    const int s = a + c, t = a - c, m = b + (d >> 1), n = (b >> 1) - d;
    a = s + m, b = t + n, c = t - n, d = s - m;
}

// Bits of Exp-Golomb codes.
static __device__ __forceinline__ unsigned code_bits(unsigned n) { return 63 - 2 * __clz(n + 1); }
static __device__ __forceinline__ unsigned signed_bits(int n) { return code_bits(2 * abs(n) - (n > 0)); }

// A factor for each class of places: both coordinates even, both odd, other.
static __device__ __forceinline__ int of_class(int3 factors, int at) {
    return at / 4 % 2 != at % 2 ? factors.z : at % 2 ? factors.y : factors.x;
}

// A thread 4 × 4 pixels, all in registers.
extern "C" __global__ void __launch_bounds__(128)
code(const unsigned char* __restrict__ current, const unsigned char* __restrict__ reference, const short2* __restrict__ vectors,
     short* __restrict__ levels, unsigned* __restrict__ bits, unsigned char* __restrict__ reconstruction, int height, int width,
     int f0, int f1, int f2, int b0, int b1, int b2, int shift, int rounding) {
    const int across = (width + 3) / 4, down = (height + 3) / 4, i = blockIdx.x * 128 + threadIdx.x;
    if (i >= across * down) return;
    const int x = i % across * 4, y = i / across * 4;
    const short2 vector = vectors[y / 16 * ((across + 3) / 4) + x / 16];
    unsigned predicted[4];
    int block[16];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const unsigned here = four(current, y + r, x, height, width);
        predicted[r] = four(reference, y + r + vector.x, x + vector.y, height, width);
#pragma unroll
        for (int c = 0; c < 4; c++) block[4 * r + c] = (int)(here >> 8 * c & 255) - (int)(predicted[r] >> 8 * c & 255);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) forward(block[4 * k], block[4 * k + 1], block[4 * k + 2], block[4 * k + 3]);
#pragma unroll
    for (int k = 0; k < 4; k++) forward(block[k], block[k + 4], block[k + 8], block[k + 12]);
    const int zigzag[16] = {0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15};
    unsigned packed[8], zeros = 0, count = 0, length = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) {
        const int at = zigzag[k], c = block[at];
        const int size = (abs(c) * of_class(make_int3(f0, f1, f2), at) + rounding) >> shift, level = c < 0 ? -size : size;
        const unsigned half = level & 0xffff;
        packed[k / 2] = k % 2 ? packed[k / 2] | half << 16 : half;
        block[at] = level * of_class(make_int3(b0, b1, b2), at);
        if (level == 0) {
            zeros++;
        } else {
            length += code_bits(zeros) + signed_bits(level);
            zeros = 0;
            count++;
        }
    }
    length += code_bits(count);
    if (y % 16 == 0 && x % 16 == 0) length += signed_bits(vector.x) + signed_bits(vector.y);
    bits[i] = length;
    uint4* to = (uint4*)(levels + 16 * i);
    to[0] = make_uint4(packed[0], packed[1], packed[2], packed[3]);
    to[1] = make_uint4(packed[4], packed[5], packed[6], packed[7]);
#pragma unroll
    for (int k = 0; k < 4; k++) inverse(block[4 * k], block[4 * k + 1], block[4 * k + 2], block[4 * k + 3]);
#pragma unroll
    for (int k = 0; k < 4; k++) inverse(block[k], block[k + 4], block[k + 8], block[k + 12]);
#pragma unroll
    for (int k = 0; k < 16; k++) {
        if (y + k / 4 >= height || x + k % 4 >= width) continue;
        const int decoded = (int)(predicted[k / 4] >> 8 * (k % 4) & 255) + ((block[k] + 32) >> 6);
        reconstruction[(y + k / 4) * width + x + k % 4] = (unsigned char)min(max(decoded, 0), 255);
    }
}
