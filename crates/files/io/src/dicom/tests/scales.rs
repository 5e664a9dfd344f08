//! Padding, scales that some slices lack, and what is assumed where a file states too little.

use super::*;

/// The numbers and the notes.
fn numbers(slices: &[Slice]) -> (Vec<f32>, String) {
    let (image, notes) = read(slices);
    (image.into_data().into_raw_vec_and_offset().0, notes.join("\n"))
}

#[test]
fn padding_that_may_be_a_number_stays() {
    let stored = [0, 0, 3, 7, 0, 7, 7, 3, 3, 0, 0, 0];
    let expected = stored.map(f32::from);
    let labels = |modality| Slice { padding: Some(0), modality, ..slice(0.0, &stored) };
    for modality in ["SEG", "MR", "CT"] {
        let (found, notes) = numbers(&[labels(modality)]);
        assert_eq!((found.as_slice(), notes.as_str()), (&expected[..], ""), "{modality}");
    }
    // Marks of a CT image on the scale of its numbers.
    let scaled = Slice { scale: (1.0, -1024.0), ..labels("CT") };
    assert_eq!(numbers(&[scaled]), (expected.map(|n| n - 1024.0).to_vec(), String::new()));
    // Negative numbers around a background of 0, and around another number.
    let signed = [-9, -4, 0, 8, 0, 0, 2, 2, 2, 2, 2, 2];
    let real = Slice { modality: "MR", padding: Some(0), ..slice(0.0, &signed) };
    assert_eq!(numbers(std::slice::from_ref(&real)), (signed.map(f32::from).to_vec(), String::new()));
    for modality in ["MR", "CT"] {
        let (found, notes) = numbers(&[Slice { padding: Some(2), modality, ..real.clone() }]);
        assert_eq!(found, signed.map(f32::from));
        assert!(notes.contains("PixelPaddingValue 2) keep their values, up to 2"), "{notes}");
    }
}

#[test]
fn padding_outside_what_ct_measures_is_filled_in_all_slices() {
    let of = |z: f64, numbers: [i16; 12]| Slice {
        padding: Some(-3000),
        scale: (0.5, -1000.0),
        ..slice(z, &numbers)
    };
    let slices = [of(0.0, [-3000; 12]), of(2.0, [-3000, 80, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])];
    let (found, notes) = numbers(&slices);
    assert_eq!(found[..13], [-997.0; 13]);
    assert_eq!(found[13..15], [-960.0, -997.0]);
    assert!(notes.contains("PixelPaddingValue -3000) have the lowest of the other values, -997"), "{notes}");
    // A range of them.
    let mut limit = Elements::new();
    limit.put(tag::PADDING_LIMIT, b"SS", &(-2000i16).to_le_bytes());
    let mut two = [20; 12];
    two[..2].copy_from_slice(&[-2500, -2000]);
    let (found, notes) = numbers(&[Slice { extra: limit.into_bytes(), ..of(0.0, two) }]);
    assert_eq!(found, [-990.0; 12]);
    assert!(notes.contains("PixelPaddingValue -3000 to -2000"), "{notes}");
    // Slices of nothing else stay.
    assert_eq!(numbers(&[of(0.0, [-3000; 12])]), (vec![-2500.0; 12], String::new()));
}

#[test]
fn a_slice_that_lacks_the_scale_of_others_is_refused() {
    let all: Vec<Slice> =
        (0..6).map(|i| Slice { scale: (2.0, -8.0), ..constant(2.0 * f64::from(i), 5) }).collect();
    let with = |at: usize, other: Slice| {
        let mut all = all.clone();
        all[at] = Slice { place: all[at].place, ..other };
        all
    };
    let (slope, intercept) = ("RescaleSlope", "RescaleIntercept");
    for (at, as_in) in [(0, "as in 1"), (2, "as in 0"), (5, "as in 0")] {
        let lacks = Slice { rescaled: false, ..all[0].clone() };
        expect_refused(&with(at, lacks), &[slope, as_in, &format!("none in {at}")]);
    }
    // One of the two; an element without a value.
    for (without, name) in [(&[tag::SLOPE], slope), (&[tag::INTERCEPT], intercept)] {
        expect_refused(&with(3, Slice { without, ..all[0].clone() }), &[name, "as in 0", "none in 3"]);
    }
    let mut empty = Elements::new();
    empty.text(tag::INTERCEPT, b"DS", "");
    empty.text(tag::SLOPE, b"DS", "");
    let empty = Slice { rescaled: false, extra: empty.into_bytes(), ..all[0].clone() };
    expect_refused(&with(4, empty), &[slope, "none in 4"]);
    // The identity says the same as nothing, and a scale of its own is one.
    let plain: Vec<Slice> = [true, false, true]
        .into_iter()
        .zip(0..)
        .map(|(rescaled, i)| Slice { rescaled, unit: Some("HU"), ..constant(f64::from(i), 5) })
        .collect();
    assert_eq!(numbers(&plain), (vec![5.0; 36], String::new()));
    let own = with(1, Slice { scale: (1.0, 0.0), ..all[0].clone() });
    assert_eq!(numbers(&own).0[11..13], [2.0, 5.0]);
    // A type, where nothing is known without it.
    let typed = |z: f64, unit| Slice { modality: "MR", unit, ..constant(z, 5) };
    for units in [[Some("ms"), None], [None, Some("ms")]] {
        let slices: Vec<Slice> = units.into_iter().zip([0.0, 2.0]).map(|(unit, z)| typed(z, unit)).collect();
        expect_refused(&slices, &["RescaleType", "none", "ms"]);
    }
}

