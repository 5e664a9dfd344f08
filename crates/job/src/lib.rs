#![doc = include_str!("../README.md")]

pub mod asked;
pub mod ct;
mod error;
pub mod mri;
mod place;
pub mod rows;
mod told;

pub use error::{Error, Result};
pub use place::Place;
pub use told::Told;
