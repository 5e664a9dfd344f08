use std::ops::Range;

use rayspin_core::{ProjectionGeometry, Result, VolumeGrid, voxels};
use rayspin_device::{BackendKind, Device};
use rayspin_kernels::projection::Projector;

use super::{BatchSizes, parts};

/// Slices of a slab on a CPU; work is interrupted between slabs. The voxels of a column share most of the
/// work in a view, and each slab repeats it. So 256 slices take 1.8 s in one slab and 3.2 s in two (256³
/// voxels, 360 views of 256² pixels, two threads).
const CPU_SLAB: usize = 512;

/// Rays, voxels and device of a reconstruction, before anything is allocated.
#[derive(Debug)]
pub struct Spec<'a> {
    device: &'a Device,
    /// The devices that share the work: `device` and those beside it.
    devices: Vec<Device>,
    geometry: &'a ProjectionGeometry,
    grid: VolumeGrid,
    batch_sizes: BatchSizes,
    keeps_lines: bool,
    certifies: bool,
}

impl<'a> Spec<'a> {
    /// `beside` are the devices that share the work with `device`. `certifies` says whether outputs are to be
    /// compared with exact sums.
    pub(crate) fn new(
        device: &'a Device,
        beside: &[Device],
        geometry: &'a ProjectionGeometry,
        grid: VolumeGrid,
        batch_sizes: BatchSizes,
        certifies: bool,
    ) -> Self {
        // An attempt on a GPU may be followed by another one.
        let keeps_lines = device.kind() == BackendKind::Cuda || !beside.is_empty();
        let devices = std::iter::once(device).chain(beside).cloned().collect();
        Self { device, devices, geometry, grid, batch_sizes, keeps_lines, certifies }
    }

    /// Where it is computed.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// The devices that share the work. The first one is [`device`](Self::device).
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Whether several devices share the work.
    pub fn is_shared(&self) -> bool {
        self.devices.len() > 1
    }

    /// `0..count` in a part for each device, which differ by one at most.
    pub fn shares(&self, count: usize) -> Vec<Range<usize>> {
        let devices = self.devices.len();
        (0..devices).map(|k| k * count / devices..(k + 1) * count / devices).collect()
    }

    /// The rays.
    pub fn geometry(&self) -> &'a ProjectionGeometry {
        self.geometry
    }

    /// The voxels.
    pub fn grid(&self) -> &VolumeGrid {
        &self.grid
    }

    /// Whether a GPU computes.
    pub fn on_gpu(&self) -> bool {
        self.device.kind() == BackendKind::Cuda
    }

    /// Number of line integrals. Errors: more than an array may have.
    pub fn pixels(&self) -> Result<u64> {
        Ok(voxels(&self.geometry.shape())? as u64)
    }

    /// Number of voxels. Errors: more than an array may have.
    pub fn voxels(&self) -> Result<u64> {
        Ok(voxels(&self.grid.shape_zyx())? as u64)
    }

    /// Whether the line integrals are needed after the steps, for another attempt.
    pub fn keeps_lines(&self) -> bool {
        self.keeps_lines
    }

    /// Whether outputs are to be compared with exact sums.
    pub(crate) fn certifies(&self) -> bool {
        self.certifies
    }

    /// The slices of a device that it takes at a time, one part after another.
    pub fn slabs(&self, planes: &Range<usize>) -> Vec<Range<usize>> {
        let most = if self.on_gpu() { planes.len() } else { CPU_SLAB };
        let slabs = parts(planes.len(), self.batch_sizes.slices.unwrap_or(most));
        slabs.into_iter().map(|slab| planes.start + slab.start..planes.start + slab.end).collect()
    }

    /// Views that a GPU holds at a time.
    pub fn views_at_a_time(&self) -> usize {
        let views = self.geometry.views().len();
        self.batch_sizes.views.map_or(views, |some| some.min(views))
    }

    /// Bytes on the device of a projector of `views` views and `slices` slices, beside its arrays.
    pub fn projector_bytes(&self, views: u64, slices: u64) -> Result<u64> {
        let [_, rows, columns] = self.geometry.shape().map(|n| n as u64);
        let [_, ny, nx] = self.grid.shape_zyx().map(|n| n as u64);
        Ok(Projector::device_bytes(self.device, [views, rows, columns], [slices, ny, nx]))
    }

    /// The same for back-projection alone.
    pub fn backproject_bytes(&self, views: u64, slices: u64) -> u64 {
        let [_, rows, columns] = self.geometry.shape().map(|n| n as u64);
        let [_, ny, nx] = self.grid.shape_zyx().map(|n| n as u64);
        let parallel = self.geometry.is_parallel();
        Projector::backproject_bytes(self.device, parallel, [views, rows, columns], [slices, ny, nx])
    }
}
