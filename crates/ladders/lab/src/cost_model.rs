//! What is known of a configuration before it is timed.
//!
//! Ryoo et al., "Program optimization space pruning for a multithreaded GPU" (CGO 2008), rate a configuration
//! by two numbers:
//!
//! ```text
//! efficiency  = 1 / (instructions · threads)
//! utilisation = (instructions / regions) · ((W − 1) / 2 + (B − 1) · W)
//! ```
//!
//! Here W is the number of warps of a block, and B the number of blocks of a multiprocessor. Regions lie
//! between the places where a warp waits. Configurations that another one exceeds in both numbers are not
//! tried.

use rayspin_core::Result;
use rayspin_device::cuda::{Launched, compile};
use rayspin_device::{Backend, Device};
use rayspin_tune::Peak;
use rayspin_tune::limits::Limits;
use rayspin_tune::variant::Work;
use rayspin_tune::wisdom::CostEstimate;

use crate::limits::Floors;
use crate::ptx::{self, Counts, Evidence, Mix};

/// Rates that bound a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Bytes a second to and from memory.
    pub bandwidth: f64,
    /// Operations a second.
    pub flops: f64,
    /// Instructions of a warp that all multiprocessors issue, a second; infinite where unknown.
    pub issue: f64,
}

impl Bounds {
    /// Nothing is impossible.
    pub const NONE: Self = Self { bandwidth: f64::INFINITY, flops: f64::INFINITY, issue: f64::INFINITY };

    /// Those of measured limits, with 5 % for what the measurement of them missed.
    pub fn of(limits: &Limits, peak: Peak, device: &Device) -> Self {
        const SLACK: f64 = 1.05;
        // A multiprocessor issues 4 instructions of a warp a clock, and 128 multiply-adds are 4 of them.
        let issue = match device.backend() {
            Backend::Cuda(_) => limits.rates.f32 / 64.0,
            Backend::Cpu(_) => f64::INFINITY,
        };
        Self {
            bandwidth: SLACK * limits.rates.copy.max(limits.rates.read).max(limits.rates.write),
            flops: SLACK * limits.peak(peak).unwrap_or(f64::INFINITY),
            issue: SLACK * issue,
        }
    }

    /// The least time for work of any form.
    pub fn floor(&self, work: &Work) -> f64 {
        (work.bytes / self.bandwidth).max(work.flops / self.flops)
    }
}

/// Threads of a launch.
pub(crate) fn threads(launched: &Launched) -> f64 {
    launched.launch.blocks.iter().chain(&launched.launch.threads).map(|&n| f64::from(n)).product()
}

/// Mixes of the programs seen, so that configurations of one compiled form compile it once.
#[derive(Default)]
pub struct CostModel {
    mixes: std::collections::HashMap<(String, String, Option<Evidence>), Option<Mix>>,
}

impl CostModel {
    /// Metrics of a run that launched `launched` and does `work`; `None` where PTX is not to be had.
    pub fn of(
        &mut self,
        device: &Device,
        launched: &[Launched],
        work: &Work,
        bounds: &Bounds,
    ) -> Result<Option<CostEstimate>> {
        let Some(counts) = self.counts(device, launched, work, None) else { return Ok(None) };
        let issued: f64 = counts.iter().zip(launched).map(|(c, l)| c.instructions * threads(l)).sum();
        let mut heaviest: Option<(f64, f64)> = None;
        for (counts, launch) in counts.iter().zip(launched) {
            let instructions = counts.instructions * threads(launch);
            let warps = (launch.launch.threads.iter().map(|&n| f64::from(n)).product::<f64>() / 32.0).ceil();
            let others = (warps - 1.0) / 2.0 + (f64::from(launch.held) - 1.0).max(0.0) * warps;
            let utilisation = counts.instructions / counts.waits.max(1.0) * others;
            if heaviest.is_none_or(|(most, _)| instructions > most) {
                heaviest = Some((instructions, utilisation));
            }
        }
        let (memory, issue) = (work.bytes / bounds.bandwidth, issued / 32.0 / bounds.issue);
        let least = bounds.floor(work).max(issue);
        let utilisation = heaviest.map_or(0.0, |(_, utilisation)| utilisation);
        Ok(Some(CostEstimate { efficiency: 1.0 / issued, utilisation, least, by_memory: memory > issue }))
    }

    /// The counts of one thread of each launch, in a run that does `work`. The turns of the main loop follow
    /// from this evidence; without evidence they follow from operations, else from bytes. `None` where PTX is
    /// missing, or nothing was launched.
    pub fn counts(
        &mut self,
        device: &Device,
        launched: &[Launched],
        work: &Work,
        evidence: Option<Evidence>,
    ) -> Option<Vec<Counts>> {
        let Backend::Cuda(cuda) = device.backend() else { return None };
        let (major, minor) = cuda.properties().capability;
        let target = format!("compute_{major}{minor}{}", if major >= 9 { "a" } else { "" });
        let total_threads: f64 = launched.iter().map(threads).sum();
        if total_threads == 0.0 {
            return None;
        }
        // Each thread does the same share of the work.
        let (flops, bytes) = (work.flops / total_threads, work.bytes / total_threads);
        let of_thread = |mix: Mix| match evidence {
            None => mix.of_thread(flops, bytes),
            Some(Evidence::Bytes) => mix.of_amount(Evidence::Bytes, bytes),
            Some(evidence) => mix.of_amount(evidence, flops),
        };
        launched.iter().map(|launch| self.mix(launch, &target, evidence).map(of_thread)).collect()
    }

    fn mix(&mut self, launch: &Launched, target: &str, evidence: Option<Evidence>) -> Option<Mix> {
        let form = format!("{}\0{}", launch.program.text, launch.program.options().join(" "));
        let entry = self.mixes.entry((form, launch.kernel.clone(), evidence)).or_insert_with(|| {
            let compiled = compile(&launch.program, target, false).ok()?;
            let text = String::from_utf8_lossy(&compiled.image);
            match evidence {
                None => ptx::mix(&text, &launch.kernel),
                Some(evidence) => ptx::mix_by(&text, &launch.kernel, evidence),
            }
        });
        *entry
    }
}

/// Which of these no other exceeds in both metrics, or memory bounds.
pub fn pareto(estimates: &[CostEstimate]) -> Vec<bool> {
    let dominates = |a: &CostEstimate, b: &CostEstimate| {
        a.efficiency >= b.efficiency
            && a.utilisation >= b.utilisation
            && (a.efficiency > b.efficiency || a.utilisation > b.utilisation)
    };
    estimates
        .iter()
        .map(|one| one.by_memory || !estimates.iter().any(|other| dominates(other, one)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pareto_set_has_what_nothing_exceeds() {
        let estimate =
            |efficiency, utilisation| CostEstimate { efficiency, utilisation, least: 0.0, by_memory: false };
        let estimates = [
            estimate(1.0, 5.0),
            estimate(2.0, 4.0),
            estimate(2.0, 3.0),
            estimate(3.0, 1.0),
            estimate(0.5, 5.0),
            estimate(3.0, 1.0),
        ];
        assert_eq!(pareto(&estimates), [true, true, false, true, false, true]);
        assert!(pareto(&[]).is_empty());
        let memory = CostEstimate { by_memory: true, ..estimate(0.1, 0.1) };
        assert_eq!(pareto(&[estimate(1.0, 1.0), memory, estimate(0.5, 0.5)]), [true, true, false]);
    }
}
