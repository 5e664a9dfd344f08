//! Types, encodings and byte orders, axes and places, files of numbers, wrong headers, and what is written.

mod programs;

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use ndarray::{Array1, ArrayD, IxDyn};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, ErrorKind, Geometry, Image};

use crate::{
    AnyImage, SeriesShape, SeriesWriter, Values, WriteOptions, parts, read_any_image, read_volume,
    write_image,
};

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut stream = GzEncoder::new(Vec::new(), Compression::fast());
    stream.write_all(bytes).unwrap();
    stream.finish().unwrap()
}

/// A file with this header and these bytes behind it.
fn put(folder: &Path, header: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join("a.nrrd");
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, [header.as_bytes(), bytes].concat()).unwrap();
    path
}

fn real(path: &Path) -> Image<f32> {
    match read_any_image(path).unwrap().image {
        AnyImage::Real(image) => image,
        AnyImage::Complex(_) => panic!("complex numbers"),
    }
}

fn refused(path: &Path) -> String {
    let error = read_any_image(path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    error.to_string()
}

/// Where the voxel (i, j, k) lies, LPS mm.
fn place(image: &Image<f32>, index: [f64; 3]) -> [f64; 3] {
    let affine = image.geometry().affine_lps(image.shape_zyx());
    affine.map(|row| row[3] + (0..3).map(|axis| row[axis] * index[axis]).sum::<f64>())
}

fn near(found: [f64; 3], wanted: [f64; 3]) {
    assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {wanted:?}");
}

/// A sequence of 3D Slicer 5.8 has its repetitions first.
#[test]
fn repetitions_may_lie_along_any_axis() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = ArrayD::from_shape_fn(IxDyn(&[3, 2, 4, 5]), |at| {
        (at[0] * 60 + at[1] * 20 + at[2] * 5 + at[3]) as f32
    });
    for axis in 0..4 {
        // The place of t among x, y, z, the fastest first.
        let insert = |mut words: Vec<String>, word: &str| {
            words.insert(axis, word.to_owned());
            words.join(" ")
        };
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let header = format!(
            "NRRD0005\r\ntype: unsigned short\r\ndimension: 4\r\nspace: left-posterior-superior\r\n\
             sizes: {}\r\n\
             space directions: {}\r\nkinds: {}\r\nlabels: \"frame\" \"\" \"\" \"\"\r\n\
             endian: little\r\nencoding: gzip\r\n\
             space origin: (-5, 6, 7.5)\r\nmeasurement frame: (1,0,0) (0,1,0) (0,0,1)\r\n\
             units: {}\r\nspacings: {}\r\n\
             DataNodeClassName:=vtkMRMLScalarVolumeNode\r\naxis 0 index type:=numeric\r\n\r\n",
            insert(words("5 4 2"), "3"),
            insert(words("(2,0,0) (0,1,0) (0,0,-3)"), "none"),
            insert(words("domain domain domain"), "list"),
            insert(words("\"\" \"\" \"\""), "\"ms\""),
            insert(words("NaN nan NaN"), "250"),
        );
        // The slowest axis first.
        let mut order = vec![1, 2, 3];
        order.insert(3 - axis, 0);
        let stored = wanted.view().permuted_axes(order);
        let bytes: Vec<u8> = stored.iter().flat_map(|value| (*value as u16).to_le_bytes()).collect();
        let path = put(folder.path(), &header, &packed(&bytes));
        let image = real(&path);
        assert_eq!(*image.data(), wanted, "{axis}");
        near(place(&image, [1.0, 1.0, 1.0]), [-3.0, 7.0, 4.5]);
        assert_eq!(read_any_image(&path).unwrap().repetition_time_s, Some(0.25));
    }
}

