//! Algorithms, one folder each, with every variant from naive to best.
//!
//! Each folder has the same shape: `mod.rs` (public functions and the variant table), `reference.rs` (an f64 oracle as
//! plain as the formula), `cpu.rs` or `cpu/` (CPU variants), and `README.md` (the maths, the work to be done, the
//! measured table). The public functions run the best variant; [`variant::Variant`] describes the others.

pub mod coil_mixing;
mod concrete;
mod cuda;
pub mod density;
pub mod difference;
pub mod espirit;
pub mod fft;
pub mod gram;
pub mod grappa;
mod kept;
pub mod nudft;
pub mod nufft;
pub mod off_resonance;
pub mod pocs;
pub mod select;
pub mod sensitivity;
pub mod shrink;
#[cfg(test)]
mod spectra;
pub mod toeplitz;
pub mod vector;
pub mod walsh;
pub mod wavelet;
pub mod window;

pub use cuda::{precompiled, programs};
pub use rayspin_tune::{Build, variant};

/// The algorithms here that are ladders: the transforms of every reconstruction.
pub fn ladders() -> Vec<Box<dyn rayspin_tune::Ladder>> {
    vec![
        Box::new(nudft::Direct::<f32>::adjoint()),
        Box::new(nudft::Direct::<f64>::adjoint()),
        Box::new(nudft::Direct::<f32>::q()),
        Box::new(nudft::Direct::<f64>::q()),
        Box::new(nufft::Fast::type1()),
        Box::new(nufft::Fast::type2()),
    ]
}
