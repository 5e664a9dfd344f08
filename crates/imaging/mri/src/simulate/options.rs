use ndarray::Array2;
use rayspin_core::{C32, C64, Error, Geometry, Result, voxels};

use super::dynamics::{Dynamics, TruthWindow};
use super::field::FieldMap;
use super::phantom::{Contrast, Object, Phantom};
use super::trajectory::{CartesianPattern, Grid, Hardware, Sampling};

/// Largest matrix along an axis.
pub(super) const LARGEST_MATRIX: usize = 4096;
/// Most complex numbers in the coil images or in the samples (16 GiB).
pub(super) const LARGEST_DATA: usize = 1 << 31;
/// Samples of a noise readout.
pub(super) const NOISE_SAMPLES: usize = 256;

/// What to simulate.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SimulateOptions {
    /// What is scanned.
    pub phantom: Object,
    /// Intensities of the Shepp–Logan phantom.
    pub contrast: Contrast,
    /// 2 for slices, 3 for a volume.
    pub dims: usize,
    /// Voxels along x, y, z; in 2-D z counts the slices. One slice shows the 2-D phantom, several are
    /// infinitely thin cuts through the 3-D phantom.
    pub matrix: [usize; 3],
    /// Field of view along x, y, z in mm; the phantom fills it. In 2-D z is the number of slices times their
    /// distance.
    pub fov_mm: [f64; 3],
    /// Receive coils; one is uniform.
    pub coils: usize,
    /// How k-space is filled.
    pub sampling: Sampling,
    /// Limits of gradients and receiver.
    pub hardware: Hardware,
    /// Samples per cycle per field of view along Cartesian lines and spokes.
    pub oversampling: usize,
    /// Repetitions in time of the same object.
    pub repetitions: usize,
    /// How the object changes with time; it stands still when absent.
    pub dynamics: Option<Dynamics>,
    /// Time from one readout to the next in ms: readouts carry time stamps then, in ticks of 2.5 ms. What
    /// changes needs it.
    pub readout_interval_ms: Option<f64>,
    /// What the truth of a changing object is given for; each repetition when absent.
    pub truth_window: Option<TruthWindow>,
    /// Signal-to-noise ratio of the image; no noise when absent. See [`simulate`](super::simulate) for the
    /// definition.
    pub snr: Option<f64>,
    /// Noise covariance Ψ between coils `[coil, coil]`, of any scale; white when absent.
    #[serde(serialize_with = "rows")]
    pub noise_covariance: Option<Array2<C64>>,
    /// The field, where it is inhomogeneous. A sample is then ∫ c ρ e^{−i2πf(x)t} e^{−i2πk·x} dx with t from
    /// the centre sample of each readout, as [`Frame::times`](crate::scan::Frame::times) has it.
    pub field: Option<FieldMap>,
    /// Readouts of noise alone at the start of the scan, 256 samples each.
    pub noise_readouts: usize,
    /// Seed of noise and random patterns.
    pub seed: u64,
}

/// A matrix as a list of rows of real and imaginary parts.
fn rows<S: serde::Serializer>(
    matrix: &Option<Array2<C64>>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let row = |row: ndarray::ArrayView1<'_, C64>| row.iter().map(|z| [z.re, z.im]).collect::<Vec<_>>();
    let rows: Option<Vec<_>> = matrix.as_ref().map(|matrix| matrix.outer_iter().map(row).collect());
    serde::Serialize::serialize(&rows, serializer)
}

impl Default for SimulateOptions {
    /// A fully sampled 256 × 256 slice of 220 mm with 8 coils and no noise.
    fn default() -> Self {
        Self {
            phantom: Object::default(),
            contrast: Contrast::default(),
            dims: 2,
            matrix: [256, 256, 1],
            fov_mm: [220.0, 220.0, 5.0],
            coils: 8,
            sampling: Sampling::Cartesian(CartesianPattern::Full),
            hardware: Hardware::default(),
            oversampling: 1,
            repetitions: 1,
            dynamics: None,
            readout_interval_ms: None,
            truth_window: None,
            snr: None,
            noise_covariance: None,
            field: None,
            noise_readouts: 0,
            seed: 0,
        }
    }
}

impl SimulateOptions {
    /// The object in `dims` dimensions.
    pub(super) fn phantom(&self, dims: usize) -> Phantom {
        Phantom::of_object(self.phantom, dims, self.contrast)
    }

    /// Slices in 2-D, 1 in 3-D.
    pub(super) fn slices(&self) -> usize {
        if self.dims == 2 { self.matrix[2] } else { 1 }
    }

    /// Axes that the field runs along.
    pub(super) fn field_dims(&self) -> usize {
        if self.dims == 3 || self.matrix[2] > 1 { 3 } else { 2 }
    }

    /// `[z, y, x]`.
    pub(super) fn shape_zyx(&self) -> [usize; 3] {
        let [nx, ny, nz] = self.matrix;
        [nz, ny, nx]
    }

    pub(super) fn grid(&self) -> Grid {
        Grid {
            dims: self.dims,
            matrix: if self.dims == 2 { [self.matrix[0], self.matrix[1], 1] } else { self.matrix },
            fov_mm: self.fov_mm,
            oversampling: self.oversampling,
        }
    }

