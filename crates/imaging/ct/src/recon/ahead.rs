//! Compiles the kernels of a reconstruction before it begins.

use ndarray::Array3;
use rayspin_core::{C32, Monitor, ProjectionGeometry, Result};
use rayspin_device::cpu::zeroed;
use rayspin_device::{Array, Device};
use rayspin_kernels::row_filter::add_outer;
use rayspin_kernels::vector;
use rayspin_run::decisive;

use super::{ReconOptions, reconstruct};
use crate::methods::Facts;

/// Compiles on all cores the GPU kernels that a reconstruction of these rays needs, where the cache lacks
/// them.
///
/// It rehearses the reconstruction on a device that runs nothing ([`Device::compile_ahead`]), without
/// certificates. Kernels that the rehearsal does not load are compiled when they are needed. Nothing happens
/// on a CPU.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_ct::methods::Fbp;
/// use rayspin_ct::recon::{ReconOptions, compile_ahead};
/// use rayspin_device::Device;
///
/// let detector = Detector { rows: 1, columns: 64, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let geometry = ProjectionGeometry::orbit(detector, &Orbit::default().turn(90))?;
/// let grid = VolumeGrid::new([1, 64, 64], [1.0; 3], [0.0; 3])?;
/// compile_ahead(&Device::cpu()?, &geometry, &ReconOptions::new(Fbp::default(), grid));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn compile_ahead(device: &Device, geometry: &ProjectionGeometry, options: &ReconOptions) {
    device.compile_ahead(&name(geometry, options), |device| rehearse(device, geometry, options));
}

/// Does what a reconstruction of these rays does, on a device that runs nothing and records the programs that
/// are loaded ([`rayspin_device::cuda::NullDriver`]).
pub fn rehearse(device: &Device, geometry: &ProjectionGeometry, options: &ReconOptions) {
    // What the other devices do needs the programs of their own parts.
    let beside = vec![device.clone(); options.beside.len()];
    let options = ReconOptions { certify: None, finish_on_cpu: false, beside, ..options.clone() };
    // Zeros take no memory until something reads them. What a method refuses as line integrals ends the list
    // of programs.
    let [views, rows, columns] = geometry.shape();
    let lines = rayspin_core::voxels(&geometry.shape()).and_then(|count| zeroed("line integrals", count));
    let lines = lines.map(|lines| Array3::from_shape_vec((views, rows, columns), lines));
    if let Ok(Ok(lines)) = lines {
        let _ = reconstruct(device, lines, geometry, &options, &Monitor::silent());
    }
    let _ = add(device, &options);
}

/// What adds extensions of rows, which zeros do not have.
fn add(device: &Device, options: &ReconOptions) -> Result<()> {
    if options.method.filter().is_some() {
        let one = Array::zeros(device, &[1, 1, 1])?;
        add_outer(&one, &one, &mut Array::zeros(device, &[1, 1, 1])?, 0)
    } else if options.method.get("extend").is_some() {
        vector::axpy(1.0.into(), &Array::<C32>::zeros(device, &[1])?, &mut Array::zeros(device, &[1])?)
    } else {
        Ok(())
    }
}

/// What decides the programs.
fn name(geometry: &ProjectionGeometry, options: &ReconOptions) -> String {
    let ReconOptions { method, grid, batch_sizes, beside, .. } = options;
    let devices = 1 + beside.len();
    format!(
        "CT {} {} {:?} {:?} {:?} {:?} {batch_sizes:?} {devices}",
        method.about().name,
        decisive(&**method),
        Facts::of(geometry),
        geometry.detector(),
        geometry.shape(),
        grid.shape_zyx(),
    )
}
