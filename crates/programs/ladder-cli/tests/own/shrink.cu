// A thread a group.
__device__ double length(const float2* x, int components, unsigned long long n, unsigned long long i) {
    double squares = 0;
    for (int a = 0; a < components; a++) squares += (double)x[a * n + i].x * x[a * n + i].x + (double)x[a * n + i].y * x[a * n + i].y;
    return sqrt(squares);
}

extern "C" __global__ void shrink_clip(float radius, float2* x, int components, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float factor = (float)fmin(1.0, radius / fmax(length(x, components, n, i), 1e-30));
    for (int a = 0; a < components; a++) x[a * n + i] = make_float2(x[a * n + i].x * factor, x[a * n + i].y * factor);
}

// One block.
extern "C" __global__ void shrink_joint_norm(const float2* x, int components, unsigned long long n, float2* sum) {
    __shared__ double part[256];
    double lengths = 0;
    for (unsigned long long i = threadIdx.x; i < n; i += 256) lengths += length(x, components, n, i);
    part[threadIdx.x] = lengths;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < 256; i++) lengths += part[i];
    *sum = make_float2((float)lengths, 0);
}
