//! Names and sidecars as the Brain Imaging Data Structure (BIDS 1.10) has them: a file for each echo and each
//! part of the complex numbers, and a `.json` beside it that tells the sequence.

use std::path::{Path, PathBuf};

use rayspin_scan::mri::{AcquisitionHead, Label, ScanHeader, TrajectoryKind, in_time, varying};
use serde::Serialize;

use crate::ismrmrd::Sequence;
use crate::{Error, Format, Result, Values, expect_ending};

/// Entities that follow `echo` in a BIDS name.
const AFTER_ECHO: [&str; 9] = ["flip", "inv", "mt", "part", "proc", "hemi", "space", "split", "recording"];
/// Entities that follow `part`.
const AFTER_PART: [&str; 5] = ["proc", "hemi", "space", "split", "recording"];

/// One file of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BidsFile {
    /// Its name.
    pub path: PathBuf,
    /// Its volumes, numbered as the image has them.
    pub volumes: Vec<usize>,
    /// The contrast of its volumes, where they have one.
    pub contrast: u16,
    /// The number of its stack of slices.
    pub stack: usize,
    /// What it has of the complex numbers.
    pub values: Values,
}

impl BidsFile {
    /// The file that tells the sequence: `image.nii.gz` has `image.json`.
    pub fn sidecar(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".nii.gz").or_else(|| name.strip_suffix(".nii")).unwrap_or(&name);
        self.path.with_file_name(format!("{stem}.json"))
    }
}

/// The files of an image of these volumes, one for each contrast, part and stack of slices. The entities
/// `echo-1`, `part-mag` and `chunk-1` enter the name where there are several; `part` enters phases always,
/// and
/// `echo` echoes after the first.
///
/// Errors: a name of another format than NIfTI; parts that BIDS has not.
///
/// ```
/// use std::path::Path;
/// use rayspin_io::{Values, bids};
/// use rayspin_scan::mri::Label;
///
/// let volumes = [0, 1].map(|contrast| Label { contrast, ..Label::default() });
/// let files = bids::files("sub-01_MEGRE.nii.gz", &volumes, 1, &[Values::Magnitude, Values::Phase])?;
/// let names: Vec<_> = files.iter().map(|file| file.path.display().to_string()).collect();
/// assert_eq!(names[..2], ["sub-01_echo-1_part-mag_MEGRE.nii.gz", "sub-01_echo-1_part-phase_MEGRE.nii.gz"]);
/// assert_eq!(files[3].sidecar(), Path::new("sub-01_echo-2_part-phase_MEGRE.json"));
/// # Ok::<(), rayspin_io::Error>(())
/// ```
pub fn files(
    path: impl AsRef<Path>,
    volumes: &[Label],
    stacks: usize,
    parts: &[Values],
) -> Result<Vec<BidsFile>> {
    let path = path.as_ref();
    let format = expect_ending(path, Format::writes_images)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ending = [".nii.gz", ".nii"].into_iter().find(|ending| name.to_lowercase().ends_with(ending));
    let Some(ending) = ending else {
        return Err(Error::unsupported(path, format!("names of BIDS for {format}"))
            .with_hint("BIDS has NIfTI images: give the output the ending .nii.gz"));
    };
    let (stem, ending) = name.split_at(name.len() - ending.len());
    let mut contrasts: Vec<u16> = volumes.iter().map(|volume| volume.contrast).collect();
    contrasts.sort_unstable();
    contrasts.dedup();
    let mut files = Vec::new();
    for &contrast in &contrasts {
        for &values in parts {
            let part = match values {
                Values::Magnitude => "mag",
                Values::Phase => "phase",
                Values::Real => "real",
                Values::Complex => {
                    return Err(Error::unsupported(path, "complex numbers under a name of BIDS")
                        .with_hint("BIDS has magnitudes and phases in files of their own"));
                }
            };
            for stack in 0..stacks {
                let mut entities: Vec<String> = stem.split('_').map(str::to_owned).collect();
                if contrasts.len() > 1 || contrast > 0 {
                    enter(&mut entities, format!("echo-{}", contrast + 1), &AFTER_ECHO);
                }
                if parts.len() > 1 || values != Values::Magnitude {
                    enter(&mut entities, format!("part-{part}"), &AFTER_PART);
                }
                if stacks > 1 {
                    enter(&mut entities, format!("chunk-{}", stack + 1), &[]);
                }
                let path = path.with_file_name(format!("{}{ending}", entities.join("_")));
                let of_contrast = volumes.iter().enumerate().filter(|(_, label)| label.contrast == contrast);
                let volumes = of_contrast.map(|(number, _)| number).collect();
                files.push(BidsFile { path, volumes, contrast, stack, values });
            }
        }
    }
    let names: std::collections::BTreeSet<&PathBuf> = files.iter().map(|file| &file.path).collect();
    if names.len() < files.len() {
        let expected = "no entity echo, part or chunk, which are to tell the files apart";
        return Err(Error::field(path, "name", expected, name));
    }
    Ok(files)
}

