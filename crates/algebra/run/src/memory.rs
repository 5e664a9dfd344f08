//! Memory that composes, and its sum, the budget of a run.

use std::ops::{Add, Mul};

use rayspin_core::Result;
use rayspin_device::{BackendKind, Device};
use serde::Serialize;

use crate::step::{Cost, Effort, Step};

/// Bytes of host memory and of GPU memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// Bytes of host memory.
    pub host: u64,
    /// Bytes of GPU memory; 0 if the CPU computes.
    pub gpu: u64,
}

impl Bytes {
    /// Bytes of host memory, for either processor.
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

    /// `arrays` bytes of arrays on the device. If the device is a GPU, also `host` bytes of host memory.
    pub fn with_host(device: &Device, arrays: u64, host: u64) -> Self {
        match device.kind() {
            BackendKind::Cpu => Self::host(arrays),
            BackendKind::Cuda => Self { host, gpu: arrays },
        }
    }

    /// The larger value of each kind of memory.
    pub fn max(self, other: Self) -> Self {
        Self { host: self.host.max(other.host), gpu: self.gpu.max(other.gpu) }
    }

    /// The difference for each kind of memory, at least 0.
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

/// The change in memory by a step, relative to the memory that is held before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The peak while the step runs.
    pub peak: Bytes,
    /// The memory that the step leaves held.
    pub held: Bytes,
    /// The memory, held before the step, that the step frees.
    pub freed: Bytes,
}

impl Memory {
    /// Memory that is taken while the step runs and then freed.
    pub fn temporary(peak: Bytes) -> Self {
        Self { peak, ..Self::default() }
    }

    /// Memory that is taken and stays held.
    pub fn held(held: Bytes) -> Self {
        Self { peak: held, held, freed: Bytes::default() }
    }

    /// Also leaves `held` bytes held. This does not add to the peak, which states all memory of its moment,
    /// but raises a peak below the memory held at the end.
    #[must_use]
    pub fn holding(self, held: Bytes) -> Self {
        let held = self.held + held;
        Self { peak: self.peak.max(held.less(self.freed)), held, ..self }
    }

    /// Also frees `freed` bytes at the end.
    #[must_use]
    pub fn freeing(self, freed: Bytes) -> Self {
        Self { freed: self.freed + freed, ..self }
    }

    /// This step followed by `next`. The peak is the larger of this peak and of the held memory plus the next
    /// peak.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            peak: self.peak.max((self.held + next.peak).less(self.freed)),
            held: self.held + next.held,
            freed: self.freed + next.freed,
        }
    }
}

/// The memory and work of one stage of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// The stage's name, as the run reports it.
    pub name: String,
    /// Peak host memory during the stage in bytes, including memory held from earlier stages.
    pub bytes: u64,
    /// Peak GPU memory during the stage in bytes, of the GPU that takes most where there are several; 0 if
    /// the CPU computes.
    pub gpu_bytes: u64,
    /// The stage's work.
    #[serde(flatten)]
    pub effort: Effort,
}

/// The memory and work of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Budget {
    /// The stages of the run, over all images.
    pub stages: Vec<Stage>,
    /// Number of images, which are made one after another.
    pub frames: usize,
    /// Bytes of the run's result.
    pub result: u64,
    /// Peak memory in bytes of each GPU, where one image is spread over several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<u64>,
}

impl Budget {
    /// Peak host memory in bytes.
    pub fn peak(&self) -> u64 {
        self.stages.iter().map(|stage| stage.bytes).max().unwrap_or(0)
    }

    /// Peak memory in bytes of the GPU that takes most.
    pub fn gpu_peak(&self) -> u64 {
        self.stages.iter().map(|stage| stage.gpu_bytes).max().unwrap_or(0)
    }

    /// Adds a stage that holds `bytes` bytes of host memory and computes nothing.
    pub fn push(&mut self, name: &str, bytes: u64) {
        self.stages.push(Stage::new(name, Bytes::host(bytes), Effort::default()));
    }
}

impl Stage {
    fn new(name: &str, bytes: Bytes, effort: Effort) -> Self {
        Self { name: name.into(), bytes: bytes.host, gpu_bytes: bytes.gpu, effort }
    }
}

/// Sums steps: keeps track of the held memory and adds each step to it.
#[derive(Debug)]
pub struct Ledger {
    held: Bytes,
    frames: usize,
    /// Number of times that the following steps run.
    times: usize,
    each: bool,
    result: u64,
    stages: Vec<Stage>,
    /// The GPU's peak.
    peak: u64,
    /// What each GPU beside it holds, and its peak.
    beside: Vec<(u64, u64)>,
}

impl Ledger {
    /// A sum for `frames` images, one after another, with `held` held from the start.
    pub fn new(held: Bytes, frames: usize) -> Self {
        Self {
            held,
            frames,
            times: frames,
            each: false,
            result: 0,
            stages: Vec::new(),
            peak: 0,
            beside: Vec::new(),
        }
    }

