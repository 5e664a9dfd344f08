use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::{CLASSES, Data, FUNCTIONS, Layout, Shell, rys};

/// Quartets side by side: one vector of AVX-512.
const WIDTH: usize = 8;
/// The root of 2 π^(5/2): each of two pairs has one.
pub(super) const SIZE: f64 = 5.914967172795613;

/// Points and weights from the table, of W numbers X.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "lanes, of several arrays at once")]
pub(super) fn points_of<const W: usize>(
    n: usize,
    x: &[f64; W],
    table: &[f64],
) -> ([[f64; W]; 3], [[f64; W]; 3]) {
    let (mut points, mut weights) = ([[0.0; W]; 3], [[0.0; W]; 3]);
    let table = &table[rys::start(n)..rys::start(n + 1)];
    let (size, last) = (2 * n * rys::TERMS, rys::INTERVALS);
    let mut rows: [&[f64]; W] = [&[]; W];
    let mut y = [0.0; W];
    for l in 0..W {
        let interval = ((2.0 * x[l]) as usize).min(last - 1);
        rows[l] = &table[interval * size..][..size];
        y[l] = 4.0 * x[l] - (2 * interval + 1) as f64;
    }
    for f in 0..2 * n {
        let mut sum = [0.0; W];
        for term in 0..rys::TERMS {
            for l in 0..W {
                sum[l] = sum[l] * y[l] + rows[l][f * rys::TERMS + term];
            }
        }
        if f < n { points[f] = sum } else { weights[f - n] = sum }
    }
    let constants = &table[size * last..];
    for l in (0..W).filter(|&l| x[l] >= rys::LARGE) {
        for i in 0..n {
            points[i][l] = constants[i] / x[l];
            weights[i][l] = constants[n + i] / x[l].sqrt();
        }
    }
    (points, weights)
}

/// Fills the rows of pairs: of each pair of primitives exponent p, 1/(2p), centre, and size over p.
fn fill_rows(shells: &[Shell], layout: &Layout, rows: &mut [f64]) {
    let count = layout.pairs.len();
    for (index, &[a, b]) in layout.pairs.iter().enumerate() {
        let [a, b] = [a, b].map(|shell| &shells[shell as usize]);
        let mut put = |row: usize, value: f64| rows[row * count + index] = value;
        let apart: f64 = (0..3).map(|d| (a.center[d] - b.center[d]).powi(2)).sum();
        for e in 0..9 {
            let (ea, eb) = (a.exponents[e / 3], b.exponents[e % 3]);
            let p = ea + eb;
            put(6 * e, p);
            put(6 * e + 1, 0.5 / p);
            (0..3).for_each(|d| put(6 * e + 2 + d, (ea * a.center[d] + eb * b.center[d]) / p));
            let size = a.coefficients[e / 3] * b.coefficients[e % 3] * (-ea * eb / p * apart).exp();
            put(6 * e + 5, SIZE * size / p);
        }
        for d in 0..3 {
            put(54 + d, a.center[d]);
            put(57 + d, a.center[d] - b.center[d]);
        }
    }
}

/// A quartet at a time, one thread.
pub(super) fn scalar(data: &mut Data) {
    each::<1>(Level::baseline(), data);
}

/// WIDTH quartets at a time, one thread.
pub(super) fn simd(level: Level, data: &mut Data) {
    each::<WIDTH>(level, data);
}

fn each<const W: usize>(level: Level, data: &mut Data) {
    fill_rows(&data.shells, &data.layout, data.double.rows.cpu_mut());
    let tasks = tasks(&data.layout, data.integrals.cpu_mut());
    let tables = Tables {
        rows: data.double.rows.cpu(),
        roots: data.double.roots.cpu(),
        pairs: data.layout.pairs.len(),
    };
    tasks.into_iter().for_each(|task| task_of::<W>(level, &data.layout, tables, task));
}

pub(super) fn threads(cpu: &Cpu, data: &mut Data) {
    fill_rows(&data.shells, &data.layout, data.double.rows.cpu_mut());
    let tasks = tasks(&data.layout, data.integrals.cpu_mut());
    let tables = Tables {
        rows: data.double.rows.cpu(),
        roots: data.double.roots.cpu(),
        pairs: data.layout.pairs.len(),
    };
    let level = cpu.level();
    cpu.run(|| tasks.into_par_iter().for_each(|task| task_of::<WIDTH>(level, &data.layout, tables, task)));
}

