//! Times the type 3 NUFFT and measures its error against the direct f64 sum; prints one JSON object.
//!
//! ```text
//! cargo run --release -p rayspin-kernels --example type3_bench -- \
//!     --extent 64,64,64 --positions 1000000 --frequencies 1000000 --precision f32 --tolerance 1e-3 \
//!     [--plans 3] [--runs 5] [--device cpu|cuda] [--threads 2] [--check 50]
//! ```
//!
//! Points and values are in memory of the device, and times are by the wall clock until its work is done.
//! Positions are uniform in ±1/2, frequencies in ±extent/2, along x, y, z.

mod common;

use std::time::Instant;

use ndarray::{Array2, Axis};
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Error, Real, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::nufft::{Component, Coordinates, Options, Type3, type3::reference};

use common::Arguments;

/// The least of `runs` calls, in milliseconds.
fn least(runs: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        call()?;
        least = least.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(least)
}

/// The points of `[dim, point]`, in memory of their device.
fn components(points: &Array<f64>) -> Result<Coordinates<'_>> {
    let count = points.shape()[1];
    let component = |d| Component::new("points", points)?.strided(d * count, 1, count);
    Coordinates::new(&(0..points.shape()[0]).map(component).collect::<Result<Vec<_>>>()?)
}

fn run<R: Real>(arguments: &Arguments) -> Result<()> {
    let extent: Vec<f64> =
        arguments.text("extent", "64,64,64").split(',').filter_map(|n| n.parse().ok()).collect();
    let positions = arguments.number("positions", 1e6) as usize;
    let frequencies = arguments.number("frequencies", 1e6) as usize;
    let runs = arguments.number("runs", 5.0) as usize;
    let plans = arguments.number("plans", 3.0) as usize;
    let check = arguments.number("check", 50.0) as usize;
    let threads = arguments.number("threads", rayspin_device::cpu::available_threads() as f64) as usize;
    let options = Options::tolerance(arguments.number("tolerance", 1e-3));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let host = Device::cpu_with_threads(threads)?;
    let device = match arguments.text("device", "cpu").as_str() {
        "cpu" => host,
        "cuda" => Device::cuda(0, host)?,
        other => return Err(Error::value("--device", "cpu or cuda", other)),
    };
    let mut centred = |count: usize, widths: &[f64]| {
        Array2::from_shape_fn((count, widths.len()), |(_, d)| widths[d] * (rng.random::<f64>() - 0.5))
    };
    let x = centred(positions, &vec![1.0; extent.len()]);
    let s = centred(frequencies, &extent);
    // [dim, point], so that each component lies together.
    let columns = |points: &Array2<f64>| Array::from_host(&device, points.t().into_dyn());
    let (x_there, s_there) = (columns(&x)?, columns(&s)?);
    let make = || Type3::<R>::new(&device, components(&x_there)?, components(&s_there)?, &options);
    let plan = make()?;
    let plan_ms = least(plans, || make().and_then(|_| device.synchronize()))?;
    let mut part = || <R as Real>::from_f64(rng.random::<f64>() - 0.5);
    let values: Vec<Complex<R>> = (0..positions).map(|_| Complex::new(part(), part())).collect();
    let values64: Vec<C64> = values.iter().map(|v| C64::new(v.re.to_f64(), v.im.to_f64())).collect();
    let values = Array::from_vec(&device, &[positions], values)?;
    let mut computed = Array::zeros(&device, &[frequencies])?;
    plan.forward(&values, &mut computed)?;
    device.synchronize()?;
    let type3_ms = least(runs, || {
        plan.forward(&values, &mut computed)?;
        device.synchronize()
    })?;
    let computed = computed.to_vec()?;
    let which: Vec<usize> = (0..check).map(|_| rng.random_range(0..frequencies)).collect();
    let exact = reference::forward(x.view(), s.select(Axis(0), &which).view(), &values64);
    let (mut norm, mut difference) = (0.0, 0.0);
    for (&j, exact) in which.iter().zip(&exact) {
        let value = computed[j];
        difference += (C64::new(value.re.to_f64(), value.im.to_f64()) - exact).norm_sqr();
        norm += exact.norm_sqr();
    }
    println!(
        "{{\"extent\": {extent:?}, \"positions\": {positions}, \"frequencies\": {frequencies}, \"precision\": \"{}\", \
         \"tolerance\": {:e}, \"device\": \"{}\", \"threads\": {threads}, \"plan_ms\": {plan_ms:.3}, \"type3_ms\": {type3_ms:.3}, \
         \"type3_error\": {:.3e}}}",
        R::NAME,
        options.tolerance,
        device.describe(),
        if check > 0 { (difference / norm).sqrt() } else { 0.0 },
    );
    Ok(())
}

fn main() -> Result<()> {
    let arguments = Arguments::read();
    if arguments.text("precision", "f32") == "f64" { run::<f64>(&arguments) } else { run::<f32>(&arguments) }
}
