//! The geometry of a scan in the conventions of other programs.

mod astra;

pub use astra::{from_astra, from_vectors, to_astra, to_vectors};
