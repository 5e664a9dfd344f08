// Real rows times weights, zero-padded to LENGTH, transformed, multiplied by a real spectrum, transformed
// back and cropped. Two real rows are one complex line: a real spectrum treats both alike. LOWER: n ≤
// LENGTH/2.
//
//   WEIGHTED 1: element (row r, column c) is multiplied by weights[view, c] / √(1 + (u² + v²)/d²), where (u,
//   v) is its distance from the middle of its view and 1/d is given with it.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
filter_rows(const float* from, float* to, const real* __restrict__ spectrum, const cplx* __restrict__ table,
            const cplx* __restrict__ reversed, const float* __restrict__ weights, const float* __restrict__ places, const unsigned total,
            const unsigned rows, const unsigned columns, const unsigned n, const unsigned before, const float pitch_u, const float pitch_v) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Place place = my_place((cplx*)memory);
    const unsigned first = 2 * (blockIdx.x * LINES + place.line);
    auto read = [&](unsigned row, unsigned column) -> real {
        if (row >= total || column >= columns) return 0;
        real value = from[(unsigned long long)row * columns + column];
#if WEIGHTED
        const unsigned view = row / rows;
        const float* middle = places + 3 * view;
        const float u = (column - middle[1]) * pitch_u * middle[2], v = (row % rows - middle[0]) * pitch_v * middle[2];
        value *= weights[(unsigned long long)view * columns + column] / sqrtf(1 + u * u + v * v);
#endif
        return value;
    };

    constexpr int R = LAST_RADIX;
    cplx v[ELEMENTS];
    each<FIRST_RADIX, LOWER>(place.t, [&](int j, int own) {
        // Columns in front of the first are beyond the last, as unsigned numbers are.
        v[own] = (unsigned)j < n ? make_cplx(read(first, j - before), read(first + 1, j - before)) : make_cplx(0, 0);
    });
    transform<LOWER>(v, place.shared, table, place.t);
#pragma unroll
    for (int i = 0; i < rounds(R) * R; i++) {
        const int b = place.t + i / R * TEAM;
        if (LENGTH / R % TEAM == 0 || b < LENGTH / R) v[i] = swapped(spectrum[b + i % R * (LENGTH / R)] * v[i]);
    }
    sync_line();
    transform_reversed<false>(v, place.shared, reversed, place.t);
    each<FIRST_RADIX, LOWER>(place.t, [&](int j, int own) {
        if ((unsigned)j >= n) return;
        const cplx both = swapped(v[own]);
        if (first < total) to[(unsigned long long)first * n + j] = both.x;
        if (first + 1 < total) to[(first + 1ull) * n + j] = both.y;
    });
}
