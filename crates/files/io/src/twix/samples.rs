//! Small files of both generations, written by hand for tests of damaged files and fuzzers.

use crate::format::Sample;

/// What a readout of a small file is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Readout {
    pub(super) mask: u64,
    pub(super) samples: u16,
    pub(super) coils: u16,
    /// Line, average, slice, partition, echo, phase, repetition, set, segment.
    pub(super) counters: [u16; 9],
    pub(super) cut: [u16; 2],
    /// Sample, line and partition of the centre.
    pub(super) centre: [u16; 3],
    pub(super) time: u32,
    pub(super) position: [f32; 3],
    pub(super) quaternion: [f32; 4],
}

/// What stands between readouts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Readout(Readout),
    /// Physiology with this many bytes behind its head.
    Physiology(usize),
    End,
}

/// The sample of a readout, by its number, coil and place.
pub(super) fn sample(number: usize, coil: usize, place: usize) -> [f32; 2] {
    [(100 * number + 10 * coil + place) as f32 + 0.25, coil as f32 - place as f32]
}

/// The texts of a header, each with its length before it.
pub(super) fn header(texts: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = (texts.len() as u32).to_le_bytes().to_vec();
    for (name, text) in texts {
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.extend((text.len() as u32 + 1).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.push(0);
    }
    bytes.resize((bytes.len() + 4).next_multiple_of(32) - 4, 0);
    let length = bytes.len() as u32 + 4;
    [&length.to_le_bytes()[..], &bytes].concat()
}

/// A head of VB (128 bytes) or of VD (192 bytes).
fn head(readout: &Readout, number: usize, later: bool, coil: usize, length: usize) -> Vec<u8> {
    let Readout { mask, samples, coils, counters, cut, centre, time, position, quaternion } = *readout;
    // The pack bit, which makes the stated length unreliable, is set in every other readout.
    let pack = if number % 2 == 1 { 1 << 25 } else { 0 };
    let mut bytes = Vec::new();
    bytes.extend((length as u32 | pack).to_le_bytes());
    bytes.extend(7i32.to_le_bytes());
    bytes.extend((number as u32 + 1).to_le_bytes());
    bytes.extend(time.to_le_bytes());
    bytes.extend([0; 4]);
    if later {
        bytes.extend([0; 20]);
    }
    bytes.extend(mask.to_le_bytes());
    bytes.extend([samples, coils].iter().flat_map(|value| value.to_le_bytes()));
    bytes.extend(counters.iter().flat_map(|value| value.to_le_bytes()));
    bytes.extend([0; 10]);
    bytes.extend(cut.iter().flat_map(|value| value.to_le_bytes()));
    bytes.extend(centre[0].to_le_bytes());
    // Coil select, the readout's place, and the time since the pulse.
    bytes.extend([0; 10]);
    bytes.extend(centre[1..].iter().flat_map(|value| value.to_le_bytes()));
    if !later {
        bytes.extend([0; 16]);
    }
    bytes.extend(position.iter().chain(&quaternion).flat_map(|value| value.to_le_bytes()));
    if later {
        bytes.resize(192, 0);
    } else {
        bytes.extend((coil as u16).to_le_bytes());
        bytes.resize(128, 0);
    }
    bytes
}

/// A measurement: its header and its parts.
pub(super) fn measurement(texts: &[(&str, &str)], parts: &[Part], later: bool) -> Vec<u8> {
    let mut bytes = header(texts);
    let mut number = 0;
    for part in parts {
        match part {
            Part::Readout(readout) => {
                let own = usize::from(readout.samples) * 8;
                let coils = usize::from(readout.coils);
                if later {
                    bytes.extend(head(readout, number, true, 0, 192 + coils * (32 + own)));
                }
                for coil in 0..coils {
                    match later {
                        true => bytes.extend([0; 32]),
                        false => bytes.extend(head(readout, number, false, coil, 128 + own)),
                    }
                    let samples =
                        (0..usize::from(readout.samples)).flat_map(|place| sample(number, coil, place));
                    bytes.extend(samples.flat_map(f32::to_le_bytes));
                }
                number += 1;
            }
            Part::Physiology(length) => {
                let whole = length + if later { 192 } else { 128 };
                let blank = Readout { mask: 1 << 5, ..Readout::default() };
                bytes.extend(head(&blank, 0, later, 0, whole));
                bytes.extend(vec![1; *length]);
            }
            Part::End => {
                let blank = Readout { mask: 1, samples: 16, coils: 1, ..Readout::default() };
                bytes.extend(head(&blank, number, later, 0, 352));
                bytes.extend([0; 160]);
            }
        }
    }
    bytes
}

/// A file of several measurements. `stated` makes what the table states of a length.
pub(super) fn file(measurements: &[(&str, Vec<u8>)], stated: impl Fn(usize) -> u64) -> Vec<u8> {
    let mut table =
        [0u32, measurements.len() as u32].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let mut behind = Vec::new();
    // The table has room for 64 measurements, and 512 bytes are a sector.
    let first = 10_240usize;
    for (number, (protocol, bytes)) in measurements.iter().enumerate() {
        table.extend([number as u32 + 1, 0].iter().flat_map(|value| value.to_le_bytes()));
        table.extend(((first + behind.len()) as u64).to_le_bytes());
        table.extend(stated(bytes.len()).to_le_bytes());
        table.extend([b'x'; 64]);
        let mut name = protocol.as_bytes().to_vec();
        name.resize(64, 0);
        table.extend(name);
        behind.extend(bytes);
        behind.resize(behind.len().next_multiple_of(512), 0);
    }
    table.resize(first, 0);
    [table, behind].concat()
}

/// A protocol of 8 × 6 samples and lines with twofold oversampling, and what stands beside it.
pub(super) fn texts(more: &str) -> [(&'static str, String); 3] {
    let protocol = format!(
        "### ASCCONV BEGIN object=MrProtDataImpl ###\ntProtocolName\t = \t\"small\"\nsKSpace.lBaseResolution = 4\n\
         sKSpace.lPhaseEncodingLines = 6\nsKSpace.ucDimension = 0x2\nsKSpace.ucTrajectory = 1\n\
         sSliceArray.asSlice[0].dReadoutFOV = 200.0\nsSliceArray.asSlice[0].dPhaseFOV = 150.0\n\
         sSliceArray.asSlice[0].dThickness = 5\nsSliceArray.asSlice[0].sNormal.dTra = 1.0\n\
         sSliceArray.asSlice[0].sPosition.dCor = 12.5\nalTR[0] = 2000000\nalTE[0] = 27000\n\
         adFlipAngleDegree[0] = 90.0\nsRXSPEC.alDwellTime[0] = 3100\nsTXSPEC.asNucleusInfo[0].lFrequency = 123263001\n\
         lContrasts = 1\n{more}\n### ASCCONV END ###"
    );
    let dicom = "<XProtocol>\n<ParamMap.\"\"> {\n<ParamString.\"tPatientName\"> { \"DOE^JANE\" }\n\
                 <ParamString.\"SoftwareVersions\"> { \"syngo MR E11\" }\n<ParamString.\"Manufacturer\"> { \"SIEMENS\" }\n\
                 <ParamDouble.\"flMagneticFieldStrength\"> { <Precision> 6 2.893620 }\n\
                 <ParamString.\"tPatientPosition\"> { \"HFS\" }\n}";
    let meas = "<ParamDouble.\"flReadoutOSFactor\">\n{\n<Precision> 6\n2.0\n}\n<ParamLong.\"iNoOfFourierColumns\"> { 8 }\n\
                <ParamLong.\"alRegridMode\">\n{\n2 1\n}\n<ParamLong.\"alRegridRampupTime\"> { 4 0 }\n\
                <ParamLong.\"alRegridFlattopTime\"> { 20 0 }\n<ParamLong.\"alRegridRampdownTime\"> { 4 0 }\n\
                <ParamLong.\"alRegridDelaySamplesTime\"> { 2 0 }\n<ParamDouble.\"aflRegridADCDuration\"> { 24.0 0.0 }\n\
                <ParamLong.\"alRegridDestSamples\"> { 8 0 }";
    [("MeasYaps", protocol), ("Dicom", dicom.to_owned()), ("Meas", meas.to_owned())]
}

/// Six lines of two coils, every other reflected, behind noise and three references.
pub(super) fn parts() -> Vec<Part> {
    let half = std::f32::consts::FRAC_1_SQRT_2;
    let line = |line: u16, mask: u64| Readout {
        mask: 1 << 3 | mask,
        samples: 8,
        coils: 2,
        counters: [line, 0, 0, 0, 0, 0, 0, 0, 0],
        centre: [4, 3, 0],
        time: 1000 + u32::from(line),
        position: [1.0, -2.0, 3.5],
        quaternion: [half, 0.0, 0.0, half],
        ..Readout::default()
    };
    let noise = Readout { mask: 1 << 25, samples: 8, coils: 2, centre: [4, 0, 0], ..Readout::default() };
    let mut parts = vec![Part::Readout(noise), Part::Physiology(64)];
    parts.extend((0..3).map(|number| Part::Readout(line(3, 1 << 1 | 1 << 21 | (number % 2) << 24))));
    parts.extend((0..6).map(|number| Part::Readout(line(number, (u64::from(number) % 2) << 24))));
    parts.push(Part::End);
    parts
}

/// A file of VB, a file of VD with two measurements, and one of XA that states no length.
pub(crate) fn samples() -> Vec<Sample> {
    let texts = texts("");
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let measurement = |later| measurement(&texts, &parts(), later);
    let later = measurement(true);
    vec![
        vec![("vb.dat", vb_first(&measurement(false)))],
        vec![(
            "ve.dat",
            file(&[("AdjCoilSens", later.clone()), ("small", later.clone())], |length| length as u64),
        )],
        vec![("xa.dat", file(&[("small", later)], |_| 0))],
    ]
}

/// A measurement of VB whose header is longer than any table's first number, as real ones are.
pub(super) fn vb_first(bytes: &[u8]) -> Vec<u8> {
    const LEAST: usize = 10_240;
    let length = bytes.first_chunk::<4>().map_or(0, |four| u32::from_le_bytes(*four)) as usize;
    let (header, parts) = bytes.split_at(length.min(bytes.len()));
    let mut header = header.to_vec();
    header.resize(header.len().max(LEAST), 0);
    let stated = header.len() as u32;
    if let Some(first) = header.first_chunk_mut::<4>() {
        *first = stated.to_le_bytes();
    }
    [&header, parts].concat()
}
