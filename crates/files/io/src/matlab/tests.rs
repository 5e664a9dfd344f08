use ndarray::{ArrayD, IxDyn};
use rayspin_core::{C32, ErrorKind};

use super::samples::Maker;
use super::stream::{INT8, INT32, MATRIX, UINT32};
use super::{array, row};
use crate::arrays::Numbers;
use crate::element::ByteOrder;
use crate::{Error, detect, names, read_any_image, read_maps, read_trajectory};

fn put(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mat");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn made(order: ByteOrder, parts: impl Fn(&Maker) -> Vec<Vec<u8>>) -> Vec<u8> {
    let maker = Maker { order };
    [maker.header(), parts(&maker).concat()].concat()
}

fn refused(bytes: &[u8], name: Option<&str>) -> String {
    let (_folder, path) = put(bytes);
    let error: Error = row::read(&path, name, Numbers::Any).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}

#[test]
fn numbers_are_read_in_both_byte_orders_whatever_stores_them() {
    let value = |x: usize, y: usize| (x + 4 * y) as f32;
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let halves: Vec<f32> = (0..12).map(|n| n as f32 + 0.5).collect();
        let halves64: Vec<u8> = halves
            .iter()
            .flat_map(|&half| match order {
                ByteOrder::Little => f64::from(half).to_le_bytes(),
                ByteOrder::Big => f64::from(half).to_be_bytes(),
            })
            .collect();
        let shorts: Vec<u8> = (0..12i16)
            .flat_map(|n| if order == ByteOrder::Little { (-n).to_le_bytes() } else { (-n).to_be_bytes() })
            .collect();
        let bytes = made(order, |m| {
            let kspace = [m.head(6 | 0x800, &[4, 3], "k"), m.element(9, &halves64), m.element(3, &shorts)];
            let single = [m.head(7, &[4, 3], "s"), m.singles(&halves)];
            vec![m.matrix(&kspace), m.packed(&m.matrix(&kspace)).clone(), m.packed(&m.matrix(&single))]
        });
        let (_folder, path) = put(&bytes);
        assert_eq!(detect(&path).unwrap().name, "MATLAB file");
        let held: Vec<String> = names(&path).unwrap().into_iter().map(|held| held.name).collect();
        assert_eq!(held, ["k", "k", "s"]);
        let kspace = row::read(&path, Some("k"), Numbers::Complex).unwrap();
        let expected = ArrayD::from_shape_fn(IxDyn(&[4, 3]), |at| {
            let value = value(at[0], at[1]);
            C32::new(value + 0.5, -value)
        });
        assert_eq!(kspace, expected);
        assert_eq!(array::real(&path, Some("s")).unwrap()[[3, 2]], 11.5);
        assert!(array::real(&path, Some("k")).unwrap_err().to_string().contains("complex128"));
        // x is the first axis, and the last of an image.
        let image = read_any_image(format!("{}:s", path.display())).unwrap().image.into_real().0;
        assert_eq!((image.data().shape(), image.data()[[0, 2, 3]]), (&[1, 3, 4][..], 11.5));
    }
}

