//! Where the samples of a simulated scan lie: shots of points in cycles per field of view, in time order.

mod cartesian;
mod epi;
mod poisson;
mod radial;
mod scatter;
mod spiral;

pub use cartesian::CartesianPattern;
pub use poisson::poisson_disc;
pub use radial::{SphereOrder, SpokeAngles};
pub use spiral::{SpiralReadout, spiral_readout};

use ndarray::Array2;
use rayspin_core::{Error, Result};
use rayspin_device::cpu::expect_memory;

use crate::scan::{Counters, Flags, Limits, TrajectoryKind};

/// Gyromagnetic ratio of the proton over 2π, MHz/T (CODATA).
pub const GAMMA_MHZ_PER_T: f64 = 42.577478;

/// Most samples of a readout and most readouts of one loop that an ISMRMRD file can count.
const COUNTER_LIMIT: usize = 65_535;

/// How k-space is filled.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Lines along x on the grid, in 2-D or 3-D.
    Cartesian(CartesianPattern),
    /// 2-D spokes through the centre.
    Radial {
        /// Spokes per slice and repetition.
        spokes: usize,
        /// Their order.
        angles: SpokeAngles,
    },
    /// 2-D Archimedean spirals from the centre outward, designed from the hardware's limits.
    Spiral {
        /// Interleaves per slice and repetition.
        interleaves: usize,
        /// R: full sampling at this pitch takes R times as many interleaves; 1 samples fully.
        acceleration: usize,
    },
    /// 2-D echo-planar trains of lines, sampled during the ramps too.
    Epi {
        /// Trains (interleaved along y) per slice and repetition.
        shots: usize,
    },
    /// 3-D spokes through the centre.
    Kooshball {
        /// Spokes per repetition.
        spokes: usize,
        /// Their order.
        order: SphereOrder,
    },
    /// 2-D radial in plane, Cartesian along z.
    StackOfStars {
        /// Spokes per partition.
        spokes: usize,
        /// Their order.
        angles: SpokeAngles,
    },
    /// 2-D spirals in plane, Cartesian along z.
    StackOfSpirals {
        /// Interleaves per partition.
        interleaves: usize,
        /// R, as of [`Sampling::Spiral`], in plane.
        acceleration: usize,
    },
    /// Points drawn uniformly from the k-space box −n/2 … n/2, in 2-D or 3-D.
    Random {
        /// Readouts.
        shots: usize,
        /// Samples of each.
        samples: usize,
    },
}

/// What the gradients and the receiver can do.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Hardware {
    /// Largest gradient amplitude, mT/m.
    pub gradient_mt_m: f64,
    /// Largest slew rate, T/m/s.
    pub slew_t_m_s: f64,
    /// Time between samples, µs.
    pub dwell_us: f64,
}

impl Default for Hardware {
    /// 40 mT/m, 150 T/m/s, 4 µs.
    fn default() -> Self {
        Self { gradient_mt_m: 40.0, slew_t_m_s: 150.0, dwell_us: 4.0 }
    }
}

/// The image for a trajectory to resolve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// 2 or 3.
    pub dims: usize,
    /// Voxels along x, y, z; z is ignored in 2-D.
    pub matrix: [usize; 3],
    /// Field of view along x, y, z in mm; z is ignored in 2-D.
    pub fov_mm: [f64; 3],
    /// Samples per cycle per field of view along readouts (Cartesian lines and spokes).
    pub oversampling: usize,
}

/// One readout.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    /// Flags besides the flags of its place in the slice and in the scan.
    pub flags: Flags,
    /// Counters; slice and repetition are left 0.
    pub counters: Counters,
    /// The sample nearest the centre of k-space along the readout.
    pub centre_sample: usize,
    /// `[sample, dim]` in cycles per field of view, in time order.
    pub points: Array2<f64>,
}

/// The readouts of one slice (2-D) or of the volume (3-D), in the order in which they are played.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// As the header names it.
    pub kind: TrajectoryKind,
    /// Whether the counters say it all and files carry no trajectory.
    pub on_grid: bool,
    /// The readouts.
    pub shots: Vec<Shot>,
    /// Range of the first phase-encoding (or shot) counter.
    pub step_1: Limits,
    /// Range of the second phase-encoding counter.
    pub step_2: Limits,
    /// Acceleration along both phase encodings, where it is uniform.
    pub acceleration: Option<[usize; 2]>,
    /// What the design chose, one sentence each.
    pub notes: Vec<String>,
}

impl Sampling {
    /// Whether [`Grid::oversampling`] changes it.
    pub fn oversamples(&self) -> bool {
        matches!(
            self,
            Self::Cartesian(_) | Self::Radial { .. } | Self::Kooshball { .. } | Self::StackOfStars { .. }
        )
    }

    /// The number of dimensions that this sampling has, or `None` where it has either.
    pub fn dims(&self) -> Option<usize> {
        match self {
            Self::Cartesian(_) | Self::Random { .. } => None,
            Self::Radial { .. } | Self::Spiral { .. } | Self::Epi { .. } => Some(2),
            Self::Kooshball { .. } | Self::StackOfStars { .. } | Self::StackOfSpirals { .. } => Some(3),
        }
    }

