//! What stored numbers mean: tables, mappings, doses, floating-point numbers and units.

use super::*;

/// An item of a sequence of one.
fn sequence(tag: tag::Tag, item: Vec<u8>) -> Vec<u8> {
    within(tag.number, Some(b"SQ"), &within(0xfffe_e000, None, &item))
}

fn shorts(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| (number as u16).to_le_bytes()).collect()
}

fn lut(descriptor: [i32; 3], data: &[u8]) -> Vec<u8> {
    let mut item = Elements::new();
    item.put(tag::LUT_DESCRIPTOR, b"US", &shorts(&descriptor));
    item.text(tag::LUT_TYPE, b"LO", "HU");
    item.put(tag::LUT_DATA, b"OW", data);
    sequence(tag::LUT, item.into_bytes())
}

/// The first numbers, whether they are Hounsfield units, and the notes.
fn found<const N: usize>(slice: Slice) -> ([f32; N], bool, String) {
    let folder = folder(&[slice]);
    let read = read_volume(folder.path()).unwrap();
    let numbers = read.image.data().iter().copied().take(N).collect::<Vec<_>>();
    (numbers.try_into().unwrap(), read.hounsfield, read.notes.join("\n"))
}

#[test]
fn tables_give_the_values_of_stored_numbers() {
    let numbers = [-30000, -3, -2, -1, 0, 1, 30000, 0, 0, 0, 0, 0];
    let table = shorts(&[7, 70, 700, 65535]);
    let of = |extra| Slice { extra, rescaled: false, ..slice(0.0, &numbers) };
    let (values, hounsfield, notes) = found(of(lut([4, -2, 16], &table)));
    assert_eq!(
        (values, hounsfield, notes.as_str()),
        ([7.0, 7.0, 7.0, 70.0, 700.0, 65535.0, 65535.0], true, "")
    );
    // Entries of 8 bits, two in a word; a slope beside the table does not count.
    let (values, _, notes) = found(Slice { rescaled: true, ..of(lut([4, -2, 8], &[9, 8, 7, 6])) });
    assert_eq!(values, [9.0, 9.0, 9.0, 8.0, 7.0, 6.0, 6.0]);
    assert!(notes.contains("RescaleSlope is not applied"), "{notes}");
    // 0 entries are 65536.
    let all: Vec<i32> = (0..=65535).rev().collect();
    let mut long = of(lut([0, 0, 16], &[]));
    long.signed = false;
    expect_refused(std::slice::from_ref(&long), &["LUTData is cut short", "65536 entries", "0 entries"]);
    long.extra = lut([0, 0, 16], &shorts(&all));
    // −30000 without a sign is 35536.
    assert_eq!(found(long).0, [29999.0, 2.0, 1.0, 0.0, 65535.0, 65534.0, 35535.0]);
    expect_refused(&[of(lut([5, -2, 16], &table))], &["LUTData", "5 entries", "4 entries"]);
}

