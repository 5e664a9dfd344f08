//! TIFF stacks, MetaImages, raw numbers, and CT scans of NeXus and Zeiss files.

use std::path::Path;

use ndarray::{ArrayD, IxDyn};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Geometry, Image};
use rayspin_ct::scan::Measured;
use rayspin_device::Device;
use rayspin_io::{Projections, SeriesShape, SeriesWriter, read_image, read_views, read_volume, write_image};

use crate::support::{assert_same_place, folder, oblique, put, python};

fn number(at: &IxDyn) -> f32 {
    (100 * at[0] + 10 * at[1] + at[2]) as f32
}

/// What `tests/interop/volumes.py` writes.
fn expected() -> ArrayD<f32> {
    ArrayD::from_shape_fn(IxDyn(&[3, 4, 5]), |at| number(&at))
}

fn read(path: &Path) -> Image<f32> {
    read_volume(path).unwrap().image
}

fn refused(path: &Path) -> String {
    let error = read_volume(path).unwrap_err();
    assert!(matches!(error.kind(), rayspin_core::ErrorKind::Input), "{error}");
    error.to_string()
}

#[test]
fn stacks_of_other_programs_are_read() {
    let folder = folder();
    let f = folder.path();
    if !python("volumes.py", "write", f) {
        return;
    }
    for name in
        ["big_endian", "deflate", "predicted", "bigtiff", "tiled", "imagej", "imagej_one_page", "signed"]
    {
        let shift = if name == "signed" { -200.0 } else { 0.0 };
        assert_eq!(*read(&f.join(format!("{name}.tif"))).data(), expected() + shift, "{name}");
    }
    // A page a file: 8, 13 and 18, not in the order of names.
    let pages = f.join("pages");
    assert_eq!(*read(&pages).data(), expected());
    std::fs::copy(f.join("big_endian.tif"), pages.join("im2_23.tif")).unwrap();
    assert!(refused(&pages).contains("found 3 pages"));
    put(&pages.join("im2_23.tif"), &std::fs::read(pages.join("im2_8.tif")).unwrap());
    std::fs::remove_file(pages.join("im2_18.tif")).unwrap();
    assert!(refused(&pages).contains("none between im2_13.tif and im2_23.tif"));
    std::fs::copy(f.join("uneven.tif"), pages.join("im2_18.tif")).unwrap();
    assert!(refused(&pages).contains("im2_18.tif"));
    // A file of the stack that is empty, or cut.
    for (bytes, reason) in
        [(&[][..], "an empty file"), (b"II", "another signature"), (&[0; 99], "another signature")]
    {
        put(&pages.join("im2_18.tif"), bytes);
        let found = refused(&pages);
        assert!(found.contains("im2_18.tif: ") && found.contains(reason), "{found}");
    }
    let whole = std::fs::read(pages.join("im2_8.tif")).unwrap();
    put(&pages.join("im2_18.tif"), &whole[..whole.len() - 1]);
    let found = refused(&pages);
    assert!(found.contains("im2_18.tif: page 0 is cut short"), "{found}");
    assert!(refused(&f.join("colour.tif")).contains("grey"));
    assert!(refused(&f.join("palette.tif")).contains("palette"));
    // Stored numbers are data, however they are to be shown.
    let mut white = 0;
    for entry in std::fs::read_dir(f).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("white_") {
            assert_eq!(*read(&path).data(), expected(), "{}", path.display());
            white += 1;
        }
    }
    assert_eq!(white, 34);
    let read_notes = |name: &str| {
        let read = read_volume(f.join(name)).unwrap();
        (read.image, read.notes.join("\n"))
    };
    let (image, notes) = read_notes("thumbnails.tif");
    assert_eq!(*image.data(), expected());
    assert!(notes.contains("2 pages left out: thumbnails or masks"), "{notes}");
    let (image, notes) = read_notes("calibrated.tif");
    assert_eq!(image.data()[[0, 3, 4]], 34.0);
    assert!(
        notes.contains("-32768 + 1 · stored, is not applied") && notes.contains("Orientation 3"),
        "{notes}"
    );
    assert!(refused(&f.join("uneven.tif")).contains("page 1"));
    // A hole: the last page of a stack is missing.
    let whole = std::fs::read(f.join("imagej_one_page.tif")).unwrap();
    put(&f.join("cut.tif"), &whole[..whole.len() - 1]);
    assert!(refused(&f.join("cut.tif")).contains("3 pages"));
    let image = Image::new(expected(), Geometry::default()).unwrap();
    write_image(f.join("ours.tif"), &image, &Default::default()).unwrap();
    assert!(python("volumes.py", "check", f));
}

