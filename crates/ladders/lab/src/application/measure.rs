//! The best variant of a problem on a device, the kernel alone and the whole from host to host.

use std::time::Instant;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::Launched;
use rayspin_device::{Backend, BackendKind, Device};
use rayspin_tune::limits::Limits;
use rayspin_tune::{Config, EndToEnd, Flow, Peak, Session, VariantInfo};
use serde::{Deserialize, Serialize};

use super::{Bottleneck, Known, Loads};
use crate::benchmark::sets;
use crate::cost_model::threads;
use crate::measure::{Protocol, Timing, measure, seconds};

/// A variant whose first run takes longer than the best so far by this factor is given up.
const BEHIND: f64 = 4.0;
/// Runs shorter than this, in seconds, may have been disturbed by another program.
const DISTURBED: f64 = 0.1;
/// Runs that take longer, in seconds, are not repeated: what disturbs them is a small share.
const LONG: f64 = 1.0;

/// The threads of one kernel that a GPU holds at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// The kernel: of all that were launched the one with most threads in all.
    pub kernel: String,
    /// Blocks that multiprocessors hold, and that there are, times the threads of each.
    pub threads: u64,
    /// Threads of its largest launch.
    pub launched: u64,
    /// Threads that the GPU can hold.
    pub most: u64,
}

impl Resident {
    /// The threads that a GPU holds at once for these launches. `None` on a CPU, without launches, or where
    /// the driver does not tell how many blocks are held.
    pub fn of(device: &Device, launched: &[Launched]) -> Option<Self> {
        let Backend::Cuda(cuda) = device.backend() else { return None };
        let properties = cuda.properties();
        let mut kernels: Vec<(&Launched, f64)> = Vec::new();
        for one in launched {
            let threads = threads(one);
            let same = |(other, _): &&mut (&Launched, f64)| {
                other.kernel == one.kernel && other.program.name == one.program.name
            };
            match kernels.iter_mut().find(same) {
                Some((largest, total)) => {
                    if threads > self::threads(largest) {
                        *largest = one;
                    }
                    *total += threads;
                }
                None => kernels.push((one, threads)),
            }
        }
        let (one, _) = kernels.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let count = |sides: &[u32; 3]| sides.iter().map(|&n| u64::from(n)).product::<u64>();
        let (blocks, threads) = (count(&one.launch.blocks), count(&one.launch.threads));
        let held = u64::from(one.held) * u64::from(properties.multiprocessors);
        (held > 0).then(|| Self {
            kernel: one.kernel.clone(),
            threads: blocks.min(held) * threads,
            launched: blocks * threads,
            most: u64::from(properties.multiprocessors) * u64::from(properties.threads_per_multiprocessor),
        })
    }
}

/// What is known of the best variant on a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct OnGpu {
    /// What limits its kernels.
    pub bottleneck: Bottleneck,
    /// Its threads.
    pub resident: Option<Resident>,
}

/// The best variant of a problem on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// Its name.
    pub variant: &'static str,
    /// Its parameters.
    pub config: Config,
    /// Its time, inputs and outputs in the device's memory.
    pub kernel: Timing,
    /// Its time from host to host, where the algorithm names the arrays that are copied.
    pub whole: Option<EndToEnd>,
    /// On a GPU.
    pub on_gpu: Option<OnGpu>,
    /// Variants that failed or were wrong before one was right: names and words.
    pub failed: Vec<(String, String)>,
}

/// How variants race.
pub struct Race<'a> {
    /// How the best is timed.
    pub protocol: &'a Protocol,
    /// What the device can do at most.
    pub limits: &'a Limits,
    /// Seconds of a launch, as [`crate::limits::launch`] gives them.
    pub launch: f64,
    /// What bounds the problem's operations.
    pub peak: Peak,
    /// Which way its bytes go.
    pub flow: Flow,
}

/// A variant that raced, and the time of its kernel.
struct TimedVariant {
    index: usize,
    config: Config,
    timing: Timing,
}

