// Pictures of a volume [z, y, x]: one ray a thread. MODE is 0 for line integrals, 1 for the largest value, 2
// for emission and absorption, 3 for a lit surface. Blocks are WIDTH x HEIGHT pixels.
//
// A ray's main axis is cut into cells, `samples` for each voxel. Cell k reaches from k to k + 1, and the ray
// is sampled in the cell's middle, where it crosses the plane at (b + k db, c + k dc). Axes b and c of the
// main axes x, y, z are (y, z), (x, z), (x, y).

#define THREADS (WIDTH * HEIGHT)
#define SIDE 8
#define INFINITE __uint_as_float(0x7f800000u)
#define DARK (1.0f / 1024)
#define FAINT 1e-5f
#define MARGIN (1 + 1e-9)
#define CHANNELS (MODE < 2 ? 1 : 4)

// `voxel` is a cell's part of a voxel.
struct Ray {
    int main, up, first, last, samples;
    float b, db, c, dc, low, high, step, voxel;
};

// The volume in memory, and the sizes of its axes.
struct Size {
    int x, y, z;
    __device__ int along(int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};

// The ray of a pixel in voxel indices that count from the corner of the box: voxel i reaches from i to i + 1.
// False where it misses the box.
static __device__ bool ray_of(const double* frame, unsigned row, unsigned column, unsigned rows, unsigned columns, Size size,
                              bool from_point, const int* samples_along, Ray* ray) {
    double x = column - 0.5 * (columns - 1), y = row - 0.5 * (rows - 1);
    double at[3], along[3], enter = from_point ? 0 : -1e300, leave = 1e300, length = 0;
    for (int axis = 0; axis < 3; axis++) {
        at[axis] = frame[axis] + x * frame[3 + axis] + y * frame[6 + axis];
        along[axis] = frame[9 + axis] + x * frame[12 + axis] + y * frame[15 + axis];
        double mm = along[axis] * frame[18 + axis], end = size.along(axis);
        length += mm * mm;
        if (along[axis] == 0) {
            if (!(at[axis] >= 0 && at[axis] <= end)) return false;
            continue;
        }
        double inverse = 1 / along[axis], one = -at[axis] * inverse, other = (end - at[axis]) * inverse;
        enter = fmax(enter, fmin(one, other));
        leave = fmin(leave, fmax(one, other));
    }
    if (!(enter < leave)) return false;
    double dx = fabs(along[0]), dy = fabs(along[1]), dz = fabs(along[2]);
    // If axes differ by rounding alone, the first is the main axis: as `main_axis` in ray.rs.
    int main = dy > MARGIN * dx ? 1 : 0;
    if (dz > MARGIN * (main == 0 ? dx : dy)) main = 2;
    double a = main == 0 ? at[0] : main == 1 ? at[1] : at[2], da = main == 0 ? along[0] : main == 1 ? along[1] : along[2];
    double b = main == 0 ? at[1] : at[0], db = main == 0 ? along[1] : along[0];
    double c = main == 2 ? at[1] : at[2], dc = main == 2 ? along[1] : along[2];
    ray->samples = samples_along[main];
    double samples = ray->samples, inverse = 1 / (da * samples);
    db *= inverse;
    dc *= inverse;
    double one = (a + enter * da) * samples, other = (a + leave * da) * samples, middle = 0.5 - a * samples;
    double low = fmin(one, other), high = fmax(one, other), end = samples * size.along(main) - 1;
    ray->main = main;
    ray->up = da > 0;
    ray->b = (float)(b + middle * db - 0.5);
    ray->db = (float)db;
    ray->c = (float)(c + middle * dc - 0.5);
    ray->dc = (float)dc;
    ray->low = (float)low;
    ray->high = (float)high;
    ray->step = (float)(sqrt(length) * fabs(inverse));
    ray->voxel = (float)(1 / samples);
    ray->first = (int)fmin(fmax(floor(low), 0.0), end);
    ray->last = (int)fmin(fmax(ceil(high) - 1, (double)ray->first), end);
    return true;
}

static __device__ __forceinline__ float clamped(float place, int count) { return fminf(fmaxf(place, 0.0f), count - 1.0f); }

static __device__ __forceinline__ float between(float low, float high, float fraction) { return low + fraction * (high - low); }

// Voxels in memory, between them in f32.
struct InMemory {
    const float* volume;
    Size size;

