//! Files of other programs: fragments, mosaics, indices, and files that are damaged or no slices.

use super::*;

fn series() -> Vec<Slice> {
    (0..6).map(|i| constant(2.0 * f64::from(i), i as i16)).collect()
}

/// Two frames of JPEG Lossless, each in two fragments; the frames lie 2 mm apart.
fn two_frames() -> (Slice, Vec<Vec<u8>>) {
    let mut set = Elements::new();
    set.text(tag::FRAMES, b"IS", "2");
    set.decimals(tag::FRAME_OFFSETS, &[0.0, 2.0]);
    let code = |start: u16| lossless(3, 4, &(start..start + 12).collect::<Vec<_>>());
    let halves = [code(100), code(500)].map(|code| [code[..22].to_vec(), code[22..].to_vec()]).concat();
    let slice = Slice { syntax: "1.2.840.10008.1.2.4.70", extra: set.into_bytes(), ..slice(0.0, &[]) };
    (slice, halves)
}

#[test]
fn frames_in_several_fragments_are_told_apart() {
    let (slice, halves) = two_frames();
    let second = 16 + halves[0].len() + halves[1].len();
    let words = |numbers: [usize; 2]| numbers.map(|n| (n as u32).to_le_bytes()).concat();
    let long = |numbers: [usize; 2]| numbers.map(|n| (n as u64).to_le_bytes()).concat();
    let pixels = Pixels::Fragments(halves.clone());
    let mut extended = Elements::new();
    extended.put(tag::EXTENDED_OFFSETS, b"OB", &long([0, second]));
    let with_extended = [extended.into_bytes(), slice.extra.clone()].concat();
    for (table, extra) in [
        // By a table of either width, and by the beginnings of the codes.
        (words([0, second]), slice.extra.clone()),
        (Vec::new(), with_extended),
        (Vec::new(), slice.extra.clone()),
    ] {
        let (image, _) = read(&[Slice { table, extra, pixels: pixels.clone(), ..slice.clone() }]);
        let numbers: Vec<f32> = image.data().iter().copied().collect();
        let expected: Vec<f32> = (100..112).chain(500..512).map(|n| n as f32).collect();
        assert_eq!(numbers, expected);
    }
    // Three beginnings for two frames.
    let three = [halves[..2].concat(), halves[..2].concat(), halves[2..].concat()].to_vec();
    expect_refused(&[Slice { pixels: Pixels::Fragments(three), ..slice }], &["3 fragments for 2 frames"]);
}

/// A header of Siemens with two entries, in its newer form.
fn csa(slices: &str, normal: [&str; 3]) -> Vec<u8> {
    let word = |number: usize| (number as u32).to_le_bytes();
    let mut out = [&b"SV10\x04\x03\x02\x01"[..], &word(2)[..], &word(77)[..]].concat();
    for (name, items) in [("NumberOfImagesInMosaic", vec![slices]), ("SliceNormalVector", normal.to_vec())] {
        out.extend(name.as_bytes());
        out.extend(vec![0; 64 - name.len()]);
        out.extend([word(items.len()), *b"FD\0\0", word(3), word(items.len()), word(77)].concat());
        for item in items {
            out.extend([word(item.len() + 1), word(item.len() + 1), word(77), word(77)].concat());
            out.extend(item.as_bytes());
            out.extend(vec![0; (item.len() + 1).next_multiple_of(4) - item.len()]);
        }
    }
    out
}

