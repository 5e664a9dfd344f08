use std::borrow::Cow;
use std::ops::Range;

use ndarray::Array3;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Error, ProjectionGeometry, Result};
use rayspin_device::Array;
use rayspin_kernels::projection::{Weighting, reference};
use rayspin_run::{Certify, draws, errors_of};
use serde::Serialize;

use super::{Reconstruction, Spec, checks, lost};

/// A certificate of a reconstruction, which has one image.
pub type Certificate = rayspin_run::Certificate<()>;

/// The relative error that back-projection may have: sums of f32 over some thousand views.
const BACKPROJECTION: f64 = 1e-4;

/// The relative error that line integrals may have: sums of f32 over some thousand voxels.
const PROJECTION: f64 = 1e-5;

/// How an iterative method went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Solve {
    /// The solver's name.
    pub solver: &'static str,
    /// The relative residual before the first iteration and after each.
    pub residuals: Vec<f64>,
    /// Whether the residual met the tolerance.
    pub converged: bool,
}

/// The slices that a device makes of its filtered projections.
pub(crate) struct Slab<'a> {
    /// The rays of the filtered projections.
    pub(crate) geometry: &'a ProjectionGeometry,
    pub(crate) filtered: &'a Array<f32>,
    pub(crate) planes: Range<usize>,
}

/// Line integrals and what becomes of them while a method runs.
pub struct Solving<'a> {
    spec: &'a Spec<'a>,
    lines: Option<Cow<'a, Array3<f32>>>,
    certify: Option<Certify>,
    /// Filtered projections of each device, on a GPU where it holds all of its own.
    pub(crate) filtered: Vec<Array<f32>>,
    volume: Option<Vec<f32>>,
    /// Whether the volume is known to be finite.
    finite: bool,
    solve: Option<Solve>,
    notes: Vec<String>,
    certificates: Vec<Certificate>,
}

impl<'a> Solving<'a> {
    pub(crate) fn new(spec: &'a Spec<'a>, lines: Cow<'a, Array3<f32>>, certify: Option<Certify>) -> Self {
        Self {
            spec,
            lines: Some(lines),
            certify,
            filtered: Vec::new(),
            volume: None,
            finite: false,
            solve: None,
            notes: Vec::new(),
            certificates: Vec::new(),
        }
    }

    /// The line integrals `[view, row, column]` in C order. A run that may need them again gives a copy.
    ///
    /// Errors: they were taken before.
    pub fn take_lines(&mut self) -> Result<Vec<f32>> {
        let lines = self.lines.take().ok_or_else(|| lost("line integrals"))?;
        let lines = lines.into_owned();
        Ok(match lines.is_standard_layout() {
            true => lines.into_raw_vec_and_offset().0,
            false => lines.iter().copied().collect(),
        })
    }