#[test]
fn real_world_values_are_read_where_nothing_else_is_stated() {
    let mapping = |slope: f64, intercept: f64| {
        let mut code = Elements::new();
        code.text(tag::CODE, b"SH", "mm2/s");
        let mut item = Elements::new();
        item.put(tag::REAL_INTERCEPT, b"FD", &intercept.to_le_bytes());
        item.put(tag::REAL_SLOPE, b"FD", &slope.to_le_bytes());
        let units = sequence(tag::REAL_UNITS, code.into_bytes());
        sequence(tag::REAL_VALUES, [item.into_bytes(), units].concat())
    };
    let alone = Slice { rescaled: false, extra: mapping(0.25, -3.0), ..constant(0.0, 20) };
    let (values, hounsfield, notes) = found(alone.clone());
    assert_eq!((values, hounsfield), ([2.0], false));
    assert!(notes.contains("values are mm2/s (MeasurementUnitsCodeSequence)"), "{notes}");
    // Beside a slope it is another way to read the numbers.
    let (values, _, notes) = found(Slice { rescaled: true, scale: (2.0, 1.0), ..alone.clone() });
    assert_eq!(values, [41.0]);
    assert!(notes.contains("RescaleSlope gives the values"), "{notes}");
    // The same line, with the digits that a decimal number has.
    let same = Slice { rescaled: true, scale: (0.250_000_9, -3.000_01), ..alone.clone() };
    let (values, hounsfield, notes) = found(same);
    assert_eq!((values, hounsfield), ([(20f64 * 0.250_000_9 - 3.000_01) as f32], false));
    assert_eq!(notes, "values are mm2/s (MeasurementUnitsCodeSequence), no Hounsfield units");
    // A parametric map must state the identity, without a type.
    let map = Slice { rescaled: true, unit: Some("US"), modality: "PM", ..alone };
    let (values, _, notes) = found(map.clone());
    assert_eq!((values, notes.as_str()), ([2.0], "values are mm2/s (MeasurementUnitsCodeSequence)"));
    let floats = Pixels::Held(tag::FLOAT_PIXELS, 21f32.to_le_bytes().repeat(12));
    let map = Slice { bits: [32, 32, 31], pixels: floats, without: &[tag::REPRESENTATION], ..map };
    assert_eq!(found(map.clone()).0, [2.25]);
    // With a type the numbers have a meaning of their own, and the mapping is not applied.
    let (values, _, notes) = found(Slice { unit: Some("ms"), ..map });
    assert_eq!(values, [21.0]);
    assert!(notes.contains("values are ms") && notes.contains("are not applied"), "{notes}");
}

#[test]
fn doses_are_scaled_and_their_frames_have_heights() {
    let dose = |offsets: &[f64], unit: &str| {
        let mut set = Elements::new();
        set.text(tag::FRAMES, b"IS", "3");
        set.text(tag::DOSE_UNITS, b"CS", unit);
        set.decimals(tag::FRAME_OFFSETS, offsets);
        set.decimals(tag::DOSE_SCALING, &[0.5]);
        let numbers: Vec<i16> = [3, 5, 9].iter().flat_map(|&number| [number; 12]).collect();
        Slice { rescaled: false, extra: set.into_bytes(), ..slice(40.0, &numbers) }
    };
    for (offsets, expected, lowest) in [
        // Above the first one, or places along z.
        ([0.0, 3.0, 6.0], [1.5, 2.5, 4.5], 40.0),
        ([40.0, 43.0, 46.0], [1.5, 2.5, 4.5], 40.0),
        ([0.0, -3.0, -6.0], [4.5, 2.5, 1.5], 34.0),
    ] {
        let (image, notes) = read(&[dose(&offsets, "GY")]);
        let numbers: Vec<f32> = image.data().outer_iter().map(|slice| slice[[1, 1]]).collect();
        assert_eq!(numbers, expected);
        assert!(notes[0].contains("values are GY (DoseUnits)"), "{notes:?}");
        assert_eq!(image.geometry().spacing_mm[2], 3.0);
        assert_eq!(image.geometry().affine_lps([3, 3, 4])[2][3], lowest);
    }
    expect_refused(&[dose(&[0.0, 3.0], "GY")], &["GridFrameOffsetVector", "3 numbers", "found 2"]);
}

