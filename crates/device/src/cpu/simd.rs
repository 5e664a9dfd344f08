//! SIMD with run-time dispatch: the one place that names the SIMD library, and the vector functions it lacks.

pub use fearless_simd::prelude;
pub use fearless_simd::{Level, Simd, dispatch};
