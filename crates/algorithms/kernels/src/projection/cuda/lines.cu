// Projectors for detectors whose columns of pixels are parallel to z. Such a column of pixels is a line, and
// so are the voxels along z. Two neighbouring lines are mixed once in shared memory. The mixture is read at
// places that are affine in the index of the output.
//
// Lines are contiguous in scratch memory: projections [view, column, row], volumes [y, x, z]. A line has room
// for `pitch` numbers, a multiple of 4, and those behind its end are 0. Each warp has a room of its own, so
// that blocks need no barrier.
//
// One lane finds in f64 what the warp reads at one of 32 steps. Places in a mixed line, which has at most
// 1024 numbers, are fixed-point numbers of 10 bits and a fraction of 22. A place is the sum of three numbers,
// each rounded once, and one of them is taken up to 15 times: no place is wrong by more than 9 times 2^-22,
// whatever the size of the detector.
//
// Blocks have 32 x (WX WY) threads. Their warps take WX x WY columns of voxels, which share most of what they
// read in the first cache.

#define WARPS (WX * WY)
#define THREADS (32 * WARPS)
// Bits of a place's fraction.
#define BITS 22
// Numbers of a mixed line, and spare numbers behind it. The places of outputs that do not exist wrap around
// to any of them; the values read there are dropped.
#define ROOM (1 << (32 - BITS))
#define BEHIND 32
#define FRACTION ((double)(1 << BITS))
// Numbers of a ray in the table.
#define ENTRY 9
// Columns of pixels that a lane finds in one view before the warp adds them.
#define SLOTS 2

typedef float Room[ROOM + BEHIND];

// Reads the numbers behind `pointer` again where they are needed. Kept through the loops over outputs they
// would take registers away.
#ifdef RAYSPIN_EMULATED
#define READ_AGAIN(pointer)
#else
#define READ_AGAIN(pointer) asm volatile("" : "+l"(pointer))
#endif

// Writes `count` matrices of height x width as lines along their columns.
extern "C" __global__ void __launch_bounds__(THREADS)
to_lines(const float* __restrict__ from, float* __restrict__ to, unsigned count, unsigned height, unsigned width, unsigned pitch) {
    __shared__ float tile[32][33];
    unsigned x = blockIdx.x * 32 + threadIdx.x;
    for (unsigned matrix = blockIdx.z; matrix < count; matrix += gridDim.z) {
        for (unsigned top = blockIdx.y * 32; top < pitch; top += gridDim.y * 32) {
            for (unsigned k = threadIdx.y; k < 32; k += WARPS) {
                unsigned y = top + k;
                tile[k][threadIdx.x] = x < width && y < height ? from[((unsigned long long)matrix * height + y) * width + x] : 0;
            }
            __syncthreads();
            for (unsigned k = threadIdx.y; k < 32; k += WARPS) {
                unsigned line = blockIdx.x * 32 + k, at = top + threadIdx.x;
                if (line < width && at < pitch) to[((unsigned long long)matrix * width + line) * pitch + at] = tile[threadIdx.x][k];
            }
            __syncthreads();
        }
    }
}

