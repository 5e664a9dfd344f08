//! What MATLAB's axes are taken as, where the user does not say it.
//!
//! ESPIRiT's, GRASP's, MIRT's and BART's arrays in MATLAB have x first and coils last, and readouts before
//! spokes. Two readings of one shape are refused, and `--order` tells.

use std::path::Path;

use ndarray::{Array2, ArrayD, Axis, IxDyn};
use rayspin_core::{C32, format_shape};

use crate::arrays::{Runs, without_ones};
use crate::{Error, Result};

/// No receiver has more coils.
const MOST_COILS: usize = 256;

/// The sizes without the last ones of 1, which MATLAB does not keep.
fn sizes(array: &ArrayD<C32>) -> Vec<usize> {
    let mut sizes = array.shape().to_vec();
    while sizes.len() > 1 && sizes.last() == Some(&1) {
        sizes.pop();
    }
    sizes
}

fn unclear(path: &Path, what: &str, expected: &str, shape: &[usize]) -> Error {
    Error::field(path, format!("axes of the {what}"), expected, format_shape(shape))
        .with_hint("`--order` names each axis as MATLAB shows it, such as `--order x,y,slice,coil`")
}

/// K-space `[x, y]`, `[x, y, coil]` or BART's `[x, y, 1, coil]` as `[coil, z, y, x]`, and what its axes are.
pub(super) fn grid(path: &Path, array: ArrayD<C32>) -> Result<(ArrayD<C32>, &'static str)> {
    let own = sizes(&array);
    let (nx, ny, coils, names) = match own[..] {
        [nx, ny] => (nx, ny, 1, "x, y"),
        [nx, ny, coils] if coils <= MOST_COILS => (nx, ny, coils, "x, y, coil"),
        [nx, ny, 1, coils] if coils <= MOST_COILS => (nx, ny, coils, "x, y, 1, coil"),
        _ => return Err(unclear(path, "k-space", "x, y or x, y, coil", array.shape())),
    };
    let wrong = |e| Error::field(path, "axes of the k-space", "x, y, coil", e);
    // The reversed axes in C order are MATLAB's order.
    let array = array.reversed_axes().as_standard_layout().into_owned();
    let array = array.into_shape_with_order(IxDyn(&[coils, 1, ny, nx])).map_err(wrong)?;
    Ok((array, names))
}

/// Samples `[sample, coil]`, `[readout, spoke]` or `[readout, spoke, coil]`: as many of the first axes as
/// there are `points` of a trajectory. Without a trajectory, `[sample, coil]`.
pub(super) fn samples(path: &Path, array: ArrayD<C32>, points: Option<usize>) -> Result<Runs<C32>> {
    let own = sizes(&array);
    let expected = "readout, spoke, coil or sample, coil, with as many samples as the trajectory has points";
    let wrong = || unclear(path, "samples", expected, array.shape());
    let of_samples = match points {
        None => 1,
        Some(points) => (1..=own.len().min(2))
            .find(|&count| own[..count].iter().product::<usize>() == points)
            .ok_or_else(wrong)?,
    };
    let (runs, rest) = own.split_at(of_samples);
    let coils = without_ones(rest);
    let coils = match coils[..] {
        [] => 1,
        [coils] if coils <= MOST_COILS => coils,
        _ => return Err(wrong()),
    };
    let runs: Vec<usize> = runs.iter().rev().copied().collect();
    let values: Vec<C32> = array.t().iter().copied().collect();
    let data = Array2::from_shape_vec((coils, runs.iter().product()), values).map_err(|_| wrong())?;
    Ok((data, without_ones(&runs)))
}

/// Points of a trajectory: real `[sample, dim]`, `[readout, spoke, dim]`, `[dim, sample]` or `[dim, readout,
/// spoke]`, told by the axis that has 2 or 3 components, or complex kx + i·ky.
pub(super) fn points(path: &Path, array: &ArrayD<f64>) -> Result<Runs<f64>> {
    let mut own = array.shape().to_vec();
    while own.len() > 2 && own.last() == Some(&1) {
        own.pop();
    }
    let is_dim = |size: usize| (2..=4).contains(&size);
    let (first, last) = match own[..] {
        [] => (0, 0),
        [first, .., last] => (first, last),
        [only] => (only, only),
    };
    let expected = "readout, spoke, dim or dim, readout, spoke, dim being 2 or 3";
    let wrong = || {
        Error::field(path, "axes of the trajectory", expected, format_shape(array.shape()))
            .with_hint("an axis of 2 or 3 components is first or last, and no other axis there is as short")
    };
    if !(2..=3).contains(&own.len()) || is_dim(first) == is_dim(last) {
        return Err(wrong());
    }
    let reshaped = array.view().into_dyn();
    let mut view = reshaped;
    while view.ndim() > own.len() {
        view = view.index_axis_move(Axis(own.len()), 0);
    }
    // The component goes first: in the reversed order it is fastest.
    if is_dim(last) {
        let mut order: Vec<usize> = vec![own.len() - 1];
        order.extend(0..own.len() - 1);
        view = view.permuted_axes(IxDyn(&order));
    }
    let runs: Vec<usize> = view.shape()[1..].iter().rev().copied().collect();
    let dims = view.shape()[0];
    let values: Vec<f64> = view.t().iter().copied().collect();
    let points = Array2::from_shape_vec((runs.iter().product(), dims), values).map_err(|_| wrong())?;
    Ok((flat(points), without_ones(&runs)))
}

/// A third component that is zero throughout is left out.
fn flat(points: Array2<f64>) -> Array2<f64> {
    match points.ncols() == 3 && points.column(2).iter().all(|&kz| kz == 0.0) {
        true => points.slice_move(ndarray::s![.., ..2]),
        false => points,
    }
}

/// Complex points kx + i·ky `[readout, spoke]`.
pub(super) fn complex_points(array: &ArrayD<C32>) -> Runs<f64> {
    let runs: Vec<usize> = array.shape().iter().rev().copied().collect();
    let mut points = Array2::zeros((array.len(), 2));
    for (mut point, value) in points.outer_iter_mut().zip(array.t().iter()) {
        point[0] = value.re.into();
        point[1] = value.im.into();
    }
    (points, without_ones(&runs))
}

/// Maps `[x, y, coil]`, or BART's `[x, y, z, coil]` and `[x, y, z, coil, set]`, as `[coil, z, y, x]` or
/// `[set, coil, z, y, x]`.
pub(super) fn maps(path: &Path, array: ArrayD<C32>) -> Result<ArrayD<C32>> {
    let own = sizes(&array);
    let shape = match own[..] {
        [nx, ny] => vec![1, 1, ny, nx],
        [nx, ny, coils] => vec![coils, 1, ny, nx],
        [nx, ny, nz, coils] => vec![coils, nz, ny, nx],
        [nx, ny, nz, coils, sets] => vec![sets, coils, nz, ny, nx],
        _ => {
            return Err(Error::field(
                path,
                "axes of the maps",
                "x, y, coil or x, y, z, coil, set",
                format_shape(array.shape()),
            ));
        }
    };
    let wrong = |e| Error::field(path, "axes of the maps", "x, y, coil", e);
    array
        .reversed_axes()
        .as_standard_layout()
        .into_owned()
        .into_shape_with_order(IxDyn(&shape))
        .map_err(wrong)
}
