//! All images of a scan in one run: sets, cardiac phases, repetitions and contrasts. Every volume has a
//! factor of its own, which shows where it went.

use std::path::Path;

use ndarray::{ArrayD, Ix6};
use rayspin::core::{C32, Monitor};
use rayspin::io::ismrmrd::{self, Identity};
use rayspin::io::{npy, open_scan, read_image};
use rayspin::mri::scan::{Acquisition, Scan, ScanHeader};

use crate::arrays::{command, said};
use crate::bart::dims;
use crate::{ok, refused, simulated};

const SEQUENCE: &str = "<sequenceParameters><TR>2000</TR><TE>4.5</TE><TE>9</TE><TE>13.5</TE>\
                        <flipAngle_deg>40</flipAngle_deg></sequenceParameters>";

fn factor(set: u16, repetition: u16, contrast: u16) -> f32 {
    1.0 + f32::from(contrast) + 4.0 * f32::from(repetition) + 16.0 * f32::from(set)
}

/// Two slices of two sets, three repetitions and three contrasts, whose readouts come in this order of loops.
pub(crate) fn several(folder: &Path) -> Scan {
    simulated(folder, "--matrix 20,16,2 --coils 2 --snr 40");
    let one = ismrmrd::read(folder.join("scan.h5")).unwrap();
    let mut acquisitions = Vec::new();
    for repetition in 0..3 {
        for set in 0..2 {
            for readout in &one.acquisitions {
                for contrast in 0..3 {
                    let mut own: Acquisition = readout.clone();
                    let counters = &mut own.counters;
                    (counters.set, counters.repetition, counters.contrast) = (set, repetition, contrast);
                    own.time_stamp = 100 * u32::from(repetition);
                    own.data.mapv_inplace(|value| value * factor(set, repetition, contrast));
                    acquisitions.push(own);
                }
            }
        }
    }
    let mut scan = Scan { acquisitions, ..one };
    let xml = scan.header.xml.take().unwrap();
    assert!(!xml.contains("sequenceParameters"));
    scan.header.xml = Some(xml.replace("</ismrmrdHeader>", &format!("{SEQUENCE}</ismrmrdHeader>")));
    scan
}

pub(crate) fn write(folder: &Path, name: &str, scan: &Scan) {
    ismrmrd::write(folder.join(name), scan, Identity::Keep).unwrap();
}

fn record(folder: &Path, name: &str) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

fn worst(found: &ArrayD<C32>, wanted: &ArrayD<C32>) -> f32 {
    let scale = wanted.iter().map(|value| value.norm()).fold(0.0, f32::max);
    found.iter().zip(wanted).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max) / scale
}

#[test]
fn some_averages_give_the_image_that_they_are_alone() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 20,16,2 --coils 2 --snr 40");
    let mut scan = ismrmrd::read(f.join("scan.h5")).unwrap();
    let one = std::mem::take(&mut scan.acquisitions);
    for average in 0..3u16 {
        scan.acquisitions.extend(one.iter().cloned().map(|mut own| {
            own.counters.average = average;
            own.data.mapv_inplace(|value| value * (1.0 + f32::from(average)));
            own
        }));
    }
    write(f, "three.h5", &scan);
    let image = |given: &str| {
        ok(&command(&format!("recon mri {given} -q --no-record -m cartesian -o image.npy")), f);
        npy::read_complex(f.join("image.npy")).unwrap()
    };
    let alone = image("scan.h5");
    for (given, factor) in
        [("", 2.0), (" --average 0", 1.0), (" --average 1-2", 2.5), (" --average 0,2", 2.0)]
    {
        let error = worst(&image(&format!("three.h5{given}")), &alone.mapv(|value| value * factor));
        assert!(error < 1e-5, "{given}: {error}");
    }
    refused(&command("recon mri three.h5 --average 3 -o x.npy"), f, &["average", "0 to 2", "found 3"]);
    let told = said("recon mri three.h5 --average 1-2 --no-record -m cartesian -o image.npy", f);
    assert!(told.contains("only averages 1-2 are used"), "{told}");
}

