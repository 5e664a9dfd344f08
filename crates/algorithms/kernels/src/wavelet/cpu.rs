use bytemuck::{cast_slice, cast_slice_mut};
use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::Real;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::dispatch;

use super::{Implementation, Level, Plan};
use crate::vector::SERIAL;

/// The most taps of a filter.
const TAPS: usize = 4;

/// The two ways through the transform.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Inverse,
}

/// An element of a transformed axis as a sum of elements of the axis before.
#[derive(Clone, Copy)]
struct Term<R> {
    count: usize,
    from: [usize; TAPS],
    factor: [R; TAPS],
}

/// The filters with every constant that the loops need.
struct Filters<R> {
    taps: usize,
    low: [R; TAPS],
    high: [R; TAPS],
}

impl<R: Real> Filters<R> {
    fn of(plan: &Plan) -> Self {
        let narrow = |filter: Vec<f64>| {
            let mut out = [R::zero(); TAPS];
            out.iter_mut().zip(filter).for_each(|(out, h)| *out = <R as Real>::from_f64(h));
            out
        };
        let family = plan.family();
        Self { taps: family.low().len(), low: narrow(family.low()), high: narrow(family.high()) }
    }

    /// Element `i` of the axis of `n` elements after one level that shifts by `shift`.
    fn term(&self, way: Way, n: usize, shift: usize, i: usize) -> Term<R> {
        let half = n / 2;
        let mut term = Term { count: self.taps, from: [0; TAPS], factor: [R::zero(); TAPS] };
        let mut set = |t: usize, from: usize, factor: R| {
            term.from[t] = from;
            term.factor[t] = factor;
        };
        let position = match way {
            Way::Forward => i,
            Way::Inverse => (i + n - shift) % n,
        };
        if position == 2 * half {
            set(0, if way == Way::Forward { (position + shift) % n } else { position }, R::one());
            term.count = 1;
            return term;
        }
        match way {
            Way::Forward => {
                let (k, filter) =
                    if position < half { (position, &self.low) } else { (position - half, &self.high) };
                for (j, &h) in filter.iter().enumerate().take(self.taps) {
                    set(j, ((2 * k + j) % (2 * half) + shift) % n, h);
                }
            }
            Way::Inverse => {
                let (k, odd) = (position / 2, position % 2);
                for p in 0..self.taps / 2 {
                    let from = (k + p * (half - 1)) % half;
                    set(2 * p, from, self.low[2 * p + odd]);
                    set(2 * p + 1, half + from, self.high[2 * p + odd]);
                }
            }
        }
        term
    }
}

/// The plan's shape, a level's box and its axes as [z, y, x].
fn padded<T: Copy>(list: &[T], with: T) -> [T; 3] {
    let mut out = [with; 3];
    out[3 - list.len()..].copy_from_slice(list);
    out
}

/// Where rows lie: row y of plane z begins at (z · rows + y) · step.
#[derive(Clone, Copy)]
struct Layout {
    rows: usize,
    step: usize,
}

impl Layout {
    fn compact(size: [usize; 3]) -> Self {
        Self { rows: size[1], step: size[2] }
    }

    fn at(&self, z: usize, y: usize) -> usize {
        (z * self.rows + y) * self.step
    }
}

/// Calls `body(z, y, row)` for the rows of the box of `size` elements at the origin of `out`.
fn for_rows<T: Send>(
    cpu: &Cpu,
    size: [usize; 3],
    layout: Layout,
    out: &mut [T],
    body: impl Fn(usize, usize, &mut [T]) + Send + Sync,
) {
    let [nz, ny, nx] = size;
    let one = |i: usize, row: &mut [T]| {
        let (z, y) = (i / layout.rows, i % layout.rows);
        if y < ny {
            body(z, y, &mut row[..nx]);
        }
    };
    let end = layout.at(nz - 1, ny - 1) + nx;
    if nx * ny * nz <= SERIAL || cpu.threads() == 1 {
        out[..end].chunks_mut(layout.step).enumerate().for_each(|(i, row)| one(i, row));
    } else {
        let rows = (8192 / layout.step).max(1);
        cpu.run(|| {
            out[..end].par_chunks_mut(layout.step * rows).enumerate().for_each(|(chunk, part)| {
                part.chunks_mut(layout.step).enumerate().for_each(|(i, row)| one(chunk * rows + i, row));
            });
        });
    }
}

