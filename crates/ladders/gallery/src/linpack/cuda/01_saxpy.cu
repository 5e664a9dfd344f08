// z = a x + y.

extern "C" __global__ void each(float a, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z,
                                unsigned long long n) {
    const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}

// Loads and stores of 16 bytes.
extern "C" __global__ void wide(float a, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z,
                                unsigned long long n) {
    const unsigned long long at = 4 * ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (at + 4 <= n) {
        const float4 u = *(const float4*)(x + at), v = *(const float4*)(y + at);
        *(float4*)(z + at) = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w);
    } else {
        for (unsigned long long i = at; i < n; i++) z[i] = a * x[i] + y[i];
    }
}
