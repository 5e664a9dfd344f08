//! The header of a measurement as ISMRMRD has it.
//!
//! The scan model's header and the file that `rayspin convert` writes both come of this XML, so that they say
//! the same. Protocols of sequences that know nothing of their own k-space (Pulseq's, for example) contradict
//! the readouts; the readouts hold then.

use rayspin_scan::mri::{EncodedSpace, Flags, RampShape, Ramps};

use super::block::Block;
use super::text::Texts;
use crate::ismrmrd::{Stated, Xml, ramps_of};
use crate::pulseq::UNTOLD;

/// Where parameters that the protocol lacks are looked for, in this order.
const MEASUREMENT: [&str; 4] = ["Meas", "Dicom", "Config", "Protocol"];
/// Voxels along an axis at most.
const MOST: f64 = 65_535.0;
/// The field of view along an axis at most, mm.
const WIDEST: f64 = 1e5;

/// What the readouts of images and of calibration say together.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    samples: usize,
    coils: usize,
    lines: [usize; 2],
    partitions: [usize; 2],
    centre_line: usize,
    centre_partition: usize,
    slices: [usize; 2],
    repetitions: [usize; 2],
    /// Whether k = 0 lies in the middle of all image readouts, and nothing of them is discarded.
    symmetric: bool,
    /// Whether lines run in both directions, and references for their phases are there.
    echo_planar: bool,
}

impl Measured {
    fn of(blocks: &[Block]) -> Self {
        let on_grid = |block: &&Block| block.flags.is_image() || block.flags.is_calibration_line();
        let readouts = || blocks.iter().filter(on_grid);
        let range = |counter: fn(&Block) -> u16| {
            let counters = || readouts().map(counter).map(usize::from);
            [counters().min().unwrap_or(0), counters().max().unwrap_or(0)]
        };
        let image = || readouts().filter(|block| block.flags.is_image());
        let kept = |block: &Block| {
            usize::from(block.samples).saturating_sub(block.discard.map(usize::from).iter().sum())
        };
        Self {
            samples: image().map(kept).max().unwrap_or(0),
            coils: image().next().map_or(0, |block| usize::from(block.coils)),
            lines: range(|block| block.counters.step_1),
            partitions: range(|block| block.counters.step_2),
            centre_line: image().next().map_or(0, |block| usize::from(block.centre_line)),
            centre_partition: image().next().map_or(0, |block| usize::from(block.centre_partition)),
            slices: range(|block| block.counters.slice),
            repetitions: range(|block| block.counters.repetition),
            symmetric: image().all(|block| {
                block.discard == [0, 0] && 2 * usize::from(block.centre_sample) == usize::from(block.samples)
            }),
            echo_planar: image().any(|block| block.flags.contains(Flags::REVERSE))
                && blocks.iter().any(|block| block.flags.contains(Flags::PHASE_CORRECTION)),
        }
    }
}

/// The XML header. What had to be assumed goes to `notes`.
pub(super) fn xml(texts: &Texts, blocks: &[Block], notes: &mut Vec<String>) -> String {
    let measured = Measured::of(blocks);
    let mut out = Xml::default();
    out.text.push_str("<?xml version=\"1.0\"?>\n");
    out.open("ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"");
    subject(&mut out, texts);
    measurement(&mut out, texts);
    system(&mut out, texts, &measured);
    encoding(&mut out, texts, &measured, notes);
    match texts.protocol("tSequenceFileName").is_some_and(|name| name.to_lowercase().contains("pulseq")) {
        true => notes.push(untold(texts)),
        false => sequence(&mut out, texts),
    }
    kind_of_sequence(&mut out, texts);
    out.close("ismrmrdHeader");
    out.text
}

/// Writes an element where there is a value.
fn leaf(out: &mut Xml, name: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        out.leaf(name, value);
    }
}

