//! Filtered back-projection: parallel, fan and cone beams on a circle.

mod extend;
mod fourier;
mod notes;
mod path;

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};
use std::ops::Range;

use rayon::prelude::*;
use rayspin_core::{Detector, Error, ProjectionGeometry, Result, View, VolumeGrid, expect_len, expect_shape};
use rayspin_device::cpu::zeroed;
use rayspin_device::{Array, BackendKind, Device, HostCopy};
use rayspin_kernels::projection::{Projector, Weighting};
use rayspin_kernels::row_filter::{self, RowFilter, Weights};
use rayspin_kernels::vector;
use rayspin_run::choices;
use serde::{Deserialize, Serialize};

pub use extend::{Ends, Extend};
pub(crate) use extend::{note as extension_note, note_of_truncated};
pub use fourier::FourierBackprojection;
pub(crate) use path::usual as usual_gap;
use path::{Course, Coverage, ViewPosition};

choices! {
    /// The window by which the ramp filter is multiplied, over the frequency f. f = 1 is the highest
    /// frequency.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Window {
        /// 1
        #[default]
        RamLak = "ram-lak", "1: the sharpest and noisiest";
        /// sin(πf/2) / (πf/2)
        SheppLogan = "shepp-logan", "sin(πf/2) / (πf/2)";
        /// cos(πf/2)
        Cosine = "cosine", "cos(πf/2)";
        /// 0.54 + 0.46 cos(πf)
        Hamming = "hamming", "0.54 + 0.46 cos(πf)";
        /// (1 + cos(πf)) / 2
        Hann = "hann", "(1 + cos(πf)) / 2: the smoothest";
    }
}

impl Window {
    /// Its value at a frequency.
    pub fn at(self, f: f64) -> f64 {
        match self {
            Self::RamLak => 1.0,
            Self::SheppLogan if f == 0.0 => 1.0,
            Self::SheppLogan => (FRAC_PI_2 * f).sin() / (FRAC_PI_2 * f),
            Self::Cosine => (FRAC_PI_2 * f).cos(),
            Self::Hamming => 0.54 + 0.46 * (PI * f).cos(),
            Self::Hann => 0.5 + 0.5 * (PI * f).cos(),
        }
    }
}

/// How far the source of a scan turns on its circle around z.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// From the first to the last view, radian; 2π where the circle is closed, at least π where parallel rays
    /// cover half a turn.
    pub span: f64,
}

impl Turn {
    /// The turn that a scan's rays cover.
    ///
    /// Errors: rays that filtered back-projection does not take, such as a path that is no circle around z.
    pub fn of(geometry: &ProjectionGeometry) -> Result<Self> {
        Ok(Self { span: course(geometry)?.1.span })
    }
}

/// The positions of a scan's views and how they cover a turn.
///
/// Errors: as [`path::positions`]; a detector that does not see the axis.
fn course(geometry: &ProjectionGeometry) -> Result<(Vec<ViewPosition>, Course)> {
    let (positions, detector) = (path::positions(geometry)?, geometry.detector());
    for (view, position) in positions.iter().enumerate() {
        let [before, after] = sides(detector, position);
        if before.min(after) <= -0.5 {
            let found =
                format!("the axis at column {before:.1} of 0 to {} in view {view}", detector.columns - 1);
            return Err(Error::value(
                "detector of filtered back-projection",
                "one that sees the axis",
                found,
            ));
        }
    }
    let is_shifted = |position: &ViewPosition| {
        let [before, after] = sides(detector, position);
        before.min(after) < MIDDLE * before.max(after)
    };
    let shifted =
        !positions.is_empty() && positions.iter().all(is_shifted) && is_on_one_side(detector, &positions);
    let course = path::course(&positions, shifted);
    Ok((positions, course))
}

