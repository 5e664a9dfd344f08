use std::io::Write;

use ndarray::{ArrayD, IxDyn};
use proptest::prelude::*;
use rayspin_core::{C32, Geometry, Image};
use rayspin_io::nifti::{self, NiftiOptions};
use rayspin_io::{Error, Values, WriteOptions, npy, read_image, write_image};

use crate::support::{assert_same_place, folder, oblique, put, python, random};

fn save_affine(path: std::path::PathBuf, image: &Image) {
    let rows = image.geometry().affine_ras(image.shape_zyx());
    let text: Vec<String> = rows.iter().map(|r| r.map(|v| v.to_string()).join(" ")).collect();
    std::fs::write(path, text.join("\n")).unwrap();
}

#[test]
fn nibabel_reads_what_is_written() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let geometries = [
        Geometry::default(),
        oblique([0.9, 1.2, 4.0], [-30.0, 55.5, 12.0], [0.3, -0.8, 2.2], false),
        oblique([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], [2.9, 0.2, -1.1], true),
        oblique([1.0, 3.0, 2.0], [0.0, 0.0, 0.0], [std::f64::consts::PI, 0.0, 0.0], false),
        oblique([1.0, 3.0, 2.0], [0.0, 0.0, 0.0], [0.0, std::f64::consts::PI, 0.0], true),
    ];
    for (n, geometry) in geometries.into_iter().enumerate() {
        for (shape, end) in [(&[5usize, 6, 7][..], "nii"), (&[2, 3, 4, 5], "nii.gz"), (&[1, 8, 9], "nii")] {
            for values in [Values::Magnitude, Values::Real, Values::Phase, Values::Complex] {
                let name = format!("g{n}_r{}_{values:?}", shape.len() * 10 + shape[0]);
                let image = Image::new(random(n as u64, shape), geometry).unwrap();
                let options = NiftiOptions { values, ..NiftiOptions::default() };
                nifti::write(at(&format!("{name}.{end}")), &image, &options).unwrap();
                save_affine(at(&format!("{name}.txt")), &image);
                let expected = at(&format!("{name}.npy"));
                match values {
                    Values::Magnitude => npy::write(expected, image.magnitude().view()).unwrap(),
                    Values::Real => npy::write(expected, image.data().mapv(|v| v.re).view()).unwrap(),
                    Values::Phase => npy::write(expected, image.data().mapv(|v| v.arg()).view()).unwrap(),
                    Values::Complex => npy::write(expected, image.data().view()).unwrap(),
                }
            }
        }
    }
    python("nifti_nibabel.py", "check", folder.path());
}

#[test]
fn two_places_that_disagree_are_told() {
    let folder = folder();
    let path = folder.path().join("a.nii");
    let geometry = oblique([2.0, 3.0, 4.0], [-30.0, 55.5, 12.0], [0.3, -0.8, 2.2], false);
    let image = Image::new(random(3, &[2, 3, 5]), geometry).unwrap();
    for (x_mm, note) in [(0.0, None), (0.1, None), (25.0, Some("up to 25.00 mm apart: sform is taken"))] {
        nifti::write(&path, &image, &NiftiOptions::default()).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let stated = f32::from_le_bytes(bytes[268..272].try_into().unwrap());
        bytes[268..272].copy_from_slice(&(stated + x_mm).to_le_bytes());
        put(&path, &bytes);
        let read = read_image(&path).unwrap();
        assert_same_place(read.image.geometry(), &geometry, [2, 3, 5], 1e-4);
        let told: Vec<_> = read.notes.iter().filter(|told| told.contains("qform")).collect();
        assert!(told.len() == usize::from(note.is_some()), "{x_mm}: {told:?}");
        assert!(note.is_none_or(|note| told[0].contains(note)), "{x_mm}: {told:?}");
    }
}

#[test]
fn a_contradiction_of_the_number_of_bits_is_told() {
    let mut bytes = header(&[3, 2, 1]);
    let notes = |bytes: &[u8]| read_bytes(bytes).unwrap().notes.join("; ");
    assert!(!notes(&bytes).contains("bitpix"), "{}", notes(&bytes));
    bytes[72..74].copy_from_slice(&16i16.to_le_bytes());
    assert!(notes(&bytes).contains("bitpix is 16, and datatype 16 has 32 bits"), "{}", notes(&bytes));
}

