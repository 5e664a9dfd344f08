//! Small files of kinds that are read and not written.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::format::Sample;

/// Raw, in other files, as text, as hexadecimal digits, and behind bytes that are skipped.
pub(crate) fn samples() -> Vec<Sample> {
    let header =
        |lines: &str| format!("NRRD0005\n# small\ndimension: 3\nsizes: 4 3 2\n{lines}\n\n").into_bytes();
    let place = "space: RAS\nspace directions: (0,0.5,0) (-2,0,0) (0,0,3)\nspace origin: (1,2,3)\nkey:=value";
    let bytes: Vec<u8> = (0..48).map(|index| index * 5 + 3).collect();
    let raw = "type: short\nencoding: raw\nendian: big";
    let text: Vec<String> = (2..26).rev().map(|number| number.to_string()).collect();
    let digits: String = bytes[..24].iter().map(|byte| format!("{byte:02x}\n")).collect();
    let series = "NRRD0004\ntype: uint8\ndimension: 4\nsizes: 2 4 3 2\nencoding: raw\n\
                  kinds: list domain domain domain\n\
                  space: LPS\nspace directions: none (1,0,0) (0,1,0) (0,0,1)\nspace origin: (0,0,0)\n\n";
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = packed.write_all(&bytes).and_then(|()| packed.finish());
    let behind =
        "type: uchar\nencoding: gzip\nline skip: 1\nbyte skip: 24\nspacings: 1 -2 3\naxis mins: 0 1 2";
    let mut samples = vec![
        vec![("a.nrrd", [header(&format!("{raw}\n{place}")), bytes.clone()].concat())],
        vec![
            ("b.nhdr", header(&format!("{raw}\nbyte skip: -1\ndata file: b.raw"))),
            ("b.raw", bytes.clone()),
        ],
        vec![
            ("c.nhdr", header(&format!("{raw}\ndata file: c%d.raw 1 2 1"))),
            ("c1.raw", bytes[..24].to_vec()),
            ("c2.raw", bytes[24..].to_vec()),
        ],
        vec![("d.nrrd", [header("type: float\nencoding: ascii"), text.join(" ").into_bytes()].concat())],
        vec![("e.nrrd", [header("type: uint8\nencoding: hex"), digits.into_bytes()].concat())],
        vec![("f.nrrd", [series.as_bytes(), &bytes].concat())],
    ];
    samples.extend(
        packed.map(|packed| vec![("g.nrrd", [header(behind), b"a line\n".to_vec(), packed].concat())]),
    );
    samples
}
