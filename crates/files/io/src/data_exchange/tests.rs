use std::f64::consts::TAU;
use std::sync::LazyLock;

use ndarray::ArrayD;
use rayspin_core::{Detector, Orbit, VolumeGrid};
use rayspin_ct::analytic::{Filter, FilteredBackprojection, Window};
use rayspin_device::{Array, Device};

use super::*;

fn cpu() -> &'static Cpu {
    static DEVICE: LazyLock<Device> = LazyLock::new(|| Device::cpu().unwrap());
    DEVICE.cpu_side()
}

fn scan(radius_mm: Option<f64>, parallel: bool, counts: bool) -> Scan {
    let detector = Detector { rows: 3, columns: 5, pitch_mm: [0.5, 0.7], radius_mm };
    let orbit = Orbit {
        source_to_axis_mm: (!parallel).then_some(100.0),
        axis_to_detector_mm: 40.0,
        offset_mm: [1.0, 2.0],
        ..Orbit::default()
    };
    let orbit = orbit.arc(0.3, TAU, 4);
    let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
    let values = |frames: usize| {
        Array3::from_shape_fn((frames, 3, 5), |(i, j, k)| (100 * i + 10 * j + k) as f32 + 0.5)
    };
    let measured = match counts {
        true => Measured::Counts(Counts { views: values(4), flats: values(2), darks: values(1) }),
        false => Measured::Lines(values(4)),
    };
    Scan::new(measured, orbit.angles, Some(geometry)).unwrap()
}

#[test]
fn scans_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scan.h5");
    for (radius, parallel, counts) in [(None, true, true), (None, false, false), (Some(90.0), false, true)] {
        let written = scan(radius, parallel, counts);
        write(&file, &written).unwrap();
        assert!(is_data_exchange(&file).unwrap());
        let found = read(&file, cpu()).unwrap();
        assert_eq!(found.measured, written.measured);
        assert!(found.angles.iter().zip(&written.angles).all(|(a, b)| (a - b).abs() < 1e-12));
        let (a, b) = (found.geometry.unwrap(), written.geometry.unwrap());
        assert_eq!((a.is_parallel(), a.detector().radius_mm, a.shape()), (parallel, radius, b.shape()));
        for view in 0..4 {
            let (a, b) = (a.pixel_mm(view, 0.0, 4.0), b.pixel_mm(view, 0.0, 4.0));
            assert!((0..3).all(|axis| (a[axis] - b[axis]).abs() < 1e-9));
        }
    }
    // Without dark fields and geometry.
    let Measured::Counts(counts) = scan(None, true, true).measured else { panic!("no counts") };
    let bare = Measured::Counts(Counts { darks: Array3::zeros((0, 3, 5)), ..counts });
    let bare = Scan::new(bare, vec![0.0; 4], None).unwrap();
    write(&file, &bare).unwrap();
    assert_eq!(read(&file, cpu()).unwrap(), bare);
}

#[test]
fn what_is_missing_or_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scan.h5");
    let refused = |change: &dyn Fn(&File), message: &str| {
        write(&file, &scan(None, false, true)).unwrap();
        {
            let open = File::open_rw(&file).unwrap();
            change(&open);
        }
        let text = read(&file, cpu()).unwrap_err().to_string();
        assert!(text.contains("scan.h5") && text.contains(message), "{text} has no {message}");
    };
    refused(&|f| f.unlink("exchange/data").unwrap(), "exchange/data");
    refused(&|f| f.unlink(FLATS).unwrap(), "flat fields");
    refused(&|f| f.unlink(THETA).unwrap(), "angle of each view");
    let replace = |f: &File, name: &str, values: ArrayD<f32>| {
        f.unlink(name).unwrap();
        f.new_dataset_builder().with_data(values.view()).create(name).unwrap();
    };
    refused(&|f| replace(f, THETA, ArrayD::zeros(vec![3])), "angles");
    refused(&|f| replace(f, THETA, ArrayD::zeros(vec![4, 2])), "a list of numbers");
    refused(&|f| replace(f, FLATS, ArrayD::zeros(vec![1, 3, 4])), "flat fields");
    refused(&|f| replace(f, DATA, ArrayD::zeros(vec![4, 3])), "3 axes");
    refused(&|f| replace(f, VECTORS, ArrayD::zeros(vec![4, 11])), "beam");
    std::fs::write(&file, "no HDF5").unwrap();
    assert!(!is_data_exchange(&file).unwrap_or(false) && read(&file, cpu()).is_err());
    assert!(read(folder.path().join("absent.h5"), cpu()).is_err());
}