/// Whether the same side of the detector is the shorter one in all views.
fn is_on_one_side(detector: &Detector, positions: &[ViewPosition]) -> bool {
    let before = |position: &ViewPosition| sides(detector, position)[0] < sides(detector, position)[1];
    positions.windows(2).all(|pair| before(&pair[0]) == before(&pair[1]))
}

/// Columns before and after the axis.
fn sides(detector: &Detector, position: &ViewPosition) -> [f64; 2] {
    [position.principal[1], (detector.columns - 1) as f64 - position.principal[1]]
}

impl std::fmt::Display for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}°", self.span.to_degrees())
    }
}

/// The filter of [`FilteredBackprojection`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// The window.
    pub window: Window,
    /// The frequency at which the window ends, above 0 and up to 1, in units of the highest frequency.
    pub cutoff: f64,
    /// How rows go on beyond the detector.
    pub extend: Extend,
}

impl Filter {
    /// The factor of the ramp at a frequency from 0 to 1, in units of the highest frequency. It is 0 above
    /// the cutoff.
    fn at(&self, f: f64) -> f64 {
        if f > self.cutoff { 0.0 } else { self.window.at(f / self.cutoff) }
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self { window: Window::RamLak, cutoff: 1.0, extend: Extend::Auto }
    }
}

/// Filtered back-projection of parallel and fan beams, and the method of Feldkamp, Davis and Kress for cone
/// beams.
///
/// ```text
/// f(x) = Σ_v Δθ_v (R/D) m_v(x)² q_v(row(x), column(x)),   q = ramp ∗ (w cos(ray) p)
/// ```
///
/// R and D are the distances of the source from the axis and from the detector. The magnification is m, and
/// cos(ray) is the cosine of the angle between a ray and the detector's normal. A parallel beam has R/D = m =
/// cos = 1. The angle Δθ_v is the share of view v in the turn: half of the gaps between its direction and the
/// next ones on both sides, shared by the views in this direction. A gap that stands out is the end of a
/// short scan. The weights w of the two rays that measure one line add up to 1:
///
/// - ½ for a full turn, 1 for parallel rays over half a turn, where opposite directions count as one;
/// - Parker's weights for a short scan (D. L. Parker, Med Phys 9:254, 1982);
/// - Wang's weights for a full turn with a detector that is shifted to one side (G. Wang, Med Phys 29:1634,
///   2002). Its rows are continued to the other side.
///
/// If the detector is narrower than the object, rows end inside it. They are continued as the rows of a
/// cylinder before they are filtered ([`Extend`]).
///
/// Voxels beyond [`seen_radius_mm`](Self::seen_radius_mm) lack some of their rays. They are 0.
///
/// The ramp is the one of A. C. Kak, M. Slaney, *Principles of Computerized Tomographic Imaging*, 1988, ch.
/// 3, exact for samples at the pixels. L. A. Feldkamp, L. C. Davis, J. W. Kress, J Opt Soc Am A 1:612, 1984.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_ct::analytic::{Filter, FilteredBackprojection};
/// use rayspin_ct::phantom::{Form, Phantom, Solid};
/// use rayspin_device::{Array, Device};
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 1, columns: 64, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 90);
/// let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
/// let grid = VolumeGrid::new([1, 64, 64], [1.0; 3], [0.0; 3])?;
/// let rod = Phantom::new(vec![Solid::new(Form::Cylinder, [0.0; 3], [20.0, 20.0, 1e3], 0.02)])?;
/// let lines = Array::from_vec(&device, &geometry.shape(), rod.project(device.cpu_side(), &geometry)?)?;
/// let method = FilteredBackprojection::new(&device, &geometry, &grid, Filter::default())?;
/// let slice = method.reconstruct(lines)?.to_host()?;
/// assert!((slice[[0, 32, 32]] - 0.02).abs() < 2e-4);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct FilteredBackprojection {
    device: Device,
    measured: ProjectionGeometry,
    widened: ProjectionGeometry,
    grid: VolumeGrid,
    filter: Filter,
    ramp: RowFilter,
    positions: Vec<ViewPosition>,
    /// Δθ of each view.
    shares: Vec<f64>,
    coverage: Coverage,
    /// Columns before and after the measured ones.
    margins: [usize; 2],
    /// The first row of the detector that it filters. `measured` and `widened` begin there; `positions` count
    /// from the detector's first row on.
    first_row: usize,
    notes: Vec<String>,
}

