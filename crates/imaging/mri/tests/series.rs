//! Methods that solve for all images of a series together.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use ndarray::{ArrayD, Axis};
use rayspin_core::{C32, Monitor};
use rayspin_device::{Backend, Device};
use rayspin_emu::Emulator;
use rayspin_mri::methods::{CgSense, LowRankSparse, Methods, suited_to};
use rayspin_mri::recon::plan::{self, Planned};
use rayspin_mri::recon::{
    Frames, ReconOptions, ScanImage, Selection, StreamItem, Volume, reconstruct_frames, reconstruct_scan,
    reconstruct_stream,
};
use rayspin_mri::scan::{Facts, FrameOptions, Label};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{Dynamics, SimulateOptions, Simulation, simulate};
use rayspin_run::Endpoints;

const GOLDEN: Sampling = Sampling::Radial { spokes: 8, angles: SpokeAngles::Golden };

/// A heart that beats once in the scan.
fn beating(n: usize, sampling: Sampling, repetitions: usize, slices: usize) -> Simulation {
    // Eight spokes, or a grid's lines of all slices, 5 ms each.
    let repetition_s = if slices == 1 { 0.04 } else { 0.35 };
    let options = SimulateOptions {
        matrix: [n, n, slices],
        coils: 4,
        sampling,
        repetitions,
        snr: (slices == 1).then_some(60.0),
        dynamics: Some(Dynamics::Beat { period_s: repetitions as f64 * repetition_s }),
        readout_interval_ms: Some(5.0),
        ..SimulateOptions::default()
    };
    simulate(&options, &Monitor::silent()).unwrap()
}

fn recon(device: &Device, simulation: &Simulation, options: &ReconOptions) -> ScanImage {
    let (selection, frames) = (Selection::default(), FrameOptions::default());
    reconstruct_scan(device, &simulation.scan, &selection, &frames, options, &Monitor::silent()).unwrap()
}

fn cpu() -> Device {
    Device::cpu_with_threads(2).unwrap()
}

/// √(Σ|a − b|² / Σ|b|²).
fn error(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    let apart: f64 = a.iter().zip(b).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
    (apart / b.iter().map(|b| f64::from(b.norm_sqr())).sum::<f64>()).sqrt()
}

/// Error of the magnitudes, with the scale that fits best.
fn fitted(image: &ArrayD<C32>, truth: &ArrayD<C32>) -> f64 {
    let (a, b) = (image.mapv(|v| C32::from(v.norm())), truth.mapv(|v| C32::from(v.norm())));
    let (mut dot, mut square) = (0.0, 0.0);
    for (a, b) in a.iter().zip(&b) {
        dot += f64::from(a.re * b.re);
        square += f64::from(a.re * a.re);
    }
    error(&a.mapv(|v| v * (dot / square) as f32), &b)
}

