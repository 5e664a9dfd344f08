//! Samples at points anywhere: F is a NUFFT.
//!
//! ```text
//! (Fρ)(m) = Σ_x ρ(x) e^{−i2πk_m·x} = N d(m),   (FᴴF ρ)(x) = Σ_x′ Q(x − x′) ρ(x′),   Q(x) = Σ_m e^{i2πk_m·x}
//! ```
//!
//! The normal operator is a convolution, computed by an FFT of twice the size ([`Toeplitz`]). Other encodings
//! multiply before and after such transforms:
//!
//! ```text
//! A = Σ_l diag(b_l) F diag(a_l),   AᴴA = Σ_lm diag(ā_l) Fᴴ diag(b̄_l b_m) F diag(a_m)
//! ```
//!
//! A [`Modulation`] states these products; [`Still`] has none. The points may be the measured places of a
//! grid, for encodings that are no FFT there.
//!
//! Fessler, Sutton, *Nonuniform fast Fourier transforms using min-max interpolation*, IEEE Trans Signal
//! Process 51:560, 2003; Wajer, Pruessmann, *Major speedup of reconstruction for sensitivity encoding with
//! arbitrary trajectories*, ISMRM 2001.

mod needs;
mod plans;
mod spec;

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use rayspin_core::{C32, C64, Result, Trajectory};
use rayspin_device::Array;
use rayspin_kernels::nudft;
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_linop::{CoilMaps, LinearOp, SenseToeplitz, ToeplitzNormal};
use rayspin_run::Cost;

use super::{EncodingSpec, Given, Grid, Row};
use crate::encoding::blocks::Transforms;
use crate::encoding::certify::{Exact, displacement};
use crate::encoding::joined::measured;
use crate::encoding::{Extent, Settings, Spec, count};
use needs::PointNeeds;
pub(in crate::encoding) use plans::Plans;
pub(super) use plans::missing;

pub(super) const ROW: Row = Row {
    encodes: |on_grid, _| !on_grid,
    on_grid: false,
    place: "for a scan with a trajectory",
    spec,
    extent: |frame, _| Extent { points: measured(frame), ..Extent::default() },
    #[cfg(test)]
    examples,
};

fn spec<'a>(given: &Given<'a>) -> Result<Box<dyn EncodingSpec + 'a>> {
    let trajectory = given.inputs.expect_trajectory()?.clone();
    Ok(Box::new(Points::new(given, trajectory, Still)))
}

/// Samples along a trajectory.
pub(super) struct Points<'a, M> {
    matrix: &'a [usize],
    trajectory: Trajectory,
    modulation: M,
    /// The grid that they are of, and their places there.
    grid: Option<(Grid<'a>, Vec<usize>)>,
    needs: OnceCell<PointNeeds>,
}

impl<'a, M> Points<'a, M> {
    pub(super) fn new(given: &Given<'a>, trajectory: Trajectory, modulation: M) -> Self {
        Self { matrix: given.inputs.matrix(), trajectory, modulation, grid: None, needs: OnceCell::new() }
    }

    /// Measured places of a grid.
    pub(super) fn of_grid(self, grid: Grid<'a>, places: Vec<usize>) -> Self {
        Self { grid: Some((grid, places)), ..self }
    }

    /// Samples of a coil.
    fn count(&self) -> u64 {
        self.trajectory.samples() as u64
    }

    /// Voxels of the image.
    fn voxels(&self) -> u64 {
        count(self.matrix)
    }
}

/// How many transforms an encoding of points takes.
pub(super) struct Counts {
    /// NUFFTs of an encoding.
    pub(super) encodings: u64,
    /// Convolutions of a normal operator.
    pub(super) convolutions: u64,
    /// Bytes of arrays of their own for each coil, besides its image and samples.
    pub(super) of_coil: u64,
}

/// The products before and after the NUFFTs of an encoding.
pub(super) trait Modulation {
    /// What it keeps for later frames.
    type Plans: Modulated;

    /// Whether there are any.
    const MULTIPLIES: bool = true;

    /// The step that plans it.
    const STEP: &'static str;

    /// Coefficients that together are the images of the frames.
    fn coefficients(&self) -> Option<usize> {
        None
    }

