//! Receive coils whose images keep a closed-form k-space.

use std::f64::consts::TAU;

use ndarray::{Array2, Array4, ArrayView2};
use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{C32, C64, Error, Result};

use super::cholesky::{cholesky, solve};
use super::phantom::{Evaluator, Phantom};

/// c_n(x) = Σ_j w_{nj} e^{i2πκ_j·x}: coil sensitivities as low-order trigonometric polynomials.
///
/// The k-space of a coil image is then a finite sum of shifted transforms of the object, exact at any k:
/// ∫ c_n ρ e^{−i2πk·x} dx = Σ_j w_{nj} ρ̂(k − κ_j).
///
/// The harmonics are κ = j/2 cycles per field of view with integer |j| ≤ 3 or 4: their period is two fields of view, so
/// that nothing forces the two edges of the field to be equal. The weights are the least-squares fit to the Biot–Savart
/// fields B_x − iB_y of circular loops around the object (the principle of reciprocity: Hoult & Richards, J Magn Reson
/// 24:71, 1976). The polynomial *is* the sensitivity, in the samples as in [`CoilSensitivities::maps`];
/// [`CoilSensitivities::fit_error`] only says how far it is from a loop's field. Positions are in fields of view.
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
/// Distance of the loops' centres from the axis, in fields of view: just outside the field's corners.
const ARRAY_RADIUS: f64 = 0.72;
/// Semi-axes of the ellipsoid that counts as the object for the fit's weights, its error and the scale.
const OBJECT: [f64; 3] = [0.36, 0.47, 0.46];

struct Loop {
    centre: [f64; 3],
    normal: [f64; 3],
    radius: f64,
}

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

    /// `coils` loops around the object: in 2-D on a circle, in 3-D on rings of a cylinder about z, alternate rings turned
    /// by half a loop. Scaled so that the root sum of squares averages 1 over the object. One coil is
    /// [`CoilSensitivities::uniform`].
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
        let reach = |used: bool| if used { -order..=order } else { 0..=0 };
        let mut harmonics = Vec::new();
        for jz in reach(dims == 3) {
            for jy in reach(true) {
                for jx in reach(true) {
                    if jx * jx + jy * jy + jz * jz <= order * order {
                        harmonics.push([jx, jy, jz].map(|j| f64::from(j) / PERIOD));
                    }
                }
            }
        }
        let loops = place_loops(dims, coils);
        let weights = fit(dims, &harmonics, &loops)?;
        let mut set = Self {
            dims,
            harmonics,
            weights,
            fit_error: 0.0,
        };
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
        self.weights
            .rows()
            .into_iter()
            .map(|row| row.iter().zip(&waves).map(|(w, e)| w * e).sum())
            .collect()
    }

    /// The 2-D sensitivities in the plane at height z: Σ over κ_z of w e^{i2πκ_z z}, exactly. 2-D sets are returned as
    /// they are.
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
        Self {
            dims: 2,
            harmonics,
            weights,
            fit_error: self.fit_error,
        }
    }

    /// c_n at the voxel centres of a `[z, y, x]` matrix, `[coil, z, y, x]`; a 2-D set is the same in every z.
    pub fn maps(&self, shape_zyx: [usize; 3]) -> Array4<C32> {
        let [nz, ny, nx] = shape_zyx;
        // The waves factor into one per axis, so each row sums over the harmonics' x components only.
        let mut x_values: Vec<f64> = self.harmonics.iter().map(|kappa| kappa[0]).collect();
        x_values.sort_by(f64::total_cmp);
        x_values.dedup();
        let columns: Vec<usize> = self
            .harmonics
            .iter()
            .map(|kappa| x_values.partition_point(|v| *v < kappa[0]))
            .collect();
        let position = |i: usize, n: usize| (i as f64 - (n / 2) as f64) / n as f64;
        let x_waves: Vec<Vec<C64>> = (0..nx)
            .map(|ix| {
                x_values
                    .iter()
                    .map(|k| C64::cis(TAU * k * position(ix, nx)))
                    .collect()
            })
            .collect();
        let mut maps = Array4::zeros((self.coils(), nz, ny, nx));
        let mut rows: Vec<_> = maps.rows_mut().into_iter().collect();
        rows.par_iter_mut().enumerate().for_each(|(index, row)| {
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

    /// Samples `[coil, sample]` of ∫ c_n ρ e^{−i2πk·x} dx times `scale`, at `points` `[sample, dim]` in cycles per field
    /// of view. Errors: the phantom or the points have other dimensions than the coils.
    pub fn sample(&self, phantom: &Phantom, points: ArrayView2<'_, f64>, scale: f64) -> Result<Array2<C64>> {
        let reach = points.rows().into_iter().map(|k| k.dot(&k)).fold(0.0, f64::max);
        self.sampler(phantom, reach.sqrt())?.sample(points, scale)
    }

    /// Everything that many calls to [`Sampler::sample`] share; fastest for |k| up to `reach`.
    pub(super) fn sampler(&self, phantom: &Phantom, reach: f64) -> Result<Sampler<'_>> {
        if phantom.dims() != self.dims {
            return Err(Error::value(
                "phantom dimensions",
                self.dims.to_string(),
                phantom.dims(),
            ));
        }
        Ok(Sampler {
            coils: self,
            evaluator: Evaluator::new(phantom, &self.harmonics, reach),
        })
    }

    /// Scales the set to a mean root sum of squares of 1 over the object and records the fit error, both on points that
    /// the fit did not use.
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
}

impl Sampler<'_> {
    /// As [`CoilSensitivities::sample`].
    pub(super) fn sample(&self, points: ArrayView2<'_, f64>, scale: f64) -> Result<Array2<C64>> {
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
        samples.par_chunks_mut(coils).enumerate().for_each_init(
            || vec![C64::default(); self.coils.harmonics.len()],
            |shifted, (index, values)| {
                let mut k = [0.0; 3];
                for (to, from) in k.iter_mut().zip(points.row(index)) {
                    *to = *from;
                }
                self.evaluator.evaluate(k, shifted);
                for (value, row) in values.iter_mut().zip(self.coils.weights.rows()) {
                    let sum: C64 = row.iter().zip(shifted.iter()).map(|(w, s)| w * s).sum();
                    *value = sum * scale;
                }
            },
        );
        Ok(Array2::from_shape_fn(
            (coils, points.nrows()),
            |(coil, sample)| samples[sample * coils + coil],
        ))
    }
}

