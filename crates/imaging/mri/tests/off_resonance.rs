//! Scans in an inhomogeneous field, whose truth is known: corrected images against images of the same scan in
//! a homogeneous field.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::{changed, iterations, of};
use ndarray::{ArrayD, Axis};
use rayspin_core::{C32, Monitor, Result};
use rayspin_device::Device;
use rayspin_mri::methods::{CgSense, LeastSquares, Value};
use rayspin_mri::recon::{Certify, ReconOptions, ScanImage, Selection, reconstruct_scan};
use rayspin_mri::scan::{FrameOptions, Scan};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Hardware, Sampling};
use rayspin_mri::simulate::{FieldMap, FieldShape, SimulateOptions, Simulation, simulate};

fn scan(n: usize, coils: usize, sampling: Sampling, dwell_us: f64, peak_hz: Option<f64>) -> Simulation {
    simulate(&options(n, coils, sampling, dwell_us, peak_hz), &Monitor::silent()).unwrap()
}

fn options(
    n: usize,
    coils: usize,
    sampling: Sampling,
    dwell_us: f64,
    peak_hz: Option<f64>,
) -> SimulateOptions {
    SimulateOptions {
        matrix: [n, n, 1],
        coils,
        sampling,
        hardware: Hardware { dwell_us, ..Hardware::default() },
        field: peak_hz.map(|peak_hz| FieldMap { shape: FieldShape::Smooth, peak_hz }),
        ..SimulateOptions::default()
    }
}

fn field(simulation: &Simulation) -> ArrayD<f32> {
    simulation.field.as_ref().unwrap().data().mapv(|v| v.re)
}

fn reconstruct(device: &Device, scan: &Scan, options: &ReconOptions) -> Result<ScanImage> {
    let frames = FrameOptions { times: options.field_map.is_some(), ..FrameOptions::default() };
    reconstruct_scan(device, scan, &Selection::default(), &frames, options, &Monitor::silent())
}

fn with_map(method: &str, maps: &ArrayD<C32>, map: Option<ArrayD<f32>>, tolerance: f64) -> ReconOptions {
    let options = changed(iterations(of(method), 20), &[("combine", Value::Choice("maps"))]);
    ReconOptions {
        maps: Some(Arc::new(maps.clone())),
        field_map: map.map(Arc::new),
        field_tolerance: tolerance,
        ..options
    }
}

/// ‖a − b‖/‖b‖.
fn apart(a: &ScanImage, b: &ScanImage) -> f64 {
    relative(a.image.data(), b.image.data())
}

/// ‖S(a − b)‖/‖Sb‖ with a smoothing S: a steep field shifts what a scan sees of k-space, and ringing at edges
/// with it, which no correction undoes.
fn apart_smoothed(a: &ScanImage, b: &ScanImage) -> f64 {
    relative(&smoothed(a.image.data()), &smoothed(b.image.data()))
}

fn relative(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    let norm = |v: &mut dyn Iterator<Item = C32>| v.map(|v| f64::from(v.norm_sqr())).sum::<f64>().sqrt();
    norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied())
}

/// Four times 1, 2, 1 along x and y.
fn smoothed(image: &ArrayD<C32>) -> ArrayD<C32> {
    let mut image = image.clone();
    for axis in [image.ndim() - 2, image.ndim() - 1] {
        for mut line in image.lanes_mut(Axis(axis)) {
            for _ in 0..4 {
                let before = line.to_owned();
                let at = |i: usize| before[i.min(before.len() - 1)];
                for (i, v) in line.iter_mut().enumerate() {
                    *v = (at(i.saturating_sub(1)) + at(i) * 2.0 + at(i + 1)) * 0.25;
                }
            }
        }
    }
    image
}

const SPIRAL: Sampling = Sampling::Spiral { interleaves: 3, acceleration: 1 };

