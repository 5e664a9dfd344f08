//! Every option acts, or the run is refused.

use std::path::Path;

use crate::{ok, rayspin, refused, simulated};

/// A spiral, an undersampled grid and a full one of one coil; maps, an image and k-space without a header.
fn scans() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = |line: &str| ok(&line.split_whitespace().collect::<Vec<_>>(), f);
    run(
        "simulate mri -q --no-record -o spiral.h5 --matrix 32,32 -t spiral --shots 4 --coils 3 --maps maps.npy --truth truth.nii",
    );
    run(
        "simulate mri -q --no-record -o field.h5 --matrix 32,32 -t spiral --shots 4 --coils 3 --field-map-hz 50 --save-field-map field.npy",
    );
    run("simulate mri -q --no-record -o grid.h5 --matrix 32,32 --acceleration 2 --calibration 12 --coils 3");
    run(
        "simulate mri -q --no-record -o one.h5 --matrix 32,32 -t radial --shots 12 --coils 1 --snr 50 --noise-readouts 2",
    );
    run("convert --complex truth.nii kspace.npy");
    folder
}

#[test]
fn options_of_recon_that_do_nothing_are_refused() {
    let folder = scans();
    let f = folder.path();
    for (line, words) in [
        ("spiral.h5 -m cg-sense --combine rss", ["--combine", "cg-sense"]),
        (
            "spiral.h5 -m tv --combine maps",
            ["--combine", "expected --method cartesian, grappa, gridding or ls"],
        ),
        ("spiral.h5 --combine rss", ["--combine", "found --method cg-sense"]),
        ("spiral.h5 -m gridding --lambda 0.1", ["--lambda", "ls, cg-sense, wavelet or tv"]),
        ("spiral.h5 -m gridding --tolerance 0.1", ["--tolerance", "gridding"]),
        ("grid.h5 -m grappa --iterations 3", ["--iterations", "grappa"]),
        ("spiral.h5 -m cg-sense -W none --lambda 0.1", ["--lambda", "--regulariser none"]),
        ("spiral.h5 -m wavelet -W identity", ["--regulariser (-W)", "ls or cg-sense"]),
        ("spiral.h5 -m tv --wavelet haar", ["--wavelet", "--method wavelet"]),
        ("spiral.h5 -m cg-sense --anatomy truth.nii", ["--anatomy", "--regulariser differences"]),
        ("grid.h5 -m cg-sense --epsilon 1e-3", ["--epsilon", "found a grid"]),
        ("grid.h5 -m cg-sense --density radial", ["--density", "on a grid"]),
        ("spiral.h5 -m cg-sense --maps maps.npy --density radial", ["--density", "on a trajectory"]),
        ("spiral.h5 -m gridding --maps maps.npy --combine rss", ["--maps", "--combine rss"]),
        ("spiral.h5 -m gridding --save-maps m.npy", ["--save-maps", "gridding"]),
        ("spiral.h5 -m gridding --calibration 12", ["--calibration", "gridding"]),
        ("spiral.h5 -m cg-sense --maps maps.npy --calibration 12", ["--calibration", "found --maps"]),
        ("spiral.h5 -m gridding --sensitivities walsh", ["--sensitivities", "gridding"]),
        ("one.h5 -m tv --sensitivities walsh", ["--sensitivities", "estimates sensitivity maps"]),
        ("spiral.h5 -m ls --partial-fourier pocs", ["--partial-fourier", "cartesian or grappa"]),
        ("spiral.h5 -m cg-sense --no-prewhiten", ["--no-prewhiten", "noise readouts"]),
        ("one.h5 -m ls --no-prewhiten", ["--no-prewhiten", "one coil"]),
        ("one.h5 -m ls --coils 1", ["--coils", "several coils"]),
        ("grid.h5 -m cg-sense --traj-units radians/m", ["--traj-units", "found a grid"]),
        ("grid.h5 -m cg-sense --cache kernels", ["--cache", "found a grid"]),
        ("spiral.h5 -m gridding --cache kernels", ["--cache", "gridding"]),
        ("field.h5 -m cartesian --field-map field.npy", ["--field-map", "cartesian"]),
        ("spiral.h5 -m cg-sense --independent", ["--independent", "found one image"]),
        ("spiral.h5 -m gridding --independent", ["--independent", "gridding"]),
        ("kspace.npy:a", ["name after the colon", ".npz, .mat, .h5, .hdf5, .dicom or .dat"]),
        (
            "kspace.npy --traj maps.npy:a --matrix 9,9",
            ["maps.npy: name after the colon", ".npz, .mat, .h5, .hdf5, .dicom or .dat"],
        ),
        ("kspace.npy --encoding 0", ["--encoding", "ISMRMRD"]),
        ("kspace.npy --window 3", ["--window", "ISMRMRD"]),
        ("kspace.npy --keep-identity", ["--keep-identity", "ISMRMRD"]),
        ("spiral.h5 --fov 200,200", ["--fov", "without a header"]),
    ] {
        let line = format!("recon mri {line} -o x.npy");
        refused(&line.split_whitespace().collect::<Vec<_>>(), f, &words);
    }
}

