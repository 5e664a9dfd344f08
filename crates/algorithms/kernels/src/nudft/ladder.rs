//! The transforms as ladders: Fᴴd and Q by every variant, beside the published chain.

use std::marker::PhantomData;

use ndarray::Array2;
use num_complex::Complex;
use rayspin_core::{C64, Error, Real, Result, Trajectory, voxels};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::cuda::Argument;
use rayspin_device::{Array, BackendKind, Cpu, Device};
use rayspin_tune::input::{self, bits, signed_unit};
use rayspin_tune::{
    About, Algorithm, Call, Case, Counts, HostTransfer, Peak, Published, PublishedApplication, Row, Runnable,
    Signature, Unit, documents,
};

use super::grid::Grid;
use super::{Operation, Problem, adjoint_at, q_at, reference, run_adjoint, run_q, variants};

/// Samples → image or Q, in one precision.
#[derive(Debug, Clone, Copy)]
pub struct Direct<T> {
    operation: Operation,
    real: PhantomData<T>,
}

impl<T> Direct<T> {
    /// Fᴴd: samples → image.
    pub fn adjoint() -> Self {
        Self::new(Operation::Adjoint)
    }

    /// Q: weights → displacements.
    pub fn q() -> Self {
        Self::new(Operation::Q)
    }

    pub(super) fn new(operation: Operation) -> Self {
        Self { operation, real: PhantomData }
    }
}

/// Inputs and output of one transform.
pub struct Data<T: SimdReal> {
    trajectory: Trajectory,
    problem: Problem,
    samples: Array<Complex<T>>,
    weights: Array<T>,
    out: Array<Complex<T>>,
    /// kx, ky and kz of the samples, once a kernel of the user's own was called.
    points: Option<[Array<f64>; 3]>,
}

impl<T: SimdReal> Data<T> {
    /// Where the transform is evaluated. Errors: a matrix that is none.
    fn grid(problem: &Problem) -> Result<Grid> {
        match problem.operation {
            Operation::Q => Grid::displacements(&problem.matrix),
            Operation::Forward | Operation::Adjoint => Grid::image(&problem.matrix),
        }
    }

    /// A kernel of the user's own.
    fn called_by(&mut self, call: &mut Call<'_>) -> Result<()> {
        let device = self.out.device().clone();
        let grid = Self::grid(&self.problem)?;
        let count = self.trajectory.samples();
        if self.points.is_none() {
            let along = |axis: usize| -> Result<Array<f64>> {
                let value = |sample: usize| grid.axes[axis].k(&self.trajectory, sample);
                let values = input::filled(device.cpu_side(), "places of samples", count, value)?;
                Array::from_vec(&device, &[count], values)
            };
            self.points = Some([along(2)?, along(1)?, along(0)?]);
        }
        let Some([kx, ky, kz]) = &self.points else { return Ok(()) };
        let whole = |what: &str, n: usize| {
            i32::try_from(n).map_err(|_| Error::value(what, format!("at most {}", i32::MAX), n))
        };
        let mut arguments: Vec<Argument<'_>> = vec![kx.cuda().into(), ky.cuda().into(), kz.cuda().into()];
        arguments.push(match self.problem.operation {
            Operation::Q => self.weights.cuda().into(),
            Operation::Forward | Operation::Adjoint => self.samples.cuda().into(),
        });
        arguments.push(whole("samples", count)?.into());
        arguments.push(self.out.cuda_mut().into());
        for axis in grid.axes.iter().rev() {
            arguments.push(whole("points of an axis", axis.count)?.into());
        }
        call(&device, &mut arguments)
    }
}

