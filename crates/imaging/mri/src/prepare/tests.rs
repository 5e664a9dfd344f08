#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use ndarray::{Array2, ArrayD, Axis, IxDyn};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Geometry, Monitor};
use rayspin_device::Device;

use super::*;
use crate::corrections::{Noise, NoiseMeasurement, measure};
use crate::scan::{Flags, FrameOptions, Samples, Scan};
use crate::simulate::{SimulateOptions, Simulation, neighbour_covariance, simulate};

fn device() -> Device {
    Device::cpu_with_threads(2).unwrap()
}

fn noisy(readouts: usize, correlation: f64) -> Simulation {
    let mut covariance = neighbour_covariance(4, correlation).unwrap();
    covariance[[2, 2]] = C64::from(3.0);
    let options = SimulateOptions {
        matrix: [32, 24, 1],
        coils: 4,
        snr: Some(30.0),
        noise_covariance: Some(covariance),
        noise_readouts: readouts,
        ..SimulateOptions::default()
    };
    simulate(&options, &Monitor::silent()).unwrap()
}

fn with_noise(scan: &Scan) -> PrepareOptions {
    PrepareOptions { noise: Some(measure(scan)), ..PrepareOptions::default() }
}

fn measured(scan: &Scan) -> NoiseMeasurement {
    match measure(scan) {
        Noise::Measured(noise) => noise,
        other => panic!("{other:?}"),
    }
}

fn first_frame(scan: &Scan) -> Frame {
    let index = scan.frames().unwrap();
    let label = index.labels().next().unwrap();
    index.assemble(label, &FrameOptions::default(), &mut vec![]).unwrap()
}

fn grid(frame: &Frame) -> &ArrayD<C32> {
    match &frame.samples {
        Samples::Cartesian { kspace, .. } => kspace,
        Samples::NonCartesian { .. } => panic!("expected a grid"),
    }
}

/// The prepared coils of a frame on the grid, which every device gives.
fn prepared(preparation: &mut Preparation, frame: &Frame, notes: &mut Vec<String>) -> Result<ArrayD<C32>> {
    let mixing = preparation.mixing(&device(), frame, notes)?.unwrap();
    let all = mixing.on_host(&device(), &grid(frame).view())?;
    for device in rayspin_emu::devices().unwrap() {
        let rows = mixing.kept() / 2..mixing.kept();
        let found = mixing.of(&device, &grid(frame).view(), rows.clone()).unwrap().into_host().unwrap();
        let wanted = all.slice_axis(Axis(0), ndarray::Slice::from(rows));
        assert_eq!(found.shape(), wanted.shape());
        let apart: f64 = found.iter().zip(&wanted).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
        assert!(apart <= 1e-11 * energy(&all), "{}: {apart}", device.describe());
    }
    Ok(all)
}

/// Off-diagonal and diagonal deviation of a sample covariance from a multiple of 1.
fn unevenness(samples: ArrayView2<'_, C32>) -> f64 {
    let n = samples.nrows();
    let covariance = |i: usize, j: usize| -> C64 {
        let pairs = samples.row(i).iter().zip(samples.row(j)).map(|(a, b)| a * b.conj()).sum::<C32>();
        C64::new(pairs.re.into(), pairs.im.into())
    };
    let mean = (0..n).map(|i| covariance(i, i).re).sum::<f64>() / n as f64;
    let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    pairs
        .map(|(i, j)| (covariance(i, j) / mean - if i == j { C64::ONE } else { C64::ZERO }).norm())
        .fold(0.0, f64::max)
}