// Writes the rays of each column of pixels. Row r crosses plane i of the main axis at (b + i db, (c + r cr) +
// i (dc + r dcr)). An entry holds b, db, c, dc, cr, dcr, both ends along the main axis, and the main axis: 0
// for x, 1 for y.
extern "C" __global__ void __launch_bounds__(THREADS)
upright_rays(const double* __restrict__ poses, double* __restrict__ table, unsigned views, unsigned rows, unsigned columns,
             double pitch_u, double pitch_v, unsigned parallel, double first_x, double first_y, double first_z, double size_x,
             double size_y, double size_z) {
    unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (unsigned long long)views * columns) return;
    const double* pose = poses + 15 * (at / columns);
    double* to = table + ENTRY * at;
    double along_u = ((unsigned)(at % columns) - 0.5 * (columns - 1)) * pitch_u, low = -0.5 * (rows - 1) * pitch_v;
    double end_x = pose[3] + along_u * pose[6], end_y = pose[4] + along_u * pose[7];
    double end_z = pose[5] + along_u * pose[8] + low * pose[11], rise = pitch_v * pose[11] / size_z;
    double start_x = parallel ? end_x - pose[0] : pose[0], start_y = parallel ? end_y - pose[1] : pose[1];
    double start_z = parallel ? end_z - pose[2] : pose[2];
    double dx = (end_x - start_x) / size_x, dy = (end_y - start_y) / size_y, dz = (end_z - start_z) / size_z;
    double x = (start_x - first_x) / size_x, y = (start_y - first_y) / size_y, z = (start_z - first_z) / size_z;
    int main = fabs(dx) >= fabs(dy) ? 0 : 1;
    double a = main == 0 ? x : y, da = main == 0 ? dx : dy, b = main == 0 ? y : x, db = (main == 0 ? dy : dx) / da;
    double dc = dz / da, dcr = parallel ? 0 : rise / da;
    to[0] = b - a * db;
    to[1] = db;
    to[2] = z - a * dc;
    to[3] = dc;
    to[4] = parallel ? rise : -a * dcr;
    to[5] = dcr;
    to[6] = parallel ? -1e300 : fmin(a, a + da);
    to[7] = parallel ? 1e300 : fmax(a, a + da);
    to[8] = main;
}

// The part of plane i's interval between source and pixel.
static __device__ double part_of(const double* ray, int i) {
    return fmin(fmax(fmin(i + 0.5, ray[7]) - fmax(i - 0.5, ray[6]), 0.0), 1.0);
}

// The length of row r's ray between two planes, in mm.
static __device__ float step_of(const double* ray, double row, double size_x, double size_y, double size_z) {
    double a = ray[8] == 0 ? size_x : size_y, b = ray[1] * (ray[8] == 0 ? size_y : size_x), c = (ray[3] + row * ray[5]) * size_z;
    return (float)sqrt(a * a + b * b + c * c);
}

// Multiplies each pixel of lines by the length of its ray between two planes.
extern "C" __global__ void __launch_bounds__(THREADS)
times_steps(float* __restrict__ values, const double* __restrict__ table, unsigned lines, unsigned rows, unsigned pitch,
            double size_x, double size_y, double size_z) {
    for (unsigned line = blockIdx.x; line < lines; line += gridDim.x) {
        const double* ray = table + ENTRY * (unsigned long long)line;
        float* value = values + (unsigned long long)line * pitch;
        for (unsigned row = threadIdx.x; row < rows; row += blockDim.x) value[row] *= step_of(ray, row, size_x, size_y, size_z);
    }
}

static __device__ unsigned fixed(double place) {
    return (unsigned)(long long)floor(place * FRACTION + 0.5);
}

// Places of a warp's outputs in a mixed line: the place of output 0, and the distance between outputs 0 and
// 32, less than 512.
struct Places {
    unsigned start, far;
};

static __device__ __forceinline__ Places places_of(double start, double step) {
    Places places = {fixed(start), fixed(32 * step)};
    return places;
}

// The place of output threadIdx.x.
static __device__ __forceinline__ unsigned first_place(Places places) {
    return places.start + (unsigned)(((long long)(int)places.far * (int)threadIdx.x + 16) >> 5);
}

// The fraction of a place plus ABOVE. The bits of the fraction become the mantissa of a float; nothing is
// converted.
#define ABOVE ((float)(1 << (23 - BITS)))
static __device__ __forceinline__ float fraction(unsigned place) {
    return __uint_as_float((place & ((1u << BITS) - 1)) | (150u - BITS) << 23);
}

// What a warp reads at one step: two lines of scratch memory with their weights, and `len` numbers from
// `first` on, which is a multiple of
// 4. Bit 0 of `first` is set where the second line is the next one, not the same. Nothing if len is 0.
struct __align__(16) Read {
    float here, next;
    Places places;
    unsigned line;
    int first, len;
};

// Sets `read` to the numbers around `count` places, `slope` apart from `place` on, in lines of `size`
// numbers. It takes a number more on each side, because places are rounded.
static __device__ void window(Read* read, double place, double slope, int count, int size) {
    double reach = (count - 1) * slope, low = floor(place + fmin(reach, 0.0)) - 1, high = floor(place + fmax(reach, 0.0)) + 3;
    read->len = 0;
    if (!(low < size && high > 0)) return;
    read->first = (int)low & ~3;
    read->len = (int)high - read->first;
    read->places = places_of(place - read->first, slope);
}

