//! How a run is timed.

use std::cell::Cell;
use std::time::Instant;

use rayspin_core::{Error, Result};
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
    /// How runs are asked for.
    pub asking: Asking,
}

/// How the runs of a measurement are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asking {
    /// [`Asking::Graph`] on a GPU, where a round is of more than one run and these can be recorded; else [`Asking::Stream`].
    #[default]
    Best,
    /// A round is one graph of launches, which the host asks for once.
    Graph,
    /// The host asks for one run after another and waits for the round.
    Stream,
    /// The host asks for one run and waits for it, before it asks for the next: a round is a run.
    Single,
}

impl Asking {
    /// In words for tables; none of what goes without saying.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Best => None,
            Self::Graph => Some("runs in one graph"),
            Self::Stream => Some("runs asked for one after another"),
            Self::Single => Some("runs asked for and waited for one by one"),
        }
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self { rounds: 15, round: 2e-3, budget: 2.0, rotate: true, asking: Asking::Best }
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
/// On a GPU the device's own clock (events) times a round; unless the protocol says otherwise, a round is one graph where `run` can be
/// recorded, since the launch of a kernel by the host takes longer than many kernels run. On a CPU the monotonic clock. One run
/// warms up, another tells how many make a round. Runs that cannot be recorded are done once, then recorded: the first run on a set
/// of data may take memory. Of runs that are waited for one by one, as many are timed as rounds would have, each alone.
///
/// Errors: those of `run`; a graph is asked for of a CPU, or of runs that cannot be recorded.
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
    if protocol.asking == Asking::Single {
        let times = rounds(protocol, protocol.rounds.max(1) * runs, || seconds(device, &mut once))?;
        return Ok(Timing::of(&times, 1, false));
    }
    let wanted = protocol.asking == Asking::Graph;
    let mut graph = None;
    match (device.backend(), protocol.asking) {
        (Backend::Cuda(cuda), asking) if wanted || (asking == Asking::Best && runs > 1) => {
            let begin = next.get();
            let mut recorded = cuda.record(|| (0..runs).try_for_each(|_| once()));
            if recorded.is_err() {
                // What cannot be recorded may have left an error behind that belongs to nobody.
                device.synchronize()?;
                // The first run on a set of data may take memory that the set keeps, which no recording can hold.
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
        (Backend::Cpu(_), Asking::Graph) => {
            return Err(Error::value("device of a graph of runs", "a GPU", device.describe()));
        }
        _ => {}
    }
    // Memory that another thread gives back ends a recording: rounds are then plain ones, unless a graph was asked for.
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

/// Seconds of rounds, sorted: at most so many, and fewer where they take longer than they may.
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
    /// Of sorted seconds of rounds, one at least.
    fn of(times: &[f64], runs: usize, graph: bool) -> Self {
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        Self { median: at(0.5), low: at(0.25), high: at(0.75), rounds: times.len(), runs, graph }
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
            let mut of = |asking| {
                let protocol =
                    Protocol { rounds: 3, round: 2e-5, budget: 0.5, asking, ..Protocol::default() };
                let asked = Cell::new(0);
                let timing = measure(&device, &protocol, |turn| {
                    asked.set(asked.get() + 1);
                    assert_eq!(asked.get(), turn + 1);
                    array.fill(0.0)
                });
                timing.map(|timing| (timing, asked.get()))
            };
            let (stream, asked) = of(Asking::Stream).unwrap();
            assert!(!stream.graph && stream.rounds == 3 && stream.low > 0.0, "{stream:?}");
            // Two before, and the round that warms up where there is more than one run in it.
            assert_eq!(asked, 2 + stream.runs * (3 + usize::from(stream.runs > 1)));
            let (single, asked) = of(Asking::Single).unwrap();
            assert!(!single.graph && single.runs == 1 && single.rounds >= 3, "{single:?}");
            assert_eq!((asked, single.rounds % 3), (2 + single.rounds, 0));
            match of(Asking::Graph) {
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
            let (best, _) = of(Asking::Best).unwrap();
            assert_eq!(best.graph, gpu && best.runs > 1);
        }
    }

    /// A recording that allocates cannot be repeated on a real GPU: its memory is there already.
    #[test]
    fn sets_that_take_memory_in_their_first_run_are_recorded_afterwards() {
        for device in rayspin_emu::devices().unwrap().into_iter().filter(|d| d.kind() == BackendKind::Cuda) {
            for asking in [Asking::Best, Asking::Graph] {
                let mut sets: Vec<Option<Array<f32>>> = (0..40).map(|_| None).collect();
                let protocol =
                    Protocol { rounds: 3, round: 1e-3, budget: 0.5, asking, ..Protocol::default() };
                let timing = measure(&device, &protocol, |turn| {
                    let set = &mut sets[turn % 40];
                    if set.is_none() {
                        *set = Some(Array::zeros(&device, &[64])?);
                    }
                    set.as_mut().map_or(Ok(()), |array| array.fill(0.0))
                });
                let timing = timing.unwrap();
                assert!(timing.graph && timing.runs > 1 && timing.rounds == 3, "{asking:?} {timing:?}");
            }
        }
    }

    #[test]
    fn runs_that_cannot_be_recorded_are_no_graph() {
        for device in rayspin_emu::devices().unwrap() {
            let of = |asking| {
                let protocol = Protocol { rounds: 1, round: 1e-3, asking, ..Protocol::default() };
                measure(&device, &protocol, |_| Array::<f32>::zeros(&device, &[2]).map(drop))
            };
            assert!(of(Asking::Graph).is_err());
            assert!(!of(Asking::Best).unwrap().graph);
        }
    }
}
