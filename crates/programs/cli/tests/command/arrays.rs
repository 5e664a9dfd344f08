//! Arrays without a header: the unit of a trajectory, and axes that are not what they were taken as.

use std::io::Write;
use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayD, ArrayViewD, Axis, IxDyn, s};
use rayspin::core::C32;
use rayspin::io::{cfl, ismrmrd, npy};
use rayspin::mri::scan::{Frame, FrameOptions, Samples};

use crate::real_data::real_data;
use crate::{ok, rayspin, refused, simulated};

/// The first image of an ISMRMRD scan.
pub(crate) fn frame(path: &Path) -> Frame {
    let scan = ismrmrd::read(path).unwrap();
    let index = scan.frames().unwrap();
    let label = index.labels().next().unwrap();
    index.assemble(label, &FrameOptions::default(), &mut Vec::new()).unwrap()
}

/// The path of a real scan; nothing, and a printed word, where it is absent.
pub(crate) fn real_scan(name: &str) -> Option<PathBuf> {
    real_data(&format!("mri/{name}"))
}

pub(crate) fn command(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// What a run says besides its results.
pub(crate) fn said(line: &str, folder: &Path) -> String {
    String::from_utf8(ok(&command(line), folder).stderr).unwrap()
}

pub(crate) fn nrmse(image: &str, reference: &str, folder: &Path) -> f64 {
    let json = ok(&["metrics", image, reference, "--json"], folder).stdout;
    serde_json::from_slice::<serde_json::Value>(&json).unwrap()["nrmse"].as_f64().unwrap()
}

pub(crate) fn write_npz(path: &Path, arrays: &[&str]) {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for name in arrays {
        archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&std::fs::read(path.with_file_name(format!("{name}.npy"))).unwrap()).unwrap();
    }
    archive.finish().unwrap();
}

/// Writes points `[sample, dim]` as `name` in every format.
fn write_points(folder: &Path, name: &str, points: &Array2<f64>, readout: usize) {
    npy::write(folder.join(format!("{name}.npy")), points.view()).unwrap();
    write_npz(&folder.join(format!("{name}.npz")), &[name]);
    let component = |d: usize, i: usize| points.get([i, d]).map_or(0.0, |k| *k as f32);
    let bart = ArrayD::from_shape_fn(IxDyn(&[3, readout, points.nrows() / readout]), |i| {
        C32::new(component(i[0], i[2] * readout + i[1]), 0.0)
    });
    cfl::write(folder.join(format!("{name}.cfl")), bart.view()).unwrap();
}

/// A folder with a radial scan `scan.h5` of 48 × 40 voxels, and its samples as arrays.
fn with_spokes() -> (tempfile::TempDir, Array2<f64>) {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 48,40 --trajectory radial --shots 60 --coils 3");
    let Samples::NonCartesian { trajectory, data } = frame(&f.join("scan.h5")).samples else {
        panic!("expected a trajectory")
    };
    npy::write(f.join("samples.npy"), data.view()).unwrap();
    let spokes = data.clone().into_shape_with_order((3, 60, data.ncols() / 60)).unwrap();
    npy::write(f.join("spokes.npy"), spokes.view()).unwrap();
    cfl::write(f.join("samples.cfl"), spokes.insert_axis(Axis(3)).t().into_dyn()).unwrap();
    (folder, trajectory.points().to_owned())
}

