//! Problems, their data and oracle.

use std::fmt;

use rayspin_core::{Error, Result, voxels};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::{About, Algorithm, Call, Case, Counts, Flow, Row, Signature, Unit, gpu};

use super::draw::{LOWER, Shape};
use super::poisson::Table;
use super::{Stream, reference, variants, ziggurat};

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Words of 32 bits.
    Bits,
    /// Uniform, f32.
    UniformF32,
    /// Uniform, f64.
    UniformF64,
    /// Normal of mean 0 and deviation 1, f32.
    NormalF32,
    /// The same, f64.
    NormalF64,
    /// e to the 0.5 + z / 4, f32.
    LogNormalF32,
    /// The same, f64.
    LogNormalF64,
    /// Numbers of events with this mean.
    Poisson(f64),
}

/// The number and the kind of random numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Numbers.
    pub numbers: usize,
    /// What is drawn.
    pub kind: Kind,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits => f.write_str("words of 32 bits"),
            Self::UniformF32 => f.write_str("uniform f32"),
            Self::UniformF64 => f.write_str("uniform f64"),
            Self::NormalF32 => f.write_str("normal f32"),
            Self::NormalF64 => f.write_str("normal f64"),
            Self::LogNormalF32 => f.write_str("log-normal f32"),
            Self::LogNormalF64 => f.write_str("log-normal f64"),
            Self::Poisson(lambda) => write!(f, "Poisson numbers of mean {lambda}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.numbers, self.kind)
    }
}

impl Problem {
    pub(super) fn bytes(&self) -> usize {
        if matches!(self.kind, Kind::UniformF64 | Kind::NormalF64 | Kind::LogNormalF64) { 8 } else { 4 }
    }
}

/// The numbers, and what they are drawn by.
pub struct Data {
    pub(super) stream: Stream,
    pub(super) out: Output,
    /// A state for each thread of the widest launch, on a GPU.
    pub(super) states: Array<[u32; 4]>,
}

pub(super) enum Output {
    /// With a table that nothing looks at.
    Words(Array<u32>, Array<u64>),
    Events(Array<u32>, Table, Array<u64>),
    Single(Array<f32>, Shape<f32>),
    Double(Array<f64>, Shape<f64>),
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct RandomNumbers;

const KINDS: [(&str, &str, Kind); 9] = [
    ("uniform-f32", "24 bits on [0, 1)", Kind::UniformF32),
    ("bits", "the generator alone", Kind::Bits),
    ("uniform-f64", "53 bits on [0, 1)", Kind::UniformF64),
    ("normal-f32", "Box and Muller's", Kind::NormalF32),
    ("normal-f64", "by a ziggurat, in double precision", Kind::NormalF64),
    ("log-normal-f32", "e to the normal", Kind::LogNormalF32),
    ("log-normal-f64", "e to the normal in double precision", Kind::LogNormalF64),
    ("poisson-4", "numbers of events, mean 4", Kind::Poisson(4.0)),
    ("poisson-1000", "numbers of events, mean 1000", Kind::Poisson(1000.0)),
];

/// A kernel of a user's own.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    let Stream { seed, number } = data.stream;
    let device = data.states.device().clone();
    let (count, out) = match &mut data.out {
        Output::Words(out, _) => (out.len(), out.cuda_mut().into()),
        Output::Single(out, _) => (out.len(), out.cuda_mut().into()),
        Output::Events(..) | Output::Double(..) => {
            return Err(Error::value("numbers of a kernel of your own", "words or f32", "others"));
        }
    };
    call(&device, &mut [out, (count as u64).into(), number.into(), seed.into()])
}