#[test]
fn fields_and_cells_have_the_names_that_matlab_gives_them() {
    let bytes = made(ByteOrder::Little, |m| {
        let one = |value: u8| m.matrix(&[m.head(6, &[1, 1], ""), m.element(2, &[value])]);
        let text = m.matrix(&[m.head(4, &[1, 1], ""), m.element(16, b"a")]);
        let cell = m.matrix(&[m.head(1, &[1, 2], ""), one(7), text]);
        let names = m.element(INT8, b"first\0\0\0second\0\0");
        let of = |shape: &[u32], name: &str, fields: Vec<Vec<u8>>| {
            let head = [m.head(2, shape, name), m.words(INT32, &[8]), names.clone()].concat();
            m.matrix(&[vec![head], fields].concat())
        };
        let inner = of(&[1, 2], "", vec![one(1), one(2), one(3), one(4)]);
        let empty = m.matrix(&[m.head(2, &[1, 1], "none"), m.words(INT32, &[8]), m.element(INT8, &[])]);
        vec![of(&[1, 1], "s", vec![inner, cell]), empty, m.matrix(&[m.head(6, &[0, 0], "void")])]
    });
    let (_folder, path) = put(&bytes);
    let held: Vec<String> = names(&path).unwrap().into_iter().map(|held| held.name).collect();
    let expected =
        ["s.first(1).first", "s.first(1).second", "s.first(2).first", "s.first(2).second", "s.second{1}"];
    assert_eq!(held, expected);
    for (name, value) in expected.iter().zip([1.0, 2.0, 3.0, 4.0, 7.0]) {
        assert_eq!(array::real(&path, Some(name)).unwrap()[[0, 0]], value, "{name}");
    }
    let refused = array::real(&path, Some("s.second{2}")).unwrap_err().to_string();
    assert!(refused.contains("expected numbers") && refused.contains("text"), "{refused}");
    assert!(array::real(&path, Some("void")).unwrap_err().to_string().contains("[0, 0]"));
    assert!(array::real(&path, None).unwrap_err().to_string().contains("s.second{1}"));
}

/// A file that promises much and holds little costs little and is refused.
#[test]
fn hostile_files_are_refused_by_what_is_wrong() {
    let m = &Maker { order: ByteOrder::Little };
    let file = |parts: &[Vec<u8>]| [m.header(), parts.concat()].concat();
    let array = |shape: &[u32], data: Vec<u8>| m.matrix(&[m.head(6, shape, "a"), data]);
    let byte = m.element(2, &[1]);
    for (bytes, words) in [
        (file(&[array(&[1 << 20, 1 << 10], byte.clone())]), "at most 8 numbers"),
        (file(&[array(&[2, 3], byte.clone())]), "expected 6 bytes"),
        (file(&[array(&[1 << 30, 1 << 30, 1 << 30], byte.clone())]), "address space"),
        (file(&[array(&[u32::MAX, 1], byte.clone())]), "none negative"),
        (file(&[array(&[1], byte.clone())]), "two or more sizes"),
        (file(&[m.packed(&array(&[1 << 20, 1 << 10], byte.clone()))]), "at most 8 numbers"),
        (file(&[m.packed(&[m.word(MATRIX), m.word(1 << 30)].concat())]), "unpacked from"),
        (file(&[m.words(UINT32, &[1, 2, 3])]), "an array, compressed or not"),
        (file(&[m.packed(&m.words(UINT32, &[1, 2, 3]))]), "expected an array"),
        (file(&[array(&[1, 1], m.words(MATRIX, &[]))]), "an element of numbers"),
        (file(&[vec![15, 0, 0, 0, 255, 255, 255, 255]]), "at most 0 bytes, which are left"),
        (file(&[vec![1, 2, 3]]), "room for one more element"),
        (file(&[vec![15, 0, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]]), "sound compressed numbers"),
        (m.header()[..120].to_vec(), "128 bytes"),
    ] {
        let refused = refused(&bytes, None);
        assert!(refused.contains(words), "{words}: {refused}");
    }
    // A struct of 2^62 elements without fields, and structs in structs.
    let fields = |name: &[u8], of: Vec<u8>, shape: &[u32]| {
        m.matrix(&[m.head(2, shape, "s"), m.words(INT32, &[8]), m.element(INT8, name), of])
    };
    let many = file(&[fields(b"", Vec::new(), &[1 << 30, 1 << 30])]);
    assert!(refused(&many, None).contains("found none"));
    let mut deep = m.matrix(&[m.head(6, &[1, 1], ""), byte]);
    for _ in 0..20 {
        deep = fields(b"a\0\0\0\0\0\0\0", deep, &[1, 1]);
    }
    assert!(refused(&file(&[deep]), None).contains("one in the other"));
    // A checksum that is not the numbers'.
    let mut packed = file(&[m.packed(&array(&[2, 2], m.element(2, &[1, 2, 3, 4])))]);
    let last = packed.len() - 1;
    packed[last] ^= 1;
    assert!(refused(&packed, None).contains("sound compressed numbers"));
}

