//! Frames on several devices at once: the images are those of one device, in the same order, also where a
//! device fails.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{alike, iterations};
use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::Device;
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_mri::prepare::{Compression, CompressionKind, VirtualCoils};
use rayspin_mri::recon::{
    Frames, ReconOptions, ScanImage, Selection, StreamEnd, StreamItem, Volume, reconstruct_scan,
    reconstruct_stream,
};
use rayspin_mri::scan::{FrameOptions, Label};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};
use rayspin_run::Endpoints;

const GOLDEN: Sampling = Sampling::Radial { spokes: 12, angles: SpokeAngles::Golden };

/// An emulated GPU that fails as asked.
struct Card {
    driver: Arc<Faulty>,
    device: Device,
}

fn cards(count: usize) -> Vec<Card> {
    let card = |_| {
        let driver = Arc::new(Faulty::new(Arc::new(Emulator::new().unwrap())));
        let device = Device::with_driver(driver.clone(), Device::cpu_with_threads(1).unwrap());
        Card { driver, device }
    };
    (0..count).map(card).collect()
}

fn scan(sampling: Sampling, slices: usize, repetitions: usize) -> Simulation {
    let options = SimulateOptions {
        dims: 2,
        matrix: [16, 16, slices],
        fov_mm: [220.0, 220.0, 5.0 * slices as f64],
        coils: 2,
        repetitions,
        sampling,
        ..SimulateOptions::default()
    };
    simulate(&options, &Monitor::silent()).unwrap()
}

/// The first card leads, the others are beside it.
fn over(cards: &[Card], options: &ReconOptions) -> ReconOptions {
    let mut options = options.clone();
    options.run.beside = cards[1..].iter().map(|card| card.device.clone()).collect();
    options
}

fn images(cards: &[Card], simulation: &Simulation, options: &ReconOptions) -> Result<ScanImage> {
    let (selection, frames) = (Selection::default(), FrameOptions::default());
    let options = over(cards, options);
    reconstruct_scan(&cards[0].device, &simulation.scan, &selection, &frames, &options, &Monitor::silent())
}

/// The volumes of a stream, in the order in which they came, and what it left.
fn stream(cards: &[Card], simulation: &Simulation, options: &ReconOptions) -> (Vec<ArrayD<C32>>, StreamEnd) {
    let index = simulation.scan.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    let slices: BTreeSet<u16> = labels.iter().map(|label| label.slice).collect();
    let slices: Vec<u16> = slices.into_iter().collect();
    let mut next = labels.iter();
    let mut source = |notes: &mut Vec<String>| -> Result<Option<StreamItem>> {
        let Some(&label) = next.next() else { return Ok(None) };
        Ok(Some(StreamItem::Image(label, index.assemble(label, &FrameOptions::default(), notes)?)))
    };
    let mut volumes = Vec::new();
    let mut sink = |volume: Volume| -> Result<()> {
        assert_eq!(volume.index, volumes.len());
        volumes.push(volume.data);
        Ok(())
    };
    let frames = Frames { labels: &labels, slices: &slices, notes: Vec::new() };
    let (ends, options) = (Endpoints { source: &mut source, sink: &mut sink }, over(cards, options));
    let end = reconstruct_stream(&cards[0].device, frames, ends, &options, &Monitor::silent()).unwrap();
    (volumes, end)
}

#[test]
fn images_of_several_devices_are_those_of_one() {
    let full = Sampling::Cartesian(CartesianPattern::Full);
    for (sampling, slices, repetitions, method) in [
        (GOLDEN, 1, 7, "cg-sense"),
        (full.clone(), 3, 3, "cg-sense"),
        (full.clone(), 12, 1, "cartesian"),
        (GOLDEN, 1, 1, "gridding"),
    ] {
        let simulation = scan(sampling, slices, repetitions);
        let options = ReconOptions { keep_maps: true, ..iterations(alike(method), 3) };
        let one = images(&cards(1), &simulation, &options).unwrap();
        let streamed = stream(&cards(1), &simulation, &options);
        for count in [2, 3] {
            let cards = cards(count);
            let several = images(&cards, &simulation, &options).unwrap();
            assert!(several.image.data() == one.image.data(), "{method} on {count}");
            assert_eq!(several.solves, one.solves);
            assert!(several.maps == one.maps, "maps of {method} on {count}");
            let (volumes, end) = stream(&cards, &simulation, &options);
            assert!(volumes == streamed.0, "stream of {method} on {count}");
            assert_eq!(end.solves, streamed.1.solves);
            assert!(end.maps == streamed.1.maps, "maps of a stream of {method} on {count}");
            // There is work for all if there are frames that no other frame needs first.
            let first = if repetitions > 1 { slices } else { 0 };
            let shared = slices * repetitions - first > count;
            let calls: Vec<u64> = cards.iter().map(|card| card.driver.calls()).collect();
            assert!(!shared || !calls.contains(&0), "{method} on {count}: {calls:?}");
        }
    }
}

