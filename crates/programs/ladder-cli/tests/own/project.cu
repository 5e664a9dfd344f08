// A thread a pixel, which walks the planes of its ray.
extern "C" __global__ void project(const float* volume, const double* poses, float* projections, int views, int rows, int columns, int nx, int ny, int nz, double pitch, int parallel) {
    double sum = 0;
    int pixel = blockIdx.x * blockDim.x + threadIdx.x, column = pixel % columns, row = pixel / columns % rows;
    int view = pixel / columns / rows;
    if (view >= views) return;
    const double* p = poses + 15 * view;
    double along_u = (column - (columns - 1) / 2.0) * pitch, along_v = (row - (rows - 1) / 2.0) * pitch;
    double start[3], d[3], length = 0;
    int size[3] = {nx, ny, nz}, step[3] = {1, nx, nx * ny}, a = 0;
    for (int axis = 0; axis < 3; axis++) {
        double end = p[3 + axis] + along_u * p[6 + axis] + along_v * p[9 + axis];
        d[axis] = parallel ? p[axis] : end - p[axis];
        start[axis] = (parallel ? end : p[axis]) + (size[axis] - 1) / 2.0;
        length += d[axis] * d[axis];
        if (fabs(d[axis]) > fabs(d[a])) a = axis;
    }
    int b = a == 0 ? 1 : 0, c = a == 2 ? 1 : 2;
    for (int plane = 0; plane < size[a]; plane++) {
        double t = (plane - start[a]) / d[a], half = 0.5 / fabs(d[a]);
        double part = parallel ? 2 * half : fmin(t + half, 1.0) - fmax(t - half, 0.0);
        if (part <= 0) continue;
        double y = start[b] + t * d[b], z = start[c] + t * d[c];
        int y0 = (int)floor(y), z0 = (int)floor(z);
        for (int corner = 0; corner < 4; corner++) {
            int j = y0 + (corner & 1), k = z0 + (corner >> 1);
            if (j < 0 || j >= size[b] || k < 0 || k >= size[c]) continue;
            double weight = part * sqrt(length) * (1 - fabs(y - j)) * (1 - fabs(z - k));
            int voxel = plane * step[a] + j * step[b] + k * step[c];
            sum += weight * volume[voxel];
        }
    }
    projections[pixel] = (float)sum;
}