#[test]
fn numbers_of_every_type_order_and_encoding_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    macro_rules! each {
        ($($type:ty: $names:expr, $name:expr;)*) => { $({
            for (at, name) in $names.iter().enumerate() {
                let shape = [1 + at % 3, 1 + (at * 5) % 4, 1 + (at * 7) % 6];
                let count = shape.iter().product::<usize>();
                let shift = if <$type>::MIN as f64 == 0.0 { 0.0 } else { 50.0 };
                let value = |rng: &mut ChaCha8Rng| (100.0 * rng.random::<f64>() - shift) as $type;
                let values: Vec<$type> = (0..count).map(|_| value(&mut rng)).collect();
                let wanted: Vec<f32> = values.iter().map(|value| *value as f64 as f32).collect();
                for (order, big) in [("little", false), ("BIG", true)] {
                    let bytes = |v: &$type| if big { v.to_be_bytes() } else { v.to_le_bytes() };
                    let bytes: Vec<u8> = values.iter().flat_map(bytes).collect();
                    let text: Vec<String> = values.iter().map(ToString::to_string).collect();
                    let digits = |(at, b): (usize, &u8)| match at % 35 {
                        34 => format!("{b:02X}\n"),
                        _ => format!("{b:02x}"),
                    };
                    let hex: String = bytes.iter().enumerate().map(digits).collect();
                    for (encoding, stored) in [
                        ("raw", bytes.clone()),
                        ("gz", packed(&bytes)),
                        ("GZIP", packed(&bytes)),
                        ("hex", hex.into_bytes()),
                        ("text", text.join(" \n").into_bytes()),
                        ("ascii", text.join(", ").into_bytes()),
                    ] {
                        let [nz, ny, nx] = shape;
                        let header = format!(
                            "NRRD0002\ntype: {name}\nDimension: 3\nsizes: {nx} {ny} {nz}\n\
                             encoding: {encoding}\nendian: {order}\n\n"
                        );
                        let path = put(f, &header, &stored);
                        let file = read_any_image(&path).unwrap_or_else(|e| panic!("{header}: {e}"));
                        assert_eq!(file.stored.name(), $name, "{header}");
                        let AnyImage::Real(image) = file.image else { panic!("complex numbers") };
                        assert_eq!(image.data().shape(), shape);
                        assert!(image.data().iter().eq(&wanted), "{header}");
                        // One number too few.
                        if encoding != "gz" && encoding != "GZIP" {
                            let is_text = encoding.starts_with(['t', 'a']);
                            let is_end = |b: &u8| !is_text || b.is_ascii_whitespace();
                            let end = stored.iter().rposition(is_end).unwrap_or(0);
                            let found = refused(&put(f, &header, &stored[..end]));
                            assert!(found.contains("cut short"), "{found}");
                        }
                    }
                }
            }
        })* };
    }
    each! {
        i8: ["signed char", "int8", "int8_t"], "int8";
        u8: ["uchar", "unsigned char", "uint8", "uint8_t"], "uint8";
        i16: ["short", "short int", "signed short", "signed  short int", "int16", "int16_t"], "int16";
        u16: ["ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"], "uint16";
        i32: ["int", "signed int", "int32", "int32_t"], "int32";
        u32: ["uint", "unsigned int", "uint32", "uint32_t"], "uint32";
        i64: ["longlong", "long long", "long long int", "signed long long", "signed long long int", "int64"],
            "int64";
        u64: ["ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"], "uint64";
        f32: ["float", "Float"], "float32";
        f64: ["double"], "float64";
    }
}

#[test]
fn complex_numbers_of_every_encoding_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let wanted: Vec<C32> = (0..12u8).map(|at| C32::new(f32::from(at), 0.5 - f32::from(at))).collect();
    let parts: Vec<f64> = wanted.iter().flat_map(|v| [f64::from(v.re), f64::from(v.im)]).collect();
    let singles: Vec<u8> = parts.iter().flat_map(|v| (*v as f32).to_be_bytes()).collect();
    let doubles: Vec<u8> = parts.iter().flat_map(|v| v.to_be_bytes()).collect();
    let text: Vec<String> = parts.iter().map(ToString::to_string).collect();
    for (kind, encoding, stored, name) in [
        ("float", "raw", singles.clone(), "complex64"),
        ("float", "gzip", packed(&singles), "complex64"),
        ("double", "raw", doubles.clone(), "complex128"),
        ("double", "gzip", packed(&doubles), "complex128"),
        ("double", "txt", text.join(" ").into_bytes(), "complex128"),
    ] {
        let header = format!(
            "NRRD0004\ntype: {kind}\ndimension: 4\nsizes: 2 4 3 1\nkinds: complex space space ???\n\
             endian: big\n\
             encoding: {encoding}\n\n"
        );
        let file = read_any_image(put(folder.path(), &header, &stored)).unwrap();
        assert_eq!(file.stored.name(), name);
        let AnyImage::Complex(image) = file.image else { panic!("real numbers") };
        assert_eq!(image.data().shape(), [1, 3, 4]);
        assert!(image.data().iter().eq(&wanted));
    }
    // Whole numbers in pairs.
    let header =
        "NRRD0004\ntype: int8\ndimension: 3\nsizes: 2 3 2\nkinds: complex domain domain\nencoding: raw\n\n";
    let file =
        read_any_image(put(folder.path(), header, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xff])).unwrap();
    assert_eq!(file.image.into_complex().data()[[0, 1, 2]], C32::new(11.0, -1.0));
}