#[test]
fn units_follow_from_the_range_or_the_run_asks_for_them() {
    let (folder, points) = with_spokes();
    let f = folder.path();
    let readout = points.nrows() / 60;
    let voxel = points.mapv(|k| k) / &ndarray::arr1(&[48.0, 40.0]);
    write_points(f, "fov", &points, readout);
    write_points(f, "voxel", &voxel, readout);
    write_points(f, "radians", &(&voxel * std::f64::consts::TAU), readout);
    ok(&command("recon mri scan.h5 -q -m gridding --no-record -o wanted.npy"), f);
    let recon = |samples: &str, traj: &str, more: &str| {
        let text = said(
            &format!("recon mri {samples} --traj {traj} -m gridding --no-record -o image.npy {more}"),
            f,
        );
        let error = nrmse("image.npy", "wanted.npy", f);
        assert!(error < 1e-4, "{traj} {more}: {error}");
        text
    };
    for (name, unit) in [("fov", "cycles/fov"), ("voxel", "cycles/voxel"), ("radians", "radians/voxel")] {
        for (samples, end) in [("samples.npy", "npy"), ("spokes.npy", "npz"), ("samples.cfl", "cfl")] {
            let traj = format!("{name}.{end}");
            let text = recon(samples, &traj, "--matrix 48,40");
            assert!(text.contains(&format!("{unit} by its range")), "{traj}: {text}");
            assert!(text.contains("understood as 3 coils, 48 × 40, "), "{traj}: {text}");
            let text = recon(samples, &traj, &format!("--matrix 48,40 --traj-units {unit}"));
            assert!(!text.contains("warning"), "{traj}: {text}");
            let alone = format!("recon mri {samples} --traj {traj} -o x.npy");
            let with_unit = format!("{alone} --traj-units {unit}");
            if traj == "fov.cfl" {
                // BART's own unit, and beyond what a unit of voxels reaches.
                recon(samples, &traj, "");
            } else {
                refused(&command(&alone), f, &[&traj, "trajectory units", "max |k|"]);
            }
            if name == "fov" {
                recon(samples, &traj, &format!("--traj-units {unit}"));
            } else {
                refused(&command(&with_unit), f, &[&traj, "matrix", unit]);
            }
            let info = ok(&["info", &traj], f).stdout;
            let extent = format!("±{:.4}", if name == "fov" { 24.0 } else { points_extent(f, &traj) });
            assert!(String::from_utf8(info).unwrap().contains(&extent), "{traj}");
        }
    }
    refused(
        &command("recon mri samples.npy --traj fov.npy -o x.npy --matrix 6,6"),
        f,
        &["trajectory units", "max |k| = 24"],
    );
    refused(
        &command("recon mri samples.npy --traj voxel.npy -o x.npy --matrix 48,40 --traj-units cycles/m"),
        f,
        &["field of view", "cycles/m"],
    );
    refused(
        &command("recon mri samples.npy --traj fov.npy -o x.npy --matrix 48,40,2"),
        f,
        &["matrix", "2 numbers"],
    );
    // Both arrays of one archive.
    write_npz(&f.join("both.npz"), &["spokes", "voxel"]);
    recon("both.npz:spokes", "both.npz:voxel", "--matrix 48,40");
    refused(&command("recon mri both.npz --traj both.npz -o x.npy --matrix 48,40"), f, &["spokes, voxel"]);
    let info = |line: &str| String::from_utf8(ok(&command(line), f).stdout).unwrap();
    let (all, one) = (info("info both.npz"), info("info both.npz:voxel"));
    assert!(all.contains("voxel") && !all.contains("as trajectory"), "{all}");
    assert!(one.contains("as trajectory"), "{one}");
}

fn points_extent(folder: &Path, name: &str) -> f64 {
    rayspin::io::read_trajectory(folder.join(name)).unwrap().extent()[0]
}

#[test]
fn a_coarser_matrix_leaves_out_the_samples_beyond_it() {
    let (folder, points) = with_spokes();
    let f = folder.path();
    write_points(f, "fov", &points, points.nrows() / 60);
    ok(&command("recon mri scan.h5 -q -m gridding --no-record -o wanted.npy --matrix 24,20"), f);
    let text = said(
        "recon mri samples.npy --traj fov.npy -m gridding --no-record -o image.npy --matrix 24,20 --traj-units cycles/fov",
        f,
    );
    assert!(text.contains("beyond the matrix's k-space"), "{text}");
    assert!(nrmse("image.npy", "wanted.npy", f) < 1e-4);
}

#[test]
fn density_weights_behind_a_trajectory_are_left_out() {
    let (folder, points) = with_spokes();
    let f = folder.path();
    write_points(f, "fov", &points, points.nrows() / 60);
    let weighted = |columns: &[fn(f64, f64) -> f64]| {
        let (rows, all) = (points.nrows(), 2 + columns.len());
        Array2::from_shape_fn((rows, all), |(row, d)| {
            let [x, y] = [points[[row, 0]], points[[row, 1]]];
            if d < 2 { points[[row, d]] } else { columns[d - 2](x, y) }
        })
    };
    let options = "--matrix 48,40 --traj-units cycles/fov -q -m gridding --no-record";
    ok(&command(&format!("recon mri samples.npy --traj fov.npy {options} -o wanted.npy")), f);
    let nothing: fn(f64, f64) -> f64 = |_, _| 0.0;
    for columns in [&[f64::hypot as fn(f64, f64) -> f64][..], &[nothing, f64::hypot]] {
        npy::write(f.join("weighted.npy"), weighted(columns).view()).unwrap();
        let line = format!("recon mri samples.npy --traj weighted.npy {options} -o image.npy");
        ok(&command(&format!("{line} --traj-weights")), f);
        assert!(nrmse("image.npy", "wanted.npy", f) < 1e-6);
        if columns.len() == 2 {
            refused(
                &line.split_whitespace().collect::<Vec<_>>(),
                f,
                &["columns of the trajectory", "found 4"],
            );
        }
    }
}

