// The last axis on the way out: every row of `work`, [coil][row][LENGTH], is transformed back and cropped to
// n. With SENSE the coils' rows are multiplied by the conjugate sensitivities and added up, GROUPS coils at a
// time side by side. If `add` is not 0 the result is added to the image. Without SENSE the images are
// [coil][row][n] and `coils` is 1. LOWER: n ≤ LENGTH/2.

extern "C" __global__ void __launch_bounds__(THREADS * GROUPS, RESIDENT)
ifft_crop(const cplx* __restrict__ work, const cplx* __restrict__ maps, cplx* __restrict__ image,
      const cplx* __restrict__ reversed, const unsigned coils, const unsigned rows, const unsigned n, const unsigned add) {
    extern __shared__ __align__(16) unsigned char memory[];
    const unsigned group = threadIdx.y;
    const Place place = my_place((cplx*)memory + group * (LINES * PITCH));
    const unsigned row = blockIdx.x * LINES + place.line;

    constexpr int R = FIRST_RADIX;
    cplx sum[ELEMENTS];
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) sum[i] = make_cplx(0, 0);
    for (unsigned first = 0; first < coils; first += GROUPS) {
        const unsigned coil = first + group;
        const bool live = row < rows && coil < coils;
        const long long line = (long long)coil * rows + row;
        const cplx* source = work + line * LENGTH;
        const cplx* map = maps + line * n;
        PREVENT_HOISTING(reversed);
        cplx v[ELEMENTS];
        each<LAST_RADIX, false>(place.t, [&](int j, int own) {
            v[own] = make_cplx(0, 0);
            if (live) v[own] = swapped(source[j]);
        });
        transform_reversed<false>(v, place.shared, reversed, place.t);
        each<R, LOWER>(place.t, [&](int j, int own) {
            if (live && j < n) {
                sum[own] = SENSE ? sum[own] + mul_conj(map[j], swapped(v[own])) : swapped(v[own]);
            }
        });
        sync_line();
    }
#if GROUPS > 1
    // The groups' sums are added one after another, in the same order every time.
    cplx* sums = (cplx*)memory;
    __syncthreads();
    if (group > 0) {
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) sums[((group - 1) * ELEMENTS + i) * THREADS + threadIdx.x] = sum[i];
    }
    __syncthreads();
    if (group > 0) return;
    for (int g = 0; g < GROUPS - 1; g++) {
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) sum[i] = sum[i] + sums[(g * ELEMENTS + i) * THREADS + threadIdx.x];
    }
#endif
    cplx* target = image + (long long)row * n;
    each<R, LOWER>(place.t, [&](int j, int own) {
        if (row < rows && j < n) target[j] = add ? target[j] + sum[own] : sum[own];
    });
}