/// The generator, for declarations of a user's own kernels.
macro_rules! philox {
    ($result:literal, $kernel:literal) => {
        concat!(
            "// ",
            $result,
            "\
// w[0..4] of block i / 4 are Philox 4x32-10 (Salmon et al., SC 2011). They begin as the low and the high 32
// bits of the block's number i / 4, then those of `stream`. The key k[0], k[1] is the low and the high 32
// bits of `seed`. Ten times: with the 64-bit products p = 0xD2511F53 * w[0] and q = 0xCD9E8D57 * w[2], w is
// (high(q) ^ w[1] ^ k[0], low(q), high(p) ^ w[3] ^ k[1], low(p)). After each time k[0] += 0x9E3779B9 and
// k[1] += 0xBB67AE85.
extern \"C\" __global__ void ",
            $kernel,
            ", unsigned long long n, unsigned long long stream, unsigned long long seed)"
        )
    };
}

const OWN_BITS: &str = philox!("out[i] = w[i % 4] of block i / 4, for i < n.\n", "random_bits(unsigned* out");
const OWN_UNIFORM: &str = philox!(
    "out[i] = (w[i % 4] of block i / 4, shifted right by 8) / 2^24, for i < n.\n",
    "random_uniform(float* out"
);

impl Algorithm for RandomNumbers {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "random",
            title: "Random numbers from counters",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn key(&self, problem: &Problem) -> (String, Vec<usize>) {
        match problem.kind {
            // A mean is a size: what was found for one is of use for those near it.
            Kind::Poisson(mean) => ("Poisson numbers".to_owned(), vec![problem.numbers, mean as usize]),
            kind => (kind.to_string(), vec![problem.numbers]),
        }
    }

    fn counts(&self, _: &Problem) -> Counts {
        Counts { flow: Flow::Write, ..Counts::default() }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        KINDS
            .iter()
            .map(|&(name, summary, kind)| {
                // A quarter of a gigabyte, whatever the type: beyond any cache.
                let numbers = (1 << 28) / Problem { numbers: 0, kind }.bytes();
                Case { name, summary, problem: Problem { numbers, kind } }
            })
            .collect()
    }

