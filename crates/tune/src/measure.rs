//! How a run is timed.

use std::time::Instant;

use rayspin_core::Result;
use rayspin_device::{Backend, Device};
use serde::{Deserialize, Serialize};

/// What a measurement may take, and the least that makes one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Protocol {
    /// Rounds that the median is of.
    pub rounds: usize,
    /// Seconds of a round at least: short runs are repeated within it.
    pub round: f64,
    /// Seconds of all rounds at most, as long as three were made (one where a round alone takes longer).
    pub budget: f64,
    /// Whether runs take buffers in rotation, so that no cache holds them. Where not, small problems are those of the cache.
    pub rotate: bool,
}

impl Default for Protocol {
    fn default() -> Self {
        Self { rounds: 15, round: 2e-3, budget: 2.0, rotate: true }
    }
}

/// Seconds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The median of the rounds.
    pub median: f64,
    /// The first quartile.
    pub low: f64,
    /// The third quartile.
    pub high: f64,
    /// Rounds.
    pub rounds: usize,
    /// Runs in each.
    pub runs: usize,
    /// Whether a round was one graph of launches, so that the host's share of a launch is left out.
    pub graph: bool,
}

/// Times `run`, which is given 0, 1, 2 … in turns so that it can rotate buffers and caches hold nothing of the last run.
///
/// On a GPU the device's own clock (events) times a round; where `run` can be recorded, a round is one graph, since the launch of
/// a kernel by the host takes longer than many kernels run. On a CPU the monotonic clock. One run warms up, another tells how many
/// make a round.
///
/// Errors: those of `run`.
pub fn measure(
    device: &Device,
    protocol: &Protocol,
    mut run: impl FnMut(usize) -> Result<()>,
) -> Result<Timing> {
    let mut next = 0;
    let mut once = || {
        next += 1;
        run(next - 1)
    };
    once()?;
    device.synchronize()?;
    let first = seconds(device, &mut once)?;
    let runs = (protocol.round / first.max(1e-7)).ceil().clamp(1.0, 1000.0) as usize;
    let mut graph = None;
    if let (Backend::Cuda(cuda), true) = (device.backend(), runs > 1) {
        graph = cuda.record(|| (0..runs).try_for_each(|_| once())).ok();
        // What cannot be recorded may have left an error behind that belongs to nobody.
        if graph.is_none() {
            device.synchronize()?;
        }
    }
    // Memory that another thread gives back ends a recording: rounds are then plain ones.
    let mut round = || match graph.as_ref().filter(|graph| graph.current()) {
        Some(graph) => seconds(device, &mut || graph.launch()),
        None => seconds(device, &mut || (0..runs).try_for_each(|_| once())),
    };
    if runs > 1 {
        round()?;
    }
    let began = Instant::now();
    let mut times = Vec::with_capacity(protocol.rounds);
    while times.len() < protocol.rounds.max(1) {
        times.push(round()? / runs as f64);
        let spent = began.elapsed().as_secs_f64();
        if spent > protocol.budget && (times.len() >= 3 || spent > 3.0 * protocol.budget) {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    Ok(Timing {
        median: at(0.5),
        low: at(0.25),
        high: at(0.75),
        rounds: times.len(),
        runs,
        graph: graph.is_some_and(|graph| graph.current()),
    })
}

/// Seconds of `work`, by the clock of the device.
pub(crate) fn seconds(device: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    match device.backend() {
        Backend::Cuda(cuda) => cuda.seconds(work),
        Backend::Cpu(_) => {
            let began = Instant::now();
            work()?;
            Ok(began.elapsed().as_secs_f64())
        }
    }
}
