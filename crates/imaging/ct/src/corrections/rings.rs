//! Rings by sorting: columns of a sinogram whose pixels respond in their own way.
//!
//! Sorted along the views, neighbouring columns look alike whatever the object; then, with M a median over
//! neighbouring columns,
//!
//! ```text
//! T(σ_c(i), c) ← M_small[ M_large or T / f ](i, c),      f_c = mean_i T_sorted(i, c) / mean_i M_large[T_sorted](i, c)
//! ```
//!
//! where σ_c(i) is the view of the i-th smallest transmission T = e^(−p) in column c. In this order:
//!
//! 1. Columns that do not respond or that fluctuate, which Σ_v |T − mean of 10 views| tells, are interpolated
//!    between their neighbours.
//! 2. Columns whose f stands out take M_large; the others are divided by f.
//! 3. M_small removes what is left.
//!
//! A column stands out where its sorted place among all columns is further than `ring_snr` times the noise
//! level from the line through the middle half.
//!
//! N. T. Vo, R. C. Atwood, M. Drakopoulos, *Superior techniques for eliminating ring artifacts in X-ray
//! micro-tomography*, Opt Express 26:28396, 2018, algorithms 3 to 6, as `remove_all_stripe` of sarepy, tomopy
//! and algotom combines them.

use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{ArrayViewMut2, Axis};
use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::cpu::Stop;
use rayspin_device::{Cpu, Device};
use rayspin_kernels::median;
use rayspin_kernels::median::reference::mirrored;
use rayspin_run::{About, Param, Value, params};

use super::{ActsOn, Correction, GROUP, Views, odd};

/// Without the user's word, medians are as wide as these parts of the columns: 51 and 21 of 2048 columns, as
/// the authors have it. On a tooth of 640 columns, 51 and 21 smear its edges, and 17 and 7 do not.
const LARGE: usize = 40;
const SMALL: usize = 96;
/// Views of the mean that tells columns that fluctuate.
const SMOOTH: i64 = 10;
/// Columns that are gathered and sorted at a time: a line of the cache.
const BLOCK: usize = 16;
/// Line integrals whose transmissions are numbers of f32.
const RANGE: std::ops::RangeInclusive<f32> = -80.0..=80.0;

params! {
    /// Rings are removed by sorting (Vo, Atwood and Drakopoulos, Opt Express 26:28396, 2018).
    pub struct Rings {
        /// Ratio to the noise from which a column stands out.
        ring_snr: f64 = 3.0 => Param::new(GROUP, "Ratio to the noise above which a column makes a ring; a greater one finds fewer rings")
            .title("ratio of rings").expects("above 1", |v| matches!(v, Value::Number(r) if r.is_finite() && *r > 1.0)),
        /// Width of the median over wide stripes.
        ring_large: Option<usize> = None => Param::new(GROUP, "Width in columns of the median across wide stripes; wider than the widest stripe")
            .title("columns across wide stripes").expects("odd, 3 to 1001", |v| odd(v, 3..=1001)).absent("a fortieth of the columns, 51 of 2048"),
        /// Width of the median over narrow stripes.
        ring_small: Option<usize> = None => Param::new(GROUP, "Width in columns of the median across narrow stripes; wider than a stripe, narrower than the object's parts")
            .title("columns across narrow stripes").expects("odd, 3 to 1001", |v| odd(v, 3..=1001)).absent("a 96th of the columns, 21 of 2048"),
        /// Part of the views that the search for wide stripes leaves out.
        ring_drop: f64 = 0.1 => Param::new(GROUP, "Part of the views, half of it the brightest and half the darkest, that the search for wide stripes leaves out")
            .title("part of the views that is dropped").expects("0 to 0.8", |v| matches!(v, Value::Number(p) if (0.0..=0.8).contains(p))),
    }
}

impl Correction for Rings {
    fn about(&self) -> About {
        About {
            name: "rings",
            help: "Rings are removed by sorting: narrow, wide and dead stripes (Vo et al. 2018)",
        }
    }

    fn acts_on(&self) -> ActsOn {
        ActsOn::Lines
    }

    fn alone(&self, _: usize) -> bool {
        false
    }

    fn bytes(&self, [views, rows, columns]: [usize; 3], threads: usize) -> u64 {
        let at_a_time = if rows >= threads { threads } else { 1 };
        (at_a_time * views * columns * 16) as u64 + (threads * BLOCK * views * 8) as u64
    }

