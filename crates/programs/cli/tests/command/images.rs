//! Images, and what they are made with.

use crate::{ok, refused, simulated, with_scan};

#[test]
fn a_scan_becomes_images_a_record_and_a_quality_table() {
    let folder = with_scan();
    let f = folder.path();
    let output = ok(
        &[
            "recon",
            "mri",
            "scan.h5",
            "-o",
            "a.nii.gz",
            "-o",
            "a.png",
            "-o",
            "a.cfl",
            "-o",
            "a.npy",
            "-o",
            "a.h5",
            "--maps",
            "maps.cfl",
            "--reference",
            "truth.nii.gz",
            "--fit",
        ],
        f,
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("NRMSE"));
    for name in ["a.nii.gz", "a.png", "a.cfl", "a.hdr", "a.npy", "a.h5"] {
        assert!(f.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    assert_eq!(record["parameters"]["method"], "cg-sense");
    assert_eq!(record["inputs"][0]["path"], "scan.h5");
    assert_eq!(record["outputs"].as_array().unwrap().len(), 6);
    let error = record["quality"][0]["metrics"]["nrmse"].as_f64().unwrap();
    assert!(error < 0.2, "{error}");
    assert!(record["convergence"][0]["residual"].as_array().unwrap().len() > 3);

    let json = ok(&["metrics", "a.npy", "truth.nii.gz", "--json", "--fit"], f);
    let quality: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!((quality["nrmse"].as_f64().unwrap() - error).abs() < 1e-6);
    // What was written in one format is the same in another.
    let same = ok(&["metrics", "a.npy", "a.cfl", "--json"], f);
    let quality: serde_json::Value = serde_json::from_slice(&same.stdout).unwrap();
    assert_eq!(quality["nrmse"], 0.0);
}

/// Slices of two directions become a file each, of a whole scan as of a stream.
#[test]
fn stacks_of_slices_become_files_of_their_own() {
    use rayspin::core::Monitor;
    use rayspin::mri::simulate::{SimulateOptions, simulate};
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for repetitions in [1, 2] {
        let options = SimulateOptions {
            matrix: [16, 16, 3],
            coils: 1,
            repetitions,
            snr: None,
            ..SimulateOptions::default()
        };
        let mut scan = simulate(&options, &Monitor::silent()).unwrap().scan;
        for readout in &mut scan.acquisitions {
            if readout.counters.slice == 1 {
                let [x, y, z] = [readout.read_dir, readout.phase_dir, readout.slice_dir];
                (readout.read_dir, readout.phase_dir, readout.slice_dir) = (y, z, x);
                readout.position = [1.0, 2.0, 3.0];
            }
        }
        rayspin::io::ismrmrd::write(f.join("scan.h5"), &scan, Default::default()).unwrap();
        let output = ok(&["recon", "mri", "scan.h5", "-o", "i.nii", "-o", "i.png"], f);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("several directions") && text.contains("i_2.nii"), "{text}");
        assert!(f.join("i_1.png").exists() && !f.join("i.nii").exists());
        let [axial, other] =
            ["i_1.nii", "i_2.nii"].map(|name| rayspin::io::read_image(f.join(name)).unwrap().image);
        assert_eq!((axial.repetitions(), axial.shape_zyx()[0], other.shape_zyx()[0]), (repetitions, 2, 1));
        assert!(other.geometry().position_mm.iter().zip([1.0, 2.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-3));
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(f.join("i.json")).unwrap()).unwrap();
        assert_eq!(record["outputs"].as_array().unwrap().len(), 4);
        // An array has no geometry and holds all of them.
        let all = ok(&["recon", "mri", "scan.h5", "-o", "all.npy", "--no-record"], f);
        assert!(
            String::from_utf8_lossy(&all.stderr).contains("no geometry") && !f.join("all_1.npy").exists()
        );
        let whole = rayspin::io::read_image(f.join("all.npy")).unwrap().image;
        for (stack, slices) in [(&axial, 0..2), (&other, 2..3)] {
            let axis = whole.data().ndim() - 3;
            let part = whole.data().slice_axis(ndarray::Axis(axis), slices.into());
            assert_eq!(part.mapv(|value| value.norm()), stack.data().mapv(|value| value.norm()));
        }
        let stream = ok(&["recon", "mri", "scan.h5", "-o", "-", "--no-record"], f);
        assert_eq!(stream.stdout, std::fs::read(f.join("all.npy")).unwrap());
        // The record of the same images is replaced.
        ok(&["recon", "mri", "scan.h5", "-q", "-o", "i.nii"], f);
        assert!(!f.join("i.nii.json").exists());
        // Their numbered names are no one else's.
        std::fs::rename(f.join("scan.h5"), f.join("s_2.h5")).unwrap();
        let before = std::fs::read(f.join("s_2.h5")).unwrap();
        refused(
            &["recon", "mri", "s_2.h5", "-o", "s.h5", "--no-record"],
            f,
            &["s_2.h5", "an input of this run"],
        );
        let others = ["-o", "s.nii", "-o", "s_1.nii"];
        refused(&[&["recon", "mri", "s_2.h5", "--no-record"], &others[..]].concat(), f, &["another output"]);
        assert_eq!(std::fs::read(f.join("s_2.h5")).unwrap(), before);
        // As in a batch, where the other scan's image has the name.
        std::fs::copy(f.join("s_2.h5"), f.join("s.h5")).unwrap();
        let batch = crate::rayspin(&["batch", "s.h5", "s_2.h5", "-o", "out/{stem}.nii"], f);
        let told = String::from_utf8_lossy(&batch.stderr).into_owned();
        assert!(batch.status.code() == Some(1) && told.contains("out/s_2.nii: output"), "{told}");
        assert!(!f.join("out/s_1.nii").exists() && f.join("out/s_2_1.nii").exists());
        std::fs::remove_dir_all(f.join("out")).unwrap();
    }
}

#[test]
fn quiet_means_no_word_and_lines_replace_the_bar_without_a_terminal() {
    let folder = with_scan();
    let quiet = ok(&["-q", "recon", "mri", "scan.h5", "-o", "q.npy", "--no-record"], folder.path());
    assert!(quiet.stderr.is_empty() && quiet.stdout.is_empty());
    assert!(!folder.path().join("q.json").exists());
    let lines = ok(&["recon", "mri", "scan.h5", "-o", "l.npy"], folder.path());
    let text = String::from_utf8_lossy(&lines.stderr).into_owned();
    assert!(
        text.contains("conjugate gradients") && text.contains("residual") && !text.contains('\x1b'),
        "{text}"
    );
}

#[test]
fn iterations_that_stop_above_their_tolerance_say_so() {
    let folder = with_scan();
    let f = folder.path();
    let said = |line: &str| {
        let line = format!("recon mri scan.h5 -o a.npy --maps maps.cfl {line}");
        String::from_utf8(ok(&line.split_whitespace().collect::<Vec<_>>(), f).stderr).unwrap()
    };
    for method in ["cg-sense", "ls", "tv"] {
        let text = said(&format!("--method {method} -i 3"));
        for words in ["stopped after 3 iterations at residual", "above the tolerance", "--iterations 6"] {
            assert!(text.contains(words), "{method}: {text}");
        }
        let record = std::fs::read_to_string(f.join("a.json")).unwrap();
        assert!(record.contains("stopped after 3 iterations"), "{record}");
        assert!(said(&format!("-q --method {method} -i 3")).is_empty());
        let met = said(&format!("--method {method} --tolerance 0.1"));
        assert!(!met.contains("stopped after"), "{method}: {met}");
    }
    // The number of iterations is what is wanted: there is no penalty, or no tolerance.
    for line in
        ["--method cg-sense -i 3 --lambda 0", "--method wavelet -i 3", "--method ls -i 3 --tolerance 0"]
    {
        let text = said(line);
        assert!(!text.contains("stopped after"), "{line}: {text}");
    }
    // A tolerance that single precision does not reach.
    let text = said("--method cg-sense -i 400 --tolerance 1e-9 --lambda 1e-3");
    assert!(text.contains("rounding") && !text.contains("--iterations 800"), "{text}");
}

#[test]
fn the_number_of_threads_does_not_change_the_image() {
    let folder = with_scan();
    for (threads, name) in [("1", "one.npy"), ("2", "two.npy")] {
        ok(&["-q", "--threads", threads, "recon", "mri", "scan.h5", "-o", name], folder.path());
    }
    let same = ok(&["metrics", "one.npy", "two.npy", "--json"], folder.path());
    let quality: serde_json::Value = serde_json::from_slice(&same.stdout).unwrap();
    assert!(quality["nrmse"].as_f64().unwrap() < 1e-5, "{quality}");
}

#[test]
fn every_simulated_trajectory_reconstructs() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, options) in [
        ("cartesian", "--matrix 32,32"),
        ("cartesian", "--matrix 32,32,3 --repetitions 2 --acceleration 2 --calibration 12"),
        (
            "poisson",
            "--matrix 48,48 --acceleration 2 --calibration 12 --noise-readouts 4 --noise-correlation 0.2",
        ),
        ("radial", "--matrix 32,32 --angles golden"),
        ("spiral", "--matrix 32,32"),
        ("epi", "--matrix 32,32"),
        ("kooshball", "--matrix 16,16,16"),
        ("stack-of-stars", "--matrix 16,16,8"),
        ("stack-of-spirals", "--matrix 16,16,8"),
        ("random", "--matrix 32,32"),
    ] {
        let simulate = format!("-q simulate mri -o s.h5 --coils 3 --snr 50 --trajectory {name} {options}");
        ok(&simulate.split_whitespace().collect::<Vec<_>>(), f);
        ok(&["-q", "recon", "mri", "s.h5", "-o", "s.nii.gz"], f);
        let info = ok(&["info", "s.h5"], f);
        assert!(String::from_utf8_lossy(&info.stdout).contains("acquisitions"), "{name}");
        let info = ok(&["info", "s.nii.gz", "--json"], f);
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
        assert!(info["image"]["shape"].is_array(), "{info}");
    }
}

