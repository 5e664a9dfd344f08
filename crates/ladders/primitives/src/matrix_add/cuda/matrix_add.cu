extern "C" __global__ void one_block(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
    c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

extern "C" __global__ void tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                 unsigned rows, unsigned columns) {
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) {
        const unsigned long long at = (unsigned long long)row * columns + column;
        c[at] = a[at] + b[at];
    }
}

extern "C" __global__ void wide(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                unsigned long long n) {
    const unsigned long long at = 4 * ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (at + 4 <= n) {
        const float4 x = *(const float4*)(a + at), y = *(const float4*)(b + at);
        *(float4*)(c + at) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    } else {
        for (unsigned long long i = at; i < n; ++i) c[i] = a[i] + b[i];
    }
}
