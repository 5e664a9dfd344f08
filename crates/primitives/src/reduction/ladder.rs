//! The ladder: problems, rows, spaces.

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, voxels};
use rayspin_device::cuda::Source;
use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::variant::{Variant, Work, runs_all};
use rayspin_tune::{
    About, Algorithm, Carried, Carry, Case, Config, Flow, Peak, Published, Space, Unit, documents, gpu, input,
};

use super::cuda::{self, Arrays, Form, Shape};
use super::number::{Max, Min, Operation, Plain, SquareError, Sum};
use super::{Number, cpu};

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Σ a.
    Sum,
    /// min a.
    Min,
    /// max a.
    Max,
    /// (1/n) Σ (a − b)².
    MeanSquareError,
}

/// Of which elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// 32-bit integers of the whole range.
    I32,
    /// From −1 to 1.
    F32,
    /// From −1 to 1.
    F64,
}

/// An array's length and what is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// What is computed.
    pub kind: Kind,
    /// Of which elements.
    pub of: Type,
    /// Elements.
    pub len: usize,
    /// Whether one element of the second half is NaN.
    pub nan: bool,
}

impl Problem {
    pub(super) fn of<T: Plain, O: Operation<T>>(len: usize) -> Self {
        let kind = match O::OP {
            0 => Kind::Sum,
            1 => Kind::Min,
            2 => Kind::Max,
            _ => Kind::MeanSquareError,
        };
        let of = match T::C {
            "int" => Type::I32,
            "float" => Type::F32,
            _ => Type::F64,
        };
        Self { kind, of, len, nan: false }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Sum => "sum",
            Kind::Min => "minimum",
            Kind::Max => "maximum",
            Kind::MeanSquareError => "mean square error",
        };
        let of = match self.of {
            Type::I32 => "i32",
            Type::F32 => "f32",
            Type::F64 => "f64",
        };
        write!(f, "{kind} of {} {of}{}", self.len, if self.nan { ", one of them NaN" } else { "" })
    }
}

/// What the rows run, whatever the types.
pub trait Run {
    /// One thread, an element at a time.
    fn scalar(&mut self);
    /// One thread, vectors.
    fn simd(&mut self);
    /// All threads.
    fn threads(&mut self, config: &Config) -> Result<()>;
    /// A kernel whose threads take `each` elements, launched level by level.
    fn by_levels(&mut self, kernel: &str, each: usize, config: &Config) -> Result<()>;
    /// [`Run::by_levels`] of a program made for its number of threads.
    fn unrolled(&mut self, kernel: &str, config: &Config) -> Result<()>;
    /// A grid of trees, then one block.
    fn trees(&mut self, kernel: &str, config: &Config) -> Result<()>;
    /// A grid of shuffles, then one block.
    fn shuffle(&mut self, config: &Config) -> Result<()>;
    /// The sum by atomic additions.
    fn atomic(&mut self, config: &Config) -> Result<()>;
    /// Wide loads, then one block.
    fn wide(&mut self, config: &Config) -> Result<()>;
    /// Wide loads and one kernel.
    fn one_pass(&mut self, config: &Config) -> Result<()>;
    /// The same with flags in place of a ticket.
    fn flagged(&mut self, config: &Config) -> Result<()>;
    /// Inputs and outputs.
    fn carried(&mut self) -> Carried<'_>;
    /// Writes what no variant would.
    fn poison(&mut self) -> Result<()>;
    /// Against the oracle.
    fn error(&self) -> Result<f64>;
}

struct Of<T: Plain, O: Operation<T>> {
    a: Array<T>,
    b: Option<Array<T>>,
    parts: Array<O::Acc>,
    more: Array<O::Acc>,
    ticket: Array<u32>,
    words: Array<u64>,
    out: Array<O::Acc>,
}

