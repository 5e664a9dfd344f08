use ndarray::{Array4, Array5, ArrayViewD, Axis, CowArray, IxDyn};
use rayspin_core::{C32, Error, Result, format_shape};

use rayspin_scan::mri::{Label, varying};

use super::{DIMS, dim};

/// Which image axis each of BART's dimensions is. PHS1 is y always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Axes {
    /// READ is x, PHS2 is z: volumes, and 2-D scans.
    #[default]
    ReadIsX,
    /// READ is z, PHS2 is x: a slice that was cut from a 3-D scan across its readout, READ being 1.
    ReadIsZ,
    /// READ is x, SLICE is z: the slices of a 2-D scan, PHS2 being 1. Images and maps have it.
    SliceIsZ,
    /// PHS2 is x, SLICE is z: slices that were cut from a 3-D scan across its readout, READ being 1. Images
    /// and maps have it.
    SliceIsZOfCut,
}

impl Axes {
    /// [`Axes::ReadIsZ`] where READ is 1 and PHS1 and PHS2 are not: the plane becomes one image. Else
    /// [`Axes::ReadIsX`].
    pub fn of(shape: &[usize]) -> Self {
        let size = |dim: usize| shape.get(dim).copied().unwrap_or(1);
        if size(dim::READ) == 1 && size(dim::PHS1) > 1 && size(dim::PHS2) > 1 {
            Self::ReadIsZ
        } else {
            Self::ReadIsX
        }
    }

    /// [`Axes::of`], and SLICE as z where the images are planes and SLICE is not 1.
    pub fn of_image(shape: &[usize]) -> Self {
        let size = |dim: usize| shape.get(dim).copied().unwrap_or(1);
        match Self::of(shape) {
            axes if size(dim::SLICE) == 1 => axes,
            Self::ReadIsZ => Self::SliceIsZOfCut,
            _ if size(dim::PHS2) == 1 => Self::SliceIsZ,
            axes => axes,
        }
    }

    /// Whether SLICE is z.
    pub(crate) fn slice_is_z(self) -> bool {
        matches!(self, Self::SliceIsZ | Self::SliceIsZOfCut)
    }

    /// The dimensions that change places, one pair after another, so that READ is x and PHS2 is z.
    fn exchanged(self) -> &'static [[usize; 2]] {
        const READ_PHS2: [usize; 2] = [dim::READ, dim::PHS2];
        const PHS2_SLICE: [usize; 2] = [dim::PHS2, dim::SLICE];
        match self {
            Self::ReadIsX => &[],
            Self::ReadIsZ => &[READ_PHS2],
            Self::SliceIsZ => &[PHS2_SLICE],
            Self::SliceIsZOfCut => &[READ_PHS2, PHS2_SLICE],
        }
    }

    /// What to tell the user of an array that was turned.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::ReadIsX => None,
            Self::ReadIsZ => {
                Some("the readout dimension is 1: PHS1 is taken as y, PHS2 as x (a slice across the readout)")
            }
            Self::SliceIsZ => Some("SLICE is taken as z"),
            Self::SliceIsZOfCut => Some(
                "the readout dimension is 1: PHS1 is taken as y, PHS2 as x (slices across the readout), SLICE as z",
            ),
        }
    }
}

/// How the dimensions of a BART array lie in Rayspin's arrays: what it takes to write such an array as it was
/// read.
///
/// The default is x, y, z in READ, PHS1, PHS2, and one frame.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::C32;
/// use rayspin_io::cfl::Layout;
///
/// let coils = ArrayD::from_elem(vec![1, 4, 1, 8, 6], C32::ONE); // [frame, coil, z, y, x]
/// let array = Layout::default().to_bart(coils.view())?;
/// assert_eq!(array.shape()[..5], [6, 8, 1, 4, 1]); // READ, PHS1, PHS2, COIL, MAPS
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Which image axis each BART dimension is.
    pub axes: Axes,
    /// Sizes of BART's dimensions from MAPS (4) up, less the one that is z; their product is the number of
    /// frames.
    pub frames: [usize; DIMS - dim::MAPS],
}

impl Default for Layout {
    fn default() -> Self {
        Self { axes: Axes::default(), frames: [1; DIMS - dim::MAPS] }
    }
}

impl Layout {
    /// The same axes for `count` frames: in the dimensions that they came in where those hold as many, else
    /// all along `dim`.
    pub fn with_frames(self, count: usize, dim: usize) -> Self {
        if self.frames.iter().product::<usize>() == count { self } else { self.with_all_along(count, dim) }
    }

    /// The same axes for `count` frames, all along `dim`.
    pub fn with_all_along(self, count: usize, dim: usize) -> Self {
        let mut frames = Self::default().frames;
        frames[dim - dim::MAPS] = count;
        Self { frames, ..self }
    }

    /// The same axes for the volumes of a scan, as the labels of their slices 0: contrasts along TE,
    /// repetitions along TIME, cardiac phases along TIME2, sets along BATCH. Volumes that are no full grid go
    /// along TIME.
    pub fn with_volumes(self, volumes: &[Label]) -> Self {
        let mut frames = Self::default().frames;
        for (name, values) in varying(volumes) {
            let place = match name {
                "contrast" => dim::TE,
                "cardiac phase" => dim::TIME2,
                "set" => dim::BATCH,
                _ => dim::TIME,
            };
            frames[place - dim::MAPS] = values.len();
        }
        Self { frames, ..self }.with_frames(volumes.len(), dim::TIME)
    }

