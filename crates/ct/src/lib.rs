#![doc = include_str!("../README.md")]

pub mod analytic;
pub mod geometry;
pub mod phantom;