/// Declarations of a user's own kernels.
const OWN_ADJOINT: &str = "\
// image[(z * ny + y) * nx + x] = sum over m < count of samples[m] e^(+i 2 pi t), with
// t = kx[m] (x - nx / 2) / nx + ky[m] (y - ny / 2) / ny + kz[m] (z - nz / 2) / nz.
// Halves are rounded down. Axes that an image lacks have size 1 and k of 0.
// Rayspin defines REAL and REAL2: float and float2, or double and double2.
extern \"C\" __global__ void nudft_adjoint(const double* kx, const double* ky, const double* kz, const REAL2* samples, int count, REAL2* image, int nx, int ny, int nz)";
const OWN_Q: &str = "\
// q[(z * ny + y) * nx + x] = sum over m < count of weights[m] e^(+i 2 pi t), with
// t = 2 kx[m] (x - nx / 2) / nx + 2 ky[m] (y - ny / 2) / ny + 2 kz[m] (z - nz / 2) / nz.
// nx, ny and nz are twice the voxels of the image. Axes that an image lacks have size 1 and k of 0.
// Rayspin defines REAL and REAL2: float and float2, or double and double2.
extern \"C\" __global__ void nudft_q(const double* kx, const double* ky, const double* kz, const REAL* weights, int count, REAL2* q, int nx, int ny, int nz)";

/// Pairs of the whole oracle; of larger problems at random outputs.
const WHOLE: f64 = 2e7;
/// Outputs of a large problem that are compared.
const COMPARED: usize = 24;

const PUBLISHED_ADJOINT: [Published; 6] = of_pairs(
    [
        row("CPU double", 518.0, 0.4),
        row("CPU single", 342.3, 0.7),
        row("GPU naive", 41.0, 5.4),
        row("GPU constant memory", 9.8, 22.8),
        row("GPU + SFU", 2.4, 92.2),
        row("GPU + tuning", 1.5, 144.5),
    ],
    "8.4e11 pairs",
);

const PUBLISHED_Q: [Published; 6] = of_pairs(
    [
        row("CPU double", 4009.0, 0.3),
        row("CPU single", 2678.7, 0.5),
        row("GPU naive", 260.2, 5.1),
        row("GPU constant memory", 72.0, 18.6),
        row("GPU + SFU", 13.6, 98.2),
        row("GPU + tuning", 7.5, 178.9),
    ],
    "6.7e12 pairs",
);

/// Minutes and 10⁹ operations a second, as published.
const fn row(row: &'static str, minutes: f64, gflops: f64) -> Published {
    Published::new(documents::APPLICATION_DEVELOPMENT, row).seconds(60.0 * minutes).rate(1e9 * gflops)
}

/// Rows of as many pairs as minutes and operations a second amount to.
const fn of_pairs(mut rows: [Published; 6], pairs: &'static str) -> [Published; 6] {
    let mut index = 0;
    while index < rows.len() {
        rows[index] = rows[index].measured_at(pairs);
        index += 1;
    }
    rows
}

impl<T: SimdReal> Direct<T> {
    fn double() -> bool {
        size_of::<T>() == 8
    }

    fn problem(&self, matrix: &[usize], samples: usize) -> Problem {
        Problem { operation: self.operation, matrix: matrix.to_vec(), samples, batch: 1 }
    }
}

impl<T: SimdReal> Algorithm for Direct<T> {
    type Problem = Problem;
    type Data = Data<T>;

    fn about(&self) -> About {
        let (name, title) = match (self.operation, Self::double()) {
            (Operation::Q, false) => ("nudft-q", "Kernel Q of the exact normal operator, f32"),
            (Operation::Q, true) => ("nudft-q-f64", "Kernel Q of the exact normal operator, f64"),
            (_, false) => {
                ("nudft-adjoint", "Exact non-uniform Fourier transform of samples to an image, f32")
            }
            (_, true) => {
                ("nudft-adjoint-f64", "Exact non-uniform Fourier transform of samples to an image, f64")
            }
        };
        About { name, title, readme: include_str!("README.md"), unit: Unit::Flops }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        // Q has eight displacements a voxel in three dimensions, four in two.
        let share = if self.operation == Operation::Q { 4 } else { 1 };
        vec![
            Case {
                name: "128x128",
                summary: "small enough for one thread",
                problem: self.problem(&[128, 128], 8192 / share),
            },
            Case {
                name: "64x64x64",
                summary: "a volume: long enough for a GPU's launch not to matter",
                problem: self.problem(&[64, 64, 64], 131_072 / (2 * share)),
            },
            Case {
                name: "128x128x128",
                summary: "the published volume, part of its samples: what the fastest variants are made for",
                problem: self.problem(&[128, 128, 128], 65_536 / (2 * share)),
            },
        ]
    }