#[test]
fn voxels_beside_their_header_are_told() {
    let folder = folder();
    let path = folder.path().join("a.img");
    put(&path, &[7; 24]);
    let error = || read_image(&path).unwrap_err();
    assert!(!format!("{:?}", error()).contains("header"));
    put(&folder.path().join("a.hdr"), &header(&[3, 2, 1]));
    assert!(format!("{:?}", error()).contains("a.hdr seems to be its header"), "{:?}", error());
}

#[test]
fn the_time_step_of_a_series_is_kept() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let image = Image::new(random(3, &[4, 2, 3, 5]), Geometry::default()).unwrap();
    let step = |name: &str| read_image(at(name)).unwrap().repetition_time_s;
    for (unit, stated, wanted) in
        [(8u8, 1.8f32, Some(1.8)), (16, 720.0, Some(0.72)), (24, 90_000.0, Some(0.09)), (0, 3.0, None)]
    {
        nifti::write(at("a.nii"), &image, &NiftiOptions::default()).unwrap();
        let mut bytes = std::fs::read(at("a.nii")).unwrap();
        bytes[92..96].copy_from_slice(&stated.to_le_bytes());
        bytes[123] = 2 | unit;
        put(&at("a.nii"), &bytes);
        assert_eq!(step("a.nii"), wanted);
        let read = read_image(at("a.nii")).unwrap();
        let options = WriteOptions { repetition_time_s: read.repetition_time_s, ..WriteOptions::default() };
        for name in ["b.nii", "b.nii.gz"] {
            write_image(at(name), &read.image, &options).unwrap();
            assert_eq!(step(name), wanted, "{name}");
        }
    }
    // A single image has no step.
    let one = Image::new(random(3, &[2, 3, 5]), Geometry::default()).unwrap();
    let options = NiftiOptions { repetition_time_s: Some(2.0), ..NiftiOptions::default() };
    nifti::write(at("one.nii"), &one, &options).unwrap();
    assert_eq!(step("one.nii"), None);
}

#[test]
fn zeros_behind_a_gzip_stream_are_no_damage() {
    let folder = folder();
    let path = folder.path().join("a.nii.gz");
    let image = Image::new(random(5, &[3, 4, 5]), Geometry::default()).unwrap();
    nifti::write(&path, &image, &NiftiOptions { values: Values::Complex, ..NiftiOptions::default() })
        .unwrap();
    let whole = std::fs::read(&path).unwrap();
    put(&path, &[&whole[..], &[0; 700]].concat());
    assert_eq!(nifti::read(&path).unwrap().image.data(), image.data());
    put(&path, &[&whole[..], &[0; 700], b"words of another program"].concat());
    assert!(nifti::read(&path).unwrap_err().to_string().contains("gzip"));
}

#[test]
fn what_nibabel_writes_is_read() {
    let folder = folder();
    if !python("nifti_nibabel.py", "write", folder.path()) {
        return;
    }
    let mut count = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some((stem, _)) = name.split_once(".nii") else {
            continue;
        };
        count += 1;
        let read = nifti::read(&path).unwrap();
        let expected = npy::read_complex(folder.path().join(format!("{stem}.npy"))).unwrap();
        assert_eq!(read.image.data(), &expected, "{name}");
        let rows: Vec<f64> = std::fs::read_to_string(folder.path().join(format!("{stem}.txt")))
            .unwrap()
            .split_whitespace()
            .map(|v| v.parse().unwrap())
            .collect();
        let affine = std::array::from_fn(|r| std::array::from_fn(|c| rows[4 * r + c]));
        let shape = read.image.shape_zyx();
        let theirs = Geometry::from_affine_ras(affine, shape).unwrap();
        assert_same_place(read.image.geometry(), &theirs, shape, 1e-2);
        // Numbers of double precision alone have digits to lose.
        let (rounded, others): (Vec<&String>, Vec<&String>) =
            read.notes.iter().partition(|note| note.contains("rounded"));
        assert!(rounded.is_empty() || stem.ends_with("f8") || stem.ends_with("c16"), "{name} {rounded:?}");
        assert_eq!(others.len(), usize::from(stem == "metres"), "{name} {others:?}");
    }
    assert_eq!(count, 2 * 12 + 7);
}

/// A header as this crate writes it, for damage.
fn header(shape: &[usize]) -> Vec<u8> {
    let folder = folder();
    let path = folder.path().join("a.nii");
    let image =
        Image::new(random(1, shape), oblique([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.1, 0.2, 0.3], false))
            .unwrap();
    nifti::write(&path, &image, &NiftiOptions::default()).unwrap();
    std::fs::read(&path).unwrap()
}

