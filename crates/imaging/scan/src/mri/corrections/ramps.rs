//! Samples on ramps: echo-planar imaging samples while the readout gradient rises and falls, so that samples
//! are evenly spaced in time and not in k-space.
//!
//! ```text
//! A(t) = ∫₀ᵗ g,   t_s = delay + (s + ½) · dwell,   k_s = (A(t_s) − A(T/2)) / Δ,   Δ = (A(end) − A(start)) / n
//! d ← D(u, k) [D(k, k) + λ² I]⁻¹ (d · e^{+i2π x₀ (k_s − κ_s)}),   D(u, k) = sinc(w (u − k)),   u_j = j − n/2
//! ```
//!
//! g is the gradient over its full strength, T its duration, and n the samples of a readout. k counts cycles
//! per encoded field of view. D is the covariance of the samples of an object that evenly fills a part w of
//! this field of view, so the result is the best linear estimate of even samples, with noise of a variance
//! λ². w = 1 / max Δk is the part that the samples resolve at the gradient's full strength, where the
//! receiver's filter takes off the rest. Discarded samples take no part. Even samples that the kept ones do
//! not cover were not measured. Samples of a reversed readout have the same places in the order of time; j
//! counts in the direction in which k rises. Where a sequence tells the places k_s of each direction, these
//! are taken. Places that are one apart need no D: the transform along the readout shifts such samples to
//! whole numbers.
//!
//! The receiver's frequency puts the slice's centre x₀ (in encoded fields of view) into the middle of the
//! image, as if the gradient were at full strength all the time: κ_s = (s − (n − 1)/2) · dwell / Δ. The
//! phase above makes up for the difference; reversed readouts have the opposite one.
//!
//! H. Bruder, H. Fischer, H.-E. Reinfelder, F. Schmitt, *Image reconstruction for echo planar imaging with
//! nonequidistant k-space sampling*, Magn Reson Med 23:311, 1992.

use rayon::prelude::*;
use rayspin_core::{C32, Error, Result};
use rayspin_run::{About, Param, choices, params};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::places::{Evens, Places};
use super::turn::Turn;
use super::{Correction, GROUP, Known, Readout, ReadoutHeads, Readouts};
use crate::mri::raw::{Encoding, Flags, is_known, note};

/// Distance from the centre, in fields of view, from which on a note tells of the receiver's phase.
const OFF_CENTRE: f64 = 0.02;
/// Samples of a readout at most: the matrix of all pairs of them is factored.
const MOST: usize = 2048;

choices! {
    /// What becomes of samples on ramps.
    pub enum RampSampling {
        /// They are interpolated to even places.
        Regrid = "regrid", "They are interpolated to even places";
        /// They are taken as even.
        None = "none", "They are taken as evenly spaced";
    }
}

params! {
    /// Samples that were taken while the readout gradient ramped are interpolated to even places.
    pub struct Ramp {
        /// What becomes of them.
        ramp_sampling: RampSampling = RampSampling::Regrid => Param::new(GROUP, "What becomes of samples that were taken while the readout gradient ramped")
            .details("The header tells the ramps, or the sequence tells the places of samples.").rare(),
    }
}

impl Correction for Ramp {
    fn about(&self) -> About {
        About {
            name: "ramp-sampling",
            help: "Interpolates samples that were taken while the readout gradient ramped to even places",
        }
    }

    fn idle(&self, scan: &Known<'_>) -> Option<String> {
        if self.ramp_sampling == RampSampling::None {
            Some("samples on ramps stay as they are (`--ramp-sampling none`)".into())
        } else if scan.encoding.ramps.is_none() && scan.encoding.places.is_none() {
            Some("the header states no samples on ramps of a gradient".into())
        } else {
            None
        }
    }

    fn bytes(&self, _heads: &ReadoutHeads, encoding: &Encoding, readouts: u64) -> u64 {
        // Readouts are copied.
        let stated = encoding.ramps.is_some() || encoding.places.is_some();
        if self.ramp_sampling == RampSampling::Regrid && stated { readouts } else { 0 }
    }

