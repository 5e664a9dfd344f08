//! Rayspin: raw MRI and CT scans into images.
//!
//! This crate re-exports the parts that applications use; each module is a crate of its own with its documentation.

pub use rayspin_core as core;
pub use rayspin_device as device;
pub use rayspin_imaging as imaging;
pub use rayspin_io as io;
pub use rayspin_kernels as kernels;
pub use rayspin_linop as linop;
pub use rayspin_mri as mri;
pub use rayspin_primitives as primitives;
pub use rayspin_report as report;
pub use rayspin_solve as solve;
pub use rayspin_tune as tune;

/// Every ladder: the algorithms of [`primitives`] and of [`kernels`], by name.
pub fn ladders() -> Vec<Box<dyn tune::Ladder>> {
    let mut all = primitives::ladders();
    all.extend(kernels::ladders());
    all.sort_by_key(|ladder| ladder.about().name);
    all
}
