//! `rayspin convert --raw`: the image of the scan is the image of the arrays that it was made of.

use std::path::Path;

use ndarray::{Array2, Array3, ArrayD, Axis, IxDyn, s};
use rayspin::core::C32;
use rayspin::io::{cfl, ismrmrd, npy, read_image};
use rayspin::mri::scan::{Flags, Samples};

use crate::arrays::{command, frame, nrmse, real_scan, said, write_npz};
use crate::{ok, refused, simulated};

fn grid(folder: &Path, options: &str) -> ArrayD<C32> {
    simulated(folder, options);
    match frame(&folder.join("scan.h5")).samples {
        Samples::Cartesian { kspace, .. } => kspace,
        Samples::NonCartesian { .. } => panic!("expected a grid"),
    }
}

/// Reconstructs arrays and the scan made of them, and expects the same image.
fn expect_same(folder: &Path, arrays: &str, raw: &str, method: &str, most: f64) {
    let recon = |input: &str, output: &str| {
        ok(
            &command(&format!("recon mri {input} -q --no-record {method} -o {output}.npy -o {output}.nii")),
            folder,
        );
    };
    ok(&command(&format!("convert -q --raw {arrays} {raw} raw.h5")), folder);
    recon(&format!("{arrays} {}", raw.replace("--noise noise.npy", "").replace("--dwell 4", "")), "wanted");
    recon("raw.h5", "found");
    let error = nrmse("found.npy", "wanted.npy", folder);
    assert!(error <= most, "{arrays} {raw} {method}: {error}");
    let place = |name: &str| *read_image(folder.join(name)).unwrap().image.geometry();
    let (found, wanted) = (place("found.nii"), place("wanted.nii"));
    for (a, b) in [(found.spacing_mm, wanted.spacing_mm), (found.position_mm, wanted.position_mm)] {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4), "{arrays} {raw}: {a:?} {b:?}");
    }
}

#[test]
fn grids_have_the_same_image_from_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let plane = grid(f, "--matrix 45,37 --coils 4 --acceleration 2 --calibration 13 --snr 80");
    npy::write(f.join("plane.npy"), plane.view()).unwrap();
    write_npz(&f.join("both.npz"), &["plane"]);
    cfl::write(f.join("plane.cfl"), plane.view().insert_axis(Axis(1)).reversed_axes()).unwrap();
    for name in ["plane.npy", "both.npz:plane", "plane.cfl"] {
        for raw in ["", "--fov 230,190,7", "--matrix 40,31 --fov 230,190", "--matrix 51,43"] {
            expect_same(f, name, raw, "-m cg-sense", 1e-6);
        }
    }
    // Places that were measured anywhere, a volume, and slices with repetitions.
    let scattered = ArrayD::from_shape_fn(plane.raw_dim(), |i| {
        let kept = (i[1] * 31 + i[2] * 17) % 5 < 2 || i[1].abs_diff(18) < 7 && i[2].abs_diff(22) < 7;
        if kept { plane[&i] } else { C32::ZERO }
    });
    npy::write(f.join("scattered.npy"), scattered.view()).unwrap();
    expect_same(f, "scattered.npy", "", "-m cg-sense", 1e-6);
    let volume = grid(f, "--dims 3 --matrix 18,15,13 --coils 3");
    npy::write(f.join("volume.npy"), volume.view()).unwrap();
    expect_same(f, "volume.npy", "--fov 180,150,260", "-m cartesian", 1e-6);
    let series = ArrayD::from_shape_fn(IxDyn(&[45, 37, 1, 4, 1, 2, 1, 1, 1, 1, 3, 1, 1, 5]), |i| {
        plane[[i[3], i[1], i[0]]] * (1.0 + i[5] as f32 + 0.5 * i[10] as f32 + 0.25 * i[13] as f32)
    });
    cfl::write(f.join("series.cfl"), series.view()).unwrap();
    for method in
        ["-m cartesian", "-m cg-sense", "-m cg-sense --contrast 1 --slice 2", "-m cg-sense --repetition 2"]
    {
        expect_same(f, "series.cfl", "--fov 230,190,40", method, 1e-5);
    }
}

