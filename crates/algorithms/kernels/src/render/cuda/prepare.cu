// What pictures need of a volume [z, y, x], once for all of them, and of a scene.

#define SIDE 8
#define INFINITE __uint_as_float(0x7f800000u)

// The smallest and the largest voxel around each block of 8 x 8 x 8, which reaches a voxel beyond its sides.
// A warp takes a block.
extern "C" __global__ void __launch_bounds__(128)
ends_of_blocks(const float* __restrict__ volume, float* __restrict__ low, float* __restrict__ high, int nx, int ny, int nz) {
    int bx = (nx + SIDE - 1) / SIDE, by = (ny + SIDE - 1) / SIDE, bz = (nz + SIDE - 1) / SIDE;
    unsigned long long block = (unsigned long long)blockIdx.x * 4 + threadIdx.y;
    if (block >= (unsigned long long)bx * by * bz) return;
    int x = block % bx * SIDE - 1, y = block / bx % by * SIDE - 1, z = (int)(block / bx / by) * SIDE - 1;
    float least = INFINITE, most = -INFINITE;
    for (int at = threadIdx.x; at < 1000; at += 32) {
        int i = x + at % 10, j = y + at / 10 % 10, k = z + at / 100;
        if ((unsigned)i >= nx || (unsigned)j >= ny || (unsigned)k >= nz) continue;
        float value = volume[((size_t)k * ny + j) * nx + i];
        least = fminf(least, value);
        most = fmaxf(most, value);
    }
    for (int by = 16; by > 0; by /= 2) {
        least = fminf(least, __shfl_xor_sync(0xffffffff, least, by));
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, by));
    }
    if (threadIdx.x == 0) {
        low[block] = least;
        high[block] = most;
    }
}

static __device__ float opacity(const float* look, int ramps, float value) {
    float sum = look[3];
    for (int at = 0; at < ramps; at++) {
        const float* ramp = look + 4 + 6 * at;
        sum += fminf(fmaxf(value - ramp[0], 0.0f), ramp[1]) * ramp[5];
    }
    return sum;
}

// A number for each block: rays leave out blocks whose number is 0 or less, and in a search for the largest
// value (mode 1) than it.
extern "C" __global__ void __launch_bounds__(256)
keys_of_blocks(const float* __restrict__ low, const float* __restrict__ high, float* __restrict__ keys, const float* __restrict__ look,
               int ramps, int mode, unsigned count) {
    unsigned at = blockIdx.x * 256 + threadIdx.x;
    if (at >= count) return;
    float least = low[at], most = high[at], key;
    if (mode == 0) {
        key = least != 0 || most != 0 ? 1 : 0;
    } else if (mode == 1) {
        key = most;
    } else if (mode == 3) {
        key = most >= look[0] ? 1 : 0;
    } else {
        key = fmaxf(opacity(look, ramps, least), opacity(look, ramps, most));
        for (int at = 0; at <= ramps; at++) {
            // Points of the function: where ramps begin, and where the last one ends.
            float value = at < ramps ? look[4 + 6 * at] : ramps > 0 ? look[4 + 6 * (at - 1)] + look[5 + 6 * (at - 1)] : least;
            if (value >= least && value <= most) key = fmaxf(key, opacity(look, ramps, value));
        }
    }
    keys[at] = key;
}
