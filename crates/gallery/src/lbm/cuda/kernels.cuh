// All steps. The first sets out from an equilibrium, which a collision leaves as it is, so it reads no populations; after the last the
// moments of what arrives are written. So T steps read the populations T times and write them T times.

extern "C" __global__ void start(const float* __restrict__ fields, float* f, int nx, int ny, int nz, int walls,
                                 float lid, float force) {
    const Site s = site(nx, ny, nz, walls);
    if (s.x >= nx || s.y >= ny) return;
    float g[CELLS][19];
#pragma unroll
    for (int v = 0; v < CELLS; v++) {
        const float* at = fields + s.n + v;
#pragma unroll
        for (int i = 0; i < 19; i++) g[v][i] = 0;
        toward(g[v], at[0], at[s.cells], at[2 * s.cells], at[3 * s.cells], 1, force);
    }
    put(s, f, 0, lid, g);
}

extern "C" __global__ void step(float* f, int nx, int ny, int nz, int walls, float omega, float lid, float force,
                                int turn) {
    const Site s = site(nx, ny, nz, walls);
    if (s.x >= nx || s.y >= ny) return;
    float g[CELLS][19];
    fetch(s, f, turn, lid, g);
#pragma unroll
    for (int v = 0; v < CELLS; v++) collide(g[v], omega, force);
    put(s, f, turn, lid, g);
}

extern "C" __global__ void finish(const float* f, float* __restrict__ fields, int nx, int ny, int nz, int walls, float lid,
                                  float force, int turn) {
    const Site s = site(nx, ny, nz, walls);
    if (s.x >= nx || s.y >= ny) return;
    float g[CELLS][19];
    fetch(s, f, turn, lid, g);
#pragma unroll
    for (int v = 0; v < CELLS; v++) {
        const Moments m = moments(g[v]);
        const float inverse = 1 / (1 + m.d);
        float* at = fields + s.n + v;
        at[0] = m.d;
        at[s.cells] = inverse * (m.x + 0.5f * force);  // the mean of before and after a collision
        at[2 * s.cells] = inverse * m.y;
        at[3 * s.cells] = inverse * m.z;
    }
}
