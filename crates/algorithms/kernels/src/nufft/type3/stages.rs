//! The extents of both sets of points, and the grids and kernels for them.

use rayspin_core::{Error, Real, Result};

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
pub(super) type CostModel = fn(&[usize], f64, usize, usize) -> f64;

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

/// What the first stage knows of an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    /// The centre x_c of the positions.
    pub(super) x_centre: f64,
    /// The centre s_c of the frequencies.
    pub(super) s_centre: f64,
    /// The spacing h of the grid.
    pub(super) spacing: f64,
    /// Cells of the grid.
    pub(super) cells: usize,
}

impl Extent {
    /// The extent of numbers from `least` to `most`.
    pub(super) fn new(least: f64, most: f64) -> Self {
        let centre = 0.5 * least + 0.5 * most;
        Self { centre, half: (most - centre).max(centre - least) }
    }
}

impl Stages {
    /// The upsamplings of least `cost`, and the kernels that keep each stage's error to the tolerance.
    pub(super) fn choose<R: Real>(options: &Options, size: Size<'_>, cost: CostModel) -> Result<Self> {
        options.upsampling.map_or(Ok(()), check_upsampling)?;
        let best = |tolerance: f64| -> Result<Option<Self>> {
            let mut best: Option<(f64, Self)> = None;
            for &upsampling in options.upsampling.as_ref().map_or(&UPSAMPLINGS[..], std::slice::from_ref) {
                if let Some((total, stages)) =
                    Self::cheapest::<R>(tolerance, options, upsampling, size, cost)?
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
        size: Size<'_>,
        cost: CostModel,
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

    /// The place δ of the centre of the positions, in cells from the grid's middle. It lies where no edge of
    /// its footprint meets a cell: the kernel's small step there counts most at cells, and positions may all
    /// be the same.
    pub(super) fn shift(&self) -> f64 {
        if self.kernel.width.is_multiple_of(2) { 0.5 } else { 0.0 }
    }

    /// The axes x, y, z of the grid.
    pub(super) fn axes(&self, size: Size<'_>) -> Vec<Axis> {
        let extents = size.x.iter().zip(size.s).zip(self.spacing.iter().zip(self.matrix.iter().rev()));
        let axis = |((x, s), (&spacing, &cells)): ((&Extent, &Extent), _)| Axis {
            x_centre: x.centre,
            s_centre: s.centre,
            spacing,
            cells,
        };
        extents.map(axis).collect()
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
    let mut kernels = Vec::new();
    // As close as for types 1 and 2.
    let mut tolerance = LOOSEST;
    while tolerance >= 2.0 * tightest::<R>() {
        for (first, second) in UPSAMPLINGS.iter().flat_map(|&a| UPSAMPLINGS.map(|b| (a, b))) {
            let Some((kernel, inner)) = outer::<R>(tolerance, first, dims) else { continue };
            let inner = Kernel::for_tolerance(inner, second, dims, <R as Real>::EPSILON.to_f64());
            for kernel in std::iter::once(kernel).chain(inner) {
                if !kernels.contains(&kernel) {
                    kernels.push(kernel);
                }
            }
        }
        tolerance /= 1.05;
    }
    kernels
}
