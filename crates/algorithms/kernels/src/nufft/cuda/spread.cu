// Type 1, samples to the fine grid, without atomics: sums have one order.
//
// A block takes a slot, a run of the points of one tile, for COILS items of the batch. Each item has its own
// padded tile in shared memory and a team of WARPS warps. Warp w owns the planes z ≡ w mod WARPS. Kernel
// values of 32 points at a time are computed once for all items. Then the lanes of each warp sweep its part
// of the footprint of one point after the other, so no cell has two writers at once. Padded tiles go to
// memory. `fold` adds the padded tiles of one tile, and `merge` adds overlapping ones.

#define TEAMS COILS
#define THREADS (32 * TEAMS * WARPS)
#define BATCH 32
// Cells that span all banks of shared memory, over WARPS. The rows that lanes of half a warp (a quarter of
// one in f64) take follow each other there: in 3-D neighbouring rows of a step lie in a warp's next plane, in
// 2-D in the next line.
#define SPAN ((DOUBLE ? 8 : 16) / WARPS)
#define PADDING(n) (((WIDTH + WARPS - 1) / WARPS + SPAN - (n) % SPAN) % SPAN)
#define PX (DIMS == 2 ? LX + PADDING(LX) : LX)
#define PLANE (DIMS == 3 ? LY * PX + PADDING(LY * PX) : LY * PX)
#define LOCAL (LZ * PLANE)
// Maximum planes of a footprint that a warp owns.
#define OWN ((WIDTH + WARPS - 1) / WARPS)
// Whether weights of rows are computed when they are used. For wide kernels, storing them would take more
// memory than the tile.
#define PLANES (DIMS == 3 && WIDTH > 8)
#define TAPS ((DIMS * WIDTH) | 1)
#define ROWS (DIMS == 3 ? WIDTH * WIDTH : DIMS == 2 ? WIDTH : 1)
#define ROW_PITCH (ROWS | 1)
// Rows of a footprint per step of a warp, with one lane per tap.
#define STEP (32 / WIDTH)

