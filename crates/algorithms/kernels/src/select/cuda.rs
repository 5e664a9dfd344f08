#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Cuda};
use rayspin_tune::Build;

use crate::vector::{SCALAR, Scalar, defines, scalars};

static SOURCE: Source =
    Source { name: "select", files: &[SCALAR, ("select.cu", include_str!("cuda/select.cu"))] };

pub(crate) fn builds() -> Vec<Build> {
    scalars(&SOURCE)
}

const THREADS: u32 = 256;
/// Maximum number of counting blocks: eight per multiprocessor of the largest GPU.
const BLOCKS: usize = 1056;
/// Bits of a digit.
const BITS: usize = 8;

/// Eight counts of digits, highest first; one number comes back.
pub(super) fn digits<S: Scalar>(cuda: &Cuda, x: &Array<S>, rank: usize) -> Result<f64> {
    let len = x.len();
    if u32::try_from(len).is_err() {
        return Err(Error::value("numbers to select from", "fewer than 2³²", len));
    }
    let device = x.device();
    let mut state = Array::<u64>::from_slice(device, &[2], &[0, rank as u64])?;
    let mut counts = Array::<u32>::zeros(device, &[1 << BITS])?;
    let defines = defines::<S>();
    let blocks = len.div_ceil(4 * THREADS as usize).clamp(1, BLOCKS) as u32;
    for shift in (0..64).step_by(BITS).rev() {
        let arguments = &mut [
            x.cuda().into(),
            (len as u64).into(),
            shift.into(),
            state.cuda().into(),
            counts.cuda_mut().into(),
        ];
        // SAFETY: `len` is the array's; there is a count for each digit.
        unsafe {
            cuda.kernel(&SOURCE, &defines, "count")?.launch(Launch::linear(blocks, THREADS), arguments)
        }?;
        let arguments = &mut [state.cuda_mut().into(), counts.cuda_mut().into()];
        // SAFETY: two numbers of state, and a count for each of the block's threads.
        unsafe { cuda.kernel(&SOURCE, &defines, "choose")?.launch(Launch::linear(1, THREADS), arguments) }?;
    }
    Ok(f64::from_bits(state.to_vec()?[0]))
}