    fn trials(&self) -> Vec<Problem> {
        let sizes = [1, 2, 3, 5, 1021, 4097, 63, 6000, 1001];
        let mut trials: Vec<_> =
            KINDS.iter().zip(sizes).map(|(&(_, _, kind), numbers)| Problem { numbers, kind }).collect();
        trials.push(Problem { numbers: 7, kind: Kind::Poisson(0.0) });
        trials.push(Problem { numbers: 5003, kind: Kind::NormalF32 });
        // More columns than are copied.
        trials.push(Problem { numbers: 2003, kind: Kind::Poisson(2e5) });
        trials
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [numbers] if numbers > 0 => Ok(Problem { numbers: voxels(size)?, ..*problem }),
            _ => Err(Error::value("size of random", "NUMBERS, at least 1", format!("{size:?}"))),
        }
    }

    fn variants(&self, problem: &Problem) -> Vec<Row<Self>> {
        variants::rows(problem)
    }

    fn signature(&self, problem: &Problem) -> Option<Signature<Problem, Data>> {
        let (kernel, declaration) = match problem.kind {
            Kind::Bits => ("random_bits", OWN_BITS),
            Kind::UniformF32 => ("random_uniform", OWN_UNIFORM),
            _ => return None,
        };
        Some(Signature {
            kernel,
            declaration,
            extent: |p| [p.numbers, 1, 1],
            defines: |_| Vec::new(),
            call: called_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let n = problem.numbers;
        let single = |shape| Ok::<_, Error>(Output::Single(Array::zeros(device, &[n])?, shape));
        let double = |shape| Ok::<_, Error>(Output::Double(Array::zeros(device, &[n])?, shape));
        let out = match problem.kind {
            Kind::Bits => Output::Words(Array::zeros(device, &[n])?, Array::zeros(device, &[1])?),
            Kind::UniformF32 => single(Shape::Uniform)?,
            Kind::NormalF32 => single(Shape::Normal(0.0, 1.0))?,
            Kind::LogNormalF32 => single(Shape::LogNormal(0.5, 0.25))?,
            Kind::UniformF64 => double(Shape::Uniform)?,
            Kind::NormalF64 => double(Shape::Normal(0.0, 1.0))?,
            Kind::LogNormalF64 => double(Shape::LogNormal(0.5, 0.25))?,
            Kind::Poisson(lambda) => {
                let table = Table::new(lambda)?;
                let columns = Array::from_slice(device, &[table.columns.len()], &table.columns)?;
                Output::Events(Array::zeros(device, &[n])?, table, columns)
            }
        };
        let states = match device.kind() {
            BackendKind::Cpu => 0,
            BackendKind::Cuda => 1024 * 32 * gpu(device)?.properties().multiprocessors as usize,
        };
        let stream = Stream { seed, number: 3 ^ seed << 33 };
        Ok(Data { stream, out, states: Array::zeros(device, &[states])? })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        match &mut data.out {
            Output::Words(out, _) | Output::Events(out, ..) => out.fill(u32::MAX),
            Output::Single(out, _) => out.fill(f32::NAN),
            Output::Double(out, _) => out.fill(f64::NAN),
        }
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let n = problem.numbers;
        // All blocks of small problems; else some, and always the last.
        let step = (n / 100_000).max(1);
        let indices = (0..n).step_by(step).chain([n - 1]);
        let normal = |i: usize| {
            let (block, slot) = ((i / 2) as u64, i % 2);
            reference::normal_f64(
                &ziggurat::layers().edges,
                block,
                slot,
                data.stream.number,
                data.stream.seed,
            )
        };
        let words = |block: u64| reference::words(block, data.stream.number, data.stream.seed);
        let pair = |w: [u32; 4], k: usize| u64::from(w[2 * k + 1]) << 32 | u64::from(w[2 * k]);
        let (mut worst, mut wrong) = (0f64, 0usize);
        let mut close = |output: f64, want: f64| {
            let error = (output - want).abs() / (1.0 + want.abs());
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        };
        match &data.out {
            Output::Words(out, _) => {
                let out = out.read()?;
                wrong = indices.filter(|&i| out[i] != words((i / 4) as u64)[i % 4]).count();
            }
            Output::Events(out, table, _) => {
                let out = out.read()?;
                let number = |i: usize| {
                    let [upper, lower] = [0, LOWER].map(|b| words((i / 4) as u64 | b)[i % 4]);
                    table.number_of(u64::from(upper) << 32 | u64::from(lower))
                };
                wrong = indices.filter(|&i| out[i] != number(i)).count();
            }
            Output::Single(out, shape) => {
                let out = out.read()?;
                for i in indices {
                    let w = words((i / 4) as u64);
                    let z = || reference::normals_f32(w[(i % 4) & 2], w[(i % 4) | 1])[i % 2];
                    let output = f64::from(out[i]);
                    match *shape {
                        Shape::Uniform => {
                            wrong += usize::from(output != f64::from(w[i % 4] >> 8) / 2f64.powi(24));
                        }
                        Shape::Normal(mean, scale) => close(output, f64::from(mean) + f64::from(scale) * z()),
                        Shape::LogNormal(mean, scale) => {
                            close(output, (f64::from(mean) + f64::from(scale) * z()).exp());
                        }
                    }
                }
            }
            Output::Double(out, shape) => {
                let out = out.read()?;
                for i in indices {
                    let w = words((i / 2) as u64);
                    let z = || normal(i);
                    match *shape {
                        Shape::Uniform => {
                            wrong += usize::from(out[i] != (pair(w, i % 2) >> 11) as f64 / 2f64.powi(53));
                        }
                        Shape::Normal(mean, scale) => close(out[i], mean + scale * z()),
                        Shape::LogNormal(mean, scale) => close(out[i], (mean + scale * z()).exp()),
                    }
                }
            }
        }
        Ok(if wrong > 0 { wrong as f64 } else { worst })
    }
}
