//! MRI scans: simulation, coil sensitivities and reconstruction.

pub mod budget;
mod crop;
pub mod maps;
pub mod recon;
pub mod scan;
pub mod simulate;
