// b[x, y] = a[y, x]: a has `rows` rows of `columns` elements. ELEMENT is what is moved, V how many of them
// one load moves, TILE the side of a tile of `wide`.
#ifndef ELEMENT
#define ELEMENT float
#endif
#ifndef V
#define V 1
#endif
#ifndef TILE
#define TILE 32
#endif
// Threads of a block along y; along x a tile's row, by words.
#ifndef TALL
#define TALL 8
#endif
// Whether loads and stores ask caches to forget what they bring.
#ifndef STREAM
#define STREAM 0
#endif

typedef unsigned long long u64;

// The side of the lectures' tiles.
#define SIDE 32

// Blocks are counted along one axis of the grid: the others end at 65535.
struct Corner {
    u64 x, y;
};
static __device__ __forceinline__ Corner corner(u64 columns, unsigned side) {
    const unsigned across = (unsigned)((columns + side - 1) / side);
    return Corner{(u64)(blockIdx.x % across) * side, (u64)(blockIdx.x / across) * side};
}

extern "C" __global__ void copy(const ELEMENT* __restrict__ a, ELEMENT* __restrict__ b, unsigned long long rows,
                                unsigned long long columns) {
    const Corner c = corner(columns, SIDE);
    const u64 x = c.x + threadIdx.x;
#pragma unroll
    for (unsigned i = 0; i < SIDE; i += TALL) {
        const unsigned j = i + threadIdx.y;
        const u64 y = c.y + j;
        if (x < columns && y < rows) b[y * columns + x] = a[y * columns + x];
    }
}

extern "C" __global__ void copy_shared(const ELEMENT* __restrict__ a, ELEMENT* __restrict__ b, unsigned long long rows,
                                       unsigned long long columns) {
    __shared__ ELEMENT tile[SIDE][SIDE];
    const Corner c = corner(columns, SIDE);
    const u64 x = c.x + threadIdx.x;
#pragma unroll
    for (unsigned i = 0; i < SIDE; i += TALL) {
        const unsigned j = i + threadIdx.y;
        if (x < columns && c.y + j < rows) tile[j][threadIdx.x] = a[(c.y + j) * columns + x];
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < SIDE; i += TALL) {
        const unsigned j = i + threadIdx.y;
        if (x < columns && c.y + j < rows) b[(c.y + j) * columns + x] = tile[j][threadIdx.x];
    }
}

extern "C" __global__ void naive(const ELEMENT* __restrict__ a, ELEMENT* __restrict__ b, unsigned long long rows,
                                 unsigned long long columns) {
    const Corner c = corner(columns, SIDE);
    const u64 x = c.x + threadIdx.x;
#pragma unroll
    for (unsigned i = 0; i < SIDE; i += TALL) {
        const unsigned j = i + threadIdx.y;
        const u64 y = c.y + j;
        if (x < columns && y < rows) b[x * rows + y] = a[y * columns + x];
    }
}

// Rows of the tile are written as rows of b: `tile` has `pitch` elements a row.
static __device__ __forceinline__ void by_tile(ELEMENT* tile, unsigned pitch, const ELEMENT* a, ELEMENT* b, u64 rows,
                                               u64 columns) {
    const Corner c = corner(columns, SIDE);
#pragma unroll
    for (unsigned i = 0; i < SIDE; i += TALL) {
        const unsigned j = i + threadIdx.y;
        const u64 x = c.x + threadIdx.x, y = c.y + j;
        if (x < columns && y < rows) tile[j * pitch + threadIdx.x] = a[y * columns + x];
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < SIDE; i += TALL) {
        const unsigned j = i + threadIdx.y;
        const u64 x = c.x + j, y = c.y + threadIdx.x;
        if (x < columns && y < rows) b[x * rows + y] = tile[threadIdx.x * pitch + j];
    }
}

extern "C" __global__ void coalesced(const ELEMENT* __restrict__ a, ELEMENT* __restrict__ b, unsigned long long rows,
                                     unsigned long long columns) {
    __shared__ ELEMENT tile[SIDE * SIDE];
    by_tile(tile, SIDE, a, b, rows, columns);
}

