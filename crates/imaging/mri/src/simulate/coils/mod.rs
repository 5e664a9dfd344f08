//! Receive coils whose images keep a closed-form k-space.

mod loops;
#[cfg(test)]
mod tests;

use std::f64::consts::TAU;

use ndarray::{Array2, Array4, ArrayView2};
use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{C32, C64, Error, Result};
use rayspin_device::cpu::Stop;

use super::phantom::{Evaluator, Phantom};
use loops::{Loop, fit, fit_points, in_object, place_loops};

/// c_n(x) = Σ_j w_{nj} e^{i2πκ_j·x}: coil sensitivities as low-order trigonometric polynomials.
///
/// The k-space of a coil image is then a finite sum of shifted transforms of the object, exact at any k:
/// ∫ c_n ρ e^{−i2πk·x} dx = Σ_j w_{nj} ρ̂(k − κ_j).
///
/// The harmonics are κ = j/2 cycles per field of view with integer j, |j|² ≤ 6 to 16. Their period is two
/// fields of view, so that nothing forces the two edges of the field to be equal. The weights are the
/// least-squares fit to the Biot–Savart fields B_x − iB_y of circular loops around the object (the principle
/// of reciprocity: Hoult & Richards, J Magn Reson 24:71, 1976). The polynomial *is* the sensitivity, in the
/// samples as in [`CoilSensitivities::maps`]; [`CoilSensitivities::fit_error`] only says how far it is from a
/// loop's field. Positions are in fields of view.
///
/// ```
/// use rayspin_mri::simulate::CoilSensitivities;
///
/// let coils = CoilSensitivities::loops(2, 6)?;
/// assert_eq!(coils.maps([1, 32, 32]).dim(), (6, 1, 32, 32)); // [coil, z, y, x]
/// let at_centre: f64 = coils.at([0.0; 3]).iter().map(|c| c.norm_sqr()).sum::<f64>().sqrt();
/// assert!((0.3..2.0).contains(&at_centre)); // 1 in the mean over the object
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CoilSensitivities {
    dims: usize,
    /// κ_j in cycles per field of view.
    harmonics: Vec<[f64; 3]>,
    /// `[coil, harmonic]`.
    weights: Array2<C64>,
    fit_error: f64,
}

/// Harmonics per cycle per field of view: their common period in fields of view.
const PERIOD: f64 = 2.0;
impl CoilSensitivities {
    /// One coil that sees everything alike: c = 1.
    pub fn uniform(dims: usize) -> Self {
        Self {
            dims,
            harmonics: vec![[0.0; 3]],
            weights: Array2::from_elem((1, 1), C64::from(1.0)),
            fit_error: 0.0,
        }
    }

    /// `coils` loops around the object: in 2-D on a circle, in 3-D on rings of a cylinder about z, alternate
    /// rings turned by half a loop. Scaled so that the root sum of squares averages 1 over the object. One
    /// coil is [`CoilSensitivities::uniform`].
    ///
    /// Errors: dimensions other than 2 or 3; no coil, or more than 256.
    pub fn loops(dims: usize, coils: usize) -> Result<Self> {
        if dims != 2 && dims != 3 {
            return Err(Error::value("coil dimensions", "2 or 3", dims));
        }
        if !(1..=256).contains(&coils) {
            return Err(Error::value("coils", "1 to 256", coils));
        }
        if coils == 1 {
            return Ok(Self::uniform(dims));
        }
        let order: i32 = if dims == 2 && coils > 8 { 4 } else { 3 };
        let ball = if dims == 3 && coils <= 8 { 6 } else { order * order };
        let reach = |used: bool| if used { -order..=order } else { 0..=0 };
        let mut harmonics = Vec::new();
        for jz in reach(dims == 3) {
            for jy in reach(true) {
                for jx in reach(true) {
                    if jx * jx + jy * jy + jz * jz <= ball {
                        harmonics.push([jx, jy, jz].map(|j| f64::from(j) / PERIOD));
                    }
                }
            }
        }
        let loops = place_loops(dims, coils);
        let weights = fit(dims, &harmonics, &loops)?;
        let mut set = Self { dims, harmonics, weights, fit_error: 0.0 };
        set.scale_and_measure(&loops);
        Ok(set)
    }