    /// Voxels of one slice in 2-D, of the volume in 3-D: the N of the scale of the samples.
    pub(super) fn encoded_voxels(&self) -> f64 {
        self.matrix[..self.dims].iter().map(|n| *n as f64).product()
    }

    /// Bytes of the coil maps, and of the truth and the field in double precision and as images.
    pub(super) fn image_bytes(&self) -> u64 {
        let both = (size_of::<f64>() + size_of::<C32>()) as u64;
        let images = both * if self.field.is_some() { 2 } else { 1 };
        let maps = (self.coils * size_of::<C32>()) as u64;
        self.matrix.iter().product::<usize>() as u64 * (images + maps)
    }

    /// Bytes of all readouts that are still to be made, `samples` a repetition and slice, and of one
    /// repetition that is kept beside them.
    pub(super) fn readout_bytes(&self, samples: usize, repetitions: usize) -> u64 {
        let trajectory = 3 * size_of::<f32>();
        let sample = (self.coils * size_of::<C32>() + trajectory) as u64;
        let of_slice = samples as u64 * sample;
        let noise = (self.noise_readouts * NOISE_SAMPLES) as u64 * sample;
        // In an inhomogeneous field the samples of a slice come all at once, in double precision.
        let curved = if self.field.is_some() { 2 * of_slice } else { 0 };
        of_slice * self.slices() as u64 * (repetitions as u64 + 1) + curved + noise
    }

    pub(super) fn geometry(&self) -> Result<Geometry> {
        let spacing = std::array::from_fn(|axis| self.fov_mm[axis] / self.matrix[axis] as f64);
        let axes = Geometry::default();
        Geometry::new(spacing, [0.0; 3], axes.read_dir, axes.phase_dir, axes.slice_dir)
    }

    /// Refuses what cannot be simulated, before anything is computed.
    pub(super) fn check(&self) -> Result<()> {
        if self.dims != 2 && self.dims != 3 {
            return Err(Error::value("dimensions", "2 or 3", self.dims));
        }
        if let Some(dims) = self.sampling.dims()
            && dims != self.dims
        {
            return Err(Error::value("dimensions of this sampling", dims.to_string(), self.dims));
        }
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            count(&format!("matrix along {name}"), self.matrix[axis], LARGEST_MATRIX)?;
            if !(self.fov_mm[axis] > 0.0 && self.fov_mm[axis].is_finite()) {
                return Err(Error::value(
                    format!("field of view along {name}"),
                    "a positive length in mm",
                    self.fov_mm[axis],
                ));
            }
        }
        if let Some(field) = &self.field {
            field.check(self.dims)?;
            if matches!(self.sampling, Sampling::Epi { .. }) {
                return Err(Error::value(
                    "sampling in an inhomogeneous field",
                    "readouts that each follow an excitation of their own",
                    "echo-planar trains, of whose lines a file does not state the times",
                ));
            }
        }
        expect_coils(self.coils)?;
        count("repetitions", self.repetitions, 65_536)?;
        count("readout oversampling", self.oversampling, 8)?;
        let [nx, ny, nz] = self.matrix;
        if voxels(&[self.coils, nz, ny, nx])? > LARGEST_DATA {
            return Err(Error::value(
                "coil images",
                format!("at most {LARGEST_DATA} voxels over all coils"),
                format!("{} coils of {nx} × {ny} × {nz}", self.coils),
            ));
        }
        if let Some(dynamics) = &self.dynamics {
            dynamics.check()?;
        }
        match (self.dynamics, self.readout_interval_ms) {
            (_, Some(interval)) if !(interval > 0.0 && interval.is_finite()) => {
                return Err(Error::value("time between readouts in ms", "a positive number", interval));
            }
            (Some(_), None) => {
                return Err(Error::value("time between readouts", "a number, as the object changes", "none"));
            }
            _ => {}
        }
        if self.dynamics.is_some() && self.field.is_some() {
            return Err(Error::value("object that changes", "a homogeneous field", "an inhomogeneous one"));
        }
        if let Some(window) = self.truth_window {
            if self.dynamics.is_none() {
                return Err(Error::value(
                    "window of the truth",
                    "an object that changes",
                    "one that does not",
                ));
            }
            count("window of the truth", window.readouts, usize::MAX)?;
            count("stride of the truth", window.stride, usize::MAX)?;
        }
        match self.snr {
            Some(snr) if !(snr > 0.0 && snr.is_finite()) => {
                Err(Error::value("signal-to-noise ratio", "a positive number", snr))
            }
            None if self.noise_readouts > 0 || self.noise_covariance.is_some() => Err(Error::value(
                "signal-to-noise ratio",
                "a positive number, as a noise covariance or noise readouts are asked for",
                "none",
            )),
            _ if self.noise_readouts > 4096 => {
                Err(Error::value("noise readouts", "0 to 4096", self.noise_readouts))
            }
            _ => Ok(()),
        }
    }
}

/// Errors: no coil, or more than are simulated.
pub(super) fn expect_coils(coils: usize) -> Result<()> {
    count("coils", coils, 256)
}

fn count(what: &str, number: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&number) {
        Ok(())
    } else {
        Err(Error::value(what, format!("1 to {most}"), number))
    }
}
