//! Coil images on their way to one image, some coils at a time.

use std::ops::Range;

use ndarray::ArrayD;
use rayspin_core::{C32, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::{sensitivity, vector};
use rayspin_linop::CoilMaps;
pub(crate) use rayspin_linop::batches;

/// The coils `range` of `[coil, rest…]`, copied.
pub(super) fn part(data: &Array<C32>, range: &Range<usize>) -> Result<Array<C32>> {
    let rest = &data.shape()[1..];
    let len: usize = rest.iter().product();
    let mut out = Array::zeros(data.device(), &[&[range.len()], rest].concat())?;
    vector::copy_part(data, range.start * len, &mut out, 0, range.len() * len)?;
    Ok(out)
}

/// Adds up coil images: Σ_j conj(c_j) y_j / Σ_j |c_j|² with maps, else √Σ_j |y_j|²; a single coil keeps its phase.
pub(crate) struct Combiner<'a> {
    device: Device,
    coils: usize,
    shape: Vec<usize>,
    maps: Option<&'a CoilMaps<f32>>,
    sum: Sum,
}

enum Sum {
    Nothing,
    Complex(Array<C32>),
    Root(Array<f32>),
    Squares(Array<f32>),
}

impl<'a> Combiner<'a> {
    pub(super) fn new(
        device: &Device,
        coils: usize,
        shape: &[usize],
        maps: Option<&'a CoilMaps<f32>>,
    ) -> Self {
        Self { device: device.clone(), coils, shape: shape.to_vec(), maps, sum: Sum::Nothing }
    }

    /// Takes the images `[coil, image…]` of the coils `range`.
    pub(crate) fn add(&mut self, range: Range<usize>, images: Array<C32>) -> Result<()> {
        let all = range.len() == self.coils;
        self.sum = match (std::mem::replace(&mut self.sum, Sum::Nothing), self.maps) {
            (before, Some(maps)) => {
                let mut sum = match before {
                    Sum::Complex(sum) => sum,
                    _ => Array::zeros(&self.device, &self.shape)?,
                };
                maps.combine_add(range, &images, &mut sum)?;
                Sum::Complex(sum)
            }
            (_, None) if self.coils == 1 => Sum::Complex(images.reshape(&self.shape)?),
            (_, None) if all => Sum::Root(sensitivity::root_sum_of_squares(&images)?),
            (before, None) => Sum::Squares(match before {
                Sum::Squares(mut sum) => {
                    sensitivity::sum_of_squares_add(&images, &mut sum)?;
                    sum
                }
                _ => sensitivity::sum_of_squares(&images)?,
            }),
        };
        Ok(())
    }

    /// The image, on the host.
    pub(crate) fn finish(self) -> Result<ArrayD<C32>> {
        match (self.sum, self.maps) {
            (Sum::Complex(mut sum), Some(maps)) => {
                maps.normalise(&mut sum)?;
                sum.into_host()
            }
            (Sum::Complex(sum), None) => sum.into_host(),
            (Sum::Root(root), _) => Ok(root.into_host()?.mapv(C32::from)),
            (Sum::Squares(squares), _) => Ok(squares.into_host()?.mapv(|s| C32::from(s.sqrt()))),
            (Sum::Nothing, _) => Array::zeros(&self.device, &self.shape)?.into_host(),
        }
    }
}
