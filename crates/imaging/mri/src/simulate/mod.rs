//! Scans whose truth is known: closed-form k-space of phantoms on any trajectory.
//!
//! Samples are never computed from a raster. The object is a sum of ellipses or ellipsoids, and each coil
//! sensitivity is a low-order trigonometric polynomial. The continuous Fourier transform of their product has
//! a closed form. So a reconstruction is compared with a truth that it did not help to make.
//!
//! ```
//! use rayspin_core::Monitor;
//! use rayspin_mri::simulate::{SimulateOptions, simulate, trajectory::{Sampling, SpokeAngles}};
//!
//! let options = SimulateOptions {
//!     matrix: [64, 64, 1],
//!     coils: 4,
//!     sampling: Sampling::Radial { spokes: 50, angles: SpokeAngles::Golden },
//!     snr: Some(50.0),
//!     ..SimulateOptions::default()
//! };
//! let simulation = simulate(&options, &Monitor::silent())?;
//! assert_eq!(simulation.scan.acquisitions.len(), 50);
//! assert_eq!(simulation.truth.shape_zyx(), [1, 64, 64]);
//! assert_eq!(simulation.maps.dim(), (4, 1, 64, 64));
//! # Ok::<(), rayspin_core::Error>(())
//! ```

mod coils;
mod dynamics;
mod field;
mod noise;
mod options;
mod phantom;
mod scan;
#[cfg(test)]
mod tests;
pub mod trajectory;

pub use coils::CoilSensitivities;
pub use dynamics::{Dynamics, TruthWindow};
pub use field::{FieldMap, FieldShape};
pub use noise::neighbour_covariance;
pub use options::SimulateOptions;
pub use phantom::{Contrast, Ellipsoid, Object, Phantom};
pub use scan::{Simulation, simulate};

use options::LARGEST_MATRIX;
