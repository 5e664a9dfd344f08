// One class of quartets: BRA and KET are the numbers of p shells in both pairs. All loops over axes, powers,
// points and functions are unrolled, so that everything has a register. MADE is 1 where the numbers of pairs
// are made beforehand.
#ifndef BRA
#define BRA 2
#define KET 2
#define MADE 1
#endif
#ifndef THREADS
#define THREADS 64
#endif
#define LA (BRA > 0)
#define LB (BRA > 1)
#define LC (KET > 0)
#define LD (KET > 1)
#define POINTS ((BRA + KET) / 2 + 1)
// 81 sums of four p shells are too many for the registers of a thread. There three threads share a quartet.
// Each makes the functions of one component of the first shell, which turned axes make the first for all
// three.
#define PARTS (BRA == 2 && KET == 2 ? 3 : 1)
#define NA (LA && PARTS == 1 ? 3 : 1)
#define NB (LB ? 3 : 1)
#define NC (LC ? 3 : 1)
#define ND (LD ? 3 : 1)

// The numbers of all pairs.
extern "C" __global__ void __launch_bounds__(256)
ready(const real* __restrict__ shells, const uint2* __restrict__ pairs, unsigned count, real* __restrict__ rows) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const size_t all = count;
    const real *a = shells + 9 * pairs[at].x, *b = shells + 9 * pairs[at].y;
    rows += at;
#pragma unroll 1
    for (int e = 0; e < 9; e++) {
        const Product made = product(a, b, e, 0);
        rows[(6 * e) * all] = made.p;
        rows[(6 * e + 1) * all] = made.half;
        for (int d = 0; d < 3; d++) rows[(6 * e + 2 + d) * all] = made.center[d];
        rows[(6 * e + 5) * all] = made.size;
    }
    for (int d = 0; d < 3; d++) {
        rows[(54 + d) * all] = a[d];
        rows[(57 + d) * all] = a[d] - b[d];
    }
}

struct Tables {
    const real* shells;
    const uint2* pairs;
    const real* rows;
    size_t count;
};

static __device__ __forceinline__ Product product_of(const Tables& tables, unsigned pair, int e, int turn) {
    if (!MADE) return product(tables.shells + 9 * tables.pairs[pair].x, tables.shells + 9 * tables.pairs[pair].y, e, turn);
    const real* row = tables.rows + pair + 6 * e * tables.count;
    Product made;
    made.p = row[0];
    made.half = row[tables.count];
#pragma unroll
    for (int d = 0; d < 3; d++) made.center[d] = row[(2 + (PARTS == 1 ? d : (d + turn) % 3)) * tables.count];
    made.size = row[5 * tables.count];
    return made;
}

static __device__ __forceinline__ void places(const Tables& tables, unsigned pair, int turn, real (&first)[3], real (&second)[3]) {
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const int axis = PARTS == 1 ? d : (d + turn) % 3;
        if (MADE) {
            first[d] = tables.rows[pair + (54 + axis) * tables.count];
            second[d] = tables.rows[pair + (57 + axis) * tables.count];
        } else {
            first[d] = tables.shells[9 * tables.pairs[pair].x + axis];
            second[d] = first[d] - tables.shells[9 * tables.pairs[pair].y + axis];
        }
    }
}

// Powers of one axis around the first and the third centre.
struct Line {
    real g[BRA + 1][KET + 1];
};

static __device__ __forceinline__ Line line(real first, real to_p, real to_q, real pb, real qb, real both) {
    Line made;
    made.g[0][0] = first;
#pragma unroll
    for (int n = 0; n < BRA; n++) made.g[n + 1][0] = to_p * made.g[n][0] + (n > 0 ? pb * made.g[0][0] : 0);
#pragma unroll
    for (int m = 0; m < KET; m++) {
#pragma unroll
        for (int n = 0; n <= BRA; n++) {
            real next = to_q * made.g[n][m];
            if (m > 0) next = fma(qb, made.g[n][m - 1], next);
            if (n > 0) next = fma(n * both, made.g[n - 1][m], next);
            made.g[n][m + 1] = next;
        }
    }
    return made;
}