/// Warnings of a reconstruction that is only planned.
fn warnings(scan: &str, more: &str, folder: &Path) -> Vec<String> {
    let text = said(&format!("recon mri {scan} --dry-run {more}"), folder);
    text.lines().filter_map(|line| line.trim().strip_prefix("warning: ")).map(str::to_owned).collect()
}

fn grid_of(path: &Path) -> ArrayD<C32> {
    match frame(path).samples {
        Samples::Cartesian { kspace, .. } => kspace,
        Samples::NonCartesian { .. } => panic!("expected a grid"),
    }
}

fn put(folder: &Path, name: &str, array: ArrayViewD<'_, C32>) {
    npy::write(folder.join(name), array).unwrap();
}

#[test]
fn axes_in_another_order_raise_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 64,48 --coils 8 --snr 50");
    let grid = grid_of(&f.join("scan.h5"));
    let expect = |name: &str, array: ArrayViewD<'_, C32>, words: &[&str]| {
        put(f, name, array);
        let found = warnings(name, "", f);
        assert_eq!(found.len(), words.len(), "{name}: {found:?}");
        for (found, word) in found.iter().zip(words) {
            assert!(found.contains(word), "{name}: '{word}' is not in: {found}");
        }
        // The file is described with the same words.
        let info = ok(&["info", name, "--json"], f).stdout;
        let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
        assert_eq!(info["warnings"].as_array().unwrap().len(), words.len(), "{name}: {info}");
    };
    expect("good.npy", grid.view(), &[]);
    let text = said("recon mri good.npy -o good.nii", f);
    assert!(text.contains("understood as 8 coils, 64 × 48, Cartesian, fully sampled"), "{text}");
    let record = std::fs::read_to_string(f.join("good.json")).unwrap();
    assert!(record.contains("8 coils, 64 × 48, Cartesian, fully sampled"), "{record}");

    let last = grid.view().permuted_axes(IxDyn(&[1, 2, 0]));
    expect("last.npy", last.view(), &["48 coils peaks in the middle", "along x"]);
    let text = said("recon mri last.npy -o last.nii -m cartesian", f);
    assert!(text.contains("warning: the energy"), "{text}");
    let record = std::fs::read_to_string(f.join("last.json")).unwrap();
    assert!(record.contains("warning: the energy"), "{record}");

    let many = ndarray::concatenate(Axis(0), &[last.view(), last.view(), last.view()]).unwrap();
    expect("many.npy", many.view(), &["144 coils", "along x"]);
    let volume = grid.slice(s![..1, .., ..]).index_axis_move(Axis(0), 0).insert_axis(Axis(0));
    let cube = ndarray::concatenate(Axis(0), &vec![volume.view(); 5]).unwrap().into_dyn();
    expect("slices.npy", cube.insert_axis(Axis(0)).view(), &["along z (5)"]);
    let shifted = {
        let (rows, columns) = (grid.shape()[1] / 2, grid.shape()[2] / 2);
        ArrayD::from_shape_fn(grid.raw_dim(), |i| {
            grid[[i[0], (i[1] + rows) % grid.shape()[1], (i[2] + columns) % grid.shape()[2]]]
        })
    };
    expect("shifted.npy", shifted.view(), &["along x peaks at 0 of 64", "along y peaks at 0 of 48"]);
    let images = ArrayD::from_shape_fn(IxDyn(&[8, 48, 64]), |i| {
        let inside = (i[1].abs_diff(24) < 18) && (i[2].abs_diff(32) < 25);
        C32::new(if inside { 1.0 + i[0] as f32 } else { 0.01 }, 0.1)
    });
    expect("images.npy", images.view(), &["are these images"]);
    let real = grid.mapv(|v| C32::new(v.re, 0.0));
    expect("real.npy", real.view(), &["imaginary"]);

    npy::write(f.join("floats.npy"), grid.mapv(|v| v.re).view()).unwrap();
    refused(&command("recon mri floats.npy -o x.nii"), f, &["floats.npy", "complex numbers", "<f4"]);
    refused(&command("recon mri good.npy -o x.nii --matrix 64,48,9"), f, &["matrix", "2 numbers"]);
}

