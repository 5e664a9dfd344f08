use ndarray::{Array2, ArrayD, Axis};
use rayspin_core::{C32, Error, Geometry, Ranges, Result, Trajectory};

use super::{Label, noncartesian};
use crate::mri::crop::centre_crop;

/// The samples of one image on their way to reconstruction.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::{C32, Geometry};
/// use rayspin_scan::mri::Frame;
///
/// let mut kspace = ArrayD::from_elem(vec![2, 8, 8], C32::ONE); // [coil, y, x]
/// kspace.index_axis_mut(ndarray::Axis(1), 1).fill(C32::ZERO); // one line was not measured
/// let frame = Frame::from_grid(kspace, Geometry::default())?;
/// assert_eq!((frame.coils(), &frame.matrix[..]), (2, &[8, 8][..]));
/// assert_eq!(frame.with_matrix(&[16, 16])?.matrix, [16, 16]); // over the same field of view
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Frame {
    /// Which image it is.
    pub label: Label,
    /// The image to reconstruct, `[z, y, x]` or `[y, x]`.
    pub matrix: Vec<usize>,
    /// Where the image lies.
    pub geometry: Geometry,
    /// The measured values.
    pub samples: Samples,
    /// When they were taken, in s, if [`FrameOptions`](super::FrameOptions) requests it: one time for each
    /// sample of a trajectory, or for each place of the grid in C order. A place that was measured more than
    /// once has the mean of its times. 0 is the centre of each readout. A constant shift turns the phase of
    /// an image in an inhomogeneous field and nothing else.
    pub times: Option<Vec<f64>>,
    /// Calibration lines that are no part of the image (flag 20), on the same grid.
    pub calibration: Option<CalibrationLines>,
    /// Whether a correction interpolated along readouts. The frequencies that interpolation empties then do
    /// not tell how strong noise is.
    pub interpolated: bool,
}

/// Lines measured for calibration alone.
#[derive(Debug, Clone)]
pub struct CalibrationLines {
    /// `[coil, z, y, x]` or `[coil, y, x]`, zero where nothing was measured.
    pub kspace: ArrayD<C32>,
    /// Where it was measured, `[z, y, x]` or `[y, x]`.
    pub sampled: ArrayD<bool>,
}

/// Measured values, on the grid or with a trajectory.
#[derive(Debug, Clone)]
pub enum Samples {
    /// On the grid of an image `[coil, z, y, x]` (or `[coil, y, x]`), zero where nothing was measured, centre
    /// at n/2. The grid's field of view may be larger than the matrix asks (readout oversampling): the
    /// image's centre is kept.
    Cartesian {
        /// The grid.
        kspace: ArrayD<C32>,
        /// Where it was measured, `[z, y, x]` or `[y, x]`.
        sampled: ArrayD<bool>,
    },
    /// Anywhere.
    NonCartesian {
        /// Where each sample lies.
        trajectory: Trajectory,
        /// The samples, `[coil, sample]`.
        data: Array2<C32>,
    },
}

impl Frame {
    /// Number of coils.
    pub fn coils(&self) -> usize {
        match &self.samples {
            Samples::Cartesian { kspace, .. } => kspace.shape()[0],
            Samples::NonCartesian { data, .. } => data.nrows(),
        }
    }

    /// Whether the centre of k-space is among the samples: its place of a grid, or a point within a cycle per
    /// field of view.
    pub fn measures_centre(&self) -> bool {
        match &self.samples {
            Samples::Cartesian { sampled, .. } => {
                let centre: Vec<usize> = sampled.shape().iter().map(|n| n / 2).collect();
                sampled.get(&centre[..]).copied().unwrap_or(false)
            }
            Samples::NonCartesian { trajectory, .. } => (0..trajectory.samples())
                .any(|sample| trajectory.point(sample).iter().map(|k| k * k).sum::<f64>() <= 1.0),
        }
    }

