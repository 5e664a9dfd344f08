// Projectors of CT. Volumes are [z, y, x], projections [view, row, column], places of rays and voxels are
// found in f64.
//
// Places along a ray or a column of voxels are sums of equal steps. They are kept as 64-bit fixed-point
// numbers, 32 bits of them a fraction: a sum of f32 would lose 1e-4 of a pixel at 2048 pixels, and the
// texture unit keeps 8 bits of a fraction.

#define THREADS 256
#define FRACTION 4294967296.0


static __device__ long long fixed(double place) {
    return (long long)floor(fmin(fmax(place, -1073741824.0), 1073741824.0) * FRACTION);
}

static __device__ float fraction(long long place) {
    return (float)((unsigned)place >> 8) * 5.9604644775390625e-8f;
}

// The ray of a pixel as a line of Joseph's method: it crosses plane i of its main axis at (b + i db, c + i
// dc).
struct Line {
    int main, first, end;
    long long b, db, c, dc;
    double ends[2], step;
};

// The part of low .. high in which -1 < at + i gain < size.
static __device__ void within(double at, double gain, double size, double* low, double* high) {
    if (gain == 0) {
        if (!(at > -1 && at < size)) *high = *low - 1;
        return;
    }
    double one = (-1 - at) / gain, other = (size - at) / gain;
    *low = fmax(*low, fmin(one, other));
    *high = fmin(*high, fmax(one, other));
}

static __device__ Line line_of(const double* pose, unsigned row, unsigned column, unsigned rows, unsigned columns,
                               double pitch_u, double pitch_v, double radius, unsigned parallel,
                               double first_x, double first_y, double first_z, double size_x, double size_y, double size_z,
                               int nx, int ny, int nz) {
    double along_u = (column - 0.5 * (columns - 1)) * pitch_u, along_v = (row - 0.5 * (rows - 1)) * pitch_v, forward = 0;
    if (radius > 0) {
        double angle = along_u / radius;
        along_u = radius * sin(angle);
        forward = radius * (1 - cos(angle));
    }
    double at[3], along[3], length = 0;
    for (int axis = 0; axis < 3; axis++) {
        double first = axis == 0 ? first_x : axis == 1 ? first_y : first_z;
        double size = axis == 0 ? size_x : axis == 1 ? size_y : size_z;
        double end = pose[3 + axis] + along_u * pose[6 + axis] + along_v * pose[9 + axis] + forward * pose[12 + axis];
        double start = parallel ? end - pose[axis] : pose[axis];
        length += (end - start) * (end - start);
        at[axis] = (start - first) / size;
        along[axis] = (end - start) / size;
    }
    double dx = fabs(along[0]), dy = fabs(along[1]), dz = fabs(along[2]);
    Line line;
    line.main = dx >= dy && dx >= dz ? 0 : dy > dx && dy >= dz ? 1 : 2;
    double a = line.main == 0 ? at[0] : line.main == 1 ? at[1] : at[2];
    double da = line.main == 0 ? along[0] : line.main == 1 ? along[1] : along[2];
    double b = line.main == 0 ? at[1] : at[0], db = line.main == 0 ? along[1] : along[0];
    double c = line.main == 2 ? at[1] : at[2], dc = line.main == 2 ? along[1] : along[2];
    int count = line.main == 0 ? nx : line.main == 1 ? ny : nz;
    int size_b = line.main == 0 ? ny : nx, size_c = line.main == 2 ? ny : nz;
    db /= da;
    dc /= da;
    b -= a * db;
    c -= a * dc;
    line.ends[0] = parallel ? -1e300 : fmin(a, a + da);
    line.ends[1] = parallel ? 1e300 : fmax(a, a + da);
    line.step = sqrt(length) / fabs(da);
    double low = fmax(line.ends[0] - 0.5, 0.0), high = fmin(line.ends[1] + 0.5, count - 1.0);
    within(b, db, size_b, &low, &high);
    within(c, dc, size_c, &low, &high);
    line.first = high >= low ? (int)ceil(low) : 0;
    line.end = high >= low ? (int)floor(high) + 1 : 0;
    line.b = fixed(b + line.first * db);
    line.db = fixed(db);
    line.c = fixed(c + line.first * dc);
    line.dc = fixed(dc);
    return line;
}