    /// The readouts of one repetition. Golden angles run on from repetition to repetition, and random
    /// patterns are drawn anew; everything else repeats.
    ///
    /// Errors: dimensions that this sampling does not have, counts of 0 or beyond what a file can number (65
    /// 535), accelerations out of range, gradients too weak to finish a readout.
    ///
    /// ```
    /// use rayspin_mri::simulate::trajectory::{Grid, Hardware, Sampling, SpokeAngles};
    ///
    /// let grid = Grid { dims: 2, matrix: [32, 32, 1], fov_mm: [220.0; 3], oversampling: 2 };
    /// let radial = Sampling::Radial { spokes: 13, angles: SpokeAngles::Golden };
    /// let layout = radial.layout(&grid, &Hardware::default(), 0, 0)?;
    /// assert_eq!((layout.shots.len(), layout.on_grid), (13, false));
    /// assert!((layout.reach() - 16.0).abs() < 0.6); // n/2 cycles per field of view
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn layout(&self, grid: &Grid, hardware: &Hardware, seed: u64, repetition: usize) -> Result<Layout> {
        grid.check()?;
        hardware.check()?;
        if let Some(dims) = self.dims()
            && dims != grid.dims
        {
            return Err(Error::value("dimensions of this sampling", dims.to_string(), grid.dims));
        }
        let layout = match self {
            Self::Cartesian(pattern) => cartesian::layout(pattern, grid, seed, repetition)?,
            Self::Radial { spokes, angles } => radial::stars(grid, *spokes, *angles, 1, repetition)?,
            Self::StackOfStars { spokes, angles } => {
                radial::stars(grid, *spokes, *angles, grid.matrix[2], repetition)?
            }
            Self::Kooshball { spokes, order } => radial::kooshball(grid, *spokes, *order, repetition)?,
            Self::Spiral { interleaves, acceleration } => {
                spiral::spirals(grid, hardware, *interleaves, *acceleration, 1)?
            }
            Self::StackOfSpirals { interleaves, acceleration } => {
                spiral::spirals(grid, hardware, *interleaves, *acceleration, grid.matrix[2])?
            }
            Self::Epi { shots } => epi::trains(grid, hardware, *shots)?,
            Self::Random { shots, samples } => scatter::scatter(grid, *shots, *samples, seed, repetition)?,
        };
        if layout.shots.is_empty() {
            return Err(Error::value("sampling", "at least one readout", "none"));
        }
        Ok(layout)
    }
}

impl Shot {
    /// Times of its samples in s, 0 at the centre sample, with the dwell time as files hold it.
    pub(super) fn times(&self, hardware: &Hardware) -> impl Iterator<Item = f64> + use<> {
        let (dwell, centre) = (f64::from(hardware.dwell_us as f32) * 1e-6, self.centre_sample);
        (0..self.points.nrows()).map(move |sample| (sample as f64 - centre as f64) * dwell)
    }
}

impl Layout {
    /// The largest |k| of any point.
    pub fn reach(&self) -> f64 {
        let squares = self.shots.iter().flat_map(|shot| shot.points.rows()).map(|k| k.dot(&k));
        squares.fold(0.0, f64::max).sqrt()
    }
}

impl Grid {
    fn check(&self) -> Result<()> {
        if self.dims != 2 && self.dims != 3 {
            return Err(Error::value("dimensions", "2 or 3", self.dims));
        }
        for axis in 0..self.dims {
            expect_count("matrix", self.matrix[axis], super::LARGEST_MATRIX)?;
            if !(self.fov_mm[axis] > 0.0 && self.fov_mm[axis].is_finite()) {
                return Err(Error::value("field of view", "a positive length in mm", self.fov_mm[axis]));
            }
        }
        expect_count("readout oversampling", self.oversampling, 8)
    }
}

impl Hardware {
    fn check(&self) -> Result<()> {
        for (what, value) in [
            ("gradient limit in mT/m", self.gradient_mt_m),
            ("slew limit in T/m/s", self.slew_t_m_s),
            ("dwell time in µs", self.dwell_us),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::value(what, "a positive number", value));
            }
        }
        Ok(())
    }

    /// The amplitude in mT/m that neither exceeds the limit nor moves more than one cycle per `fov_mm` a
    /// dwell, which
    /// would leave gaps along the readout: min(G, 1/(γ · dwell · FOV)).
    fn readout_gradient(&self, fov_mm: f64) -> f64 {
        self.gradient_mt_m.min(1e6 / (GAMMA_MHZ_PER_T * self.dwell_us * fov_mm))
    }
}

/// k-space speed in cycles/m/s of a gradient in mT/m (and acceleration in cycles/m/s² of a slew rate in
/// mT/m/s).
fn cycles_per_metre(gradient_mt_m: f64) -> f64 {
    gradient_mt_m * 1e-3 * GAMMA_MHZ_PER_T * 1e6
}

fn expect_count(what: &str, number: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&number) {
        Ok(())
    } else {
        Err(Error::value(what, format!("1 to {most}"), number))
    }
}

/// Refuses a scan of more than 2²⁸ points, or of more than there is memory for, before it is allocated.
fn expect_total(what: &str, readouts: usize, samples: usize) -> Result<()> {
    match readouts.checked_mul(samples) {
        // Points of up to three components in double precision.
        Some(total) if total <= 1 << 28 => expect_memory(what, (3 * size_of::<f64>() * total) as u64),
        _ => Err(Error::value(
            what,
            format!("at most {} points", 1 << 28),
            format!("{readouts} readouts of {samples} samples"),
        )),
    }
}

/// Counter limits 0 … n−1.
fn limits(n: usize, centre: usize) -> Limits {
    Limits { minimum: 0, maximum: n.saturating_sub(1), centre }
}

#[cfg(test)]
mod tests;