/// A header of 24 bytes as [2, 3, 4] with these lines more.
fn with(lines: &str) -> String {
    format!("NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 3 2\nencoding: raw\n{lines}\n\n")
}

/// As SimpleITK 2.5.7 places the voxels (0, 0, 0) and (1, 1, 1), but for the last three, which it does not
/// read or takes for mm.
#[test]
fn voxels_lie_where_the_header_says() {
    let folder = tempfile::tempdir().unwrap();
    let d = "space directions: (1,0,0) (0,2,0) (0,0,3)\nspace origin: (1,2,3)";
    let bytes: Vec<u8> = (0..24).collect();
    for (lines, first, other, note) in [
        ("spacings: 1 2 3", [0.0; 3], [1.0, 2.0, 3.0], "no place"),
        ("spacings: -1 2 3", [0.0; 3], [-1.0, 2.0, 3.0], "no place"),
        ("spacings: nan 2 3", [0.0; 3], [1.0, 2.0, 3.0], "no distance"),
        ("spacings: 1 2 3\naxis mins: 5 6 7", [5.5, 7.0, 8.5], [6.5, 9.0, 11.5], "no space"),
        (
            "spacings: 1 2 3\naxismins: 5 6 7\ncenters: node node node",
            [5.0, 6.0, 7.0],
            [6.0, 8.0, 10.0],
            "no space",
        ),
        (&format!("space dimension: 3\n{d}"), [1.0, 2.0, 3.0], [2.0, 4.0, 6.0], "no space"),
        (&format!("space: LPS\n{d}"), [1.0, 2.0, 3.0], [2.0, 4.0, 6.0], ""),
        (&format!("space: LAS\n{d}"), [1.0, -2.0, 3.0], [2.0, -4.0, 6.0], ""),
        (&format!("space: left-anterior-superior\n{d}"), [1.0, -2.0, 3.0], [2.0, -4.0, 6.0], ""),
        (&format!("space: RAS\n{d}"), [-1.0, -2.0, 3.0], [-2.0, -4.0, 6.0], ""),
        (&format!("space: Right-Anterior-Superior\n{d}"), [-1.0, -2.0, 3.0], [-2.0, -4.0, 6.0], ""),
        (&format!("space: scanner-xyz\n{d}"), [1.0, 2.0, 3.0], [2.0, 4.0, 6.0], "scanner-xyz does not say"),
        (&format!("space: 3D-right-handed\n{d}"), [1.0, 2.0, 3.0], [2.0, 4.0, 6.0], "3d-right-handed"),
        (
            &format!("space: LPS\nspace units: \"um\" \"um\" \"um\"\n{d}"),
            [1e-3, 2e-3, 3e-3],
            [2e-3, 4e-3, 6e-3],
            "in um",
        ),
        (
            &format!("space: LPS\nspace units: \"ell\" \"mm\" \"mm\"\n{d}"),
            [1.0, 2.0, 3.0],
            [2.0, 4.0, 6.0],
            "ell",
        ),
        ("space: RAS\nspacings: 1 2 3\nspace origin: (1,2,3)", [-1.0, -2.0, 3.0], [-2.0, -4.0, 6.0], ""),
    ] {
        let file =
            read_volume(put(folder.path(), &with(lines), &bytes)).unwrap_or_else(|e| panic!("{lines}: {e}"));
        near(place(&file.image, [0.0; 3]), first);
        near(place(&file.image, [1.0; 3]), other);
        let notes = file.notes.join("\n");
        assert!(if note.is_empty() { notes.is_empty() } else { notes.contains(note) }, "{lines}: {notes}");
    }
    // A plane in space, and a space with time.
    let plane = "NRRD0004\ntype: uchar\ndimension: 2\nsizes: 6 4\nencoding: raw\nspace: LPS\n\
                 space directions: (0,0,2) (0,3,0)\nspace origin: (1,2,3)\n\n";
    let image = real(&put(folder.path(), plane, &bytes));
    near(place(&image, [1.0, 1.0, 1.0]), [0.0, 5.0, 5.0]);
    let time = "NRRD0004\ntype: uchar\ndimension: 4\nsizes: 2 3 2 2\nencoding: raw\nspace: RAST\n\
                space origin: (1,2,3,0)\n\
                space units: \"mm\" \"mm\" \"mm\" \"ms\"\n\
                space directions: (1,0,0,0) (0,2,0,0) (0,0,3,0) (0,0,0,40)\n\n";
    let path = put(folder.path(), time, &bytes);
    assert_eq!(read_any_image(&path).unwrap().repetition_time_s, Some(0.04));
    near(place(&real(&path), [0.0; 3]), [-1.0, -2.0, 3.0]);
}

