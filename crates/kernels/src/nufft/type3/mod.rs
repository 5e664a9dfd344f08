//! Type 3: from points anywhere to points anywhere.

pub mod reference;
#[cfg(test)]
mod tests;

use ndarray::{Array2, ArrayView2};
use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{C64, Error, Real, Result, Trajectory, expect_shape};
use rayspin_device::cpu::Stop;
use rayspin_device::{Array, Cpu, Device};

use super::cpu::group::{self, Kernels, items};
use super::cpu::points::Points;
use super::cpu::{Fine, Gridding, Weights, simd};
use super::kernel::Kernel;
use super::layout::{Layout, smooth_size};
use super::{Nufft, Options, UPSAMPLINGS, check_memory, check_upsampling, cost, tightest};
use crate::concrete::{other_type, same_mut, same_ref};
use crate::workspace::WorkspaceCache;

/// Forward: s\[j\] = Σ_k f\[k\] e^{−i2πs_j·x_k}. Adjoint: f\[k\] = Σ_j s\[j\] e^{+i2πs_j·x_k}. Positions x_k and frequencies
/// s_j may lie anywhere, in 1 to 3 dimensions, and their units are each other's inverse. Neither is scaled.
///
/// Values are spread to a grid of spacing 1/2σS, where S is the half-width of the frequencies. A type 2 takes the grid to
/// the frequencies, and the results are divided by the kernel's Fourier transform. Time and memory grow with the number of
/// grid cells, Π (4σS_dX_d + W), where X is the half-width of the positions. Centres cost nothing, however far from zero.
/// For random values the relative l2 error is near or below the tolerance, 2e-6 … 0.1 in f32 and 2e-13 … 0.1 in f64. The two
/// directions are each other's adjoint to rounding.
///
/// Sources: Lee & Greengard, J. Comput. Phys. 206 (2005) 1; Barnett, Magland & af Klinteberg, SIAM J. Sci. Comput. 41
/// (2019) C479, § 3.3.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nufft::{Options, Type3};
///
/// let device = Device::cpu()?;
/// let (positions, frequencies) = (array![[0.0], [0.25]], array![[1.0], [0.0]]);
/// let options = Options::tolerance(1e-5);
/// let plan = Type3::<f32>::new(&device, positions.view(), frequencies.view(), &options)?;
/// let values = Array::from_vec(&device, &[2], vec![C32::ONE; 2])?;
/// let mut out = Array::zeros(&device, &[2])?;
/// plan.forward(&values, &mut out)?;
/// // 1 + e^{−i2π/4}, and 1 + 1.
/// let found = out.to_vec()?;
/// assert!((found[0] - C32::new(1.0, -1.0)).norm() < 1e-4 && (found[1].re - 2.0).abs() < 1e-4);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Type3<R: Real> {
    device: Device,
    positions: usize,
    frequencies: usize,
    gridding: Gridding<R>,
    transform: Nufft<R>,
    /// e^{−i2πs_c·x_k}, s_c the centre of the frequencies.
    before: Vec<Complex<R>>,
    /// e^{−i2π(s_j − s_c)·(x_c − hδ)} / φ̂(h(s_j − s_c)), x_c the centre of the positions, h the grid's spacing, δ the
    /// place of the centre from the grid's middle, in cells.
    after: Vec<Complex<R>>,
    workspace: WorkspaceCache<Workspace<R>>,
}

/// The workspace: grids of a few items, halos for spreading, and input values.
#[derive(Debug)]
struct Workspace<R: Real> {
    items: usize,
    grids: Array<Complex<R>>,
    halo: Array<Complex<R>>,
    values: Array<Complex<R>>,
    /// Values at the positions of several items, `[position, item]`.
    interleaved: Array<Complex<R>>,
}

/// Middle and half-width of the points along a component.
#[derive(Debug, Clone, Copy)]
struct Extent {
    centre: f64,
    half: f64,
}

/// The number of points on either side, and their extents.
#[derive(Clone, Copy)]
struct Size<'a> {
    x: &'a [Extent],
    s: &'a [Extent],
    positions: usize,
    frequencies: usize,
}