static __device__ __forceinline__ float4 mixed(float here, float4 x, float next, float4 y) {
    return make_float4(here * x.x + next * y.x, here * x.y + next * y.y, here * x.z + next * y.z, here * x.w + next * y.w);
}

// Mixes the numbers of one line or two (TWO) that PARTS rounds of lanes take, `len` at most. INSIDE: all
// numbers lie in the lines.
template <int PARTS, bool TWO, bool INSIDE>
static __device__ __forceinline__ void mix_parts(const float* one, const float* two, float here, float next, int first, int len, int pitch,
                                                 float* line) {
    float4 x[PARTS], y[PARTS];
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int at = 4 * threadIdx.x + 128 * part;
        bool some = (part < PARTS - 1 || at < len) && (INSIDE || (unsigned)(first + at) < pitch);
        x[part] = y[part] = make_float4(0, 0, 0, 0);
        if (some) {
            x[part] = *(const float4*)(one + at);
            if (TWO) y[part] = *(const float4*)(two + at);
        }
    }
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int at = 4 * threadIdx.x + 128 * part;
        if (part < PARTS - 1 || at < len) *(float4*)(line + at) = mixed(here, x[part], next, y[part]);
    }
}

// Mixes three rounds at a time, so that three reads of each line are under way.
template <bool TWO, bool INSIDE>
static __device__ __forceinline__ void mix_window(const float* one, const float* two, float here, float next, int first, int len, int pitch,
                                                  float* line) {
    for (; len > 384; len -= 384, first += 384, one += 384, two += 384, line += 384) {
        mix_parts<3, TWO, INSIDE>(one, two, here, next, first, 384, pitch, line);
    }
    if (len > 256) mix_parts<3, TWO, INSIDE>(one, two, here, next, first, len, pitch, line);
    else if (len > 128) mix_parts<2, TWO, INSIDE>(one, two, here, next, first, len, pitch, line);
    else mix_parts<1, TWO, INSIDE>(one, two, here, next, first, len, pitch, line);
}

// Mixes a window of lines, whose numbers are 0 outside 0 .. pitch.
template <bool TWO>
static __device__ __forceinline__ void mix(const float* one, const float* two, float here, float next, int first, int len, int pitch,
                                           float* line) {
    one += first;
    two += first;
    if (first >= 0 && first + len <= pitch) mix_window<TWO, true>(one, two, here, next, first, len, pitch, line);
    else mix_window<TWO, false>(one, two, here, next, first, len, pitch, line);
}

// Mixes the lines of each step and adds the mixture at the places of 32 x ROUNDS outputs. The second line is
// `beside` lines behind the first.
static __device__ __forceinline__ void add_all(const float* lines, const Read* reads, int steps, int pitch, unsigned beside, float* line,
                                               float* sum) {
    unsigned long long far = (unsigned long long)beside * pitch;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        Read read = reads[step];
        if (read.len == 0) continue;
        __syncwarp();
        const float* one = lines + (unsigned long long)read.line * pitch;
        mix<true>(one, read.first & 1 ? one + far : one, read.here, read.next, read.first & ~1, read.len, pitch, line);
        __syncwarp();
        unsigned start = first_place(read.places);
#pragma unroll
        for (int k = 0; k < ROUNDS; k++) {
            unsigned place = start + k * read.places.far, i = place >> BITS;
            float share = fraction(place) - ABOVE, low = line[i], high = line[i + 1];
            sum[k] += low + share * (high - low);
        }
    }
}

