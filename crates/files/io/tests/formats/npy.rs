use ndarray::{Array2, Array3, ArrayD, IxDyn, ShapeBuilder};
use proptest::prelude::*;
use rayspin_core::C32;
use rayspin_io::{Error, npy};

use crate::support::{folder, put, python, random};

/// The values that `npy_numpy.py` describes.
fn expected(kind: &str) -> ArrayD<C32> {
    ArrayD::from_shape_fn(IxDyn(&[2, 3, 4]), |at| {
        let i = (at[0] * 3 + at[1]) * 4 + at[2];
        let signed = !kind.starts_with('u');
        match kind {
            "b1" => C32::new((i % 2) as f32, 0.0),
            _ => C32::new(
                (7 * i % 13) as f32 - if signed { 3.0 } else { 0.0 },
                if kind.starts_with('c') { (i % 5) as f32 } else { 0.0 },
            ),
        }
    })
}

/// numpy.load refuses such archives too.
#[test]
fn archives_whose_bytes_have_changed_are_refused() {
    let folder = folder();
    let path = folder.path().join("a.npz");
    let values = Array2::from_shape_fn((40, 30), |(row, column)| (37 * row + column) as f64);
    for packed in [false, true] {
        let file = std::fs::File::create(&path).unwrap();
        let method = if packed { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        let mut archive = ndarray_npy::NpzWriter::new_with_options(file, options);
        archive.add_array("kspace", &values).unwrap();
        archive.finish().unwrap();
        assert_eq!(npy::read_npz_real(&path, None).unwrap(), values.clone().into_dyn());
        let whole = std::fs::read(&path).unwrap();
        // Behind the headers of the entry and of the array.
        for at in (300..whole.len() - 200).step_by(whole.len() / 9) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            put(&path, &bytes);
            let error = npy::read_npz_real(&path, Some("kspace")).expect_err("a changed byte");
            assert_eq!(error.kind(), rayspin_core::ErrorKind::Input, "{at}: {error}");
            assert!(error.to_string().contains("array kspace"), "{at}: {error}");
            assert!(rayspin_io::read_image(&path).is_err(), "{at}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn files_are_exchanged_with_numpy() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    npy::write(at("ours_c8.npy"), expected("c8").view()).unwrap();
    // Stored in C order whatever the layout in memory.
    let f4: Array3<C32> = expected("f4").into_dimensionality().unwrap();
    let mut fortran = Array3::<f32>::zeros((2, 3, 4).f());
    fortran.zip_mut_with(&f4, |to, from| *to = from.re);
    npy::write(at("ours_f4.npy"), fortran.view()).unwrap();
    npy::write(at("ours_f8.npy"), expected("f8").mapv(|v| f64::from(v.re)).view()).unwrap();
    npy::write(at("ours_u1.npy"), expected("u1").mapv(|v| v.re as u8).view()).unwrap();
    if !python("npy_numpy.py", "write", folder.path()) {
        return;
    }
    python("npy_numpy.py", "check", folder.path());

    for archive in ["plain.npz", "packed.npz"] {
        assert_eq!(npy::npz_names(at(archive)).unwrap().len(), 14 * 4);
        let error = npy::read_npz_complex(at(archive), None).unwrap_err();
        assert!(error.to_string().contains("b1_C_le, b1_C_be"), "{error}");
        let error = npy::read_npz_complex(at(archive), Some("nothing")).unwrap_err();
        assert!(matches!(error, Error::Field { .. }), "{error}");
    }
    for kind in "b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16".split(' ') {
        for (order, fortran) in [("C", false), ("F", true)] {
            for end in ["le", "be"] {
                let name = format!("{kind}_{order}_{end}");
                let path = at(&format!("{name}.npy"));
                assert_eq!(npy::read_complex(&path).unwrap(), expected(kind), "{name}");
                let found = npy::describe(&path).unwrap();
                assert_eq!((found.shape, found.fortran_order), (vec![2, 3, 4], fortran), "{name}");
                for archive in ["plain.npz", "packed.npz"] {
                    let array = npy::read_npz_complex(at(archive), Some(&name)).unwrap();
                    assert_eq!(array, expected(kind), "{archive} {name}");
                }
                let real = npy::read_real(&path);
                if kind.starts_with('c') {
                    assert!(matches!(real, Err(Error::Field { .. })));
                } else {
                    assert_eq!(real.unwrap(), expected(kind).mapv(|v| f64::from(v.re)));
                }
            }
        }
    }
    let scalar = npy::read_complex(at("scalar.npy")).unwrap();
    assert_eq!((scalar.ndim(), scalar[[]]), (0, C32::new(2.0, -3.0)));
    assert_eq!(npy::read_complex(at("empty.npy")).unwrap().shape(), [0, 3]);
    assert_eq!(npy::read_complex(at("version2.npy")).unwrap(), expected("f4"));
    for name in ["fields", "text", "long"] {
        let error = npy::read_complex(at(&format!("{name}.npy"))).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.hint().is_some());
    }
}

/// A `.npy` file of this header text and these values.
pub(crate) fn file(header: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(((header.len() + 1) as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.push(b'\n');
    bytes.extend(values);
    bytes
}

#[test]
fn headers_that_lie_are_refused() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    let header =
        |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}");
    let read = |bytes: Vec<u8>| {
        std::fs::write(&path, bytes).unwrap();
        npy::read_complex(&path)
    };
    assert_eq!(read(file(&header("'<f4'", "(2,)"), &[0; 8])).unwrap().shape(), [2]);
    // Python 2 wrote long integers with an L.
    for shape in ["(2L, 1L)", "(1L, 1, 2L,)", "(2L,1L )"] {
        let read = read(file(&header("'<f4'", shape), &[0, 0, 128, 63, 0, 0, 0, 64])).expect(shape);
        assert_eq!(read.iter().map(|value| value.re).collect::<Vec<_>>(), [1.0, 2.0], "{shape}");
    }
    for (descr, shape, values) in [
        ("'<f4'", "(3,)", 8),
        ("'<f4'", "(L,)", 8),
        ("'<f4'", "(1,)", 8),
        ("'<c8'", "(1000000000, 1000000000)", 8),
        ("'<c8'", "(1000000000000,)", 8),
        ("'<c8'", "(18446744073709551615, 2)", 8),
        ("'<c8'", "(99999999999999999999999999,)", 8),
        ("'<f4'", "(-1,)", 8),
        ("'<f4'", "2", 8),
        ("'f4'", "(2,)", 8),
        ("'<f3'", "(2,)", 8),
        ("''", "(2,)", 8),
        ("'é'", "(2,)", 8),
        ("4", "(2,)", 8),
        ("[('a', '<f4')]", "(2,)", 8),
        ("'<f4'", "((((((2,),),),),),)", 8),
    ] {
        let error = read(file(&header(descr, shape), &vec![0; values])).expect_err(shape);
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    let deep = format!("{}{}", "(".repeat(9000), ")".repeat(900));
    assert!(read(file(&deep, &[])).is_err());
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend(u32::MAX.to_le_bytes());
    assert!(matches!(read(long), Err(Error::Field { .. })));
    assert!(read(file(&header("'<f4'", &format!("({})", "1,".repeat(100))), &[0; 4])).is_err());
    // A double beyond single precision would silently become infinite.
    let huge = read(file(&header("'<f8'", "(1,)"), &1e300f64.to_le_bytes())).unwrap_err();
    assert!(huge.to_string().contains("single precision"), "{huge}");
    assert_eq!(npy::read_real(&path).unwrap()[[0]], 1e300);
}

#[test]
fn an_archive_of_one_array_needs_no_name() {
    let folder = folder();
    let path = folder.path().join("a.npz");
    let array = Array2::from_shape_fn((3, 4), |(y, x)| (y * 4 + x) as f32);
    let mut archive = ndarray_npy::NpzWriter::new(std::fs::File::create(&path).unwrap());
    archive.add_array("only", &array).unwrap();
    archive.finish().unwrap();
    assert_eq!(npy::npz_names(&path).unwrap(), ["only"]);
    assert_eq!(npy::read_npz_real(&path, None).unwrap()[[2, 3]], 11.0);
    assert_eq!(npy::read_npz_complex(&path, Some("only.npy")).unwrap()[[0, 1]].re, 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn arrays_round_trip(seed in any::<u64>(), shape in prop::collection::vec(0usize..6, 0..6), reversed in any::<bool>()) {
        let folder = folder();
        let path = folder.path().join("a.npy");
        let array = random(seed, &shape);
        let array = if reversed { array.reversed_axes() } else { array };
        npy::write(&path, array.view()).unwrap();
        prop_assert_eq!(npy::read_complex(&path).unwrap(), array.clone());
        let real = array.mapv(|v| f64::from(v.re));
        npy::write(&path, real.view()).unwrap();
        prop_assert_eq!(npy::read_real(&path).unwrap(), real);
        prop_assert!(!npy::describe(&path).unwrap().fortran_order);
    }
}
