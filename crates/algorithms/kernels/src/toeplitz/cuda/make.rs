//! Phases and the mirrored half of Q, on a GPU.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use num_complex::Complex;
use rayspin_core::{Real, Result, Trajectory, expect_len};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda, Device};

use crate::cuda::define;

pub(super) static SOURCE: Source =
    Source { name: "toeplitz making", files: &[crate::nudft::PHASE, ("make.cu", include_str!("make.cu"))] };

const THREADS: u32 = 256;

/// Points of a trajectory in the GPU's memory.
pub(in crate::toeplitz) struct Points {
    points: Array<f64>,
    samples: usize,
    dims: usize,
}

impl Points {
    pub(in crate::toeplitz) fn new(device: &Device, trajectory: &Trajectory) -> Result<Self> {
        let (samples, dims) = trajectory.points().dim();
        let points = Array::from_host(device, trajectory.points().into_dyn())?;
        Ok(Self { points, samples, dims })
    }

    /// e^{i2πk·s} of every sample; `shift` in fields of view, its components in the order of the
    /// trajectory's.
    pub(in crate::toeplitz) fn phases<R: Real>(
        &self,
        cuda: &Cuda,
        shift: [f64; 3],
        out: &mut Array<Complex<R>>,
    ) -> Result<()> {
        let [x, y, z] = shift;
        expect_len("phases", &[self.samples], out.len())?;
        let arguments = &mut [
            self.points.cuda().into(),
            Argument::from(self.dims as i32),
            x.into(),
            y.into(),
            z.into(),
            out.cuda_mut().into(),
            (self.samples as u64).into(),
        ];
        let shape = Launch::covering(self.samples, THREADS);
        // SAFETY: there are `dims` coordinates a sample, and a phase for each.
        unsafe { cuda.kernel(&SOURCE, &[define::<R>()], "phases")?.launch(shape, arguments) }
    }
}

/// Fills displacements −n < d < 0 of the first axis of `q`, `[2n, ..]`.
pub(in crate::toeplitz) fn mirror<R: Real>(
    cuda: &Cuda,
    doubled: &[usize],
    q: &mut Array<Complex<R>>,
) -> Result<()> {
    let (m1, m2) = match *doubled {
        [_, m1, m2] => (m1, m2),
        [_, m2] => (1, m2),
        _ => (1, 1),
    };
    let n0 = doubled[0] / 2;
    expect_len("Toeplitz kernel", &[2 * n0, m1, m2], q.len())?;
    let arguments =
        &mut [q.cuda_mut().into(), (n0 as u64).into(), Argument::count(m1)?, Argument::count(m2)?];
    let shape = Launch::covering(n0 * m1 * m2, THREADS);
    // SAFETY: both halves of the kernel are there.
    unsafe { cuda.kernel(&SOURCE, &[define::<R>()], "mirror")?.launch(shape, arguments) }
}