#[test]
fn every_method_is_corrected() {
    let device = Device::cpu_with_threads(2).unwrap();
    let on_resonant = scan(48, 4, SPIRAL, 10.0, None);
    let off_resonant = scan(48, 4, SPIRAL, 10.0, Some(200.0));
    let maps = on_resonant.maps.clone().into_dyn();
    for method in ["gridding", "ls", "cg-sense", "wavelet", "tv"] {
        let ideal = reconstruct(&device, &on_resonant.scan, &with_map(method, &maps, None, 1e-3)).unwrap();
        let plain = reconstruct(&device, &off_resonant.scan, &with_map(method, &maps, None, 1e-3)).unwrap();
        let options = with_map(method, &maps, Some(field(&off_resonant)), 1e-3);
        let corrected = reconstruct(&device, &off_resonant.scan, &options).unwrap();
        let (before, after) = (apart_smoothed(&plain, &ideal), apart_smoothed(&corrected, &ideal));
        println!("{method}: {before:.3} {after:.4} {:?}", corrected.notes);
        // The conjugate phase of gridding is no inverse where the field is steep.
        let allowed = if method == "gridding" { 0.7 } else { 0.2 };
        assert!(before > 0.05 && after < allowed * before, "{method}: {before:.3}, corrected {after:.3}");
        assert!(corrected.notes.iter().any(|n| n.contains("time segments")), "{:?}", corrected.notes);
    }
}

#[test]
fn the_error_falls_with_the_tolerance() {
    let device = Device::cpu_with_threads(2).unwrap();
    let simulation = scan(32, 2, SPIRAL, 10.0, Some(100.0));
    let maps = simulation.maps.clone().into_dyn();
    let image = |tolerance| {
        let options = with_map("cg-sense", &maps, Some(field(&simulation)), tolerance);
        let exact = [("tolerance", Value::Number(1e-7)), ("lambda", Value::Number(1e-2))];
        let options = ReconOptions { nufft_tolerance: 1e-6, ..changed(options, &exact) };
        reconstruct(&device, &simulation.scan, &options).unwrap()
    };
    let best = image(2e-6);
    let mut last = f64::INFINITY;
    for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
        let error = apart(&image(tolerance), &best);
        println!("{tolerance:e}: {error:.1e}");
        assert!(error < 5.0 * tolerance && error < last, "{tolerance:e}: {error:.1e} after {last:.1e}");
        last = error;
    }
}

#[test]
fn an_even_field_gives_the_ordinary_image_and_any_field_the_same_on_every_device() {
    let simulation = scan(24, 3, SPIRAL, 10.0, Some(80.0));
    let maps = simulation.maps.clone().into_dyn();
    let cpu = Device::cpu_with_threads(2).unwrap();
    let with = |map| iterations(with_map("cg-sense", &maps, map, 1e-3), 4);
    let expected = reconstruct(&cpu, &simulation.scan, &with(Some(field(&simulation)))).unwrap();
    for device in rayspin_emu::devices().unwrap() {
        let found = reconstruct(&device, &simulation.scan, &with(Some(field(&simulation)))).unwrap();
        assert!(apart(&found, &expected) < 1e-4, "{}", device.describe());
        let flat = reconstruct(&device, &simulation.scan, &with(Some(ArrayD::zeros(vec![24, 24])))).unwrap();
        let plain = reconstruct(&device, &simulation.scan, &with(None)).unwrap();
        assert!(apart(&flat, &plain) < 1e-6, "{}", device.describe());
    }
}

#[test]
fn grids_and_their_maps_are_corrected() {
    let device = Device::cpu_with_threads(2).unwrap();
    // A slow readout: 32 lines of 32 × 2 samples in 6.4 ms, a field of one voxel and more.
    let pattern = CartesianPattern::Uniform { acceleration: [2, 1], calibration: 12 };
    let make = |peak| {
        let options =
            SimulateOptions { oversampling: 2, ..options(32, 4, Sampling::Cartesian(pattern), 100.0, peak) };
        simulate(&options, &Monitor::silent()).unwrap()
    };
    let (on_resonant, off_resonant) = (make(None), make(Some(200.0)));
    let options = |map: Option<ArrayD<f32>>| ReconOptions {
        field_map: map.map(Arc::new),
        field_tolerance: 1e-3,
        ..ReconOptions::of(CgSense::default())
    };
    let ideal = reconstruct(&device, &on_resonant.scan, &options(None)).unwrap();
    let plain = reconstruct(&device, &off_resonant.scan, &options(None)).unwrap();
    let corrected = reconstruct(&device, &off_resonant.scan, &options(Some(field(&off_resonant)))).unwrap();
    let (before, after) = (apart_smoothed(&plain, &ideal), apart_smoothed(&corrected, &ideal));
    println!("grid: {before:.3} {after:.4}");
    assert!(before > 0.06 && after < 0.45 * before, "{before:.3}, corrected {after:.3}");
    // In no field the trajectory of the grid gives the grid's image.
    let flat = reconstruct(&device, &on_resonant.scan, &options(Some(ArrayD::zeros(vec![32, 32])))).unwrap();
    assert!(apart(&flat, &ideal) < 0.05, "{}", apart(&flat, &ideal));
}