#[test]
fn numbers_lie_where_the_header_says() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let bytes: Vec<u8> = (1..=24).collect();
    let write = |name: &str, bytes: &[u8]| std::fs::write(f.join(name), bytes).unwrap();
    for at in 0..4 {
        write(&format!("part{at:02}.raw"), &bytes[6 * at..6 * at + 6]);
    }
    for at in 0..2 {
        write(&format!("half{at}.raw"), &bytes[12 * at..12 * at + 12]);
        write(
            &format!("half{at}.gz"),
            &[b"lines\nof text\n", &packed(&bytes[12 * at..12 * at + 12])[..]].concat(),
        );
    }
    write("all.raw", &[b"#!\nP5 ", &bytes[..]].concat());
    write("all.gz", &packed(&[b"head", &bytes[..]].concat()));
    let detached =
        |lines: &str| put(f, &format!("NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 3 2\n{lines}"), b"");
    for lines in [
        "encoding: raw\nbyteskip: -1\ndata file: all.raw\n",
        "encoding: raw\nbyte skip: 6\ndatafile: ./all.raw\n\n",
        "encoding: raw\nlineskip: 1\nbyte skip: 3\ndata file: all.raw\n",
        "encoding: gzip\nbyte skip: 4\ndata file: all.gz\n",
        "encoding: gzip\nline skip: 2\ndata file: half%d.gz 0 1 1\n",
        "encoding: raw\ndata file: LIST\nhalf0.raw\nhalf1.raw\n",
        "encoding: raw\ndata file: LIST 2\nhalf0.raw\nhalf1.raw",
        "encoding: raw\ndata file: LIST 3\r\npart00.raw\r\npart01.raw\r\n\r\n".trim_end(),
        "encoding: raw\ndata file: half%d.raw 0 1 1 2\n",
        "encoding: raw\ndata file: half%d.raw 0 1 1 3\n",
    ] {
        // Two files of four that hold all axes are too few.
        if lines.contains("part00") {
            assert!(refused(&detached(lines)).contains("cut short"));
            continue;
        }
        let path = detached(lines);
        assert!(real(&path).data().iter().copied().eq((1..=24u8).map(f32::from)), "{lines}");
        assert!(parts(&path).len() > 1 && parts(&path).iter().all(|part| part.is_file()), "{lines}");
    }
    // From the last file to the first.
    let image = real(&detached("encoding: raw\ndata file: half%d.raw 1 0 -1\n"));
    assert_eq!((image.data()[[0, 0, 0]], image.data()[[1, 0, 0]]), (13.0, 1.0));
    for (lines, reason) in [
        ("encoding: raw\ndata file: gone.raw\n", "gone.raw: cannot open"),
        ("encoding: raw\ndata file: ../gone/gone.raw\n", "gone.raw: cannot open"),
        ("encoding: raw\ndata file: /dev/zero\n", "found a device"),
        ("encoding: raw\ndata file: .\n", "Is a directory"),
        ("encoding: raw\ndata file: \0\n", "the name of a file"),
        ("encoding: raw\ndata file: LIST\nhalf0.raw\n", "data file: expected files that hold"),
        ("encoding: raw\ndata file: LIST\n", "data file: expected files that hold"),
        ("encoding: raw\ndata file: LIST 9\nhalf0.raw\nhalf1.raw\n", "data file"),
        ("encoding: raw\ndata file: LIST\nhalf0.raw\n\nhalf1.raw\n", "data file"),
        ("encoding: raw\ndata file: half%s.raw 0 1 1\n", "a name with one %d"),
        ("encoding: raw\ndata file: half%d.raw 0 1 0\n", "a name with one %d"),
        ("encoding: raw\ndata file: half%d.raw 0 18446744073709551615 1\n", "a name with one %d"),
        ("encoding: raw\ndata file: half%d.raw 1 0 1\n", "a name with one %d"),
        ("encoding: raw\nbyte skip: 31\ndata file: all.raw\n", "byte skip"),
        ("encoding: raw\nbyte skip: 7\ndata file: all.raw\n", "cut short"),
        ("encoding: raw\nbyte skip: 18446744073709551615\ndata file: all.raw\n", "byte skip"),
        ("encoding: raw\nbyte skip: -2\ndata file: all.raw\n", "byte skip"),
        ("encoding: raw\nbyte skip: -1\ndata file: half0.raw\n", "byte skip"),
        ("encoding: gzip\nbyte skip: -1\ndata file: all.gz\n", "byte skip"),
        ("encoding: gzip\nbyte skip: 99999999999\ndata file: all.gz\n", "cut short"),
        ("encoding: gzip\ndata file: all.raw\n", "gzip"),
        ("encoding: raw\nline skip: 99999999999\ndata file: all.raw\n", "line skip"),
        ("encoding: hex\ndata file: all.raw\n", "hexadecimal"),
        ("encoding: ascii\ndata file: all.raw\n", "voxel 0"),
    ] {
        let found = refused(&detached(lines));
        assert!(found.contains(reason), "{lines}: {found}");
    }
}

