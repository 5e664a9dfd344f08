//! Linpack: SAXPY, and LU factorization with partial pivoting in f64.

mod cpu;
mod cuda;
pub mod reference;
#[cfg(test)]
mod tests;
mod variants;

use std::fmt;

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{
    About, Algorithm, Call, Case, Counts, Peak, PublishedApplication, Row, Signature, Unit, input, tuned,
    uniform,
};

/// Which of the two, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// z = a x + y of n numbers, f32.
    Saxpy(usize),
    /// P A = L U of an n × n matrix, f64.
    Lu(usize),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saxpy(n) => write!(f, "{n} saxpy f32"),
            Self::Lu(n) => write!(f, "{n} x {n} lu f64"),
        }
    }
}

/// z = a x + y, rounded once or twice. Errors: lengths that differ, arrays on different devices.
pub fn saxpy(a: f32, x: &Array<f32>, y: &Array<f32>, z: &mut Array<f32>) -> Result<()> {
    for (what, other) in [("second vector", y), ("sum of vectors", &*z)] {
        expect_shape(what, x.shape(), other.shape())?;
        if !x.device().same_as(other.device()) {
            return Err(Error::value(what, "an array on the device of the first", other.device().describe()));
        }
    }
    let device = x.device().clone();
    match device.backend() {
        Backend::Cpu(cpu) => {
            cpu::saxpy_threads(cpu, a, x.cpu(), y.cpu(), z.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let config = tuned(&Linpack, &Problem::Saxpy(x.len()), &variants::gpu_wide(), &device);
            cuda::saxpy(cuda, "wide", config.get("threads")?, a, cuda::Operands { x, y, z })
        }
    }
}

/// P A = L U of a square matrix `[n, n]`: `lu` holds U, and below its diagonal L without its ones. Step k
/// changed rows k and `pivots[k]`, the row with the largest |number| of the column; so no |number| of L
/// exceeds 1. [`reference::solve`] solves a system with them.
///
/// A singular matrix gives a 0 on the diagonal of U, and then numbers that are not finite. Errors: other
/// shapes, arrays on different devices, memory, more than 65,536 rows.
pub fn factorize(a: &Array<f64>, lu: &mut Array<f64>, pivots: &mut Array<i32>) -> Result<()> {
    let &[n, columns] = a.shape() else {
        return Err(Error::shape("matrix", &[0, 0], a.shape()));
    };
    expect_shape("square matrix", &[n, n], &[n, columns])?;
    expect_shape("factors of a matrix", &[n, n], lu.shape())?;
    expect_shape("pivots of a matrix", &[n], pivots.shape())?;
    let device = a.device().clone();
    for other in [lu.device(), pivots.device()] {
        if !device.same_as(other) {
            return Err(Error::value("factorization", "arrays on one device", other.describe()));
        }
    }
    checked(Problem::Lu(n))?;
    lu.copy_from(a)?;
    match device.backend() {
        Backend::Cpu(cpu) => {
            let mut room = cpu::Room::new(n)?;
            cpu::blocked(cpu.level(), Some(cpu), n, lu.cpu_mut(), pivots.cpu_mut(), &mut room);
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let config = tuned(&Linpack, &Problem::Lu(n), &variants::gpu_strips(), &device);
            let mut room = cuda::Room::new(&device)?;
            let factors = cuda::Factors { lu, pivots, room: &mut room };
            cuda::blocked(cuda, &config, cuda::Form::Strips, n, factors)
        }
    }
}

/// Errors: a size that is 0, or more than kernels count.
fn checked(problem: Problem) -> Result<Problem> {
    match problem {
        Problem::Saxpy(n) if (1..1 << 31).contains(&n) => Ok(problem),
        Problem::Lu(n) if (1..=1 << 16).contains(&n) => Ok(problem),
        _ => {
            let expected = "N, at least 1 and below 2^31 for saxpy, at most 65536 for lu";
            Err(Error::value("size of linpack", expected, problem))
        }
    }
}

/// One problem.
pub enum Data {
    /// Vectors.
    Saxpy(Box<Vectors>),
    /// A matrix and its factors.
    Lu(Box<Matrix>),
}

/// z = a x + y.
pub struct Vectors {
    a: f32,
    x: Array<f32>,
    y: Array<f32>,
    z: Array<f32>,
}

/// P A = L U.
pub struct Matrix {
    n: usize,
    a: Array<f64>,
    lu: Array<f64>,
    pivots: Array<i32>,
    cpu: Option<cpu::Room>,
    cuda: Option<cuda::Room>,
    seed: u64,
}

impl Data {
    fn vectors(&mut self) -> Result<&mut Vectors> {
        match self {
            Self::Saxpy(vectors) => Ok(vectors),
            Self::Lu(_) => Err(Error::value("data of saxpy", "vectors", "a matrix")),
        }
    }

    fn matrix(&mut self) -> Result<&mut Matrix> {
        match self {
            Self::Lu(matrix) => Ok(matrix),
            Self::Saxpy(_) => Err(Error::value("data of lu", "a matrix", "vectors")),
        }
    }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Linpack;

/// Declarations of a user's own kernels.
const OWN_SAXPY: &str = "\
// z[i] = a * x[i] + y[i] for i < n.
extern \"C\" __global__ void saxpy(float a, const float* x, const float* y, float* z, int n)";
const OWN_LU: &str = "\
// Step k of an LU factorization with partial pivoting, in place: lu[row * n + column], which holds the matrix
// before step 0. Rayspin calls the kernel for k = 0, 1, ..., n - 1.
// Of the rows k to n - 1, p is one with the largest |lu[p * n + k]|: pivots[k] = p, and rows k and p change
// places in all columns. Then, for each row r > k, lu[r * n + k] is divided by lu[k * n + k], and for each
// column c > k lu[r * n + c] -= lu[r * n + k] * lu[k * n + c]. Blocks need each other's results: a list of
// launches has several kernels.
extern \"C\" __global__ void lu(double* lu, int* pivots, int n, int k)";

/// A kernel of a user's own.
fn called_by(data: &mut Data, call: &mut Call<'_>) -> Result<()> {
    match data {
        Data::Saxpy(vectors) => {
            let Vectors { a, x, y, z } = &mut **vectors;
            let device = x.device().clone();
            let n = (x.len() as i32).into();
            call(&device, &mut [(*a).into(), x.cuda().into(), y.cuda().into(), z.cuda_mut().into(), n])
        }
        Data::Lu(matrix) => {
            let Matrix { n, a, lu, pivots, .. } = &mut **matrix;
            let device = a.device().clone();
            lu.copy_from(a)?;
            let count = *n as i32;
            (0..count).try_for_each(|k| {
                let arrays = [lu.cuda_mut().into(), pivots.cuda_mut().into()];
                call(&device, &mut [arrays[0], arrays[1], count.into(), k.into()])
            })
        }
    }
}

impl Algorithm for Linpack {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "linpack",
            title: "SAXPY and LU factorization",
            readme: include_str!("README.md"),
            unit: Unit::Flops,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        vec![
            Case { name: "lu", summary: "P A = L U, 8192 x 8192, f64", problem: Problem::Lu(8192) },
            Case { name: "lu-2048", summary: "the same, 2048 x 2048", problem: Problem::Lu(2048) },
            Case { name: "saxpy", summary: "z = a x + y, 2^26 numbers", problem: Problem::Saxpy(1 << 26) },
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        let vectors = [1, 3, 1029, 70_001].map(Problem::Saxpy);
        [&vectors[..], &[1, 2, 15, 16, 17, 33, 130, 207].map(Problem::Lu)].concat()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let &[n] = size else {
            return Err(Error::value("size of linpack", "N", format!("{size:?}")));
        };
        checked(match problem {
            Problem::Saxpy(_) => Problem::Saxpy(n),
            Problem::Lu(_) => Problem::Lu(n),
        })
    }

    fn variants(&self, problem: &Problem) -> Vec<Row<Self>> {
        match problem {
            Problem::Saxpy(_) => variants::vectors(),
            Problem::Lu(_) => variants::matrices(),
        }
    }

    /// 2 n and 2/3 n³ operations, as Linpack counts them.
    fn counts(&self, problem: &Problem) -> Counts {
        let (peak, flops) = match *problem {
            Problem::Saxpy(n) => (Peak::F32, 2.0 * n as f64),
            Problem::Lu(n) => (Peak::F64, 2.0 / 3.0 * (n as f64).powi(3)),
        };
        Counts { peak, flops: Some(flops), ..Counts::default() }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("lu", "lu-2048"), ("saxpy", "saxpy")];
        Some(PublishedApplication::of_lecture(
            "LINPACK",
            "global memory bandwidth, CPU–GPU transfer",
            12_288,
            [19.4, 11.8],
            cases,
        ))
    }

    fn signature(&self, problem: &Problem) -> Option<Signature<Problem, Data>> {
        let (kernel, declaration) = match problem {
            Problem::Saxpy(_) => ("saxpy", OWN_SAXPY),
            Problem::Lu(_) => ("lu", OWN_LU),
        };
        let extent = |p: &Problem| match *p {
            Problem::Saxpy(n) => [n, 1, 1],
            Problem::Lu(n) => [n, n, 1],
        };
        Some(Signature { kernel, declaration, extent, defines: |_| Vec::new(), call: called_by })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let cpu = device.cpu_side();
        match *problem {
            Problem::Saxpy(n) => {
                let vector = |seed| Array::from_vec(device, &[n], uniform(cpu, seed, n)?);
                let (x, y, z) = (vector(seed)?, vector(seed ^ 0x5a)?, Array::zeros(device, &[n])?);
                Ok(Data::Saxpy(Box::new(Vectors { a: 1.7, x, y, z })))
            }
            Problem::Lu(n) => {
                let number = |index: usize| f64::from(input::signed_unit(seed, index));
                let a = input::filled(cpu, "matrix", voxels(&[n, n])?, number)?;
                let on_cpu = matches!(device.backend(), Backend::Cpu(_));
                Ok(Data::Lu(Box::new(Matrix {
                    n,
                    a: Array::from_vec(device, &[n, n], a)?,
                    lu: Array::zeros(device, &[n, n])?,
                    pivots: Array::zeros(device, &[n])?,
                    cpu: if on_cpu { Some(cpu::Room::new(n)?) } else { None },
                    cuda: if on_cpu { None } else { Some(cuda::Room::new(device)?) },
                    seed,
                })))
            }
        }
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        match data {
            Data::Saxpy(vectors) => vectors.z.fill(f32::NAN),
            Data::Lu(matrix) => {
                matrix.lu.fill(f64::NAN)?;
                matrix.pivots.fill(-1)
            }
        }
    }

    /// SAXPY: the largest |error| over |a x| + |y|. LU: Linpack's residual, infinite where L has a number
    /// beyond 1 or a pivot lies above its step.
    fn error(&self, _: &Problem, data: &Data) -> Result<f64> {
        match data {
            Data::Saxpy(vectors) => {
                let Vectors { a, x, y, z } = &**vectors;
                let (a, x, y, z) = (f64::from(*a), x.read()?, y.read()?, z.read()?);
                let mut worst = 0.0f64;
                for ((&x, &y), &z) in x.iter().zip(y.iter()).zip(z.iter()) {
                    let (ax, y) = (a * f64::from(x), f64::from(y));
                    let error = (f64::from(z) - (ax + y)).abs() / (ax.abs() + y.abs()).max(f64::MIN_POSITIVE);
                    worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
                }
                Ok(worst)
            }
            Data::Lu(matrix) => {
                let (n, a, lu) = (matrix.n, matrix.a.read()?, matrix.lu.read()?);
                let pivots = matrix.pivots.read()?;
                let b: Vec<_> =
                    (0..n).map(|index| f64::from(input::signed_unit(matrix.seed ^ 0xb, index))).collect();
                let orderly = pivots.iter().enumerate().all(|(k, &p)| (k..n).contains(&(p as usize)));
                let largest = (0..n).any(|i| lu[i * n..i * n + i].iter().any(|l| l.abs() > 1.0));
                if !orderly || largest {
                    return Ok(f64::INFINITY);
                }
                Ok(reference::residual(&a, &reference::solve(&lu, &pivots, &b), &b))
            }
        }
    }
}