#[test]
fn what_a_stack_states_beside_its_pages_is_taken_or_said() {
    let folder = folder();
    let f = folder.path();
    if !python("volumes.py", "write", f) {
        return;
    }
    assert!(refused(&f.join("planes.tif")).contains("16 planes (ImageDepth)"));
    // The first page is described alone.
    for kind in ["u1", "u2", "i4", "f4", "f8"] {
        assert_eq!(*read(&f.join(format!("first_page_{kind}.tif"))).data(), expected(), "{kind}");
    }
    assert!(refused(&f.join("first_page_packed.tif")).contains("3 pages, as its description says"));
    let bytes = std::fs::read(f.join("first_page_u2.tif")).unwrap();
    put(&f.join("first_page_cut.tif"), &bytes[..bytes.len() - 2]);
    assert!(refused(&f.join("first_page_cut.tif")).contains("cut short"));
    // Pages that are counted by more than z.
    for (name, words) in [
        ("times.tif", "channels 1, times 2, slices 3"),
        ("channels.tif", "channels 2, times 1, slices 3"),
        ("channels.ome.tif", "channels 2, times 1, slices 3"),
        ("shaped.tif", "the shape [2, 3, 4, 5]"),
    ] {
        let read = read_volume(f.join(name)).unwrap();
        assert_eq!(read.image.shape_zyx(), [6, 4, 5], "{name}");
        assert!(read.notes.iter().any(|note| note.contains(words)), "{name}: {:?}", read.notes);
    }
    // The size of a voxel, and where it is assumed.
    for (name, spacing, notes) in [
        ("steps.ome.tif", [0.04, 0.05, 0.3], &["no place"][..]),
        ("steps.tif", [0.25, 0.125, 0.7], &["no place"]),
        ("micron.tif", [2.5e-3, 5e-3, 1.0], &["no place", "no distance between slices"]),
        ("millimetre.tif", [0.2, 0.25, 1.0], &["no place", "no distance between slices"]),
        ("hundred.tif", [1.0; 3], &["no geometry", "pixels of 0.1 mm"]),
        ("printer.tif", [1.0; 3], &["no geometry"]),
    ] {
        let read = read_volume(f.join(name)).unwrap();
        let found = read.image.geometry().spacing_mm;
        assert!(found.iter().zip(spacing).all(|(a, b)| (a - b).abs() < 1e-6 * b), "{name}: {found:?}");
        assert_eq!(read.notes.len(), notes.len(), "{name}: {:?}", read.notes);
        assert!(notes.iter().all(|words| read.notes.concat().contains(words)), "{name}: {:?}", read.notes);
    }
    let views = read_views(f.join("steps.tif")).unwrap();
    assert!(views.notes.is_empty() && views.middle_mm.is_none(), "{views:?}");
    // Damage within the compressed numbers of a page.
    let mut bytes = std::fs::read(f.join("deflate.tif")).unwrap();
    let page = bytes.windows(2).rposition(|pair| pair == [0x78, 0x9c] || pair == [0x78, 0xda]).unwrap();
    bytes[page + 2..page + 12].fill(0xff);
    put(&f.join("damaged.tif"), &bytes);
    assert!(refused(&f.join("damaged.tif")).contains("page 2"));
}