    __device__ __forceinline__ float in_plane(int main, int plane, float b, float c) const {
        int size_b = main == 0 ? size.y : size.x, size_c = main == 2 ? size.y : size.z;
        size_t stride_a = main == 0 ? 1 : main == 1 ? size.x : (size_t)size.x * size.y;
        size_t stride_b = main == 0 ? size.x : 1, stride_c = main == 2 ? size.x : (size_t)size.x * size.y;
        b = clamped(b, size_b);
        c = clamped(c, size_c);
        int low_b = (int)b, low_c = (int)c;
        size_t beside = low_b + 1 < size_b ? stride_b : 0, below = low_c + 1 < size_c ? stride_c : 0;
        const float* at = volume + plane * stride_a + low_b * stride_b + low_c * stride_c;
        float fb = b - low_b, low = between(at[0], at[beside], fb), high = between(at[below], at[below + beside], fb);
        return between(low, high, c - low_c);
    }
    __device__ float at(float x, float y, float z) const {
        z = clamped(z, size.z);
        int low = (int)z;
        return between(in_plane(2, low, x, y), in_plane(2, min(low + 1, size.z - 1), x, y), z - low);
    }
    // The planes of cells that are finer than voxels.
    __device__ __forceinline__ float in_cell(int main, float place, float b, float c) const {
        int count = size.along(main), low = (int)clamped(place, count);
        return between(in_plane(main, low, b, c), in_plane(main, min(low + 1, count - 1), b, c), clamped(place, count) - low);
    }
};

// A texture of voxels, which clamps places to the volume.
struct InTexture {
    cudaTextureObject_t volume;

