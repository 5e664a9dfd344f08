//! Low rank plus sparse of an undersampled series with several weights: the error, and which part took what.
//!
//! `cargo run --release -p rayspin-solve --example low_rank_sparse [matrix]`

#[path = "../tests/common/phantom.rs"]
mod phantom;

use std::time::Instant;

use phantom::{phantom, sampled};
use rayspin_core::{C32, C64, Monitor};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector;
use rayspin_linop::{Fourier, LinearOp, SamplingMask, random};
use rayspin_solve::{LowRankSparseOptions, Problem, low_rank_plus_sparse};

/// ‖a − b‖ / ‖b‖.
fn apart(a: &[C32], b: &[C64]) -> f64 {
    let wide = a.iter().map(|v| C64::new(v.re.into(), v.im.into()));
    let off: f64 = wide.zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
    (off / b.iter().map(C64::norm_sqr).sum::<f64>()).sqrt()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n = std::env::args().nth(1).map_or(Ok(24), |n| n.parse())?;
    let device = Device::cpu()?;
    println!("{}; {n}² voxels, one coil", device.describe());
    for (frames, noise) in [(20, 0.0), (20, 0.05), (60, 0.0), (60, 0.05)] {
        let shape = [frames, n, n];
        let (truth, spot) = phantom(frames, n);
        let values = truth.iter().map(|v| C32::new(v.re as f32, v.im as f32)).collect();
        let mask = SamplingMask::new(&device, &shape, &sampled(frames, n, 9))?;
        let fraction = mask.fraction();
        let encode = mask.compose(Fourier::new(&device, &[frames], &[n, n])?)?;
        let mut samples = encode.forward(&Array::from_vec(&device, &shape, values)?)?;
        // Numbers of `random` have a variance of 2/3.
        vector::axpy((noise * 1.5f64.sqrt()).into(), &random(&device, &shape, 77)?, &mut samples)?;
        let rhs = encode.adjoint(&samples)?;
        let normal = encode.normal_op();
        println!(
            "\n{frames} frames, noise {noise}, {fraction:.2} sampled, zero-filled: {:.3}",
            apart(rhs.cpu(), &truth)
        );
        println!("λ_L    λ_S    error  rank  ‖S‖/‖L‖  S in the spot  iterations  s");
        for low_rank in [0.002, 0.004, 0.01] {
            for sparse in [0.01, 0.02, 0.03] {
                let options = LowRankSparseOptions { low_rank, sparse, ..LowRankSparseOptions::default() };
                let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue: 1.0 };
                let start = Instant::now();
                let result = low_rank_plus_sparse(&problem, &options, &Monitor::silent())?;
                let seconds = start.elapsed().as_secs_f64();
                let size = vector::norm_squared(&result.sparse)?;
                let within = result.sparse.cpu().iter().zip(&spot).filter(|(_, spot)| **spot);
                let within: f64 = within.map(|(v, _)| f64::from(v.norm_sqr())).sum();
                println!(
                    "{low_rank:<6} {sparse:<6} {:.3}  {:<5} {:<9.3} {:<14.2} {:<11} {seconds:.2}",
                    apart(result.solution.cpu(), &truth),
                    result.rank,
                    (size / vector::norm_squared(&result.low_rank)?).sqrt(),
                    within / size.max(f64::MIN_POSITIVE),
                    result.residuals.len(),
                );
            }
        }
    }
    Ok(())
}
