//! Run records of reconstructions in memory, as the command writes them.

use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayspin::core::{Monitor, Ranges};
use rayspin::ct::corrections::Correction;
use rayspin::device::Device;
use rayspin::mri::methods::{Parameters, Value};
use rayspin::mri::recon::{ReconOptions, Selection};
use rayspin::mri::scan::FrameOptions;
use rayspin::report::RunRecorder;

use crate::parameters::recorded_of;

/// A record that begins now.
pub(crate) fn start(device: &Device) -> RunRecorder {
    let threads = device.cpu_side().threads();
    RunRecorder::start("rayspin (Python)", env!("CARGO_PKG_VERSION"), [""; 0], device.describe(), threads)
}

/// A method's name and its parameters as they are used.
pub(crate) fn method(recorder: &mut RunRecorder, name: &'static str, of: &(impl Parameters + ?Sized)) {
    recorder.parameter("method", name);
    for param in of.table() {
        recorder.parameter(param.name, recorded_of(&of.get(param.name).unwrap_or(Value::Nothing)));
    }
}

/// What decides the images besides the method and what is given as arrays.
pub(crate) fn choice(
    recorder: &mut RunRecorder,
    selection: &Selection,
    frames: &FrameOptions,
    options: &ReconOptions,
) {
    let text = |ranges: &Option<Ranges>| serde_json::json!(ranges.as_ref().map(Ranges::to_string));
    recorder.parameter("encoding", serde_json::json!(selection.encoding));
    recorder.parameter("contrast", serde_json::json!(selection.contrast));
    recorder.parameter("cardiac phase", serde_json::json!(selection.phase));
    recorder.parameter("set", serde_json::json!(selection.set));
    recorder.parameter("slice", text(&selection.slice));
    recorder.parameter("repetition", text(&selection.repetition));
    recorder.parameter("readouts", text(&frames.readouts));
    let window = selection.window;
    recorder.parameter("window", serde_json::json!(window.map(|window| window.readouts)));
    recorder.parameter("stride", serde_json::json!(window.map(|window| window.stride)));
    recorder.parameter("frames", serde_json::json!(window.and_then(|window| window.frames)));
    recorder.parameter("sensitivities", serde_json::json!(options.sensitivities));
    recorder.parameter("calibration", serde_json::json!(options.calibration));
    recorder.parameter("density", serde_json::json!(options.density));
    recorder.parameter("compression", serde_json::json!(options.prepare.compression));
    recorder.parameter(
        "field tolerance",
        serde_json::json!(options.field_map.is_some().then_some(options.field_tolerance)),
    );
    recorder.parameter("independent", options.independent);
}

/// A correction's name and its parameters as they are used.
pub(crate) fn correction(of: &dyn Correction) -> serde_json::Value {
    let mut entry = serde_json::Map::from_iter([("name".to_owned(), of.about().name.into())]);
    entry.extend(
        of.table()
            .iter()
            .map(|param| (param.name.to_owned(), recorded_of(&of.get(param.name).unwrap_or(Value::Nothing)))),
    );
    serde_json::Value::Object(entry)
}

/// The record as JSON, with the stages and the notes of the run.
pub(crate) fn finish(mut recorder: RunRecorder, monitor: &Monitor<'_>, notes: &[String]) -> PyResult<String> {
    for (name, seconds) in monitor.stages() {
        recorder.within(name.as_str(), Duration::from_secs_f64(seconds));
    }
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