    fn views(&self, device: &Device, views: &mut Views) -> Result<u64> {
        let (count, rows, columns) = views.values.dim();
        if columns < 8 || count < 8 {
            let found = format!("{count} views of {columns} columns");
            return Err(Error::value("views to remove rings from", "at least 8 views of 8 columns", found));
        }
        let cpu = device.cpu_side();
        // Rows in parallel, or one row after another by all threads.
        let threads = if rows >= cpu.threads() { 1 } else { cpu.threads() };
        let width = |given: Option<usize>, part: usize| given.unwrap_or((columns / part).max(3) | 1);
        let (large, small) = (width(self.ring_large, LARGE), width(self.ring_small, SMALL));
        let run = RingRemoval { cpu, rings: self, large, small, shape: [count, columns], threads };
        let (replaced, stop) = (AtomicU64::new(0), Stop::of_caller());
        let one = |buffers: &mut Buffers, mut row: ArrayViewMut2<'_, f32>| -> Result<()> {
            stop.check()?;
            replaced.fetch_add(run.sinogram(&mut row, buffers)?, Ordering::Relaxed);
            Ok(())
        };
        let stack: Vec<_> = views.values.axis_iter_mut(Axis(1)).collect();
        cpu.run(|| match threads {
            1 => stack.into_par_iter().try_for_each_init(|| Buffers::new(count * columns), one),
            _ => {
                let mut buffers = Buffers::new(count * columns);
                stack.into_iter().try_for_each(|row| one(&mut buffers, row))
            }
        })?;
        Ok(replaced.into_inner() * count as u64)
    }
}

/// What a sinogram takes.
struct Buffers {
    /// Transmissions `[view, column]`, and later medians `[column, rank]`.
    values: Vec<f32>,
    /// Transmissions `[column, rank]`.
    sorted: Vec<f32>,
    /// The view of each of them.
    order: Vec<u32>,
    medians: Vec<f32>,
}

impl Buffers {
    fn new(count: usize) -> Self {
        Self {
            values: vec![0.0; count],
            sorted: vec![0.0; count],
            order: vec![0; count],
            medians: vec![0.0; count],
        }
    }
}

struct RingRemoval<'a> {
    cpu: &'a Cpu,
    rings: &'a Rings,
    /// Columns of the medians.
    large: usize,
    small: usize,
    /// Views and columns.
    shape: [usize; 2],
    /// Threads for a sinogram.
    threads: usize,
}