fn subject(out: &mut Xml, texts: &Texts) {
    let word = |name: &str| texts.word(&["Dicom", "Config", "Meas", "Protocol"], name);
    let name = word("tPatientName").or_else(|| word("PatientName"));
    let birth =
        word("PatientBirthDay").filter(|day| day.len() == 8 && day.bytes().all(|b| b.is_ascii_digit()));
    let gender =
        texts.numbers(&["Config", "Meas", "Protocol"], "PatientSex").first().map(|code| match *code {
            1.0 => "F",
            2.0 => "M",
            _ => "O",
        });
    let number = word("PatientID");
    if name.is_none() && number.is_none() && birth.is_none() {
        return;
    }
    out.open("subjectInformation");
    leaf(out, "patientName", name);
    leaf(out, "patientID", number);
    leaf(out, "patientBirthdate", birth.map(|day| format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..])));
    leaf(out, "patientGender", gender);
    out.close("subjectInformation");
}

fn measurement(out: &mut Xml, texts: &Texts) {
    let word = |name: &str| texts.word(&["Meas", "Dicom", "Config", "Protocol"], name);
    let position = word("tPatientPosition").or_else(|| word("sPatPosition"));
    out.open("measurementInformation");
    // The schema demands a position.
    out.leaf("patientPosition", position.as_deref().unwrap_or("HFS"));
    leaf(
        out,
        "protocolName",
        texts.protocol("tProtocolName").map(str::to_owned).or_else(|| word("tProtocolName")),
    );
    let sequence =
        texts.protocol("tSequenceFileName").map(|path| path.rsplit(['\\', '/']).next().unwrap_or(path));
    leaf(out, "sequenceName", sequence);
    leaf(out, "frameOfReferenceUID", word("tFrameOfReference"));
    out.close("measurementInformation");
}

fn system(out: &mut Xml, texts: &Texts, measured: &Measured) {
    let word = |name: &str| texts.word(&["Dicom", "Meas", "Protocol"], name);
    let number = |name: &str| texts.numbers(&["Dicom", "Meas", "Protocol"], name).first().copied();
    out.open("acquisitionSystemInformation");
    leaf(out, "systemVendor", word("Manufacturer").or_else(|| Some("SIEMENS".into())));
    leaf(out, "systemModel", word("ManufacturersModelName"));
    let field =
        number("flMagneticFieldStrength").or_else(|| texts.number("sProtConsistencyInfo.flNominalB0"));
    leaf(out, "systemFieldStrength_T", field.filter(|tesla| *tesla > 0.0));
    leaf(out, "receiverChannels", (measured.coils > 0).then_some(measured.coils));
    leaf(out, "institutionName", word("InstitutionName"));
    leaf(out, "deviceSerialNumber", word("DeviceSerialNumber"));
    out.close("acquisitionSystemInformation");
    out.open("experimentalConditions");
    let proton =
        texts.protocol("sTXSPEC.asNucleusInfo[0].tNucleus").is_none_or(|nucleus| nucleus.contains("1H"));
    let hertz = texts.number("sTXSPEC.asNucleusInfo[0].lFrequency").or_else(|| number("lFrequency"));
    out.leaf("H1resonanceFrequency_Hz", format!("{:.0}", hertz.filter(|_| proton).unwrap_or(0.0)));
    out.close("experimentalConditions");
}

