//! MRI scans: simulation, coil sensitivities and reconstruction.

pub mod basis;
pub mod corrections;
mod crop {
    pub(crate) use rayspin_scan::mri::centre_crop;
}
pub mod encoding;
pub mod grappa;
pub mod laws;
pub mod maps;
pub mod methods;
pub mod partial;
pub mod prepare;
pub mod recon;
pub mod scan;
pub mod simulate;

pub use rayspin_run::{choices, params};
