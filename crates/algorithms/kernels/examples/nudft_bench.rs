//! Pairs of voxel and sample per second of every direct NUDFT variant, with one thread and with all, next to
//! the fused multiply-adds that the same cores sustain. Prints a Markdown table.
//!
//! `cargo run --release -p rayspin-kernels --example nudft_bench [-- MATRIX [SECONDS]]`, MATRIX as `64x64x64`
//! (the default) or `256x256`, SECONDS the time spent on each figure (default 0.5).

use std::time::Instant;

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Real, Result, Trajectory};
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Simd, SimdReal, dispatch};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::nudft::{
    Implementation, Operation, Problem, adjoint_with, forward_with, q_with, variants,
};
use rayspin_kernels::variant::Variant;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let matrix = arguments.next().unwrap_or_else(|| "64x64x64".into());
    let matrix: Vec<usize> = matrix.split('x').filter_map(|n| n.parse().ok()).collect();
    let seconds = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(0.5);
    let all_cores = Device::cpu()?;
    let one = Device::cpu_with_threads(1)?;
    println!("{}; matrix {matrix:?}; pairs/s, best run\n", all_cores.describe());
    println!(
        "| precision | variant | adjoint, 1 thread | all | forward, 1 thread | all | Q, 1 thread | all |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    table::<f32>([&one, &all_cores], &matrix, seconds)?;
    table::<f64>([&one, &all_cores], &matrix, seconds)
}

fn table<T: SimdReal>(devices: [&Device; 2], matrix: &[usize], seconds: f64) -> Result<()> {
    for row in variants::<T>().iter().filter(|row| row.backend == BackendKind::Cpu) {
        print!("| {} | {} ", T::NAME, row.name);
        for operation in [Operation::Adjoint, Operation::Forward, Operation::Q] {
            for device in devices {
                // Runs of a few milliseconds: long enough to fill every tile, short enough that the best of
                // many is one that nothing interrupted.
                let points = pairs(operation, matrix, 1);
                let mut samples = 16;
                for _ in 0..3 {
                    let rate = rate(row, device, operation, matrix, samples, 0.0)?;
                    samples = ((rate * 0.01 / points).max((rate * 0.2 / points).min(2048.0)) as usize)
                        .clamp(16, 1 << 16);
                }
                print!("| {:.2e} ", rate(row, device, operation, matrix, samples, seconds)?);
            }
        }
        println!("|");
    }
    print!("| {} | fused multiply-adds/s ", T::NAME);
    for device in devices {
        print!("| {:.2e} ", multiply_adds::<T>(device, seconds));
    }
    println!("| | | | |");
    Ok(())
}

fn pairs(operation: Operation, matrix: &[usize], samples: usize) -> f64 {
    let matrix = matrix.to_vec();
    Problem { operation, matrix, samples, batch: 1 }.pairs()
}

/// Best pairs/s over runs that fill `seconds`, at least two.
fn rate<T: SimdReal>(
    row: &Variant<Problem, Implementation<T>>,
    device: &Device,
    operation: Operation,
    matrix: &[usize],
    samples: usize,
    seconds: f64,
) -> Result<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let dims = matrix.len();
    let points = Array2::from_shape_fn((samples, dims), |(_, c)| {
        (rng.random::<f64>() - 0.5) * matrix[dims - 1 - c] as f64
    });
    let trajectory = Trajectory::from_cycles_per_fov(points)?;
    let mut number = || <T as Real>::from_f64(rng.random::<f64>() - 0.5);
    let mut complex = |len: usize| (0..len).map(|_| Complex::new(number(), number())).collect::<Vec<_>>();
    let voxels: usize = matrix.iter().product();
    let mut image = Array::from_vec(device, matrix, complex(voxels))?;
    let mut data = Array::from_vec(device, &[samples], complex(samples))?;
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let mut q = Array::zeros(device, if operation == Operation::Q { &doubled } else { &[1] })?;
    let (start, mut best, mut runs) = (Instant::now(), f64::INFINITY, 0);
    while runs < 2 || start.elapsed().as_secs_f64() < seconds {
        let run = Instant::now();
        match operation {
            Operation::Forward => forward_with(row, &trajectory, &image, &mut data)?,
            Operation::Adjoint => adjoint_with(row, &trajectory, &data, &mut image)?,
            Operation::Q => q_with(row, &trajectory, None, matrix, &mut q)?,
        }
        best = best.min(run.elapsed().as_secs_f64());
        runs += 1;
    }
    Ok(pairs(operation, matrix, samples) / best)
}

/// Real multiply-adds per second from registers alone, all threads of the device at once.
fn multiply_adds<T: SimdReal>(device: &Device, seconds: f64) -> f64 {
    const CHAINS: usize = 12;
    const STEPS: usize = 1 << 20;
    #[inline(always)]
    fn chains<S: Simd, T: SimdReal>(simd: S, factor: T) -> usize {
        let factor = Lanes::<S, T>::splat(simd, factor);
        let mut sums = [factor; CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = sum.mul_add(factor, factor);
            }
        }
        std::hint::black_box(sums);
        Lanes::<S, T>::LEN
    }
    let cpu = device.cpu_side();
    let (start, mut best) = (Instant::now(), 0.0f64);
    while start.elapsed().as_secs_f64() < seconds {
        let run = Instant::now();
        let factor = std::hint::black_box(<T as Real>::from_f64(0.5));
        let lanes: usize = std::thread::scope(|scope| {
            let work = || dispatch!(cpu.level(), simd => chains(simd, factor));
            let threads: Vec<_> = (0..cpu.threads()).map(|_| scope.spawn(work)).collect();
            threads.into_iter().filter_map(|t| t.join().ok()).sum()
        });
        best = best.max((lanes * CHAINS * STEPS) as f64 / run.elapsed().as_secs_f64());
    }
    best
}
