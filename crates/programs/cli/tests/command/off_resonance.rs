//! Inhomogeneous fields: simulated, corrected, stated and refused.

use crate::{ok, parameters, refused};

fn run(line: &str, folder: &std::path::Path) {
    ok(&line.split_whitespace().collect::<Vec<_>>(), folder);
}

/// A spiral scan of 6 ms in a field of up to 300 Hz, its maps, truth and field.
fn inhomogeneous() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(
        "simulate mri -q -o scan.h5 --truth truth.nii.gz --maps maps.cfl --matrix 48,48 -t spiral --shots 3 --coils 3 \
         --dwell 10 --field-map-hz 300 --save-field-map field.nii.gz --no-record",
        folder.path(),
    );
    folder
}

#[test]
fn a_field_map_corrects_and_the_record_states_segments_and_error() {
    let folder = inhomogeneous();
    let f = folder.path();
    let line = "recon mri scan.h5 -q --maps maps.cfl --method cg-sense --reference truth.nii.gz --fit -i 15";
    let error = |name: &str| {
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(f.join(name)).unwrap()).unwrap();
        (record["quality"][0]["metrics"]["nrmse"].as_f64().unwrap_or(f64::NAN), record)
    };
    run(&format!("{line} -o plain.nii.gz"), f);
    run(&format!("{line} -o fixed.nii.gz --field-map field.nii.gz --field-tolerance 1e-3"), f);
    let ((plain, _), (fixed, record)) = (error("plain.json"), error("fixed.json"));
    assert!(fixed < 0.6 * plain, "{plain} {fixed} {}", record["quality"]);
    let notes = record["notes"].to_string();
    assert!(notes.contains("time segments (largest residual") && notes.contains("Hz"), "{notes}");
    assert_eq!(record["parameters"]["field tolerance"], 1e-3);
    // The same map as numbers without geometry gives the same image.
    run(
        "simulate mri -q -o same.h5 --matrix 48,48 -t spiral --shots 3 --coils 3 --dwell 10 --field-map-hz 300 --save-field-map own.npy --no-record",
        f,
    );
    run(&format!("{line} -o own.nii.gz --field-map own.npy --field-tolerance 1e-3"), f);
    assert!(std::fs::read(f.join("own.nii.gz")).unwrap() == std::fs::read(f.join("fixed.nii.gz")).unwrap());
}

#[test]
fn memory_of_time_segments_is_stated_as_the_system_measures_it() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    run(
        "simulate mri -q -o scan.h5 --matrix 128,128 -t spiral --shots 8 --coils 8 --field-map-hz 120 \
         --save-field-map field.npy --no-record",
        f,
    );
    for method in ["gridding", "cg-sense -i 2", "ls -i 2", "tv -i 2"] {
        run(&format!("recon mri scan.h5 -q -o image.npy --field-map field.npy --method {method}"), f);
        let (parameters, peak) = parameters(&f.join("image.json"));
        let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
        println!("{method}: {ratio:.3} of {peak}");
        assert!((0.9..1.1).contains(&ratio), "{method}: {ratio} of {peak}");
    }
}

#[test]
fn what_cannot_be_corrected_is_refused() {
    let folder = inhomogeneous();
    let f = folder.path();
    let recon = |scan: &str, extra: &str, words: &[&str]| {
        let line = format!("recon mri {scan} -o x.npy {extra}");
        refused(&line.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    run(
        "simulate mri -q -o other.h5 --matrix 32,32 --coils 1 --field-map-hz 9 --save-field-map small.npy",
        f,
    );
    recon("scan.h5", "--field-map small.npy", &["field map", "[48, 48]", "[32, 32]"]);
    recon("scan.h5", "--field-map missing.nii", &["missing.nii"]);
    recon("scan.h5", "--field-map field.nii.gz --field-tolerance 0", &["tolerance", "found 0"]);
    recon("scan.h5", "--field-map maps.cfl", &["maps.cfl"]);
    recon("other.h5", "--field-map small.npy --method cartesian", &["--field-map", "cartesian"]);
    recon("maps.cfl", "--field-map field.nii.gz", &["times of the samples", "ISMRMRD"]);
    let simulate = |extra: &str, words: &[&str]| {
        let line = format!("simulate mri -o y.h5 --matrix 16,16 {extra}");
        refused(&line.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    simulate("-t epi --field-map-hz 20", &["echo-planar"]);
    simulate("--field-map-hz nan", &["peak of the field map", "NaN"]);
    let volume = "simulate mri -o y.h5 --dims 3 --matrix 8,8,8 --field-map-hz 20";
    refused(&volume.split_whitespace().collect::<Vec<_>>(), f, &["linear", "smooth"]);
}