#[test]
fn version_4_is_refused_by_its_name() {
    let mut bytes = Vec::new();
    [0i32, 2, 1, 0, 2].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.extend(b"a\0");
    [1.0f64, 2.0].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    let (_folder, path) = put(&bytes);
    assert_eq!(detect(&path).unwrap().name, "MATLAB file");
    assert!(names(&path).unwrap_err().to_string().contains("version 4"));
}

#[test]
fn axes_that_may_mean_two_things_are_refused() {
    let of = |class: u32, shape: &[u32]| {
        let count: u32 = shape.iter().product();
        made(ByteOrder::Little, |m| {
            let numbers = m.element(2, &vec![3; count as usize]);
            vec![m.matrix(&[m.head(class, shape, "a"), numbers.clone(), numbers])]
        })
    };
    let grid = |shape: &[u32]| {
        let (_folder, path) = put(&of(7 | 0x800, shape));
        row::grid(&path, row::read(&path, None, Numbers::Complex).unwrap())
            .map(|grid| grid.values.shape().to_vec())
    };
    assert_eq!(grid(&[6, 5]).unwrap(), [1, 1, 5, 6]);
    assert_eq!(grid(&[6, 5, 3]).unwrap(), [3, 1, 5, 6]);
    assert_eq!(grid(&[6, 5, 1, 3]).unwrap(), [3, 1, 5, 6]);
    for shape in [&[6, 5, 2, 3][..], &[2, 2, 300]] {
        let error = grid(shape).unwrap_err();
        assert!(error.hint().unwrap().contains("--order"), "{error}");
    }
    let samples = |shape: &[u32], points: usize| {
        let (_folder, path) = put(&of(7 | 0x800, shape));
        let array = row::read(&path, None, Numbers::Complex).unwrap();
        row::samples(&path, array, Some(points)).map(|(data, runs)| (data.dim(), runs))
    };
    assert_eq!(samples(&[12, 2], 12).unwrap(), ((2, 12), vec![12]));
    assert_eq!(samples(&[6, 2], 12).unwrap(), ((1, 12), vec![2, 6]));
    assert_eq!(samples(&[6, 2, 3], 12).unwrap(), ((3, 12), vec![2, 6]));
    assert!(samples(&[6, 2, 3], 36).is_err() && samples(&[6, 2, 3, 2], 12).is_err());
    let points = |class: u32, shape: &[u32]| {
        let (_folder, path) = put(&of(class, shape));
        read_trajectory(&path).map(|points| (points.samples(), points.dims()))
    };
    assert_eq!(points(6, &[12, 2]).unwrap(), (12, 2));
    assert_eq!(points(6, &[3, 6, 5]).unwrap(), (30, 3));
    assert_eq!(points(6, &[6, 5, 2]).unwrap(), (30, 2));
    // Complex numbers are points where a trajectory is wanted, and else k-space.
    assert!(points(7 | 0x800, &[6, 5]).is_err());
    let (_folder, path) = put(&of(7 | 0x800, &[6, 5]));
    let (complex, runs) = row::points(&path, None, Numbers::Any).unwrap();
    assert_eq!((complex.dim(), runs), ((30, 2), vec![5, 6]));
    assert!(points(6, &[2, 3]).is_err() && points(6, &[6, 5]).is_err() && points(6, &[2, 6, 2]).is_err());
    let (_folder, path) = put(&of(7 | 0x800, &[6, 5, 4, 3, 2]));
    assert_eq!(read_maps(&path).unwrap().shape(), [2, 3, 4, 5, 6]);
}
