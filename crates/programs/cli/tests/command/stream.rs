//! Dynamic scans: windows, repetitions, what is kept of a run that ends early.

use std::path::Path;
use std::process::Command;

use crate::{files, ok, parameters, refused, simulated};

const GOLDEN: &str = "-t radial --angles golden";

/// |v| of complex images `[frame, voxel]` less each voxel's mean over time.
fn changes(file: &Path, frames: usize, voxels: usize) -> Vec<f64> {
    let bytes = std::fs::read(file).unwrap();
    let values = &bytes[bytes.len() - frames * voxels * 8..];
    let number = |b: &[u8]| f64::from(f32::from_le_bytes(b.try_into().unwrap()));
    let mut sizes: Vec<f64> = values.chunks(8).map(|v| number(&v[..4]).hypot(number(&v[4..]))).collect();
    for voxel in 0..voxels {
        let mean = (0..frames).map(|frame| sizes[frame * voxels + voxel]).sum::<f64>() / frames as f64;
        (0..frames).for_each(|frame| sizes[frame * voxels + voxel] -= mean);
    }
    sizes
}

/// Correlation of changes over time. The changes of `b` are taken `late` frames later.
fn correlation(a: &[f64], b: &[f64], voxels: usize, late: usize) -> f64 {
    let (a, b) = (&a[..a.len() - late * voxels], &b[late * voxels..]);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

#[test]
fn windows_show_the_object_as_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let (frames, voxels) = (13, 48 * 48);
    for dynamics in ["beat --period 1.6", "enhance --period 1"] {
        let scan = format!("{GOLDEN} --matrix 48,48 --coils 6 --shots 280 --tr 10 --dynamics {dynamics}");
        simulated(f, &format!("{scan} --truth truth.npy --window 31 --stride 20"));
        let line = "recon mri scan.h5 -o frames.npy -o frames.nii.gz -o frames.h5 -o frames.png --window 31";
        let line = format!("{line} --stride 20 -i 15 --reference truth.npy --fit");
        let output = ok(&line.split_whitespace().collect::<Vec<_>>(), f);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("images, 13, ") && text.contains("from the first 72 readouts"), "{text}");
        assert!(text.contains("0.2000 s from image to image"), "{text}");
        // Stages are summed, once each.
        let stages = text.lines().filter(|line| line.trim_start().starts_with("conjugate gradients"));
        assert_eq!(stages.count(), 1, "{text}");
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(f.join("frames.json")).unwrap()).unwrap();
        assert!(record["parameters"]["images per second"].as_f64().unwrap() > 0.0);
        let nrmse = record["quality"][0]["metrics"]["nrmse"].as_f64().unwrap();
        assert!(nrmse < 0.35, "{dynamics}: {nrmse}");
        let [found, truth] = ["frames.npy", "truth.npy"].map(|name| changes(&f.join(name), frames, voxels));
        let [now, later] = [0, 4].map(|late| correlation(&found, &truth, voxels, late));
        assert!(now > 0.5, "{dynamics}: {now}");
        if dynamics.starts_with("beat") {
            // Half a beat later.
            assert!(later < 0.0, "{dynamics}: {now} and {later}");
        }
        for name in ["frames.nii.gz", "frames.h5"] {
            let info = String::from_utf8(ok(&["info", name], f).stdout).unwrap();
            assert!(name == "frames.h5" || info.contains("[13, 1, 48, 48]"), "{info}");
            let same = ok(&["metrics", name, "frames.npy", "--magnitude", "--json"], f).stdout;
            let quality: serde_json::Value = serde_json::from_slice(&same).unwrap();
            assert!(quality["nrmse"].as_f64().unwrap() < 1e-6, "{name}: {quality}");
        }
    }
}

