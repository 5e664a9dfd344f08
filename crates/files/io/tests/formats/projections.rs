//! CT scans of NeXus and Zeiss files, and images that are taken as views.

use rayspin_core::{Geometry, Image};
use rayspin_ct::scan::Measured;
use rayspin_device::Device;
use rayspin_io::{Projections, read_views, write_image};

use crate::support::{expected, folder, put, python};

#[test]
fn nexus_files_of_h5py_are_read() {
    let folder = folder();
    let f = folder.path();
    if !python("volumes.py", "write", f) {
        return;
    }
    let device = Device::cpu().unwrap();
    for (name, keys) in [("degrees.nxs", &[2, 1, 1, 0, 0, 3, 0, 0, 1][..]), ("radian.h5", &[0, 0, 1, 2, 0])] {
        assert!(Projections::are_in(f.join(name)).unwrap(), "{name}");
        let mut scan = Projections::open(f.join(name)).unwrap();
        let of = |kind: i32| Vec::from_iter((0..keys.len()).filter(|&at| keys[at] == kind));
        assert_eq!((scan.shape(), scan.frames()), ([of(0).len(), 2, 6], Some([of(1).len(), of(2).len()])));
        let step = std::f64::consts::PI / (keys.len() - 1) as f64;
        let angles = of(0).into_iter().map(|at| at as f64 * step);
        assert!(scan.angles().iter().zip(angles).all(|(a, b)| (a - b).abs() < 1e-12), "{name}");
        let lines = scan.lines(2, device.cpu_side()).unwrap();
        let line = |at: usize, x: usize| (3900.0 / (900.0 + 10.0 * at as f64 + x as f64)).ln() as f32;
        for (view, &at) in of(0).iter().take(2).enumerate() {
            assert!((lines[view * 12 + 7] - line(at, 1)).abs() < 1e-6, "{name}");
        }
        // The rest, and then nothing.
        assert_eq!(scan.lines(100, device.cpu_side()).unwrap().len(), (of(0).len() - 2) * 12);
        assert!(scan.lines(100, device.cpu_side()).unwrap().is_empty());
        let whole = Projections::open(f.join(name)).unwrap().into_scan(device.cpu_side()).unwrap();
        let Measured::Counts(counts) = whole.measured else { panic!("counts") };
        assert_eq!(counts.views[[1, 1, 2]], (1000 + 10 * of(0)[1] + 2) as f32);
        assert!(counts.darks.iter().all(|&dark| dark == 100.0));
    }
}

#[test]
fn zeiss_scans_are_read() {
    let folder = folder();
    let f = folder.path();
    if !python("volumes.py", "write", f) {
        return;
    }
    let path = f.join("chip.txrm");
    if !path.is_file() {
        assert!(std::env::var("RAYSPIN_DATA_REQUIRED").is_err(), "ct/chip_tomo.txrm.xz is missing");
        return;
    }
    let device = Device::cpu().unwrap();
    let scan = Projections::open(&path).unwrap();
    assert_eq!((scan.shape(), scan.frames(), scan.geometry()), ([7, 256, 256], Some([0, 0]), None));
    let degrees: Vec<f64> = scan.angles().iter().map(|angle| angle.to_degrees()).collect();
    for (found, wanted) in
        degrees.iter().zip([-45.018, -30.0141, -15.0141, -0.0141, 14.9859, 29.9859, 44.9859])
    {
        assert!((found - wanted).abs() < 1e-4, "{degrees:?}");
    }
    assert!(scan.notes().iter().any(|note| note.contains("placeholders")), "{:?}", scan.notes());
    // The file has no flat fields.
    assert!(Projections::open(&path).unwrap().into_scan(device.cpu_side()).is_err());
    let flats = ndarray::Array3::ones((1, 256, 256));
    let scan = scan.with_fields(flats, None);
    let scan = scan.into_scan(device.cpu_side()).unwrap();
    let Measured::Counts(counts) = scan.measured else { panic!("counts") };
    assert_eq!(counts.views.dim(), (7, 256, 256));
    let sums: Vec<f64> =
        counts.views.outer_iter().map(|view| view.iter().map(|&v| f64::from(v)).sum()).collect();
    // Sums of the streams ImageData1/Image1 to Image7, as olefile 0.47 reads them.
    assert_eq!(sums, [4280467.0, 5708686.0, 6420958.0, 6923329.0, 6523982.0, 5553009.0, 4079730.0]);
}

