//! Echo-planar readouts: two directions, and what references tell of them.

use std::f64::consts::TAU;

use ndarray::Array2;
use rayspin_core::C32;
use rayspin_mri::corrections::{Corrections, Value};
use rayspin_mri::scan::{Counters, Encoding, Flags, FrameOptions, Label, Samples, Scan, TrajectoryKind};

use super::{COILS, LINES, NX, assembled, encoding, first, readout, scan};

/// What delays make of readouts of the two directions: a shift in samples, and a phase.
#[derive(Clone, Copy)]
struct Delays {
    shift: f64,
    phase: f64,
}

/// Line `y` of an object that ends within the field of view, and whose spectrum ends within the readout: a
/// shift loses nothing.
fn narrow(coil: usize, k: f64, y: usize) -> C32 {
    let size = (-(0.25 * k).powi(2) - (0.12 * (y as f64 - (LINES / 2) as f64)).powi(2)).exp();
    C32::from_polar((1.0 + coil as f64) as f32 * size as f32, (coil as f64 - TAU * 0.1 * k) as f32)
}

/// Readouts in two directions; echoes lie `shift` samples early or late, and reversed readouts have a phase.
/// Reference readouts, whose directions alternate from a reversed one on, have no phase encoding, and a phase
/// that grows by `drift` from each to the next.
fn echo_planar(Delays { shift, phase }: Delays, references: u16, drift: f64) -> Scan {
    let of = |reversed: bool, y: usize, turn: f64, flags: Flags| {
        let (off, turn) = if reversed { (-shift / 2.0, turn + phase) } else { (shift / 2.0, turn) };
        let data = Array2::from_shape_fn((COILS, NX), |(coil, x)| {
            let x = if reversed { NX - 1 - x } else { x };
            let value = narrow(coil, x as f64 - (NX / 2) as f64 + off, y);
            value * C32::from_polar(1.0, turn as f32)
        });
        let counters = Counters { step_1: y as u16, ..Counters::default() };
        let flags = if reversed { flags.with(Flags::REVERSE) } else { flags };
        let mut readout = readout(data, counters, flags);
        // In the order in which samples are stored.
        readout.centre_sample = if reversed { NX - 1 - NX / 2 } else { NX / 2 };
        readout
    };
    let reference =
        |at: u16| of(at.is_multiple_of(2), LINES / 2, drift * f64::from(at), Flags::PHASE_CORRECTION);
    let mut lines: Vec<_> = (0..references).map(reference).collect();
    lines.extend((0..LINES).map(|y| of(y % 2 == 1, y, 0.0, Flags::default())));
    scan(vec![Encoding { trajectory: TrajectoryKind::Epi, ..encoding(LINES) }], lines)
}

#[test]
fn echoes_that_are_not_corrected_are_said() {
    for (shift, references, said) in
        [(0.0, 0, None), (0.2, 0, None), (1.4, 0, Some("lie apart")), (0.0, 1, Some("1 phase-correction"))]
    {
        let scan = echo_planar(Delays { shift, phase: 0.0 }, references, 0.0);
        let (_, notes) = by(&scan, &[("epi_reference", "readouts")]);
        let notes: Vec<_> = notes.iter().filter(|note| !note.contains("--reversed-centre")).collect();
        assert_eq!(notes.len(), usize::from(said.is_some()), "{shift} {references}: {notes:?}");
        if let Some(said) = said {
            assert!(notes[0].contains(said) && notes[0].contains("ghosts"), "{notes:?}");
        }
    }
}

/// The grid of the first image with this part of the phase removed, and notes.
fn aligned(scan: &Scan, epi_phase: &'static str) -> (ndarray::ArrayD<C32>, Vec<String>) {
    by(scan, &[("epi_phase", epi_phase)])
}

