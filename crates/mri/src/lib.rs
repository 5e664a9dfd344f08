//! MRI scans: simulation, coil sensitivities and reconstruction.

pub mod budget;
mod crop;
pub mod grappa;
pub mod maps;
pub mod partial;
pub mod prepare;
pub mod recon;
pub mod scan;
pub mod simulate;