#[test]
fn options_of_other_commands_that_do_nothing_are_refused() {
    let folder = scans();
    let f = folder.path();
    let simulate = "simulate mri -o y.h5 --matrix 16,16";
    for (line, words) in [
        (format!("{simulate} --shots 3"), ["--shots", "found --trajectory cartesian"]),
        (format!("{simulate} -t poisson --shots 3"), ["--shots", "poisson"]),
        (format!("{simulate} -t radial --samples 3"), ["--samples", "expected --trajectory random"]),
        (
            format!("{simulate} -t spiral --angles golden"),
            ["--angles", "radial, kooshball or stack-of-stars"],
        ),
        (format!("{simulate} -t radial --acceleration 2"), ["--acceleration", "radial"]),
        (format!("{simulate} --calibration 4"), ["--calibration", "--acceleration"]),
        (format!("{simulate} -t spiral --calibration 4"), ["--calibration", "cartesian or poisson"]),
        (format!("{simulate} --density-slope 1"), ["--density-slope", "poisson"]),
        (format!("{simulate} --noise-readouts 4"), ["--noise-readouts", "--snr"]),
        (
            format!("{simulate} --coils 1 --snr 9 --noise-correlation 0.1"),
            ["--noise-correlation", "one coil"],
        ),
        (format!("{simulate} -t spiral --oversampling 2"), ["--oversampling", "spiral"]),
        (format!("{simulate} -t radial --gradient 10"), ["--gradient", "radial"]),
        (format!("{simulate} --slew 10"), ["--slew", "cartesian"]),
        (format!("{simulate} --seed 3"), ["--seed", "--snr"]),
        (format!("{simulate} --device cuda"), ["--device", "takes a GPU"]),
        ("convert truth.nii x.npy --grey 0,1".into(), ["--grey", ".png"]),
        ("convert spiral.h5 x.h5 --montage".into(), ["--montage", ".png"]),
        ("convert truth.nii x.npy --gpu-memory 1G".into(), ["--gpu-memory", "takes a GPU"]),
        ("info truth.nii:a".into(), ["name after the colon", "NIfTI"]),
        ("info --device both".into(), ["--device", "both"]),
    ] {
        refused(&line.split_whitespace().collect::<Vec<_>>(), f, &words);
    }
}

/// The image, or the maps, of a run; none where it is refused.
fn made(line: &str, folder: &Path) -> Option<Vec<u8>> {
    let line = format!("recon mri {line} -q --no-record -o made.npy --threads 2");
    let output = rayspin(&line.split_whitespace().collect::<Vec<_>>(), folder);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => Some(std::fs::read(folder.join("made.npy")).unwrap()),
        Some(2) => None,
        _ => panic!("{line}: {text}"),
    }
}

#[test]
fn options_that_are_taken_change_the_image() {
    let folder = scans();
    let f = folder.path();
    simulated(
        f,
        "--matrix 32,32 --acceleration 2 --calibration 12 --coils 3 --snr 20 --noise-readouts 4 --noise-correlation 0.4",
    );
    let options = [
        "--combine maps",
        "--lambda 0.2",
        "-W differences",
        "-W none",
        "--iterations 2",
        "--tolerance 0.3",
        "--epsilon 0.05",
        "--density radial",
        "--maps maps.npy",
        "--calibration 8",
        "--sensitivities walsh",
        "--sensitivities espirit",
        "--wavelet haar",
        "--wavelet-levels 1",
        "--wavelet-seed 5",
        "--no-prewhiten",
        "--coils 2",
        "--anatomy truth.nii",
        "--matrix 28,28",
    ];
    let mut taken = 0;
    for (scan, methods) in [
        ("spiral.h5", ["gridding", "ls", "cg-sense", "wavelet", "tv"].as_slice()),
        ("scan.h5", &["cartesian", "grappa", "cg-sense", "tv"]),
    ] {
        for method in methods {
            let iterates = !["gridding", "cartesian", "grappa"].contains(method);
            let plain = format!("{scan} --method {method}");
            let short = format!("{plain} --iterations 4");
            let line = |option: &str| {
                let own = option.starts_with("--iterations") || option.starts_with("--tolerance");
                if iterates && !own { &short } else { &plain }
            };
            let [by_default, briefly] = [&plain, &short].map(|line| made(line, f));
            for option in options {
                let line = line(option);
                let Some(image) = made(&format!("{line} {option}"), f) else { continue };
                taken += 1;
                // What is the default anyway is no change.
                let default =
                    [("--sensitivities walsh", "spiral.h5"), ("--sensitivities espirit", "scan.h5")];
                let same =
                    Some(&image) == if line == &plain { by_default.as_ref() } else { briefly.as_ref() };
                assert_eq!(same, default.contains(&(option, scan)), "{line} {option}");
            }
        }
    }
    assert!(taken > 50, "{taken} options were taken");
}