impl RingRemoval<'_> {
    /// Corrects line integrals `[view, column]`; how many columns were replaced.
    fn sinogram(&self, lines: &mut ArrayViewMut2<'_, f32>, buffers: &mut Buffers) -> Result<u64> {
        let [views, columns] = self.shape;
        let Buffers { values, sorted, order, medians } = buffers;
        let chunk = self.part(views) * columns;
        let from: Vec<_> = lines.axis_chunks_iter(Axis(0), self.part(views)).collect();
        let rows = values.par_chunks_mut(chunk).zip(from);
        let within = rows.map(|(to, from)| {
            to.iter_mut().zip(from).for_each(|(to, p)| *to = (-p).exp());
            from.iter().all(|p| RANGE.contains(p))
        });
        if !within.reduce(|| true, |a, b| a && b) {
            let expected = format!("{} to {}, as −ln of a transmission", RANGE.start(), RANGE.end());
            return Err(Error::value("line integrals to remove rings from", expected, "others"));
        }
        let dead = self.dead(values)?;
        interpolate(values, columns, &dead);
        self.sort(values, sorted, order);
        let large = self.wide(sorted, medians)?;
        self.median(sorted, self.small, medians)?;
        self.unsort(medians, order, values);
        let to: Vec<_> = lines.axis_chunks_iter_mut(Axis(0), self.part(views)).collect();
        let rows = values.par_chunks(chunk).zip(to);
        rows.for_each(|(from, mut to)| {
            to.iter_mut().zip(from).for_each(|(to, t)| *to = -t.ln());
        });
        Ok(dead.iter().zip(&large).filter(|(dead, large)| **dead || **large).count() as u64)
    }

    /// Elements of an axis for each thread.
    fn part(&self, count: usize) -> usize {
        count.div_ceil(self.threads)
    }

    /// Columns that do not respond or that fluctuate.
    fn dead(&self, values: &[f32]) -> Result<Vec<bool>> {
        let [views, columns] = self.shape;
        let row = |view: i64| {
            let start = mirrored(view, views) * columns;
            &values[start..start + columns]
        };
        let part = self.part(columns);
        let mut sums = vec![0.0f64; columns];
        sums.par_chunks_mut(part).enumerate().for_each(|(task, sums)| {
            let range = task * part..task * part + sums.len();
            let mut smooth = vec![0.0f64; sums.len()];
            for view in -SMOOTH / 2..SMOOTH - SMOOTH / 2 {
                smooth.iter_mut().zip(&row(view)[range.clone()]).for_each(|(sum, t)| *sum += f64::from(*t));
            }
            for view in 0..views as i64 {
                let here = &row(view)[range.clone()];
                for ((sum, smooth), t) in sums.iter_mut().zip(&smooth).zip(here) {
                    *sum += (f64::from(*t) - smooth / SMOOTH as f64).abs();
                }
                let enters = &row(view + SMOOTH - SMOOTH / 2)[range.clone()];
                let leaves = &row(view - SMOOTH / 2)[range.clone()];
                for ((smooth, enters), leaves) in smooth.iter_mut().zip(enters).zip(leaves) {
                    *smooth += f64::from(*enters) - f64::from(*leaves);
                }
            }
        });
        let sums: Vec<f32> = sums.into_iter().map(|sum| sum as f32).collect();
        let mut typical = vec![0.0; columns];
        median::moving(self.cpu, &sums, [columns, 1], self.large, 0, &mut typical)?;
        let mean = typical.iter().sum::<f32>() / columns as f32;
        let factors: Vec<f64> = sums
            .iter()
            .zip(typical)
            .map(|(sum, typical)| f64::from(*sum) / f64::from(if typical == 0.0 { mean } else { typical }))
            .map(|factor| if factor.is_finite() { factor } else { 1.0 })
            .collect();
        let mut dead = outstanding(&factors, self.rings.ring_snr);
        for edge in [0, 1, columns - 2, columns - 1] {
            dead[edge] = false;
        }
        let count = dead.iter().filter(|is_dead| **is_dead).count();
        // A third of the columns cannot be outliers: the factors say nothing then.
        if count >= columns / 3 {
            dead.fill(false);
        }
        Ok(dead)
    }

    /// `[view, column]` → `[column, rank]`, and the view of each.
    fn sort(&self, values: &[f32], sorted: &mut [f32], order: &mut [u32]) {
        let [views, columns] = self.shape;
        let part = self.part(columns).next_multiple_of(BLOCK) * views;
        let tasks = sorted.par_chunks_mut(part).zip(order.par_chunks_mut(part)).enumerate();
        tasks.for_each(|(task, (sorted, order))| {
            let mut keys = vec![0u64; BLOCK * views];
            let blocks = sorted.chunks_mut(BLOCK * views).zip(order.chunks_mut(BLOCK * views)).enumerate();
            for (block, (sorted, order)) in blocks {
                let first = task * part / views + block * BLOCK;
                let wide = BLOCK.min(columns - first);
                for (view, row) in values.chunks_exact(columns).enumerate() {
                    for (column, t) in row[first..first + wide].iter().enumerate() {
                        // Bits of numbers that are not negative have their order.
                        keys[column * views + view] = u64::from(t.to_bits()) << 32 | view as u64;
                    }
                }
                let columns = keys
                    .chunks_exact_mut(views)
                    .zip(sorted.chunks_exact_mut(views))
                    .zip(order.chunks_exact_mut(views));
                for ((keys, sorted), order) in columns {
                    keys.sort_unstable();
                    for ((key, sorted), order) in keys.iter().zip(sorted).zip(order) {
                        *sorted = f32::from_bits((key >> 32) as u32);
                        *order = (key & 0xffff_ffff) as u32;
                    }
                }
            }
        });
    }

    /// `[column, rank]` → `[view, column]`.
    fn unsort(&self, sorted: &[f32], order: &[u32], values: &mut [f32]) {
        let [views, columns] = self.shape;
        // Each thread takes a part of the views, and finds the ranks that belong there.
        let part = self.part(views);
        values.par_chunks_mut(part * columns).enumerate().for_each(|(task, values)| {
            let begin = task * part;
            let count = values.len() / columns;
            let mut tile = vec![0.0; BLOCK * count];
            for first in (0..columns).step_by(BLOCK) {
                let wide = BLOCK.min(columns - first);
                for (column, tile) in tile.chunks_exact_mut(count).enumerate().take(wide) {
                    let start = (first + column) * views;
                    for (value, view) in sorted[start..start + views].iter().zip(&order[start..start + views])
                    {
                        if let Some(to) =
                            (*view as usize).checked_sub(begin).and_then(|view| tile.get_mut(view))
                        {
                            *to = *value;
                        }
                    }
                }
                for (view, row) in values.chunks_exact_mut(columns).enumerate() {
                    for (column, to) in row[first..first + wide].iter_mut().enumerate() {
                        *to = tile[column * count + view];
                    }
                }
            }
        });
    }

    /// Medians across `width` columns of `[column, rank]`.
    fn median(&self, sorted: &[f32], width: usize, out: &mut [f32]) -> Result<()> {
        let [views, columns] = self.shape;
        let part = self.part(columns);
        out.par_chunks_mut(part * views).enumerate().try_for_each(|(task, out)| {
            median::moving(self.cpu, sorted, [columns, views], width, task * part, out)
        })
    }

    /// Columns that stand out take the medians, which leaves them sorted; the others are scaled. Which
    /// columns stand out.
    fn wide(&self, sorted: &mut [f32], medians: &mut [f32]) -> Result<Vec<bool>> {
        let views = self.shape[0];
        self.median(sorted, self.large, medians)?;
        let drop = (0.5 * self.rings.ring_drop * views as f64) as usize;
        let mean = |values: &[f32]| values[drop..views - drop].iter().map(|t| f64::from(*t)).sum::<f64>();
        let factors: Vec<f64> = sorted
            .par_chunks_exact(views)
            .zip(medians.par_chunks_exact(views))
            .with_min_len(self.part(self.shape[1]))
            .map(|(sorted, medians)| mean(sorted) / mean(medians))
            .map(|factor| if factor.is_finite() && factor > 0.0 { factor } else { 1.0 })
            .collect();
        let outstanding = outstanding(&factors, self.rings.ring_snr);
        let columns = sorted.par_chunks_exact_mut(views).zip(medians.par_chunks_exact(views));
        columns.with_min_len(self.part(self.shape[1])).enumerate().for_each(|(column, (sorted, medians))| {
            match outstanding[column] {
                true => sorted.copy_from_slice(medians),
                false => sorted.iter_mut().for_each(|t| *t = (f64::from(*t) / factors[column]) as f32),
            }
        });
        Ok(outstanding)
    }
}