// The part of plane i's interval between source and pixel.
static __device__ float part_of(const Line* line, int i) {
    double part = fmin(i + 0.5, line->ends[1]) - fmax(i - 0.5, line->ends[0]);
    return (float)fmin(fmax(part, 0.0), 1.0);
}

#define THIS_LINE \
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y; \
    if (column >= columns || row >= rows) return; \
    for (unsigned view = blockIdx.z; view < views; view += gridDim.z) { \
        Line line = line_of(poses + 15ull * view, row, column, rows, columns, pitch_u, pitch_v, radius, parallel, first_x, \
                            first_y, first_z, size_x, size_y, size_z, nx, ny, nz); \
        unsigned long long pixel = ((unsigned long long)view * rows + row) * columns + column; \
        unsigned long long plane = (unsigned long long)nx * ny; \
        unsigned long long stride_a = line.main == 0 ? 1 : line.main == 1 ? nx : plane; \
        unsigned long long stride_b = line.main == 0 ? nx : 1; \
        unsigned long long stride_c = line.main == 2 ? nx : plane; \
        int size_b = line.main == 0 ? ny : nx, size_c = line.main == 2 ? ny : nz;

// One ray a thread.
extern "C" __global__ void __launch_bounds__(THREADS)
rays(const float* __restrict__ volume, float* __restrict__ out, const double* __restrict__ poses, unsigned views, unsigned rows,
     unsigned columns, int nx, int ny, int nz, double pitch_u, double pitch_v, double radius, unsigned parallel, double first_x,
     double first_y, double first_z, double size_x, double size_y, double size_z) {
    THIS_LINE
        float sum = 0;
        for (int i = line.first; i < line.end; i++, line.b += line.db, line.c += line.dc) {
            int b = (int)(line.b >> 32), c = (int)(line.c >> 32);
            float fb = fraction(line.b), fc = fraction(line.c);
            const float* from = volume + i * stride_a;
            bool b0 = (unsigned)b < (unsigned)size_b, b1 = (unsigned)(b + 1) < (unsigned)size_b;
            bool c0 = (unsigned)c < (unsigned)size_c, c1 = (unsigned)(c + 1) < (unsigned)size_c;
            float v00 = b0 && c0 ? from[b * stride_b + c * stride_c] : 0;
            float v10 = b1 && c0 ? from[(b + 1) * stride_b + c * stride_c] : 0;
            float v01 = b0 && c1 ? from[b * stride_b + (c + 1) * stride_c] : 0;
            float v11 = b1 && c1 ? from[(b + 1) * stride_b + (c + 1) * stride_c] : 0;
            float low = v00 + fb * (v10 - v00), high = v01 + fb * (v11 - v01);
            float value = low + fc * (high - low);
            if (i == line.first || i == line.end - 1) value *= part_of(&line, i);
            sum += value;
        }
        out[pixel] = sum * (float)line.step;
    }
}

