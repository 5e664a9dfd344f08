//! Shapes, units, geometry, errors and progress shared by every Rayspin crate.
//!
//! Conventions, fixed once here and relied on everywhere above:
//!
//! - Arrays are in C order. Images are `[z, y, x]` (2-D `[y, x]`), coil images `[coil, z, y, x]`, samples
//!   `[coil, sample]`.
//! - Images are centred: along an axis of length n the index n/2 (rounded down) is position 0, and positions
//!   run from `-(n/2)` to `n - n/2 - 1`, in voxels.
//! - A [`Trajectory`] is in cycles per field of view, components in the order x, y, z.
//! - The forward transform (image → samples) is `e^{-i2πk·x}`, its adjoint `e^{+i2πk·x}`.
//! - A [`ProjectionGeometry`] has the rays of a CT scan, and a [`VolumeGrid`] the voxels that they cross, in
//!   the scanner's coordinates: z is the axis of rotation. Projections are `[view, row, column]`.
//! - Lengths are mm, angles radian, times s. Patient coordinates are LPS (as in DICOM and ISMRMRD) until a
//!   writer that needs RAS converts.

pub mod cholesky;
mod error;
mod geometry;
mod image;
mod marks;
mod monitor;
mod projection;
mod ranges;
mod real;
mod shape;
pub mod slices;
mod text;
mod trajectory;
pub mod vector;
mod work;

pub use error::{Error, ErrorKind, Result};
pub use geometry::Geometry;
pub use image::Image;
pub use marks::{Mention, as_options, spelled, spelled_whole};
pub use monitor::{Monitor, Progress, Silent};
pub use projection::{Detector, Orbit, ProjectionGeometry, RaySource, View, VolumeGrid};
pub use ranges::Ranges;
pub use real::{C32, C64, Real, all_finite};
pub use shape::{expect_len, expect_shape, format_shape, voxels};
pub use text::{printable, printable_lines, shell_word};
pub use trajectory::{Trajectory, TrajectoryUnits};
pub use work::Work;
