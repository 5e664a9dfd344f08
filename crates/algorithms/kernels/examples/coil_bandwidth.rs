//! Bytes a second that each variant of the coil and difference operations moves.
//!
//! `cargo run --release -p rayspin-kernels --example coil_bandwidth [coils] [side]`

mod common;

use rayspin_core::C32;
use rayspin_device::Device;
use rayspin_kernels::{difference, sensitivity};

use common::{best, line};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [coils, side] = [(0, 8), (1, 128)].map(|(i, d)| arguments.get(i).copied().unwrap_or(d));
    let voxels = side * side * side;
    let device = Device::cpu()?;
    let cpu = device.cpu_side();
    println!("{}, {coils} coils, {side}³ voxels, f32", device.describe());
    let make = |len: usize, k: usize| -> Vec<C32> {
        (0..len).map(|i| C32::new((i % 97) as f32, ((i + k) % 89) as f32) * 1e-2).collect()
    };
    let maps = make(coils * voxels, 1);
    let mut images = make(coils * voxels, 2);
    let mut image = make(voxels, 3);
    let mut root = vec![0f32; voxels];
    for v in sensitivity::variants::<f32>() {
        use sensitivity::{Operation, Problem};
        let bytes = |operation| (v.work)(&Problem { operation, coils, voxels }).bytes;
        let seconds = best(|| (v.implementation.expand)(cpu, &maps, &image, &mut images));
        line(v.name, "expand", bytes(Operation::Expand), seconds);
        let seconds = best(|| (v.implementation.combine)(cpu, &maps, &images, &mut image, false));
        line(v.name, "combine", bytes(Operation::Combine), seconds);
        let seconds = best(|| (v.implementation.sum_of_squares)(cpu, &images, &mut root, true));
        line(v.name, "root of squares", bytes(Operation::SumOfSquares), seconds);
    }
    let axes = [side * side, side, 1].map(|step| difference::Axis { size: side, step, weight: 1.0 });
    let mut out = make(voxels, 4);
    let mut d = make(3 * voxels, 5);
    for v in difference::variants::<f32>() {
        use difference::{Operation, Problem};
        let bytes = |operation| (v.work)(&Problem { operation, shape: vec![side; 3] }).bytes;
        let seconds = best(|| (v.implementation.forward)(cpu, &axes, &image, &mut d));
        line(v.name, "D", bytes(Operation::Forward), seconds);
        let seconds = best(|| (v.implementation.adjoint)(cpu, &axes, &d, &mut out));
        line(v.name, "Dᴴ", bytes(Operation::Adjoint), seconds);
        let seconds = best(|| (v.implementation.normal)(cpu, &axes, &image, &mut out));
        line(v.name, "DᴴD", bytes(Operation::Normal), seconds);
    }
    Ok(())
}
