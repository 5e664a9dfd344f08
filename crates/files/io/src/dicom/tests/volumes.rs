//! Echoes, times and other volumes of one series.

use ndarray::{Axis, s};

use super::super::encode::Elements;
use super::super::tag::{self, Tag};
use super::{Slice, constant, expect_refused, read, slice};

type Told<'a> = &'a [(Tag, String)];

fn of(told: Told<'_>, slice: Slice) -> Slice {
    let mut set = Elements::new();
    told.iter().for_each(|(tag, text)| set.text(*tag, b"IS", text));
    Slice { extra: set.into_bytes(), ..slice }
}

fn number(tag: Tag, number: impl ToString) -> (Tag, String) {
    (tag, number.to_string())
}

/// The number of each slice of each volume, which is constant.
fn numbers(slices: &[Slice]) -> (Vec<Vec<f32>>, Vec<String>) {
    let (image, notes) = read(slices);
    let volumes = image.data().axis_iter(Axis(0));
    (volumes.map(|volume| volume.slice(s![.., 2, 1]).iter().copied().collect()).collect(), notes)
}

/// Three slices of 2 times and 2 echoes, with the number 100 · time + 10 · echo + slice, out of order.
fn echoes_and_times(told: impl Fn(i16, i16, i16) -> Vec<(Tag, String)>) -> Vec<Slice> {
    let all = (0..12).map(|at| {
        let at = (5 * at + 7) % 12;
        let (time, echo, z) = (at / 6, at / 3 % 2, at % 3);
        of(&told(time, echo, z), constant(2.0 * f64::from(z), 100 * time + 10 * echo + z))
    });
    all.collect()
}

const SORTED: [[f32; 3]; 4] =
    [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0], [100.0, 101.0, 102.0], [110.0, 111.0, 112.0]];

#[test]
fn echoes_and_times_are_volumes() {
    let sorted = |told: &dyn Fn(i16, i16, i16) -> Vec<(Tag, String)>, by: &str| {
        let (found, notes) = numbers(&echoes_and_times(told));
        assert_eq!(found, SORTED, "{by}");
        assert!(notes[0].contains("4 volumes") && notes[0].contains(by), "{by}: {notes:?}");
    };
    let time_of = |t| number(tag::TEMPORAL_POSITION, t + 1);
    sorted(
        &|t, e, _| vec![time_of(t), number(tag::ECHO_NUMBERS, e + 1)],
        "TemporalPositionIdentifier and EchoNumbers",
    );
    // Times of echoes tell as much as their numbers, and are sorted as numbers.
    sorted(
        &|t, e, _| vec![time_of(t), number(tag::ECHO_TIME, 9.5 + f64::from(e))],
        "TemporalPositionIdentifier and EchoTime",
    );
    // What differs from slice to slice, too, is no number of volumes.
    sorted(
        &|t, e, z| {
            vec![
                number(tag::TRIGGER_TIME, 31 * t + 7 * z),
                number(tag::ACQUISITION, t + 1),
                number(tag::ECHO_NUMBERS, e + 1),
            ]
        },
        "AcquisitionNumber and EchoNumbers",
    );
    // The order of numbers alone, of volume after volume and of slice after slice.
    sorted(&|t, e, z| vec![number(tag::INSTANCE, 6 * t + 3 * e + z + 1)], "the order of InstanceNumber");
    sorted(&|t, e, z| vec![number(tag::INSTANCE, 4 * z + 2 * t + e + 1)], "the order of InstanceNumber");
    sorted(
        &|t, e, z| vec![number(tag::ECHO_NUMBERS, e + 1), number(tag::INSTANCE, 6 * t + 2 * z + e)],
        "EchoNumbers and the order of InstanceNumber",
    );
    sorted(
        &|t, e, _| vec![number(tag::FLIP_ANGLE, 5 + 10 * t), number(tag::INVERSION_TIME, 200 + 500 * e)],
        "FlipAngle and InversionTime",
    );
}

