//! The ladder: problems, rows, spaces.

use std::fmt;

use bytemuck::Pod;
use rayon::prelude::*;
use rayspin_core::{Error, Result, voxels};
use rayspin_device::cuda::Source;
use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::variant::{Variant, Work, runs_all};
use rayspin_tune::{About, Algorithm, Carried, Case, Config, Published, Space, Unit, documents, gpu, input};

use super::cuda::{self, Form};
use super::{Entry, cpu};

/// Of which elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// One byte.
    U8,
    /// Four bytes.
    F32,
    /// Eight bytes.
    F64,
}

/// A matrix's size and elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows of A.
    pub rows: usize,
    /// Columns of A.
    pub columns: usize,
    /// Of which elements.
    pub of: Type,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.of {
            Type::U8 => "u8",
            Type::F32 => "f32",
            Type::F64 => "f64",
        };
        write!(f, "{} x {} {of}", self.rows, self.columns)
    }
}

/// What the rows run, whatever the type.
pub trait Run {
    /// One thread, an element at a time.
    fn naive(&mut self);
    /// One thread, tiles.
    fn tiled(&mut self);
    /// One thread, tiles turned by vectors.
    fn simd(&mut self);
    /// All threads.
    fn threads(&mut self);
    /// A kernel of the lectures' tiles, which copies or transposes.
    fn of_tiles(&mut self, kernel: &str, copies: bool, config: &Config) -> Result<()>;
    /// Blocks turned in registers.
    fn registers(&mut self, config: &Config) -> Result<()>;
    /// Tiles through shared memory, by words.
    fn wide(&mut self, config: &Config) -> Result<()>;
    /// Inputs and outputs.
    fn carried(&mut self) -> Carried<'_>;
    /// Writes what no variant would.
    fn poison(&mut self) -> Result<()>;
    /// The share of wrong elements.
    fn error(&self) -> Result<f64>;
}

struct Of<T: Entry> {
    size: [usize; 2],
    a: Array<T>,
    b: Array<T>,
    /// Whether the last run was a copy, for comparison.
    copied: bool,
}

/// Elements up to which all are compared with the oracle, and beyond which so many are.
const COMPARED: usize = 1 << 20;

impl<T: Entry> Of<T> {
    fn make(problem: &Problem, device: &Device, seed: u64, random: fn(u64) -> T) -> Result<Box<dyn Run>> {
        let size = [problem.rows, problem.columns];
        let mut host = Array::zeros(&device.host(), &size)?;
        let values: &mut [T] = host.cpu_mut();
        device.cpu_side().run(|| {
            values.par_chunks_mut(1 << 16).enumerate().for_each(|(chunk, values)| {
                for (i, value) in values.iter_mut().enumerate() {
                    *value = random(input::bits(seed, (chunk << 16 | i) as u64));
                }
            });
        });
        let b = Array::zeros(device, &[problem.columns, problem.rows])?;
        Ok(Box::new(Self { size, a: host.into_device(device)?, b, copied: false }))
    }
}

impl<T: Entry> Run for Of<T> {
    fn naive(&mut self) {
        self.copied = false;
        cpu::naive(self.size[0], self.size[1], self.a.cpu(), self.b.cpu_mut());
    }

    fn tiled(&mut self) {
        self.copied = false;
        cpu::tiled(self.size[0], self.size[1], self.a.cpu(), self.b.cpu_mut());
    }

    fn simd(&mut self) {
        self.copied = false;
        let level = self.a.device().cpu_side().level();
        cpu::simd(level, self.size[0], self.size[1], self.a.cpu(), self.b.cpu_mut());
    }

    fn threads(&mut self) {
        self.copied = false;
        let device = self.a.device().clone();
        cpu::threads(device.cpu_side(), self.size[0], self.size[1], self.a.cpu(), self.b.cpu_mut());
    }

    fn of_tiles(&mut self, kernel: &str, copies: bool, config: &Config) -> Result<()> {
        self.copied = copies;
        let device = self.a.device().clone();
        cuda::of_tiles(gpu(&device)?, kernel, config.get("tall")?, self.size, &self.a, &mut self.b)
    }

    fn registers(&mut self, config: &Config) -> Result<()> {
        self.copied = false;
        let device = self.a.device().clone();
        let form = Form { v: config.get("v")?, stream: config.get("stream")?, ..Form::PLAIN };
        let threads = [config.get("x")?, config.get("y")?];
        cuda::registers(gpu(&device)?, form, threads, self.size, &self.a, &mut self.b)
    }