    /// Number of coils.
    pub fn coils(&self) -> usize {
        self.weights.nrows()
    }

    /// κ_j in cycles per field of view, in the order x, y, z.
    pub fn harmonics(&self) -> &[[f64; 3]] {
        &self.harmonics
    }

    /// w_{nj}, `[coil, harmonic]`.
    pub fn weights(&self) -> ArrayView2<'_, C64> {
        self.weights.view()
    }

    /// Largest ‖polynomial − loop field‖₂/‖loop field‖₂ of any coil over the object; 0 for a uniform coil.
    pub fn fit_error(&self) -> f64 {
        self.fit_error
    }

    /// c_n(x) of every coil at a point in fields of view.
    pub fn at(&self, x: [f64; 3]) -> Vec<C64> {
        let waves: Vec<C64> = self.harmonics.iter().map(|kappa| wave(kappa, &x)).collect();
        self.weights.rows().into_iter().map(|row| row.iter().zip(&waves).map(|(w, e)| w * e).sum()).collect()
    }

    /// The 2-D sensitivities in the plane at height z: Σ over κ_z of w e^{i2πκ_z z}, exactly. 2-D sets are
    /// returned as they are.
    pub fn slice(&self, z: f64) -> Self {
        if self.dims == 2 {
            return self.clone();
        }
        let mut harmonics: Vec<[f64; 3]> = Vec::new();
        let place: Vec<usize> = self
            .harmonics
            .iter()
            .map(|kappa| {
                let flat = [kappa[0], kappa[1], 0.0];
                harmonics.iter().position(|h| *h == flat).unwrap_or_else(|| {
                    harmonics.push(flat);
                    harmonics.len() - 1
                })
            })
            .collect();
        let mut weights = Array2::zeros((self.coils(), harmonics.len()));
        for (coil, row) in self.weights.rows().into_iter().enumerate() {
            for ((w, kappa), to) in row.iter().zip(&self.harmonics).zip(&place) {
                weights[[coil, *to]] += w * C64::cis(TAU * kappa[2] * z);
            }
        }
        Self { dims: 2, harmonics, weights, fit_error: self.fit_error }
    }

    /// c_n at the voxel centres of a `[z, y, x]` matrix, `[coil, z, y, x]`; a 2-D set is the same in every z.
    pub fn maps(&self, shape_zyx: [usize; 3]) -> Array4<C32> {
        let [nz, ny, nx] = shape_zyx;
        // The waves factor into one per axis, so each row sums over the harmonics' x components only.
        let mut x_values: Vec<f64> = self.harmonics.iter().map(|kappa| kappa[0]).collect();
        x_values.sort_by(f64::total_cmp);
        x_values.dedup();
        let columns: Vec<usize> =
            self.harmonics.iter().map(|kappa| x_values.partition_point(|v| *v < kappa[0])).collect();
        let position = |i: usize, n: usize| (i as f64 - (n / 2) as f64) / n as f64;
        let x_waves: Vec<Vec<C64>> = (0..nx)
            .map(|ix| x_values.iter().map(|k| C64::cis(TAU * k * position(ix, nx))).collect())
            .collect();
        let mut maps = Array4::zeros((self.coils(), nz, ny, nx));
        let mut rows: Vec<_> = maps.rows_mut().into_iter().collect();
        let stop = Stop::of_caller();
        rows.par_iter_mut().enumerate().filter(|_| !stop.is_set()).for_each(|(index, row)| {
            let (coil, iz, iy) = (index / (ny * nz), index / ny % nz, index % ny);
            let z = if self.dims == 3 { position(iz, nz) } else { 0.0 };
            let mut line = vec![C64::default(); x_values.len()];
            for ((w, kappa), column) in self.weights.row(coil).iter().zip(&self.harmonics).zip(&columns) {
                line[*column] += w * C64::cis(TAU * (kappa[1] * position(iy, ny) + kappa[2] * z));
            }
            for (value, waves) in row.iter_mut().zip(&x_waves) {
                let sum: C64 = line.iter().zip(waves).map(|(a, b)| a * b).sum();
                *value = Complex::new(sum.re as f32, sum.im as f32);
            }
        });
        maps
    }

    /// Samples `[coil, sample]` of ∫ c_n ρ e^{−i2πk·x} dx at `points` `[sample, dim]` in cycles per field
    /// of view. Errors: the phantom or the points have other dimensions than the coils.
    pub fn sample(&self, phantom: &Phantom, points: ArrayView2<'_, f64>) -> Result<Array2<C64>> {
        let reach = points.rows().into_iter().map(|k| k.dot(&k)).fold(0.0, f64::max);
        self.sampler(phantom, reach.sqrt())?.sample(points)
    }

    /// Everything that many calls to [`Sampler::sample`] share; fastest for |k| up to `reach`.
    pub(super) fn sampler(&self, phantom: &Phantom, reach: f64) -> Result<Sampler<'_>> {
        if phantom.dims() != self.dims {
            return Err(Error::value("phantom dimensions", self.dims.to_string(), phantom.dims()));
        }
        let evaluator = Evaluator::new(phantom, &self.harmonics, reach);
        Ok(Sampler { coils: self, evaluator, stop: Stop::of_caller() })
    }

    /// Scales the set to a mean root sum of squares of 1 over the object and records the fit error, both on
    /// points that the fit did not use.
    fn scale_and_measure(&mut self, loops: &[Loop]) {
        let points: Vec<[f64; 3]> = fit_points(self.dims, if self.dims == 2 { 34 } else { 14 })
            .into_iter()
            .filter(in_object)
            .collect();
        let values: Vec<Vec<C64>> = points.par_iter().map(|x| self.at(*x)).collect();
        self.fit_error = loops
            .par_iter()
            .enumerate()
            .map(|(coil, one)| {
                let (mut error, mut total) = (0.0, 0.0);
                for (x, value) in points.iter().zip(&values) {
                    let field = one.field(x);
                    error += (value[coil] - field).norm_sqr();
                    total += field.norm_sqr();
                }
                (error / total).sqrt()
            })
            .reduce(|| 0.0, f64::max);
        let rss = |v: &Vec<C64>| v.iter().map(|c| c.norm_sqr()).sum::<f64>().sqrt();
        let mean = values.iter().map(rss).sum::<f64>() / values.len() as f64;
        self.weights.mapv_inplace(|w| w / mean);
    }
}

