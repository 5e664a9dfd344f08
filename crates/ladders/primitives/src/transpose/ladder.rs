//! The ladder: problems, their data, what the rows run.

use std::fmt;

use bytemuck::Pod;
use rayon::prelude::*;
use rayspin_core::{Error, Result, voxels};
use rayspin_device::{Array, Device};
use rayspin_tune::{
    About, Algorithm, Call, Case, Config, HostTransfer, Published, Row, Signature, Unit, documents, gpu,
    input,
};

use super::cuda::{self, Form};
use super::{Entry, cpu, variants};

/// The type of the elements.
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
    /// The type of the elements.
    pub element: Type,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.element {
            Type::U8 => "u8",
            Type::F32 => "f32",
            Type::F64 => "f64",
        };
        write!(f, "{} x {} {name}", self.rows, self.columns)
    }
}

/// What the rows run, whatever the type.
pub trait Ways {
    /// One thread, an element at a time.
    fn naive(&mut self) -> Result<()>;
    /// One thread, tiles.
    fn tiled(&mut self) -> Result<()>;
    /// One thread, tiles turned by vectors.
    fn simd(&mut self) -> Result<()>;
    /// All threads.
    fn threads(&mut self) -> Result<()>;
    /// A kernel of the lectures' tiles, which copies or transposes.
    fn of_tiles(&mut self, kernel: &str, copies: bool, config: &Config) -> Result<()>;
    /// Blocks turned in registers.
    fn registers(&mut self, config: &Config) -> Result<()>;
    /// Tiles through shared memory, by words.
    fn wide(&mut self, config: &Config) -> Result<()>;
    /// A kernel of the user's own.
    fn called_by(&mut self, call: &mut Call<'_>) -> Result<()>;
    /// Inputs and outputs.
    fn host_transfer(&mut self) -> HostTransfer<'_>;
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

/// The most elements that are compared with the oracle. Larger problems are compared at this many elements.
const COMPARED: usize = 1 << 20;

impl<T: Entry> Of<T> {
    fn make(problem: &Problem, device: &Device, seed: u64, random: fn(u64) -> T) -> Result<Box<dyn Ways>> {
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

impl<T: Entry> Ways for Of<T> {
    fn naive(&mut self) -> Result<()> {
        self.copied = false;
        cpu::naive(self.size[0], self.size[1], self.a.cpu(), self.b.cpu_mut());
        Ok(())
    }

    fn tiled(&mut self) -> Result<()> {
        self.copied = false;
        cpu::tiled(self.size[0], self.size[1], self.a.cpu(), self.b.cpu_mut());
        Ok(())
    }

    fn simd(&mut self) -> Result<()> {
        self.copied = false;
        let level = self.a.device().cpu_side().level();
        cpu::simd(level, self.size[0], self.size[1], self.a.cpu(), self.b.cpu_mut());
        Ok(())
    }

    fn threads(&mut self) -> Result<()> {
        self.copied = false;
        let device = self.a.device().clone();
        cpu::threads(device.cpu_side(), self.size[0], self.size[1], self.a.cpu(), self.b.cpu_mut());
        Ok(())
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

    fn called_by(&mut self, call: &mut Call<'_>) -> Result<()> {
        self.copied = false;
        let side = |n: usize| {
            i32::try_from(n).map_err(|_| Error::value("side of a matrix", format!("at most {}", i32::MAX), n))
        };
        let [rows, columns] = [side(self.size[0])?.into(), side(self.size[1])?.into()];
        call(self.a.device(), &mut [self.a.cuda().into(), self.b.cuda_mut().into(), rows, columns])
    }

    fn host_transfer(&mut self) -> HostTransfer<'_> {
        HostTransfer { inputs: vec![&mut self.a], outputs: vec![&mut self.b] }
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
            let index = if n > COMPARED { (input::bits(29, i as u64) % n as u64) as usize } else { i };
            let to = if self.copied { index } else { index % columns * rows + index / columns };
            a[index * bytes..(index + 1) * bytes] != b[to * bytes..(to + 1) * bytes]
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

impl Algorithm for Transpose {
    type Problem = Problem;
    type Data = Box<dyn Ways>;

    fn about(&self) -> About {
        About {
            name: "transpose",
            title: "Transpose of a matrix",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, rows, columns, element| Case {
            name,
            summary,
            problem: Problem { rows, columns, element },
        };
        vec![
            case("8192x8192", "the table of the published steps", 8192, 8192, Type::F32),
            case("4096x16384", "as many elements, not square", 4096, 16384, Type::F32),
            case("8191x8193", "odd sides: no wide loads", 8191, 8193, Type::F32),
            case("8192x8192-f64", "8 bytes an element", 8192, 8192, Type::F64),
            case("16384x16384-u8", "1 byte an element", 16384, 16384, Type::U8),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        let trial = |rows, columns, element| Problem { rows, columns, element };
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

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn published(&self) -> &'static [Published] {
        const fn row(row: &'static str, milliseconds: f64) -> Published {
            let row = Published::new(documents::OPTIMIZATION_STRATEGIES, row).seconds(milliseconds * 1e-3);
            row.measured_at("8192 x 8192 f32")
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

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Box<dyn Ways>>> {
        Some(Signature {
            kernel: "transpose",
            declaration: "\
// b[x * rows + y] = a[y * columns + x] for y < rows and x < columns. Rayspin defines ELEMENT (unsigned
// char, float or double).
extern \"C\" __global__ void transpose(const ELEMENT* a, ELEMENT* b, int rows, int columns)",
            extent: |p| [p.columns, p.rows, 1],
            defines: |p| {
                let element = match p.element {
                    Type::U8 => "unsigned char",
                    Type::F32 => "float",
                    Type::F64 => "double",
                };
                vec![("ELEMENT", element.to_owned())]
            },
            call: |data, call| data.called_by(call),
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Box<dyn Ways>> {
        match problem.element {
            Type::U8 => Of::<u8>::make(problem, device, seed, |bits| (bits >> 32) as u8),
            Type::F32 => Of::<f32>::make(problem, device, seed, |bits| (bits >> 40) as f32),
            Type::F64 => Of::<f64>::make(problem, device, seed, |bits| (bits >> 11) as f64),
        }
    }

    fn poison(&self, data: &mut Box<dyn Ways>) -> Result<()> {
        data.poison()
    }

    fn error(&self, _: &Problem, data: &Box<dyn Ways>) -> Result<f64> {
        data.error()
    }
}