    fn readouts(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) -> Result<()> {
        let Readouts { encoding, each, references, interpolated, .. } = readouts;
        let samples = match (&encoding.places, &encoding.ramps) {
            _ if self.ramp_sampling == RampSampling::None => return Ok(()),
            (None, None) => return Ok(()),
            (Some(places), _) => places.forward.len(),
            (None, Some(ramps)) => ramps.samples,
        };
        say_even(each, samples, notes);
        let on_ramps = |readout: &Readout<'_>| stands(readout, samples) == Stands::OnRamps;
        let mut sampled: Vec<&mut Readout<'_>> =
            each.iter_mut().chain(references).filter(|readout| on_ramps(readout)).collect();
        if sampled.is_empty() {
            return Ok(());
        }
        let places = match (&encoding.places, &encoding.ramps) {
            (Some(places), _) => Places::stated(places),
            (None, ramps) => ramps.as_ref().and_then(Places::of),
        };
        let Some(places) = places else {
            note(
                notes,
                "the header's ramps of the readout gradient cannot be, and samples are taken as even",
            );
            return Ok(());
        };
        if let Some(offsets) = places.offsets() {
            let turns = offsets.map(|(centre, offset)| (centre, Turn::new(samples, 0.0, -offset)));
            sampled.par_iter_mut().for_each(|readout| {
                let (centre, turn) = &turns[usize::from(readout.reversed)];
                turn.apply(readout);
                readout.centre = *centre;
            });
            return Ok(());
        }
        if samples > MOST {
            let expected = format!("at most {MOST} (`--ramp-sampling none` takes them as even)");
            return Err(Error::value("samples of a readout on ramps", expected, samples));
        }
        let mut evens: BTreeMap<(usize, usize, bool), Evens> = BTreeMap::new();
        let mut turns: BTreeMap<u64, Vec<C32>> = BTreeMap::new();
        for readout in &sampled {
            if let Entry::Vacant(entry) = evens.entry(form(readout)) {
                entry.insert(places.evens(readout.kept.clone(), readout.reversed)?);
            }
            let off = off_centre(readout, encoding);
            turns.entry(off.to_bits()).or_insert_with(|| places.turns(off));
        }
        sampled.par_iter_mut().for_each(|readout| {
            let off = off_centre(readout, encoding).to_bits();
            if let (Some(evens), Some(turns)) = (evens.get(&form(readout)), turns.get(&off)) {
                apply(readout, evens, turns);
            }
        });
        *interpolated = true;
        let text = "samples on the ramps of the readout gradient are interpolated to even places (`--ramp-sampling none` leaves them)";
        note(notes, text);
        let farthest = turns.keys().map(|off| f64::from_bits(*off).abs()).fold(0.0, f64::max);
        if farthest > OFF_CENTRE && places.receiver.is_some() {
            let distance = farthest * encoding.encoded.fov_mm[0];
            let text = format!(
                "slices lie up to {distance:.0} mm off the centre along the readout: the phase that the receiver's frequency adds on ramps is taken off, with the sign that the header's directions give"
            );
            note(notes, &text);
        }
        Ok(())
    }
}

/// How the samples of a readout lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    OnRamps,
    /// The readout has another number of samples than the header's ramps.
    OtherSamples,
    /// The sequence marks the readout as even.
    MarkedEven,
    /// Along a trajectory.
    Trajectory,
}

fn stands(readout: &Readout<'_>, samples: usize) -> Stands {
    if readout.trajectory.is_some() {
        Stands::Trajectory
    } else if readout.flags.contains(Flags::EVENLY_SAMPLED) {
        Stands::MarkedEven
    } else if readout.data.ncols() != samples {
        Stands::OtherSamples
    } else {
        Stands::OnRamps
    }
}

