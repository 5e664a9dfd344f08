use std::sync::{Mutex, PoisonError};

use rayspin_core::{Error, Real, Result, expect_len, expect_shape, voxels};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector::{self, Scalar};
use rayspin_linop::{Across, LinearOp};

use crate::{Step, Watch};

/// Real numbers that a volume and its projections have.
pub trait Positive: Scalar<Real = Self> + Real {}

impl Positive for f32 {}
impl Positive for f64 {}

/// How [`sart`] and [`mlem`] iterate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SartOptions {
    /// Passes over all data.
    pub iterations: usize,
    /// Stop when ‖p − Ax‖ ≤ tolerance · ‖p‖. With 0 all iterations run.
    pub tolerance: f64,
    /// The relaxation ω of [`sart`], above 0 and below 2.
    pub relaxation: f64,
    /// Whether [`sart`] sets negative numbers to 0 after each step.
    pub nonnegative: bool,
}

impl Default for SartOptions {
    /// 20 passes with ω = 1, negative numbers allowed.
    fn default() -> Self {
        Self { iterations: 20, tolerance: 0.0, relaxation: 1.0, nonnegative: false }
    }
}

impl SartOptions {
    fn check(&self, solver: &str) -> Result<()> {
        let Self { tolerance, relaxation, .. } = *self;
        if !(tolerance >= 0.0 && tolerance.is_finite()) {
            return Err(Error::value(format!("tolerance of {solver}"), "0 or more", tolerance));
        }
        if !(relaxation > 0.0 && relaxation < 2.0) {
            return Err(Error::value(format!("relaxation of {solver}"), "above 0 and below 2", relaxation));
        }
        Ok(())
    }
}

/// What [`sart`] or [`mlem`] found.
#[derive(Debug)]
pub struct SartResult<R: Positive> {
    /// x.
    pub solution: Array<R>,
    /// ‖p − Ax‖ / ‖p‖ of every pass. Each subset's residual belongs to the x that the subsets before it left.
    pub residuals: Vec<f64>,
    /// Whether the last residual met the tolerance.
    pub converged: bool,
}

/// A part of the data on one device: A and p.
#[derive(Clone, Copy)]
pub struct Part<'a, R: Positive> {
    /// A, with entries that are not negative.
    pub op: &'a dyn LinearOp<R>,
    /// p, an element of the range of A, on the device on which A is applied.
    pub data: &'a Array<R>,
}

/// A subset of the data: A_s and p_s, as parts on one device or on several ones.
#[derive(Clone)]
pub struct Subset<'a, R: Positive> {
    parts: Vec<Part<'a, R>>,
}

impl<'a, R: Positive> Subset<'a, R> {
    /// A subset on one device.
    pub fn new(op: &'a dyn LinearOp<R>, data: &'a Array<R>) -> Self {
        Self { parts: vec![Part { op, data }] }
    }

    /// A subset whose parts are on several devices. x lives on the first one. Each update copies x to the
    /// others and adds what they make of it ([`Across`]).
    pub fn of_parts(parts: Vec<Part<'a, R>>) -> Self {
        Self { parts }
    }

    fn devices(&self) -> Vec<Device> {
        self.parts.iter().map(|part| part.data.device().clone()).collect()
    }
}

/// Numbers that parts leave at the same time, each its own.
struct PerPart<T>(Vec<Mutex<Option<T>>>);

impl<T> PerPart<T> {
    fn new(parts: usize) -> Self {
        Self((0..parts).map(|_| Mutex::new(None)).collect())
    }

    fn put(&self, part: usize, value: T) {
        if let Some(place) = self.0.get(part) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
    }

    /// What the parts left, in their order.
    fn into_vec(self) -> Vec<T> {
        self.0
            .into_iter()
            .filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }
}

