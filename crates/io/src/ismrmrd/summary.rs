use ndarray::ArrayView2;
use rayspin_core::TrajectoryUnits;
use rayspin_mri::scan::{Acquisition, Counters, EncodedSpace, Encoding, Flags, Limits, Scan, detect_units};

use super::header_out::kind_name;
use super::identity::identity_of;

/// Flags that say what a readout is for, with the name shown.
const PURPOSES: [(Flags, &str); 12] = [
    (Flags::NOISE, "noise"),
    (Flags::CALIBRATION, "calibration"),
    (Flags::CALIBRATION_AND_IMAGING, "calibration and imaging"),
    (Flags::REVERSE, "reversed"),
    (Flags::NAVIGATION, "navigator"),
    (Flags::PHASE_CORRECTION, "phase correction"),
    (Flags::HP_FEEDBACK, "feedback"),
    (Flags::DUMMY, "dummy"),
    (Flags::RT_FEEDBACK, "real-time feedback"),
    (Flags::SURFACE_COIL_CORRECTION, "surface-coil correction"),
    (Flags::PHASE_STABILISATION_REFERENCE, "phase-stabilisation reference"),
    (Flags::PHASE_STABILISATION, "phase stabilisation"),
];

/// What a scan holds, as label and text, in the order in which to show it: system, encodings, acquisitions by purpose,
/// coils, ranges of the counters that vary, trajectory extent and the units that fit it.
pub fn summarise(scan: &Scan) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut row = |label: &str, text: String| rows.push((label.to_owned(), text));
    let header = &scan.header;
    let system: Vec<String> = [header.vendor.clone(), header.model.clone()]
        .into_iter()
        .flatten()
        .chain(header.field_strength_t.map(|t| format!("{t:.2} T")))
        .collect();
    if !system.is_empty() {
        row("system", system.join(", "));
    }
    if let Some(protocol) = &header.protocol {
        row("protocol", protocol.clone());
    }
    if let Some(position) = &header.patient_position {
        row("patient position", position.clone());
    }
    let stated = identity_of(header);
    let names: Vec<&str> = stated.iter().filter_map(|(path, _)| path.rsplit('/').next()).collect();
    if !names.is_empty() {
        row("identity", format!("stated by {}; values are neither shown nor copied", names.join(", ")));
    }
    for (index, encoding) in header.encodings.iter().enumerate() {
        let label =
            if header.encodings.len() == 1 { "encoding".to_owned() } else { format!("encoding {index}") };
        row(&label, encoding_text(encoding));
    }
    let all = &scan.acquisitions;
    let image: Vec<&Acquisition> = all.iter().filter(|a| a.flags.is_image()).collect();
    let mut purposes = vec![format!("{} image", image.len())];
    for (flag, name) in PURPOSES {
        let count = all.iter().filter(|a| a.flags.contains(flag)).count();
        if count > 0 {
            purposes.push(format!("{count} {name}"));
        }
    }
    row("acquisitions", format!("{} ({})", all.len(), purposes.join(", ")));
    let coils = image.first().map(|a| a.data.nrows());
    row(
        "coils",
        match (coils, header.coils) {
            (Some(found), Some(stated)) if found != stated => format!("{found} (the header states {stated})"),
            (Some(found), _) => found.to_string(),
            (None, Some(stated)) => format!("{stated} stated"),
            (None, None) => "unknown".into(),
        },
    );
    if let Some(text) = range(image.iter().map(|a| a.data.ncols())) {
        row("samples a readout", text);
    }
    for (name, counter) in COUNTERS {
        let values: Vec<usize> = image.iter().map(|a| usize::from(counter(&a.counters))).collect();
        if values.iter().any(|v| *v != values[0]) {
            let mut distinct = values.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let text = range(values.into_iter()).unwrap_or_default();
            row(name, format!("{text} ({} values)", distinct.len()));
        }
    }
    if let Some((label, text)) = trajectory_text(scan, &image) {
        row(label, text);
    }
    rows
}

type Counter = fn(&Counters) -> u16;

const COUNTERS: [(&str, Counter); 9] = [
    ("lines", |c| c.step_1),
    ("partitions", |c| c.step_2),
    ("averages", |c| c.average),
    ("slices", |c| c.slice),
    ("contrasts", |c| c.contrast),
    ("phases", |c| c.phase),
    ("repetitions", |c| c.repetition),
    ("sets", |c| c.set),
    ("segments", |c| c.segment),
];

fn range(values: impl Iterator<Item = usize> + Clone) -> Option<String> {
    let (least, most) = (values.clone().min()?, values.max()?);
    Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
}

fn encoding_text(encoding: &Encoding) -> String {
    let space = |s: &EncodedSpace| {
        let [x, y, z] = s.matrix;
        let [fx, fy, fz] = s.fov_mm;
        format!("{x} × {y} × {z} over {fx:.1} × {fy:.1} × {fz:.1} mm")
    };
    let mut text = kind_name(encoding.trajectory).to_owned();
    text.push_str(&format!(", {}", space(&encoding.encoded)));
    if encoding.recon != encoding.encoded {
        text.push_str(&format!(", to reconstruct {}", space(&encoding.recon)));
    }
    let limits = [
        ("lines", encoding.step_1),
        ("partitions", encoding.step_2),
        ("slices", encoding.slice),
        ("repetitions", encoding.repetition),
    ];
    for (name, limits) in limits {
        if let Some(Limits { minimum, maximum, centre }) = limits
            && maximum > minimum
        {
            text.push_str(&format!(", {name} {minimum} to {maximum} (centre {centre})"));
        }
    }
    if let Some([a, b]) = encoding.acceleration {
        text.push_str(&format!(", acceleration {a} × {b}"));
    }
    text
}

/// The extent of the trajectory of the first image encoding that has one, and the units it states or seems to be in.
fn trajectory_text(scan: &Scan, image: &[&Acquisition]) -> Option<(&'static str, String)> {
    let first = image.iter().find(|a| a.trajectory.is_some())?;
    let space = &scan.header.encodings.get(first.encoding)?.encoded;
    let dims = first.trajectory.as_ref()?.ncols();
    let mut extent = vec![0f64; dims];
    let same = |a: &&&Acquisition| a.encoding == first.encoding;
    for points in image.iter().filter(same).filter_map(|a| a.trajectory.as_ref()) {
        for (most, column) in extent.iter_mut().zip(points.columns()) {
            *most = column.iter().fold(*most, |m, k| m.max(f64::from(k.abs())));
        }
    }
    let numbers: Vec<String> = extent.iter().map(|k| format!("±{k:.4}")).collect();
    let units = match scan.stated_trajectory_units() {
        Some(units) => format!("{units} stated"),
        None => match units_by_range(&extent, space) {
            Some(units) => format!("{units} by its range"),
            None => "units not stated, none fits".into(),
        },
    };
    Some(("trajectory", format!("{} ({units})", numbers.join(", "))))
}

/// What [`detect_units`] makes of the extent, leaving out the columns of an axis that is not encoded.
fn units_by_range(extent: &[f64], space: &EncodedSpace) -> Option<TrajectoryUnits> {
    let dims = extent.len().min(if space.matrix[2] > 1 { 3 } else { 2 });
    let points = ArrayView2::from_shape((1, dims), &extent[..dims]).ok()?;
    detect_units(points, &space.matrix[..dims], &space.fov_mm[..dims]).ok()
}
