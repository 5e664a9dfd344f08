#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Real, Result, expect_len};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use crate::cuda::{both, define};

static SOURCE: Source = Source { name: "window", files: &[("window.cu", include_str!("cuda/window.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    both(&SOURCE)
}

const THREADS: u32 = 256;

pub(super) fn separable<R: Real>(
    cuda: &Cuda,
    rows: &[R],
    last: &[R],
    known: Option<&[u8]>,
    out: &mut Array<R>,
) -> Result<()> {
    let (len, width) = (out.len(), Argument::count(last.len())?);
    expect_len("weights of a grid", &[rows.len(), last.len()], len)?;
    let device = out.device().clone();
    let [rows, last] = [rows, last].map(|values| Array::from_slice(&device, &[values.len()], values));
    let (rows, last) = (rows?, last?);
    let launch = Launch::covering(len, THREADS);
    match known {
        Some(known) => {
            let known = Array::from_slice(&device, &[len], known)?;
            let arguments = &mut [
                rows.cuda().into(),
                last.cuda().into(),
                known.cuda().into(),
                out.cuda_mut().into(),
                (len as u64).into(),
                width,
            ];
            // SAFETY: the rows times the last axis are the weights, and each weight has a byte.
            unsafe { cuda.kernel(&SOURCE, &[define::<R>()], "masked")?.launch(launch, arguments) }
        }
        None => {
            let arguments = &mut [
                rows.cuda().into(),
                last.cuda().into(),
                out.cuda_mut().into(),
                (len as u64).into(),
                width,
            ];
            // SAFETY: the rows times the last axis are the weights.
            unsafe { cuda.kernel(&SOURCE, &[define::<R>()], "separable")?.launch(launch, arguments) }
        }
    }
}

pub(super) fn indicator<R: Real>(cuda: &Cuda, known: &[u8], out: &mut Array<R>) -> Result<()> {
    let len = out.len();
    let known = Array::from_slice(out.device(), &[len], known)?;
    let arguments = &mut [known.cuda().into(), out.cuda_mut().into(), (len as u64).into()];
    let shape = Launch::covering(len, THREADS);
    // SAFETY: every weight has a byte.
    unsafe { cuda.kernel(&SOURCE, &[define::<R>()], "indicator")?.launch(shape, arguments) }
}
