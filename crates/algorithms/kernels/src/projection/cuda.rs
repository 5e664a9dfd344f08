#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

pub(super) mod lines;

use rayspin_core::{Error, RaySource, Result};
use rayspin_device::cuda::{Argument, Launch, Sampling, Source, Texture};
use rayspin_device::{Array, Cuda, Device};
use rayspin_tune::Build;

use super::Weighting;
use super::cpu::Scan;
use super::matrix::Matrix;

static SOURCE: Source =
    Source { name: "projection", files: &[("projection.cu", include_str!("cuda/projection.cu"))] };

/// Voxels along z of a thread of `columns_of_voxels`.
const DEPTH: u32 = 16;

pub(crate) fn builds() -> Vec<Build> {
    let plain = Build { source: &SOURCE, defines: vec![("DEPTH", DEPTH.to_string())], spill_bytes: 0 };
    std::iter::once(plain).chain(lines::builds()).collect()
}

/// The most blocks along y or z of a launch.
const MOST: usize = 65_535;

/// What kernels read of a scan.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Source or direction, middle of the detector, u, v, normal: 15 numbers of each view.
    poses: Array<f64>,
    /// Rows U, V, W of each view's matrix; none where the detector is curved.
    matrices: Option<Array<f64>>,
    /// Whether columns of pixels are parallel to z in all views.
    pub(super) upright: bool,
    /// None where the scan does not run line by line.
    reach: Option<lines::Reach>,
    /// Bytes of the lines of pixels and rays that are held at once.
    pub(super) held: usize,
    sizes: [u32; 3],
    shape: [i32; 3],
    lengths: [f64; 9],
    parallel: bool,
}

impl Plan {
    /// Errors: sizes of 2³¹ and more; memory.
    pub(super) fn new(device: &Device, scan: Scan<'_>) -> Result<Self> {
        let (geometry, grid) = (scan.geometry, scan.grid);
        let narrow = |what: &str, size: usize| {
            u32::try_from(size)
                .ok()
                .filter(|n| *n < 1 << 30)
                .ok_or_else(|| Error::value(what, "less than 2^30 on a GPU", size))
        };
        let mut poses = Vec::with_capacity(15 * geometry.views().len());
        for view in geometry.views() {
            let (RaySource::Point(source) | RaySource::Direction(source)) = view.source;
            poses.extend([source, view.detector_mm, view.u, view.v, view.towards_source()].iter().flatten());
        }
        let count = geometry.views().len();
        let matrices: Option<Vec<Matrix>> =
            (0..count).map(|view| Matrix::new(geometry, grid, view)).collect();
        let flat = |matrices: &[Matrix]| -> Vec<f64> {
            matrices.iter().flat_map(|m| [m.u, m.v, m.w]).flatten().collect()
        };
        let [views, rows, columns] = geometry.shape();
        let [nx, ny, nz] = grid.shape_xyz();
        let (detector, first, spacing) = (geometry.detector(), grid.first_mm(), grid.spacing_mm());
        let [u, v] = detector.pitch_mm;
        let radius = detector.radius_mm.unwrap_or(0.0);
        let upright = matrices.as_ref().is_some_and(|matrices| matrices.iter().all(Matrix::is_upright));
        let reach = matrices.as_ref().and_then(|matrices| lines::Reach::new(geometry, grid, matrices));
        Ok(Self {
            poses: Array::from_vec(device, &[count, 15], poses)?,
            matrices: match matrices {
                None => None,
                Some(matrices) => Some(Array::from_vec(device, &[count, 12], flat(&matrices))?),
            },
            upright,
            reach,
            held: lines::held([nz, ny, nx].map(|n| n as u64)) as usize,
            sizes: [narrow("views", views)?, narrow("rows", rows)?, narrow("columns", columns)?],
            shape: [
                narrow("voxels along x", nx)? as i32,
                narrow("voxels along y", ny)? as i32,
                narrow("voxels along z", nz)? as i32,
            ],
            lengths: [u, v, radius, first[0], first[1], first[2], spacing[0], spacing[1], spacing[2]],
            parallel: geometry.is_parallel(),
        })
    }