#[test]
fn a_device_that_fails_leaves_its_frames_to_the_others() {
    let simulation = scan(GOLDEN, 1, 6);
    let options = iterations(alike("cg-sense"), 2);
    let whole = cards(3);
    let one = images(&whole[..1], &simulation, &options).unwrap();
    for card in &whole {
        card.driver.set(Fault::Never);
    }
    images(&whole, &simulation, &options).unwrap();
    let calls = whole.iter().map(|card| card.driver.calls()).min().unwrap();
    let mut failed = 0;
    for broken in 0..3 {
        for number in [0, calls / 3, calls - 1] {
            let cards = cards(3);
            cards[broken].driver.set(Fault::Call { number, sticky: true });
            let several = images(&cards, &simulation, &options);
            let several = several.unwrap_or_else(|error| panic!("card {broken} at call {number}: {error}"));
            assert!(several.image.data() == one.image.data(), "card {broken} at call {number}");
            // A card may get fewer frames than in the run before, and not come to the call.
            let fails = !cards[broken].driver.failed().is_empty();
            let said = several.notes.iter().filter(|note| note.starts_with("computing without")).count();
            assert_eq!(said, usize::from(fails), "{:?}", several.notes);
            failed += usize::from(fails);
        }
    }
    assert!(failed >= 5, "{failed} of 9 faults came");
    // Two fail together, and the third one makes all.
    let three = cards(3);
    for card in &three[..2] {
        card.driver.set(Fault::Call { number: calls / 2, sticky: true });
    }
    let several = images(&three, &simulation, &options).unwrap();
    assert!(several.image.data() == one.image.data());
    let said = several.notes.iter().filter(|note| note.starts_with("computing without")).count();
    assert_eq!(said, three.iter().filter(|card| !card.driver.failed().is_empty()).count());
    assert!(said >= 1);
    // Nobody is left.
    let cards = cards(2);
    for card in &cards {
        card.driver.set(Fault::Call { number: calls / 2, sticky: true });
    }
    let error = images(&cards, &simulation, &options).unwrap_err();
    assert!(matches!(error, Error::Device { .. }), "{error}");
}

#[test]
fn a_frame_that_comes_back_keeps_what_its_coils_became() {
    let simulation = scan(Sampling::Cartesian(CartesianPattern::Full), 5, 1);
    let mut options = iterations(alike("cg-sense"), 2);
    let (coils, kind) = (VirtualCoils::Count(1), CompressionKind::Svd);
    options.prepare.compression = Some(Compression { coils, kind });
    let one = images(&cards(1), &simulation, &options).unwrap();
    let whole = cards(2);
    let several = images(&whole, &simulation, &options).unwrap();
    assert!(several.image.data() == one.image.data());
    let calls = whole[1].driver.calls();
    for number in [0, calls / 4, calls / 2] {
        let cards = cards(2);
        cards[1].driver.set(Fault::Call { number, sticky: true });
        let several = images(&cards, &simulation, &options).unwrap();
        assert!(several.image.data() == one.image.data(), "call {number}");
    }
}

#[test]
fn maps_of_slices_without_signal_stay_in_their_order() {
    let mut simulation = scan(Sampling::Cartesian(CartesianPattern::Full), 5, 1);
    for readout in simulation.scan.acquisitions.iter_mut().filter(|r| [1, 3].contains(&r.counters.slice)) {
        readout.data.fill(C32::ZERO);
    }
    let options = ReconOptions { keep_maps: true, ..iterations(alike("cg-sense"), 2) };
    let one = images(&cards(1), &simulation, &options).unwrap();
    let maps = one.maps.as_ref().unwrap();
    let dark = |slice| maps.index_axis(ndarray::Axis(1), slice).iter().all(|value| *value == C32::ZERO);
    assert_eq!([0, 1, 2, 3, 4].map(dark), [false, true, false, true, false]);
    for count in [2, 3] {
        let several = images(&cards(count), &simulation, &options).unwrap();
        assert!(several.image.data() == one.image.data() && several.maps == one.maps, "{count}");
    }
}

#[test]
fn an_error_of_a_frame_is_the_error_of_the_run() {
    let simulation = scan(GOLDEN, 1, 6);
    let cards = cards(2);
    let mut options = over(&cards, &iterations(alike("cg-sense"), 2));
    options.maps = Some(Arc::new(ndarray::ArrayD::zeros(vec![3, 16, 16])));
    let (selection, frames) = (Selection::default(), FrameOptions::default());
    let device = &cards[0].device;
    let found = reconstruct_scan(device, &simulation.scan, &selection, &frames, &options, &Monitor::silent());
    assert!(matches!(found, Err(Error::Shape { .. })), "{found:?}");
}

#[test]
fn processors_share_frames_as_gpus_do() {
    let (simulation, monitor) = (scan(GOLDEN, 1, 5), Monitor::silent());
    let options = ReconOptions { keep_maps: true, ..iterations(alike("cg-sense"), 3) };
    let images = |options: &ReconOptions| {
        let (device, selection) = (Device::cpu_with_threads(1).unwrap(), Selection::default());
        let frames = FrameOptions::default();
        reconstruct_scan(&device, &simulation.scan, &selection, &frames, options, &monitor).unwrap()
    };
    let one = images(&options);
    let mut shared = options.clone();
    shared.run.beside = (0..2).map(|_| Device::cpu_with_threads(1).unwrap()).collect();
    let several = images(&shared);
    assert!(several.image.data() == one.image.data() && several.maps == one.maps);
    assert!(several.notes == one.notes, "none of them failed: {:?}", several.notes);
}
