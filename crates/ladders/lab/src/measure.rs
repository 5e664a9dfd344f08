//! How a run is timed.

use std::cell::Cell;
use std::time::Instant;

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Device};
use serde::{Deserialize, Serialize};

/// The bounds of a measurement, in rounds and seconds, and its launch mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Protocol {
    /// Rounds. The median is taken over them.
    pub rounds: usize,
    /// Seconds of a round at least: short runs are repeated within it.
    pub round: f64,
    /// Seconds of all rounds at most, as long as three were made (one where a round alone takes longer).
    pub budget: f64,
    /// Whether runs take buffers in rotation, so that no cache holds them. Otherwise small problems run in
    /// the cache.
    pub rotate: bool,
    /// How the host launches runs.
    pub launch_mode: LaunchMode,
}

/// How the host launches the runs of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchMode {
    /// [`LaunchMode::Graph`] on a GPU, where a round is of more than one run and these can be recorded; else
    /// [`LaunchMode::Stream`].
    #[default]
    Best,
    /// A round is one graph of launches, which the host launches once.
    Graph,
    /// The host launches one run after another and waits for the round.
    Stream,
    /// The host launches one run and waits for it, before it launches the next: a round is a run.
    Single,
}

impl LaunchMode {
    /// In words for tables; none of what goes without saying.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Best => None,
            Self::Graph => Some("runs in one graph"),
            Self::Stream => Some("runs launched one after another"),
            Self::Single => Some("each run launched and awaited alone"),
        }
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self { rounds: 15, round: 2e-3, budget: 2.0, rotate: true, launch_mode: LaunchMode::Best }
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

/// Times `run`, which is given 0, 1, 2 … in turns so that it can rotate buffers and caches hold nothing of
/// the last run.
///
/// On a GPU the device's own clock (events) times a round. Unless the protocol says otherwise, a round is one
/// graph where `run` can be recorded: the launch of a kernel by the host takes longer than many kernels run.
/// On a CPU the monotonic clock. One run warms up, another tells how many make a round. Runs that cannot be
/// recorded are done once, then recorded: the first run on a set of data may take memory. With
/// [`LaunchMode::Single`] as many runs are timed as the rounds would have, each alone.
///
/// Errors: `run` fails; the protocol requires a graph, and the device is a CPU or the runs cannot be
/// recorded.
pub fn measure(
    device: &Device,
    protocol: &Protocol,
    mut run: impl FnMut(usize) -> Result<()>,
) -> Result<Timing> {
    let next = Cell::new(0);
    let mut once = || run(next.replace(next.get() + 1));
    once()?;
    device.synchronize()?;
    let first = seconds(device, &mut once)?;
    let runs = (protocol.round / first.max(1e-7)).ceil().clamp(1.0, 1000.0) as usize;
    if protocol.launch_mode == LaunchMode::Single {
        let times = rounds(protocol, protocol.rounds.max(1) * runs, || seconds(device, &mut once))?;
        return Ok(Timing::of(&times, 1, false));
    }
    let wanted = protocol.launch_mode == LaunchMode::Graph;
    let mut graph = None;
    match (device.backend(), protocol.launch_mode) {
        (Backend::Cuda(cuda), launch_mode) if wanted || (launch_mode == LaunchMode::Best && runs > 1) => {
            let begin = next.get();
            let mut recorded = cuda.record(|| (0..runs).try_for_each(|_| once()));
            if recorded.is_err() {
                // What cannot be recorded may have left an error behind that belongs to nobody.
                device.synchronize()?;
                // The first run on a set of data may take memory that the set keeps, which no recording can
                // hold.
                next.set(begin);
                (0..runs).try_for_each(|_| once())?;
                next.set(begin);
                recorded = cuda.record(|| (0..runs).try_for_each(|_| once()));
            }
            if recorded.is_err() {
                device.synchronize()?;
            }
            graph = if wanted { Some(recorded?) } else { recorded.ok() };
        }
        (Backend::Cpu(_), LaunchMode::Graph) => {
            return Err(Error::value("device of a graph of runs", "a GPU", device.describe()));
        }
        _ => {}
    }
    // Memory that another thread gives back ends a recording: rounds are then plain ones, unless the protocol
    // requires a graph.
    let mut round = || match graph.as_ref().filter(|graph| wanted || graph.current()) {
        Some(graph) => seconds(device, &mut || graph.launch()),
        None => seconds(device, &mut || (0..runs).try_for_each(|_| once())),
    };
    if runs > 1 || wanted {
        round()?;
    }
    let mut times = rounds(protocol, protocol.rounds.max(1), round)?;
    times.iter_mut().for_each(|time| *time /= runs as f64);
    Ok(Timing::of(&times, runs, graph.is_some_and(|graph| graph.current())))
}