extern "C" __global__ void __launch_bounds__(THREADS, 1)
spread(const cplx* __restrict__ samples, const unsigned* __restrict__ order, const unsigned* __restrict__ places,
       const real* __restrict__ arguments, unsigned points, const uint4* __restrict__ slots,
       cplx* __restrict__ padded, unsigned items) {
    extern __shared__ double2 shared[];
    // A tile an item, values [item][point], taps [point][axis][tap], weights [point][row], first cells.
    cplx* tiles = (cplx*)shared;
    cplx* values = tiles + TEAMS * LOCAL;
    real* taps = (real*)(values + TEAMS * BATCH);
#if PLANES
    int* cells = (int*)(taps + BATCH * TAPS);
#else
    real* weights = taps + BATCH * TAPS;
    int* cells = (int*)(weights + BATCH * ROW_PITCH);
#endif
    int thread = threadIdx.x, lane = thread % 32, team = thread / 32 / WARPS, part = thread / 32 % WARPS;
    unsigned item = blockIdx.y * TEAMS + team;
    uint4 slot = slots[blockIdx.x];
    cplx* tile = tiles + team * LOCAL;
    for (int i = part * 32 + lane; i < LOCAL; i += 32 * WARPS) tile[i] = make_cplx(0, 0);
    const cplx* from = samples + (unsigned long long)item * points;
    // Lanes beyond the last whole row rest.
    int dx = lane % WIDTH, row = lane < STEP * WIDTH ? lane / WIDTH : ROWS + WIDTH;
    for (unsigned done = 0; done < slot.z; done += BATCH) {
        unsigned first = slot.y + done;
        int count = min(slot.z - done, (unsigned)BATCH);
        __syncthreads();
        if (part == 0 && lane < count && item < items) values[team * BATCH + lane] = from[order[first + lane]];
        for (int task = thread; task < BATCH * DIMS; task += THREADS) {
            int i = task % BATCH, axis = task / BATCH;
            if (i < count) {
                real z = arguments[(unsigned long long)axis * points + first + i];
                real* to = taps + i * TAPS + axis * WIDTH;
#pragma unroll
                for (int t = 0; t < WIDTH; t++) to[t] = tap(t, z);
                if (axis == 0) {
                    unsigned at = places[first + i];
                    int x = at & 1023, y = at >> 10 & 1023, z = at >> 20;
                    cells[i] = z * PLANE + y * PX + x;
                }
            }
        }
        __syncthreads();
#if !PLANES
        for (int task = thread; task < BATCH * ROWS; task += THREADS) {
            int i = task / ROWS, r = task % ROWS;
            if (i < count) {
#if DIMS > 1
                const real* of = taps + i * TAPS;
#endif
#if DIMS == 3
                weights[i * ROW_PITCH + r] = of[WIDTH + r / WIDTH] * of[2 * WIDTH + r % WIDTH];
#elif DIMS == 2
                weights[i * ROW_PITCH + r] = of[WIDTH + r];
#else
                weights[i * ROW_PITCH + r] = 1;
#endif
            }
        }
        __syncthreads();
#endif
        if (item >= items) continue;
        // The next point's values are read while the sums of this one are under way.
        const cplx* own = values + team * BATCH;
        real k = taps[dx];
        cplx v = own[0];
        int cell = cells[0];
        for (int i = 0; i < count; i++) {
            cplx value = k * v;
            // The first plane that this warp owns.
            int dz = WARPS > 1 ? (part + WARPS - cell / PLANE % WARPS) % WARPS : 0;
            cplx* at = tile + cell + dx + dz * PLANE;
            if (i + 1 < count) {
                k = taps[(i + 1) * TAPS + dx];
                v = own[i + 1];
                cell = cells[i + 1];
            }
#if PLANES
            const real* of = taps + i * TAPS + WIDTH;
            for (; dz < WIDTH; dz += WARPS, at += WARPS * PLANE) {
                cplx scaled = of[WIDTH + dz] * value;
#pragma unroll
                for (int s = 0; s < (WIDTH + STEP - 1) / STEP; s++) {
                    int dy = s * STEP + row;
                    if (dy < WIDTH) at[dy * PX] = at[dy * PX] + of[dy] * scaled;
                }
            }
#elif DIMS == 3
            const real* weight = weights + i * ROW_PITCH + dz;
#pragma unroll
            for (int s = 0; s < (OWN * WIDTH + STEP - 1) / STEP; s++) {
                int r = s * STEP + row, own = r % OWN * WARPS, dy = r / OWN;
                if (r < OWN * WIDTH && (WIDTH % WARPS == 0 || dz + own < WIDTH)) {
                    cplx* to = at + own * PLANE + dy * PX;
                    *to = *to + weight[WARPS == 1 ? r : dy * WIDTH + own] * value;
                }
            }
#else
            const real* weight = weights + i * ROW_PITCH;
#pragma unroll
            for (int s = 0; s < (ROWS + STEP - 1) / STEP; s++) {
                int r = s * STEP + row;
                if (r < ROWS) at[r * PX] = at[r * PX] + weight[r] * value;
            }
#endif
            __syncwarp();
        }
    }
    __syncthreads();
    if (item >= items) return;
    cplx* to = padded + ((unsigned long long)item * gridDim.x + blockIdx.x) * LOCAL;
    for (int i = part * 32 + lane; i < LOCAL; i += 32 * WARPS) to[i] = tile[i];
}

// The first slot of each run of slots ← the sum of them all.
extern "C" __global__ void __launch_bounds__(128)
fold(cplx* __restrict__ padded, const uint2* __restrict__ runs, unsigned slots) {
    unsigned cell = blockIdx.y * 128 + threadIdx.x;
    if (cell >= LOCAL) return;
    uint2 run = runs[blockIdx.x];
    cplx* at = padded + ((unsigned long long)blockIdx.z * slots + run.x) * LOCAL + cell;
    cplx sum = *at;
#pragma unroll 8
    for (unsigned i = 1; i < run.y; i++) sum = sum + at[(unsigned long long)i * LOCAL];
    *at = sum;
}

