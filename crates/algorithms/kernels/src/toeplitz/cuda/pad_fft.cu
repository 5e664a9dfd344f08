// The last axis on the way in: every row of an image, times the sensitivity of each coil where SENSE is 1, is
// zero-padded to LENGTH and transformed. `work` is [coil][row][LENGTH]; without SENSE the images are
// [coil][row][n]. LOWER: n ≤ LENGTH/2.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
pad_fft(const cplx* __restrict__ image, const cplx* __restrict__ maps, cplx* __restrict__ work,
      const cplx* __restrict__ table, const unsigned coils, const unsigned rows, const unsigned n) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Place place = my_place((cplx*)memory);
    // The blocks of one row's coils follow one another, so that all but the first read the row of the image
    // from the cache.
    const unsigned coil = blockIdx.x % coils;
    const unsigned row = blockIdx.x / coils * LINES + place.line;
    const bool live = row < rows;
    const long long line = (long long)coil * rows + row;
    const cplx* source = image + (SENSE ? (long long)row : line) * n;
    const cplx* map = maps + line * n;

    cplx v[ELEMENTS];
    each<FIRST_RADIX, LOWER>(place.t, [&](int j, int own) {
        v[own] = make_cplx(0, 0);
        if (live && j < n) v[own] = SENSE ? mul(map[j], source[j]) : source[j];
    });
    transform<LOWER>(v, place.shared, table, place.t);
    cplx* target = work + line * LENGTH;
    each<LAST_RADIX, false>(place.t, [&](int j, int own) {
        if (live) target[j] = v[own];
    });
}
