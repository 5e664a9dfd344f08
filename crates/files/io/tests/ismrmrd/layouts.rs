//! Files laid out as other writers do.

use std::str::FromStr;

use hdf5::H5Type;
use hdf5::types::{FixedAscii, FixedUnicode, VarLenArray, VarLenUnicode};
use ndarray::ArrayD;
use rayspin_core::{C32, Geometry, Image, Monitor};
use rayspin_io::ismrmrd::{
    Identity, ImageOptions, ReadOptions, read, read_images, read_with, write, write_images,
};
use rayspin_io::{AnyImage, WriteOptions, read_any_image};
use rayspin_mri::simulate::{SimulateOptions, simulate};

/// A header with one encoding of 4 × 2 voxels.
pub(crate) const XML: &str = "<?xml version=\"1.0\" encoding=\"ascii\"?><ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\">\
    <experimentalConditions><H1resonanceFrequency_Hz>63500000</H1resonanceFrequency_Hz></experimentalConditions><encoding>\
    <encodedSpace><matrixSize><x>4</x><y>2</y><z>1</z></matrixSize><fieldOfView_mm><x>40</x><y>20</y><z>5</z>\
    </fieldOfView_mm></encodedSpace><reconSpace><matrixSize><x>4</x><y>2</y><z>1</z></matrixSize><fieldOfView_mm><x>40\
    </x><y>20</y><z>5</z></fieldOfView_mm></reconSpace><encodingLimits/><trajectory>cartesian</trajectory></encoding>\
    </ismrmrdHeader>";

/// What an error must say, and the change to a file that must lead to it.
pub(crate) type Case<'a> = (&'a str, &'a dyn Fn(&hdf5::Group));

