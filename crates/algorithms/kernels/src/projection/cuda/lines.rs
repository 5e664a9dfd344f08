//! Launches of the kernels that mix lines of pixels or voxels along z.

use rayspin_core::{Error, ProjectionGeometry, RaySource, Result, View, VolumeGrid};
use rayspin_device::cuda::{Argument, Kernel, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::super::Weighting;
use super::super::matrix::{Matrix, times};
use super::{MOST, Plan, check};

static SOURCE: Source = Source { name: "projection_lines", files: &[("lines.cu", include_str!("lines.cu"))] };

/// Numbers of a mixed line, and those behind it; as `ROOM` and `BEHIND` of the source.
const ROOM: u32 = 1024;
const ROOM_BYTES: u32 = 4 * (ROOM + 32);
/// Bytes of shared memory of a warp that mixes two lines, with what is read at 32 steps.
const MIXING: u32 = ROOM_BYTES + 32 * 32;
/// Those of a warp that gathers from one line, with 2 columns of pixels for each of 32 views and their
/// number.
const GATHERING: u32 = ROOM_BYTES + 32 * (2 * 32 + 4);
/// Numbers between two places must be fewer: 32 of them, with a sign, are the 10 bits of a place.
const FARTHEST: f64 = 15.0;
/// Numbers of scratch memory behind the last line, which a warp may read and then drops.
const BEHIND: usize = 512;
/// Bytes of a ray in the table: 9 f64.
const ENTRY: usize = 72;
/// Bytes of the lines of pixels and rays that are held at once. Each part of the views reads and writes the
/// volume once, so that a large volume has larger parts.
pub(in super::super) fn held([nz, ny, nx]: [u64; 3]) -> u64 {
    nz.saturating_mul(ny).saturating_mul(nx).saturating_mul(2).clamp(512 << 20, 2 << 30)
}

/// One way in which the kernels are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// Outputs of a lane.
    rounds: u32,
    /// Voxels of a block along x and y, a warp each.
    across: [u32; 2],
    /// Blocks of a multiprocessor for which registers are kept.
    blocks: u32,
}

impl Form {
    /// 16 outputs a lane for long lines, with registers for 24 warps on a multiprocessor, which need 123 KiB
    /// of shared memory, or 150 KiB where they gather; 8 or 4 with registers for 32 warps.
    const ALL: [Self; 4] = [
        Self { rounds: 16, across: [4, 6], blocks: 1 },
        Self { rounds: 16, across: [4, 4], blocks: 1 },
        Self { rounds: 8, across: [4, 4], blocks: 2 },
        Self { rounds: 4, across: [4, 4], blocks: 2 },
    ];

    fn warps(self) -> u32 {
        self.across[0] * self.across[1]
    }

    fn defines(self) -> Vec<(&'static str, String)> {
        let [x, y] = self.across;
        [("ROUNDS", self.rounds), ("WX", x), ("WY", y), ("BLOCKS", self.blocks)]
            .map(|(name, value)| (name, value.to_string()))
            .to_vec()
    }

    fn kernel(self, cuda: &Cuda, name: &str) -> Result<Kernel> {
        cuda.kernel(&SOURCE, &self.defines(), name)
    }

    fn launch(self, blocks: [u32; 3], shared: u32) -> Launch {
        Launch { blocks, threads: [32, self.warps(), 1], shared: self.warps() * shared }
    }
}

pub(super) fn builds() -> Vec<Build> {
    // Numbers of the outer loops are kept in local memory.
    let build = |form: Form| Build { source: &SOURCE, defines: form.defines(), spill_bytes: 100 };
    Form::ALL.map(build).to_vec()
}

/// What decides whether and how a scan runs line by line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// The largest distance between neighbouring rows along a line of voxels, in voxels.
    slope: f64,
    /// The largest distance between neighbouring voxels along a line of pixels, in rows.
    step: f64,
    /// Whether the rays of each column of pixels lie in one upright plane and none is steeper than half a
    /// right angle, in voxels.
    level: bool,
}