    /// On a GPU the smallest case takes as long as its launches, whichever variant runs
    /// (benches/results/2026-11-22-h200/ladders.txt).
    fn default_case(&self, kind: BackendKind) -> Option<&'static str> {
        (kind == BackendKind::Cuda).then_some("64x64x64")
    }

    fn trials(&self) -> Vec<Problem> {
        [(&[7][..], 1), (&[1], 5), (&[5, 8], 31), (&[16, 13], 70), (&[3, 4, 5], 33), (&[6, 9, 17], 40)]
            .map(|(matrix, samples)| self.problem(matrix, samples))
            .to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match size.split_last().filter(|_| size.iter().all(|&n| n > 0)) {
            Some((&samples, matrix)) if (1..=3).contains(&matrix.len()) => {
                // Q has twice the voxels along each axis.
                voxels(&[&[1 << matrix.len()][..], matrix].concat())?;
                voxels(&[samples, matrix.len()])?;
                Ok(self.problem(matrix, samples))
            }
            _ => Err(Error::value(
                format!("size of {}", self.about().name),
                "one to three axes and the number of samples, as in 64x64x64x100000, each at least 1",
                format!("{size:?}"),
            )),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        let to_run = |implementation| match self.operation {
            Operation::Q => Runnable::new(move |config, data: &mut Data<T>| {
                let Data { trajectory, problem, weights, out, .. } = data;
                run_q(&implementation, config, trajectory, Some(&*weights), &problem.matrix, out)
            })
            .host_transfer(|data| {
                Some(HostTransfer { inputs: vec![&mut data.weights], outputs: vec![&mut data.out] })
            }),
            Operation::Forward | Operation::Adjoint => Runnable::new(move |config, data: &mut Data<T>| {
                run_adjoint(&implementation, config, &data.trajectory, &data.samples, &mut data.out)
            })
            .host_transfer(|data| {
                Some(HostTransfer { inputs: vec![&mut data.samples], outputs: vec![&mut data.out] })
            }),
        };
        variants::<T>().into_iter().map(|row| row.run_by(to_run)).collect()
    }

    fn key(&self, problem: &Problem) -> (String, Vec<usize>) {
        ("voxels and samples".to_owned(), [&problem.matrix[..], &[problem.samples]].concat())
    }

    fn counts(&self, problem: &Problem) -> Counts {
        let peak = if Self::double() { Peak::F64 } else { Peak::F32 };
        Counts { peak, flops: Some(problem.flops()), ..Counts::default() }
    }

    fn published(&self) -> &'static [Published] {
        if self.operation == Operation::Q { &PUBLISHED_Q } else { &PUBLISHED_ADJOINT }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let cases = &[("64x64x64", "128x128")];
        let row = PublishedApplication::of_lecture("MRI-FHD", "instruction issue", 8192, [23.0, 23.0], cases);
        (self.operation == Operation::Adjoint && !Self::double()).then_some(row)
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data<T>>> {
        let (kernel, declaration) = match self.operation {
            Operation::Q => ("nudft_q", OWN_Q),
            Operation::Forward | Operation::Adjoint => ("nudft_adjoint", OWN_ADJOINT),
        };
        Some(Signature {
            kernel,
            declaration,
            extent: |p: &Problem| {
                let counts = Data::<T>::grid(p).map(|grid| grid.axes.map(|axis| axis.count));
                counts.map_or([1; 3], |[z, y, x]| [x, y, z])
            },
            defines: |_: &Problem| {
                let [real, pair] = if Self::double() { ["double", "double2"] } else { ["float", "float2"] };
                vec![("REAL", real.to_owned()), ("REAL2", pair.to_owned())]
            },
            call: |data: &mut Data<T>, call| data.called_by(call),
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data<T>> {
        let (samples, matrix) = (problem.samples, &problem.matrix);
        // f32 holds the values, so that one oracle serves both precisions.
        let number = |stream: u64, index: usize| f64::from(signed_unit(seed ^ stream, index));
        let cpu = device.cpu_side();
        let real = <T as Real>::from_f64;
        let d =
            input::filled(cpu, "samples", samples, |m| Complex::new(real(number(2, m)), real(number(3, m))))?;
        let weights = input::filled(cpu, "weights", samples, |m| real(1.0 + 0.5 * number(4, m)))?;
        let shape: Vec<usize> = match self.operation {
            Operation::Q => matrix.iter().map(|n| 2 * n).collect(),
            Operation::Forward | Operation::Adjoint => matrix.clone(),
        };
        Ok(Data {
            trajectory: random_trajectory(cpu, seed, matrix, samples)?,
            problem: problem.clone(),
            samples: Array::from_vec(device, &[samples], d)?,
            weights: Array::from_vec(device, &[samples], weights)?,
            out: Array::zeros(device, &shape)?,
            points: None,
        })
    }

    fn poison(&self, data: &mut Data<T>) -> Result<()> {
        let nan = <T as Real>::from_f64(f64::NAN);
        data.out.fill(Complex::new(nan, nan))
    }

    fn error(&self, problem: &Problem, data: &Data<T>) -> Result<f64> {
        let outputs = data.out.read()?;
        let output = |i: usize| C64::new(Real::to_f64(outputs[i].re), Real::to_f64(outputs[i].im));
        let (trajectory, matrix) = (&data.trajectory, &problem.matrix);
        let len = data.out.len();
        if problem.pairs() <= WHOLE {
            let cpu = data.out.device().cpu_side();
            let expected = match self.operation {
                Operation::Q => {
                    let weights = data.weights.read()?;
                    let wide = input::filled(cpu, "weights", weights.len(), |m| Real::to_f64(weights[m]))?;
                    reference::q(trajectory, matrix, &wide)?
                }
                _ => {
                    let samples = data.samples.read()?;
                    let wide = |m: usize| C64::new(Real::to_f64(samples[m].re), Real::to_f64(samples[m].im));
                    let wide = input::filled(cpu, "samples", samples.len(), wide)?;
                    reference::adjoint(trajectory, matrix, &wide)?
                }
            };
            return Ok(relative(&expected, (0..len).map(output)));
        }
        let indices: Vec<usize> = (0..COMPARED as u64).map(|i| (bits(5, i) % len as u64) as usize).collect();
        let expected = match self.operation {
            Operation::Q => q_at(trajectory, matrix, Some(&data.weights.read()?), &indices)?,
            _ => adjoint_at(trajectory, matrix, &data.samples.read()?, &indices)?,
        };
        Ok(relative(&expected, indices.iter().map(|&index| output(index))))
    }
}

/// Points anywhere in the box −n/2 … n/2 of an image of this matrix. Errors: memory.
pub(crate) fn random_trajectory(
    cpu: &Cpu,
    seed: u64,
    matrix: &[usize],
    samples: usize,
) -> Result<Trajectory> {
    let dims = matrix.len();
    let point = |index: usize| {
        // Component 0 is x, the last axis.
        let (m, dim) = (index / dims, index % dims);
        0.5 * matrix[dims - 1 - dim] as f64 * f64::from(signed_unit(seed ^ 1, m * 3 + dim))
    };
    let points = input::filled(cpu, "trajectory", samples * dims, point)?;
    let points = Array2::from_shape_vec((samples, dims), points);
    Trajectory::from_cycles_per_fov(points.map_err(|e| Error::value("trajectory", "whole points", e))?)
}

/// ‖found − expected‖ / ‖expected‖, infinite for NaN.
fn relative(expected: &[C64], computed: impl Iterator<Item = C64>) -> f64 {
    let wrong: f64 = expected.iter().zip(computed).map(|(e, f)| (e - f).norm_sqr()).sum();
    let whole: f64 = expected.iter().map(|e| e.norm_sqr()).sum();
    let error = (wrong / whole).sqrt();
    if error.is_nan() { f64::INFINITY } else { error }
}
