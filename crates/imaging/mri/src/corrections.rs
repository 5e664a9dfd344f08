//! Corrections between the readouts of a scan and its frames: the items of
//! [`rayspin_scan::mri::corrections`].

pub use rayspin_scan::mri::corrections::*;
