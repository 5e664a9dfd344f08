// A thread an element, then the norm in one block.
// launch: update<<<(n + 255) / 256, 256>>>(alpha, p, q, s, n)
// launch: norm<<<1, 256>>>(s, n)
__global__ void update(float alpha, const float2* p, const float2* q, float2* s, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    s[i] = make_float2(s[i].x + alpha * p[i].x, s[i].y + alpha * p[i].y);
    s[n + i] = make_float2(s[n + i].x - alpha * q[i].x, s[n + i].y - alpha * q[i].y);
}

__global__ void norm(float2* s, unsigned long long n) {
    __shared__ double part[256];
    double sum = 0;
    for (unsigned long long i = threadIdx.x; i < n; i += 256) sum += (double)s[n + i].x * s[n + i].x + (double)s[n + i].y * s[n + i].y;
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < 256; i++) sum += part[i];
    s[2 * n] = make_float2((float)sqrt(sum), 0);
}
