// The first sample of at least the value, each between eight voxels, and its light.
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

extern "C" __global__ void render_surface(const float* volume, cudaTextureObject_t texture, int nx, int ny, int nz, float4 eye, float4 corner, float4 right, float4 down, float value, float4 colour, float4 light, float ambient, float diffuse, float specular, float shininess, float4* picture, int rows, int columns) {
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
    float t0 = 0, v0 = 0;
    bool first = true;
    picture[pixel] = make_float4(0, 0, 0, 0);
    for (int step = 0; low < high && step < (int)size[a]; step++) {
        int k = d[a] > 0 ? step : (int)size[a] - 1 - step;
        float one = (k - from[a]) / d[a], other = (k + 1 - from[a]) / d[a];
        if (fminf(fmaxf(one, other), high) - fmaxf(fminf(one, other), low) <= 0) continue;
        float t = (k + 0.5f - from[a]) / d[a];
        float v = between(volume, nx, ny, nz, from[0] + t * d[0], from[1] + t * d[1], from[2] + t * d[2]);
        if (v < value) {
            t0 = t;
            v0 = v;
            first = false;
            continue;
        }
        float hit = first ? t : t0 + (value - v0) / (v - v0) * (t - t0), n[3], steep = 0, facing = 0, seen = 0, shine = 0;
        for (int axis = 0; axis < 3; axis++) {
            float x = from[0] + hit * d[0], y = from[1] + hit * d[1], z = from[2] + hit * d[2];
            float dx = axis == 0, dy = axis == 1, dz = axis == 2;
            n[axis] = (between(volume, nx, ny, nz, x + dx, y + dy, z + dz) - between(volume, nx, ny, nz, x - dx, y - dy, z - dz)) / 2;
            steep += n[axis] * n[axis];
        }
        steep = sqrtf(steep);
        for (int axis = 0; axis < 3; axis++) {
            n[axis] = steep <= 5e-6f * fabsf(value) ? -d[axis] / length : n[axis] / steep;
            seen += n[axis] * d[axis];
        }
        float l[3] = {light.x, light.y, light.z};
        for (int axis = 0; axis < 3; axis++) {
            n[axis] = seen > 0 ? -n[axis] : n[axis];
            facing += n[axis] * l[axis];
        }
        for (int axis = 0; axis < 3; axis++) shine -= (2 * facing * n[axis] - l[axis]) * d[axis] / length;
        shine = facing > 0 && shine > 0 ? specular * powf(shine, shininess) : 0;
        float rough = ambient + diffuse * fmaxf(0, facing);
        picture[pixel] = make_float4(fminf(1, colour.x * rough + shine), fminf(1, colour.y * rough + shine), fminf(1, colour.z * rough + shine), 1);
        return;
    }
}
