// A thread an element.
__device__ int index(int a, int i, int n0, int n1, int n2) { return a == 0 ? i / (n1 * n2) : a == 1 ? i / n2 % n1 : i % n2; }

__device__ void put(float2* sum, float factor, float2 a, float2 b) {
    sum->x += factor * (a.x - b.x);
    sum->y += factor * (a.y - b.y);
}

extern "C" __global__ void difference_forward(const float2* x, float2* d, int axes, int n0, int n1, int n2, float w0, float w1, float w2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = n0 * n1 * n2;
    int size[3] = {n0, n1, n2}, step[3] = {n1 * n2, n2, 1};
    float w[3] = {w0, w1, w2};
    if (i >= all) return;
    for (int a = 0; a < axes; a++) {
        float2 sum = make_float2(0, 0);
        if (index(a, i, n0, n1, n2) < size[a] - 1) put(&sum, w[a], x[i + step[a]], x[i]);
        d[a * all + i] = sum;
    }
}

extern "C" __global__ void difference_adjoint(const float2* d, float2* x, int axes, int n0, int n1, int n2, float w0, float w1, float w2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = n0 * n1 * n2;
    int size[3] = {n0, n1, n2}, step[3] = {n1 * n2, n2, 1};
    float w[3] = {w0, w1, w2};
    float2 sum = make_float2(0, 0), none = sum;
    if (i >= all) return;
    for (int a = 0; a < axes; a++) {
        int k = index(a, i, n0, n1, n2);
        put(&sum, w[a], k > 0 ? d[a * all + i - step[a]] : none, k < size[a] - 1 ? d[a * all + i] : none);
    }
    x[i] = sum;
}

extern "C" __global__ void difference_normal(const float2* x, float2* y, int axes, int n0, int n1, int n2, float w0, float w1, float w2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int size[3] = {n0, n1, n2}, step[3] = {n1 * n2, n2, 1};
    float w[3] = {w0, w1, w2};
    float2 sum = make_float2(0, 0);
    if (i >= n0 * n1 * n2) return;
    for (int a = 0; a < axes; a++) {
        int k = index(a, i, n0, n1, n2);
        if (k > 0) put(&sum, w[a] * w[a], x[i], x[i - step[a]]);
        if (k < size[a] - 1) put(&sum, w[a] * w[a], x[i], x[i + step[a]]);
    }
    y[i] = sum;
}
