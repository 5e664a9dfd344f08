use ndarray::{ArrayD, Axis, IxDyn};

use crate::slices::Stack;
use crate::{C32, Error, Geometry, Ranges, Result};

/// A reconstructed image and its place in the patient: `[z, y, x]`, or `[repetition, z, y, x]` for a series.
/// A 2-D image has z = 1. Values are complex or real (`Image<f32>`). Programs show the [`Image::magnitude`]
/// of complex ones.
///
/// Slices that no single geometry describes, such as a localizer's in three directions, are several
/// [`Image::stacks`] one behind the other along z.
#[derive(Debug, Clone, PartialEq)]
pub struct Image<T = C32> {
    data: ArrayD<T>,
    geometry: Geometry,
    /// All stacks, where there are several.
    stacks: Vec<Stack>,
}

impl<T: Clone> Image<T> {
    /// An image from a `[y, x]`, `[z, y, x]` or `[repetition, z, y, x]` array, which is copied into C order
    /// when it has another layout. Errors: another rank, or an empty axis.
    pub fn new(data: ArrayD<T>, geometry: Geometry) -> Result<Self> {
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
        Ok(Self { data, geometry, stacks: Vec::new() })
    }

    /// An image whose slices are these stacks, one behind the other.
    ///
    /// Errors: as [`Image::new`]; stacks of another number of slices than the array has.
    ///
    /// ```
    /// use ndarray::{ArrayD, IxDyn};
    /// use rayspin_core::slices::Stack;
    /// use rayspin_core::{C32, Geometry, Image};
    ///
    /// let axial = Stack { slices: 2, geometry: Geometry::default() };
    /// let [read_dir, slice_dir] = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]];
    /// let sagittal = Stack { slices: 1, geometry: Geometry { read_dir, slice_dir, ..Geometry::default() } };
    /// let image = Image::of_stacks(ArrayD::from_elem(IxDyn(&[3, 4, 4]), C32::ONE), vec![axial, sagittal])?;
    /// let apart = image.apart()?;
    /// assert_eq!((apart.len(), apart[1].shape_zyx(), apart[1].geometry().slice_dir), (2, [1, 4, 4], slice_dir));
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn of_stacks(data: ArrayD<T>, stacks: Vec<Stack>) -> Result<Self> {
        let Some(first) = stacks.first() else { return Err(Error::value("stacks", "at least one", 0)) };
        let image = Self::new(data, first.geometry)?;
        let (depth, sum) = (image.shape_zyx()[0], stacks.iter().map(|stack| stack.slices).sum::<usize>());
        if depth != sum || stacks.iter().any(|stack| stack.slices == 0) {
            return Err(Error::value("slices of the stacks", depth.to_string(), sum));
        }
        Ok(if stacks.len() == 1 { image } else { Self { stacks, ..image } })
    }

    /// The stacks of slices along z, in order; a single one if [`Image::geometry`] describes all slices.
    pub fn stacks(&self) -> Vec<Stack> {
        let whole = || vec![Stack { slices: self.shape_zyx()[0], geometry: self.geometry }];
        if self.stacks.is_empty() { whole() } else { self.stacks.clone() }
    }

    /// An image of each stack.
    ///
    /// Errors: as [`Image::new`].
    pub fn apart(&self) -> Result<Vec<Self>> {
        let axis = Axis(self.data.ndim() - 3);
        let mut start = 0;
        let image = |stack: Stack| {
            let part = self.data.slice_axis(axis, (start..start + stack.slices).into());
            start += stack.slices;
            Self::new(part.to_owned(), stack.geometry)
        };
        self.stacks().into_iter().map(image).collect()
    }

    /// The values, `[z, y, x]` or `[repetition, z, y, x]`.
    pub fn data(&self) -> &ArrayD<T> {
        &self.data
    }

    /// The values, for another use.
    pub fn into_data(self) -> ArrayD<T> {
        self.data
    }

    /// Where it lies; of several stacks, where the first lies.
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

