// The spectrum along the first axis, from displacements ≥ 0 of a Hermitian kernel: it is real. `half` is
// [n][p1][p2]; the spectrum is [slab][LENGTH][p1][slab of the last axis], slabs `width` wide, the last one
// what is left.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
spectrum(const cplx* __restrict__ half, real* __restrict__ out, const cplx* __restrict__ table, const unsigned n,
         const unsigned p1, const unsigned p2, const unsigned width, const real scale) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Place place = my_place((cplx*)memory);
    const unsigned columns = p1 * p2;
    const unsigned column = blockIdx.x * COLUMNS + place.line;
    const bool live = column < columns;
    const long long stride = columns;

    cplx v[ELEMENTS];
    each<FIRST_RADIX, false>(place.t, [&](int j, int own) {
        v[own] = make_cplx(0, 0);
        if (!live) return;
        if (j < n) v[own] = half[j * stride + column];
        else if (j > LENGTH - (int)n) v[own] = conj(half[(LENGTH - j) * stride + column]);
    });
    transform<false>(v, place.shared, table, place.t);
    const unsigned k1 = column / p2, k2 = column % p2, first = k2 / width * width;
    const unsigned wide = p2 - first < width ? p2 - first : width;
    real* target = out + (long long)first * LENGTH * p1 + k1 * wide + (k2 - first);
    each<LAST_RADIX, false>(place.t, [&](int j, int own) {
        if (live) target[(long long)j * p1 * wide] = scale * v[own].x;
    });
}
