//! Bytes a second that each variant of the vector operations moves, beside a copy of the same size.
//!
//! `cargo run --release -p rayspin-kernels --example vector_bandwidth [complex numbers, in millions]`

mod common;

use rayspin_core::C32;
use rayspin_device::Device;
use rayspin_kernels::vector::{Operation, Problem, variants};

use common::best;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions: f64 = std::env::args().nth(1).map_or(Ok(16.0), |a| a.parse())?;
    let len = (millions * 1e6) as usize;
    let device = Device::cpu()?;
    let cpu = device.cpu_side();
    println!("{}, {len} complex f32", device.describe());
    let make = |k: usize| -> Vec<C32> {
        (0..len).map(|i| C32::new((i % 97) as f32, ((i + k) % 89) as f32) * 1e-2).collect()
    };
    let (p, q, mut x, mut r) = (make(1), make(2), make(3), make(4));
    let weights: Vec<f32> = p.iter().map(|v| v.re).collect();
    let seconds = best(|| x.copy_from_slice(&p));
    println!("{:<8} {:<14} {:6.1} GB/s", "copy", "one thread", 16e-9 * len as f64 / seconds);
    for variant in variants::<f32>() {
        let f = &variant.implementation;
        let mut sink = 0.0;
        let mut line = |operation: Operation, work: &mut dyn FnMut() -> f64| {
            let seconds = best(|| sink += work());
            let bytes = (variant.work)(&Problem { operation, len }).bytes;
            let rate = bytes * 1e-9 / seconds;
            println!(
                "{:<8} {:<14} {rate:6.1} GB/s {:8.2} ms",
                variant.name,
                format!("{operation:?}"),
                seconds * 1e3
            );
        };
        line(Operation::Dot, &mut || (f.dot)(cpu, &p, &q).re);
        line(Operation::NormSquared, &mut || (f.norm_squared)(cpu, &p));
        line(Operation::Axpy, &mut || {
            (f.axpy)(cpu, C32::new(1e-9, 0.0), &p, &mut x);
            0.0
        });
        line(Operation::Xpby, &mut || {
            (f.xpby)(cpu, &p, C32::new(0.5, 0.0), &mut x);
            0.0
        });
        line(Operation::Scale, &mut || {
            (f.scale)(cpu, C32::new(0.8, 0.6), &mut x);
            0.0
        });
        line(Operation::Multiply, &mut || {
            (f.multiply)(cpu, &p, &q, &mut x);
            0.0
        });
        line(Operation::Weight, &mut || {
            (f.weight)(cpu, &weights, &q, &mut x);
            0.0
        });
        line(Operation::CgUpdate, &mut || (f.cg_update)(cpu, 1e-9, &p, &q, &mut x, &mut r));
        if sink.is_nan() {
            println!("the sums are NaN");
        }
    }
    Ok(())
}