#[test]
fn volumes_are_axes_and_each_is_the_image_that_it_is_alone() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    write(f, "several.h5", &several(f));
    // Maps are estimated from the first volume for all; one alone would have its own.
    ok(&command("recon mri scan.h5 -q --no-record -m cg-sense --save-maps maps.npy -o one.npy"), f);
    for method in ["cartesian", "cg-sense --maps maps.npy"] {
        let given = format!("recon mri several.h5 -q -m {method}");
        ok(&command(&format!("{given} -o all.npy -o all.cfl -o all.nii -o all.h5")), f);
        ok(&command(&format!("recon mri scan.h5 -q --no-record -m {method} -o one.npy")), f);
        let one = npy::read_complex(f.join("one.npy")).unwrap();
        let all = npy::read_complex(f.join("all.npy")).unwrap().into_dimensionality::<Ix6>().unwrap();
        assert_eq!(all.shape(), [2, 3, 3, 2, 16, 20]); // set, repetition, contrast, z, y, x
        assert_eq!(dims(f, "all.cfl"), [20, 16, 2, 1, 1, 3, 1, 1, 1, 1, 3, 1, 1, 1, 1, 2]);
        for (set, repetition, contrast) in
            (0..2).flat_map(|s| (0..3).flat_map(move |r| (0..3).map(move |c| (s, r, c))))
        {
            let [s, r, c] = [set, repetition, contrast].map(usize::from);
            let found = all.slice(ndarray::s![s, r, c, .., .., ..]).to_owned().into_dyn();
            let wanted = one.mapv(|value| value * factor(set, repetition, contrast));
            let error = worst(&found, &wanted);
            assert!(error < 2e-3, "{method} {set} {repetition} {contrast}: {error}");
            let alone = format!("--set {set} --repetition {repetition} --contrast {contrast}");
            ok(&command(&format!("{given} --no-record -o alone.npy {alone}")), f);
            let alone = npy::read_complex(f.join("alone.npy")).unwrap();
            let error = worst(&found, &alone);
            assert!(error < 2e-3, "{method} {set} {repetition} {contrast} alone: {error}");
        }
        // The other formats hold the same volumes in this order.
        for name in ["all.npy", "all.cfl", "all.nii", "all.h5"] {
            let image = read_image(f.join(name)).unwrap().image;
            assert_eq!(image.data().shape(), [18, 2, 16, 20], "{name}");
            let found = image.data().mapv(|value| C32::new(value.norm(), 0.0));
            let wanted = all.to_shape((18, 2, 16, 20)).unwrap().mapv(|v| C32::new(v.norm(), 0.0)).into_dyn();
            assert!(worst(&found, &wanted) < 1e-6, "{name}");
        }
        let counters = &record(f, "all.json")["parameters"]["volumes"];
        let stated = serde_json::json!([["set", [0, 1]], ["repetition", [0, 1, 2]], ["contrast", [0, 1, 2]]]);
        assert_eq!(counters, &stated);
    }
    // A file of images states the counters of each.
    let Some(python) = std::env::var_os("RAYSPIN_PYTHON") else {
        println!("skipped: RAYSPIN_PYTHON is not set");
        return;
    };
    let file = std::process::Command::new(python)
        .args(["-c", "import ismrmrd,sys\nd=ismrmrd.Dataset(sys.argv[1],'dataset',False)\n\
            print([(h.set,h.repetition,h.contrast,h.image_index) for h in (d.read_image('image_0',i) for i in (0,4,17))])"])
        .arg(f.join("all.h5"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&file.stdout);
    assert_eq!(text.trim(), "[(0, 0, 0, 1), (0, 1, 1, 5), (1, 2, 2, 18)]", "{file:?}");
}

