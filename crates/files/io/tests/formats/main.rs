//! Image and array formats: round trips, files exchanged with other programs, damaged and hostile files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bounds;
mod bruker;
mod cfl;
mod convert;
mod dicom;
mod fastmri;
mod hdf5_scans;
mod hostile;
mod integers;
mod matlab;
mod metaimage;
mod nifti;
mod npy;
mod png;
mod projections;
#[path = "../../../../../tests/real_data.rs"]
mod real_data;
mod samples;
mod series;
mod support;
mod table;
mod twix;
mod volumes;
