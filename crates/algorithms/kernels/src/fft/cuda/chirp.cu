// Transforms lines of a length n with large prime factors as convolutions (Bluestein). With w[j] =
// e^{−iπj²/n}, X[k] = w[k] Σ_j (x[j] w[j]) conj(w[k − j]). The convolution uses transforms of LENGTH ≥ 2n − 1
// points that stay on the chip. `spectrum` is the transform of conj(w), divided by LENGTH. Element i of a
// line is position and frequency (i − shift) mod n. In place; strides as in pass.cu.

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
chirp(cplx* data, const cplx* __restrict__ table, const cplx* __restrict__ reversed, const cplx* __restrict__ w,
      const cplx* __restrict__ spectrum, const unsigned inverse, const real scale, const unsigned lines,
      const unsigned inner, const long long outer, const long long stride, const unsigned n, const unsigned shift) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Place place = my_place((cplx*)memory);
    const Which mine = my_line(place, lines, inner);
    const unsigned line = mine.line, column = mine.column;
    const bool live = mine.live;
    cplx* at = data + line * outer + column;
    auto element = [&](int j) { return j + shift >= n ? j + shift - n : j + shift; };

    cplx v[ELEMENTS];
    each<FIRST_RADIX, true>(place.t, [&](int j, int own) {
        v[own] = make_cplx(0, 0);
        if (live && j < n) {
            v[own] = at[element(j) * stride];
            v[own] = mul(w[j], inverse ? swapped(v[own]) : v[own]);
        }
    });
    transform<true>(v, place.shared, table, place.t);
    each<LAST_RADIX, false>(place.t, [&](int j, int own) { v[own] = swapped(mul(spectrum[j], v[own])); });
    sync_line();
    transform_reversed<false>(v, place.shared, reversed, place.t);
    each<FIRST_RADIX, true>(place.t, [&](int j, int own) {
        if (live && j < n) {
            cplx value = scale * mul(w[j], swapped(v[own]));
            at[element(j) * stride] = inverse ? swapped(value) : value;
        }
    });
}
