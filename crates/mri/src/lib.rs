//! MRI scans: simulation, coil sensitivities and reconstruction.

mod crop;
pub mod maps;
pub mod recon;
pub mod scan;
pub mod simulate;
