// Light from the front to the back, from samples that lie each between eight voxels.
__device__ float between(const float* volume, int nx, int ny, int nz, float x, float y, float z) {
    x = fminf(fmaxf(x - 0.5f, 0.0f), nx - 1.0f);
    y = fminf(fmaxf(y - 0.5f, 0.0f), ny - 1.0f);
    z = fminf(fmaxf(z - 0.5f, 0.0f), nz - 1.0f);
    int i = (int)x, j = (int)y, k = (int)z, i1 = min(i + 1, nx - 1), j1 = min(j + 1, ny - 1), k1 = min(k + 1, nz - 1);
    const float *near = volume + (size_t)k * ny * nx, *far = volume + (size_t)k1 * ny * nx;
    float u = x - i, v = y - j, w = z - k;
    float v00 = near[j * nx + i] * (1 - u) + near[j * nx + i1] * u, v01 = near[j1 * nx + i] * (1 - u) + near[j1 * nx + i1] * u;
    float v10 = far[j * nx + i] * (1 - u) + far[j * nx + i1] * u, v11 = far[j1 * nx + i] * (1 - u) + far[j1 * nx + i1] * u;
    return (v00 * (1 - v) + v01 * v) * (1 - w) + (v10 * (1 - v) + v11 * v) * w;
}

__device__ float colour_of(const float* knots, int count, float value, int channel) {
    int after = 0;
    while (after < count && knots[5 * after] <= value) after++;
    if (after == 0 || after == count) return knots[5 * (after == 0 ? 0 : count - 1) + 1 + channel];
    const float *a = knots + 5 * (after - 1), *b = knots + 5 * after;
    return a[1 + channel] + (value - a[0]) / (b[0] - a[0]) * (b[1 + channel] - a[1 + channel]);
}

extern "C" __global__ void render_volume(const float* volume, cudaTextureObject_t texture, int nx, int ny, int nz, float4 eye, float4 corner, float4 right, float4 down, const float* knots, int count, float4* picture, int rows, int columns) {
    int pixel = blockIdx.x * blockDim.x + threadIdx.x, column = pixel % columns, row = pixel / columns;
    if (row >= rows) return;
    float d[3] = {corner.x + column * right.x + row * down.x, corner.y + column * right.y + row * down.y,
                  corner.z + column * right.z + row * down.z};
    float from[3] = {eye.x, eye.y, eye.z}, size[3] = {(float)nx, (float)ny, (float)nz}, low = 0, high = 1e30f;
    float length = sqrtf(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    int a = 0;
    for (int axis = 0; axis < 3; axis++) {
        if (fabsf(d[axis]) > fabsf(d[a])) a = axis;
        if (d[axis] == 0) {
            if (from[axis] < 0 || from[axis] > size[axis]) high = -1;
            continue;
        }
        float one = -from[axis] / d[axis], other = (size[axis] - from[axis]) / d[axis];
        low = fmaxf(low, fminf(one, other));
        high = fminf(high, fmaxf(one, other));
    }
    float light[3] = {0, 0, 0}, clear = 1;
    for (int step = 0; low < high && step < (int)size[a]; step++) {
        int k = d[a] > 0 ? step : (int)size[a] - 1 - step;
        float one = (k - from[a]) / d[a], other = (k + 1 - from[a]) / d[a];
        float part = fminf(fmaxf(one, other), high) - fmaxf(fminf(one, other), low);
        if (part <= 0) continue;
        float t = (k + 0.5f - from[a]) / d[a], x = from[0] + t * d[0], y = from[1] + t * d[1], z = from[2] + t * d[2];
        float value = between(volume, nx, ny, nz, x, y, z), through = expf(-colour_of(knots, count, value, 3) * part * length);
        for (int c = 0; c < 3; c++) light[c] += clear * (1 - through) * colour_of(knots, count, value, c);
        clear *= through;
    }
    picture[pixel] = make_float4(light[0], light[1], light[2], 1 - clear);
}
