// All steps. The first sets out from an equilibrium, which a collision leaves as it is, so it reads no
// populations; after the last the moments of what arrives are written. So T steps read the populations T
// times and write them T times.

extern "C" __global__ void start(const float* __restrict__ fields, float* f, int nx, int ny, int nz, int walls,
                                 float lid, float force) {
    const Site s = site(nx, ny, nz, walls);
    if (s.x >= nx || s.y >= ny) return;
    const float* at = fields + s.n;
    float g[19] = {};
    toward(g, at[0], at[s.cells], at[2ull * s.cells], at[3ull * s.cells], 1, force);
    put(s, f, 0, lid, g);
}

extern "C" __global__ void step(float* f, int nx, int ny, int nz, int walls, float omega, float lid, float force,
                                int turn) {
    const Site s = site(nx, ny, nz, walls);
    if (s.x >= nx || s.y >= ny) return;
    float g[19];
    fetch(s, f, turn, lid, g);
    collide(g, omega, force);
    put(s, f, turn, lid, g);
}

extern "C" __global__ void finish(const float* f, float* __restrict__ fields, int nx, int ny, int nz, int walls, float lid,
                                  float force, int turn) {
    const Site s = site(nx, ny, nz, walls);
    if (s.x >= nx || s.y >= ny) return;
    float g[19];
    fetch(s, f, turn, lid, g);
    write_moments(moments(g), fields + s.n, s.cells, force);
}
