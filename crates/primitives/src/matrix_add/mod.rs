//! Sum of two matrices: C\[i, j\] = A\[i, j\] + B\[i, j\].

mod cpu;
mod cuda;
pub mod reference;

use std::fmt;

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::cuda::Source;
use rayspin_device::{Array, Backend, BackendKind, Device};
use rayspin_tune::variant::{Variant, Work, runs_all};
use rayspin_tune::{About, Algorithm, Carried, Case, Config, Space, Unit, gpu, tuned, uniform};

pub(crate) use cuda::programs;

/// C = A + B: three matrices `[rows, columns]` of one device.
///
/// Errors: shapes that differ, arrays on different devices.
pub fn add(a: &Array<f32>, b: &Array<f32>, c: &mut Array<f32>) -> Result<()> {
    expect_shape("second matrix", a.shape(), b.shape())?;
    expect_shape("sum of matrices", a.shape(), c.shape())?;
    for other in [b.device(), c.device()] {
        if !other.same_as(a.device()) {
            return Err(Error::value("sum of matrices", "arrays on one device", other.describe()));
        }
    }
    match a.device().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, a.cpu(), b.cpu(), c.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let columns = a.shape().last().copied().unwrap_or(1);
            let problem = Problem { rows: a.len() / columns.max(1), columns };
            let config = tuned(&MatrixAdd, &problem, "gpu-wide", a.device());
            cuda::wide(cuda, config.get("threads")?, a, b, c)
        }
    }
}

/// A matrix's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} f32", self.rows, self.columns)
    }
}

/// The matrices of one problem.
pub struct Data {
    problem: Problem,
    a: Array<f32>,
    b: Array<f32>,
    c: Array<f32>,
}

/// What a row runs.
pub type Launch = fn(&Config, &mut Data) -> Result<()>;

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct MatrixAdd;

impl Algorithm for MatrixAdd {
    type Problem = Problem;
    type Launch = Launch;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "matrix-add",
            title: "Sum of two matrices",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        vec![
            Case {
                name: "8192x8192",
                summary: "larger than any cache",
                problem: Problem { rows: 8192, columns: 8192 },
            },
            Case {
                name: "1000x1000",
                summary: "short enough for a launch to matter; not a multiple of a tile",
                problem: Problem { rows: 1000, columns: 1000 },
            },
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [(1, 1), (1, 7), (7, 1), (31, 33), (16, 16), (100, 129)]
            .map(|(rows, columns)| Problem { rows, columns })
            .to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [rows, columns] if rows.min(columns) > 0 && voxels(size).is_ok() => Ok(Problem { rows, columns }),
            _ => Err(Error::value(
                "size of matrix-add",
                "ROWSxCOLUMNS, each at least 1, that fit the address space",
                format!("{size:?}"),
            )),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Variant<Problem, Launch>> {
        let row = |name, backend, summary, launch: Launch, refuses, reproduces| Variant {
            name,
            backend,
            summary,
            launch,
            refuses,
            work,
            tolerance: 0.0,
            reproduces,
        };
        let on_cpu =
            |name, summary, launch: Launch| row(name, BackendKind::Cpu, summary, launch, runs_all, None);
        let on_gpu = |name, summary, launch: Launch, refuses: fn(&Problem) -> Option<String>| {
            row(name, BackendKind::Cuda, summary, launch, refuses, None)
        };
        vec![
            on_cpu("scalar", "one thread, baseline instructions", |_, d| {
                cpu::scalar(d.a.cpu(), d.b.cpu(), d.c.cpu_mut());
                Ok(())
            }),
            on_cpu("simd", "one thread, the widest vectors", |_, d| {
                let cpu = d.a.device().cpu_side().level();
                cpu::simd(cpu, d.a.cpu(), d.b.cpu(), d.c.cpu_mut());
                Ok(())
            }),
            on_cpu("threads", "the same on all cores", |_, d| {
                cpu::threads(d.a.device().cpu_side(), d.a.cpu(), d.b.cpu(), d.c.cpu_mut());
                Ok(())
            }),
            on_gpu("gpu-one-block", "one block, a thread an element", cuda::one_block, one_block_only),
            on_gpu(
                "gpu-tiled",
                "a grid of 2-D blocks that checks its bounds",
                cuda::tiled,
                cuda::tiled_refuses,
            ),
            on_gpu(
                "gpu-wide",
                "16 bytes a thread and load, flat",
                |config, d| {
                    let device = d.a.device().clone();
                    cuda::wide(gpu(&device)?, config.get("threads")?, &d.a, &d.b, &mut d.c)
                },
                runs_all,
            ),
        ]
    }

    fn sources(&self, _: &Problem, variant: &str) -> Vec<&'static Source> {
        match variant {
            "gpu-wide" => vec![&cuda::SOURCE],
            _ => Vec::new(),
        }
    }

    fn space(&self, _: &Problem, variant: &str) -> Space {
        match variant {
            "gpu-tiled" => Space::none()
                .axis("x", &[8, 16, 32, 64, 128, 256], 16)
                .axis("y", &[1, 2, 4, 8, 16, 32], 16)
                .where_(|c| matches!(c.find("x").zip(c.find("y")), Some((x, y)) if (32..=1024).contains(&(x * y)))),
            "gpu-wide" => Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256),
            _ => Space::none(),
        }
    }

    fn carried<'a>(&self, _: &str, data: &'a mut Data) -> Option<Carried<'a>> {
        Some(Carried { inputs: vec![&mut data.a, &mut data.b], outputs: vec![&mut data.c] })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let shape = [problem.rows, problem.columns];
        let n = voxels(&shape)?;
        let random = |seed| Array::from_vec(device, &shape, uniform(device.cpu_side(), seed, n)?);
        Ok(Data {
            problem: *problem,
            a: random(seed)?,
            b: random(seed ^ 0x5555)?,
            c: Array::zeros(device, &shape)?,
        })
    }

    fn run(&self, variant: &Variant<Problem, Launch>, config: &Config, data: &mut Data) -> Result<()> {
        (variant.launch)(config, data)
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.c.fill(f32::NAN)
    }

    fn error(&self, _: &Problem, data: &Data) -> Result<f64> {
        let (a, b, c) = (data.a.read()?, data.b.read()?, data.c.read()?);
        // Both are the one rounding of an exact sum: equal, or wrong.
        let wrong = c.iter().zip(reference::add(&a, &b)).filter(|&(&c, want)| c != want as f32).count();
        Ok(wrong as f64 / c.len().max(1) as f64)
    }
}

/// Two reads and a write of four bytes, one addition.
fn work(problem: &Problem) -> Work {
    let n = problem.rows as f64 * problem.columns as f64;
    Work { bytes: 12.0 * n, flops: n }
}

fn one_block_only(problem: &Problem) -> Option<String> {
    let n = problem.rows * problem.columns;
    (n > 1024).then(|| format!("{n} elements, and a block has at most 1024 threads"))
}