#[test]
fn fractions_are_parts_of_their_maximum() {
    let of = |most: Option<u16>| {
        let mut set = Elements::new();
        set.text(tag::SEGMENTATION, b"CS", "FRACTIONAL");
        most.iter().for_each(|&most| set.short(tag::MOST_FRACTION, most));
        set.text(tag::FRACTION_TYPE, b"CS", "OCCUPANCY");
        let pixels = Pixels::Native([0, 50, 125, 250].repeat(3));
        let bits = [8, 8, 7];
        let extra = set.into_bytes();
        Slice { modality: "SEG", bits, signed: false, rescaled: false, pixels, extra, ..slice(0.0, &[]) }
    };
    let (found, notes) = numbers(&[of(Some(250))]);
    assert_eq!(found[..4], [0.0, 0.2, 0.5, 1.0]);
    assert_eq!(notes, "values are OCCUPANCY (SegmentationFractionalType)");
    expect_refused(&[of(None)], &["MaximumFractionalValue"]);
    expect_refused(&[of(Some(0))], &["MaximumFractionalValue"]);
}

#[test]
fn what_is_assumed_is_told() {
    let told = |slice: Slice, words: &[&str]| {
        let folder = folder(&[slice]);
        let read = read_volume(folder.path()).unwrap();
        let notes = read.notes.join("\n");
        assert_eq!(read.notes.len(), words.len(), "{notes}");
        words.iter().for_each(|word| assert!(notes.contains(word), "{word}: {notes}"));
        read
    };
    let one = constant(3.0, -5);
    assert!(told(Slice { unit: Some("hu"), ..one.clone() }, &[]).hounsfield);
    let read = told(Slice { rescaled: false, ..one.clone() }, &["0 is CT and states neither RescaleSlope"]);
    assert!(read.hounsfield);
    let unsigned = Slice { without: &[tag::REPRESENTATION], ..one.clone() };
    assert_eq!(told(unsigned, &["no PixelRepresentation"]).image.data()[[0, 0, 0]], 65531.0);
    let nowhere =
        Slice { without: &[tag::POSITION], cosines: [0.0, 1.0, 0.0, 0.0, 0.0, -1.0], ..one.clone() };
    let read = told(nowhere, &["no ImagePositionPatient: the first pixel"]);
    assert_eq!(read.image.geometry().read_dir, [0.0, 1.0, 0.0]);
    told(Slice { without: &[tag::ORIENTATION], ..one.clone() }, &["no ImageOrientationPatient: axes"]);
    told(Slice { without: &[tag::ORIENTATION, tag::POSITION], ..one.clone() }, &["states no place: axes"]);
    // Distances of pixels in other places than the patient.
    for (tag, place) in [
        (tag::IMAGER_SPACING, "at the detector"),
        (tag::NOMINAL_SPACING, "film"),
        (tag::IMAGE_PLANE_SPACING, "receptor"),
    ] {
        let mut set = Elements::new();
        set.decimals(tag, &[0.2, 0.15]);
        let extra = set.into_bytes();
        let without = &[tag::PIXEL_SPACING];
        let flat = Slice { modality: "DX", without, extra: extra.clone(), ..one.clone() };
        let spacing = told(flat, &[place]).image.geometry().spacing_mm;
        assert_eq!(spacing[..2], [0.15, 0.2]);
        // Those in the patient go before.
        let spacing = told(Slice { extra, ..one.clone() }, &[]).image.geometry().spacing_mm;
        assert_eq!(spacing[..2], [0.25, 0.5]);
    }
    told(Slice { modality: "DX", without: &[tag::PIXEL_SPACING], ..one }, &["pixels of 1 mm are assumed"]);
}

#[test]
fn frames_without_places_are_no_series_of_files() {
    let mut set = Elements::new();
    set.text(tag::FRAMES, b"IS", "2");
    let frames = Slice { extra: set.into_bytes(), ..slice(0.0, &[4; 24]) };
    for frames in [frames.clone(), Slice { without: &[tag::POSITION, tag::ORIENTATION], ..frames }] {
        let hint = refused(&[frames]).hint().unwrap_or_default();
        assert!(hint.contains("write each to a file of its own"), "{hint}");
    }
}
