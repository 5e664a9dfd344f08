//! Milliseconds of CG-SENSE of the cardiac scan from arrays to arrays, for `benches/peers/arrays.py`, which
//! times the same call from
//! Python: `cargo run --release -p rayspin --example cardiac_calls SCAN [cpu|cuda]`.

use std::time::Instant;

use rayspin::core::{Error, Monitor, Result, Trajectory};
use rayspin::device::Device;
use rayspin::io::{ScanFile, ScanOptions, read_scan};
use rayspin::mri::methods::{CgSense, suited_to};
use rayspin::mri::recon::{ReconOptions, reconstruct_frame};
use rayspin::mri::scan::{Facts, Frame, FrameOptions, Samples};

const ROUNDS: usize = 21;
const MATRIX: [usize; 2] = [256, 256];

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or_else(|| Error::value("scan", "a file", "none"))?;
    let cpu = Device::cpu()?;
    let device = if words.next().as_deref() == Some("cuda") { Device::cuda(0, cpu)? } else { cpu };
    let read = read_scan(&path, &ScanOptions::default(), &Monitor::silent());
    let Ok(ScanFile::Scan(scan)) = read else {
        return Err(Error::value(path, "a scan with a header", "another file"));
    };
    let index = scan.frames()?;
    let label = index.labels().next().ok_or_else(|| Error::value("scan", "an image", "none"))?;
    let frame = index.assemble(label, &FrameOptions::default(), &mut Vec::new())?;
    let Samples::NonCartesian { trajectory, data } = frame.samples else {
        return Err(Error::value("scan", "samples along a trajectory", "samples on a grid"));
    };
    let method = CgSense { iterations: 15, tolerance: 0.0, ..CgSense::default() };
    let (mut walls, mut stages) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let points = Trajectory::from_cycles_per_fov(trajectory.points().to_owned())?;
        let mut notes = Vec::new();
        let frame = Frame::from_samples(data.clone(), points, MATRIX.to_vec(), frame.geometry, &mut notes)?;
        // λ follows from the noise of the scan, as it does in Python.
        let (method, _) = suited_to(&method, &Facts::of(&frame, None, 1)?, |_| false)?;
        let options = ReconOptions { method, keep_maps: false, ..ReconOptions::default() };
        let monitor = Monitor::silent();
        let found = reconstruct_frame(&device, frame, notes, &options, &monitor)?;
        walls.push(start.elapsed().as_secs_f64() * 1e3);
        stages.push(monitor.stages().iter().map(|(_, seconds)| seconds * 1e3).sum());
        drop(found);
    }
    let median = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    println!(
        "cardiac CG-SENSE, 15 iterations: Rust from arrays {:.1} ms, stages {:.1} ms",
        median(&mut walls),
        median(&mut stages)
    );
    Ok(())
}