#[test]
fn packed_numbers_of_metaimages_are_checked() {
    let folder = folder();
    let f = folder.path();
    let bytes: Vec<u8> = (0..6000u32).map(|at| (at * at / 7) as u8).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &bytes).unwrap();
    let packed = packed.finish().unwrap();
    put(
        &f.join("a.mhd"),
        b"NDims = 3\nDimSize = 30 20 10\nElementType = MET_UCHAR\nElementDataFile = numbers.raw\n",
    );
    let data = f.join("numbers.raw.gz");
    put(&data, &packed);
    assert_eq!(read(&f.join("a.mhd")).data()[[9, 19, 29]], f32::from(bytes[5999]));
    // Records of a run name the file that is there.
    assert_eq!(rayspin_io::parts(f.join("a.mhd"))[1], data);
    let mut changed = packed.clone();
    let end = changed.len() - 8;
    changed[end] ^= 1;
    put(&data, &changed);
    assert!(refused(&f.join("a.mhd")).contains("compressed numbers"));
    put(&data, &[&packed[..], &[0; 99]].concat());
    read(&f.join("a.mhd"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn volumes_round_trip(shape in prop::array::uniform3(1usize..6), seed in any::<u64>(), mirrored in any::<bool>()) {
        let folder = folder();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let data = ArrayD::from_shape_simple_fn(IxDyn(&shape), || rng.random::<f32>() * 4000.0 - 1000.0);
        let place = oblique([0.4, 0.7, 2.5], [3.0, -20.0, 7.5], [0.3, -0.2, 1.1], mirrored);
        let image = Image::new(data, place).unwrap();
        for name in ["a.mha", "a.tif", "a.npy", "a.nii.gz", "a.h5"] {
            let path = folder.path().join(name);
            // As a whole, and slice after slice.
            write_image(&path, &image, &Default::default()).unwrap();
            let whole = std::fs::read(&path).unwrap();
            let shape = SeriesShape { frames: 1, volume: shape, geometry: place };
            let real = rayspin_io::WriteOptions { values: Some(rayspin_io::Values::Real), ..Default::default() };
            let mut writer = SeriesWriter::create(&path, &shape, &real).unwrap();
            for slice in image.data().outer_iter() {
                writer.push(slice.insert_axis(ndarray::Axis(0))).unwrap();
            }
            writer.finish().unwrap();
            prop_assert!(name == "a.h5" || whole == std::fs::read(&path).unwrap(), "{}", name);
            let found = read_volume(&path).unwrap().image;
            prop_assert_eq!(found.data(), image.data());
            if !["a.tif", "a.npy"].contains(&name) {
                assert_same_place(found.geometry(), &place, shape.volume, 1e-3);
            }
        }
    }
}

#[test]
fn parts_of_volumes_are_refused_where_a_format_needs_all() {
    let folder = folder();
    let shape = SeriesShape { frames: 1, volume: [3, 4, 5], geometry: Geometry::default() };
    let slice = ArrayD::<f32>::zeros(IxDyn(&[1, 4, 5]));
    for (name, by_slices) in [("a.cfl", false), ("a.png", false), ("a.mha", true)] {
        let path = folder.path().join(name);
        let mut writer = SeriesWriter::create(&path, &shape, &Default::default()).unwrap();
        assert_eq!(writer.push(slice.view()).is_ok(), by_slices, "{name}");
        assert!(writer.finish().is_err() && !path.exists(), "{name}");
    }
}

#[test]
fn metaimages_of_other_programs_are_read() {
    let folder = folder();
    let f = folder.path();
    // As ITK writes a header beside a file of numbers.
    let header = "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = True\nCompressedData = False\n\
                  TransformMatrix = 0 1 0 -1 0 0 0 0 1\nOffset = 10 20 30\nCenterOfRotation = 0 0 0\n\
                  AnatomicalOrientation = LPI\nElementSpacing = 0.5 2 3\nITK_InputFilterName = MetaImageIO\n\
                  DimSize = 5 4 3\nElementType = MET_SHORT\nElementDataFile = v.raw\n";
    let big: Vec<u8> = expected().iter().flat_map(|v| (*v as i16).to_be_bytes()).collect();
    put(&f.join("v.mhd"), header.as_bytes());
    put(&f.join("v.raw"), &big);
    let found = read(&f.join("v.mhd"));
    assert_eq!(*found.data(), expected());
    let affine = found.geometry().affine_lps([3, 4, 5]);
    // The first voxel is at the offset; a step along x is 0.5 mm towards +y.
    assert!(affine.iter().zip([10.0, 20.0, 30.0]).all(|(row, place)| (row[3] - place).abs() < 1e-12));
    assert_eq!(affine.map(|row| row[0]), [0.0, 0.5, 0.0]);
    assert_eq!(rayspin_io::parts(f.join("v.mhd")), [f.join("v.mhd"), f.join("v.raw")]);
    // Compressed, in one file.
    let little: Vec<u8> = expected().iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &little).unwrap();
    let packed = packed.finish().unwrap();
    let text = format!(
        "NDims = 3\nDimSize = 5 4 3\nElementType = MET_FLOAT\nElementByteOrderMSB = False\nCompressedData = True\n\
         CompressedDataSize = {}\nElementSize = 1 1 1\nElementDataFile = LOCAL\n",
        packed.len()
    );
    put(&f.join("p.mha"), &[text.as_bytes(), &packed].concat());
    assert_eq!(*read(&f.join("p.mha")).data(), expected());
    for (old, new, message) in [
        ("DimSize = 5 4 3", "DimSize = 5 4", "DimSize"),
        ("DimSize = 5 4 3", "DimSize = 5 4 4", "320 bytes"),
        ("MET_FLOAT", "MET_COMPLEX", "ElementType"),
        ("NDims = 3", "NDims = 7", "NDims"),
        ("ElementSize = 1 1 1", "ElementSize = 1 0 1", "spacing"),
        ("CompressedData = True", "CompressedData = perhaps", "CompressedData"),
        ("LOCAL", "LIST", "ElementDataFile = LIST"),
        ("DimSize = 5 4 3", "DimSize = 5 4 3\nElementNumberOfChannels = 3", "ElementNumberOfChannels"),
    ] {
        put(&f.join("bad.mha"), &[text.replace(old, new).as_bytes(), &packed].concat());
        let found = refused(&f.join("bad.mha"));
        assert!(found.contains(message), "{new}: {found}");
    }
}

