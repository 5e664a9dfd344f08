//! Product of two matrices: C\[i, j\] = Σ_k A\[i, k\] B\[k, j\].

mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{About, Algorithm, Case, Published, Row, Signature, Unit, input, tuned, uniform};

/// C = A B, with A `[m, k]`, B `[k, n]` and C `[m, n]` of one device. Sums are f32.
///
/// Errors: shapes that do not fit, arrays on different devices, memory for packed panels (CPU), sides beyond
/// 2³¹ − 1 (GPU).
pub fn multiply(a: &Array<f32>, b: &Array<f32>, c: &mut Array<f32>) -> Result<()> {
    let (&[m, k], &[inner, n]) = (a.shape(), b.shape()) else {
        return Err(Error::shape(
            "factors of a matrix product",
            &[2, 2],
            &[a.shape().len(), b.shape().len()],
        ));
    };
    expect_shape("second factor of a matrix product", &[k, n], &[inner, n])?;
    expect_shape("matrix product", &[m, n], c.shape())?;
    for other in [b.device(), c.device()] {
        if !other.same_as(a.device()) {
            return Err(Error::value("matrix product", "arrays on one device", other.describe()));
        }
    }
    if m == 0 || n == 0 || k == 0 {
        return c.fill(0.0);
    }
    let problem = Problem { m, n, k };
    match a.device().backend() {
        Backend::Cpu(cpu) => {
            let cut = cpu::Cut::of(&tuned(&MatrixProduct, &problem, &variants::cpu_threads(), a.device()))?;
            let mut room = cpu::Packed::new(problem, cut.inner)?;
            let matrices = cpu::Matrices { a: a.cpu(), b: b.cpu(), c: c.cpu_mut(), p: problem };
            cpu::packed(cpu::Workers::all(cpu), cut, &mut room, matrices);
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let config = tuned(&MatrixProduct, &problem, &variants::gpu_wide(), a.device());
            cuda::wide(cuda, &config, [a, b], c, &problem)
        }
    }
}

/// Sizes: A is m × k, B k × n, C m × n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
}

impl Problem {
    /// Whether rows of A begin at multiples of 16 bytes, and whether rows of B and C do.
    fn wide(&self) -> [bool; 2] {
        [self.k.is_multiple_of(4), self.n.is_multiple_of(4)]
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} x {} f32", self.m, self.n, self.k)
    }
}

