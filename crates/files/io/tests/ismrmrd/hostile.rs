//! Files that are broken, cut short or lie. Every one must end in an error or a scan; none may panic, hang or
//! take memory that it does not have.

use std::fs;
use std::path::Path;

use hdf5::H5Type;
use hdf5::types::VarLenArray;
use ndarray::Array2;
use rand::RngExt;
use rayspin_core::{C32, ErrorKind, Monitor};
use rayspin_io::Error;
use rayspin_io::ismrmrd::{
    Identity, ReadOptions, Reader, is_read_past_library, read, read_by_library, summarise, write,
};
use rayspin_mri::scan::{Acquisition, Flags, Scan};

use crate::layouts::{Case, LeastHead, XML};
use crate::make::{cartesian, readout, rng};
use crate::real_data::real_data;
use crate::ways;

/// Reads bytes as a file.
fn read_bytes(folder: &Path, bytes: &[u8]) -> Result<Scan, Error> {
    let path = folder.join("broken.h5");
    fs::write(&path, bytes).unwrap();
    let result = ways::read(&path, &ReadOptions::default());
    match &result {
        Ok(scan) => drop(summarise(scan)),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("broken.h5") && !text.contains('\n'), "{text}");
            assert_eq!(error.kind(), ErrorKind::Input, "{text}");
        }
    }
    result
}

fn small() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let mut scan = cartesian(2, 5, 8);
    scan.acquisitions[1] = readout(&mut rng(3), 2, 8, 2);
    write(&path, &scan, Identity::Keep).unwrap();
    fs::read(&path).unwrap()
}

/// Two images of two slices, with noise, and calibration lines of which one has a trajectory.
fn dynamic() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let mut scan = cartesian(2, 5, 8);
    let lines = std::mem::take(&mut scan.acquisitions);
    let rng = &mut rng(4);
    for (flags, dims) in [(Flags::NOISE, 0), (Flags::CALIBRATION, 0), (Flags::CALIBRATION, 2)] {
        let counters = lines[2].counters;
        scan.acquisitions.push(Acquisition { flags, counters, ..readout(rng, 2, 8, dims) });
    }
    for (repetition, line, slice) in (0..2).flat_map(|r| (0..3).flat_map(move |l| [(r, l, 0), (r, l, 1)])) {
        let mut acquisition = lines[line].clone();
        (acquisition.counters.repetition, acquisition.counters.slice) = (repetition, slice);
        scan.acquisitions.push(acquisition);
    }
    write(&path, &scan, Identity::Keep).unwrap();
    fs::read(&path).unwrap()
}

#[test]
fn files_cut_short_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = vec![small()];
    files.extend(
        ["mri/cardiac_radial_12ch.h5", "mri/spiral_jemris_1ch.h5"]
            .iter()
            .filter_map(|n| real_data(n))
            .map(|p| fs::read(p).unwrap()),
    );
    for bytes in files {
        for percent in (0..100).step_by(7).chain([99]) {
            let end = bytes.len() * percent / 100;
            let error = read_bytes(folder.path(), &bytes[..end]).unwrap_err();
            if end > 4096 {
                assert!(matches!(error, Error::Truncated { .. }), "{end}: {error}");
            }
        }
        assert!(read_bytes(folder.path(), &bytes[..bytes.len() - 1]).is_err());
    }
}

/// A type may have fewer bits than its bytes hold. The library masks the others.
#[test]
fn numbers_of_fewer_bits_are_left_to_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bits.h5");
    fs::write(&path, include_bytes!("found/number_of_fewer_bits.h5")).unwrap();
    assert!(!is_read_past_library(&path).unwrap());
    let by_library = read_by_library(&path, &ReadOptions::default(), &Monitor::silent()).unwrap();
    assert!(read(&path).unwrap().acquisitions == by_library.acquisitions);
}