    /// A Cartesian frame from a zero-filled grid `[coil, z, y, x]` or `[coil, y, x]` (z of 1 is dropped):
    /// measured where any coil is not zero.
    ///
    /// Errors: another rank, an empty axis, values that are not finite, or nothing measured.
    pub fn from_grid(kspace: ArrayD<C32>, geometry: Geometry) -> Result<Self> {
        let shape = kspace.shape().to_vec();
        if !(3..=4).contains(&shape.len()) || shape.contains(&0) {
            return Err(Error::Shape {
                what: "k-space".into(),
                expected: "[coil, y, x] or [coil, z, y, x], no axis empty".into(),
                found: rayspin_core::format_shape(&shape),
            });
        }
        check_finite("k-space", kspace.iter())?;
        let (kspace, matrix) = match shape[..] {
            [coils, 1, y, x] => (reshape(kspace, &[coils, y, x])?, vec![y, x]),
            _ => (kspace, shape[1..].to_vec()),
        };
        let sampled = kspace.map_axis(Axis(0), |coils| coils.iter().any(|v| *v != C32::ZERO));
        if !sampled.iter().any(|&s| s) {
            return Err(Error::value("k-space", "at least one value that is not zero", "all zero"));
        }
        Ok(Self {
            label: Label::default(),
            matrix,
            geometry,
            samples: Samples::Cartesian { kspace, sampled },
            times: None,
            calibration: None,
            interpolated: false,
        })
    }

    /// The same grid's frame with `matrix` voxels (`[z, y, x]` or `[y, x]`) over the same field of view:
    /// k-space is cut or zero-padded around its centre. A non-Cartesian frame just takes the matrix.
    ///
    /// Errors: another number of axes, or a matrix that is empty or absurd.
    pub fn with_matrix(mut self, matrix: &[usize]) -> Result<Self> {
        if matrix.len() != self.matrix.len() {
            return Err(Error::value("matrix", format!("{} axes", self.matrix.len()), format!("{matrix:?}")));
        }
        let mut matrix_zyx = [1; 3];
        matrix_zyx[3 - matrix.len()..].copy_from_slice(matrix);
        check_matrix(matrix_zyx)?;
        if let Samples::Cartesian { kspace, sampled } = &mut self.samples {
            // Times belong to places of the grid that was.
            self.times = None;
            let shape: Vec<usize> =
                std::iter::once(kspace.shape()[0]).chain(matrix.iter().copied()).collect();
            *kspace = centre_crop(std::mem::take(kspace), &shape)?;
            *sampled = centre_crop(std::mem::take(sampled), matrix)?;
            if let Some(lines) = &mut self.calibration {
                lines.kspace = centre_crop(std::mem::take(&mut lines.kspace), &shape)?;
                lines.sampled = centre_crop(std::mem::take(&mut lines.sampled), matrix)?;
            }
        }
        for (axis, (&old, &new)) in self.matrix.iter().rev().zip(matrix.iter().rev()).enumerate() {
            self.geometry.spacing_mm[axis] *= old as f64 / new as f64;
        }
        self.matrix = matrix.to_vec();
        Ok(self)
    }

    /// The same image from some of its readouts, counted from 0, as [`readouts`](super::readouts) finds them
    /// along the trajectory.
    ///
    /// Errors: a frame on the grid, whose readouts are not known; a readout that the trajectory lacks.
    pub fn with_readouts(mut self, chosen: &Ranges) -> Result<Self> {
        let Samples::NonCartesian { trajectory, data } = &self.samples else {
            return Err(Error::value("readouts", "a scan with a trajectory", "samples on a grid"));
        };
        let kept = samples_of(trajectory, chosen)?;
        let trajectory = Trajectory::from_cycles_per_fov(trajectory.points().select(Axis(0), &kept))?;
        let data = data.select(Axis(1), &kept);
        self.samples = Samples::NonCartesian { trajectory, data };
        self.times = self.times.map(|times| kept.iter().map(|&sample| times[sample]).collect());
        Ok(self)
    }

    /// A non-Cartesian frame from samples `[coil, sample]` and their trajectory. `matrix` is `[z, y, x]` or
    /// `[y, x]`. Samples beyond the matrix's own k-space are left out, which goes to `notes`.
    ///
    /// Errors: another shape, values that are not finite, a matrix that is empty or absurd, or fewer than a
    /// twentieth of the samples within its k-space.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    /// use rayspin_core::{C32, Geometry, Trajectory};
    /// use rayspin_scan::mri::Frame;
    ///
    /// let trajectory = Trajectory::from_cycles_per_fov(array![[0.0, 0.0], [3.5, -1.0], [90.0, 0.0]])?;
    /// let samples = Array2::from_elem((4, 3), C32::ONE); // [coil, sample]
    /// let mut notes = Vec::new();
    /// let frame = Frame::from_samples(samples, trajectory, vec![8, 8], Geometry::default(), &mut notes)?;
    /// assert_eq!((frame.coils(), notes.len()), (4, 1)); // one sample lies beyond the matrix's k-space
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn from_samples(
        data: Array2<C32>,
        trajectory: Trajectory,
        matrix: Vec<usize>,
        geometry: Geometry,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let whole = Self::of_all_samples(data, trajectory, matrix, geometry)?;
        let Samples::NonCartesian { trajectory, data } = &whole.samples else { return Ok(whole) };
        let mut matrix_zyx = [1; 3];
        for (axis, &n) in matrix_zyx.iter_mut().zip(whole.matrix.iter().rev()) {
            *axis = n;
        }
        let Some(keep) = noncartesian::within_matrix(trajectory.points(), &matrix_zyx, notes)? else {
            return Ok(whole);
        };
        let trajectory = Trajectory::from_cycles_per_fov(trajectory.points().select(Axis(0), &keep))?;
        let data = data.select(Axis(1), &keep);
        Ok(Self { samples: Samples::NonCartesian { trajectory, data }, ..whole })
    }

