use ndarray::{Array2, Array3, ArrayView2, ArrayView3, ArrayViewMut2, Zip};
use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::Cpu;

use super::{Counts, Measured, Scan};

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
    /// The line integrals `[view, row, column]`:
    ///
    /// ```text
    /// p = −ln((counts − dark) / (flat − dark))
    /// ```
    ///
    /// with the means of the flat and dark fields. Pixels whose flat field is no larger than their dark field are dead: they take the mean
    /// of the nearest live pixels of their row. Where no photon arrives the integral has no bound; it is taken as that of half of the
    /// smallest count above the dark field. `notes` says how many there are of both.
    ///
    /// Errors: numbers that are not finite; a row of dead pixels only.
    pub fn into_lines(self, cpu: &Cpu, notes: &mut Vec<String>) -> Result<Array3<f32>> {
        match self.measured {
            Measured::Lines(lines) => {
                expect_finite("line integrals", &lines)?;
                Ok(lines)
            }
            Measured::Counts(counts) => lines(counts, cpu, notes),
        }
    }
}

fn expect_finite(what: &str, values: &Array3<f32>) -> Result<()> {
    match values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some((index, value)) => Err(Error::NotFinite { what: what.into(), index, found: value.to_string() }),
    }
}

fn lines(counts: Counts, cpu: &Cpu, notes: &mut Vec<String>) -> Result<Array3<f32>> {
    let Counts { views: mut values, flats, darks } = counts;
    for (what, array) in [("projections", &values), ("flat fields", &flats), ("dark fields", &darks)] {
        expect_finite(what, array)?;
    }
    let dark = match darks.is_empty() {
        true => Array2::zeros((flats.dim().1, flats.dim().2)),
        false => mean(darks.view()),
    };
    let light = mean(flats.view()) - &dark;
    let dead = light.mapv(|light| light <= 0.0);
    if let Some((row, _)) = dead.outer_iter().enumerate().find(|(_, row)| row.iter().all(|dead| *dead)) {
        let found = format!("none in row {row}");
        return Err(Error::value("flat fields", "a pixel above its dark field in every row", found));
    }
    let (smallest, without) = cpu.run(|| {
        let of_view = |view: ArrayView2<'_, f32>| {
            let (mut smallest, mut without) = (f64::INFINITY, 0usize);
            Zip::from(view).and(&dark).and(&dead).for_each(|&value, &dark, &dead| {
                match f64::from(value) - dark {
                    _ if dead => {}
                    signal if signal > 0.0 => smallest = smallest.min(signal),
                    _ => without += 1,
                }
            });
            (smallest, without)
        };
        let views: Vec<ArrayView2<'_, f32>> = values.outer_iter().collect();
        views.into_par_iter().map(of_view).reduce(|| (f64::INFINITY, 0), |a, b| (a.0.min(b.0), a.1 + b.1))
    });
    if smallest == f64::INFINITY {
        return Err(Error::value("projections", "counts above the dark field", "none"));
    }
    let least = 0.5 * smallest;
    cpu.run(|| {
        let views: Vec<ArrayViewMut2<'_, f32>> = values.outer_iter_mut().collect();
        views.into_par_iter().for_each(|mut view| {
            Zip::from(&mut view).and(&dark).and(&light).for_each(|value, &dark, &light| {
                let signal = (f64::from(*value) - dark).max(least);
                *value = (light / signal).ln() as f32;
            });
            for (mut row, dead) in view.outer_iter_mut().zip(dead.outer_iter()) {
                if dead.iter().any(|dead| *dead) {
                    mend(row.view_mut(), dead);
                }
            }
        });
    });
    let broken = dead.iter().filter(|dead| **dead).count();
    if broken > 0 {
        notes.push(format!(
            "{broken} dead pixels (flat field no larger than dark field) take their neighbours' values"
        ));
    }
    if without > 0 {
        notes
            .push(format!("{without} measurements without photons are taken as half of the smallest signal"));
    }
    Ok(values)
}

/// Dead pixels take the mean of the nearest live ones on both sides; at an end the only one.
fn mend(mut row: ndarray::ArrayViewMut1<'_, f32>, dead: ndarray::ArrayView1<'_, bool>) {
    let count = row.len();
    for at in 0..count {
        if dead[at] {
            let before = (0..at).rev().find(|&i| !dead[i]);
            let after = (at + 1..count).find(|&i| !dead[i]);
            row[at] = match (before, after) {
                (Some(a), Some(b)) => 0.5 * (row[a] + row[b]),
                (Some(one), None) | (None, Some(one)) => row[one],
                (None, None) => 0.0,
            };
        }
    }
}