/// A phantom seen by coils.
pub(super) struct Sampler<'a> {
    coils: &'a CoilSensitivities,
    evaluator: Evaluator,
    stop: Stop,
}

impl Sampler<'_> {
    /// As [`CoilSensitivities::sample`].
    pub(super) fn sample(&self, points: ArrayView2<'_, f64>) -> Result<Array2<C64>> {
        let dims = self.coils.dims;
        if points.ncols() != dims {
            return Err(Error::shape(
                "k-space points",
                &[points.nrows(), dims],
                &[points.nrows(), points.ncols()],
            ));
        }
        let coils = self.coils.coils();
        let mut samples = vec![C64::default(); points.nrows() * coils];
        samples.par_chunks_mut(coils).enumerate().filter(|_| !self.stop.is_set()).for_each_init(
            || vec![C64::default(); self.coils.harmonics.len()],
            |shifted, (index, values)| {
                let mut k = [0.0; 3];
                for (to, from) in k.iter_mut().zip(points.row(index)) {
                    *to = *from;
                }
                self.evaluator.evaluate(k, shifted);
                for (value, row) in values.iter_mut().zip(self.coils.weights.rows()) {
                    let sum: C64 = row.iter().zip(shifted.iter()).map(|(w, s)| w * s).sum();
                    *value = sum;
                }
            },
        );
        self.stop.check()?;
        Ok(Array2::from_shape_fn((coils, points.nrows()), |(coil, sample)| samples[sample * coils + coil]))
    }
}

fn wave(kappa: &[f64; 3], x: &[f64; 3]) -> C64 {
    C64::cis(TAU * (kappa[0] * x[0] + kappa[1] * x[1] + kappa[2] * x[2]))
}
