//! Coil images on their way to one image, some coils at a time.

use std::ops::Range;

use ndarray::{ArrayD, Axis};
use rayspin_core::{C32, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::{sensitivity, vector};
use rayspin_linop::CoilMaps;
pub(crate) use rayspin_linop::batches;

use super::Combine;

/// The coils `range` of `[coil, rest…]`, copied.
pub(super) fn part(data: &Array<C32>, range: &Range<usize>) -> Result<Array<C32>> {
    let rest = &data.shape()[1..];
    let len: usize = rest.iter().product();
    let mut out = Array::zeros(data.device(), &[&[range.len()], rest].concat())?;
    vector::copy_part(data, range.start * len, &mut out, 0, range.len() * len)?;
    Ok(out)
}

/// Adds up coil images: Σ_j conj(c_j) y_j / Σ_j |c_j|² with maps, else √Σ_j |y_j|²; a single coil keeps its
/// phase. With [`Combine::None`] the images stay `[coil, image…]`.
pub(crate) struct Combiner<'a> {
    device: Device,
    coils: usize,
    shape: Vec<usize>,
    maps: Option<&'a CoilMaps<f32>>,
    how: Combine,
    sum: Sum,
}

enum Sum {
    Nothing,
    /// Coil images on the host.
    Apart(ArrayD<C32>),
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
        how: Combine,
    ) -> Self {
        Self { device: device.clone(), coils, shape: shape.to_vec(), maps, how, sum: Sum::Nothing }
    }

    /// Takes the images `[coil, image…]` of the coils `range`.
    pub(crate) fn add(&mut self, range: Range<usize>, images: Array<C32>) -> Result<()> {
        let is_whole = range.len() == self.coils;
        if self.how == Combine::None {
            let images = images.into_host()?;
            if is_whole {
                self.sum = Sum::Apart(images);
                return Ok(());
            }
            let shape = [&[self.coils], &self.shape[..]].concat();
            let mut apart = match std::mem::replace(&mut self.sum, Sum::Nothing) {
                Sum::Apart(apart) => apart,
                _ => ArrayD::zeros(shape),
            };
            apart.slice_axis_mut(Axis(0), range.into()).assign(&images);
            self.sum = Sum::Apart(apart);
            return Ok(());
        }
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
            (_, None) if is_whole => Sum::Root(sensitivity::root_sum_of_squares(&images)?),
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
            (Sum::Apart(images), _) => Ok(images),
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
