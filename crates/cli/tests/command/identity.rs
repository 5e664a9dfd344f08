//! No output names the patient, unless it is asked for.

use std::path::Path;
use std::process::Output;

use rayspin::core::Monitor;
use rayspin::io::ismrmrd::{self, Identity};

use crate::{files, ok, refused, simulated};

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
    simulated(folder, options);
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
    for file in files(folder).into_iter().filter(|file| file.file_name().unwrap() != "scan.h5") {
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
        let said = ok(&line.split_whitespace().collect::<Vec<_>>(), f);
        expect_nameless(f, line, &said);
    }
    // What is left is the scan.
    let [own, copy] = ["scan.h5", "raw.h5"].map(|name| ismrmrd::read(f.join(name)).unwrap());
    assert_eq!(own.acquisitions, copy.acquisitions);
    assert_eq!(own.header.encodings, copy.header.encodings);
    assert_eq!((own.header.vendor, own.header.protocol), (copy.header.vendor, copy.header.protocol));
    let told = String::from_utf8(ok(&["info", "scan.h5"], f).stdout).unwrap();
    assert!(told.contains("patientName") && told.contains("studyDate"), "{told}");
}

#[test]
fn identity_is_kept_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    named_scan(f, "--matrix 16,16 --coils 1");
    let said = ok(&["convert", "scan.h5", "bare.h5"], f);
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("subjectInformation/patientName") && said.contains("--keep-identity"), "{said}");
    ok(&["convert", "scan.h5", "named.h5", "--keep-identity"], f);
    let header = |name: &str| ismrmrd::header(f.join(name), None).unwrap();
    assert_eq!(header("named.h5"), header("scan.h5"));
    ok(&["recon", "mri", "scan.h5", "-q", "-o", "a.npy", "--keep-identity"], f);
    let (parameters, _) = crate::parameters(&f.join("a.json"));
    let identity = &parameters["identity"];
    assert_eq!(identity["subjectInformation/patientName"], "Bauer^Elfriede");
    assert_eq!(identity["acquisitionSystemInformation/institutionName"], "Klinikum am Anger");
    assert!(!identity.to_string().contains("userParameter"), "{identity}");
    refused(&["convert", "a.npy", "b.npy", "--keep-identity"], f, &["--keep-identity", "raw scan"]);
    let scan = ismrmrd::read_with(f.join("bare.h5"), &Default::default(), &Monitor::silent()).unwrap();
    assert!(ismrmrd::identity_of(&scan.header).is_empty());
}