#[inline(always)]
fn sum_rows<R: Real, const N: usize>(rows: [&[R]; N], factor: [R; N], out: &mut [R]) {
    let rows = rows.map(|row| &row[..out.len()]);
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = factor[0] * rows[0][i];
        for n in 1..N {
            sum += factor[n] * rows[n][i];
        }
        *out = sum;
    }
}

/// out ← Σ_t factor_t · row(from_t).
#[inline(always)]
fn combine<'a, R: Real>(term: &Term<R>, row: impl Fn(usize) -> &'a [Complex<R>], out: &mut [Complex<R>]) {
    let flat = |t: usize| -> &[R] { cast_slice(row(term.from[t])) };
    let f = term.factor;
    match term.count {
        1 => out.copy_from_slice(row(term.from[0])),
        2 => sum_rows([flat(0), flat(1)], [f[0], f[1]], cast_slice_mut(out)),
        _ => sum_rows([flat(0), flat(1), flat(2), flat(3)], f, cast_slice_mut(out)),
    }
}

/// Filters the rows of `pair`, each with the one behind it: out(k) = Σ_p a_p first(k + p) + b_p second(k +
/// p).
#[inline(always)]
fn filter_pair<R: Real>(taps: usize, pair: [&[R]; 2], a: [R; 2], b: [R; 2], out: &mut [R]) {
    let [first, second] = pair;
    if taps == 2 {
        sum_rows([first, second], [a[0], b[0]], out);
    } else {
        sum_rows([first, second, &first[2..], &second[2..]], [a[0], b[0], a[1], b[1]], out);
    }
}

/// One level along a row: even and odd elements apart, so that neighbours in memory are neighbours in the
/// sums.
#[inline(always)]
fn forward_row<R: Real>(
    f: &Filters<R>,
    shift: usize,
    row: &[Complex<R>],
    even: &mut [Complex<R>],
    odd: &mut [Complex<R>],
    out: &mut [Complex<R>],
) {
    let (n, half) = (row.len(), row.len() / 2);
    if shift == 0 {
        for (k, pair) in row.chunks_exact(2).enumerate() {
            even[k] = pair[0];
            odd[k] = pair[1];
        }
    } else {
        let shifted = |i: usize| if i + shift < n { row[i + shift] } else { row[i + shift - n] };
        for k in 0..half {
            even[k] = shifted(2 * k);
            odd[k] = shifted(2 * k + 1);
        }
    }
    (even[half], odd[half]) = (even[0], odd[0]);
    let pair: [&[R]; 2] = [cast_slice(even), cast_slice(odd)];
    for (filter, out) in [&f.low, &f.high].into_iter().zip(out.chunks_mut(half)) {
        filter_pair(f.taps, pair, [filter[0], filter[2]], [filter[1], filter[3]], cast_slice_mut(out));
    }
    if n % 2 == 1 {
        out[n - 1] = row[(n - 1 + shift) % n];
    }
}