/// Solves A_s x = p_s for all subsets s of the data by simultaneous algebraic reconstruction, one subset
/// after another.
///
/// ```text
/// x ← x + ω C_s A_sᵀ R_s (p_s − A_s x),   R_s = 1/(A_s 1),  C_s = 1/(A_sᵀ 1)
/// ```
///
/// With one subset this is SIRT, which converges for 0 < ω < 2 to a solution of least squares weighted by R.
/// With a subset for each view it is SART. With a number of subsets in between it is OS-SART, which needs
/// fewer passes where every subset meets most elements. Rays that meet nothing and elements that no ray meets
/// do not count.
///
/// The memory holds x, one more array of this size for each subset and for the step, and twice the data.
///
/// Errors: no subsets; shapes; data or a start that are not finite; a relaxation or a tolerance out of range;
/// a residual that leaves the range of the numbers; interruption.
///
/// A. H. Andersen, A. C. Kak, *Simultaneous algebraic reconstruction technique (SART)*, Ultrason Imaging
/// 6:81, 1984; M. Jiang, G. Wang, *Convergence of the simultaneous algebraic reconstruction technique*, IEEE
/// Trans Image Process 12:957, 2003.
///
/// ```
/// use rayspin_core::{Detector, Monitor, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::{LinearOp, Projection};
/// use rayspin_solve::{SartOptions, Subset, sart};
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 1, columns: 12, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let geometry = ProjectionGeometry::orbit(detector, &Orbit::default().arc(0.0, std::f64::consts::PI, 20))?;
/// let grid = VolumeGrid::new([1, 8, 8], [1.0; 3], [0.0; 3])?;
/// let project = Projection::<f32>::new(&device, &geometry, &grid)?;
/// let truth = Array::from_vec(&device, &[1, 8, 8], (0..64).map(|i| 0.01 * (i % 5) as f32).collect())?;
/// let lines = project.forward(&truth)?;
/// let options = SartOptions { iterations: 100, ..SartOptions::default() };
/// let found = sart(&[Subset::new(&project, &lines)], None, &options, &Monitor::silent())?;
/// assert!(found.residuals.last() < Some(&0.02));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn sart<'w, R: Positive>(
    subsets: &[Subset<'_, R>],
    start: Option<&Array<R>>,
    options: &SartOptions,
    watch: impl Into<Watch<'w, R>>,
) -> Result<SartResult<R>> {
    let mut state = State::new("SART", subsets, start, options, watch.into())?;
    let domain = subsets[0].parts[0].op.domain().to_vec();
    let across = Across::new(&subsets[0].devices(), &domain)?;
    let device = state.x.device().clone();
    let mut ones = Array::zeros(&device, &domain)?;
    ones.fill(R::one())?;
    let mut weights = Vec::with_capacity(subsets.len());
    for Subset { parts } in subsets {
        let (rows, mut columns) = (PerPart::new(parts.len()), Array::zeros(&device, &domain)?);
        across.sum(&ones, &mut columns, |index, ones, columns| {
            let Part { op, data } = parts[index];
            let mut lengths = op.forward(ones)?;
            invert(&mut lengths)?;
            rows.put(index, lengths);
            let mut along = Array::zeros(data.device(), op.range())?;
            along.fill(R::one())?;
            op.adjoint_into(&along, columns)
        })?;
        invert(&mut columns)?;
        weights.push((rows.into_vec(), columns));
    }
    let mut step = ones;
    while state.goes_on() {
        for (Subset { parts }, (rows, columns)) in subsets.iter().zip(&weights) {
            let squares = PerPart::new(parts.len());
            across.sum(&state.x, &mut step, |index, x, step| {
                let Part { op, data } = parts[index];
                let mut residual = op.forward(x)?;
                vector::xpby(data, (-1.0).into(), &mut residual)?;
                squares.put(index, vector::norm_squared(&residual)?);
                let mut weighted = Array::zeros(data.device(), op.range())?;
                vector::multiply(&rows[index], &residual, &mut weighted)?;
                op.adjoint_into(&weighted, step)
            })?;
            state.squares += squares.into_vec().into_iter().sum::<f64>();
            let mut scaled = Array::zeros(&device, &domain)?;
            vector::multiply(columns, &step, &mut scaled)?;
            vector::axpy(options.relaxation.into(), &scaled, &mut state.x)?;
            if options.nonnegative {
                vector::cut_negative(&mut state.x)?;
            }
        }
        state.pass()?;
    }
    Ok(state.into_result())
}

