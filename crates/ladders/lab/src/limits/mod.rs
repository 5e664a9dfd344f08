//! What a processor can do at most, measured: the floors that variants are compared with.

mod cpu;
mod cuda;
mod keep;

use rayspin_core::Result;
use rayspin_device::{Backend, Device};
use rayspin_tune::limits::{Limits, key};
use rayspin_tune::{Build, Flow, Peak};

use crate::BenchmarkRun;

pub use keep::keep;

/// What a measurement may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Bytes of the arrays in memory of the CPU, and of a copy between CPU and GPU: several times the caches.
    /// Arrays on a GPU have up to four times these bytes.
    pub bytes: usize,
    /// Runs. The best one counts.
    pub repeats: usize,
    /// Seconds that a run of arithmetic aims at, five times over.
    pub seconds: f64,
    /// Rounds of arithmetic in a run at most.
    pub rounds: i32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { bytes: 256 << 20, repeats: 10, seconds: 0.02, rounds: 1 << 24 }
    }
}

/// The CUDA programs of the probes and of the clock, for continuous integration.
pub fn programs() -> Vec<Build> {
    cuda::programs()
}

/// Measures a processor. [`Limits::measured`] is left to the caller, who knows the time. Errors: memory, a
/// device that fails.
pub fn measure(device: &Device, effort: &Effort) -> Result<Limits> {
    let (rates, busy) = match device.backend() {
        Backend::Cpu(cpu) => cpu::measure(cpu, effort)?,
        Backend::Cuda(_) => cuda::measure(device, effort)?,
    };
    Ok(Limits { of: key(device), measured: None, busy, rates })
}

/// Seconds of a launch of a kernel that does next to nothing, among many of them; 0 on a CPU. Errors: a
/// device that fails.
pub fn launch(device: &Device) -> Result<f64> {
    match device.backend() {
        Backend::Cpu(_) => Ok(0.0),
        Backend::Cuda(_) => cuda::launch(device),
    }
}

/// The times that measured rates allow at least.
pub trait Floors {
    /// The roof over operations, where it was measured.
    fn peak(&self, peak: Peak) -> Option<f64>;
    /// The roof over bytes, where it was measured. Both ways at once a link has twice the bandwidth of its
    /// slower one.
    fn bandwidth(&self, flow: Flow) -> Option<f64>;
    /// The seconds that work takes at least: the larger of bytes over their bandwidth and operations over
    /// their peak; none where one of these rates was not measured.
    fn floor(&self, bytes: f64, flops: f64, peak: Peak, flow: Flow) -> Option<f64>;
    /// Writes the floors into a benchmark run's steps.
    fn apply(&self, run: &mut BenchmarkRun, peak: Peak, flow: Flow);
}

impl Floors for Limits {
    fn peak(&self, peak: Peak) -> Option<f64> {
        match peak {
            Peak::F32 => Some(self.rates.f32),
            Peak::F64 => Some(self.rates.f64),
            Peak::I32 => Some(self.rates.i32),
            Peak::TensorF64 => self.rates.tensor_f64,
            Peak::TensorF16 => self.rates.tensor_f16,
        }
    }

    fn bandwidth(&self, flow: Flow) -> Option<f64> {
        match flow {
            Flow::Copy => Some(self.rates.copy),
            Flow::Read => Some(self.rates.read),
            Flow::Write => Some(self.rates.write),
            Flow::Upload => self.rates.upload,
            Flow::Download => self.rates.download,
            Flow::Duplex => Some(2.0 * self.rates.upload?.min(self.rates.download?)),
        }
    }

    fn floor(&self, bytes: f64, flops: f64, peak: Peak, flow: Flow) -> Option<f64> {
        Some((bytes / self.bandwidth(flow)?).max(flops / self.peak(peak)?))
    }

    fn apply(&self, run: &mut BenchmarkRun, peak: Peak, flow: Flow) {
        for step in &mut run.steps {
            let peak = step.peak.unwrap_or(peak);
            step.floor = self.floor(step.bytes, step.flops, peak, flow).filter(|&floor| floor > 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use rayspin_tune::limits::Rates;

    use super::*;

    /// The least that gives every rate.
    const LITTLE: Effort = Effort { bytes: 1 << 16, repeats: 1, seconds: 1e-4, rounds: 16 };

    #[test]
    fn every_device_has_limits() {
        for device in rayspin_emu::devices().unwrap() {
            let limits = measure(&device, &LITTLE).unwrap();
            assert!(limits.rates.sound(), "{limits:?}");
            let of_gpu = [limits.rates.special, limits.rates.upload, limits.rates.download];
            let on_gpu = device.kind() == rayspin_device::BackendKind::Cuda;
            assert!(of_gpu.iter().all(|rate| rate.is_some() == on_gpu), "{limits:?}");
            assert!(limits.of.ends_with("probe 3"));
            assert_eq!(launch(&device).unwrap() > 0.0, on_gpu);
        }
    }

    #[test]
    fn the_floor_is_the_larger_of_two() {
        let rates = Rates {
            copy: 10.0,
            read: 20.0,
            write: 5.0,
            f32: 100.0,
            f64: 50.0,
            i32: 25.0,
            tensor_f64: None,
            tensor_f16: Some(400.0),
            special: None,
            shared: None,
            texture: None,
            upload: None,
            download: Some(4.0),
        };
        let limits = Limits { of: String::new(), measured: None, busy: false, rates };
        assert_eq!(limits.floor(20.0, 100.0, Peak::F32, Flow::Copy), Some(2.0));
        assert_eq!(limits.floor(20.0, 300.0, Peak::F32, Flow::Copy), Some(3.0));
        assert_eq!(limits.floor(20.0, 300.0, Peak::F64, Flow::Copy), Some(6.0));
        assert_eq!(limits.floor(0.0, 300.0, Peak::I32, Flow::Copy), Some(12.0));
        assert_eq!(limits.floor(0.0, 400.0, Peak::TensorF16, Flow::Copy), Some(1.0));
        assert_eq!(limits.floor(0.0, 400.0, Peak::TensorF64, Flow::Copy), None);
        assert_eq!(limits.floor(40.0, 100.0, Peak::F32, Flow::Read), Some(2.0));
        assert_eq!(limits.floor(20.0, 100.0, Peak::F32, Flow::Write), Some(4.0));
        assert_eq!(limits.floor(20.0, 100.0, Peak::F32, Flow::Download), Some(5.0));
        assert_eq!(limits.floor(20.0, 100.0, Peak::F32, Flow::Upload), None);
        assert_eq!(limits.floor(20.0, 100.0, Peak::F32, Flow::Duplex), None);
        let rates = Rates { upload: Some(2.0), ..rates };
        assert_eq!(Limits { rates, ..limits }.floor(20.0, 100.0, Peak::F32, Flow::Duplex), Some(5.0));
    }
}