impl<T: Plain, O: Operation<T>> Of<T, O> {
    fn make(
        problem: &Problem,
        device: &Device,
        seed: u64,
        random: fn(u64) -> T,
        nan: Option<T>,
    ) -> Result<Box<dyn Run>> {
        let n = problem.len;
        let fill = |seed: u64| -> Result<Array<T>> {
            let mut host = Array::zeros(&device.host(), &[n])?;
            let values: &mut [T] = host.cpu_mut();
            device.cpu_side().run(|| {
                values.par_chunks_mut(1 << 16).enumerate().for_each(|(chunk, values)| {
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = random(input::bits(seed, (chunk << 16 | i) as u64));
                    }
                });
            });
            if let (true, Some(nan)) = (problem.nan, nan) {
                values[n / 2 + (input::bits(seed, n as u64) % (n - n / 2) as u64) as usize] = nan;
            }
            host.into_device(device)
        };
        let (parts, resident) = match device.kind() {
            BackendKind::Cpu => (n.div_ceil(cpu::SMALLEST_PIECE), 0),
            BackendKind::Cuda => {
                let resident = cuda::resident(gpu(device)?, cuda::MOST_BLOCKS as u32);
                (n.div_ceil(cuda::FEWEST_THREADS).max(resident), resident)
            }
        };
        Ok(Box::new(Self {
            a: fill(seed)?,
            b: if O::PAIRS { Some(fill(seed ^ 0x5555)?) } else { None },
            parts: Array::zeros(device, &[parts])?,
            more: Array::zeros(device, &[parts.div_ceil(cuda::FEWEST_THREADS)])?,
            ticket: Array::zeros(device, &[1])?,
            words: Array::zeros(device, &[cuda::WORDS * resident])?,
            out: Array::zeros(device, &[1])?,
        }))
    }

    fn arrays(&mut self) -> Arrays<'_, T, O::Acc> {
        let b = self.b.as_ref().unwrap_or(&self.a);
        Arrays { a: &self.a, b, parts: &mut self.parts, more: &mut self.more, out: &mut self.out }
    }

    fn give(&mut self, value: O::Acc) {
        self.out.cpu_mut().fill(value);
    }

    fn second(&self) -> &Array<T> {
        self.b.as_ref().unwrap_or(&self.a)
    }

    /// The grid that a configuration asks for.
    fn grid(&self, config: &Config) -> Result<(u32, usize)> {
        let threads = config.get("threads")?;
        let blocks = cuda::resident(gpu(self.a.device())?, config.get("blocks")?);
        Ok((threads, blocks.min(self.a.len().div_ceil(threads as usize)).max(1)))
    }
}

impl<T: Plain, O: Operation<T>> Run for Of<T, O> {
    fn scalar(&mut self) {
        let value = cpu::scalar::<T, O>(self.a.cpu(), self.second().cpu());
        self.give(value);
    }

    fn simd(&mut self) {
        let level = self.a.device().cpu_side().level();
        let value = cpu::simd::<T, O>(level, self.a.cpu(), self.second().cpu());
        self.give(value);
    }

    fn threads(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let b = self.b.as_ref().unwrap_or(&self.a);
        let piece = config.get("piece")? as usize;
        let value =
            cpu::threads::<T, O>(device.cpu_side(), piece, self.a.cpu(), b.cpu(), self.parts.cpu_mut());
        self.give(value);
        Ok(())
    }

    fn by_levels(&mut self, kernel: &str, each: usize, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let threads = config.get("threads")?;
        // One program for any number of threads, which these kernels learn at run time.
        cuda::by_levels::<T, O>(gpu(&device)?, (kernel, Form::TREES), (threads, each), &mut self.arrays())
    }

    fn unrolled(&mut self, kernel: &str, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let threads = config.get("threads")?;
        let form = Form::Threads(threads);
        cuda::by_levels::<T, O>(gpu(&device)?, (kernel, form), (threads, 2), &mut self.arrays())
    }

    fn trees(&mut self, kernel: &str, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let grid = self.grid(config)?;
        let form = Form::Threads(grid.0);
        cuda::in_two::<T, O>(gpu(&device)?, (kernel, kernel, form), grid, &mut self.arrays())
    }

    fn shuffle(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let grid = self.grid(config)?;
        let kernels = ("shuffle", "shuffle", Form::shuffles(O::PAIRS));
        cuda::in_two::<T, O>(gpu(&device)?, kernels, grid, &mut self.arrays())
    }

    fn atomic(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let grid = self.grid(config)?;
        cuda::atomic::<T, O>(gpu(&device)?, grid, &mut self.arrays())
    }

    fn wide(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let (cuda, shape) = (gpu(&device)?, Shape::of(config)?);
        let grid = (shape.threads, shape.blocks::<T>(cuda, self.a.len()));
        let kernels = ("wide", "shuffle", Form::Unroll(shape.unroll));
        cuda::in_two::<T, O>(cuda, kernels, grid, &mut self.arrays())
    }

