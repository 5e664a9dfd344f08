//! What limits a kernel, from its time and the machine's measured limits.

use rayspin_device::Device;
use rayspin_device::cuda::Launched;
use rayspin_tune::limits::Limits;
use rayspin_tune::variant::Work;
use rayspin_tune::{Flow, Peak};
use serde::{Deserialize, Serialize};

use crate::cost_model::{CostModel, threads};
use crate::limits::Floors;
use crate::ptx::Evidence;

/// The share of a limit from which on it is the bottleneck.
pub const HALF: f64 = 0.5;
/// A share above this is none: what the work counts is not done by those units, or the estimate is off.
const MOST: f64 = 1.2;

/// What may limit a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Bytes that any implementation moves, over the measured rate of that way.
    Memory(Flow),
    /// Operations that any implementation makes, over the measured rate of multiply-adds.
    Arithmetic(Peak),
    /// Launches, each as long as one that does nothing.
    Launches,
    /// Instructions of the compiled kernel, over the rate at which multiprocessors issue them.
    Issue,
    /// Results that the compiled kernel takes from special-function units, over their measured rate.
    Special,
    /// None of them: threads wait for memory, for each other, or there are too few.
    Latency,
    /// Unknown: the kernel computes on units that the cost model leaves out.
    Untold,
    /// A stage of an application takes most of its time.
    Stage,
}

impl Limit {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory(Flow::Copy) => "memory bandwidth",
            Self::Memory(Flow::Read) => "memory bandwidth, reading",
            Self::Memory(Flow::Write) => "memory bandwidth, writing",
            Self::Memory(Flow::Upload) => "link to the device",
            Self::Memory(Flow::Download) => "link to the host",
            Self::Memory(Flow::Duplex) => "link both ways",
            Self::Arithmetic(Peak::F32) => "f32 arithmetic",
            Self::Arithmetic(Peak::F64) => "f64 arithmetic",
            Self::Arithmetic(Peak::I32) => "i32 arithmetic",
            Self::Arithmetic(Peak::TensorF64) => "FP64 tensor cores",
            Self::Arithmetic(Peak::TensorF16) => "FP16 tensor cores",
            Self::Launches => "launches",
            Self::Issue => "instruction issue",
            Self::Special => "special functions",
            Self::Latency => "latency",
            Self::Untold => "not told",
            Self::Stage => "stage",
        }
    }

    /// Whether its share is an estimate from the compiled kernel.
    pub fn is_estimate(self) -> bool {
        matches!(self, Self::Issue | Self::Special)
    }
}

/// How much of a limit a kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The limit.
    pub limit: Limit,
    /// The least time that it allows, over the time.
    pub share: f64,
}

/// What is known of a run.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// What it must move and compute.
    pub work: &'a Work,
    /// What bounds its operations.
    pub peak: Peak,
    /// Which way its bytes go.
    pub flow: Flow,
    /// What it launched.
    pub launched: &'a [Launched],
    /// Whether the work and the compiled kernels tell how fast it can be:
    /// [`rayspin_tune::Variant::predictable`].
    pub told: bool,
}

/// What a run asks of a machine: the least seconds that each limit allows. An estimated limit may be listed
/// several times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loads {
    /// The limits.
    pub seconds: Vec<(Limit, f64)>,
    /// Whether the counted work and the compiled kernel tell how fast the run can be:
    /// [`rayspin_tune::Variant::predictable`].
    pub told: bool,
}

impl Loads {
    /// The loads of a run. Each of its launches takes `launch` seconds at least. Estimates from compiled
    /// kernels are left out where PTX is missing.
    pub fn of(device: &Device, limits: &Limits, launch: f64, run: Known<'_>) -> Self {
        let Known { work, peak, flow, launched, told } = run;
        let memory = limits.bandwidth(flow).map(|bandwidth| (Limit::Memory(flow), work.bytes / bandwidth));
        let mut loads: Vec<_> = memory.into_iter().collect();
        loads.extend(limits.peak(peak).map(|rate| (Limit::Arithmetic(peak), work.flops / rate)));
        loads.push((Limit::Launches, launched.len() as f64 * launch));
        if !told {
            return Self { seconds: loads, told };
        }
        // Each kind of work that the problem states tells how often main loops turn.
        let mut evidence = Vec::new();
        if work.flops > 0.0 {
            evidence.push(if peak == Peak::I32 { Evidence::Products } else { Evidence::Flops });
        }
        if work.bytes > 0.0 {
            evidence.push(Evidence::Bytes);
        }
        let mut cost_model = CostModel::default();
        for evidence in evidence {
            let Some(counts) = cost_model.counts(device, launched, work, Some(evidence)) else { continue };
            let total = |count: &dyn Fn(&crate::ptx::Counts) -> f64| -> f64 {
                counts.iter().zip(launched).map(|(counts, launched)| count(counts) * threads(launched)).sum()
            };
            // A multiprocessor issues 4 instructions of a warp a clock, and 128 multiply-adds of two
            // operations are 4 of them.
            loads.push((Limit::Issue, total(&|c| c.instructions) / 32.0 / (limits.rates.f32 / 64.0)));
            if let Some(rate) = limits.rates.special {
                loads.push((Limit::Special, total(&|c| c.special) / rate));
            }
        }
        Self { seconds: loads, told }
    }
}