    __device__ __forceinline__ float at(float x, float y, float z) const { return tex3D<float>(volume, x + 0.5f, y + 0.5f, z + 0.5f); }
    __device__ __forceinline__ float in_cell(int main, float a, float b, float c) const {
        return at(main == 0 ? a : b, main == 1 ? a : main == 0 ? b : c, main == 2 ? a : c);
    }
    __device__ __forceinline__ float in_plane(int main, int plane, float b, float c) const { return in_cell(main, (float)plane, b, c); }
};

// The sample in the middle of a cell.
template <class Source>
static __device__ __forceinline__ float sample(const Source& source, const Ray& ray, int k) {
    float b = ray.b + k * ray.db, c = ray.c + k * ray.dc;
    if (ray.samples == 1) return source.in_plane(ray.main, k, b, c);
    return source.in_cell(ray.main, (k + 0.5f) * ray.voxel - 0.5f, b, c);
}

static __device__ __forceinline__ float part_of(const Ray& ray, int k) {
    return fmaxf(fminf(k + 1.0f, ray.high) - fmaxf((float)k, ray.low), 0.0f);
}

// What a pixel is made of: numbers that its samples change.
struct Pixel {
    float state[4];
    int hit;
};

static __device__ Pixel started() {
    Pixel pixel = {{MODE == 1 ? -INFINITE : 0, 0, 0, MODE == 2 ? 1.0f : 0.0f}, -1};
    return pixel;
}

// Takes a sample. True where no later one changes the pixel.
static __device__ __forceinline__ bool take(Pixel* pixel, const float* look, int ramps, float value, float part, const Ray& ray, int k) {
#if MODE == 0
    pixel->state[0] += value * part;
    return false;
#elif MODE == 1
    if (part > 0) pixel->state[0] = fmaxf(pixel->state[0], value);
    return false;
#elif MODE == 2
    float opacity = look[3];
    for (int at = 0; at < ramps; at++) {
        const float* ramp = look + 4 + 6 * at;
        opacity += fminf(fmaxf(value - ramp[0], 0.0f), ramp[1]) * ramp[5];
    }
    if (opacity <= 0) return false;
    float r = look[0], g = look[1], b = look[2];
    for (int at = 0; at < ramps; at++) {
        const float* ramp = look + 4 + 6 * at;
        float rise = fminf(fmaxf(value - ramp[0], 0.0f), ramp[1]);
        r += rise * ramp[2];
        g += rise * ramp[3];
        b += rise * ramp[4];
    }
    float weight = pixel->state[3] * (1 - expf(-opacity * part * ray.step));
    pixel->state[0] += weight * r;
    pixel->state[1] += weight * g;
    pixel->state[2] += weight * b;
    pixel->state[3] -= weight;
    return pixel->state[3] < DARK;
#else
    if (!(part > 0 && value >= look[0])) return false;
    pixel->hit = k;
    return true;
#endif
}

// Numbers of blocks up to which a ray may leave them out.
static __device__ __forceinline__ float bar(const Pixel& pixel) { return MODE == 1 ? pixel.state[0] : 0; }

// The largest number of the blocks of a layer that the ray may read in some cells.
static __device__ float key_of(const float* keys, const Ray& ray, int layer, int from, int to, Size size) {
    int nx = (size.x + SIDE - 1) / SIDE, ny = (size.y + SIDE - 1) / SIDE;
    int stride_a = ray.main == 0 ? 1 : ray.main == 1 ? nx : nx * ny, stride_b = ray.main == 0 ? nx : 1;
    int stride_c = ray.main == 2 ? nx : nx * ny;
    int size_b = ray.main == 0 ? size.y : size.x, size_c = ray.main == 2 ? size.y : size.z;
    int b0 = (int)clamped(ray.b + from * ray.db, size_b) / SIDE, b1 = (int)clamped(ray.b + to * ray.db, size_b) / SIDE;
    int c0 = (int)clamped(ray.c + from * ray.dc, size_c) / SIDE, c1 = (int)clamped(ray.c + to * ray.dc, size_c) / SIDE;
    // A ray crosses at most one border of blocks along each axis in a layer: its slope is at most 1.
    const float* at = keys + layer * stride_a;
    float most = at[b0 * stride_b + c0 * stride_c];
    if (b1 != b0) most = fmaxf(most, at[b1 * stride_b + c0 * stride_c]);
    if (c1 != c0) {
        most = fmaxf(most, at[b0 * stride_b + c1 * stride_c]);
        if (b1 != b0) most = fmaxf(most, at[b1 * stride_b + c1 * stride_c]);
    }
    return most;
}

// Walks through cells from .. to in the ray's order. True where the ray ends.
template <class Source>
static __device__ __forceinline__ bool walk(const Source& source, const float* look, int ramps, const Ray& ray, int from, int to, Pixel* pixel) {
    int count = to - from + 1, k = ray.up ? from : to, by = ray.up ? 1 : -1;
#pragma unroll UNROLL
    for (int turn = 0; turn < count; turn++, k += by) {
        if (take(pixel, look, ramps, sample(source, ray, k), part_of(ray, k), ray, k)) return true;
    }
    return false;
}

#if MODE == 3
// The colour of the surface in or just before cell `hit`: look holds the value, its colour, ambient, diffuse
// and specular light, shininess, and the direction to the light.
template <class Source>
static __device__ void lit(const Source& source, const double* frame, const float* look, const Ray& ray, Pixel* pixel) {
    int before = ray.up ? pixel->hit - 1 : pixel->hit + 1;
    float k = pixel->hit;
    if (before >= ray.first && before <= ray.last) {
        float here = sample(source, ray, pixel->hit), there = sample(source, ray, before);
        float share = here > there ? fminf(fmaxf((look[0] - there) / (here - there), 0.0f), 1.0f) : 1.0f;
        k = before + share * (pixel->hit - before);
    }
    float a = (k + 0.5f) * ray.voxel - 0.5f, b = ray.b + k * ray.db, c = ray.c + k * ray.dc;
    float x = ray.main == 0 ? a : b, y = ray.main == 1 ? a : ray.main == 0 ? b : c, z = ray.main == 2 ? a : c;
    float way = ray.up ? 1.0f : -1.0f, da = way * ray.voxel, db = way * ray.db, dc = way * ray.dc;
    float sx = (float)frame[18], sy = (float)frame[19], sz = (float)frame[20];
    float vx = -(ray.main == 0 ? da : db) * sx, vy = -(ray.main == 1 ? da : ray.main == 0 ? db : dc) * sy, vz = -(ray.main == 2 ? da : dc) * sz;
    float inverse = rsqrtf(vx * vx + vy * vy + vz * vz);
    vx *= inverse;
    vy *= inverse;
    vz *= inverse;
    float gx = (source.at(x + 1, y, z) - source.at(x - 1, y, z)) / sx;
    float gy = (source.at(x, y + 1, z) - source.at(x, y - 1, z)) / sy;
    float gz = (source.at(x, y, z + 1) - source.at(x, y, z - 1)) / sz;
    float steep = sqrtf(gx * gx + gy * gy + gz * gz);
    // Less is rounding: the surface faces the viewer.
    if (steep * fminf(sx, fminf(sy, sz)) > FAINT * fabsf(look[0])) {
        gx /= steep;
        gy /= steep;
        gz /= steep;
    } else {
        gx = vx;
        gy = vy;
        gz = vz;
    }
    if (gx * vx + gy * vy + gz * vz < 0) {
        gx = -gx;
        gy = -gy;
        gz = -gz;
    }
    float facing = gx * look[8] + gy * look[9] + gz * look[10];
    float shine = 2 * facing * (gx * vx + gy * vy + gz * vz) - (look[8] * vx + look[9] * vy + look[10] * vz);
    float rough = look[4] + look[5] * fmaxf(facing, 0.0f), smooth = facing > 0 && shine > 0 ? look[6] * powf(shine, look[7]) : 0;
    for (int channel = 0; channel < 3; channel++) pixel->state[channel] = fminf(look[1 + channel] * rough + smooth, 1.0f);
    pixel->state[3] = 1;
}
#endif

// `numbers` are rows and columns of the picture, voxels along x, y and z, whether rays start at a point,
// samples a voxel along each axis, and ramps of the transfer function.
static __device__ __forceinline__ Size size_of_volume(const int* numbers) {
    Size size = {numbers[2], numbers[3], numbers[4]};
    return size;
}

template <bool SKIP, class Source>
static __device__ __forceinline__ void draw(const Source& source, float* out, const int* numbers, const double* frame, const float* look,
                                            const float* keys) {
    const Size size = size_of_volume(numbers);
    const unsigned rows = numbers[0], columns = numbers[1];
    const int ramps = numbers[9];
    unsigned column = blockIdx.x * WIDTH + threadIdx.x, row = blockIdx.y * HEIGHT + threadIdx.y;
    if (column >= columns || row >= rows) return;
    Ray ray;
    Pixel pixel = started();
    if (ray_of(frame, row, column, rows, columns, size, numbers[5], numbers + 6, &ray)) {
        if (SKIP) {
            int thick = SIDE * ray.samples, from = ray.first / thick, to = ray.last / thick, layer = ray.up ? from : to;
            for (int turn = from; turn <= to; turn++, layer += ray.up ? 1 : -1) {
                int start = max(ray.first, layer * thick), end = min(ray.last, layer * thick + thick - 1);
                if (key_of(keys, ray, layer, start, end, size) <= bar(pixel)) continue;
                if (walk(source, look, ramps, ray, start, end, &pixel)) break;
            }
        } else {
            walk(source, look, ramps, ray, ray.first, ray.last, &pixel);
        }
    }
    float* to = out + CHANNELS * ((size_t)row * columns + column);
#if MODE == 0
    to[0] = pixel.state[0] == 0 ? 0 : pixel.state[0] * ray.step;
#elif MODE == 1
    to[0] = pixel.state[0] == -INFINITE ? look[0] : pixel.state[0];
#else
#if MODE == 3
    if (pixel.hit >= 0) lit(source, frame, look, ray, &pixel);
#endif
    to[0] = pixel.state[0];
    to[1] = pixel.state[1];
    to[2] = pixel.state[2];
    to[3] = MODE == 2 ? 1 - pixel.state[3] : pixel.state[3];
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
rays(const float* __restrict__ volume, float* __restrict__ out, const int* __restrict__ numbers, const double* __restrict__ frame,
     const float* __restrict__ look, const float* __restrict__ keys) {
    draw<false>(InMemory{volume, size_of_volume(numbers)}, out, numbers, frame, look, keys);
}

extern "C" __global__ void __launch_bounds__(THREADS)
rays_skipping(const float* __restrict__ volume, float* __restrict__ out, const int* __restrict__ numbers, const double* __restrict__ frame,
              const float* __restrict__ look, const float* __restrict__ keys) {
    draw<true>(InMemory{volume, size_of_volume(numbers)}, out, numbers, frame, look, keys);
}

extern "C" __global__ void __launch_bounds__(THREADS)
in_texture(cudaTextureObject_t volume, float* __restrict__ out, const int* __restrict__ numbers, const double* __restrict__ frame,
           const float* __restrict__ look, const float* __restrict__ keys) {
    draw<false>(InTexture{volume}, out, numbers, frame, look, keys);
}

extern "C" __global__ void __launch_bounds__(THREADS)
in_texture_skipping(cudaTextureObject_t volume, float* __restrict__ out, const int* __restrict__ numbers, const double* __restrict__ frame,
                    const float* __restrict__ look, const float* __restrict__ keys) {
    draw<true>(InTexture{volume}, out, numbers, frame, look, keys);
}