// Line integrals: a warp takes up to `tile` rows of a column of pixels, and a lane one of 32 planes.
// lines [y, x, pitch], out [view, row, column].
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
rays_from_lines(const float* __restrict__ lines, float* __restrict__ out, const double* __restrict__ table, unsigned views,
                unsigned rows, unsigned columns, int nx, int ny, int nz, int pitch, int tile, double size_x, double size_y,
                double size_z) {
    extern __shared__ float4 own[];
    float* line = ((Room*)own)[threadIdx.y];
    Read* reads = (Read*)((Room*)own + WARPS) + 32 * threadIdx.y;
    unsigned column = blockIdx.x * WARPS + threadIdx.y;
    if (column >= columns) return;
    for (unsigned first_row = blockIdx.y * tile; first_row < rows; first_row += gridDim.y * tile) {
        int count = min(tile, (int)(rows - first_row));
        float sum[ROUNDS];
        for (unsigned view = blockIdx.z; view < views; view += gridDim.z) {
            const double* ray = table + ENTRY * ((unsigned long long)view * columns + column);
            int main = (int)ray[8], size_a = main == 0 ? nx : ny, size_b = main == 0 ? ny : nx;
            double low = fmax(ray[6] - 0.5, 0.0), high = fmin(ray[7] + 0.5, size_a - 1.0);
            if (ray[1] == 0) {
                if (!(ray[0] > -1 && ray[0] < size_b)) high = low - 1;
            } else {
                double one = (-1 - ray[0]) / ray[1], other = (size_b - ray[0]) / ray[1];
                low = fmax(low, fmin(one, other));
                high = fmin(high, fmax(one, other));
            }
            int first = high >= low ? (int)ceil(low) : 0, end = high >= low ? (int)floor(high) + 1 : 0;
#pragma unroll
            for (int k = 0; k < ROUNDS; k++) sum[k] = 0;
            for (int start = first; start < end; start += 32) {
                READ_AGAIN(ray);
                int i = start + threadIdx.x;
                Read mine;
                mine.len = 0;
                double b = ray[0] + i * ray[1], part = part_of(ray, i);
                if (i < end && part > 0 && b > -1 && b < size_b) {
                    int low_b = (int)floor(b);
                    float share = (float)(b - low_b);
                    window(&mine, ray[2] + first_row * ray[4] + i * (ray[3] + first_row * ray[5]), ray[4] + i * ray[5], count, nz);
                    mine.here = low_b >= 0 ? (float)part * (1 - share) : 0;
                    mine.next = low_b + 1 < size_b ? (float)part * share : 0;
                    unsigned one = max(low_b, 0);
                    mine.line = main == 0 ? one * nx + i : (unsigned)i * nx + one;
                    mine.first |= low_b >= 0 && low_b + 1 < size_b;
                }
                reads[threadIdx.x] = mine;
                __syncwarp();
                add_all(lines, reads, min(32, end - start), pitch, main == 0 ? nx : 1, line, sum);
                __syncwarp();
            }
            READ_AGAIN(ray);
#pragma unroll
            for (int k = 0; k < ROUNDS; k++) {
                unsigned row = threadIdx.x + 32 * k;
                if (row < count) {
                    out[((unsigned long long)view * rows + first_row + row) * columns + column] =
                        sum[k] * step_of(ray, first_row + row, size_x, size_y, size_z);
                }
            }
        }
    }
}

