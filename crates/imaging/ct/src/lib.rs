#![doc = include_str!("../README.md")]

pub mod analytic;
pub mod corrections;
pub mod geometry;
pub mod methods;
pub mod phantom;
pub mod recon;
pub mod scan;
pub mod simulate;
mod solving;
