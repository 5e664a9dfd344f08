#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::SegmentWeights;
use crate::cuda::{both, define};

static SOURCE: Source =
    Source { name: "off_resonance", files: &[("off_resonance.cu", include_str!("cuda/off_resonance.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    both(&SOURCE)
}

const THREADS: u32 = 256;

pub(super) fn modulate<R: Real>(
    cuda: &Cuda,
    field: &Array<R>,
    tau: f64,
    x: &Array<Complex<R>>,
    y: &mut Array<Complex<R>>,
    add: bool,
) -> Result<()> {
    let voxels = field.len();
    let arguments = &mut [
        field.cuda().into(),
        tau.into(),
        x.cuda().into(),
        y.cuda_mut().into(),
        (voxels as u64).into(),
        Argument::count(x.len() / voxels)?,
        u32::from(add).into(),
    ];
    let shape = Launch::covering(voxels, THREADS);
    // SAFETY: the shapes of both images were compared, and end in the field's.
    unsafe { cuda.kernel(&SOURCE, &[define::<R>()], "modulate")?.launch(shape, arguments) }
}

pub(super) fn weigh<R: Real>(
    cuda: &Cuda,
    weights: SegmentWeights<'_, R>,
    x: &Array<Complex<R>>,
    y: &mut Array<Complex<R>>,
    add: bool,
) -> Result<()> {
    let SegmentWeights { table, segment, index, conjugate } = weights;
    let (samples, times) = (index.len(), table.shape()[1]);
    let row = table.cuda().part(segment * times, times).ok_or_else(|| {
        Error::value("segment of an off-resonance transform", format!("below {}", table.shape()[0]), segment)
    })?;
    let arguments = &mut [
        row.into(),
        index.cuda().into(),
        x.cuda().into(),
        y.cuda_mut().into(),
        (samples as u64).into(),
        Argument::count(x.len() / samples)?,
        u32::from(conjugate).into(),
        u32::from(add).into(),
    ];
    let shape = Launch::covering(samples, THREADS);
    // SAFETY: the shapes of both sets of samples were compared, and end in the indices' shape, which
    // `Segments` made for the table's times.
    unsafe { cuda.kernel(&SOURCE, &[define::<R>()], "weigh")?.launch(shape, arguments) }
}
