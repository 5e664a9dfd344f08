#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::cell::Cell;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{AddressMode, Argument, Filter, Launch, Sampling, Source};
use rayspin_device::{Array, Cuda, Device, Pinned};
use rayspin_tune::limits::Rates;
use rayspin_tune::{Build, gpu};

use super::Effort;
use crate::measure::{Protocol, measure as measure_runs};

static SOURCE: Source = Source { name: "limits", files: &[("limits.cu", include_str!("cuda/limits.cu"))] };
static TENSOR: Source =
    Source { name: "limits_tensor", files: &[("tensor.cu", include_str!("cuda/tensor.cu"))] };

/// The probes' programs, and the clock's.
pub(super) fn programs() -> Vec<Build> {
    let mut builds = vec![Build::plain(&SOURCE), Build::plain(&TENSOR)];
    builds.extend(crate::clock::programs());
    builds
}

const THREADS: u32 = 256;
/// Where the median of a probe's times is longer than the shortest by this factor, something else ran on the
/// GPU.
const UNEVEN: f64 = 1.15;
/// Seconds from which on a probe's times are comparable.
const LONG: f64 = 1e-3;
/// Texels along each axis: 4 KB, which the cache of every multiprocessor holds.
const TEXELS: usize = 32;

/// The rates, and whether others used the GPU meanwhile: runs of one probe then take different times.
pub(super) fn measure(device: &Device, effort: &Effort) -> Result<(Rates, bool)> {
    let cuda = gpu(device)?;
    let properties = cuda.properties();
    let resident = (properties.threads_per_multiprocessor / THREADS).max(1);
    let full = Launch::linear(properties.multiprocessors * resident, THREADS);
    let threads = f64::from(full.blocks[0]) * f64::from(THREADS);

    let bytes = (cuda.memory_left()? / 4).min(effort.bytes as u64 * 4) as usize / 16 * 16;
    let mut memory = Array::<f32>::zeros(device, &[bytes / 4])?;
    let quads = (bytes / 16) as u64;
    let (mut out, mut wide, mut whole) = (
        Array::<f32>::zeros(device, &[1])?,
        Array::<f64>::zeros(device, &[1])?,
        Array::<i32>::zeros(device, &[1])?,
    );
    let arguments = &mut [memory.cuda().into(), out.cuda_mut().into(), quads.into()];
    // SAFETY: the memory has four numbers for each of the count, and `out` one.
    let read = unsafe { times(cuda, effort, (&SOURCE, "read_only"), full, arguments) }?[0].max(1e-9);
    let arguments = &mut [memory.cuda_mut().into(), 1f32.into(), quads.into()];
    // SAFETY: as above.
    let write = unsafe { times(cuda, effort, (&SOURCE, "write_only"), full, arguments) }?[0].max(1e-9);
    let from = Array::<f32>::zeros(device, &[bytes / 4])?;
    let mut copied = f64::INFINITY;
    for _ in 0..=effort.repeats {
        copied = copied.min(cuda.seconds(|| memory.copy_from(&from))?);
    }
    drop((memory, from));
    let (upload, download) = link(device, cuda, effort)?.unzip();

    let uneven = Cell::new(false);
    let rate = |name: &str, arguments: &mut dyn FnMut(i32, &mut Calls<'_>) -> Result<f64>| -> Result<f64> {
        let source = if name.starts_with("tensor") { &TENSOR } else { &SOURCE };
        let mut calls = Calls { cuda, effort, source, name, launch: full, uneven: false };
        let mut rounds = 16;
        let mut seconds = arguments(rounds, &mut calls)?;
        // Long enough that the start of a kernel does not show.
        while seconds < effort.seconds / 5.0 && rounds < effort.rounds {
            rounds *= 4;
            seconds = arguments(rounds, &mut calls)?;
        }
        // Short kernels always differ.
        uneven.set(uneven.get() || (calls.uneven && seconds > LONG));
        Ok(threads * f64::from(rounds) / seconds)
    };
    let f32 = 256.0
        * rate("fma_f32", &mut |rounds, calls| {
            calls.best(&mut [out.cuda_mut().into(), 0.999f32.into(), 0.5f32.into(), rounds.into()])
        })?;
    let f64 = 256.0
        * rate("fma_f64", &mut |rounds, calls| {
            calls.best(&mut [wide.cuda_mut().into(), 0.999f64.into(), 0.5f64.into(), rounds.into()])
        })?;
    let i32 = 256.0
        * rate("fma_i32", &mut |rounds, calls| {
            calls.best(&mut [whole.cuda_mut().into(), 3i32.into(), 5i32.into(), rounds.into()])
        })?;
    let tensor_f64 = 2048.0
        * rate("tensor_f64", &mut |rounds, calls| calls.best(&mut [wide.cuda_mut().into(), rounds.into()]))?;
    let tensor_f16 = 4096.0
        * rate("tensor_f16", &mut |rounds, calls| calls.best(&mut [out.cuda_mut().into(), rounds.into()]))?;
    // The probes say where there are no such units.
    let tensor_f64 = (wide.to_vec()? != [-1.0]).then_some(tensor_f64);
    let tensor_f16 = (out.to_vec()? != [-1.0]).then_some(tensor_f16);
    let special = 32.0
        * rate("special", &mut |rounds, calls| {
            calls.best(&mut [out.cuda_mut().into(), 0.5f32.into(), rounds.into()])
        })?;
    let shared = 128.0
        * rate("shared_reads", &mut |rounds, calls| {
            calls.best(&mut [out.cuda_mut().into(), 0.5f32.into(), rounds.into()])
        })?;
    let texels = Array::from_vec(device, &[TEXELS, TEXELS], vec![0.5f32; TEXELS * TEXELS])?;
    let sampling = Sampling { filter: Filter::Point, address_mode: AddressMode::Clamp, normalized: false };
    let texture = cuda.texture(&texels, sampling)?;
    let fetches = 8.0
        * rate("texture_reads", &mut |rounds, calls| {
            calls.best(&mut [(&texture).into(), out.cuda_mut().into(), rounds.into()])
        })?;
    let rates = Rates {
        copy: 2.0 * bytes as f64 / copied.max(1e-9),
        read: bytes as f64 / read,
        write: bytes as f64 / write,
        f32,
        f64,
        i32,
        tensor_f64,
        tensor_f16,
        special: Some(special),
        shared: Some(shared),
        texture: Some(fetches),
        upload,
        download,
    };
    Ok((rates, uneven.get()))
}

