//! What a run writes leaves what it reads, and what other runs have written, as it is.

use std::collections::BTreeMap;
use std::path::Path;

use crate::arrays::command;
use crate::{files, ok, refused, with_scan};

fn contents(folder: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    files(folder)
        .into_iter()
        .filter(|file| file.is_file())
        .map(|file| (file.clone(), std::fs::read(file).unwrap()))
        .collect()
}

fn array(path: &Path, shape: [usize; 3], value: f32) {
    ndarray_npy::write_npy(path, &ndarray::Array3::from_elem(shape, value)).unwrap();
}

fn record(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn no_output_takes_the_place_of_an_input_or_of_another_output() {
    let folder = with_scan();
    let f = folder.path();
    for name in ["views.npy", "flat.npy", "dark.npy"] {
        array(&f.join(name), [4, 1, 6], 2.0);
    }
    std::fs::create_dir(f.join("in")).unwrap();
    std::fs::rename(f.join("dark.npy"), f.join("in/dark.npy")).unwrap();
    #[cfg(unix)]
    {
        std::fs::hard_link(f.join("flat.npy"), f.join("hard.npy")).unwrap();
        std::os::unix::fs::symlink("in", f.join("link")).unwrap();
    }
    ok(&command("recon mri scan.h5 -q -o image.npy -m gridding"), f);
    let before = contents(f);
    let ct = "recon ct views.npy --arc 180 -o volume.npy";
    for (line, output) in [
        (format!("{ct} -o flat.npy --flat flat.npy"), "flat.npy"),
        (format!("{ct} -o link/dark.npy --flat 3 --dark in/dark.npy"), "link/dark.npy"),
        (format!("{ct} -o hard.npy --flat flat.npy"), "hard.npy"),
        (
            format!("{ct} --rtk geometry.png --preview geometry.png --stream").replace(" --arc 180", ""),
            "geometry.png",
        ),
        ("recon mri scan.h5 -o x.npy --maps maps.cfl --save-maps maps.hdr".into(), "maps.hdr"),
        ("recon mri scan.h5 -o truth.nii.gz --reference truth.nii.gz".into(), "truth.nii.gz"),
        ("recon mri scan.h5 -o x.cfl -o ./x.hdr".into(), "./x.hdr"),
        ("recon mri scan.h5 -o x.dicom -m tv --anatomy x.dicom/anatomy.nii".into(), "x.dicom"),
        ("batch scan.h5 -o out/{stem}.npy --page scan.h5".into(), "scan.h5"),
        ("batch scan.h5 -o {stem}.h5".into(), "scan.h5"),
        ("batch scan.h5 -o out/{stem}.npy --page out/scan.json".into(), "out/scan.json"),
        ("batch scan.h5 -o out/{stem}.npy --page maps.hdr -- --maps maps.cfl".into(), "maps.hdr"),
        ("convert truth.nii.gz in/../truth.nii.gz --slice 0".into(), "in/../truth.nii.gz"),
        ("simulate mri -o x.h5 --truth x.h5".into(), "x.h5"),
        ("render truth.nii.gz -o x.png --transfer x.png".into(), "x.png"),
        ("rerun image.json --out .".into(), "--out ."),
    ] {
        refused(&command(&line), f, &[output, "a file of its own for each output"]);
        assert!(contents(f) == before, "{line}");
    }
    let record = format!("{ct} --flat flat.npy --record flat.npy");
    refused(&command(&record), f, &["--record: flat.npy", "a record of a run"]);
    assert!(contents(f) == before);
}

#[test]
fn files_that_a_scan_leads_to_are_inputs() {
    let folder = with_scan();
    let f = folder.path();
    ok(&command("simulate ct -q -o ct.h5 -g parallel --matrix 16,16 --views 12 --lines"), f);
    for (name, file) in [("views.h5", "ct.h5"), ("coils.h5", "scan.h5")] {
        let held = hdf5::File::open(f.join(file)).unwrap().member_names().unwrap();
        let leading = hdf5::File::create(f.join(name)).unwrap();
        held.iter().for_each(|group| leading.link_external(file, group, group).unwrap());
    }
    let before = contents(f);
    for (line, output) in [
        ("recon ct views.h5 -o ct.h5", "ct.h5"),
        ("recon mri coils.h5 -o scan.h5", "scan.h5"),
        ("convert coils.h5 ./scan.h5", "./scan.h5"),
        ("batch coils.h5 -o scan.h5", "scan.h5"),
    ] {
        refused(&command(line), f, &[output]);
        assert!(contents(f) == before, "{line}");
    }
    ok(&command("recon ct views.h5 -q -o volume.npy"), f);
    let inputs = record(&f.join("volume.json"))["inputs"].clone();
    let names: Vec<&str> =
        inputs.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["views.h5", "ct.h5"]);
    ok(&command("rerun volume.json -q"), f);
    ok(&command("simulate ct -q -o ct.h5 -g parallel --matrix 16,16 --views 13 --lines"), f);
    refused(&command("rerun volume.json"), f, &["ct.h5", "bytes of hash"]);
}

