#![doc = include_str!("../README.md")]

pub mod asked;
mod compute_target;
pub mod ct;
mod error;
pub mod mri;
mod remedies;
pub mod rows;
mod told;

pub use compute_target::ComputeTarget;
pub use error::{Error, Result};
pub use remedies::{remedies, remedy};
pub use told::Told;