/// Seconds of a launch that does next to nothing, one after the other as a graph has them.
pub(super) fn launch(device: &Device) -> Result<f64> {
    let kernel = gpu(device)?.kernel(&SOURCE, &[], "fma_f32")?;
    let mut out = Array::<f32>::zeros(device, &[1])?;
    let protocol = Protocol { rounds: 5, round: 1e-3, budget: 0.2, ..Protocol::default() };
    let timing = measure_runs(device, &protocol, |_| {
        let arguments = &mut [out.cuda_mut().into(), 1f32.into(), 0.5f32.into(), 0i32.into()];
        // SAFETY: the kernel writes to the first element at most.
        unsafe { kernel.launch(Launch::linear(1, 32), arguments) }
    })?;
    Ok(timing.median)
}

/// Bytes a second of pinned memory to the GPU and from it, one long copy at a time; none where the host has
/// no memory to pin.
fn link(device: &Device, cuda: &Cuda, effort: &Effort) -> Result<Option<(f64, f64)>> {
    let bytes = (cuda.memory_left()? / 2).min(effort.bytes as u64) as usize;
    let mut pinned = match Pinned::<u8>::new(device, bytes) {
        Err(Error::Memory { .. }) => return Ok(None),
        pinned => pinned?,
    };
    let mut array = Array::<u8>::zeros(device, &[bytes])?;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..=effort.repeats {
        best[0] = best[0].min(cuda.seconds(|| array.receive_part(0, &mut pinned, 0..bytes))?);
        best[1] = best[1].min(cuda.seconds(|| array.send_part(0, &mut pinned, 0..bytes))?);
    }
    let rate = |seconds: f64| bytes as f64 / seconds.max(1e-9);
    Ok(Some((rate(best[0]), rate(best[1]))))
}

struct Calls<'a> {
    cuda: &'a Cuda,
    effort: &'a Effort,
    source: &'static Source,
    name: &'a str,
    launch: Launch,
    /// Whether the last runs took different times.
    uneven: bool,
}

impl Calls<'_> {
    fn best(&mut self, arguments: &mut [Argument<'_>]) -> Result<f64> {
        // SAFETY: of kernels that compute, which are all that these calls are of, a thread writes to the
        // first element at most.
        let times =
            unsafe { times(self.cuda, self.effort, (self.source, self.name), self.launch, arguments) }?;
        self.uneven = times[times.len() / 2] > UNEVEN * times[0];
        Ok(times[0].max(1e-9))
    }
}

/// Seconds of several launches, one at least, sorted, after one to warm up.
///
/// # Safety
/// As for [`rayspin_device::cuda::Kernel::launch`].
unsafe fn times(
    cuda: &Cuda,
    effort: &Effort,
    (source, name): (&'static Source, &str),
    launch: Launch,
    arguments: &mut [Argument<'_>],
) -> Result<Vec<f64>> {
    let kernel = cuda.kernel(source, &[], name)?;
    // SAFETY: as the caller promises.
    let mut run = || unsafe { kernel.launch(launch, arguments) };
    run()?;
    let mut times = (0..effort.repeats.max(1)).map(|_| cuda.seconds(&mut run)).collect::<Result<Vec<_>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times)
}
