//! Names and sidecars as the Brain Imaging Data Structure (BIDS 1.10) has them: a file for each echo, each
//! set and each part of the complex numbers, and a `.json` beside it that tells the sequence.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ndarray::Axis;
use rayspin_core::Image;
use rayspin_core::slices::Stack;
use rayspin_scan::mri::{Label, in_time, varying};
use serde::Serialize;

use crate::atomic::{together, write_atomically};
use crate::{
    Error, Format, Protocol, Result, SeriesShape, SeriesWriter, Values, WriteOptions, expect_ending,
};

/// Entities of a BIDS name in their order, from the first that is entered here.
const ORDER: [&str; 26] = [
    "acq",
    "nuc",
    "voi",
    "ce",
    "trc",
    "stain",
    "rec",
    "dir",
    "run",
    "mod",
    "echo",
    "flip",
    "inv",
    "mt",
    "part",
    "proc",
    "hemi",
    "space",
    "split",
    "recording",
    "chunk",
    "seg",
    "res",
    "den",
    "label",
    "desc",
];

/// One file of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BidsFile {
    /// Its name.
    pub path: PathBuf,
    /// Its volumes, numbered as the image has them.
    pub volumes: Vec<usize>,
    /// The contrast of its volumes, where they have one.
    pub contrast: u16,
    /// The set of its volumes, likewise.
    pub set: u16,
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

/// What tells the sets of a scan apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sets {
    /// An inversion time each: `inv-1`.
    Inversion,
    /// A flip angle each: `flip-1`.
    Flip,
    /// The header does not say: `acq-set1`.
    Untold,
}

impl Sets {
    /// As the header of a scan says.
    fn of(protocol: &Protocol, volumes: &[Label]) -> Self {
        let each = |list: &[f64]| volumes.first().is_some_and(|first| protocol.of_set(list, first).is_some());
        match &protocol.sequence {
            sequence if each(&sequence.inversion_times_ms) => Self::Inversion,
            sequence if each(&sequence.flip_angles_deg) => Self::Flip,
            _ => Self::Untold,
        }
    }

    /// Enters what tells a set. Of `acq` the user's own label stays in front.
    fn enter(self, entities: &mut Vec<String>, set: u16) {
        let number = u32::from(set) + 1;
        match (self, entities.iter_mut().find(|own| own.starts_with("acq-"))) {
            (Self::Inversion, _) => enter(entities, "inv", &number.to_string()),
            (Self::Flip, _) => enter(entities, "flip", &number.to_string()),
            (Self::Untold, Some(own)) => own.push_str(&format!("Set{number}")),
            (Self::Untold, None) => enter(entities, "acq", &format!("set{number}")),
        }
    }
}

