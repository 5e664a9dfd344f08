use rayspin_core::{ProjectionGeometry, Result, VolumeGrid};
use rayspin_device::{Array, Device};
use rayspin_kernels::projection::{Number, Projector};
use rayspin_kernels::vector::Scalar;

use crate::{LinearOp, Scratch};

/// A: the line integrals of a volume `[z, y, x]` along the rays of a CT scan, `[view, row, column]`, by
/// Joseph's method ([`Projector`]). Its adjoint has the same weights. f64 on a CPU only.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_device::Device;
/// use rayspin_linop::{Projection, laws};
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 3, columns: 7, pitch_mm: [2.0, 2.0], radius_mm: None };
/// let orbit = Orbit { source_to_axis_mm: Some(50.0), axis_to_detector_mm: 50.0, ..Orbit::default() };
/// let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(5))?;
/// let project = Projection::<f32>::new(&device, &geometry, &VolumeGrid::new([3, 6, 6], [1.0; 3], [0.0; 3])?)?;
/// assert!(laws::check(&project, &device, 1)?.adjointness < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Projection<R: Scalar> {
    projector: Projector,
    domain: [usize; 3],
    range: [usize; 3],
    scratch: Scratch<R>,
}

impl<R: Scalar> Projection<R> {
    /// Along the rays of `geometry` through the voxels of `grid`.
    ///
    /// Errors: sizes of 2³⁰ and more on a GPU; memory.
    pub fn new(device: &Device, geometry: &ProjectionGeometry, grid: &VolumeGrid) -> Result<Self> {
        Ok(Self {
            projector: Projector::new(device, geometry, grid)?,
            domain: grid.shape_zyx(),
            range: geometry.shape(),
            scratch: Scratch::default(),
        })
    }
}

impl<R: Scalar + Number> LinearOp<R> for Projection<R> {
    fn name(&self) -> &str {
        "projection"
    }
    fn domain(&self) -> &[usize] {
        &self.domain
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<R>, y: &mut Array<R>) -> Result<()> {
        self.check_forward(x, y)?;
        self.projector.forward(x, y)
    }
    fn adjoint_into(&self, y: &Array<R>, x: &mut Array<R>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.projector.adjoint(y, x)
    }
    fn scratch(&self) -> Option<&Scratch<R>> {
        Some(&self.scratch)
    }
}
