// Sums in one block of 256 threads, and a thread an element else.
__device__ void add_up(double re, double im, float2* sum) {
    __shared__ double2 part[256];
    part[threadIdx.x] = make_double2(re, im);
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < 256; i++) {
        re += part[i].x;
        im += part[i].y;
    }
    *sum = make_float2((float)re, (float)im);
}

__device__ float2 product(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

__device__ float2 total(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }

extern "C" __global__ void vector_dot(const float2* x, const float2* y, unsigned long long n, float2* sum) {
    double re = 0, im = 0;
    for (unsigned long long i = threadIdx.x; i < n; i += 256) {
        re += (double)x[i].x * y[i].x + (double)x[i].y * y[i].y;
        im += (double)x[i].x * y[i].y - (double)x[i].y * y[i].x;
    }
    add_up(re, im, sum);
}

extern "C" __global__ void vector_norm(const float2* x, unsigned long long n, float2* sum) {
    double re = 0;
    for (unsigned long long i = threadIdx.x; i < n; i += 256) re += (double)x[i].x * x[i].x + (double)x[i].y * x[i].y;
    add_up(re, 0, sum);
}

extern "C" __global__ void vector_axpy(float2 alpha, const float2* x, float2* y, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = total(product(alpha, x[i]), y[i]);
}

extern "C" __global__ void vector_xpby(const float2* x, float2 beta, float2* y, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = total(x[i], product(beta, y[i]));
}

extern "C" __global__ void vector_scale(float2 alpha, float2* x, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) x[i] = product(alpha, x[i]);
}

extern "C" __global__ void vector_multiply(const float2* d, const float2* x, float2* y, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = product(d[i], x[i]);
}

extern "C" __global__ void vector_weight(const float* w, const float2* x, float2* y, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = make_float2(w[i] * x[i].x, w[i] * x[i].y);
}
