//! Phases that are known, an f64 oracle, and images that tell nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::f64::consts::{PI, TAU};

use ndarray::Array2;
use rayspin_core::{C32, C64};

use super::super::{ReadoutHeads, Readouts};
use super::*;
use crate::mri::{Acquisition, Counters, EncodedSpace, Encoding, Flags, Label, TrajectoryKind};

/// Rectangles `[x, y, width, height, strength]`, in fields of view.
const MIDDLE: [[f64; 5]; 2] = [[0.02, -0.03, 0.5, 0.42, 1.0], [-0.1, 0.08, 0.15, 0.1, 0.9]];
/// Half of it lies in the middle half of the field of view along the lines.
const ASIDE: [[f64; 5]; 2] = [[0.02, 0.25, 0.5, 0.42, 1.0], [-0.1, 0.25, 0.15, 0.1, 0.9]];

/// k-space of rectangles.
fn signal(object: &[[f64; 5]], coil: usize, kx: f64, ky: f64) -> C64 {
    let sinc = |x: f64| if x.abs() < 1e-9 { 1.0 } else { (PI * x).sin() / (PI * x) };
    let rectangle = |[x, y, width, height, strength]: &[f64; 5]| {
        let size = strength * width * height * sinc(kx * width) * sinc(ky * height);
        let coil = coil as f64;
        C64::from_polar(size * (1.0 + 0.5 * coil * x), coil - TAU * (kx * x + ky * y))
    };
    object.iter().map(rectangle).sum()
}

/// An echo-planar image.
struct Train {
    n: usize,
    lines: usize,
    object: [[f64; 5]; 2],
    constant: f64,
    shift: f64,
    /// Whether a line runs backwards.
    reversed: fn(usize) -> bool,
}

fn odd(line: usize) -> bool {
    line % 2 == 1
}

impl Train {
    fn acquisitions(&self) -> Vec<Acquisition> {
        let Self { n, lines, constant, shift, .. } = *self;
        let readout = |line: usize| {
            let reversed = (self.reversed)(line);
            let ky = line as f64 - (lines / 2) as f64;
            let (turn, shift) = if reversed { (constant, shift) } else { (0.0, 0.0) };
            let data = Array2::from_shape_fn((2, n), |(coil, sample)| {
                let rising = if reversed { n - 1 - sample } else { sample };
                let kx = rising as f64 - (n / 2) as f64 - shift;
                let value = signal(&self.object, coil, kx, ky) * C64::from_polar(1.0, turn);
                C32::new(value.re as f32, value.im as f32)
            });
            Acquisition {
                flags: if reversed { Flags::REVERSE } else { Flags::default() },
                counters: Counters { step_1: line as u16, ..Counters::default() },
                encoding: 0,
                centre_sample: n / 2,
                discard_pre: 0,
                discard_post: 0,
                sample_time_us: 5.0,
                time_stamp: 0,
                position: [0.0; 3],
                read_dir: [1.0, 0.0, 0.0],
                phase_dir: [0.0, 1.0, 0.0],
                slice_dir: [0.0, 0.0, 1.0],
                data: data.into_shared(),
                trajectory: None,
            }
        };
        (0..lines).map(readout).collect()
    }
}

/// What the entropy tells of reversed readouts among acquisitions.
fn told(acquisitions: &[Acquisition], lines: usize, linear: bool) -> Told {
    found(acquisitions, lines, linear).reversed
}

/// What the entropy tells of acquisitions, whose readouts may be changed before.
fn found(acquisitions: &[Acquisition], lines: usize, linear: bool) -> Found {
    let n = acquisitions[0].data.ncols();
    let space = EncodedSpace { matrix: [n, lines, 1], fov_mm: [200.0, 200.0, 5.0] };
    let encoding = Encoding {
        encoded: space,
        recon: space,
        trajectory: TrajectoryKind::Epi,
        step_1: None,
        step_2: None,
        slice: None,
        repetition: None,
        acceleration: None,
        ramps: None,
        places: None,
    };
    let heads = ReadoutHeads::default();
    let each: Vec<(usize, &Acquisition)> = acquisitions.iter().enumerate().collect();
    phase_of(&Readouts::new(Label::default(), encoding, &heads, &each, &[]), linear)
}