#[test]
fn low_rank_plus_sparse_beats_frames_alone_at_eight_spokes_an_image() {
    let simulation = beating(64, GOLDEN, 24, 1);
    let truth = simulation.truth.data();
    let alone = recon(&cpu(), &simulation, &ReconOptions::of(CgSense::default()));
    let together = recon(&cpu(), &simulation, &ReconOptions::of(LowRankSparse::default()));
    assert_eq!(together.image.data().shape(), alone.image.data().shape());
    let (alone, series) = (fitted(alone.image.data(), truth), fitted(together.image.data(), truth));
    println!("frame by frame {alone:.3}, together {series:.3}");
    assert!(series < 0.75 * alone, "frame by frame {alone}, together {series}");
    assert!(together.notes.iter().any(|note| note.contains("background of rank")), "{:?}", together.notes);
    // The objective never rises.
    let solve = &together.solves[0];
    assert!(solve.objective.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", solve.objective);
}

/// Contrast agent that arrives and stays: the last image is unlike the first.
fn uptake(n: usize, sampling: Sampling, repetitions: usize) -> Simulation {
    let options = SimulateOptions {
        matrix: [n, n, 1],
        coils: 5,
        sampling,
        repetitions,
        snr: Some(50.0),
        dynamics: Some(Dynamics::Enhance { time_s: 0.5 }),
        readout_interval_ms: Some(4.0),
        ..SimulateOptions::default()
    };
    simulate(&options, &Monitor::silent()).unwrap()
}

/// Mean magnitudes of the images over the voxels that change most, with the scale that fits all voxels best,
/// and of the truth.
fn curves(image: &ArrayD<C32>, truth: &ArrayD<C32>) -> [Vec<f32>; 2] {
    let change = |voxel: usize| {
        let of = |images: &ArrayD<C32>, time: usize| {
            images.index_axis(Axis(0), time).iter().nth(voxel).unwrap().norm()
        };
        of(truth, truth.shape()[0] - 1) - of(truth, 0)
    };
    let voxels: Vec<f32> = (0..truth.len() / truth.shape()[0]).map(change).collect();
    let most = voxels.iter().copied().fold(0.0, f32::max);
    let (mut dot, mut square) = (0.0, 0.0);
    for (a, b) in image.iter().zip(truth) {
        dot += a.norm() * b.norm();
        square += a.norm_sqr();
    }
    [(image, dot / square), (truth, 1.0)].map(|(images, scale)| {
        let mean = |image: ndarray::ArrayViewD<'_, C32>| {
            let region = image.iter().zip(&voxels).filter(|(_, change)| **change > 0.8 * most);
            let values: Vec<f32> = region.map(|(v, _)| v.norm()).collect();
            scale * values.iter().sum::<f32>() / values.len() as f32
        };
        images.outer_iter().map(mean).collect()
    })
}

#[test]
fn a_series_need_not_end_as_it_begins() {
    let lines = CartesianPattern::PoissonDisc { acceleration: 4.0, calibration: 8, slope: 2.0 };
    for (sampling, repetitions) in
        [(Sampling::Radial { spokes: 13, angles: SpokeAngles::Golden }, 18), (Sampling::Cartesian(lines), 16)]
    {
        let simulation = uptake(48, sampling.clone(), repetitions);
        let maps = Some(Arc::new(simulation.maps.clone().into_dyn()));
        let index = simulation.scan.frames().unwrap();
        let first = index.labels().next().unwrap();
        let frame = index.assemble(first, &FrameOptions::default(), &mut vec![]).unwrap();
        let facts = Facts::of(&frame, None, repetitions).unwrap();
        let (method, _) = suited_to(&LowRankSparse::default(), &facts, |_| false).unwrap();
        let options = ReconOptions { maps, ..ReconOptions::with_method(method) };
        let found = recon(&cpu(), &simulation, &options);
        let [found, truth] = curves(found.image.data(), simulation.truth.data());
        let ratios: Vec<f32> = found.iter().zip(&truth).map(|(found, truth)| found / truth).collect();
        println!("{sampling:?}: {ratios:.3?}");
        for end in [ratios[0], ratios[repetitions - 1]] {
            assert!((end - 1.0).abs() < 0.05, "{sampling:?}: {ratios:.3?}");
        }
    }
}