fn wave(kappa: &[f64; 3], x: &[f64; 3]) -> C64 {
    C64::cis(TAU * (kappa[0] * x[0] + kappa[1] * x[1] + kappa[2] * x[2]))
}

fn in_object(x: &[f64; 3]) -> bool {
    (0..3).map(|axis| (x[axis] / OBJECT[axis]).powi(2)).sum::<f64>() <= 1.0
}

/// A regular grid of n points an axis over the field of view.
fn fit_points(dims: usize, n: usize) -> Vec<[f64; 3]> {
    let at = |i: usize| (i as f64 + 0.5) / n as f64 - 0.5;
    let deep = if dims == 3 { n } else { 1 };
    (0..deep * n * n)
        .map(|i| {
            let z = if dims == 3 { at(i / (n * n)) } else { 0.0 };
            [at(i % n), at(i / n % n), z]
        })
        .collect()
}

fn place_loops(dims: usize, coils: usize) -> Vec<Loop> {
    let rings = if dims == 3 {
        (coils as f64 / 4.0).sqrt().ceil().max(1.0) as usize
    } else {
        1
    };
    let mut loops = Vec::with_capacity(coils);
    for ring in 0..rings {
        let here = coils * (ring + 1) / rings - coils * ring / rings;
        let turn = if ring % 2 == 1 { 0.5 } else { 0.0 };
        let z = (ring as f64 + 0.5) / rings as f64 - 0.5;
        // Neighbours overlap by a tenth; large arrays keep loops large enough to see the middle of the object.
        let radius = 1.1 * ARRAY_RADIUS * (0.5 * TAU / here as f64).sin();
        for place in 0..here {
            let (sin, cos) = (TAU * (place as f64 + turn) / here as f64).sin_cos();
            loops.push(Loop {
                centre: [ARRAY_RADIUS * cos, ARRAY_RADIUS * sin, z],
                normal: [cos, sin, 0.0],
                radius: radius.clamp(0.3, 0.45),
            });
        }
    }
    loops
}