// Back-projection: a warp takes up to `tile` voxels along z, and a lane one of 32 views. A voxel (i, j, k)
// falls on column U/W and row V/W, (U, V, W) = matrix (i, j, k, 1). lines [view, column, pitch]; `add` keeps
// what the volume [z, y, x] holds.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
voxels_from_lines(const float* __restrict__ lines, float* __restrict__ volume, const double* __restrict__ matrices, unsigned views,
                  unsigned rows, unsigned columns, int nx, int ny, int nz, int pitch, int tile, unsigned even, unsigned add) {
    extern __shared__ float4 own[];
    float* line = ((Room*)own)[threadIdx.y];
    Read* reads = (Read*)((Room*)own + WARPS) + 32 * threadIdx.y;
    int x = blockIdx.x * WX + threadIdx.y % WX;
    if (x >= nx) return;
    for (int first_z = blockIdx.z * tile; first_z < nz; first_z += gridDim.z * tile) {
        int count = min(tile, nz - first_z);
        float sum[ROUNDS];
        for (int y = blockIdx.y * WY + threadIdx.y / WX; y < ny; y += gridDim.y * WY) {
#pragma unroll
            for (int k = 0; k < ROUNDS; k++) sum[k] = 0;
            for (unsigned start = 0; start < views; start += 32) {
                READ_AGAIN(matrices);
                unsigned view = start + threadIdx.x;
                Read mine;
                mine.len = 0;
                if (view < views) {
                    const double* m = matrices + 12ull * view;
                    double w = m[8] * x + m[9] * y + m[11], inverse = 1 / w, column = (m[0] * x + m[1] * y + m[3]) * inverse;
                    if (w > 0 && column > -1 && column < columns) {
                        int low = (int)floor(column);
                        float share = (float)(column - low), weight = even ? 1.0f : (float)(inverse * inverse);
                        window(&mine, (m[4] * x + m[5] * y + m[6] * first_z + m[7]) * inverse, m[6] * inverse, count, rows);
                        mine.here = low >= 0 ? weight * (1 - share) : 0;
                        mine.next = low + 1 < (int)columns ? weight * share : 0;
                        mine.line = view * columns + max(low, 0);
                        mine.first |= low >= 0 && low + 1 < (int)columns;
                    }
                }
                reads[threadIdx.x] = mine;
                __syncwarp();
                add_all(lines, reads, min(32u, views - start), pitch, 1, line, sum);
                __syncwarp();
            }
#pragma unroll
            for (int k = 0; k < ROUNDS; k++) {
                int z = threadIdx.x + 32 * k;
                if (z < count) {
                    float* to = volume + ((unsigned long long)(first_z + z) * ny + y) * nx + x;
                    *to = add ? *to + sum[k] : sum[k];
                }
            }
        }
    }
}

// What a warp's voxels take from a line of pixels. `weight` is the line's weight, `slope` the distance of
// neighbouring rays along z. `places` lie 1 before the voxels, and a voxel takes at most `taps` pixels. The
// warp reads `len` pixels from `first` on.
struct __align__(16) Taken {
    float weight, slope;
    Places places;
    unsigned line, taps;
    int first, len;
};

// Adds to 32 x ROUNDS voxels the pixels within 1 of them, TAPS at most. A voxel's first pixel is the next one
// behind the place that is 1 before the voxel. Its distance from the voxel is (1 - fraction) slope - 1.
template <int TAPS>
static __device__ __forceinline__ void add_taps(const Taken& taken, const float* line, float* sum) {
    unsigned start = first_place(taken.places);
    float nearest = (1 + ABOVE) * taken.slope - 1;
#pragma unroll
    for (int k = 0; k < ROUNDS; k++) {
        unsigned place = start + k * taken.places.far;
        float distance = nearest - fraction(place) * taken.slope;
        const float* pixel = line + (place >> BITS) + 1;
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) sum[k] += pixel[tap] * __saturatef(1 - fabsf(distance + tap * taken.slope));
    }
}

// The same with any number of them: the sums of all voxels grow by one pixel each, so that none waits for its
// own last pixel.
static __device__ __forceinline__ void add_taps(const Taken& taken, const float* line, float* sum) {
    unsigned start = first_place(taken.places);
    float nearest = (1 + ABOVE) * taken.slope - 1, distance[ROUNDS];
    const float* pixel[ROUNDS];
#pragma unroll
    for (int k = 0; k < ROUNDS; k++) {
        unsigned place = start + k * taken.places.far;
        distance[k] = nearest - fraction(place) * taken.slope;
        pixel[k] = line + (place >> BITS) + 1;
    }
    for (unsigned tap = 0; tap < taken.taps; tap++) {
#pragma unroll
        for (int k = 0; k < ROUNDS; k++) {
            sum[k] += pixel[k][tap] * __saturatef(1 - fabsf(distance[k]));
            distance[k] += taken.slope;
        }
    }
}

