//! Images as DICOM: MR and CT, alike in other programs, and whose they are.

use std::path::Path;
use std::process::Command;

use rayspin::core::C32;
use rayspin::io::{Modality, ismrmrd, names, npy, read_any_image, read_image};
use rayspin::mri::scan::Acquisition;

use crate::arrays::{command, nrmse, said};
use crate::real_data::real_data;
use crate::volumes::{several, write};
use crate::{ok, refused, simulated};

/// Runs `tests/interop/dicom_mri.py`; returns what it prints. None, with a printed word, without
/// RAYSPIN_PYTHON.
fn python(arguments: &[&Path]) -> Option<serde_json::Value> {
    let Ok(python) = std::env::var("RAYSPIN_PYTHON") else {
        println!("skipped: RAYSPIN_PYTHON is not set");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/interop/dicom_mri.py");
    let run = Command::new(python).arg(script).args(arguments).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(serde_json::from_slice(&run.stdout).unwrap())
}

/// Turns the axes of a scan and moves it.
fn turn(readout: &mut Acquisition) {
    let (s, c) = 0.4f32.sin_cos();
    let around_z = |[x, y, z]: [f32; 3]| [c * x - s * y, s * x + c * y, z];
    let around_x = |[x, y, z]: [f32; 3]| [x, c * y - s * z, s * y + c * z];
    let both = |v| around_x(around_z(v));
    readout.read_dir = both(readout.read_dir);
    readout.phase_dir = both(readout.phase_dir);
    readout.slice_dir = both(readout.slice_dir);
    let [x, y, z] = both(readout.position);
    readout.position = [x + 11.0, y - 7.5, z + 3.25];
}

#[test]
fn images_of_mri_are_alike_in_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let mut scan = several(f);
    scan.acquisitions.iter_mut().for_each(turn);
    write(f, "sets.h5", &scan);
    scan.acquisitions.retain(|readout| readout.counters.set == 0);
    write(f, "echoes.h5", &scan);
    let out = f.join("out");
    std::fs::create_dir(&out).unwrap();
    let both = |scan: &str, name: &str, more: &str| {
        said(&format!("recon mri {scan} -o out/{name}.dicom -o out/{name}.nii.gz --no-record {more}"), f)
    };
    let told = both("echoes.h5", "several", "-m cg-sense");
    let assumed = "assumed, as the scan does not state it: ScanningSequence RM, SequenceVariant NONE";
    let empty = "empty, as the scan does not state it: EchoTrainLength";
    for text in [assumed, empty, "values are rounded to steps"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert!(!told.contains("Hounsfield"), "{told}");
    let one = "-m cg-sense --repetition 1 --contrast 2";
    both("echoes.h5", "one", one);
    both("echoes.h5", "slice", &format!("{one} --slice 1"));
    both("echoes.h5", "phase", &format!("{one} --phase"));
    assert!(both("sets.h5", "sets", "-m cg-sense --repetition 1").contains("each of the 2 sets is a series"));
    let held: Vec<String> = names(out.join("sets.dicom")).unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(held, ["1", "4"]);
    for name in ["several", "one", "slice", "phase"] {
        let [ours, nifti] = ["dicom", "nii.gz"].map(|ending| {
            let file = read_any_image(out.join(format!("{name}.{ending}"))).unwrap();
            let told = match (ending, name) {
                ("dicom", "phase") => &["values are rad (MeasurementUnitsCodeSequence)"][..],
                ("dicom", "several") => {
                    &["the series is 9 volumes, told apart by TemporalPositionIdentifier and EchoNumbers"]
                }
                _ => &[],
            };
            assert_eq!(file.notes, told, "{name}.{ending}");
            file.image.into_real().0
        });
        assert_eq!(ours.data().shape(), nifti.data().shape());
        let (a, b) = (ours.geometry(), nifti.geometry());
        let shape = ours.shape_zyx();
        let (a, b) = (a.affine_lps(shape), b.affine_lps(shape));
        assert!(
            a.as_flattened().iter().zip(b.as_flattened()).all(|(a, b)| (a - b).abs() < 1e-4),
            "{a:?} {b:?}"
        );
        let largest = nifti.data().iter().fold(0f32, |most, value| most.max(value.abs()));
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= largest / 30_000.0;
        assert!(ours.data().iter().zip(nifti.data()).all(near), "{name}");
    }
    // Each command reads a series as all volumes.
    assert!(said("info out/several.dicom", f).is_empty());
    ok(&command("convert out/several.dicom back.nii.gz"), f);
    assert!(nrmse("back.nii.gz", "out/several.nii.gz", f) < 1e-4);
    assert!(nrmse("out/several.dicom", "back.nii.gz", f) < 1e-6);
    simulated(f, "--matrix 24,20,6 --dims 3 --coils 2");
    both("scan.h5", "volume", "-m cg-sense");

    let Some(told) = python(&[&out]) else { return };
    let sidecar = |name: &str, at: usize| &told[format!("{name}.dicom")]["sidecars"][at];
    assert_eq!(told["several.dicom"]["sidecars"].as_array().unwrap().len(), 3);
    for echo in 0..3u8 {
        let own = sidecar("several", echo.into());
        assert!((own["EchoTime"].as_f64().unwrap() - 4.5e-3 * f64::from(echo + 1)).abs() < 1e-9, "{own}");
        assert_eq!((&own["Modality"], &own["FlipAngle"]), (&"MR".into(), &40.into()));
        assert_eq!((&own["MRAcquisitionType"], &own["RepetitionTime"]), (&"2D".into(), &2.into()));
    }
    // dcm2niix adds the last word where it takes an image as a phase.
    let kind = &sidecar("phase", 0)["ImageType"].as_array().unwrap()[2..];
    assert_eq!(kind, ["PHASE MAP", "P", "PHASE"]);
    assert_eq!(sidecar("volume", 0)["MRAcquisitionType"], "3D");
}

/// An image of coefficients is a sum over echoes, and has none of their times.
#[test]
fn images_of_coefficients_state_no_echo() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let mut scan = several(f);
    scan.acquisitions.retain(|readout| readout.counters.set == 0 && readout.counters.repetition == 0);
    write(f, "echoes.h5", &scan);
    let basis = ndarray::arr2(&[[1.0f32, 4.5], [1.0, 9.0], [1.0, 13.5]]).mapv(|v| C32::new(v, 0.0));
    npy::write(f.join("basis.npy"), basis.view()).unwrap();
    let recon = "recon mri echoes.h5 -m cg-sense --iterations 3 --no-record";
    // An element's tag, its type and its length, as explicit little endian stores them.
    let stated = |file: &str, number: u16, kind: &str| -> Option<u16> {
        let bytes = std::fs::read(f.join(file)).unwrap();
        let tag = [&[0x18, 0][..], &number.to_le_bytes(), kind.as_bytes()].concat();
        let place = bytes.windows(tag.len()).position(|own| own == tag)? + tag.len();
        Some(u16::from_le_bytes([bytes[place], bytes[place + 1]]))
    };
    let told = said(&format!("{recon} --basis basis.npy -o coefficients.dicom"), f);
    assert!(told.contains("EchoTime"), "{told}");
    ok(&command(&format!("{recon} -o echoes.dicom")), f);
    for file in ["IM000001.dcm", "IM000004.dcm"] {
        let own = format!("coefficients.dicom/{file}");
        assert_eq!([stated(&own, 0x81, "DS"), stated(&own, 0x86, "IS")], [Some(0), None], "{own}");
        let own = format!("echoes.dicom/{file}");
        assert!(stated(&own, 0x81, "DS") > Some(0) && stated(&own, 0x86, "IS") > Some(0), "{own}");
    }
    // They are read back as the volumes that they are.
    let back = read_any_image(f.join("coefficients.dicom")).unwrap();
    assert_eq!(back.image.into_real().0.data().shape(), [2, 2, 16, 20]);
}