    fn wide(&mut self, config: &Config) -> Result<()> {
        self.copied = false;
        let device = self.a.device().clone();
        cuda::wide(gpu(&device)?, Form::of(config)?, self.size, &self.a, &mut self.b)
    }

    fn carried(&mut self) -> Carried<'_> {
        Carried { inputs: vec![&mut self.a], outputs: vec![&mut self.b] }
    }

    fn poison(&mut self) -> Result<()> {
        self.b.fill(bytemuck::pod_read_unaligned(&[0xff; 16][..size_of::<T>()]))
    }

    fn error(&self) -> Result<f64> {
        let (a, b) = (self.a.read()?, self.b.read()?);
        let (a, b) = (bytes_of(&a), bytes_of(&b));
        let [rows, columns] = self.size;
        let n = rows * columns;
        let bytes = size_of::<T>();
        let count = n.min(COMPARED);
        let wrong = |i: usize| {
            let at = if n > COMPARED { (input::bits(29, i as u64) % n as u64) as usize } else { i };
            let to = if self.copied { at } else { at % columns * rows + at / columns };
            a[at * bytes..(at + 1) * bytes] != b[to * bytes..(to + 1) * bytes]
        };
        Ok((0..count).filter(|&i| wrong(i)).count() as f64 / count.max(1) as f64)
    }
}

fn bytes_of<T: Pod>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Transpose;

/// What a row runs.
pub type Launch = fn(&Config, &mut dyn Run) -> Result<()>;

impl Algorithm for Transpose {
    type Problem = Problem;
    type Launch = Launch;
    type Data = Box<dyn Run>;

