//! Frames to a GPU, transformed there, and back: how much of the copies is hidden behind the work on other
//! frames. How fast copies are by themselves is the ladder `transfers`.
//!
//! `cargo run --release -p rayspin-kernels --example gpu_overlap [MiB a frame] [frames] [transforms a frame]`

use std::time::Instant;

use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Device, Pinned};
use rayspin_kernels::fft::{Fft, Norm};

const SIDE: usize = 256;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<usize>().unwrap_or(0));
    let mut next = |default: usize| words.next().filter(|&n| n > 0).unwrap_or(default);
    let (mib, frames, transforms) = (next(64), next(24), next(20));
    let (device, why) = Device::auto(Device::cpu()?);
    let rayspin_device::Backend::Cuda(cuda) = device.backend() else {
        return Err(Error::value("device", "a GPU", why.unwrap_or_default()));
    };
    let images = ((mib << 20) / (SIDE * SIDE * size_of::<C32>())).max(1);
    let shape = [images, SIDE, SIDE];
    let len = images * SIDE * SIDE;
    let bytes = (len * size_of::<C32>()) as f64;
    println!("{}; {:.0} MiB a frame", device.describe(), bytes / f64::from(1 << 20));

    let mut array = Array::<C32>::zeros(&device, &shape)?;
    let fft = Fft::<f32>::new(&device, &[SIDE, SIDE], Norm::Unitary)?;
    let work = |array: &mut Array<C32>| (0..transforms).try_for_each(|_| fft.forward(array));
    work(&mut array)?;
    let alone = cuda.seconds(|| work(&mut array))?;
    println!("work on a frame   {:8.3} ms", alone * 1e3);
    let fresh = || -> Result<Buffers> {
        let mut up = Pinned::new(&device, len)?;
        up.values()?.iter_mut().zip(0u32..).for_each(|(v, i)| *v = C32::new((i % 97) as f32, 1.0));
        Ok(Buffers { array: Array::zeros(&device, &shape)?, up, down: Pinned::new(&device, len)? })
    };
    let mut results = Vec::new();
    for overlap in [false, true] {
        let mut best = f64::INFINITY;
        let mut last = Vec::new();
        for _ in 0..3 {
            let mut idle = vec![fresh()?, fresh()?, fresh()?];
            device.synchronize()?;
            let start = Instant::now();
            if overlap {
                beside(frames, &mut idle, &work)?
            } else {
                in_turn(frames, &mut idle, &work)?
            };
            device.synchronize()?;
            best = best.min(start.elapsed().as_secs_f64() / frames as f64);
            last = idle.pop().ok_or_else(none)?.down.values()?.to_vec();
        }
        println!("frames, {:<9} {:8.3} ms each", if overlap { "beside" } else { "in turn" }, best * 1e3);
        results.push(last);
    }
    println!("results are {}", if results[0] == results[1] { "the same" } else { "not the same" });
    Ok(())
}

/// What a frame on its way needs.
struct Buffers {
    array: Array<C32>,
    up: Pinned<C32>,
    down: Pinned<C32>,
}

fn none() -> Error {
    Error::value("buffers", "one that is idle", "none")
}

/// Up, work, down, and then the next frame.
fn in_turn(
    frames: usize,
    idle: &mut Vec<Buffers>,
    work: &impl Fn(&mut Array<C32>) -> Result<()>,
) -> Result<()> {
    for _ in 0..frames {
        let Buffers { array, up, down } = idle.pop().ok_or_else(none)?;
        let (mut array, up) = array.upload(up)?.finish()?;
        work(&mut array)?;
        let (array, mut down) = array.download(down)?.finish()?;
        down.values()?;
        idle.push(Buffers { array, up, down });
    }
    Ok(())
}

/// The next frame goes up and the last one comes down while one is worked on.
fn beside(
    frames: usize,
    idle: &mut Vec<Buffers>,
    work: &impl Fn(&mut Array<C32>) -> Result<()>,
) -> Result<()> {
    let (mut coming, mut going) = (None, None);
    for frame in 0..=frames {
        let next = match frame < frames {
            true => {
                let Buffers { array, up, down } = idle.pop().ok_or_else(none)?;
                Some((array.upload(up)?, down))
            }
            false => None,
        };
        if let Some((begun, down)) = std::mem::replace(&mut coming, next) {
            let (mut array, up) = begun.finish()?;
            work(&mut array)?;
            if let Some((done, up)) = going.replace((array.download(down)?, up)) {
                let (array, mut down): (Array<C32>, Pinned<C32>) = rayspin_device::Transfer::finish(done)?;
                // Where the frame before is taken from.
                down.values()?;
                idle.push(Buffers { array, up, down });
            }
        }
    }
    if let Some((done, up)) = going {
        let (array, down) = done.finish()?;
        idle.push(Buffers { array, up, down });
    }
    Ok(())
}
