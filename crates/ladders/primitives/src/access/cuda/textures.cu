// An array through the texture unit, and the same from global memory.

#define THIS ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x)

// A thread a texel, in blocks of any shape.
extern "C" __global__ void image_global(const float* __restrict__ in, unsigned* __restrict__ out, int width,
                                        int height) {
    const int across = (width + blockDim.x - 1) / blockDim.x;
    const int x = blockIdx.x % across * blockDim.x + threadIdx.x, y = blockIdx.x / across * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    out[(unsigned long long)y * width + x] = __float_as_uint(in[(unsigned long long)y * width + x]);
}

extern "C" __global__ void image_texture(cudaTextureObject_t in, unsigned* __restrict__ out, int width, int height) {
    const int across = (width + blockDim.x - 1) / blockDim.x;
    const int x = blockIdx.x % across * blockDim.x + threadIdx.x, y = blockIdx.x / across * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    out[(unsigned long long)y * width + x] = __float_as_uint(tex2D<float>(in, x + 0.5f, y + 0.5f));
}

// Numbers between those of a table: place i, in steps of 1/256 from the centre of the first number.
static __device__ __forceinline__ unsigned steps(unsigned i, unsigned length) {
    const unsigned mixed = i * 2654435761u;
    return (mixed ^ mixed >> 15) % ((length - 1) * 256);
}

extern "C" __global__ void line_global(const float* __restrict__ in, unsigned* __restrict__ out, unsigned n,
                                       unsigned length) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned at = steps(i, length);
    const float part = (at & 255) / 256.0f;
    out[i] = __float_as_uint((1 - part) * in[at >> 8] + part * in[(at >> 8) + 1]);
}

extern "C" __global__ void line_texture(cudaTextureObject_t in, unsigned* __restrict__ out, unsigned n,
                                        unsigned length) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = __float_as_uint(tex1D<float>(in, steps(i, length) / 256.0f + 0.5f));
}

// A thread a texel of a volume of n texels a side: neighbouring threads are neighbours along axis `along`
// (0: x, 1: y, 2: z).
static __device__ __forceinline__ bool walk(int n, int along, int* at) {
    const unsigned long long i = THIS;
    if (i >= (unsigned long long)n * n * n) return false;
    at[along] = (int)(i % n);
    at[(along + 1) % 3] = (int)(i / n % n);
    at[(along + 2) % 3] = (int)(i / n / n);
    return true;
}

extern "C" __global__ void volume_global(const float* __restrict__ in, unsigned* __restrict__ out, int n, int along) {
    int at[3];
    if (!walk(n, along, at)) return;
    const unsigned long long place = ((unsigned long long)at[2] * n + at[1]) * n + at[0];
    out[place] = __float_as_uint(in[place]);
}

extern "C" __global__ void volume_texture(cudaTextureObject_t in, unsigned* __restrict__ out, int n, int along) {
    int at[3];
    if (!walk(n, along, at)) return;
    const unsigned long long place = ((unsigned long long)at[2] * n + at[1]) * n + at[0];
    out[place] = __float_as_uint(tex3D<float>(in, at[0] + 0.5f, at[1] + 0.5f, at[2] + 0.5f));
}

// An image of n texels a side at places from n/2 before it to n/2 behind it, in units of 1/`scale` texels.
static __device__ __forceinline__ float2 place_of(int n, int x, int y) {
    const float part = ((5 * x + 3 * y) % 15 - 7) / 16.0f;
    return make_float2(2 * x - n / 2 + part, 2 * y - n / 2 + part);
}

extern "C" __global__ void modes_texture(cudaTextureObject_t in, unsigned* __restrict__ out, int n, float scale) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    const float2 place = place_of(n, x, y);
    out[(unsigned long long)y * n + x] =
        __float_as_uint(tex2D<float>(in, (place.x + 0.5f) * scale, (place.y + 0.5f) * scale));
}

// What the texture unit does of itself: the texel that counts, of which the next one's mirror image repeats.
static __device__ __forceinline__ int mirrored(int i, int n) {
    i = (i % (2 * n) + 2 * n) % (2 * n);
    return i < n ? i : 2 * n - 1 - i;
}

extern "C" __global__ void mirror_global(const float* __restrict__ in, unsigned* __restrict__ out, int n, int linear) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    const float2 place = place_of(n, x, y);
    const float2 from = linear ? place : make_float2(rintf(place.x), rintf(place.y));
    const int left = (int)floorf(from.x), top = (int)floorf(from.y);
    const float across = from.x - left, down = from.y - top;
    const float* const upper = in + (unsigned long long)mirrored(top, n) * n;
    const float* const lower = in + (unsigned long long)mirrored(top + 1, n) * n;
    const int first = mirrored(left, n), next = mirrored(left + 1, n);
    const float above = (1 - across) * upper[first] + across * upper[next];
    const float below = (1 - across) * lower[first] + across * lower[next];
    out[(unsigned long long)y * n + x] = __float_as_uint((1 - down) * above + down * below);
}
