//! What `rayspin.dask` needs of this machine: its GPUs, hashes of files, and claims on outputs.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rayspin::device::cuda;
use rayspin::io::atomic;
use rayspin::report::record::FileEntry;

use crate::error::of_file;
use crate::processor::Processor;
use crate::signals::Detached;
use crate::words::Call;

/// A claim on outputs, which nobody else gets meanwhile: what `claim` returns.
#[pyclass(frozen, module = "rayspin._rayspin")]
struct Claim(Mutex<Option<atomic::Claim>>);

#[pymethods]
impl Claim {
    /// Gives the claim up.
    ///
    /// `() -> None`
    fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Claims all of these outputs. Returns None where another process or thread has one of them.
///
/// `(outputs: Sequence[str | PathLike[str]]) -> Claim | None`
#[pyfunction]
fn claim(outputs: Vec<PathBuf>) -> PyResult<Option<Claim>> {
    let claim = atomic::Claim::on(&outputs).map_err(|error| of_file(Call::Any, &error))?;
    Ok(claim.map(|claim| Claim(Mutex::new(Some(claim)))))
}

/// Files as run records have them: name, bytes, and the 64 digits of the hash.
type Entries = Vec<(String, u64, String)>;

/// The files that are read for an input.
///
/// `(path: str | PathLike[str]) -> list[tuple[str, int, str]]`
#[pyfunction]
fn read_files(py: Python<'_>, path: PathBuf) -> PyResult<Entries> {
    entries(py, rayspin::io::sources(&path))
}

/// The files that an image of this many stacks of slices is written to.
///
/// `(path: str | PathLike[str], stacks: int) -> list[tuple[str, int, str]]`
#[pyfunction]
fn written_files(py: Python<'_>, path: PathBuf, stacks: usize) -> PyResult<Entries> {
    let names = rayspin::io::stack_paths(&path, stacks).map_err(|error| of_file(Call::Any, &error))?;
    entries(py, names.iter().flat_map(rayspin::io::parts).collect())
}

fn entries(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<Entries> {
    let entry = |file: &PathBuf| FileEntry::read(file).map(|entry| (entry.path, entry.bytes, entry.blake3));
    let entries = py.detached(|| files.iter().map(entry).collect::<Result<Entries, _>>())?;
    entries.map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Opens the device, or the GPUs, that `device` names. Raises the errors of `rayspin.recon` if one does not
/// work.
///
/// `(device: str) -> None`
#[pyfunction]
fn open_device(device: &str) -> PyResult<()> {
    Processor::several(device).map(drop)
}

/// The number of GPUs that this process sees.
///
/// `() -> int`
#[pyfunction]
fn gpus() -> usize {
    cuda::count().unwrap_or(0)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Claim>()?;
    module.add_function(wrap_pyfunction!(claim, module)?)?;
    module.add_function(wrap_pyfunction!(read_files, module)?)?;
    module.add_function(wrap_pyfunction!(written_files, module)?)?;
    module.add_function(wrap_pyfunction!(open_device, module)?)?;
    module.add_function(wrap_pyfunction!(gpus, module)?)
}