fn encoding(out: &mut Xml, texts: &Texts, measured: &Measured, notes: &mut Vec<String>) {
    let Spaces { encoded, recon, contradicted } = spaces(texts, measured, notes);
    // Such a protocol states no centre: the middle, which the energy of the lines may speak against.
    let centre = |stated: usize, [_, last]: [usize; 2]| match stated {
        0 if contradicted => last.div_ceil(2),
        _ => stated,
    };
    out.open("encoding");
    for (name, space) in [("encodedSpace", &encoded), ("reconSpace", &recon)] {
        out.open(name);
        out.open("matrixSize");
        ["x", "y", "z"].iter().zip(space.matrix).for_each(|(axis, n)| out.leaf(axis, n));
        out.close("matrixSize");
        out.open("fieldOfView_mm");
        ["x", "y", "z"].iter().zip(space.fov_mm).for_each(|(axis, mm)| out.leaf(axis, mm));
        out.close("fieldOfView_mm");
        out.close(name);
    }
    out.open("encodingLimits");
    for (name, [minimum, maximum], centre) in [
        ("kspace_encoding_step_1", measured.lines, centre(measured.centre_line, measured.lines)),
        (
            "kspace_encoding_step_2",
            measured.partitions,
            centre(measured.centre_partition, measured.partitions),
        ),
        ("slice", measured.slices, 0),
        ("repetition", measured.repetitions, 0),
    ] {
        out.open(name);
        out.leaf("minimum", minimum);
        out.leaf("maximum", maximum);
        out.leaf("center", centre);
        out.close(name);
    }
    out.close("encodingLimits");
    let ramps = ramps(texts);
    let trajectory = match texts.number("sKSpace.ucTrajectory") {
        Some(2.0) => "radial",
        Some(4.0) => "spiral",
        None | Some(1.0) if ramps.is_some() || measured.echo_planar => "epi",
        None | Some(1.0) => "cartesian",
        _ => "other",
    };
    out.leaf("trajectory", trajectory);
    if let Some(ramps) = &ramps {
        ramps_of(out, ramps);
    }
    let factor =
        |name: &str| texts.number(name).filter(|factor| (1.0..=MOST).contains(factor)).unwrap_or(1.0);
    let factors = [factor("sPat.lAccelFactPE"), factor("sPat.lAccelFact3D")];
    if factors != [1.0; 2] {
        out.open("parallelImaging");
        out.open("accelerationFactor");
        out.leaf("kspace_encoding_step_1", factors[0]);
        out.leaf("kspace_encoding_step_2", factors[1]);
        out.close("accelerationFactor");
        out.close("parallelImaging");
    }
    out.close("encoding");
}

/// A number of voxels that the header may mean.
fn size(number: Option<f64>) -> Option<usize> {
    number.filter(|number| (1.0..=MOST).contains(number)).map(|number| number.round() as usize)
}

/// The least number of places that holds lines up to `last` around a centre.
fn around(centre: usize, last: usize) -> usize {
    (2 * centre).max(2 * last.saturating_sub(centre) + 1).max(1)
}

/// What was encoded, and the image to make.
struct Spaces {
    encoded: EncodedSpace,
    recon: EncodedSpace,
    /// Whether the protocol contradicts the readouts, which hold then.
    contradicted: bool,
}

fn spaces(texts: &Texts, measured: &Measured, notes: &mut Vec<String>) -> Spaces {
    let first = |name: &str| texts.numbers(&MEASUREMENT, name).first().copied();
    let more = |name: &str| 1.0 + texts.number(name).filter(|part| (0.0..=8.0).contains(part)).unwrap_or(0.0);
    let oversampling =
        first("flReadoutOSFactor").filter(|factor| (1.0..=8.0).contains(factor)).unwrap_or(2.0);
    let base = size(texts.number("sKSpace.lBaseResolution")).unwrap_or(1);
    let columns = size(first("iNoOfFourierColumns")).unwrap_or((base as f64 * oversampling).round() as usize);
    let lines = size(texts.number("sKSpace.lPhaseEncodingLines")).unwrap_or(1);
    let three_dimensional = texts.number("sKSpace.ucDimension") == Some(4.0);
    let count = |name: &str| if three_dimensional { size(texts.number(name)).unwrap_or(1) } else { 1 };
    let (partitions, slices) = (count("sKSpace.lPartitions"), count("sKSpace.lImagesPerSlab"));
    let millimetres = |name: &str, voxels: usize| {
        let stated = texts.number(&format!("sSliceArray.asSlice[0].{name}"));
        stated.filter(|mm| *mm > 0.0 && *mm < WIDEST).unwrap_or(voxels as f64)
    };
    let fov = [
        millimetres("dReadoutFOV", base),
        millimetres("dPhaseFOV", lines),
        millimetres("dThickness", partitions),
    ];
    let image_columns = size(first("ImageColumns").or_else(|| first("NImageCols"))).unwrap_or(base);
    let square = (base as f64 * fov[1] / fov[0]).round();
    let image_lines =
        size(first("ImageLines").or_else(|| first("NImageLins")).or(Some(square))).unwrap_or(lines);
    let mut encoded = EncodedSpace {
        matrix: [columns, lines, partitions],
        fov_mm: [
            fov[0] * oversampling,
            fov[1] * more("sKSpace.dPhaseOversamplingForDialog"),
            fov[2] * more("sKSpace.dSliceOversamplingForDialog"),
        ],
    };
    let mut recon = EncodedSpace { matrix: [image_columns, image_lines, slices], fov_mm: fov };

    let Measured { samples, lines: [_, last_line], partitions: [_, last_partition], .. } = *measured;
    let one_line = first("iNoOfFourierLines") == Some(1.0) && last_line > 0;
    // A sequence that states no centre counts from the first of its lines.
    let fits = |centre: usize, last: usize, n: usize| match centre {
        0 => last < n,
        centre => around(centre, last) <= n + 1,
    };
    let contradicted = samples > 0
        && (samples > columns
            || one_line
            || !fits(measured.centre_line, last_line, lines)
            || !fits(measured.centre_partition, last_partition, partitions));
    if contradicted {
        let needed = |centre: usize, last: usize| if centre == 0 { last + 1 } else { around(centre, last) };
        let matrix = [
            samples,
            needed(measured.centre_line, last_line).min(MOST as usize),
            needed(measured.centre_partition, last_partition).min(MOST as usize),
        ];
        notes.push(format!(
            "the protocol states {columns} × {lines} × {partitions} samples, lines and partitions, and the readouts have {} × {} × {}: \
             the readouts hold, over the protocol's field of view without oversampling (`--matrix` overrides)",
            matrix[0], matrix[1], matrix[2]
        ));
        encoded = EncodedSpace { matrix, fov_mm: fov };
        recon = encoded;
    }
    // A partial echo has k = 0 beside its middle.
    let without_oversampling = !contradicted
        && oversampling > 1.0
        && measured.symmetric
        && (samples as f64 * oversampling).round() == columns as f64
        && ramps(texts).is_none();
    if without_oversampling {
        notes.push(format!(
            "the protocol states {columns} samples a readout, and readouts have {samples} with the centre of k-space in their middle: the \
             readouts hold, over the protocol's field of view without oversampling"
        ));
        encoded.matrix[0] = samples;
        encoded.fov_mm[0] = fov[0];
    }
    Spaces { encoded, recon, contradicted }
}

