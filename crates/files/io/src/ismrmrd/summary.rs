use std::collections::{BTreeMap, BTreeSet};

use ndarray::ArrayView2;
use rayspin_core::TrajectoryUnits;
use rayspin_scan::mri::{Acquisition, Counters, EncodedSpace, Encoding, Flags, Limits, Scan, detect_units};
use serde::Serialize;

use super::header_out::kind_name;
use super::identity::identity_of;
use crate::protocol::Sequence;

/// Flags of a readout's purpose, with the name shown.
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

/// What a scan with a header holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanSummary {
    /// Scanner vendor, where it is stated.
    pub vendor: Option<String>,
    /// Scanner model.
    pub model: Option<String>,
    /// Static field in T.
    pub field_strength_t: Option<f64>,
    /// Protocol name.
    pub protocol: Option<String>,
    /// Patient position code.
    pub patient_position: Option<String>,
    /// Times and angles of the sequence.
    pub sequence: Sequence,
    /// Names of the header's elements that may tell who was scanned, where and when; never their values.
    pub identity: Vec<String>,
    /// The encodings.
    pub encodings: Vec<EncodingSummary>,
    /// Acquisitions.
    pub acquisitions: usize,
    /// How many of them carry image data.
    pub image_acquisitions: usize,
    /// Acquisitions with each flag of a purpose, by the flag's name.
    pub purposes: BTreeMap<&'static str, usize>,
    /// Coils of the first acquisition of an image.
    pub coils: Option<usize>,
    /// Coils that the header states.
    pub coils_stated: Option<usize>,
    /// Least and most samples of an image's readout.
    pub samples_per_readout: Option<[usize; 2]>,
    /// The counters that vary over the images' readouts, by name.
    pub counters: BTreeMap<&'static str, CounterSummary>,
    /// The trajectory, where there is one.
    pub trajectory: Option<TrajectorySummary>,
}

/// An encoding of the header.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncodingSummary {
    /// How the header names the way through k-space.
    pub trajectory: &'static str,
    /// Encoded matrix x, y, z.
    pub encoded_matrix: [usize; 3],
    /// Encoded field of view x, y, z in mm.
    pub encoded_fov_mm: [f64; 3],
    /// Matrix to reconstruct.
    pub recon_matrix: [usize; 3],
    /// Field of view to reconstruct, in mm.
    pub recon_fov_mm: [f64; 3],
    /// Minimum, maximum and centre of counters that have more than one value.
    pub limits: BTreeMap<&'static str, [usize; 3]>,
    /// Acceleration along both phase encodings, where it is stated.
    pub acceleration: Option<[usize; 2]>,
}

/// The values of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CounterSummary {
    /// The smallest value.
    pub minimum: usize,
    /// The largest value.
    pub maximum: usize,
    /// Distinct values.
    pub values: usize,
}

/// The trajectory of a scan, in the file's own unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrajectorySummary {
    /// The largest |k| of each component.
    pub extent: Vec<f64>,
    /// The unit, where it is stated or the range tells it.
    pub units: Option<&'static str>,
    /// Whether the header states the unit.
    pub units_stated: bool,
}

/// What a scan holds.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::ismrmrd::summarise;
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// let options = SimulateOptions { matrix: [16, 16, 1], coils: 2, ..SimulateOptions::default() };
/// let scan = simulate(&options, &Monitor::silent())?.scan;
/// let rows = summarise(&scan).rows();
/// assert!(rows.iter().any(|(label, _)| label == "encoding"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn summarise(scan: &Scan) -> ScanSummary {
    let header = &scan.header;
    let acquisitions = &scan.acquisitions;
    let image: Vec<&Acquisition> = acquisitions.iter().filter(|a| a.flags.is_image()).collect();
    let with = |flag| acquisitions.iter().filter(|a| a.flags.contains(flag)).count();
    let purposes = PURPOSES.iter().map(|&(flag, name)| (name, with(flag))).filter(|(_, count)| *count > 0);
    let identity = identity_of(header);
    let identity = identity.iter().filter_map(|(path, _)| path.rsplit('/').next());
    let counters = COUNTERS.iter().filter_map(|&(name, counter)| {
        let values: BTreeSet<usize> = image.iter().map(|a| usize::from(counter(&a.counters))).collect();
        let (&minimum, &maximum) = (values.first()?, values.last()?);
        (minimum < maximum).then_some((name, CounterSummary { minimum, maximum, values: values.len() }))
    });
    let samples = || image.iter().map(|a| a.data.ncols());
    ScanSummary {
        vendor: header.vendor.clone(),
        model: header.model.clone(),
        field_strength_t: header.field_strength_t,
        protocol: header.protocol.clone(),
        patient_position: header.patient_position.clone(),
        sequence: Sequence::of(header),
        identity: identity.map(str::to_owned).collect(),
        encodings: header.encodings.iter().map(encoding).collect(),
        acquisitions: acquisitions.len(),
        image_acquisitions: image.len(),
        purposes: purposes.collect(),
        coils: image.first().map(|a| a.data.nrows()),
        coils_stated: header.coils,
        samples_per_readout: samples().min().zip(samples().max()).map(|(least, most)| [least, most]),
        counters: counters.collect(),
        trajectory: trajectory(scan, &image),
    }
}