#[test]
fn a_record_lists_the_fields_and_replaces_no_record_of_another_output() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    array(&f.join("ct.npy"), [8, 1, 8], 900.0);
    array(&f.join("flat.npy"), [2, 1, 8], 1000.0);
    array(&f.join("dark.npy"), [1, 1, 8], 3.0);
    ok(
        &command(
            "recon ct ct.npy -q --arc 180 --axis 3.5 --flat flat.npy --dark dark.npy -o volume.npy -o volume.cfl",
        ),
        f,
    );
    let names = |which: &str| -> Vec<String> {
        let record = record(&f.join("volume.json"));
        let entries = record[which].as_array().unwrap().iter();
        entries.map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("inputs"), ["ct.npy", "flat.npy", "dark.npy"]);
    assert_eq!(names("outputs"), ["volume.npy", "volume.hdr", "volume.cfl"]);
    array(&f.join("flat.npy"), [2, 1, 8], 1001.0);
    refused(&command("rerun volume.json"), f, &["flat.npy", "bytes of hash"]);

    // Records of older versions lack them.
    let mut older = record(&f.join("volume.json"));
    older["inputs"].as_array_mut().unwrap().truncate(1);
    std::fs::write(f.join("older.json"), older.to_string()).unwrap();
    let told = crate::rayspin(&command("rerun older.json"), f);
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("note: flat.npy: whether it has changed is unknown"), "{told}");

    // A scan and the volume of it are called alike.
    ok(&command("simulate ct -q -o head.h5 -g parallel --matrix 16,16 --views 12 --lines"), f);
    let scan = std::fs::read(f.join("head.json")).unwrap();
    for _ in 0..2 {
        ok(&command("recon ct head.h5 -q -o head.nii.gz"), f);
    }
    assert_eq!(std::fs::read(f.join("head.json")).unwrap(), scan);
    for (name, output) in [("head.json", "head.h5"), ("head.nii.gz.json", "head.nii.gz")] {
        ok(&["rerun", name, "-q", "--out", "again"], f);
        assert_eq!(
            std::fs::read(f.join(output)).unwrap(),
            std::fs::read(f.join("again").join(output)).unwrap()
        );
    }
}

#[test]
fn what_is_repeated_writes_to_its_own_folder_alone() {
    let folder = with_scan();
    let f = folder.path();
    std::fs::create_dir_all(f.join("a")).unwrap();
    ok(
        &command("recon mri scan.h5 -m cg-sense --iterations 2 --cache kernels -qoimage.npy -o a/image.npy"),
        f,
    );
    ok(&command("simulate ct -q -o ct.h5 -g parallel --matrix 16,16 --views 12 --lines"), f);
    ok(&command("recon ct ct.h5 -q --stream --preview now.png -o volume.npy"), f);
    let before = contents(f);
    assert!(before.contains_key(&f.join("now.png")));
    std::fs::remove_file(f.join("now.png")).unwrap();
    let kernels = std::fs::read_dir(f.join("kernels")).unwrap().map(|file| file.unwrap().path());
    kernels.for_each(|file| std::fs::remove_file(file).unwrap());
    for name in ["image.json", "volume.json"] {
        let told = ok(&["rerun", name, "--out", "again"], f);
        assert!(!String::from_utf8(told.stdout).unwrap().contains("What differs"), "{name}");
    }
    assert_eq!(std::fs::read_dir(f.join("kernels")).unwrap().count(), 0);
    assert!(!f.join("now.png").exists() && f.join("again/now.png").exists());
    assert_eq!(std::fs::read_dir(f.join("again/kernels")).unwrap().count(), 1);
    assert_eq!(std::fs::read(f.join("again/2-image.npy")).unwrap(), before[&f.join("image.npy")]);
}