impl FilteredBackprojection {
    /// A method for the rays of a scan and the voxels of a grid.
    ///
    /// Errors: a path that is no circle around z; a curved, tilted or turned detector; a cutoff out of range.
    pub fn new(
        device: &Device,
        geometry: &ProjectionGeometry,
        grid: &VolumeGrid,
        filter: Filter,
    ) -> Result<Self> {
        if !(filter.cutoff > 0.0 && filter.cutoff <= 1.0) {
            return Err(Error::value("cutoff of the filter", "above 0 and at most 1", filter.cutoff));
        }
        let (mut positions, course) = course(geometry)?;
        let coverage = course.coverage;
        let margins = margins(geometry.detector(), &positions, coverage);
        let widened = widened(geometry, margins)?;
        for position in &mut positions {
            position.principal[1] += margins[0] as f64;
        }
        let mut method = Self {
            device: device.clone(),
            measured: geometry.clone(),
            ramp: ramp_filter(device, &widened, filter)?,
            filter,
            first_row: 0,
            notes: Vec::new(),
            widened,
            grid: *grid,
            positions,
            shares: course.shares.clone(),
            coverage,
            margins,
        };
        method.notes = method.told(&course);
        Ok(method)
    }

    /// The same method on a device that filters some rows of the detector only. [`ends`](Self::ends) of rows
    /// are found by the method of all rows.
    pub(crate) fn of_rows(&self, device: &Device, rows: Range<usize>) -> Result<Self> {
        Ok(Self {
            device: device.clone(),
            measured: on_rows(&self.measured, &rows)?,
            widened: on_rows(&self.widened, &rows)?,
            grid: self.grid,
            filter: self.filter,
            ramp: ramp_filter(device, &self.widened, self.filter)?,
            positions: self.positions.clone(),
            shares: self.shares.clone(),
            coverage: self.coverage,
            margins: self.margins,
            first_row: self.first_row + rows.start,
            notes: self.notes.clone(),
        })
    }

    /// The rows of the detector on which the slices `planes` of the volume fall in any view, with a row more
    /// on both sides.
    pub(crate) fn rows_of(&self, planes: &Range<usize>) -> Range<usize> {
        let (grid, count) = (&self.grid, self.widened.detector().rows);
        let ([nx, ny, _], first, spacing) = (grid.shape_xyz(), grid.first_mm(), grid.spacing_mm());
        let at = |axis: usize, index: usize| first[axis] + index as f64 * spacing[axis];
        let corners = [(0, 0), (nx - 1, 0), (0, ny - 1), (nx - 1, ny - 1)];
        let corners = corners.map(|(x, y)| [at(0, x), at(1, y)]);
        // Voxels beyond the circle that all views see are 0, whatever they read. It lies in this polygon.
        let radius = self.seen_radius_mm() / (PI / SIDES as f64).cos();
        let circle: [[f64; 2]; SIDES] = std::array::from_fn(|side| {
            let (sine, cosine) = (TAU * side as f64 / SIDES as f64).sin_cos();
            [radius * cosine, radius * sine]
        });
        let heights = [at(2, planes.start), at(2, planes.end - 1)];
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for view in 0..self.widened.views().len() {
            // A row is a quotient of linear functions: it is extreme at corners, in front of the source.
            let of_corners = |around: &[[f64; 2]]| {
                let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
                for ([x, y], z) in around.iter().flat_map(|corner| heights.map(|z| (*corner, z))) {
                    let row = self.widened.project(view, [x, y, z]).map(|[row, _]| row);
                    let Some(row) = row.filter(|row| row.is_finite()) else {
                        return [f64::NEG_INFINITY, f64::INFINITY];
                    };
                    (low, high) = (low.min(row), high.max(row));
                }
                [low, high]
            };
            let [one, other] = [of_corners(&corners), of_corners(&circle)];
            (low, high) = (low.min(one[0].max(other[0])), high.max(one[1].min(other[1])));
        }
        // Negative numbers become 0.
        let start = ((low.floor() - 1.0) as usize).min(count - 1);
        start..((high.floor() + 3.0) as usize).clamp(start + 1, count)
    }