    /// Transforms of images of `voxels` voxels and of `samples` samples.
    fn counts(&self, settings: &Settings<'_>, samples: u64, voxels: u64) -> Result<Counts>;

    /// Bytes of the weights of all convolutions' kernels, and of what they are made from.
    fn table(&self, samples: u64, convolutions: u64) -> u64;

    /// What [`Self::plan`] takes.
    fn needs(&self, spec: &Spec<'_>, encodings: u64) -> Cost;

    /// Its plans, and what a run says of them.
    fn plan(&self, spec: &Spec<'_>) -> Result<(Self::Plans, Vec<String>)>;

    /// Whether plans of a frame before do for this one; then they take over what may differ.
    fn take_over(&self, spec: &Spec<'_>, plans: &mut Self::Plans) -> Result<bool>;
}

/// A kernel of a convolution from weights of the samples, or 1.
pub(super) type MakeKernel<'m> = &'m mut dyn FnMut(Option<&[f32]>) -> Result<Toeplitz<f32>>;

/// A modulation with its plans.
pub(in crate::encoding) trait Modulated: 'static {
    /// Names of the certificates: of the adjoint, the encoding and the normal operator.
    const CERTIFICATES: [&'static str; 3] = ["NUFFT adjoint", "NUFFT forward", "Toeplitz normal operator"];

    /// What it adds to the bound on the transforms' relative l2 error.
    fn tolerance(_: &Settings<'_>) -> f64 {
        0.0
    }

    /// Whether the normal operator is planned.
    fn has_normal(&self) -> bool;

    /// Makes the kernels of the normal operator. A GPU holds `resident` of their spectra.
    fn plan_normal(&mut self, plan: &Transforms, resident: Option<usize>, make: MakeKernel<'_>)
    -> Result<()>;

    /// Aᴴ of `[batch.., sample]` to `[batch.., image..]`.
    fn adjoint(&self, plan: &Transforms, samples: &Array<C32>, images: &mut Array<C32>) -> Result<()>;

    /// A of one coil's image to its samples.
    fn forward(&self, plan: &Transforms, image: &Array<C32>, samples: &mut Array<C32>) -> Result<()>;

    /// Adds Σ_j c̄_j Aᴴ d_j of the samples `[coil, sample]` of some coils to `sum`.
    fn combine(
        &self,
        plan: &Transforms,
        samples: Array<C32>,
        maps: &CoilMaps<f32>,
        coils: Range<usize>,
        sum: &mut Array<C32>,
    ) -> Result<()> {
        let mut images = Array::zeros(plan.device(), &[&[coils.len()], plan.matrix()].concat())?;
        self.adjoint(plan, &samples, &mut images)?;
        drop(samples);
        maps.combine_add(coils, &images, sum)
    }

    /// AᴴA over leading axes `batch`.
    fn normal(&self, batch: &[usize]) -> Result<Arc<dyn LinearOp<C32>>>;

    /// Σ_j c̄_j AᴴA c_j.
    fn normal_of_coils(&self, maps: CoilMaps<f32>) -> Result<Arc<dyn LinearOp<C32>>>;

    /// Its sums in double precision.
    fn exact<'e>(&'e self, plan: &'e Transforms) -> Result<Box<dyn Exact + 'e>>;
}

/// No products: A is the NUFFT alone.
pub(super) struct Still;

impl Modulation for Still {
    type Plans = Kernel;
    const MULTIPLIES: bool = false;
    const STEP: &'static str = "";

    fn counts(&self, _: &Settings<'_>, _: u64, _: u64) -> Result<Counts> {
        Ok(Counts { encodings: 1, convolutions: 1, of_coil: 0 })
    }

    fn table(&self, _: u64, _: u64) -> u64 {
        0
    }

    fn needs(&self, _: &Spec<'_>, _: u64) -> Cost {
        Cost::default()
    }

    fn plan(&self, _: &Spec<'_>) -> Result<(Kernel, Vec<String>)> {
        Ok((Kernel(None), Vec::new()))
    }

    fn take_over(&self, _: &Spec<'_>, _: &mut Kernel) -> Result<bool> {
        Ok(true)
    }
}

/// The one kernel of FᴴF.
pub(super) struct Kernel(Option<Arc<Toeplitz<f32>>>);

impl Kernel {
    fn kernel(&self) -> Result<Arc<Toeplitz<f32>>> {
        self.0.clone().ok_or_else(|| missing("Toeplitz kernel"))
    }
}

impl Modulated for Kernel {
    fn has_normal(&self) -> bool {
        self.0.is_some()
    }

    fn plan_normal(&mut self, _: &Transforms, _: Option<usize>, make: MakeKernel<'_>) -> Result<()> {
        self.0 = Some(Arc::new(make(None)?));
        Ok(())
    }

    fn adjoint(&self, plan: &Transforms, samples: &Array<C32>, images: &mut Array<C32>) -> Result<()> {
        plan.adjoint(samples, images)
    }

    fn forward(&self, plan: &Transforms, image: &Array<C32>, samples: &mut Array<C32>) -> Result<()> {
        plan.forward(image, samples)
    }

    fn normal(&self, batch: &[usize]) -> Result<Arc<dyn LinearOp<C32>>> {
        Ok(Arc::new(ToeplitzNormal::new(batch, self.kernel()?)))
    }

    fn normal_of_coils(&self, maps: CoilMaps<f32>) -> Result<Arc<dyn LinearOp<C32>>> {
        Ok(Arc::new(SenseToeplitz::new(maps, self.kernel()?)?))
    }

    fn exact<'e>(&'e self, plan: &'e Transforms) -> Result<Box<dyn Exact + 'e>> {
        Ok(Box::new(Sums { trajectory: plan.trajectory(), matrix: plan.matrix() }))
    }
}

/// The sums of F.
struct Sums<'e> {
    trajectory: &'e Trajectory,
    matrix: &'e [usize],
}

impl Exact for Sums<'_> {
    fn adjoint(&self, samples: &[C32], indices: &[usize]) -> Result<Vec<C64>> {
        nudft::reference::adjoint_at(self.trajectory, self.matrix, samples, indices)
    }

    fn forward(&self, image: &[C32], indices: &[usize]) -> Result<Vec<C64>> {
        nudft::reference::forward_at(self.trajectory, self.matrix, image, indices)
    }

    fn column(&self, from: usize, indices: &[usize]) -> Result<Vec<C64>> {
        let displaced: Vec<usize> = indices.iter().map(|&to| displacement(self.matrix, from, to)).collect();
        nudft::reference::q_at::<f32>(self.trajectory, self.matrix, None, &displaced)
    }
}

#[cfg(test)]
fn examples(draw: &mut super::tests::Draw) -> Vec<super::tests::Example> {
    use super::tests::{Example, options, rows, waves};
    let example = |(matrix, samples): (Vec<usize>, usize)| {
        let (frame, trajectory) = draw.points(&matrix, samples);
        let scale = matrix.iter().product::<usize>() as f64;
        let waves = waves(&rows(&trajectory), &matrix);
        Example { frame, of_frames: None, options: options(), matrix: waves, scale }
    };
    [(vec![6, 7], 31), (vec![3, 5, 4], 40)].into_iter().map(example).collect()
}