#[test]
fn ranges_choose_volumes_and_what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let scan = several(f);
    write(f, "several.h5", &scan);
    let run = |more: &str| said(&format!("recon mri several.h5 --no-record -m cartesian -o i.npy {more}"), f);
    for (more, shape) in [
        ("--contrast 1-2 --set 1 --repetition 0,2", &[2, 2, 2, 16, 20][..]),
        ("--set 1 --repetition 0", &[3, 2, 16, 20]),
        ("--set 1 --repetition 0 --contrast 2 --slice 1", &[1, 16, 20]),
    ] {
        run(more);
        assert_eq!(npy::read_complex(f.join("i.npy")).unwrap().shape(), shape, "{more}");
    }
    let refuses = |line: &str, texts: &[&str]| {
        refused(&command(line), f, texts);
    };
    let all = |more: &str, texts: &[&str]| {
        refuses(&format!("recon mri several.h5 --no-record -o x.npy {more}"), texts);
    };
    all("--contrast 3", &["contrast: expected numbers from 0 to 2, found 3"]);
    all("-m low-rank-sparse", &["low-rank-sparse", "3 contrasts", "--contrast"]);
    all("-m cartesian --combine none", &["volumes", "--contrast"]);
    // Volumes with different slices.
    let mut missing = scan;
    missing.acquisitions.retain(|a| a.counters.contrast < 2 || a.counters.slice == 0);
    write(f, "missing.h5", &missing);
    let some = command("recon mri missing.h5 --no-record -m cartesian -o x.npy");
    refused(&some, f, &["volumes: expected the same slices in each", "--slice"]);
    refused(
        &command("recon mri missing.h5 --no-record -m cartesian -o x.npy --set 0 --repetition 1"),
        f,
        &["contrasts: expected the same slices in each", "`--contrast`"].map(|text| text.trim_matches('`')),
    );

    // A window takes the readouts of one contrast.
    simulated(f, "--matrix 16,16 --trajectory radial --shots 12 --coils 2");
    let mut radial = ismrmrd::read(f.join("scan.h5")).unwrap();
    let mut second = radial.acquisitions.clone();
    second.iter_mut().for_each(|readout| readout.counters.contrast = 1);
    radial.acquisitions.extend(second);
    write(f, "radial.h5", &radial);
    let windows = "recon mri radial.h5 --no-record -m gridding --window 6 -o w.npy";
    let text = said(windows, f);
    assert!(text.contains("contrast [0, 1]: the windows are of 0"), "{text}");
    assert_eq!(npy::read_complex(f.join("w.npy")).unwrap().shape(), [2, 1, 16, 16]);
    refused(&command(&format!("{windows} --contrast 0-1")), f, &["contrast: expected one", "window"]);
}