    fn one_pass(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let b = self.b.as_ref().unwrap_or(&self.a);
        let (parts, ticket, out) = (&mut self.parts, &mut self.ticket, &mut self.out);
        cuda::one_pass::<T, O>(gpu(&device)?, Shape::of(config)?, &self.a, b, parts, ticket, out)
    }

    fn flagged(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let b = self.b.as_ref().unwrap_or(&self.a);
        let (words, out) = (self.words.cuda_mut(), self.out.cuda_mut());
        cuda::flagged::<T, O>(gpu(&device)?, Shape::of(config)?, &self.a, b, words, out)
    }

    fn carried(&mut self) -> Carried<'_> {
        let mut inputs: Vec<&mut dyn Carry> = vec![&mut self.a];
        inputs.extend(self.b.as_mut().map(|b| b as &mut dyn Carry));
        Carried { inputs, outputs: vec![&mut self.out] }
    }

    fn poison(&mut self) -> Result<()> {
        // All bits set: NaN, or −1.
        self.out.fill(bytemuck::pod_read_unaligned(&[0xff; 8][..size_of::<O::Acc>()]))
    }

    fn error(&self) -> Result<f64> {
        let found = self.out.read()?.first().copied().unwrap_or_else(O::identity);
        Ok(O::error(found, &self.a.read()?, &self.second().read()?))
    }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Reduction;

/// What a row runs.
pub type Launch = fn(&Config, &mut dyn Run) -> Result<()>;

impl Algorithm for Reduction {
    type Problem = Problem;
    type Launch = Launch;
    type Data = Box<dyn Run>;

