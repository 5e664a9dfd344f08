//! What is refused, by name.

use crate::{ok, refused, with_scan};

#[test]
fn a_field_of_view_in_metres_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let grid = ndarray::Array3::from_elem((2, 8, 8), rayspin::core::C32::ONE);
    rayspin::io::npy::write(folder.path().join("grid.npy"), grid.view()).unwrap();
    let line = ["recon", "mri", "grid.npy", "-o", "x.npy", "--fov", "0.24,0.24"];
    refused(&line, folder.path(), &["--fov", "in mm", "metres"]);
}

#[test]
fn wrong_files_are_refused_by_name() {
    let folder = with_scan();
    let f = folder.path();
    let scan = std::fs::read(f.join("scan.h5")).unwrap();
    std::fs::write(f.join("text.h5"), "no scan at all").unwrap();
    std::fs::write(f.join("empty.h5"), "").unwrap();
    std::fs::write(f.join("short.h5"), &scan[..scan.len() / 2]).unwrap();
    for name in ["text.h5", "empty.h5", "short.h5", "missing.h5"] {
        refused(&["recon", "mri", name, "-o", "x.nii.gz"], f, &[name]);
        refused(&["info", name], f, &[name]);
    }
    refused(&["recon", "mri", "truth.nii.gz", "-o", "x.npy"], f, &["truth.nii.gz", "raw data"]);
    refused(&["convert", "scan.h5", "x.nii"], f, &["scan.h5", "expected an image"]);
    refused(&["metrics", "truth.nii.gz", "maps.cfl"], f, &["maps.cfl"]);
}

#[test]
fn wrong_options_are_refused_by_name() {
    let folder = with_scan();
    let f = folder.path();
    let recon = |extra: &[&'static str], words: &[&str]| {
        let mut arguments = vec!["recon", "mri", "scan.h5", "-o", "x.nii.gz"];
        arguments.extend(extra);
        refused(&arguments, f, words);
    };
    recon(&["--lambda", "-1"], &["lambda", "expected", "found -1"]);
    recon(&["--lambda", "NaN"], &["lambda", "NaN"]);
    recon(&["--epsilon", "1e-12"], &["epsilon", "found"]);
    recon(&["--epsilon", "2"], &["epsilon", "found 2"]);
    recon(&["--iterations", "0"], &["iterations", "found 0"]);
    recon(&["--matrix", "0,48"], &["scan.h5", "matrix size", "0 x 48"]);
    recon(&["--matrix", "1000000000,48"], &["matrix size", "1000000000"]);
    recon(&["--matrix", "48"], &["--matrix", "expected 2 or 3 numbers"]);
    recon(&["--traj-units", "furlongs"], &["trajectory units", "cycles/fov", "furlongs"]);
    recon(&["--method", "cartesian"], &["scan.h5", "method", "found cartesian"]);
    recon(&["--slice", "9"], &["scan.h5", "slice", "found 9"]);
    recon(&["--encoding", "4"], &["encoding", "4"]);
    recon(&["--maps", "truth.nii.gz"], &["truth.nii.gz", "expected maps"]);
    recon(&["--fov", "200,200"], &["--fov", "ISMRMRD"]);
    recon(&["--traj", "maps.cfl"], &["--traj", "ISMRMRD"]);
    refused(&["recon", "mri", "maps.cfl", "-o", "x.npy", "--slice", "1"], f, &["--slice", "one image"]);
    refused(&["convert", "truth.nii.gz", "x.npy", "--montage"], f, &["--montage", "NumPy"]);
    recon(&["--threads", "0"], &["threads", "found 0"]);
    recon(&["--save-maps", "m.cfl", "--method", "gridding"], &["--save-maps"]);
    refused(&["recon", "mri", "scan.h5", "-o", "x.jpg"], f, &["x.jpg", "ending"]);
    refused(&["recon", "mri", "scan.h5", "-o", "no/folder/x.nii"], f, &["no/folder/x.nii"]);
    refused(&["simulate", "mri", "-o", "y.h5", "--matrix", "0,9"], f, &["matrix along x", "found 0"]);
    refused(&["simulate", "mri", "-o", "y.h5", "--snr", "-3"], f, &["signal-to-noise", "found -3"]);
    refused(&["simulate", "mri", "-o", "y.h5", "--coils", "0"], f, &["coils", "found 0"]);
    refused(&["simulate", "mri", "-o", "y.h5", "--dims", "4"], f, &["dimensions", "found 4"]);
    refused(&["simulate", "mri", "-o", "y.nii"], f, &["y.nii", ".h5"]);
}

#[test]
fn outputs_never_replace_inputs_or_each_other() {
    let folder = with_scan();
    let f = folder.path();
    let scan = std::fs::read(f.join("scan.h5")).unwrap();
    refused(&["recon", "mri", "scan.h5", "-o", "./scan.h5"], f, &["scan.h5", "input"]);
    refused(&["recon", "mri", "scan.h5", "-o", "a.png", "-o", "a.png"], f, &["a.png", "another output"]);
    refused(&["recon", "mri", "scan.h5", "-o", "a.png", "--record", "a.png"], f, &["a.png"]);
    refused(
        &["recon", "mri", "scan.h5", "-o", "a.npy", "--maps", "maps.cfl", "--save-maps", "maps.cfl"],
        f,
        &["maps"],
    );
    refused(&["simulate", "mri", "-o", "z.h5", "--truth", "z.h5"], f, &["z.h5"]);
    assert_eq!(std::fs::read(f.join("scan.h5")).unwrap(), scan);
}

#[test]
fn maps_of_another_shape_are_refused() {
    let folder = with_scan();
    let f = folder.path();
    ok(
        &[
            "-q",
            "simulate",
            "mri",
            "-o",
            "other.h5",
            "--matrix",
            "32,32",
            "--coils",
            "3",
            "--maps",
            "small.cfl",
        ],
        f,
    );
    refused(
        &["recon", "mri", "scan.h5", "-o", "x.nii.gz", "--maps", "small.cfl"],
        f,
        &["sensitivity maps", "[4, 48, 48]", "[3, 32, 32]"],
    );
}