/// The files of an image of these volumes, one for each contrast, set, part and stack of slices. The entities
/// `echo-1`, `part-mag` and `chunk-1` enter the name where there are several; `part` enters phases always,
/// and `echo` echoes after the first. Likewise sets are `inv-1` where the protocol has an inversion time for
/// each, `flip-1` where it has a flip angle for each, and else `acq-set1`.
///
/// Errors: a name of another format than NIfTI; parts that BIDS has not.
///
/// ```
/// use std::path::Path;
/// use rayspin_io::{Protocol, Values, bids};
/// use rayspin_scan::mri::Label;
///
/// let (parts, protocol) = ([Values::Magnitude, Values::Phase], Protocol::default());
/// let volumes = [0, 1].map(|contrast| Label { contrast, ..Label::default() });
/// let files = bids::files("sub-01_MEGRE.nii.gz", &volumes, 1, &parts, &protocol)?;
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
    protocol: &Protocol,
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
    let distinct = |counter: fn(&Label) -> u16| -> BTreeSet<u16> { volumes.iter().map(counter).collect() };
    let (contrasts, sets) = (distinct(|volume| volume.contrast), distinct(|volume| volume.set));
    let of_sets = Sets::of(protocol, volumes);
    let mut files = Vec::new();
    for (contrast, set) in contrasts.iter().flat_map(|&contrast| sets.iter().map(move |&set| (contrast, set)))
    {
        let own = |(_, label): &(usize, &Label)| label.contrast == contrast && label.set == set;
        let own: Vec<usize> = volumes.iter().enumerate().filter(own).map(|(number, _)| number).collect();
        if own.is_empty() {
            continue;
        }
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
                    enter(&mut entities, "echo", &(u32::from(contrast) + 1).to_string());
                }
                if sets.len() > 1 || set > 0 {
                    of_sets.enter(&mut entities, set);
                }
                if parts.len() > 1 || values != Values::Magnitude {
                    enter(&mut entities, "part", part);
                }
                if stacks > 1 {
                    enter(&mut entities, "chunk", &(stack + 1).to_string());
                }
                let path = path.with_file_name(format!("{}{ending}", entities.join("_")));
                files.push(BidsFile { path, volumes: own.clone(), contrast, set, stack, values });
            }
        }
    }
    let names: BTreeSet<&PathBuf> = files.iter().map(|file| &file.path).collect();
    if names.len() < files.len() {
        let expected = "no entity echo, flip, inv, part or chunk, which are to tell the files apart";
        return Err(Error::field(path, "name", expected, name));
    }
    Ok(files)
}

/// Puts an entity in its place, before the suffix. The user's own stays.
fn enter(entities: &mut Vec<String>, key: &str, value: &str) {
    let key_of = |text: &str| text.split('-').next().unwrap_or_default().to_owned();
    if entities.iter().any(|other| other.contains('-') && key_of(other) == key) {
        return;
    }
    let after = ORDER.iter().skip_while(|own| **own != key).skip(1);
    let follows = |other: &String| other.contains('-') && after.clone().any(|own| *own == key_of(other));
    // A name of one word is a suffix where it is no entity.
    let suffix = entities.len() - usize::from(entities.last().is_some_and(|last| !last.contains('-')));
    let place = entities.iter().position(follows).unwrap_or(suffix).min(suffix);
    match suffix {
        // `image.nii.gz` has no entity of its own: it stays in front.
        0 => entities.push(format!("{key}-{value}")),
        _ => entities.insert(place, format!("{key}-{value}")),
    }
}