    /// What the method assumed about the scan, in sentences for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reconstructs the volume `[z, y, x]` from line integrals `[view, row, column]`. It is in 1/mm if they
    /// have no unit.
    ///
    /// Errors: shapes, memory.
    pub fn reconstruct(&self, lines: Array<f32>) -> Result<Array<f32>> {
        let [planes, views] = [self.grid.shape_zyx()[0], lines.shape()[0]];
        let filtered = self.filter(lines.to_device(self.filter_device())?, 0..views)?;
        let volume = self.backproject(&filtered, 0..planes, views)?;
        Array::from_vec(&self.device, &self.grid.shape_zyx(), volume)
    }

    /// The rays of the filtered projections. They are the scan's rays; a shifted detector gets more columns
    /// on its short side.
    pub fn filtered_geometry(&self) -> &ProjectionGeometry {
        &self.widened
    }

    /// The device that filters line integrals: the method's own, or the CPU if rows are too long for the GPU.
    pub fn filter_device(&self) -> &Device {
        self.ramp.device()
    }

    /// The filtered projections q of some views, on [`filter_device`](Self::filter_device). On a CPU they
    /// reuse the memory of `lines` unless the detector is shifted. [`Filter::extend`] says how rows go on
    /// beyond the detector.
    ///
    /// Errors: views beyond the last; another shape; an array on another device; memory.
    pub fn filter(&self, lines: Array<f32>, views: Range<usize>) -> Result<Array<f32>> {
        let ends = match self.filter.extend {
            Extend::None => Ends::default(),
            _ => self.ends(&lines.read()?, views.clone())?,
        };
        self.filter_extended(lines, views, &ends)
    }

    /// As [`filter`](Self::filter), with the ends of rows that [`ends`](Self::ends) found in the same line
    /// integrals on the host.
    ///
    /// Errors: as [`filter`](Self::filter); ends of other views.
    pub fn filter_extended(&self, lines: Array<f32>, views: Range<usize>, ends: &Ends) -> Result<Array<f32>> {
        let [view_count, rows, columns] = self.measured.shape();
        if views.end > view_count || views.is_empty() {
            return Err(Error::value(
                "views to filter",
                format!("some of {view_count}"),
                format!("{views:?}"),
            ));
        }
        expect_shape("projections", &[views.len(), rows, columns], lines.shape())?;
        let (before, detector) = (self.margins[0], self.measured.detector());
        let place = |view: usize| {
            let ViewPosition { principal: [row, column], distances, .. } = self.positions[view];
            let inverse_mm = distances.map_or(0.0, |[_, depth]| 1.0 / depth);
            let row = row - self.first_row as f64;
            row_filter::DetectorPoint { row, column: column - before as f64, inverse_mm }
        };
        let places: Vec<_> = views.clone().map(place).collect();
        let mut table = zeroed("weights of views", views.len() * columns)?;
        self.device.cpu_side().run(|| {
            table.par_chunks_mut(columns).zip(views.clone()).for_each(|(table, view)| {
                let weights = (before..).map(|column| self.weight(view, column) as f32);
                table.iter_mut().zip(weights).for_each(|(to, weight)| *to = weight);
            });
        });
        let weights = Weights::new(self.filter_device(), table, &places, detector.pitch_mm)?;
        let mut filtered = self.ramp.apply(lines, before, Some(&weights))?;
        self.add_extensions(&mut filtered, views, ends)?;
        Ok(filtered)
    }

