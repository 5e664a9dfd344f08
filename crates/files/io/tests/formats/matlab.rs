//! Arrays of MATLAB and HDF5 files, as other programs write them.

use std::path::Path;

use ndarray::ArrayD;
use rayspin_core::{C32, Monitor, TrajectoryUnits};
use rayspin_io::{
    ScanFile, ScanOptions, detect, names, npy, read_any_image, read_array, read_scan, read_trajectory,
};
use rayspin_scan::mri::Samples;

use crate::support::{folder, python};

/// The folder that the script fills; none without Python.
fn written() -> Option<tempfile::TempDir> {
    let folder = folder();
    python("arrays.py", "write", folder.path()).then_some(folder)
}

fn grid(path: &Path, name: &str, order: Option<&str>) -> ArrayD<C32> {
    let order = order.map(|order| order.parse().unwrap());
    let options = ScanOptions { order, ..ScanOptions::default() };
    let path = format!("{}{name}", path.display());
    let ScanFile::Frame(array) = read_scan(path, &options, &Monitor::silent()).unwrap() else {
        panic!("expected one image")
    };
    match array.frame.samples {
        Samples::Cartesian { kspace, .. } => kspace,
        Samples::NonCartesian { .. } => panic!("expected a grid"),
    }
}

#[test]
fn arrays_of_every_writer_are_the_same_kspace() {
    let Some(folder) = written() else { return };
    let at = |name: &str| folder.path().join(name);
    let expected = npy::read_complex(at("kspace.npy")).unwrap();
    for (file, name, order) in [
        ("plain.mat", ":DATA", None),
        ("packed.mat", ":DATA", None),
        ("big.mat", "", None),
        ("newer.mat", ":DATA", Some("x,y,coil")),
        ("newer.mat", ":s.k", None),
        ("newer.mat", ":s/k", None),
        ("newer.mat", ":cell{2}", None),
        ("newer.mat", ":cell{4}{1}", None),
        ("newer.mat", ":two(2).k", None),
        ("no_block.mat", "", Some("kx,ky,channel")),
        ("plain.mat", ":s.k", None),
        ("packed.mat", ":cell{1}", None),
        ("arrays.h5", ":kspace", None),
        ("arrays.h5", ":group/half", Some("coil,y,x")),
        ("kspace.npy", "", Some("coil,y,x")),
    ] {
        let found = grid(&at(file), name, order);
        assert!(found.shape() == expected.shape(), "{file}{name}: {:?}", found.shape());
        let off = found.iter().zip(&expected).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
        assert!(off < 1e-6, "{file}{name}: {off}");
    }
    let doubled = grid(&at("newer.mat"), ":cell{3}.k", None);
    assert!(doubled.iter().zip(&expected).all(|(a, b)| (a - 2.0 * b).norm() < 1e-5));
    assert_eq!(detect(at("newer.mat")).unwrap().name, "MATLAB file");
    assert_eq!(detect(at("no_block.mat")).unwrap().name, "MATLAB file");
    assert_eq!(detect(at("arrays.h5")).unwrap().name, "HDF5 (arrays)");
}

#[test]
fn numbers_of_every_class_are_images_with_x_first() {
    let Some(folder) = written() else { return };
    let at = |name: &str| folder.path().join(name);
    // [x, y, z] counts in C order.
    let wanted = |at: [usize; 3]| (6 * at[2] + 2 * at[1] + at[0]) as f32 - 7.0;
    for file in ["plain.mat", "packed.mat", "newer.mat"] {
        for (name, stored) in [("real", "float64"), ("short", "int16"), ("flag", "bool")] {
            let read = read_any_image(format!("{}:{name}", at(file).display())).unwrap();
            // scipy writes logical arrays as such.
            assert_eq!(read.stored.name(), stored, "{file}:{name}");
            let (image, _) = read.image.into_real();
            assert_eq!(image.data().shape(), [2, 3, 4]);
            for (index, value) in image.data().indexed_iter() {
                let number = wanted([index[0], index[1], index[2]]);
                let number = if name == "flag" { f32::from(u8::from(number > 0.0)) } else { number };
                assert_eq!(*value, number, "{file}:{name}");
            }
        }
    }
    for (name, shape) in [("packed", [4, 3, 2]), ("group/real", [4, 3, 2])] {
        let read = read_any_image(format!("{}:{name}", at("arrays.h5").display())).unwrap();
        assert_eq!(read.image.into_real().0.data().shape(), shape);
    }
}