#[test]
fn maps_go_out_and_come_back_for_slices_and_oversampled_readouts() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for options in ["--matrix 32,32,3 --acceleration 2 --calibration 12", "--matrix 32,32 --oversampling 2"] {
        let simulate = format!("-q simulate mri -o s.h5 --coils 4 --maps true.cfl {options}");
        ok(&simulate.split_whitespace().collect::<Vec<_>>(), f);
        ok(&["-q", "recon", "mri", "s.h5", "-o", "a.npy", "-m", "cg-sense", "--save-maps", "m.cfl"], f);
        ok(&["-q", "recon", "mri", "s.h5", "-o", "b.npy", "-m", "cg-sense", "--maps", "m.cfl"], f);
        ok(&["-q", "recon", "mri", "s.h5", "-o", "c.npy", "-m", "cg-sense", "--maps", "true.cfl"], f);
        let same = ok(&["metrics", "b.npy", "a.npy", "--json"], f);
        let quality: serde_json::Value = serde_json::from_slice(&same.stdout).unwrap();
        // Oversampled: the image outside the field of view is no longer explained by anything.
        assert!(quality["nrmse"].as_f64().unwrap() < 0.1, "{options}: {quality}");
    }
}

#[test]
fn a_coarser_matrix_shows_the_same_object_without_folding() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for trajectory in ["radial", "cartesian"] {
        let spokes = "-q simulate mri --coils 1 --truth truth.npy --maps m.cfl -t";
        let fine = format!("{spokes} {trajectory} --matrix 96,96 -o fine.h5");
        let coarse = format!("{spokes} {trajectory} --matrix 48,48 -o coarse.h5");
        ok(&fine.split_whitespace().collect::<Vec<_>>(), f);
        ok(&coarse.split_whitespace().collect::<Vec<_>>(), f);
        ok(&["-q", "recon", "mri", "fine.h5", "-o", "fine.npy", "--matrix", "48,48"], f);
        ok(&["-q", "recon", "mri", "coarse.h5", "-o", "coarse.npy"], f);
        let of = |name: &str| {
            let output = ok(&["metrics", name, "truth.npy", "--json", "--magnitude"], f);
            serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["nrmse"].as_f64().unwrap()
        };
        let (fine, coarse) = (of("fine.npy"), of("coarse.npy"));
        assert!(fine < 1.1 * coarse, "{trajectory}: {fine} against {coarse}");
    }
}

