//! Files of every shape, made element by element.

mod compressed;
mod ends;
mod meaning;
mod others;
mod scales;
mod volumes;

use std::path::{Path, PathBuf};

use ndarray::{ArrayD, Axis};
use rayspin_core::Image;

use super::encode::{self, Elements};
use super::tag;
use crate::{Error, names, read_volume};

/// A file of one slice to be.
#[derive(Clone)]
struct Slice {
    syntax: &'static str,
    size: [u16; 2],
    /// Allocated, stored, and the highest of them.
    bits: [u16; 3],
    signed: bool,
    place: [f64; 3],
    cosines: [f64; 6],
    spacing: [f64; 2],
    thickness: f64,
    scale: (f64, f64),
    /// The type of the numbers, where it is stated.
    unit: Option<&'static str>,
    padding: Option<i16>,
    photometric: &'static str,
    image_type: &'static str,
    series: (&'static str, &'static str),
    /// Whether slope and intercept are stated.
    rescaled: bool,
    modality: &'static str,
    /// Elements that the file lacks.
    without: &'static [tag::Tag],
    /// Elements before the pixels.
    extra: Vec<u8>,
    /// The basic offset table of fragments.
    table: Vec<u8>,
    pixels: Pixels,
}

#[derive(Clone)]
enum Pixels {
    Native(Vec<u8>),
    Fragments(Vec<Vec<u8>>),
    /// In another element.
    Held(tag::Tag, Vec<u8>),
    None,
}

const COSINES: [f64; 6] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

fn native(numbers: &[i16]) -> Pixels {
    Pixels::Native(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}

/// 3 rows of 4 columns.
fn slice(z: f64, numbers: &[i16]) -> Slice {
    Slice {
        syntax: "1.2.840.10008.1.2.1",
        size: [3, 4],
        bits: [16, 16, 15],
        signed: true,
        place: [-10.0, -20.0, z],
        cosines: COSINES,
        spacing: [0.5, 0.25],
        thickness: 2.0,
        scale: (1.0, 0.0),
        unit: None,
        padding: None,
        photometric: "MONOCHROME2",
        image_type: "ORIGINAL\\PRIMARY\\AXIAL",
        series: ("1.2.3", "7"),
        rescaled: true,
        modality: "CT",
        without: &[],
        extra: Vec::new(),
        table: Vec::new(),
        pixels: native(numbers),
    }
}

fn constant(z: f64, number: i16) -> Slice {
    slice(z, &[number; 12])
}

impl Slice {
    fn bytes(&self) -> Vec<u8> {
        let mut head = encode::head("1.2", "1.2.3.4", "1.2.3", "TEST");
        // The writer knows one syntax: its UID is replaced where the group ends.
        let (mut group, mut uid) = (Elements::new(), self.syntax.to_owned());
        if uid.len() % 2 == 1 {
            uid.push('\0');
        }
        group.put(tag::TRANSFER_SYNTAX, b"UI", uid.as_bytes());
        head.extend(group.into_bytes());
        let mut set = Elements::new();
        set.text(tag::IMAGE_TYPE, b"CS", self.image_type);
        set.text(tag::MODALITY, b"CS", self.modality);
        set.decimals(tag::THICKNESS, &[self.thickness]);
        set.text(tag::SERIES, b"UI", self.series.0);
        set.text(tag::SERIES_NUMBER, b"IS", self.series.1);
        set.decimals(tag::POSITION, &self.place);
        set.decimals(tag::ORIENTATION, &self.cosines);
        set.short(tag::SAMPLES, 1);
        set.text(tag::PHOTOMETRIC, b"CS", self.photometric);
        set.short(tag::ROWS, self.size[0]);
        set.short(tag::COLUMNS, self.size[1]);
        set.decimals(tag::PIXEL_SPACING, &self.spacing);
        for (tag, number) in [tag::BITS_ALLOCATED, tag::BITS_STORED, tag::HIGH_BIT].into_iter().zip(self.bits)
        {
            set.short(tag, number);
        }
        set.short(tag::REPRESENTATION, self.signed.into());
        if let Some(padding) = self.padding {
            set.put(tag::PADDING, b"SS", &padding.to_le_bytes());
        }
        if self.rescaled {
            set.decimals(tag::INTERCEPT, &[self.scale.1]);
            set.decimals(tag::SLOPE, &[self.scale.0]);
        }
        if let Some(unit) = self.unit {
            set.text(tag::RESCALE_TYPE, b"LO", unit);
        }
        let mut held = Elements::new();
        match &self.pixels {
            Pixels::Native(bytes) => held.put(tag::PIXEL_DATA, b"OW", bytes),
            Pixels::Held(tag, bytes) => held.put(*tag, b"OW", bytes),
            Pixels::Fragments(_) | Pixels::None => {}
        }
        let mut set = elements(&set.into_bytes());
        set.retain(|(number, _)| self.without.iter().all(|tag| tag.number != *number));
        let set = set.into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<u8>>();
        let mut bytes = [head, set, self.extra.clone(), held.into_bytes()].concat();
        if let Pixels::Fragments(fragments) = &self.pixels {
            bytes.extend(b"\xe0\x7f\x10\x00OB\0\0\xff\xff\xff\xff\xfe\xff\x00\xe0");
            bytes.extend((self.table.len() as u32).to_le_bytes());
            bytes.extend(&self.table);
            for fragment in fragments {
                bytes.extend(b"\xfe\xff\x00\xe0");
                bytes.extend((fragment.len() as u32).to_le_bytes());
                bytes.extend(fragment);
            }
            bytes.extend(b"\xfe\xff\xdd\xe0\0\0\0\0");
        }
        bytes
    }
}

/// Elements with their numbers.
fn elements(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut each = Vec::new();
    while let [a, b, c, d, kind @ ..] = bytes {
        let length = match kind.starts_with(b"OW") {
            true => 12 + u32::from_le_bytes(kind[4..8].try_into().unwrap()) as usize,
            false => 8 + usize::from(u16::from_le_bytes([kind[2], kind[3]])),
        };
        each.push((u32::from_le_bytes([*c, *d, *a, *b]), bytes[..length].to_vec()));
        bytes = &bytes[length..];
    }
    each
}

/// A folder with these files, named `0`, `1`, …
fn folder(slices: &[Slice]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (at, slice) in slices.iter().enumerate() {
        std::fs::write(folder.path().join(at.to_string()), slice.bytes()).unwrap();
    }
    folder
}

fn read(slices: &[Slice]) -> (Image<f32>, Vec<String>) {
    let folder = folder(slices);
    let read = read_volume(folder.path()).unwrap();
    (read.image, read.notes)
}

fn refused(slices: &[Slice]) -> Error {
    let folder = folder(slices);
    read_volume(folder.path()).unwrap_err()
}

fn expect_refused(slices: &[Slice], words: &[&str]) {
    let text = refused(slices).to_string();
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains('\n'));
}