/// Rows of numbers of all pairs, and the table of roots.
#[derive(Clone, Copy)]
struct Tables<'a> {
    rows: &'a [f64],
    roots: &'a [f64],
    pairs: usize,
}

/// A class, a first pair, and the integrals of all its second pairs.
type Task<'a> = ([usize; 2], usize, &'a mut [f64]);

fn tasks<'a>(layout: &Layout, mut integrals: &'a mut [f64]) -> Vec<Task<'a>> {
    let mut tasks = Vec::new();
    for [b, k] in CLASSES {
        for bra in 0..layout.of(b) {
            let kets = if b == k { bra + 1 } else { layout.of(k) };
            let (part, rest) = integrals.split_at_mut(kets * FUNCTIONS[b] * FUNCTIONS[k]);
            tasks.push(([b, k], layout.begin[b] + bra, part));
            integrals = rest;
        }
    }
    // The longest first.
    tasks.reverse();
    tasks
}

fn task_of<const W: usize>(level: Level, layout: &Layout, tables: Tables<'_>, (class, bra, out): Task<'_>) {
    let first = layout.begin[class[1]];
    dispatch!(level, simd => match class {
        [0, 0] => quartets::<_, W, 0, 0, 0, 0>(simd, tables, bra, first, out),
        [1, 0] => quartets::<_, W, 1, 0, 0, 0>(simd, tables, bra, first, out),
        [1, 1] => quartets::<_, W, 1, 0, 1, 0>(simd, tables, bra, first, out),
        [2, 0] => quartets::<_, W, 1, 1, 0, 0>(simd, tables, bra, first, out),
        [2, 1] => quartets::<_, W, 1, 1, 1, 0>(simd, tables, bra, first, out),
        _ => quartets::<_, W, 1, 1, 1, 1>(simd, tables, bra, first, out),
    });
}

/// W neighbouring numbers of a row; the last again beyond its end.
#[inline(always)]
fn lanes<const W: usize>(rows: &[f64], count: usize, row: usize, from: usize) -> [f64; W] {
    let row = &rows[row * count..][..count];
    match row[from..].first_chunk::<W>() {
        Some(lanes) => *lanes,
        None => {
            let mut lanes = [0.0; W];
            for (l, lane) in lanes.iter_mut().enumerate() {
                *lane = row[(from + l).min(count - 1)];
            }
            lanes
        }
    }
}

/// For each function of a pair with `p` p shells, one number i + 2j for each axis. The function has that axis
/// to the power i around the pair's first centre and to the power j around the second; each is 0 or 1.
fn places(p: usize) -> &'static [[usize; 3]] {
    const ONE: [[usize; 3]; 3] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    #[rustfmt::skip]
    const TWO: [[usize; 3]; 9] = [
        [3, 0, 0], [1, 2, 0], [1, 0, 2],
        [2, 1, 0], [0, 3, 0], [0, 1, 2],
        [2, 0, 1], [0, 2, 1], [0, 0, 3],
    ];
    match p {
        0 => &[[0; 3]],
        1 => &ONE,
        _ => &TWO,
    }
}

