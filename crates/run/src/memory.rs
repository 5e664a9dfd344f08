//! Memory that composes, and the plan that its sum is.

use std::ops::{Add, Mul};

use rayspin_core::Result;
use rayspin_device::{BackendKind, Device};
use serde::Serialize;

use crate::step::{Effort, Needs, Step};

/// Bytes of the host's memory and of a GPU's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// Of the host.
    pub host: u64,
    /// Of a GPU; 0 where the CPU computes.
    pub gpu: u64,
}

impl Bytes {
    /// Bytes of the host, whatever computes.
    pub const fn host(bytes: u64) -> Self {
        Self { host: bytes, gpu: 0 }
    }

    /// Bytes of arrays on the device.
    pub fn on(device: &Device, bytes: u64) -> Self {
        match device.kind() {
            BackendKind::Cpu => Self::host(bytes),
            BackendKind::Cuda => Self { host: 0, gpu: bytes },
        }
    }

    /// Bytes of arrays on the device, and with a GPU those that the host takes `beside` it.
    pub fn beside(device: &Device, arrays: u64, beside: u64) -> Self {
        match device.kind() {
            BackendKind::Cpu => Self::host(arrays),
            BackendKind::Cuda => Self { host: beside, gpu: arrays },
        }
    }

    /// The larger of each.
    pub fn max(self, other: Self) -> Self {
        Self { host: self.host.max(other.host), gpu: self.gpu.max(other.gpu) }
    }

    /// What is left of each.
    pub fn less(self, other: Self) -> Self {
        Self { host: self.host.saturating_sub(other.host), gpu: self.gpu.saturating_sub(other.gpu) }
    }
}

impl Add for Bytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { host: self.host + other.host, gpu: self.gpu + other.gpu }
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;

    fn mul(self, count: u64) -> Self {
        Self { host: self.host * count, gpu: self.gpu * count }
    }
}

/// What a step does to memory, beside what is held before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The most that it takes at one moment.
    pub peak: Bytes,
    /// What it leaves held.
    pub held: Bytes,
    /// What it gives back of what was held before.
    pub freed: Bytes,
}

impl Memory {
    /// Taken while the step runs, and given back.
    pub fn passing(peak: Bytes) -> Self {
        Self { peak, ..Self::default() }
    }

    /// Taken and left held.
    pub fn held(held: Bytes) -> Self {
        Self { peak: held, held, freed: Bytes::default() }
    }

    /// Leaves this held as well; it is no part of the peak unless that says so.
    #[must_use]
    pub fn holding(self, held: Bytes) -> Self {
        let held = self.held + held;
        Self { peak: self.peak.max(held.less(self.freed)), held, ..self }
    }

    /// Gives this back at its end.
    #[must_use]
    pub fn freeing(self, freed: Bytes) -> Self {
        Self { freed: self.freed + freed, ..self }
    }

    /// This and then `next`: the peak is the larger of this one's and of what it leaves held with the next one's.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            peak: self.peak.max((self.held + next.peak).less(self.freed)),
            held: self.held + next.held,
            freed: self.freed + next.freed,
        }
    }
}

/// What a stage of a run takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Its name, as the run reports it.
    pub name: String,
    /// The most memory of the host held at one moment of it, everything from earlier stages included, bytes.
    pub bytes: u64,
    /// The same of a GPU's memory; 0 where the CPU computes.
    pub gpu_bytes: u64,
    /// Its work.
    #[serde(flatten)]
    pub effort: Effort,
}

/// What a run takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Budget {
    /// Its stages, over all images.
    pub stages: Vec<Stage>,
    /// Images, one after another.
    pub frames: usize,
    /// Bytes of what the run gives back.
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

    /// Adds a stage that holds `bytes` of the host and computes nothing.
    pub fn push(&mut self, name: &str, bytes: u64) {
        self.stages.push(Stage::new(name, Bytes::host(bytes), Effort::default()));
    }
}

impl Stage {
    fn new(name: &str, bytes: Bytes, effort: Effort) -> Self {
        Self { name: name.into(), bytes: bytes.host, gpu_bytes: bytes.gpu, effort }
    }
}

