use std::fs;

use ndarray::{Array2, Array4, IxDyn};
use rayspin_core::{C32, Error as CoreError, ErrorKind, Geometry, Image, Monitor};
use rayspin_io::ismrmrd::{
    Identity, ImageOptions, ReadOptions, contents, read, read_with, summarise, write, write_images,
};
use rayspin_io::{Error, FORMATS, Format, ScanFile, ScanOptions, Values, read_scan};
use rayspin_mri::scan::Scan;

use crate::make::{cartesian, scan};

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..40 {
        let wanted = scan(seed);
        let path = folder.path().join(format!("{seed}.h5"));
        write(&path, &wanted, Identity::Keep).unwrap();
        let found = read(&path).unwrap();
        assert!(found.header.xml.is_some());
        let mut header = found.header.clone();
        header.xml = None;
        assert_eq!(header, wanted.header, "seed {seed}");
        assert_eq!(found.acquisitions, wanted.acquisitions, "seed {seed}");
        assert!(!summarise(&found).rows().is_empty());

        // A second pass writes the XML as it was found.
        let again = folder.path().join("again.h5");
        write(&again, &found, Identity::Keep).unwrap();
        assert_eq!(read(&again).unwrap().header, found.header);
        assert!(fs::read(&again).unwrap() == fs::read(&path).unwrap(), "seed {seed}: other bytes");
    }
}

#[test]
fn times_of_day_are_left_out_and_their_distances_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let mut wanted = cartesian(1, 4, 8);
    let stamps = |scan: &Scan| scan.acquisitions.iter().map(|readout| readout.time_stamp).collect::<Vec<_>>();
    let mut written = |times: [u32; 4], identity| {
        wanted.acquisitions.iter_mut().zip(times).for_each(|(readout, time)| readout.time_stamp = time);
        let left_out = write(&path, &wanted, identity).unwrap();
        (
            stamps(&read(&path).unwrap()),
            left_out.iter().any(|what| what.starts_with("acquisition_time_stamp")),
        )
    };
    // A readout without a stamp stays without one.
    let day = [0, 20_160_002, 20_160_000, 20_160_044];
    assert_eq!(written(day, Identity::LeaveOut), (vec![0, 2, 0, 44], true));
    assert_eq!(written(day, Identity::Keep), (day.to_vec(), false));
    let counted = [0, 2, 4, 23_000];
    assert_eq!(written(counted, Identity::LeaveOut), (counted.to_vec(), false));
}

#[test]
fn formats_that_hold_scans_keep_every_acquisition() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = scan(3);
    let (options, monitor) = (ScanOptions::default(), Monitor::silent());
    for format in FORMATS.iter().filter(|format| format.writes_scans()) {
        for ending in format.endings.iter().chain(format.other_endings) {
            let path = folder.path().join(format!("a{ending}"));
            rayspin_io::write_scan(&path, &wanted, Identity::Keep).unwrap();
            assert!(rayspin_io::holds_scan(&path).unwrap(), "{ending}");
            let ScanFile::Scan(found) = read_scan(&path, &options, &monitor).unwrap() else {
                panic!("{ending}: no scan");
            };
            assert_eq!(found.acquisitions, wanted.acquisitions, "{ending}");
        }
    }
    let named = |format: &&Format| !format.endings.is_empty();
    for format in FORMATS.iter().filter(|format| !format.writes_scans()).filter(named) {
        let path = folder.path().join(format!("a{}", format.endings[0]));
        assert!(rayspin_io::write_scan(&path, &wanted, Identity::Keep).is_err(), "{format}");
        assert!(!path.exists());
    }
}

#[test]
fn a_header_that_was_changed_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    write(&path, &cartesian(2, 4, 8), Identity::Keep).unwrap();
    let mut found = read(&path).unwrap();
    found.header.vendor = Some("Other".into());
    write(&path, &found, Identity::Keep).unwrap();
    let xml = read(&path).unwrap().header.xml.unwrap();
    assert!(xml.contains("<systemVendor>Other</systemVendor>"));
}

#[test]
fn scans_larger_than_a_block_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let wanted = cartesian(3, 700, 512);
    write(&path, &wanted, Identity::Keep).unwrap();
    assert_eq!(read(&path).unwrap().acquisitions, wanted.acquisitions);
    let said = contents(&path, None).unwrap();
    assert_eq!(said.acquisitions, 700);
    let arrays = 3 * 700 * 512 * 8;
    assert!(said.memory_bytes > arrays && said.memory_bytes < arrays + (68 << 20));
}