#[test]
fn mosaics_are_taken_apart() {
    let of = |header: &[u8], creator: &str| {
        let private = |element: u32| tag::Tag { number: 0x0029_0000 + element, name: "" };
        let mut set = Elements::new();
        set.decimals(tag::BETWEEN_SLICES, &[3.0]);
        set.text(private(0x11), b"LO", creator);
        set.put(private(0x1110), b"OB", header);
        // Tiles of 3 rows of 4 columns; each pixel holds its tile.
        let numbers: Vec<i16> = (0..6 * 8).map(|at| (at / 8 / 3 * 2 + at % 8 / 4) as i16).collect();
        let image_type = "ORIGINAL\\PRIMARY\\M\\ND\\MOSAIC";
        Slice { size: [6, 8], image_type, extra: set.into_bytes(), ..slice(50.0, &numbers) }
    };
    for (normal, expected, lowest) in
        [(["0", "0", "1.0"], [0.0, 1.0, 2.0], 50.0), (["0", "0", "-1"], [2.0, 1.0, 0.0], 44.0)]
    {
        let (image, notes) = read(&[of(&csa("3", normal), "SIEMENS CSA HEADER")]);
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(image.data().shape(), [3, 3, 4]);
        for (slice, expected) in image.data().outer_iter().zip(expected) {
            assert!(slice.iter().all(|&number| number == expected));
        }
        // The corner of a tile around the centre of the mosaic: 4 columns of 0.25 mm, 3 rows of 0.5 mm,
        // halved.
        let corner = image.geometry().affine_lps([3, 3, 4]).map(|row| row[3]);
        assert_eq!(corner, [-10.0 + 0.5, -20.0 + 0.75, lowest]);
        assert_eq!(image.geometry().spacing_mm, [0.25, 0.5, 3.0]);
    }
    let whole = csa("3", ["0", "0", "1"]);
    expect_refused(&[of(&whole, "ANOTHER HEADER")], &["mosaic", "NumberOfImagesInMosaic"]);
    expect_refused(&[of(&whole[..100], "SIEMENS CSA HEADER")], &["mosaic", "NumberOfImagesInMosaic"]);
    expect_refused(
        &[of(&csa("10", ["0", "0", "1"]), "SIEMENS CSA HEADER")],
        &["tiles of one size", "10 slices"],
    );
    expect_refused(&[of(&csa("3", ["0", "1", "0"]), "SIEMENS CSA HEADER")], &["along the normal"]);
    expect_refused(&[of(&csa("4000000000", ["0", "0", "1"]), "SIEMENS CSA HEADER")], &["tiles of one size"]);
}

/// Programs that anonymise files lose words of the image type, and programs that take slices out of a mosaic
/// keep its header.
#[test]
fn a_mosaic_is_told_by_its_header_alone() {
    let of = |slices: &str, acquired: u16, frames: usize| {
        let private = |element: u32| tag::Tag { number: 0x0029_0000 + element, name: "" };
        let mut set = Elements::new();
        let matrix: Vec<u8> = [acquired, 0, 0, acquired].iter().flat_map(|n| n.to_le_bytes()).collect();
        set.put(tag::ACQUISITION_MATRIX, b"US", &matrix);
        set.decimals(tag::BETWEEN_SLICES, &[1.5]);
        if frames > 1 {
            set.decimals(tag::FRAME_OFFSETS, &[0.0, 1.5]);
        }
        set.text(tag::FRAMES, b"IS", &frames.to_string());
        set.text(private(0x10), b"LO", "SIEMENS CSA HEADER");
        set.put(private(0x1010), b"OB", &csa(slices, ["0", "0", "1"]));
        let numbers: Vec<i16> = (0..2 * 36).map(|at| (at % 36 / 6 / 2 * 3 + at % 6 / 2) as i16).collect();
        Slice { size: [6, 6], modality: "MR", extra: set.into_bytes(), ..slice(0.0, &numbers) }
    };
    let (image, notes) = read(&[of("7", 2, 1)]);
    assert_eq!(image.data().shape(), [7, 2, 2]);
    assert!(image.data().outer_iter().enumerate().all(|(at, slice)| slice.iter().all(|&n| n == at as f32)));
    assert!(notes.len() == 1 && notes[0].contains("a mosaic of 7 slices"), "{notes:?}");
    // A slice as large as what was acquired, tiles that do not fit, a single slice, and frames.
    for (slices, acquired, frames) in [("7", 6, 1), ("12", 2, 1), ("1", 2, 1), ("7", 2, 2)] {
        let (image, notes) = read(&[of(slices, acquired, frames)]);
        assert_eq!(image.data().shape(), [frames, 6, 6]);
        assert!(notes.is_empty(), "{notes:?}");
    }
}

