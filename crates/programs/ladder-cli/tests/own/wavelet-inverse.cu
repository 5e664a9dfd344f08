// A thread an element.
extern "C" __global__ void wavelet_inverse(const float2* in, float2* out, int nz, int ny, int nx, int bz, int by, int bx, int axis, const float* low, const float* high, int taps, int sz, int sy, int sx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, place[3] = {i / nx / ny, i / nx % ny, i % nx};
    if (place[0] >= nz) return;
    int box[3] = {bz, by, bx}, step[3] = {nx * ny, nx, 1}, half = box[axis] / 2, at = place[axis];
    bool plain = place[0] >= bz || place[1] >= by || place[2] >= bx || at >= 2 * half;
    float2 sum = plain ? in[i] : make_float2(0, 0);
    for (int j = at % 2; !plain && j < taps; j += 2) {
        int k = ((at - j) / 2 + half * taps) % half;
        float2 a = in[i + (k - at) * step[axis]], b = in[i + (half + k - at) * step[axis]];
        sum.x += low[j] * a.x + high[j] * b.x;
        sum.y += low[j] * a.y + high[j] * b.y;
    }
    out[((place[0] + sz) % nz * ny + (place[1] + sy) % ny) * nx + (place[2] + sx) % nx] = sum;
}