/// What SimpleITK 2.5 reads of these headers.
#[test]
fn keys_of_metaimages_mean_what_they_mean_to_itk() {
    let folder = folder();
    let f = folder.path();
    let numbers: Vec<i16> = (0..24).map(|at| 100 * at - 700).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    put(&f.join("all.raw"), &bytes);
    let with = |lines: &str, data: &str| {
        let header = format!(
            "ObjectType = Image\nNDims = 3\n{lines}DimSize = 4 3 2\nElementType = MET_SHORT\nElementDataFile = {data}"
        );
        put(&f.join("a.mhd"), header.as_bytes());
        f.join("a.mhd")
    };
    let spacing = |lines: &str| read(&with(lines, "all.raw\n")).geometry().spacing_mm;
    let (size, step) = ("ElementSize = 9 9 5\n", "ElementSpacing = 0.9 0.8 2\n");
    assert_eq!(spacing(&format!("{size}{step}")), [0.9, 0.8, 2.0]);
    assert_eq!(spacing(&format!("{step}{size}")), [0.9, 0.8, 2.0]);
    assert_eq!(spacing(size), [9.0, 9.0, 5.0]);
    // The last of two; colons and blank lines.
    assert_eq!(
        spacing("ElementSpacing = 1 2 3\nComment: a = b\n\nElementSpacing:4 5 6\r\n"),
        [4.0, 5.0, 6.0]
    );
    let place = |lines: &str| read(&with(lines, "all.raw\n")).geometry().affine_lps([2, 3, 4]);
    let keys = [("ImagePosition", 4.0), ("Origin", 3.0), ("Offset", 2.0), ("Position", 1.0)];
    for at in 0..keys.len() {
        let line = |(key, place): &(&str, f64)| format!("{key} = {place} {place} {place}\n");
        let lines: String = keys[at..].iter().rev().map(line).collect();
        assert_eq!(place(&lines).map(|row| row[3]), [keys[at].1; 3], "{lines}");
    }
    let turned = "Orientation = 0 1 0 0 0 1 1 0 0\nRotation = 0 0 1 1 0 0 0 1 0\n";
    assert_eq!(place(turned).map(|row| row[0]), [0.0, 0.0, 1.0]);
    // A negative spacing turns its axis round.
    let negative = place("ElementSpacing = -2 1 1\nOffset = 5 0 0\n")[0];
    assert_eq!([negative[0], negative[3]], [-2.0, 5.0]);
    let notes = |lines: &str| read_volume(with(lines, "all.raw\n")).unwrap().notes.join("\n");
    assert!(notes("DistanceUnits = um\n").contains("DistanceUnits um is not applied"));
    assert!(notes("ElementToIntensityFunctionSlope = 2\n").contains("2 · stored + 0, is not applied"));

    let values = |path: &Path| -> Vec<i16> { read(path).data().iter().map(|&value| value as i16).collect() };
    let texts: Vec<String> = numbers.iter().map(i16::to_string).collect();
    put(&f.join("text"), texts.join(" ").as_bytes());
    put(&f.join("commas"), texts.join(",\n").as_bytes());
    for (binary, data) in [
        ("0", "text"),
        ("False", "commas"),
        ("f", "text"),
        ("False", &format!("LOCAL\n{}\n", texts.join("\n"))),
    ] {
        assert_eq!(values(&with(&format!("BinaryData = {binary}\n"), data)), numbers, "{data}");
    }
    for (wrong, reason) in
        [("1 2 x", "voxel 2"), ("1 40000", "voxel 1"), ("1 0.5", "voxel 1"), ("1 2 3", "3 numbers")]
    {
        let found = refused(&with("BinaryData = False\n", &format!("LOCAL\n{wrong}\n")));
        assert!(found.contains(reason), "{found}");
    }
    // Several files.
    let (first, second) = bytes.split_at(24);
    for at in [1, 2, 3, 5] {
        put(&f.join(format!("slice{at:03}.raw")), if at == 1 { first } else { second });
    }
    for lines in
        ["LIST\nslice001.raw\nslice002.raw\n", "LIST 2D\nslice001.raw \r\nslice002.raw", "LIST 3\nall.raw\n"]
    {
        assert_eq!(values(&with("", lines)), numbers, "{lines}");
    }
    for pattern in [
        "slice%03d.raw",
        "slice%03d.raw 1",
        "slice%03d.raw 1 2",
        "slice%03d.raw 1 9 2",
        "slice00%d.raw 1 5 4",
    ] {
        assert_eq!(values(&with("", &format!("{pattern}\n"))), numbers, "{pattern}");
    }
    assert_eq!(
        rayspin_io::parts(with("", "slice%03d.raw 1 3 2\n"))[1..],
        ["slice001.raw", "slice003.raw"].map(|name| f.join(name))
    );
    for (data, reason) in [
        ("LIST\nslice001.raw\n", "2 names of files, a line each, found 1"),
        ("LIST\nslice001.raw\ngone.raw\n", "gone.raw: cannot open"),
        ("LIST 1\nslice001.raw\nslice002.raw\n", "6 names of files"),
        ("slice%03d.raw 3\n", "slice004.raw: cannot open"),
        ("slice%03d.raw 1 9\n", "ElementDataFile: expected a name with one %d"),
        ("slice%03d.raw 5 1 -1\n", "ElementDataFile: expected a name with one %d"),
        ("slice%s.raw\n", "ElementDataFile: expected a name with one %d"),
    ] {
        let found = refused(&with("", data));
        assert!(found.contains(reason), "{data}: {found}");
    }
    // A part of a header, and of a slice.
    put(&f.join("slice002.raw"), &[b"head", second].concat());
    put(&f.join("slice001.raw"), &[b"four", first].concat());
    for size in ["-1", "4"] {
        assert_eq!(values(&with(&format!("HeaderSize = {size}\n"), "slice%03d.raw\n")), numbers);
    }
    put(&f.join("slice002.raw"), &second[1..]);
    assert!(refused(&with("", "slice%03d.raw\n")).contains("slice002.raw: the image is cut short"));
    // gzip, also as name.gz beside the header.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &bytes).unwrap();
    put(&f.join("packed.raw.gz"), &packed.finish().unwrap());
    assert_eq!(values(&with("CompressedData = True\n", "packed.raw.gz\n")), numbers);
    assert_eq!(values(&with("", "packed.raw\n")), numbers);
}