/// The ramps of the readout gradient, where samples are taken on them.
fn ramps(texts: &Texts) -> Option<Ramps> {
    let first = |name: &str| texts.numbers(&MEASUREMENT, name).first().copied();
    let shape = match first("alRegridMode")? {
        2.0 => RampShape::Trapezoid,
        4.0 => RampShape::Sinusoid,
        _ => return None,
    };
    let ramps = Ramps {
        shape,
        up_us: first("alRegridRampupTime")?,
        flat_us: first("alRegridFlattopTime")?,
        down_us: first("alRegridRampdownTime")?,
        delay_us: first("alRegridDelaySamplesTime")?,
        sampling_us: first("aflRegridADCDuration")?,
        samples: size(first("alRegridDestSamples"))?,
    };
    (ramps.sampling_us > 0.0).then_some(ramps)
}

fn sequence(out: &mut Xml, texts: &Texts) {
    let counted = |name: &str, count: usize| -> Vec<f64> {
        (0..count).map_while(|index| texts.number(&format!("{name}[{index}]"))).collect()
    };
    let contrasts = texts
        .number("lContrasts")
        .filter(|count| (1.0..=128.0).contains(count))
        .map_or(1, |count| count as usize);
    let milliseconds = |microseconds: f64| microseconds / 1000.0;
    out.open("sequenceParameters");
    // Protocols keep the time of an inversion that is switched off.
    let inverts = texts.number("sPrepPulses.ucInversion").is_some_and(|kind| kind == 1.0 || kind == 2.0);
    let lists = [("TR", "alTR", 1), ("TE", "alTE", contrasts), ("TI", "alTI", usize::from(inverts))];
    for (name, key, count) in lists {
        counted(key, count).into_iter().map(milliseconds).for_each(|time| out.leaf(name, time));
    }
    counted("adFlipAngleDegree", 1).into_iter().for_each(|angle| out.leaf("flipAngle_deg", angle));
    let spacing = texts.number("sFastImaging.lEchoSpacing");
    let spacing = spacing.or_else(|| texts.numbers(&MEASUREMENT, "lEchoSpacing").first().copied());
    leaf(out, "echo_spacing", spacing.filter(|time| *time > 0.0).map(milliseconds));
    out.close("sequenceParameters");
}