/// The matrices of one problem, and room for packed panels on the CPU.
pub struct Data {
    problem: Problem,
    a: Array<f32>,
    b: Array<f32>,
    c: Array<f32>,
    room: Option<cpu::Packed>,
    seed: u64,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct MatrixProduct;

/// Products of more multiplications than this are checked at random outputs.
const WHOLE: usize = 1 << 22;
/// How many of them.
const CHECKED: u64 = 4096;
/// The most numbers of A's rows that the CPU variants pack at once.
const SLAB: usize = 512;

impl Algorithm for MatrixProduct {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "matrix-product",
            title: "Product of two matrices",
            readme: include_str!("README.md"),
            unit: Unit::Flops,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, m, n, k| Case { name, summary, problem: Problem { m, n, k } };
        vec![
            case("4096", "square, the lecture's size", 4096, 4096, 4096),
            case("1024", "square, a quarter of a large GPU's multiprocessors", 1024, 1024, 1024),
            case(
                "1999x2003x1997",
                "primes: no side fills a tile, no row begins at 16 bytes",
                1999,
                2003,
                1997,
            ),
            case("tall", "a few columns: 65536 x 64 x 64", 65_536, 64, 64),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [(1, 1, 1), (3, 7, 2), (1, 100, 33), (65, 1, 63), (129, 63, 31), (70, 68, 36)]
            .map(|(m, n, k)| Problem { m, n, k })
            .to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        let problem = match *size {
            [n] if n > 0 => Problem { m: n, n, k: n },
            [m, n, k] if m.min(n).min(k) > 0 => Problem { m, n, k },
            _ => {
                let expected = "N or MxNxK, each at least 1";
                return Err(Error::value("size of matrix-product", expected, format!("{size:?}")));
            }
        };
        let Problem { m, n, k } = problem;
        for matrix in [[m, k], [k, n], [m, n]] {
            voxels(&matrix)?;
        }
        Ok(problem)
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    /// Of the tiled kernel lecture 7 gives the speed-up over the naive one alone, 2.3.
    fn published(&self) -> &'static [Published] {
        const {
            const SIZE: &str = "4096 x 4096 x 4096 f32";
            let [c, source, gpu] = Published::on_processors([7.84, 10.1, 1.12]);
            let c = c.measured_at(SIZE).note("Intel MKL on several cores");
            &[c, source.measured_at(SIZE), gpu.measured_at(SIZE)]
        }
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "matrix_product",
            declaration: "\
// C = A B, row by row in memory: A has m rows of k numbers, B k rows of n, C m rows of n.
extern \"C\" __global__ void matrix_product(const float* a, const float* b, float* c, int m, int n, int k)",
            extent: |p| [p.n, p.m, 1],
            defines: |_| Vec::new(),
            call: |data, call| {
                let Data { problem, a, b, c, .. } = data;
                let size = |n: usize| {
                    i32::try_from(n)
                        .map_err(|_| Error::value("side of a matrix", format!("at most {}", i32::MAX), n))
                };
                let [m, n, k] = [size(problem.m)?, size(problem.n)?, size(problem.k)?].map(Into::into);
                call(a.device(), &mut [a.cuda().into(), b.cuda().into(), c.cuda_mut().into(), m, n, k])
            },
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let Problem { m, n, k } = *problem;
        let room = match device.backend() {
            Backend::Cpu(_) => Some(cpu::Packed::new(*problem, SLAB)?),
            Backend::Cuda(_) => None,
        };
        let random = |shape: [usize; 2], seed| {
            Array::from_vec(device, &shape, uniform(device.cpu_side(), seed, voxels(&shape)?)?)
        };
        Ok(Data {
            problem: *problem,
            a: random([m, k], seed)?,
            b: random([k, n], seed ^ 0x5555)?,
            c: Array::zeros(device, &[m, n])?,
            room,
            seed,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.c.fill(f32::NAN)
    }

    /// The largest |error| over ‖row of A‖ ‖column of B‖.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let (a, b, c) = (data.a.read()?, data.b.read()?, data.c.read()?);
        let Problem { m, n, k } = *problem;
        let whole = m.saturating_mul(n).saturating_mul(k) <= WHOLE;
        let count = if whole { (m * n) as u64 } else { CHECKED };
        let element = |turn: u64| match whole {
            true => turn as usize,
            // The last output too: where tiles are cut off.
            false if turn == 0 => m * n - 1,
            false => (input::bits(data.seed ^ 0xc4ec, turn) % (m * n) as u64) as usize,
        };
        let error = |turn: u64| {
            let element = element(turn);
            let (want, scale) = reference::product(&a, &b, [n, k], [element / n, element % n]);
            let error = (f64::from(c[element]) - want).abs();
            if error.is_nan() { f64::INFINITY } else { error / scale.max(f64::MIN_POSITIVE) }
        };
        let cpu = data.c.device().cpu_side();
        Ok(cpu.run(|| (0..count).into_par_iter().map(error).reduce(|| 0.0, f64::max)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_product_of_known_matrices_and_refusals() {
        for device in rayspin_emu::devices().unwrap() {
            let array = |shape: &[usize], values: &[f32]| Array::from_slice(&device, shape, values).unwrap();
            let a = array(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
            let b = array(&[3, 1], &[1.0, -1.0, 2.0]);
            let mut c = array(&[2, 1], &[f32::NAN; 2]);
            multiply(&a, &b, &mut c).unwrap();
            assert_eq!(c.to_vec().unwrap(), [5.0, 11.0]);
            assert!(multiply(&b, &a, &mut c).is_err());
            assert!(multiply(&a, &b, &mut array(&[1, 2], &[0.0; 2])).is_err());
            assert!(multiply(&a, &array(&[3], &[0.0; 3]), &mut c).is_err());
        }
    }
}
