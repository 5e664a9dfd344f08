//! The ladder: problems, their data, what the rows run.

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, voxels};
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::{
    About, Algorithm, Call, Case, Config, Counts, Flow, HostTransfer, Peak, Published, Row, Signature,
    TransferArray, Unit, documents, gpu, input,
};

use super::cuda::{self, Arrays, Form, Grid, Shape};
use super::number::{Max, Min, Operation, Plain, SquareError, Sum};
use super::{Number, cpu, variants};

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

/// The type of the elements.
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
    /// The type of the elements.
    pub element: Type,
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
        let element = match T::C {
            "int" => Type::I32,
            "float" => Type::F32,
            _ => Type::F64,
        };
        Self { kind, element, len, nan: false }
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
        let name = match self.element {
            Type::I32 => "i32",
            Type::F32 => "f32",
            Type::F64 => "f64",
        };
        write!(f, "{kind} of {} {name}{}", self.len, if self.nan { ", one of them NaN" } else { "" })
    }
}

/// What the rows run, whatever the types.
pub trait Ways {
    /// One thread, an element at a time.
    fn scalar(&mut self) -> Result<()>;
    /// One thread, vectors.
    fn simd(&mut self) -> Result<()>;
    /// All threads.
    fn threads(&mut self, config: &Config) -> Result<()>;
    /// A kernel whose threads take `each` elements, launched level by level.
    fn by_levels(&mut self, kernel: &str, each: usize, config: &Config) -> Result<()>;
    /// [`Ways::by_levels`] of a program made for its number of threads.
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
    /// A kernel of the user's own, of a sum.
    fn called_by(&mut self, call: &mut Call<'_>) -> Result<()>;
    /// Inputs and outputs.
    fn host_transfer(&mut self) -> HostTransfer<'_>;
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
    ) -> Result<Box<dyn Ways>> {
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
        Arrays {
            a: &self.a,
            b,
            parts: &mut self.parts,
            more: &mut self.more,
            ticket: &mut self.ticket,
            out: &mut self.out,
        }
    }

    fn give(&mut self, value: O::Acc) -> Result<()> {
        self.out.cpu_mut().fill(value);
        Ok(())
    }

    fn second(&self) -> &Array<T> {
        self.b.as_ref().unwrap_or(&self.a)
    }

    /// Threads a block and number of blocks of a configuration.
    fn grid(&self, config: &Config) -> Result<Grid> {
        let threads = config.get("threads")?;
        let blocks = cuda::resident(gpu(self.a.device())?, config.get("blocks")?);
        Ok(Grid { threads, blocks: blocks.min(self.a.len().div_ceil(threads as usize)).max(1) })
    }
}

impl<T: Plain, O: Operation<T>> Ways for Of<T, O> {
    fn scalar(&mut self) -> Result<()> {
        let value = cpu::scalar::<T, O>(self.a.cpu(), self.second().cpu());
        self.give(value)
    }

    fn simd(&mut self) -> Result<()> {
        let level = self.a.device().cpu_side().level();
        let value = cpu::simd::<T, O>(level, self.a.cpu(), self.second().cpu());
        self.give(value)
    }

    fn threads(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let b = self.b.as_ref().unwrap_or(&self.a);
        let piece = config.get("piece")? as usize;
        let value =
            cpu::threads::<T, O>(device.cpu_side(), piece, self.a.cpu(), b.cpu(), self.parts.cpu_mut());
        self.give(value)
    }

    fn by_levels(&mut self, kernel: &str, each: usize, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let threads = config.get("threads")?;
        // One program for any number of threads, which these kernels learn at run time.
        cuda::by_levels::<T, O>(gpu(&device)?, kernel, Form::TREES, threads, each, &mut self.arrays())
    }

    fn unrolled(&mut self, kernel: &str, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let threads = config.get("threads")?;
        let form = Form::Threads(threads);
        cuda::by_levels::<T, O>(gpu(&device)?, kernel, form, threads, 2, &mut self.arrays())
    }

    fn trees(&mut self, kernel: &str, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let grid = self.grid(config)?;
        let form = Form::Threads(grid.threads);
        cuda::in_two::<T, O>(gpu(&device)?, kernel, kernel, form, grid, &mut self.arrays())
    }

    fn shuffle(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let grid = self.grid(config)?;
        let form = Form::shuffles(O::PAIRS);
        cuda::in_two::<T, O>(gpu(&device)?, "shuffle", "shuffle", form, grid, &mut self.arrays())
    }

    fn atomic(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let grid = self.grid(config)?;
        cuda::atomic::<T, O>(gpu(&device)?, grid, &mut self.arrays())
    }

    fn wide(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let (cuda, shape) = (gpu(&device)?, Shape::of(config)?);
        let grid = Grid { threads: shape.threads, blocks: shape.blocks::<T>(cuda, self.a.len()) };
        let form = Form::Unroll(shape.unroll);
        cuda::in_two::<T, O>(cuda, "wide", "shuffle", form, grid, &mut self.arrays())
    }