impl Loop {
    /// B_x − iB_y at x by the law of Biot and Savart, ∮ dl × r/|r|³, without constants. The trapezoid rule on a circle
    /// converges exponentially at any distance from the wire.
    fn field(&self, x: &[f64; 3]) -> C64 {
        const SEGMENTS: usize = 64;
        let [nx, ny, _] = self.normal;
        let mut b = [0.0; 2];
        for segment in 0..SEGMENTS {
            let (sin, cos) = (TAU * segment as f64 / SEGMENTS as f64).sin_cos();
            // The loop's plane is spanned by z and by the tangent (−n_y, n_x, 0).
            let wire = [
                self.centre[0] - self.radius * cos * ny,
                self.centre[1] + self.radius * cos * nx,
                self.centre[2] + self.radius * sin,
            ];
            let dl = [sin * ny, -sin * nx, cos].map(|v| v * self.radius * TAU / SEGMENTS as f64);
            let r = [x[0] - wire[0], x[1] - wire[1], x[2] - wire[2]];
            let cube = (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]).powf(1.5);
            b[0] += (dl[1] * r[2] - dl[2] * r[1]) / cube;
            b[1] += (dl[2] * r[0] - dl[0] * r[2]) / cube;
        }
        C64::new(b[0], -b[1])
    }
}

/// Weights `[coil, harmonic]` that minimise Σ_x q(x)|Σ_j w_j e^{i2πκ_j·x} − B(x)|² + ε‖w‖², q = 1 in the object and 0.1
/// in the rest of the field, so that maps stay sane where nothing is.
fn fit(dims: usize, harmonics: &[[f64; 3]], loops: &[Loop]) -> Result<Array2<C64>> {
    let count = harmonics.len();
    let points = fit_points(dims, if dims == 2 { 33 } else { 13 });
    let weight = |x: &[f64; 3]| if in_object(x) { 1.0 } else { 0.1 };
    let design = Array2::from_shape_fn((points.len(), count), |(p, j)| wave(&harmonics[j], &points[p]));
    let adjoint = Array2::from_shape_fn((count, points.len()), |(j, p)| {
        design[[p, j]].conj() * weight(&points[p])
    });
    let mut gram = adjoint.dot(&design);
    let trace: f64 = (0..count).map(|j| gram[[j, j]].re).sum();
    for j in 0..count {
        gram[[j, j]] += 1e-10 * trace / count as f64;
    }
    let factor = cholesky("normal matrix of the coil fit", gram.view())?;
    let rows: Vec<Vec<C64>> = loops
        .par_iter()
        .map(|one| {
            let field: Vec<C64> = points.iter().map(|x| one.field(x)).collect();
            let mut row: Vec<C64> = adjoint
                .rows()
                .into_iter()
                .map(|a| a.iter().zip(&field).map(|(a, f)| a * f).sum())
                .collect();
            solve(factor.view(), &mut row);
            row
        })
        .collect();
    Ok(Array2::from_shape_fn((loops.len(), count), |(coil, j)| {
        rows[coil][j]
    }))
}

