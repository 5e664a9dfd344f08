//! Launches of the kernels that mix lines of pixels or voxels along z.

use rayspin_core::{Error, ProjectionGeometry, RaySource, Result, VolumeGrid};
use rayspin_device::cuda::{Argument, Kernel, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::super::Weighting;
use super::super::matrix::{Matrix, times};
use super::{MOST, Plan, check};

static SOURCE: Source = Source { name: "projection_lines", files: &[("lines.cu", include_str!("lines.cu"))] };

/// Warps of a block.
const WARPS: u32 = 8;
/// Outputs of a lane.
const ROUNDS: u32 = 8;
/// Numbers of a mixed line, at most 512.
const ROOM: u32 = 512;
/// Numbers of scratch memory behind the last line, which a warp may read and then drops.
const BEHIND: usize = 512;
/// Bytes of a ray in the table: 9 f64.
const ENTRY: usize = 72;
/// Bytes of the lines of pixels and rays that are held at once.
pub(in super::super) const HELD: usize = 512 << 20;

fn defines() -> Vec<(&'static str, String)> {
    // 3 blocks of 256 threads leave 80 registers a thread, the least without spills on an H100.
    vec![("ROUNDS", ROUNDS.to_string()), ("ROOM", ROOM.to_string()), ("BLOCKS", "3".to_owned())]
}

pub(super) fn build() -> Build {
    // Capabilities 8.6, 8.9, 10 and 12 keep a few numbers of the outer loops in local memory; 8.0 and 9.0 none.
    Build { source: &SOURCE, defines: defines(), spill_bytes: 60 }
}

/// What decides whether and how a scan runs line by line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// The largest distance between neighbouring rows along a line of voxels, in voxels.
    slope: f64,
    /// The largest distance between neighbouring voxels along a line of pixels, in rows.
    step: f64,
    /// Whether the rays of each column of pixels lie in one upright plane and none is steeper than half a right angle, in voxels.
    level: bool,
}

impl Reach {
    /// None where columns of pixels are not parallel to z, a source stands in or beside the volume, or the volume is too wide.
    pub(super) fn new(geometry: &ProjectionGeometry, grid: &VolumeGrid, matrices: &[Matrix]) -> Option<Self> {
        let [nx, ny, _] = grid.shape_xyz();
        if !matrices.iter().all(Matrix::is_upright) || nx.checked_mul(ny)? >= 1 << 31 {
            return None;
        }
        let (mut slope, mut step) = (0.0f64, 0.0f64);
        for matrix in matrices {
            // Rays read lines up to 1 beside the volume.
            for (x, y) in [(-1.0, -1.0), (-1.0, ny as f64), (nx as f64, -1.0), (nx as f64, ny as f64)] {
                let distance = times(&matrix.w, x, y, 0.0);
                // Places lose their meaning near the source.
                if distance.is_nan() || distance <= 1e-6 {
                    return None;
                }
                slope = slope.max((distance / matrix.v[2]).abs());
                step = step.max((matrix.v[2] / distance).abs());
            }
        }
        let level = (0..matrices.len()).all(|view| is_level(geometry, grid, view));
        (slope.is_finite() && step.is_finite()).then_some(Self { slope, step, level })
    }
}

/// Whether a view's columns of pixels are parallel to z and its rays pass planes across x or y fastest.
fn is_level(geometry: &ProjectionGeometry, grid: &VolumeGrid, view: usize) -> bool {
    let (pose, detector, spacing) = (&geometry.views()[view], geometry.detector(), grid.spacing_mm());
    if [pose.u[2], pose.v[0], pose.v[1]].into_iter().any(|x| x.abs() > 1e-12) {
        return false;
    }
    let from_middle = |at: usize, count: usize| at as f64 - 0.5 * (count - 1) as f64;
    let along = |row: usize, column: usize, axis: usize| match pose.source {
        RaySource::Direction(direction) => (direction[axis] / spacing[axis]).abs(),
        RaySource::Point(source) => {
            let u = from_middle(column, detector.columns) * detector.pitch_mm[0] * pose.u[axis];
            let v = from_middle(row, detector.rows) * detector.pitch_mm[1] * pose.v[axis];
            ((pose.detector_mm[axis] + u + v - source[axis]) / spacing[axis]).abs()
        }
    };
    let steepest = along(0, 0, 2).max(along(detector.rows - 1, 0, 2));
    (0..detector.columns).all(|column| along(0, column, 0).max(along(0, column, 1)) >= steepest)
}

