//! Headers that state the centre of k-space wrongly, or not at all.

use ndarray::Array2;
use proptest::prelude::*;
use rayspin_core::C32;

use super::{encoding, grid, only_frame, readout, scan};
use crate::mri::corrections::{Corrections, Value};
use crate::mri::{Acquisition, Encoding, Flags, FrameOptions, Label, Limits, Samples, Scan};

/// k-space of a small object off the centre of the image, without noise.
fn signal(k: [f64; 3]) -> C32 {
    let size: f64 = k.iter().zip([0.25, 0.25, 0.4]).map(|(k, width)| (k * width).powi(2)).sum();
    let turn = -std::f64::consts::TAU * (0.09 * k[0] - 0.06 * k[1] + 0.03 * k[2]);
    C32::from_polar((-size).exp() as f32, turn as f32)
}

/// A line of 20 samples from −8 to 11, or turned round.
fn line(step: u16, ky: f64, kz: f64, reversed: bool, centre: usize) -> Acquisition {
    let mut line = readout(20, step, 1);
    let k = |s: usize| if reversed { 11.0 - s as f64 } else { s as f64 - 8.0 };
    line.data = Array2::from_shape_fn((1, 20), |(_, s)| signal([k(s), ky, kz])).into_shared();
    line.centre_sample = centre;
    line.flags = if reversed { Flags::REVERSE } else { Flags::default() };
    line
}

fn lines(count: u16, at: usize, of: impl Fn(u16) -> (bool, usize)) -> Vec<Acquisition> {
    let each = |y: u16| {
        let (reversed, centre) = of(y);
        line(y, f64::from(y) - at as f64, 0.0, reversed, centre)
    };
    (0..count).map(each).collect()
}

/// That each measured place of the frame's grid has the signal that belongs there.
fn expect_in_place(scan: &Scan) -> Vec<String> {
    let (frame, notes) = only_frame(scan).unwrap();
    let (kspace, sampled) = grid(&frame);
    let (ny, nx) = (kspace.shape()[1], kspace.shape()[2]);
    assert!(sampled.iter().any(|&known| known));
    for ((at, value), known) in kspace.indexed_iter().zip(sampled) {
        let k = [at[2] as f64 - (nx / 2) as f64, at[1] as f64 - (ny / 2) as f64, 0.0];
        assert!(!known || (value - signal(k)).norm() < 1e-6, "{at:?}");
    }
    notes
}

fn with_centre(centre: Option<(usize, usize)>) -> Encoding {
    let mut encoding = encoding([24, 32, 1], [24, 32, 1]);
    encoding.step_1 = centre.map(|(maximum, centre)| Limits { minimum: 0, maximum, centre });
    encoding
}

#[test]
fn reversed_readouts_are_centred_by_either_convention() {
    let whole = || with_centre(Some((31, 16)));
    for (reversed_centre, said) in [(8, 0), (11, 1)] {
        // Both directions in one image.
        let alternating = lines(32, 16, |y| (y % 2 == 1, if y % 2 == 1 { reversed_centre } else { 8 }));
        assert_eq!(expect_in_place(&scan(whole(), alternating)).len(), said);
        // Reversed readouts alone: their energy tells.
        let reversed = lines(32, 16, |_| (true, reversed_centre));
        assert_eq!(expect_in_place(&scan(whole(), reversed.clone())).len(), said);
        // Echoes of their own: the readouts of the first tell how the readouts of the second are counted.
        let second = lines(32, 16, |_| (true, reversed_centre)).into_iter();
        let second = second.map(|mut line| {
            line.counters.contrast = 1;
            line
        });
        let both = scan(whole(), lines(32, 16, |_| (false, 8)).into_iter().chain(second).collect());
        let index = both.frames().unwrap();
        let mut notes = Vec::new();
        let labels: Vec<Label> = index.labels().collect();
        let frames = labels.iter().map(|&label| {
            let frame = index.assemble(label, &FrameOptions::default(), &mut notes).unwrap();
            grid(&frame).0.clone()
        });
        let frames: Vec<_> = frames.collect();
        assert_eq!(frames[0], frames[1]);
        assert_eq!(notes.len(), said, "{notes:?}");
    }
}