    fn about(&self) -> About {
        About {
            name: "reduction",
            title: "One number of many: sum, minimum, maximum, mean square error",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, kind, of, len| Case {
            name,
            summary,
            problem: Problem { kind, of, len, nan: false },
        };
        vec![
            case("2^22-i32", "the table of the published steps", Kind::Sum, Type::I32, 1 << 22),
            case("2^28-f32", "1 GiB: nothing but bandwidth", Kind::Sum, Type::F32, 1 << 28),
            case("2^28-i32", "1 GiB of integers, summed in 64 bits", Kind::Sum, Type::I32, 1 << 28),
            case("2^27-f64", "1 GiB of f64", Kind::Sum, Type::F64, 1 << 27),
            case("min-2^28-f32", "the least of 1 GiB", Kind::Min, Type::F32, 1 << 28),
            case("max-2^28-i32", "the greatest of 1 GiB", Kind::Max, Type::I32, 1 << 28),
            case("mse-2^27-f32", "two arrays of 512 MiB", Kind::MeanSquareError, Type::F32, 1 << 27),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        let trial = |kind, of, len, nan| Problem { kind, of, len, nan };
        let mut all = vec![
            trial(Kind::Min, Type::F32, 1, false),
            trial(Kind::Min, Type::F32, 5003, false),
            trial(Kind::Min, Type::F32, 5003, true),
            trial(Kind::Max, Type::I32, 4097, false),
            trial(Kind::Sum, Type::F32, 3, false),
            trial(Kind::Sum, Type::F32, 5000, true),
            trial(Kind::Sum, Type::F64, 4099, false),
            trial(Kind::MeanSquareError, Type::F32, 1, false),
            trial(Kind::MeanSquareError, Type::F32, 8191, false),
        ];
        all.extend([1, 2, 31, 64, 127, 1025, 20011].map(|len| trial(Kind::Sum, Type::I32, len, false)));
        all
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [len] if len > 0 => Ok(Problem { len: voxels(size)?, ..*problem }),
            _ => Err(Error::value("size of reduction", "a length of at least 1", format!("{size:?}"))),
        }
    }

    fn variants(&self, problem: &Problem) -> Vec<Variant<Problem, Launch>> {
        // The least and the greatest, and sums of integers, are exact. One accumulator in f64 of the 2²⁸ numbers of a case loses about
        // 1e-12, of the 20 thousand of a trial 1e-14; sums in parts lose less.
        let exact = matches!((problem.kind, problem.of), (Kind::Min | Kind::Max, _) | (Kind::Sum, Type::I32));
        let tolerance = if exact { 0.0 } else { 1e-12 };
        let row = |name, backend, summary, launch: Launch, refuses, reproduces| Variant {
            name,
            backend,
            summary,
            launch,
            refuses,
            work,
            tolerance,
            reproduces,
        };
        let cpu =
            |name, summary, launch: Launch| row(name, BackendKind::Cpu, summary, launch, runs_all, None);
        let gpu = |name, summary, launch: Launch, reproduces| {
            row(name, BackendKind::Cuda, summary, launch, runs_all, reproduces)
        };
        vec![
            cpu("scalar", "one thread, one sum", |_, d| {
                d.scalar();
                Ok(())
            }),
            cpu("simd", "one thread, the widest vectors, eight under way", |_, d| {
                d.simd();
                Ok(())
            }),
            cpu("threads", "the same on all cores, pieces joined in order", |c, d| d.threads(c)),
            gpu(
                "gpu-k1",
                "interleaved, threads chosen by modulo",
                |c, d| d.by_levels("k1_modulo", 1, c),
                Some("K1"),
            ),
            gpu(
                "gpu-k2",
                "interleaved, threads in a row",
                |c, d| d.by_levels("k2_strided", 1, c),
                Some("K2"),
            ),
            gpu("gpu-k3", "sequential addresses", |c, d| d.by_levels("k3_sequential", 1, c), Some("K3")),
            gpu(
                "gpu-k4",
                "first addition while loading",
                |c, d| d.by_levels("k4_first_add", 2, c),
                Some("K4"),
            ),
            gpu("gpu-k5", "last warp written out", |c, d| d.by_levels("k5_last_warp", 2, c), Some("K5")),
            gpu("gpu-k6", "every step written out", |c, d| d.unrolled("k6_unrolled", c), Some("K6")),
            gpu(
                "gpu-two-level",
                "trees of a fixed grid, then one block's",
                |c, d| d.trees("two_level", c),
                None,
            ),
            gpu("gpu-k7", "many elements a thread", |c, d| d.trees("k7_many", c), Some("K7")),
            row(
                "gpu-atomic",
                BackendKind::Cuda,
                "one kernel clears the sum, blocks add theirs atomically",
                |c, d| d.atomic(c),
                sums_alone,
                None,
            ),
            gpu("gpu-shuffle", "registers of the warp instead of shared memory", |c, d| d.shuffle(c), None),
            gpu("gpu-wide", "16 bytes a load, several under way", |c, d| d.wide(c), None),
            gpu("gpu-one-pass", "the block that ends last joins all: one kernel", |c, d| d.one_pass(c), None),
            gpu(
                "gpu-flags",
                "flags beside blocks' numbers, for which the last block waits",
                |c, d| d.flagged(c),
                None,
            ),
        ]
    }

    fn sources(&self, _: &Problem, variant: &str) -> Vec<&'static Source> {
        match variant {
            "gpu-flags" => vec![&cuda::SHUFFLE],
            _ => Vec::new(),
        }
    }

    fn space(&self, problem: &Problem, variant: &str) -> Space {
        let pairs = problem.kind == Kind::MeanSquareError;
        let threads = &[64, 128, 256, 512, 1024];
        match variant {
            "threads" => Space::none().axis(
                "piece",
                &[cpu::SMALLEST_PIECE as i64, 1 << 14, 1 << 15, 1 << 16, 1 << 17],
                cpu::PIECE as i64,
            ),
            "gpu-k1" | "gpu-k2" | "gpu-k3" | "gpu-k4" | "gpu-k5" => {
                Space::none().axis("threads", threads, 256)
            }
            "gpu-k6" => Space::none().axis("threads", &[128, 256, 512], 256),
            "gpu-k7" | "gpu-two-level" => {
                Space::none().axis("threads", &[128, 256, 512], 256).axis("blocks", &[1, 2, 4, 8, 16, 32], 8)
            }
            "gpu-shuffle" | "gpu-atomic" => {
                Space::none().axis("threads", threads, 256).axis("blocks", &[1, 2, 4, 8, 16, 32], 8)
            }
            // Defaults have some 64 KB under way on a multiprocessor: a bandwidth of 25 GB/s each and a latency of 1 µs ask for less
            // than half of it. Four loads at once of extremes take more registers of compute capability 12.0 than there are.
            "gpu-wide" | "gpu-one-pass" | "gpu-flags" if pairs => Space::none()
                .axis("threads", &[128, 256, 512], 256)
                .axis("blocks", &[1, 2, 3, 4, 8], 3)
                .axis("unroll", &[1, 2, 4], 4),
            "gpu-wide" | "gpu-one-pass" | "gpu-flags" => Space::none()
                .axis("threads", &[128, 256, 512, 1024], 512)
                .axis("blocks", &[1, 2, 4, 8, 16], 2)
                .axis("unroll", &[1, 2, 4, 8], if problem.kind == Kind::Sum { 4 } else { 8 })
                .where_(|c| {
                    // Blocks that a multiprocessor holds at once.
                    matches!(c.find("threads").zip(c.find("blocks")), Some((t, b)) if t * b <= 2048)
                }),
            _ => Space::none(),
        }
    }

