//! The extents of both sets of points, and the grids and kernels for them.

use ndarray::{Array2, ArrayView2};
use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{C64, Error, Real, Result, Trajectory};
use rayspin_device::Cpu;

use crate::fft::cuda::line::LONGEST;
use crate::nufft::kernel::Kernel;
use crate::nufft::layout::{Layout, smooth_size};
use crate::nufft::{LOOSEST, Options, UPSAMPLINGS, check_upsampling, tightest};

/// Middle and half-width of the points along a component.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    centre: f64,
    half: f64,
}

/// The number of points on either side, and their extents.
#[derive(Clone, Copy)]
pub(super) struct Size<'a> {
    pub(super) x: &'a [Extent],
    pub(super) s: &'a [Extent],
    pub(super) positions: usize,
    pub(super) frequencies: usize,
}

/// The cost of a type 2 with a matrix, an upsampling, a width and a number of samples, on a processor.
pub(super) type Cost = fn(&[usize], f64, usize, usize) -> f64;

/// The factors of values at the points.
pub(super) struct Factors<R> {
    /// e^{−i2πs_c·x_k}, s_c the centre of the frequencies.
    pub(super) before: Vec<Complex<R>>,
    /// e^{−i2π(s_j − s_c)·(x_c − hδ)} / φ̂(h(s_j − s_c)), x_c the centre of the positions, h the grid's
    /// spacing, δ the place of the centre from the grid's middle, in cells.
    pub(super) after: Vec<Complex<R>>,
}

/// The kernels and upsamplings of both stages, and the grid between them.
pub(super) struct Stages {
    pub(super) kernel: Kernel,
    /// The shape of the grid, in C order.
    pub(super) matrix: Vec<usize>,
    /// The spacing of the grid along x, y, z.
    spacing: Vec<f64>,
    pub(super) inner: Kernel,
    pub(super) inner_upsampling: f64,
}

/// Middle and half-width along each component. Errors: as [`super::Type3::new`].
pub(super) fn extents(what: &str, points: ArrayView2<'_, f64>) -> Result<Vec<Extent>> {
    let (count, dims) = points.dim();
    if count == 0 || !(1..=3).contains(&dims) {
        return Err(Error::Shape {
            what: what.into(),
            expected: "[at least 1, 1 to 3]".into(),
            found: rayspin_core::format_shape(points.shape()),
        });
    }
    if let Some((index, value)) = points.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(Error::NotFinite { what: what.into(), index, found: value.to_string() });
    }
    let extent = |column: ndarray::ArrayView1<'_, f64>| {
        let least = column.iter().copied().fold(f64::INFINITY, f64::min);
        let most = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let centre = 0.5 * least + 0.5 * most;
        Extent { centre, half: (most - centre).max(centre - least) }
    };
    Ok(points.columns().into_iter().map(extent).collect())
}

impl Stages {
    /// The upsamplings of least `cost`, and the kernels that keep each stage's error to the tolerance.
    pub(super) fn choose<R: Real>(options: &Options, size: Size<'_>, cost: Cost) -> Result<Self> {
        options.upsampling.map_or(Ok(()), check_upsampling)?;
        let best = |tolerance: f64| -> Result<Option<Self>> {
            let mut best: Option<(f64, Self)> = None;
            for &upsampling in options.upsampling.as_ref().map_or(&UPSAMPLINGS[..], std::slice::from_ref) {
                if let Some((total, stages)) =
                    Self::cheapest::<R>(tolerance, options, upsampling, (size, cost))?
                    && best.as_ref().is_none_or(|(least, _)| total < *least)
                {
                    best = Some((total, stages));
                }
            }
            Ok(best.map(|(_, stages)| stages))
        };
        // Each of the two stages rounds.
        let tightest = 2.0 * tightest::<R>();
        let accepted = options.tolerance >= tightest && options.tolerance <= LOOSEST;
        if accepted && let Some(stages) = best(options.tolerance)? {
            return Ok(stages);
        }
        let mut least = tightest;
        while least < LOOSEST && best(least)?.is_none() {
            least *= 1.1;
        }
        Err(Error::value(
            format!("type 3 NUFFT tolerance in {} and {} dimensions", R::NAME, size.x.len()),
            format!("{least:.1e} to {LOOSEST}"),
            options.tolerance,
        ))
    }

