use rayon::prelude::*;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Simd, dispatch};

use super::reference::mirrored;

/// Vectors side by side: a line of the cache, and two chains of comparisons that the processor overlaps.
const PAIR: usize = 2;

/// A vector of the elements from `start` on; beyond the end the last one, whose results are not stored.
#[inline(always)]
fn load<S: Simd>(simd: S, values: &[f32], start: usize) -> S::f32s {
    match values.get(start..start + S::f32s::LEN) {
        Some(values) => S::f32s::from_slice(simd, values),
        None => {
            let last = values.len() - 1;
            let mut vector = S::f32s::splat(simd, 0.0);
            for lane in 0..S::f32s::LEN {
                vector[lane] = values[(start + lane).min(last)];
            }
            vector
        }
    }
}

/// Stores as many lanes as there are elements from `start` on.
#[inline(always)]
fn store<S: Simd>(vector: S::f32s, values: &mut [f32], start: usize) {
    let len = S::f32s::LEN;
    match values.get_mut(start..start + len) {
        Some(values) => vector.store_slice(values),
        None => {
            let rest = values.get_mut(start..).unwrap_or_default();
            let count = rest.len();
            rest.copy_from_slice(&vector.as_slice()[..count]);
        }
    }
}

/// Takes `old` out of a sorted window and puts `new` in.
#[inline(always)]
fn replace<S: Simd>(simd: S, window: &mut [[S::f32s; PAIR]], old: [S::f32s; PAIR], new: [S::f32s; PAIR]) {
    let Some((&first, _)) = window.split_first() else { return };
    let last = window.len() - 1;
    let (mut here, mut before) = (first, [S::f32s::splat(simd, f32::NEG_INFINITY); PAIR]);
    for i in 0..last {
        let next = window[i + 1];
        let mut moved = here;
        for v in 0..PAIR {
            let kept = here[v].simd_lt(old[v]).select(here[v], next[v]);
            moved[v] = before[v].max(kept.min(new[v]));
            before[v] = kept;
        }
        window[i] = moved;
        here = next;
    }
    let mut moved = here;
    for v in 0..PAIR {
        moved[v] = before[v].max(new[v]);
    }
    window[last] = moved;
}

/// The medians at the places `first..` along the first axis of `[count, inner]`, as many as `out` has rows.
#[inline(always)]
pub(super) fn stretch<S: Simd>(
    simd: S,
    values: &[f32],
    [count, inner]: [usize; 2],
    width: usize,
    first: usize,
    out: &mut [f32],
) {
    let reach = (width / 2) as i64;
    let infinity = [S::f32s::splat(simd, f32::INFINITY); PAIR];
    let mut window = vec![infinity; width];
    for column in (0..inner).step_by(PAIR * S::f32s::LEN) {
        let mut row = infinity;
        window.fill(infinity);
        for place in -reach..reach {
            take(simd, values, [count, inner], first as i64 + place, column, &mut row);
            replace(simd, &mut window, infinity, row);
        }
        let mut old = infinity;
        for (line, out) in out.chunks_exact_mut(inner).enumerate() {
            let line = (first + line) as i64;
            take(simd, values, [count, inner], line + reach, column, &mut row);
            replace(simd, &mut window, old, row);
            for (v, median) in window[width / 2].into_iter().enumerate() {
                let to = column + v * S::f32s::LEN;
                if to < inner {
                    store::<S>(median, out, to);
                }
            }
            take(simd, values, [count, inner], line - reach, column, &mut old);
        }
    }
}

/// The elements of a row that may lie beyond the ends.
#[inline(always)]
fn take<S: Simd>(
    simd: S,
    values: &[f32],
    [count, inner]: [usize; 2],
    place: i64,
    column: usize,
    to: &mut [S::f32s; PAIR],
) {
    let row = mirrored(place, count) * inner;
    let row = &values[row..row + inner];
    for (v, to) in to.iter_mut().enumerate() {
        *to = load(simd, row, (column + v * S::f32s::LEN).min(inner - 1));
    }
}

#[inline(always)]
fn exchange<S: Simd>(work: &mut [S::f32s], a: usize, b: usize) {
    let (low, high) = (work[a].min(work[b]), work[a].max(work[b]));
    work[a] = low;
    work[b] = high;
}

/// The lines of the image around one line, mirrored and wider by the radius on both sides.
struct Lines {
    shape: [usize; 3],
    radius: [usize; 3],
    /// Elements of a line.
    step: usize,
    values: Vec<f32>,
}

impl Lines {
    /// `lanes` elements more, so that whole vectors are loaded.
    fn new(shape: [usize; 3], radius: [usize; 3], lanes: usize) -> Self {
        let step = shape[2] + 2 * radius[2] + lanes;
        Self { shape, radius, step, values: vec![0.0; (2 * radius[0] + 1) * (2 * radius[1] + 1) * step] }
    }

    /// Lines of one plane.
    fn high(&self) -> usize {
        2 * self.radius[1] + 1
    }