#[test]
fn slices_are_sorted_by_place_and_lie_where_they_say() {
    let (image, notes) = read(&[constant(4.0, 3), constant(0.0, 1), constant(2.0, 2)]);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(image.data().shape(), [3, 3, 4]);
    let numbers: Vec<f32> = image.data().outer_iter().map(|slice| slice[[0, 0]]).collect();
    assert_eq!(numbers, [1.0, 2.0, 3.0]);
    let geometry = image.geometry();
    assert_eq!(geometry.spacing_mm, [0.25, 0.5, 2.0]);
    // Index n/2 of 4 columns, 3 rows and 3 slices.
    assert_eq!(geometry.position_mm, [-10.0 + 2.0 * 0.25, -20.0 + 0.5, 2.0]);
    // Rows that run the other way: the normal points down, and so does the order.
    let down = |slice: Slice| Slice { cosines: [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0], ..slice };
    let (image, _) = read(&[constant(4.0, 3), constant(0.0, 1), constant(2.0, 2)].map(down));
    assert_eq!(image.data()[[0, 0, 0]], 3.0);
    assert_eq!(image.geometry().slice_dir, [0.0, 0.0, -1.0]);
    assert_eq!(image.geometry().affine_lps([3, 3, 4]).map(|row| row[3]), [-10.0, -20.0, 4.0]);
}