#[test]
fn ole_files_with_other_distances_have_rays() {
    let folder = folder();
    let path = folder.path().join("scan.txrm");
    let mut file = cfb::create(&path).unwrap();
    let stream = |file: &mut cfb::CompoundFile<_>, name: &str, bytes: &[u8]| {
        if let Some((storage, _)) = name.split_once('/')
            && !file.is_storage(storage)
        {
            file.create_storage(storage).unwrap();
        }
        std::io::Write::write_all(&mut file.create_stream(name).unwrap(), bytes).unwrap();
    };
    let ints = |values: &[i32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    for (name, value) in [("ImageWidth", 4), ("ImageHeight", 2), ("NoOfImages", 101), ("DataType", 10)] {
        stream(&mut file, &format!("ImageInfo/{name}"), &ints(&[value]));
    }
    stream(&mut file, "ImageInfo/Angles", &floats(&[0.5; 101]));
    stream(&mut file, "ImageInfo/PixelSize", &floats(&[10.0]));
    stream(&mut file, "ImageInfo/StoRADistance", &floats(&[-20.0; 101]));
    stream(&mut file, "ImageInfo/DtoRADistance", &floats(&[60.0; 101]));
    stream(&mut file, "ReferenceData/Image", &floats(&[50.0; 8]));
    stream(&mut file, "ReconSettings/CenterShift", &floats(&[1.5]));
    for view in 0..101 {
        let name = format!("ImageData{}/Image{}", view / 100 + 1, view + 1);
        stream(&mut file, &name, &floats(&[25.0 + view as f32; 8]));
    }
    file.flush().unwrap();
    drop(file);
    let device = Device::cpu().unwrap();
    let mut scan = Projections::open(&path).unwrap();
    let rays = scan.geometry().unwrap().clone();
    // 10 µm at the axis are 40 µm on the detector.
    assert!((rays.detector().pitch_mm[0] - 0.04).abs() < 1e-9 && rays.shape() == [101, 2, 4]);
    // The axis is 1.5 columns behind the middle.
    let axis = rays.project(0, [0.0; 3]).unwrap();
    assert!((axis[1] - (1.5 + 1.5)).abs() < 1e-6, "{axis:?}");
    let lines = scan.lines(101, device.cpu_side()).unwrap();
    assert!((lines[100 * 8] - (50.0f32 / 125.0).ln()).abs() < 1e-6);
    // Distances that differ from view to view, a type that is none, a file cut short.
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 7, 100, 511, 512, 600, 5000, whole.len() / 2] {
        put(&path, &whole[..length]);
        assert!(
            Projections::open(&path).and_then(|scan| scan.into_scan(device.cpu_side())).is_err(),
            "{length}"
        );
    }
}

#[test]
fn pixels_are_as_large_as_the_image_states() {
    let folder = folder();
    let f = folder.path();
    let place = |spacing: [f64; 3], corner: f64| {
        // The voxel at n/2 lies at the position.
        let position = [corner + spacing[0] * 2.0, spacing[1] * 2.0, 0.0];
        Geometry { spacing_mm: spacing, position_mm: position, ..Geometry::default() }
    };
    for (name, spacing, corner, middle) in [
        ("here.mha", [0.5, 0.75, 1.0], -1.0, None),
        ("away.mha", [0.5, 0.75, 1.0], 9.0, Some([10.0, 1.125])),
        ("here.nii", [2.0, 3.0, 1.0], -5.0, Some([-1.0, 4.5])),
    ] {
        let image = Image::new(expected(), place(spacing, corner)).unwrap();
        write_image(f.join(name), &image, &Default::default()).unwrap();
        let views = read_views(f.join(name)).unwrap();
        assert_eq!(views.values.shape(), [3, 4, 5]);
        let found = views.pixel.unwrap().mm;
        assert!(
            (found[0] - spacing[0]).abs() < 1e-6 && (found[1] - spacing[1]).abs() < 1e-6,
            "{name}: {found:?}"
        );
        if name.ends_with("away.mha") {
            assert_eq!(views.middle_mm, middle);
        }
    }
    write_image(
        f.join("plain.npy"),
        &Image::new(expected(), Geometry::default()).unwrap(),
        &Default::default(),
    )
    .unwrap();
    assert_eq!(read_views(f.join("plain.npy")).unwrap().pixel, None);
    if !python("volumes.py", "write", f) {
        return;
    }
    let of = |name: &str| read_views(f.join(name)).unwrap();
    let close = |name: &str, wanted: [f64; 2]| {
        let found = of(name).pixel.unwrap().mm;
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6 * b), "{name}: {found:?}");
    };
    close("micron.tif", [2.5e-3, 5e-3]);
    close("physical.ome.tif", [0.25e-6, 0.5e-3]);
    assert!(of("printer.tif").pixel.is_none() && of("printer.tif").notes.is_empty());
    let said = of("centimetre.tif");
    assert!(said.pixel.is_none() && said.notes[0].contains("--pixel"), "{:?}", said.notes);
}