/// The outputs of a warp whose places are `gain` numbers apart; none where its mixed lines would not hold those of a warp.
fn tile(gain: f64, len: i32) -> Option<u32> {
    let fit = (f64::from(ROOM - 12) / gain - 2.0).floor();
    let tile = if fit >= f64::from(32 * ROUNDS) { 32 * ROUNDS } else { fit.max(0.0) as u32 };
    // Fewer than a warp's lanes would leave most of them idle.
    (tile >= 32.min(len as u32)).then_some(tile)
}

/// What a line of `len` numbers takes in scratch memory.
fn pitch(len: u32) -> u32 {
    len.next_multiple_of(4)
}

fn kernel(cuda: &Cuda, name: &str) -> Result<Kernel> {
    cuda.kernel(&SOURCE, &defines(), name)
}

fn most(blocks: u32) -> u32 {
    blocks.min(MOST as u32)
}

/// A part of an array whose length the caller has checked.
fn missing() -> Error {
    Error::value("part of a projector's array", "one inside it", "one beyond its end")
}

/// Some views whose lines are held at once.
struct Views {
    first: usize,
    count: u32,
}

impl Plan {
    #[cfg(test)]
    pub(in super::super) fn runs_in_lines(&self) -> bool {
        let fits = |reach: &Reach| {
            tile(reach.step, self.shape[2]).is_some() && tile(reach.slope, self.sizes[1] as i32).is_some()
        };
        self.reach.is_some_and(|reach| reach.level && fits(&reach))
    }

    /// The views in parts, `each` bytes a column of pixels.
    fn parts(&self, each: usize) -> Vec<Views> {
        let [views, _, columns] = self.sizes.map(|n| n as usize);
        let fit = (self.held / (columns * each).max(1)).clamp(1, views);
        let fit = if fit > 32 { fit / 32 * 32 } else { fit };
        let part = |first: usize| Views { first, count: fit.min(views - first) as u32 };
        (0..views).step_by(fit).map(part).collect()
    }

    fn size(&self) -> [Argument<'_>; 3] {
        [6, 7, 8].map(|at| self.lengths[at].into())
    }

    fn table(&self, cuda: &Cuda, views: &Views, table: &mut Array<f64>) -> Result<()> {
        let [_, rows, columns] = self.sizes;
        let poses = self.poses.cuda();
        let mut arguments: Vec<Argument<'_>> = vec![
            poses.part(15 * views.first, 15 * views.count as usize).ok_or_else(missing)?.into(),
            table.cuda_mut().into(),
            views.count.into(),
            rows.into(),
            columns.into(),
            self.lengths[0].into(),
            self.lengths[1].into(),
            u32::from(self.parallel).into(),
        ];
        arguments.extend(self.lengths[3..].iter().map(|&length| Argument::from(length)));
        let launch = Launch::covering(views.count as usize * columns as usize, 256);
        // SAFETY: the poses are those of the views, and the table has an entry for each of their columns.
        unsafe { kernel(cuda, "upright_rays")?.launch(launch, &mut arguments) }
    }

    /// Writes the pixels of some views as lines.
    fn pixels(&self, cuda: &Cuda, views: &Views, values: &Array<f32>, lines: &mut Array<f32>) -> Result<()> {
        let [_, rows, columns] = self.sizes;
        let view = rows as usize * columns as usize;
        let values = values.cuda();
        let values = values.part(views.first * view, views.count as usize * view).ok_or_else(missing)?;
        let shape = [views.count, rows, columns];
        // SAFETY: `lines` has room for the columns of these views.
        unsafe { to_lines(cuda, values.into(), lines, shape) }
    }

    fn over_voxels_in_lines(&self, tile: u32) -> Launch {
        let [nx, ny, nz] = self.shape.map(|n| n as u32);
        Launch {
            blocks: [nx.div_ceil(WARPS), most(ny), most(nz.div_ceil(tile))],
            threads: [32, WARPS, 1],
            shared: 0,
        }
    }
}