#[test]
fn numbers_are_rescaled_slice_by_slice() {
    let numbers: Vec<i16> = (0..12).map(|i| i * 300 - 1800).collect();
    let scaled = Slice { scale: (0.5, -1000.0), ..slice(0.0, &numbers) };
    let (image, _) = read(&[scaled, Slice { scale: (2.0, 1.0), ..slice(2.0, &numbers) }]);
    for (at, &number) in numbers.iter().enumerate() {
        assert_eq!(image.data()[[0, at / 4, at % 4]], 0.5 * f32::from(number) - 1000.0);
        assert_eq!(image.data()[[1, at / 4, at % 4]], 2.0 * f32::from(number) + 1.0);
    }
    let values = |slice: Slice| read(&[slice]).0.into_data().into_raw_vec_and_offset().0;
    // Without a sign; 12 bits with and without one, above 2 others that mean something else; bytes.
    let unsigned = Slice { signed: false, ..slice(0.0, &[-1; 12]) };
    assert_eq!(values(unsigned), [65535.0; 12]);
    let words = [0x7ffd, 0x2002, 0x0007, -1].repeat(3);
    let twelve = |signed| Slice { bits: [16, 12, 13], signed, ..slice(0.0, &words) };
    assert_eq!(values(twelve(false))[..4], [4095.0, 2048.0, 1.0, 4095.0]);
    assert_eq!(values(twelve(true))[..4], [-1.0, -2048.0, 1.0, -1.0]);
    let bytes = Pixels::Native((250..=255).chain(0..6).collect());
    let eight = Slice { bits: [8, 8, 7], pixels: bytes, ..slice(0.0, &[]) };
    assert_eq!(values(eight)[..8], [-6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0]);
}

#[test]
fn numbers_of_ct_are_hounsfield_units_unless_another_type_is_stated() {
    for (units, expected) in [
        ([None, None], true),
        ([Some("HU"), None], true),
        ([Some("US"), Some("US")], false),
        ([Some("HU"), Some("US")], false),
    ] {
        let slices = [0.0, 2.0].into_iter().zip(units).map(|(z, unit)| Slice { unit, ..constant(z, 5) });
        let folder = folder(&slices.collect::<Vec<_>>());
        assert_eq!(read_volume(folder.path()).unwrap().hounsfield, expected, "{units:?}");
    }
}

#[test]
fn what_was_not_measured_has_the_lowest_value() {
    let numbers = [-2000, -1000, 5, 6, -2000, -900, 1, 2, 3, 4, 5, -2000];
    let (image, notes) = read(&[Slice { padding: Some(-2000), ..slice(0.0, &numbers) }]);
    assert_eq!(image.data()[[0, 0, 0]], -1000.0);
    assert_eq!(image.data()[[0, 1, 1]], -900.0);
    assert!(notes[0].contains("PixelPaddingValue -2000") && notes[0].contains("-1000"), "{notes:?}");
}

/// A linear function of the place is kept by linear interpolation, wherever the slices are.
#[test]
fn tilted_and_uneven_slices_come_onto_a_rectangular_grid() {
    let (sin, cos) = 18.5f64.to_radians().sin_cos();
    let cosines = [1.0, 0.0, 0.0, 0.0, cos, -sin];
    let size = [40u16, 30];
    let value = |[x, y, z]: [f64; 3]| 20.0 * x - 30.0 * y + 50.0 * z;
    let at = |z: f64, thickness: f64| {
        let place = [-10.0, -20.0, z];
        let numbers: Vec<i16> = (0..40 * 30)
            .map(|i| {
                let (row, column) = (f64::from(i / 30) * 0.5, f64::from(i % 30) * 0.25);
                value([place[0] + column, place[1] + row * cos, z - row * sin]).round() as i16
            })
            .collect();
        Slice { size, place, cosines, thickness, pixels: native(&numbers), ..slice(z, &[]) }
    };
    let slices: Vec<Slice> = [(0.0, 2.0), (2.0, 2.0), (4.0, 2.0), (5.0, 3.0), (8.0, 3.0), (11.0, 3.0)]
        .map(|(z, t)| at(z, t))
        .to_vec();
    let (image, notes) = read(&slices);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("unevenly spaced, 0.95 to 2.84 mm: 6 are interpolated"), "{notes:?}");
    assert!(notes[1].contains("18.5°"), "{notes:?}");
    let shape = image.shape_zyx();
    // The height of 11 cos(18.5°) mm in parts of about 2 cos(18.5°) mm; rows for a shift of 11 sin(18.5°) mm.
    assert_eq!(shape, [7, 40 + 7, 30]);
    let affine = image.geometry().affine_lps(shape);
    let mut inside = 0;
    let lowest = image.data().iter().copied().fold(f32::MAX, f32::min);
    for ((z, y, x), &found) in
        image.data().view().into_dimensionality::<ndarray::Ix3>().unwrap().indexed_iter()
    {
        let place = affine.map(|row| row[0] * x as f64 + row[1] * y as f64 + row[2] * z as f64 + row[3]);
        let off = (value(place) - f64::from(found)).abs();
        // The row in a slice at this height. Rows of its neighbours are at most 2 away.
        let height = place[1] + 20.0;
        let [across, along] = [height * sin + place[2] * cos, height * cos - place[2] * sin];
        let row = (along + across / cos * sin) / 0.5;
        let covered = (2.0..37.0).contains(&row);
        if covered {
            inside += 1;
            assert!(off < 1.5, "{z} {y} {x}: {found} {}", value(place));
        } else {
            assert!(found >= lowest);
        }
    }
    assert!(inside > 5000, "{inside}");
    // The first slice is there as it was, above the rows that others need.
    let single = read(&slices[..1]).0;
    let top = image.data().index_axis(Axis(0), 0).slice(ndarray::s![7.., ..]).to_owned();
    assert_eq!(top, single.data().index_axis(Axis(0), 0).into_dimensionality::<ndarray::Ix2>().unwrap());
}