    fn flow(&self, _: &Problem) -> Flow {
        Flow::Read
    }

    fn peak(&self, problem: &Problem) -> Peak {
        match problem {
            Problem { kind: Kind::MeanSquareError, .. } | Problem { of: Type::F64, .. } => Peak::F64,
            Problem { of: Type::I32, .. } => Peak::I32,
            Problem { kind: Kind::Sum, .. } => Peak::F64,
            _ => Peak::F32,
        }
    }

    fn published(&self) -> &'static [Published] {
        const fn step(row: &'static str, milliseconds: f64, rate: f64) -> Published {
            let document = documents::MEMORY_OPTIMIZATION;
            Published { document, row, seconds: Some(milliseconds * 1e-3), rate: Some(rate * 1e9) }
        }
        const {
            &[
                step("K1", 8.054, 2.083),
                step("K2", 3.456, 4.854),
                step("K3", 1.722, 9.741),
                step("K4", 0.965, 17.377),
                step("K5", 0.536, 31.289),
                step("K6", 0.381, 43.996),
                step("K7", 0.268, 62.671),
            ]
        }
    }

    fn carried<'a>(&self, _: &str, data: &'a mut Box<dyn Run>) -> Option<Carried<'a>> {
        Some(data.carried())
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Box<dyn Run>> {
        match problem.of {
            Type::I32 => data(problem, device, seed, |bits| (bits >> 32) as i32, None),
            Type::F32 => data(problem, device, seed, |bits| unit(bits) as f32, Some(f32::NAN)),
            Type::F64 => data(problem, device, seed, unit, Some(f64::NAN)),
        }
    }

    fn run(
        &self,
        variant: &Variant<Problem, Launch>,
        config: &Config,
        data: &mut Box<dyn Run>,
    ) -> Result<()> {
        (variant.launch)(config, data.as_mut())
    }

    fn poison(&self, data: &mut Box<dyn Run>) -> Result<()> {
        data.poison()
    }

    fn error(&self, _: &Problem, data: &Box<dyn Run>) -> Result<f64> {
        data.error()
    }
}

/// From −1 to 1, a multiple of 2⁻²³ and so the same in f32 and f64.
fn unit(bits: u64) -> f64 {
    (bits >> 40) as f64 / f64::from(1 << 23) - 1.0
}

fn data<T: Number>(
    problem: &Problem,
    device: &Device,
    seed: u64,
    make: fn(u64) -> T,
    nan: Option<T>,
) -> Result<Box<dyn Run>>
where
    Sum: Operation<T>,
    Min: Operation<T>,
    Max: Operation<T>,
    SquareError: Operation<T>,
{
    match problem.kind {
        Kind::Sum => Of::<T, Sum>::make(problem, device, seed, make, nan),
        Kind::Min => Of::<T, Min>::make(problem, device, seed, make, nan),
        Kind::Max => Of::<T, Max>::make(problem, device, seed, make, nan),
        Kind::MeanSquareError => Of::<T, SquareError>::make(problem, device, seed, make, nan),
    }
}

/// Every element once; an addition or a comparison, or a difference, a square and an addition.
fn work(problem: &Problem) -> Work {
    let bytes = if problem.of == Type::F64 { 8.0 } else { 4.0 };
    let (arrays, flops) = if problem.kind == Kind::MeanSquareError { (2.0, 3.0) } else { (1.0, 1.0) };
    let n = problem.len as f64;
    Work { bytes: arrays * bytes * n, flops: flops * n }
}

fn sums_alone(problem: &Problem) -> Option<String> {
    matches!(problem.kind, Kind::Min | Kind::Max).then(|| format!("{problem}: atomic additions make sums"))
}