#[cfg(test)]
mod tests {
    use super::super::phantom::Contrast;
    use super::super::phantom::tests::integrate;
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn coil_images_have_the_k_space_of_the_product() {
        let mut rng = ChaCha8Rng::seed_from_u64(21);
        let solid = Phantom::shepp_logan_3d(Contrast::Modified);
        for (phantom, order, reach) in [
            (Phantom::shepp_logan_2d(Contrast::Modified), 96, 30.0),
            (Phantom::new(3, solid.parts()[1..3].to_vec()).unwrap(), 32, 4.0),
        ] {
            let dims = phantom.dims();
            let coils = CoilSensitivities::loops(dims, 3).unwrap();
            let k: [f64; 3] = std::array::from_fn(|axis| {
                if axis < dims {
                    rng.random_range(-reach..reach)
                } else {
                    0.0
                }
            });
            let points = Array2::from_shape_fn((1, dims), |(_, axis)| k[axis]);
            let samples = coils.sample(&phantom, points.view(), 7.0).unwrap();
            for coil in 0..3 {
                let expected = integrate(&phantom, order, |x| {
                    coils.at(x)[coil] * C64::cis(-TAU * (k[0] * x[0] + k[1] * x[1] + k[2] * x[2]))
                });
                let found = samples[[coil, 0]] / 7.0;
                assert!(
                    (found - expected).norm() < 1e-11,
                    "{dims}-D k {k:?}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_fit_is_close_to_the_loops_and_scaled() {
        for (dims, coils, bound) in [
            (2, 4, 0.03),
            (2, 8, 0.08),
            (2, 16, 0.08),
            (3, 4, 0.08),
            (3, 8, 0.08),
            (3, 16, 0.12),
            (3, 32, 0.12),
        ] {
            let set = CoilSensitivities::loops(dims, coils).unwrap();
            println!(
                "{dims}-D {coils} coils: {} harmonics, fit error {:.4}",
                set.harmonics().len(),
                set.fit_error()
            );
            assert_eq!(set.coils(), coils);
            assert!(set.fit_error() < bound, "{dims} {coils} {}", set.fit_error());
            let n = if dims == 3 { 12 } else { 32 };
            let maps = set.maps([if dims == 3 { n } else { 1 }, n, n]);
            let rss = maps
                .mapv(|c| c.norm_sqr())
                .sum_axis(ndarray::Axis(0))
                .mapv(f32::sqrt);
            // Sensitivities stay of order one in the whole field, corners included.
            assert!(
                rss.iter().all(|v| *v > 0.15 && *v < 12.0),
                "{:?}",
                rss.iter()
                    .copied()
                    .fold((9f32, 0f32), |m, v| (m.0.min(v), m.1.max(v)))
            );
        }
    }

    #[test]
    fn maps_and_slices_are_the_polynomial() {
        let set = CoilSensitivities::loops(3, 6).unwrap();
        let shape = [5, 4, 7];
        let maps = set.maps(shape);
        for ((coil, iz, iy, ix), value) in maps.indexed_iter() {
            let x = [
                (ix as f64 - 3.0) / 7.0,
                (iy as f64 - 2.0) / 4.0,
                (iz as f64 - 2.0) / 5.0,
            ];
            let expected = set.at(x)[coil];
            let found = C64::new(f64::from(value.re), f64::from(value.im));
            assert!((found - expected).norm() < 1e-6);
            let plane = set.slice(x[2]).at([x[0], x[1], 0.0])[coil];
            assert!((plane - expected).norm() < 1e-12);
        }
    }

    #[test]
    fn loops_follow_biot_and_savart_on_their_axis() {
        // On the axis of a loop of radius a, at distance h: B = 2πa²/(a² + h²)^{3/2}.
        let one = Loop {
            centre: [0.7, 0.0, 0.0],
            normal: [1.0, 0.0, 0.0],
            radius: 0.3,
        };
        for x in [0.0, 0.3, 0.65] {
            let h: f64 = 0.7 - x;
            let expected = TAU * 0.09 / (0.09 + h * h).powf(1.5);
            let field = one.field(&[x, 0.0, 0.0]);
            assert!(
                (field.re.abs() - expected).abs() < 1e-12 && field.im.abs() < 1e-12,
                "{field} {expected}"
            );
        }
    }

    #[test]
    fn bad_requests_are_refused() {
        assert!(CoilSensitivities::loops(2, 0).is_err());
        assert!(CoilSensitivities::loops(2, 257).is_err());
        assert!(CoilSensitivities::loops(1, 4).is_err());
        let set = CoilSensitivities::uniform(2);
        let phantom = Phantom::shepp_logan_2d(Contrast::Modified);
        assert!(set.sample(&phantom, Array2::zeros((4, 3)).view(), 1.0).is_err());
        assert!(
            set.sample(
                &Phantom::shepp_logan_3d(Contrast::Modified),
                Array2::zeros((4, 2)).view(),
                1.0
            )
            .is_err()
        );
    }
}