#[test]
fn samples_along_a_trajectory_have_the_same_image_from_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 48,40 --trajectory spiral --shots 12 --coils 3");
    let Samples::NonCartesian { trajectory, data } = frame(&f.join("scan.h5")).samples else {
        panic!("expected a trajectory")
    };
    let readout = data.ncols() / 12;
    npy::write(f.join("flat.npy"), data.view()).unwrap();
    npy::write(f.join("points.npy"), trajectory.points()).unwrap();
    let spokes: Array3<C32> = data.clone().into_shape_with_order((3, 12, readout)).unwrap();
    npy::write(f.join("spokes.npy"), spokes.view()).unwrap();
    cfl::write(f.join("spokes.cfl"), spokes.view().insert_axis(Axis(3)).reversed_axes().into_dyn()).unwrap();
    let points = trajectory.points();
    let bart = ArrayD::from_shape_fn(IxDyn(&[3, readout, 12]), |i| {
        C32::new(points.get([i[2] * readout + i[1], i[0]]).map_or(0.0, |k| *k as f32), 0.0)
    });
    cfl::write(f.join("points.cfl"), bart.view()).unwrap();
    for (samples, raw) in [
        ("flat.npy", "--traj points.npy --traj-units cycles/fov"),
        ("spokes.npy", "--traj points.npy --matrix 48,40 --fov 240,200"),
        ("spokes.cfl", "--traj points.cfl --matrix 48,40"),
        // Samples beyond the matrix are in the scan, and left out of both images.
        ("spokes.cfl", "--traj points.cfl --matrix 32,28 --traj-units cycles/fov"),
    ] {
        for method in ["-m gridding", "-m cg-sense"] {
            expect_same(f, samples, raw, method, 1e-5);
        }
        let scan = ismrmrd::read(f.join("raw.h5")).unwrap();
        assert_eq!(scan.acquisitions.iter().map(|a| a.data.ncols()).sum::<usize>(), data.ncols());
        if samples != "flat.npy" {
            assert!(scan.acquisitions.len() == 12 && scan.acquisitions.iter().all(|a| a.centre_sample == 0));
        }
    }
    // Frames with trajectories of their own.
    let parts = |array: ArrayD<C32>| {
        let mut parts = array.into_shape_with_order(IxDyn(&[3, 4, 3 * readout])).unwrap();
        parts.swap_axes(0, 1);
        parts
    };
    let values = parts(data.clone().into_dyn());
    let series = ArrayD::from_shape_fn(IxDyn(&[1, readout, 3, 3, 1, 1, 1, 1, 1, 1, 4]), |i| {
        values[[i[10], i[3], i[2] * readout + i[1]]]
    });
    cfl::write(f.join("series.cfl"), series.view()).unwrap();
    let trajectories = ArrayD::from_shape_fn(IxDyn(&[3, readout, 3, 1, 1, 1, 1, 1, 1, 1, 4]), |i| {
        bart[[i[0], i[1], i[10] * 3 + i[2]]]
    });
    cfl::write(f.join("trajectories.cfl"), trajectories.view()).unwrap();
    for method in ["-m gridding", "-m cg-sense", "-m gridding --repetition 3"] {
        expect_same(f, "series.cfl", "--traj trajectories.cfl --matrix 48,40", method, 1e-4);
    }
}

#[test]
fn noise_and_dwell_time_are_in_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 32,24 --coils 3 --snr 40 --noise-correlation 0.5 --noise-readouts 4 --dwell 4");
    let scan = ismrmrd::read(f.join("scan.h5")).unwrap();
    let noise: Vec<_> = scan.acquisitions.iter().filter(|a| a.flags.contains(Flags::NOISE)).collect();
    let views: Vec<_> = noise.iter().map(|a| a.data.view()).collect();
    npy::write(f.join("noise.npy"), ndarray::concatenate(Axis(1), &views).unwrap().view()).unwrap();
    let plane =
        grid(f, "--matrix 32,24 --coils 3 --snr 40 --noise-correlation 0.5 --noise-readouts 4 --dwell 4");
    npy::write(f.join("plane.npy"), plane.view()).unwrap();
    let text = said("convert --raw plane.npy raw.h5 --noise noise.npy --dwell-time 4 --fov 220,220,5", f);
    assert!(text.contains("25 readouts of 3 coils"), "{text}");
    let made = ismrmrd::read(f.join("raw.h5")).unwrap();
    assert!(made.notes.is_empty(), "{:?}", made.notes);
    assert!(made.acquisitions[0].flags.contains(Flags::NOISE) && made.acquisitions[0].sample_time_us == 4.0);
    for name in ["scan", "raw"] {
        let line = format!("recon mri {name}.h5 --no-record -m cg-sense -o {name}.npy");
        assert!(said(&line, f).contains("whitened by"), "{name}");
    }
    // Whitened alike: by the same covariance.
    let error = nrmse("raw.npy", "scan.npy", f);
    assert!(error < 1e-5, "{error}");
}

#[test]
fn the_real_head_scan_has_the_same_image_from_a_scan() {
    let Some(scan) = real_scan("brain_cartesian_8ch.cfl") else { return };
    let folder = tempfile::tempdir().unwrap();
    expect_same(folder.path(), &scan.display().to_string(), "", "-m cg-sense -i 5", 1e-6);
}

#[test]
fn what_makes_no_scan_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let plane = grid(f, "--matrix 16,12 --coils 2");
    npy::write(f.join("k.npy"), plane.view()).unwrap();
    npy::write(f.join("noise.npy"), Array2::from_elem((3, 40), C32::ONE).view()).unwrap();
    npy::write(f.join("real.npy"), plane.mapv(|v| v.re).view()).unwrap();
    let mut bad = plane.clone();
    bad.slice_mut(s![.., 3, ..]).fill(C32::new(f32::NAN, 0.0));
    npy::write(f.join("nan.npy"), bad.view()).unwrap();
    for (line, words) in [
        ("--raw k.npy x.npy", &["name of the output", ".h5"][..]),
        ("--raw k.npy k.npy", &["k.npy", "an input of this run"]),
        (
            "--raw scan.h5 x.h5",
            &["scan.h5", "expected k-space or samples as .cfl, .npy, .npz, .mat or .hdf5"],
        ),
        ("--raw real.npy x.h5", &["real.npy", "complex"]),
        ("--raw nan.npy x.h5", &["nan.npy", "finite"]),
        ("--raw k.npy x.h5 --noise noise.npy", &["noise.npy", "2 coils", "3"]),
        ("--raw k.npy x.h5 --dwell -1", &["dwell time", "-1"]),
        ("--raw k.npy x.h5 --fov 0,3", &["--fov"]),
        ("--raw k.npy x.h5 --matrix 16,12,3", &["matrix", "2 numbers"]),
        ("--raw k.npy x.h5 --keep-identity", &["--keep-identity", "--raw"]),
        ("--raw k.npy x.h5 --complex", &["--complex", "--raw"]),
        ("k.npy x.h5 --fov 20,20", &["--raw"]),
        ("--raw k.npy x.h5 --traj-units cycles/fov", &["--traj"]),
    ] {
        refused(&command(&format!("convert {line}")), f, words);
    }
}
