// The first axis. The n rows of a column are zero-padded to LENGTH, transformed, multiplied by the real
// spectrum, transformed back and cropped, in place. Nothing is written in between. The columns of `coils`
// coils share the spectrum, which is read once for each of gridDim.y parts of the coils. LOWER: n ≤ LENGTH/2.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
fused(cplx* __restrict__ work, const real* __restrict__ spectrum, const cplx* __restrict__ table,
      const cplx* __restrict__ reversed, const unsigned coils, const long long coil_stride, const unsigned columns,
      const unsigned n) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Place place = my_place((cplx*)memory);
    const unsigned column = blockIdx.x * COLUMNS + place.line;
    const bool live = column < columns;
    long long stride = columns;

    constexpr int R = LAST_RADIX;
    real q[ELEMENTS];
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) q[i] = 0;
    if (live) {
#pragma unroll
        for (int i = 0; i < rounds(R) * R; i++) {
            const int b = place.t + i / R * TEAM;
            if (LENGTH / R % TEAM == 0 || b < LENGTH / R) q[i] = spectrum[(b + i % R * (LENGTH / R)) * stride + column];
        }
    }
    for (unsigned coil = blockIdx.y; coil < coils; coil += gridDim.y) {
        cplx* at = work + coil * coil_stride + column;
        PREVENT_HOISTING(table);
        PREVENT_HOISTING(stride);
        PREVENT_HOISTING(reversed);
        cplx v[ELEMENTS];
        each<FIRST_RADIX, LOWER>(place.t, [&](int j, int own) {
            v[own] = make_cplx(0, 0);
            if (live && j < n) v[own] = at[j * stride];
        });
        transform<LOWER>(v, place.shared, table, place.t);
#pragma unroll
        for (int i = 0; i < rounds(R) * R; i++) v[i] = swapped(q[i] * v[i]);
        PREVENT_HOISTING(stride);
        sync_line();
        transform_reversed<false>(v, place.shared, reversed, place.t);
        PREVENT_HOISTING(stride);
        each<FIRST_RADIX, LOWER>(place.t, [&](int j, int own) {
            if (live && j < n) at[j * stride] = swapped(v[own]);
        });
        sync_line();
    }
}