#[test]
fn repetitions_as_a_stream_are_those_of_runs_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 24,20,3 --coils 3 --repetitions 4 --snr 40 --noise-readouts 4");
    let run = |options: &str, name: &str| {
        let line = format!("recon mri scan.h5 -q --method cartesian -o {name} {options}");
        ok(&line.split_whitespace().collect::<Vec<_>>(), f);
        std::fs::read(f.join(name)).unwrap()
    };
    let all = run("", "all.npy");
    let volume = 3 * 20 * 24 * 8;
    for repetition in 0..4 {
        let one = run(&format!("--repetition {repetition}"), "one.npy");
        let start = all.len() - (4 - repetition) * volume;
        assert!(one[one.len() - volume..] == all[start..start + volume], "repetition {repetition}");
    }
}

#[test]
fn memory_does_not_grow_with_the_number_of_images_and_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, &format!("{GOLDEN} --matrix 128,128 --coils 8 --shots 1300"));
    let mut peaks = Vec::new();
    // A short run does not fill HDF5's caches, which are stated full.
    for (frames, most) in [(10, 1.25), (100, 1.15)] {
        let options = "--method gridding --density radial --combine maps --window 21 --stride 12";
        let line = format!("recon mri scan.h5 -q -o image.npy --threads 2 {options} --frames {frames}");
        ok(&line.split_whitespace().collect::<Vec<_>>(), f);
        let (parameters, peak) = parameters(&f.join("image.json"));
        let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
        assert!((0.9..most).contains(&ratio), "{frames}: {ratio} of {peak}");
        peaks.push(peak);
    }
    // A hundred images of 128 × 128 take 13 MB, and their samples 10 MB. What grows at first are HDF5's own
    // caches.
    assert!(peaks[1] < peaks[0] + 6e6, "{peaks:?}");
}

#[cfg(unix)]
#[test]
fn what_was_complete_when_a_run_is_interrupted_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, &format!("{GOLDEN} --matrix 64,64 --coils 4 --shots 600"));
    std::fs::write(f.join("x.npy"), "old").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_rayspin"))
        .args(["recon", "mri", "scan.h5", "-o", "x.npy", "-o", "x.nii.gz", "--window", "21", "--stride", "1"])
        .args(["--method", "cg-sense", "-i", "60", "--tolerance", "0"])
        .current_dir(f)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Until images are on their way to the disk.
    let begun = || {
        let parts = files(f).into_iter().filter(|p| p.extension().is_some_and(|e| e == "part"));
        parts.count() == 2
    };
    while !begun() {
        assert!(child.try_wait().unwrap().is_none(), "ended before any image");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("kept: x.partial.npy (") && text.contains(" of 580 images)"), "{text}");
    assert_eq!(std::fs::read(f.join("x.npy")).unwrap(), b"old");
    let done = text.split("x.partial.npy (").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    for name in ["x.partial.npy", "x.partial.nii.gz"] {
        let info = String::from_utf8(ok(&["info", name], f).stdout).unwrap();
        assert!(done == "1" || info.contains(&format!("[{done}, 1, 64, 64]")), "{info}");
    }
    assert!(files(f).iter().all(|p| p.extension().is_none_or(|e| e != "part")));
}

#[test]
fn windows_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, &format!("{GOLDEN} --matrix 16,16 --coils 1 --shots 12"));
    let with = |options: &[&'static str]| [&["recon", "mri", "scan.h5", "-o", "a.npy"], options].concat();
    refused(&with(&["--window", "13"]), f, &["window", "12 readouts"]);
    refused(&with(&["--window", "0"]), f, &["window"]);
    refused(&with(&["--window", "4", "--stride", "0"]), f, &["stride"]);
    refused(&with(&["--window", "4", "--frames", "9"]), f, &["frames", "at most the 3"]);
    assert!(crate::rayspin(&with(&["--stride", "4"]), f).status.code() == Some(2));
    let dry = ok(&["recon", "mri", "scan.h5", "--dry-run", "--window", "5", "--stride", "2"], f);
    let text = String::from_utf8(dry.stdout).unwrap();
    assert!(text.contains("4 images") && text.contains("NUFFT plan"), "{text}");
}