// The transpose of `rays_from_lines`: a warp takes up to `tile` voxels along z. Each of its lanes finds the
// columns of pixels of one of 32 views whose rays cross the voxels' plane within 1 of them. A voxel then
// takes the rows that cross within 1 of it. lines [view, column, pitch], pixels times the steps of their
// rays.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
voxels_from_rays(const float* __restrict__ lines, float* __restrict__ volume, const double* __restrict__ matrices,
                           const double* __restrict__ table, unsigned views, unsigned rows, unsigned columns, int nx, int ny, int nz,
                           int pitch, int tile, unsigned add) {
    extern __shared__ float4 own[];
    float* line = ((Room*)own)[threadIdx.y];
    Taken* all = (Taken*)((Room*)own + WARPS) + 32 * SLOTS * threadIdx.y;
    int* counts = (int*)((Taken*)((Room*)own + WARPS) + 32 * SLOTS * WARPS) + 32 * threadIdx.y;
    int x = blockIdx.x * WX + threadIdx.y % WX;
    if (x >= nx) return;
    for (int first_z = blockIdx.z * tile; first_z < nz; first_z += gridDim.z * tile) {
        int count = min(tile, nz - first_z);
        float sum[ROUNDS];
        for (int y = blockIdx.y * WY + threadIdx.y / WX; y < ny; y += gridDim.y * WY) {
#pragma unroll
            for (int k = 0; k < ROUNDS; k++) sum[k] = 0;
            for (unsigned start = 0; start < views; start += 32) {
                unsigned view = start + threadIdx.x;
                // Columns of pixels with main axis x, then those with y.
                int main = view < views ? -1 : 2, column = 0, last = -1, more = 1;
                while (more) {
                    int found = 0;
                    while (found < SLOTS && main < 2) {
                        if (column > last) {
                            if (++main == 2) break;
                            // Rays that cross the plane within 1 of the voxel end between its neighbours'
                            // places on the detector.
                            const double* m = matrices + 12ull * view;
                            double w = m[8] * x + m[9] * y + m[11], u = m[0] * x + m[1] * y + m[3];
                            double across_w = m[9 - main], across_u = m[1 - main];
                            double one = (u - across_u) / (w - across_w), other = (u + across_u) / (w + across_w);
                            column = (int)fmin(fmax(ceil(fmin(one, other) - 1e-6), 0.0), (double)columns);
                            last = (int)fmax(fmin(floor(fmax(one, other) + 1e-6), columns - 1.0), -1.0);
                            continue;
                        }
                        unsigned at = view * columns + column++;
                        const double* ray = table + ENTRY * (unsigned long long)at;
                        if ((int)ray[8] != main) continue;
                        int plane = main == 0 ? x : y, across = main == 0 ? y : x;
                        double weight = (1 - fabs(ray[0] + plane * ray[1] - across)) * part_of(ray, plane);
                        if (!(weight > 0)) continue;
                        double slope = ray[4] + plane * ray[5], step = 1 / slope, width = fabs(step), reach = (count - 1) * step;
                        double place = (first_z - (ray[2] + plane * ray[3])) * step;
                        double low = floor(place + fmin(reach, 0.0) - width) - 1, high = floor(place + fmax(reach, 0.0) + width) + 4;
                        if (!(low < rows && high > 0)) continue;
                        Taken taken;
                        taken.weight = (float)weight;
                        taken.first = (int)low & ~3;
                        taken.len = (int)high - taken.first;
                        taken.places = places_of(place - width - taken.first, step);
                        taken.slope = (float)fabs(slope);
                        taken.taps = (unsigned)(2 * width) + 1;
                        taken.line = at;
                        all[SLOTS * threadIdx.x + found++] = taken;
                    }
                    counts[threadIdx.x] = found;
                    more = __any_sync(0xffffffffu, main < 2);
                    __syncwarp();
                    for (int lane = 0; lane < 32; lane++) {
                        int some = counts[lane];
                        for (int slot = 0; slot < some; slot++) {
                            Taken taken = all[SLOTS * lane + slot];
                            const float* from = lines + (unsigned long long)taken.line * pitch;
                            mix<false>(from, from, taken.weight, 0, taken.first, taken.len, pitch, line);
                            __syncwarp();
                            switch (taken.taps) {
                                case 2: add_taps<2>(taken, line, sum); break;
                                case 3: add_taps<3>(taken, line, sum); break;
                                default: add_taps(taken, line, sum);
                            }
                            __syncwarp();
                        }
                    }
                    __syncwarp();
                }
            }
#pragma unroll
            for (int k = 0; k < ROUNDS; k++) {
                int z = threadIdx.x + 32 * k;
                if (z < count) {
                    float* to = volume + ((unsigned long long)(first_z + z) * ny + y) * nx + x;
                    *to = add ? *to + sum[k] : sum[k];
                }
            }
        }
    }
}