/// Minimises the Kullback–Leibler distance of Ax from p by expectation maximisation, for data that are not
/// negative:
///
/// ```text
/// x ← x / (Aᵀ1) ⊙ Aᵀ(p / (Ax))
/// ```
///
/// No element of x changes its sign. So a positive start, 1 by default, gives a solution without negative
/// numbers. Negative data count as 0. The memory holds three arrays of the size of x, and twice the data.
///
/// Errors: as [`sart`]; a start with negative numbers.
///
/// L. A. Shepp, Y. Vardi, *Maximum likelihood reconstruction for emission tomography*, IEEE Trans Med Imaging
/// 1:113, 1982.
///
/// ```
/// use rayspin_core::{Detector, Monitor, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::{LinearOp, Projection};
/// use rayspin_solve::{SartOptions, Subset, mlem};
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 1, columns: 12, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let geometry = ProjectionGeometry::orbit(detector, &Orbit::default().arc(0.0, std::f64::consts::PI, 20))?;
/// let project = Projection::<f32>::new(&device, &geometry, &VolumeGrid::new([1, 8, 8], [1.0; 3], [0.0; 3])?)?;
/// let truth = Array::from_vec(&device, &[1, 8, 8], (0..64).map(|i| 0.01 * (i % 5) as f32).collect())?;
/// let lines = project.forward(&truth)?;
/// let options = SartOptions { iterations: 200, ..SartOptions::default() };
/// let found = mlem(&Subset::new(&project, &lines), None, &options, &Monitor::silent())?;
/// assert!(found.residuals.last() < Some(&0.05));
/// assert!(found.solution.to_vec()?.iter().all(|v| *v >= 0.0));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn mlem<'w, R: Positive>(
    data: &Subset<'_, R>,
    start: Option<&Array<R>>,
    options: &SartOptions,
    watch: impl Into<Watch<'w, R>>,
) -> Result<SartResult<R>> {
    let mut state = State::new("MLEM", std::slice::from_ref(data), start, options, watch.into())?;
    if start.is_none() {
        state.x.fill(R::one())?;
    } else if state.x.read()?.iter().any(|value| *value < R::zero()) {
        return Err(Error::value("start of MLEM", "numbers that are not negative", "a negative one"));
    }
    let parts = &data.parts;
    let domain = parts[0].op.domain().to_vec();
    let across = Across::new(&data.devices(), &domain)?;
    let device = state.x.device().clone();
    let (counts, mut columns) = (PerPart::new(parts.len()), Array::zeros(&device, &domain)?);
    let mut step = Array::zeros(&device, &domain)?;
    across.sum(&step, &mut columns, |index, _, columns| {
        let Part { op, data } = parts[index];
        let mut own = data.try_clone()?;
        vector::cut_negative(&mut own)?;
        counts.put(index, own);
        let mut along = Array::zeros(data.device(), op.range())?;
        along.fill(R::one())?;
        op.adjoint_into(&along, columns)
    })?;
    invert(&mut columns)?;
    let counts = counts.into_vec();
    while state.goes_on() {
        let squares = PerPart::new(parts.len());
        across.sum(&state.x, &mut step, |index, x, step| {
            let Part { op, data } = parts[index];
            let mut seen = op.forward(x)?;
            let mut ratio = Array::zeros(data.device(), op.range())?;
            vector::divide(&counts[index], &seen, &mut ratio)?;
            vector::xpby(data, (-1.0).into(), &mut seen)?;
            squares.put(index, vector::norm_squared(&seen)?);
            drop(seen);
            op.adjoint_into(&ratio, step)
        })?;
        state.squares += squares.into_vec().into_iter().sum::<f64>();
        let mut scaled = Array::zeros(&device, &domain)?;
        vector::multiply(&columns, &step, &mut scaled)?;
        vector::multiply(&scaled, &state.x, &mut step)?;
        std::mem::swap(&mut state.x, &mut step);
        state.pass()?;
    }
    Ok(state.into_result())
}

