//! Sums of outer products, added to the rows of views.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayon::prelude::*;
use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::cuda::{Define, Launch, Source};
use rayspin_device::{Array, Backend, Cuda};
use rayspin_tune::Build;

use crate::vector::expect_device;

static SOURCE: Source = Source { name: "outer", files: &[("outer.cu", include_str!("cuda/outer.cu"))] };

const THREADS: u32 = 256;

fn defines() -> Vec<Define> {
    vec![("THREADS", THREADS.to_string())]
}

pub(super) fn builds() -> Vec<Build> {
    vec![Build { source: &SOURCE, defines: defines(), spill_bytes: 0 }]
}

/// Adds outer products to the rows `to[view, row, column]` of consecutive views, beginning with `first`:
///
/// ```text
/// to(first + v, r, c) += Σ_s values(v, s, r) · responses(v, s, c)
/// ```
///
/// with `values[view, s, row]` and `responses[view, s, column]`. Extensions of truncated rows are two such
/// products a view, one for each side of the detector.
///
/// Errors: shapes that do not fit, views beyond the last, arrays on several devices.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::row_filter::add_outer;
///
/// let device = Device::cpu()?;
/// let values = Array::from_vec(&device, &[1, 1, 2], vec![2.0, 3.0])?;
/// let responses = Array::from_vec(&device, &[1, 1, 2], vec![1.0, 10.0])?;
/// let mut to = Array::zeros(&device, &[1, 2, 2])?;
/// add_outer(&values, &responses, &mut to, 0)?;
/// assert_eq!(to.to_vec()?, [2.0, 20.0, 3.0, 30.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn add_outer(
    values: &Array<f32>,
    responses: &Array<f32>,
    to: &mut Array<f32>,
    first: usize,
) -> Result<()> {
    let (&[views, sides, rows], &[all, _, columns]) = (values.shape(), to.shape()) else {
        let found = format!("{} and {} axes", values.shape().len(), to.shape().len());
        return Err(Error::value("values and rows of outer products", "3 axes", found));
    };
    expect_shape("responses of outer products", &[views, sides, columns], responses.shape())?;
    expect_shape("rows of outer products", &[all, rows, columns], to.shape())?;
    if first.checked_add(views).is_none_or(|end| end > all) {
        let found = format!("{views} behind {first}");
        return Err(Error::value("views of outer products", format!("some of {all}"), found));
    }
    expect_device("values of outer products", to.device(), values)?;
    expect_device("responses of outer products", to.device(), responses)?;
    if values.is_empty() || responses.is_empty() {
        return Ok(());
    }
    let device = to.device().clone();
    match device.backend() {
        Backend::Cpu(cpu) => {
            let (values, responses) = (values.cpu(), responses.cpu());
            let lines = &mut to.cpu_mut()[first * rows * columns..][..views * rows * columns];
            cpu.run(|| {
                lines.par_chunks_mut(columns).enumerate().for_each(|(index, line)| {
                    let (view, row) = (index / rows, index % rows);
                    for side in view * sides..(view + 1) * sides {
                        let value = values[side * rows + row];
                        // Most sides of most scans end in air.
                        if value != 0.0 {
                            let response = &responses[side * columns..][..columns];
                            line.iter_mut().zip(response).for_each(|(to, factor)| *to += value * factor);
                        }
                    }
                });
            });
            Ok(())
        }
        Backend::Cuda(cuda) => launch(cuda, values, responses, to, first),
    }
}

fn launch(
    cuda: &Cuda,
    values: &Array<f32>,
    responses: &Array<f32>,
    to: &mut Array<f32>,
    first: usize,
) -> Result<()> {
    let [views, sides, rows] = [0, 1, 2].map(|axis| values.shape()[axis]);
    let columns = to.shape()[2];
    // The kernel's indices, and the blocks of a launch.
    let narrow = |n: usize| match i32::try_from(n) {
        Ok(narrow) => Ok(narrow.unsigned_abs()),
        Err(_) => Err(Error::value("rows of outer products", "less than 2^31", n)),
    };
    narrow(sides * rows)?;
    let kernel = cuda.kernel(&SOURCE, &defines(), "add_outer")?;
    let (from, len) = (first * rows * columns, views * rows * columns);
    let mut to = to.cuda_mut();
    let short = || Error::value("rows of outer products", len.to_string(), "fewer");
    let lines = to.part(from, len).ok_or_else(short)?;
    let arguments = &mut [
        values.cuda().into(),
        responses.cuda().into(),
        lines.into(),
        narrow(rows)?.into(),
        narrow(columns)?.into(),
        narrow(sides)?.into(),
    ];
    // SAFETY: a block takes one of `views · rows` lines of `columns` numbers. There is a value for each side
    // and row, and a response for each side and column, of each view.
    unsafe { kernel.launch(Launch::linear(narrow(views * rows)?, THREADS), arguments) }
}