/// Steps summed up: what is held, and what each adds to it.
#[derive(Debug)]
pub struct Ledger {
    held: Bytes,
    frames: usize,
    /// How often the steps that follow are done.
    times: usize,
    each: bool,
    result: u64,
    stages: Vec<Stage>,
}

impl Ledger {
    /// For `frames` images one after another, with `held` beside them.
    pub fn new(held: Bytes, frames: usize) -> Self {
        Self { held, frames, times: frames, each: false, result: 0, stages: Vec::new() }
    }

    /// Steps that are done [once](Step::once) in a run are done for each image of this one.
    pub fn once_is_each(&mut self, each: bool) {
        self.each = each;
    }

    /// The steps that follow are done for all images together.
    pub fn all_together(&mut self) {
        self.times = 1;
    }

    /// From here on this is held as well.
    pub fn hold(&mut self, bytes: Bytes) {
        self.held = self.held + bytes;
    }

    /// The run gives back so many bytes.
    pub fn result(&mut self, bytes: u64) {
        self.result = bytes;
    }

    /// Adds a step. One without a name is no stage: what it takes is seen in those that follow.
    ///
    /// Errors: those of the step's [needs](Step::needs).
    pub fn add<S>(&mut self, step: Step<'_, S>) -> Result<()> {
        let (name, once, needs) = step.into_needs();
        let Needs { memory, effort } = needs?;
        if !name.is_empty() {
            let times = if once && !self.each { 1 } else { self.times };
            self.stages.push(Stage::new(&name, self.held + memory.peak, effort.times(times as u64)));
        }
        self.held = (self.held + memory.held).less(memory.freed);
        Ok(())
    }

    /// What is held now.
    pub fn held(&self) -> Bytes {
        self.held
    }

    /// The sum.
    pub fn finish(self) -> Budget {
        Budget { stages: self.stages, frames: self.frames, result: self.result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(host: u64, gpu: u64) -> Bytes {
        Bytes { host, gpu }
    }

    /// Peaks and holdings of a list of memories, moment by moment.
    fn replay(list: &[Memory]) -> (i64, i64) {
        let (mut held, mut peak) = (0i64, 0i64);
        for memory in list {
            peak = peak.max(held + memory.peak.gpu as i64);
            held += memory.held.gpu as i64 - memory.freed.gpu as i64;
        }
        (peak, held)
    }

    #[test]
    fn memories_compose_as_they_are_replayed() {
        let list = [
            Memory::held(bytes(0, 100)),
            Memory::passing(bytes(0, 30)).holding(bytes(0, 10)),
            Memory::passing(bytes(0, 50)).holding(bytes(0, 5)).freeing(bytes(0, 100)),
            Memory::passing(bytes(0, 20)),
        ];
        let (peak, held) = replay(&list);
        for split in 0..list.len() {
            let sum = |part: &[Memory]| part.iter().copied().fold(Memory::default(), Memory::then);
            let whole = sum(&list[..split]).then(sum(&list[split..]));
            assert_eq!(whole.peak.gpu as i64, peak);
            assert_eq!(whole.held.gpu as i64 - whole.freed.gpu as i64, held);
        }
    }

    #[test]
    fn a_ledger_states_every_stage_with_what_is_held_before_it() {
        let step = |name: &'static str, memory| {
            Step::new(name, |_: &mut (), _| Ok(())).needs(move || Ok(Needs::of(memory)))
        };
        let mut ledger = Ledger::new(bytes(1, 0), 3);
        ledger.add(step("plan", Memory::passing(bytes(7, 40)).holding(bytes(0, 10))).once()).unwrap();
        ledger.add(step("", Memory::held(bytes(0, 100)))).unwrap();
        ledger.add(step("solve", Memory::passing(bytes(2, 30)).freeing(bytes(0, 100)))).unwrap();
        assert_eq!(ledger.held(), bytes(1, 10));
        let budget = ledger.finish();
        let found: Vec<_> = budget.stages.iter().map(|s| (s.name.as_str(), s.bytes, s.gpu_bytes)).collect();
        assert_eq!(found, [("plan", 8, 40), ("solve", 3, 140)]);
        assert_eq!((budget.peak(), budget.gpu_peak(), budget.frames), (8, 140, 3));
    }
}
