#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use super::Axis;
use crate::vector::{SCALAR, Scalar, defines, scalars};

static SOURCE: Source =
    Source { name: "difference", files: &[SCALAR, ("difference.cu", include_str!("cuda/difference.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    let mut builds = scalars(&SOURCE);
    // The compiler spills up to 8 bytes of real f64 differences at capability 12.0, and nothing at others.
    for build in builds.iter_mut().filter(|build| build.defines == defines::<f64>()) {
        build.spill_bytes = 8;
    }
    builds
}

const THREADS: u32 = 256;

/// The kernel `name` over an image of `len` elements, from `from` to `to`.
pub(super) fn run<S: Scalar>(
    cuda: &Cuda,
    name: &str,
    axes: &[Axis],
    len: usize,
    from: &Array<S>,
    to: &mut Array<S>,
) -> Result<()> {
    if axes.len() > 3 {
        return Err(Error::value("axes of finite differences on a GPU", "at most 3", axes.len()));
    }
    let mut arguments: Vec<Argument<'_>> =
        vec![from.cuda().into(), to.cuda_mut().into(), (len as u64).into(), Argument::count(axes.len())?];
    for i in 0..3 {
        let axis = axes.get(i).copied().unwrap_or(Axis { size: 1, step: 1, weight: 0.0 });
        arguments.extend([
            Argument::from(axis.size as u64),
            Argument::from(axis.step as u64),
            Argument::real(<S::Real as Real>::from_f64(axis.weight)),
        ]);
    }
    let shape = Launch::covering(len, THREADS);
    // SAFETY: the public functions found the image's `len` elements on one side and as many for each axis, or
    // once, on the other; the sizes and steps of the image's own axes keep neighbours inside.
    unsafe { cuda.kernel(&SOURCE, &defines::<S>(), name)?.launch(shape, &mut arguments) }
}
