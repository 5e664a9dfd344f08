use rayspin_core::{C32, Result};
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda};

use crate::cuda::define;

pub(crate) static SOURCE: Source =
    Source { name: "pocs", files: &[("pocs.cu", include_str!("cuda/pocs.cu"))] };

const THREADS: u32 = 256;

pub(super) fn take_phase(cuda: &Cuda, phase: &Array<C32>, image: &mut Array<C32>) -> Result<()> {
    let len = image.len();
    cuda.kernel(&SOURCE, &[define::<f32>()], "take_phase")?.launch(
        Launch::covering(len, THREADS),
        &mut [phase.cuda().into(), image.cuda_mut().into(), (len as u64).into()],
    )
}

pub(super) fn restore(
    cuda: &Cuda,
    mask: &Array<f32>,
    measured: &Array<C32>,
    kspace: &mut Array<C32>,
) -> Result<()> {
    let len = kspace.len();
    cuda.kernel(&SOURCE, &[define::<f32>()], "restore")?.launch(
        Launch::covering(len, THREADS),
        &mut [mask.cuda().into(), measured.cuda().into(), kspace.cuda_mut().into(), (len as u64).into()],
    )
}