/// Images of their own samples are solved for together; the same samples in each image tell no more than one.
#[test]
fn a_series_of_few_samples_an_image_is_solved_for_together() {
    let chosen = |angles: SpokeAngles, spokes: usize, repetitions: usize| {
        let simulation = uptake(32, Sampling::Radial { spokes, angles }, repetitions);
        let index = simulation.scan.frames().unwrap();
        let frames: Vec<_> = index
            .labels()
            .take(2)
            .map(|label| index.assemble(label, &FrameOptions::default(), &mut vec![]).unwrap())
            .collect();
        let facts = Facts::of(&frames[0], None, repetitions).unwrap();
        let facts = facts.in_series(repetitions, &frames[0], &frames[frames.len() - 1]);
        let methods = Methods::default();
        let (method, reason) = methods.suited(&facts, false).unwrap();
        (method.about().name, reason)
    };
    let (method, reason) = chosen(SpokeAngles::Golden, 7, 12);
    assert_eq!(method, "low-rank-sparse");
    assert!(reason.starts_with("12 images of a slice") && reason.contains("-fold undersampling"), "{reason}");
    assert_eq!(chosen(SpokeAngles::Uniform, 7, 12).0, "wavelet");
    assert_eq!(chosen(SpokeAngles::Golden, 7, 2).0, "wavelet");
    assert_eq!(chosen(SpokeAngles::Golden, 50, 12).0, "cg-sense");
}

#[test]
fn every_slice_has_its_own_images_in_their_order_on_a_grid_too() {
    let pattern = CartesianPattern::Uniform { acceleration: [2, 1], calibration: 12 };
    let simulation = beating(32, Sampling::Cartesian(pattern), 4, 3);
    let options =
        ReconOptions::of(LowRankSparse { low_rank: 0.0, sparse: 0.0, iterations: 100, tolerance: 0.0 });
    let found = recon(&cpu(), &simulation, &options);
    assert_eq!(found.image.data().shape(), [4, 3, 32, 32]);
    // Without penalties each image fits its own samples: it is nearer to their image than to the image of
    // another time or slice.
    let plain = CgSense { lambda: 0.0, iterations: 30, ..CgSense::default() };
    let alone = recon(&cpu(), &simulation, &ReconOptions::of(plain));
    let all = |image: &ScanImage| -> Vec<ArrayD<C32>> {
        let times = image.image.data().outer_iter();
        times.flat_map(|time| time.outer_iter().map(|slice| slice.to_owned()).collect::<Vec<_>>()).collect()
    };
    let (found, alone) = (all(&found), all(&alone));
    for (index, image) in found.iter().enumerate() {
        let apart: Vec<f64> = alone.iter().map(|other| error(image, other)).collect();
        let nearest = apart.iter().copied().fold(f64::INFINITY, f64::min);
        // The outer slices hold little that moves.
        assert!(apart[index] < 0.1 && apart[index] < 1.01 * nearest, "image {index}: {apart:.3?}");
    }
}

#[test]
fn a_stream_of_frames_gives_the_same_images() {
    let simulation = beating(24, GOLDEN, 5, 1);
    let options = ReconOptions::of(LowRankSparse { iterations: 5, ..LowRankSparse::default() });
    let whole = recon(&cpu(), &simulation, &options);
    let index = simulation.scan.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    // The whole scan's maps come from the first readouts: 9 spokes of 24 samples are too few for maps of
    // their own.
    let series = index.series(&labels, None, None).unwrap();
    let mut maps = series.maps(0, &FrameOptions::default(), &mut Vec::new()).unwrap();
    assert!(maps.is_some());
    let mut next = labels.iter();
    let mut source = |notes: &mut Vec<String>| {
        if let Some((label, frame)) = maps.take() {
            return Ok(Some(StreamItem::Maps(label, frame)));
        }
        let Some(&label) = next.next() else { return Ok(None) };
        Ok(Some(StreamItem::Image(label, index.assemble(label, &FrameOptions::default(), notes)?)))
    };
    let mut volumes = Vec::new();
    let mut sink = |volume: Volume| -> Result<(), rayspin_core::Error> {
        assert_eq!(volume.index, volumes.len());
        volumes.push(volume.data);
        Ok(())
    };
    let frames = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
    let ends = Endpoints { source: &mut source, sink: &mut sink };
    reconstruct_stream(&cpu(), frames, ends, &options, &Monitor::silent()).unwrap();
    for (index, volume) in volumes.iter().enumerate() {
        assert_eq!(volume, &whole.image.data().index_axis(Axis(0), index));
    }
}