    fn about(&self) -> About {
        About {
            name: "transpose",
            title: "Transpose of a matrix",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case =
            |name, summary, rows, columns, of| Case { name, summary, problem: Problem { rows, columns, of } };
        vec![
            case("8192x8192", "the table of the published steps", 8192, 8192, Type::F32),
            case("4096x16384", "as many elements, not square", 4096, 16384, Type::F32),
            case("8191x8193", "odd sides: no wide loads", 8191, 8193, Type::F32),
            case("8192x8192-f64", "8 bytes an element", 8192, 8192, Type::F64),
            case("16384x16384-u8", "1 byte an element", 16384, 16384, Type::U8),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        let trial = |rows, columns, of| Problem { rows, columns, of };
        vec![
            trial(1, 1, Type::F32),
            trial(1, 7, Type::F32),
            trial(70, 1, Type::F32),
            trial(31, 33, Type::F32),
            trial(66, 130, Type::F32),
            trial(33, 70, Type::U8),
            trial(132, 68, Type::U8),
            trial(67, 33, Type::F64),
            trial(32, 66, Type::F64),
            trial(100, 196, Type::F32),
        ]
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [rows, columns] if rows.min(columns) > 0 => {
                voxels(size)?;
                Ok(Problem { rows, columns, ..*problem })
            }
            _ => Err(Error::value("size of transpose", "ROWSxCOLUMNS, each at least 1", format!("{size:?}"))),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Variant<Problem, Launch>> {
        let row = |name, backend, summary, launch: Launch, reproduces| Variant {
            name,
            backend,
            summary,
            launch,
            refuses: runs_all,
            work,
            tolerance: 0.0,
            reproduces,
        };
        let cpu = |name, summary, launch: Launch| row(name, BackendKind::Cpu, summary, launch, None);
        let gpu = |name, summary, launch: Launch, reproduces| {
            row(name, BackendKind::Cuda, summary, launch, reproduces)
        };
        vec![
            cpu("naive", "one thread, an element at a time", |_, d| {
                d.naive();
                Ok(())
            }),
            cpu("tiled", "one thread, tiles that a cache holds", |_, d| {
                d.tiled();
                Ok(())
            }),
            cpu("simd", "one thread, tiles turned in vector registers", |_, d| {
                d.simd();
                Ok(())
            }),
            cpu("threads", "the same on all cores", |_, d| {
                d.threads();
                Ok(())
            }),
            gpu("gpu-copy", "a copy, to compare with", |c, d| d.of_tiles("copy", true, c), Some("copy")),
            gpu(
                "gpu-copy-shared",
                "a copy by way of shared memory, to compare with",
                |c, d| d.of_tiles("copy_shared", true, c),
                Some("copy through shared"),
            ),
            gpu(
                "gpu-naive",
                "writes strewn over all rows",
                |c, d| d.of_tiles("naive", false, c),
                Some("naive"),
            ),
            gpu(
                "gpu-coalesced",
                "a tile in shared memory, both sides by rows",
                |c, d| d.of_tiles("coalesced", false, c),
                Some("coalesced"),
            ),
            gpu(
                "gpu-padded",
                "a tile whose columns are spread over the banks",
                |c, d| d.of_tiles("padded", false, c),
                Some("padded"),
            ),
            gpu("gpu-registers", "blocks turned in registers, no shared memory", |c, d| d.registers(c), None),
            gpu(
                "gpu-wide",
                "blocks turned in registers, whole rows by way of shared memory",
                |c, d| d.wide(c),
                None,
            ),
        ]
    }

    fn sources(&self, _: &Problem, variant: &str) -> Vec<&'static Source> {
        match variant {
            "gpu-wide" => vec![&cuda::SOURCE],
            _ => Vec::new(),
        }
    }

    fn space(&self, problem: &Problem, variant: &str) -> Space {
        let (rows, columns) = (problem.rows, problem.columns);
        let (usual, widest) = match problem.of {
            Type::U8 => (Form::usual::<u8>(rows, columns), cuda::widest::<u8>(rows, columns)),
            Type::F32 => (Form::usual::<f32>(rows, columns), cuda::widest::<f32>(rows, columns)),
            Type::F64 => (Form::usual::<f64>(rows, columns), cuda::widest::<f64>(rows, columns)),
        };
        let loads: Vec<i64> = [1, 2, 4].into_iter().filter(|&v| v <= i64::from(widest)).collect();
        // The shared memory of a tile of 128: 16 KB of bytes, more than a block may declare of others.
        let tiles: &[i64] = if problem.of == Type::U8 { &[32, 64, 128] } else { &[32, 64] };
        match variant {
            "gpu-copy" | "gpu-copy-shared" | "gpu-naive" | "gpu-coalesced" | "gpu-padded" => {
                Space::none().axis("tall", &[4, 8, 16], 8)
            }
            "gpu-registers" => Space::none()
                .axis("v", &loads, widest.into())
                .axis("x", &[4, 8, 16, 32], 8)
                .axis("y", &[4, 8, 16, 32], 32)
                .axis("stream", &[0, 1], 0)
                .where_(|c| matches!(c.find("x").zip(c.find("y")), Some((x, y)) if x * y >= 64)),
            "gpu-wide" => Space::none()
                .axis("v", &loads, usual.v.into())
                .axis("tile", tiles, usual.tile.into())
                .axis("tall", &[2, 4, 8, 16], usual.tall.into())
                .axis("stream", &[0, 1], 0)
                .where_(|c| {
                    let value = |name| c.find(name).unwrap_or(0);
                    let words = value("tile") / value("v").max(1);
                    (64..=1024).contains(&(words * value("tall"))) && value("tall") <= words
                }),
            _ => Space::none(),
        }
    }

    fn published(&self) -> &'static [Published] {
        const fn row(row: &'static str, milliseconds: f64) -> Published {
            let document = documents::OPTIMIZATION_STRATEGIES;
            Published { document, row, seconds: Some(milliseconds * 1e-3), rate: None }
        }
        const {
            &[
                row("copy", 1.30),
                row("copy through shared", 1.32),
                row("naive", 7.51),
                row("coalesced", 1.77),
                row("padded", 1.61),
                row("cuBLAS", 1.46),
            ]
        }
    }

    fn competes(&self, _: &Problem, variant: &str) -> bool {
        !variant.starts_with("gpu-copy")
    }

    fn carried<'a>(&self, _: &str, data: &'a mut Box<dyn Run>) -> Option<Carried<'a>> {
        Some(data.carried())
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Box<dyn Run>> {
        match problem.of {
            Type::U8 => Of::<u8>::make(problem, device, seed, |bits| (bits >> 32) as u8),
            Type::F32 => Of::<f32>::make(problem, device, seed, |bits| (bits >> 40) as f32),
            Type::F64 => Of::<f64>::make(problem, device, seed, |bits| (bits >> 11) as f64),
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

/// Every element read and written once.
fn work(problem: &Problem) -> Work {
    let bytes = match problem.of {
        Type::U8 => 1.0,
        Type::F32 => 4.0,
        Type::F64 => 8.0,
    };
    Work { bytes: 2.0 * bytes * problem.rows as f64 * problem.columns as f64, flops: 0.0 }
}