    /// An empty sum for as many images, for a part of the work.
    pub fn part(&self) -> Self {
        Self { times: self.times, each: self.each, ..Self::new(Bytes::default(), self.frames) }
    }

    /// The memory that is held now.
    pub fn held(&self) -> Bytes {
        self.held
    }

    /// Sets what is held from now on, where something frees what steps have left.
    pub fn keep(&mut self, held: Bytes) {
        self.held = held;
    }

    /// Adds parts of the work that run at the same time. The first part is on the GPU of this sum, and each
    /// other one on a GPU of its own, in the same order at every call. Stages of one name are one stage. The
    /// host holds the memory of all parts.
    pub fn at_once(&mut self, parts: Vec<Self>) {
        let mut names: Vec<String> = Vec::new();
        for stage in parts.iter().flat_map(|part| &part.stages) {
            if !names.contains(&stage.name) {
                names.push(stage.name.clone());
            }
        }
        self.beside.resize(self.beside.len().max(parts.len().saturating_sub(1)), (0, 0));
        for name in names {
            let mut all = Stage::new(&name, Bytes { host: self.held.host, gpu: 0 }, Effort::default());
            for (index, part) in parts.iter().enumerate() {
                let own = part.stages.iter().find(|stage| stage.name == name);
                all.bytes += own.map_or(part.held.host, |stage| stage.bytes);
                let gpu = own.map_or(part.held.gpu, |stage| stage.gpu_bytes);
                let (before, peak) = match index.checked_sub(1) {
                    None => (self.held.gpu, &mut self.peak),
                    Some(beside) => (self.beside[beside].0, &mut self.beside[beside].1),
                };
                *peak = before.saturating_add(gpu).max(*peak);
                all.gpu_bytes = all.gpu_bytes.max(before.saturating_add(gpu));
                if let Some(own) = own {
                    all.effort = all.effort.plus(own.effort);
                }
            }
            self.stages.push(all);
        }
        for (index, part) in parts.iter().enumerate() {
            self.held.host += part.held.host;
            match index.checked_sub(1) {
                None => self.held.gpu += part.held.gpu,
                Some(beside) => {
                    let (held, peak) = &mut self.beside[beside];
                    *held += part.held.gpu;
                    *peak = (*peak).max(*held);
                }
            }
        }
    }

    /// If `each` is true, steps that run [once](Step::once) are counted for each image.
    pub fn repeat_once_steps(&mut self, each: bool) {
        self.each = each;
    }

    /// The following steps run `more` times in addition to once for each image.
    pub fn repeat(&mut self, more: usize) {
        self.times += more;
    }

    /// The following steps run once, for all images together.
    pub fn all_together(&mut self) {
        self.times = 1;
    }

    /// Adds `bytes` to the held memory.
    pub fn hold(&mut self, bytes: Bytes) {
        self.held = self.held + bytes;
    }

    /// Adds memory that is held for a moment after the last stage, beside what is held then. It counts for
    /// that stage.
    pub fn hold_briefly(&mut self, bytes: Bytes) {
        let taken = self.held + bytes;
        self.peak = self.peak.max(taken.gpu);
        if let Some(stage) = self.stages.last_mut() {
            stage.bytes = stage.bytes.max(taken.host);
            stage.gpu_bytes = stage.gpu_bytes.max(taken.gpu);
        }
    }

    /// Sets the size of the run's result in bytes.
    pub fn result(&mut self, bytes: u64) {
        self.result = bytes;
    }

    /// Adds a step. A step without a name is no stage; its held memory appears in the following stages.
    ///
    /// Errors: errors of the step's [needs](Step::needs).
    pub fn add<S>(&mut self, step: Step<'_, S>) -> Result<()> {
        let (name, once, needs) = step.into_needs();
        let (Cost { memory, effort }, beside) = needs?;
        self.beside.resize(self.beside.len().max(beside.len()), (0, 0));
        if !name.is_empty() {
            let times = if once && !self.each { 1 } else { self.times };
            let on_host = beside.iter().map(|memory| memory.peak.host).sum();
            let mut taken = self.held + memory.peak + Bytes::host(on_host);
            self.peak = self.peak.max(taken.gpu);
            for (index, (held, peak)) in self.beside.iter_mut().enumerate() {
                let own = *held + beside.get(index).map_or(0, |memory| memory.peak.gpu);
                *peak = (*peak).max(own);
                taken.gpu = taken.gpu.max(own);
            }
            self.stages.push(Stage::new(&name, taken, effort.times(times as u64)));
        }
        self.held = (self.held + memory.held).less(memory.freed);
        for (Memory { held, freed, .. }, (own, _)) in beside.iter().zip(&mut self.beside) {
            *own = (*own + held.gpu).saturating_sub(freed.gpu);
            self.held = (self.held + Bytes::host(held.host)).less(Bytes::host(freed.host));
        }
        Ok(())
    }