/// Puts an entity before the first that is to follow it, and before the suffix. The user's own stays.
fn enter(entities: &mut Vec<String>, entity: String, after: &[&str]) {
    let key = |text: &str| text.split('-').next().unwrap_or_default().to_owned();
    if entities.iter().any(|other| other.contains('-') && key(other) == key(&entity)) {
        return;
    }
    let follows = |other: &String| other.contains('-') && after.contains(&key(other).as_str());
    // A name of one word is a suffix where it is no entity.
    let suffix = entities.len() - usize::from(entities.last().is_some_and(|last| !last.contains('-')));
    let place = entities.iter().position(follows).unwrap_or(suffix).min(suffix);
    match suffix {
        // `image.nii.gz` has no entity of its own: it stays in front.
        0 => entities.push(entity),
        _ => entities.insert(place, entity),
    }
}

/// What a sidecar tells of an image's sequence; times in s, angles in degrees.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Sidecar {
    /// `Rayspin`
    pub conversion_software: String,
    /// Its version.
    pub conversion_software_version: String,
    /// Vendor of the scanner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    /// Model of the scanner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manufacturers_model_name: Option<String>,
    /// Static field in T.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub magnetic_field_strength: Option<f64>,
    /// Echo time of the file's contrast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo_time: Option<f64>,
    /// Time from one volume to the next where they follow each other in time, else the sequence's TR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_time: Option<f64>,
    /// The sequence's TR, where `repetition_time` is the time between volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_time_excitation: Option<f64>,
    /// Inversion time, where the sequence has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inversion_time: Option<f64>,
    /// Flip angle, where the sequence has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flip_angle: Option<f64>,
    /// The axis of phase encoding, `j` (y). Echo-planar imaging has its sign: `j-` where the lines of a train
    /// fall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_encoding_direction: Option<&'static str>,
    /// The axis alone, where readouts do not follow each other in a train.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_encoding_axis: Option<&'static str>,
    /// `rad` for phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<&'static str>,
}

impl Sidecar {
    /// What a header and the heads of the readouts tell of a file; `step_s` is the time from one of its
    /// volumes to the next, where it is known.
    pub fn of(
        file: &BidsFile,
        header: &ScanHeader,
        heads: &[AcquisitionHead],
        volumes: &[Label],
        step_s: Option<f64>,
    ) -> Self {
        let sequence = Sequence::of(header);
        let seconds = |ms: &f64| ms * 1e-3;
        let only = |list: &[f64]| if list.len() == 1 { list.first().copied() } else { None };
        let tr = only(&sequence.repetition_times_ms).map(|ms| ms * 1e-3);
        let own: Vec<Label> =
            file.volumes.iter().filter_map(|&number| volumes.get(number).copied()).collect();
        let step_s = step_s.filter(|_| in_time(&own));
        let encoding = volumes.first().map_or(0, |label| label.encoding);
        let kind = header.encodings.get(encoding).map(|encoding| encoding.trajectory);
        let along_trajectory = heads.iter().any(|head| head.flags.is_image() && head.trajectory);
        let falls = lines_fall(heads, encoding);
        let (direction, axis) = match kind {
            Some(TrajectoryKind::Epi) => (falls.map(|falls| if falls { "j-" } else { "j" }), None),
            Some(TrajectoryKind::Cartesian) if !along_trajectory => (None, Some("j")),
            _ => (None, None),
        };
        Self {
            conversion_software: "Rayspin".to_owned(),
            conversion_software_version: env!("CARGO_PKG_VERSION").to_owned(),
            manufacturer: header.vendor.clone(),
            manufacturers_model_name: header.model.clone(),
            magnetic_field_strength: header.field_strength_t,
            echo_time: sequence.echo_times_ms.get(usize::from(file.contrast)).map(seconds),
            repetition_time: step_s.or(tr),
            repetition_time_excitation: tr.filter(|_| step_s.is_some()),
            inversion_time: only(&sequence.inversion_times_ms).map(|ms| ms * 1e-3),
            flip_angle: only(&sequence.flip_angles_deg),
            phase_encoding_direction: direction,
            phase_encoding_axis: axis,
            units: (file.values == Values::Phase).then_some("rad"),
        }
    }