/// Seconds of rounds, sorted: at most `most` rounds, and fewer where they exceed the protocol's budget.
fn rounds(protocol: &Protocol, most: usize, mut round: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
    let began = Instant::now();
    let mut times = Vec::with_capacity(most);
    while times.len() < most {
        times.push(round()?);
        let spent = began.elapsed().as_secs_f64();
        if spent > protocol.budget && (times.len() >= 3 || spent > 3.0 * protocol.budget) {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

impl Timing {
    /// The timing of sorted seconds of rounds, one at least.
    fn of(times: &[f64], runs: usize, graph: bool) -> Self {
        let quantile = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        Self {
            median: quantile(0.5),
            low: quantile(0.25),
            high: quantile(0.75),
            rounds: times.len(),
            runs,
            graph,
        }
    }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rayspin_core::ErrorKind;
    use rayspin_device::{Array, BackendKind};

    use super::*;

    #[test]
    fn runs_are_asked_for_as_it_is_said() {
        for device in rayspin_emu::devices().unwrap() {
            let mut array = Array::<f32>::zeros(&device, &[64]).unwrap();
            let gpu = device.kind() == BackendKind::Cuda;
            let mut timed = |launch_mode| {
                let protocol =
                    Protocol { rounds: 3, round: 2e-5, budget: 0.5, launch_mode, ..Protocol::default() };
                let asked = Cell::new(0);
                let timing = measure(&device, &protocol, |turn| {
                    asked.set(asked.get() + 1);
                    assert_eq!(asked.get(), turn + 1);
                    array.fill(0.0)
                });
                timing.map(|timing| (timing, asked.get()))
            };
            let (stream, asked) = timed(LaunchMode::Stream).unwrap();
            assert!(!stream.graph && stream.rounds == 3 && stream.low > 0.0, "{stream:?}");
            // Two before, and the round that warms up where there is more than one run in it.
            assert_eq!(asked, 2 + stream.runs * (3 + usize::from(stream.runs > 1)));
            let (single, asked) = timed(LaunchMode::Single).unwrap();
            assert!(!single.graph && single.runs == 1 && single.rounds >= 3, "{single:?}");
            assert_eq!((asked, single.rounds % 3), (2 + single.rounds, 0));
            match timed(LaunchMode::Graph) {
                Ok((graph, asked)) if gpu => {
                    assert!(graph.graph && graph.rounds == 3, "{graph:?}");
                    assert_eq!(asked, 2 + graph.runs);
                }
                Err(error) if !gpu => {
                    assert_eq!(error.kind(), ErrorKind::Input);
                    assert!(error.to_string().contains("a GPU"), "{error}");
                }
                other => panic!("{} {other:?}", device.describe()),
            }
            let (best, _) = timed(LaunchMode::Best).unwrap();
            assert_eq!(best.graph, gpu && best.runs > 1);
        }
    }

    /// A recording that allocates cannot be repeated on a real GPU: its memory is there already.
    #[test]
    fn sets_that_take_memory_in_their_first_run_are_recorded_afterwards() {
        for device in rayspin_emu::devices().unwrap().into_iter().filter(|d| d.kind() == BackendKind::Cuda) {
            for launch_mode in [LaunchMode::Best, LaunchMode::Graph] {
                let mut sets: Vec<Option<Array<f32>>> = (0..40).map(|_| None).collect();
                let protocol =
                    Protocol { rounds: 3, round: 1e-3, budget: 0.5, launch_mode, ..Protocol::default() };
                let timing = measure(&device, &protocol, |turn| {
                    let set = &mut sets[turn % 40];
                    if set.is_none() {
                        *set = Some(Array::zeros(&device, &[64])?);
                    }
                    set.as_mut().map_or(Ok(()), |array| array.fill(0.0))
                });
                let timing = timing.unwrap();
                assert!(timing.graph && timing.runs > 1 && timing.rounds == 3, "{launch_mode:?} {timing:?}");
            }
        }
    }

    #[test]
    fn runs_that_cannot_be_recorded_are_no_graph() {
        for device in rayspin_emu::devices().unwrap() {
            let timed = |launch_mode| {
                let protocol = Protocol { rounds: 1, round: 1e-3, launch_mode, ..Protocol::default() };
                measure(&device, &protocol, |_| Array::<f32>::zeros(&device, &[2]).map(drop))
            };
            assert!(timed(LaunchMode::Graph).is_err());
            assert!(!timed(LaunchMode::Best).unwrap().graph);
        }
    }
}