#[test]
fn raw_numbers_are_what_the_user_says() {
    let folder = folder();
    let path = folder.path().join("v.raw");
    let bytes: Vec<u8> = expected().iter().flat_map(|v| (*v as u16).to_be_bytes()).collect();
    put(&path, &[&[7; 9], &bytes[..]].concat());
    let named = |said: &str| folder.path().join(format!("v.raw:{said}"));
    assert_eq!(*read(&named("5x4x3,uint16,big,skip=9")).data(), expected());
    for said in
        ["5x4x3,uint16,big", "5x4x3,uint16,skip=-1", "5x0x3", "5x4x3,uint12", "99999999999x99999999999x99"]
    {
        refused(&named(said));
    }
    assert!(refused(&path).contains("colon"));
}

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
fn altered_files_never_panic() {
    let folder = folder();
    let f = folder.path();
    let there = python("volumes.py", "write", f);
    let image = Image::new(expected(), Geometry::default()).unwrap();
    write_image(f.join("ours.tif"), &image, &Default::default()).unwrap();
    write_image(f.join("ours.mha"), &image, &Default::default()).unwrap();
    let mut names = vec!["ours.tif", "ours.mha"];
    if there {
        names.extend(["big_endian.tif", "deflate.tif", "imagej_one_page.tif", "tiled.tif", "degrees.nxs"]);
    }
    let device = Device::cpu().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut refused = 0;
    for name in names {
        let bytes = std::fs::read(f.join(name)).unwrap();
        let path = f.join(format!("altered.{}", name.rsplit('.').next().unwrap()));
        for round in 0..400 {
            let mut altered = bytes.clone();
            for _ in 0..=round % 4 {
                // Headers are more interesting than numbers.
                let end = if rng.random::<bool>() { altered.len().min(500) } else { altered.len() };
                altered[rng.random_range(0..end)] = rng.random();
            }
            if round % 5 == 0 {
                altered.truncate(rng.random_range(0..bytes.len()));
            }
            put(&path, &altered);
            let fine = if name.ends_with("nxs") {
                Projections::open(&path).and_then(|scan| scan.into_scan(device.cpu_side())).is_ok()
            } else {
                read_image(&path).is_ok_and(|read| read.image.data().len() < 1 << 22)
            };
            refused += usize::from(!fine);
        }
    }
    assert!(refused > 300, "{refused}");
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
