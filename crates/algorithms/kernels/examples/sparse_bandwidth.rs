//! Bytes a second that each variant of the wavelet transform and of shrinking moves.
//!
//! `cargo run --release -p rayspin-kernels --example sparse_bandwidth [side of the square] [side of the
//! cube]`

mod common;

use rayspin_core::C32;
use rayspin_device::Device;
use rayspin_kernels::{shrink, wavelet};

use common::{best, line};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [square, cube] = [(0, 1024), (1, 128)].map(|(i, d)| arguments.get(i).copied().unwrap_or(d));
    let device = Device::cpu()?;
    let cpu = device.cpu_side();
    println!("{}, f32", device.describe());
    let make = |len: usize| -> Vec<C32> {
        (0..len).map(|i| C32::new((i % 97) as f32, (i % 89) as f32) * 1e-2).collect()
    };
    for shape in [vec![square; 2], vec![cube; 3]] {
        let len = shape.iter().product();
        let (x, mut c, mut work) = (make(len), make(len), Vec::new());
        println!("{shape:?}");
        for family in [wavelet::Family::Haar, wavelet::Family::Daubechies2] {
            let plan = wavelet::Plan::new(&shape, family)?;
            let shift: Vec<usize> = shape.iter().map(|n| n / 3).collect();
            for v in wavelet::variants::<f32>() {
                let bytes = (v.work)(&plan).bytes;
                let seconds = best(|| (v.implementation.forward)(cpu, &plan, &shift, &x, &mut c, &mut work));
                line(v.name, &format!("{family:?} forward"), bytes, seconds);
                let seconds = best(|| (v.implementation.inverse)(cpu, &plan, &shift, &x, &mut c, &mut work));
                line(v.name, &format!("{family:?} inverse"), bytes, seconds);
            }
        }
        let weights = vec![1f32; len];
        let mut d = make(3 * len);
        for v in shrink::variants::<f32>() {
            use shrink::{Operation, Problem};
            let bytes = |operation, components| (v.work)(&Problem { operation, components, len }).bytes;
            let seconds = best(|| {
                (v.implementation.soft)(cpu, 1e-6, &weights, &mut c);
            });
            line(v.name, "soft", bytes(Operation::Soft, 1), seconds);
            let seconds = best(|| (v.implementation.clip)(cpu, 1e3, len, &mut d));
            line(v.name, "clip, 3 components", bytes(Operation::Clip, 3), seconds);
            let seconds = best(|| {
                (v.implementation.joint_norm)(cpu, len, &d);
            });
            line(v.name, "norm, 3 components", bytes(Operation::JointNorm, 3), seconds);
        }
    }
    Ok(())
}
