//! A run replayed: what is held and what a stage adds to it.

use rayspin_device::{BackendKind, Device};
use rayspin_kernels::variant::Work;
use serde::Serialize;

use crate::recon::ReconOptions;

/// Bytes of a complex number, and of a component of a trajectory.
pub(super) const COMPLEX: u64 = 8;
/// Bytes of a real number.
pub(super) const REAL: u64 = 4;
/// Bytes of an index.
pub(super) const INDEX: u64 = 8;

/// What a stage of a run takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Its name, as the run reports it.
    pub name: String,
    /// The most memory of the host held at one moment of it, everything from earlier stages included, bytes.
    pub bytes: u64,
    /// The same of a GPU's memory; 0 where the CPU computes.
    pub gpu_bytes: u64,
    /// Transforms of one item: FFT, NUFFT or Toeplitz convolution.
    pub transforms: u64,
    /// Iterations at most.
    pub iterations: u64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes to and from memory.
    pub traffic: f64,
    #[serde(skip)]
    repeated: bool,
}

/// What a run takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Budget {
    /// Its stages, over all frames.
    pub stages: Vec<Stage>,
    /// Frames, one after another.
    pub frames: usize,
    /// Bytes of the image, or of the images of all frames, and of the maps that are kept.
    pub result: u64,
}

impl Budget {
    /// The most bytes of the host held at one moment.
    pub fn peak(&self) -> u64 {
        self.stages.iter().map(|stage| stage.bytes).max().unwrap_or(0)
    }

    /// The most bytes of a GPU held at one moment.
    pub fn gpu_peak(&self) -> u64 {
        self.stages.iter().map(|stage| stage.gpu_bytes).max().unwrap_or(0)
    }

    /// Adds a stage that holds `bytes` and computes nothing.
    pub fn push(&mut self, name: &str, bytes: u64) {
        self.stages.push(Stage::new(name, bytes));
    }
}

impl Stage {
    fn new(name: &str, bytes: u64) -> Self {
        let (transforms, iterations, flops, traffic) = (0, 0, 0.0, 0.0);
        Self {
            name: name.into(),
            bytes,
            gpu_bytes: 0,
            transforms,
            iterations,
            flops,
            traffic,
            repeated: true,
        }
    }

    pub(super) fn transforms(&mut self, count: u64, each: Work) -> &mut Self {
        self.transforms += count;
        self.times(count, each)
    }

    pub(super) fn times(&mut self, count: u64, each: Work) -> &mut Self {
        self.flops += count as f64 * each.flops;
        self.traffic += count as f64 * each.bytes;
        self
    }

    pub(super) fn iterations(&mut self, count: u64) -> &mut Self {
        self.iterations = count;
        self
    }

    pub(super) fn add(&mut self, work: Work) -> &mut Self {
        self.times(1, work)
    }

    /// Done for the first frame, and kept for the others.
    pub(super) fn once_in_all(&mut self) {
        self.repeated = false;
    }
}

/// Bytes of the host and of a GPU.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    host: u64,
    gpu: u64,
}

pub(super) struct Ledger {
    held: Held,
    /// Whether arrays live on a GPU.
    gpu: bool,
    frames: u64,
    result: u64,
    stages: Vec<Stage>,
    /// Whether maps come from elsewhere, and are neither given nor estimated from the frame.
    pub(super) maps_known: bool,
    /// Whether each frame has a trajectory of its own.
    pub(super) plans_each: bool,
}

impl Ledger {
    pub(super) fn new(device: &Device, held: u64, frames: usize) -> Self {
        let gpu = device.kind() == BackendKind::Cuda;
        let (maps_known, plans_each) = (false, false);
        let held = Held { host: held, gpu: 0 };
        Self { held, gpu, frames: frames as u64, result: 0, stages: Vec::new(), maps_known, plans_each }
    }

    /// Whether arrays live on a GPU.
    pub(super) fn on_gpu(&self) -> bool {
        self.gpu
    }

    fn arrays(&mut self) -> &mut u64 {
        if self.gpu { &mut self.held.gpu } else { &mut self.held.host }
    }

    /// From here on arrays of `bytes` more are there.
    pub(super) fn hold(&mut self, bytes: u64) {
        *self.arrays() += bytes;
    }

    /// From here on arrays of `bytes` fewer are there.
    pub(super) fn release(&mut self, bytes: u64) {
        let held = self.arrays();
        *held = held.saturating_sub(bytes);
    }

    /// From here on the host holds `bytes` more, whatever computes.
    pub(super) fn hold_on_host(&mut self, bytes: u64) {
        self.held.host += bytes;
    }

    /// A stage that needs arrays of `bytes` for itself.
    pub(super) fn stage(&mut self, name: &str, bytes: u64) -> &mut Stage {
        self.stage_beside(name, bytes, 0)
    }

    /// A stage that needs arrays of `bytes` for itself, and with a GPU `beside` on the host.
    pub(super) fn stage_beside(&mut self, name: &str, bytes: u64, beside: u64) -> &mut Stage {
        let index = self.stages.len();
        let Held { host, gpu } = self.held;
        let mut stage = Stage::new(name, host + if self.gpu { beside } else { bytes });
        stage.gpu_bytes = if self.gpu { gpu + bytes } else { 0 };
        self.stages.push(stage);
        &mut self.stages[index]
    }

    /// A stage of the host without arithmetic.
    pub(super) fn once(&mut self, name: &str, bytes: u64) {
        let mut stage = Stage::new(name, self.held.host + bytes);
        stage.gpu_bytes = self.held.gpu;
        self.stages.push(stage);
    }

    /// The frame's image, and the maps where they are kept.
    pub(super) fn image(&mut self, voxels: u64, coils: u64, options: &ReconOptions) {
        let maps = if options.keep_maps && options.needs_maps() { coils } else { 0 };
        self.result = COMPLEX * voxels * (1 + maps) * self.frames;
    }

    pub(super) fn finish(mut self) -> Budget {
        let each = self.plans_each;
        for stage in self.stages.iter_mut().filter(|stage| stage.repeated || each) {
            stage.transforms *= self.frames;
            stage.iterations *= self.frames;
            stage.flops *= self.frames as f64;
            stage.traffic *= self.frames as f64;
        }
        Budget { stages: self.stages, frames: self.frames as usize, result: self.result }
    }
}