/// A sum of weights below this part of the largest sum counts as 0: the ray and the element only touch at a
/// corner.
const TOUCHING: f64 = 1e-6;

/// x ← 1/x, or 0 where x is 0 or nearly so.
fn invert<R: Positive>(x: &mut Array<R>) -> Result<()> {
    x.update(|values| {
        let most = values.iter().fold(0.0, |most: f64, value| most.max(Real::to_f64(*value)));
        for value in values {
            let wide = Real::to_f64(*value);
            *value = if wide > TOUCHING * most { <R as Real>::from_f64(1.0 / wide) } else { R::zero() };
        }
    })
}

/// x, and how well it explains the data.
struct State<'w, R: Positive> {
    solver: &'static str,
    options: SartOptions,
    x: Array<R>,
    /// ‖p‖.
    size: f64,
    /// Σ ‖p_s − A_s x‖² of this pass.
    squares: f64,
    residuals: Vec<f64>,
    watch: Watch<'w, R>,
}

impl<'w, R: Positive> State<'w, R> {
    fn new(
        solver: &'static str,
        subsets: &[Subset<'_, R>],
        start: Option<&Array<R>>,
        options: &SartOptions,
        watch: Watch<'w, R>,
    ) -> Result<Self> {
        options.check(solver)?;
        let Some(first) = subsets.first().and_then(|subset| subset.parts.first()) else {
            return Err(Error::value(format!("subsets of {solver}"), "at least one", "none"));
        };
        let (domain, devices) = (first.op.domain(), subsets[0].devices());
        voxels(domain)?;
        let mut size = 0.0;
        for subset in subsets {
            expect_len(&format!("parts of a subset of {solver}"), &[devices.len()], subset.parts.len())?;
            for (Part { op, data }, device) in subset.parts.iter().zip(&devices) {
                let what = |part: &str| format!("{solver} on {}: {part}", op.name());
                expect_shape(&what("domain"), domain, op.domain())?;
                expect_shape(&what("data"), op.range(), data.shape())?;
                if !data.device().same_as(device) {
                    return Err(Error::value(what("device"), device.name(), data.device().name()));
                }
                vector::expect_finite(&what("data"), data)?;
                size += vector::norm_squared(data)?;
            }
        }
        let x = match start {
            Some(start) => {
                expect_shape(&format!("{solver}: start"), domain, start.shape())?;
                vector::expect_finite(&format!("start of {solver}"), start)?;
                start.try_clone()?
            }
            None => Array::zeros(first.data.device(), domain)?,
        };
        Ok(Self {
            solver,
            options: *options,
            x,
            size: size.sqrt(),
            squares: 0.0,
            residuals: Vec::new(),
            watch,
        })
    }

    fn converged(&self) -> bool {
        self.residuals.last().is_some_and(|residual| *residual <= self.options.tolerance)
    }

    fn goes_on(&self) -> bool {
        self.residuals.len() < self.options.iterations && !self.converged()
    }

    /// Ends a pass.
    fn pass(&mut self) -> Result<()> {
        let residual = if self.size > 0.0 { self.squares.sqrt() / self.size } else { self.squares.sqrt() };
        let iteration = self.residuals.len() + 1;
        if !residual.is_finite() {
            return Err(Error::Numerical {
                what: self.solver.into(),
                detail: format!("the residual became {residual} at iteration {iteration}"),
            });
        }
        self.squares = 0.0;
        self.residuals.push(residual);
        let step = Step { iteration, residual, solution: &self.x };
        self.watch.step(&step, &format!("residual {residual:.3e}"))
    }

    fn into_result(self) -> SartResult<R> {
        let converged = self.converged();
        SartResult { solution: self.x, residuals: self.residuals, converged }
    }
}