// One ray a thread, between voxels by the texture unit: it keeps 8 bits of the place between two of them, so
// that places are f32.
extern "C" __global__ void __launch_bounds__(THREADS)
rays_in_texture(cudaTextureObject_t volume, float* __restrict__ out, const double* __restrict__ poses, unsigned views, unsigned rows,
     unsigned columns, int nx, int ny, int nz, double pitch_u, double pitch_v, double radius, unsigned parallel, double first_x,
     double first_y, double first_z, double size_x, double size_y, double size_z) {
    THIS_LINE
        float b = (float)(line.b / FRACTION), db = (float)(line.db / FRACTION), c = (float)(line.c / FRACTION), dc = (float)(line.dc / FRACTION);
        float x = line.main == 0 ? line.first : b, dx = line.main == 0 ? 1 : db;
        float y = line.main == 0 ? b : line.main == 1 ? line.first : c, dy = line.main == 0 ? db : line.main == 1 ? 1 : dc;
        float z = line.main == 2 ? line.first : c, dz = line.main == 2 ? 1 : dc;
        float sum = 0;
        for (int i = line.first; i < line.end; i++) {
            float at = i - line.first;
            float value = tex3D<float>(volume, x + at * dx + 0.5f, y + at * dy + 0.5f, z + at * dz + 0.5f);
            if (i == line.first || i == line.end - 1) value *= part_of(&line, i);
            sum += value;
        }
        out[pixel] = sum * (float)line.step;
        (void)plane, (void)stride_a, (void)stride_b, (void)stride_c, (void)size_b, (void)size_c;
    }
}

// The transpose: one ray a thread, added to voxels that other rays are added to at the same time.
extern "C" __global__ void __launch_bounds__(THREADS)
scatter(const float* __restrict__ values, float* __restrict__ volume, const double* __restrict__ poses, unsigned views, unsigned rows,
     unsigned columns, int nx, int ny, int nz, double pitch_u, double pitch_v, double radius, unsigned parallel, double first_x,
     double first_y, double first_z, double size_x, double size_y, double size_z) {
    THIS_LINE
        float value = values[pixel] * (float)line.step;
        for (int i = line.first; i < line.end; i++, line.b += line.db, line.c += line.dc) {
            int b = (int)(line.b >> 32), c = (int)(line.c >> 32);
            float fb = fraction(line.b), fc = fraction(line.c);
            float* to = volume + i * stride_a;
            float share = i == line.first || i == line.end - 1 ? value * part_of(&line, i) : value;
            bool b0 = (unsigned)b < (unsigned)size_b, b1 = (unsigned)(b + 1) < (unsigned)size_b;
            bool c0 = (unsigned)c < (unsigned)size_c, c1 = (unsigned)(c + 1) < (unsigned)size_c;
            if (b0 && c0) atomicAdd(to + b * stride_b + c * stride_c, share * (1 - fb) * (1 - fc));
            if (b1 && c0) atomicAdd(to + (b + 1) * stride_b + c * stride_c, share * fb * (1 - fc));
            if (b0 && c1) atomicAdd(to + b * stride_b + (c + 1) * stride_c, share * (1 - fb) * fc);
            if (b1 && c1) atomicAdd(to + (b + 1) * stride_b + (c + 1) * stride_c, share * fb * fc);
        }
    }
}

// Back-projection: a voxel (i, j, k) falls on column U/W and row V/W, (U, V, W) = matrix (i, j, k, 1).

// One voxel a thread.
extern "C" __global__ void __launch_bounds__(THREADS)
voxels(const float* __restrict__ values, float* __restrict__ volume, const double* __restrict__ matrices, unsigned views,
     unsigned rows, unsigned columns, int nx, int ny, int nz, unsigned even) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    for (int z = blockIdx.z; z < nz; z += gridDim.z) {
        float sum = 0;
        for (unsigned view = 0; view < views; view++) {
            const double* m = matrices + 12ull * view;
            double w = m[8] * x + m[9] * y + m[10] * z + m[11];
            if (w <= 0) continue;
            double inverse = 1 / w;
            double column = (m[0] * x + m[1] * y + m[2] * z + m[3]) * inverse;
            double row = (m[4] * x + m[5] * y + m[6] * z + m[7]) * inverse;
            if (!(column > -1 && column < columns && row > -1 && row < rows)) continue;
            int c = (int)floor(column), r = (int)floor(row);
            float fc = (float)(column - c), fr = (float)(row - r);
            const float* from = values + ((unsigned long long)view * rows) * columns;
            bool c0 = c >= 0, c1 = c + 1 < (int)columns, r0 = r >= 0, r1 = r + 1 < (int)rows;
            float v00 = r0 && c0 ? from[(long long)r * columns + c] : 0, v01 = r0 && c1 ? from[(long long)r * columns + c + 1] : 0;
            float v10 = r1 && c0 ? from[(r + 1ll) * columns + c] : 0, v11 = r1 && c1 ? from[(r + 1ll) * columns + c + 1] : 0;
            float low = v00 + fc * (v01 - v00), high = v10 + fc * (v11 - v10);
            sum += (low + fr * (high - low)) * (even ? 1.0f : (float)(inverse * inverse));
        }
        volume[((unsigned long long)z * ny + y) * nx + x] = sum;
    }
}