    /// The slices `planes` of the volume, `[z, y, x]` in C order. A GPU takes `views` filtered projections at
    /// a time.
    ///
    /// Errors: another shape; slices beyond the volume; memory.
    pub fn backproject(&self, filtered: &Array<f32>, planes: Range<usize>, views: usize) -> Result<Vec<f32>> {
        let mut slices = self.slab(filtered, planes, views)?.into_vec()?;
        self.clear_unseen(&mut slices);
        Ok(slices)
    }

    /// As [`backproject`](Self::backproject), into memory that is there. Returns true if a GPU has checked
    /// that all values are finite, and false if nobody has.
    ///
    /// Errors: as [`backproject`](Self::backproject); another number of values.
    pub fn backproject_to(
        &self,
        filtered: &Array<f32>,
        planes: Range<usize>,
        views: usize,
        slices: &mut [f32],
    ) -> Result<bool> {
        expect_len("slices", &self.grid.slab(planes.start, planes.len())?.shape_zyx(), slices.len())?;
        let slab = self.slab(filtered, planes, views)?;
        let on_gpu = slab.device().kind() == BackendKind::Cuda;
        if on_gpu {
            slab.device().cpu_side().take_pages(slices);
        }
        // Voxels that are not finite may lie where nothing is seen.
        let finite = on_gpu && vector::first_not_finite(&slab)?.is_none();
        slab.get(0, slices, HostCopy::Staged)?;
        self.clear_unseen(slices);
        Ok(finite)
    }

    /// Slices that still have values outside of what is seen.
    fn slab(&self, filtered: &Array<f32>, planes: Range<usize>, views: usize) -> Result<Array<f32>> {
        let [view_count, rows, columns] = self.widened.shape();
        expect_shape("filtered projections", &[view_count, rows, columns], filtered.shape())?;
        let slab = self.grid.slab(planes.start, planes.len())?;
        let mut volume = Array::zeros(&self.device, &slab.shape_zyx())?;
        if filtered.device().same_as(&self.device) {
            self.backproject_views(filtered, 0..view_count, &slab, &mut volume)?;
        } else {
            let (views, pixels) = (views.clamp(1, view_count), rows * columns);
            let mut part = None;
            for first in (0..view_count).step_by(views) {
                let some = first..view_count.min(first + views);
                let shape = [some.len(), rows, columns];
                let values = &filtered.cpu()[some.start * pixels..some.end * pixels];
                let values = Array::from_slice(&self.device, &shape, values)?;
                self.add_views(&values, some, &slab, &mut volume, &mut part)?;
            }
        }
        Ok(volume)
    }

    /// Projects the filtered projections of some views back and adds them to a volume, which is 0 before the
    /// first view. `part` is a scratch volume; the first call that needs it makes it.
    pub(crate) fn add_views(
        &self,
        filtered: &Array<f32>,
        views: Range<usize>,
        slab: &VolumeGrid,
        volume: &mut Array<f32>,
        part: &mut Option<Array<f32>>,
    ) -> Result<()> {
        if views.start == 0 {
            return self.backproject_views(filtered, views, slab, volume);
        }
        let part = match part {
            Some(part) => part,
            none => none.insert(Array::zeros(&self.device, &slab.shape_zyx())?),
        };
        self.backproject_views(filtered, views, slab, part)?;
        vector::axpy(1.0.into(), part, volume)
    }

    /// Projects the filtered projections of some views back.
    fn backproject_views(
        &self,
        filtered: &Array<f32>,
        views: Range<usize>,
        slab: &VolumeGrid,
        volume: &mut Array<f32>,
    ) -> Result<()> {
        let geometry = self.widened.select(views)?;
        Projector::new(&self.device, &geometry, slab)?.backproject(Weighting::Magnification, filtered, volume)
    }