/// Says which readouts of an image are taken as even though the header states ramps.
fn say_even(readouts: &[Readout<'_>], samples: usize, notes: &mut Vec<String>) {
    let count = |wanted| readouts.iter().filter(|readout| stands(readout, samples) == wanted).count();
    let (other, marked) = (count(Stands::OtherSamples), count(Stands::MarkedEven));
    if other > 0 {
        note(
            notes,
            format!(
                "the header's ramps of the readout gradient are for {samples} samples: {other} readouts of another number are taken as even"
            ),
        );
    }
    if marked > 0 {
        note(notes, format!("{marked} readouts are marked as evenly sampled, and stay as they are"));
    }
}

/// Readouts of one form have the same weights: the samples that are kept, and the direction.
fn form(readout: &Readout<'_>) -> (usize, usize, bool) {
    (readout.kept.start, readout.kept.end, readout.reversed)
}

/// The place of a readout's slice along the readout, in encoded fields of view.
fn off_centre(readout: &Readout<'_>, encoding: &Encoding) -> f64 {
    let along: f64 =
        readout.position.iter().zip(readout.read_dir).map(|(p, d)| f64::from(*p) * f64::from(d)).sum();
    let fov = encoding.encoded.fov_mm[0];
    if is_known(fov) && along.is_finite() { along / fov } else { 0.0 }
}

/// Interpolates the kept samples of all coils. The centre of k-space is then the middle sample.
fn apply(readout: &mut Readout<'_>, evens: &Evens, turns: &[C32]) {
    let (kept, reversed) = (readout.kept.clone(), readout.reversed);
    let turned = |(value, turn): (&C32, &C32)| value * if reversed { turn.conj() } else { *turn };
    for mut row in readout.change().data.rows_mut() {
        let samples: Vec<C32> = row.iter().zip(turns).skip(kept.start).take(kept.len()).map(turned).collect();
        for (value, weights) in row.iter_mut().zip(evens.weights.rows()) {
            *value = weights.iter().zip(&samples).map(|(weight, sample)| sample * *weight).sum();
        }
    }
    readout.centre = readout.data.ncols() / 2;
    readout.kept = evens.measured.clone();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::f64::consts::{FRAC_PI_2, TAU};

    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_core::C64;

    use super::super::places::area;
    use super::super::{Corrections, Value};
    use super::*;
    use crate::mri::{
        Acquisition, Counters, EncodedSpace, Facts, Frame, FrameOptions, Label, Limits, RampShape, Ramps,
        ReadoutPlaces, Samples, Scan, ScanHeader, TrajectoryKind,
    };

    /// Readouts of 160 samples. On each side, 56 of them lie on a ramp.
    fn ramps(shape: RampShape) -> Ramps {
        let (up_us, flat_us, down_us) = (160.0, 240.0, 160.0);
        Ramps { shape, up_us, flat_us, down_us, delay_us: 32.0, sampling_us: 496.0, samples: 160 }
    }

    #[test]
    fn the_area_is_the_integral_of_the_gradient() {
        for shape in [RampShape::Trapezoid, RampShape::Sinusoid] {
            let ramps = Ramps { down_us: 100.0, ..ramps(shape) };
            let gradient = |time: f64| {
                let part = (time / 160.0).min((500.0 - time) / 100.0).clamp(0.0, 1.0);
                match shape {
                    RampShape::Trapezoid => part,
                    RampShape::Sinusoid => (FRAC_PI_2 * part).sin(),
                }
            };
            let mut sum = 0.0;
            for step in 0..5000 {
                assert!((area(&ramps, 0.1 * f64::from(step)) - sum).abs() < 1e-4, "{shape:?} {step}");
                sum += 0.1 * gradient(0.1 * (f64::from(step) + 0.5));
            }
            assert!((area(&ramps, 900.0) - sum).abs() < 1e-4 && area(&ramps, -1.0) == 0.0);
        }
    }

    #[test]
    fn samples_on_ramps_become_even() {
        // Half of the encoded field of view holds the object, as with twofold oversampling.
        let object = |x: f64| if x.abs() < 0.22 { C64::new(1.0 + x, 3.0 * x * x) } else { C64::ZERO };
        let signal = |k: f64| -> C64 {
            let pixel = |number: i32| f64::from(number) / 1000.0;
            (-500..500).map(|x| object(pixel(x)) * C64::from_polar(1e-3, -TAU * k * pixel(x))).sum()
        };
        for shape in [RampShape::Trapezoid, RampShape::Sinusoid] {
            let places = Places::of(&ramps(shape)).unwrap();
            let (n, measured) =
                (places.k[0].len(), places.k[0].iter().map(|k| signal(*k)).collect::<Vec<C64>>());
            for (kept, reversed) in [(0..n, false), (0..n, true), (9..n - 4, false)] {
                let middle = if reversed { n / 2 - 1 } else { n / 2 };
                let evens = places.evens(kept.clone(), reversed).unwrap();
                let (mut off, mut raw, mut energy) = (0.0, 0.0, 0.0);
                for even in evens.measured.clone() {
                    let wanted = signal(even as f64 - middle as f64);
                    let weights = evens.weights.row(even);
                    let samples = weights.iter().zip(&measured[kept.clone()]);
                    let estimate: C64 = samples.map(|(w, d)| d * f64::from(*w)).sum();
                    off += (estimate - wanted).norm_sqr();
                    raw += (measured[even] - wanted).norm_sqr();
                    energy += wanted.norm_sqr();
                }
                let case = format!("{shape:?} {kept:?} {reversed}");
                assert!(
                    off < 1e-5 * energy && raw > 0.01 * energy,
                    "{case}: {} {}",
                    off / energy,
                    raw / energy
                );
                // Discarded samples on ramps cover fewer even ones.
                let lost = n - evens.measured.len();
                assert!(if kept.len() == n { lost <= 1 } else { (3..13).contains(&lost) }, "{case}: {lost}");
            }
        }
    }

    /// The echo of an asymmetric window lies at the middle even sample. The first places were not measured.
    #[test]
    fn the_centre_is_the_middle_sample_of_any_window() {
        let window = Ramps { delay_us: 200.0, sampling_us: 328.0, ..ramps(RampShape::Trapezoid) };
        let places = Places::of(&window).unwrap();
        let n = places.k[0].len();
        let echo: Vec<C64> = places.k[0].iter().map(|k| C64::from((-(0.05 * k).powi(2)).exp())).collect();
        let evens = places.evens(0..n, false).unwrap();
        let at = |even: usize| -> f64 {
            evens.weights.row(even).iter().zip(&echo).map(|(w, d)| d.re * f64::from(*w)).sum()
        };
        let measured = evens.measured.clone();
        let peak = measured.clone().max_by(|a, b| at(*a).total_cmp(&at(*b)));
        assert_eq!(peak, Some(n / 2));
        assert!(measured.start > n / 8 && measured.end == n, "{measured:?}");
    }

    /// A scan of two directions whose slice lies off the centre. Its samples are even, or lie on ramps.
    fn scan(ramps: Option<Ramps>, flags: Flags) -> Scan {
        const LINES: u16 = 8;
        let (n, off) = (160, 0.03);
        let places = Places::of(&self::ramps(RampShape::Trapezoid)).unwrap();
        let even = |s: usize, reversed: bool| s as f64 - if reversed { n - 1 - n / 2 } else { n / 2 } as f64;
        let (on_ramps, receiver) = (ramps.is_some(), places.receiver.as_ref().unwrap());
        let signal = |k: f64| C64::from_polar((-(0.05 * k).powi(2)).exp(), 0.3 * k);
        let line = |line: u16| {
            let reversed = line % 2 == 1;
            let direction = if reversed { -1.0 } else { 1.0 };
            let samples = (0..n).map(|s| {
                let k = direction * if on_ramps { places.k[0][s] } else { even(s, reversed) };
                let receiver = if on_ramps { direction * receiver[s] } else { k };
                let value =
                    signal(k) * C64::from_polar(1.0 / f64::from(1 + line), TAU * off * (receiver - k));
                C32::new(value.re as f32, value.im as f32)
            });
            Acquisition {
                flags: if reversed { flags.with(Flags::REVERSE) } else { flags },
                counters: Counters { step_1: line, ..Counters::default() },
                encoding: 0,
                centre_sample: n / 2,
                discard_pre: 0,
                discard_post: 0,
                sample_time_us: 3.1,
                time_stamp: 0,
                position: [(off * 400.0) as f32, 0.0, 0.0],
                read_dir: [1.0, 0.0, 0.0],
                phase_dir: [0.0, 1.0, 0.0],
                slice_dir: [0.0, 0.0, 1.0],
                data: Array2::from_shape_vec((1, n), samples.collect()).unwrap().into_shared(),
                trajectory: None,
            }
        };
        let lines = usize::from(LINES);
        let encoded = EncodedSpace { matrix: [n, lines, 1], fov_mm: [400.0, 200.0, 5.0] };
        let recon = EncodedSpace { matrix: [n / 2, lines, 1], fov_mm: [200.0, 200.0, 5.0] };
        let step_1 = Some(Limits { minimum: 0, maximum: lines - 1, centre: lines / 2 });
        let trajectory = TrajectoryKind::Epi;
        let (step_2, slice, repetition, acceleration) = (None, None, None, None);
        let places = None;
        let encoding = Encoding {
            encoded,
            recon,
            trajectory,
            step_1,
            step_2,
            slice,
            repetition,
            acceleration,
            ramps,
            places,
        };
        let header = ScanHeader { encodings: vec![encoding], ..ScanHeader::default() };
        Scan { header, acquisitions: (0..LINES).map(line).collect(), notes: Vec::new() }
    }

    /// The grid of the scan's image, and notes.
    fn grid(scan: &Scan, sampling: &'static str) -> (Vec<C32>, Vec<String>) {
        let mut corrections = Corrections::default();
        corrections.set("ramp_sampling", Value::Choice(sampling)).unwrap();
        let options = FrameOptions { corrections, ..FrameOptions::default() };
        let mut notes = Vec::new();
        let frame = scan.frames().unwrap().assemble(Label::default(), &options, &mut notes).unwrap();
        let Samples::Cartesian { kspace, .. } = frame.samples else { unreachable!("it is on a grid") };
        (kspace.into_iter().collect(), notes)
    }

    #[test]
    fn images_of_both_directions_are_those_of_even_samples() {
        let apart = |a: &[C32], b: &[C32]| {
            let energy = |values: &mut dyn Iterator<Item = C32>| values.map(|v| v.norm_sqr()).sum::<f32>();
            (energy(&mut a.iter().zip(b).map(|(a, b)| a - b)) / energy(&mut b.iter().copied())).sqrt()
        };
        let (wanted, _) = grid(&scan(None, Flags::default()), "regrid");
        let ramped = scan(Some(ramps(RampShape::Trapezoid)), Flags::default());
        let (regridded, notes) = grid(&ramped, "regrid");
        assert!(apart(&regridded, &wanted) < 5e-3, "{}", apart(&regridded, &wanted));
        assert!(notes.iter().any(|note| note.contains("--ramp-sampling none")), "{notes:?}");
        let (left, _) = grid(&ramped, "none");
        assert!(apart(&left, &wanted) > 0.05, "{}", apart(&left, &wanted));
        // Readouts that are marked as even, and readouts of another number of samples, stay as they are.
        let even = scan(Some(ramps(RampShape::Trapezoid)), Flags::EVENLY_SAMPLED);
        let others = scan(Some(Ramps { samples: 128, ..ramps(RampShape::Trapezoid) }), Flags::default());
        for (scan, word) in [(even, "marked as evenly sampled"), (others, "are for 128 samples: 8 readouts")]
        {
            let (stay, notes) = grid(&scan, "regrid");
            assert_eq!(stay, left);
            assert!(notes.iter().any(|note| note.contains(word)), "{notes:?}");
        }
        // Garbage in samples that are discarded reaches no even sample.
        let discarding = |garbage: C32| {
            let mut scan = scan(Some(ramps(RampShape::Trapezoid)), Flags::default());
            for readout in &mut scan.acquisitions {
                (readout.discard_pre, readout.discard_post) = (6, 4);
                let mut data = readout.data.to_owned();
                data.slice_mut(ndarray::s![.., ..6]).fill(garbage);
                data.slice_mut(ndarray::s![.., 156..]).fill(garbage);
                readout.data = data.into_shared();
            }
            grid(&scan, "regrid").0
        };
        let clean = discarding(C32::new(0.0, 0.0));
        assert_eq!(discarding(C32::new(1e3, -1e3)), clean);
        assert!(apart(&clean, &wanted) < 5e-3, "{}", apart(&clean, &wanted));
    }

    #[test]
    fn frequencies_that_interpolation_empties_tell_no_noise() {
        let mut scan = scan(Some(ramps(RampShape::Trapezoid)), Flags::default());
        // Even numbers of standard deviation 0.1.
        let (std, mut rng) = (0.1f32, ChaCha8Rng::seed_from_u64(5));
        let mut number = || (rng.random::<f32>() - 0.5) * 12f32.sqrt() * std;
        for readout in &mut scan.acquisitions {
            let mut data = readout.data.to_owned();
            data.mapv_inplace(|value| value + C32::new(number(), number()));
            readout.data = data.into_shared();
        }
        let frame = |sampling: &'static str| {
            let mut corrections = Corrections::default();
            corrections.set("ramp_sampling", Value::Choice(sampling)).unwrap();
            let options = FrameOptions { corrections, ..FrameOptions::default() };
            scan.frames().unwrap().assemble(Label::default(), &options, &mut Vec::new()).unwrap()
        };
        let told = |frame: &Frame| Facts::of(frame, None, 1).unwrap().noise.map(|noise| noise.sample_std);
        let (even, left) = (frame("regrid"), frame("none"));
        assert_eq!((even.interpolated, left.interpolated), (true, false));
        assert!(told(&even).is_none_or(|told| told > 0.5 * f64::from(std)), "{:?}", told(&even));
        // The edge would have told far less.
        let edge = told(&Frame { interpolated: false, ..even }).unwrap();
        assert!(edge < 0.1 * f64::from(std), "{edge}");
    }

    #[test]
    fn the_receivers_frequency_is_made_up_for() {
        let places = Places::of(&ramps(RampShape::Trapezoid)).unwrap();
        // A point at the slice's centre has no phase but what the receiver took too much of.
        let off = 0.07;
        for ((k, receiver), turn) in
            places.k[0].iter().zip(places.receiver.as_ref().unwrap()).zip(places.turns(off))
        {
            let measured = C64::from_polar(1.0, -TAU * off * k + TAU * off * receiver);
            let turn = C64::new(turn.re.into(), turn.im.into());
            assert!((measured * turn - 1.0).norm() < 1e-5);
        }
    }

    #[test]
    fn stated_places_are_even_or_not_or_cannot_be() {
        let stated = |forward: &[f64], reversed: &[f64]| {
            Places::stated(&ReadoutPlaces { forward: forward.into(), reversed: reversed.into() })
        };
        let offsets = |forward: &[f64], reversed: &[f64]| stated(forward, reversed).unwrap().offsets();
        let near = |found: Option<[(usize, f64); 2]>, wanted: [(usize, f64); 2]| {
            let found = found.unwrap();
            found.iter().zip(wanted).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-9)
        };
        // Halves, a mirrored readout; and another one, whose samples lie between.
        let halves = [-1.5, -0.5, 0.5, 1.5];
        assert!(near(offsets(&halves, &[1.5, 0.5, -0.5, -1.5]), [(2, 0.5), (2, 0.5)]));
        assert!(near(offsets(&halves, &[1.2, 0.2, -0.8, -1.8]), [(2, 0.5), (2, 0.2)]));
        // An echo beside the middle.
        assert!(near(offsets(&[-1.0, 0.0, 1.0, 2.0], &[2.0, 1.0, 0.0, -1.0]), [(1, 0.0), (1, 0.0)]));
        assert_eq!(offsets(&[-1.5, -0.5, 0.4, 1.5], &[1.5, 0.5, -0.5, -1.5]), None);
        assert_eq!(offsets(&[3.0, 4.0, 5.0], &[5.0, 4.0, 3.0]), None);
        for (forward, reversed) in [
            (&[0.0, 1.0, 1.0][..], &[2.0, 1.0, 0.0][..]),
            (&[0.0, 1.0, 2.0], &[0.0, 1.0, 2.0]),
            (&[0.0, 1.0, f64::NAN], &[2.0, 1.0, 0.0]),
            (&[0.0, 1.0, f64::INFINITY], &[2.0, 1.0, 0.0]),
            (&[0.0, 1.0], &[2.0, 1.0, 0.0]),
            (&[0.0], &[0.0]),
            (&[], &[]),
        ] {
            assert!(stated(forward, reversed).is_none(), "{forward:?} {reversed:?}");
        }
    }

    #[test]
    fn times_that_cannot_be_are_refused() {
        let sound = ramps(RampShape::Trapezoid);
        assert!(Places::of(&sound).is_some());
        for broken in [
            Ramps { sampling_us: 0.0, ..sound },
            Ramps { sampling_us: 900.0, ..sound },
            Ramps { up_us: f64::NAN, ..sound },
            Ramps { delay_us: -1.0, ..sound },
            Ramps { samples: 1, ..sound },
            Ramps { up_us: 0.0, flat_us: 0.0, down_us: 0.0, sampling_us: 0.0, ..sound },
        ] {
            assert!(Places::of(&broken).is_none(), "{broken:?}");
        }
    }
}