/// The transpose of [`forward_row`]; `low` and `high` are memory for half a row and one element more, `even`
/// and `odd` for half a row.
#[inline(always)]
fn inverse_row<R: Real>(
    f: &Filters<R>,
    shift: usize,
    row: &[Complex<R>],
    [low, high, even, odd]: [&mut [Complex<R>]; 4],
    out: &mut [Complex<R>],
) {
    let (n, half) = (row.len(), row.len() / 2);
    low[1..=half].copy_from_slice(&row[..half]);
    high[1..=half].copy_from_slice(&row[half..2 * half]);
    (low[0], high[0]) = (low[half], high[half]);
    let from = if f.taps == 2 { 1 } else { 0 };
    let pair: [&[R]; 2] = [cast_slice(&low[from..]), cast_slice(&high[from..])];
    for (parity, out) in [&mut *even, &mut *odd].into_iter().enumerate() {
        let taps = |filter: &[R; TAPS]| match f.taps {
            2 => [filter[parity], R::zero()],
            _ => [filter[2 + parity], filter[parity]],
        };
        filter_pair(f.taps, pair, taps(&f.low), taps(&f.high), cast_slice_mut(&mut out[..half]));
    }
    if shift == 0 {
        for (k, pair) in out.chunks_exact_mut(2).enumerate() {
            pair[0] = even[k];
            pair[1] = odd[k];
        }
    } else {
        for (k, (&even, &odd)) in even[..half].iter().zip(&odd[..half]).enumerate() {
            out[(2 * k + shift) % n] = even;
            out[(2 * k + 1 + shift) % n] = odd;
        }
    }
    if n % 2 == 1 {
        out[(n - 1 + shift) % n] = row[n - 1];
    }
}

/// One level along one axis of the box, from one place to another.
struct Pass<'a, R> {
    way: Way,
    filters: &'a Filters<R>,
    size: [usize; 3],
    axis: usize,
    shift: usize,
}

impl<R: Real> Pass<'_, R> {
    fn run(&self, cpu: &Cpu, from: (&[Complex<R>], Layout), to: (&mut [Complex<R>], Layout)) {
        let ((data, source), (out, layout)) = (from, to);
        let (size, n) = (self.size, self.size[self.axis]);
        let row = |z: usize, y: usize| &data[source.at(z, y)..][..size[2]];
        if self.axis == 2 {
            let work = n / 2 + 1;
            for_rows(cpu, size, layout, out, |z, y, out| {
                // A few kilobytes that stay in cache: memory from the allocator costs less than the row.
                let mut memory = vec![Complex::default(); 4 * work];
                let (a, rest) = memory.split_at_mut(work);
                let (b, rest) = rest.split_at_mut(work);
                let (c, d) = rest.split_at_mut(work);
                dispatch!(cpu.level(), _simd => match self.way {
                    Way::Forward => forward_row(self.filters, self.shift, row(z, y), a, b, out),
                    Way::Inverse => inverse_row(self.filters, self.shift, row(z, y), [a, b, c, d], out),
                });
            });
            return;
        }
        let terms: Vec<_> = (0..n).map(|i| self.filters.term(self.way, n, self.shift, i)).collect();
        for_rows(cpu, size, layout, out, |z, y, out| {
            let term = &terms[if self.axis == 0 { z } else { y }];
            let rows = |i: usize| if self.axis == 0 { row(i, y) } else { row(z, i) };
            dispatch!(cpu.level(), _simd => combine(term, rows, out));
        });
    }
}

/// All levels of a plan one way.
struct Transform<'a, R> {
    cpu: &'a Cpu,
    way: Way,
    plan: &'a Plan,
    filters: Filters<R>,
}

impl<'a, R: Real> Transform<'a, R> {
    fn new(cpu: &'a Cpu, way: Way, plan: &'a Plan) -> Self {
        Self { cpu, way, plan, filters: Filters::of(plan) }
    }

    fn run(&self, shift: &[usize], input: &[Complex<R>], out: &mut [Complex<R>], work: &mut Vec<Complex<R>>) {
        let reduced: Vec<usize> = shift.iter().zip(self.plan.shape()).map(|(s, n)| s % n).collect();
        let finest = padded(&reduced, 0);
        let levels = self.plan.levels();
        if levels.is_empty() || self.way == Way::Inverse {
            out.copy_from_slice(input);
        }
        let mut run = |index: usize, input: Option<&[Complex<R>]>| {
            let shift = if index == 0 { finest } else { [0; 3] };
            self.run_level(&levels[index], shift, input, out, work);
        };
        match self.way {
            Way::Forward => (0..levels.len()).for_each(|l| run(l, (l == 0).then_some(input))),
            Way::Inverse => (0..levels.len()).rev().for_each(|l| run(l, None)),
        }
    }

