//! The machine's limits: measured once, and again where that measurement cannot be right.

use anyhow::Result;
use rayspin::core::Progress;
use rayspin::device::{Device, cuda};
use rayspin::tune::limits::{Limits, Rates, StoredLimits, stored};
use rayspin_lab::Step;
use rayspin_lab::limits::{Effort, Floors, keep, measure};
use rayspin_lab::record::Entry;
use rayspin_shell::Context;

use crate::args::ladder::RunArgs;

/// A second measurement that is faster by no more than this factor shows that the first was not disturbed.
const SAME: f64 = 1.05;
/// Bytes below which data may stay in a cache, of a GPU or of a few cores.
const CACHED: f64 = 64e6;
/// Shares of a limit up to which another mix of reads, writes and operations than the probe's explains what
/// is above 1.
const MIXED: f64 = 1.1;

/// Why a variant is above 100 % of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Above {
    /// Its data stay in a cache.
    Cached,
    /// It mixes reads, writes and operations otherwise than the probe does.
    Mixed,
    /// The limit is too low, or less work is done than is counted.
    Wrong,
}

impl Above {
    /// `None` where the share rounds to 100.0 % or less.
    pub(super) fn of(entry: &Entry, step: &Step, limits: &Limits) -> Option<Self> {
        let share = step.share().filter(|&share| share >= 1.0005)?;
        let memory = limits.bandwidth(entry.flow).map(|rate| step.bytes / rate);
        let arithmetic = limits.peak(step.peak.unwrap_or(entry.peak)).map(|rate| step.flops / rate);
        let small = entry.one_buffer || entry.run.sets as f64 * step.bytes < CACHED;
        Some(match share {
            _ if memory >= arithmetic && small => Self::Cached,
            share if share <= MIXED => Self::Mixed,
            _ => Self::Wrong,
        })
    }
}

/// The limits of the processors that ladders ran on.
#[derive(Default)]
pub(crate) struct MachineLimits(Vec<Known>);

struct Known {
    device: Device,
    limits: Limits,
    /// Whether this run measured them.
    now: bool,
}

impl MachineLimits {
    /// Those of a device: of this run, stored from another, or measured now and kept. Limits that were
    /// measured while other programs ran are measured again.
    pub(crate) fn of(&mut self, context: &Context, device: &Device, anew: bool) -> Result<&Limits> {
        if let Some(index) = self.index(device) {
            return Ok(&self.0[index].limits);
        }
        let (limits, now) = match stored(cuda::cache_folder().as_deref(), device) {
            StoredLimits::Found(limits) if !anew && !limits.busy => (limits, false),
            StoredLimits::Found(limits) if !anew => {
                let when = date(&limits);
                context.console.note(&format!(
                    "limits of {when} were measured while other programs used the processor: they are measured again"
                ));
                (measured(context, device, Some(&limits))?, true)
            }
            StoredLimits::Ignored(why) => {
                context.console.note(&format!("limits are measured anew: {why}"));
                (measured(context, device, None)?, true)
            }
            StoredLimits::Found(_) | StoredLimits::Absent => (measured(context, device, None)?, true),
        };
        self.0.push(Known { device: device.clone(), limits, now });
        Ok(&self.0[self.0.len() - 1].limits)
    }

    /// Measures the limits again, because `what` exceeds those kept from another run; `None` where this run
    /// measured them.
    fn again(&mut self, context: &Context, device: &Device, what: &str) -> Result<Option<&Limits>> {
        let Some(index) = self.index(device).filter(|&index| !self.0[index].now) else { return Ok(None) };
        let when = date(&self.0[index].limits);
        context.console.note(&format!("{what} exceeds limits of {when}: they are measured again"));
        let limits = measured(context, device, Some(&self.0[index].limits))?;
        self.0[index] = Known { device: device.clone(), limits, now: true };
        Ok(Some(&self.0[index].limits))
    }

    /// Compares a run with the limits of its device, and measures limits again that it exceeds.
    pub(crate) fn judge(
        &mut self,
        context: &Context,
        args: &RunArgs,
        device: &Device,
        entry: &mut Entry,
    ) -> Result<Limits> {
        let known = self.of(context, device, args.remeasure)?.clone();
        known.apply(&mut entry.run, entry.peak, entry.flow);
        let above = |step: &&Step| Above::of(entry, step, &known) == Some(Above::Wrong);
        let Some(step) = entry.run.steps.iter().find(above) else { return Ok(known) };
        let what = format!("{} of {}", step.name, entry.ladder);
        let Some(again) = self.again(context, device, &what)? else { return Ok(known) };
        again.apply(&mut entry.run, entry.peak, entry.flow);
        Ok(again.clone())
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Limits> {
        self.0.iter().map(|known| &known.limits)
    }

    fn index(&self, device: &Device) -> Option<usize> {
        self.0.iter().position(|known| known.device.same_as(device))
    }
}

/// `2026-05-04`, or that it is not known.
pub(crate) fn date(limits: &Limits) -> &str {
    limits.measured.as_deref().and_then(|time| time.get(..10)).unwrap_or("an unknown date")
}

/// Measures a device and keeps the larger rates of this and an earlier measurement.
fn measured(context: &Context, device: &Device, before: Option<&Limits>) -> Result<Limits> {
    let mut limits = measure(device, &Effort::default())?;
    limits.measured = Some(jiff::Timestamp::now().strftime("%FT%TZ").to_string());
    if let Some(before) = before {
        limits.busy &= gains(&before.rates, &limits.rates);
        limits.rates = limits.rates.largest(&before.rates);
    }
    if let Some(Err(error)) = cuda::cache_folder().map(|folder| keep(&folder, &limits)) {
        context.console.note(&format!("limits are not kept: {error}"));
    }
    Ok(limits)
}

/// Whether a rate grew by more than measurements differ.
fn gains(before: &Rates, after: &Rates) -> bool {
    let before = before.rows();
    let known = |name: &str| before.iter().find(|row| row.0 == name).map_or(0.0, |row| row.1);
    after.rows().iter().any(|(name, rate, _)| *rate > SAME * known(name))
}