/// Slices whose counters are not in order, and some in another direction, over repetitions.
#[test]
fn slices_keep_their_own_places() {
    let mut simulation = beating(16, Sampling::Cartesian(CartesianPattern::Full), 2, 5);
    let places = [[0.0, 0.0, 12.0], [7.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 6.0]];
    let across = [1, 3];
    for readout in &mut simulation.scan.acquisitions {
        let slice = usize::from(readout.counters.slice);
        readout.position = places[slice].map(|v: f32| v);
        if across.contains(&slice) {
            let [x, y, z] = [readout.read_dir, readout.phase_dir, readout.slice_dir];
            (readout.read_dir, readout.phase_dir, readout.slice_dir) = (y, z, x);
        }
    }
    let options = ReconOptions::of(CgSense { iterations: 2, ..CgSense::default() });
    let found = recon(&cpu(), &simulation, &options);
    // Those that fall all the way keep their order.
    let order = [2, 4, 0, 1, 3];
    for (at, slice) in order.into_iter().enumerate() {
        let selection = Selection { slice: Some(slice.into()), ..Selection::default() };
        let frames = FrameOptions::default();
        let alone =
            reconstruct_scan(&cpu(), &simulation.scan, &selection, &frames, &options, &Monitor::silent())
                .unwrap();
        let own = found.image.data().slice_axis(Axis(1), (at..at + 1).into());
        assert_eq!(own, alone.image.data());
    }
    let apart = found.image.apart().unwrap();
    let heights: Vec<_> =
        apart.iter().map(|image| (image.shape_zyx()[0], image.geometry().spacing_mm[2])).collect();
    assert_eq!(heights, [(3, 6.0), (2, 6.0)]);
    assert_eq!(apart[1].geometry().position_mm, [1.0, 0.0, 0.0]);
    assert_ne!(apart[0].geometry().slice_dir, apart[1].geometry().slice_dir);
    let said = |text: &str| found.notes.iter().filter(|note| note.contains(text)).count();
    assert_eq!(
        (said("sorted by their places"), said("of the slices 2, 4, 0; 1, 3"), said("move")),
        (1, 1, 0)
    );
}

/// On the emulator, which counts every array: the same image as on the CPU, in the memory that was stated.
#[test]
fn a_gpu_gives_the_same_images_in_the_memory_that_was_stated() {
    let simulation = beating(20, GOLDEN, 4, 1);
    let options = ReconOptions::of(LowRankSparse { iterations: 3, ..LowRankSparse::default() });
    let options = ReconOptions { density_iterations: 2, ..options };
    let device = Emulator::device().unwrap();
    let Backend::Cuda(cuda) = device.backend() else { unreachable!("the emulator is a CUDA device") };
    let index = simulation.scan.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    let frame = index.assemble(labels[0], &FrameOptions::default(), &mut vec![]).unwrap();
    let planned = Planned { count: 4, held: 0, assembled: false, coils: frame.coils() };
    let stated =
        plan::of_frames(&frame, &planned, &options, &device, &plan::Known::default()).unwrap().gpu_peak();
    cuda.reset_peak();
    let mut source = |label, notes: &mut Vec<String>| index.assemble(label, &FrameOptions::default(), notes);
    let frames = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
    let found = reconstruct_frames(&device, frames, &mut source, &options, &Monitor::silent()).unwrap();
    let (_, measured) = cuda.memory_used();
    let ratio = stated as f64 / measured as f64;
    assert!((0.97..1.3).contains(&ratio), "stated {stated}, measured {measured}");
    let mut source = |label, notes: &mut Vec<String>| index.assemble(label, &FrameOptions::default(), notes);
    let frames = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
    let wanted = reconstruct_frames(&cpu(), frames, &mut source, &options, &Monitor::silent()).unwrap();
    let apart = error(found.image.data(), wanted.image.data());
    assert!(apart < 1e-3, "{apart}");
}