fn read_bytes(bytes: &[u8]) -> rayspin_io::Result<nifti::NiftiImage> {
    let folder = folder();
    let path = folder.path().join("a.nii");
    put(&path, bytes);
    nifti::read(&path)
}

#[test]
fn unsupported_and_lying_headers_are_refused() {
    let good = header(&[3, 4, 5]);
    assert!(read_bytes(&good).is_ok());
    let cases: [(&str, usize, Vec<u8>); 16] = [
        ("NIfTI-2", 0, 540i32.to_le_bytes().to_vec()),
        ("size of header", 0, 347i32.to_le_bytes().to_vec()),
        ("no axes", 40, 0i16.to_le_bytes().to_vec()),
        ("eight axes", 40, 8i16.to_le_bytes().to_vec()),
        ("zero axis", 42, 0i16.to_le_bytes().to_vec()),
        ("negative axis", 42, (-5i16).to_le_bytes().to_vec()),
        ("larger axis", 44, 4000i16.to_le_bytes().to_vec()),
        ("colour", 70, 128i16.to_le_bytes().to_vec()),
        ("no such type", 70, 77i16.to_le_bytes().to_vec()),
        ("offset inside the header", 108, 100f32.to_le_bytes().to_vec()),
        ("offset beyond the file", 108, 9e6f32.to_le_bytes().to_vec()),
        ("offset that is no number", 108, f32::NAN.to_le_bytes().to_vec()),
        ("intercept", 112, [2f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat()),
        ("pair of files", 344, b"ni1\0".to_vec()),
        ("ANALYZE", 344, vec![0; 4]),
        ("five axes", 40, [5i16, 2, 2, 3, 1, 2].iter().flat_map(|v| v.to_le_bytes()).collect()),
    ];
    for (what, at, with) in cases {
        let mut bytes = good.clone();
        bytes[at..at + with.len()].copy_from_slice(&with);
        let error = read_bytes(&bytes).expect_err(what);
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    let mut trailing = good.clone();
    trailing[40..52]
        .copy_from_slice(&[5i16, 5, 4, 3, 1, 1].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
    assert_eq!(read_bytes(&trailing).unwrap().image.data().shape(), [3, 4, 5]);
}

#[test]
fn a_sheared_affine_falls_back_to_qform_or_is_refused() {
    let mut bytes = header(&[3, 4, 5]);
    let straight = *read_bytes(&bytes).unwrap().image.geometry();
    let shear = f32::from_le_bytes(bytes[284..288].try_into().unwrap()) + 1.0;
    bytes[284..288].copy_from_slice(&shear.to_le_bytes());
    let read = read_bytes(&bytes).unwrap();
    assert!(read.notes.iter().any(|n| n.contains("sheared")), "{:?}", read.notes);
    assert_same_place(read.image.geometry(), &straight, [3, 4, 5], 1e-3);
    bytes[252..254].copy_from_slice(&[0, 0]);
    let error = read_bytes(&bytes).unwrap_err();
    assert!(matches!(&error, Error::Field { field, .. } if field == "sform"), "{error}");
    bytes[254..256].copy_from_slice(&[0, 0]);
    let read = read_bytes(&bytes).unwrap();
    assert!(read.notes.iter().any(|n| n.contains("orientation")), "{:?}", read.notes);
    assert_eq!(read.image.geometry().spacing_mm, [1.0, 2.0, 3.0]);
}

#[test]
fn compressed_files_are_told_by_content_and_their_damage_is_seen() {
    let plain = header(&[3, 4, 5]);
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    stream.write_all(&plain).unwrap();
    let packed = stream.finish().unwrap();
    // The name ends in .nii all the same.
    assert_eq!(read_bytes(&packed).unwrap(), read_bytes(&plain).unwrap());
    for length in 0..packed.len() {
        assert!(read_bytes(&packed[..length]).is_err(), "{length}");
    }
    for at in 10..packed.len() {
        let mut bytes = packed.clone();
        bytes[at] ^= 0x10;
        // A few bits mean nothing (padding, the time stamp); every other change is caught.
        if let Ok(read) = read_bytes(&bytes) {
            assert_eq!(read, read_bytes(&plain).unwrap(), "{at}");
        }
    }
}

#[test]
fn a_long_axis_is_refused() {
    let image = Image::new(ArrayD::zeros(IxDyn(&[1, 1, 32768])), Geometry::default()).unwrap();
    let folder = folder();
    let path = folder.path().join("a.nii");
    assert!(matches!(nifti::write(&path, &image, &NiftiOptions::default()), Err(Error::Field { .. })));
    assert!(!path.exists());
}

#[test]
fn the_repetition_time_is_stored() {
    let folder = folder();
    let path = folder.path().join("a.nii");
    let image = Image::new(random(3, &[2, 2, 2, 2]), Geometry::default()).unwrap();
    let options = NiftiOptions { repetition_time_s: Some(1.25), ..NiftiOptions::default() };
    nifti::write(&path, &image, &options).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(f32::from_le_bytes(bytes[92..96].try_into().unwrap()), 1.25);
    assert_eq!(bytes[123], 2 | 8);
}

/// An image and how it is stored.
#[derive(Debug)]
struct Case {
    seed: u64,
    shape: Vec<usize>,
    geometry: Geometry,
    gz: bool,
    forget_sform: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let geometry = (
        prop::array::uniform3(0.1f64..9.0),
        prop::array::uniform3(-300f64..300.0),
        prop::array::uniform3(-3.1f64..3.1),
        any::<bool>(),
    );
    let shape = prop::collection::vec(1usize..7, 2..5);
    (any::<u64>(), shape, geometry, any::<bool>(), any::<bool>()).prop_map(
        |(seed, shape, (spacing, position, angles, mirrored), gz, forget_sform)| {
            let geometry = oblique(spacing, position, angles, mirrored);
            Case { seed, shape, geometry, gz, forget_sform }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn images_round_trip(case in cases()) {
        let Case { seed, shape, geometry, gz, forget_sform } = case;
        let image = Image::new(random(seed, &shape), geometry).unwrap();
        let folder = folder();
        let path = folder.path().join(if gz { "a.nii.gz" } else { "a.nii" });
        for values in [Values::Complex, Values::Magnitude] {
            let options = NiftiOptions { values, ..NiftiOptions::default() };
            nifti::write(&path, &image, &options).unwrap();
            if forget_sform && !gz {
                // qform alone must place the image too.
                let mut bytes = std::fs::read(&path).unwrap();
                bytes[254..256].copy_from_slice(&[0, 0]);
                put(&path, &bytes);
            }
            let back = nifti::read(&path).unwrap();
            prop_assert!(back.notes.is_empty(), "{:?}", back.notes);
            let expected = match values {
                Values::Complex => image.data().clone(),
                _ => image.magnitude().mapv(|v| C32::new(v, 0.0)),
            };
            // A single repetition is an image, not a series.
            let expected = if expected.ndim() == 4 && expected.shape()[0] == 1 {
                expected.index_axis_move(ndarray::Axis(0), 0)
            } else {
                expected
            };
            prop_assert_eq!(back.image.data(), &expected);
            let alone = if forget_sform && !gz { quaternion_error_mm(&geometry, image.shape_zyx()) } else { 0.0 };
            assert_same_place(back.image.geometry(), &geometry, image.shape_zyx(), 2e-3 + alone);
        }
    }
}

/// How far single precision of b, c and d alone may move a corner of the image. They are rounded by 2⁻²⁵, so
/// a² = 1 − b² − c² − d² is off by up to 2√3·2⁻²⁵; near a half turn a is 0, and its root turns the image by
/// 6·10⁻⁴ rad.
fn quaternion_error_mm(geometry: &Geometry, shape_zyx: [usize; 3]) -> f64 {
    let affine = geometry.affine_ras(shape_zyx);
    let r: [[f64; 3]; 3] =
        std::array::from_fn(|row| std::array::from_fn(|axis| affine[row][axis] / geometry.spacing_mm[axis]));
    let determinant = r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1])
        - r[0][1] * (r[1][0] * r[2][2] - r[1][2] * r[2][0])
        + r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
    let trace = r[0][0] + r[1][1] + r[2][2] * determinant.signum();
    let (square, off) = ((1.0 + trace).max(0.0) / 4.0, 2.0 * 3f64.sqrt() / f64::from(1 << 25));
    let angle =
        2.0 * (square.sqrt() - (square - off).max(0.0).sqrt()).max((square + off).sqrt() - square.sqrt());
    let extent: f64 =
        (0..3).map(|axis| (geometry.spacing_mm[axis] * shape_zyx[2 - axis] as f64).powi(2)).sum();
    angle * extent.sqrt()
}
