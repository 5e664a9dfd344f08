//! Run records of reconstructions in memory, as the command writes them.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayspin::device::Device;
use rayspin::report::RunRecorder;

/// A record that begins now.
pub(crate) fn start(device: &Device) -> RunRecorder {
    let threads = device.cpu_side().threads();
    RunRecorder::start("rayspin (Python)", env!("CARGO_PKG_VERSION"), [""; 0], device.describe(), threads)
}

/// The record as JSON, with the notes of the run.
pub(crate) fn with_notes(mut recorder: RunRecorder, notes: &[String]) -> PyResult<String> {
    for note in notes {
        recorder.note(note.as_str());
    }
    let record = recorder.finish(rayspin::device::cpu::peak_memory());
    record.to_json().map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// A record as a dictionary.
pub(crate) fn read<'py>(py: Python<'py>, record: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (record,))
}
