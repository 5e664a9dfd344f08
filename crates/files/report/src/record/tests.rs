use super::*;
use std::time::Duration;

fn record() -> RunRecord {
    let mut run = RunRecorder::start(
        "rayspin",
        "0.1.0",
        ["rayspin", "recon", "scan.h5", "--lambda", "0.01"],
        "test processor, 2 threads, AVX2+FMA",
        2,
    );
    run.stage("read");
    run.input_entry(FileEntry::of("scan.h5", b"samples"));
    run.parameter("matrix", vec![64, 64]);
    run.parameter("lambda", 0.01);
    run.parameter("density", "pipe");
    run.parameter("coils", serde_json::json!({"kept": 8, "of": 32}));
    run.version("hdf5", "1.14.6");
    run.stage("solve");
    run.converged("frame 0", [1.0, 0.25, f64::NAN]);
    run.followed("frame 0", "objective", [0.5, 0.125]);
    run.stage("write");
    run.output_entry(FileEntry::of("image.nii", &[0; 352]));
    run.quality(
        "image.nii",
        "true.nii",
        "magnitudes compared",
        [("nrmse", 0.12), ("psnr_db", f64::INFINITY)],
    );
    run.note("The trajectory's unit is not stated; taken as cycles per field of view.");
    run.note("The trajectory's unit is not stated; taken as cycles per field of view.");
    run.finish(Some(123_456_789))
}

#[test]
fn layout() {
    insta::assert_json_snapshot!(record(), {
        ".started" => insta::dynamic_redaction(|value, _| {
            let text = value.as_str().unwrap().to_owned();
            assert!(text.ends_with('Z') && text.as_bytes()[10] == b'T', "{text} is not UTC in ISO 8601");
            "[time]"
        }),
        ".stages[].seconds" => "[seconds]",
        ".total_seconds" => "[seconds]",
    });
}

#[test]
fn comes_back_from_json() {
    let mut record = record();
    let mut back = RunRecord::from_json(&record.to_json().unwrap()).unwrap();
    assert!(back.convergence[0].residual[2].is_nan());
    // NaN differs from itself, so it is taken out before the rest is compared.
    record.convergence[0].residual.pop();
    back.convergence[0].residual.pop();
    assert_eq!(record, back);
    assert_eq!(back.parameters.keys().collect::<Vec<_>>(), ["matrix", "lambda", "density", "coils"]);
    assert_eq!(record.to_json().unwrap(), back.to_json().unwrap());
}

#[test]
fn newer_older_and_broken_records() {
    let text = record().to_json().unwrap();
    for (schema, accepted) in
        [("1", true), ("2", true), ("3", false), ("0", false), ("99999999999", false), ("\"1\"", false)]
    {
        let changed = text.replacen("\"schema\": 2", &format!("\"schema\": {schema}"), 1);
        assert_eq!(RunRecord::from_json(&changed).is_ok(), accepted, "schema {schema}");
    }
    let error = RunRecord::from_json("{\"schema\": 7, \"program\": []}").unwrap_err();
    assert_eq!(error.to_string(), "run record: expected schema 2 or older, found 7");
    assert!(RunRecord::from_json("").is_err());
    assert!(RunRecord::from_json("{}").is_err());
    let more = text.replacen("\"schema\": 2", "\"schema\": 2, \"weather\": \"fine\"", 1);
    assert!(RunRecord::from_json(&more).is_ok());
}

#[test]
fn stages_add_up_to_the_total() {
    let mut run = RunRecorder::start("p", "1", ["p"], "d", 1);
    std::thread::sleep(Duration::from_millis(3));
    run.stage("read");
    std::thread::sleep(Duration::from_millis(4));
    run.stage("solve");
    std::thread::sleep(Duration::from_millis(6));
    run.within("plan", Duration::from_millis(2));
    run.within("endless", Duration::from_secs(1000));
    std::thread::sleep(Duration::from_millis(2));
    run.stage("read");
    std::thread::sleep(Duration::from_millis(4));
    let record = run.finish(None);
    let names: Vec<_> = record.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["start", "read", "solve", "plan", "endless"]);
    let of = |name: &str| record.stages.iter().find(|stage| stage.name == name).unwrap().seconds;
    assert!(of("start") >= 0.003);
    assert!(of("read") >= 0.008, "a stage entered twice collects both times");
    assert_eq!(of("plan"), 0.002);
    assert!(of("endless") >= 0.004 && of("endless") < record.total_seconds);
    assert!(of("solve") >= 0.002);
    let sum: f64 = record.stages.iter().map(|stage| stage.seconds).sum();
    assert!((sum - record.total_seconds).abs() < 1e-6, "{sum} of {}", record.total_seconds);
}

#[test]
fn files_are_hashed_as_they_are_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scan.h5");
    let content: Vec<u8> = (0..200_003u32).map(|i| (i.wrapping_mul(i) >> 3) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let entry = FileEntry::read(&path).unwrap();
    assert_eq!(entry, FileEntry::of(&path, &content));
    assert_eq!(entry.bytes, 200_003);

    std::fs::write(&path, b"").unwrap();
    let empty = FileEntry::read(&path).unwrap();
    assert_eq!(empty.bytes, 0);
    assert_eq!(empty.blake3, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");

    let mut run = RunRecorder::start("p", "1", ["p"], "d", 1);
    let error = run.input(folder.path().join("absent")).unwrap_err();
    assert!(error.to_string().contains("absent: "), "{error}");
}