    fn one_pass(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        cuda::one_pass::<T, O>(gpu(&device)?, Shape::of(config)?, &mut self.arrays())
    }

    fn flagged(&mut self, config: &Config) -> Result<()> {
        let device = self.a.device().clone();
        let b = self.b.as_ref().unwrap_or(&self.a);
        let (words, out) = (self.words.cuda_mut(), self.out.cuda_mut());
        cuda::flagged::<T, O>(gpu(&device)?, Shape::of(config)?, &self.a, b, words, out)
    }

    fn called_by(&mut self, call: &mut Call<'_>) -> Result<()> {
        let device = self.a.device().clone();
        self.out.fill(O::identity())?;
        let out = Argument::from(self.out.cuda_mut());
        // CUDA adds 64-bit integers atomically where they have no sign; sums are the same bits.
        let out = if O::Acc::C == "long long" { out.of_elements("unsigned long long") } else { out };
        call(&device, &mut [self.a.cuda().into(), (self.a.len() as u64).into(), out])
    }

    fn host_transfer(&mut self) -> HostTransfer<'_> {
        let mut inputs: Vec<&mut dyn TransferArray> = vec![&mut self.a];
        inputs.extend(self.b.as_mut().map(|b| b as &mut dyn TransferArray));
        HostTransfer { inputs, outputs: vec![&mut self.out] }
    }

    fn poison(&mut self) -> Result<()> {
        // All bits set: NaN, or −1.
        self.out.fill(bytemuck::pod_read_unaligned(&[0xff; 8][..size_of::<O::Acc>()]))
    }

    fn error(&self) -> Result<f64> {
        let output = self.out.read()?.first().copied().unwrap_or_else(O::identity);
        Ok(O::error(output, &self.a.read()?, &self.second().read()?))
    }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Reduction;

impl Algorithm for Reduction {
    type Problem = Problem;
    type Data = Box<dyn Ways>;

    fn about(&self) -> About {
        About {
            name: "reduction",
            title: "One number of many: sum, minimum, maximum, mean square error",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, kind, element, len| Case {
            name,
            summary,
            problem: Problem { kind, element, len, nan: false },
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
        let trial = |kind, element, len, nan| Problem { kind, element, len, nan };
        let mut trials = vec![
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
        trials.extend([1, 2, 31, 64, 127, 1025, 20011].map(|len| trial(Kind::Sum, Type::I32, len, false)));
        trials
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [len] if len > 0 => Ok(Problem { len: voxels(size)?, ..*problem }),
            _ => Err(Error::value("size of reduction", "a length of at least 1", format!("{size:?}"))),
        }
    }

    fn variants(&self, problem: &Problem) -> Vec<Row<Self>> {
        variants::rows(problem)
    }

    fn counts(&self, problem: &Problem) -> Counts {
        let peak = match problem {
            Problem { kind: Kind::MeanSquareError, .. } | Problem { element: Type::F64, .. } => Peak::F64,
            Problem { element: Type::I32, .. } => Peak::I32,
            Problem { kind: Kind::Sum, .. } => Peak::F64,
            _ => Peak::F32,
        };
        Counts { peak, flow: Flow::Read, ..Counts::default() }
    }

    fn published(&self) -> &'static [Published] {
        const fn step(row: &'static str, milliseconds: f64, rate: f64) -> Published {
            let row = Published::new(documents::MEMORY_OPTIMIZATION, row).seconds(milliseconds * 1e-3);
            row.rate(rate * 1e9).measured_at("sum of 4194304 i32")
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

    fn signature(&self, problem: &Problem) -> Option<Signature<Problem, Box<dyn Ways>>> {
        (problem.kind == Kind::Sum).then_some(Signature {
            kernel: "reduction",
            declaration: "\
// out[0] += the sum of the n numbers of a; out[0] is 0 before. Rayspin defines ELEMENT (int, float or
// double) and SUM: double, and unsigned long long where elements are int, whose sum is the same modulo
// 2^64.
extern \"C\" __global__ void reduction(const ELEMENT* a, unsigned long long n, SUM* out)",
            extent: |p: &Problem| [p.len, 1, 1],
            defines: |p: &Problem| {
                let [element, sum] = match p.element {
                    Type::I32 => ["int", "unsigned long long"],
                    Type::F32 => ["float", "double"],
                    Type::F64 => ["double", "double"],
                };
                vec![("ELEMENT", element.to_owned()), ("SUM", sum.to_owned())]
            },
            call: |data: &mut Box<dyn Ways>, call| data.called_by(call),
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Box<dyn Ways>> {
        match problem.element {
            Type::I32 => data(problem, device, seed, |bits| (bits >> 32) as i32, None),
            Type::F32 => data(problem, device, seed, |bits| unit(bits) as f32, Some(f32::NAN)),
            Type::F64 => data(problem, device, seed, unit, Some(f64::NAN)),
        }
    }

    fn poison(&self, data: &mut Box<dyn Ways>) -> Result<()> {
        data.poison()
    }

    fn error(&self, _: &Problem, data: &Box<dyn Ways>) -> Result<f64> {
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
) -> Result<Box<dyn Ways>>
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