/// Another order, other widths, extra members, trajectory and samples in double precision.
#[derive(H5Type)]
#[repr(C)]
struct Odd {
    data: VarLenArray<f64>,
    extra: [u8; 5],
    head: OddHead,
    traj: VarLenArray<f64>,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct OddHead {
    position: [f64; 3],
    idx: OddIndex,
    center_sample: u64,
    active_channels: u8,
    unknown: i16,
    number_of_samples: i32,
    flags: u32,
    trajectory_dimensions: u8,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct OddIndex {
    slice: u8,
    kspace_encode_step_1: i64,
    user: [u16; 3],
}

/// The least that is a scan, with samples as complex numbers.
#[derive(H5Type)]
#[repr(C)]
struct Least<T: H5Type + Copy> {
    head: LeastHead,
    data: VarLenArray<T>,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
pub(crate) struct LeastHead {
    pub(crate) number_of_samples: u16,
    pub(crate) active_channels: u16,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct RealImag {
    real: f32,
    imag: f32,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct Ri {
    r: f64,
    i: f64,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct Polar {
    magnitude: f32,
    phase: f32,
}

#[test]
fn order_width_and_precision_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = hdf5::File::create(&path).unwrap();
    let group = file.create_group("scan").unwrap();
    let xml: VarLenUnicode = XML.parse().unwrap();
    group.new_dataset_builder().with_data(&[xml]).create("xml").unwrap();
    let rows: Vec<Odd> = (0..3)
        .map(|i| Odd {
            data: VarLenArray::from_slice(&(0..16).map(|k| f64::from(k + 100 * i)).collect::<Vec<_>>()),
            extra: [9; 5],
            head: OddHead {
                position: [1.0, 2.0, 3.0],
                idx: OddIndex { slice: 7, kspace_encode_step_1: i64::from(i), user: [1, 2, 3] },
                center_sample: 2,
                active_channels: 2,
                unknown: -1,
                number_of_samples: 4,
                flags: 1 << 6,
                trajectory_dimensions: 1,
            },
            traj: VarLenArray::from_slice(&[-2.0, -1.0, 0.0, 1.0]),
        })
        .collect();
    group.new_dataset_builder().with_data(&rows).create("data").unwrap();
    drop((group, file));
    let scan = read(&path).unwrap();
    let a = &scan.acquisitions[2];
    assert_eq!(a.data.dim(), (2, 4));
    assert_eq!(a.data[[1, 3]], C32::new(214.0, 215.0));
    assert_eq!((a.counters.slice, a.counters.step_1, a.counters.repetition), (7, 2, 0));
    assert_eq!((a.flags.0, a.centre_sample, a.position), (1 << 6, 2, [1.0, 2.0, 3.0]));
    assert_eq!(a.trajectory.as_ref().unwrap().column(0).to_vec(), [-2.0, -1.0, 0.0, 1.0]);
    assert_eq!(a.read_dir, [0.0; 3]);
    let lacks = scan.notes.iter().find(|n| n.contains("heads lack")).unwrap();
    assert!(lacks.contains("encoding_space_ref") && !lacks.contains("position"), "{lacks}");
    assert!((scan.header.field_strength_t.unwrap() - 1.4914).abs() < 1e-3);
}

fn least<T: H5Type + Copy>(path: &std::path::Path, values: &[T]) {
    // A process that another test starts meanwhile inherits the lock of the file before, so that this is a
    // new file.
    let _ = std::fs::remove_file(path);
    let file = hdf5::File::create(path).unwrap();
    let group = file.create_group("dataset").unwrap();
    let xml = FixedAscii::<1000>::from_ascii(XML).unwrap();
    group.new_dataset_builder().with_data(&[xml]).create("xml").unwrap();
    let row = Least {
        head: LeastHead { number_of_samples: 4, active_channels: 1 },
        data: VarLenArray::from_slice(values),
    };
    group.new_dataset_builder().with_data(&[row]).create("data").unwrap();
}

#[test]
fn complex_samples_are_read_whatever_their_parts_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let wanted: Vec<C32> = (0..4).map(|k| C32::new(k as f32, -0.5)).collect();
    least(&path, &wanted.iter().map(|z| RealImag { real: z.re, imag: z.im }).collect::<Vec<_>>());
    assert_eq!(read(&path).unwrap().acquisitions[0].data.as_slice().unwrap(), wanted);
    let double: Vec<Ri> = wanted.iter().map(|z| Ri { r: f64::from(z.re), i: f64::from(z.im) }).collect();
    least(&path, &double);
    let scan = read(&path).unwrap();
    assert_eq!(scan.acquisitions[0].data.as_slice().unwrap(), wanted);
    assert_eq!(scan.acquisitions[0].trajectory, None);
    // A line as long as the matrix whose centre is not stated has it in the middle.
    assert_eq!(scan.acquisitions[0].centre_sample, 2);
    assert!(scan.notes.iter().any(|n| n.contains("center_sample")));
    least(&path, &[Polar { magnitude: 1.0, phase: 0.0 }; 4]);
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("data.data") && error.contains("magnitude, phase"), "{error}");
    least(&path, &[1i16, 2, 3, 4, 5, 6, 7, -8]);
    assert_eq!(read(&path).unwrap().acquisitions[0].data[[0, 3]], C32::new(7.0, -8.0));
}

#[test]
fn the_header_may_be_a_string_of_any_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let relabel = |write: &dyn Fn(&hdf5::Group)| {
        least(&path, &[0f32; 8]);
        let file = hdf5::File::open_rw(&path).unwrap();
        let group = file.group("dataset").unwrap();
        group.unlink("xml").unwrap();
        write(&group);
        drop((group, file));
        read(&path)
    };
    let unicode = FixedUnicode::<70_000>::from_str(XML).unwrap();
    assert!(relabel(&|g| drop(g.new_dataset_builder().with_data(&[unicode]).create("xml").unwrap())).is_ok());
    let scalar: VarLenUnicode = XML.parse().unwrap();
    assert!(
        relabel(&|g| {
            let xml = g.new_dataset::<VarLenUnicode>().create("xml").unwrap();
            xml.write_scalar(&scalar).unwrap();
        })
        .is_ok()
    );
    let bad: [Case; 5] = [
        ("one string", &|g| drop(g.new_dataset::<VarLenUnicode>().shape(0).create("xml").unwrap())),
        ("one string", &|g| drop(g.new_dataset::<VarLenUnicode>().shape(3).create("xml").unwrap())),
        ("string", &|g| drop(g.new_dataset::<f32>().shape(1).create("xml").unwrap())),
        ("well-formed", &|g| drop(g.new_dataset::<VarLenUnicode>().shape(1).create("xml").unwrap())),
        ("the XML header", &|g| drop(g.create_group("xml").unwrap())),
    ];
    for (text, write) in bad {
        let error = relabel(write).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn the_group_is_found_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    least(&path, &[0f32; 8]);
    {
        let file = hdf5::File::open_rw(&path).unwrap();
        file.create_group("images").unwrap();
        file.link_soft("/nowhere", "dangling").unwrap();
        // Another name of the scan, and a group that contains all groups.
        file.link_soft("/dataset", "latest").unwrap();
        file.link_hard("/", "images/all").unwrap();
    }
    assert!(read(&path).is_ok());
    let named = |name: &str| {
        let options = ReadOptions { group: Some(name.into()), ..ReadOptions::default() };
        read_with(&path, &options, &Monitor::silent())
    };
    assert!(named("dataset").is_ok());
    for wrong in ["images", "missing", "dataset/data", "", "/", "a\0b"] {
        let error = named(wrong).unwrap_err();
        assert!(error.hint().unwrap().contains("dataset"), "{wrong}: {error}");
    }
    {
        let file = hdf5::File::open_rw(&path).unwrap();
        let second = file.create_group("more/second").unwrap();
        for part in ["xml", "data"] {
            second.link_hard(&format!("/dataset/{part}"), part).unwrap();
        }
    }
    let several = read(&path).unwrap_err();
    assert!(several.to_string().contains("found dataset, more/second"), "{several}");
    let hint = several.hint().unwrap();
    assert!(hint.contains(".h5:dataset"), "{hint}");
    assert!(named("more/second").is_ok());
}

/// Both lie in files whose bytes other data sets of the first file could be taken for.
#[test]
fn scans_and_images_behind_links_are_those_of_the_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let monitor = Monitor::silent();
    let options = SimulateOptions { matrix: [16, 16, 1], coils: 2, ..SimulateOptions::default() };
    let scan = simulate(&options, &monitor).unwrap().scan;
    write(at("raw.h5"), &scan, Identity::LeaveOut).unwrap();
    let numbers = (0u8..240).map(|value| C32::from(f32::from(value))).collect();
    let image =
        Image::new(ArrayD::from_shape_vec(vec![2, 10, 12], numbers).unwrap(), Geometry::default()).unwrap();
    write_images(at("images.h5"), &image, &ImageOptions::default()).unwrap();
    {
        let file = hdf5::File::create(at("all.h5")).unwrap();
        file.new_dataset_builder().with_data(&[7f32; 4096]).create("other").unwrap();
        file.link_external("raw.h5", "/dataset", "scan").unwrap();
        file.link_external("images.h5", "/dataset/image_0", "image").unwrap();
        let file = hdf5::File::create(at("parts.h5")).unwrap();
        let group = file.create_group("dataset").unwrap();
        group.link_external("raw.h5", "/dataset/xml", "xml").unwrap();
        group.link_external("raw.h5", "/dataset/data", "data").unwrap();
        let file = hdf5::File::create(at("broken.h5")).unwrap();
        file.link_external("gone.h5", "/dataset", "dataset").unwrap();
    }
    let expected = format!("{:?}", read(at("raw.h5")).unwrap());
    for file in ["all.h5", "parts.h5"] {
        let found = crate::ways::read(&at(file), &ReadOptions::default()).unwrap();
        assert!(format!("{found:?}") == expected, "{file}");
    }
    let (found, _) = read_images(at("all.h5"), None).unwrap();
    assert_eq!(found.data(), image.data());
    let error = read(at("broken.h5")).unwrap_err().to_string();
    assert!(error.contains("broken.h5: dataset") && error.contains("gone.h5"), "{error}");
}

/// As ismrmrd-python writes images by default: a field of view, and no directions.
#[test]
fn images_without_directions_keep_their_size_and_numbers_that_are_none_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let mut data = ndarray::ArrayD::from_elem(vec![2, 6, 5], 3.0f32);
    data[[1, 2, 3]] = f32::NAN;
    let place = Geometry { spacing_mm: [2.0, 3.0, 4.0], ..Geometry::default() };
    let image = Image::new(data, place).unwrap();
    rayspin_io::write_image(&path, &image, &WriteOptions::default()).unwrap();
    let read = read_any_image(&path).unwrap();
    assert!(read.notes.concat().contains("1 of 60 numbers are not finite"), "{:?}", read.notes);
    let AnyImage::Real(found) = read.image else { panic!("complex numbers") };
    let same = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan());
    assert!(found.data().iter().zip(image.data()).all(same));

