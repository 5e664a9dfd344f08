//! A benchmark run: the variants of one problem on one device, verified, then timed.

use rayspin_core::Result;
use rayspin_device::{Backend, Device};
use rayspin_tune::{Config, Peak, Session, VariantInfo};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::measure::{Protocol, Timing, measure};

/// What became of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It met its tolerance and was timed.
    Timed(Timed),
    /// It was not run: why.
    Refused(String),
    /// It ran and was wrong, or failed: what was found.
    Failed(String),
}

/// Times and rates of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Seconds.
    pub timing: Timing,
    /// What the algorithm's rate counts, a second.
    pub rate: f64,
    /// The error against the oracle.
    pub error: f64,
    /// How much faster than the last variant that was timed on this device.
    pub step: f64,
    /// How much faster than the first variant that was timed on this device.
    pub cumulative: f64,
    /// The processor's clock in MHz just after the last round, where it can be told.
    pub clock_mhz: Option<f64>,
}

impl BenchmarkRun {
    /// The lowest, the median and the highest of the clocks of the variants that were timed, in MHz, where
    /// they can be told.
    pub fn clocks_mhz(&self) -> Option<[f64; 3]> {
        let mut clocks: Vec<_> = self.steps.iter().filter_map(|step| step.timed()?.clock_mhz).collect();
        clocks.sort_by(f64::total_cmp);
        Some([*clocks.first()?, clocks[clocks.len() / 2], *clocks.last()?])
    }
}

impl Step {
    /// Times and rates, where it was timed.
    pub fn timed(&self) -> Option<&Timed> {
        match &self.outcome {
            Outcome::Timed(timed) => Some(timed),
            _ => None,
        }
    }

    /// The share of the machine's limit that it reaches: its floor over its median.
    pub fn share(&self) -> Option<f64> {
        Some(self.floor? / self.timed()?.timing.median)
    }
}

/// One variant of a benchmark run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The variant.
    pub name: String,
    /// What distinguishes it.
    pub summary: String,
    /// Its parameters.
    pub config: Config,
    /// Bytes that it must move.
    pub bytes: f64,
    /// Operations that it must make.
    pub flops: f64,
    /// The units that make them, where these are not the problem's.
    #[serde(default)]
    pub peak: Option<Peak>,
    /// Seconds that the limits of the machine allow at least, where they are known.
    pub floor: Option<f64>,
    /// The error that it may have.
    pub tolerance: f64,
    /// The published row.
    pub reproduces: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
}

/// All variants of a problem on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkRun {
    /// The device, in words.
    pub device: String,
    /// The problem, in words.
    pub problem: String,
    /// Sets of buffers that runs rotated over.
    pub sets: usize,
    /// The variants, slowest first.
    pub steps: Vec<Step>,
}

/// Runs those variants of `session` that are made for the device's kind of processor and that `wants` takes,
/// with the configuration that it gives, each against the oracle before it is timed.
///
/// A variant that refuses the problem, that fails or that misses its tolerance is a step with that outcome;
/// none stops the benchmark run.
/// Errors: the sets of data cannot be made; the user interrupts.
pub fn benchmark(
    session: &mut dyn Session,
    device: &Device,
    protocol: &Protocol,
    wants: &mut dyn FnMut(&VariantInfo) -> Result<Option<Config>>,
) -> Result<BenchmarkRun> {
    let variants: Vec<_> = session.variants().to_vec();
    let sets = session.rotate(if protocol.rotate { sets(device, session) } else { 1 })?;
    let (mut steps, mut first, mut last) = (Vec::new(), None, None);
    let mut clock = Clock::of(device);
    for (index, variant) in variants.iter().enumerate().filter(|(_, r)| r.backend == device.kind()) {
        let Some(config) = wants(variant)? else { continue };
        let outcome = match &variant.refuses {
            Some(why) => Outcome::Refused(why.clone()),
            None => match timed(session, device, protocol, &mut clock, index, &config) {
                Err(rayspin_core::Error::Interrupted) => return Err(rayspin_core::Error::Interrupted),
                Err(error) => Outcome::Failed(error.to_string()),
                Ok(Verdict::Wrong(error)) => Outcome::Failed(format!(
                    "error {error:.2e}, at most {:.0e} is allowed",
                    variant.tolerance
                )),
                Ok(Verdict::Right { error, timing, clock_mhz }) => {
                    let seconds = timing.median;
                    let step = last.unwrap_or(seconds) / seconds;
                    let cumulative = first.unwrap_or(seconds) / seconds;
                    (first, last) = (Some(first.unwrap_or(seconds)), Some(seconds));
                    let rate = variant.amount / seconds;
                    Outcome::Timed(Timed { timing, rate, error, step, cumulative, clock_mhz })
                }
            },
        };
        steps.push(Step {
            name: variant.name.to_owned(),
            summary: variant.summary.to_owned(),
            config,
            bytes: variant.work.bytes,
            flops: variant.work.flops,
            peak: variant.peak,
            floor: None,
            tolerance: variant.tolerance,
            reproduces: variant.reproduces.map(str::to_owned),
            outcome,
        });
    }
    Ok(BenchmarkRun { device: device.describe(), problem: session.problem(), sets, steps })
}

/// What became of a variant that ran.
enum Verdict {
    Right { error: f64, timing: Timing, clock_mhz: Option<f64> },
    Wrong(f64),
}

/// Runs a variant against the oracle, and times it where it is right.
fn timed(
    session: &mut dyn Session,
    device: &Device,
    protocol: &Protocol,
    clock: &mut Clock,
    variant: usize,
    config: &Config,
) -> Result<Verdict> {
    let error = session.verify(variant, config)?;
    let tolerance = session.variants().get(variant).map_or(0.0, |r| r.tolerance);
    // Not `error > tolerance`: NaN is wrong too.
    if !matches!(error.partial_cmp(&tolerance), Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)) {
        return Ok(Verdict::Wrong(error));
    }
    let timing = measure(device, protocol, |turn| session.run(variant, config, turn))?;
    Ok(Verdict::Right { error, timing, clock_mhz: clock.mhz()? })
}

/// Sets of data that together are three times the last-level cache, so that no run finds its input there.
pub fn sets(device: &Device, session: &dyn Session) -> usize {
    let bytes = session.variants().iter().map(|r| r.work.bytes).fold(1.0, f64::max);
    let cache = match device.backend() {
        Backend::Cuda(cuda) => cuda.properties().cache as f64,
        // Servers' last-level caches reach hundreds of megabytes, shared by many cores; 64 MB is what a few
        // of them see.
        Backend::Cpu(_) => 64e6,
    };
    (3.0 * cache / bytes).ceil().clamp(1.0, 64.0) as usize
}
