// Type 2, fine grid to samples: a block takes a slot, a run of the points of one tile, for COILS items of the
// batch. The padded tile is read to shared memory with the items innermost; LANES lanes a point hold VECTOR
// items each.

#define VECTOR (COILS > 1 && !DOUBLE ? 2 : 1)
#define LANES (COILS / VECTOR)
#define GROUP (THREADS / LANES)
// Blocks of a multiprocessor: with as many its threads have 64 registers each, which wide kernels in f64
// exceed.
#define BLOCKS (DOUBLE && WIDTH > 5 ? 1 : 1024 / THREADS)
// An even pitch: whether a cell lies in the lower or the upper half of the banks then depends on x alone.
#define PX ((LX + 1) / 2 * 2)
#define LOCAL (LZ * LY * PX)
// If a point's cell is half as wide as shared memory, two points share an access. One of them swaps the taps
// of each pair, so that the two never need the same banks.
#define PAIRED (COILS * (DOUBLE ? 16 : 8) == 64)

#if COILS > 1 && !DOUBLE
typedef float4 cell_t;
static __device__ __forceinline__ cell_t zero_cell() { return make_float4(0, 0, 0, 0); }
static __device__ __forceinline__ void add(cell_t& sum, real w, cell_t c) {
    sum.x += w * c.x;
    sum.y += w * c.y;
    sum.z += w * c.z;
    sum.w += w * c.w;
}
#else
typedef cplx cell_t;
static __device__ __forceinline__ cell_t zero_cell() { return make_cplx(0, 0); }
static __device__ __forceinline__ void add(cell_t& sum, real w, cell_t c) {
    sum.x += w * c.x;
    sum.y += w * c.y;
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
interp(const cplx* __restrict__ grid, const unsigned* __restrict__ order, const unsigned* __restrict__ places,
       const real* __restrict__ arguments, unsigned points, const uint4* __restrict__ slots, cplx* __restrict__ samples,
       unsigned items, int fine_z, int fine_y, int fine_x, int tiles_z, int tiles_y, int tiles_x) {
    extern __shared__ double2 shared[];
    int fine[3] = {fine_z, fine_y, fine_x}, tiles[3] = {tiles_z, tiles_y, tiles_x}, first[3], size[3];
    uint4 slot = slots[blockIdx.x];
    box_of(slot.x, fine, tiles, first, size);
    unsigned item = blockIdx.y * COILS;
    {
        // Four neighbours of one item, then the other items: reads take whole sectors, writes all banks.
        int sub = threadIdx.x % 4, coil = threadIdx.x / 4 % COILS;
        int ez = size[0] + (DIMS > 2 ? WIDTH - 1 : 0), ey = size[1] + (DIMS > 1 ? WIDTH - 1 : 0), ex = size[2] + WIDTH - 1;
        const cplx* from = grid + (item + coil) * ((unsigned long long)fine_z * fine_y * fine_x);
        cplx* tile = (cplx*)shared + coil;
        if (item + coil < items) {
            for (int row = threadIdx.x / (4 * COILS); row < LZ * LY; row += THREADS / (4 * COILS)) {
                int y = row % LY, z = row / LY;
                if (y >= ey || z >= ez) continue;
                int gy = first[1] + y, gz = first[0] + z;
                if (gy >= fine_y) gy -= fine_y;
                if (gz >= fine_z) gz -= fine_z;
                const cplx* line = from + ((unsigned long long)gz * fine_y + gy) * fine_x;
                cplx* to = tile + row * PX * COILS;
#pragma unroll 8
                for (int x = sub; x < LX; x += 4) {
                    int gx = first[2] + x;
                    if (gx >= fine_x) gx -= fine_x;
                    if (x < ex) to[x * COILS] = line[gx];
                }
            }
        }
    }
    __syncthreads();
    const cell_t* tile = (const cell_t*)shared + threadIdx.x % LANES;
    for (unsigned i = threadIdx.x / LANES; i < slot.z; i += GROUP) {
        unsigned p = slot.y + i, place = places[p];
        int x = place & 1023, y = place >> 10 & 1023, z = place >> 20;
        real kx[WIDTH], ky[WIDTH];
        real zx = arguments[p];
#pragma unroll
        for (int t = 0; t < WIDTH; t++) kx[t] = tap(t, zx);
#if DIMS > 1
        real zy = arguments[(unsigned long long)points + p];
#pragma unroll
        for (int t = 0; t < WIDTH; t++) ky[t] = tap(t, zy);
#else
        ky[0] = 1;
#endif
#if DIMS > 2
        real zz = arguments[2ull * points + p];
#endif
        int swap = 0;
#if PAIRED
        swap = (x ^ (threadIdx.x / LANES)) & 1;
        if (swap) {
#pragma unroll
            for (int t = 0; t + 1 < WIDTH; t += 2) {
                real other = kx[t];
                kx[t] = kx[t + 1];
                kx[t + 1] = other;
            }
        }
#endif
        const cell_t* at = tile + ((z * LY + y) * PX + x) * LANES;
        cell_t sum = zero_cell();
#pragma unroll 1
        for (int dz = 0; dz < (DIMS > 2 ? WIDTH : 1); dz++) {
            cell_t plane = zero_cell();
#pragma unroll
            for (int dy = 0; dy < (DIMS > 1 ? WIDTH : 1); dy++) {
                const cell_t* near = at + (dz * LY + dy) * PX * LANES;
                const cell_t *one = near + swap * LANES, *two = near + (1 - swap) * LANES;
                cell_t line = zero_cell();
#pragma unroll
                for (int t = 0; t + 1 < WIDTH; t += 2) {
                    add(line, kx[t], one[t * LANES]);
                    add(line, kx[t + 1], two[t * LANES]);
                }
                if (WIDTH % 2) add(line, kx[WIDTH - 1], near[(WIDTH - 1) * LANES]);
                add(plane, ky[dy], line);
            }
#if DIMS > 2
            add(sum, tap(dz, zz), plane);
#else
            sum = plane;
#endif
        }
        unsigned to = order[p], coil = item + threadIdx.x % LANES * VECTOR;
        if (coil < items) samples[(unsigned long long)coil * points + to] = make_cplx(sum.x, sum.y);
#if COILS > 1 && !DOUBLE
        if (coil + 1 < items) samples[(unsigned long long)(coil + 1) * points + to] = make_cplx(sum.z, sum.w);
#endif
    }
}