    /// An array `[frame, coil, z, y, x]` in BART's order, all sixteen dimensions. Errors: `frames` that do
    /// not multiply to the number of frames, or another number of axes.
    pub fn to_bart<'a>(&self, data: ArrayViewD<'a, C32>) -> Result<CowArray<'a, C32, IxDyn>> {
        let data_shape = data.shape().to_vec();
        let frames = rayspin_core::voxels(&self.frames)?;
        let expected = || format!("[{frames}, coil, z, y, x]");
        let mismatch =
            || Error::Shape { what: "frames".into(), expected: expected(), found: format_shape(&data_shape) };
        if data_shape.len() != 5 || data_shape[0] != frames {
            return Err(mismatch());
        }
        let shape: Vec<usize> = self.frames.iter().rev().chain(&data_shape[1..]).copied().collect();
        let ordered: CowArray<'a, C32, IxDyn> = if data.is_standard_layout() {
            data.into()
        } else {
            data.as_standard_layout().into_owned().into()
        };
        let mut array = ordered.into_shape_with_order(IxDyn(&shape)).map_err(|_| mismatch())?.reversed_axes();
        for &[a, b] in self.axes.exchanged().iter().rev() {
            array.swap_axes(a, b);
        }
        Ok(array)
    }

    /// The sizes of BART's dimensions for volumes `[z, y, x]` of `coils` coils.
    pub(crate) fn dims(&self, coils: usize, [nz, ny, nx]: [usize; 3]) -> [usize; DIMS] {
        let mut dims = [1; DIMS];
        [dims[dim::READ], dims[dim::PHS1], dims[dim::PHS2], dims[dim::COIL]] = [nx, ny, nz, coils];
        dims[dim::MAPS..].copy_from_slice(&self.frames);
        for &[a, b] in self.axes.exchanged().iter().rev() {
            dims.swap(a, b);
        }
        dims
    }

    fn describe_frames(&self) -> String {
        let several: Vec<String> = (dim::MAPS..DIMS)
            .zip(self.frames)
            .filter(|(_, size)| *size > 1)
            .map(|(index, size)| format!("{} (dimension {index}) of {size}", dim::NAMES[index]))
            .collect();
        several.join(", ")
    }
}

/// Cartesian k-space, coil images or images in Rayspin's order.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::C32;
/// use rayspin_io::cfl::Cartesian;
///
/// let array = ArrayD::from_shape_fn(vec![6, 8, 1, 4], |i| C32::from(i[0] as f32)); // READ, PHS1, PHS2, COIL
/// let kspace = Cartesian::from_bart(array.view())?;
/// assert_eq!(kspace.data.dim(), (1, 4, 1, 8, 6)); // [frame, coil, z, y, x]
/// assert_eq!(kspace.data[[0, 2, 0, 3, 5]], C32::from(5.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Cartesian {
    /// `[frame, coil, z, y, x]`. Frames run through BART's dimensions from MAPS up, the first fastest.
    pub data: Array5<C32>,
    /// What became of BART's dimensions.
    pub layout: Layout,
}

impl Cartesian {
    /// Turns a BART array `[READ, PHS1, PHS2, COIL, MAPS, …]` into `[frame, coil, z, y, x]`. Errors: more
    /// than sixteen axes, or an empty one.
    pub fn from_bart(array: ArrayViewD<'_, C32>) -> Result<Self> {
        let axes = Axes::of(array.shape());
        Self::with_axes(array, axes)
    }

    /// [`Cartesian::from_bart`] of images, where SLICE may be z.
    pub fn image_from_bart(array: ArrayViewD<'_, C32>) -> Result<Self> {
        let axes = Axes::of_image(array.shape());
        Self::with_axes(array, axes)
    }

    fn with_axes(mut array: ArrayViewD<'_, C32>, axes: Axes) -> Result<Self> {
        if array.ndim() > DIMS || array.is_empty() {
            let expected = format!("at most {DIMS} axes, none empty");
            return Err(Error::value("BART array", expected, format_shape(array.shape())));
        }
        while array.ndim() < DIMS {
            let axis = Axis(array.ndim());
            array.insert_axis_inplace(axis);
        }
        for &[a, b] in axes.exchanged() {
            array.swap_axes(a, b);
        }
        let mut frames = [1; DIMS - dim::MAPS];
        frames.copy_from_slice(&array.shape()[dim::MAPS..]);
        let shape = array.shape();
        let shape =
            (frames.iter().product(), shape[dim::COIL], shape[dim::PHS2], shape[dim::PHS1], shape[dim::READ]);
        let data = array
            .reversed_axes()
            .as_standard_layout()
            .into_owned()
            .into_shape_with_order(shape)
            .map_err(|e| Error::value("BART array", "a shape that can be regrouped", e))?;
        Ok(Self { data, layout: Layout { axes, frames } })
    }

    /// The only frame, `[coil, z, y, x]`. Errors: several frames, naming the BART dimensions that are not 1.
    pub fn single(self) -> Result<Array4<C32>> {
        let frames = self.data.shape()[0];
        if frames != 1 {
            return Err(Error::value("BART array", "one frame", self.layout.describe_frames()));
        }
        Ok(self.data.index_axis_move(Axis(0), 0))
    }
}
