// Sums of products of two coils over windows of SIDE voxels along x and y, and of DEEP voxels along z. DEEP
// is SIDE, or 1 if the image has one plane.

#define THREADS 256
// A block's tile of voxels in a plane. REACHED_ counts the tile and the voxels that its windows reach beyond
// it.
#define COLUMNS 58
#define ROWS 16
#define RADIUS (SIDE / 2)
#define RADIUS_Z (DEEP / 2)
#define REACHED_COLUMNS (COLUMNS + 2 * RADIUS)
#define REACHED_ROWS (ROWS + 2 * RADIUS)
#define REACHED (REACHED_ROWS * REACHED_COLUMNS)
// Products that a thread computes in each plane.
#define OWN ((REACHED + THREADS - 1) / THREADS)
// ABREAST threads sum neighbouring columns. Each of these threads computes DOWN rows.
#define ABREAST 64
#define DOWN (ROWS * ABREAST / THREADS)
// Rows of the tile for which a thread keeps sums, of two neighbouring voxels each.
#define KEPT (ROWS * 32 / THREADS)
// Windows of a voxel that are not complete yet.
#define BEFORE (DEEP > 1 ? DEEP - 1 : 1)

// Two neighbours, which are read at once.
struct __align__(16) two {
    cplx a, b;
};

// Σ m_i conj(m_j) over the windows of a chunk: sums[pair][plane][row][x]. A block goes along z with a tile of
// voxels. It computes each plane's products once, then sums columns, then rows. Meanwhile it reads the next
// plane. Each thread keeps the unfinished sums of the 2·RADIUS_Z planes before for its voxels. Terms are
// added in the order of y, x and z, so that the bits do not depend on how a volume is cut.
extern "C" __global__ void __launch_bounds__(THREADS, DEEP > 7 ? 1 : 2)
windows(const cplx* __restrict__ images, unsigned long long voxels, int nz, int ny, int nx, int first_plane, int planes,
        int first_row, int rows, cplx* __restrict__ sums) {
    __shared__ __align__(16) cplx products[REACHED], lines[ROWS * REACHED_COLUMNS];
    int across = (nx + COLUMNS - 1) / COLUMNS;
    int left = blockIdx.x % across * COLUMNS, top = blockIdx.x / across * ROWS;
    unsigned pair = blockIdx.y, i = first_of(pair), j = pair - i * (i + 1) / 2;
    const cplx* a = images + i * voxels;
    const cplx* b = images + j * voxels;
    int column = threadIdx.x % ABREAST, down = threadIdx.x / ABREAST * DOWN;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bool pairs_fit = nx % 2 == 0;
    two unfinished[KEPT][BEFORE];
    for (int row = 0; row < KEPT; row++)
        for (int k = 0; k < BEFORE; k++) unfinished[row][k].a = unfinished[row][k].b = make_cplx(0, 0);
    cplx next_a[OWN], next_b[OWN];
    int begin = max(first_plane - RADIUS_Z, 0), end = min(first_plane + planes + RADIUS_Z, nz);
    for (int z = first_plane - RADIUS_Z - 1; z < first_plane + planes + RADIUS_Z; z++) {
        bool inside = z >= begin && z < end;
        if (inside) {
#pragma unroll
            for (int k = 0; k < OWN; k++) {
                int at = threadIdx.x + k * THREADS;
                int x = left + at % REACHED_COLUMNS - RADIUS, y = first_row + top + at / REACHED_COLUMNS - RADIUS;
                bool there = x >= 0 && x < nx && y >= 0 && y < ny;
                cplx product = mul_conj(next_b[k], next_a[k]);
                if (at < REACHED) products[at] = make_cplx(there ? product.x : 0, there ? product.y : 0);
            }
        }
        __syncthreads();
        if (z + 1 >= begin && z + 1 < end) {
            long long plane = (long long)(z + 1) * ny * nx;
            // Every load has an address in the image. So the loads need no branches. Products outside become
            // 0 above.
#pragma unroll
            for (int k = 0; k < OWN; k++) {
                int at = threadIdx.x + k * THREADS;
                int x = min(max(left + at % REACHED_COLUMNS - RADIUS, 0), nx - 1);
                int y = min(max(first_row + top + at / REACHED_COLUMNS - RADIUS, 0), ny - 1);
                next_a[k] = a[plane + y * nx + x];
                next_b[k] = b[plane + y * nx + x];
            }
        }
        if (inside) {
            for (int at = column; at < REACHED_COLUMNS; at += ABREAST) {
                cplx terms[DOWN + SIDE - 1];
#pragma unroll
                for (int k = 0; k < DOWN + SIDE - 1; k++) terms[k] = products[(down + k) * REACHED_COLUMNS + at];
#pragma unroll
                for (int row = 0; row < DOWN; row++) {
                    cplx sum = terms[row];
#pragma unroll
                    for (int k = 1; k < SIDE; k++) sum = sum + terms[row + k];
                    lines[(down + row) * REACHED_COLUMNS + at] = sum;
                }
            }
        }
        __syncthreads();
#pragma unroll
        for (int kept = 0; kept < KEPT; kept++) {
            int row = kept * (THREADS / 32) + warp;
            two sum;
            sum.a = sum.b = make_cplx(0, 0);
            if (inside && 2 * lane < COLUMNS) {
                const two* line = (const two*)(lines + row * REACHED_COLUMNS) + lane;
#pragma unroll
                for (int k = 0; k <= SIDE / 2; k++) {
                    two read = line[k];
                    // The left voxel's window has entries 0 … SIDE − 1, the right voxel's window 1 … SIDE.
                    sum.a = sum.a + read.a;
                    if (2 * k + 1 < SIDE) sum.a = sum.a + read.b;
                    if (k > 0) sum.b = sum.b + read.a;
                    sum.b = sum.b + read.b;
                }
            }
            two done = sum;
            if (DEEP > 1) {
                done.a = unfinished[kept][0].a + sum.a;
                done.b = unfinished[kept][0].b + sum.b;
            }
#pragma unroll
            for (int k = 0; k < BEFORE - 1; k++) {
                unfinished[kept][k].a = unfinished[kept][k + 1].a + sum.a;
                unfinished[kept][k].b = unfinished[kept][k + 1].b + sum.b;
            }
            unfinished[kept][BEFORE - 1] = sum;
            int x = left + 2 * lane, plane = z - RADIUS_Z - first_plane;
            if (plane < 0 || 2 * lane >= COLUMNS || x >= nx || top + row >= rows) continue;
            cplx* to = sums + (((unsigned long long)pair * planes + plane) * rows + top + row) * nx + x;
            if (pairs_fit) {
                *(two*)to = done;
            } else {
                to[0] = done.a;
                if (x + 1 < nx) to[1] = done.b;
            }
        }
    }
}