    /// The sum.
    pub fn finish(self) -> Budget {
        let mut cards = Vec::new();
        if !self.beside.is_empty() {
            cards.push(self.peak);
            cards.extend(self.beside.iter().map(|(_, peak)| *peak));
        }
        Budget { stages: self.stages, frames: self.frames, result: self.result, cards }
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
            Memory::temporary(bytes(0, 30)).holding(bytes(0, 10)),
            Memory::temporary(bytes(0, 50)).holding(bytes(0, 5)).freeing(bytes(0, 100)),
            Memory::temporary(bytes(0, 20)),
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
            Step::new(name, |_: &mut (), _| Ok(())).needs(move || Ok(Cost::of(memory)))
        };
        let mut ledger = Ledger::new(bytes(1, 0), 3);
        ledger.add(step("plan", Memory::temporary(bytes(7, 40)).holding(bytes(0, 10))).once()).unwrap();
        ledger.add(step("", Memory::held(bytes(0, 100)))).unwrap();
        ledger.add(step("solve", Memory::temporary(bytes(2, 30)).freeing(bytes(0, 100)))).unwrap();
        assert_eq!(ledger.held, bytes(1, 10));
        let budget = ledger.finish();
        let found: Vec<_> = budget.stages.iter().map(|s| (s.name.as_str(), s.bytes, s.gpu_bytes)).collect();
        assert_eq!(found, [("plan", 8, 40), ("solve", 3, 140)]);
        assert_eq!((budget.peak(), budget.gpu_peak(), budget.frames), (8, 140, 3));
        assert!(budget.cards.is_empty());
    }

    #[test]
    fn a_step_states_what_it_takes_beside_the_first_gpu() {
        let step = |name: &'static str, own: u64, others: [u64; 2]| {
            Step::new(name, |_: &mut (), _| Ok(()))
                .needs(move || Ok(Cost::of(Memory::temporary(bytes(1, 2 * own)).holding(bytes(0, own)))))
                .beside(move || {
                    let one = |bytes_: u64| Memory::temporary(bytes(3, 2 * bytes_)).holding(bytes(1, bytes_));
                    Ok(others.map(one).to_vec())
                })
        };
        let mut ledger = Ledger::new(bytes(5, 0), 1);
        ledger.add(step("filter", 10, [30, 20])).unwrap();
        ledger.add(step("project", 100, [1, 40])).unwrap();
        let budget = ledger.finish();
        let found: Vec<_> = budget.stages.iter().map(|s| (s.name.as_str(), s.bytes, s.gpu_bytes)).collect();
        assert_eq!(found, [("filter", 5 + 1 + 6, 60), ("project", 7 + 1 + 6, 210)]);
        assert_eq!(budget.cards, [210, 60, 100]);
    }

    #[test]
    fn parts_at_once_count_on_their_own_gpus_and_together_on_the_host() {
        let step = |name: &'static str, memory| {
            Step::new(name, |_: &mut (), _| Ok(())).needs(move || Ok(Cost::of(memory)))
        };
        let ledger = Ledger::new(bytes(1, 5), 1);
        let parts = [(100, 20), (40, 10), (60, 30)].map(|(peak, held)| {
            let mut part = ledger.part();
            part.add(step("plan", Memory::temporary(bytes(3, peak)).holding(bytes(2, held)))).unwrap();
            part
        });
        // The first GPU may have no part.
        for (first, most) in [(true, 105), (false, 60)] {
            let mut ledger = Ledger { held: ledger.held, ..Ledger::new(Bytes::default(), 1) };
            let part = |index: usize| Ledger { stages: parts[index].stages.clone(), ..parts[index].part() };
            let mut parts: Vec<Ledger> = (0..3).map(part).collect();
            parts.iter_mut().zip([20, 10, 30]).for_each(|(part, held)| part.keep(bytes(2, held)));
            if !first {
                parts[0] = ledger.part();
            }
            ledger.at_once(parts);
            ledger.add(step("solve", Memory::temporary(bytes(0, 7)))).unwrap();
            let held = if first { 25 } else { 5 };
            let budget = ledger.finish();
            let found: Vec<_> =
                budget.stages.iter().map(|s| (s.name.as_str(), s.bytes, s.gpu_bytes)).collect();
            let count = if first { 3 } else { 2 };
            let solve = ("solve", 1 + 2 * count, 30.max(held + 7));
            assert_eq!(found, [("plan", 1 + 3 * count, most), solve]);
            assert_eq!(budget.cards, [if first { 105 } else { 12 }, 40, 60]);
        }
    }
}
