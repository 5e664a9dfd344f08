#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{C32, Error, Result};
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use crate::cuda::{define, single};

static SOURCE: Source = Source { name: "density", files: &[("density.cu", include_str!("cuda/density.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    single(&SOURCE)
}

const THREADS: u32 = 256;

/// w ← w s^−ω, of the real parts, for the weights from `first` on.
pub(super) fn correct(
    cuda: &Cuda,
    weights: &mut Array<C32>,
    first: usize,
    smoothed: &Array<C32>,
    exponent: f64,
) -> Result<()> {
    let len = smoothed.len();
    let (count, mut weights) = (weights.len(), weights.cuda_mut());
    let weights = weights
        .part(first, len)
        .ok_or_else(|| Error::value("smoothed weights", format!("at most {count}"), first + len))?;
    let arguments = &mut [weights.into(), smoothed.cuda().into(), exponent.into(), (len as u64).into()];
    // SAFETY: the part of the weights has the length of what they are divided by.
    unsafe {
        cuda.kernel(&SOURCE, &[define::<f32>()], "correct")?.launch(Launch::covering(len, THREADS), arguments)
    }
}

/// The real parts times `scale`.
pub(super) fn scaled(cuda: &Cuda, weights: &Array<C32>, scale: f64) -> Result<Array<f32>> {
    let len = weights.len();
    let mut out = Array::zeros(weights.device(), &[len])?;
    let arguments = &mut [weights.cuda().into(), scale.into(), out.cuda_mut().into(), (len as u64).into()];
    // SAFETY: both have `len` elements.
    unsafe {
        cuda.kernel(&SOURCE, &[define::<f32>()], "scaled")?.launch(Launch::covering(len, THREADS), arguments)
    }?;
    Ok(out)
}
