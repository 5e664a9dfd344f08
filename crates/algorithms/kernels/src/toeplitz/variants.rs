//! The table, and the plainer forms: the whole doubled grid in memory.

use rayspin_core::{C32, Result};
use rayspin_device::{BackendKind, Cpu};

use super::cpu::{Convolution, padded_size};
use crate::fft::cpu::{Direction, FftNd, Options, Region};
use crate::variant::{Variant, Work};

/// The sizes of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Shape of one image.
    pub matrix: Vec<usize>,
    /// Number of images.
    pub batch: usize,
}

/// A plan ready to be applied to a batch: `x`, `y` (written).
pub type Apply = Box<dyn Fn(&Cpu, &[C32], &mut [C32]) -> Result<()>>;

/// Entry point of a variant: problem and centred kernel on the doubled grid.
pub type Implementation = fn(&Cpu, &Problem, &[C32]) -> Result<Apply>;

/// Every variant, slowest first; the last is what [`super::Toeplitz`] runs.
pub static VARIANTS: &[Variant<Problem, Implementation>] = &[
    row("padded", BackendKind::Cpu, "full FFTs of the doubled grid", |cpu, problem, q| {
        doubled(cpu, problem, q, false)
    }),
    row(
        "pruned",
        BackendKind::Cpu,
        "FFTs of the doubled grid without the lines that are zero before or cropped after",
        |cpu, problem, q| doubled(cpu, problem, q, true),
    ),
    row(
        "fused",
        BackendKind::Cpu,
        "the first axis padded, transformed, multiplied and cropped within the cache",
        |cpu, problem, q| {
            let convolution = Convolution::new(cpu, &problem.matrix, q)?;
            Ok(Box::new(move |cpu: &Cpu, x: &[C32], y: &mut [C32]| convolution.apply(cpu, x, y)))
        },
    ),
];

const fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: Implementation,
) -> Variant<Problem, Implementation> {
    Variant::new(name, backend, summary, implementation, work).tolerance(TOLERANCE)
}

/// Rounding of two fast transforms of the padded grid and of the spectrum; 1.8e-7 at most was measured.
const TOLERANCE: f64 = 1e-6;

/// Images in and out and the real spectrum once; pruned transforms both ways, one multiplication a grid
/// point.
pub(super) fn work(problem: &Problem) -> Work {
    let padded: Vec<f64> = problem.matrix.iter().map(|&n| padded_size(n) as f64).collect();
    let image: f64 = problem.matrix.iter().map(|&n| n as f64).product();
    let grid: f64 = padded.iter().product();
    let transform: f64 = (0..padded.len())
        .map(|axis| {
            let before: f64 = problem.matrix[..axis].iter().map(|&n| n as f64).product();
            let after: f64 = padded[axis + 1..].iter().product();
            before * after * 5.0 * padded[axis] * padded[axis].max(2.0).log2()
        })
        .sum();
    let batch = problem.batch as f64;
    Work {
        bytes: batch * 2.0 * image * size_of::<C32>() as f64 + grid * size_of::<f32>() as f64,
        flops: batch * (2.0 * transform + 2.0 * grid),
    }
}

fn doubled(cpu: &Cpu, problem: &Problem, q: &[C32], pruned: bool) -> Result<Apply> {
    let matrix = problem.matrix.clone();
    let shape: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let engine = FftNd::<f32>::new(&shape)?;
    let mut grid = vec![C32::new(0.0, 0.0); engine.len()];
    for (flat, value) in q.iter().enumerate() {
        let (mut rest, mut to, mut stride, mut paired) = (flat, 0, 1, true);
        for &n in shape.iter().rev() {
            let i = rest % n;
            rest /= n;
            paired &= i > 0;
            to += (i + n / 2) % n * stride;
            stride *= n;
        }
        if paired {
            grid[to] = *value;
        }
    }
    engine.process(cpu, &mut grid, Direction::Forward)?;
    let scale = 1.0 / engine.len() as f32;
    let spectrum: Vec<f32> = grid.iter().map(|value| value.re * scale).collect();
    let inside = Region::new(&shape, matrix.iter().map(|&n| std::iter::once(0..n).collect()).collect())?;
    let images = inside.flat(0..matrix.len());
    Ok(Box::new(move |cpu, x, y| {
        let mut grid = vec![C32::new(0.0, 0.0); engine.len()];
        let region = pruned.then_some(&inside);
        for (x, y) in x.chunks_exact(images.len()).zip(y.chunks_exact_mut(images.len())) {
            grid.fill(C32::new(0.0, 0.0));
            images.iter().zip(x).for_each(|(&to, value)| grid[to] = *value);
            let forward = Options { nonzero: region, ..Options::new(Direction::Forward) };
            engine.process_with(cpu, &mut grid, &forward)?;
            let factors = grid.iter_mut().zip(&spectrum);
            factors.for_each(|(value, factor)| *value = value.scale(*factor));
            let inverse = Options { wanted: region, ..Options::new(Direction::Inverse) };
            engine.process_with(cpu, &mut grid, &inverse)?;
            images.iter().zip(y).for_each(|(&from, value)| *value = grid[from]);
        }
        Ok(())
    }))
}