#[test]
fn wrong_headers_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let bytes: Vec<u8> = (0..24).collect();
    let whole = with("space: LPS\nspace directions: (1,0,0) (0,2,0) (0,0,3)\nspace origin: (1,2,3)");
    for (old, new, reason) in [
        ("NRRD0004", "NRRD0006", "later version"),
        ("type: uchar", "type: block", "type"),
        ("type: uchar", "type: short", "endian: expected little or big, found none"),
        ("type: uchar\n", "", "type: expected a line of the header"),
        ("dimension: 3", "dimension: 17", "dimension"),
        ("dimension: 3", "dimension: -1", "dimension"),
        ("sizes: 4 3 2", "sizes: 4 3", "3 sizes"),
        ("sizes: 4 3 2", "sizes: 4 0 2", "3 sizes"),
        ("sizes: 4 3 2", "sizes: 4294967296 4294967296 4294967296", "address space"),
        ("sizes: 4 3 2", "sizes: 99999 99999 9999", "cut short"),
        ("sizes: 4 3 2", "sizes: 4 3 2\nsizes: 4 3 2", "found two"),
        ("encoding: raw", "encoding: zip", "encoding"),
        ("encoding: raw", "encoding: raw\nendian: middle", "endian"),
        ("encoding: raw", "encoding: bz2", "the encoding bz2"),
        ("encoding: raw", "encoding raw", "lines field: value"),
        ("space: LPS", "space: MNI", "space: expected"),
        ("(1,0,0)", "(1,0)", "space directions"),
        ("(1,0,0)", "(1,0,0", "space directions"),
        ("(1,0,0)", "(nan,0,0)", "space directions"),
        ("(1,0,0)", "(inf,0,0)", "space directions"),
        ("(1,0,0)", "(0,0,0)", "space directions"),
        ("(1,0,0)", "(1,1,0)", "orthogonal"),
        ("(1,0,0)", "none", ""),
        ("(1,0,0) (0,2,0)", "none none", "2 or 3 axes of space"),
        ("origin: (1,2,3)", "origin: (1,2,nan)", "space origin"),
        ("space origin: (1,2,3)", "kinds: domain domain", "kinds"),
        ("space origin: (1,2,3)", "kinds: RGB-color domain domain", "found rgb-color"),
        ("space origin: (1,2,3)", "kinds: domain domain complex", "kinds"),
        ("space: LPS\n", "space dimension: 7\n", "space dimension"),
        ("space: LPS\nspace directions: (1,0,0) (0,2,0) (0,0,3)", "spacings: 0 1 1", "other than 0"),
        ("space: LPS\nspace directions: (1,0,0) (0,2,0) (0,0,3)", "spacings: inf 1 1", "spacings"),
        ("space: LPS\nspace directions: (1,0,0) (0,2,0) (0,0,3)", "spacings: 1 1", "spacings"),
    ] {
        let header = whole.replacen(old, new, 1);
        assert_ne!(header, whole, "{old}");
        let path = put(f, &header, &bytes);
        if reason.is_empty() {
            assert!(read_any_image(&path).unwrap().notes.concat().contains("taken as repetitions"));
            continue;
        }
        let found = refused(&path);
        assert!(found.contains(reason), "{new}: {found}");
    }
    // A header without an end, and one that goes on for ever.
    assert!(refused(&put(f, whole.trim_end(), b"")).contains("an empty line before the numbers"));
    let long = format!("{}\nkey:={}\n\n", whole.trim_end(), "x".repeat(1 << 20));
    assert!(refused(&put(f, &long, &bytes)).contains("within 1 MiB"));
    // A few bytes that unpack to many are read as far as the sizes go.
    let bomb = whole.replace("raw", "gzip");
    assert_eq!(real(&put(f, &bomb, &packed(&vec![7; 1 << 24]))).data().len(), 24);
    let found = refused(&put(f, &bomb.replace("4 3 2", "4096 4096 4096"), &packed(&vec![7; 1 << 20])));
    assert!(found.contains("cut short"), "{found}");
}

