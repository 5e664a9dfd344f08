//! Copies between a host and a GPU: from pageable and from pinned memory, both ways, beside the work.

mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::cpu::zeroed;
use rayspin_device::{Array, Device, Pinned};
use rayspin_tune::{About, Algorithm, Case, Counts, Flow, Row, Unit, input};

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// From the host to the device.
    Upload,
    /// From the device to the host.
    Download,
    /// Both, of different values.
    Both,
    /// To the device, worked on, and back.
    Overlap,
}

/// A way, how many values, and what is done to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Which way.
    pub topic: Topic,
    /// Values, each way.
    pub n: usize,
    /// Multiply-adds on each value, where they are worked on.
    pub rounds: u32,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.n;
        match self.topic {
            Topic::Upload => write!(f, "{n} f32 to the device"),
            Topic::Download => write!(f, "{n} f32 to the host"),
            Topic::Both => write!(f, "{n} f32 each way"),
            Topic::Overlap => write!(f, "{n} f32 there and back, {} multiply-adds each", self.rounds),
        }
    }
}

/// Values on both sides. Arrays that a problem does not use are empty.
pub struct Data {
    problem: Problem,
    seed: u64,
    /// What goes to the device.
    from: Vec<f32>,
    pinned_from: Pinned<f32>,
    /// Where it arrives.
    to: Array<f32>,
    /// What goes to the host.
    source: Array<f32>,
    /// Where that arrives.
    into: Vec<f32>,
    pinned_into: Pinned<f32>,
    /// Which of the two the last run used.
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Pageable,
    Pinned,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Transfers;

/// Rounds at most: values stay below 2²⁴, where f32 has all whole numbers.
const ROUNDS: usize = 1 << 20;

impl Algorithm for Transfers {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "transfers",
            title: "Copies between host and GPU",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, topic, n, rounds| {
            let problem = Problem { topic, n, rounds };
            Case { name, summary, problem }
        };
        vec![
            case("upload", "256 MiB to the device, `kib` KiB a copy", Topic::Upload, 1 << 26, 0),
            case("download", "256 MiB to the host, `kib` KiB a copy", Topic::Download, 1 << 26, 0),
            case("both", "256 MiB each way, `kib` KiB a copy", Topic::Both, 1 << 26, 0),
            case(
                "overlap",
                "64 MiB there, worked on for about as long as a copy takes, and back",
                Topic::Overlap,
                1 << 24,
                2048,
            ),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        let sizes = [1, 1009, 5000];
        let topics = [Topic::Upload, Topic::Download, Topic::Both, Topic::Overlap];
        let trial =
            |n| move |topic| Problem { topic, n, rounds: if topic == Topic::Overlap { 33 } else { 0 } };
        // The last is the one whose configurations are tried.
        let mut trials: Vec<_> = sizes.into_iter().flat_map(|n| topics.map(trial(n))).collect();
        trials.push(Problem { topic: Topic::Both, n: 4099, rounds: 0 });
        trials
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let overlap = problem.topic == Topic::Overlap;
        match *size {
            [n] if (1..1 << 32).contains(&n) => Ok(Problem { n, ..*problem }),
            [n, rounds] if overlap && (1..1 << 32).contains(&n) && (1..=ROUNDS).contains(&rounds) => {
                Ok(Problem { topic: problem.topic, n, rounds: rounds as u32 })
            }
            _ => {
                let more = if overlap { ", and rounds from 1 to 2²⁰" } else { "" };
                let expected = format!("one number from 1 to 2³² − 1{more}");
                Err(Error::value("size of transfers", expected, format!("{size:?}")))
            }
        }
    }

    fn variants(&self, problem: &Problem) -> Vec<Row<Self>> {
        variants::rows(problem)
    }

    fn counts(&self, problem: &Problem) -> Counts {
        let flow = match problem.topic {
            Topic::Upload => Flow::Upload,
            Topic::Download => Flow::Download,
            Topic::Both | Topic::Overlap => Flow::Duplex,
        };
        Counts { flow, ..Counts::default() }
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let n = |wanted: bool| if wanted { problem.n } else { 0 };
        let (goes, comes) = (problem.topic != Topic::Download, problem.topic != Topic::Upload);
        let values = |len: usize, value: fn(u64, usize) -> f32| {
            input::filled(device.cpu_side(), "numbers to copy", len, |i| value(seed, i))
        };
        let from = values(n(goes), reference::from)?;
        let mut pinned_from = Pinned::new(device, from.len())?;
        pinned_from.values()?.copy_from_slice(&from);
        let source = values(n(comes && problem.topic != Topic::Overlap), reference::of)?;
        Ok(Data {
            problem: *problem,
            seed,
            from,
            pinned_from,
            to: Array::zeros(device, &[n(goes)])?,
            source: Array::from_vec(device, &[source.len()], source)?,
            into: zeroed("copied numbers", n(comes))?,
            pinned_into: Pinned::new(device, n(comes))?,
            ended: None,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.ended = None;
        data.to.fill(f32::NAN)?;
        data.into.fill(f32::NAN);
        data.pinned_into.values()?.fill(f32::NAN);
        Ok(())
    }

    /// The share of wrong values.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let seed = data.seed;
        let cpu = data.to.device().cpu_side();
        let wrong = |values: &[f32], want: &(dyn Fn(usize) -> f32 + Sync)| {
            let wrong = |(i, &value): (usize, &f32)| value.to_bits() != want(i).to_bits();
            cpu.run(|| values.par_iter().enumerate().with_min_len(1 << 12).filter(|&v| wrong(v)).count())
        };
        let mut count = 0;
        if matches!(problem.topic, Topic::Upload | Topic::Both) {
            count += wrong(&data.to.read()?, &|i| reference::from(seed, i));
        }
        if problem.topic != Topic::Upload {
            let into = match data.ended {
                None => return Ok(1.0),
                Some(Ended::Pageable) => &data.into,
                Some(Ended::Pinned) => data.pinned_into.read()?,
            };
            count += match problem.topic {
                Topic::Overlap => wrong(into, &|i| reference::grown(seed, problem.rounds, i)),
                _ => wrong(into, &|i| reference::of(seed, i)),
            };
        }
        let elements = if problem.topic == Topic::Both { 2 * problem.n } else { problem.n };
        Ok(count as f64 / elements as f64)
    }
}
