#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C32, Result};
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use crate::cuda::{define, single};

static SOURCE: Source = Source { name: "pocs", files: &[("pocs.cu", include_str!("cuda/pocs.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    single(&SOURCE)
}

const THREADS: u32 = 256;

pub(super) fn project_phase(cuda: &Cuda, phase: &Array<C32>, image: &mut Array<C32>) -> Result<()> {
    let len = image.len();
    let arguments = &mut [phase.cuda().into(), image.cuda_mut().into(), (len as u64).into()];
    let shape = Launch::covering(len, THREADS);
    // SAFETY: the shapes of both were compared.
    unsafe { cuda.kernel(&SOURCE, &[define::<f32>()], "project_phase")?.launch(shape, arguments) }
}

pub(super) fn restore_samples(
    cuda: &Cuda,
    mask: &Array<f32>,
    measured: &Array<C32>,
    kspace: &mut Array<C32>,
) -> Result<()> {
    let len = kspace.len();
    let arguments =
        &mut [mask.cuda().into(), measured.cuda().into(), kspace.cuda_mut().into(), (len as u64).into()];
    let shape = Launch::covering(len, THREADS);
    // SAFETY: the shapes of all three were compared.
    unsafe { cuda.kernel(&SOURCE, &[define::<f32>()], "restore_samples")?.launch(shape, arguments) }
}
