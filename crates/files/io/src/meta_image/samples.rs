//! Small files of kinds that are read and not written.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::format::Sample;

/// Numbers in a file of their own, in several files, as text, and compressed.
pub(crate) fn samples() -> Vec<Sample> {
    let header = |lines: &str| {
        let start = "ObjectType = Image\nNDims = 3\nBinaryDataByteOrderMSB = True\n";
        format!("{start}Offset = 1 2 3\nElementSpacing = 1 2 -3\nDimSize = 4 3 2\n{lines}\n").into_bytes()
    };
    let bytes: Vec<u8> = (0..48).map(|index| index * 5 + 3).collect();
    let text: Vec<String> = (1..25).rev().map(|number| number.to_string()).collect();
    let of_short = |lines: &str| header(&format!("ElementType = MET_SHORT\nElementDataFile = {lines}"));
    let as_text =
        format!("BinaryData = False\nElementType = MET_FLOAT\nElementDataFile = LOCAL\n{}", text.join(" "));
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    let packed = packed.write_all(&bytes).and_then(|()| packed.finish());
    let compressed = packed.map(|packed| {
        let lines = format!("CompressedData = True\nCompressedDataSize = {}\n", packed.len());
        let header = header(&format!("{lines}ElementType = MET_USHORT\nElementDataFile = LOCAL"));
        vec![("a.mha", [header, packed].concat())]
    });
    let mut samples = vec![
        vec![("a.mhd", of_short("a.raw")), ("a.raw", bytes.clone())],
        vec![
            ("b.mhd", of_short("LIST\nb1.raw\nb2.raw")),
            ("b1.raw", bytes[..24].to_vec()),
            ("b2.raw", bytes[24..].to_vec()),
        ],
        vec![("c.mha", header(&as_text))],
    ];
    samples.extend(compressed);
    samples
}
