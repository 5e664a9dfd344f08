// One array, which a step reads and writes: a cell writes to the very places that it has read. It owns two
// places of every pair of directions: one at home and one in the cell ahead. In even steps 2k + 1 lies ahead
// and 2k + 2 at home when they leave; in odd steps the names change places, so that each is found where it
// arrives (M. Lehmann, "Esoteric Pull and Esoteric Push: two simple in-place streaming schemes for the
// lattice Boltzmann method on GPUs", Computation 10, 92, 2022). At a wall the names do not change: then a
// cell finds what it sent.

// Reads or writes a cell's two places of a pair. Odd steps and edges are known to the compiler: tests of both
// took half of all instructions, and bandwidth waited for them.
template <bool PUT, bool ODD, bool EDGE, int K, int CX, int CY, int CZ>
static __device__ __forceinline__ void pair(const Site& s, number* f, float* g) {
    const bool behind_free = ODD && !(EDGE && s.blocked(-CY, -CZ)), ahead_free = ODD && !(EDGE && s.blocked(CY, CZ));
    const bool sides = s.walls & 1, last = s.x == s.nx - 1;
    number* at_home = f + (s.n + (unsigned long long)s.cells * (behind_free ? 2 * K + 1 : 2 * K + 2));
    if (CX && behind_free && sides && s.x == 0) at_home += s.cells;
    const int row = EDGE ? (int)(s.row(CY, CZ) - s.row(0, 0)) : (CZ * s.ny + CY) * s.nx;
    unsigned beside = s.n + row;
    if (CX) beside += last ? -s.x : 1;
    unsigned slot = ahead_free ? 2 * K + 2 : 2 * K + 1;
    if (CX && ahead_free && sides && last) slot--;
    number* ahead = f + (beside + (unsigned long long)s.cells * slot);
    // At home arrives 2k + 1 and leaves 2k + 2.
    if (PUT)
        *at_home = narrow(g[2 * K + 2]), *ahead = narrow(g[2 * K + 1]);
    else
        g[2 * K + 1] = wide(*at_home), g[2 * K + 2] = wide(*ahead);
}

template <bool PUT, bool ODD, bool EDGE>
struct Pairs {
    template <int K, int CX, int CY, int CZ>
    static __device__ __forceinline__ void one(const Site& s, number* f, float* g) {
        pair<PUT, ODD, EDGE, K, CX, CY, CZ>(s, f, g);
    }
    static __device__ __forceinline__ void all(const Site& s, number* f, float* g) { PAIRS(one, s, f, g); }
};

template <bool PUT>
static __device__ __forceinline__ void all_pairs(const Site& s, number* f, int turn, float* g) {
    if (at_edge(s))
        turn & 1 ? Pairs<PUT, true, true>::all(s, f, g) : Pairs<PUT, false, true>::all(s, f, g);
    else
        turn & 1 ? Pairs<PUT, true, false>::all(s, f, g) : Pairs<PUT, false, false>::all(s, f, g);
}

static __device__ __forceinline__ void fetch(const Site& s, const float* f, int turn, float lid, float* g) {
    number* numbers = (number*)f;
    g[0] = wide(numbers[s.n]);
    all_pairs<false>(s, numbers, turn, g);
    if (s.under_lid()) g[8] -= UNIT / 6 * lid, g[13] += UNIT / 6 * lid;
}

static __device__ __forceinline__ void put(const Site& s, float* f, int turn, float lid, const float* g) {
    number* numbers = (number*)f;
    numbers[s.n] = narrow(g[0]);
    all_pairs<true>(s, numbers, turn, (float*)g);
}