// Tiles along an axis that reach into one at most: itself and those before it, of one cell or more.
#define REACH (WIDTH + 1)

// One block per tile of TEAMS items. Each of its cells becomes the sum over the padded tiles that hold it, in
// a fixed order. With `add` (one item) the cell's old value is added. `slot_of` is a tile's first slot, or
// all bits set if it has none.
extern "C" __global__ void __launch_bounds__(256, 4)
merge(const cplx* __restrict__ padded, const unsigned* __restrict__ slot_of, unsigned slots, cplx* __restrict__ grid,
      unsigned items, int add, int fine_z, int fine_y, int fine_x, int tiles_z, int tiles_y, int tiles_x) {
    __shared__ int at[3][REACH], shift[3][REACH], extent[3][REACH], count[3];
    int fine[3] = {fine_z, fine_y, fine_x}, tiles[3] = {tiles_z, tiles_y, tiles_x}, first[3], size[3];
    box_of(blockIdx.x, fine, tiles, first, size);
    if (threadIdx.x < 3) {
        int a = threadIdx.x, n = a == 0 ? fine_z : a == 1 ? fine_y : fine_x;
        int all = a == 0 ? tiles_z : a == 1 ? tiles_y : tiles_x;
        int halo = a >= 3 - DIMS ? WIDTH - 1 : 0;
        int own = a == 0 ? blockIdx.x / (tiles_y * tiles_x)
                : a == 1 ? blockIdx.x / tiles_x % tiles_y : blockIdx.x % tiles_x;
        int start = first_of(own, n, all), turn = 0, other = own, found = 0;
        while (found < REACH) {
            int begin = first_of(other, n, all);
            int cells = first_of(other + 1, n, all) - begin + halo, away = start - begin + turn;
            if (away >= cells) break;
            at[a][found] = other;
            shift[a][found] = away;
            extent[a][found] = cells;
            found++;
            if (--other < 0) {
                other += all;
                turn += n;
            }
        }
        count[a] = found;
    }
    __syncthreads();
    unsigned long long cells = (unsigned long long)fine_z * fine_y * fine_x, pitch = (unsigned long long)slots * LOCAL;
    unsigned item = blockIdx.y * TEAMS;
    const cplx* from = padded + item * pitch;
    cplx* to = grid + item * cells;
    for (int i = threadIdx.x; i < TILE_Z * TILE_Y * TILE_X; i += 256) {
        int x = i % TILE_X, y = i / TILE_X % TILE_Y, z = i / (TILE_X * TILE_Y);
        if (x >= size[2] || y >= size[1] || z >= size[0]) continue;
        cplx sum[TEAMS];
#pragma unroll
        for (int c = 0; c < TEAMS; c++) sum[c] = make_cplx(0, 0);
        for (int qz = 0; qz < count[0]; qz++) {
            int lz = z + shift[0][qz];
            if (lz >= extent[0][qz]) continue;
            for (int qy = 0; qy < count[1]; qy++) {
                int ly = y + shift[1][qy];
                if (ly >= extent[1][qy]) continue;
                for (int qx = 0; qx < count[2]; qx++) {
                    int lx = x + shift[2][qx];
                    if (lx >= extent[2][qx]) continue;
                    unsigned slot = slot_of[(at[0][qz] * tiles_y + at[1][qy]) * tiles_x + at[2][qx]];
                    if (slot == 0xffffffffu) continue;
                    const cplx* cell = from + (unsigned long long)slot * LOCAL + lz * PLANE + ly * PX + lx;
#pragma unroll
                    for (int c = 0; c < TEAMS; c++)
                        if (item + c < items) sum[c] = sum[c] + cell[c * pitch];
                }
            }
        }
        unsigned long long place = ((unsigned long long)(first[0] + z) * fine_y + first[1] + y) * fine_x + first[2] + x;
#pragma unroll
        for (int c = 0; c < TEAMS; c++)
            if (item + c < items) to[c * cells + place] = TEAMS == 1 && add ? to[place] + sum[c] : sum[c];
    }
}
