//! Convolution of real rows with an even kernel: the filter of filtered back-projection.

mod cpu;
mod cuda;
mod outer;
pub mod reference;

pub(crate) use cuda::precompiled;
pub use outer::add_outer;

use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::{Array, Backend, Device};
use rayspin_line_fft::plan_f64;
use rayspin_tune::Build;

pub(crate) fn builds() -> Vec<Build> {
    [cuda::builds(), outer::builds()].concat()
}

/// q(i) = Σ_j h(i − j) w(j) p(j) for every row p of an array `[…, row]`, with an even kernel h, weights w and
/// zeros beyond the row, in f32.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::row_filter::RowFilter;
///
/// let device = Device::cpu()?;
/// // Differences to both neighbours.
/// let filter = RowFilter::new(&device, &[2.0, -1.0, 0.0, 0.0], |_| 1.0)?;
/// let rows = Array::from_vec(&device, &[1, 4], vec![0.0f32, 1.0, 0.0, 0.0])?;
/// let found = filter.apply(rows, 0, None)?.to_vec()?;
/// assert!(found.iter().zip([-1.0, 2.0, -1.0, 0.0]).all(|(a, b)| (a - b).abs() < 1e-6));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct RowFilter {
    device: Device,
    len: usize,
    plan: Plan,
}

enum Plan {
    Cpu(cpu::Plan),
    Cuda(Box<cuda::Plan>),
}

impl std::fmt::Debug for RowFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowFilter").field("len", &self.len).field("transform", &self.transform()).finish()
    }
}

/// What the pixels of projections `[view, row, column]` are multiplied by:
///
/// ```text
/// w(view, row, column) = table[view, column] / √(1 + (u² + v²)/d²)
/// ```
///
/// with (u, v) the distance in mm from a point on the detector, and d a length: the cosine between a ray and
/// the detector's normal.
#[derive(Debug)]
pub struct Weights {
    table: Array<f32>,
    /// Row and column of the point, and 1/d: three numbers a view.
    points: Array<f32>,
    pitch_mm: [f32; 2],
}

/// A point on the detector: its row and column, from the middle of the first pixel on, and 1/d in 1/mm, 0 for
/// parallel rays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectorPoint {
    /// The row.
    pub row: f64,
    /// The column.
    pub column: f64,
    /// 1/d.
    pub inverse_mm: f64,
}

impl Weights {
    /// `table[view, column]` of detectors with `pitch_mm` between columns and rows, and a point for each
    /// view.
    ///
    /// Errors: no view; another number of weights than of views times columns; memory.
    pub fn new(
        device: &Device,
        table: Vec<f32>,
        points: &[DetectorPoint],
        pitch_mm: [f64; 2],
    ) -> Result<Self> {
        let views = points.len();
        if views == 0 || table.is_empty() || !table.len().is_multiple_of(views) {
            let expected = format!("as many for each of {views} views");
            return Err(Error::value("weights of a row filter", expected, table.len()));
        }
        let columns = table.len() / views;
        let points: Vec<f32> =
            points.iter().flat_map(|p| [p.row, p.column, p.inverse_mm]).map(|x| x as f32).collect();
        Ok(Self {
            table: Array::from_vec(device, &[views, columns], table)?,
            points: Array::from_vec(device, &[views, 3], points)?,
            pitch_mm: pitch_mm.map(|x| x as f32),
        })
    }

    fn views(&self) -> usize {
        self.table.shape()[0]
    }

    fn columns(&self) -> usize {
        self.table.shape()[1]
    }
}

fn too_long(len: usize) -> Error {
    Error::value("rows of a filter on a GPU", "at most 4096 elements", len)
}