#[test]
fn floating_point_pixels_are_read() {
    let numbers: Vec<f64> = (0..12).map(|i| 0.1 * f64::from(i) - 0.3).collect();
    let single = || numbers.iter().flat_map(|&number| (number as f32).to_le_bytes()).collect::<Vec<u8>>();
    let double = |last: f64| {
        let numbers = numbers[..11].iter().copied().chain([last]);
        numbers.flat_map(f64::to_le_bytes).collect::<Vec<u8>>()
    };
    let of = |bits: u16, tag, bytes| Slice {
        bits: [bits, bits, bits - 1],
        scale: (2.0, 1.0),
        pixels: Pixels::Held(tag, bytes),
        ..slice(0.0, &[])
    };
    let expected: Vec<f32> =
        numbers.iter().map(|&number| (2.0 * f64::from(number as f32) + 1.0) as f32).collect();
    let found: Vec<f32> = read(&[of(32, tag::FLOAT_PIXELS, single())]).0.data().iter().copied().collect();
    assert_eq!(found, expected);
    let (image, notes) = read(&[of(64, tag::DOUBLE_PIXELS, double(0.8))]);
    assert!(image.data().iter().zip(&numbers).all(|(found, number)| *found == (2.0 * number + 1.0) as f32));
    assert!(notes[0].contains("rounded to single precision"), "{notes:?}");
    let mut padding = Elements::new();
    padding.put(tag::FLOAT_PADDING, b"FL", &(numbers[0] as f32).to_le_bytes());
    // The scale puts the padding far below any value of a scanner.
    let scale = (1e4, 0.0);
    let padded = Slice { scale, extra: padding.into_bytes(), ..of(32, tag::FLOAT_PIXELS, single()) };
    let (image, notes) = read(&[padded]);
    assert_eq!(image.data()[[0, 0, 0]], image.data()[[0, 0, 1]]);
    assert!(notes[0].contains("were not measured"), "{notes:?}");
    expect_refused(&[of(32, tag::FLOAT_PIXELS, single()[4..].to_vec())], &["FloatPixelData is cut short"]);
    expect_refused(&[of(16, tag::FLOAT_PIXELS, single())], &["BitsAllocated", "32 bits for FloatPixelData"]);
    expect_refused(&[of(64, tag::DOUBLE_PIXELS, double(1e300))], &["single precision"]);
}

#[test]
fn whole_numbers_beyond_single_precision_are_told() {
    let of = |last: i32| {
        let numbers = [0, 16_777_216, -16_777_216].into_iter().cycle().take(11).chain([last]);
        let pixels = Pixels::Native(numbers.flat_map(i32::to_le_bytes).collect());
        read(&[Slice { bits: [32, 32, 31], pixels, ..slice(0.0, &[]) }]).1
    };
    assert_eq!(of(16_777_218), [""; 0]);
    let notes = of(16_777_217);
    assert!(notes[0].contains("int32 numbers beyond 16777216 are rounded"), "{notes:?}");
}

#[test]
fn units_that_are_no_hounsfield_units_are_told() {
    let of = |z: f64, unit| Slice { unit: Some(unit), ..constant(z, 5) };
    let (_, hounsfield, notes) = found::<1>(of(0.0, "Z_EFF"));
    assert!(!hounsfield && notes.contains("values are Z_EFF (RescaleType), no Hounsfield units"), "{notes}");
    expect_refused(&[of(0.0, "HU"), of(2.0, "MGML")], &["RescaleType", "HU as in 0", "MGML in 1"]);
    // A frame's own group counts, not the file's elements.
    let mut group = Elements::new();
    group.decimals(tag::SLOPE, &[0.25]);
    group.text(tag::RESCALE_TYPE, b"LO", "ED");
    let frame = within(0xfffe_e000, None, &sequence(tag::TRANSFORMATION, group.into_bytes()));
    let extra = within(tag::PER_FRAME.number, Some(b"SQ"), &frame);
    let (values, hounsfield, notes) = found(Slice { extra, ..of(0.0, "HU") });
    assert_eq!((values, hounsfield), ([1.25], false));
    assert!(notes.contains("ED"), "{notes}");
}

#[test]
fn numbers_that_are_shown_dark_are_kept() {
    let dark = Slice { photometric: "MONOCHROME1", scale: (2.0, -5.0), ..constant(0.0, 30) };
    let (values, _, notes) = found(dark);
    assert_eq!(values, [55.0]);
    assert!(notes.contains("MONOCHROME1") && notes.contains("not inverted"), "{notes}");
}