#[test]
fn names_of_bids_tell_echoes_parts_and_directions() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let mut scan = several(f);
    scan.acquisitions.retain(|a| a.counters.set == 0);
    write(f, "echoes.h5", &scan);
    let given = "recon mri echoes.h5 -m cg-sense";
    let grid = "recon mri echoes.h5";
    ok(&command(&format!("{given} -q --no-record -o all.npy")), f);
    let all = npy::read_complex(f.join("all.npy")).unwrap().into_dimensionality::<ndarray::Ix5>().unwrap();
    ok(&command(&format!("{given} -q -o sub-01_task-rest_bold.nii.gz --bids --phase")), f);
    for (echo, part) in (1..4).flat_map(|echo| ["mag", "phase"].map(move |part| (echo, part))) {
        let stem = format!("sub-01_task-rest_echo-{echo}_part-{part}_bold");
        let image = read_image(f.join(format!("{stem}.nii.gz"))).unwrap().image;
        assert_eq!(image.data().shape(), [3, 2, 16, 20]);
        let of_echo = all.slice(ndarray::s![.., echo - 1, .., .., ..]);
        for (found, complex) in image.data().iter().zip(of_echo) {
            let [wanted, scale] = match part {
                "mag" => [complex.norm(), 1.0],
                _ => [complex.arg(), 1.0],
            };
            assert!((found.re - wanted).abs() < 1e-4 * (scale + wanted.abs()), "{stem}");
        }
        let told = record(f, &format!("{stem}.json"));
        assert!((told["EchoTime"].as_f64().unwrap() - 4.5e-3 * f64::from(echo as u8)).abs() < 1e-12);
        // 100 ticks of 2.5 ms from one repetition to the next.
        assert_eq!((&told["RepetitionTime"], &told["FlipAngle"]), (&0.25.into(), &40.0.into()));
        assert_eq!(told["RepetitionTimeExcitation"], 2.0);
        assert_eq!(told["PhaseEncodingAxis"], "j");
        assert_eq!((&told["MRAcquisitionType"], told.get("ScanningSequence")), (&"2D".into(), None));
        assert_eq!(told.get("Units").is_some(), part == "phase");
    }
    // The record has a name of its own and tells of all files.
    let outputs = record(f, "sub-01_task-rest_bold.nii.gz.json");
    assert_eq!(outputs["outputs"].as_array().unwrap().len(), 12);

    // Sets: by the header's list of a value for each, or by the label of the acquisition.
    let of_sets = several(f);
    write(f, "sets.h5", &of_sets);
    let with_times =
        of_sets.header.xml.as_deref().unwrap().replace("<flip", "<TI>700</TI><TI>2500</TI><flip");
    let header = ScanHeader { xml: Some(with_times), ..of_sets.header.clone() };
    write(f, "inversions.h5", &Scan { header, ..of_sets });
    for (scan, entity) in [("sets", "acq-set"), ("inversions", "inv-")] {
        let told = said(&format!("{given} -o sub-1_{scan}.nii.gz --bids").replace("echoes", scan), f);
        assert_eq!(told.contains("how the sets differ: the entity acq"), scan == "sets", "{told}");
        for (set, echo) in (1..3u64).flat_map(|set| (1..4).map(move |echo| (set, echo))) {
            let stem = match scan {
                "sets" => format!("sub-1_{entity}{set}_echo-{echo}_{scan}"),
                _ => format!("sub-1_echo-{echo}_{entity}{set}_{scan}"),
            };
            let image = read_image(f.join(format!("{stem}.nii.gz"))).unwrap().image;
            assert_eq!(image.data().shape(), [3, 2, 16, 20]);
            let told = record(f, &format!("{stem}.json"));
            let (number, time) = match scan {
                "sets" => (Some(set), None),
                _ => (None, Some(if set == 1 { 700.0 } else { 2500.0 })),
            };
            assert_eq!(told.get("Set").and_then(serde_json::Value::as_u64), number);
            let stated = told.get("InversionTime").and_then(serde_json::Value::as_f64);
            assert_eq!(stated.map(|s| (s * 1e3).round()), time);
        }
    }

    // One volume; and slices of three directions.
    ok(&command(&format!("{given} -q -o T1w.nii --bids --repetition 0 --contrast 1 --slice 0")), f);
    assert!((record(f, "T1w_echo-2.json")["EchoTime"].as_f64().unwrap() - 9e-3).abs() < 1e-12);
    for readout in &mut scan.acquisitions {
        if readout.counters.slice == 1 {
            (readout.phase_dir, readout.slice_dir) = (readout.slice_dir, readout.phase_dir);
        }
    }
    write(f, "planes.h5", &scan);
    ok(&command("recon mri planes.h5 -q -o l.nii.gz --bids -m cartesian --contrast 0"), f);
    for chunk in 1..3 {
        let image = read_image(f.join(format!("l_chunk-{chunk}.nii.gz"))).unwrap().image;
        assert_eq!(image.data().shape(), [3, 1, 16, 20]);
        assert!(f.join(format!("l_chunk-{chunk}.json")).is_file());
    }
    let with = |more: &str, texts: &[&str]| {
        refused(&command(&format!("{grid} --bids {more}")), f, texts);
    };
    with("-o x.npy", &["names of BIDS for NumPy"]);
    with("-o sub-1_echo-1_x.nii", &["no entity echo, flip, inv, part or chunk"]);
    with("-o x.nii --repetition 0 --contrast 0 -m cartesian --combine none", &["--bids", "coil images"]);
    // A sidecar takes no other file's place.
    std::fs::rename(f.join("echoes.h5"), f.join("e_echo-1.json")).unwrap();
    refused(&command("recon mri e_echo-1.json -o e.nii --bids -m cartesian"), f, &["e_echo-1.json"]);
    assert!(open_scan(f.join("e_echo-1.json"), &Monitor::silent()).is_ok());
}