#[test]
fn series_with_missing_double_or_mixed_slices_name_the_files() {
    let series: Vec<Slice> = (0..6).map(|i| constant(2.0 * f64::from(i), 1)).collect();
    let without: Vec<Slice> = [0, 1, 2, 4, 5].map(|i: usize| series[i].clone()).to_vec();
    expect_refused(&without, &["slices every 2.00 mm", "4.00 mm between 2 and 3: 1 missing"]);
    let twice = [&series[..], &[constant(4.0, 2)]].concat();
    expect_refused(&twice, &["ImagePositionPatient", "that of 2 in 6"]);
    let mut mixed = series.clone();
    mixed[3] = Slice { size: [4, 3], ..mixed[3].clone() };
    expect_refused(&mixed, &["Rows and Columns", "3 x 4 as in 0", "4 x 3 in 3"]);
    let mut mixed = series.clone();
    mixed[4] = Slice { cosines: [1.0, 0.0, 0.0, 0.0, 0.0, -1.0], ..mixed[4].clone() };
    expect_refused(&mixed, &["ImageOrientationPatient", "as in 0", "in 4"]);
    let mut mixed = series.clone();
    mixed[5] = Slice { spacing: [0.5, 0.26], ..mixed[5].clone() };
    expect_refused(&mixed, &["PixelSpacing", "0.5 x 0.26 mm in 5"]);
    // The image type names a localizer.
    mixed[5] = Slice { image_type: "ORIGINAL\\PRIMARY\\LOCALIZER", ..mixed[5].clone() };
    let (image, notes) = read(&mixed);
    assert_eq!(image.data().shape(), [5, 3, 4]);
    assert!(notes[0].contains("1 of the slices are localizers"), "{notes:?}");
}

#[test]
fn one_of_several_series_is_chosen_by_number_or_uid() {
    let of = |series| move |slice| Slice { series, ..slice };
    let one = [constant(0.0, 1), constant(2.0, 1)].map(of(("1.2.3", "7")));
    let other = [constant(0.0, 2), constant(2.0, 2)].map(of(("1.2.4", "10")));
    let all = [one.clone(), other].concat();
    let folder = folder(&all);
    let held: Vec<String> = names(folder.path()).unwrap().into_iter().map(|held| held.name).collect();
    assert_eq!(held, ["7", "10"]);
    let named = |name: &str| read_volume(PathBuf::from(format!("{}:{name}", folder.path().display())));
    for (name, value) in [("7", 1.0), ("10", 2.0), ("1.2.4", 2.0)] {
        assert_eq!(named(name).unwrap().image.data()[[0, 0, 0]], value, "{name}");
    }
    for error in [named("8").unwrap_err(), read_volume(folder.path()).unwrap_err()] {
        assert!(error.to_string().contains("7, 10") && error.hint().is_some(), "{error}");
    }
    // Where two have the same number, their UIDs are the names.
    let same = [one, [constant(0.0, 2), constant(2.0, 2)].map(of(("1.2.4", "7")))].concat();
    let folder = self::folder(&same);
    let held: Vec<String> = names(folder.path()).unwrap().into_iter().map(|held| held.name).collect();
    assert_eq!(held, ["1.2.3", "1.2.4"]);
}

