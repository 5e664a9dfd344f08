// A thread a quartet of shells, in the order of the shells: neighbours are of different classes, so that
// warps take all ways through the loops. Powers and functions are numbers at run time: their places lie in
// local memory.
extern "C" __global__ void __launch_bounds__(256)
naive(const real* __restrict__ shells, const uint2* __restrict__ pairs, const unsigned* __restrict__ order, unsigned count,
      unsigned ps, unsigned pp, const real* __restrict__ table, double* __restrict__ integrals) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count * (count + 1) / 2) return;
    unsigned bra, ket;
    pairs_of(at, true, count, bra, ket);
    bra = order[bra];
    ket = order[ket];
    if (bra < ket) {
        const unsigned other = bra;
        bra = ket;
        ket = other;
    }
    // How many p shells a pair has; where its type begins; how many pairs there are of a type.
    const int kb = (bra >= ps) + (bra >= pp), kk = (ket >= ps) + (ket >= pp);
    const size_t begin[4] = {0, ps, pp, count}, functions[3] = {1, 3, 9};
    size_t to = 0;
    for (int b = 0; b <= kb; b++)
        for (int k = 0; k <= b; k++) {
            if (b == kb && k == kk) break;
            const size_t n = begin[b + 1] - begin[b];
            to += (b == k ? n * (n + 1) / 2 : n * (begin[k + 1] - begin[k])) * functions[b] * functions[k];
        }
    const size_t i = bra - begin[kb], j = ket - begin[kk];
    to += (kb == kk ? i * (i + 1) / 2 + j : i * (begin[kk + 1] - begin[kk]) + j) * functions[kb] * functions[kk];

    const real *a = shells + 9 * pairs[bra].x, *b = shells + 9 * pairs[bra].y;
    const real *c = shells + 9 * pairs[ket].x, *d = shells + 9 * pairs[ket].y;
    const int n = (kb + kk) / 2 + 1;
    real sums[81];
    for (int f = 0; f < 81; f++) sums[f] = 0;
    for (int e = 0; e < 81; e++) {
        const Product p = product(a, b, e / 9, 0), q = product(c, d, e % 9, 0);
        const real r = 1 / (p.p + q.p);
        real apart[3], x = 0;
        for (int axis = 0; axis < 3; axis++) {
            apart[axis] = p.center[axis] - q.center[axis];
            x += apart[axis] * apart[axis];
        }
        x *= p.p * q.p * r;
        real u[3], w[3], u1[1], w1[1], u2[2], w2[2];
        if (n == 1) {
            quadrature<1>(x, table, u1, w1);
            u[0] = u1[0], w[0] = w1[0];
        } else if (n == 2) {
            quadrature<2>(x, table + 2 * (INTERVALS * TERMS + 1), u2, w2);
            for (int t = 0; t < 2; t++) u[t] = u2[t], w[t] = w2[t];
        } else {
            quadrature<3>(x, table + 6 * (INTERVALS * TERMS + 1), u, w);
        }
        for (int t = 0; t < n; t++) {
            const real s = u[t] * r, pt = p.p * s, qt = q.p * s;
            real g[3][3][3];
            for (int axis = 0; axis < 3; axis++) {
                const real to_p = p.center[axis] - a[axis] - qt * apart[axis], to_q = q.center[axis] - c[axis] + pt * apart[axis];
                const real pb = p.half * (1 - qt), qb = q.half * (1 - pt), both = (real)0.5 * s;
                g[axis][0][0] = axis == 2 ? p.size * q.size * sqrt(r) * w[t] : 1;
                for (int i = 0; i < kb; i++) g[axis][i + 1][0] = to_p * g[axis][i][0] + (i > 0 ? pb * g[axis][0][0] : 0);
                for (int k = 0; k < kk; k++)
                    for (int i = 0; i <= kb; i++)
                        g[axis][i][k + 1] = to_q * g[axis][i][k] + (k > 0 ? qb * g[axis][i][0] : 0) +
                                            (i > 0 ? i * both * g[axis][i - 1][k] : 0);
            }
            const int nb = kb > 1 ? 3 : 1, nc = kk > 0 ? 3 : 1, nd = kk > 1 ? 3 : 1;
            for (int f = 0; f < (int)(functions[kb] * functions[kk]); f++) {
                const int fa = f / nd / nc / nb, fb = f / nd / nc % nb, fc = f / nd % nc, fd = f % nd;
                real value = 1;
                for (int axis = 0; axis < 3; axis++) {
                    const int i = kb > 0 && fa == axis, k = kk > 0 && fc == axis;
                    const real(*h)[3] = g[axis];
                    const bool j = kb > 1 && fb == axis, l = kk > 1 && fd == axis;
                    const real cd = c[axis] - d[axis], ab = a[axis] - b[axis];
                    real of = l ? h[i][k + 1] + cd * h[i][k] : h[i][k];
                    if (j) of = (l ? h[i + 1][k + 1] + cd * h[i + 1][k] : h[i + 1][k]) + ab * of;
                    value *= of;
                }
                sums[f] += value;
            }
        }
    }
    for (int f = 0; f < (int)(functions[kb] * functions[kk]); f++) integrals[to + f] = sums[f];
}
