// One axis of an N-D transform: every line read once and written once, wherever it lies.
//
//   FROM_LOWER  1: a line's elements from LENGTH/2 on are 0 and not read
//   TO_LOWER    1: a line's elements from LENGTH/2 on are not written
//
// An array is [batch][a][b][line] with strides of its own. With COLUMNS, `inner` neighbouring elements are
// the starts of as many lines. On each side a line holds `count` elements: element i is position (i − shift)
// mod LENGTH, and lies at that position where the line is `whole`, else at i. Index i along a lies at (i −
// a_shift) mod a_length, and so for b. Element i is multiplied by factors[i] as it is read (weigh = 1) or
// written (weigh = 2).

static __device__ __forceinline__ long long wrapped(unsigned index, unsigned shift, unsigned length) {
    return index >= shift ? index - shift : index + length - shift;
}

// The element that is position j of a line.
static __device__ __forceinline__ unsigned element(int j, unsigned shift) {
    const unsigned i = j + shift;
    return i >= LENGTH ? i - LENGTH : i;
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
pass(const cplx* from, cplx* to, const unsigned in_place, const cplx* __restrict__ table, const real* __restrict__ factors,
     const unsigned weigh, const unsigned inverse, const real scale, const unsigned lines, const unsigned inner,
     const unsigned a_count, const unsigned b_count,
     const long long from_batch, const long long from_a, const long long from_b, const long long from_stride,
     const unsigned from_a_shift, const unsigned from_a_length, const unsigned from_b_shift, const unsigned from_b_length,
     const unsigned from_shift, const unsigned from_count, const unsigned from_whole,
     const long long to_batch, const long long to_a, const long long to_b, const long long to_stride,
     const unsigned to_a_shift, const unsigned to_a_length, const unsigned to_b_shift, const unsigned to_b_length,
     const unsigned to_shift, const unsigned to_count, const unsigned to_whole) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Place place = my_place((cplx*)memory);
    const Which mine = my_line(place, lines, inner);
    const unsigned line = mine.line, column = mine.column;
    const bool live = mine.live;
    const unsigned b = line % b_count, a = line / b_count % a_count, batch = line / b_count / a_count;
    const cplx* source = (in_place ? to : from) + batch * from_batch + wrapped(a, from_a_shift, from_a_length) * from_a +
                         wrapped(b, from_b_shift, from_b_length) * from_b + column;
    cplx* target = to + batch * to_batch + wrapped(a, to_a_shift, to_a_length) * to_a +
                   wrapped(b, to_b_shift, to_b_length) * to_b + column;

    cplx v[ELEMENTS];
    each<FIRST_RADIX, FROM_LOWER>(place.t, [&](int j, int own) {
        const unsigned i = FROM_LOWER ? j : element(j, from_shift);
        v[own] = make_cplx(0, 0);
        if (live && i < from_count) {
            v[own] = source[(from_whole ? j : i) * from_stride];
            if (weigh == 1) v[own] = factors[i] * v[own];
            if (inverse) v[own] = swapped(v[own]);
        }
    });
    transform<FROM_LOWER>(v, place.shared, table, place.t);
    each<LAST_RADIX, TO_LOWER>(place.t, [&](int j, int own) {
        const unsigned i = TO_LOWER ? j : element(j, to_shift);
        if (live && i < to_count) {
            cplx value = scale * v[own];
            if (weigh == 2) value = factors[i] * value;
            target[(to_whole ? j : i) * to_stride] = inverse ? swapped(value) : value;
        }
    });
}
