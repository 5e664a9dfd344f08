//! Pairs of voxel and sample per second of every direct NUDFT variant of a GPU, whole calls on arrays in its
//! memory, and the relative error against exact values at random outputs. Prints a Markdown table.
//!
//! `cargo run --release -p rayspin-kernels --example nudft_gpu [-- MATRIX SAMPLES [VARIANT]]`, MATRIX as
//! `128x128x128` (the default).

use std::time::Instant;

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Real, Result, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::{Array, Backend, BackendKind, Device};
use rayspin_kernels::nudft::{self, Operation, Problem};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let matrix = arguments.first().map_or("128x128x128", String::as_str);
    let matrix: Vec<usize> = matrix.split('x').filter_map(|n| n.parse().ok()).collect();
    let samples = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(65536);
    let only = arguments.get(2).map(String::as_str);
    let device = Device::cuda(0, Device::cpu()?)?;
    println!("{}; matrix {matrix:?}\n", device.describe());
    println!("| variant | operation | samples | ms, median (best) | pairs/s | relative error |");
    println!("|---|---|---|---|---|---|");
    table::<f32>(&device, &matrix, samples, only)?;
    table::<f64>(&device, &matrix, samples, only)
}

fn table<T: SimdReal>(device: &Device, matrix: &[usize], samples: usize, only: Option<&str>) -> Result<()> {
    for row in nudft::variants::<T>() {
        if let (nudft::Implementation::Cuda(variant), Backend::Cuda(cuda)) =
            (&row.implementation, device.backend())
            && !variant.runs_on(cuda)
        {
            continue;
        }
        if row.backend != BackendKind::Cuda || only.is_some_and(|only| only != row.name) {
            continue;
        }
        // The slow ones would take minutes.
        let few = !["gpu-separable", "gpu-double", "gpu-tensor", "gpu-wgmma"].contains(&row.name);
        for operation in [Operation::Q, Operation::Adjoint, Operation::Forward] {
            let samples = if few { samples.min(2048) } else { samples };
            let problem = Problem { operation, matrix: matrix.to_vec(), samples, batch: 1 };
            if (row.refuses)(&problem).is_some() {
                continue;
            }
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let dims = matrix.len();
            let points = Array2::from_shape_fn((samples, dims), |(_, c)| {
                (rng.random::<f64>() - 0.5) * matrix[dims - 1 - c] as f64
            });
            let trajectory = Trajectory::from_cycles_per_fov(points)?;
            let mut number = || <T as Real>::from_f64(rng.random::<f64>() - 0.5);
            let voxels: usize = matrix.iter().product();
            let input: Vec<Complex<T>> = match operation {
                Operation::Forward => (0..voxels).map(|_| Complex::new(number(), number())).collect(),
                _ => (0..samples).map(|_| Complex::new(number(), number())).collect(),
            };
            let weights: Vec<T> = input.iter().map(|v| v.re).collect();
            let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
            let (from, to) = match operation {
                Operation::Forward => (matrix.to_vec(), vec![samples]),
                Operation::Adjoint => (vec![samples], matrix.to_vec()),
                Operation::Q => (vec![samples], doubled),
            };
            let len: usize = to.iter().product();
            let from = Array::from_vec(device, &from, input.clone())?;
            let wide = match operation {
                Operation::Q => Some(Array::from_slice(device, &[samples], &weights)?),
                _ => None,
            };
            let mut out = Array::zeros(device, &to)?;
            out.fill(Complex::new(T::nan(), T::nan()))?;
            let (start, mut times) = (Instant::now(), Vec::new());
            while times.len() < 3 || (times.len() < 40 && start.elapsed().as_secs_f64() < 0.8) {
                device.synchronize()?;
                let run = Instant::now();
                match operation {
                    Operation::Forward => nudft::forward_with(&row, &trajectory, &from, &mut out)?,
                    Operation::Adjoint => nudft::adjoint_with(&row, &trajectory, &from, &mut out)?,
                    Operation::Q => nudft::q_with(&row, &trajectory, wide.as_ref(), matrix, &mut out)?,
                }
                device.synchronize()?;
                times.push(run.elapsed().as_secs_f64());
            }
            // The first compiled the kernels.
            times.remove(0);
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            let indices: Vec<usize> = (0..60).map(|_| rng.random_range(0..len)).collect();
            let exact = match operation {
                Operation::Forward => nudft::forward_at(&trajectory, matrix, &input, &indices[..4])?,
                Operation::Adjoint => nudft::adjoint_at(&trajectory, matrix, &input, &indices)?,
                Operation::Q => nudft::q_at(&trajectory, matrix, Some(&weights), &indices)?,
            };
            let values = out.to_vec()?;
            let values = indices.iter().map(|&i| values[i]);
            let values: Vec<C64> = values.map(|v| C64::new(Real::to_f64(v.re), Real::to_f64(v.im))).collect();
            let apart: f64 = values.iter().zip(&exact).map(|(a, b)| (a - b).norm_sqr()).sum();
            let size: f64 = exact.iter().map(C64::norm_sqr).sum();
            println!(
                "| {} {} | {operation:?} | {samples} | {:.3} ({:.3}) | {:.2e} | {:.1e} |",
                row.name,
                T::NAME,
                1e3 * median,
                1e3 * times[0],
                problem.pairs() / median,
                (apart / size).sqrt()
            );
        }
    }
    Ok(())
}
