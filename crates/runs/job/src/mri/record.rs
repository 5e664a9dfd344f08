//! What the run record and the screen say of a reconstruction.

use rayspin_core::as_options;
use rayspin_mri::corrections::{Correction, Corrections, Known};
use rayspin_mri::maps::Centre;
use rayspin_mri::recon::{Certificate, ReconOptions, Solve};
use rayspin_mri::scan::{Frame, Label, VOLUME_COUNTERS, varying};
use rayspin_report::RunRecorder;
use rayspin_run::Value;

use super::options;
use super::request::Request;
use crate::{asked, rows};

/// The transform, and where there are several plans of it the first image that this one makes.
pub fn name_of(certificate: &Certificate, certificates: &[Certificate]) -> String {
    let name = &certificate.transform;
    if certificates.iter().all(|other| other.first == certificate.first) {
        return name.clone();
    }
    let labels: Vec<Label> = certificates.iter().map(|other| other.first).collect();
    format!("{name}, {}", image_name(&certificate.first, &labels))
}

/// Slice and repetition of an image, and the other counters that differ among the images.
fn image_name(label: &Label, labels: &[Label]) -> String {
    let mut name = format!("slice {} repetition {}", label.slice, label.repetition);
    for (counter, value) in VOLUME_COUNTERS {
        if counter != "repetition" && labels.iter().any(|other| value(other) != value(label)) {
            name.push_str(&format!(" {counter} {}", value(label)));
        }
    }
    name
}

/// The counters that number the volumes of the image, slowest first, each with its values.
pub(super) fn volumes(recorder: &mut RunRecorder, labels: &[Label]) {
    let counters = varying(labels).into_iter().map(|(name, values)| serde_json::json!([name, values]));
    recorder.parameter("volumes", counters.collect::<serde_json::Value>());
}

/// What was chosen: the method with all its parameters, by their names, and what else decides the image.
pub(super) fn parameters(recorder: &mut RunRecorder, request: &Request, options: &ReconOptions) {
    asked::record(recorder, &*options.method, |name| request.method.file(name).cloned());
    recorder.parameter("combine", combination(options));
    rows::record(options::options(), request, recorder);
}

/// The corrections in the order in which they act, each with the reason where it does nothing, and their
/// parameters by their names.
pub(super) fn corrections(recorder: &mut RunRecorder, corrections: &Corrections, scan: &Known<'_>) {
    let one = |one: &dyn Correction| {
        let idle = one.idle(scan).map(|reason| as_options(&reason).into_owned());
        serde_json::json!({ "name": one.about().name, "idle": idle })
    };
    recorder.parameter("corrections", corrections.iter().map(one).collect::<serde_json::Value>());
    for one in corrections.iter() {
        for param in one.table() {
            let value = one.get(param.name).unwrap_or(Value::Nothing);
            recorder.parameter(param.name.replace('_', " "), asked::recorded(&value, || None));
        }
    }
}

/// What the scan decided: the matrix and field of view of the image, its encoding, and how coil maps are
/// estimated, where they are.
pub(super) fn used(recorder: &mut RunRecorder, frame: &Frame, options: &ReconOptions, estimates_maps: bool) {
    let sizes = || frame.matrix.iter().rev();
    let fov: Vec<f64> =
        sizes().zip(frame.geometry.spacing_mm).map(|(&n, spacing)| n as f64 * spacing).collect();
    recorder.parameter("matrix", Vec::from_iter(sizes().copied()));
    recorder.parameter("field of view", fov);
    recorder.parameter("encoding", frame.label.encoding);
    // A centre that cannot be is refused where maps are estimated.
    let centre = Centre::of_frame(frame, options.calibration, options.sensitivities).ok();
    let centre = centre.filter(|_| estimates_maps);
    recorder.parameter("sensitivities", serde_json::json!(centre.map(|centre| centre.how)));
    recorder.parameter("calibration", serde_json::json!(centre.map(|centre| centre.width)));
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
    let labels: Vec<Label> = solves.iter().map(|solve| solve.label).collect();
    for solve in solves {
        recorder.parameter("solver", solve.solver);
        recorder.parameter("largest eigenvalue", solve.eigenvalue);
        let name = image_name(&solve.label, &labels);
        if let Some(scale) = solve.scale {
            recorder.parameter("image scale", scale);
            recorder.followed(name.clone(), "objective", solve.objective.iter().copied());
        }
        recorder.converged(name, solve.residuals.clone());
    }
}
