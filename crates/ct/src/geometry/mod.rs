//! The geometry of a scan in the conventions of other programs.

mod astra;

pub use astra::{from_astra, to_astra};