#[test]
fn noise_is_white_after_whitening_and_brightness_is_kept() {
    let simulation = noisy(40, 0.6);
    let measured = measured(&simulation.scan);
    assert_eq!((measured.samples, measured.readouts), (40 * 256, 40));
    assert!((measured.sample_std / simulation.noise_std - 1.0).abs() < 0.02, "{}", measured.sample_std);
    let mut notes = Vec::new();
    let preparation = Preparation::new(&with_noise(&simulation.scan), &mut notes).unwrap();
    assert!(notes[0].contains("10240 noise samples"), "{notes:?}");
    let noise: Vec<_> =
        simulation.scan.acquisitions.iter().filter(|a| a.flags.contains(Flags::NOISE)).collect();
    let views: Vec<_> = noise.iter().map(|a| a.data.view()).collect();
    let all = ndarray::concatenate(Axis(1), &views).unwrap();
    let map = preparation.map.as_ref().unwrap();
    let white = map.forward.dot(&all);
    assert!(unevenness(all.view()) > 0.3 && unevenness(white.view()) < 1e-4);
    // The readouts of the scan that the covariance was not taken from are white too.
    let power = |a: &Array2<C32>| a.iter().map(|v| f64::from(v.norm_sqr())).sum::<f64>() / a.len() as f64;
    let sigma = power(&white) / 2.0;
    assert!((sigma.sqrt() / measured.sample_std - 1.0).abs() < 0.01, "{}", sigma.sqrt());
    let maps = simulation.maps.clone().into_dyn();
    let label = Label::default();
    let there = preparation.maps_of_prepared(&label, maps.clone()).unwrap();
    let back = preparation.maps_of_scan(&label, there.clone(), 3).unwrap();
    assert!(maps.iter().zip(&back).all(|(a, b)| (a - b).norm() < 1e-5));
    assert!(maps.iter().zip(&there).any(|(a, b)| (a - b).norm() > 0.05));
}

#[test]
fn the_dwell_time_scales_the_noise() {
    let mut simulation = noisy(10, 0.0);
    let at_once = measured(&simulation.scan).sample_std;
    for readout in &mut simulation.scan.acquisitions {
        if readout.flags.contains(Flags::NOISE) {
            readout.sample_time_us *= 4.0;
        }
    }
    // Slower sampling has less noise: the images' own is twice what these readouts show.
    let slow = measured(&simulation.scan);
    assert_eq!(slow.dwell_ratio, Some(4.0));
    assert!((slow.sample_std / at_once - 2.0).abs() < 1e-9);
}

#[test]
fn noise_of_several_dwell_times_is_scaled_before_it_is_pooled() {
    let mut simulation = noisy(60, 0.5);
    let at_once = measured(&simulation.scan);
    let image = simulation.scan.acquisitions.iter().find(|a| a.flags.is_image()).unwrap().sample_time_us;
    let mut number = 0;
    for readout in &mut simulation.scan.acquisitions {
        if readout.flags.contains(Flags::NOISE) {
            let part = if number % 3 == 0 { 0.25 } else { 2.0 };
            number += 1;
            readout.sample_time_us = image * part;
            readout.data.mapv_inplace(|value| value / part.sqrt());
        }
    }
    let pooled = measured(&simulation.scan);
    assert_eq!((pooled.dwell_ratio, pooled.readouts), (Some(0.25), 60));
    assert!((pooled.sample_std / at_once.sample_std - 1.0).abs() < 1e-5, "{}", pooled.sample_std);
    for (found, wanted) in pooled.covariance.iter().zip(&at_once.covariance) {
        assert!((found * 0.25 - wanted).norm() < 1e-5 * at_once.covariance[[0, 0]].norm());
    }
    // A readout that states no time is not compared with the others.
    if let Some(noise) = simulation.scan.acquisitions.iter_mut().find(|a| a.flags.contains(Flags::NOISE)) {
        noise.sample_time_us = 0.0;
        noise.data.mapv_inplace(|value| value * 100.0);
    }
    let rest = measured(&simulation.scan);
    assert!(rest.readouts == 59 && (rest.sample_std / at_once.sample_std - 1.0).abs() < 0.05);
}

#[test]
fn unusable_noise_is_noted_and_never_fails() {
    let prepared = |scan: &Scan| {
        let mut notes = Vec::new();
        let preparation = Preparation::new(&with_noise(scan), &mut notes);
        (preparation.unwrap().changes_coils(), notes)
    };
    let mut few = noisy(1, 0.0);
    few.scan.acquisitions[0].discard_post = 250;
    assert!(matches!(prepared(&few.scan), (false, notes) if notes[0].contains("too few")));
    let mut silent = noisy(1, 0.0);
    silent.scan.acquisitions[0].data.fill(C32::ZERO);
    assert!(matches!(prepared(&silent.scan), (false, notes) if notes[0].contains("not whitened")));
    let mut others = noisy(1, 0.0);
    others.scan.acquisitions[0].data = Array2::zeros((3, 256)).into_shared();
    assert!(matches!(prepared(&others.scan), (false, notes) if notes[0].contains("other coils")));
    assert!(matches!(prepared(&noisy(0, 0.0).scan), (false, notes) if notes.is_empty()));
    let off = PrepareOptions { prewhiten: false, ..with_noise(&noisy(4, 0.0).scan) };
    assert!(!Preparation::new(&off, &mut vec![]).unwrap().changes_coils());
}

