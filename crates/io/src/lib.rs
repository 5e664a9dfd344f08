//! Readers and writers for raw scans and images.
//!
//! Every error names its file ([`Error`]); every output appears whole or not at all ([`atomic`]).

pub mod atomic;
pub mod cfl;
mod element;
mod error;
mod format;
mod image_file;
pub mod ismrmrd;
pub mod kernel_cache;
pub mod nifti;
pub mod npy;
pub mod png;
mod scan_file;
mod series_file;

pub use error::{Error, Result};
pub use format::{Format, detect};
pub use image_file::{ImageFile, ReadOptions, Values, WriteOptions, read_image, write_image};
pub use scan_file::{ArrayFrame, ScanFile, ScanOptions, read_scan, trajectory_extent};
pub use series_file::{SeriesShape, SeriesWriter};