    fn lines(&self) -> Vec<Argument<'_>> {
        let [views, rows, columns] = self.sizes;
        let [nx, ny, nz] = self.shape;
        let mut arguments: Vec<Argument<'_>> = vec![
            self.poses.cuda().into(),
            views.into(),
            rows.into(),
            columns.into(),
            nx.into(),
            ny.into(),
            nz.into(),
        ];
        arguments.extend(self.lengths[..3].iter().map(|&length| Argument::from(length)));
        arguments.push(u32::from(self.parallel).into());
        arguments.extend(self.lengths[3..].iter().map(|&length| Argument::from(length)));
        arguments
    }

    /// The matrices of views, then views, rows, columns and voxels along x, y and z, for a kernel of a user's
    /// own. Errors: a curved detector.
    pub(super) fn of_matrices(&self) -> Result<[Argument<'_>; 7]> {
        let Some(matrices) = &self.matrices else {
            return Err(Error::value("detector of back-projection on a GPU", "a flat one", "a curved one"));
        };
        // Sizes are below 2³⁰.
        let [views, rows, columns] = self.sizes.map(|n| Argument::from(n as i32));
        let [nx, ny, nz] = self.shape.map(Argument::from);
        Ok([matrices.cuda().into(), views, rows, columns, nx, ny, nz])
    }

    /// The poses of views; then views, rows, columns, voxels along x, y and z, the pitch of pixels, and
    /// whether rays are parallel. For a kernel of a user's own.
    pub(super) fn of_rays(&self) -> (Argument<'_>, [Argument<'_>; 8]) {
        // Sizes are below 2³⁰.
        let [views, rows, columns] = self.sizes.map(|n| Argument::from(n as i32));
        let [nx, ny, nz] = self.shape.map(Argument::from);
        let (pitch, parallel) = (self.lengths[0].into(), i32::from(self.parallel).into());
        (self.poses.cuda().into(), [views, rows, columns, nx, ny, nz, pitch, parallel])
    }

    /// Whether threads take columns of voxels: a launch has no more blocks along z than [`MOST`].
    fn in_columns(&self) -> bool {
        self.upright && self.shape[2] as usize <= MOST * DEPTH as usize
    }

    fn over_pixels(&self) -> Launch {
        let [views, rows, columns] = self.sizes;
        Launch {
            blocks: [columns.div_ceil(32), rows.div_ceil(8), views.min(MOST as u32)],
            threads: [32, 8, 1],
            shared: 0,
        }
    }

    fn over_voxels(&self, depth: u32) -> Launch {
        let [nx, ny, nz] = self.shape.map(|n| n as u32);
        Launch {
            blocks: [nx.div_ceil(32), ny.div_ceil(8), nz.div_ceil(depth).min(MOST as u32)],
            threads: [32, 8, 1],
            shared: 0,
        }
    }
}

/// Bytes of a plan, poses and matrices, and of scratch memory while it runs.
pub(super) fn bytes(projections: [u64; 3], voxels: [u64; 3]) -> u64 {
    projections[0] * (15 + 12) * size_of::<f64>() as u64 + lines::bytes(projections, voxels)
}

/// From a volume to projections, or back; the output is overwritten. Arrays have the shapes of the plan's
/// scan.
pub(super) type Apply = fn(&Cuda, &Plan, &Array<f32>, &mut Array<f32>) -> Result<()>;

/// From projections to a volume, which is overwritten.
pub(super) type Backproject = fn(&Cuda, &Plan, Weighting, &Array<f32>, &mut Array<f32>) -> Result<()>;

/// Rows of pixels or slices of voxels from which on lines of them pay: one row by rays takes 0.68 ms and by
/// lines 21 ms for 128 (512 cubed, 360 views of 512 x 512, H100).
const LONG: usize = 32;

/// Line integrals by the fastest variant.
pub(super) fn forward(cuda: &Cuda, plan: &Plan, volume: &Array<f32>, out: &mut Array<f32>) -> Result<()> {
    let run = if plan.sizes[1] as usize >= LONG { lines::forward } else { rays };
    run(cuda, plan, volume, out)
}

/// The transpose by the fastest variant.
pub(super) fn adjoint(cuda: &Cuda, plan: &Plan, values: &Array<f32>, out: &mut Array<f32>) -> Result<()> {
    let run = if plan.shape[2] as usize >= LONG { lines::adjoint } else { scatter };
    run(cuda, plan, values, out)
}

/// Back-projection by the fastest variant.
pub(super) fn fastest_backproject(
    cuda: &Cuda,
    plan: &Plan,
    weighting: Weighting,
    values: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    let run = if plan.shape[2] as usize >= 2 * LONG { lines::backproject } else { columns };
    run(cuda, plan, weighting, values, out)
}

fn check(plan: &Plan, volume: usize, pixels: usize) -> Result<()> {
    let size = |sizes: [usize; 3]| sizes.iter().product::<usize>();
    rayspin_core::expect_len("volume", &[size(plan.shape.map(|n| n as usize))], volume)?;
    rayspin_core::expect_len("projections", &[size(plan.sizes.map(|n| n as usize))], pixels)
}

fn kernel(cuda: &Cuda, name: &str) -> Result<rayspin_device::cuda::Kernel> {
    cuda.kernel(&SOURCE, &[("DEPTH", DEPTH.to_string())], name)
}

