//! Readers and writers for raw scans and images.
//!
//! Every error names its file ([`Error`]); every output appears whole or not at all ([`atomic`]).

mod apart;
mod array_series;
mod array_windows;
mod arrays;
pub mod atomic;
pub mod cfl;
pub mod data_exchange;
mod data_files;
mod dicom;
mod element;
mod error;
mod folder;
mod format;
mod formats;
mod gzip;
mod hdf5_file;
mod image_file;
mod input;
pub mod ismrmrd;
pub mod kernel_cache;
mod meta_image;
pub mod nifti;
pub mod npy;
mod nrrd;
mod number_type;
mod nxtomo;
pub mod png;
mod projections;
mod raw;
mod raw_image;
pub mod rtk;
mod scan_file;
mod series_file;
mod slices;
mod tiff;
mod twix;
mod txrm;

pub use apart::expect_apart;
pub use array_series::{ArraySeries, ArraySource};
pub use array_windows::ArrayWindows;
pub use arrays::{Arrays, array_memory, numbers_images, read_array, read_maps, write_coil_array};
pub use error::{Error, Result};
pub use folder::replaces_folder;
pub use format::{
    Detail, Format, ImageWriter, Property, Sample, Scans, describe, detect, endings, expect_ending, names,
    parts, sources,
};
pub use formats::FORMATS;
pub use image_file::{ImageFile, Values, WriteOptions, read_any_image, read_image, read_volume, write_image};
pub use input::{Held, Input, read_text};
pub use number_type::NumberType;
pub use projections::{Projections, Views, read_views};
pub use raw::{RawOptions, scan_of_arrays};
pub use scan_file::{ArrayFrame, ScanFile, ScanOptions, holds_scan, read_scan, read_trajectory, write_scan};
pub use series_file::{SeriesShape, SeriesWriter, stack_paths};
pub use slices::{AnyImage, Pixel, Slices};
