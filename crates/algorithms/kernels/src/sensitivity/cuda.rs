#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::ops::Range;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Argument, Kernel, Launch, Source, View};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use crate::cuda::{both, define};

static SOURCE: Source =
    Source { name: "sensitivity", files: &[("sensitivity.cu", include_str!("cuda/sensitivity.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    both(&SOURCE)
}

const THREADS: u32 = 256;

fn kernel<R: Real>(cuda: &Cuda, name: &str) -> Result<Kernel> {
    cuda.kernel(&SOURCE, &[define::<R>()], name)
}

/// The stretch of maps or images that some coils take.
pub(super) fn stretch<'a, R: Real>(
    array: &'a Array<Complex<R>>,
    taken: &Range<usize>,
) -> Result<View<'a, Complex<R>>> {
    array.cuda().part(taken.start, taken.len()).ok_or_else(|| {
        Error::value("arrays of coils", format!("a range within 0..{}", array.len()), format!("{taken:?}"))
    })
}

pub(super) fn expand<R: Real>(
    cuda: &Cuda,
    maps: &Array<Complex<R>>,
    taken: Range<usize>,
    image: &Array<Complex<R>>,
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    let voxels = image.len();
    let arguments = &mut [
        stretch(maps, &taken)?.into(),
        image.cuda().into(),
        out.cuda_mut().into(),
        (voxels as u64).into(),
        Argument::count(taken.len() / voxels)?,
    ];
    // SAFETY: `super::check` found an image for each map that is taken.
    unsafe { kernel::<R>(cuda, "expand")?.launch(Launch::covering(voxels, THREADS), arguments) }
}

pub(super) fn combine<R: Real>(
    cuda: &Cuda,
    maps: View<'_, Complex<R>>,
    images: View<'_, Complex<R>>,
    out: &mut Array<Complex<R>>,
    add: bool,
) -> Result<()> {
    let voxels = out.len();
    let count = Argument::count(maps.len() / voxels)?;
    let arguments = &mut [
        maps.into(),
        images.into(),
        out.cuda_mut().into(),
        (voxels as u64).into(),
        count,
        u32::from(add).into(),
    ];
    // SAFETY: as for `expand`.
    unsafe { kernel::<R>(cuda, "combine")?.launch(Launch::covering(voxels, THREADS), arguments) }
}

pub(super) fn sum_of_squares<R: Real>(
    cuda: &Cuda,
    images: &Array<Complex<R>>,
    out: &mut Array<R>,
    root: bool,
    add: bool,
) -> Result<()> {
    let voxels = out.len();
    let arguments = &mut [
        images.cuda().into(),
        out.cuda_mut().into(),
        (voxels as u64).into(),
        Argument::count(images.len() / voxels)?,
        u32::from(root).into(),
        u32::from(add).into(),
    ];
    // SAFETY: as many images as have all of their voxels are read, and a number a voxel is written.
    unsafe { kernel::<R>(cuda, "sum_of_squares")?.launch(Launch::covering(voxels, THREADS), arguments) }
}

pub(super) fn normalise<R: Real>(
    cuda: &Cuda,
    maps: &Array<Complex<R>>,
    image: &mut Array<Complex<R>>,
) -> Result<()> {
    let voxels = image.len();
    let arguments = &mut [
        maps.cuda().into(),
        image.cuda_mut().into(),
        (voxels as u64).into(),
        Argument::count(maps.len() / voxels)?,
    ];
    // SAFETY: as for `sum_of_squares`.
    unsafe { kernel::<R>(cuda, "normalise")?.launch(Launch::covering(voxels, THREADS), arguments) }
}

pub(super) fn divide<R: Real>(cuda: &Cuda, weight: &Array<R>, image: &mut Array<Complex<R>>) -> Result<()> {
    let voxels = image.len();
    let arguments = &mut [weight.cuda().into(), image.cuda_mut().into(), (voxels as u64).into()];
    // SAFETY: a weight is read and a voxel written, `voxels` of each.
    unsafe { kernel::<R>(cuda, "divide")?.launch(Launch::covering(voxels, THREADS), arguments) }
}
