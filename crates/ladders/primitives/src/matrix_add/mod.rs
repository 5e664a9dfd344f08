//! Sum of two matrices: C\[i, j\] = A\[i, j\] + B\[i, j\].

mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{About, Algorithm, Case, Row, Signature, Unit, tuned, uniform};

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
            let config = tuned(&MatrixAdd, &problem, &variants::gpu_wide(), a.device());
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

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct MatrixAdd;

impl Algorithm for MatrixAdd {
    type Problem = Problem;
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

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "matrix_add",
            declaration: "\
// c[i] = a[i] + b[i] for the n elements of three matrices.
extern \"C\" __global__ void matrix_add(const float* a, const float* b, float* c, unsigned long long n)",
            extent: |p| [p.columns, p.rows, 1],
            defines: |_| Vec::new(),
            call: |data, call| {
                let Data { a, b, c, .. } = data;
                let n = (c.len() as u64).into();
                call(a.device(), &mut [a.cuda().into(), b.cuda().into(), c.cuda_mut().into(), n])
            },
        })
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