/// Writes an image under names of BIDS: the files that [`files`] names, and the sidecar of each. `step_s` is
/// the time from volume to volume, where it is known. Returns what the files leave out, one sentence each.
///
/// Errors: as [`files`]; an image of other than these volumes; a file that cannot be written.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::{Protocol, Values, bids};
/// use rayspin_scan::mri::Label;
///
/// # let folder = tempfile::tempdir()?;
/// let image = Image::new(ArrayD::from_elem(IxDyn(&[2, 1, 4, 5]), C32::i()), Geometry::default())?;
/// let echoes = [0, 1].map(|contrast| Label { contrast, ..Label::default() });
/// let path = folder.path().join("sub-01_MEGRE.nii.gz");
/// bids::write_image(path, &image, &echoes, &[Values::Phase], &Protocol::default(), None)?;
/// assert!(folder.path().join("sub-01_echo-2_part-phase_MEGRE.json").is_file());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_image(
    path: impl AsRef<Path>,
    image: &Image,
    volumes: &[Label],
    parts: &[Values],
    protocol: &Protocol,
    step_s: Option<f64>,
) -> Result<Vec<String>> {
    let path = path.as_ref();
    if image.repetitions() != volumes.len() {
        let (expected, found) = (format!("{} volumes", volumes.len()), image.repetitions());
        return Err(Error::field(path, "image", expected, found));
    }
    let stacks = image.stacks();
    let [_, ny, nx] = image.shape_zyx();
    let files = files(path, volumes, stacks.len(), parts, protocol)?;
    let mut notes = Sidecar::untold(protocol, volumes);
    together(|| {
        for file in &files {
            let first: usize = stacks[..file.stack].iter().map(|stack| stack.slices).sum();
            let Stack { slices, geometry } = stacks[file.stack];
            let labels: Vec<Label> = file.volumes.iter().map(|&number| volumes[number]).collect();
            let options = WriteOptions {
                values: Some(file.values),
                repetition_time_s: step_s.filter(|_| in_time(&labels)),
                volumes: labels,
                ..WriteOptions::default()
            };
            let shape = SeriesShape { frames: file.volumes.len(), volume: [slices, ny, nx], geometry };
            let mut writer = SeriesWriter::create(&file.path, &shape, &options)?;
            for &number in &file.volumes {
                let data = image.data().view();
                let volume = if data.ndim() > 3 { data.index_axis_move(Axis(0), number) } else { data };
                writer.push(volume.slice_axis(Axis(0), (first..first + slices).into()))?;
            }
            // A file of BIDS has one part of the numbers, and the names tell which.
            drop(writer.finish()?);
            Sidecar::of(file, protocol, volumes, step_s).write(file)?;
        }
        Ok::<_, Error>(())
    })?;
    if files.len() > 1 || files.iter().any(|file| file.path != path) {
        let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
        notes.push(format!("the image is in {}", names.join(", ")));
    }
    Ok(notes)
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
    /// `2D` or `3D`.
    #[serde(rename = "MRAcquisitionType", skip_serializing_if = "Option::is_none")]
    pub mr_acquisition_type: Option<&'static str>,
    /// The kind of the sequence in the words of DICOM, as GR.
    #[serde(skip_serializing_if = "Words::is_empty")]
    pub scanning_sequence: Words,
    /// Its variants, likewise.
    #[serde(skip_serializing_if = "Words::is_empty")]
    pub sequence_variant: Words,
    /// Its options, likewise.
    #[serde(skip_serializing_if = "Words::is_empty")]
    pub scan_options: Words,
    /// Echo time of the file's contrast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo_time: Option<f64>,
    /// Time from one volume to the next where they follow each other in time, else the sequence's TR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_time: Option<f64>,
    /// The sequence's TR, where `repetition_time` is the time between volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_time_excitation: Option<f64>,
    /// Inversion time, where the sequence has one, or one for each set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inversion_time: Option<f64>,
    /// Flip angle, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flip_angle: Option<f64>,
    /// The number of the set from 1 on, where the scan has several and the header does not say how they
    /// differ. BIDS has no such key, and lets others stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<u32>,
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

/// Words of DICOM: one stands alone, several are a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words(pub Vec<String>);

impl Words {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Words {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            words => words.serialize(serializer),
        }
    }
}

impl Sidecar {
    /// What a scan tells of a file; `step_s` is the time from one of its volumes to the next, where it is
    /// known.
    pub fn of(file: &BidsFile, protocol: &Protocol, volumes: &[Label], step_s: Option<f64>) -> Self {
        let sequence = &protocol.sequence;
        let seconds = |ms: &f64| ms / 1e3;
        let only = |list: &[f64]| if list.len() == 1 { list.first().copied() } else { None };
        let tr = only(&sequence.repetition_times_ms).map(|ms| ms / 1e3);
        let own: Vec<Label> =
            file.volumes.iter().filter_map(|&number| volumes.get(number).copied()).collect();
        let of_set = |list: &[f64]| protocol.of_volume(list, own.first()?);
        let step_s = step_s.filter(|_| in_time(&own));
        let encoding = volumes.first().map_or(0, |label| label.encoding);
        let known = encoding < protocol.encodings.len();
        let encoding = protocol.encoding(encoding);
        let (direction, axis) = match (encoding.echo_planar, encoding.lines) {
            (true, _) => (encoding.falls.map(|falls| if falls { "j-" } else { "j" }), None),
            (false, true) => (None, Some("j")),
            (false, false) => (None, None),
        };
        Self {
            conversion_software: "Rayspin".to_owned(),
            conversion_software_version: env!("CARGO_PKG_VERSION").to_owned(),
            manufacturer: protocol.vendor.clone(),
            manufacturers_model_name: protocol.model.clone(),
            magnetic_field_strength: protocol.field_strength_t,
            mr_acquisition_type: known.then_some(if encoding.is_3d { "3D" } else { "2D" }),
            scanning_sequence: Words(protocol.stated.scanning_sequence.clone()),
            sequence_variant: Words(protocol.stated.sequence_variant.clone()),
            scan_options: Words(protocol.stated.scan_options.clone()),
            echo_time: sequence.echo_times_ms.get(usize::from(file.contrast)).map(seconds),
            repetition_time: step_s.or(tr),
            repetition_time_excitation: tr.filter(|_| step_s.is_some()),
            inversion_time: of_set(&sequence.inversion_times_ms).map(|ms| ms / 1e3),
            flip_angle: of_set(&sequence.flip_angles_deg),
            set: (encoding.sets > 1 && Sets::of(protocol, volumes) == Sets::Untold)
                .then_some(u32::from(file.set) + 1),
            phase_encoding_direction: direction,
            phase_encoding_axis: axis,
            units: (file.values == Values::Phase).then_some("rad"),
        }
    }

