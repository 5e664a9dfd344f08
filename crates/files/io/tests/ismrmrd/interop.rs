//! What ismrmrd-python writes is read, and what is written it reads. `RAYSPIN_PYTHON` names a Python that has
//! ismrmrd and h5py; without it these tests say so and pass over.

use std::path::{Path, PathBuf};
use std::process::Command;

use ndarray::{Array2, Array3, ArrayD, IxDyn};
use rayspin_core::{C32, Geometry, Image, Monitor, TrajectoryUnits};
use rayspin_io::ismrmrd::{
    Identity, ImageOptions, ReadOptions, is_read_past_library, read, read_by_library, read_images, write,
    write_images,
};
use rayspin_io::{RawOptions, ScanOptions, Values, cfl, npy, read_image, scan_of_arrays, write_scan};
use rayspin_mri::scan::{Flags, TrajectoryKind};

use crate::make::{cartesian, scan};

fn python(script: &str, arguments: &[&Path]) -> bool {
    let Some(python) = std::env::var_os("RAYSPIN_PYTHON") else {
        println!("skipped: RAYSPIN_PYTHON is not set");
        return false;
    };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/interop").join(script);
    let output = Command::new(python).arg(&script).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{} failed:\n{}{}",
        script.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

/// The number that the script stores at a place (see `value` there).
fn value(acquisition: usize, coil: usize, sample: usize) -> C32 {
    C32::new((acquisition * 100 + coil * 10) as f32 + sample as f32 / 16.0, -(sample as f32))
}

#[test]
fn files_of_ismrmrd_python_are_read() {
    let folder = tempfile::tempdir().unwrap();
    if !python("ismrmrd_write.py", &[folder.path()]) {
        return;
    }
    // Two encodings, two noise readouts, 3 slices × 2 repetitions × 6 lines, every other line reversed, no
    // trajectory.
    let path = folder.path().join("epi.h5");
    let scan = read(&path).unwrap();
    // h5py writes one record a chunk.
    assert!(is_read_past_library(&path).unwrap());
    let by_library = read_by_library(&path, &ReadOptions::default(), &Monitor::silent()).unwrap();
    assert!(scan.acquisitions == by_library.acquisitions && scan.notes == by_library.notes);
    assert_eq!(scan.header.encodings.len(), 2);
    assert_eq!(scan.header.encodings[0].trajectory, TrajectoryKind::Epi);
    assert_eq!(scan.header.encodings[0].encoded.matrix, [16, 6, 1]);
    assert_eq!(scan.header.encodings[0].recon.matrix, [8, 6, 1]);
    assert_eq!(scan.header.encodings[0].acceleration, Some([2, 1]));
    assert_eq!(scan.header.encodings[0].slice.unwrap().maximum, 2);
    assert_eq!(scan.header.encodings[1].trajectory, TrajectoryKind::Cartesian);
    assert_eq!(scan.header.coils, Some(4));
    assert_eq!(scan.header.vendor.as_deref(), Some("Härte & Söhne"));
    assert_eq!(scan.header.protocol.as_deref(), Some("ep2d <test>"));
    assert_eq!(scan.header.patient_position.as_deref(), Some("HFS"));
    assert_eq!(scan.header.field_strength_t, Some(2.5));
    assert_eq!(scan.acquisitions.len(), 2 + 36);
    for (index, a) in scan.acquisitions.iter().enumerate() {
        let (coils, samples) = if index < 2 { (4, 32) } else { (4, 16) };
        assert_eq!(a.data.dim(), (coils, samples));
        assert_eq!(a.flags.contains(Flags::NOISE), index < 2);
        assert_eq!(a.encoding, usize::from(index < 2));
        assert!(a.trajectory.is_none());
        for ((coil, sample), z) in a.data.indexed_iter() {
            assert_eq!(*z, value(index, coil, sample));
        }
        if let Some(line) = index.checked_sub(2) {
            assert_eq!(usize::from(a.counters.step_1), line % 6);
            assert_eq!(usize::from(a.counters.slice), line / 6 % 3);
            assert_eq!(usize::from(a.counters.repetition), line / 18);
            assert_eq!(a.flags.contains(Flags::REVERSE), line % 2 == 1);
            assert_eq!(a.slice_dir, [0.0, 0.0, 1.0]);
            assert_eq!(a.position, [1.5, -2.5, 10.0 * (line / 6 % 3) as f32]);
        }
    }
    // Spokes with a trajectory in 1/m, written one by one with h5py in an aligned layout without `traj`
    // padding.
    let scan = read(folder.path().join("radial.h5")).unwrap();
    assert_eq!(scan.header.trajectory_units, Some(TrajectoryUnits::CyclesPerMetre));
    assert_eq!(scan.acquisitions.len(), 5);
    for (index, a) in scan.acquisitions.iter().enumerate() {
        let points = a.trajectory.as_ref().unwrap();
        assert_eq!(points.dim(), (12, 2));
        assert_eq!(points[[7, 1]], index as f32 + 7.0 / 8.0);
        assert_eq!(a.data[[1, 3]], value(index, 1, 3));
    }
    // Images of slices, whose order is not their places'.
    let (image, notes) = read_images(folder.path().join("mixed.h5"), None).unwrap();
    assert_eq!((image.data().shape(), image.stacks().len()), (&[2, 3, 4, 6][..], 1));
    let values: Vec<f32> = image.data().slice(ndarray::s![.., .., 0, 0]).iter().map(|v| v.re).collect();
    assert_eq!(values, [0.0, 4.0, 2.0, 11.0, 15.0, 13.0]);
    let place = image.geometry();
    assert_eq!((place.spacing_mm, place.position_mm, notes.len()), ([2.0, 2.0, 7.0], [1.0, 2.0, 7.0], 0));
    // Images of slices in two directions: one image holds the place of one stack.
    let planes = folder.path().join("planes.h5");
    let refused = read_images(&planes, None).unwrap_err();
    assert!(refused.to_string().contains("dataset/image_3/1, dataset/image_3/2"), "{refused}");
    assert!(read_images(&planes, Some("dataset/image_3/3")).is_err());
    for (number, values, position, axis) in [
        ("1", [0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, -1.0]),
        ("2", [1.0, 3.0], [9.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
    ] {
        let name = format!("{}:dataset/image_3/{number}", planes.display());
        let image = read_image(name).unwrap().image;
        assert_eq!((image.geometry().position_mm, image.geometry().slice_dir), (position, axis));
        assert_eq!([0, 1].map(|slice| image.data()[[slice, 3, 5]].re), values);
    }
    // No `traj` member at all.
    let scan = read(folder.path().join("notraj.h5")).unwrap();
    assert!(scan.acquisitions.iter().all(|a| a.trajectory.is_none()));
    assert_eq!(scan.acquisitions[1].data[[1, 3]], value(1, 1, 3));
}

#[test]
fn ismrmrd_python_reads_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut raw = cartesian(3, 6, 8);
    for (index, a) in raw.acquisitions.iter_mut().enumerate() {
        a.data = ndarray::Array2::from_shape_fn((3, 8), |(coil, sample)| value(index, coil, sample)).into();
        let points =
            ndarray::Array2::from_shape_fn((8, 2), |(s, d)| (10 * index + s) as f32 + d as f32 / 4.0);
        a.trajectory = Some(points.into_shared());
        a.flags = Flags::bit(22);
        a.centre_sample = 3;
        a.position = [1.0, 2.0, 3.0];
    }
    raw.header.trajectory_units = Some(TrajectoryUnits::RadiansPerMetre);
    raw.header.vendor = Some("Härte & Söhne".into());
    raw.header.protocol = Some("no position".into());
    raw.header.field_strength_t = Some(1.5);
    raw.header.encodings[0].acceleration = Some([3, 2]);
    write(folder.path().join("raw.h5"), &raw, Identity::Keep).unwrap();
    for seed in 0..8 {
        write(folder.path().join(format!("random_{seed}.h5")), &scan(100 + seed), Identity::Keep).unwrap();
    }
    let values = Array3::from_shape_fn((2, 3, 5), |(z, y, x)| C32::new((z * 100 + y * 10 + x) as f32, 0.5));
    let geometry =
        Geometry { spacing_mm: [2.0, 3.0, 4.0], position_mm: [5.0, 6.0, 7.0], ..Geometry::default() };
    let image = Image::new(values.into_dyn(), geometry).unwrap();
    let options = ImageOptions {
        values: Values::Complex,
        attributes: vec![("Method".into(), "CG <SENSE> é".into())],
        ..ImageOptions::default()
    };
    write_images(folder.path().join("complex.h5"), &image, &options).unwrap();
    write_images(folder.path().join("magnitude.h5"), &image, &ImageOptions::default()).unwrap();
    made_of_arrays(folder.path());
    python("ismrmrd_read.py", &[folder.path()]);
}

/// Scans that are made of arrays: `grid.h5`, two slices of three repetitions with noise, and `spokes.h5`.
fn made_of_arrays(folder: &Path) {
    let at = |name: &str| folder.join(name);
    let grid = ArrayD::from_shape_fn(IxDyn(&[6, 5, 1, 2, 1, 1, 1, 1, 1, 1, 3, 1, 1, 2]), |i| {
        let measured = i[1] != 1;
        let value = (i[0] + 10 * i[1] + 100 * i[3]) as f32;
        if measured { C32::new(1.0 + value, (i[10] + 10 * i[13]) as f32) } else { C32::ZERO }
    });
    cfl::write(at("grid.cfl"), grid.view()).unwrap();
    npy::write(at("noise.npy"), Array2::from_elem((2, 70000), C32::new(0.5, -0.5)).view()).unwrap();
    let options = ScanOptions { fov_mm: Some(vec![120.0, 100.0, 16.0]), ..ScanOptions::default() };
    let raw = RawOptions { noise: Some(at("noise.npy")), dwell_us: Some(2.5) };
    let scan = scan_of_arrays(at("grid.cfl"), &options, &raw, &Monitor::silent()).unwrap();
    write_scan(at("grid.h5"), &scan, Identity::LeaveOut).unwrap();

    let points = Array3::from_shape_fn((4, 9, 2), |(spoke, sample, d)| {
        let angle = spoke as f64 * 0.8;
        (sample as f64 - 4.0) * [angle.cos(), angle.sin()][d]
    });
    npy::write(at("points.npy"), points.view()).unwrap();
    let samples = Array3::from_shape_fn((3, 4, 9), |(c, i, s)| C32::new((100 * i + 10 * c) as f32, s as f32));
    npy::write(at("samples.npy"), samples.view()).unwrap();
    let options = ScanOptions {
        trajectory: Some(at("points.npy")),
        units: Some(TrajectoryUnits::CyclesPerFov),
        matrix: Some(vec![8, 8]),
        ..ScanOptions::default()
    };
    let scan =
        scan_of_arrays(at("samples.npy"), &options, &RawOptions::default(), &Monitor::silent()).unwrap();
    write_scan(at("spokes.h5"), &scan, Identity::LeaveOut).unwrap();
}
