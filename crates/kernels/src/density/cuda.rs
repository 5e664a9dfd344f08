use rayspin_core::{C32, Error, Result};
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda};

use crate::cuda::define;

pub(crate) static SOURCE: Source =
    Source { name: "density", files: &[("density.cu", include_str!("cuda/density.cu"))] };

const THREADS: u32 = 256;

/// w ← w / s, of the real parts, for the weights from `first` on.
pub(super) fn divide(
    cuda: &Cuda,
    weights: &mut Array<C32>,
    first: usize,
    smoothed: &Array<C32>,
) -> Result<()> {
    let len = smoothed.len();
    let (all, mut weights) = (weights.len(), weights.cuda_mut());
    let weights = weights
        .part(first, len)
        .ok_or_else(|| Error::value("smoothed weights", format!("at most {all}"), first + len))?;
    cuda.kernel(&SOURCE, &[define::<f32>()], "divide")?.launch(
        Launch::covering(len, THREADS),
        &mut [weights.into(), smoothed.cuda().into(), (len as u64).into()],
    )
}

/// The real parts times `scale`.
pub(super) fn scaled(cuda: &Cuda, weights: &Array<C32>, scale: f64) -> Result<Array<f32>> {
    let len = weights.len();
    let mut out = Array::zeros(weights.device(), &[len])?;
    cuda.kernel(&SOURCE, &[define::<f32>()], "scaled")?.launch(
        Launch::covering(len, THREADS),
        &mut [weights.cuda().into(), scale.into(), out.cuda_mut().into(), (len as u64).into()],
    )?;
    Ok(out)
}