#[test]
fn limits_of_memory_and_patience_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    write(&path, &cartesian(2, 4, 8), Identity::Keep).unwrap();
    let options = ReadOptions { memory_limit: Some(1000), ..ReadOptions::default() };
    let refused = read_with(&path, &options, &Monitor::silent()).unwrap_err();
    let Error::Core { source: CoreError::Memory { needed, available, .. }, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(*needed > 1000 && *available == 1000);
    assert_eq!(refused.kind(), ErrorKind::Failure);
    let stop = std::sync::atomic::AtomicBool::new(true);
    let monitor = Monitor::new(&rayspin_core::Silent, Some(&stop));
    let stopped = read_with(&path, &ReadOptions::default(), &monitor).unwrap_err();
    assert!(matches!(stopped, Error::Core { source: CoreError::Interrupted, .. }));
}

#[test]
fn scans_that_the_format_cannot_hold_are_refused_before_a_file_appears() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let refuse = |change: &dyn Fn(&mut Scan), names: &str| {
        let mut scan = cartesian(2, 4, 8);
        change(&mut scan);
        let error = write(&path, &scan, Identity::Keep).unwrap_err();
        assert!(error.to_string().contains(names), "{error}");
        assert!(!path.exists());
    };
    refuse(&|s| s.acquisitions.clear(), "acquisitions");
    refuse(&|s| s.header.encodings.clear(), "encoding");
    refuse(&|s| s.acquisitions[1].encoding = 1, "acquisition 1: encoding");
    refuse(&|s| s.acquisitions[3].data = Array2::zeros((2, 65536)).into(), "acquisition 3: samples");
    refuse(&|s| s.acquisitions[0].trajectory = Some(Array2::zeros((7, 2)).into()), "trajectory");
    refuse(&|s| s.acquisitions[0].trajectory = Some(Array2::zeros((8, 4)).into()), "trajectory");
    refuse(&|s| s.header.encodings[0].recon.matrix[2] = 0, "encoding[0]/reconSpace/matrixSize");
    refuse(&|s| s.header.encodings[0].encoded.fov_mm[1] = f64::NAN, "fieldOfView_mm");
    let nowhere = write(folder.path().join("no/a.h5"), &cartesian(1, 1, 1), Identity::Keep).unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Input);
}

#[test]
fn images_are_laid_out_as_the_standard_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("i.h5");
    let values = Array4::from_shape_fn((3, 2, 5, 7), |(r, z, y, x)| {
        C32::new((r * 100 + z * 10 + y) as f32, -(x as f32))
    });
    let geometry =
        Geometry { spacing_mm: [2.0, 3.0, 4.0], position_mm: [5.0, 6.0, 7.0], ..Geometry::default() };
    let image = Image::new(values.clone().into_dyn(), geometry).unwrap();
    let options = ImageOptions {
        values: Values::Complex,
        header_xml: Some("<ismrmrdHeader/>".into()),
        attributes: vec![("Method".into(), "CG <SENSE> é".into())],
        ..ImageOptions::default()
    };
    write_images(&path, &image, &options).unwrap();
    let file = hdf5::File::open(&path).unwrap();
    let data = file.dataset("dataset/image_0/data").unwrap();
    assert_eq!(data.shape(), [3, 1, 2, 5, 7]);
    #[derive(hdf5::H5Type, Clone, Copy)]
    #[repr(C)]
    struct Pair {
        real: f32,
        imag: f32,
    }
    let found: Vec<Pair> = data.read_raw().unwrap();
    assert!(found.iter().zip(&values).all(|(a, b)| a.real == b.re && a.imag == b.im));
    let header = file.dataset("dataset/image_0/header").unwrap();
    assert_eq!(header.dtype().unwrap().size(), 198);
    #[derive(hdf5::H5Type, Clone, Copy)]
    #[repr(C)]
    struct Some3 {
        matrix_size: [u16; 3],
        field_of_view: [f32; 3],
        repetition: u16,
    }
    let heads: Vec<Some3> = header.read_raw().unwrap();
    assert_eq!(heads[2].matrix_size, [7, 5, 2]);
    assert_eq!(heads[2].field_of_view, [14.0, 15.0, 8.0]);
    assert_eq!(heads[2].repetition, 2);
    drop((data, header, file));

    write_images(&path, &image, &ImageOptions::default()).unwrap();
    let file = hdf5::File::open(&path).unwrap();
    let magnitudes: Vec<f32> = file.dataset("dataset/image_0/data").unwrap().read_raw().unwrap();
    assert!(magnitudes.iter().zip(&values).all(|(a, b)| *a == b.norm()));

    let long = ndarray::ArrayD::zeros(IxDyn(&[1, 70_000]));
    let long = Image::new(long, Geometry::default()).unwrap();
    assert!(write_images(&path, &long, &options).is_err());
}