#[test]
fn a_real_scan_of_siemens_states_its_sequence() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let Some(scan) = real_data("mri/gre_2ch_ve11.dat") else { return };
    let scan = scan.display().to_string();
    std::fs::create_dir(f.join("out")).unwrap();
    let line = format!("recon mri {scan} -o out/gre.dicom -o out/gre.nii.gz -m cartesian --no-record");
    let told = said(&line, f);
    assert!(!told.contains("as the scan does not state"), "{told}");
    ok(&command(&format!("recon mri {scan} -q -o gre.nii.gz --bids -m cartesian --no-record")), f);
    let sidecar = std::fs::read_to_string(f.join("gre.json")).unwrap();
    let sidecar: serde_json::Value = serde_json::from_str(&sidecar).unwrap();
    assert_eq!((&sidecar["ScanningSequence"], &sidecar["SequenceVariant"]), (&"GR".into(), &"SP".into()));
    // The same header is in the scan that is written from it.
    ok(&["convert", &scan, "gre.h5"], f);
    let header = ismrmrd::read(f.join("gre.h5")).unwrap().header;
    let stated = ismrmrd::Stated::of(&header);
    assert_eq!((stated.scanning_sequence, stated.sequence_variant), (vec!["GR".into()], vec!["SP".into()]));
    assert_eq!((stated.echo_train_length, stated.nucleus.as_deref()), (Some(1), Some("1H")));
    let Some(told) = python(&[&f.join("out")]) else { return };
    let own = &told["gre.dicom"]["sidecars"][0];
    assert_eq!(own["ScanningSequence"], "GR");
    assert_eq!(own["SequenceVariant"], "SP");
    assert_eq!(own["ProtocolName"], "gre");
}