/// What limits a kernel, and how near it is to each limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The limit.
    pub limit: Limit,
    /// Its share. For [`Limit::Latency`] and [`Limit::Untold`], the largest of all shares.
    pub share: f64,
    /// The stage or the part that takes most of the time, where that is the limit.
    pub stage: Option<String>,
    /// All shares.
    pub shares: Vec<Share>,
}

impl Bottleneck {
    /// The bottleneck of a run that took `seconds`.
    ///
    /// The first of these limits whose share is a half or more: the larger of memory and arithmetic, which
    /// any implementation takes; launches; the larger of the limits that are estimated from the compiled
    /// kernel. Otherwise it is [`Limit::Latency`], or [`Limit::Untold`] where the loads are not told. A share
    /// above 1.2 limits nothing: other units do that work (tensor cores), or the estimate is off. Where a
    /// limit has several estimates, the largest that is not above 1.2 counts: each estimate is a lower bound.
    pub fn of(loads: &Loads, seconds: f64) -> Self {
        let mut shares: Vec<Share> = Vec::new();
        for (limit, share) in loads.seconds.iter().map(|&(limit, least)| (limit, least / seconds)) {
            // What cannot be done within the time was not done: that estimate is wrong.
            if !share.is_finite() || (limit.is_estimate() && share > MOST) {
                continue;
            }
            match shares.iter_mut().find(|other| other.limit == limit) {
                Some(other) => other.share = other.share.max(share),
                None => shares.push(Share { limit, share }),
            }
        }
        let sound = |share: &&Share| share.share <= MOST;
        let largest = |accepts: &dyn Fn(Limit) -> bool| {
            let some = shares.iter().filter(sound).filter(|share| accepts(share.limit));
            some.max_by(|a, b| a.share.total_cmp(&b.share)).copied()
        };
        let steps = [
            largest(&|limit| matches!(limit, Limit::Memory(_) | Limit::Arithmetic(_))),
            largest(&|limit| limit == Limit::Launches),
            largest(&Limit::is_estimate),
        ];
        let dominant = steps.into_iter().flatten().find(|share| share.share >= HALF);
        let most = largest(&|_| true).map_or(0.0, |share| share.share);
        let none = if loads.told { Limit::Latency } else { Limit::Untold };
        let (limit, share) = dominant.map_or((none, most), |dominant| (dominant.limit, dominant.share));
        Self { limit, share, stage: None, shares }
    }