    /// Writes it beside the file of its image. Errors: a file that cannot be written.
    pub fn write(&self, file: &BidsFile) -> Result<()> {
        let path = file.sidecar();
        let text = serde_json::to_string_pretty(self).map_err(|e| Error::write(&path, e.into()))? + "\n";
        write_atomically(&path, |place| std::fs::write(place, text).map_err(|e| Error::write(&path, e)))
    }

    /// What names of BIDS do not tell of an image's volumes, one note each. Volumes of some counters share a
    /// file. For some sets the header does not say how they differ.
    pub fn untold(protocol: &Protocol, volumes: &[Label]) -> Vec<String> {
        let counters: Vec<&str> = varying(volumes).into_iter().map(|(name, _)| name).collect();
        let shared: Vec<&str> =
            counters.iter().copied().filter(|name| !["contrast", "set"].contains(name)).collect();
        let mut notes = Vec::new();
        if !matches!(shared[..], [] | ["repetition" | "cardiac phase"]) {
            let text = shared.join(", ");
            notes.push(format!("BIDS has no entity for {text}: these volumes follow each other in the fourth axis, the last one fastest"));
        }
        if counters.contains(&"set") && Sets::of(protocol, volumes) == Sets::Untold {
            notes.push(
                "the header does not say how the sets differ: the entity acq tells their files apart".into(),
            );
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{EncodingProtocol, Sequence};

    #[test]
    fn entities_have_the_order_of_the_standard() {
        let echoes = [0, 1].map(|contrast| Label { contrast, ..Label::default() });
        let two = [Values::Magnitude, Values::Phase];
        let nothing = Protocol::default();
        for (name, stacks, expected) in [
            ("image.nii.gz", 1, "image_echo-1_part-mag.nii.gz"),
            ("sub-1_T2starw.nii", 1, "sub-1_echo-1_part-mag_T2starw.nii"),
            ("sub-1_inv-1_space-x_T1w.nii.gz", 2, "sub-1_echo-1_inv-1_part-mag_space-x_chunk-1_T1w.nii.gz"),
            ("sub-1_task-rest_dir-AP_bold.nii.gz", 1, "sub-1_task-rest_dir-AP_echo-1_part-mag_bold.nii.gz"),
        ] {
            let files = files(name, &echoes, stacks, &two, &nothing).unwrap();
            assert_eq!(files.len(), 4 * stacks);
            assert_eq!(files[0].path, Path::new(expected), "{name}");
        }
        let one = files("T1w.nii.gz", &[Label::default(); 3], 1, &two[..1], &nothing).unwrap();
        assert_eq!((one[0].path.as_path(), &one[0].volumes[..]), (Path::new("T1w.nii.gz"), &[0, 1, 2][..]));
        assert_eq!(one[0].sidecar(), Path::new("T1w.json"));
        let late = files("T1w.nii.gz", &echoes[1..], 1, &two[1..], &nothing).unwrap();
        assert_eq!(late[0].path, Path::new("T1w_echo-2_part-phase.nii.gz"));
        let own = files("sub-1_echo-4_x.nii", &echoes[1..], 1, &two, &nothing).unwrap();
        assert_eq!(own[0].path, Path::new("sub-1_echo-4_part-mag_x.nii"));
        for name in ["sub-1_echo-4_x.nii", "part-mag_x.nii"] {
            let refused = files(name, &echoes, 1, &two, &nothing).unwrap_err().to_string();
            assert!(refused.contains("no entity echo"), "{refused}");
        }
        assert!(files("a.npy", &echoes, 1, &two, &nothing).is_err());
        assert!(files("a.nii", &echoes, 1, &[Values::Complex], &nothing).is_err());
    }

    #[test]
    fn sets_have_the_entity_that_the_header_tells() {
        let sets = [0, 1].map(|set| Label { set, ..Label::default() });
        let of = |ti: &[f64], flip: &[f64], sets: u16| Protocol {
            sequence: Sequence {
                inversion_times_ms: ti.to_vec(),
                flip_angles_deg: flip.to_vec(),
                ..Sequence::default()
            },
            encodings: vec![EncodingProtocol { sets, ..EncodingProtocol::default() }],
            ..Protocol::default()
        };
        let (inversions, flips) = (of(&[700.0, 2500.0], &[4.0, 5.0], 2), of(&[700.0], &[4.0, 5.0], 2));
        let untold = of(&[700.0, 2500.0, 2600.0], &[], 2);
        for (protocol, name, expected, said) in [
            (
                &inversions,
                "sub-1_MP2RAGE.nii",
                "sub-1_inv-2_part-mag_MP2RAGE.nii",
                (Some(2.5), Some(5.0), None),
            ),
            (
                &flips,
                "sub-1_inv-3_VFA.nii",
                "sub-1_flip-2_inv-3_part-mag_VFA.nii",
                (Some(0.7), Some(5.0), None),
            ),
            (
                &untold,
                "sub-1_task-x_run-1_bold.nii",
                "sub-1_task-x_acq-set2_run-1_part-mag_bold.nii",
                (None, None, Some(2)),
            ),
            (
                &untold,
                "sub-1_acq-fast_bold.nii",
                "sub-1_acq-fastSet2_part-mag_bold.nii",
                (None, None, Some(2)),
            ),
            (&untold, "x.nii", "x_acq-set2_part-mag.nii", (None, None, Some(2))),
        ] {
            let all = files(name, &sets, 1, &[Values::Magnitude, Values::Phase], protocol).unwrap();
            assert_eq!(
                (all.len(), all[2].path.as_path(), &all[2].volumes[..]),
                (4, Path::new(expected), &[1][..])
            );
            let told = Sidecar::of(&all[2], protocol, &sets, None);
            assert_eq!((told.inversion_time, told.flip_angle, told.set), said, "{expected}");
            // One set of several has the name that it has among all.
            let alone = files(name, &sets[1..], 1, &[Values::Magnitude, Values::Phase], protocol).unwrap();
            assert_eq!(alone[0].path, Path::new(expected));
            assert_eq!(Sidecar::untold(protocol, &sets).len(), usize::from(said.2.is_some()));
        }
        // The first of several sets alone still has its inversion time.
        let first = files("a.nii", &sets[..1], 1, &[Values::Magnitude], &inversions).unwrap();
        assert_eq!(first[0].path, Path::new("a.nii"));
        assert_eq!(Sidecar::of(&first[0], &inversions, &sets[..1], None).inversion_time, Some(0.7));
        let taken = files("sub-1_inv-1_x.nii", &sets, 1, &[Values::Magnitude], &inversions).unwrap_err();
        assert!(taken.to_string().contains("no entity echo, flip, inv"), "{taken}");
    }
}