extern "C" __global__ void padded(const ELEMENT* __restrict__ a, ELEMENT* __restrict__ b, unsigned long long rows,
                                  unsigned long long columns) {
    __shared__ ELEMENT tile[SIDE * (SIDE + 1)];
    by_tile(tile, SIDE + 1, a, b, rows, columns);
}

// V elements as one word of memory.
template <unsigned BYTES>
struct Word;
template <>
struct Word<1> {
    typedef unsigned char type;
};
template <>
struct Word<2> {
    typedef unsigned short type;
};
template <>
struct Word<4> {
    typedef unsigned type;
};
template <>
struct Word<8> {
    typedef uint2 type;
};
template <>
struct Word<16> {
    typedef uint4 type;
};
typedef Word<V * sizeof(ELEMENT)>::type word;
union Pack {
    word whole;
    ELEMENT part[V];
};

static __device__ __forceinline__ word load(const ELEMENT* at) {
#if STREAM
    return __ldcs((const word*)at);
#else
    return *(const word*)at;
#endif
}
static __device__ __forceinline__ void store(ELEMENT* at, word value) {
#if STREAM
    __stcs((word*)at, value);
#else
    *(word*)at = value;
#endif
}

// V rows of V elements become V columns of them.
static __device__ __forceinline__ void turn(const word* rows, word* columns) {
#pragma unroll
    for (unsigned i = 0; i < V; ++i) {
        Pack turned;
#pragma unroll
        for (unsigned j = 0; j < V; ++j) {
            Pack row;
            row.whole = rows[j];
            turned.part[j] = row.part[i];
        }
        columns[i] = turned.whole;
    }
}

// Threads turn V×V elements in registers, straight from memory to memory. Rows and columns are multiples of
// V.
extern "C" __global__ void registers(const ELEMENT* __restrict__ a, ELEMENT* __restrict__ b, unsigned long long rows,
                                     unsigned long long columns) {
    const unsigned across = (unsigned)((columns / V + blockDim.x - 1) / blockDim.x);
    const u64 x = ((u64)(blockIdx.x % across) * blockDim.x + threadIdx.x) * V;
    const u64 y = ((u64)(blockIdx.x / across) * blockDim.y + threadIdx.y) * V;
    if (x >= columns || y >= rows) return;
    word in[V], out[V];
#pragma unroll
    for (unsigned j = 0; j < V; ++j) in[j] = load(a + (y + j) * columns + x);
    turn(in, out);
#pragma unroll
    for (unsigned i = 0; i < V; ++i) store(b + (x + i) * rows + y, out[i]);
}

// A tile of TILE×TILE elements goes through shared memory. V×V of them are transposed in registers on the
// way, so that every access moves V elements. Accesses to memory take whole rows of the tile. In shared
// memory, a word's place in its row is exclusive-ored with the row's number over V, which keeps the lanes of
// both sides on different banks. Rows and columns are multiples of V.
#define WORDS (TILE / V)
// BANKS: words that all banks hold in one row of 128 bytes. MASK: BANKS or the words of a tile's row, the
// smaller, less one.
#define BANKS (128 / (V * (unsigned)sizeof(ELEMENT)))
#define MASK ((WORDS < BANKS ? WORDS : BANKS) - 1)

extern "C" __global__ void __launch_bounds__(WORDS * TALL)
    wide(const ELEMENT* __restrict__ a, ELEMENT* __restrict__ b, unsigned long long rows, unsigned long long columns) {
    __shared__ word tile[TILE][WORDS];
    const Corner c = corner(columns, TILE);
    const unsigned w = threadIdx.x;
#pragma unroll
    for (unsigned i = 0; i < WORDS; i += TALL) {
        const unsigned k = i + threadIdx.y;
        const u64 x = c.x + w * V, y = c.y + k * V;
        if (x >= columns || y >= rows) continue;
        word in[V], out[V];
#pragma unroll
        for (unsigned j = 0; j < V; ++j) in[j] = load(a + (y + j) * columns + x);
        turn(in, out);
#pragma unroll
        for (unsigned r = 0; r < V; ++r) tile[w * V + r][k ^ (w & MASK)] = out[r];
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < TILE; i += TALL) {
        const unsigned r = i + threadIdx.y;
        const u64 x = c.x + r, y = c.y + w * V;
        if (x < columns && y < rows) store(b + x * rows + y, tile[r][w ^ (r / V & MASK)]);
    }
}