    /// The bottleneck of an application whose parts took these seconds: the part that takes most.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = (&'a str, f64)>, seconds: f64) -> Option<Self> {
        let (name, most) = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let share = most / seconds;
        let stage = Some(name.to_owned());
        Some(Self { limit: Limit::Stage, share, stage, shares: vec![Share { limit: Limit::Stage, share }] })
    }

    /// `memory bandwidth 91 %`, `instruction issue ~80 %`, `latency (memory bandwidth 31 %)`, `solving 83 %`.
    pub fn words(&self) -> String {
        let percent = |limit: Limit, share: f64| {
            let about = if limit.is_estimate() { "~" } else { "" };
            format!("{about}{:.0} %", 100.0 * share)
        };
        match (self.limit, &self.stage) {
            (Limit::Stage, Some(stage)) => format!("{stage} {}", percent(Limit::Stage, self.share)),
            (Limit::Latency | Limit::Untold, _) => {
                let sound = self.shares.iter().filter(|share| share.share <= MOST && share.share > 0.0);
                match sound.max_by(|a, b| a.share.total_cmp(&b.share)) {
                    Some(most) => {
                        let share = percent(most.limit, most.share);
                        format!("{} ({} {share})", self.limit.name(), most.limit.name())
                    }
                    None => self.limit.name().to_owned(),
                }
            }
            (limit, _) => format!("{} {}", limit.name(), percent(limit, self.share)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Limit = Limit::Memory(Flow::Copy);
    const F32: Limit = Limit::Arithmetic(Peak::F32);

    fn words(loads: &[(Limit, f64)]) -> String {
        // Seconds are 2, so that shares are not the loads themselves.
        let seconds = loads.iter().map(|&(limit, share)| (limit, 2.0 * share)).collect();
        Bottleneck::of(&Loads { seconds, told: true }, 2.0).words()
    }

    #[test]
    fn what_any_implementation_takes_comes_before_what_this_one_does() {
        for (loads, expected) in [
            (vec![(MEMORY, 0.91), (F32, 0.2), (Limit::Issue, 0.95)], "memory bandwidth 91 %"),
            (vec![(MEMORY, 0.6), (F32, 0.78)], "f32 arithmetic 78 %"),
            (vec![(Limit::Memory(Flow::Read), 0.5)], "memory bandwidth, reading 50 %"),
            (vec![(MEMORY, 0.49), (Limit::Launches, 0.7), (Limit::Issue, 0.9)], "launches 70 %"),
            (vec![(MEMORY, 0.3), (Limit::Issue, 0.8), (Limit::Special, 0.85)], "special functions ~85 %"),
            (vec![(MEMORY, 0.3), (Limit::Issue, 0.8), (Limit::Special, 0.1)], "instruction issue ~80 %"),
            (vec![(MEMORY, 0.31), (Limit::Issue, 0.2)], "latency (memory bandwidth 31 %)"),
            (vec![(MEMORY, 0.1), (Limit::Issue, 0.4)], "latency (instruction issue ~40 %)"),
            (vec![(MEMORY, 0.0)], "latency"),
            (vec![], "latency"),
        ] {
            assert_eq!(words(&loads), expected);
        }
    }

    #[test]
    fn more_than_all_of_a_limit_is_none() {
        // Tensor cores make what f32 units would take longer for.
        assert_eq!(words(&[(F32, 2.3), (MEMORY, 0.2), (Limit::Issue, 0.7)]), "instruction issue ~70 %");
        assert_eq!(words(&[(F32, 2.3), (MEMORY, 0.2)]), "latency (memory bandwidth 20 %)");
        // Within what measurements of limits may miss.
        assert_eq!(words(&[(F32, 0.3), (MEMORY, 1.04)]), "memory bandwidth 104 %");
        assert_eq!(words(&[(MEMORY, f64::NAN), (F32, f64::INFINITY)]), "latency");
        let memory = Loads { seconds: vec![(MEMORY, 1.0)], told: true };
        assert_eq!(Bottleneck::of(&memory, 0.0).limit, Limit::Latency);
    }

    #[test]
    fn of_estimates_the_largest_that_is_possible_counts() {
        let issue = |shares: &[f64]| {
            let seconds = shares.iter().map(|&share| (Limit::Issue, share)).collect();
            Bottleneck::of(&Loads { seconds, told: true }, 1.0)
        };
        assert_eq!(issue(&[0.6, 0.8, 2.4]).words(), "instruction issue ~80 %");
        assert_eq!(issue(&[0.6, 0.8]).shares.len(), 1);
        assert_eq!(issue(&[2.4]).words(), "latency");
        assert!(issue(&[2.4]).shares.is_empty());
    }

    #[test]
    fn without_a_cost_model_nothing_is_estimated() {
        let words = |memory, launches| {
            let seconds = vec![(MEMORY, memory), (Limit::Launches, launches)];
            Bottleneck::of(&Loads { seconds, told: false }, 1.0).words()
        };
        assert_eq!(words(0.0, 0.3), "not told (launches 30 %)");
        assert_eq!(words(0.0, 0.6), "launches 60 %");
        assert_eq!(words(0.8, 0.1), "memory bandwidth 80 %");
        for device in rayspin_emu::devices().unwrap() {
            let limits = crate::application::tests::limits();
            let work = Work { bytes: 1e9, flops: 1e9 };
            let loads = |told| {
                let run = Known { work: &work, peak: Peak::F32, flow: Flow::Copy, launched: &[], told };
                Loads::of(&device, &limits, 0.0, run)
            };
            assert_eq!(loads(true).seconds[..2], [(MEMORY, 1.0), (F32, 1.0)]);
            assert_eq!(loads(false).seconds, [(MEMORY, 1.0), (F32, 1.0), (Limit::Launches, 0.0)]);
        }
    }

    #[test]
    fn of_parts_the_longest_is_named() {
        let parts = [("upload", 1.0), ("kernel", 5.0), ("download", 2.0)];
        assert_eq!(Bottleneck::of_parts(parts, 10.0).unwrap().words(), "kernel 50 %");
        assert_eq!(Bottleneck::of_parts([], 1.0), None);
    }
}