fn random(shape: &[usize], seed: u64) -> ArrayD<C32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))
    })
}

fn compression(coils: VirtualCoils, kind: CompressionKind) -> PrepareOptions {
    PrepareOptions { compression: Some(Compression { coils, kind }), ..PrepareOptions::default() }
}

fn energy(array: &ArrayD<C32>) -> f64 {
    array.iter().map(|v| f64::from(v.norm_sqr())).sum()
}

#[test]
fn coils_of_low_rank_are_compressed_without_loss() {
    // Five coils that are mixtures of two; along the readout the mixture changes in the second case.
    let device = device();
    for (kind, shape) in [(CompressionKind::Svd, vec![6, 9]), (CompressionKind::Geometric, vec![3, 6, 16])] {
        let sources = random(&[&[2], &shape[..]].concat(), 1);
        let weights = random(&[5, 2], 2);
        let nx = shape[shape.len() - 1];
        let mut images = ArrayD::zeros(IxDyn(&[&[5], &shape[..]].concat()));
        for (index, value) in images.indexed_iter_mut() {
            let x = index[shape.len()] as f32 / nx as f32;
            let turn = if kind == CompressionKind::Geometric { 0.6 * x * index[0] as f32 } else { 0.0 };
            for source in 0..2 {
                let mut at: Vec<usize> = (0..=shape.len()).map(|axis| index[axis]).collect();
                at[0] = source;
                *value += sources[&at[..]] * weights[[index[0], source]] * C32::from_polar(1.0, turn);
            }
        }
        let mut array = rayspin_device::Array::from_host(&device, &images).unwrap();
        let fft =
            rayspin_kernels::fft::Fft::new(&device, &shape, rayspin_kernels::fft::Norm::Unitary).unwrap();
        fft.forward(&mut array).unwrap();
        let frame = Frame::from_grid(array.into_host().unwrap(), Geometry::default()).unwrap();
        let before = energy(grid(&frame));
        let mut kept = Vec::new();
        for count in [VirtualCoils::Count(2), VirtualCoils::Energy(0.99999)] {
            let mut notes = Vec::new();
            let mut preparation = Preparation::new(&compression(count, kind), &mut notes).unwrap();
            let prepared = prepared(&mut preparation, &frame, &mut notes).unwrap();
            kept.push(prepared.shape()[0]);
            // A window of positions mixes neighbours that see the sources differently.
            let bound = if kind == CompressionKind::Svd { 1e-5 } else { 0.05 };
            if prepared.shape()[0] == 2 {
                assert!((energy(&prepared) / before - 1.0).abs() < bound, "{kind:?} {count:?}");
            }
            // Maps there and back lose what lies outside the virtual coils only.
            let maps = preparation.maps_of_prepared(&Label::default(), images.clone()).unwrap();
            let back = preparation.maps_of_scan(&Label::default(), maps, shape.len()).unwrap();
            let lost: f64 = images.iter().zip(&back).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
            assert!(lost / energy(&images) < bound, "{kind:?} {count:?} {}", lost / energy(&images));
        }
        assert!(kept[0] == 2 && (kind == CompressionKind::Geometric || kept[1] == 2), "{kept:?}");
        let plain = Preparation::new(&compression(VirtualCoils::Count(5), kind), &mut vec![]);
        assert!(plain.unwrap().mixing(&device, &frame, &mut vec![]).is_err());
    }
}

