//! Times the steps that prepare a reconstruction on a GPU, by the GPU's clock. Prints one line per problem.
//!
//! ```text
//! cargo run --release -p rayspin-kernels --example setup_gpu -- [NAME...] [--runs 10] [--small]
//! ```
//!
//! `NAME` selects problems whose names begin so; without it all run. `--small` shrinks every axis, to try it
//! on the emulator. Milliseconds are medians over runs of the whole call, with arrays on the GPU. GB/s count
//! the bytes of the floor, which any implementation must read and write once.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Result, Trajectory};
use rayspin_device::{Array, Backend, Cuda, Device};
use rayspin_kernels::gram::{self, Rows};
use rayspin_kernels::nufft::{Nufft, Options};
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_kernels::{coil_mixing, density, espirit, grappa, pocs, select, walsh, window};

struct Bench {
    device: Device,
    names: Vec<String>,
    runs: usize,
    small: bool,
}

impl Bench {
    fn wanted(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| name.starts_with(wanted.as_str()))
    }

    fn shape(&self, shape: &[usize]) -> Vec<usize> {
        shape.iter().map(|&n| if self.small { n.div_ceil(16) } else { n }).collect()
    }

    fn cuda(&self) -> Result<&Cuda> {
        match self.device.backend() {
            Backend::Cuda(cuda) => Ok(cuda),
            Backend::Cpu(_) => Err(rayspin_core::Error::value("device", "a GPU", self.device.describe())),
        }
    }

    /// Times `call`; `bytes` and `flops` are the floor's.
    fn line(&self, name: &str, bytes: f64, flops: f64, mut call: impl FnMut() -> Result<()>) -> Result<()> {
        let cuda = self.cuda()?;
        call()?;
        let mut times = (0..self.runs).map(|_| cuda.seconds(&mut call)).collect::<Result<Vec<_>>>()?;
        times.sort_by(f64::total_cmp);
        let seconds = times[self.runs / 2];
        println!(
            "{name:<34} {:>10.3} ms {:>9.1} GB/s {:>9.1} GFlop/s",
            seconds * 1e3,
            bytes / seconds * 1e-9,
            flops / seconds * 1e-9
        );
        Ok(())
    }
}

fn random(device: &Device, shape: &[usize], seed: u64) -> Result<Array<C32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let len = shape.iter().product();
    let values = (0..len).map(|_| C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0)));
    Array::from_vec(device, shape, values.collect())
}

fn walsh_maps(bench: &Bench) -> Result<()> {
    for (coils, shape) in [
        (8, &[128, 128, 128][..]),
        (12, &[128, 128, 128]),
        (32, &[128, 128, 128]),
        (8, &[256, 256, 256]),
        (12, &[256, 256]),
        (32, &[512, 512]),
    ] {
        let shape = bench.shape(shape);
        let name = format!("walsh {coils} coils {shape:?}");
        if !bench.wanted(&name) {
            continue;
        }
        // Nearly of rank one, as coil images are.
        let mut images = random(&bench.device, &[&[coils], &shape[..]].concat(), 1)?;
        images.update(|values| {
            let voxels = values.len() / coils;
            for (i, v) in values.iter_mut().enumerate() {
                *v = C32::from_polar(1.0 + 0.1 * v.re, (i / voxels) as f32 + 0.1 * v.im);
            }
        })?;
        let (_, work) = walsh::needs_on(&bench.device, coils, &shape);
        bench
            .line(&name, work.bytes, work.flops, || walsh::maps(&images, walsh::DEFAULT_RADIUS).map(drop))?;
    }
    Ok(())
}