#[test]
fn files_of_any_writer_are_read_past_the_library_as_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.h5");
    fs::write(&own, small()).unwrap();
    // Arrays of several acquisitions in one collection, and acquisitions that are a block of their own.
    let large = folder.path().join("large.h5");
    let mut scan = cartesian(3, 40, 700);
    scan.acquisitions[7] = readout(&mut rng(5), 3, 60_000, 3);
    scan.acquisitions[20] = readout(&mut rng(6), 3, 1, 2);
    write(&large, &scan, Identity::Keep).unwrap();
    let real = ["mri/cardiac_radial_12ch.h5", "mri/spiral_jemris_1ch.h5"];
    for path in [own, large].into_iter().chain(real.iter().filter_map(|name| real_data(name))) {
        assert!(is_read_past_library(&path).unwrap(), "{}", path.display());
        let by_library = read_by_library(&path, &ReadOptions::default(), &Monitor::silent()).unwrap();
        let found = read(&path).unwrap();
        assert_eq!((&found.header, &found.notes), (&by_library.header, &by_library.notes));
        assert!(found.acquisitions == by_library.acquisitions, "{}", path.display());
    }
}

#[test]
fn flipped_bits_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in [small(), dynamic()] {
        let rng = &mut rng(11);
        let mut survived = 0;
        for round in 0..600 {
            let mut broken = bytes.clone();
            for _ in 0..if round % 3 == 0 { 8 } else { 1 } {
                let at = rng.random_range(0..broken.len());
                broken[at] ^= 1 << rng.random_range(0..8);
            }
            survived += usize::from(read_bytes(folder.path(), &broken).is_ok());
        }
        // Most bytes are numbers or padding, so neither all nor none can fail.
        assert!((1..600).contains(&survived), "{survived}");
    }
}

#[test]
fn overwritten_stretches_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in [small(), dynamic()] {
        let rng = &mut rng(12);
        for _ in 0..300 {
            let mut broken = bytes.clone();
            let start = rng.random_range(8..broken.len());
            let end = (start + rng.random_range(1..64)).min(broken.len());
            let value = [0x00, 0xff, 0x7f, 0x80][rng.random_range(0..4)];
            broken[start..end].fill(value);
            let _ = read_bytes(folder.path(), &broken);
        }
    }
}

/// Every place where `wanted` begins.
fn places(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(wanted.len()).enumerate();
    windows.filter(|(_, w)| *w == wanted).map(|(at, _)| at).collect()
}

/// HDF5 2.2.0 reads for ever when a free block states no length.
#[test]
fn a_heap_that_never_ends_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = small();
    let heaps = places(&bytes, b"GCOL");
    assert!(!heaps.is_empty());
    for heap in heaps {
        let mut at = heap + 16;
        while bytes[at..at + 2] != [0, 0] {
            let length = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap());
            at += 16 + usize::try_from(length).unwrap().div_ceil(8) * 8;
        }
        let mut broken = bytes.clone();
        broken[at + 8..at + 16].fill(0);
        let error = read_bytes(folder.path(), &broken).unwrap_err();
        assert!(error.to_string().contains("global heap"), "{error}");
    }
}

/// A free block of an odd length moves the objects behind it to places where numbers cannot be taken as they
/// lie.
#[test]
fn objects_at_odd_places_of_a_heap_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.h5");
    let scan = cartesian(2, 6, 20);
    write(&path, &scan, Identity::Keep).unwrap();
    let bytes = fs::read(&path).unwrap();
    let expected = read(&path).unwrap().acquisitions;
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let mut moved = 0;
    for heap in places(&bytes, b"GCOL") {
        let (size, mut at) = (number(&bytes, heap + 8), heap + 16);
        while bytes[at..at + 2] != [0, 0] {
            at += 16 + number(&bytes, at + 8).next_multiple_of(8);
        }
        for hole in [17, 18, 20, 23, 31] {
            let free = heap + size - at;
            if free < hole + 16 {
                continue;
            }
            let mut odd = bytes[..heap + 16].to_vec();
            odd.extend([0; 8]);
            odd.extend((hole as u64).to_le_bytes());
            odd.resize(heap + 16 + hole, 0);
            odd.extend(&bytes[heap + 16..at]);
            odd.extend([0; 8]);
            odd.extend(((free - hole) as u64).to_le_bytes());
            odd.resize(heap + size, 0);
            odd.extend(&bytes[heap + size..]);
            moved += 1;
            if let Ok(scan) = read_bytes(folder.path(), &odd) {
                assert_eq!(scan.acquisitions, expected, "{hole}");
            }
        }
    }
    assert!(moved >= 5, "{moved}");
}

