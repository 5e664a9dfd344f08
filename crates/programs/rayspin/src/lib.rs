//! Rayspin: raw MRI and CT scans into images.
//!
//! This crate re-exports the parts that applications use; each module is a crate of its own with its
//! documentation.

pub use rayspin_core as core;
pub use rayspin_ct as ct;
pub use rayspin_device as device;
pub use rayspin_filter as filter;
pub use rayspin_imaging as imaging;
pub use rayspin_io as io;
pub use rayspin_job as job;
pub use rayspin_kernels as kernels;
pub use rayspin_linop as linop;
pub use rayspin_mri as mri;
pub use rayspin_report as report;
pub use rayspin_run as run;
pub use rayspin_scan as scan;
pub use rayspin_solve as solve;
pub use rayspin_tune as tune;