    /// The line integrals of some views, in C order.
    ///
    /// Errors: they were taken before.
    pub(crate) fn lines(&self, views: Range<usize>) -> Result<Cow<'_, [f32]>> {
        let [_, rows, _] = self.spec.geometry().shape();
        self.lines_of_rows(views, 0..rows)
    }

    /// The line integrals of some rows of some views, in C order.
    ///
    /// Errors: they were taken before.
    pub(crate) fn lines_of_rows(&self, views: Range<usize>, rows: Range<usize>) -> Result<Cow<'_, [f32]>> {
        let lines = self.lines.as_ref().ok_or_else(|| lost("line integrals"))?;
        let lines = lines.slice(ndarray::s![views, rows, ..]);
        Ok(match lines.to_slice() {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(lines.iter().copied().collect()),
        })
    }

    /// The rays.
    pub(crate) fn geometry(&self) -> &ProjectionGeometry {
        self.spec.geometry()
    }

    /// Adds a note for the user.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Stores the volume `[z, y, x]` in C order.
    pub fn finish(&mut self, volume: Vec<f32>) {
        self.finish_looked_at(volume, false);
    }

    /// Stores the volume, and whether a GPU has found that it is finite.
    pub(crate) fn finish_looked_at(&mut self, volume: Vec<f32>, finite: bool) {
        (self.volume, self.finite) = (Some(volume), finite);
    }

    /// Stores the course of the iterations.
    pub fn solved(&mut self, solve: Solve) {
        self.solve = Some(solve);
    }

    /// If the run certifies, compares random voxels within `radius_mm` of the axis with the exact sums over
    /// filtered projections, each in its slab.
    pub(crate) fn certify_backprojection(
        &mut self,
        slabs: &[Slab<'_>],
        radius_mm: f64,
        volume: &[f32],
    ) -> Result<()> {
        if self.certify.is_none() {
            return Ok(());
        }
        let grid = self.spec.grid();
        let ([nx, ny, _], first, spacing) = (grid.shape_xyz(), grid.first_mm(), grid.spacing_mm());
        let seen = |voxel: usize| {
            let x = first[0] + (voxel % nx) as f64 * spacing[0];
            let y = first[1] + (voxel / nx % ny) as f64 * spacing[1];
            x.hypot(y) <= radius_mm
        };
        let indices = self.drawn(volume.len());
        let mut exact = vec![0.0; indices.len()];
        for Slab { geometry, filtered, planes } in slabs {
            let filtered = &filtered.read()?[..];
            for (exact, &voxel) in exact.iter_mut().zip(&indices) {
                if planes.contains(&(voxel / (nx * ny))) && seen(voxel) {
                    *exact =
                        reference::backproject_at(geometry, grid, Weighting::Magnification, filtered, voxel);
                }
            }
        }
        self.certify_sums("back-projection", &indices, &exact, volume, BACKPROJECTION);
        Ok(())
    }

    /// Random outputs to compare, out of `count`. None if the run does not certify.
    pub(crate) fn drawn(&self, count: usize) -> Vec<usize> {
        self.certify.map_or_else(Vec::new, |certify| {
            draws(&mut ChaCha8Rng::seed_from_u64(certify.seed), certify.outputs, count)
        })
    }

    /// If the run certifies, compares some voxels with exact sums. The relative error may be at most `most`.
    pub(crate) fn certify_sums(
        &mut self,
        what: &'static str,
        indices: &[usize],
        exact: &[f64],
        volume: &[f32],
        most: f64,
    ) {
        if self.certify.is_none() {
            return;
        }
        let wide = |value: f64| C64::new(value, 0.0);
        let computed: Vec<C64> = indices.iter().map(|&voxel| wide(volume[voxel].into())).collect();
        let exact: Vec<C64> = exact.iter().copied().map(wide).collect();
        let square: f64 = volume.iter().map(|&value| f64::from(value).powi(2)).sum();
        let errors = errors_of(&computed, &exact, (square / volume.len() as f64).sqrt());
        self.certificates.push(Certificate::new(what, volume.len(), &errors, most));
    }

    /// Whether the run certifies: it compares some outputs with exact sums.
    pub(crate) fn certifies(&self) -> bool {
        self.certify.is_some()
    }

    /// If the run certifies, compares random ones of the volume's line integrals with the exact sums.
    pub(crate) fn certify_projection(&mut self, lines: &[f32], volume: &[f32]) {
        let Some(certify) = self.certify else { return };
        let mut rng = ChaCha8Rng::seed_from_u64(certify.seed);
        let indices = draws(&mut rng, certify.outputs, lines.len());
        let computed: Vec<C64> = indices.iter().map(|&pixel| C64::new(lines[pixel].into(), 0.0)).collect();
        let (geometry, grid) = (self.spec.geometry(), self.spec.grid());
        let exact = |&pixel: &usize| C64::new(reference::pixel(geometry, grid, volume, pixel), 0.0);
        let exact: Vec<C64> = indices.iter().map(exact).collect();
        let square: f64 = lines.iter().map(|&value| f64::from(value).powi(2)).sum();
        let errors = errors_of(&computed, &exact, (square / lines.len() as f64).sqrt());
        self.certificates.push(Certificate::new("projection", lines.len(), &errors, PROJECTION));
    }

    pub(crate) fn into_made(self) -> Result<Reconstruction> {
        let shape = self.spec.grid().shape_zyx();
        let volume = self.volume.ok_or_else(|| lost("volume"))?;
        if !self.finite {
            checks::expect_finite(self.spec.device(), &volume)?;
        }
        let volume = Array3::from_shape_vec(shape, volume)
            .map_err(|e| Error::value("volume", "the grid's voxels", e))?;
        Ok(Reconstruction { volume, solve: self.solve, notes: self.notes, certificates: self.certificates })
    }
}
