//! From line integrals to a volume: a method's steps, planned and run.

mod ahead;
mod arriving;
mod grid;
mod prepare;

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::Array3;
use rayspin_core::{Monitor, ProjectionGeometry, Result, VolumeGrid, expect_shape};
use rayspin_device::Device;
use rayspin_run::{BatchSize, Budget, Bytes, Certify, Ledger, Recoverable, halve, with_recovery};

use crate::methods::{Method, Shared};
use crate::scan::{angle_notes, view_angles};
pub use crate::solving::{BatchSizes, Certificate, Reconstruction, Solve, Solving, Spec};
use crate::solving::{REAL, checks, lost};
pub use ahead::{compile_ahead, rehearse};
pub use arriving::{Arriving, arriving_budget, slices_at_a_time};
pub use grid::{GridOptions, even_angles, grid};
pub use prepare::{AxisOn, Prepared, RayOptions, axis_note, prepare, with_axis};

/// What decides the volume, and how the run is cut.
#[derive(Debug, Clone)]
pub struct ReconOptions {
    /// The method.
    pub method: Arc<dyn Method>,
    /// The voxels.
    pub grid: VolumeGrid,
    /// How the run checks itself; it does not when absent.
    pub certify: Option<Certify>,
    /// How the work is cut.
    pub batch_sizes: BatchSizes,
    /// The devices beside the first, which share its work as [`Method::shared`] says.
    pub beside: Vec<Device>,
    /// Whether the CPU takes over when a GPU fails.
    pub finish_on_cpu: bool,
}

impl ReconOptions {
    /// A method with its defaults, in these voxels.
    pub fn new(method: impl Method + 'static, grid: VolumeGrid) -> Self {
        Self {
            method: Arc::new(method),
            grid,
            certify: None,
            batch_sizes: BatchSizes::default(),
            beside: Vec::new(),
            finish_on_cpu: false,
        }
    }

    /// What the devices share, and how much of it each takes; none where the first one does all of it.
    pub fn shares(&self, geometry: &ProjectionGeometry) -> Option<(Shared, Vec<usize>)> {
        let shared = self.shared(geometry)?;
        let devices = shared.parts.min(1 + self.beside.len());
        (devices > 1).then(|| (shared, shared.of_each(devices)))
    }

    /// The batch sizes of a run of this scan. Where devices share the slices, the batch sizes are those of
    /// the device with most slices.
    pub fn batches(&self, geometry: &ProjectionGeometry) -> Vec<BatchSize> {
        let mut volume = self.grid.shape_zyx();
        if let Some((Shared { what: "slices", .. }, shares)) = self.shares(geometry) {
            volume[0] = shares.into_iter().max().unwrap_or(volume[0]);
        }
        self.batch_sizes.list(geometry.shape(), volume)
    }

    /// What several devices may share.
    pub fn shared(&self, geometry: &ProjectionGeometry) -> Option<Shared> {
        self.method.shared(geometry.views().len(), self.grid.shape_zyx()[0])
    }

    /// What a method gets for these rays.
    fn spec<'a>(&self, device: &'a Device, geometry: &'a ProjectionGeometry) -> Spec<'a> {
        let others = self.shares(geometry).map_or(0, |(_, shares)| shares.len() - 1);
        let beside = &self.beside[..others];
        Spec::new(device, beside, geometry, self.grid, self.batch_sizes, self.certify.is_some())
    }
}

/// What [`reconstruct`] takes for these rays on this device, the line integrals included.
///
/// Errors: a method that does not take these rays.
pub fn budget(device: &Device, geometry: &ProjectionGeometry, options: &ReconOptions) -> Result<Budget> {
    let spec = options.spec(device, geometry);
    let mut ledger = Ledger::new(Bytes::host(REAL * spec.pixels()?), 1);
    ledger.result(REAL * spec.voxels()?);
    options.method.steps(&spec)?.into_iter().try_for_each(|step| ledger.add(step))?;
    Ok(ledger.finish())
}