/// The note on a scan of Pulseq whose sequence is not given. The protocol keeps the times and the angle that
/// the interpreter came with.
fn untold(texts: &Texts) -> String {
    let milliseconds =
        |key: &str| texts.number(key).map(|microseconds| format!("{} ms", microseconds / 1000.0));
    let angle = texts.number("adFlipAngleDegree[0]").map(|angle| format!("{angle}°"));
    let stated = [("TE", milliseconds("alTE[0]")), ("TR", milliseconds("alTR[0]")), ("flip angle", angle)];
    let stated: Vec<String> =
        stated.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?))).collect();
    match &stated[..] {
        [] => UNTOLD.to_owned(),
        _ => format!("{UNTOLD}; its protocol states placeholders, which are left out: {}", stated.join(", ")),
    }
}

/// The words of DICOM for the sequence, which ISMRMRD has as parameters of users.
fn kind_of_sequence(out: &mut Xml, texts: &Texts) {
    let word = |name: &str| texts.word(&["Dicom", "Meas", "Protocol"], name);
    let stated = ["tScanningSequence", "tSequenceVariant", "tScanOptions"].map(word);
    let Stated { scanning_sequence, sequence_variant, scan_options, .. } =
        Stated::of_texts(stated.each_ref().map(Option::as_deref));
    let nucleus = texts.protocol("sTXSPEC.asNucleusInfo[0].tNucleus").unwrap_or_default();
    let nucleus = nucleus.trim_matches('"');
    let nucleus: Vec<String> = Stated::nucleus_of(nucleus).into_iter().collect();
    let count = |number: Option<f64>| number.filter(|count| (1.0..=65536.0).contains(count));
    let train = texts.numbers(&["Dicom", "Meas"], "EchoTrainLength").first().copied();
    let turbo = texts.number("sFastImaging.lTurboFactor").filter(|factor| *factor > 1.0);
    let train = count(train).or_else(|| count(turbo));
    let texts = [scanning_sequence, sequence_variant, scan_options, nucleus].map(|words| words.join("\\"));
    if train.is_none() && texts.iter().all(String::is_empty) {
        return;
    }
    let parameter = |out: &mut Xml, kind: &str, name: &str, value: &str| {
        out.open(kind);
        out.leaf("name", name);
        out.leaf("value", value);
        out.close(kind);
    };
    out.open("userParameters");
    if let Some(train) = train {
        parameter(out, "userParameterLong", Stated::TRAIN, &format!("{train:.0}"));
    }
    for (name, text) in Stated::TEXTS.iter().zip(texts).filter(|(_, text)| !text.is_empty()) {
        parameter(out, "userParameterString", name, &text);
    }
    out.close("userParameters");
}

/// Dwell times of each contrast in µs, and of noise.
#[derive(Debug, Clone, Default)]
pub(super) struct Dwell {
    of_contrast: Vec<f32>,
    protocol: String,
    vb: bool,
}

impl Dwell {
    pub(super) fn of(texts: &Texts, vb: bool) -> Self {
        let nanoseconds = (0..128).map_while(|index| texts.number(&format!("sRXSPEC.alDwellTime[{index}]")));
        let of_contrast = nanoseconds.map(|time| (time / 1000.0) as f32).collect();
        Self { of_contrast, protocol: texts.protocol("tProtocolName").unwrap_or_default().to_owned(), vb }
    }

    /// The dwell time of a readout in µs; 0 where it is not known. Noise is measured at 130 Hz a sample in
    /// VB, and over 7.68 ms in later versions, as siemens_to_ismrmrd has it.
    pub(super) fn of_readout(&self, block: &Block) -> f32 {
        let samples = f64::from(block.samples);
        if block.flags.contains(Flags::NOISE) {
            return match self.protocol.as_str() {
                "AdjCoilSens" => 5.0,
                "AdjQuietCoilSens" => 4.0,
                _ if self.vb => (1e6 / samples / 130.0) as f32,
                _ => ((76_800.0 / samples).floor() / 10.0) as f32,
            };
        }
        let contrast = usize::from(block.counters.contrast);
        self.of_contrast.get(contrast).or(self.of_contrast.first()).copied().unwrap_or(0.0)
    }
}
