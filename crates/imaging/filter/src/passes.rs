//! Volumes as planes, which the kernels filter.

use ndarray::Array3;
use rayspin_core::{Error, Result, voxels};
use rayspin_device::cpu::zeroed;
use rayspin_device::cuda::HostCopy;
use rayspin_device::{Array, Device};

/// A plane to filter and where its result goes.
type Plane<'a> = dyn Fn(&Array<f32>, &mut Array<f32>) -> Result<()> + 'a;

/// `filter` on each slice `[y, x]`, which becomes one of `to`.
pub(crate) fn each_slice(
    device: &Device,
    values: &Array3<f32>,
    to: [usize; 2],
    filter: &Plane<'_>,
) -> Result<Array3<f32>> {
    let (depth, rows, columns) = values.dim();
    let shape = [depth, to[0], to[1]];
    let mut out = zeroed("filtered image", voxels(&shape)?)?;
    let mut slice = Array::zeros(device, &[rows, columns])?;
    let mut result = Array::zeros(device, &to)?;
    let values = slice_of(values)?;
    for (from, to) in values.chunks_exact(rows * columns).zip(out.chunks_exact_mut(to[0] * to[1])) {
        slice.set(from)?;
        filter(&slice, &mut result)?;
        result.get(0, to, HostCopy::Staged)?;
    }
    volume(shape, out)
}

/// `filter` on the volume as a plane `[z, y x]`, whose columns run along z; `depth` slices come out.
pub(crate) fn along_z(
    device: &Device,
    values: Array3<f32>,
    depth: usize,
    filter: &Plane<'_>,
) -> Result<Array3<f32>> {
    let (slices, rows, columns) = values.dim();
    let (plane, _) = values.into_raw_vec_and_offset();
    let plane = Array::from_vec(device, &[slices, rows * columns], plane)?;
    let mut out = Array::zeros(device, &[depth, rows * columns])?;
    filter(&plane, &mut out)?;
    drop(plane);
    volume([depth, rows, columns], out.into_vec()?)
}

/// The numbers in C order.
pub(crate) fn slice_of(values: &Array3<f32>) -> Result<&[f32]> {
    values.as_slice().ok_or_else(another_layout)
}

/// The numbers in C order, to be changed.
pub(crate) fn slice_of_mut(values: &mut Array3<f32>) -> Result<&mut [f32]> {
    values.as_slice_mut().ok_or_else(another_layout)
}

fn another_layout() -> Error {
    Error::value("image to filter", "C order", "another layout")
}

pub(crate) fn volume(shape: [usize; 3], values: Vec<f32>) -> Result<Array3<f32>> {
    Array3::from_shape_vec(shape, values)
        .map_err(|e| Error::value("filtered image", "numbers of its voxels", e))
}
