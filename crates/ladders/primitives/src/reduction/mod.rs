//! One number of many: Σ a, min a, max a, (1/n) Σ (a − b)².

mod cpu;
mod cuda;
mod ladder;
mod number;
pub mod reference;
mod variants;

use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::{Array, Backend};
use rayspin_tune::tuned;

pub use ladder::{Kind, Problem, Reduction, Type, Ways};
pub use number::Number;
use number::{Operation, Plain};

/// Σ a, of an array of any shape; 0 of none.
///
/// `i32` are added in `i64`, which is exact for fewer than 2³² elements. `f32` and `f64` are added in `f64`.
/// The order depends only on the processor and on the parameters that tuning found for it: every run gives
/// the same bits, with any number of threads.
///
/// Errors: of the device.
pub fn sum<T: Number>(a: &Array<T>) -> Result<T::Sum> {
    number::sealed::Reduce::sum(a)
}

/// min a, of an array of any shape. NaN where an element is NaN; of −0 and +0 either.
///
/// Errors: no elements; of the device.
pub fn min<T: Number>(a: &Array<T>) -> Result<T> {
    at_least_one("minimum", a.len())?;
    T::min(a)
}

/// max a, of an array of any shape. NaN where an element is NaN; of −0 and +0 either.
///
/// Errors: no elements; of the device.
pub fn max<T: Number>(a: &Array<T>) -> Result<T> {
    at_least_one("maximum", a.len())?;
    T::max(a)
}

/// (1/n) Σ (a − b)², of two arrays of one shape and n elements; differences and sum in f64.
///
/// Errors: shapes that differ, no elements, arrays on different devices; of the device.
pub fn mean_square_error<T: Number>(a: &Array<T>, b: &Array<T>) -> Result<f64> {
    expect_shape("second array of the mean square error", a.shape(), b.shape())?;
    at_least_one("mean square error", a.len())?;
    if !b.device().same_as(a.device()) {
        return Err(Error::value("mean square error", "arrays on one device", b.device().describe()));
    }
    T::mean_square_error(a, b)
}

fn at_least_one(what: &str, len: usize) -> Result<()> {
    if len == 0 { Err(Error::value(what, "at least one element", 0)) } else { Ok(()) }
}

/// The best variant. On a GPU it takes memory at the first call; each call is one launch that writes its
/// number to the host's memory, and one wait for it.
fn reduce<T: Plain, O: Operation<T>>(a: &Array<T>, b: Option<&Array<T>>) -> Result<O::Acc> {
    let b = b.unwrap_or(a);
    let problem = ladder::Problem::of::<T, O>(a.len());
    match a.device().backend() {
        Backend::Cpu(cpu) => {
            let piece =
                tuned(&Reduction, &problem, &variants::cpu_threads(), a.device()).get("piece")? as usize;
            let mut parts = vec![O::identity(); a.len().div_ceil(piece)];
            Ok(cpu::threads::<T, O>(cpu, piece, a.cpu(), b.cpu(), &mut parts))
        }
        Backend::Cuda(gpu) => {
            if a.is_empty() {
                return Ok(O::identity());
            }
            let config = tuned(&Reduction, &problem, &variants::gpu_flags(), a.device());
            let shape = cuda::Shape::of(&config)?;
            // As many as any grid takes: made once.
            let most = cuda::resident(gpu, cuda::MOST_BLOCKS as u32).max(shape.blocks::<T>(gpu, a.len()));
            gpu.read_scalar("reduction", cuda::WORDS * most, |words, out| {
                cuda::flagged::<T, O>(gpu, shape, a, b, words, out)
            })
        }
    }
}

#[cfg(test)]
mod tests;