/// The grid of the first image with these choices of corrections, and notes.
fn by(scan: &Scan, choices: &[(&str, &'static str)]) -> (ndarray::ArrayD<C32>, Vec<String>) {
    let mut corrections = Corrections::default();
    for (name, choice) in choices {
        corrections.set(name, Value::Choice(choice)).unwrap();
    }
    let options = FrameOptions { corrections, ..FrameOptions::default() };
    let (frame, notes) = assembled(scan, scan.frames().unwrap().labels().next().unwrap(), &options).unwrap();
    let Samples::Cartesian { kspace, .. } = frame.samples else { panic!("expected a grid") };
    (kspace, notes)
}

#[test]
fn reversed_readouts_take_the_phase_that_references_tell() {
    let apart = |a: &ndarray::ArrayD<C32>, b: &ndarray::ArrayD<C32>| {
        let energy = |all: &ndarray::ArrayD<C32>| all.iter().map(|v| f64::from(v.norm_sqr())).sum::<f64>();
        (energy(&(a - b)) / energy(b)).sqrt()
    };
    for (shift, phase, drift) in [(0.0, 0.7, 0.0), (0.8, -2.9, 0.3), (-1.3, 1.2, -0.5), (3.0, 3.1, 0.1)] {
        let delays = Delays { shift, phase };
        // All as the forward readouts are, which lie half the shift away.
        let mut wanted = echo_planar(delays, 0, 0.0);
        for (y, readout) in wanted.acquisitions.iter_mut().enumerate() {
            readout.data = Array2::from_shape_fn((COILS, NX), |(coil, x)| {
                let x = if y % 2 == 1 { NX - 1 - x } else { x };
                narrow(coil, x as f64 - (NX / 2) as f64 + shift / 2.0, y)
            })
            .into_shared();
        }
        let (wanted, _) = aligned(&wanted, "none");
        for references in [3, 5] {
            let scan = echo_planar(delays, references, drift);
            let before = scan.acquisitions[usize::from(references) + 1].data.clone();
            let (found, notes) = aligned(&scan, "linear");
            assert!(apart(&found, &wanted) < 2e-3, "{shift} {phase} {drift}: {}", apart(&found, &wanted));
            assert!(notes.iter().any(|note| note.contains("align the readouts")), "{notes:?}");
            // The scan keeps its own.
            assert_eq!(scan.acquisitions[usize::from(references) + 1].data, before);
            let (left, notes) = aligned(&scan, "none");
            assert!(apart(&left, &wanted) > 0.1 && notes.iter().any(|note| note.contains("not used")));
            let (constant, _) = aligned(&scan, "constant");
            assert_eq!(apart(&constant, &wanted) < 2e-3, shift == 0.0, "{shift}");
        }
        // Two references have the drift between them.
        let (two, _) = aligned(&echo_planar(delays, 2, 0.0), "linear");
        assert!(apart(&two, &wanted) < 2e-3);
    }
}

#[test]
fn references_of_noise_are_not_used() {
    let mut scan = echo_planar(Delays { shift: 0.6, phase: 0.5 }, 3, 0.0);
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state as f32 / 4_294_967_296.0 - 0.5
    };
    for readout in &mut scan.acquisitions[..3] {
        readout.data = Array2::from_shape_fn((COILS, NX), |_| C32::new(random(), random())).into_shared();
    }
    let (found, notes) = by(&scan, &[("epi_reference", "readouts")]);
    assert!(notes.iter().any(|note| note.contains("no phase in common")), "{notes:?}");
    assert_eq!(found, aligned(&scan, "none").0);
    // The image itself tells what they do not.
    let (found, notes) = aligned(&scan, "linear");
    assert!(notes.iter().any(|note| note.contains("no phase in common")), "{notes:?}");
    assert_eq!(found, by(&scan, &[("epi_reference", "entropy")]).0);
}

#[test]
fn the_entropy_aligns_readouts_without_references() {
    let apart = |a: &ndarray::ArrayD<C32>, b: &ndarray::ArrayD<C32>| {
        let energy = |all: &ndarray::ArrayD<C32>| all.iter().map(|v| f64::from(v.norm_sqr())).sum::<f64>();
        (energy(&(a - b)) / energy(b)).sqrt()
    };
    for (shift, phase) in [(0.8, 0.4), (-1.3, -1.2), (0.0, 0.9)] {
        let scan = echo_planar(Delays { shift, phase }, 5, 0.2);
        let (wanted, _) = aligned(&scan, "linear");
        let without = echo_planar(Delays { shift, phase }, 0, 0.0);
        let (found, notes) = aligned(&without, "linear");
        assert!(apart(&found, &wanted) < 0.03, "{shift} {phase}: {}", apart(&found, &wanted));
        assert!(apart(&aligned(&without, "none").0, &wanted) > 0.2);
        assert!(notes.iter().any(|note| note.contains("least entropy")), "{notes:?}");
        assert!(!notes.iter().any(|note| note.contains("lie apart")), "{notes:?}");
        assert_eq!(by(&scan, &[("epi_reference", "entropy")]).0, found);
    }
    // Readouts that are aligned stay as they are.
    let scan = echo_planar(Delays { shift: 0.0, phase: 0.0 }, 0, 0.0);
    assert_eq!(aligned(&scan, "linear"), aligned(&scan, "none"));
}

#[test]
fn readouts_without_phase_encoding_align_themselves() {
    let mut scan = echo_planar(Delays { shift: 1.2, phase: 0.7 }, 0, 0.0);
    let own = echo_planar(Delays { shift: 1.2, phase: 0.7 }, 3, 0.0);
    let both = [own.acquisitions[1].clone(), own.acquisitions[0].clone()];
    for (index, readout) in scan.acquisitions.iter_mut().enumerate() {
        *readout = both[index % 2].clone();
        readout.flags = readout.flags.without(Flags::PHASE_CORRECTION);
    }
    let (_, notes) = aligned(&scan, "none");
    assert!(notes.iter().any(|note| note.contains("contradict each other")), "{notes:?}");
    let (_, notes) = aligned(&scan, "linear");
    assert!(notes.iter().any(|note| note.contains("measured in both directions")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("contradict each other")), "{notes:?}");
}

/// Their mean with the line of the image would be of two directions, and lead the entropy astray.
#[test]
fn navigators_that_nothing_marks_tell_the_phase() {
    let apart = |a: &ndarray::ArrayD<C32>, b: &ndarray::ArrayD<C32>| {
        let energy = |all: &ndarray::ArrayD<C32>| all.iter().map(|v| f64::from(v.norm_sqr())).sum::<f64>();
        (energy(&(a - b)) / energy(b)).sqrt()
    };
    for (shift, phase) in [(0.0, 0.8), (0.0, -2.9), (1.2, 0.7)] {
        for navigators in [2, 3] {
            let mut scan = echo_planar(Delays { shift, phase }, navigators, 0.0);
            let (wanted, _) = aligned(&scan, "linear");
            for readout in &mut scan.acquisitions[..usize::from(navigators)] {
                readout.flags = readout.flags.without(Flags::PHASE_CORRECTION);
            }
            let (found, notes) = aligned(&scan, "linear");
            assert!(apart(&found, &wanted) < 2e-3, "{shift} {phase}: {}", apart(&found, &wanted));
            assert!(notes.iter().any(|note| note.contains("measured in both directions")), "{notes:?}");
            assert!(!notes.iter().any(|note| note.contains("contradict each other")), "{notes:?}");
            assert!(apart(&aligned(&scan, "none").0, &wanted) > 0.1);
            // The field turns the phase between navigators and the image; their line has both.
            for readout in &mut scan.acquisitions[..usize::from(navigators)] {
                readout.data.mapv_inplace(|value| value * C32::from_polar(1.0, 1.9));
            }
            let (mut found, _) = aligned(&scan, "linear");
            let mut wanted = wanted;
            for grid in [&mut found, &mut wanted] {
                grid.index_axis_mut(ndarray::Axis(1), LINES / 2).fill(C32::ZERO);
            }
            assert!(apart(&found, &wanted) < 2e-3, "{shift} {phase}: {}", apart(&found, &wanted));
        }
    }
}

#[test]
fn each_repetition_has_its_own_references() {
    let all = [(0.4, 0.5), (-0.9, 2.0)].map(|(shift, phase)| echo_planar(Delays { shift, phase }, 3, 0.1));
    let mut joined = all[0].clone();
    joined.acquisitions.extend(all[1].acquisitions.iter().cloned().map(|mut readout| {
        readout.counters.repetition = 1;
        readout
    }));
    let index = joined.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    let series = index.series(&labels, None, None).unwrap();
    for (at, alone) in all.iter().enumerate() {
        let frame = series.image(at, &FrameOptions::default(), &mut Vec::new()).unwrap();
        let Samples::Cartesian { kspace, .. } = frame.samples else { panic!("expected a grid") };
        assert_eq!(kspace, aligned(alone, "linear").0);
    }
    // A repetition without references takes the references of another.
    joined.acquisitions.retain(|readout| {
        readout.counters.repetition == 0 || !readout.flags.contains(Flags::PHASE_CORRECTION)
    });
    let index = joined.frames().unwrap();
    let mut notes = Vec::new();
    index.assemble(labels[1], &FrameOptions::default(), &mut notes).unwrap();
    assert!(notes.iter().any(|note| note.contains("align the readouts")), "{notes:?}");
}

#[test]
fn a_contrast_without_references_takes_those_of_its_own_repetition() {
    let delays = [(0.4, 0.5), (-0.9, 2.0)].map(|(shift, phase)| Delays { shift, phase });
    let mut joined = echo_planar(delays[0], 3, 0.1);
    joined.acquisitions.clear();
    for (repetition, delays) in delays.into_iter().enumerate() {
        for contrast in 0..2 {
            // References carry the first contrast alone.
            let echo = echo_planar(delays, if contrast == 0 { 3 } else { 0 }, 0.1);
            joined.acquisitions.extend(echo.acquisitions.into_iter().map(|mut readout| {
                (readout.counters.repetition, readout.counters.contrast) = (repetition as u16, contrast);
                readout
            }));
        }
    }
    let index = joined.frames().unwrap();
    for label in index.labels() {
        let frame = index.assemble(label, &FrameOptions::default(), &mut Vec::new()).unwrap();
        let Samples::Cartesian { kspace, .. } = frame.samples else { panic!("expected a grid") };
        let alone = echo_planar(delays[usize::from(label.repetition)], 3, 0.1);
        assert_eq!(kspace, aligned(&alone, "linear").0, "{label:?}");
    }
}

#[test]
fn references_lie_where_the_image_s_readouts_do() {
    let scan = echo_planar(Delays { shift: 0.8, phase: 0.4 }, 3, 0.0);
    let wanted = aligned(&scan, "linear").0;
    // A writer that leaves the centre of references out, and one that counts it otherwise.
    for centre in [0, NX / 2 + 3] {
        let mut other = scan.clone();
        other.acquisitions[..3].iter_mut().for_each(|reference| reference.centre_sample = centre);
        assert_eq!(aligned(&other, "linear").0, wanted, "{centre}");
    }
}

#[test]
fn references_may_begin_forwards() {
    let delays = Delays { shift: -1.1, phase: 0.9 };
    let mut scan = echo_planar(delays, 4, 0.2);
    let wanted = aligned(&scan, "linear").0;
    scan.acquisitions.remove(0);
    let apart = (&aligned(&scan, "linear").0 - &wanted).iter().map(|v| v.norm()).fold(0.0, f32::max);
    assert!(apart < 1e-4, "{apart}");
}

#[test]
fn echo_planar_readouts_along_a_trajectory_are_said_to_be_left() {
    let mut scan = echo_planar(Delays { shift: 0.8, phase: 0.4 }, 3, 0.0);
    for readout in &mut scan.acquisitions {
        let y = f32::from(readout.counters.step_1) - LINES as f32 / 2.0;
        let reversed = readout.flags.contains(Flags::REVERSE);
        let x = |at: usize| if reversed { NX - 1 - at } else { at } as f32 - NX as f32 / 2.0;
        let points = Array2::from_shape_fn((NX, 2), |(at, axis)| if axis == 0 { x(at) } else { y });
        readout.trajectory = Some(points.into_shared());
    }
    scan.header.encodings[0].trajectory = TrajectoryKind::Other;
    let (_, notes) = first(&scan);
    let said =
        notes.iter().filter(|note| note.contains("not used along a trajectory") && note.contains("ghosts"));
    assert_eq!(said.count(), 1, "{notes:?}");
}
