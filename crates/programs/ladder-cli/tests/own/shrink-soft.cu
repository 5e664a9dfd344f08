// A thread an element, then the sum in one block.
// launch: soft<<<(n + 255) / 256, 256>>>(threshold, weights, x, n)
// launch: sum<<<1, 256>>>(weights, x, n)
__global__ void soft(float threshold, const float* weights, float2* x, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float length = sqrtf(x[i].x * x[i].x + x[i].y * x[i].y);
    float factor = length > 0 ? fmaxf(0, length - threshold * weights[i]) / length : 0;
    x[i] = make_float2(x[i].x * factor, x[i].y * factor);
}

__global__ void sum(const float* weights, float2* x, unsigned long long n) {
    __shared__ double part[256];
    double sum = 0;
    for (unsigned long long i = threadIdx.x; i < n; i += 256) sum += weights[i] * sqrt((double)x[i].x * x[i].x + (double)x[i].y * x[i].y);
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < 256; i++) sum += part[i];
    x[n] = make_float2((float)(sum / sqrt((double)n)), 0);
}