#[test]
fn what_is_not_read_is_refused_by_its_name() {
    let one = constant(0.0, 1);
    expect_refused(
        &[Slice { photometric: "PALETTE COLOR", ..one.clone() }],
        &["colour image (PALETTE COLOR)"],
    );
    expect_refused(&[Slice { syntax: "1.2.840.10008.1.2.4.80", ..one.clone() }], &["JPEG-LS"]);
    expect_refused(&[Slice { syntax: "1.2.840.113619.5.2", ..one.clone() }], &["1.2.840.113619.5.2"]);
    expect_refused(&[Slice { scale: (0.0, 1.0), ..one.clone() }], &["RescaleSlope"]);
    expect_refused(&[Slice { spacing: [0.0, 1.0], ..one.clone() }], &["PixelSpacing"]);
    expect_refused(&[Slice { cosines: [1.0; 6], ..one.clone() }], &["ImageOrientationPatient"]);
    expect_refused(&[Slice { bits: [16, 17, 16], ..one.clone() }], &["BitsStored"]);
    expect_refused(&[Slice { size: [4, 4], ..one.clone() }], &["PixelData is cut short", "32", "24"]);
    expect_refused(&[Slice { pixels: Pixels::Fragments(vec![]), ..one }], &["PixelData"]);
}

/// JPEG Lossless with the left neighbour as prediction (process 14, selection value 1); each category has a
/// code of 5 bits.
fn lossless(rows: u16, columns: u16, numbers: &[u16]) -> Vec<u8> {
    let mut out = b"\xff\xd8\xff\xc3\x00\x0b\x10".to_vec();
    out.extend(rows.to_be_bytes());
    out.extend(columns.to_be_bytes());
    out.extend(b"\x01\x01\x11\x00\xff\xc4\x00\x24\x00\0\0\0\0\x11\0\0\0\0\0\0\0\0\0\0\0");
    out.extend(0..=16u8);
    out.extend(b"\xff\xda\x00\x08\x01\x01\x00\x01\x00\x00");
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |value: u32, count: u32| bits.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
    for (at, &number) in numbers.iter().enumerate() {
        let (row, column) = (at / usize::from(columns), at % usize::from(columns));
        let predicted = match (row, column) {
            (0, 0) => 1 << 15,
            (_, 0) => numbers[at - usize::from(columns)],
            _ => numbers[at - 1],
        };
        let off = i32::from(number.wrapping_sub(predicted) as i16);
        let category = 32 - off.unsigned_abs().leading_zeros();
        push(category, 5);
        if category < 16 {
            push((if off < 0 { off - 1 } else { off }) as u32 & ((1 << category) - 1), category);
        }
    }
    for byte in bits.chunks(8) {
        let byte = (0..8).fold(0, |all, bit| all << 1 | u8::from(byte.get(bit).copied().unwrap_or(true)));
        out.push(byte);
        if byte == 0xff {
            out.push(0);
        }
    }
    out.extend(b"\xff\xd9");
    if out.len() % 2 == 1 {
        out.push(0);
    }
    out
}

/// An item of a sequence, or a sequence, of stated length.
fn within(number: u32, kind: Option<&[u8; 2]>, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(((number >> 16) as u16).to_le_bytes());
    out.extend((number as u16).to_le_bytes());
    if let Some(kind) = kind {
        out.extend(kind);
        out.extend([0; 2]);
    }
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
    out
}

