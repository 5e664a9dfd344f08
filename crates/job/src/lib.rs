#![doc = include_str!("../README.md")]

pub mod asked;
pub mod ct;
mod error;
pub mod mri;
mod place;

pub use error::{Error, Result};
pub use place::Place;
