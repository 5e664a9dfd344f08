use ndarray::{Array4, Array5, ArrayD, ArrayView4, ArrayViewD, Axis, IxDyn};
use rayspin_core::{C32, Error, Result, format_shape};

use super::{DIMS, dim};

/// Which image axis each of READ, PHS1, PHS2 is. PHS1 is y always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Axes {
    /// READ is x, PHS2 is z: volumes, and 2-D scans.
    #[default]
    ReadIsX,
    /// READ is z, PHS2 is x: a slice that was cut from a 3-D scan across its readout, READ being 1.
    ReadIsZ,
}

impl Axes {
    /// [`Axes::ReadIsZ`] where READ is 1 and PHS1 and PHS2 are not, so that the plane is shown as one; else
    /// [`Axes::ReadIsX`].
    pub fn of(shape: &[usize]) -> Self {
        let size = |dim: usize| shape.get(dim).copied().unwrap_or(1);
        if size(dim::READ) == 1 && size(dim::PHS1) > 1 && size(dim::PHS2) > 1 {
            Self::ReadIsZ
        } else {
            Self::ReadIsX
        }
    }

    /// What to tell the user of an array that was turned.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::ReadIsX => None,
            Self::ReadIsZ => {
                Some("the readout dimension is 1: PHS1 is taken as y, PHS2 as x (a slice across the readout)")
            }
        }
    }
}

/// Cartesian k-space or coil images in Rayspin's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Cartesian {
    /// `[frame, coil, z, y, x]`. Frames run through BART's dimensions from MAPS up, the first fastest.
    pub data: Array5<C32>,
    /// Which image axis each BART dimension became.
    pub axes: Axes,
    /// Sizes of BART's dimensions from MAPS (4) up; their product is the number of frames.
    pub frame_dims: [usize; DIMS - dim::MAPS],
}

impl Cartesian {
    /// Turns a BART array `[READ, PHS1, PHS2, COIL, MAPS, …]` into `[frame, coil, z, y, x]`. Errors: more than sixteen
    /// axes, or an empty one.
    pub fn from_bart(array: ArrayViewD<'_, C32>) -> Result<Self> {
        if array.ndim() > DIMS || array.is_empty() {
            let expected = format!("at most {DIMS} axes, none empty");
            return Err(Error::value("BART array", expected, format_shape(array.shape())));
        }
        let mut shape = [1; DIMS];
        shape[..array.ndim()].copy_from_slice(array.shape());
        let axes = Axes::of(&shape);
        let mut frame_dims = [1; DIMS - dim::MAPS];
        frame_dims.copy_from_slice(&shape[dim::MAPS..]);

        let mut array = array;
        while array.ndim() < dim::MAPS {
            let axis = Axis(array.ndim());
            array.insert_axis_inplace(axis);
        }
        if axes == Axes::ReadIsZ {
            array.swap_axes(dim::READ, dim::PHS2);
        }
        let frames = frame_dims.iter().product();
        let reversed = array.reversed_axes();
        let data = reversed
            .as_standard_layout()
            .into_owned()
            .into_shape_with_order((
                frames,
                shape[dim::COIL],
                reversed.shape()[reversed.ndim() - 3],
                reversed.shape()[reversed.ndim() - 2],
                reversed.shape()[reversed.ndim() - 1],
            ))
            .map_err(|e| Error::value("BART array", "a shape that can be regrouped", e))?;
        Ok(Self { data, axes, frame_dims })
    }

    /// One frame `[coil, z, y, x]` as a BART array `[READ, PHS1, PHS2, COIL]`.
    pub fn frame_to_bart(frame: ArrayView4<'_, C32>, axes: Axes) -> ArrayD<C32> {
        let mut array = frame.into_dyn().reversed_axes();
        if axes == Axes::ReadIsZ {
            array.swap_axes(dim::READ, dim::PHS2);
        }
        array.to_owned()
    }

    /// The whole array in BART's order, all sixteen dimensions. Errors: `frame_dims` that do not multiply to the number of
    /// frames.
    pub fn to_bart(&self) -> Result<ArrayD<C32>> {
        let (frames, coils, nz, ny, nx) = self.data.dim();
        if rayspin_core::voxels(&self.frame_dims)? != frames {
            let expected = format!("a product of {frames}");
            return Err(Error::value("frame dimensions", expected, format_shape(&self.frame_dims)));
        }
        let mut shape: Vec<usize> = self.frame_dims.iter().rev().copied().collect();
        shape.extend([coils, nz, ny, nx]);
        let ordered = self.data.as_standard_layout();
        let regrouped = ordered
            .to_shape(IxDyn(&shape))
            .map_err(|e| Error::value("frames", "a shape that can be regrouped", e))?;
        let mut array = regrouped.view().reversed_axes();
        if self.axes == Axes::ReadIsZ {
            array.swap_axes(dim::READ, dim::PHS2);
        }
        Ok(array.to_owned())
    }

    /// The only frame, `[coil, z, y, x]`. Errors: several frames, naming the BART dimensions that are not 1.
    pub fn single(self) -> Result<Array4<C32>> {
        let frames = self.data.shape()[0];
        if frames != 1 {
            return Err(Error::value("BART array", "one frame", self.describe_frames()));
        }
        Ok(self.data.index_axis_move(Axis(0), 0))
    }

    fn describe_frames(&self) -> String {
        let several: Vec<String> = (dim::MAPS..DIMS)
            .zip(self.frame_dims)
            .filter(|(_, size)| *size > 1)
            .map(|(index, size)| format!("{} (dimension {index}) of {size}", dim::NAMES[index]))
            .collect();
        several.join(", ")
    }
}