    /// Reads the lines at a height that may lie beyond the ends, of all planes around `z`.
    fn read(&mut self, image: &[f32], z: usize, y: i64) {
        let ([nz, ny, nx], [deep, _, wide]) = (self.shape, self.radius);
        let slot = y.rem_euclid(self.high() as i64) as usize;
        for plane in 0..=2 * deep {
            let from = mirrored((z + plane) as i64 - deep as i64, nz) * ny + mirrored(y, ny);
            let from = &image[from * nx..(from + 1) * nx];
            let start = (plane * self.high() + slot) * self.step;
            let line = &mut self.values[start..start + self.step];
            line[wide..wide + nx].copy_from_slice(from);
            let outside = (0..wide).chain(wide + nx..self.step);
            outside.for_each(|x| line[x] = from[mirrored(x as i64 - wide as i64, nx)]);
        }
    }

    /// The medians of one line.
    #[inline(always)]
    fn medians<S: Simd>(&self, simd: S, work: &mut [S::f32s], out: &mut [f32]) {
        let (across, lines) = (2 * self.radius[2] + 1, self.values.len() / self.step);
        let count = lines * across;
        for x in (0..out.len()).step_by(S::f32s::LEN) {
            let mut len = work.len();
            for (i, to) in work.iter_mut().enumerate() {
                *to = load(simd, &self.values, i / across * self.step + x + i % across);
            }
            let mut next = len;
            let median = loop {
                if len < 3 {
                    break work[0];
                }
                for i in 0..len / 2 {
                    exchange::<S>(work, i, len - 1 - i);
                }
                for i in 1..len.div_ceil(2) {
                    exchange::<S>(work, 0, i);
                }
                for i in len / 2..len - 1 {
                    exchange::<S>(work, i, len - 1);
                }
                if next == count {
                    break work[1];
                }
                work[0] = load(simd, &self.values, next / across * self.step + x + next % across);
                next += 1;
                len -= 1;
            };
            store::<S>(median, out, x);
        }
    }

    /// The same for three lines of windows three wide.
    #[inline(always)]
    fn medians_of_nine<S: Simd>(&self, simd: S, out: &mut [f32]) {
        // The sorted columns of a vector, from `column` on.
        #[inline(always)]
        fn columns<S: Simd>(simd: S, lines: &Lines, column: usize) -> [S::f32s; 3] {
            let [a, b, c] = [0, 1, 2].map(|line| line * lines.step + column);
            let (a, b, c) =
                (load(simd, &lines.values, a), load(simd, &lines.values, b), load(simd, &lines.values, c));
            let (low, high) = (a.min(b), a.max(b));
            let (middle, most) = (high.min(c), high.max(c));
            [low.min(middle), low.max(middle), most]
        }
        #[inline(always)]
        fn middle<S: Simd>(a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
            a.min(b).max(a.max(b).min(c))
        }
        for x in (0..out.len()).step_by(S::f32s::LEN) {
            let (a, b, c) = (columns(simd, self, x), columns(simd, self, x + 1), columns(simd, self, x + 2));
            let least = a[0].max(b[0]).max(c[0]);
            let most = a[2].min(b[2]).min(c[2]);
            store::<S>(middle::<S>(least, middle::<S>(a[1], b[1], c[1]), most), out, x);
        }
    }
}

#[inline(always)]
fn rows<S: Simd>(
    simd: S,
    image: &[f32],
    shape: [usize; 3],
    radius: [usize; 3],
    first: usize,
    out: &mut [f32],
) {
    let [_, ny, nx] = shape;
    let mut lines = Lines::new(shape, radius, S::f32s::LEN);
    let count = lines.values.len() / lines.step * (2 * radius[2] + 1);
    let mut work = vec![S::f32s::splat(simd, 0.0); if count == 1 { 1 } else { count / 2 + 2 }];
    let reach = radius[1] as i64;
    for (row, out) in out.chunks_exact_mut(nx).enumerate() {
        let (z, y) = ((first + row) / ny, ((first + row) % ny) as i64);
        let begin = if row == 0 || y == 0 { y - reach } else { y + reach };
        (begin..=y + reach).for_each(|y| lines.read(image, z, y));
        match (lines.high() * (2 * radius[0] + 1), radius[2]) {
            (3, 1) => lines.medians_of_nine(simd, out),
            _ => lines.medians(simd, &mut work, out),
        }
    }
}

pub(super) fn boxed(cpu: &Cpu, image: &[f32], shape: [usize; 3], radius: [usize; 3], out: &mut [f32]) {
    let [nz, ny, nx] = shape;
    // Several tasks a thread; the first line of a task reads all lines around it.
    let lines = (nz * ny).div_ceil(8 * cpu.threads()).max(8 * radius[1] + 8);
    cpu.run(|| {
        out.par_chunks_mut(lines * nx).enumerate().for_each(|(task, out)| {
            dispatch!(cpu.level(), simd => rows(simd, image, shape, radius, task * lines, out));
        });
    });
}
