#![doc = include_str!("../README.md")]

pub mod asked;
pub mod ct;
mod error;
pub mod mri;
mod place;
mod remedies;
pub mod rows;
mod told;

pub use error::{Error, Result};
pub use place::Place;
pub use remedies::{remedies, remedy};
pub use told::Told;