#[test]
fn neighbouring_positions_are_aligned_and_partial_readouts_refused() {
    let device = device();
    let options = SimulateOptions { matrix: [48, 32, 1], coils: 6, ..SimulateOptions::default() };
    let simulation = simulate(&options, &Monitor::silent()).unwrap();
    let frame = first_frame(&simulation.scan);
    let geometric = compression(VirtualCoils::Count(3), CompressionKind::Geometric);
    let mut preparation = Preparation::new(&geometric, &mut vec![]).unwrap();
    let by_position = energy(&prepared(&mut preparation, &frame, &mut vec![]).unwrap());
    let by_svd = {
        let svd = compression(VirtualCoils::Count(3), CompressionKind::Svd);
        let mut preparation = Preparation::new(&svd, &mut vec![]).unwrap();
        energy(&prepared(&mut preparation, &frame, &mut vec![]).unwrap())
    };
    assert!(by_position > by_svd, "each position has its own components");
    // Virtual maps stay as smooth as the coils': their largest step between neighbours is alike.
    let steps = |maps: &ArrayD<C32>| {
        let nx = maps.shape()[3];
        let line = |x: usize| maps.index_axis(Axis(3), x).index_axis(Axis(2), 16).to_owned();
        (12..nx - 13)
            .map(|x| (line(x + 1) - line(x)).iter().map(|v| v.norm_sqr()).sum::<f32>().sqrt())
            .fold(0.0f32, f32::max)
    };
    let maps = simulation.maps.clone().into_dyn();
    let virtual_maps = preparation.maps_of_prepared(&Label::default(), maps.clone()).unwrap();
    assert!(steps(&virtual_maps) < 2.0 * steps(&maps), "{} {}", steps(&virtual_maps), steps(&maps));
    let mut partial = frame;
    if let Samples::Cartesian { sampled, .. } = &mut partial.samples {
        sampled.index_axis_mut(Axis(1), 0).fill(false);
    }
    let mut fresh = Preparation::new(&geometric, &mut vec![]).unwrap();
    assert!(fresh.mixing(&device, &partial, &mut vec![]).is_err());
}

#[test]
fn readouts_of_one_sample_are_mixed_by_position_too() {
    let frame = Frame::from_grid(random(&[4, 9, 1], 3), Geometry::default()).unwrap();
    let geometric = compression(VirtualCoils::Count(2), CompressionKind::Geometric);
    let mut preparation = Preparation::new(&geometric, &mut vec![]).unwrap();
    let found = prepared(&mut preparation, &frame, &mut vec![]).unwrap();
    assert_eq!(found.shape(), [2, 9, 1]);
    // With one position it is the compression of all samples.
    let svd = compression(VirtualCoils::Count(2), CompressionKind::Svd);
    let all = prepared(&mut Preparation::new(&svd, &mut vec![]).unwrap(), &frame, &mut vec![]).unwrap();
    assert!((energy(&found) / energy(&all) - 1.0).abs() < 1e-5);
}

#[test]
fn virtual_coils_are_the_same_from_every_device() {
    let simulation = noisy(40, 0.4);
    let frame = first_frame(&simulation.scan);
    for kind in [CompressionKind::Svd, CompressionKind::Geometric] {
        let compression = Some(Compression { coils: VirtualCoils::Count(2), kind });
        let options = PrepareOptions { compression, ..with_noise(&simulation.scan) };
        let cost = |on: &Device| {
            let mut preparation = Preparation::new(&options, &mut vec![]).unwrap();
            let mixing = preparation.mixing(on, &frame, &mut vec![]).unwrap().unwrap();
            // Vectors have any phase. So the test compares the space that they span: the samples' energy in
            // it, and maps turned into virtual coils and back.
            let maps = simulation.maps.clone().into_dyn();
            let there = preparation.maps_of_prepared(&frame.label, maps).unwrap();
            let back = preparation.maps_of_scan(&frame.label, there, 3).unwrap();
            (energy(&mixing.on_host(on, &grid(&frame).view()).unwrap()), back)
        };
        let (wanted, spanned) = cost(&device());
        for device in rayspin_emu::devices().unwrap() {
            let (found, back) = cost(&device);
            assert!((found / wanted - 1.0).abs() < 1e-5, "{kind:?} on {}: {found}", device.describe());
            let apart: f64 = back.iter().zip(&spanned).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
            assert!(apart < 1e-8 * energy(&spanned), "{kind:?} on {}: {apart}", device.describe());
        }
    }
}

#[test]
fn covariances_count_every_sample_once() {
    for (coils, shape) in [(3, vec![3, 70]), (5, vec![64]), (2, vec![63]), (4, vec![1]), (7, vec![2, 5, 31])]
    {
        let samples = random(&[&[coils], &shape[..]].concat(), 9);
        let points: usize = shape.iter().product();
        let flat = samples.to_shape((coils, points)).unwrap();
        let wide = |v: C32| C64::new(v.re.into(), v.im.into());
        for device in rayspin_emu::devices().unwrap() {
            let found = compress::covariance(&device, &samples.view()).unwrap();
            for (i, j) in (0..coils).flat_map(|i| (0..coils).map(move |j| (i, j))) {
                let expected: C64 = (0..points).map(|s| wide(flat[[i, s]]) * wide(flat[[j, s]]).conj()).sum();
                assert!((found[(i, j)] - expected).norm() < 1e-9, "{} {shape:?}", device.describe());
            }
        }
    }
}