fn written(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap();
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[test]
fn a_series_is_written_with_its_axes_and_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nrrd");
    let geometry =
        Geometry { spacing_mm: [0.5, 2.0, 3.0], position_mm: [10.0, 20.0, 30.0], ..Geometry::default() };
    let data = Array1::from_iter((0..12 * 12).map(|at| C32::new(at as f32, -1.0)));
    let data = data.into_shape_with_order(IxDyn(&[12, 2, 3, 2])).unwrap();
    let image = Image::new(data.clone(), geometry).unwrap();
    let options = WriteOptions {
        values: Some(Values::Complex),
        repetition_time_s: Some(0.75),
        ..WriteOptions::default()
    };
    write_image(&path, &image, &options).unwrap();
    let header = written(&path);
    for line in [
        "dimension: 5",
        "sizes: 2 2 3 2 12",
        "space directions: none (0.5,0,0) (0,2,0) (0,0,3) none",
        "kinds: complex domain domain domain list",
        "space origin: (9.5,18,27)",
        "spacings: NaN NaN NaN NaN 0.75",
        "units: \"\" \"\" \"\" \"\" \"s\"",
    ] {
        assert!(header.lines().any(|found| found == line), "{line}: {header}");
    }
    let file = read_any_image(&path).unwrap();
    assert_eq!((file.repetition_time_s, &file.notes), (Some(0.75), &Vec::new()));
    assert_eq!(*file.image.into_complex().data(), data);
    // The header of a part says how many there are, in the same bytes.
    let shape = SeriesShape { frames: 12, volume: [2, 3, 2], geometry };
    let mut writer = SeriesWriter::create(&path, &shape, &options).unwrap();
    data.outer_iter().take(3).for_each(|volume| writer.push(volume).unwrap());
    let kept = writer.keep_partial().unwrap().unwrap();
    assert_eq!(written(&kept).len(), header.len());
    assert!(written(&kept).contains("sizes: 2 2 3 2 3 \n"), "{}", written(&kept));
    let part = read_any_image(&kept).unwrap().image.into_complex();
    assert_eq!(*part.data(), data.slice_axis(ndarray::Axis(0), (..3).into()));
}