#[test]
fn slices_take_their_own_fields() {
    let device = Device::cpu_with_threads(2).unwrap();
    let make = |peak| {
        let options = SimulateOptions { matrix: [32, 32, 3], ..options(32, 1, SPIRAL, 10.0, peak) };
        simulate(&options, &Monitor::silent()).unwrap()
    };
    let (on_resonant, off_resonant) = (make(None), make(Some(100.0)));
    let map = field(&off_resonant);
    assert!(map.index_axis(Axis(0), 0) != map.index_axis(Axis(0), 1));
    let options = |map: Option<ArrayD<f32>>| ReconOptions {
        field_map: map.map(Arc::new),
        ..ReconOptions::of(LeastSquares::default())
    };
    let ideal = reconstruct(&device, &on_resonant.scan, &options(None)).unwrap();
    let plain = reconstruct(&device, &off_resonant.scan, &options(None)).unwrap();
    let corrected = reconstruct(&device, &off_resonant.scan, &options(Some(map.clone()))).unwrap();
    let (before, after) = (apart_smoothed(&plain, &ideal), apart_smoothed(&corrected, &ideal));
    println!("slices: {before:.3} {after:.4} {:?}", corrected.notes);
    assert!(after < 0.25 * before, "{before:.3}, corrected {after:.3}");
    let notes = corrected.notes.iter().filter(|n| n.contains("time segments")).count();
    assert_eq!(notes, 1, "{:?}", corrected.notes);
    let one = map.index_axis(Axis(0), 1).to_owned();
    let error = reconstruct(&device, &off_resonant.scan, &options(Some(one))).unwrap_err().to_string();
    assert!(error.contains("field map: expected shape [3, 32, 32]"), "{error}");
}

#[test]
fn certificates_are_of_the_encoding_in_the_field() {
    let device = Device::cpu_with_threads(2).unwrap();
    let simulation = scan(20, 2, SPIRAL, 10.0, Some(120.0));
    let maps = simulation.maps.clone().into_dyn();
    let options = ReconOptions {
        certify: Some(Certify { outputs: 60, seed: 1 }),
        ..with_map("cg-sense", &maps, Some(field(&simulation)), 1e-4)
    };
    let found = reconstruct(&device, &simulation.scan, &options).unwrap().certificates;
    assert_eq!(found.len(), 3);
    for certificate in found {
        assert!(certificate.met() && certificate.error > 0.0, "{certificate:?}");
    }
}

#[test]
fn what_cannot_be_corrected_is_refused_by_name() {
    let device = Device::cpu_with_threads(1).unwrap();
    let simulation = scan(16, 1, SPIRAL, 10.0, Some(50.0));
    let map = field(&simulation);
    let refused = |scan: &Scan, map: &ArrayD<f32>, method: &str, words: &str| {
        let options = ReconOptions { field_map: Some(Arc::new(map.clone())), ..of(method) };
        let error = reconstruct(&device, scan, &options).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let ls = "ls";
    refused(&simulation.scan, &ArrayD::zeros(vec![16, 15]), ls, "field map: expected shape [16, 16]");
    refused(&simulation.scan, &map, "cartesian", "with a field map");
    let mut holed = map.clone();
    holed[[0, 3, 5]] = f32::NAN;
    refused(&simulation.scan, &holed, ls, "field map");
    refused(&simulation.scan, &map.mapv(|f| f * 4000.0), ls, "128 time segments");
    let mut timeless = simulation.scan.clone();
    timeless.acquisitions[1].sample_time_us = 0.0;
    refused(&timeless, &map, ls, "acquisition 1: sample_time_us");
    let train = scan(16, 1, Sampling::Epi { shots: 1 }, 10.0, None);
    refused(&train.scan, &map, ls, "echo-planar");
    let options = options(16, 1, Sampling::Epi { shots: 1 }, 10.0, Some(50.0));
    assert!(simulate(&options, &Monitor::silent()).unwrap_err().to_string().contains("echo-planar"));
}
