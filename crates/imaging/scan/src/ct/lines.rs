use ndarray::{
    Array2, Array3, ArrayView, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Dimension, Zip,
};
use rayon::prelude::*;
use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::Cpu;

use super::{Counts, Measured, Scan};

/// What a detector counts without the object and without the beam: what makes line integrals of counts,
///
/// ```text
/// p = −ln((counts − dark) / (flat − dark))
/// ```
///
/// with the means of the flat and dark fields. Pixels whose flat field is no larger than their dark field are
/// dead: they take the mean of the nearest live pixels of their row. Where no photon arrives the integral has
/// no bound: half of the smallest signal in its view is taken for it.
///
/// ```
/// use ndarray::array;
/// use rayspin_scan::ct::Light;
/// use rayspin_device::Device;
///
/// let light = Light::new(array![[[100.0, 100.0]]].view(), array![[[0.0, 0.0]]].view())?;
/// let mut views = array![[[100.0, 36.787_945]]];
/// light.lines(Device::cpu()?.cpu_side(), views.view_mut(), 0)?;
/// assert!((views[[0, 0, 1]] - 1.0f32).abs() < 1e-6);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Light {
    dark: Array2<f64>,
    /// Flat field above the dark field.
    light: Array2<f64>,
    dead: Array2<bool>,
}

impl Light {
    /// From flat and dark fields `[frame, row, column]`; without frames the dark field is 0.
    ///
    /// Errors: other sizes, no flat field; numbers that are not finite; a row of dead pixels only.
    pub fn new(flats: ArrayView3<'_, f32>, darks: ArrayView3<'_, f32>) -> Result<Self> {
        let size = (flats.dim().1, flats.dim().2);
        if flats.is_empty() {
            return Err(Error::value("flat fields", "at least one", "none"));
        }
        expect_finite("flat fields", flats, 0)?;
        expect_finite("dark fields", darks, 0)?;
        let dark = if darks.is_empty() {
            Array2::zeros(size)
        } else {
            expect_shape("dark fields", &flats.shape()[1..], &darks.shape()[1..])?;
            mean(darks)
        };
        let light = mean(flats) - &dark;
        let dead = light.mapv(|light| light <= 0.0);
        if let Some((row, _)) = dead.outer_iter().enumerate().find(|(_, row)| row.iter().all(|dead| *dead)) {
            let found = format!("none in row {row}");
            return Err(Error::value("flat fields", "a pixel above its dark field in every row", found));
        }
        Ok(Self { dark, light, dead })
    }

    /// Makes line integrals of the counts of views `[view, row, column]`. The first view is number `first` of
    /// the scan. Returns how many measurements had no photons.
    ///
    /// Errors: another size; numbers that are not finite; a view without any signal.
    pub fn lines(&self, cpu: &Cpu, mut views: ArrayViewMut3<'_, f32>, first: usize) -> Result<usize> {
        expect_shape("projections", self.dark.shape(), &views.shape()[1..])?;
        cpu.run(|| {
            let views: Vec<ArrayViewMut2<'_, f32>> = views.outer_iter_mut().collect();
            let each =
                views.into_par_iter().enumerate().map(|(index, view)| self.of_view(view, first + index));
            each.try_reduce(|| 0, |a, b| Ok(a + b))
        })
    }

    fn of_view(&self, mut view: ArrayViewMut2<'_, f32>, number: usize) -> Result<usize> {
        expect_finite("projections", view.view(), number * view.len())?;
        let (mut smallest, mut without) = (f64::INFINITY, 0usize);
        Zip::from(&view).and(&self.dark).and(&self.dead).for_each(|&value, &dark, &dead| {
            match f64::from(value) - dark {
                _ if dead => {}
                signal if signal > 0.0 => smallest = smallest.min(signal),
                _ => without += 1,
            }
        });
        if smallest == f64::INFINITY {
            return Err(Error::value(format!("view {number}"), "counts above the dark field", "none"));
        }
        let least = 0.5 * smallest;
        Zip::from(&mut view).and(&self.dark).and(&self.light).for_each(|value, &dark, &light| {
            let signal = (f64::from(*value) - dark).max(least);
            *value = (light / signal).ln() as f32;
        });
        for (mut row, dead) in view.outer_iter_mut().zip(self.dead.outer_iter()) {
            if dead.iter().any(|dead| *dead) {
                mend(row.view_mut(), dead);
            }
        }
        Ok(without)
    }

    /// What was mended, for people, after `without` measurements without photons.
    pub fn notes(&self, without: usize) -> Vec<String> {
        let broken = self.dead.iter().filter(|dead| **dead).count();
        let dead = format!(
            "{broken} dead pixels (flat field no larger than dark field) take their neighbours' values"
        );
        let dark = format!(
            "{without} measurements without photons are taken as half of the smallest signal of a view"
        );
        [(broken, dead), (without, dark)].into_iter().filter(|(n, _)| *n > 0).map(|(_, text)| text).collect()
    }
}

/// The mean over frames, in double precision.
fn mean(frames: ArrayView3<'_, f32>) -> Array2<f64> {
    let mut sum = Array2::zeros((frames.dim().1, frames.dim().2));
    for frame in frames.outer_iter() {
        Zip::from(&mut sum).and(frame).for_each(|sum, &value| *sum += f64::from(value));
    }
    let count = frames.dim().0.max(1) as f64;
    sum.mapv_inplace(|value| value / count);
    sum
}

impl Scan {
    /// The line integrals `[view, row, column]`, of counts by [`Light`]. `notes` says what was mended.
    ///
    /// Errors: numbers that are not finite; as [`Light`].
    pub fn into_lines(self, cpu: &Cpu, notes: &mut Vec<String>) -> Result<Array3<f32>> {
        match self.measured {
            Measured::Lines(lines) => {
                cpu.run(|| {
                    let views: Vec<ArrayView2<'_, f32>> = lines.outer_iter().collect();
                    let check = |(index, view): (usize, ArrayView2<'_, f32>)| {
                        expect_finite("line integrals", view, index * view.len())
                    };
                    views.into_par_iter().enumerate().try_for_each(check)
                })?;
                Ok(lines)
            }
            Measured::Counts(Counts { mut views, flats, darks }) => {
                let light = Light::new(flats.view(), darks.view())?;
                let without = light.lines(cpu, views.view_mut(), 0)?;
                notes.extend(light.notes(without));
                Ok(views)
            }
        }
    }
}

/// `before` numbers stand before these in the array that `what` names.
fn expect_finite<D: Dimension>(what: &str, values: ArrayView<'_, f32, D>, before: usize) -> Result<()> {
    match values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some((index, value)) => {
            let found = match values.iter().filter(|value| !value.is_finite()).count() {
                1 => value.to_string(),
                count => format!("{value}, the first of {count}"),
            };
            Err(Error::NotFinite { what: what.into(), index: before + index, found })
        }
    }
}

/// Dead pixels take the mean of the nearest live ones on both sides; at an end the only one.
fn mend(mut row: ndarray::ArrayViewMut1<'_, f32>, dead: ndarray::ArrayView1<'_, bool>) {
    let count = row.len();
    for pixel in 0..count {
        if dead[pixel] {
            let before = (0..pixel).rev().find(|&i| !dead[i]);
            let after = (pixel + 1..count).find(|&i| !dead[i]);
            row[pixel] = match (before, after) {
                (Some(a), Some(b)) => 0.5 * (row[a] + row[b]),
                (Some(one), None) | (None, Some(one)) => row[one],
                (None, None) => 0.0,
            };
        }
    }
}
