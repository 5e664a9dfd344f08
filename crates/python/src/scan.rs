//! `rayspin.read_scan`: raw MRI scans in memory.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use rayspin::core::{Error, Monitor, format_shape};
use rayspin::io::{ArrayFrame, ScanFile, ScanOptions};

use crate::error::{of_file, raised};

/// What was read.
pub(crate) enum Held {
    /// A scan with a header.
    Whole(Box<rayspin::mri::scan::Scan>),
    /// The samples of one image, from arrays.
    Image(Box<ArrayFrame>),
}

/// A raw MRI scan.
#[pyclass(frozen, module = "rayspin")]
pub(crate) struct Scan {
    pub(crate) held: Arc<Held>,
}

#[pymethods]
impl Scan {
    /// What the reader assumed or repaired.
    #[getter]
    fn notes(&self) -> Vec<String> {
        match &*self.held {
            Held::Whole(scan) => scan.notes.clone(),
            Held::Image(array) => array.notes.clone(),
        }
    }

    /// The number of acquisitions; 1 for arrays without a header.
    fn __len__(&self) -> usize {
        match &*self.held {
            Held::Whole(scan) => scan.acquisitions.len(),
            Held::Image(_) => 1,
        }
    }

    fn __repr__(&self) -> String {
        match &*self.held {
            Held::Whole(scan) => format!("Scan({} acquisitions)", scan.acquisitions.len()),
            Held::Image(array) => {
                format!(
                    "Scan(one image of {} coils, {})",
                    array.frame.coils(),
                    format_shape(&array.frame.matrix)
                )
            }
        }
    }
}

/// Reads a raw MRI scan: ISMRMRD (`.h5`), or k-space as an array (`.cfl`, `.npy`, `.npz`).
#[pyfunction]
#[pyo3(signature = (path, *, trajectory=None, matrix=None))]
pub(crate) fn read_scan(
    py: Python<'_>,
    path: PathBuf,
    trajectory: Option<PathBuf>,
    matrix: Option<Vec<usize>>,
) -> PyResult<Scan> {
    let options = ScanOptions { trajectory, matrix, ..ScanOptions::default() };
    let read = py.detach(|| rayspin::io::read_scan(&path, &options, &Monitor::silent()));
    let held = match read.map_err(|error| of_file(&error))? {
        ScanFile::Scan(scan) => Held::Whole(scan),
        ScanFile::Frame(array) => Held::Image(array),
        ScanFile::Series(_) => {
            let (expected, found) = ("one image, or a scan with a header", "arrays of several images");
            return Err(raised(Error::value(path.display().to_string(), expected, found)));
        }
    };
    Ok(Scan { held: Arc::new(held) })
}