impl ScanSummary {
    /// As label and text, in the order in which to show it: system, encodings, acquisitions by purpose,
    /// coils, ranges of the counters that vary, trajectory extent and the units that fit it.
    pub fn rows(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut row = |label: &str, text: String| rows.push((label.to_owned(), text));
        let field = self.field_strength_t.map(|t| format!("{t:.2} T"));
        let system: Vec<String> =
            [&self.vendor, &self.model, &field].into_iter().flatten().cloned().collect();
        if !system.is_empty() {
            row("system", system.join(", "));
        }
        if let Some(protocol) = &self.protocol {
            row("protocol", protocol.clone());
        }
        if let Some(position) = &self.patient_position {
            row("patient position", position.clone());
        }
        if let Some(sequence) = self.sequence.text() {
            row("sequence", sequence);
        }
        if !self.identity.is_empty() {
            let names = self.identity.join(", ");
            row("identity", format!("stated by {names}; values are neither shown nor copied"));
        }
        for (index, encoding) in self.encodings.iter().enumerate() {
            let label =
                if self.encodings.len() == 1 { "encoding".to_owned() } else { format!("encoding {index}") };
            row(&label, encoding.text());
        }
        let mut purposes = vec![format!("{} image", self.image_acquisitions)];
        let there = PURPOSES.iter().filter_map(|(_, name)| Some((name, self.purposes.get(name)?)));
        purposes.extend(there.map(|(name, count)| format!("{count} {name}")));
        row("acquisitions", format!("{} ({})", self.acquisitions, purposes.join(", ")));
        row(
            "coils",
            match (self.coils, self.coils_stated) {
                (Some(coils), Some(stated)) if coils != stated => {
                    format!("{coils} (the header states {stated})")
                }
                (Some(coils), _) => coils.to_string(),
                (None, Some(stated)) => format!("{stated} stated"),
                (None, None) => "unknown".into(),
            },
        );
        if let Some([least, most]) = self.samples_per_readout {
            row("samples a readout", range(least, most));
        }
        for (name, _) in COUNTERS {
            if let Some(counter) = self.counters.get(name) {
                let text = range(counter.minimum, counter.maximum);
                row(name, format!("{text} ({} values)", counter.values));
            }
        }
        if let Some(trajectory) = &self.trajectory {
            let numbers: Vec<String> = trajectory.extent.iter().map(|k| format!("±{k:.4}")).collect();
            let units = match (trajectory.units, trajectory.units_stated) {
                (Some(units), true) => format!("{units} stated"),
                (Some(units), false) => format!("{units} by its range"),
                (None, _) => "units not stated, none fits".into(),
            };
            row("trajectory", format!("{} ({units})", numbers.join(", ")));
        }
        rows
    }
}

impl EncodingSummary {
    fn text(&self) -> String {
        let space = |[x, y, z]: [usize; 3], [fx, fy, fz]: [f64; 3]| {
            format!("{x} × {y} × {z} over {fx:.1} × {fy:.1} × {fz:.1} mm")
        };
        let encoded = space(self.encoded_matrix, self.encoded_fov_mm);
        let recon = space(self.recon_matrix, self.recon_fov_mm);
        let mut text = format!("{}, {encoded}", self.trajectory);
        if (self.recon_matrix, self.recon_fov_mm) != (self.encoded_matrix, self.encoded_fov_mm) {
            text.push_str(&format!(", to reconstruct {recon}"));
        }
        for (name, [minimum, maximum, centre]) in &self.limits {
            text.push_str(&format!(", {name} {minimum} to {maximum} (centre {centre})"));
        }
        if let Some([a, b]) = self.acceleration {
            text.push_str(&format!(", acceleration {a} × {b}"));
        }
        text
    }
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

fn range(least: usize, most: usize) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

fn encoding(encoding: &Encoding) -> EncodingSummary {
    let limits = [
        ("lines", encoding.step_1),
        ("partitions", encoding.step_2),
        ("slices", encoding.slice),
        ("repetitions", encoding.repetition),
    ];
    let several = limits.into_iter().filter_map(|(name, limits)| {
        let Limits { minimum, maximum, centre } = limits?;
        (maximum > minimum).then_some((name, [minimum, maximum, centre]))
    });
    EncodingSummary {
        trajectory: kind_name(encoding.trajectory),
        encoded_matrix: encoding.encoded.matrix,
        encoded_fov_mm: encoding.encoded.fov_mm,
        recon_matrix: encoding.recon.matrix,
        recon_fov_mm: encoding.recon.fov_mm,
        limits: several.collect(),
        acceleration: encoding.acceleration,
    }
}

/// The extent of the trajectory of the first image encoding that has one, and the units it states or seems to
/// be in.
fn trajectory(scan: &Scan, image: &[&Acquisition]) -> Option<TrajectorySummary> {
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
    let stated = scan.stated_trajectory_units();
    let units = stated.or_else(|| units_by_range(&extent, space)).map(TrajectoryUnits::name);
    Some(TrajectorySummary { extent, units, units_stated: stated.is_some() })
}

/// What [`detect_units`] makes of the extent, leaving out the columns of an axis that is not encoded.
fn units_by_range(extent: &[f64], space: &EncodedSpace) -> Option<TrajectoryUnits> {
    let dims = extent.len().min(if space.matrix[2] > 1 { 3 } else { 2 });
    let points = ArrayView2::from_shape((1, dims), &extent[..dims]).ok()?;
    detect_units(points, &space.matrix[..dims], &space.fov_mm[..dims]).ok()
}