#[test]
fn frames_have_places_and_scales_of_their_own() {
    let item = |bytes: Vec<u8>| within(0xfffe_e000, None, &bytes);
    let group = |tag: tag::Tag, fill: &dyn Fn(&mut Elements)| {
        let mut elements = Elements::new();
        fill(&mut elements);
        within(tag.number, Some(b"SQ"), &item(elements.into_bytes()))
    };
    let shared = [
        group(tag::PLANE_ORIENTATION, &|set| set.decimals(tag::ORIENTATION, &COSINES)),
        group(tag::PIXEL_MEASURES, &|set| set.decimals(tag::PIXEL_SPACING, &[0.5, 0.25])),
    ];
    let frame = |z: f64, slope: f64| {
        let place = group(tag::PLANE_POSITION, &|set| set.decimals(tag::POSITION, &[1.0, 2.0, z]));
        let scale = group(tag::TRANSFORMATION, &|set| {
            set.decimals(tag::INTERCEPT, &[1.0]);
            set.decimals(tag::SLOPE, &[slope]);
        });
        item([place, scale].concat())
    };
    let mut set = Elements::new();
    set.text(tag::FRAMES, b"IS", "3");
    set.short(tag::ROWS, 3);
    set.short(tag::COLUMNS, 4);
    set.short(tag::BITS_ALLOCATED, 16);
    let frames = [frame(6.0, 2.0), frame(2.0, 1.0), frame(4.0, 4.0)].concat();
    let mut pixels = Elements::new();
    let numbers: Vec<u8> = [10u16, 20, 30].iter().flat_map(|n| n.to_le_bytes().repeat(12)).collect();
    pixels.put(tag::PIXEL_DATA, b"OW", &numbers);
    let bytes = [
        encode::head("1.2", "1.2.3", "1.2.3", "TEST"),
        set.into_bytes(),
        within(tag::SHARED.number, Some(b"SQ"), &item(shared.concat())),
        within(tag::PER_FRAME.number, Some(b"SQ"), &frames),
        pixels.into_bytes(),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.dcm");
    std::fs::write(&path, bytes).unwrap();
    let image = read_volume(&path).unwrap().image;
    let numbers: Vec<f32> = image.data().outer_iter().map(|slice| slice[[2, 3]]).collect();
    assert_eq!(numbers, [21.0, 121.0, 21.0]);
    assert_eq!(image.geometry().spacing_mm, [0.25, 0.5, 2.0]);
    assert_eq!(image.geometry().affine_lps([3, 3, 4]).map(|row| row[3]), [1.0, 2.0, 2.0]);
}

#[test]
fn folders_are_written_whole_and_replace_only_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dicom");
    let volume = |depth: usize, value: f32| {
        Image::new(ArrayD::from_elem(vec![depth, 3, 4], value), rayspin_core::Geometry::default()).unwrap()
    };
    let write = |image: &Image<f32>| crate::write_image(&path, image, &Default::default());
    let listed = |path: &Path| std::fs::read_dir(path).unwrap().count();
    write(&volume(3, 5.0)).unwrap();
    assert_eq!((listed(&path), listed(folder.path())), (3, 1));
    let bytes = || std::fs::read(path.join("IM000001.dcm")).unwrap();
    let first = bytes();
    write(&volume(3, 5.0)).unwrap();
    assert_eq!(bytes(), first, "the same volume has the same bytes");
    write(&volume(2, -1000.0)).unwrap();
    assert_eq!((listed(&path), listed(folder.path())), (2, 1));
    assert!(bytes() != first);
    // What fails leaves all as it was.
    assert!(write(&volume(2, f32::NAN)).unwrap_err().to_string().contains("finite"));
    assert_eq!((listed(&path), listed(folder.path())), (2, 1));
    std::fs::write(path.join("IM000009.dcm"), "of another program").unwrap();
    let refused = write(&volume(2, 1.0)).unwrap_err();
    assert!(refused.to_string().contains("IM000009.dcm") && refused.hint().is_some(), "{refused}");
    assert_eq!((listed(&path), listed(folder.path())), (3, 1));
    std::fs::write(folder.path().join("b.dicom"), "a file").unwrap();
    assert!(crate::write_image(folder.path().join("b.dicom"), &volume(1, 1.0), &Default::default()).is_err());
    let series =
        Image::new(ArrayD::from_elem(vec![2, 2, 3, 4], 1.0f32), rayspin_core::Geometry::default()).unwrap();
    let refused =
        crate::write_image(folder.path().join("c.dicom"), &series, &Default::default()).unwrap_err();
    assert!(refused.to_string().contains("a series of 2 volumes"), "{refused}");
    assert_eq!(listed(folder.path()), 2);
}
