//! Small files of MATLAB 5, made here: MATLAB's arrays are read and not written.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::stream::{COMPRESSED, INT8, INT32, MATRIX, UINT32};
use crate::element::ByteOrder;
use crate::format::Sample;

/// A file in the making.
pub(super) struct Maker {
    pub(super) order: ByteOrder,
}

impl Maker {
    pub(super) fn word(&self, number: u32) -> [u8; 4] {
        match self.order {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        }
    }

    pub(super) fn header(&self) -> Vec<u8> {
        let mut header = format!("{:<124}", "MATLAB 5.0 MAT-file, made for a test").into_bytes();
        header.extend(match self.order {
            ByteOrder::Little => *b"\x00\x01IM",
            ByteOrder::Big => *b"\x01\x00MI",
        });
        header
    }

    /// An element of some kind, small where it may be.
    pub(super) fn element(&self, kind: u32, data: &[u8]) -> Vec<u8> {
        let size = data.len() as u32;
        if (1..=4).contains(&size) && kind != MATRIX {
            let mut element = self.word(size << 16 | kind).to_vec();
            element.extend(data);
            element.resize(8, 0);
            return element;
        }
        let mut element = [self.word(kind), self.word(size)].concat();
        element.extend(data);
        element.resize(element.len().next_multiple_of(8), 0);
        element
    }

    pub(super) fn words(&self, kind: u32, numbers: &[u32]) -> Vec<u8> {
        let data: Vec<u8> = numbers.iter().flat_map(|&number| self.word(number)).collect();
        self.element(kind, &data)
    }

    /// What is before the numbers of an array.
    pub(super) fn head(&self, class: u32, shape: &[u32], name: &str) -> Vec<u8> {
        [self.words(UINT32, &[class, 0]), self.words(INT32, shape), self.element(INT8, name.as_bytes())]
            .concat()
    }

    pub(super) fn singles(&self, values: &[f32]) -> Vec<u8> {
        let numbers: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
        self.words(7, &numbers)
    }

    pub(super) fn matrix(&self, parts: &[Vec<u8>]) -> Vec<u8> {
        self.element(MATRIX, &parts.concat())
    }

    /// A compressed element. It is not filled up.
    pub(super) fn packed(&self, element: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        let packed = encoder.write_all(element).and_then(|()| encoder.finish()).unwrap_or_default();
        [&self.word(COMPRESSED)[..], &self.word(packed.len() as u32), &packed].concat()
    }

    /// Complex single-precision numbers `[x, y]`.
    fn kspace(&self, name: &str) -> Vec<u8> {
        let part = |start: f32| self.singles(&Vec::from_iter((0..12).map(|n| start + n as f32)));
        self.matrix(&[self.head(7 | 0x800, &[4, 3], name), part(0.5), part(-3.0)])
    }

    /// Double-precision numbers, which MATLAB stores in bytes where these hold them.
    fn narrow(&self, name: &str) -> Vec<u8> {
        let bytes: Vec<u8> = (1..=24).collect();
        self.matrix(&[self.head(6, &[4, 3, 2], name), self.element(2, &bytes)])
    }

    /// A struct with a text, a cell of one array, and an array.
    fn structure(&self, name: &str) -> Vec<u8> {
        let text = self.matrix(&[self.head(4, &[1, 2], ""), self.element(4, &[0, 97, 0, 98])]);
        let cell = self.matrix(&[self.head(1, &[1, 1], ""), self.element(MATRIX, &[])]);
        let names = self.element(INT8, b"text\0\0\0\0cell\0\0\0\0numbers\0");
        self.matrix(&[
            self.head(2, &[1, 1], name),
            self.words(INT32, &[8]),
            names,
            text,
            cell,
            self.narrow(""),
        ])
    }
}

/// Arrays in both byte orders, compressed and not, and in a struct.
pub(crate) fn samples() -> Vec<Sample> {
    let [little, big] = [ByteOrder::Little, ByteOrder::Big].map(|order| Maker { order });
    let file = |maker: &Maker, parts: &[Vec<u8>]| [maker.header(), parts.concat()].concat();
    vec![
        vec![("a.mat", file(&little, &[little.kspace("kspace")]))],
        vec![("b.mat", file(&big, &[big.kspace("kspace")]))],
        vec![("c.mat", file(&little, &[little.packed(&little.narrow("image"))]))],
        vec![("d.mat", file(&little, &[little.structure("s")]))],
        vec![("e.mat", file(&big, &[big.packed(&big.structure("s"))]))],
        // Version 7.3, by h5py.
        vec![("f.mat", include_bytes!("samples/newer.mat").to_vec())],
    ]
}
