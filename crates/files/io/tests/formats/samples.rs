//! Small files of every format, and every way to read a file. Tests of damaged files, the example
//! `fuzz_seeds` and the fuzz target
//! `format` share them.

use std::path::Path;

use ndarray::{ArrayD, IxDyn};
use rayspin_core::{C32, Geometry, Image, Monitor, TrajectoryUnits};
use rayspin_device::Device;
use rayspin_io::cfl::Layout;
use rayspin_io::ismrmrd::summarise;
use rayspin_io::{
    Error, Format, Projections, Property, ScanFile, ScanOptions, Values, WriteOptions, describe, names, npy,
    open_scan, parts, read_any_image, read_maps, read_scan, read_trajectory, write_coil_array, write_image,
};

/// The files of a sample, by name and bytes; the first is the one that is read.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// What a format's writers make of small images and arrays, and the samples of its row. `folder` is empty,
/// and is so again.
pub(crate) fn samples(format: &Format, folder: &Path) -> Vec<Files> {
    let numbers = |shape: &[usize]| {
        let value = |at: &[usize]| at.iter().fold(1u32, |all, &i| 7 * all + 3 * i as u32) % 101;
        ArrayD::from_shape_fn(IxDyn(shape), |at| {
            let value = value(ndarray::Dimension::slice(&at));
            C32::new(value as f32 - 50.25, 0.5 - (value % 9) as f32)
        })
    };
    let mut found: Vec<Files> = Vec::new();
    let mut take = |write: &mut dyn FnMut(&Path)| {
        for ending in format.endings {
            let path = folder.join(format!("sample{ending}"));
            write(&path);
            let written: Vec<_> = match path.is_dir() {
                // Each file of a folder is an image of its own.
                true => vec![std::fs::read_dir(&path).unwrap().next().unwrap().unwrap().path()],
                false => parts(&path),
            };
            let name = |part: &Path| part.file_name().unwrap().to_string_lossy().into_owned();
            found.push(written.iter().map(|part| (name(part), std::fs::read(part).unwrap())).collect());
            match path.is_dir() {
                true => std::fs::remove_dir_all(&path).unwrap(),
                false => written.iter().for_each(|part| std::fs::remove_file(part).unwrap()),
            }
        }
    };
    if let Some(images) = format.images.as_ref().filter(|_| format.reads_images()) {
        let series = format.keeps(Property::Repetitions);
        for shape in [&[2, 3, 4][..], &[2, 1, 3, 4]].into_iter().take(1 + usize::from(series)) {
            let image = Image::new(numbers(shape), Geometry::default()).unwrap();
            for values in images.values.iter().filter(|values| **values != Values::Phase) {
                let options = WriteOptions { values: Some(*values), ..WriteOptions::default() };
                take(&mut |path| drop(write_image(path, &image, &options).unwrap()));
            }
        }
    }
    if format.stores("int16") {
        let whole = folder.join("whole.npy");
        npy::write(&whole, numbers(&[1, 3, 4]).mapv(|value| value.re as i16).view()).unwrap();
        let read = read_any_image(&whole).unwrap();
        let options = WriteOptions { stored: Some(read.stored), ..WriteOptions::default() };
        let image = read.image.into_real().0;
        take(&mut |path| drop(write_image(path, &image, &options).unwrap()));
        let _ = std::fs::remove_file(whole);
    }
    if format.writes_arrays() {
        let maps = numbers(&[2, 1, 3, 4]);
        take(&mut |path| write_coil_array(path, maps.view(), Layout::default()).unwrap());
    }
    let own = (format.samples)();
    found.extend(
        own.into_iter()
            .map(|files| files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()),
    );
    found
}

/// Reads a file in every way there is. `told` gets every error.
pub(crate) fn read_every_way(path: &Path, device: &Device, told: &mut dyn FnMut(&Error)) {
    let mut see = |error: Option<Error>| error.iter().for_each(&mut *told);
    see(describe(path).err());
    see(names(path).err());
    see(read_any_image(path).err());
    see(read_maps(path).err());
    see(read_trajectory(path).err());
    let units = Some(TrajectoryUnits::CyclesPerFov);
    let along = ScanOptions { trajectory: Some(path.to_owned()), units, ..ScanOptions::default() };
    for options in [ScanOptions::default(), along] {
        match read_scan(path, &options, &Monitor::silent()) {
            Ok(ScanFile::Frame(array)) => drop((array.summary().to_string(), array.frame.doubts())),
            Ok(ScanFile::Series(series)) => {
                for label in series.labels().take(4) {
                    match series.frame(label, &mut Vec::new()) {
                        Ok(frame) => drop((series.summary(&frame).to_string(), frame.doubts())),
                        Err(error) => see(Some(error)),
                    }
                }
            }
            Ok(ScanFile::Scan(scan)) => {
                drop(summarise(&scan));
                drop(scan.frames().map(|index| index.labels().count()));
            }
            Err(error) => see(Some(error)),
        }
    }
    match open_scan(path, &Monitor::silent()) {
        Ok(reader) => {
            drop((reader.contents(), reader.heads().len(), reader.slice_places(), reader.memory_bytes()));
            let _ = reader.without_samples().map(|scan| scan.bytes());
        }
        Err(error) => see(Some(error)),
    }
    match Projections::open(path).and_then(|all| all.into_scan(device.cpu_side())) {
        Ok(scan) => drop(scan.into_lines(device.cpu_side(), &mut Vec::new())),
        Err(error) => see(Some(error)),
    }
}

/// What stands between the files of a sample in one input of a fuzzer.
const BETWEEN: &[u8] = b"\0rayspin next file\0";

/// A sample as one input of a fuzzer.
pub(crate) fn joined(files: &Files) -> Vec<u8> {
    files.iter().map(|(_, bytes)| bytes.as_slice()).collect::<Vec<_>>().join(BETWEEN)
}

/// The bytes of each file of an input.
pub(crate) fn apart(mut input: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    while let Some(at) = input.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        files.push(&input[..at]);
        input = &input[at + BETWEEN.len()..];
    }
    files.push(input);
    files
}