    /// The radius around the axis within which each voxel gets all rays that it needs, mm.
    pub fn seen_radius_mm(&self) -> f64 {
        let detector = self.widened.detector();
        let radius = |position: &ViewPosition| {
            let before = (position.principal[1] + 0.5) * detector.pitch_mm[0];
            let after = detector.columns as f64 * detector.pitch_mm[0] - before;
            let half = before.min(after);
            position.distances.map_or(half, |[radius, depth]| radius * half / half.hypot(depth))
        };
        self.positions.iter().map(radius).fold(f64::INFINITY, f64::min)
    }

    /// Sets the voxels of slices beyond [`seen_radius_mm`](Self::seen_radius_mm) to 0.
    pub(crate) fn clear_unseen(&self, slices: &mut [f32]) {
        let (grid, radius) = (&self.grid, self.seen_radius_mm());
        let ([nx, ny, _], first, spacing) = (grid.shape_xyz(), grid.first_mm(), grid.spacing_mm());
        let coordinate = |axis: usize, index: usize| first[axis] + index as f64 * spacing[axis];
        // What is seen of a row is one piece, the same in all slices.
        let seen = |row: usize| {
            let y = coordinate(1, row);
            let unseen = |column: &usize| coordinate(0, *column).hypot(y) > radius;
            let first = (0..nx).find(|column| !unseen(column)).unwrap_or(nx);
            first..(first..nx).rev().find(|column| !unseen(column)).map_or(first, |last| last + 1)
        };
        self.device.cpu_side().run(|| {
            let seen: Vec<Range<usize>> = (0..ny).into_par_iter().map(seen).collect();
            slices.par_chunks_mut(nx).enumerate().for_each(|(row, line)| {
                let Range { start, end } = seen[row % ny].clone();
                line[..start].fill(0.0);
                line[end..].fill(0.0);
            });
        });
    }

    /// The factor Δθ (R/D) w of a column of the widened detector.
    fn weight(&self, view: usize, column: usize) -> f64 {
        let (position, detector) = (&self.positions[view], self.widened.detector());
        let u = (column as f64 - position.principal[1]) * detector.pitch_mm[0];
        // In a parallel beam the lengths themselves take the place of angles.
        let (scale, gamma) = match position.distances {
            None => (1.0, u),
            Some([radius, depth]) => (radius / depth, (u / depth).atan()),
        };
        let redundancy = match self.coverage {
            Coverage::HalfTurn => 1.0,
            Coverage::Turn if self.margins == [0, 0] => 0.5,
            Coverage::Turn => {
                // The edge of the short side, as an angle.
                let edge = match self.margins[0] > 0 {
                    true => position.principal[1] - self.margins[0] as f64 + 0.5,
                    false => (detector.columns - self.margins[1]) as f64 - 0.5 - position.principal[1],
                } * detector.pitch_mm[0];
                let edge = position.distances.map_or(edge, |[_, depth]| (edge / depth).atan());
                let gamma = if self.margins[0] > 0 { gamma } else { -gamma };
                0.5 * (1.0 + (FRAC_PI_2 * (gamma / edge).clamp(-1.0, 1.0)).sin())
            }
            // Without a fan, only lines beyond half a turn are measured twice.
            Coverage::Arc { start, span } => {
                let gamma = if position.distances.is_some() { gamma } else { 0.0 };
                parker((position.angle - start).rem_euclid(TAU), -gamma * position.sense, span)
            }
        };
        self.shares[view] * scale * redundancy
    }
}

/// Parker's weight of a ray in a short scan that covers the angle `span`. The ray's view lies `progress`
/// after the first view. γ is the ray's angle in the fan, positive towards views to come.
fn parker(progress: f64, gamma: f64, span: f64) -> f64 {
    let delta = 0.5 * (span - PI);
    if delta <= 0.0 {
        return 1.0;
    }
    let square = |x: f64| x.sin() * x.sin();
    match progress {
        b if b < 2.0 * (delta - gamma) => square(FRAC_PI_4 * b / (delta - gamma)),
        b if b <= PI - 2.0 * gamma => 1.0,
        b if b < PI + 2.0 * delta => square(FRAC_PI_4 * (PI + 2.0 * delta - b) / (gamma + delta)),
        _ => 0.0,
    }
}