    #[derive(H5Type, Clone, Copy)]
    #[repr(C)]
    struct Head {
        matrix_size: [u32; 3],
        field_of_view: [f32; 3],
        position: [f32; 3],
        read_dir: [f32; 3],
        phase_dir: [f32; 3],
        slice_dir: [f32; 3],
        repetition: u32,
    }
    let zero = [0.0; 3];
    for (name, field_of_view, dirs, spacing, words) in [
        ("sized.h5", [10.0, 18.0, 8.0], [zero; 3], [2.0, 3.0, 4.0], "no usable directions"),
        ("one.h5", [10.0, 18.0, 8.0], [[1.0, 0.0, 0.0], zero, zero], [2.0, 3.0, 4.0], "no usable directions"),
        ("nothing.h5", zero, [zero; 3], [1.0; 3], "no usable geometry"),
    ] {
        let file = hdf5::File::create(folder.path().join(name)).unwrap();
        let series = file.create_group("images/1").unwrap();
        let [read_dir, phase_dir, slice_dir] = dirs;
        let head = Head {
            matrix_size: [5, 6, 2],
            field_of_view,
            position: zero,
            read_dir,
            phase_dir,
            slice_dir,
            repetition: 0,
        };
        series.new_dataset_builder().with_data(&[head]).create("header").unwrap();
        let values = ndarray::Array5::from_elem((1, 1, 2, 6, 5), 7u16);
        series.new_dataset_builder().with_data(values.view()).create("data").unwrap();
        file.close().unwrap();
        let read = read_any_image(folder.path().join(name)).unwrap();
        assert_eq!(read.image.into_real().0.geometry().spacing_mm, spacing, "{name}");
        assert!(read.notes.concat().contains(words), "{name}: {:?}", read.notes);
    }
    // Images that were never written.
    let file = hdf5::File::open_rw(folder.path().join("sized.h5")).unwrap();
    file.unlink("images/1/data").unwrap();
    file.new_dataset::<u16>().shape((1, 1, 2, 6, 5)).create("images/1/data").unwrap();
    file.close().unwrap();
    let error = read_any_image(folder.path().join("sized.h5")).unwrap_err().to_string();
    assert!(error.contains("data: expected numbers that were written"), "{error}");
}
