//! MetaImages of other programs.

use std::path::Path;

use rayspin_io::read_volume;

use crate::support::{expected, folder, put, read, refused};

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
    // The numbers are there, and the checksum behind them is not.
    put(&f.join("bad.mha"), &[text.as_bytes(), &packed[..packed.len() - 3]].concat());
    let found = refused(&f.join("bad.mha"));
    assert!(found.contains("cut short") && found.contains("CompressedDataSize"), "{found}");
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