#[test]
fn repetitions_with_fewer_lines_are_named() {
    use rayspin::io::ismrmrd::{Identity, read, write};

    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 32,28 --coils 2 --repetitions 3");
    let mut scan = read(f.join("scan.h5")).unwrap();
    scan.acquisitions.retain(|a| a.counters.repetition != 0 || a.counters.step_1 == 14);
    write(f.join("uneven.h5"), &scan, Identity::LeaveOut).unwrap();
    let said = |line: &str| {
        let output = ok(&line.split_whitespace().collect::<Vec<_>>(), f);
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let text = said("recon mri uneven.h5 -o x.npy --no-record");
    assert!(
        text.contains("fully sampled, the fullest of 3 images: repetition 0 has 1 of 28 lines"),
        "{text}"
    );
    assert!(text.contains("method cartesian") && text.contains("repetition 0 has 3.6 %"), "{text}");
    assert!(said("info uneven.h5").contains("repetition 0 has 1 of 28 lines"));
    let whole = said("recon mri scan.h5 -o x.npy --no-record");
    assert!(whole.contains("fully sampled, 3 images") && !whole.contains("fullest"), "{whole}");
}

/// The samples of a scan with a header as arrays, which have the same windows.
#[test]
fn windows_slide_over_samples_without_a_header() {
    use rayspin::core::C32;
    use rayspin::io::npy;
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, &format!("{GOLDEN} --matrix 24,24 --coils 3 --shots 40 --snr 200"));
    let scan = rayspin::io::ismrmrd::read(f.join("scan.h5")).unwrap();
    let readouts: Vec<_> = scan.acquisitions.iter().filter(|readout| readout.flags.is_image()).collect();
    let (coils, length) = readouts[0].data.dim();
    let samples = ndarray::Array3::from_shape_fn((coils, readouts.len(), length), |(coil, readout, at)| {
        readouts[readout].data[[coil, at]]
    });
    let spokes = ndarray::Array3::from_shape_fn((readouts.len(), length, 2), |(readout, at, axis)| {
        f64::from(readouts[readout].trajectory.as_ref().unwrap()[[at, axis]])
    });
    npy::write(f.join("samples.npy"), samples.view()).unwrap();
    npy::write(f.join("spokes.npy"), spokes.view()).unwrap();
    let arrays = "samples.npy --traj spokes.npy --matrix 24,24 --fov 256,256";
    let images = |scan: &str, options: &str| -> ndarray::ArrayD<C32> {
        let line = format!("recon mri {scan} -q --no-record -o w.npy {options}");
        ok(&line.split_whitespace().collect::<Vec<_>>(), f);
        ndarray_npy::read_npy(f.join("w.npy")).unwrap()
    };
    for (options, shape) in [
        ("-m gridding --window 8 --stride 4", [9, 1, 24, 24]),
        ("-m cg-sense -i 5 --window 12 --frames 2", [2, 1, 24, 24]),
        ("-m gridding --window 5 --readouts 10-29", [4, 1, 24, 24]),
    ] {
        let [whole, of_arrays] = ["scan.h5", arrays].map(|scan| images(scan, options));
        assert_eq!(of_arrays.shape(), shape, "{options}");
        let norm = |values: &ndarray::ArrayD<C32>| values.iter().map(|v| v.norm_sqr()).sum::<f32>().sqrt();
        // Units of the trajectory are rounded in the scan.
        assert!(norm(&(&of_arrays - &whole)) < 1e-3 * norm(&whole), "{options}");
    }
    let line = |more: &str| format!("recon mri {arrays} -o w.npy --no-record {more}");
    let refuse =
        |more: &str, words: &[&str]| refused(&line(more).split_whitespace().collect::<Vec<_>>(), f, words);
    refuse("--window 41", &["window", "at most the 40 readouts"]);
    refuse("--window 4 --readouts 40", &["readouts"]);
}
