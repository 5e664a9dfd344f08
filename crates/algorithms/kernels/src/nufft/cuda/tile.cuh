// Tiles of the fine grid, for both directions. Axes are z, y, x; a transform has DIMS of them. A compilation
// fixes DIMS, WIDTH (W), TERMS and COEFFICIENTS of the kernel's polynomials, [term][tap], highest power
// first, and the largest tile, TILE_Z × TILE_Y × TILE_X cells.

// Cells of the largest tile and what footprints reach beyond it.
#define LX (TILE_X + WIDTH - 1)
#define LY (DIMS > 1 ? TILE_Y + WIDTH - 1 : 1)
#define LZ (DIMS > 2 ? TILE_Z + WIDTH - 1 : 1)

static __constant__ real POLYNOMIALS[TERMS * WIDTH] = {COEFFICIENTS};

// φ at tap t of the footprint.
static __device__ __forceinline__ real tap(int t, real z) {
    real value = POLYNOMIALS[t];
#pragma unroll
    for (int k = 1; k < TERMS; k++) value = value * z + POLYNOMIALS[k * WIDTH + t];
    return value;
}

// Tile t of an axis begins at cell ⌈t · fine / tiles⌉.
static __device__ __forceinline__ int first_of(int tile, int fine, int tiles) {
    return (int)(((long long)tile * fine + tiles - 1) / tiles);
}

// First cell of a tile along z, y, x, and its number of cells.
static __device__ __forceinline__ void box_of(unsigned tile, const int fine[3], const int tiles[3], int first[3],
                                              int size[3]) {
    int at[3] = {(int)(tile / (tiles[1] * tiles[2])), (int)(tile / tiles[2] % tiles[1]), (int)(tile % tiles[2])};
#pragma unroll
    for (int a = 0; a < 3; a++) {
        first[a] = first_of(at[a], fine[a], tiles[a]);
        size[a] = first_of(at[a] + 1, fine[a], tiles[a]) - first[a];
    }
}