    /// The image of some slices, where these lie.
    ///
    /// Errors: a slice that the image lacks; slices at different distances, whose places an image cannot
    /// state; several stacks.
    ///
    /// ```
    /// use ndarray::{ArrayD, IxDyn};
    /// use rayspin_core::{C32, Geometry, Image};
    ///
    /// let volume = Image::new(ArrayD::from_elem(IxDyn(&[9, 4, 4]), C32::ONE), Geometry::default())?;
    /// let part = volume.slices(&"6-8".parse()?)?;
    /// assert_eq!(part.shape_zyx(), [3, 4, 4]);
    /// // The centre slice, 7, is three slices above the volume's, 4.
    /// assert_eq!(part.geometry().position_mm, [0.0, 0.0, 3.0]);
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn slices(&self, wanted: &Ranges) -> Result<Self> {
        let depth = self.shape_zyx()[0];
        if self.stacks.len() > 1 {
            return Err(Error::value("slices of an image", "one stack", self.stacks.len()));
        }
        wanted.expect_among("slice", &Vec::from_iter(0..depth))?;
        let kept: Vec<usize> = wanted.below(depth).collect();
        let step = kept.get(1).map_or(1, |second| second - kept[0]);
        if kept.windows(2).any(|pair| pair[1] - pair[0] != step) {
            return Err(Error::value("slice", "slices at one distance from each other", wanted));
        }
        let mut geometry = self.geometry;
        let moved = kept[kept.len() / 2] as f64 - (depth / 2) as f64;
        for (position, direction) in geometry.position_mm.iter_mut().zip(geometry.slice_dir) {
            *position += moved * geometry.spacing_mm[2] * direction;
        }
        geometry.spacing_mm[2] *= step as f64;
        Self::new(self.data.select(Axis(self.data.ndim() - 3), &kept), geometry)
    }

    /// The image of some repetitions. Errors: a repetition that the image lacks.
    pub fn only_repetitions(&self, wanted: &Ranges) -> Result<Self> {
        let count = self.repetitions();
        wanted.expect_among("repetition", &Vec::from_iter(0..count))?;
        if self.data.ndim() < 4 {
            return Ok(self.clone());
        }
        let kept: Vec<usize> = wanted.below(count).collect();
        let data = match kept[..] {
            [only] => self.data.index_axis(Axis(0), only).to_owned(),
            _ => self.data.select(Axis(0), &kept),
        };
        Self::of_stacks(data, self.stacks())
    }
}

impl<T> Image<T> {
    /// The image of what `number` makes of each number.
    pub fn map<U>(&self, number: impl FnMut(&T) -> U) -> Image<U> {
        Image { data: self.data.map(number), geometry: self.geometry, stacks: self.stacks.clone() }
    }
}

impl Image<f32> {
    /// The same numbers with imaginary parts of 0.
    pub fn to_complex(&self) -> Image {
        self.map(|value| C32::new(*value, 0.0))
    }
}

impl Image {
    /// |value|, the same shape.
    pub fn magnitude(&self) -> ArrayD<f32> {
        self.data.mapv(|v| v.norm())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_slices_stay_where_they_are() {
        let data =
            ArrayD::from_shape_fn(IxDyn(&[2, 7, 3, 3]), |at| C32::new((10 * at[0] + at[1]) as f32, 0.0));
        let turned = Geometry::new(
            [1.0, 1.0, 2.5],
            [4.0, 5.0, 6.0],
            [0.0, 1.0, 0.0],
            [0.0, 0.0, 1.0],
            [1.0, 0.0, 0.0],
        );
        let image = Image::new(data, turned.unwrap()).unwrap();
        let place = |image: &Image, slice: f64| {
            let affine = image.geometry().affine_lps(image.shape_zyx());
            affine.map(|row| row[3] + row[2] * slice)
        };
        for (text, kept) in
            [("3", vec![3]), ("0-6", (0..7).collect()), ("1,3,5", vec![1, 3, 5]), ("5,2", vec![2, 5])]
        {
            let part = image.slices(&text.parse().unwrap()).unwrap();
            assert_eq!(part.data().shape(), [2, kept.len(), 3, 3]);
            for (at, &slice) in kept.iter().enumerate() {
                assert_eq!(part.data()[[1, at, 2, 2]].re, (10 + slice) as f32);
                let (found, wanted) = (place(&part, at as f64), place(&image, slice as f64));
                assert!(
                    found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12),
                    "{text}: {found:?} {wanted:?}"
                );
            }
            let first = part.only_repetitions(&1.into()).unwrap();
            assert_eq!((first.data().ndim(), first.data()[[0, 0, 0]].re), (3, (10 + kept[0]) as f32));
        }
        for text in ["7", "0-7", "0,1,3"] {
            assert!(image.slices(&text.parse().unwrap()).is_err(), "{text}");
        }
        assert!(image.only_repetitions(&"2".parse().unwrap()).is_err());
        assert!(image.only_repetitions(&"0-1".parse().unwrap()).unwrap() == image);
    }

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