/// The entropy of the image with this phase taken off, by plain sums.
fn oracle(acquisitions: &[Acquisition], lines: usize, constant: f64, shift: f64) -> f64 {
    let n = acquisitions[0].data.ncols();
    let mut powers = vec![0.0; n * lines];
    for coil in 0..2 {
        let column = |x: usize| -> Vec<C64> {
            let place = x as f64 - (n / 2) as f64;
            let hybrid = |readout: &Acquisition| -> C64 {
                let reversed = readout.flags.contains(Flags::REVERSE);
                let sum: C64 = (0..n)
                    .map(|sample| {
                        let rising = if reversed { n - 1 - sample } else { sample };
                        let turn = TAU * (rising as f64 - (n / 2) as f64) * place / n as f64;
                        wide(readout.data[[coil, sample]]) * C64::from_polar(1.0, turn)
                    })
                    .sum();
                let phase = if reversed { constant + TAU * shift * place / n as f64 } else { 0.0 };
                sum * C64::from_polar(1.0, -phase)
            };
            acquisitions.iter().map(hybrid).collect()
        };
        for x in 0..n {
            let values = column(x);
            for y in 0..lines {
                let sum: C64 = values
                    .iter()
                    .enumerate()
                    .map(|(line, value)| value * C64::from_polar(1.0, TAU * (line * y) as f64 / lines as f64))
                    .sum();
                powers[x * lines + y] += sum.norm_sqr();
            }
        }
    }
    let energy: f64 = powers.iter().sum();
    let share = |power: &f64| (power / energy).sqrt();
    powers.iter().map(share).map(|m| if m > 0.0 { -m * m.ln() } else { 0.0 }).sum()
}

/// The difference of two phases, from −π to π.
fn between(a: f64, b: f64) -> f64 {
    (a - b + PI).rem_euclid(TAU) - PI
}

#[test]
fn known_phases_are_found() {
    let even: fn(usize) -> bool = |line| line.is_multiple_of(2);
    for (n, lines) in [(32, 32), (33, 32), (40, 31), (48, 45)] {
        for (reversed, constant, shift) in
            [(odd as fn(usize) -> bool, 0.3, 0.4), (even, -1.1, -1.5), (odd, 0.0, 2.6), (even, 1.3, 0.0)]
        {
            let train = Train { n, lines, object: MIDDLE, constant, shift, reversed };
            let acquisitions = train.acquisitions();
            let case = format!("{n} × {lines}, {constant} {shift}");
            let Told::Phase { constant: a, shift: s, .. } = told(&acquisitions, lines, true) else {
                panic!("{case}: {:?}", told(&acquisitions, lines, true))
            };
            assert!(between(a, constant).abs() < 0.06 && (s - shift).abs() < 0.12, "{case}: {a} {s}");
            // The entropy is least where plain sums have it.
            let least = oracle(&acquisitions, lines, a, s);
            for (da, ds) in [(5e-3, 0.0), (-5e-3, 0.0), (0.0, 5e-3), (0.0, -5e-3)] {
                let beside = oracle(&acquisitions, lines, a + da, s + ds);
                assert!(beside > least - 1e-5 * least, "{case} {da} {ds}: {beside} {least}");
            }
        }
    }
}

#[test]
fn a_constant_alone_has_no_shift() {
    let train = Train { n: 32, lines: 32, object: MIDDLE, constant: 0.8, shift: 0.0, reversed: odd };
    let Told::Phase { constant, shift, .. } = told(&train.acquisitions(), 32, false) else { panic!("told") };
    assert!((constant - 0.8).abs() < 0.03 && shift == 0.0, "{constant} {shift}");
}

#[test]
fn the_middle_settles_half_a_turn_and_else_the_smaller_phase_does() {
    let of = |object, constant| {
        let train = Train { n: 32, lines: 32, object, constant, shift: 0.7, reversed: odd };
        told(&train.acquisitions(), 32, true)
    };
    for constant in [2.9, 0.3, -2.2, PI] {
        let Told::Phase { constant: a, by, .. } = of(MIDDLE, constant) else { panic!("{constant}") };
        assert!(between(a, constant).abs() < 0.06 && by == By::Middle, "{constant}: {a} {by:?}");
    }
    let Told::Phase { constant: a, by, .. } = of(ASIDE, 2.9) else { panic!("told") };
    assert!(between(a, 2.9 - PI).abs() < 0.1 && by == By::Smaller, "{a} {by:?}");
}

#[test]
fn shots_whose_lines_interleave_are_aligned() {
    // Two shots of alternating lines, and four: neighbours of one direction.
    for reversed in [(|line| line / 2 % 2 == 1) as fn(usize) -> bool, |line| line / 4 % 2 == 1] {
        for (constant, shift) in [(0.4, -0.8), (-0.9, 1.7)] {
            let train = Train { n: 32, lines: 48, object: MIDDLE, constant, shift, reversed };
            let Told::Phase { constant: a, shift: s, .. } = told(&train.acquisitions(), 48, true) else {
                panic!("{constant}")
            };
            assert!(
                between(a, constant).abs() < 0.06 && (s - shift).abs() < 0.12,
                "{constant} {shift}: {a} {s}"
            );
        }
    }
}