/// # Safety
///
/// `from` has `[count, height, width]` numbers and `to` has `count` times `width` lines of them.
unsafe fn to_lines(cuda: &Cuda, from: Argument<'_>, to: &mut Array<f32>, shape: [u32; 3]) -> Result<()> {
    let [count, height, width] = shape;
    let pitch = pitch(height);
    let launch = Launch {
        blocks: [width.div_ceil(32), most(pitch.div_ceil(32)), most(count)],
        threads: [32, 8, 1],
        shared: 0,
    };
    let arguments =
        &mut [from, to.cuda_mut().into(), count.into(), height.into(), width.into(), pitch.into()];
    // SAFETY: the caller's promise.
    unsafe { kernel(cuda, "to_lines")?.launch(launch, arguments) }
}

/// Scratch memory for lines.
fn scratch(like: &Array<f32>, lines: usize, len: u32) -> Result<Array<f32>> {
    let pitch = pitch(len) as usize;
    Array::zeros(like.device(), &[lines + BEHIND.div_ceil(pitch), pitch])
}

/// Line integrals. A scan that does not run line by line, or for which scratch memory is short, runs ray by ray.
pub(in super::super) fn forward(
    cuda: &Cuda,
    plan: &Plan,
    volume: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    check(plan, volume.len(), out.len())?;
    let ([_, rows, columns], [nx, ny, nz]) = (plan.sizes, plan.shape);
    let reach = plan.reach.filter(|reach| reach.level);
    let Some(tile) = reach.and_then(|reach| tile(reach.slope, rows as i32)) else {
        return super::rays(cuda, plan, volume, out);
    };
    let (parts, slice) = (plan.parts(ENTRY), nx as usize * ny as usize);
    let entries = parts[0].count as usize * columns as usize;
    let room = scratch(volume, slice, nz as u32)
        .and_then(|lines| Ok((lines, Array::zeros(volume.device(), &[entries, ENTRY / 8])?)));
    let Ok((mut lines, mut table)) = room else { return super::rays(cuda, plan, volume, out) };
    // SAFETY: `lines` has room for the columns of the volume.
    unsafe { to_lines(cuda, volume.cuda().into(), &mut lines, [1, nz as u32, slice as u32])? };
    let view = rows as usize * columns as usize;
    for views in &parts {
        plan.table(cuda, views, &mut table)?;
        let launch = Launch {
            blocks: [columns.div_ceil(WARPS), most(rows.div_ceil(tile)), most(views.count)],
            threads: [32, WARPS, 1],
            shared: 0,
        };
        let mut all = out.cuda_mut();
        let to = all.part(views.first * view, views.count as usize * view).ok_or_else(missing)?;
        let mut arguments: Vec<Argument<'_>> = vec![
            lines.cuda().into(),
            to.into(),
            table.cuda().into(),
            views.count.into(),
            rows.into(),
            columns.into(),
            nx.into(),
            ny.into(),
            nz.into(),
            (pitch(nz as u32) as i32).into(),
            (tile as i32).into(),
        ];
        arguments.extend(plan.size());
        // SAFETY: the arrays have the sizes of the plan and of these views, lines have room behind them, and the places of a tile
        // of rows lie in one mixed line.
        unsafe { kernel(cuda, "rays_from_lines")?.launch(launch, &mut arguments)? };
    }
    Ok(())
}

