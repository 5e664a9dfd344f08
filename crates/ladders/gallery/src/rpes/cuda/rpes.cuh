// Repulsion integrals of s and p shells by Rys quadrature. A shell is nine numbers: centre, exponents and
// coefficients of three primitive functions. A pair of shells has ROWS numbers; each number has a row over
// all pairs. They are exponent p, 1/(2p), centre, and size over p of each of nine pairs of primitives. Then
// come the centre of the first shell and how far the second is from it.

#define TERMS 10
#define INTERVALS 80

// A pair of primitives. Axis d of it is axis (d + turn) % 3 of space.
struct Product {
    real p, half, center[3], size;
};

static __device__ __forceinline__ Product product(const real* a, const real* b, int e, int turn) {
    const real ea = a[3 + e / 3], eb = b[3 + e % 3], apart[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    const real square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
    Product made;
    made.p = ea + eb;
    const real inverse = 1 / made.p;
    made.half = (real)0.5 * inverse;
    for (int d = 0; d < 3; d++) made.center[d] = (ea * a[(d + turn) % 3] + eb * b[(d + turn) % 3]) * inverse;
    // The root of 2 π^(5/2): each of two pairs has one.
    made.size = (real)5.914967172795613 * a[6 + e / 3] * b[6 + e % 3] * exp(-ea * eb * inverse * square) * inverse;
    return made;
}

// Points and weights: polynomials of an interval of x, constants where x is large. `table` begins with the
// numbers for N points.
template <int N>
static __device__ __forceinline__ void quadrature(real x, const real* table, real (&u)[N], real (&w)[N]) {
    // Not a number converts to anything.
    const int at = min(max((int)(2 * x), 0), INTERVALS);
    table += at * (2 * N * TERMS);
    if (at == INTERVALS) {
        const real inverse = 1 / x, root = sqrt(inverse);
#pragma unroll
        for (int i = 0; i < N; i++) {
            u[i] = table[i] * inverse;
            w[i] = table[N + i] * root;
        }
        return;
    }
    const real y = 4 * x - (real)(2 * at + 1);
#pragma unroll
    for (int f = 0; f < 2 * N; f++) {
        real sum = table[f * TERMS];
#pragma unroll
        for (int term = 1; term < TERMS; term++) sum = fma(sum, y, table[f * TERMS + term]);
        if (f < N) u[f] = sum;
        else w[f - N] = sum;
    }
}

// A class of n second pairs or, of one type with the first, as many as the first is in its type, and one:
// first and second pair of a quartet.
static __device__ __forceinline__ void pairs_of(unsigned quartet, bool same, unsigned n, unsigned& bra, unsigned& ket) {
    if (!same) {
        bra = quartet / n;
        ket = quartet % n;
        return;
    }
    bra = (unsigned)((sqrt(8.0 * quartet + 1.0) - 1) / 2);
    while (bra * (bra + 1) / 2 > quartet) bra--;
    while ((bra + 1) * (bra + 2) / 2 <= quartet) bra++;
    ket = quartet - bra * (bra + 1) / 2;
}