// Powers 0 or 1 around each of the four centres.
static __device__ __forceinline__ real of(const Line& line, int i, int j, int k, int l, real ab, real cd) {
    real low = line.g[i][k];
    if (l) low = fma(cd, low, line.g[i][k + 1]);
    if (!j) return low;
    real high = line.g[i + 1][k];
    if (l) high = fma(cd, high, line.g[i + 1][k + 1]);
    return fma(ab, low, high);
}

// How many threads a multiprocessor must hold at once; with 0 the compiler chooses. For the classes below
// with a number, the compiler's choice keeps one or two values in local memory, to save a few registers.
#if MADE && (DOUBLE ? BRA == 0 : BRA == 1 && KET == 1)
#define RESIDENT 1024
#elif MADE && !DOUBLE && BRA == 2 && KET == 1
#define RESIDENT 640
#else
#define RESIDENT 0
#endif

// The first pairs are those from `bras` on, the second `kets` of them from `first` on. Integrals of the class
// begin at `integrals`.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
quartets(const real* __restrict__ shells, const uint2* __restrict__ pairs, const real* __restrict__ rows, unsigned count,
         unsigned bras, unsigned first, unsigned kets, unsigned all, const real* __restrict__ table,
         double* __restrict__ integrals, unsigned long long from) {
    const unsigned at = blockIdx.x * THREADS + threadIdx.x, turn = blockIdx.y;
    if (at >= all) return;
    const Tables tables = {shells, pairs, rows, count};
    unsigned bra, ket;
    pairs_of(at, BRA == KET, kets, bra, ket);
    bra += bras;
    ket += first;
    table += POINTS * (POINTS - 1) * (INTERVALS * TERMS + 1);
    real a[3], ab[3], c[3], cd[3], sums[NA][NB][NC][ND] = {};
    places(tables, bra, turn, a, ab);
    places(tables, ket, turn, c, cd);
#pragma unroll 1
    for (int e = 0; e < 9; e++) {
        const Product p = product_of(tables, bra, e, turn);
#pragma unroll 1
        for (int f = 0; f < 9; f++) {
            const Product q = product_of(tables, ket, f, turn);
            const real r = 1 / (p.p + q.p), size = p.size * q.size * sqrt(r);
            real apart[3], x = 0, u[POINTS], w[POINTS];
#pragma unroll
            for (int d = 0; d < 3; d++) {
                apart[d] = p.center[d] - q.center[d];
                x = fma(apart[d], apart[d], x);
            }
            quadrature<POINTS>(p.p * q.p * r * x, table, u, w);
#pragma unroll
            for (int t = 0; t < POINTS; t++) {
                const real s = u[t] * r, pt = p.p * s, qt = q.p * s;
                const real pb = p.half * (1 - qt), qb = q.half * (1 - pt);
                Line lines[3];
#pragma unroll
                for (int d = 0; d < 3; d++)
                    lines[d] = line(d == 2 ? size * w[t] : 1, p.center[d] - a[d] - qt * apart[d],
                                    q.center[d] - c[d] + pt * apart[d], pb, qb, (real)0.5 * s);
#pragma unroll
                for (int i = 0; i < NA; i++)
#pragma unroll
                    for (int j = 0; j < NB; j++)
#pragma unroll
                        for (int k = 0; k < NC; k++)
#pragma unroll
                            for (int l = 0; l < ND; l++) {
                                real value = 1;
#pragma unroll
                                for (int d = 0; d < 3; d++)
                                    value *= of(lines[d], LA && i == d, LB && j == d, LC && k == d, LD && l == d, ab[d], cd[d]);
                                sums[i][j][k][l] += value;
                            }
            }
        }
    }
    integrals += from + (size_t)at * (NA * PARTS * NB * NC * ND);
#pragma unroll
    for (int i = 0; i < NA; i++)
#pragma unroll
        for (int j = 0; j < NB; j++)
#pragma unroll
            for (int k = 0; k < NC; k++)
#pragma unroll
                for (int l = 0; l < ND; l++) {
                    if (PARTS == 1) integrals[((i * NB + j) * NC + k) * ND + l] = sums[i][j][k][l];
                    else integrals[((turn * 3 + (j + turn) % 3) * 3 + (k + turn) % 3) * 3 + (l + turn) % 3] = sums[i][j][k][l];
                }
}
