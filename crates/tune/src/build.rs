//! A program in one of its forms: what continuous integration compiles and what is packed beforehand.

use rayspin_device::cuda::{Define, Source};

/// A program as it is compiled for use.
#[derive(Debug)]
pub struct Build {
    /// Its source.
    pub source: &'static Source,
    /// The macros that fix one of its forms.
    pub defines: Vec<Define>,
    /// Bytes of registers that its kernels may spill, with the reason beside the row.
    pub spill_bytes: u32,
}
