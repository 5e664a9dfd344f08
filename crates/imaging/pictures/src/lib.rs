//! Image quality metrics and display windowing.
//!
//! [`metrics`] compares an image with a reference (MSE, PSNR, SNR, NRMSE, SSIM); [`display`] turns images
//! into 8-bit
//! pictures: windows, montages, error maps, integer enlargement; [`phantom`] has the tables of test objects.
//! Images are `ndarray` views in the conventions of `rayspin-core`; nothing here reads or writes files.

pub mod display;
pub mod metrics;
pub mod phantom;

pub use metrics::{CompareOptions, Compared, Numbers, Quality, compare};
