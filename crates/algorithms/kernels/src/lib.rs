//! Algorithms, one folder each.
//!
//! Most folders have the same files:
//!
//! - `mod.rs`: the public functions. They run the best variant.
//! - `variants.rs`: the table of variants, each a [`variant::Variant`].
//! - `reference.rs`: an f64 oracle as plain as the formula.
//! - `cpu.rs` or `cpu/`: CPU variants.
//! - `cuda.rs` or `cuda/`: CUDA programs and their launches.
//! - `README.md`: the maths, the work, the measured table.
//!
//! The kinds of folders:
//!
//! - Ladders for both processors: [`nudft`], [`nufft`].
//! - Ladders of CPU variants: [`coil_mixing`], [`difference`], [`fft`], [`off_resonance`], [`projection`],
//!   [`render`], [`sensitivity`], [`shrink`], [`toeplitz`], [`vector`], [`wavelet`].
//! - Plain functions with `variants.rs`: [`espirit`], [`gram`] (GPU only), [`grappa`], [`select`], [`walsh`].
//! - Plain functions without it: [`density`], [`median`], [`pocs`], [`row_filter`], [`window`].
//!
//! - A **ladder** has several variants for one processor, and cases that `rayspin-ladder` runs. It keeps the
//!   slower variants because a reader learns from each step, and because measurements show the gain of each
//!   step. The steps of `coil_mixing` and `off_resonance` are not measured yet.
//! - A **plain function** has at most one variant for each processor. Its table, if it has one, serves the
//!   tests that compare every variant with the oracle.

pub mod coil_mixing;
mod concrete;
mod cuda;
pub mod density;
pub mod difference;
pub mod espirit;
pub mod fft;
mod flat;
pub mod gram;
pub mod grappa;
pub mod median;
pub mod nudft;
pub mod nufft;
pub mod off_resonance;
pub mod pocs;
mod programs;
pub mod projection;
pub mod render;
pub mod row_filter;
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
mod workspace;

pub use programs::{precompiled, programs};
pub use rayspin_tune::{Build, variant};

/// The ladders, which `rayspin-ladder` runs.
pub fn ladders() -> Vec<Box<dyn rayspin_tune::Ladder>> {
    let mut ladders: Vec<Box<dyn rayspin_tune::Ladder>> = vec![
        Box::new(nudft::Direct::<f32>::adjoint()),
        Box::new(nudft::Direct::<f64>::adjoint()),
        Box::new(nudft::Direct::<f32>::q()),
        Box::new(nudft::Direct::<f64>::q()),
        Box::new(nufft::Fast::type1()),
        Box::new(nufft::Fast::type2()),
        Box::new(fft::ladder()),
        Box::new(toeplitz::ladder()),
        Box::new(off_resonance::ladder()),
        Box::new(vector::ladder()),
        Box::new(difference::ladder()),
        Box::new(sensitivity::ladder()),
        Box::new(shrink::ladder()),
        Box::new(wavelet::ladder()),
        Box::new(wavelet::inverse_ladder()),
        Box::new(coil_mixing::ladder()),
    ];
    ladders.extend(render::Render::all().map(|ladder| Box::new(ladder) as Box<dyn rayspin_tune::Ladder>));
    ladders.extend(
        projection::Projection::all().map(|ladder| Box::new(ladder) as Box<dyn rayspin_tune::Ladder>),
    );
    ladders
}