/// HDF5 clears memory of the stated length, 16 GiB here, before it looks whether the array is that long.
#[test]
fn lengths_beyond_the_file_are_refused_before_memory_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = small();
    let mut said = Vec::new();
    for heap in places(&bytes, b"GCOL") {
        // A reference is the length, the address of the heap and an index.
        for address in places(&bytes, &(heap as u64).to_le_bytes()) {
            let mut broken = bytes.clone();
            broken[address - 4..address].fill(0xff);
            if let Err(error) = read_bytes(folder.path(), &broken) {
                said.push(error.to_string());
            }
        }
    }
    // The header, five arrays of samples and one trajectory.
    assert_eq!(said.len(), 7, "{said:#?}");
    assert!(said.iter().all(|text| text.contains("at most") && text.contains("4294967295")), "{said:#?}");
}

#[test]
fn things_that_are_no_file_of_this_kind() {
    let folder = tempfile::tempdir().unwrap();
    let kinds: [(&[u8], &str); 6] = [
        (b"", "empty"),
        (b"MRI,1,2,3\n", "text"),
        (b"\x93NUMPY\x01\x00v\x00", "NumPy"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PK\x03\x04", "zip"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
    ];
    for (bytes, name) in kinds {
        let error = read_bytes(folder.path(), bytes).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(matches!(read(folder.path()), Err(Error::Open { .. })));
    let absent = read(folder.path().join("absent.h5")).unwrap_err();
    assert_eq!((absent.kind(), absent.hint().is_some()), (ErrorKind::Input, true));
}

/// Writes `scan` after a change that the writer lets pass, and reads it.
fn altered(change: impl FnOnce(&mut Scan)) -> Result<Scan, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let mut scan = cartesian(2, 5, 8);
    change(&mut scan);
    write(&path, &scan, Identity::Keep).unwrap();
    read(&path)
}

#[test]
fn contents_that_make_no_scan_name_the_acquisition_and_the_field() {
    let refuse = |change: &dyn Fn(&mut Scan), names: &[&str]| {
        let error = altered(change).unwrap_err();
        for name in names {
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
    };
    refuse(
        &|s| s.acquisitions[3].data[[1, 6]] = C32::new(0.0, f32::NAN),
        &["acquisition 3", "coil 1, sample 6", "NaN"],
    );
    refuse(&|s| s.acquisitions[0].data[[0, 0]] = C32::new(f32::INFINITY, 0.0), &["acquisition 0", "inf"]);
    let spoiled = |value| {
        move |s: &mut Scan| {
            let mut points = Array2::zeros((8, 2));
            points[[5, 1]] = value;
            s.acquisitions[4].trajectory = Some(points.into_shared());
        }
    };
    refuse(&spoiled(f32::NEG_INFINITY), &["acquisition 4", "sample 5, component 1", "-inf"]);
    refuse(
        &|s| s.acquisitions[2].data = Array2::zeros((3, 8)).into(),
        &["acquisition 2", "active_channels", "2, as acquisition 0 has", "found 3"],
    );
    refuse(&|s| s.acquisitions[2].data = Array2::zeros((2, 0)).into(), &["number_of_samples"]);
    refuse(
        &|s| s.acquisitions.iter_mut().for_each(|a| a.data = Array2::zeros((0, 8)).into()),
        &["acquisition 0", "active_channels"],
    );
}

#[test]
fn noise_and_dummies_may_differ() {
    let scan = altered(|s| {
        let noise = &mut s.acquisitions[0];
        noise.flags = Flags::NOISE;
        noise.data = Array2::from_elem((7, 33), C32::new(f32::NAN, 0.0)).into();
        let dummy = &mut s.acquisitions[1];
        dummy.flags = Flags::DUMMY;
        dummy.data = Array2::zeros((0, 0)).into();
    })
    .unwrap();
    assert_eq!(scan.acquisitions[0].data.dim(), (7, 33));
    assert_eq!(scan.acquisitions[1].data.dim(), (0, 0));
}

#[test]
fn nonsense_that_no_reconstruction_needs_is_repaired_with_a_note() {
    let scan = altered(|s| {
        s.acquisitions[0].centre_sample = 60_000;
        s.acquisitions[1].read_dir = [9.0, 0.0, 0.0];
        s.acquisitions[2].position = [f32::NAN; 3];
        s.acquisitions[3].sample_time_us = -1.0;
        (s.acquisitions[4].discard_pre, s.acquisitions[4].discard_post) = (5, 60_000);
        s.header.coils = Some(9);
    })
    .unwrap();
    let a = &scan.acquisitions;
    assert_eq!(a[0].centre_sample, 4);
    assert_eq!(a[1].phase_dir, [0.0; 3]);
    assert_eq!((a[2].position, a[3].sample_time_us), ([0.0; 3], 0.0));
    assert_eq!((a[4].discard_pre, a[4].discard_post), (0, 0));
    assert_eq!(scan.notes.len(), 6, "{:#?}", scan.notes);
}

/// A head with the fields that can lie.
#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct Liar {
    number_of_samples: u32,
    active_channels: u32,
    trajectory_dimensions: u32,
    encoding_space_ref: u32,
    idx: LiarIndex,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct LiarIndex {
    slice: u32,
}

#[derive(H5Type)]
#[repr(C)]
struct Lie {
    head: Liar,
    traj: VarLenArray<f32>,
    data: VarLenArray<f32>,
}

fn lie(change: impl FnOnce(&mut Lie)) -> Result<Scan, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = hdf5::File::create(&path).unwrap();
    let group = file.create_group("dataset").unwrap();
    let xml = hdf5::types::VarLenAscii::from_ascii(XML).unwrap();
    group.new_dataset_builder().with_data(&[xml]).create("xml").unwrap();
    let mut row = Lie {
        head: Liar {
            number_of_samples: 4,
            active_channels: 1,
            trajectory_dimensions: 2,
            encoding_space_ref: 0,
            idx: LiarIndex { slice: 0 },
        },
        traj: VarLenArray::from_slice(&[0.5; 8]),
        data: VarLenArray::from_slice(&[0.5; 8]),
    };
    change(&mut row);
    group.new_dataset_builder().with_data(&[row]).create("data").unwrap();
    drop((group, file));
    read(&path)
}

#[test]
fn heads_that_lie_about_their_arrays_are_refused() {
    assert!(lie(|_| ()).is_ok());
    let refuse = |change: &dyn Fn(&mut Lie), name: &str| {
        let error = lie(change).unwrap_err();
        assert!(error.to_string().contains(name), "{name}: {error}");
    };
    refuse(&|l| l.head.number_of_samples = 5, "data");
    refuse(&|l| l.head.active_channels = 2, "data: expected 16 numbers");
    refuse(&|l| l.head.number_of_samples = u32::MAX, "cut short");
    refuse(&|l| (l.head.number_of_samples, l.head.active_channels) = (u32::MAX, u32::MAX), "cut short");
    refuse(&|l| (l.head.trajectory_dimensions, l.head.active_channels) = (u32::MAX, 0), "cut short");
    refuse(&|l| l.head.trajectory_dimensions = 5, "trajectory_dimensions");
    refuse(&|l| l.head.trajectory_dimensions = 4, "traj");
    refuse(&|l| l.head.trajectory_dimensions = 0, "traj");
    refuse(&|l| l.head.trajectory_dimensions = 1, "traj: expected at most 4 numbers");
    refuse(&|l| l.data = VarLenArray::from_slice(&[]), "data: expected 8 numbers");
    refuse(&|l| l.data = VarLenArray::from_slice(&[0.0; 9]), "data: expected at most 8 numbers");
    refuse(&|l| l.traj = VarLenArray::from_slice(&[0.0; 7]), "traj: expected 8 numbers");
    refuse(&|l| l.head.idx.slice = 70_000, "idx.slice");
    let scan = lie(|l| l.traj = VarLenArray::from_slice(&[])).unwrap();
    assert!(scan.notes.iter().any(|n| n.contains("no trajectory is there")));
    let scan = lie(|l| l.head.encoding_space_ref = 3).unwrap();
    assert!(scan.notes.iter().any(|n| n.contains("encoding_space_ref")));
}

#[test]
fn datasets_of_absurd_shape_or_type_are_refused() {
    #[derive(H5Type)]
    #[repr(C)]
    struct NoData {
        head: LeastHead,
    }
    #[derive(H5Type)]
    #[repr(C)]
    struct NoHead {
        data: VarLenArray<f32>,
    }
    #[derive(H5Type)]
    #[repr(C)]
    struct BadTraj {
        head: LeastHead,
        traj: [f32; 2],
        data: VarLenArray<f32>,
    }
    #[derive(H5Type)]
    #[repr(C)]
    struct BadHead {
        head: NoSamples,
        data: VarLenArray<f32>,
    }
    #[derive(H5Type, Clone, Copy)]
    #[repr(C)]
    struct NoSamples {
        active_channels: u16,
    }
    let with = |make: &dyn Fn(&hdf5::Group)| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let file = hdf5::File::create(&path).unwrap();
        let group = file.create_group("dataset").unwrap();
        let xml = hdf5::types::VarLenAscii::from_ascii(XML).unwrap();
        group.new_dataset_builder().with_data(&[xml]).create("xml").unwrap();
        make(&group);
        drop((group, file));
        read(&path).unwrap_err().to_string()
    };
    let cases: [Case; 9] = [
        ("at least one acquisition", &|g| drop(g.new_dataset::<Lie>().shape((0..,)).create("data").unwrap())),
        ("number of acquisitions", &|g| {
            drop(g.new_dataset::<Lie>().chunk(8).shape((1usize << 50..,)).create("data").unwrap());
        }),
        ("one dimension", &|g| drop(g.new_dataset::<Lie>().shape((2, 2)).create("data").unwrap())),
        ("compound", &|g| drop(g.new_dataset::<f32>().shape(3).create("data").unwrap())),
        ("no data", &|g| drop(g.new_dataset::<NoData>().shape(1).create("data").unwrap())),
        ("no head", &|g| drop(g.new_dataset::<NoHead>().shape(1).create("data").unwrap())),
        ("data.traj", &|g| drop(g.new_dataset::<BadTraj>().shape(1).create("data").unwrap())),
        ("number_of_samples", &|g| drop(g.new_dataset::<BadHead>().shape(1).create("data").unwrap())),
        ("data", &|g| drop(g.create_group("data").unwrap())),
    ];
    for (name, make) in cases {
        let error = with(make);
        assert!(error.contains(name), "{name}: {error}");
    }
}