    /// Counters of an image's volumes that its files do not tell apart, for a note; none where repetitions or
    /// cardiac phases alone follow each other in a file.
    pub fn untold(volumes: &[Label]) -> Option<String> {
        let counters: Vec<&str> =
            varying(volumes).into_iter().map(|(name, _)| name).filter(|name| *name != "contrast").collect();
        let clear = matches!(counters[..], [] | ["repetition" | "cardiac phase"]);
        (!clear).then(|| {
            let text = counters.join(", ");
            format!("BIDS has no entity for {text}: these volumes follow each other in the fourth axis, the last one fastest")
        })
    }
}

/// Whether the lines of an image's first slice fall from readout to readout; none where there are not two.
fn lines_fall(heads: &[AcquisitionHead], encoding: usize) -> Option<bool> {
    let mut image = heads.iter().filter(|head| head.flags.is_image() && head.encoding == encoding);
    let first = image.next()?;
    let label = first.label();
    let next = image.find(|head| head.label() == label && head.counters.step_1 != first.counters.step_1)?;
    Some(next.counters.step_1 < first.counters.step_1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_have_the_order_of_the_standard() {
        let echoes = [0, 1].map(|contrast| Label { contrast, ..Label::default() });
        let two = [Values::Magnitude, Values::Phase];
        for (name, stacks, expected) in [
            ("image.nii.gz", 1, "image_echo-1_part-mag.nii.gz"),
            ("sub-1_T2starw.nii", 1, "sub-1_echo-1_part-mag_T2starw.nii"),
            ("sub-1_inv-1_space-x_T1w.nii.gz", 2, "sub-1_echo-1_inv-1_part-mag_space-x_chunk-1_T1w.nii.gz"),
            ("sub-1_task-rest_dir-AP_bold.nii.gz", 1, "sub-1_task-rest_dir-AP_echo-1_part-mag_bold.nii.gz"),
        ] {
            let files = files(name, &echoes, stacks, &two).unwrap();
            assert_eq!(files.len(), 4 * stacks);
            assert_eq!(files[0].path, Path::new(expected), "{name}");
        }
        let one = files("T1w.nii.gz", &[Label::default(); 3], 1, &two[..1]).unwrap();
        assert_eq!((one[0].path.as_path(), &one[0].volumes[..]), (Path::new("T1w.nii.gz"), &[0, 1, 2][..]));
        assert_eq!(one[0].sidecar(), Path::new("T1w.json"));
        let late = files("T1w.nii.gz", &echoes[1..], 1, &two[1..]).unwrap();
        assert_eq!(late[0].path, Path::new("T1w_echo-2_part-phase.nii.gz"));
        let own = files("sub-1_echo-4_x.nii", &echoes[1..], 1, &two).unwrap();
        assert_eq!(own[0].path, Path::new("sub-1_echo-4_part-mag_x.nii"));
        for name in ["sub-1_echo-4_x.nii", "part-mag_x.nii"] {
            let refused = files(name, &echoes, 1, &two).unwrap_err().to_string();
            assert!(refused.contains("no entity echo"), "{refused}");
        }
        assert!(files("a.npy", &echoes, 1, &two).is_err());
        assert!(files("a.nii", &echoes, 1, &[Values::Complex]).is_err());
    }
}
