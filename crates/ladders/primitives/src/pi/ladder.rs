//! Problems and variants.

use std::fmt;
use std::sync::OnceLock;

use rayspin_core::{Error, Result};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::{About, Algorithm, Case, Config, Counts, Peak, Row, Unit, gpu};

use crate::random::Stream;

use super::{MOST, cpu, cuda, reference, variants};

/// How many points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Points.
    pub points: u64,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} points", self.points)
    }
}

/// The stream and the counts.
pub struct Data {
    pub(super) points: u64,
    pub(super) stream: Stream,
    pub(super) sums: cuda::Sums,
    /// Whether the last run summed doubles.
    in_f64: bool,
    /// A state for each thread of the widest launch, on a GPU.
    states: Array<[u32; 4]>,
    /// The right count, once a result was compared with it.
    want: OnceLock<u64>,
}

impl Data {
    pub(super) fn device(&self) -> Device {
        self.states.device().clone()
    }

    pub(super) fn on_cpu(&mut self, hits: u64) -> Result<()> {
        self.in_f64 = false;
        self.sums.integer.fill(hits)
    }

    pub(super) fn on_gpu(&mut self, name: &'static str, config: &Config) -> Result<()> {
        let device = self.device();
        let cuda = gpu(&device)?;
        let grid = cuda::Grid::of(config, cuda)?;
        let Self { points, stream, sums, states, .. } = self;
        self.in_f64 = matches!(name, "from_states" | "one_kernel");
        if name == "from_states" {
            return cuda::from_states(cuda, grid, *stream, *points, states, sums);
        }
        cuda::count(cuda, name, grid, *stream, *points, sums)
    }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Pi;

impl Algorithm for Pi {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "pi",
            title: "Monte-Carlo estimate of pi",
            readme: include_str!("README.md"),
            unit: Unit::Items("points"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        vec![
            Case {
                name: "1e8",
                summary: "a hundred million points",
                problem: Problem { points: 100_000_000 },
            },
            Case {
                name: "lecture",
                summary: "the lecture's 56 x 256 threads of 100,000 points each in [-1, 1]², 1.43e9 points",
                problem: Problem { points: 56 * 256 * 100_000 },
            },
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [1, 2, 3, 63, 64, 10_007, 50_000].map(|points| Problem { points }).to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [points] if (1..=MOST).contains(&(points as u64)) => Ok(Problem { points: points as u64 }),
            _ => Err(Error::value("size of pi", format!("POINTS, 1 to {MOST}"), format!("{size:?}"))),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { peak: Peak::I32, items: problem.points as f64, ..Counts::default() }
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let states = match device.kind() {
            BackendKind::Cpu => 0,
            BackendKind::Cuda => 1024 * 32 * gpu(device)?.properties().multiprocessors as usize,
        };
        Ok(Data {
            points: problem.points,
            stream: Stream { seed, number: 1 },
            sums: cuda::Sums::new(device)?,
            in_f64: false,
            states: Array::zeros(device, &[states])?,
            want: OnceLock::new(),
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.sums.double.fill(f64::NAN)?;
        data.sums.integer.fill(u64::MAX)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        // An integer that every point counts in: none can be left out. What is too long for the oracle is
        // counted by all cores, whose count the oracle confirms in small problems.
        let want = *data.want.get_or_init(|| match problem.points {
            points if points <= 1 << 20 => reference::hits(data.stream, points),
            points => cpu::threads(data.device().cpu_side(), data.stream, points),
        });
        let wrong = if data.in_f64 {
            data.sums.double.read()?.first() != Some(&(want as f64))
        } else {
            data.sums.integer.read()?.first() != Some(&want)
        };
        Ok(f64::from(u8::from(wrong)))
    }
}
