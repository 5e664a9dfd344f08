//! The geometry of a scan in the conventions of other programs.

mod astra;
mod rtk;
mod tigre;

pub use astra::{from_astra, from_vectors, to_astra, to_vectors};
pub use rtk::{RtkProjection, from_rtk, to_rtk};
pub use tigre::{TigreView, from_tigre, to_tigre};