impl Reach {
    /// None where columns of pixels are not parallel to z or not at right angles to rows, a source stands in
    /// or beside the volume, or the volume is too wide.
    pub(super) fn new(geometry: &ProjectionGeometry, grid: &VolumeGrid, matrices: &[Matrix]) -> Option<Self> {
        let [nx, ny, _] = grid.shape_xyz();
        let square = geometry.views().iter().all(View::is_square);
        if !square || !matrices.iter().all(Matrix::is_upright) || nx.checked_mul(ny)? >= 1 << 31 {
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
    let from_middle = |index: usize, count: usize| index as f64 - 0.5 * (count - 1) as f64;
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

/// A form, and the outputs of a warp in it.
#[derive(Debug, Clone, Copy)]
struct Tile {
    form: Form,
    outputs: u32,
}

impl Tile {
    /// For `len` outputs whose places are `gain` numbers apart, None where mixed lines would not hold the
    /// numbers of 32 outputs, or the GPU has too little shared memory.
    fn new(cuda: &Cuda, gain: f64, len: u32, shared: u32) -> Option<Self> {
        let fit = (f64::from(ROOM - 12) / gain - 2.0).floor();
        if gain.is_nan() || gain >= FARTHEST || fit < f64::from(len.min(32)) {
            return None;
        }
        let room = cuda.properties().shared_per_block;
        let tiles = |form: Form| len.div_ceil(f64::from(32 * form.rounds).min(fit) as u32);
        // A tile costs about as much as 3 outputs of all lanes, and its outputs.
        let cost = |form: &Form| tiles(*form) * (3 + form.rounds);
        let fits = |form: &Form| form.warps() * shared <= room;
        let form = Form::ALL.into_iter().filter(fits).min_by_key(cost)?;
        Some(Self { form, outputs: len.div_ceil(tiles(form)) })
    }
}

/// What a line of `len` numbers takes in scratch memory.
fn pitch(len: u32) -> u32 {
    len.next_multiple_of(4)
}

fn most(blocks: u32) -> u32 {
    blocks.min(MOST as u32)
}

/// Bytes of scratch memory at most: lines of the volume, or of some views, with their rays.
pub(super) fn bytes([views, rows, columns]: [u64; 3], [nz, ny, nx]: [u64; 3]) -> u64 {
    let line = |len: u64| 4 * len.next_multiple_of(4);
    let (entry, held) = (ENTRY as u64, held([nz, ny, nx]));
    // One view at least.
    let part = |each: u64| (columns * each).saturating_mul(views).min(held.max(columns * each));
    let over_rows = (nx * ny).saturating_mul(line(nz)).saturating_add(part(entry));
    over_rows.max(part(entry + line(rows))) + 8 * BEHIND as u64
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
    pub(in super::super) fn runs_in_lines(&self, cuda: &Cuda) -> bool {
        let fits =
            |reach: &Reach| self.rows(cuda, reach).is_some() && self.voxels(cuda, reach, GATHERING).is_some();
        self.reach.is_some_and(|reach| reach.level && fits(&reach))
    }

    /// What a warp takes of a column of pixels.
    fn rows(&self, cuda: &Cuda, reach: &Reach) -> Option<Tile> {
        Tile::new(cuda, reach.slope, self.sizes[1], MIXING)
    }

    /// What a warp takes of voxels along z.
    fn voxels(&self, cuda: &Cuda, reach: &Reach, shared: u32) -> Option<Tile> {
        Tile::new(cuda, reach.step, self.shape[2] as u32, shared)
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

    fn table(&self, cuda: &Cuda, form: Form, views: &Views, table: &mut Array<f64>) -> Result<()> {
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
        let launch = Launch::covering(views.count as usize * columns as usize, 32 * form.warps());
        // SAFETY: there is a pose for each view, and the table has an entry for each column of each view.
        unsafe { form.kernel(cuda, "upright_rays")?.launch(launch, &mut arguments) }
    }

    /// Writes the pixels of some views as lines.
    fn pixels(
        &self,
        cuda: &Cuda,
        form: Form,
        views: &Views,
        values: &Array<f32>,
        lines: &mut Array<f32>,
    ) -> Result<()> {
        let [_, rows, columns] = self.sizes;
        let view = rows as usize * columns as usize;
        let values = values.cuda();
        let values = values.part(views.first * view, views.count as usize * view).ok_or_else(missing)?;
        let shape = [views.count, rows, columns];
        // SAFETY: `lines` has room for the columns of these views.
        unsafe { to_lines(cuda, form, values.into(), lines, shape) }
    }

    fn over_voxels_in_lines(&self, Tile { form, outputs }: Tile, shared: u32) -> Launch {
        let ([nx, ny, nz], [x, y]) = (self.shape.map(|n| n as u32), form.across);
        form.launch([nx.div_ceil(x), most(ny.div_ceil(y)), most(nz.div_ceil(outputs))], shared)
    }
}

/// # Safety
///
/// `from` has `[count, height, width]` numbers and `to` has `count` times `width` lines of them.
unsafe fn to_lines(
    cuda: &Cuda,
    form: Form,
    from: Argument<'_>,
    to: &mut Array<f32>,
    shape: [u32; 3],
) -> Result<()> {
    let [count, height, width] = shape;
    let pitch = pitch(height);
    let launch = form.launch([width.div_ceil(32), most(pitch.div_ceil(32)), most(count)], 0);
    let arguments =
        &mut [from, to.cuda_mut().into(), count.into(), height.into(), width.into(), pitch.into()];
    // SAFETY: the caller's promise.
    unsafe { form.kernel(cuda, "to_lines")?.launch(launch, arguments) }
}

/// Scratch memory for lines.
fn scratch(like: &Array<f32>, lines: usize, len: u32) -> Result<Array<f32>> {
    let pitch = pitch(len) as usize;
    Array::zeros(like.device(), &[lines + BEHIND.div_ceil(pitch), pitch])
}

/// Line integrals. A scan that does not run line by line, or for which scratch memory is short, runs ray by
/// ray.
pub(in super::super) fn forward(
    cuda: &Cuda,
    plan: &Plan,
    volume: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    check(plan, volume.len(), out.len())?;
    let ([_, rows, columns], [nx, ny, nz]) = (plan.sizes, plan.shape);
    let reach = plan.reach.filter(|reach| reach.level);
    let Some(tile) = reach.and_then(|reach| plan.rows(cuda, &reach)) else {
        return super::rays(cuda, plan, volume, out);
    };
    let form = tile.form;
    let (parts, slice) = (plan.parts(ENTRY), nx as usize * ny as usize);
    let entries = parts[0].count as usize * columns as usize;
    let room = scratch(volume, slice, nz as u32)
        .and_then(|lines| Ok((lines, Array::zeros(volume.device(), &[entries, ENTRY / 8])?)));
    let Ok((mut lines, mut table)) = room else { return super::rays(cuda, plan, volume, out) };
    // SAFETY: `lines` has room for the columns of the volume.
    unsafe { to_lines(cuda, form, volume.cuda().into(), &mut lines, [1, nz as u32, slice as u32])? };
    let view = rows as usize * columns as usize;
    for views in &parts {
        plan.table(cuda, form, views, &mut table)?;
        let blocks = [columns.div_ceil(form.warps()), most(rows.div_ceil(tile.outputs)), most(views.count)];
        let launch = form.launch(blocks, MIXING);
        let mut output = out.cuda_mut();
        let to = output.part(views.first * view, views.count as usize * view).ok_or_else(missing)?;
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
            (tile.outputs as i32).into(),
        ];
        arguments.extend(plan.size());
        // SAFETY: the arrays have the sizes of the plan and of these views, lines have room behind them, and
        // the places of a tile of rows lie in one mixed line.
        unsafe { form.kernel(cuda, "rays_from_lines")?.launch(launch, &mut arguments)? };
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
    let Some(tile) = plan.voxels(cuda, &reach, GATHERING) else {
        return super::scatter(cuda, plan, values, out);
    };
    let form = tile.form;
    let parts = plan.parts(ENTRY + 4 * pitch(rows) as usize);
    let held = parts[0].count as usize * columns as usize;
    let room = scratch(values, held, rows)
        .and_then(|lines| Ok((lines, Array::zeros(values.device(), &[held, ENTRY / 8])?)));
    let Ok((mut lines, mut table)) = room else { return super::scatter(cuda, plan, values, out) };
    for views in &parts {
        plan.table(cuda, form, views, &mut table)?;
        plan.pixels(cuda, form, views, values, &mut lines)?;
        let count = views.count * columns;
        let mut arguments: Vec<Argument<'_>> =
            vec![lines.cuda_mut().into(), table.cuda().into(), count.into(), rows.into(), pitch(rows).into()];
        arguments.extend(plan.size());
        let launch = Launch::linear(count.min(1 << 20), 32 * form.warps());
        // SAFETY: there are `count` lines and rays.
        unsafe { form.kernel(cuda, "times_steps")?.launch(launch, &mut arguments)? };
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
            (tile.outputs as i32).into(),
            u32::from(views.first > 0).into(),
        ];
        // SAFETY: as for `forward`, with a tile of voxels.
        unsafe {
            let launch = plan.over_voxels_in_lines(tile, GATHERING);
            form.kernel(cuda, "voxels_from_rays")?.launch(launch, arguments)?;
        }
    }
    Ok(())
}

/// Voxel-driven back-projection. A scan that does not run line by line, or for which scratch memory is short,
/// runs as [`columns`](super::columns).
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
    let room = plan.voxels(cuda, &reach, MIXING).and_then(|tile| {
        Some((tile, scratch(values, parts[0].count as usize * columns as usize, rows).ok()?))
    });
    let Some((tile, mut lines)) = room else {
        return super::columns(cuda, plan, weighting, values, out);
    };
    let form = tile.form;
    for views in &parts {
        plan.pixels(cuda, form, views, values, &mut lines)?;
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
            (tile.outputs as i32).into(),
            u32::from(weighting == Weighting::Even).into(),
            u32::from(views.first > 0).into(),
        ];
        // SAFETY: the arrays have the sizes of the plan and of these views, lines have room behind them, and
        // the places of a tile of voxels lie in one mixed line.
        unsafe {
            form.kernel(cuda, "voxels_from_lines")?
                .launch(plan.over_voxels_in_lines(tile, MIXING), arguments)?;
        }
    }
    Ok(())
}
