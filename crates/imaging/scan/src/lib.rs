#![doc = include_str!("../README.md")]

pub mod ct;
pub mod mri;
