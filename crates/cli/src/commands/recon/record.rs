//! What the run record and the screen say of a reconstruction.

use anyhow::Result;
use rayspin::core::Ranges;
use rayspin::mri::maps::Centre;
use rayspin::mri::methods::Value;
use rayspin::mri::recon::{Certificate, ReconOptions, Solve};
use rayspin::mri::scan::Frame;
use rayspin::report::RunRecorder;

use super::options;
use crate::args::mri::ReconMri;

/// The transform, and where there are several plans of it the first image that this one makes.
pub(super) fn name_of(certificate: &Certificate, all: &[Certificate]) -> String {
    let name = &certificate.transform;
    if all.iter().all(|other| other.first == certificate.first) {
        return name.clone();
    }
    format!("{name}, slice {} repetition {}", certificate.first.slice, certificate.first.repetition)
}

/// Parts of a header that name the patient, the study and the place.
const NAMING: [&str; 4] =
    ["subjectInformation", "studyInformation", "measurementInformation", "acquisitionSystemInformation"];

/// What the scan's header says of the patient, the study and the place, by the paths of its elements.
pub(super) fn identity(args: &ReconMri) -> Result<serde_json::Value> {
    let input = rayspin::io::Input::of(&args.scan);
    let header = rayspin::io::ismrmrd::header(&input.file, input.name.as_deref())?;
    let stated = rayspin::io::ismrmrd::identity_of(&header).into_iter();
    let naming = |path: &str| NAMING.iter().any(|part| path.starts_with(part));
    let named = stated.filter(|(path, _)| naming(path)).map(|(path, text)| (path, text.into()));
    Ok(serde_json::Value::Object(named.collect()))
}

/// What was chosen: the method with all its parameters, by their names, and what else decides the image.
pub(super) fn parameters(recorder: &mut RunRecorder, args: &ReconMri, options: &ReconOptions) {
    crate::methods::record(recorder, &*options.method, |name| args.method.file(name).cloned());
    recorder.parameter("combine", combination(options));
    recorder.parameter("field map", serde_json::json!(args.field_map));
    if args.field_map.is_some() {
        recorder.parameter("field tolerance", options.field_tolerance);
    }
    recorder.parameter("epsilon", options.nufft_tolerance);
    recorder.parameter("density", serde_json::json!(options.density));
    recorder.parameter("prewhiten", options.prepare.prewhiten);
    recorder.parameter("noise covariance", serde_json::json!(args.noise_covariance));
    recorder.parameter("compression", serde_json::json!(options.prepare.compression));
    recorder.parameter("maps", serde_json::json!(args.maps));
    recorder.parameter("trajectory", serde_json::json!(args.traj));
    recorder.parameter("slice", text(&args.slice));
    recorder.parameter("repetition", text(&args.repetition));
    recorder.parameter("readouts", text(&args.readouts));
    recorder.parameter("window", serde_json::json!(args.window));
    recorder.parameter("stride", serde_json::json!(args.stride.or(args.window)));
    recorder.parameter("independent", args.independent);
    let centres = options::centres(args);
    recorder.parameter("centre line", serde_json::json!(centres.line));
    recorder.parameter("centre partition", serde_json::json!(centres.partition));
    recorder.parameter("reversed centre", serde_json::json!(centres.reversed));
    recorder.parameter("trajectory units", serde_json::json!(args.traj_units));
    let trajectory = options::trajectory(args);
    recorder.parameter("trajectory field of view", serde_json::json!(trajectory.fov));
    recorder.parameter("trajectory weights", trajectory.weights);
    recorder.parameter("frames", serde_json::json!(args.frames));
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
    use rayspin::mri::methods::{MapUse, Parameter as _};
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
