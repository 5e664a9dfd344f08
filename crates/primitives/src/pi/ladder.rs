//! Problems and rungs.

use std::fmt;
use std::sync::OnceLock;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::Source;
use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::variant::{Variant, Work, runs_all};
use rayspin_tune::{About, Algorithm, Carried, Case, Config, Peak, Space, Unit, gpu};

use crate::random::Stream;

use super::{MOST, cpu, cuda, reference};

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
    points: u64,
    stream: Stream,
    sums: cuda::Sums,
    /// Whether the last run summed doubles.
    in_f64: bool,
    /// Of the threads of the widest launch, on a GPU.
    states: Array<[u32; 4]>,
    /// The right count, once it was asked for.
    want: OnceLock<u64>,
}

impl Data {
    fn device(&self) -> Device {
        self.states.device().clone()
    }

    fn on_cpu(&mut self, hits: u64) -> Result<()> {
        self.in_f64 = false;
        self.sums.integer.fill(hits)
    }

    fn on_gpu(&mut self, name: &'static str, config: &Config) -> Result<()> {
        let device = self.device();
        let cuda = gpu(&device)?;
        let (threads, blocks) = (config.get("threads")?, config.get("blocks")?);
        let blocks = blocks.saturating_mul(cuda.properties().multiprocessors);
        let Self { points, stream, sums, states, .. } = self;
        self.in_f64 = matches!(name, "from_states" | "one_kernel");
        if name == "from_states" {
            return cuda::from_states(cuda, threads, blocks, *stream, *points, states, sums);
        }
        cuda::count(cuda, name, threads, blocks, *stream, *points, sums)
    }
}

/// What a row runs.
pub type Launch = fn(&Config, &mut Data) -> Result<()>;

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Pi;

impl Algorithm for Pi {
    type Problem = Problem;
    type Launch = Launch;
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
                summary: "56 x 256 threads of 100,000 points each",
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

    fn variants(&self, _: &Problem) -> Vec<Variant<Problem, Launch>> {
        let row = |name, backend, summary, launch: Launch| Variant {
            name,
            backend,
            summary,
            launch,
            refuses: runs_all,
            work,
            tolerance: 0.0,
            reproduces: None,
        };
        use BackendKind::{Cpu, Cuda};
        vec![
            row("scalar", Cpu, "one thread, a block of the stream at a time", |_, d| {
                d.on_cpu(cpu::scalar(d.stream, d.points))
            }),
            row("simd", Cpu, "one thread, 32 blocks side by side", |_, d| {
                let device = d.device();
                d.on_cpu(cpu::simd(device.cpu_side().level(), d.stream, d.points))
            }),
            row("threads", Cpu, "the same on all cores", |_, d| {
                let device = d.device();
                d.on_cpu(cpu::threads(device.cpu_side(), d.stream, d.points))
            }),
            row("gpu-states", Cuda, "states loaded and stored, f64, an atomic addition a thread", |c, d| {
                d.on_gpu("from_states", c)
            }),
            row("gpu-f64", Cuda, "one kernel, f64, an atomic addition a thread", |c, d| {
                d.on_gpu("one_kernel", c)
            }),
            row("gpu-integers", Cuda, "64-bit integers in place of f64", |c, d| d.on_gpu("integers", c)),
            row("gpu-shuffles", Cuda, "warps and blocks add first", |c, d| d.on_gpu("shuffled", c)),
            row("gpu-carry", Cuda, "what carries out of 64 bits lies outside", |c, d| d.on_gpu("carried", c)),
        ]
    }

    fn sources(&self, _: &Problem, variant: &str) -> Vec<&'static Source> {
        match variant {
            "gpu-carry" => vec![&cuda::SOURCE],
            _ => Vec::new(),
        }
    }

    fn space(&self, _: &Problem, variant: &str) -> Space {
        if !variant.starts_with("gpu-") {
            return Space::none();
        }
        Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256).axis(
            "blocks",
            &[1, 2, 4, 8, 16, 32],
            16,
        )
    }

    fn peak(&self, _: &Problem) -> Peak {
        Peak::I32
    }

    fn items(&self, problem: &Problem) -> f64 {
        problem.points as f64
    }

    fn carried<'a>(&self, _: &str, data: &'a mut Data) -> Option<Carried<'a>> {
        Some(Carried { inputs: vec![], outputs: vec![&mut data.sums.integer, &mut data.sums.double] })
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

    fn run(&self, variant: &Variant<Problem, Launch>, config: &Config, data: &mut Data) -> Result<()> {
        (variant.launch)(config, data)
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.sums.double.fill(f64::NAN)?;
        data.sums.integer.fill(u64::MAX)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        // An integer that every point counts in: none can be left out. What is too long for the oracle is counted by all cores,
        // whose count the oracle confirms in small problems.
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

/// Two points take 20 multiplications of the generator and four of their own: multiply-adds of 32-bit integers, two operations each.
fn work(problem: &Problem) -> Work {
    Work { bytes: 0.0, flops: 24.0 * problem.points as f64 }
}
