//! Slices that are missing at an end of a series.

use super::super::encode::Elements;
use super::super::tag;
use super::{Slice, constant, read};

/// No gap shows slices that are missing at an end.
#[test]
fn slices_that_are_missing_at_an_end_are_told_by_their_numbers() {
    let series = |numbers: &[i64], put: &dyn Fn(&mut Elements)| -> Vec<Slice> {
        let extra = |number: &i64| {
            let mut set = Elements::new();
            set.text(tag::INSTANCE, b"IS", &number.to_string());
            put(&mut set);
            set.into_bytes()
        };
        let slices = numbers.iter().enumerate();
        slices.map(|(at, number)| Slice { extra: extra(number), ..constant(2.0 * at as f64, 1) }).collect()
    };
    let none = |_: &mut Elements| {};
    let of_acquisition = |set: &mut Elements| set.text(tag::IN_ACQUISITION, b"IS", "5");
    let of_pet = |set: &mut Elements| set.short(tag::SLICES, 4);
    let of_series = |set: &mut Elements| set.text(tag::IN_SERIES, b"IS", "3");
    for (numbers, put, words) in [
        (&[1, 2, 3][..], &none as &dyn Fn(&mut Elements), None),
        (&[3, 2, 1], &none, None),
        (&[2, 6, 10], &none, None),
        (&[50, 43, 36], &none, None),
        (&[0, 1, 2], &none, None),
        (&[7, 7, 7], &none, None),
        (&[9, 2, 5], &none, None),
        (&[i64::MIN, 1, i64::MAX], &none, None),
        (&[i64::MIN, i64::MIN + 1, i64::MIN + 2], &none, None),
        (&[3, 4, 5], &none, Some("InstanceNumber runs from 3 to 5 along the slices: 2 slices before 3")),
        (&[4, 3, 2], &none, Some("1 slice before 2 may be missing")),
        (&[1, 2, 3], &of_acquisition, Some("ImagesInAcquisition states 5 images, and 3 are here")),
        (&[1, 2, 3, 4, 5], &of_acquisition, None),
        (&[1, 2, 3], &of_pet, Some("NumberOfSlices states 4 images, and 3 are here")),
        (&[1, 2], &of_series, Some("NumberOfSeriesRelatedInstances states 3 images, and 2 are here")),
        (&[1, 2, 3], &of_series, None),
    ] {
        let (_, notes) = read(&series(numbers, put));
        match words {
            None => assert!(notes.is_empty(), "{numbers:?}: {notes:?}"),
            Some(words) => assert!(notes.len() == 1 && notes[0].contains(words), "{numbers:?}: {notes:?}"),
        }
    }
}