#[test]
fn what_is_no_array_is_refused_by_its_name() {
    let Some(folder) = written() else { return };
    let at = |name: &str| folder.path().join(name);
    let refused = |file: &str, name: &str| {
        let error = read_array(format!("{}:{name}", at(file).display()), "an array").unwrap_err();
        assert_eq!(error.kind(), rayspin_core::ErrorKind::Input);
        error.to_string()
    };
    assert!(refused("plain.mat", "text").contains("text"));
    assert!(refused("plain.mat", "nothing").contains("DATA"));
    assert!(refused("newer.mat", "text").contains("text"));
    assert!(refused("newer.mat", "cell").contains("cell{2}"));
    assert!(refused("newer.mat", "cell{1}").contains("text"));
    assert!(refused("newer.mat", "sparse").contains("sparse, which is not read"));
    assert!(refused("arrays.h5", "text").contains("found"));
    assert!(refused("arrays.h5", "none").contains("group/half"));
    let old = read_array(at("old.mat"), "an array").unwrap_err().to_string();
    assert!(old.contains("version 4"), "{old}");
    let held =
        |file: &str| -> Vec<String> { names(at(file)).unwrap().into_iter().map(|held| held.name).collect() };
    assert_eq!(held("plain.mat"), ["DATA", "real", "flag", "short", "cell{1}", "s.k", "s.deep.real"]);
    let arrays = ["DATA", "cell{2}", "cell{4}{1}", "flag", "real", "short", "cell{3}/k", "s/k", "two(2)/k"];
    assert_eq!(held("newer.mat"), [&arrays[..], &["s/deep/real"]].concat());
    assert_eq!(held("arrays.h5"), ["kspace", "packed", "group/half", "group/real"]);
}

#[test]
fn cells_that_hold_themselves_are_searched_once() {
    let Some(folder) = written() else { return };
    let path = folder.path().join("cycle.mat");
    let begun = std::time::Instant::now();
    let held: Vec<String> = names(&path).unwrap().into_iter().map(|held| held.name).collect();
    assert_eq!(held, ["DATA"]);
    let refused = read_array(format!("{}:itself", path.display()), "an array").unwrap_err().to_string();
    assert!(refused.contains("itself"), "{refused}");
    // The references are 30,000; followed from each other they would be 30,000 arrays with long names.
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(grid(&path, ":DATA", None), grid(&folder.path().join("newer.mat"), ":DATA", None));
}

#[test]
fn named_axes_count_images() {
    let Some(folder) = written() else { return };
    let path = folder.path().join("many.mat");
    let read = |order: Option<&str>| {
        let order = order.map(|order| order.parse().unwrap());
        read_scan(&path, &ScanOptions { order, ..ScanOptions::default() }, &Monitor::silent())
    };
    let hint = read(None).unwrap_err().hint().unwrap();
    assert!(hint.contains("--order"), "{hint}");
    assert!(read(Some("x,y,coil")).unwrap_err().to_string().contains("x,y,coil: 3 axes"));
    let ScanFile::Series(series) = read(Some("x,y,slice,coil,repetition")).unwrap() else {
        panic!("expected a series")
    };
    let first = npy::read_complex(folder.path().join("kspace.npy")).unwrap();
    for (label, factor) in series.labels().zip([1.0, 2.0, 3.0, 4.0]) {
        let frame = series.frame(label, &mut Vec::new()).unwrap();
        let Samples::Cartesian { kspace, .. } = frame.samples else { panic!("expected a grid") };
        let off = kspace.iter().zip(&first).map(|(a, b)| (a - b * factor).norm()).fold(0.0, f32::max);
        assert!(off < 1e-5, "{label:?}: {off}");
    }
}

#[test]
fn samples_along_complex_points_are_those_along_real_ones() {
    let Some(folder) = written() else { return };
    let at = |name: &str| format!("{}{name}", folder.path().display());
    let read = |samples: &str, points: &str, order: Option<&str>| {
        let options = ScanOptions {
            trajectory: Some(at(points).into()),
            units: Some(TrajectoryUnits::CyclesPerVoxel),
            matrix: Some(vec![32, 32]),
            order: order.map(|order| order.parse().unwrap()),
            ..ScanOptions::default()
        };
        let read = read_scan(at(samples), &options, &Monitor::silent()).unwrap();
        let ScanFile::Frame(array) = read else { panic!("expected one image") };
        let readout = array.readout;
        match array.frame.samples {
            Samples::NonCartesian { trajectory, data } => (trajectory.points().to_owned(), data, readout),
            Samples::Cartesian { .. } => panic!("expected samples along a trajectory"),
        }
    };
    let (points, data, readout) = read("/radial.npz:y", "/radial.npz:k", None);
    assert_eq!((data.dim(), readout), ((3, 32 * 24), Some(32)));
    for (samples, trajectory, order) in [
        ("/radial.mat:y", "/radial.mat:k", None),
        ("/radial.mat:y", "/radial.mat:kxy", None),
        ("/radial.mat:y", "/radial.mat:kxy", Some("readout,spoke,coil")),
        ("/radial.npz:y", "/radial.mat:k", Some("coil,shot,readout")),
    ] {
        let (own_points, own, own_readout) = read(samples, trajectory, order);
        assert_eq!((own, own_readout), (data.clone(), readout), "{samples} {trajectory}");
        let off = (&own_points - &points).fold(0.0f64, |most, value| most.max(value.abs()));
        assert!(off < 1e-5, "{samples} {trajectory}: {off}");
    }
    let points = read_trajectory(at("/radial.mat:kxy")).unwrap();
    assert_eq!((points.samples(), points.dims()), (32 * 24, 2));
}

#[test]
fn scipy_reads_the_small_files_of_the_table() {
    let folder = folder();
    let format = rayspin_io::Format::of_name("a.mat").unwrap();
    for files in (format.samples)() {
        for (name, bytes) in files {
            // scipy reads no version 7.3.
            if !bytes.starts_with(b"MATLAB 7.3") {
                std::fs::write(folder.path().join(name), bytes).unwrap();
            }
        }
    }
    python("arrays.py", "check", folder.path());
}
