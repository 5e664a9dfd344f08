#![doc = include_str!("../README.md")]

pub mod geometry;
pub mod phantom;