#[test]
fn a_template_names_patient_and_study_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 16,16,2 --coils 2");
    ok(&command("simulate ct -q --no-record -o ct.h5 --matrix 16,16,4 --views 24"), f);
    std::fs::create_dir(f.join("out")).unwrap();
    let recon = "recon mri scan.h5 --no-record -m cartesian";
    // Of MRI without a template, and likewise of a series that is read and written again.
    ok(&command(&format!("{recon} -o out/none.dicom -o out/none.nii.gz")), f);
    ok(&command("convert out/none.dicom again.dicom"), f);
    let again = read_any_image(f.join("again.dicom")).unwrap();
    assert_eq!(again.modality, Some(Modality::Mr));
    let told = said("convert out/none.nii.gz bare.dicom", f);
    assert!(told.contains("Secondary Capture"), "{told}");
    let bare = read_any_image(f.join("bare.dicom")).unwrap();
    assert_eq!(bare.modality, None);
    ok(&command("convert out/none.nii.gz mr.dicom --dicom-template out/none.dicom/IM000001.dcm"), f);
    assert_eq!(read_any_image(f.join("mr.dicom")).unwrap().modality, Some(Modality::Mr));

    // What cannot be a template is refused before the run.
    let refuses = |more: &str, texts: &[&str]| {
        refused(&command(&format!("{recon} {more}")), f, texts);
    };
    refuses("-o x.dicom --dicom-template scan.h5", &["scan.h5", "a DICOM file"]);
    refuses("-o x.dicom --dicom-template out/none.dicom", &["none.dicom", "a folder"]);
    refuses("-o x.nii --dicom-template out/none.dicom/IM000001.dcm", &["--dicom-template", ".dicom"]);
    let ct = "recon ct ct.h5 --no-record";
    refused(&command(&format!("{ct} -o x.dicom --dicom-template scan.h5")), f, &["scan.h5", "a DICOM file"]);
    let whole = std::fs::read(f.join("out/none.dicom/IM000001.dcm")).unwrap();
    let at = whole.windows(4).position(|four| four == [0x20, 0, 0x0d, 0]).unwrap();
    let mut altered = whole.clone();
    altered[at + 8] = b'x';
    std::fs::write(f.join("uid.dcm"), altered).unwrap();
    refuses("-o x.dicom --dicom-template uid.dcm", &["uid.dcm", "StudyInstanceUID", "a UID"]);
    let mut altered = whole.clone();
    altered[at + 2] = 0x0c;
    std::fs::write(f.join("none.dcm"), altered).unwrap();
    refuses("-o x.dicom --dicom-template none.dcm", &["StudyInstanceUID", "the UID of a study"]);
    std::fs::write(f.join("cut.dcm"), &whole[..at + 20]).unwrap();
    refuses("-o x.dicom --dicom-template cut.dcm", &["cut.dcm", "cut short"]);
    assert!(!f.join("x.dicom").exists());
    std::fs::copy(f.join("scan.h5"), f.join("other.h5")).unwrap();
    let batch = "batch scan.h5 other.h5 -o {stem}.dicom -- --dicom-template out/none.dicom/IM000001.dcm";
    refused(&command(batch), f, &["--dicom-template", "expected one scan, found 2"]);

    let Some(_) = python(&[Path::new("template"), f]) else { return };
    ok(&command(&format!("{recon} -o out/mr.dicom -o out/mr.nii.gz --dicom-template theirs.dcm")), f);
    ok(&command(&format!("{ct} -o out/ct.dicom -o out/ct.nii.gz --dicom-template theirs.dcm")), f);
    python(&[Path::new("named"), f]);
    python(&[&f.join("out")]);
    let [none, named] = ["none", "mr"].map(|name| read_image(f.join(format!("out/{name}.dicom"))).unwrap());
    assert_eq!(none.image, named.image);
}