/// All quartets of the pair `bra` and as many pairs from `first` on as `out` has integrals of, W at a time.
/// Plain loops over lanes, which the compiler makes vectors of.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "lanes, of several arrays at once")]
fn quartets<S: Simd, const W: usize, const LA: usize, const LB: usize, const LC: usize, const LD: usize>(
    _: S,
    Tables { rows, roots: table, pairs: count }: Tables<'_>,
    bra: usize,
    first: usize,
    out: &mut [f64],
) {
    let n = (LA + LB + LC + LD) / 2 + 1;
    let one = |row: usize| rows[row * count + bra];
    let many = |row: usize, from: usize| lanes::<W>(rows, count, row, from);
    let (bras, kets) = (FUNCTIONS[LA + LB], FUNCTIONS[LC + LD]);
    let functions = bras * kets;
    let (bra_places, ket_places) = (places(LA + LB), places(LC + LD));
    let ab = [one(57), one(58), one(59)];
    for (turn, out) in out.chunks_mut(W * functions).enumerate() {
        let ket = first + turn * W;
        let (mut c, mut cd) = ([[0.0; W]; 3], [[0.0; W]; 3]);
        for d in 0..3 {
            c[d] = many(54 + d, ket);
            cd[d] = many(57 + d, ket);
        }
        let mut sums = [[0.0; W]; 81];
        for ij in 0..9 {
            let (p, half_p, size) = (one(6 * ij), one(6 * ij + 1), one(6 * ij + 5));
            for kl in 0..9 {
                let (q, half_q, other) = (many(6 * kl, ket), many(6 * kl + 1, ket), many(6 * kl + 5, ket));
                let (mut r, mut scale, mut x) = ([0.0; W], [0.0; W], [0.0; W]);
                let (mut apart, mut to_d) = ([[0.0; W]; 3], [[0.0; W]; 3]);
                for d in 0..3 {
                    let center = many(6 * kl + 2 + d, ket);
                    for l in 0..W {
                        apart[d][l] = one(6 * ij + 2 + d) - center[l];
                        to_d[d][l] = center[l] - c[d][l];
                        x[l] += apart[d][l] * apart[d][l];
                    }
                }
                for l in 0..W {
                    r[l] = 1.0 / (p + q[l]);
                    scale[l] = size * other[l] * r[l].sqrt();
                    x[l] *= p * q[l] * r[l];
                }
                let (us, ws) = points_of(n, &x, table);
                for i in 0..n {
                    let (mut bra_b, mut ket_b, mut both) = ([0.0; W], [0.0; W], [0.0; W]);
                    let (mut pt, mut qt) = ([0.0; W], [0.0; W]);
                    for l in 0..W {
                        let t = us[i][l] * r[l];
                        (pt[l], qt[l], both[l]) = (p * t, q[l] * t, 0.5 * t);
                        (bra_b[l], ket_b[l]) = (half_p * (1.0 - qt[l]), half_q[l] * (1.0 - pt[l]));
                    }
                    // g[d][n][m]: powers n and m of axis d around the first and the third centre.
                    let mut g = [[[[0.0; W]; 3]; 3]; 3];
                    for (d, g) in g.iter_mut().enumerate() {
                        let to_a = one(6 * ij + 2 + d) - one(54 + d);
                        let (mut to_p, mut to_q) = ([0.0; W], [0.0; W]);
                        for l in 0..W {
                            to_p[l] = to_a - qt[l] * apart[d][l];
                            to_q[l] = to_d[d][l] + pt[l] * apart[d][l];
                            g[0][0][l] = if d == 2 { scale[l] * ws[i][l] } else { 1.0 };
                        }
                        for n in 0..LA + LB {
                            for l in 0..W {
                                let last = if n > 0 { bra_b[l] * g[0][0][l] } else { 0.0 };
                                g[n + 1][0][l] = to_p[l] * g[n][0][l] + last;
                            }
                        }
                        for m in 0..LC + LD {
                            for n in 0..=LA + LB {
                                for l in 0..W {
                                    let mut next = to_q[l] * g[n][m][l];
                                    if m > 0 {
                                        next += ket_b[l] * g[n][m - 1][l];
                                    }
                                    if n > 0 {
                                        next += n as f64 * both[l] * g[n - 1][m][l];
                                    }
                                    g[n][m + 1][l] = next;
                                }
                            }
                        }
                    }
                    // h[d][2j + i][2l + k]: powers 0 or 1 around each of the four centres.
                    let mut h = [[[[0.0; W]; 4]; 4]; 3];
                    for d in 0..3 {
                        for bra in (0..4).filter(|bra| bra % 2 <= LA && bra / 2 <= LB) {
                            for ket in (0..4).filter(|ket| ket % 2 <= LC && ket / 2 <= LD) {
                                let (i, j, k, m) = (bra % 2, bra / 2, ket % 2, ket / 2);
                                for l in 0..W {
                                    let value = |n: usize| match m {
                                        0 => g[d][n][k][l],
                                        _ => g[d][n][k + 1][l] + cd[d][l] * g[d][n][k][l],
                                    };
                                    h[d][bra][ket][l] =
                                        if j == 0 { value(i) } else { value(i + 1) + ab[d] * value(i) };
                                }
                            }
                        }
                    }
                    for (bra, sums) in sums.chunks_exact_mut(kets).take(bras).enumerate() {
                        for (ket, sums) in sums.iter_mut().enumerate() {
                            let factor = |d: usize| &h[d][bra_places[bra][d]][ket_places[ket][d]];
                            let (x, y, z) = (factor(0), factor(1), factor(2));
                            for l in 0..W {
                                sums[l] += x[l] * y[l] * z[l];
                            }
                        }
                    }
                }
            }
        }
        for (l, out) in out.chunks_exact_mut(functions).enumerate() {
            for (out, sum) in out.iter_mut().zip(&sums) {
                *out = sum[l];
            }
        }
    }
}