/// A file that another program cuts while a reader has it open.
#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shrinking.h5");
    // More than HDF5 keeps in its caches.
    write(&path, &cartesian(3, 400, 1024), Identity::LeaveOut).unwrap();
    let whole = fs::read(&path).unwrap();
    let all = read(&path).unwrap().acquisitions;
    for part in (0..16).step_by(3) {
        fs::write(&path, &whole).unwrap();
        let mut reader = Reader::open(&path, None).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(whole.len() as u64 * part / 16).unwrap();
        let mut found = Vec::new();
        let result = reader.read(0..all.len(), &Monitor::silent(), &mut |_, readout| found.push(readout));
        // What was handed on before the error is as it was.
        assert!(found.iter().zip(&all).all(|(found, expected)| found == expected), "{part}");
        match result {
            Ok(()) => assert_eq!(found.len(), all.len(), "{part}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("shrinking.h5") && !text.contains('\n'), "{part}: {text}");
            }
        }
        assert!(part > 8 || found.len() < all.len(), "{part}");
    }
}

/// What fuzzing found: a type of the heads whose numbers are others than their sizes tell.
#[test]
fn types_that_only_the_library_understands_are_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let error = read_bytes(folder.path(), include_bytes!("found/head_of_other_numbers.h5")).unwrap_err();
    assert!(error.to_string().contains("traj"), "{error}");
}