#[test]
fn what_is_given_replaces_what_a_header_says() {
    let reversed = scan(with_centre(Some((27, 16))), lines(28, 12, |_| (true, 8)));
    let mut corrections = Corrections::default();
    corrections.set("centre_line", Value::Count(12)).unwrap();
    corrections.set("reversed_centre", Value::Choice("stored")).unwrap();
    let options = FrameOptions { corrections, ..FrameOptions::default() };
    let frame = reversed.frames().unwrap().assemble(Label::default(), &options, &mut Vec::new()).unwrap();
    // The stored sample 8 is at the centre of the grid, and line 12.
    assert_eq!(grid(&frame).0[[0, 16, 12]], signal([3.0, 0.0, 0.0]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Half of k-space and more, from either side, with a centre that no header states.
    #[test]
    fn a_centre_of_lines_that_cannot_be_is_found(below in 6usize..=16, above in 6usize..=15, stated in 0usize..3) {
        let count = below + above + 1;
        let centre = match stated {
            0 => None,
            1 => Some((0, 0)),
            _ => Some((count - 1, 60_000)),
        };
        // Lines that end at neither side of k-space may begin at any.
        prop_assume!(below == 16 || above == 15);
        let found = expect_in_place(&scan(with_centre(centre), lines(count as u16, below, |_| (false, 8))));
        prop_assert_eq!(found.len(), 1, "{:?}", found);
    }
}

#[test]
fn a_centre_that_the_energy_contradicts_is_said() {
    let partial = |centre| scan(with_centre(Some((20, centre))), lines(21, 5, |_| (false, 8)));
    assert!(expect_in_place(&partial(5)).is_empty());
    let (_, notes) = only_frame(&partial(16)).unwrap();
    assert!(
        matches!(&notes[..], [note] if note.contains("peaks at 5") && note.contains("--centre-line 5")),
        "{notes:?}"
    );
    // Half of k-space, from its centre on.
    assert!(expect_in_place(&scan(with_centre(Some((14, 0))), lines(15, 0, |_| (false, 8)))).is_empty());
}

#[test]
fn part_of_an_echo_without_a_centre_is_centred_by_its_energy() {
    for stated in [0, 20, 60_000] {
        let found = expect_in_place(&scan(with_centre(Some((31, 16))), lines(32, 16, |_| (false, stated))));
        assert!(matches!(&found[..], [note] if note.ends_with("8 assumed")), "{found:?}");
    }
}

#[test]
fn readouts_of_two_lengths_whose_centres_contradict_their_energy_are_named() {
    let notes = |stated: usize| {
        let cut = |(y, mut line): (usize, Acquisition)| {
            if y % 2 == 1 {
                line.data = Array2::from_shape_fn((1, 16), |at| line.data[at]).into_shared();
                line.centre_sample = stated;
            }
            line
        };
        let mixed = lines(32, 16, |_| (false, 8)).into_iter().enumerate().map(cut).collect();
        only_frame(&scan(with_centre(Some((31, 16))), mixed)).unwrap().1
    };
    assert!(notes(8).is_empty(), "{:?}", notes(8));
    let wrong = notes(13);
    assert!(
        matches!(&wrong[..], [note] if note.contains("16 samples is 13") && note.contains("peaks at 8")),
        "{wrong:?}"
    );
    // Readouts of one length, cut on one side and centred on the other.
    let partial = only_frame(&scan(with_centre(Some((31, 16))), lines(32, 16, |_| (false, 15)))).unwrap().1;
    assert!(partial.iter().any(|note| note.contains("20 samples is 15")), "{partial:?}");
}

#[test]
fn partitions_of_a_trajectory_are_centred_by_their_energy() {
    let spokes = |centre| {
        let mut encoding = encoding([24, 24, 12], [24, 24, 12]);
        encoding.step_2 = Some(Limits { minimum: 0, maximum: 11, centre });
        let spoke = |(z, angle): (u16, usize)| {
            let (s, c) = (angle as f64 * 0.4).sin_cos();
            let mut spoke = line(angle as u16, 0.0, 0.0, false, 10);
            let radius = |sample: usize| sample as f64 * 1.2 - 12.0;
            let at = |sample: usize| [radius(sample) * c, radius(sample) * s, f64::from(z) - 6.0];
            spoke.data = Array2::from_shape_fn((1, 20), |(_, sample)| signal(at(sample))).into_shared();
            let point = |(sample, d): (usize, usize)| at(sample)[d] as f32 / 24.0;
            spoke.trajectory = Some(Array2::from_shape_fn((20, 2), point).into_shared());
            spoke.counters.step_2 = z;
            spoke
        };
        let all = (0..12).flat_map(|z| (0..8).map(move |angle| (z, angle)));
        scan(encoding, all.map(spoke).collect())
    };
    let points = |scan: &Scan| {
        let (frame, notes) = only_frame(scan).unwrap();
        let Samples::NonCartesian { trajectory, .. } = frame.samples else { panic!("expected a trajectory") };
        (trajectory.points().to_owned(), notes.len())
    };
    // The unit, which no header states either, comes from the columns of the file and not from the counters.
    let (wanted, said) = points(&spokes(6));
    assert_eq!((wanted.nrows(), said), (12 * 8 * 20, 1));
    assert_eq!(points(&spokes(0)), (wanted, 2));
}
