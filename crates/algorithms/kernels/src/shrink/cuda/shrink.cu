// Proximal maps of sums of magnitudes, and those sums: parts of them by blocks whose number depends on the
// length alone, then added in order.

#define THREADS 256
#define WARPS (THREADS / 32)
#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

// Σ over the block's threads, in thread 0.
static __device__ double block_sum(double sum) {
    __shared__ double parts[WARPS];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 1; i < WARPS; i++) sum += parts[i];
    return sum;
}

// x ← x max(0, 1 − t w / |x|), and the parts of Σ w |x|
extern "C" __global__ void __launch_bounds__(THREADS)
soft(const real threshold, const real* __restrict__ weights, scalar* __restrict__ x, unsigned long long n,
     double* __restrict__ partial) {
    double sum = 0.0;
    EACH(i, n) {
        scalar value = x[i], none;
        set(&none, 0);
        real w = weights[i], length = sqrt(norm_sqr(value)), left = length - threshold * w;
        x[i] = left > 0 ? (left / length) * value : none;
        sum += left > 0 ? (double)w * left : 0.0;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

static __device__ real magnitude(const scalar* x, unsigned long long i, unsigned long long n, unsigned components) {
    real sum = 0;
    for (unsigned a = 0; a < components; a++) sum += norm_sqr(x[a * n + i]);
    return sqrt(sum);
}

// x_a ← x_a min(1, r / √Σ_a |x_a|²)
extern "C" __global__ void __launch_bounds__(THREADS)
clip(const real radius, scalar* __restrict__ x, unsigned long long n, unsigned components) {
    EACH(i, n) {
        real length = magnitude(x, i, n, components);
        if (length > radius)
            for (unsigned a = 0; a < components; a++) x[a * n + i] = (radius / length) * x[a * n + i];
    }
}

// The parts of Σ_i √Σ_a |x_a(i)|²
extern "C" __global__ void __launch_bounds__(THREADS)
joint_norm(const scalar* __restrict__ x, unsigned long long n, unsigned components, double* __restrict__ partial) {
    double sum = 0.0;
    EACH(i, n) sum += magnitude(x, i, n, components);
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// One block adds the parts.
extern "C" __global__ void __launch_bounds__(THREADS)
finish(const double* __restrict__ partial, unsigned count, double* __restrict__ out) {
    double sum = 0.0;
    for (unsigned i = threadIdx.x; i < count; i += THREADS) sum += partial[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}
