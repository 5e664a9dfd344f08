// A thread an element.
extern "C" __global__ void wavelet(const float2* in, float2* out, int nz, int ny, int nx, int bz, int by, int bx, int axis, const float* low, const float* high, int taps, int sz, int sy, int sx) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, place[3] = {i / nx / ny, i / nx % ny, i % nx};
    if (place[0] >= nz) return;
    int box[3] = {bz, by, bx}, half = box[axis] / 2, at = place[axis];
    bool plain = place[0] >= bz || place[1] >= by || place[2] >= bx || at >= 2 * half;
    float2 sum = make_float2(0, 0);
    for (int j = 0; j < (plain ? 1 : taps); j++) {
        if (!plain) place[axis] = (2 * (at % half) + j) % (2 * half);
        float2 v = in[((place[0] + sz) % nz * ny + (place[1] + sy) % ny) * nx + (place[2] + sx) % nx];
        float factor = plain ? 1 : at < half ? low[j] : high[j];
        sum.x += factor * v.x;
        sum.y += factor * v.y;
    }
    out[i] = sum;
}
