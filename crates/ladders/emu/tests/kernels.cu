#define BLOCK 256
__constant__ float weights[4];
extern __shared__ float of_the_program[];

extern "C" __global__ void deadlock(int* out, int which) {
    switch (which) {
        case 0:
            if (threadIdx.x < 32) __syncthreads();
            else if (threadIdx.x != 40) __shfl_sync(0xffffffffu, 1, 0);
            else __shfl_sync(0x00000101u, 1, 0);
            break;
        case 1:
            if (threadIdx.x & 1) {
                __syncthreads();
            } else {
                __syncthreads();
            }
            break;
        case 2: __shfl_sync(0x0000ffffu, 1, 0); break;
        default: assert(threadIdx.x != 7);
    }
    out[threadIdx.x] = 0;
}

static __device__ real warp_sum(real v) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffffu, v, step);
    return v;
}

extern "C" __global__ void __launch_bounds__(BLOCK) block_sums(const real* __restrict__ x, int n, real* sums) {
    __shared__ real parts[BLOCK / 32], total;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    real sum = warp_sum(i < n ? x[i] : (real)0);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < BLOCK / 32 ? parts[threadIdx.x] : (real)0);
        if (threadIdx.x == 0) total = sum;
    }
    __syncthreads();
    if (threadIdx.x == 77) sums[blockIdx.x] = total;
}

template <typename T, int N>
static __device__ void through_tile(const T* x, T* y, int rows, int columns) {
    __shared__ T tile[N][N + 1];
    int r = blockIdx.x * N + threadIdx.y, c = blockIdx.y * N + threadIdx.x;
    if (r < rows && c < columns) tile[threadIdx.y][threadIdx.x] = x[r * columns + c];
    __syncthreads();
    c = blockIdx.y * N + threadIdx.y, r = blockIdx.x * N + threadIdx.x;
    if (r < rows && c < columns) y[c * rows + r] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns) {
    through_tile<float, 32>(x, y, rows, columns);
}

extern "C" __global__ void reverse(const double* x, double* y, unsigned char* bytes) {
    extern __shared__ __align__(16) double values[];
    extern __shared__ unsigned char raw[][8];
    unsigned i = threadIdx.x;
    values[blockDim.x - 1 - i] = x[i];
    __syncthreads();
    y[i] = values[i];
    bytes[i] = raw[i][7];
}

extern "C" __global__ void exchanges(int* out) {
    const unsigned all = 0xffffffffu;
    int lane = threadIdx.x, v = lane * lane - 100;
    int* o = out + lane;
    o[0] = __shfl_sync(all, v, 5);
    o[1 * 32] = __shfl_sync(all, v, 3, 8);
    o[2 * 32] = __shfl_up_sync(all, v, 3);
    o[3 * 32] = __shfl_down_sync(all, v, 5, 16);
    o[4 * 32] = __shfl_xor_sync(all, v, 9);
    o[5 * 32] = __ballot_sync(all, lane % 3 == 0);
    o[6 * 32] = __any_sync(all, lane == 17);
    o[7 * 32] = __all_sync(all, lane != 17);
    o[8 * 32] = __reduce_add_sync(all, v);
    o[9 * 32] = __reduce_min_sync(all, v);
    o[10 * 32] = __reduce_max_sync(all, v);
    o[11 * 32] = __match_any_sync(all, lane % 5);
    if (lane & 1) o[12 * 32] = __shfl_sync(0xaaaaaaaau, v, 1);
    else o[12 * 32] = __shfl_sync(0x55555555u, v, 30);
    __syncwarp();
    o[13 * 32] = (int)(__shfl_sync(all, lane / 3.0, 31 - lane) * 1e6);
    if (lane < 4) o[14 * 32] = __shfl_sync(0x0000000fu, v, 20);
    else o[14 * 32] = -1;
    o[15 * 32] = 0x0fffffff;
    if (lane >= 28) return;
    o[15 * 32] = __ballot_sync(all, 1);
}