    /// [`Frame::from_samples`] with all samples, to be written. An image of the frame's matrix cannot be made
    /// of it where samples lie beyond the matrix's own k-space: they would fold into the image.
    ///
    /// Errors: as [`Frame::from_samples`], but for samples beyond the matrix.
    pub fn of_all_samples(
        data: Array2<C32>,
        trajectory: Trajectory,
        matrix: Vec<usize>,
        geometry: Geometry,
    ) -> Result<Self> {
        if data.nrows() == 0 || data.ncols() != trajectory.samples() {
            return Err(Error::Shape {
                what: "samples".into(),
                expected: format!("[coil, {}] as the trajectory has", trajectory.samples()),
                found: rayspin_core::format_shape(data.shape()),
            });
        }
        if matrix.len() != trajectory.dims() {
            return Err(Error::value(
                "matrix",
                format!("{} axes as the trajectory has", trajectory.dims()),
                rayspin_core::format_shape(&matrix),
            ));
        }
        let mut matrix_zyx = [1; 3];
        for (axis, &n) in matrix_zyx.iter_mut().zip(matrix.iter().rev()) {
            *axis = n;
        }
        check_matrix(matrix_zyx)?;
        check_finite("samples", data.iter())?;
        Ok(Self {
            label: Label::default(),
            matrix,
            geometry,
            samples: Samples::NonCartesian { trajectory, data },
            times: None,
            calibration: None,
            interpolated: false,
        })
    }
}

/// The samples of the chosen readouts of a trajectory, as [`readouts`](super::readouts) finds them.
///
/// Errors: a readout that the trajectory lacks.
pub fn samples_of(trajectory: &Trajectory, chosen: &Ranges) -> Result<Vec<usize>> {
    let readouts = super::readouts(trajectory);
    chosen.expect_among("readouts", &Vec::from_iter(0..readouts.len()))?;
    Ok(chosen.below(readouts.len()).flat_map(|readout| readouts[readout].clone()).collect())
}

/// The largest matrix that is taken at its word: beyond it a header is more likely broken than an image that
/// large.
pub const MAX_MATRIX: usize = 16384;

pub(super) fn check_matrix(matrix: [usize; 3]) -> Result<()> {
    let voxels = matrix.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if matrix.iter().any(|&n| n == 0 || n > MAX_MATRIX) || voxels.is_none_or(|v| v > 1 << 34) {
        return Err(Error::value(
            "matrix size",
            format!("1 to {MAX_MATRIX} along each axis, at most 2^34 voxels"),
            format!("{} x {} x {}", matrix[0], matrix[1], matrix[2]),
        ));
    }
    Ok(())
}

pub(super) fn check_finite<'a>(what: &str, values: impl Iterator<Item = &'a C32> + Clone) -> Result<()> {
    // Without an early end, so that it runs in vectors.
    if values.clone().fold(true, |finite, value| finite & value.re.is_finite() & value.im.is_finite()) {
        return Ok(());
    }
    for (index, value) in values.enumerate() {
        if !(value.re.is_finite() && value.im.is_finite()) {
            return Err(Error::NotFinite { what: what.into(), index, found: value.to_string() });
        }
    }
    Ok(())
}

fn reshape(array: ArrayD<C32>, shape: &[usize]) -> Result<ArrayD<C32>> {
    let found = array.shape().to_vec();
    array
        .as_standard_layout()
        .into_owned()
        .into_shape_with_order(shape)
        .map_err(|_| Error::shape("k-space", shape, &found))
}