fn espirit_maps(bench: &Bench) -> Result<()> {
    for (coils, reach, shape, sets) in [
        (8, [4, 4, 4], [128, 128, 128], 1),
        (8, [4, 4, 4], [128, 128, 128], 2),
        (32, [2, 2, 2], [128, 128, 128], 1),
        (12, [0, 5, 5], [1, 256, 256], 1),
        (32, [0, 4, 4], [1, 512, 512], 1),
    ] {
        let shape: [usize; 3] = std::array::from_fn(|axis| bench.shape(&shape)[axis]);
        let name = format!("espirit {coils} coils {shape:?}, {sets} sets");
        if !bench.wanted(&name) {
            continue;
        }
        let lags = reach.map(|h: usize| 2 * h + 1);
        let mut q = random(&bench.device, &[&[coils, coils], &lags[..]].concat(), 2)?;
        // Hermitian, with one strong vector whose phase turns over the image, and a weaker one.
        let count: usize = lags.iter().product();
        q.update(|q| {
            let raw = q.to_vec();
            for (index, value) in q.iter_mut().enumerate() {
                let (i, j, lag) = (index / count / coils, index / count % coils, index % count);
                let mirrored = raw[(j * coils + i) * count + count - 1 - lag].conj();
                *value = (raw[index] + mirrored) * (0.05 / (coils * count) as f32);
                if lag == count / 2 {
                    let turn = i as f32 - j as f32;
                    *value += (C32::cis(turn) * 0.95 + C32::cis(-2.0 * turn) * 0.5) / coils as f32;
                }
            }
        })?;
        let mut phase = Array::zeros(&bench.device, &[coils])?;
        phase.fill(C32::ONE)?;
        let planes = [0, shape[0]];
        let problem = espirit::Problem { coils, reach_zyx: reach, shape_zyx: shape, planes, sets, crop: 0.8 };
        let work = problem.work();
        bench
            .line(&name, work.bytes, work.flops, || espirit::maps(&q, &phase, shape, sets, 0.8).map(drop))?;
    }
    Ok(())
}

/// Spokes of 256 samples through the centre of 128³, golden means.
fn kooshball(bench: &Bench) -> Result<(Trajectory, Vec<usize>)> {
    let matrix = bench.shape(&[128, 128, 128]);
    let (n, spokes, readout) = (matrix[0] as f64, 96_000 / (2048 / matrix[0]), 2 * matrix[0]);
    let points = Array2::from_shape_fn((spokes * readout, 3), |(i, d)| {
        let (spoke, radius) = (i / readout, (i % readout) as f64 / readout as f64 - 0.5);
        let angle = spoke as f64 * std::f64::consts::PI * (5f64.sqrt() - 1.0);
        let up = (spoke as f64 + 0.5) / spokes as f64;
        let flat = (1.0 - up * up).sqrt();
        n * radius * [angle.cos() * flat, angle.sin() * flat, up][d]
    });
    Ok((Trajectory::from_cycles_per_fov(points)?, matrix))
}

/// Ten iterations. The floor counts the divisions alone.
fn pipe_menon(bench: &Bench) -> Result<()> {
    if !bench.wanted("density") {
        return Ok(());
    }
    let (trajectory, matrix) = kooshball(bench)?;
    let samples = trajectory.samples() as f64;
    let name = format!("density {matrix:?}, {samples} samples, 10 times");
    bench.line(&name, 240.0 * samples, 10.0 * samples, || {
        density::pipe_menon(&bench.device, &trajectory, &matrix, 10).map(drop)
    })?;
    for parts in [2, 8] {
        let points = trajectory.samples().div_ceil(parts);
        bench.line(&format!("density, {parts} blocks of points"), 240.0 * samples, 10.0 * samples, || {
            density::pipe_menon_by_blocks(&bench.device, &trajectory, &matrix, 10, points).map(drop)
        })?;
    }
    Ok(())
}

/// Neighbourhoods of calibration regions; samples of all coils.
fn grams(bench: &Bench) -> Result<()> {
    for (coils, region, kernel) in [(8, [24, 24, 24], 5), (32, [24, 24, 24], 3), (12, [1, 24, 24], 6)] {
        let region: [usize; 3] = if bench.small { region.map(|n: usize| n.min(9)) } else { region };
        let kernel = region.map(|n| n.min(kernel));
        let name = format!("gram {coils} coils of {region:?}, neighbourhoods {kernel:?}");
        if !bench.wanted(&name) {
            continue;
        }
        let values = random(&bench.device, &[&[coils], &region[..]].concat(), 8)?;
        let offsets = |n: [usize; 3]| {
            let position = move |i: usize| [i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]];
            (0..n.iter().product()).map(position).map(move |[z, y, x]| (z * region[1] + y) * region[2] + x)
        };
        let volume: usize = region.iter().product();
        let rows: Vec<u32> =
            offsets([0, 1, 2].map(|a| region[a] + 1 - kernel[a])).map(|i| i as u32).collect();
        let columns: Vec<u32> =
            (0..coils).flat_map(|coil| offsets(kernel).map(move |i| (coil * volume + i) as u32)).collect();
        one_gram(bench, &name, &values, Rows::Listed(&rows), &columns)?;
    }
    for (coils, samples) in [(8usize, 1_536_000usize), (32, 1_536_000)] {
        let samples = if bench.small { samples / 4096 } else { samples };
        let name = format!("gram {coils} coils of {samples} samples");
        if !bench.wanted(&name) {
            continue;
        }
        let values = random(&bench.device, &[coils, samples], 9)?;
        let columns: Vec<u32> = (0..coils).map(|coil| (coil * samples) as u32).collect();
        one_gram(bench, &name, &values, Rows::First(samples), &columns)?;
    }
    Ok(())
}