#[test]
fn sparse_images_and_anatomical_references() {
    let folder = with_scan();
    let f = folder.path();
    let recon = |more: &str| -> serde_json::Value {
        let arguments = format!("-q recon mri scan.h5 -o a.npy --maps maps.cfl {more}");
        ok(&arguments.split_whitespace().collect::<Vec<_>>(), f);
        serde_json::from_str(&std::fs::read_to_string(f.join("a.json")).unwrap()).unwrap()
    };
    let record = recon("-m wavelet --iterations 12");
    assert_eq!(record["parameters"]["solver"], "FISTA");
    // The scan has little noise: the least λ that the method chooses.
    assert_eq!(record["parameters"]["lambda"], 1e-3);
    assert_eq!(record["convergence"][0]["residual"].as_array().unwrap().len(), 12);
    let history = &record["history"][0];
    assert_eq!(
        (&history["name"], &history["quantity"]),
        (&"slice 0 repetition 0".into(), &"objective".into())
    );
    assert_eq!(history["values"].as_array().unwrap().len(), 12);
    assert!(!record["parameters"].to_string().contains("objective"));
    let first = std::fs::read(f.join("a.npy")).unwrap();
    recon("-m wavelet --iterations 12");
    assert_eq!(std::fs::read(f.join("a.npy")).unwrap(), first, "the shifts are the same every time");
    for other in ["--wavelet haar", "--wavelet-levels 1", "--wavelet-seed 2"] {
        let record = recon(&format!("-m wavelet --iterations 12 {other}"));
        assert_ne!(std::fs::read(f.join("a.npy")).unwrap(), first, "{other}");
        let wavelet = if other.contains("haar") { "haar" } else { "db2" };
        assert_eq!(record["parameters"]["wavelet"], wavelet, "{record}");
    }
    let record = recon("-m tv -i 5 --anatomy truth.nii.gz");
    let sharp = std::fs::read(f.join("a.npy")).unwrap();
    recon("-m tv -i 5 --anatomy truth.nii.gz --anatomy-edge 0.5");
    assert_ne!(std::fs::read(f.join("a.npy")).unwrap(), sharp);
    assert_eq!(record["parameters"]["anatomy"], "truth.nii.gz");
    let inputs = record["inputs"].to_string();
    assert!(inputs.contains("truth.nii.gz"), "{inputs}");
    recon("-m cg-sense -i 5 -W differences --anatomy truth.nii.gz");

    let no = |more: &str, words: &[&str]| {
        let arguments = format!("recon mri scan.h5 -o b.npy {more}");
        refused(&arguments.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    no("-m gridding --anatomy truth.nii.gz", &["--anatomy", "gridding"]);
    no("-m wavelet --anatomy truth.nii.gz", &["--anatomy", "wavelet"]);
    no("-m cg-sense --anatomy truth.nii.gz", &["--anatomy", "--regulariser differences"]);
    no("-m wavelet -W identity", &["-W", "wavelet"]);
    no("-m tv --wavelet haar", &["--wavelet", "expected --method wavelet", "tv"]);
    no("--wavelet-levels 2", &["--wavelet-levels", "expected --method wavelet"]);
    no("-m gridding --wavelet-seed 2", &["--wavelet-seed", "gridding"]);
    no("-m wavelet --wavelet-levels 0", &["levels of wavelets", "at least 1"]);
    no("-m wavelet --wavelet-levels 9", &["levels of wavelets", "1 to 2", "found 9"]);
    no("-m tv --anatomy truth.nii.gz --anatomy-edge -1", &["edge of the anatomical reference"]);
    no("-m tv -W differences", &["-W", "tv"]);
    no("-m gridding -l 0.1", &["--lambda", "gridding"]);
    no("-m tv --lambda -1", &["lambda"]);
    ok(&["-q", "recon", "mri", "scan.h5", "-o", "small.nii.gz", "--matrix", "32,32", "--no-record"], f);
    no("-m tv --anatomy small.nii.gz", &["anatomical reference", "[48, 48]", "32"]);
    no("-m tv --anatomy nothing.nii.gz", &["nothing.nii.gz"]);
}

#[test]
fn coils_are_prepared_and_missing_lines_found() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(
        f,
        "--matrix 64,64 --coils 6 --acceleration 2 --snr 50 --noise-readouts 4 --truth truth.nii.gz",
    );
    let run = |options: &str| {
        let all = format!("recon mri -q scan.h5 {options}");
        let output = ok(&all.split_whitespace().collect::<Vec<_>>(), f);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run("-o grappa.nii.gz --method grappa --coils 4");
    let record = std::fs::read_to_string(f.join("grappa.json")).unwrap();
    for words in [
        "coils are whitened by 1024 noise samples",
        "6 coils compressed to 4",
        "GRAPPA: acceleration 2 along y",
    ] {
        assert!(record.contains(words), "{words}: {record}");
    }
    // Saved maps belong to the scan's own coils, and serve another run that prepares coils differently.
    run("-o a.npy --method cg-sense --coils 5 --save-maps maps.npy");
    run("-o b.npy --method cg-sense --no-prewhiten --maps maps.npy");
    run("-o c.npy --method cg-sense --sensitivities espirit --map-sets 2");
    let read = |name: &str| std::fs::read(f.join(name)).unwrap();
    run("-o d.npy --method cg-sense --map-sets 2");
    assert!(read("c.npy") == read("d.npy"));
    let wrong = |options: &str, words: &[&str]| {
        let all = format!("recon mri scan.h5 -o x.npy {options}");
        refused(&all.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    wrong("--method cg-sense --coils 6", &["virtual coils", "fewer than the scan's 6"]);
    wrong("--method cartesian --sensitivities espirit", &["--sensitivities", "cartesian"]);
    wrong("--method cg-sense --sensitivities walsh --map-sets 2", &["--map-sets", "espirit"]);
    wrong("--method cartesian --map-crop 0.7", &["--map-crop", "cartesian"]);
    wrong("--method grappa --partial-fourier pocs", &["partial Fourier"]);
    simulated(f, "--matrix 32,32 --coils 3");
    let full = |options: &str, words: &[&str]| {
        let all = format!("recon mri scan.h5 -o x.npy {options}");
        refused(&all.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    full("--method grappa", &["method", "without gaps"]);
    full("--no-prewhiten", &["--no-prewhiten", "noise readouts"]);
}
