//! Volumes: TIFF stacks, raw numbers, round trips and damaged files.

use ndarray::{ArrayD, IxDyn};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Geometry, Image};
use rayspin_device::Device;
use rayspin_io::{
    FORMATS, Format, Projections, Property, SeriesShape, SeriesWriter, endings, read_image, read_views,
    read_volume, write_image,
};

use crate::support::{assert_same_place, expected, folder, oblique, put, python, read, refused};

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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn volumes_round_trip(shape in prop::array::uniform3(1usize..6), seed in any::<u64>(), mirrored in any::<bool>()) {
        let folder = folder();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let data = ArrayD::from_shape_simple_fn(IxDyn(&shape), || rng.random::<f32>() * 4000.0 - 1000.0);
        let place = oblique([0.4, 0.7, 2.5], [3.0, -20.0, 7.5], [0.3, -0.2, 1.1], mirrored);
        let image = Image::new(data, place).unwrap();
        // DICOM, which is a folder, has numbers of 16 bits.
        let floats = |format: &Format| {
            format.images.as_ref().is_some_and(|images| images.by_slices) && !format.writes_folders()
        };
        for ending in endings(floats) {
            let path = folder.path().join(format!("a{ending}"));
            let format = Format::of_name(&path).unwrap();
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
            // HDF5 lays out its own bytes.
            prop_assert!(format.reads_scans() || whole == std::fs::read(&path).unwrap(), "{}", ending);
            let found = read_volume(&path).unwrap().image;
            prop_assert_eq!(found.data(), image.data());
            if format.keeps(Property::Geometry) {
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
    for format in &FORMATS {
        let Some(images) = &format.images else { continue };
        let path = folder.path().join(format!("a{}", format.endings[0]));
        let mut writer = SeriesWriter::create(&path, &shape, &Default::default()).unwrap();
        assert_eq!(writer.push(slice.view()).is_ok(), images.by_slices, "{format}");
        assert!(writer.finish().is_err() && !path.exists(), "{format}");
    }
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
fn altered_files_of_other_programs_never_panic() {
    let folder = folder();
    let f = folder.path();
    if !python("volumes.py", "write", f) {
        return;
    }
    let device = Device::cpu().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut refused = 0;
    for name in ["big_endian.tif", "deflate.tif", "imagej_one_page.tif", "tiled.tif", "degrees.nxs"] {
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
