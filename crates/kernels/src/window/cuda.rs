use rayspin_core::{Real, Result};
use rayspin_device::cuda::{Argument, Launch, Source};
use rayspin_device::{Array, Cuda};

use crate::cuda::define;

pub(crate) static SOURCE: Source =
    Source { name: "window", files: &[("window.cu", include_str!("cuda/window.cu"))] };

const THREADS: u32 = 256;

pub(super) fn separable<R: Real>(
    cuda: &Cuda,
    rows: &[R],
    last: &[R],
    known: Option<&[u8]>,
    out: &mut Array<R>,
) -> Result<()> {
    let (len, width) = (out.len(), Argument::count(last.len())?);
    let device = out.device().clone();
    let [rows, last] = [rows, last].map(|values| Array::from_slice(&device, &[values.len()], values));
    let (rows, last) = (rows?, last?);
    let launch = Launch::covering(len, THREADS);
    match known {
        Some(known) => {
            let known = Array::from_slice(&device, &[len], known)?;
            cuda.kernel(&SOURCE, &[define::<R>()], "masked")?.launch(
                launch,
                &mut [
                    rows.cuda().into(),
                    last.cuda().into(),
                    known.cuda().into(),
                    out.cuda_mut().into(),
                    (len as u64).into(),
                    width,
                ],
            )
        }
        None => cuda.kernel(&SOURCE, &[define::<R>()], "separable")?.launch(
            launch,
            &mut [rows.cuda().into(), last.cuda().into(), out.cuda_mut().into(), (len as u64).into(), width],
        ),
    }
}

pub(super) fn indicator<R: Real>(cuda: &Cuda, known: &[u8], out: &mut Array<R>) -> Result<()> {
    let len = out.len();
    let known = Array::from_slice(out.device(), &[len], known)?;
    cuda.kernel(&SOURCE, &[define::<R>()], "indicator")?.launch(
        Launch::covering(len, THREADS),
        &mut [known.cuda().into(), out.cuda_mut().into(), (len as u64).into()],
    )
}