fn one_gram(bench: &Bench, name: &str, values: &Array<C32>, rows: Rows<'_>, columns: &[u32]) -> Result<()> {
    let n = columns.len();
    let mut matrix = Array::<C64>::zeros(&bench.device, &[n, n])?;
    let work = gram::Problem { rows: rows.len(), columns: n }.work();
    bench.line(name, work.bytes, work.flops, || gram::gram(values, rows, columns, &mut matrix, false))
}

/// The floor counts all steps but the transforms.
fn toeplitz(bench: &Bench) -> Result<()> {
    if !bench.wanted("toeplitz") {
        return Ok(());
    }
    let (trajectory, matrix) = kooshball(bench)?;
    let plan = Nufft::<f32>::new(&bench.device, &trajectory, &matrix, &Options::tolerance(1e-4))?;
    let (samples, voxels) = (trajectory.samples() as f64, matrix.iter().product::<usize>() as f64);
    bench.line(
        &format!("toeplitz {matrix:?}, {samples} samples"),
        128.0 * samples + 128.0 * voxels,
        0.0,
        || {
            let adjoint = &mut |phases: &Array<C32>, block: &mut Array<C32>| plan.adjoint(phases, block);
            Toeplitz::from_adjoint(&bench.device, &trajectory, &matrix, adjoint).map(drop)
        },
    )?;
    let phases = random(&bench.device, &[trajectory.samples()], 3)?;
    let mut block = Array::zeros(&bench.device, &matrix)?;
    bench.line("toeplitz: one of its transforms", 0.0, 0.0, || plan.adjoint(&phases, &mut block))
}

/// Two lines of three are missing.
fn grappa_lines(bench: &Bench) -> Result<()> {
    for (coils, shape) in [(12, [1, 256, 256]), (32, [64, 128, 256])] {
        let shape: [usize; 3] = std::array::from_fn(|axis| bench.shape(&shape)[axis]);
        let [nz, ny, nx] = shape;
        let name = format!("grappa {coils} coils {shape:?}");
        if !bench.wanted(&name) {
            continue;
        }
        let mut kspace = random(&bench.device, &[coils, nz, ny, nx], 4)?;
        let sources: Vec<[isize; 3]> =
            [-4, -1, 2, 5].iter().flat_map(|&y| (-2..=2).map(move |x| [0, y, x])).collect();
        let weights = random(&Device::cpu()?, &[coils * coils * sources.len()], 5)?.to_vec()?;
        let weights = weights.iter().map(|w| w * 0.01).collect();
        let lines: Vec<[usize; 2]> =
            (0..nz * ny).map(|line| [line / ny, line % ny]).filter(|[_, y]| y % 3 != 0).collect();
        let (count, elements) = (lines.len() as f64, (coils * nz * ny * nx) as f64);
        let flops = 8.0 * (coils * coils * sources.len() * nx) as f64 * count;
        let bytes = 8.0 * (elements + count * (coils * nx) as f64);
        let by = grappa::Interpolation { sources, weights, lines };
        bench.line(&name, bytes, flops, || grappa::fill(&mut kspace, &by))?;
    }
    Ok(())
}

fn projections(bench: &Bench) -> Result<()> {
    let shape = bench.shape(&[256, 256, 256]);
    let voxels = shape.iter().product::<usize>() as f64;
    if !bench.wanted("pocs") {
        return Ok(());
    }
    let phase = random(&bench.device, &shape, 6)?;
    let mut image = random(&bench.device, &shape, 7)?;
    bench.line(&format!("pocs project_phase {shape:?}"), 24.0 * voxels, 10.0 * voxels, || {
        pocs::project_phase(&phase, &mut image)
    })?;
    let mut mask = Array::zeros(&bench.device, &shape)?;
    mask.fill(1.0f32)?;
    bench.line(&format!("pocs restore {shape:?}"), 20.0 * voxels, 0.0, || {
        pocs::restore_samples(&mask, &phase, &mut image)
    })
}

