//! Outliers: single pixels that a stray X-ray or a defect of the detector makes far brighter or darker than
//! their neighbours.
//!
//! ```text
//! x ← m   where |x − m| > t max(d, d̄) and few are beyond (x + m)/2,    m = median(x),   d = 1.4826 median |x − m|
//! ```
//!
//! Medians are taken over a window around the pixel in its view; d̄ is the median of d over the view. The
//! factor makes d the standard deviation of normal noise, so that t counts standard deviations. A hit is a
//! pixel or a few, which fewer pixels of the window share than it is wide; an edge or a crack goes on through
//! the window, and stays. A detector of few rows shows neither: there the window is three views high, and a
//! hit has two pixels at most.
//!
//! P. J. Rousseeuw, C. Croux, *Alternatives to the median absolute deviation*, J Am Stat Assoc 88:1273, 1993.

use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{Array2, Axis};
use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::cpu::Stop;
use rayspin_device::{Cpu, Device};
use rayspin_kernels::median;
use rayspin_kernels::median::reference::mirrored;
use rayspin_run::{About, Param, Value, params};

use super::{ActsOn, Correction, GROUP, Views, odd};

/// The standard deviation of normal noise over its median absolute deviation.
const NORMAL: f32 = 1.4826;
/// The most values that the median over a view takes.
const SAMPLES: usize = 4096;

params! {
    /// Outliers take the median around them.
    pub struct Outliers {
        /// Deviations from which a pixel is an outlier.
        outlier_threshold: f64 = 8.0 => Param::new(GROUP, "An outlier differs from the median around it by more than this number of local standard deviations")
            .title("threshold of outliers").expects("1 to 1000", |v| matches!(v, Value::Number(t) if (1.0..=1000.0).contains(t))),
        /// Width of the window.
        outlier_size: usize = 5 => Param::new(GROUP, "Width of the window around a pixel")
            .title("size of outliers").expects("3, 5, 7 or 9", |v| odd(v, 3..=9)),
    }
}

impl Correction for Outliers {
    fn about(&self) -> About {
        About { name: "outliers", help: "Hits and defects of single pixels take the median around them" }
    }

    fn acts_on(&self) -> ActsOn {
        ActsOn::Measured
    }

    fn alone(&self, rows: usize) -> bool {
        rows >= self.outlier_size
    }

    fn bytes(&self, [views, rows, columns]: [usize; 3], threads: usize) -> u64 {
        let (planes, size) = if self.alone(rows) { (views, rows * columns) } else { (rows, views * columns) };
        4 * 4 * (threads.min(planes) * size) as u64
    }

    fn views(&self, device: &Device, views: &mut Views) -> Result<u64> {
        let (_, rows, _) = views.values.dim();
        let reach = self.outlier_size / 2;
        let (axis, window) = match self.alone(rows) {
            true => (Axis(0), Window { radius: [reach, reach], most: self.outlier_size - 1 }),
            false => (Axis(1), Window { radius: [1, self.outlier_size * self.outlier_size / 6], most: 2 }),
        };
        let (cpu, count) = (device.cpu_side(), AtomicU64::new(0));
        let planes: Vec<_> = views.values.axis_iter_mut(axis).collect();
        let stop = Stop::of_caller();
        cpu.run(|| {
            planes.into_par_iter().try_for_each(|mut plane| {
                stop.check()?;
                let image = plane.as_standard_layout().into_owned();
                let replaced = window.corrected(cpu, &image, self.outlier_threshold as f32)?;
                replaced.iter().for_each(|(place, value)| plane[*place] = *value);
                count.fetch_add(replaced.len() as u64, Ordering::Relaxed);
                Ok(())
            })
        })?;
        Ok(count.into_inner())
    }
}

/// The neighbours of a pixel, and how many pixels of them a hit has at most.
struct Window {
    radius: [usize; 2],
    most: usize,
}

impl Window {
    /// Pixels that are outliers, and what they become.
    fn corrected(&self, cpu: &Cpu, image: &Array2<f32>, threshold: f32) -> Result<Vec<([usize; 2], f32)>> {
        let (rows, columns) = image.dim();
        let [high, wide] = self.radius;
        let (shape, radius) = ([1, rows, columns], [0, high, wide]);
        let values = image.as_slice().unwrap_or_default();
        let (mut medians, mut deviations) = (vec![0.0; values.len()], vec![0.0; values.len()]);
        median::boxed(cpu, values, shape, radius, &mut medians)?;
        let distances: Vec<f32> = values.iter().zip(&medians).map(|(x, m)| (x - m).abs()).collect();
        median::boxed(cpu, &distances, shape, radius, &mut deviations)?;
        let least = typical(&deviations);
        let far = (0..values.len())
            .filter(|&pixel| distances[pixel] > threshold * NORMAL * deviations[pixel].max(least));
        let alone = |pixel: usize| {
            let (x, m) = (values[pixel], medians[pixel]);
            let middle = 0.5 * (x + m);
            let around = |middle: usize, reach: usize, count: usize| {
                (middle as i64 - reach as i64..=(middle + reach) as i64)
                    .map(move |place| mirrored(place, count))
            };
            let beyond = around(pixel / columns, high, rows)
                .flat_map(|row| {
                    around(pixel % columns, wide, columns).map(move |column| image[[row, column]])
                })
                .filter(|value| (*value > middle) == (x > m))
                .count();
            beyond <= self.most
        };
        Ok(far
            .filter(|&pixel| alone(pixel))
            .map(|pixel| ([pixel / columns, pixel % columns], medians[pixel]))
            .collect())
    }
}

/// The median of values that are picked evenly.
fn typical(values: &[f32]) -> f32 {
    let mut some: Vec<f32> = values.iter().step_by(values.len().div_ceil(SAMPLES).max(1)).copied().collect();
    if some.is_empty() {
        return 0.0;
    }
    let middle = some.len() / 2;
    *some.select_nth_unstable_by(middle, f32::total_cmp).1
}