/// The elements of a file in the big-endian syntax.
fn big_endian(slice: &Slice) -> Vec<u8> {
    let bytes = Slice { syntax: "1.2.840.10008.1.2.2", ..slice.clone() }.bytes();
    let start = bytes.windows(4).position(|four| four == [8, 0, 8, 0]).unwrap();
    let swap =
        |bytes: &[u8]| bytes.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect::<Vec<u8>>();
    let all = elements(&bytes[start..]).into_iter().flat_map(|(_, element)| {
        let (tag, kind) = (swap(&element[..4]), &element[4..6]);
        let words = match kind {
            b"OW" => {
                [vec![0; 2], element[8..12].iter().rev().copied().collect(), swap(&element[12..])].concat()
            }
            b"US" | b"SS" => swap(&element[6..]),
            _ => [swap(&element[6..8]), element[8..].to_vec()].concat(),
        };
        [tag, kind.to_vec(), words].concat()
    });
    bytes[..start].iter().copied().chain(all).collect()
}

#[test]
fn bytes_in_words_of_a_big_endian_file_are_in_order() {
    let mut set = Elements::new();
    set.text(tag::FRAMES, b"IS", "3");
    set.decimals(tag::FRAME_OFFSETS, &[0.0, 1.0, 2.0]);
    // Frames of an odd number of pixels.
    let bytes: Vec<u8> = (1..=45).collect();
    let padded = [&bytes[..], &[0]].concat();
    let file = Slice {
        size: [3, 5],
        bits: [8, 8, 7],
        signed: false,
        extra: set.into_bytes(),
        pixels: Pixels::Native(padded),
        ..slice(0.0, &[])
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dcm");
    std::fs::write(&path, big_endian(&file)).unwrap();
    let image = read_volume(&path).unwrap().image;
    assert_eq!(image.data().shape(), [3, 3, 5]);
    assert!(image.data().iter().zip(1..).all(|(&found, number)| found == number as f32));
    // Words of 16 bits.
    let numbers: Vec<i16> = (0..12).map(|i| 300 * i - 7).collect();
    std::fs::write(&path, big_endian(&slice(0.0, &numbers))).unwrap();
    let image = read_volume(&path).unwrap().image;
    assert!(image.data().iter().zip(&numbers).all(|(&found, &number)| found == f32::from(number)));
}

/// Programs that do not know a sequence keep its bytes, as the implicit syntax or the file's has them.
#[test]
fn sequences_of_unknown_type_are_read() {
    let implicit = |number: u32, bytes: &[u8]| within(number, None, bytes);
    let explicit = |number: u32, bytes: &[u8]| within(number, Some(b"SQ"), bytes);
    let item = |bytes: Vec<u8>| within(0xfffe_e000, None, &bytes);
    let (slope, intercept) = (b"2.5 ", b"-1");
    let scale = [implicit(tag::INTERCEPT.number, intercept), implicit(tag::SLOPE.number, slope)].concat();
    let group = implicit(tag::TRANSFORMATION.number, &item(scale));
    let mut set = Elements::new();
    set.decimals(tag::INTERCEPT, &[-1.0]);
    set.decimals(tag::SLOPE, &[2.5]);
    let other = explicit(tag::TRANSFORMATION.number, &item(set.into_bytes()));
    for group in [group, other] {
        let extra = within(tag::PER_FRAME.number, Some(b"UN"), &item(group));
        let (image, _) = read(&[Slice { rescaled: false, extra, ..constant(0.0, 4) }]);
        assert!(image.data().iter().all(|&number| number == 9.0));
    }
}

#[test]
fn damaged_slices_are_refused_by_their_names() {
    let all = folder(&series());
    let path = all.path().join("3");
    let whole = std::fs::read(&path).unwrap();
    for (bytes, reason) in [
        (&[][..], "an empty file"),
        (&whole[..90], "another signature"),
        (&whole[..200], "cut short"),
        (&whole[..whole.len() - 1], "cut short"),
    ] {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let error = read_volume(all.path()).unwrap_err();
        assert_eq!(error.path(), path);
        assert!(error.to_string().contains(reason), "{error}");
    }
    // Cut between two elements.
    let without = Slice { pixels: Pixels::None, ..constant(6.0, 3) };
    std::fs::write(&path, without.bytes()).unwrap();
    let error = read_volume(all.path()).unwrap_err().to_string();
    assert!(error.contains("3: the image is cut short: expected PixelData, found none"), "{error}");
    // A link to a file that is gone.
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(all.path().join("gone"), &path).unwrap();
    let error = read_volume(all.path()).unwrap_err().to_string();
    assert!(error.contains("3: cannot open"), "{error}");
    // What has another kind of name is no slice.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &whole).unwrap();
    std::fs::write(all.path().join("README"), "").unwrap();
    let read = read_volume(all.path()).unwrap();
    assert!(read.notes.len() == 1 && read.notes[0].contains("README"), "{:?}", read.notes);
}

#[test]
fn few_slices_tell_that_one_is_missing() {
    let of = |heights: &[f64]| heights.iter().map(|&z| constant(z, 1)).collect::<Vec<_>>();
    expect_refused(&of(&[0.0, 2.0, 6.0]), &["slices every 2.00 mm", "4.00 mm between 1 and 2: 1 missing"]);
    let (_, notes) = read(&of(&[0.0, 2.0, 6.0, 10.0]));
    assert!(notes[0].contains("as if 2 were missing"), "{notes:?}");
    let (_, notes) = read(&of(&[0.0, 2.0, 5.0, 8.0]));
    assert!(notes[0].contains("unevenly spaced") && !notes[0].contains("missing"), "{notes:?}");
}

#[test]
fn colours_and_localizers_beside_a_series_are_left_out() {
    let colour = Slice { photometric: "RGB", ..constant(0.0, 9) };
    let scout = Slice {
        image_type: "ORIGINAL\\PRIMARY\\LOCALIZER",
        cosines: [1.0, 0.0, 0.0, 0.0, 0.0, -1.0],
        series: ("1.2.9", "1"),
        ..constant(0.0, 9)
    };
    let (image, notes) = read(&[series(), vec![colour.clone(), scout.clone()]].concat());
    assert_eq!(image.data().shape(), [6, 3, 4]);
    assert!(notes[0].contains("series 7 is read: the others (1) are localizers"), "{notes:?}");
    assert!(notes[1].contains("6 (a colour image (RGB))"), "{notes:?}");
    // Each can be read alone, if it is numbers.
    assert_eq!(read(&[scout]).0.data().len(), 12);
    expect_refused(&[colour], &["colour image (RGB)"]);
}

#[test]
fn indices_lead_to_the_files_that_they_name() {
    let medium = tempfile::tempdir().unwrap();
    let write_index = |names: &[&str]| {
        let item = |name: &&str| {
            let mut record = Elements::new();
            record.text(tag::REFERENCED_FILE, b"CS", name);
            within(0xfffe_e000, None, &record.into_bytes())
        };
        let records = names.iter().map(item).collect::<Vec<_>>().concat();
        let index = [
            encode::head("1.2.840.10008.1.3.10", "1.2", "1.2", "T"),
            within(tag::RECORDS.number, Some(b"SQ"), &records),
        ];
        let path = medium.path().join("DICOMDIR");
        let _ = std::fs::remove_file(&path);
        std::fs::write(path, index.concat()).unwrap();
    };
    std::fs::create_dir_all(medium.path().join("images/a")).unwrap();
    std::fs::write(medium.path().join("autorun.inf"), "text").unwrap();
    for (at, slice) in series().iter().enumerate() {
        std::fs::write(medium.path().join(format!("images/a/im{at}")), slice.bytes()).unwrap();
    }
    // In capitals, as media have them.
    let names: Vec<String> = (0..6).map(|at| format!("IMAGES\\A\\IM{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    write_index(&names);
    for path in [medium.path().to_owned(), medium.path().join("DICOMDIR")] {
        assert_eq!(read_volume(path).unwrap().image.data().shape(), [6, 3, 4]);
    }
    // An index beside slices does not count, whatever it names.
    let beside = folder(&series());
    std::fs::copy(medium.path().join("DICOMDIR"), beside.path().join("dicomdir")).unwrap();
    assert_eq!(read_volume(beside.path()).unwrap().image.data().shape(), [6, 3, 4]);
    for (names, reason) in [
        (&["IMAGES\\GONE"][..], "GONE: cannot open"),
        (&["..\\SECRET"], "ReferencedFileID"),
        (&[], "ReferencedFileID"),
    ] {
        write_index(names);
        let error = read_volume(medium.path()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