fn percentiles(bench: &Bench) -> Result<()> {
    for shape in [&[128, 128, 128][..], &[256, 256, 256], &[256, 256]] {
        let shape = bench.shape(shape);
        let name = format!("select 99th percentile of {shape:?}");
        if !bench.wanted(&name) {
            continue;
        }
        let image = random(&bench.device, &shape, 10)?;
        let len = image.len() as f64;
        bench.line(&name, 8.0 * len, 3.0 * len, || {
            select::magnitude(&image, image.len() * 99 / 100).map(drop)
        })?;
    }
    Ok(())
}

fn windows(bench: &Bench) -> Result<()> {
    for shape in [&[128, 128, 128][..], &[256, 256, 256]] {
        let shape = bench.shape(shape);
        let profiles: Vec<Vec<f64>> = shape.iter().map(|&n| vec![0.5; n]).collect();
        let known = ndarray::ArrayD::from_elem(ndarray::IxDyn(&shape), true);
        let len = known.len() as f64;
        let name = format!("window of {shape:?}");
        if bench.wanted(&name) {
            bench.line(&name, 4.0 * len, len, || {
                window::separable::<f32>(&bench.device, &profiles, None).map(drop)
            })?;
        }
        let name = format!("window, sampling mask of {shape:?} from the host");
        if bench.wanted(&name) {
            bench.line(&name, 6.0 * len, 0.0, || {
                window::indicator::<f32>(&bench.device, known.view()).map(drop)
            })?;
        }
    }
    Ok(())
}

fn coil_mixings(bench: &Bench) -> Result<()> {
    for (coils, kept, lines, positions, along) in [
        (32, 12, 4096, 512, false),
        (32, 12, 4096, 512, true),
        (32, 32, 4096, 512, false),
        (12, 8, 256, 512, true),
    ] {
        let [lines, positions] =
            [lines, positions].map(|n: usize| if bench.small { n.div_ceil(16) } else { n });
        let matrices = if along { positions } else { 1 };
        let what = format!("{coils} to {kept} coils, {lines} x {positions}, {matrices}");
        let samples = || random(&bench.device, &[coils, lines, positions], 3);
        let name = format!("mix {what}");
        if bench.wanted(&name) {
            let (samples, by) = (samples()?, random(&bench.device, &[kept, coils, matrices], 4)?);
            let points = lines * positions;
            let mut out = Array::zeros(&bench.device, &[kept, points])?;
            let work = coil_mixing::Problem { coils, kept, points, positions: matrices }.work();
            bench.line(&name, work.bytes, work.flops, || {
                coil_mixing::mix(&by, 0..kept, &samples, &mut out, 0)
            })?;
        }
        let name = format!("covariances {what}");
        if along && bench.wanted(&name) {
            let samples = samples()?;
            let mut out = Array::zeros(&bench.device, &[positions, coils, coils])?;
            let (values, pairs) = (samples.len() as f64, (coils * (coils + 1) / 2) as f64);
            let flops = 8.0 * pairs * (lines * positions) as f64;
            bench.line(&name, 8.0 * values, flops, || coil_mixing::covariances(&samples, &mut out, false))?;
        }
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut bench = Bench { device: Device::cpu()?, names: Vec::new(), runs: 10, small: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => bench.runs = arguments.next().ok_or("--runs without a number")?.parse()?,
            "--small" => bench.small = true,
            name => bench.names.push(name.to_owned()),
        }
    }
    let (device, why) = Device::auto(bench.device.clone());
    if let Some(why) = why {
        println!("no GPU ({why}): the emulator, whose times say nothing of a GPU");
        bench.device = rayspin_emu::Emulator::device()?;
    } else {
        bench.device = device;
    }
    println!("{}", bench.device.describe());
    walsh_maps(&bench)?;
    espirit_maps(&bench)?;
    pipe_menon(&bench)?;
    grams(&bench)?;
    toeplitz(&bench)?;
    grappa_lines(&bench)?;
    projections(&bench)?;
    percentiles(&bench)?;
    windows(&bench)?;
    coil_mixings(&bench)?;
    Ok(())
}
