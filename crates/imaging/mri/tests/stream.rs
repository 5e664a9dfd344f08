//! Frames as a stream are the frames of a series that is in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{iterations, of};
use ndarray::Axis;
use rayspin_core::{Error, Monitor};
use rayspin_device::{Backend, Device};
use rayspin_mri::recon::{
    FRAMES_AHEAD, Frames, ReconOptions, StreamItem, VOLUMES_BEHIND, Volume, reconstruct_frames,
    reconstruct_stream,
};
use rayspin_mri::scan::{FrameOptions, Label};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};
use rayspin_run::Endpoints;

const GOLDEN: Sampling = Sampling::Radial { spokes: 9, angles: SpokeAngles::Golden };

fn scan(sampling: Sampling, slices: usize, repetitions: usize) -> Simulation {
    let options = SimulateOptions {
        matrix: [14, 12, slices],
        coils: 2,
        sampling,
        repetitions,
        ..SimulateOptions::default()
    };
    simulate(&options, &Monitor::silent()).unwrap()
}

fn few_iterations(method: &str) -> ReconOptions {
    iterations(of(method), 2)
}

/// Streams all frames of a simulated scan to `sink`; `broken` is the frame that cannot be read.
fn stream(
    device: &Device,
    simulation: &Simulation,
    options: &ReconOptions,
    broken: Option<usize>,
    sink: &mut (dyn FnMut(Volume) -> Result<(), Error> + Send),
) -> Result<rayspin_mri::recon::StreamEnd, Error> {
    let index = simulation.scan.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    let mut slices: Vec<u16> = labels.iter().map(|l| l.slice).collect();
    slices.sort_unstable();
    slices.dedup();
    let mut next = 0;
    let mut source = |notes: &mut Vec<String>| {
        let Some(&label) = labels.get(next) else { return Ok(None) };
        if broken == Some(next) {
            return Err(Error::value("readout", "samples", "damage"));
        }
        next += 1;
        Ok(Some(StreamItem::Image(label, index.assemble(label, &FrameOptions::default(), notes)?)))
    };
    let monitor = Monitor::silent();
    let frames = Frames { labels: &labels, slices: &slices, notes: Vec::new() };
    reconstruct_stream(device, frames, Endpoints { source: &mut source, sink }, options, &monitor)
}

#[test]
fn a_stream_gives_the_images_of_the_whole() {
    let full = Sampling::Cartesian(CartesianPattern::Full);
    for device in rayspin_emu::devices().unwrap() {
        for (sampling, slices, methods) in
            [(full.clone(), 3, ["cartesian", "cg-sense"]), (GOLDEN, 1, ["gridding", "cg-sense"])]
        {
            let simulation = scan(sampling, slices, 4);
            for method in methods {
                // The emulator takes seconds for what a processor does at once: it gets the case with most
                // stages.
                if !matches!(device.backend(), Backend::Cpu(_)) && (method != "cg-sense" || slices > 1) {
                    continue;
                }
                let options = few_iterations(method);
                let index = simulation.scan.frames().unwrap();
                let labels: Vec<Label> = index.labels().collect();
                let numbers: Vec<u16> = (0..slices as u16).collect();
                let frames = Frames { labels: &labels, slices: &numbers, notes: Vec::new() };
                let mut source = |label: Label, notes: &mut Vec<String>| {
                    index.assemble(label, &FrameOptions::default(), notes)
                };
                let monitor = Monitor::silent();
                let whole = reconstruct_frames(&device, frames, &mut source, &options, &monitor).unwrap();
                let mut seen = 0;
                let mut sink = |volume: Volume| {
                    assert_eq!(volume.index, seen);
                    assert_eq!(volume.stacks, whole.image.stacks());
                    assert_eq!(volume.data, whole.image.data().index_axis(Axis(0), seen), "{method}");
                    seen += 1;
                    Ok(())
                };
                let end = stream(&device, &simulation, &options, None, &mut sink).unwrap();
                assert_eq!(seen, 4);
                assert_eq!(end.solves, whole.solves);
                assert_eq!(end.maps, whole.maps);
                let times = end.times;
                assert!(times.wall > 0.0 && times.reconstruct <= times.wall, "{times:?}");
            }
        }
    }
}

#[test]
fn maps_and_scale_are_those_of_the_first_repetition_unless_each_is_independent() {
    let device = Device::cpu_with_threads(2).unwrap();
    let simulation = scan(GOLDEN, 1, 3);
    let shared = few_iterations("cg-sense");
    let independent = ReconOptions { independent: true, ..shared.clone() };
    let eigenvalues = |options: &ReconOptions| -> Vec<f64> {
        let end = stream(&device, &simulation, options, None, &mut |_| Ok(())).unwrap();
        end.solves.iter().map(|solve| solve.eigenvalue).collect()
    };
    let [shared, independent] = [&shared, &independent].map(eigenvalues);
    assert!(shared.iter().all(|&value| value == independent[0]), "{shared:?}");
    assert!(independent[1] != independent[0] && independent[2] != independent[0], "{independent:?}");
}

#[test]
fn what_was_complete_before_an_error_has_been_given_out() {
    let device = Device::cpu_with_threads(2).unwrap();
    let simulation = scan(Sampling::Cartesian(CartesianPattern::Full), 2, 5);
    let options = few_iterations("cartesian");
    let mut given = 0;
    let mut count = |_: Volume| {
        given += 1;
        Ok(())
    };
    let error = stream(&device, &simulation, &options, Some(7), &mut count).unwrap_err();
    assert!(matches!(&error, Error::Value { what, .. } if what == "readout"), "{error}");
    assert_eq!(given, 3);
    let mut given = 0;
    let mut full = |_: Volume| {
        given += 1;
        if given == 2 { Err(Error::value("disk", "space", "none")) } else { Ok(()) }
    };
    let error = stream(&device, &simulation, &options, None, &mut full).unwrap_err();
    assert!(matches!(&error, Error::Value { what, .. } if what == "disk"), "{error}");
}

#[test]
fn no_more_than_a_few_frames_are_in_memory() {
    let device = Device::cpu_with_threads(1).unwrap();
    let simulation = scan(Sampling::Cartesian(CartesianPattern::Full), 1, 30);
    let index = simulation.scan.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    let (read, written, most) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let mut left = labels.iter();
    let mut source = |notes: &mut Vec<String>| {
        let Some(&label) = left.next() else { return Ok(None) };
        let on_the_way = read.fetch_add(1, Ordering::SeqCst) + 1 - written.load(Ordering::SeqCst);
        most.fetch_max(on_the_way, Ordering::SeqCst);
        Ok(Some(StreamItem::Image(label, index.assemble(label, &FrameOptions::default(), notes)?)))
    };
    let mut sink = |_: Volume| {
        // Writing is slowest here, so that everything before it fills up.
        std::thread::sleep(std::time::Duration::from_millis(3));
        written.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Error>(())
    };
    let options = few_iterations("cartesian");
    let monitor = Monitor::silent();
    let frames = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
    let ends = Endpoints { source: &mut source, sink: &mut sink };
    reconstruct_stream(&device, frames, ends, &options, &monitor).unwrap();
    let most = most.into_inner();
    // The frames in memory: one in work, one in the source, and the frames and volumes that wait.
    assert!((3..=FRAMES_AHEAD + VOLUMES_BEHIND + 1).contains(&most), "{most} frames at once");
}