#[test]
fn slices_of_one_volume_may_differ_in_what_tells_volumes_apart() {
    // Slices that were measured in turn by two acquisitions.
    let turns = |z: i16| {
        of(
            &[number(tag::ACQUISITION, z % 2 + 1), number(tag::TRIGGER_TIME, 40 * z)],
            constant(f64::from(z), z),
        )
    };
    let (image, notes) = read(&[0, 1, 2, 3].map(turns));
    assert_eq!(image.data().shape(), [4, 3, 4]);
    assert!(notes.iter().all(|note| !note.contains("volumes")), "{notes:?}");
}

#[test]
fn volumes_that_lack_slices_or_lie_elsewhere_are_refused_by_name() {
    let all = || {
        echoes_and_times(|t, e, _| {
            vec![number(tag::TEMPORAL_POSITION, t + 1), number(tag::ECHO_NUMBERS, e + 1)]
        })
    };
    // File 4 is at (5 · 4 + 7) % 12 = 3: the first slice of the second echo.
    let mut missing = all();
    missing.remove(4);
    expect_refused(
        &missing,
        &[
            "the same slices in each volume",
            "2 of 3 in the volume of TemporalPositionIdentifier 1, EchoNumbers 2",
        ],
    );
    let mut aside = all();
    for moved in aside.iter_mut().filter(|slice| {
        slice.extra
            == of(&[number(tag::TEMPORAL_POSITION, 2), number(tag::ECHO_NUMBERS, 1)], constant(0.0, 0)).extra
    }) {
        moved.place[0] += 1.0;
    }
    expect_refused(
        &aside,
        &[
            "ImagePositionPatient",
            "that of the first volume, [-10.000, -20.000, 0.000]",
            "[-9.000, -20.000, 0.000]",
        ],
    );
    // One slice too many has no volume of its own.
    let extra = [all(), vec![all()[2].clone()]].concat();
    expect_refused(&extra, &["ImagePositionPatient", "that of 12 in 2"]);
}

#[test]
fn volumes_that_nothing_tells_apart_are_refused() {
    let twice = |told: &dyn Fn(i16) -> Vec<(Tag, String)>| -> Vec<Slice> {
        (0..6).map(|at| of(&told(at), constant(2.0 * f64::from(at % 3), at))).collect()
    };
    let refused = ["a place of its own for each slice, or numbers of echoes or times", "that of 0 in 3"];
    expect_refused(&twice(&|_| vec![]), &refused);
    // Copies have the numbers of the originals.
    expect_refused(&twice(&|at| vec![number(tag::INSTANCE, at % 3 + 1)]), &refused);
    expect_refused(
        &twice(&|at| vec![number(tag::ECHO_NUMBERS, 1), number(tag::TRIGGER_TIME, 40 * (at % 3))]),
        &refused,
    );
}

#[test]
fn each_volume_has_its_scales_and_is_resampled() {
    let tilted = |echo: i16, z: i16| {
        let height = [0.0, 2.0, 5.0, 8.0, 10.0][usize::from(z as u16)];
        let own = slice(height, &[z; 12]);
        let place = [own.place[0] + 0.5 * height, own.place[1], height];
        of(&[number(tag::ECHO_NUMBERS, echo)], Slice { place, scale: (f64::from(echo), 100.0), ..own })
    };
    let of_echo = |echo: i16| (0..5).map(|z| tilted(echo, z)).collect::<Vec<_>>();
    let (both, notes) = read(&[of_echo(2), of_echo(1)].concat());
    assert_eq!(notes.iter().filter(|note| note.contains("sheared")).count(), 1, "{notes:?}");
    for (at, echo) in [1, 2].into_iter().enumerate() {
        let (one, _) = read(&of_echo(echo));
        assert_eq!(both.geometry(), one.geometry());
        let own = both.data().index_axis(Axis(0), at).to_owned();
        // Outside lies the lowest value of all.
        assert_eq!(own, *one.data());
    }
}
