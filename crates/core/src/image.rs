use ndarray::{ArrayD, IxDyn};

use crate::{C32, Error, Geometry, Result};

/// A reconstructed image and its place in the patient: `[z, y, x]`, or `[repetition, z, y, x]` for a series. A 2-D image has
/// z = 1. Values are complex; programs show [`Image::magnitude`].
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    data: ArrayD<C32>,
    geometry: Geometry,
}

impl Image {
    /// An image from a `[y, x]`, `[z, y, x]` or `[repetition, z, y, x]` array, which is copied into C order when it has
    /// another layout. Errors: another rank, or an empty axis.
    pub fn new(data: ArrayD<C32>, geometry: Geometry) -> Result<Self> {
        let shape = data.shape().to_vec();
        if shape.contains(&0) || !(2..=4).contains(&shape.len()) {
            return Err(Error::Shape {
                what: "image".into(),
                expected: "[y, x], [z, y, x] or [repetition, z, y, x], no axis empty".into(),
                found: crate::format_shape(&shape),
            });
        }
        let data = if data.is_standard_layout() { data } else { data.as_standard_layout().into_owned() };
        let data = if shape.len() == 2 {
            data.into_shape_with_order(IxDyn(&[1, shape[0], shape[1]]))
                .map_err(|e| Error::value("image", "a contiguous array", e))?
        } else {
            data
        };
        Ok(Self { data, geometry })
    }

    /// The values, `[z, y, x]` or `[repetition, z, y, x]`.
    pub fn data(&self) -> &ArrayD<C32> {
        &self.data
    }

    /// The values, for another use.
    pub fn into_data(self) -> ArrayD<C32> {
        self.data
    }

    /// Where it lies.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The spatial shape `[nz, ny, nx]`.
    pub fn shape_zyx(&self) -> [usize; 3] {
        let shape = self.data.shape();
        let rank = shape.len();
        [shape[rank - 3], shape[rank - 2], shape[rank - 1]]
    }

    /// Number of repetitions, 1 for a single image.
    pub fn repetitions(&self) -> usize {
        if self.data.ndim() == 4 { self.data.shape()[0] } else { 1 }
    }

    /// |value|, the same shape.
    pub fn magnitude(&self) -> ArrayD<f32> {
        self.data.mapv(|v| v.norm())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_of_any_layout_becomes_c_order() {
        for shape in [&[2usize, 3][..], &[4, 2, 3], &[2, 4, 2, 3]] {
            let mut number = 0.0;
            let reversed: Vec<usize> = shape.iter().rev().copied().collect();
            let data = ArrayD::from_shape_simple_fn(IxDyn(&reversed), || {
                number += 1.0;
                C32::new(number, 0.0)
            })
            .reversed_axes();
            let image = Image::new(data.clone(), Geometry::default()).unwrap();
            assert!(image.data().is_standard_layout());
            assert!(image.data().iter().eq(data.iter()));
        }
    }
}