#[test]
fn spokes_without_a_trajectory_and_samples_in_another_order_are_pointed_out() {
    let (folder, points) = with_spokes();
    let f = folder.path();
    let found = warnings("spokes.npy", "", f);
    assert!(
        found.len() == 1 && found[0].contains("along y (60)") && found[0].contains("--traj"),
        "{found:?}"
    );

    let readout = points.nrows() / 60;
    let turned = points.to_shape((60, readout, 2)).unwrap().permuted_axes([1, 0, 2]);
    npy::write(f.join("turned.npy"), turned.view()).unwrap();
    let units = "--traj-units cycles/fov";
    refused(
        &command(&format!("recon mri spokes.npy --traj turned.npy {units} -o x.npy")),
        f,
        &["spokes.npy", "[48, 60]", "[60, 48]"],
    );
    npy::write(f.join("fov.npy"), points.view()).unwrap();
    assert!(warnings("samples.npy", &format!("--traj fov.npy {units}"), f).is_empty());
    let flat = turned.as_standard_layout().into_owned().into_shape_with_order(points.dim()).unwrap();
    npy::write(f.join("flat.npy"), flat.view()).unwrap();
    let found = warnings("samples.npy", &format!("--traj flat.npy {units}"), f);
    assert!(found.len() == 1 && found[0].contains("same order"), "{found:?}");
    let transposed = rayspin(&command("recon mri samples.npy --traj scan.h5 -o x.npy"), f);
    assert_eq!(transposed.status.code(), Some(2));
}

/// Gives the scan's first image as arrays without a header; the warnings that they raise.
fn warnings_as_arrays(scan: &Path, folder: &Path) -> Vec<String> {
    let frame = frame(scan);
    let matrix: Vec<String> = frame.matrix.iter().rev().map(ToString::to_string).collect();
    match frame.samples {
        Samples::Cartesian { kspace, .. } => {
            put(folder, "grid.npy", kspace.view());
            let mut bart = kspace.view();
            if bart.ndim() == 3 {
                bart.insert_axis_inplace(Axis(1));
            }
            cfl::write(folder.join("grid.cfl"), bart.reversed_axes()).unwrap();
            [warnings("grid.npy", "", folder), warnings("grid.cfl", "", folder)].concat()
        }
        Samples::NonCartesian { trajectory, data } => {
            put(folder, "samples.npy", data.view().into_dyn());
            npy::write(folder.join("traj.npy"), trajectory.points()).unwrap();
            let options = format!("--traj traj.npy --traj-units cycles/fov --matrix {}", matrix.join(","));
            warnings("samples.npy", &options, folder)
        }
    }
}

#[test]
fn no_good_scan_raises_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for options in [
        "--matrix 64,64 --coils 8",
        "--matrix 64,64 --coils 8 --snr 2",
        "--matrix 16,16 --coils 32 --snr 10",
        "--matrix 96,24 --coils 4",
        "--matrix 24,96 --coils 1 --oversampling 2",
        "--matrix 48,48 --acceleration 3 --snr 20",
        "--matrix 48,32,3 --repetitions 2 --acceleration 2 --calibration 12",
        "--matrix 32,24,16 --dims 3 --coils 4",
        "--matrix 32,24,8 --dims 3 --coils 4 --snr 10",
        "--matrix 48,40,4 --dims 3 --coils 4",
        "--matrix 96,96 -t poisson --acceleration 4 --calibration 12",
        "--matrix 32,48,24 --dims 3 -t poisson --acceleration 4 --calibration 12",
        "--matrix 48,64 -t radial --shots 21 --angles golden --snr 20",
        "--matrix 64,64 -t spiral --shots 3",
        "--matrix 32,32 -t epi",
        "--matrix 64,32 -t epi --shots 4",
        "--matrix 24,24,24 -t kooshball --shots 200 --coils 3",
        "--matrix 24,24,8 -t stack-of-stars --coils 3",
        "--matrix 24,24,8 -t stack-of-spirals --coils 3",
        "--matrix 32,32 -t random",
    ] {
        simulated(f, options);
        for found in [warnings("scan.h5", "", f), warnings_as_arrays(&f.join("scan.h5"), f)] {
            assert!(found.is_empty(), "{options}: {found:?}");
        }
    }
    for name in ["cardiac_radial_12ch.h5", "spiral_jemris_1ch.h5"] {
        if let Some(path) = real_scan(name) {
            let found = warnings_as_arrays(&path, f);
            assert!(found.is_empty(), "{name}: {found:?}");
            assert!(warnings(&path.display().to_string(), "", f).is_empty(), "{name}");
        }
    }
    if let Some(path) = real_scan("brain_cartesian_8ch.cfl") {
        let text = said(&format!("recon mri {} --dry-run", path.display()), f);
        assert!(text.contains("understood as 8 coils, 230 × 180, Cartesian, 12.4 % sampled"), "{text}");
        assert!(!text.contains("warning"), "{text}");
    }
}