    /// The passes of a level on the box at the origin of `out` (or, where given, from `input`), through
    /// `work` and back.
    fn run_level(
        &self,
        level: &Level,
        shift: [usize; 3],
        input: Option<&[Complex<R>]>,
        out: &mut [Complex<R>],
        work: &mut Vec<Complex<R>>,
    ) {
        let whole = Layout::compact(padded(self.plan.shape(), 1));
        let size = padded(&level.size, 1);
        let compact = Layout::compact(size);
        let len: usize = size.iter().product();
        work.resize((2 * len).max(work.len()), Complex::default());
        let (mut here, rest) = work.split_at_mut(len);
        let mut there = &mut rest[..len];
        let split = padded(&level.split, false);
        // Along x first: rows that are in cache from it are then summed.
        let axes: Vec<usize> = [2, 1, 0].into_iter().filter(|&a| split[a]).collect();
        for (i, &axis) in axes.iter().enumerate() {
            let pass = Pass { way: self.way, filters: &self.filters, size, axis, shift: shift[axis] };
            let last = i + 1 == axes.len();
            if i == 0 {
                pass.run(self.cpu, (input.unwrap_or(&*out), whole), (&mut *there, compact));
            } else if last {
                pass.run(self.cpu, (&*here, compact), (&mut *out, whole));
            } else {
                pass.run(self.cpu, (&*here, compact), (&mut *there, compact));
            }
            std::mem::swap(&mut here, &mut there);
        }
        if axes.len() == 1 {
            for_rows(self.cpu, size, whole, out, |z, y, row| {
                row.copy_from_slice(&here[compact.at(z, y)..][..row.len()])
            });
        }
    }
}

/// All cores over rows of each pass's result.
pub(super) fn rows<R: Real>() -> Implementation<R> {
    Implementation {
        forward: |cpu, plan, shift, x, c, work| {
            Transform::new(cpu, Way::Forward, plan).run(shift, x, c, work)
        },
        inverse: |cpu, plan, shift, c, x, work| {
            Transform::new(cpu, Way::Inverse, plan).run(shift, c, x, work)
        },
    }
}

/// One thread, one line after another.
pub(super) fn plain<R: Real>() -> Implementation<R> {
    fn lines<R: Real>(
        way: Way,
        plan: &Plan,
        shift: &[usize],
        input: &[Complex<R>],
        out: &mut [Complex<R>],
        line: &mut Vec<Complex<R>>,
    ) {
        out.copy_from_slice(input);
        let filters = Filters::<R>::of(plan);
        let shape = plan.shape();
        let stride = |a: usize| shape[a + 1..].iter().product::<usize>();
        let count = plan.levels().len();
        let order: Vec<usize> = match way {
            Way::Forward => (0..count).collect(),
            Way::Inverse => (0..count).rev().collect(),
        };
        for index in order {
            let level = &plan.levels()[index];
            for axis in (0..shape.len()).filter(|&a| level.split[a]) {
                let (n, step) = (level.size[axis], stride(axis));
                let shift = if index == 0 { shift[axis] % n } else { 0 };
                for start in 0..out.len() {
                    let coordinate = |a: usize| start / stride(a) % shape[a];
                    if coordinate(axis) != 0 || (0..shape.len()).any(|a| coordinate(a) >= level.size[a]) {
                        continue;
                    }
                    line.clear();
                    line.extend((0..n).map(|i| out[start + i * step]));
                    for i in 0..n {
                        let term = filters.term(way, n, shift, i);
                        let parts = term.from.iter().zip(&term.factor).take(term.count);
                        out[start + i * step] = parts.map(|(&from, &f)| line[from] * f).sum();
                    }
                }
            }
        }
    }
    Implementation {
        forward: |_, plan, shift, x, c, work| lines(Way::Forward, plan, shift, x, c, work),
        inverse: |_, plan, shift, c, x, work| lines(Way::Inverse, plan, shift, c, x, work),
    }
}