    /// The cheapest second stage for a first stage with the given upsampling, and the cost of both. `None` if
    /// rounding forbids it.
    fn cheapest<R: Real>(
        tolerance: f64,
        options: &Options,
        upsampling: f64,
        (size, cost): (Size<'_>, Cost),
    ) -> Result<Option<(f64, Self)>> {
        let Size { x, s, positions, frequencies } = size;
        let dims = x.len();
        let Some((kernel, inner_tolerance)) = outer::<R>(tolerance, upsampling, dims) else {
            return Ok(None);
        };
        let (mut matrix, mut spacing) = (Vec::new(), Vec::new());
        for (x, s) in x.iter().zip(s) {
            // The largest spacing for which every frequency is a kept mode, with a bound for frequencies that
            // are all the same.
            let h = (0.5 / (upsampling * s.half)).min(1e300);
            let half = x.half / h + 0.5 * kernel.width as f64 + 1.0;
            if half.is_nan() || half >= f64::from(1 << 28) {
                return Err(Error::value(
                    "type 3 NUFFT, half-width of the positions times that of the frequencies",
                    "less than 2^26",
                    x.half * s.half,
                ));
            }
            // No smaller than the layout would make it: both number the same cells.
            matrix.push(smooth_size((2 * half.ceil() as usize).max(2 * kernel.width)));
            spacing.push(h);
        }
        matrix.reverse();
        let outer_cost = cost(&matrix, 1.0, kernel.width, positions);
        let mut best: Option<(f64, Self)> = None;
        for &second in options.upsampling.as_ref().map_or(&UPSAMPLINGS[..], std::slice::from_ref) {
            let Ok(inner) =
                Kernel::for_tolerance(inner_tolerance, second, dims, <R as Real>::EPSILON.to_f64())
            else {
                continue;
            };
            let total = outer_cost + cost(&matrix, second, inner.width, frequencies);
            if best.as_ref().is_none_or(|(least, _)| total < *least) {
                let (matrix, spacing) = (matrix.clone(), spacing.clone());
                let stages = Self { kernel, matrix, spacing, inner, inner_upsampling: second };
                best = Some((total, stages));
            }
        }
        Ok(best)
    }

    /// Whether a GPU's Fourier transforms reach the second stage's grid.
    pub(super) fn suit_a_gpu<R: Real>(&self) -> bool {
        Layout::new::<R>(&self.matrix, self.inner_upsampling, &self.inner).is_ok_and(|layout| {
            layout.fine.iter().all(|&n| n <= LONGEST) && layout.cells() <= u32::MAX as usize
        })
    }

    /// The centre of the positions, in cells from the grid's middle. It lies where no edge of its footprint
    /// meets a cell: the kernel's small step there counts most at cells, and positions may all be the same.
    fn shift(&self) -> f64 {
        if self.kernel.width.is_multiple_of(2) { 0.5 } else { 0.0 }
    }

    /// The positions in cells of the grid.
    pub(super) fn cells(&self, positions: ArrayView2<'_, f64>, size: Size<'_>) -> Result<Trajectory> {
        let (x, matrix) = (size.x, &self.matrix);
        Trajectory::from_cycles_per_fov(Array2::from_shape_fn(positions.raw_dim(), |(k, d)| {
            (positions[[k, d]] - x[d].centre) / self.spacing[d]
                + self.shift()
                + (matrix[x.len() - 1 - d] / 2) as f64
        }))
    }

    /// The frequencies in cycles per extent of the grid.
    pub(super) fn cycles(&self, frequencies: ArrayView2<'_, f64>, size: Size<'_>) -> Result<Trajectory> {
        let (s, matrix) = (size.s, &self.matrix);
        Trajectory::from_cycles_per_fov(Array2::from_shape_fn(frequencies.raw_dim(), |(j, d)| {
            (frequencies[[j, d]] - s[d].centre) * self.spacing[d] * matrix[s.len() - 1 - d] as f64
        }))
    }

    /// The factors of values at the positions and at the frequencies.
    pub(super) fn factors<R: Real>(
        &self,
        cpu: &Cpu,
        positions: ArrayView2<'_, f64>,
        frequencies: ArrayView2<'_, f64>,
        Size { x, s, .. }: Size<'_>,
    ) -> Factors<R> {
        let phase = |turns: f64, scale: f64| {
            let value = C64::cis(-std::f64::consts::TAU * turns) * scale;
            Complex::new(<R as Real>::from_f64(value.re), <R as Real>::from_f64(value.im))
        };
        let before = |k: usize| phase((0..x.len()).map(|d| turns(s[d].centre, positions[[k, d]])).sum(), 1.0);
        let after = |j: usize| {
            let (mut sum, mut scale) = (0.0, 1.0);
            for d in 0..x.len() {
                let frequency = frequencies[[j, d]];
                // These products are exact, but the difference of frequencies is not.
                sum += turns(frequency, x[d].centre) - turns(s[d].centre, x[d].centre);
                let cycles = (frequency - s[d].centre) * self.spacing[d];
                sum -= cycles * self.shift();
                scale /= self.kernel.fourier(cycles);
            }
            phase(sum, scale)
        };
        cpu.run(|| Factors {
            before: (0..positions.nrows()).into_par_iter().map(before).collect(),
            after: (0..frequencies.nrows()).into_par_iter().map(after).collect(),
        })
    }
}

/// The first stage's kernel, and the second stage's tolerance. `None` if rounding forbids the tolerance.
fn outer<R: Real>(tolerance: f64, upsampling: f64, dims: usize) -> Option<(Kernel, f64)> {
    // Frequencies may all lie at the edge of the kept modes, where aliasing is 2 to 4 times its mean over
    // them.
    let tolerance = 0.5 * tolerance;
    let kernel = Kernel::for_tolerance(tolerance, upsampling, dims, <R as Real>::EPSILON.to_f64()).ok()?;
    // The second stage's error is spread evenly over the frequencies and divided by φ̂, as rounding is.
    Some((kernel, tolerance / kernel.rounding(upsampling, dims, 1.0)))
}

/// Every kernel that a tolerance can lead to with chosen upsamplings, in either stage.
pub(in crate::nufft) fn windows<R: Real>(dims: usize) -> Vec<Kernel> {
    let mut all = Vec::new();
    // As close as for types 1 and 2.
    let mut tolerance = LOOSEST;
    while tolerance >= 2.0 * tightest::<R>() {
        for (first, second) in UPSAMPLINGS.iter().flat_map(|&a| UPSAMPLINGS.map(|b| (a, b))) {
            let Some((kernel, inner)) = outer::<R>(tolerance, first, dims) else { continue };
            let inner = Kernel::for_tolerance(inner, second, dims, <R as Real>::EPSILON.to_f64());
            for kernel in std::iter::once(kernel).chain(inner) {
                if !all.contains(&kernel) {
                    all.push(kernel);
                }
            }
        }
        tolerance /= 1.05;
    }
    all
}

/// The product ab minus a whole number, exact up to the last rounding for any size of the product.
fn turns(a: f64, b: f64) -> f64 {
    let product = a * b;
    (product - product.round()) + a.mul_add(b, -product)
}