/// The kernels and upsamplings of both stages, and the grid between them.
struct Stages {
    kernel: Kernel,
    /// The shape of the grid, in C order.
    matrix: Vec<usize>,
    /// The spacing of the grid along x, y, z.
    spacing: Vec<f64>,
    inner: Kernel,
    inner_upsampling: f64,
}

impl<R: Real> Type3<R> {
    /// Plans transforms from `positions` `[position, dim]` to `frequencies` `[frequency, dim]`, components x, y, z.
    ///
    /// Errors: no points; dimensions that differ or are not 1 to 3; points that are not finite; a tolerance or upsampling
    /// out of range; extents whose product needs more memory than there is.
    pub fn new(
        device: &Device,
        positions: ArrayView2<'_, f64>,
        frequencies: ArrayView2<'_, f64>,
        options: &Options,
    ) -> Result<Self> {
        let (x, s) = (extents("positions", positions)?, extents("frequencies", frequencies)?);
        expect_shape("frequencies", &[frequencies.nrows(), x.len()], frequencies.shape())?;
        let size = Size { x: &x, s: &s, positions: positions.nrows(), frequencies: frequencies.nrows() };
        let stages = Stages::choose::<R>(options, size)?;
        let Stages { kernel, matrix, spacing, .. } = &stages;
        let layout = Layout::new::<R>(matrix, 1.0, kernel)?;
        debug_assert_eq!(layout.fine[layout.outer()..], matrix[..]);
        check_memory::<R>(&layout, positions.nrows())?;
        // The centre lies where no edge of its footprint meets a cell: the kernel's small step there counts most at cells,
        // and positions may all be the same.
        let shift = if kernel.width.is_multiple_of(2) { 0.5 } else { 0.0 };
        let cells = Array2::from_shape_fn(positions.raw_dim(), |(k, d)| {
            (positions[[k, d]] - x[d].centre) / spacing[d] + shift + (matrix[x.len() - 1 - d] / 2) as f64
        });
        let cycles = Array2::from_shape_fn(frequencies.raw_dim(), |(j, d)| {
            (frequencies[[j, d]] - s[d].centre) * spacing[d] * matrix[x.len() - 1 - d] as f64
        });
        let (cells, cycles) =
            (Trajectory::from_cycles_per_fov(cells)?, Trajectory::from_cycles_per_fov(cycles)?);
        let transform =
            Nufft::with_kernel(&device.host(), &cycles, matrix, stages.inner_upsampling, stages.inner)?;
        let cpu = device.cpu_side();
        let weights = Weights::new(x.len(), &kernel.polynomials());
        let mut points = Points::new();
        cpu.run(|| points.sort(cpu.level(), &layout, &(&cells).into(), matrix))?;
        let phase = |turns: f64, scale: f64| {
            let value = C64::cis(-std::f64::consts::TAU * turns) * scale;
            Complex::new(<R as Real>::from_f64(value.re), <R as Real>::from_f64(value.im))
        };
        let before = cpu.run(|| {
            let each =
                |k: usize| phase((0..x.len()).map(|d| turns(s[d].centre, positions[[k, d]])).sum(), 1.0);
            (0..positions.nrows()).into_par_iter().map(each).collect()
        });
        let after = cpu.run(|| {
            let each = |j: usize| {
                let (mut sum, mut scale) = (0.0, 1.0);
                for d in 0..x.len() {
                    let frequency = frequencies[[j, d]];
                    // These products are exact, but the difference of frequencies is not.
                    sum += turns(frequency, x[d].centre) - turns(s[d].centre, x[d].centre);
                    let cycles = (frequency - s[d].centre) * spacing[d];
                    sum -= cycles * shift;
                    scale /= kernel.fourier(cycles);
                }
                phase(sum, scale)
            };
            (0..frequencies.nrows()).into_par_iter().map(each).collect()
        });
        Ok(Self {
            device: device.clone(),
            positions: positions.nrows(),
            frequencies: frequencies.nrows(),
            gridding: Gridding::new(layout, points, weights),
            transform,
            before,
            after,
            workspace: WorkspaceCache::default(),
        })
    }