/// The transform of an even kernel h(0), h(1), … over `size` elements, at least twice as many, divided by
/// their number and multiplied by `window(f)`, with f from 0 to 1 in units of the highest frequency. Element
/// k belongs to frequency k/size, and to k/size − 1 from the middle on.
///
/// Errors: a longer kernel, numbers that are not finite.
pub fn spectrum(kernel: &[f64], size: usize, window: impl Fn(f64) -> f64) -> Result<Vec<f32>> {
    if kernel.len() > size.div_ceil(2) {
        let expected = format!("at most {} elements", size.div_ceil(2));
        return Err(Error::value("kernel of a row filter", expected, kernel.len()));
    }
    let mut values = vec![num_complex::Complex64::default(); size];
    for (index, &h) in kernel.iter().enumerate() {
        values[index].re = h;
        values[(size - index) % size].re = h;
    }
    plan_f64(&[size]).forward[0].process(&mut values);
    let spectrum = values.iter().enumerate().map(|(bin, value)| {
        let frequency = bin.min(size - bin) as f64 / (size / 2) as f64;
        (value.re * window(frequency) / size as f64) as f32
    });
    let spectrum: Vec<f32> = spectrum.collect();
    match spectrum.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        None => Ok(spectrum),
        Some((index, value)) => {
            Err(Error::NotFinite { what: "spectrum of a row filter".into(), index, found: value.to_string() })
        }
    }
}

impl RowFilter {
    /// A filter for rows of as many elements as `kernel` has: h(0), h(1), …. The spectrum of h is multiplied
    /// by `window(f)`, with f from 0 to 1 in units of the highest frequency, half a period per element.
    ///
    /// Errors: an empty kernel, numbers that are not finite, rows that are too long for a GPU
    /// ([`takes`](Self::takes)).
    pub fn new(device: &Device, kernel: &[f64], window: impl Fn(f64) -> f64) -> Result<Self> {
        let len = kernel.len();
        if len == 0 || len > 1 << 30 {
            return Err(Error::value("kernel of a row filter", "1 to 2^30 elements", len));
        }
        let on_gpu = matches!(device.backend(), Backend::Cuda(_));
        let size = match on_gpu {
            true => cuda::length(len).ok_or_else(|| too_long(len))?,
            false => (2 * len).next_power_of_two(),
        };
        let spectrum = spectrum(kernel, size, window)?;
        let plan = match on_gpu {
            true => Plan::Cuda(Box::new(cuda::Plan::new(device, spectrum)?)),
            false => Plan::Cpu(cpu::Plan::new(spectrum)),
        };
        Ok(Self { device: device.clone(), len, plan })
    }

    /// Where rows are filtered.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether a device filters rows of `len` elements: a GPU takes rows of at most 4096, and without a
    /// compiler of kernels needs precompiled ones.
    pub fn takes(device: &Device, len: usize) -> bool {
        match device.backend() {
            Backend::Cpu(_) => true,
            Backend::Cuda(cuda) => cuda::offered(cuda, len),
        }
    }

    fn transform(&self) -> usize {
        match &self.plan {
            Plan::Cpu(plan) => plan.transform(),
            Plan::Cuda(plan) => plan.transform(),
        }
    }

