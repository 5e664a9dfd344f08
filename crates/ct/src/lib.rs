#![doc = include_str!("../README.md")]

pub mod analytic;
pub mod geometry;
pub mod phantom;
pub mod scan;
pub mod simulate;
