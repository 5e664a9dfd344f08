// Kernels whose requests, sectors and turns are known.
extern "C" {

__global__ void transpose(const float* in, float* out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}

__global__ void transpose_tile(const float* in, float* out, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void every_second(const float* in, float* out, int n) {
    int lane = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < n; i++) {
        if ((i + lane) & 1) {
            sum += in[i * 32 + lane];
        }
    }
    out[lane] = sum;
}

__global__ void rows(const int* begin, const float* in, float* out) {
    int row = threadIdx.x;
    float sum = 0;
    for (int i = begin[row]; i < begin[row + 1]; i++) {
        sum += in[i];
    }
    out[row] = sum;
}

__global__ void quarter(const float* random, const float* in, float* out, int n) {
    int lane = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < n; i++) {
        if (random[i * 32 + lane] < 0.25f) {
            sum += in[i * 32 + lane];
        }
    }
    out[lane] = sum;
}

__global__ void early(const float* in, float* out, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    float value = in[i];
    if (threadIdx.x & 1) {
        if (value < 0) return;
        value *= 2;
    }
    out[i] = value;
}

__global__ void vectors(const float* in, float* numbers, float* out) {
    int i = threadIdx.x;
    float2* pairs = (float2*)numbers;
    float4 all = ((const float4*)in)[i];
    out[i] = all.x + all.w;
    out[32 + i] = pairs[i].x * pairs[i].y;
    pairs[i] = make_float2(all.y, all.z);
}

__constant__ float weights[64];

__global__ void memories(const int* in, unsigned* counts, float* out) {
    __shared__ unsigned own[64];
    extern __shared__ float2 dynamic[];
    int lane = threadIdx.x;
    own[lane] = 0;
    own[lane + 32] = 0;
    dynamic[lane] = make_float2(0, 1);
    __syncthreads();
    atomicAdd(&own[lane / 8], 1u);
    atomicAdd(&counts[lane & 1], 1u);
    __syncthreads();
    out[lane] = weights[0] + weights[lane / 16] + own[2 * (lane % 32)] + dynamic[lane].y;
    float sum = __shfl_down_sync(0xffffffffu, out[lane], 1);
    out[lane] += sum;
}

static __device__ __noinline__ float helper(float v, int lane) {
    if (lane < 16) return v + 1;
    return v * v;
}

__global__ void calls(const float* in, float* out) {
    int lane = threadIdx.x;
    float v = helper(in[lane], lane);
    out[lane] = in[32 + lane] + v;
}

__global__ void many(const float* in, float* out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += in[k];
    out[i] = sum;
}
__global__ void halves(const float* in, float* out) {
    __shared__ float half[16];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    if (t < 16) half[t] = in[i];
    __syncthreads();
    float v = in[i] * 2;
    if (t < 16) v += half[15 - t];
    out[i] = v;
}

__global__ void borders(const float* in, float* out, int n) {
    int times = blockIdx.x == 0 || blockIdx.x == gridDim.x - 1 ? 1 : n;
    float sum = 0;
    for (int k = 0; k < times; k++) sum += in[k];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}

struct Point {
    float a, b, c, d;
};
struct Complex {
    double re, im;
};

__global__ void structures(const float* points, const float* vectors, const double* numbers, float* out) {
    int i = threadIdx.x;
    const Point* all = (const Point*)points;
    const float4* fours = (const float4*)vectors;
    Point p = all[i];
    out[i] = p.a + p.d;
    out[32 + i] = fours[i].x + fours[i].y + fours[i].z + fours[i].w;
    out[64 + i] = all[i + 32].a + all[i + 32].b + all[i + 32].c + all[i + 32].d;
    Complex z = ((const Complex*)numbers)[i];
    out[96 + i] = (float)(z.re * z.im);
}

__global__ void choice(const float* one, const float* other, float* out, int n) {
    __shared__ float own[32];
    int t = threadIdx.x;
    own[t] = 1;
    const float* in = t & 1 ? one : other;
    float sum = in[t];
    const float* near = t < 8 ? own : one;
    sum += near[t];
    out[t] = sum;
}

__global__ void late(const float* in, float* out, int n) {
    int t = threadIdx.x;
    float sum = in[t];
    sum *= 2;
    sum += 1;
    if (sum > 2 * t)
        out[t] = sum;
}
}