extern "C" __global__ void early_exit(int* out, int n) {
    __shared__ int values[128];
    int i = threadIdx.x;
    if (i >= n) return;
    values[i] = i;
    __syncthreads();
    out[i] = values[n - 1 - i];
    __syncthreads();
}

extern "C" __global__ void counting(int* out) {
    int i = threadIdx.x;
    out[i] = __syncthreads_count(i % 3 == 0);
    out[96 + i] = __syncthreads_or(i == 50);
    out[192 + i] = __syncthreads_and(i != 50);
}

extern "C" __global__ void __launch_bounds__(1024, 1) scan(int* x) {
    __shared__ int values[2][1024];
    int i = threadIdx.x, from = 0;
    values[0][i] = x[i];
    for (int step = 1; step < 1024; step *= 2) {
        __syncthreads();
        values[1 - from][i] = values[from][i] + (i >= step ? values[from][i - step] : 0);
        from = 1 - from;
    }
    x[i] = values[from][i];
}

extern "C" __global__ void atomics(int n, unsigned* counts, float* sum, double* wide, unsigned long long* ends) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&counts[i % 7], 1u);
    atomicAdd(sum, 1.0f);
    atomicAdd(wide, 0.25);
    atomicMin(&ends[0], 100ull + i);
    atomicMax(&ends[1], 100ull + i);
    unsigned long long seen = ends[2], before;
    do {
        before = seen;
        seen = atomicCAS(&ends[2], before, before + 1);
    } while (seen != before);
}

extern "C" __global__ void number(unsigned* out) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    atomicAdd(&out[i], i);
}

extern "C" __global__ void read_constant(float* out) { out[threadIdx.x] = weights[threadIdx.x]; }

extern "C" __global__ void functions(const float* x, int n, float* out, int* whole) {
    int i = threadIdx.x;
    if (i >= n) return;
    float v = __ldg(&x[i]), s, c;
    __sincosf(v, &s, &c);
    out[i] = s;
    out[n + i] = c;
    sincospif(v, &s, &c);
    out[2 * n + i] = s;
    out[3 * n + i] = c;
    out[4 * n + i] = rsqrtf(fabsf(v) + 1);
    out[5 * n + i] = fmaf(v, v, 2.0f);
    __stcs(&out[6 * n + i], max(min(v, 1.0f), -1.0f));
    out[7 * n + i] = __expf(abs(v));
    whole[i] = __float2int_rn(v);
    whole[n + i] = __float2int_rd(v);
    whole[2 * n + i] = __float_as_int(v);
    whole[3 * n + i] = __clz(i);
    whole[4 * n + i] = __popc(__float_as_uint(v));
    whole[5 * n + i] = __brev(__float_as_uint(v));
    whole[6 * n + i] = __ffs(i);
    whole[7 * n + i] = __umulhi(__float_as_uint(v), 0x12345678u);
    whole[8 * n + i] = __float2int_rz(fabsf(v) * 1e30f + 1e20f);
    whole[9 * n + i] = __vabsdiffu4(__float_as_uint(v), 0x12fe8001u);
    whole[10 * n + i] = __vsadu4(__float_as_uint(v), 0x12fe8001u);
    whole[11 * n + i] = __sad(__float_as_int(v), 100, 3) + __usad(__float_as_uint(v), 100, 4);
}

extern "C" __global__ void unwritten(float* out) {
    __shared__ float mine[4];
    out[blockIdx.x] = (mine[1] == mine[1] || of_the_program[3] == of_the_program[3]) ? 1.0f : mine[2];
    mine[1] = of_the_program[3] = 1.0f;
}

extern "C" __global__ void outside(float* x, int at) { x[at] = 1.0f; }

extern "C" __global__ void forgotten_barrier(const float* x, float* out, int from) {
    __shared__ float values[64];
    int i = threadIdx.x;
    values[i] = x[i];
    // Here a barrier is missing.
    out[blockIdx.x * 64 + i] = values[(i + from) % 64];
}