    /// Positions → frequencies, e^{−i2πs·x}: `values` is `[batch.., position]`, `out` `[batch.., frequency]`, overwritten.
    ///
    /// Errors: shapes that do not match, arrays of another device, or no memory for the grids.
    pub fn forward(&self, values: &Array<Complex<R>>, out: &mut Array<Complex<R>>) -> Result<()> {
        self.check(values, out)?;
        if let (Some(plan), Some(values), Some(out)) = (same_ref(self), same_ref(values), same_mut(out)) {
            forward_f32(plan, values, out)
        } else if let (Some(plan), Some(values), Some(out)) =
            (same_ref(self), same_ref(values), same_mut(out))
        {
            forward_f64(plan, values, out)
        } else {
            Err(other_type::<R>())
        }
    }

    /// Frequencies → positions, e^{+i2πs·x}, the adjoint of [`Type3::forward`]: `values` is `[batch.., frequency]`, `out`
    /// `[batch.., position]`, overwritten.
    ///
    /// Errors: as [`Type3::forward`].
    pub fn adjoint(&self, values: &Array<Complex<R>>, out: &mut Array<Complex<R>>) -> Result<()> {
        self.check(out, values)?;
        if let (Some(plan), Some(values), Some(out)) = (same_ref(self), same_ref(values), same_mut(out)) {
            adjoint_f32(plan, values, out)
        } else if let (Some(plan), Some(values), Some(out)) =
            (same_ref(self), same_ref(values), same_mut(out))
        {
            adjoint_f64(plan, values, out)
        } else {
            Err(other_type::<R>())
        }
    }

    /// Number of positions.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Number of frequencies.
    pub fn frequencies(&self) -> usize {
        self.frequencies
    }

    /// The device of the plan.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Shape of the grid between the two stages, in C order.
    pub fn grid_shape(&self) -> &[usize] {
        self.transform.matrix()
    }

    /// Widths of the two stages' kernels in cells of their grids.
    pub fn widths(&self) -> [usize; 2] {
        [self.gridding.layout.width, self.transform.width()]
    }

    /// Bytes that the plan and its workspace hold while a batch of that many items is transformed.
    pub fn bytes(&self, batch: usize) -> u64 {
        let together = batch.clamp(1, self.together());
        let entering = self.positions.max(self.frequencies) + if together > 1 { self.positions } else { 0 };
        let grids = together * (self.gridding.layout.cells() + entering) + self.gridding.halo_len();
        let values = self.positions + self.frequencies + grids;
        let own = (values * size_of::<Complex<R>>()) as u64 + self.gridding.points.bytes();
        own + self.transform.bytes(together)
    }

    /// Items of a batch that are taken together.
    fn together(&self) -> usize {
        items::<R>(self.grid_shape().len())
    }

    fn check(&self, at_positions: &Array<Complex<R>>, at_frequencies: &Array<Complex<R>>) -> Result<()> {
        const WHAT: &str = "type 3 NUFFT";
        crate::fft::check_device(WHAT, &self.device, at_positions.device())?;
        crate::fft::check_device(WHAT, &self.device, at_frequencies.device())?;
        crate::fft::check_trailing("values at positions", &[self.positions], at_positions.shape())?;
        let shape = at_positions.shape();
        let expected = [&shape[..shape.len() - 1], &[self.frequencies]].concat();
        expect_shape("values at frequencies", &expected, at_frequencies.shape())
    }

