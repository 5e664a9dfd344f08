//! What the run record and the screen say of a reconstruction.

use rayspin_core::Ranges;
use rayspin_mri::maps::Centre;
use rayspin_mri::recon::{Certificate, ReconOptions, Solve};
use rayspin_mri::scan::Frame;
use rayspin_report::RunRecorder;
use rayspin_run::Value;

use super::request::Request;
use crate::asked;

/// The transform, and where there are several plans of it the first image that this one makes.
pub fn name_of(certificate: &Certificate, all: &[Certificate]) -> String {
    let name = &certificate.transform;
    if all.iter().all(|other| other.first == certificate.first) {
        return name.clone();
    }
    format!("{name}, slice {} repetition {}", certificate.first.slice, certificate.first.repetition)
}

/// What was chosen: the method with all its parameters, by their names, and what else decides the image.
pub(super) fn parameters(recorder: &mut RunRecorder, request: &Request, options: &ReconOptions) {
    let Request { frames, selection, .. } = request;
    asked::record(recorder, &*options.method, |name| request.method.file(name).cloned());
    recorder.parameter("combine", combination(options));
    let field_map = request.field_map.as_ref().map(|map| map.recorded());
    if field_map.is_some() {
        recorder.parameter("field tolerance", options.field_tolerance);
    }
    recorder.parameter("field map", serde_json::json!(field_map));
    recorder.parameter("epsilon", options.nufft_tolerance);
    recorder.parameter("density", serde_json::json!(options.density));
    recorder.parameter("prewhiten", options.prepare.prewhiten);
    let covariance =
        options.prepare.noise_covariance.as_ref().map(|covariance| match &request.noise_covariance {
            Some(path) => serde_json::json!(path),
            None => serde_json::json!(covariance.shape()),
        });
    recorder.parameter("noise covariance", serde_json::json!(covariance));
    recorder.parameter("compression", serde_json::json!(options.prepare.compression));
    let maps = request.maps.as_ref().map(|maps| maps.recorded());
    recorder.parameter("maps", serde_json::json!(maps));
    recorder.parameter("trajectory", serde_json::json!(request.arrays.trajectory));
    recorder.parameter("slice", text(&selection.slice));
    recorder.parameter("repetition", text(&selection.repetition));
    recorder.parameter("readouts", text(&frames.readouts));
    let window = selection.window;
    recorder.parameter("window", serde_json::json!(window.map(|window| window.readouts)));
    recorder.parameter("stride", serde_json::json!(window.map(|window| window.stride)));
    recorder.parameter("independent", options.independent);
    recorder.parameter("centre line", serde_json::json!(frames.centres.line));
    recorder.parameter("centre partition", serde_json::json!(frames.centres.partition));
    recorder.parameter("reversed centre", serde_json::json!(frames.centres.reversed));
    let units = frames.units.map(|units| units.to_string());
    recorder.parameter("trajectory units", serde_json::json!(units));
    recorder.parameter("trajectory field of view", serde_json::json!(frames.trajectory.fov));
    recorder.parameter("trajectory weights", frames.trajectory.weights);
    recorder.parameter("frames", serde_json::json!(window.and_then(|window| window.frames)));
}

/// What the scan decided: the matrix and field of view of the image, its counters, and how coil maps are estimated, where they are.
pub(super) fn used(recorder: &mut RunRecorder, frame: &Frame, options: &ReconOptions, estimates_maps: bool) {
    let sizes = || frame.matrix.iter().rev();
    let fov: Vec<f64> =
        sizes().zip(frame.geometry.spacing_mm).map(|(&n, spacing)| n as f64 * spacing).collect();
    recorder.parameter("matrix", Vec::from_iter(sizes().copied()));
    recorder.parameter("field of view", fov);
    let label = frame.label;
    recorder.parameter("encoding", label.encoding);
    recorder.parameter("contrast", label.contrast);
    recorder.parameter("cardiac phase", label.phase);
    recorder.parameter("set", label.set);
    // A centre that cannot be is refused where maps are estimated.
    let centre = Centre::of_frame(frame, options.calibration, options.sensitivities).ok();
    let centre = centre.filter(|_| estimates_maps);
    recorder.parameter("sensitivities", serde_json::json!(centre.map(|centre| centre.how)));
    recorder.parameter("calibration", serde_json::json!(centre.map(|centre| centre.width)));
}

/// Numbers that were chosen, as they are typed.
fn text(ranges: &Option<Ranges>) -> serde_json::Value {
    ranges.as_ref().map(Ranges::to_string).into()
}

/// How coil images became one, where the method combined any.
fn combination(options: &ReconOptions) -> serde_json::Value {
    use rayspin_mri::methods::{MapUse, Parameter as _};
    match (options.method.uses().maps, options.combine().to_value()) {
        (MapUse::Combining(_), Value::Choice(name)) => name.into(),
        _ => serde_json::Value::Null,
    }
}

/// How the iterations went.
pub(super) fn solves(recorder: &mut RunRecorder, solves: &[Solve]) {
    for solve in solves {
        let label = solve.label;
        recorder.parameter("solver", solve.solver);
        recorder.parameter("largest eigenvalue", solve.eigenvalue);
        let name = format!("slice {} repetition {}", label.slice, label.repetition);
        if let Some(scale) = solve.scale {
            recorder.parameter("image scale", scale);
            recorder.followed(name.clone(), "objective", solve.objective.iter().copied());
        }
        recorder.converged(name, solve.residuals.clone());
    }
}
