// The scheme of in_place.cuh for halves. A thread has two neighbours along x, which lie in one word of 32
// bits. Populations that move along x lie one cell further, across words: lanes of a warp exchange halves, so
// that still almost every access is a whole word. Accesses of 16 bits store parts of sectors, which the
// second-level cache has to merge: it took 1.7 times the sectors that the bytes fill.

template <bool PUT, bool ODD, bool EDGE>
struct Words {
    // Reads or writes the two places of a pair for both cells. A word of `g` is a population of both, the
    // first cell in its lower half.
    template <int K, int CX, int CY, int CZ>
    static __device__ __forceinline__ void one(const Site& s, bool there, number* f, unsigned* g) {
        const bool behind_free = ODD && !(EDGE && s.blocked(-CY, -CZ)), ahead_free = ODD && !(EDGE && s.blocked(CY, CZ));
        const bool sides = s.walls & 1, last = s.x + 2 == s.nx;
        const int lane = threadIdx.x % 32, home = PUT ? 2 * K + 2 : 2 * K + 1, ahead = PUT ? 2 * K + 1 : 2 * K + 2;
        number* own = f + (s.n + (unsigned long long)s.cells * (behind_free ? 2 * K + 1 : 2 * K + 2));
        const bool apart = CX && behind_free && sides && s.x == 0;
        const int row = EDGE ? (int)(s.row(CY, CZ) - s.row(0, 0)) : (CZ * s.ny + CY) * s.nx;
        number* beside = f + ((unsigned)(s.n + row) + (unsigned long long)s.cells * (ahead_free ? 2 * K + 2 : 2 * K + 1));
        // The second cell's place ahead, where no other lane has its word.
        const bool alone = CX && there && (lane == 31 || last);
        number* after = beside + (last ? -s.x : 2);
        if (ahead_free && sides && last) after -= s.cells;
        if (PUT) {
            if (there && apart)
                own[s.cells] = (number)g[home], own[1] = (number)(g[home] >> 16);
            else if (there)
                *(unsigned*)own = g[home];
            unsigned word = g[ahead];
            if (CX) word = __byte_perm(__shfl_up_sync(0xffffffffu, word, 1), word, 0x5432);
            if (CX && lane == 0 && there)
                beside[1] = (number)(word >> 16);
            else if (there)
                *(unsigned*)beside = word;
            if (alone) *after = (number)(g[ahead] >> 16);
        } else {
            g[home] = there ? *(const unsigned*)own : 0;
            if (there && apart) g[home] = g[home] & 0xffff0000u | own[s.cells];
            g[ahead] = there ? *(const unsigned*)beside : 0;
            if (CX) {
                unsigned next = __shfl_down_sync(0xffffffffu, g[ahead], 1);
                if (alone) next = *after;
                g[ahead] = __byte_perm(g[ahead], next, 0x5432);
            }
        }
    }
    static __device__ __forceinline__ void all(const Site& s, bool there, number* f, unsigned* g) { PAIRS(one, s, there, f, g); }
};

template <bool PUT>
static __device__ __forceinline__ void all_words(const Site& s, bool there, number* f, int turn, unsigned* g) {
    if (there && PUT) *(unsigned*)(f + s.n) = g[0];
    if (!PUT) g[0] = there ? *(const unsigned*)(f + s.n) : 0;
    if (at_edge(s))
        turn & 1 ? Words<PUT, true, true>::all(s, there, f, g) : Words<PUT, false, true>::all(s, there, f, g);
    else
        turn & 1 ? Words<PUT, true, false>::all(s, there, f, g) : Words<PUT, false, false>::all(s, there, f, g);
}

// The first of a thread's cells. Threads beyond a row stay for the others of their warp.
static __device__ __forceinline__ Site first_cell(int nx, int ny, int nz, int walls) {
    Site s = site(nx, ny, nz, walls);
    s.n += s.x;
    s.x *= 2;
    return s;
}

static __device__ __forceinline__ void of_cell(const Site& s, const unsigned* words, int v, float lid, float* g) {
#pragma unroll
    for (int i = 0; i < 19; i++) g[i] = wide((number)(words[i] >> 16 * v));
    if (s.under_lid()) g[8] -= UNIT / 6 * lid, g[13] += UNIT / 6 * lid;
}

static __device__ __forceinline__ void into_cell(const float* g, int v, unsigned* words) {
#pragma unroll
    for (int i = 0; i < 19; i++) {
        const unsigned half = narrow(g[i]);
        words[i] = v ? words[i] & 0xffffu | half << 16 : words[i] & 0xffff0000u | half;
    }
}

extern "C" __global__ void start(const float* __restrict__ fields, float* f, int nx, int ny, int nz, int walls,
                                 float lid, float force) {
    const Site s = first_cell(nx, ny, nz, walls);
    if (s.y >= ny) return;
    const bool there = s.x < nx;
    unsigned words[19] = {};
#pragma unroll
    for (int v = 0; v < 2; v++) {
        const float* at = fields + (there ? s.n + v : 0);
        float g[19] = {};
        toward(g, at[0], at[s.cells], at[2ull * s.cells], at[3ull * s.cells], 1, force);
        into_cell(g, v, words);
    }
    all_words<true>(s, there, (number*)f, 0, words);
}

extern "C" __global__ void step(float* f, int nx, int ny, int nz, int walls, float omega, float lid, float force,
                                int turn) {
    const Site s = first_cell(nx, ny, nz, walls);
    if (s.y >= ny) return;
    const bool there = s.x < nx;
    unsigned words[19];
    all_words<false>(s, there, (number*)f, turn, words);
#pragma unroll
    for (int v = 0; v < 2; v++) {
        float g[19];
        of_cell(s, words, v, lid, g);
        collide(g, omega, force);
        into_cell(g, v, words);
    }
    all_words<true>(s, there, (number*)f, turn, words);
}

extern "C" __global__ void finish(const float* f, float* __restrict__ fields, int nx, int ny, int nz, int walls, float lid,
                                  float force, int turn) {
    const Site s = first_cell(nx, ny, nz, walls);
    if (s.y >= ny) return;
    const bool there = s.x < nx;
    unsigned words[19];
    all_words<false>(s, there, (number*)f, turn, words);
#pragma unroll
    for (int v = 0; v < 2; v++) {
        float g[19];
        of_cell(s, words, v, lid, g);
        if (there) write_moments(moments(g), fields + s.n + v, s.cells, force);
    }
}
