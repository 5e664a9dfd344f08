//! No output names the patient, except on request.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayspin::core::Monitor;
use rayspin::io::ismrmrd::{self, Identity};

/// One test at a time: a process that is started while another test has an HDF5 file open holds that file's
/// lock for a moment.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rayspin(line: &str, folder: &Path) -> Output {
    let words = line.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_rayspin")).args(words).current_dir(folder).output().unwrap()
}

fn ok(line: &str, folder: &Path) -> Output {
    let output = rayspin(line, folder);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// What a header must not pass on, as it stands in files.
const WORDS: [&str; 9] = [
    "Bauer^Elfriede",
    "PAT-0815",
    "1931-05-17",
    "1.2.276.0.7230010",
    "2019-11-03",
    "Klinikum am Anger",
    "Dr. Sauer",
    "45123_000_778",
    "RWxmcmllZGU=",
];

/// A scan whose header names the patient.
fn named_scan(folder: &Path, options: &str) {
    ok(&format!("simulate mri -q --no-record -o scan.h5 {options}"), folder);
    let path = folder.join("scan.h5");
    let mut scan = ismrmrd::read(&path).unwrap();
    ismrmrd::write(folder.join("plain.h5"), &scan, Identity::LeaveOut).unwrap();
    let xml = ismrmrd::header(folder.join("plain.h5"), None).unwrap().xml.unwrap();
    std::fs::remove_file(folder.join("plain.h5")).unwrap();
    let root = xml.find("<ismrmrdHeader").unwrap();
    let begin = root + xml[root..].find('>').unwrap() + 1;
    let identity = "<subjectInformation><patientName>Bauer^Elfriede</patientName><patientID>PAT-0815</patientID>\
                    <patientBirthdate>1931-05-17</patientBirthdate></subjectInformation><studyInformation>\
                    <studyDate>2019-11-03</studyDate><referringPhysicianName>Dr. Sauer</referringPhysicianName>\
                    <studyInstanceUID>1.2.276.0.7230010</studyInstanceUID></studyInformation>";
    let place = "<institutionName>Klinikum am Anger</institutionName>";
    let user = "<userParameters><userParameterString><name>tReferenceImage0</name><value>45123_000_778</value>\
                </userParameterString><userParameterBase64><name>MeasHeader</name><value>RWxmcmllZGU=</value>\
                </userParameterBase64></userParameters>";
    let mut named = format!("{}<!-- Bauer^Elfriede -->{identity}{}", &xml[..begin], &xml[begin..]);
    let system = named.find("</acquisitionSystemInformation>").unwrap();
    named.insert_str(system, place);
    let end = named.rfind("</ismrmrdHeader>").unwrap();
    named.insert_str(end, user);
    scan.header = ismrmrd::parse_header(&path, named.as_bytes()).unwrap().0;
    ismrmrd::write(&path, &scan, Identity::Keep).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(WORDS.iter().all(|word| holds(&bytes, word)), "the scan names its patient");
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

/// Fails where a file of the folder other than the scan, or what the command said, holds one of the words.
fn expect_nameless(folder: &Path, line: &str, said: &Output) {
    let mut places = vec![("the screen".to_owned(), [&said.stdout[..], &said.stderr[..]].concat())];
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.file_name().unwrap() != "scan.h5") {
        places.push((file.display().to_string(), std::fs::read(&file).unwrap()));
    }
    for (place, bytes) in places {
        for word in WORDS {
            assert!(!holds(&bytes, word), "{line}: {place} holds {word}");
        }
    }
}

#[test]
fn no_output_names_the_patient() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    named_scan(f, "-t radial --matrix 16,16 --coils 3 --repetitions 2");
    for line in [
        "info scan.h5",
        "info scan.h5 --json",
        "recon mri scan.h5 --dry-run",
        "recon mri scan.h5 -o a.nii -o a.npy -o a.cfl -o a.png -o a.h5 --save-maps maps.cfl --method cg-sense -i 3",
        "recon mri scan.h5 -o b.nii -o b.h5 --repetition 0 --method gridding --certify 20",
        "recon mri scan.h5 -o w.nii -o w.h5 --window 5 --method gridding",
        "convert scan.h5 raw.h5",
        "convert a.h5 converted.nii",
        "convert raw.h5 again.h5",
        "info raw.h5",
    ] {
        let said = ok(line, f);
        expect_nameless(f, line, &said);
    }
    // What is left is the scan.
    let [own, copy] = ["scan.h5", "raw.h5"].map(|name| ismrmrd::read(f.join(name)).unwrap());
    assert_eq!(own.acquisitions, copy.acquisitions);
    assert_eq!(own.header.encodings, copy.header.encodings);
    assert_eq!((own.header.vendor, own.header.protocol), (copy.header.vendor, copy.header.protocol));
    let told = String::from_utf8(ok("info scan.h5", f).stdout).unwrap();
    assert!(told.contains("patientName") && told.contains("studyDate"), "{told}");
}

#[test]
fn descriptions_of_images_are_not_passed_on() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    ok("simulate mri -q --no-record -o scan.h5 --matrix 16,16 --coils 1 --truth truth.nii", f);
    // Both free texts of a NIfTI header: descrip and aux_file.
    let mut bytes = std::fs::read(f.join("truth.nii")).unwrap();
    bytes[148..148 + WORDS[0].len()].copy_from_slice(WORDS[0].as_bytes());
    bytes[228..228 + WORDS[1].len()].copy_from_slice(WORDS[1].as_bytes());
    // What this folder holds as the scan is the image.
    std::fs::write(f.join("scan.h5"), bytes).unwrap();
    for name in ["a.nii", "a.npy", "a.cfl", "a.h5", "a.png"] {
        let said = ok(&format!("convert scan.h5 {name}"), f);
        expect_nameless(f, name, &said);
    }
    let said = ok("info scan.h5", f);
    expect_nameless(f, "info", &said);
}

#[test]
fn identity_is_kept_on_request() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    named_scan(f, "--matrix 16,16 --coils 1");
    let said = ok("convert scan.h5 bare.h5", f);
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("subjectInformation/patientName") && said.contains("--keep-identity"), "{said}");
    ok("convert scan.h5 named.h5 --keep-identity", f);
    let header = |name: &str| ismrmrd::header(f.join(name), None).unwrap();
    assert_eq!(header("named.h5"), header("scan.h5"));
    ok("recon mri scan.h5 -q -o a.npy --keep-identity", f);
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    let identity = &record["parameters"]["identity"];
    assert_eq!(identity["subjectInformation/patientName"], "Bauer^Elfriede");
    assert_eq!(identity["acquisitionSystemInformation/institutionName"], "Klinikum am Anger");
    assert!(!identity.to_string().contains("userParameter"), "{identity}");
    let refused = rayspin("convert a.npy b.npy --keep-identity", f);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.status.code() == Some(2) && told.contains("--keep-identity: expected a raw scan"),
        "{told}"
    );
    let scan = ismrmrd::read_with(f.join("bare.h5"), &Default::default(), &Monitor::silent()).unwrap();
    assert!(ismrmrd::identity_of(&scan.header).is_empty());
}