#[test]
fn shots_have_phases_of_their_own() {
    let drifts = [0.0, 0.2, -0.15, 0.3];
    let train =
        Train { n: 32, lines: 48, object: MIDDLE, constant: 0.4, shift: 0.6, reversed: |l| l / 4 % 2 == 1 };
    let still = train.acquisitions();
    // In the order of time: shot by shot, upwards or downwards.
    for down in [false, true] {
        let mut order: Vec<usize> = (0..4).flat_map(|shot| (shot..48).step_by(4)).collect();
        if down {
            order.reverse();
        }
        let of = |drifts: [f64; 4]| -> Vec<Acquisition> {
            let turned = |&line: &usize| {
                let turn = C64::from_polar(1.0, drifts[line % 4]);
                let mut one = still[line].clone();
                one.data = one.data.mapv(|value| narrow(wide(value) * turn)).into_shared();
                one
            };
            order.iter().map(turned).collect()
        };
        let moved = of(drifts);
        let Found { reversed: Told::Phase { constant, shift, .. }, shots } = found(&moved, 48, true) else {
            panic!("told")
        };
        assert!(between(constant, 0.4).abs() < 0.02 && (shift - 0.6).abs() < 0.05, "{constant} {shift}");
        assert_eq!(shots.len(), 48);
        for (phase, line) in shots.iter().zip(&order) {
            let expected = drifts[line % 4] - drifts[order[0] % 4];
            assert!(between(*phase, expected).abs() < 0.02, "{down} {line}: {phase} {expected}");
        }
        // Shots that agree stay as they are.
        assert_eq!(found(&of([0.1; 4]), 48, true).shots, []);
        // With a line that was measured twice, the energy depends on phases.
        let mut twice = moved;
        twice[0].counters.step_1 = twice[1].counters.step_1;
        assert_eq!(found(&twice, 48, true).shots, []);
    }
}

#[test]
fn trains_tell_where_shots_start() {
    assert_eq!(shots(&[]), []);
    assert_eq!(shots(&[4]), [0]);
    assert_eq!(shots(&[0, 2, 4, 1, 3, 5]), [0, 0, 0, 1, 1, 1]);
    assert_eq!(shots(&[5, 3, 1, 4, 2, 2, 0]), [0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn every_other_line_is_enough() {
    let mut narrow = MIDDLE;
    narrow.iter_mut().for_each(|rectangle| rectangle[3] *= 0.5);
    let train =
        Train { n: 32, lines: 64, object: narrow, constant: 0.5, shift: 0.6, reversed: |l| l / 2 % 2 == 1 };
    let acquisitions: Vec<Acquisition> = train.acquisitions().into_iter().step_by(2).collect();
    let Told::Phase { constant: a, shift: s, .. } = told(&acquisitions, 64, true) else { panic!("told") };
    assert!(between(a, 0.5).abs() < 0.06 && (s - 0.6).abs() < 0.12, "{a} {s}");
}

#[test]
fn aligned_readouts_stay() {
    for object in [MIDDLE, ASIDE] {
        let train = Train { n: 33, lines: 40, object, constant: 0.0, shift: 0.0, reversed: odd };
        assert_eq!(told(&train.acquisitions(), 40, true), Told::Aligned);
    }
}

#[test]
fn noise_zeros_and_few_lines_tell_nothing() {
    let train = Train { n: 32, lines: 32, object: MIDDLE, constant: 0.5, shift: 0.5, reversed: odd };
    let acquisitions = train.acquisitions();
    let filled = |value: &mut dyn FnMut() -> C32| {
        let mut all = acquisitions.clone();
        all.iter_mut()
            .for_each(|one| one.data = Array2::from_shape_simple_fn((2, 32), &mut *value).into_shared());
        all
    };
    assert_eq!(told(&filled(&mut || C32::ZERO), 32, true), Told::Nothing);
    assert_eq!(told(&filled(&mut || C32::new(f32::MAX, 0.0)), 32, true), Told::Nothing);
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state as f32 / 4_294_967_296.0 - 0.5
    };
    assert_eq!(told(&filled(&mut || C32::new(random(), random())), 32, true), Told::Nothing);
    assert_eq!(told(&acquisitions[..15], 32, true), Told::Nothing);
    let mut forward = acquisitions.clone();
    forward.iter_mut().for_each(|one| one.flags = Flags::default());
    assert_eq!(told(&forward, 32, true), Told::Nothing);
    // Lines far beyond the matrix take no memory.
    let mut far = acquisitions;
    far[31].counters.step_1 = u16::MAX;
    assert_eq!(told(&far, 32, true), Told::Nothing);
}
