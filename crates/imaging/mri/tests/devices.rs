//! The same images on every device: the CPU's against the emulated GPU's, and against this machine's GPU
//! where there is one.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{alike, iterations};
use rayspin_core::{C32, Monitor};
use rayspin_device::Device;
use rayspin_mri::maps::Sensitivities;
use rayspin_mri::prepare::{Compression, CompressionKind, VirtualCoils};
use rayspin_mri::recon::{BatchSizes, ReconOptions, Selection, reconstruct_scan};
use rayspin_mri::scan::FrameOptions;
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SphereOrder, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, neighbour_covariance, simulate};

fn image(device: &Device, simulation: &Simulation, options: &ReconOptions) -> Vec<C32> {
    let scan = reconstruct_scan(
        device,
        &simulation.scan,
        &Selection::default(),
        &FrameOptions::default(),
        options,
        &Monitor::silent(),
    );
    scan.unwrap().image.data().iter().copied().collect()
}

/// The largest difference between two images, in parts of the brightest voxel.
fn apart(a: &[C32], b: &[C32]) -> f32 {
    let brightest = b.iter().map(|v| v.norm()).fold(0.0, f32::max);
    a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max) / brightest
}

/// Images agree to 1e-3 of their brightest voxel: transforms are exact to 1e-5 each, and iterations carry
/// that on.
fn agree(sampling: Sampling, matrix: [usize; 3], methods: &[&str]) {
    let dims = if matrix[2] > 1 { 3 } else { 2 };
    let options = SimulateOptions {
        dims,
        matrix,
        fov_mm: [220.0, 220.0, if dims == 3 { 220.0 } else { 5.0 }],
        coils: 4,
        sampling,
        ..SimulateOptions::default()
    };
    let simulation = simulate(&options, &Monitor::silent()).unwrap();
    let cpu = Device::cpu_with_threads(2).unwrap();
    let devices = rayspin_emu::devices().unwrap();
    for &method in methods {
        let options = iterations(alike(method), 6);
        let expected = image(&cpu, &simulation, &options);
        for device in &devices {
            let found = image(device, &simulation, &options);
            let apart = apart(&found, &expected);
            assert!(apart < 1e-3, "{method} on {}: {apart}", device.describe());
        }
    }
}

const ITERATIVE: [&str; 4] = ["ls", "cg-sense", "wavelet", "tv"];

#[test]
fn radial_images_are_the_same_on_every_device() {
    let sampling = Sampling::Radial { spokes: 24, angles: SpokeAngles::Golden };
    agree(sampling, [32, 32, 1], &[&["gridding"][..], &ITERATIVE].concat());
}

#[test]
fn kooshball_images_are_the_same_on_every_device() {
    let sampling = Sampling::Kooshball { spokes: 60, order: SphereOrder::Spiral };
    agree(sampling, [10, 10, 10], &["gridding", "cg-sense"]);
}

#[test]
fn images_from_grids_are_the_same_on_every_device() {
    let full = Sampling::Cartesian(CartesianPattern::Full);
    agree(full, [36, 30, 1], &[&["cartesian"][..], &ITERATIVE].concat());
    let thinned = CartesianPattern::Uniform { acceleration: [2, 1], calibration: 16 };
    agree(Sampling::Cartesian(thinned), [36, 30, 1], &["grappa"]);
}

/// Whitened and compressed on the way to the device, and taken some coils at a time there.
#[test]
fn images_of_prepared_coils_are_the_same_on_every_device() {
    let thinned = CartesianPattern::Uniform { acceleration: [2, 1], calibration: 20 };
    let radial = Sampling::Radial { spokes: 24, angles: SpokeAngles::Golden };
    let full = Sampling::Cartesian(CartesianPattern::Full);
    for (sampling, kind, method, sensitivities) in [
        (full.clone(), CompressionKind::Svd, "cartesian", None),
        (full, CompressionKind::Geometric, "cg-sense", None),
        (Sampling::Cartesian(thinned), CompressionKind::Geometric, "cg-sense", Some(Sensitivities::Walsh)),
        (Sampling::Cartesian(thinned), CompressionKind::Svd, "grappa", None),
        (radial, CompressionKind::Svd, "cg-sense", None),
    ] {
        let options = SimulateOptions {
            matrix: [36, 30, 1],
            coils: 6,
            sampling,
            snr: Some(40.0),
            noise_covariance: Some(neighbour_covariance(6, 0.3).unwrap()),
            noise_readouts: 40,
            ..SimulateOptions::default()
        };
        let simulation = simulate(&options, &Monitor::silent()).unwrap();
        let mut options = ReconOptions { sensitivities, ..iterations(alike(method), 6) };
        options.prepare.compression = Some(Compression { coils: VirtualCoils::Count(4), kind });
        let expected = image(&Device::cpu_with_threads(2).unwrap(), &simulation, &options);
        for device in rayspin_emu::devices().unwrap() {
            for coil_batch in [None, Some(3), Some(1)] {
                let mut options = options.clone();
                options.run.batch_sizes = BatchSizes { coils: coil_batch, ..BatchSizes::default() };
                let apart = apart(&image(&device, &simulation, &options), &expected);
                let what = format!("{method} of {kind:?} {coil_batch:?} on {}", device.describe());
                assert!(apart < 1e-3, "{what}: {apart}");
            }
        }
    }
}
