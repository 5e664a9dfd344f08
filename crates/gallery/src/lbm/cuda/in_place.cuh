// One array, which a step reads and writes: a cell writes to the very places that it has read. It owns two places of every pair of directions: one at home and one in the cell ahead. In even steps 2k + 1 lies ahead and 2k + 2 at home when they leave; in odd steps the names change places, so
// that each is found where it arrives (M. Lehmann, "Esoteric Pull and Esoteric Push: two simple in-place streaming schemes for the
// lattice Boltzmann method on GPUs", Computation 10, 92, 2022). At a wall the names do not change: then a cell finds what it sent.

// Reads or writes CELLS neighbours that lie side by side.
template <bool PUT>
static __device__ __forceinline__ void together(number* at, float (*g)[19], int i) {
    Numbers all;
    if (PUT) {
#pragma unroll
        for (int v = 0; v < CELLS; v++) all.of[v] = narrow(g[v][i]);
        *(Numbers*)at = all;
    } else {
        all = *(const Numbers*)at;
#pragma unroll
        for (int v = 0; v < CELLS; v++) g[v][i] = wide(all.of[v]);
    }
}

template <bool PUT>
static __device__ __forceinline__ void alone(number* at, float& g) {
    if (PUT)
        *at = narrow(g);
    else
        g = wide(*at);
}

template <bool PUT, int K, int CX, int CY, int CZ>
static __device__ __forceinline__ void pair(const Site& s, number* f, bool odd, float (*g)[19]) {
    // At home arrives 2k + 1 and leaves 2k + 2.
    const int home = PUT ? 2 * K + 2 : 2 * K + 1, ahead = PUT ? 2 * K + 1 : 2 * K + 2;
    const bool sides = s.walls & 1;
    const bool behind_free = odd && !s.blocked(-CY, -CZ), ahead_free = odd && !s.blocked(CY, CZ);
    number* own = f + s.n;
    if (CX && sides && s.x == 0) {
#pragma unroll
        for (int v = 0; v < CELLS; v++)
            alone<PUT>(own + v + (behind_free && v > 0 ? 2 * K + 1 : 2 * K + 2) * s.cells, g[v][home]);
    } else {
        together<PUT>(own + (behind_free ? 2 * K + 1 : 2 * K + 2) * s.cells, g, home);
    }
    number* row = f + s.row(CY, CZ);
    if (CX) {
#pragma unroll
        for (int v = 0; v < CELLS; v++) {
            const bool last = s.x + v + 1 == s.nx, free = ahead_free && !(last && sides);
            alone<PUT>(row + (last ? 0 : s.x + v + 1) + (free ? 2 * K + 2 : 2 * K + 1) * s.cells, g[v][ahead]);
        }
    } else {
        together<PUT>(row + s.x + (ahead_free ? 2 * K + 2 : 2 * K + 1) * s.cells, g, ahead);
    }
}

template <int K, int CX, int CY, int CZ>
static __device__ __forceinline__ void take(const Site& s, number* f, bool odd, float (*g)[19]) {
    pair<false, K, CX, CY, CZ>(s, f, odd, g);
}

template <int K, int CX, int CY, int CZ>
static __device__ __forceinline__ void leave(const Site& s, number* f, bool odd, float (*g)[19]) {
    pair<true, K, CX, CY, CZ>(s, f, odd, g);
}

static __device__ __forceinline__ void fetch(const Site& s, const float* f, int turn, float lid, float (*g)[19]) {
    number* numbers = (number*)f;
    together<false>(numbers + s.n, g, 0);
    PAIRS(take, s, numbers, turn & 1, g);
    if (s.under_lid()) {
#pragma unroll
        for (int v = 0; v < CELLS; v++) g[v][8] -= UNIT / 6 * lid, g[v][13] += UNIT / 6 * lid;
    }
}

static __device__ __forceinline__ void put(const Site& s, float* f, int turn, float lid, float (*g)[19]) {
    number* numbers = (number*)f;
    together<true>(numbers + s.n, g, 0);
    PAIRS(leave, s, numbers, turn & 1, g);
}