#[test]
fn every_truncated_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scan.h5");
    write(&file, &scan(Some(90.0), false, true)).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    for len in (0..bytes.len()).step_by(97) {
        std::fs::write(&file, &bytes[..len]).unwrap();
        assert!(read(&file, cpu()).is_err(), "{len} of {}", bytes.len());
    }
}

/// A real scan of a tooth, written by another program; none where it is absent.
fn tooth() -> Option<Scan> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data");
    let folder = std::env::var("RAYSPIN_DATA").unwrap_or_else(|_| beside.into());
    let file = Path::new(&folder).join("ct/tooth.h5");
    if file.exists() {
        return Some(read(&file, cpu()).unwrap());
    }
    assert!(std::env::var("RAYSPIN_DATA_REQUIRED").is_err(), "{} is missing", file.display());
    println!("{} is absent: passed over", file.display());
    None
}

#[test]
fn a_tooth_is_read() {
    let Some(scan) = tooth() else { return };
    assert_eq!((scan.shape(), scan.geometry.is_none()), ([181, 2, 640], true));
    assert!((scan.angles[180] - 179.0f64.to_radians()).abs() < 0.02 && scan.angles[0] == 0.0);
    let Measured::Counts(counts) = scan.measured else { panic!("no counts") };
    assert_eq!((counts.flats.dim().0, counts.darks.dim().0), (10, 10));
}

/// With the axis where it is (column 296) the air around the tooth is dark; beside it edges become bows that
/// reach far into the air.
#[test]
fn a_tooth_is_reconstructed() {
    let Some(scan) = tooth() else { return };
    let device = Device::cpu().unwrap();
    let (angles, mut notes) = (scan.angles.clone(), Vec::new());
    let lines = scan.into_lines(device.cpu_side(), &mut notes).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let row: Vec<f32> = lines.slice(ndarray::s![.., 0, ..]).iter().copied().collect();
    let detector = Detector { rows: 1, columns: 640, pitch_mm: [1.0; 2], radius_mm: None };
    let grid = VolumeGrid::new([1, 320, 320], [2.0; 3], [0.0; 3]).unwrap();
    let air = |axis: f64| {
        let orbit = Orbit { angles: angles.clone(), offset_mm: [319.5 - axis, 0.0], ..Orbit::default() };
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        let filter = Filter { window: Window::Hann, ..Filter::default() };
        let method = FilteredBackprojection::new(&device, &geometry, &grid, filter).unwrap();
        assert!(method.notes().is_empty(), "{:?}", method.notes());
        let slice = method
            .reconstruct(Array::from_slice(&device, &[181, 1, 640], &row).unwrap())
            .unwrap()
            .to_vec()
            .unwrap();
        let radius = |at: usize| (2.0 * (at % 320) as f64 - 319.0).hypot(2.0 * (at / 320) as f64 - 319.0);
        let ring: Vec<f64> = (0..slice.len())
            .filter(|at| (200.0..270.0).contains(&radius(*at)))
            .map(|at| f64::from(slice[at]))
            .collect();
        let mut sorted = slice.clone();
        sorted.sort_by(f32::total_cmp);
        let enamel = f64::from(sorted[sorted.len() * 98 / 100]);
        (ring.iter().map(|v| v * v).sum::<f64>() / ring.len() as f64).sqrt() / enamel
    };
    let (at, beside) = (air(296.0), air(281.0));
    println!("air over enamel: {at:.4} with the axis at column 296, {beside:.4} at 281");
    assert!(at < 0.05 && beside > 1.15 * at, "{at} {beside}");
}

/// The HDF5 library hands on text that is no Unicode, and Rust code that walks through it may read beyond its
/// end.
#[test]
fn text_that_is_no_unicode_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scan.h5");
    write(&file, &scan(None, false, false)).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let places: Vec<usize> = memchr::memmem::find_iter(&bytes, b"cone").collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + 4].copy_from_slice(b"con\xf0");
    }
    std::fs::write(&file, bytes).unwrap();
    let error = read(&file, cpu()).unwrap_err().to_string();
    assert!(error.contains("beam of") && error.contains("con\u{f0}"), "{error}");
}
