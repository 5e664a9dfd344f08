// A step reads one array and writes the other. PULL 0: a cell writes to its neighbours. PULL 1: it reads from
// them.
// RECORDS 1: the 19 populations of a cell lie side by side. RECORDS 0: each population has an array of its
// own.

#ifndef PULL
#define PULL 1
#endif
#ifndef RECORDS
#define RECORDS 0
#endif

static __device__ __forceinline__ unsigned long long slot(const Site& s, unsigned n, int i) {
    return RECORDS ? 19ull * n + i : (unsigned long long)i * s.cells + n;
}

// Where population `to` of the cell one step along (cx, cy, cz) lies; behind a wall it is this cell's own
// `back`.
static __device__ __forceinline__ unsigned long long beside(const Site& s, int cx, int cy, int cz, int to, int back) {
    int x = s.x + cx;
    const bool around = x < 0 || x == s.nx;
    if (s.blocked(cy, cz) || (around && s.walls & 1)) return slot(s, s.n, back);
    if (around) x = x < 0 ? s.nx - 1 : 0;
    return slot(s, s.row(cy, cz) + x, to);
}

template <int K, int CX, int CY, int CZ>
static __device__ __forceinline__ void pull(const Site& s, const float* from, float* g) {
    g[2 * K + 1] = from[beside(s, -CX, -CY, -CZ, 2 * K + 1, 2 * K + 2)];
    g[2 * K + 2] = from[beside(s, CX, CY, CZ, 2 * K + 2, 2 * K + 1)];
}

template <int K, int CX, int CY, int CZ>
static __device__ __forceinline__ void push(const Site& s, float* to, const float* g) {
    to[beside(s, CX, CY, CZ, 2 * K + 1, 2 * K + 2)] = g[2 * K + 1];
    to[beside(s, -CX, -CY, -CZ, 2 * K + 2, 2 * K + 1)] = g[2 * K + 2];
}

// What arrives at a cell in step `turn`.
static __device__ __forceinline__ void fetch(const Site& s, const float* f, int turn, float lid, float* g) {
    const float* from = f + (turn & 1 ? 0 : 19ull * s.cells);
#if PULL
    g[0] = from[slot(s, s.n, 0)];
    PAIRS(pull, s, from, g);
    // The populations that fall from the lid have its momentum: 6 w c·U.
    if (s.under_lid()) g[8] -= lid / 6, g[13] += lid / 6;
#else
#pragma unroll
    for (int i = 0; i < 19; i++) g[i] = from[slot(s, s.n, i)];
#endif
}

// What leaves it.
static __device__ __forceinline__ void put(const Site& s, float* f, int turn, float lid, float* g) {
    float* to = f + (turn & 1 ? 19ull * s.cells : 0);
#if PULL
#pragma unroll
    for (int i = 0; i < 19; i++) to[slot(s, s.n, i)] = g[i];
#else
    if (s.under_lid()) g[7] -= lid / 6, g[14] += lid / 6;
    to[slot(s, s.n, 0)] = g[0];
    PAIRS(push, s, to, g);
#endif
}