    fn forward_items(&self, values: &[Complex<R>], out: &mut [Complex<R>]) -> Result<()> {
        let cpu = self.device.cpu_side();
        let together = self.together();
        let groups = out.chunks_mut(together * self.frequencies);
        for (values, out) in values.chunks(together * self.positions).zip(groups) {
            self.with_workspace(values.len() / self.positions, |work| {
                let weighted = &mut work.values.cpu_mut()[..values.len()];
                multiply(cpu, weighted, Some(values), &self.before, |factor| factor);
                let (grids, halo) = (work.grids.cpu_mut(), work.halo.cpu_mut());
                let each = grids.chunks_exact_mut(self.gridding.layout.cells());
                for (values, grid) in weighted.chunks_exact(self.positions).zip(each) {
                    self.gridding.spread(cpu, values, Fine { grid, halo, add: false }, simd::spread);
                }
                let cells = self.gridding.layout.cells() * (values.len() / self.positions);
                self.transform.on_cpu()?.forward_items(cpu, &grids[..cells], out)?;
                multiply(cpu, out, None, &self.after, |factor| factor);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn adjoint_items(&self, values: &[Complex<R>], out: &mut [Complex<R>]) -> Result<()> {
        let cpu = self.device.cpu_side();
        let kernels = group::kernels(cpu.level(), &self.gridding.weights);
        let together = self.together();
        let groups = out.chunks_mut(together * self.positions);
        for (values, out) in values.chunks(together * self.frequencies).zip(groups) {
            self.with_workspace(values.len() / self.frequencies, |work| {
                let weighted = &mut work.values.cpu_mut()[..values.len()];
                multiply(cpu, weighted, Some(values), &self.after, |factor| factor.conj());
                let cells = self.gridding.layout.cells() * (values.len() / self.frequencies);
                let grids = &mut work.grids.cpu_mut()[..cells];
                self.transform.on_cpu()?.adjoint_items(cpu, weighted, grids)?;
                self.interp(cpu, grids, out, work.interleaved.cpu_mut(), kernels.as_ref());
                multiply(cpu, out, None, &self.before, |factor| factor.conj());
                Stop::of_caller().check()
            })?;
        }
        Ok(())
    }

    fn interp(
        &self,
        cpu: &Cpu,
        grids: &[Complex<R>],
        values: &mut [Complex<R>],
        interleaved: &mut [Complex<R>],
        kernels: Option<&Kernels<R>>,
    ) {
        match kernels {
            Some(kernels) if values.len() == self.together() * self.positions => {
                self.gridding.interp_group(cpu, grids, values, interleaved, kernels);
            }
            _ => {
                let grids = grids.chunks_exact(self.gridding.layout.cells());
                for (values, grid) in values.chunks_exact_mut(self.positions).zip(grids) {
                    self.gridding.interp(cpu, grid, values, simd::interp);
                }
            }
        }
    }

    /// Runs `work` on the plan's workspace for at least `items` items. If another thread uses it, runs `work` on a new one.
    fn with_workspace(&self, items: usize, work: impl FnOnce(&mut Workspace<R>) -> Result<()>) -> Result<()> {
        self.workspace.with(|held| held.items >= items, || self.new_workspace(items), work)
    }

    fn new_workspace(&self, items: usize) -> Result<Workspace<R>> {
        let values = self.positions.max(self.frequencies);
        let host = self.device.host();
        Ok(Workspace {
            items,
            grids: Array::zeros(&host, &[items, self.gridding.layout.cells()])?,
            halo: Array::zeros(&host, &[self.gridding.halo_len()])?,
            values: Array::zeros(&host, &[items, values])?,
            interleaved: Array::zeros(&host, &[if items > 1 { items * self.positions } else { 0 }])?,
        })
    }
}

/// to ← from · factors, item by item. Without `from`, `to` itself is multiplied.
fn multiply<R: Real>(
    cpu: &Cpu,
    to: &mut [Complex<R>],
    from: Option<&[Complex<R>]>,
    factors: &[Complex<R>],
    of: impl Fn(Complex<R>) -> Complex<R> + Sync,
) {
    const RUN: usize = 1 << 14;
    cpu.run(|| {
        for (i, to) in to.chunks_exact_mut(factors.len()).enumerate() {
            let from = from.map(|from| &from[i * factors.len()..]);
            to.par_chunks_mut(RUN).zip(factors.par_chunks(RUN)).enumerate().for_each(|(r, (to, factors))| {
                if let Some(from) = from {
                    to.copy_from_slice(&from[r * RUN..][..to.len()]);
                }
                for (to, &factor) in to.iter_mut().zip(factors) {
                    *to *= of(factor);
                }
            });
        }
    });
}

/// The product ab minus a whole number, exact up to the last rounding for any size of the product.
fn turns(a: f64, b: f64) -> f64 {
    let product = a * b;
    (product - product.round()) + a.mul_add(b, -product)
}

/// Middle and half-width along each component. Errors: as [`Type3::new`].
fn extents(what: &str, points: ArrayView2<'_, f64>) -> Result<Vec<Extent>> {
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
    /// The upsamplings of least cost, by the model of type 2, and the kernels that keep each stage's error to the
    /// tolerance.
    fn choose<R: Real>(options: &Options, size: Size<'_>) -> Result<Self> {
        options.upsampling.map_or(Ok(()), check_upsampling)?;
        let best = |tolerance: f64| -> Result<Option<Self>> {
            let mut best: Option<(f64, Self)> = None;
            for &upsampling in options.upsampling.as_ref().map_or(&UPSAMPLINGS[..], std::slice::from_ref) {
                if let Some((cost, stages)) = Self::cheapest::<R>(tolerance, options, upsampling, size)?
                    && best.as_ref().is_none_or(|(least, _)| cost < *least)
                {
                    best = Some((cost, stages));
                }
            }
            Ok(best.map(|(_, stages)| stages))
        };
        // Each of the two stages rounds.
        let tightest = 2.0 * tightest::<R>();
        let accepted = options.tolerance >= tightest && options.tolerance <= super::LOOSEST;
        if accepted && let Some(stages) = best(options.tolerance)? {
            return Ok(stages);
        }
        let mut least = tightest;
        while least < super::LOOSEST && best(least)?.is_none() {
            least *= 1.1;
        }
        Err(Error::value(
            format!("type 3 NUFFT tolerance in {} and {} dimensions", R::NAME, size.x.len()),
            format!("{least:.1e} to {}", super::LOOSEST),
            options.tolerance,
        ))
    }

    /// The cheapest second stage for a first stage with the given upsampling, and the cost of both. `None` if rounding
    /// forbids it.
    fn cheapest<R: Real>(
        tolerance: f64,
        options: &Options,
        upsampling: f64,
        size: Size<'_>,
    ) -> Result<Option<(f64, Self)>> {
        let Size { x, s, positions, frequencies } = size;
        let dims = x.len();
        let epsilon = <R as Real>::EPSILON.to_f64();
        // Frequencies may all lie at the edge of the kept modes, where aliasing is 2 to 4 times its mean over them.
        let tolerance = 0.5 * tolerance;
        let Ok(kernel) = Kernel::for_tolerance(tolerance, upsampling, dims, epsilon) else {
            return Ok(None);
        };
        // The second stage's error is spread evenly over the frequencies and divided by φ̂, as rounding is.
        let inner_tolerance = tolerance / kernel.rounding(upsampling, dims, 1.0);
        let (mut matrix, mut spacing) = (Vec::new(), Vec::new());
        for (x, s) in x.iter().zip(s) {
            // The largest spacing for which every frequency is a kept mode, with a bound for frequencies that are all the
            // same.
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
        let outer_cost = cost::<R>(&matrix, 1.0, kernel.width, positions);
        let mut best: Option<(f64, Self)> = None;
        for &second in options.upsampling.as_ref().map_or(&UPSAMPLINGS[..], std::slice::from_ref) {
            let Ok(inner) = Kernel::for_tolerance(inner_tolerance, second, dims, epsilon) else {
                continue;
            };
            let cost = outer_cost + cost::<R>(&matrix, second, inner.width, frequencies);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                let (matrix, spacing) = (matrix.clone(), spacing.clone());
                let stages = Self { kernel, matrix, spacing, inner, inner_upsampling: second };
                best = Some((cost, stages));
            }
        }
        Ok(best)
    }
}

macro_rules! compiled_here {
    ($real:ty, $forward:ident, $adjoint:ident) => {
        #[inline(never)]
        fn $forward(
            plan: &Type3<$real>,
            values: &Array<Complex<$real>>,
            out: &mut Array<Complex<$real>>,
        ) -> Result<()> {
            let values = values.read()?;
            out.update(|out| plan.forward_items(&values, out))?
        }

        #[inline(never)]
        fn $adjoint(
            plan: &Type3<$real>,
            values: &Array<Complex<$real>>,
            out: &mut Array<Complex<$real>>,
        ) -> Result<()> {
            let values = values.read()?;
            out.update(|out| plan.adjoint_items(&values, out))?
        }
    };
}

compiled_here!(f32, forward_f32, adjoint_f32);
compiled_here!(f64, forward_f64, adjoint_f64);