/// Which numbers stand out, and their neighbours: algorithm 4. None does where the numbers have no noise.
fn outstanding(factors: &[f64], snr: f64) -> Vec<bool> {
    let count = factors.len();
    let mut sorted = factors.to_vec();
    sorted.sort_by(f64::total_cmp);
    let drop = count / 4;
    let middle = &sorted[drop..count - drop - 1];
    // The line of least squares through the middle half.
    let n = middle.len() as f64;
    let centre = drop as f64 + 0.5 * (n - 1.0);
    let mean = middle.iter().sum::<f64>() / n;
    let (mut products, mut squares) = (0.0, 0.0);
    for (rank, value) in middle.iter().enumerate() {
        let x = (drop + rank) as f64 - centre;
        products += x * (value - mean);
        squares += x * x;
    }
    let slope = if squares > 0.0 { products / squares } else { 0.0 };
    let first = mean - slope * centre;
    let last = first + slope * (count - 1) as f64;
    let noise = (last - first).abs();
    if noise < 1e-5 {
        return vec![false; count];
    }
    let above = (sorted[count - 1] - last).abs() / noise >= snr;
    let below = (first - sorted[0]).abs() / noise >= snr;
    let is_outstanding =
        |value: f64| above && value > last + 0.5 * noise * snr || below && value <= first - 0.5 * noise * snr;
    let marked: Vec<bool> = factors.iter().map(|value| is_outstanding(*value)).collect();
    (0..count)
        .map(|column| marked[column.saturating_sub(1)..(column + 2).min(count)].contains(&true))
        .collect()
}

/// Columns that are found take values on the line between the nearest others.
fn interpolate(values: &mut [f32], columns: usize, marked: &[bool]) {
    let places: Vec<(usize, usize, usize, f32)> = (0..columns)
        .filter(|column| marked[*column])
        .filter_map(|column| {
            let before = (0..column).rev().find(|before| !marked[*before])?;
            let after = (column + 1..columns).find(|after| !marked[*after])?;
            Some((column, before, after, (column - before) as f32 / (after - before) as f32))
        })
        .collect();
    if !places.is_empty() {
        for row in values.chunks_exact_mut(columns) {
            for &(column, before, after, part) in &places {
                row[column] = row[before] + part * (row[after] - row[before]);
            }
        }
    }
}