// DEPTH voxels along z a thread, for detectors whose columns are parallel to z: column and weight are found
// once for all of them. Two neighbouring pixels of a row are mixed once for all voxels between this row and
// its neighbours.
extern "C" __global__ void __launch_bounds__(THREADS)
columns_of_voxels(const float* __restrict__ values, float* __restrict__ volume, const double* __restrict__ matrices, unsigned views,
     unsigned rows, unsigned columns, int nx, int ny, int nz, unsigned even) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int first = blockIdx.z * DEPTH;
    float sum[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) sum[k] = 0;
    for (unsigned view = 0; view < views; view++) {
        const double* m = matrices + 12ull * view;
        double w = m[8] * x + m[9] * y + m[11];
        if (w <= 0) continue;
        double inverse = 1 / w;
        double column = (m[0] * x + m[1] * y + m[3]) * inverse;
        if (!(column > -1 && column < columns)) continue;
        int c = (int)floor(column);
        float fc = (float)(column - c), weight = even ? 1.0f : (float)(inverse * inverse);
        // Pixels beyond the detector have weight 0 and the place of one on it.
        float here = c >= 0 ? weight * (1 - fc) : 0, next = c + 1 < (int)columns ? weight * fc : 0;
        const float* left = values + (unsigned long long)view * rows * columns + (c >= 0 ? c : 0);
        const int right = c >= 0 && c + 1 < (int)columns ? 1 : 0;
        long long place = fixed((m[4] * x + m[5] * y + m[6] * first + m[7]) * inverse), step = fixed(m[6] * inverse);
        int row = -0x40000000;
        float low = 0, high = 0;
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            int r = (int)(place >> 32);
            if (r != row) {
                low = high;
                if (r != row + 1) {
                    const float* from = left + (long long)r * columns;
                    low = (unsigned)r < rows ? here * from[0] + next * from[right] : 0;
                }
                const float* from = left + (r + 1ll) * columns;
                high = (unsigned)(r + 1) < rows ? here * from[0] + next * from[right] : 0;
                row = r;
            }
            sum[k] += low + fraction(place) * (high - low);
            place += step;
        }
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (first + k < nz) volume[((unsigned long long)(first + k) * ny + y) * nx + x] = sum[k];
    }
}

// The same with pixels between others by the texture unit, in layers [view, row, column].
extern "C" __global__ void __launch_bounds__(THREADS)
voxels_in_texture(cudaTextureObject_t values, float* __restrict__ volume, const double* __restrict__ matrices, unsigned views,
     unsigned rows, unsigned columns, int nx, int ny, int nz, unsigned even) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int first = blockIdx.z * DEPTH;
    float sum[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) sum[k] = 0;
    for (unsigned view = 0; view < views; view++) {
        const double* m = matrices + 12ull * view;
        double w = m[8] * x + m[9] * y + m[11];
        if (w <= 0) continue;
        double inverse = 1 / w;
        float column = (float)((m[0] * x + m[1] * y + m[3]) * inverse + 0.5), step = (float)(m[6] * inverse);
        float row = (float)((m[4] * x + m[5] * y + m[6] * first + m[7]) * inverse + 0.5);
        float weight = even ? 1.0f : (float)(inverse * inverse);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) sum[k] += weight * tex2DLayered<float>(values, column, row + k * step, view);
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (first + k < nz) volume[((unsigned long long)(first + k) * ny + y) * nx + x] = sum[k];
    }
}
