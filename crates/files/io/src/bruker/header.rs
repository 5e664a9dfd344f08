//! The header of a scan as ISMRMRD has it: the scan model's header and the file that `rayspin convert` writes
//! both come of this XML.

use rayspin_core::TrajectoryUnits;

use super::folder::Folder;
use crate::Result;
use crate::ismrmrd::Xml;

/// What the samples of a scan say of its header.
#[derive(Debug, Clone)]
pub(super) struct Spaces {
    /// Places and fields of view along x, y, z that were encoded.
    pub(super) encoded: ([usize; 3], [f64; 3]),
    pub(super) recon: ([usize; 3], [f64; 3]),
    /// The least and the largest line and partition, and the ones in the centre.
    pub(super) lines: [usize; 3],
    pub(super) partitions: [usize; 3],
    pub(super) slices: usize,
    pub(super) repetitions: usize,
    pub(super) coils: usize,
    /// `cartesian`, `epi` or `radial`.
    pub(super) trajectory: &'static str,
    /// Acceleration along both phase encodings.
    pub(super) acceleration: [usize; 2],
}

/// The XML header.
pub(super) fn xml(folder: &Folder, spaces: &Spaces) -> Result<String> {
    let mut out = Xml::default();
    out.text.push_str("<?xml version=\"1.0\"?>\n");
    out.open("ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"");
    subject(&mut out, folder);
    measurement(&mut out, folder);
    system(&mut out, folder, spaces)?;
    encoding(&mut out, spaces);
    sequence(&mut out, folder)?;
    if spaces.trajectory != "cartesian" {
        out.open("userParameters");
        out.open("userParameterString");
        out.leaf("name", "trajectory_units");
        out.leaf("value", TrajectoryUnits::CyclesPerFov.name());
        out.close("userParameterString");
        out.close("userParameters");
    }
    out.close("ismrmrdHeader");
    Ok(out.text)
}

/// Writes an element where there is a text.
fn leaf(out: &mut Xml, name: &str, text: &str) {
    if !text.is_empty() {
        out.leaf(name, text);
    }
}

fn subject(out: &mut Xml, folder: &Folder) {
    let Some(visu) = &folder.visu else { return };
    let (subject, number) = (visu.word("VisuSubjectName"), visu.word("VisuSubjectId"));
    let gender = match visu.word("VisuSubjectSex") {
        "FEMALE" => "F",
        "MALE" => "M",
        _ => "",
    };
    let study = visu.word("VisuStudyId");
    if !(subject.is_empty() && number.is_empty() && gender.is_empty()) {
        out.open("subjectInformation");
        leaf(out, "patientName", subject);
        leaf(out, "patientID", number);
        leaf(out, "patientGender", gender);
        out.close("subjectInformation");
    }
    if !study.is_empty() {
        out.open("studyInformation");
        leaf(out, "studyID", study);
        out.close("studyInformation");
    }
}

fn measurement(out: &mut Xml, folder: &Folder) {
    let position = match folder.acqp.word("ACQ_patient_pos") {
        "Head_Prone" => "HFP",
        "Head_Left" => "HFDL",
        "Head_Right" => "HFDR",
        "Foot_Supine" => "FFS",
        "Foot_Prone" => "FFP",
        "Foot_Left" => "FFDL",
        "Foot_Right" => "FFDR",
        // The schema demands a position.
        _ => "HFS",
    };
    out.open("measurementInformation");
    out.leaf("patientPosition", position);
    leaf(out, "protocolName", folder.acqp.word("ACQ_protocol_name"));
    leaf(out, "sequenceName", folder.method_name());
    out.close("measurementInformation");
}

fn system(out: &mut Xml, folder: &Folder, spaces: &Spaces) -> Result<()> {
    let acqp = &folder.acqp;
    out.open("acquisitionSystemInformation");
    out.leaf("systemVendor", "Bruker");
    // ISMRMRD has no place for another nucleus than hydrogen.
    let nucleus = acqp.word("NUCLEUS").to_owned() + acqp.word("NUC1");
    let hertz = acqp.number("BF1")?.filter(|_| nucleus.contains("1H")).map_or(0.0, |mega| mega * 1e6);
    if hertz > 0.0 {
        out.leaf("systemFieldStrength_T", format!("{:.4}", hertz / 42_577_478.518));
    }
    out.leaf("receiverChannels", spaces.coils);
    leaf(out, "institutionName", acqp.word("ACQ_institution"));
    leaf(out, "stationName", acqp.word("ACQ_station"));
    out.close("acquisitionSystemInformation");
    out.open("experimentalConditions");
    out.leaf("H1resonanceFrequency_Hz", format!("{hertz:.0}"));
    out.close("experimentalConditions");
    Ok(())
}

fn encoding(out: &mut Xml, spaces: &Spaces) {
    out.open("encoding");
    for (name, (matrix, fov_mm)) in [("encodedSpace", spaces.encoded), ("reconSpace", spaces.recon)] {
        out.open(name);
        out.open("matrixSize");
        ["x", "y", "z"].iter().zip(matrix).for_each(|(axis, n)| out.leaf(axis, n));
        out.close("matrixSize");
        out.open("fieldOfView_mm");
        ["x", "y", "z"].iter().zip(fov_mm).for_each(|(axis, mm)| out.leaf(axis, mm));
        out.close("fieldOfView_mm");
        out.close(name);
    }
    out.open("encodingLimits");
    for (name, [minimum, maximum, centre]) in [
        ("kspace_encoding_step_1", spaces.lines),
        ("kspace_encoding_step_2", spaces.partitions),
        ("slice", [0, spaces.slices - 1, 0]),
        ("repetition", [0, spaces.repetitions - 1, 0]),
    ] {
        out.open(name);
        out.leaf("minimum", minimum);
        out.leaf("maximum", maximum);
        out.leaf("center", centre);
        out.close(name);
    }
    out.close("encodingLimits");
    out.leaf("trajectory", spaces.trajectory);
    if spaces.acceleration != [1; 2] {
        out.open("parallelImaging");
        out.open("accelerationFactor");
        out.leaf("kspace_encoding_step_1", spaces.acceleration[0]);
        out.leaf("kspace_encoding_step_2", spaces.acceleration[1]);
        out.close("accelerationFactor");
        out.close("parallelImaging");
    }
    out.close("encoding");
}

fn sequence(out: &mut Xml, folder: &Folder) -> Result<()> {
    let acqp = &folder.acqp;
    let times = |name: &str| acqp.numbers(name, 1 << 16).map(Option::unwrap_or_default);
    out.open("sequenceParameters");
    for (name, own, most) in [
        ("TR", times("ACQ_repetition_time")?, 1 << 10),
        ("TE", times("ACQ_echo_time")?, 1 << 10),
        ("TI", times("ACQ_inversion_time")?, 1 << 10),
    ] {
        own.into_iter().take(most).filter(|time| *time > 0.0).for_each(|time| out.leaf(name, time));
    }
    if let Some(angle) = acqp.number("ACQ_flip_angle")? {
        out.leaf("flipAngle_deg", angle);
    }
    out.close("sequenceParameters");
    Ok(())
}