/// Makes a volume of line integrals `[view, row, column]`.
///
/// [Devices beside](ReconOptions::beside) the first share its work. The volume has the same bits from run to
/// run on as many devices, and agrees with the volume of one device to rounding.
///
/// Where the memory of a GPU runs out, the work is cut further; where a GPU fails, the CPU takes over if it
/// may.
///
/// Errors: shapes; a method that does not take these rays; a volume that no ray meets, or whose voxels are
/// not finite; memory; interruption.
///
/// ```
/// use ndarray::Array3;
/// use rayspin_core::{Detector, Monitor, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_ct::methods::Fbp;
/// use rayspin_ct::phantom::{Form, Phantom, Solid};
/// use rayspin_ct::recon::{ReconOptions, reconstruct};
/// use rayspin_device::Device;
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 1, columns: 64, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 90);
/// let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
/// let rod = Phantom::new(vec![Solid::new(Form::Cylinder, [0.0; 3], [20.0, 20.0, 1e3], 0.02)])?;
/// let lines = Array3::from_shape_vec((90, 1, 64), rod.project(device.cpu_side(), &geometry)?)?;
/// let options = ReconOptions::new(Fbp::default(), VolumeGrid::new([1, 64, 64], [1.0; 3], [0.0; 3])?);
/// let found = reconstruct(&device, lines, &geometry, &options, &Monitor::silent())?;
/// assert!((found.volume[[0, 32, 32]] - 0.02).abs() < 2e-4); // 1/mm
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn reconstruct(
    device: &Device,
    lines: Array3<f32>,
    geometry: &ProjectionGeometry,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<Reconstruction> {
    expect_shape("line integrals", &geometry.shape(), lines.shape())?;
    checks::expect_met(geometry, &options.grid)?;
    let mut job = Attempts { device: device.clone(), geometry, options: options.clone() };
    let (mut notes, mut lines) = (angle_notes(&view_angles(geometry)), Some(lines));
    let mut made = with_recovery(&mut job, &mut notes, |job, last| {
        let lines = match last {
            true => lines.take().map(Cow::Owned),
            false => lines.as_ref().map(Cow::Borrowed),
        };
        job.attempt(lines.ok_or_else(|| lost("line integrals"))?, monitor)
    })?;
    notes.append(&mut made.notes);
    Ok(Reconstruction { notes, ..made })
}

struct Attempts<'a> {
    device: Device,
    geometry: &'a ProjectionGeometry,
    options: ReconOptions,
}

impl Attempts<'_> {
    fn attempt(&self, lines: Cow<'_, Array3<f32>>, monitor: &Monitor<'_>) -> Result<Reconstruction> {
        let spec = self.options.spec(&self.device, self.geometry);
        let attempt = || {
            let steps = self.options.method.steps(&spec)?;
            let mut state = Solving::new(&spec, lines, self.options.certify);
            rayspin_run::run(steps, &mut state, monitor)?;
            state.into_made()
        };
        if !spec.is_shared() {
            return attempt();
        }
        // An error without a name is of what the first device alone does.
        let made = attempt().map_err(|error| self.device.named(error))?;
        // What has failed on another device may not be told yet.
        for device in spec.devices() {
            device.synchronize().map_err(|error| device.named(error))?;
        }
        Ok(made)
    }
}

impl Recoverable for Attempts<'_> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn beside(&self) -> &[Device] {
        &self.options.beside
    }

    fn finish_on_cpu(&self) -> bool {
        self.options.finish_on_cpu
    }

    fn give_back(&mut self) {}

    fn reduce_batch(&mut self) -> Result<Option<String>> {
        let sizes = self.options.batches(self.geometry);
        let Some((size, to)) = halve(&sizes, true) else { return Ok(None) };
        self.options.batch_sizes.set(size.name, to);
        Ok(Some((size.describe)(to)))
    }

    fn move_to(&mut self, device: Device) {
        self.device = device;
        self.options.beside.clear();
    }
}

#[cfg(test)]
mod tests;