pub(super) fn rays(cuda: &Cuda, plan: &Plan, volume: &Array<f32>, out: &mut Array<f32>) -> Result<()> {
    check(plan, volume.len(), out.len())?;
    let mut arguments: Vec<Argument<'_>> = vec![volume.cuda().into(), out.cuda_mut().into()];
    arguments.extend(plan.lines());
    // SAFETY: both arrays have the sizes of the plan, and the kernel reads voxels inside the volume only.
    unsafe { kernel(cuda, "rays")?.launch(plan.over_pixels(), &mut arguments) }
}

/// Line integrals with the texture unit; ray by ray where the volume is too large for a texture.
pub(super) fn textured_rays(
    cuda: &Cuda,
    plan: &Plan,
    volume: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    check(plan, volume.len(), out.len())?;
    let Ok(texture) = cuda.texture(volume, Sampling::LINEAR) else { return rays(cuda, plan, volume, out) };
    let mut arguments: Vec<Argument<'_>> = vec![(&texture).into(), out.cuda_mut().into()];
    arguments.extend(plan.lines());
    // SAFETY: as for `rays`; a texture may be read anywhere.
    unsafe { kernel(cuda, "rays_in_texture")?.launch(plan.over_pixels(), &mut arguments) }
}

pub(super) fn scatter(cuda: &Cuda, plan: &Plan, values: &Array<f32>, out: &mut Array<f32>) -> Result<()> {
    check(plan, out.len(), values.len())?;
    out.fill(0.0)?;
    let mut arguments: Vec<Argument<'_>> = vec![values.cuda().into(), out.cuda_mut().into()];
    arguments.extend(plan.lines());
    // SAFETY: as for `rays`.
    unsafe { kernel(cuda, "scatter")?.launch(plan.over_pixels(), &mut arguments) }
}

pub(super) fn voxels(
    cuda: &Cuda,
    plan: &Plan,
    weighting: Weighting,
    values: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    backproject(
        cuda,
        plan,
        weighting,
        values,
        out,
        BackprojectKernel { name: "voxels", depth: 1, texture: None },
    )
}

pub(super) fn columns(
    cuda: &Cuda,
    plan: &Plan,
    weighting: Weighting,
    values: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    if plan.in_columns() {
        let kernel = BackprojectKernel { name: "columns_of_voxels", depth: DEPTH, texture: None };
        backproject(cuda, plan, weighting, values, out, kernel)
    } else {
        voxels(cuda, plan, weighting, values, out)
    }
}

/// Back-projection with the texture unit; as [`columns`] where the views are too large or too many for a
/// texture.
pub(super) fn textured_columns(
    cuda: &Cuda,
    plan: &Plan,
    weighting: Weighting,
    values: &Array<f32>,
    out: &mut Array<f32>,
) -> Result<()> {
    let texture: Result<Texture> = cuda.layered_texture(values, Sampling::LINEAR);
    match texture {
        Ok(texture) if plan.in_columns() => {
            let kernel =
                BackprojectKernel { name: "voxels_in_texture", depth: DEPTH, texture: Some(&texture) };
            backproject(cuda, plan, weighting, values, out, kernel)
        }
        _ => columns(cuda, plan, weighting, values, out),
    }
}

/// A kernel of back-projection: the voxels along z that a thread takes, and the texture of the projections
/// where it reads them from one.
struct BackprojectKernel<'a> {
    name: &'static str,
    depth: u32,
    texture: Option<&'a Texture>,
}

fn backproject(
    cuda: &Cuda,
    plan: &Plan,
    weighting: Weighting,
    values: &Array<f32>,
    out: &mut Array<f32>,
    BackprojectKernel { name, depth, texture }: BackprojectKernel<'_>,
) -> Result<()> {
    check(plan, out.len(), values.len())?;
    let Some(matrices) = &plan.matrices else {
        return Err(Error::value("detector of back-projection on a GPU", "a flat one", "a curved one"));
    };
    let [views, rows, columns] = plan.sizes;
    let [nx, ny, nz] = plan.shape;
    let arguments = &mut [
        texture.map_or_else(|| values.cuda().into(), Argument::from),
        out.cuda_mut().into(),
        matrices.cuda().into(),
        views.into(),
        rows.into(),
        columns.into(),
        nx.into(),
        ny.into(),
        nz.into(),
        u32::from(weighting == Weighting::Even).into(),
    ];
    // SAFETY: the arrays have the sizes of the plan, and the kernels read pixels inside the detector only.
    unsafe { kernel(cuda, name)?.launch(plan.over_voxels(depth), arguments) }
}
