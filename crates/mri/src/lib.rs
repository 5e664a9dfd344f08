//! MRI scans: simulation, coil sensitivities and reconstruction.

pub mod scan;
pub mod simulate;