    /// The convolution of every row of `rows`, times weights. Rows may be shorter than the filter's: zeros
    /// are added, `before` of them in front. On a CPU rows of full length are replaced.
    ///
    /// Errors: rows that are too long, another device, weights for other rows; memory.
    pub fn apply(
        &self,
        mut rows: Array<f32>,
        before: usize,
        weights: Option<&Weights>,
    ) -> Result<Array<f32>> {
        let Some((&columns, others)) = rows.shape().split_last().filter(|(columns, _)| **columns > 0) else {
            return Err(Error::value(
                "array for a row filter",
                "rows of elements",
                format!("shape {:?}", rows.shape()),
            ));
        };
        if before.checked_add(columns).is_none_or(|n| n > self.len) {
            let expected = format!("rows of at most {} elements", self.len);
            return Err(Error::value(
                "array for a row filter",
                expected,
                format!("{columns} behind {before}"),
            ));
        }
        crate::vector::expect_device("row filter", &self.device, &rows)?;
        if let Some(weights) = weights {
            let count: usize = others.iter().product();
            if weights.columns() != columns || !count.is_multiple_of(weights.views()) {
                let expected = format!("{} columns in {} views", weights.columns(), weights.views());
                return Err(Error::value(
                    "array for a row filter",
                    expected,
                    format!("shape {:?}", rows.shape()),
                ));
            }
            crate::vector::expect_device("weights", &self.device, &weights.table)?;
        }
        let shape = [others, &[self.len]].concat();
        let lengths = [columns, self.len, before];
        match (&self.plan, self.device.backend()) {
            (Plan::Cuda(plan), Backend::Cuda(cuda)) => {
                let mut filtered = Array::zeros(&self.device, &shape)?;
                plan.apply(cuda, &rows, &mut filtered, weights, lengths)?;
                Ok(filtered)
            }
            (Plan::Cpu(plan), _) if columns == self.len => {
                plan.apply(self.device.cpu_side(), rows.cpu_mut(), self.len, weights, 0);
                Ok(rows)
            }
            (Plan::Cpu(plan), _) => {
                let mut filtered = Array::zeros(&self.device, &shape)?;
                let cpu = self.device.cpu_side();
                cpu.run(|| {
                    let pairs =
                        filtered.cpu_mut().par_chunks_mut(self.len).zip(rows.cpu().par_chunks(columns));
                    pairs.for_each(|(to, from)| to[before..before + columns].copy_from_slice(from));
                });
                drop(rows);
                plan.apply(cpu, filtered.cpu_mut(), self.len, weights, before);
                Ok(filtered)
            }
            (Plan::Cuda(_), Backend::Cpu(_)) => Err(Error::value("device of a row filter", "a GPU", "a CPU")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayspin_tune::input::signed_unit;

    use super::*;

    struct Case {
        before: usize,
        columns: usize,
        after: usize,
        views: usize,
        rows: usize,
        weighted: bool,
        seed: u64,
    }

    impl Case {
        /// What the devices make of it is what the formula says.
        fn check(&self, devices: &[Device]) -> std::result::Result<(), TestCaseError> {
            let Self { before, columns, after, views, rows, weighted, seed } = *self;
            let len = before + columns + after;
            let kernel: Vec<f64> = (0..len).map(|i| f64::from(signed_unit(seed, i))).collect();
            let values: Vec<f32> = (0..views * rows * columns).map(|i| signed_unit(seed ^ 1, i)).collect();
            let table: Vec<f32> = (0..views * columns).map(|i| signed_unit(seed ^ 2, i)).collect();
            let points: Vec<DetectorPoint> = (0..views)
                .map(|view| DetectorPoint {
                    row: 1.3 * view as f64,
                    column: 2.5,
                    inverse_mm: 0.2 * view as f64,
                })
                .collect();
            let mut wide = vec![0.0; views * rows * len];
            for (at, &value) in values.iter().enumerate() {
                let (view, row, column) = (at / columns / rows, at / columns % rows, at % columns);
                let DetectorPoint { row: middle, column: centre, inverse_mm } = points[view];
                let [u, v] =
                    [(column as f64 - centre) * 0.7, (row as f64 - middle) * 1.2].map(|x| x * inverse_mm);
                let weight = f64::from(table[view * columns + column]) / (1.0 + u * u + v * v).sqrt();
                wide[at / columns * len + before + column] =
                    f64::from(value) * if weighted { weight } else { 1.0 };
            }
            let wanted = reference::convolve(&kernel, &wide);
            for device in devices {
                let weights = Weights::new(device, table.clone(), &points, [0.7, 1.2]).unwrap();
                let rows = Array::from_slice(device, &[views, rows, columns], &values).unwrap();
                let filter = RowFilter::new(device, &kernel, |_| 1.0).unwrap();
                let found = filter.apply(rows, before, weighted.then_some(&weights)).unwrap();
                prop_assert_eq!(found.shape()[2], len);
                for (found, wanted) in found.to_vec().unwrap().iter().zip(&wanted) {
                    prop_assert!(
                        (f64::from(*found) - wanted).abs() < 1e-5 * (1.0 + (len as f64).sqrt()),
                        "{found} for {wanted}"
                    );
                }
            }
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn rows_are_weighted_and_convolved(
            columns in 1usize..70,
            [before, after] in [0usize..9, 0usize..9],
            [views, rows] in [1usize..4, 1usize..4],
            weighted in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let case = Case { before, columns, after, views, rows, weighted, seed };
            case.check(&[Device::cpu().unwrap()])?;
        }

        // A GPU's program is of one length, and takes a second to compile.
        #[test]
        fn rows_are_weighted_and_convolved_on_a_gpu(
            len in prop::sample::select(vec![1usize, 7, 32, 45, 85]),
            [before, after] in [0usize..9, 0usize..9],
            [views, rows] in [1usize..4, 1usize..4],
            weighted in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let before = before.min(len - 1);
            let after = after.min(len - 1 - before);
            let case = Case { before, columns: len - before - after, after, views, rows, weighted, seed };
            case.check(crate::cuda::gpus())?;
        }
    }

    #[test]
    fn outer_products_are_added_to_the_views_that_are_named() {
        let devices: Vec<Device> =
            crate::cuda::gpus().iter().cloned().chain([Device::cpu().unwrap()]).collect();
        // More columns than a block has threads, an axis of 1, views in front and behind; then none.
        for ([all, first, views], sides, [rows, columns]) in [
            ([4, 1, 2], 2, [5, 301]),
            ([1, 0, 1], 1, [1, 1]),
            ([3, 2, 1], 3, [7, 64]),
            ([2, 2, 0], 2, [3, 4]),
        ] {
            let draw =
                |seed: u64, len: usize| (0..len).map(move |i| signed_unit(seed, i)).collect::<Vec<f32>>();
            let mut values = draw(5, views * sides * rows);
            // A side that ends in air.
            values.iter_mut().take(rows).for_each(|value| *value = 0.0);
            let (responses, before) = (draw(6, views * sides * columns), draw(7, all * rows * columns));
            let wanted =
                reference::added([first, views, sides], [rows, columns], &values, &responses, &before);
            for device in &devices {
                let values = Array::from_slice(device, &[views, sides, rows], &values).unwrap();
                let responses = Array::from_slice(device, &[views, sides, columns], &responses).unwrap();
                let mut found = Array::from_slice(device, &[all, rows, columns], &before).unwrap();
                add_outer(&values, &responses, &mut found, first).unwrap();
                for (found, wanted) in found.to_vec().unwrap().iter().zip(&wanted) {
                    assert!((f64::from(*found) - wanted).abs() < 1e-6, "{found} for {wanted}");
                }
                assert!(add_outer(&values, &responses, &mut found, all - views + 1).is_err());
                assert!(add_outer(&responses, &values, &mut found, first).is_err() || rows == columns);
            }
        }
    }

    #[test]
    fn long_rows_run_on_a_gpu_up_to_its_limit() {
        for device in crate::cuda::gpus() {
            let len = 1400;
            let kernel: Vec<f64> = (0..len).map(|i| f64::from(signed_unit(3, i))).collect();
            let values: Vec<f32> = (0..3 * len).map(|i| signed_unit(4, i)).collect();
            let rows = Array::from_slice(device, &[3, len], &values).unwrap();
            let found = RowFilter::new(device, &kernel, |_| 1.0).unwrap().apply(rows, 0, None).unwrap();
            let wide: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
            for (found, wanted) in found.to_vec().unwrap().iter().zip(reference::convolve(&kernel, &wide)) {
                assert!((f64::from(*found) - wanted).abs() < 4e-4, "{found} for {wanted}");
            }
            assert!(RowFilter::takes(device, 4096) && !RowFilter::takes(device, 4097));
            assert!(RowFilter::new(device, &vec![1.0; 4097], |_| 1.0).is_err());
        }
    }

    #[test]
    fn windows_act_on_frequencies() {
        let device = Device::cpu().unwrap();
        let mut delta = vec![0.0; 64];
        delta[0] = 1.0;
        // A sampled cosine keeps the window's value at its frequency, far from the ends of the row.
        let filter = RowFilter::new(&device, &delta, |f| (1.0 - f).max(0.0)).unwrap();
        let wave = |i: usize| (std::f64::consts::PI * 0.25 * i as f64).cos() as f32;
        let rows = Array::from_vec(&device, &[64], (0..64).map(wave).collect()).unwrap();
        let found = filter.apply(rows, 0, None).unwrap().to_vec().unwrap();
        assert!((24..40).all(|i| (found[i] - 0.75 * wave(i)).abs() < 0.01), "{found:?}");
    }

    #[test]
    fn what_cannot_be_filtered_is_refused() {
        let device = Device::cpu().unwrap();
        assert!(RowFilter::new(&device, &[], |_| 1.0).is_err());
        assert!(RowFilter::new(&device, &[f64::NAN], |_| 1.0).is_err());
        let filter = RowFilter::new(&device, &[1.0, 0.0], |_| 1.0).unwrap();
        assert!(filter.apply(Array::zeros(&device, &[2, 3]).unwrap(), 0, None).is_err());
        assert!(filter.apply(Array::zeros(&device, &[0, 2]).unwrap(), 0, None).is_ok());
    }
}
