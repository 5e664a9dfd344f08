//! Coefficients of a T2-prepared series over a temporal basis, from arrays in BART's format: what
//! `benches/peers/subspace.py` compares.
//!
//! `cargo run --release -p rayspin-mri --example subspace FOLDER COEFFICIENTS METHOD ITERATIONS RUNS LAMBDA…`
//!
//! FOLDER holds `traj.cfl` (3, readout, spoke, 1, 1, echo; cycles per field of view), `ksp.cfl` (1, readout,
//! spoke, coil, 1, echo), `maps.cfl` (x, y, 1, coil) and `times.txt`, the echo times in s. The basis is of
//! [`t2_decays`] at these times. It goes to `basis.cfl`, and the coefficients of the n-th λ to
//! `rayspin-n.cfl` (x, y, 1, 1, 1, 1, coefficient). Prints a line for each λ: λ, iterations, the least and
//! the median time in s of RUNS runs.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ndarray::{Array2, ArrayD, IxDyn, s};
use rayspin_core::{C32, Geometry, Monitor, Trajectory};
use rayspin_device::Device;
use rayspin_mri::basis::{Basis, t2_decays};
use rayspin_mri::methods::{self, Methods, Value};
use rayspin_mri::recon::{Frames, ReconOptions, reconstruct_frames};
use rayspin_mri::scan::{Frame, Label, Samples};

type Done<T> = Result<T, Box<dyn Error>>;

/// Values and dimensions, the first one fastest.
fn read(path: &Path) -> Done<(Vec<C32>, Vec<usize>)> {
    let header = std::fs::read_to_string(path.with_extension("hdr"))?;
    let line = header.lines().nth(1).ok_or("a header without dimensions")?;
    let dims = line.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let bytes = std::fs::read(path.with_extension("cfl"))?;
    let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let values = bytes.chunks_exact(8).map(|b| C32::new(number(b), number(&b[4..]))).collect();
    Ok((values, dims))
}

fn write(path: &Path, values: &[C32], dims: &[usize]) -> Done<()> {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    std::fs::write(path.with_extension("hdr"), format!("# Dimensions\n{}\n", dims.join(" ")))?;
    let bytes: Vec<u8> = values.iter().flat_map(|v| [v.re, v.im]).flat_map(f32::to_le_bytes).collect();
    Ok(std::fs::write(path.with_extension("cfl"), bytes)?)
}

fn main() -> Done<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, coefficients, method, iterations, runs, lambdas @ ..] = &arguments[..] else {
        return Err("FOLDER COEFFICIENTS METHOD ITERATIONS RUNS LAMBDA…".into());
    };
    let (folder, coefficients, runs) =
        (Path::new(folder), coefficients.parse::<usize>()?, runs.parse::<usize>()?);
    let times: Vec<f64> = std::fs::read_to_string(folder.join("times.txt"))?
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let basis = Basis::svd(t2_decays(&times)?.view(), coefficients)?;
    let columns: Vec<C32> = basis.matrix().t().iter().map(|v| C32::new(v.re as f32, v.im as f32)).collect();
    write(&folder.join("basis"), &columns, &[1, 1, 1, 1, 1, times.len(), coefficients])?;

    let (points, dims) = read(&folder.join("traj"))?;
    let samples = dims[1] * dims[2];
    let (values, _) = read(&folder.join("ksp"))?;
    let (maps, dims) = read(&folder.join("maps"))?;
    let ([x, y], coils) = ([dims[0], dims[1]], dims[3]);
    let maps = Arc::new(ArrayD::from_shape_vec(IxDyn(&[coils, y, x]), maps)?);
    let frames: Vec<Frame> = (0..times.len())
        .map(|echo| {
            let own = &points[echo * samples * 3..][..samples * 3];
            let of = |sample: usize, d: usize| f64::from(own[3 * sample + d].re);
            let points = Array2::from_shape_fn((samples, 2), |(sample, d)| of(sample, d));
            let data = values[echo * samples * coils..][..samples * coils].to_vec();
            Ok(Frame {
                label: Label { repetition: echo as u16, ..Label::default() },
                matrix: vec![y, x],
                geometry: Geometry::default(),
                samples: Samples::NonCartesian {
                    trajectory: Trajectory::from_cycles_per_fov(points)?,
                    data: Array2::from_shape_vec((coils, samples), data)?,
                },
                times: None,
                calibration: None,
            })
        })
        .collect::<Done<_>>()?;
    let labels: Vec<Label> = frames.iter().map(|frame| frame.label).collect();

    let device = Device::cpu()?;
    println!("{}", device.describe());
    let basis = Arc::new(basis);
    for (number, lambda) in lambdas.iter().enumerate() {
        let value = ("lambda".to_owned(), Value::Number(lambda.parse()?));
        let iterations = ("iterations".to_owned(), Value::Count(iterations.parse()?));
        // As many iterations as are asked for.
        let tolerance = ("tolerance".to_owned(), Value::Number(0.0));
        let values = [value, iterations, tolerance];
        let method = methods::with(Methods::default().named(method)?, values)?;
        let options = ReconOptions {
            maps: Some(maps.clone()),
            basis: Some(basis.clone()),
            keep_maps: false,
            ..ReconOptions::with_method(method)
        };
        let mut seconds = Vec::new();
        for run in 0..runs.max(1) {
            let mut next = frames.clone().into_iter();
            let start = Instant::now();
            let mut source = |_, _: &mut Vec<String>| {
                next.next().ok_or_else(|| rayspin_core::Error::value("frames", "one more", "none"))
            };
            let series = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
            let found = reconstruct_frames(&device, series, &mut source, &options, &Monitor::silent())?;
            seconds.push(start.elapsed().as_secs_f64());
            if run > 0 {
                continue;
            }
            if number == 0 {
                found.notes.iter().for_each(|note| println!("note: {note}"));
            }
            let image = found.image.data().slice(s![.., 0, .., ..]).iter().copied().collect::<Vec<_>>();
            write(&folder.join(format!("rayspin-{number}")), &image, &[x, y, 1, 1, 1, 1, coefficients])?;
            println!(
                "lambda {lambda} iterations {}",
                found.solves.first().map_or(0, |solve| solve.iterations())
            );
        }
        seconds.sort_by(f64::total_cmp);
        println!("seconds {:.3} {:.3}", seconds[0], seconds[seconds.len() / 2]);
    }
    Ok(())
}
