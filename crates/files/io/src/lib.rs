//! Readers and writers for raw scans and images.
//!
//! Every error names its file ([`Error`]); every output appears whole or not at all ([`atomic`]).

mod apart;
mod array_file;
mod array_series;
mod array_windows;
mod arrays;
pub mod atomic;
mod axis_order;
mod bart;
pub mod bids;
pub mod cfl;
pub mod data_exchange;
mod data_files;
mod detect;
mod dicom;
mod element;
mod error;
mod folder;
mod format;
mod formats;
mod gzip;
mod hdf5_file;
mod identity;
mod image_file;
pub mod ismrmrd;
pub mod kernel_cache;
mod meta_image;
pub mod nifti;
pub mod npy;
mod nrrd;
mod number_type;
mod nxtomo;
mod opening;
pub mod png;
mod projections;
mod projections_file;
pub mod pulseq;
mod raw;
mod raw_image;
pub mod rtk;
mod scan_file;
mod scan_reader;
mod series_file;
mod series_source;
mod slices;
mod tiff;
mod twix;
mod txrm;
mod values;
mod write_options;

pub use apart::expect_apart;
pub use array_file::{array_memory, numbers_images, read_array, read_maps, write_coil_array};
pub use array_series::{ArraySeries, ArraySource};
pub use array_windows::ArrayWindows;
pub use arrays::Arrays;
pub use axis_order::AxisOrder;
pub use detect::{Input, describe, detect, endings, expect_ending, names, parts, replaces_folder, sources};
pub use error::{Error, Result};
pub use format::{Detail, Format, ImageWriter, Property, Sample, Scans};
pub use formats::FORMATS;
pub use image_file::{ImageFile, read_any_image, read_image, read_volume, write_image};
pub use number_type::NumberType;
pub use opening::{Held, read_text};
pub use projections::Projections;
pub use projections_file::{Views, read_views};
pub use raw::{RawOptions, scan_of_arrays};
pub use scan_file::{
    AXES, ArrayFrame, ScanFile, ScanOptions, holds_scan, open_scan, read_scan, read_trajectory, write_scan,
};
pub use scan_reader::ScanReader;
pub use series_file::{SeriesShape, SeriesWriter, stack_paths};
pub use series_source::SeriesSource;
pub use slices::{AnyImage, Pixel, Slices};
pub use values::Values;
pub use write_options::WriteOptions;
