//! The clock at which a processor ran.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::Result;
use rayspin_device::cuda::{Kernel, Launch, Source};
use rayspin_device::{Array, Backend, Cuda, Device, cpu};
use rayspin_tune::Build;

static SOURCE: Source = Source { name: "clock", files: &[("clock.cu", include_str!("clock/clock.cu"))] };

/// Nanoseconds that the ticks of a GPU's clock are counted for. Its clock changes within milliseconds.
const COUNTED: u64 = 300_000;

/// The kernel that counts, for continuous integration.
pub(crate) fn programs() -> Vec<Build> {
    vec![Build { source: &SOURCE, defines: vec![], spill_bytes: 0 }]
}

/// What tells the clock of one processor. On a GPU a kernel counts the clock's ticks; on a CPU the system
/// tells.
pub struct Clock(Teller);

enum Teller {
    System,
    Kernel(Box<Counter>),
    /// The processor has no clock to count, as an emulated one, or no kernel can be had that counts it.
    None,
}

/// The kernel, and where it leaves ticks and nanoseconds.
struct Counter {
    kernel: Kernel,
    counted: Array<u64>,
}

impl Clock {
    /// That of `device`, ready to be asked without delay.
    pub fn of(device: &Device) -> Self {
        let teller = match device.backend() {
            Backend::Cpu(_) => Teller::System,
            Backend::Cuda(cuda) => {
                Counter::new(device, cuda).map_or(Teller::None, |counter| Teller::Kernel(Box::new(counter)))
            }
        };
        let mut clock = Self(teller);
        if !matches!(clock.mhz(), Ok(Some(_))) {
            clock.0 = Teller::None;
        }
        clock
    }

    /// Ticks a second in millions, just after the work asked for so far: of a CPU's fastest core, of a GPU's
    /// multiprocessors. `None` where nothing tells. Errors: of the device.
    pub fn mhz(&mut self) -> Result<Option<f64>> {
        match &mut self.0 {
            Teller::None => Ok(None),
            Teller::System => Ok(cpu::clock_mhz()),
            Teller::Kernel(counter) => counter.mhz(),
        }
    }
}

impl Counter {
    fn new(device: &Device, cuda: &Cuda) -> Result<Self> {
        let kernel = cuda.kernel(&SOURCE, &[], "clock_rate")?;
        Ok(Self { kernel, counted: Array::zeros(device, &[2])? })
    }

    fn mhz(&mut self) -> Result<Option<f64>> {
        let arguments = &mut [self.counted.cuda_mut().into(), COUNTED.into()];
        // SAFETY: the kernel writes two numbers.
        unsafe { self.kernel.launch(Launch::linear(1, 1), arguments) }?;
        let counted = self.counted.to_vec()?;
        let (ticks, nanoseconds) = (counted[0] as f64, counted[1] as f64);
        Ok((ticks > 0.0 && nanoseconds > 0.0).then(|| 1e3 * ticks / nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_have_a_clock_tell_it() {
        for device in rayspin_emu::devices().unwrap() {
            let mhz = Clock::of(&device).mhz().unwrap();
            let emulated = device.describe().contains("Emulated");
            match device.backend() {
                Backend::Cuda(_) => assert_eq!(mhz.is_none(), emulated, "{mhz:?}"),
                Backend::Cpu(_) => assert_eq!(mhz.is_some(), cpu::clock_mhz().is_some()),
            }
            assert!(mhz.is_none_or(|mhz| (100.0..10_000.0).contains(&mhz)), "{mhz:?}");
        }
    }
}