/// The transpose of [`forward`], without atomic sums. Falls back as [`forward`] does.
pub(in super::super) fn adjoint(
    cuda: &Cuda,
    plan: &Plan,
    values: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    check(plan, out.len(), values.len())?;
    let ([_, rows, columns], [nx, ny, nz]) = (plan.sizes, plan.shape);
    let (Some(reach), Some(matrices)) = (plan.reach.filter(|reach| reach.level), &plan.matrices) else {
        return super::scatter(cuda, plan, values, out);
    };
    let Some(tile) = tile(reach.step, nz) else { return super::scatter(cuda, plan, values, out) };
    let parts = plan.parts(ENTRY + 4 * pitch(rows) as usize);
    let held = parts[0].count as usize * columns as usize;
    let room = scratch(values, held, rows)
        .and_then(|lines| Ok((lines, Array::zeros(values.device(), &[held, ENTRY / 8])?)));
    let Ok((mut lines, mut table)) = room else { return super::scatter(cuda, plan, values, out) };
    for views in &parts {
        plan.table(cuda, views, &mut table)?;
        plan.pixels(cuda, views, values, &mut lines)?;
        let count = views.count * columns;
        let mut arguments: Vec<Argument<'_>> =
            vec![lines.cuda_mut().into(), table.cuda().into(), count.into(), rows.into(), pitch(rows).into()];
        arguments.extend(plan.size());
        let launch = Launch::linear(count.min(1 << 20), 256);
        // SAFETY: there are `count` lines and rays.
        unsafe { kernel(cuda, "times_steps")?.launch(launch, &mut arguments)? };
        let matrices = matrices.cuda();
        let arguments = &mut [
            lines.cuda().into(),
            out.cuda_mut().into(),
            matrices.part(12 * views.first, 12 * views.count as usize).ok_or_else(missing)?.into(),
            table.cuda().into(),
            views.count.into(),
            rows.into(),
            columns.into(),
            nx.into(),
            ny.into(),
            nz.into(),
            (pitch(rows) as i32).into(),
            (tile as i32).into(),
            u32::from(views.first > 0).into(),
        ];
        // SAFETY: as for `forward`, with a tile of voxels.
        unsafe { kernel(cuda, "voxels_from_rays")?.launch(plan.over_voxels_in_lines(tile), arguments)? };
    }
    Ok(())
}

/// Voxel-driven back-projection. A scan that does not run line by line, or for which scratch memory is short, runs as
/// [`columns`](super::columns).
pub(in super::super) fn backproject(
    cuda: &Cuda,
    plan: &Plan,
    weighting: Weighting,
    values: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    check(plan, out.len(), values.len())?;
    let ([_, rows, columns], [nx, ny, nz]) = (plan.sizes, plan.shape);
    let (Some(reach), Some(matrices)) = (plan.reach, &plan.matrices) else {
        return super::columns(cuda, plan, weighting, values, out);
    };
    let parts = plan.parts(4 * pitch(rows) as usize);
    let room = tile(reach.step, nz).and_then(|tile| {
        Some((tile, scratch(values, parts[0].count as usize * columns as usize, rows).ok()?))
    });
    let Some((tile, mut lines)) = room else {
        return super::columns(cuda, plan, weighting, values, out);
    };
    for views in &parts {
        plan.pixels(cuda, views, values, &mut lines)?;
        let matrices = matrices.cuda();
        let arguments = &mut [
            lines.cuda().into(),
            out.cuda_mut().into(),
            matrices.part(12 * views.first, 12 * views.count as usize).ok_or_else(missing)?.into(),
            views.count.into(),
            rows.into(),
            columns.into(),
            nx.into(),
            ny.into(),
            nz.into(),
            (pitch(rows) as i32).into(),
            (tile as i32).into(),
            u32::from(weighting == Weighting::Even).into(),
            u32::from(views.first > 0).into(),
        ];
        // SAFETY: the arrays have the sizes of the plan and of these views, lines have room behind them, and the places of a tile
        // of voxels lie in one mixed line.
        unsafe { kernel(cuda, "voxels_from_lines")?.launch(plan.over_voxels_in_lines(tile), arguments)? };
    }
    Ok(())
}