/// The fastest right variant of those that compete on this device, with the configuration that `wants` gives;
/// `None` leaves a variant out.
///
/// Variants run best last in their table, so they race from the end. One that is far behind is given up after
/// a run. If that run took more than a second the race ends: the variants before it take longer still. The
/// fastest is checked against the oracle, with inputs and outputs on the device and from host to host; where
/// it is wrong, the next one is. Gives none where no variant is right. Errors: the sets of data cannot be
/// made; the user interrupts.
pub fn best(
    session: &mut dyn Session,
    device: &Device,
    race: &Race<'_>,
    wants: &mut dyn FnMut(&VariantInfo) -> Result<Option<Config>>,
) -> Result<std::result::Result<Best, Vec<(String, String)>>> {
    let variants: Vec<_> = session.variants().to_vec();
    session.rotate(if race.protocol.rotate { sets(device, session) } else { 1 })?;
    let mut failed = Vec::new();
    let mut timed: Vec<TimedVariant> = Vec::new();
    let fits = |variant: &VariantInfo| {
        variant.backend == device.kind() && variant.competes && variant.refuses.is_none()
    };
    for (index, variant) in variants.iter().enumerate().rev().filter(|(_, variant)| fits(variant)) {
        let Some(config) = wants(variant)? else { continue };
        let fastest = timed.iter().map(|variant| variant.timing.median).fold(f64::INFINITY, f64::min);
        match raced(session, device, race.protocol, index, &config, fastest) {
            Ok(Raced::Behind(seconds)) if seconds > LONG => break,
            Ok(Raced::Behind(_)) => {}
            Ok(Raced::Timed(timing)) => timed.push(TimedVariant { index, config, timing }),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => failed.push((variant.name.to_owned(), error.to_string())),
        }
    }
    timed.sort_by(|a, b| a.timing.median.total_cmp(&b.timing.median));
    for timed in timed {
        let variant = &variants[timed.index];
        match checked(session, device, race, variant, &timed) {
            Ok((whole, on_gpu)) => {
                let TimedVariant { config, timing: kernel, .. } = timed;
                return Ok(Ok(Best { variant: variant.name, config, kernel, whole, on_gpu, failed }));
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => failed.push((variant.name.to_owned(), error.to_string())),
        }
    }
    Ok(Err(failed))
}

/// What came of a variant in a race.
enum Raced {
    Timed(Timing),
    /// It is far behind: the seconds of its run.
    Behind(f64),
}

/// The time of a variant.
fn raced(
    session: &mut dyn Session,
    device: &Device,
    protocol: &Protocol,
    variant: usize,
    config: &Config,
    fastest: f64,
) -> Result<Raced> {
    let began = Instant::now();
    session.run(variant, config, 0)?;
    device.synchronize()?;
    let mut first = began.elapsed().as_secs_f64();
    if matches!(device.backend(), Backend::Cuda(_)) {
        // The first one may have compiled.
        first = seconds(device, &mut || session.run(variant, config, 0))?;
    }
    // Short runs say little of themselves: caches and threads that slept. Another program may have held the
    // processor too, so that a second run decides.
    let behind = BEHIND * fastest.max(1e-3);
    if first > behind && first < DISTURBED {
        first = seconds(device, &mut || session.run(variant, config, 0))?;
    }
    if first > behind {
        return Ok(Raced::Behind(first));
    }
    measure(device, protocol, |turn| session.run(variant, config, turn)).map(Raced::Timed)
}

fn right(variant: &VariantInfo, error: f64, what: &str) -> Result<()> {
    // Not `error > tolerance`: NaN is wrong too.
    if error <= variant.tolerance {
        return Ok(());
    }
    let most = format!("at most {:.0e}", variant.tolerance);
    Err(Error::value(format!("error {what}"), most, format!("{error:.2e}")))
}

/// The time of one core of a CPU: of the plainest variant, which the first of a table is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneCore {
    /// The variant.
    pub variant: String,
    /// The problem that it was timed on.
    pub problem: String,
    /// Seconds of its kernel.
    pub kernel_seconds: f64,
    /// Seconds of the whole, where it was timed.
    pub application_seconds: Option<f64>,
    /// What its rate counts, of one run.
    pub amount: f64,
}

/// Times the first variant of a CPU that takes the problem. A run of more than a second is made once, from
/// host to host; shorter ones as `protocol` says. Errors: no variant takes the problem, its result is wrong.
pub fn one_core(session: &mut dyn Session, device: &Device, protocol: &Protocol) -> Result<OneCore> {
    let plain = |v: &VariantInfo| v.backend == BackendKind::Cpu && v.competes && v.refuses.is_none();
    let first =
        session.variants().iter().position(plain).map(|index| (index, session.variants()[index].clone()));
    let Some((index, variant)) = first else {
        return Err(Error::value("problem of one core", "one that a variant takes", session.problem()));
    };
    let config = variant.space.default_config();
    let mut whole = session.end_to_end(index, &config)?;
    if whole.is_none() {
        session.run(index, &config, 0)?;
    }
    right(&variant, session.found()?, "of one core")?;
    let kernel_seconds = match whole {
        Some(whole) if whole.seconds() > LONG => whole.kernel,
        _ => {
            whole = session.end_to_end(index, &config)?;
            measure(device, protocol, |_| session.run(index, &config, 0))?.median
        }
    };
    Ok(OneCore {
        variant: variant.name.to_owned(),
        problem: session.problem(),
        kernel_seconds,
        application_seconds: whole.map(|whole| whole.seconds()),
        amount: variant.amount,
    })
}

type Checked = (Option<EndToEnd>, Option<OnGpu>);

/// The whole of a variant that is right, and what limits its kernels.
fn checked(
    session: &mut dyn Session,
    device: &Device,
    race: &Race<'_>,
    variant: &VariantInfo,
    timed: &TimedVariant,
) -> Result<Checked> {
    let TimedVariant { index, config, timing } = timed;
    right(variant, session.verify(*index, config)?, "of the kernel")?;
    let on_gpu = match device.backend() {
        Backend::Cpu(_) => None,
        Backend::Cuda(cuda) => {
            let launched = cuda.launches(|| session.run(*index, config, 0))?;
            device.synchronize()?;
            let run = Known {
                work: &variant.work,
                peak: variant.peak.unwrap_or(race.peak),
                flow: race.flow,
                launched: &launched,
                told: variant.predictable,
            };
            let loads = Loads::of(device, race.limits, race.launch, run);
            Some(OnGpu {
                bottleneck: Bottleneck::of(&loads, timing.median),
                resident: Resident::of(device, &launched),
            })
        }
    };
    let mut rounds = Vec::new();
    let began = Instant::now();
    // The first one warms up.
    for round in 0..=race.protocol.rounds.max(1) {
        let Some(whole) = session.end_to_end(*index, config)? else { return Ok((None, on_gpu)) };
        if round == 0 {
            right(variant, session.found()?, "from host to host")?;
        } else {
            rounds.push(whole);
        }
        if !rounds.is_empty() && began.elapsed().as_secs_f64() > race.protocol.budget {
            break;
        }
    }
    rounds.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    Ok((rounds.get(rounds.len() / 2).copied(), on_gpu))
}