/// Corners of the polygon around the field of view.
const SIDES: usize = 16;

/// The same rays on some rows of the detector.
fn on_rows(geometry: &ProjectionGeometry, rows: &Range<usize>) -> Result<ProjectionGeometry> {
    let mut detector = *geometry.detector();
    let shift = (rows.start as f64 + 0.5 * (rows.len() as f64 - detector.rows as f64)) * detector.pitch_mm[1];
    detector.rows = rows.len();
    let moved = |view: &View| View {
        detector_mm: std::array::from_fn(|axis| view.detector_mm[axis] + shift * view.v[axis]),
        ..*view
    };
    ProjectionGeometry::new(detector, geometry.views().iter().map(moved).collect())
}

/// The filter of the rows of a widened detector. Rows that are too long for a GPU are filtered on the CPU
/// beside it.
fn ramp_filter(device: &Device, widened: &ProjectionGeometry, filter: Filter) -> Result<RowFilter> {
    let (columns, pitch_mm) = (widened.detector().columns, widened.detector().pitch_mm[0]);
    let device = if RowFilter::takes(device, columns) { device.clone() } else { device.host() };
    RowFilter::new(&device, &ramp(columns, pitch_mm), |f| filter.at(f))
}

/// τ h(kτ): the ramp filter, sampled at pixels τ mm apart, times τ.
fn ramp(columns: usize, pitch_mm: f64) -> Vec<f64> {
    let value = |k: usize| match k {
        0 => 0.25,
        k if k % 2 == 0 => 0.0,
        k => -1.0 / (PI * k as f64).powi(2),
    };
    (0..columns).map(|k| value(k) / pitch_mm).collect()
}

/// Pixels by which the sides of a detector may differ before it counts as shifted.
const SHIFTED: f64 = 1.0;

/// A detector counts as shifted on purpose, to see more, if its short side over its long side is below this
/// ratio.
const MIDDLE: f64 = 0.9;

/// Columns to add before and after the detector's own. A shifted detector gets them on its short side, if the
/// other half of a full turn measures these lines.
fn margins(detector: &Detector, positions: &[ViewPosition], coverage: Coverage) -> [usize; 2] {
    let Some(position) = positions.first().filter(|_| coverage == Coverage::Turn) else { return [0, 0] };
    let [before, after] = sides(detector, position);
    let shift = |[before, after]: [f64; 2]| (before - after).abs();
    if shift([before, after]) <= SHIFTED || !is_on_one_side(detector, positions) {
        return [0, 0];
    }
    // The axis may move from view to view; rounding is no move.
    let largest = positions.iter().map(|position| shift(sides(detector, position))).fold(0.0, f64::max);
    let first = shift([before, after]);
    let missing = (if largest > first + 1e-3 { largest } else { first }).ceil() as usize;
    if before < after { [missing, 0] } else { [0, missing] }
}

/// The same geometry with more columns.
fn widened(geometry: &ProjectionGeometry, margins: [usize; 2]) -> Result<ProjectionGeometry> {
    let mut detector = *geometry.detector();
    detector.columns = detector.columns.checked_add(margins[0] + margins[1]).ok_or_else(|| {
        Error::value("columns of the detector", "a number that can be doubled", detector.columns)
    })?;
    let shift = 0.5 * (margins[1] as f64 - margins[0] as f64) * detector.pitch_mm[0];
    let moved = |view: &View| View {
        detector_mm: std::array::from_fn(|axis| view.detector_mm[axis] + shift * view.u[axis]),
        ..*view
    };
    ProjectionGeometry::new(detector, geometry.views().iter().map(moved).collect())
}

#[cfg(test)]
mod tests;
