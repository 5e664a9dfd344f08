//! The images that k-space holds along BART's dimensions.

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::{Array2, ArrayD, Axis, IxDyn, ShapeBuilder};
use rayspin_core::C32;
use rayspin_scan::mri::Label;

use super::{Axes, DIMS, Layout, dim, expect_size, file_pair, read_dims, values};
use crate::{Error, Result, opening};

/// A dimension, and the counter of labels that it numbers.
type Counter = (usize, fn(&Label) -> u16);

/// The dimensions that number contrasts, cardiac phases, repetitions, slices and sets.
const COUNTERS: [Counter; 5] = [
    (dim::TE, |label| label.contrast),
    (dim::TIME2, |label| label.phase),
    (dim::TIME, |label| label.repetition),
    (dim::SLICE, |label| label.slice),
    (dim::BATCH, |label| label.set),
];
/// Images at most: the labels of more take too much memory.
const MOST: usize = 1 << 24;

/// Where the numbers of the images are.
#[derive(Debug, Clone)]
enum Source {
    /// In a `.cfl` file.
    File,
    /// In memory, in BART's dimensions.
    Memory(Arc<ArrayD<C32>>),
}

/// The images of an array, and where each lies in it.
///
/// An image has the dimensions READ to COIL. TE counts contrasts, TIME repetitions, TIME2 cardiac phases,
/// SLICE slices and BATCH sets, as the labels of a scan do. All other dimensions are 1.
#[derive(Debug, Clone)]
pub(crate) struct Images {
    path: PathBuf,
    dims: [usize; DIMS],
    source: Source,
}

impl Images {
    /// The images of a `.cfl` file, by its header.
    ///
    /// Errors: as [`read`](super::read); a dimension that numbers no images and is not 1; too many images.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let dims = read_dims(path)?;
        let images = Self { path: path.to_owned(), dims, source: Source::File };
        images.expect_counters()?;
        let (data, header) = file_pair(path);
        let file = opening::open(&data)?;
        expect_size(&file, &data, &header, &dims)?;
        images.expect_few()?;
        Ok(images)
    }

    /// The images of an array in memory, in BART's dimensions. `path` is for the errors.
    ///
    /// Errors: too many images.
    pub(crate) fn in_memory(path: &Path, array: ArrayD<C32>) -> Result<Self> {
        let mut dims = [1; DIMS];
        dims.iter_mut().zip(array.shape()).for_each(|(own, &size)| *own = size);
        let images = Self { path: path.to_owned(), dims, source: Source::Memory(Arc::new(array)) };
        images.expect_counters()?;
        images.expect_few()?;
        Ok(images)
    }

    /// Errors: a dimension that numbers no images and is not 1, or numbers more than labels can.
    fn expect_counters(&self) -> Result<()> {
        for (index, &size) in self.dims.iter().enumerate().skip(dim::MAPS) {
            if size > 1 && !COUNTERS.iter().any(|(own, _)| *own == index) {
                let hint = format!(
                    "images are numbered by TE, TIME, TIME2, SLICE and BATCH; bart slice {index} N takes one of {}",
                    dim::NAMES[index]
                );
                return Err(self.refuse(index, "1 in k-space, samples and trajectories").with_hint(hint));
            }
            if size > 1 + usize::from(u16::MAX) {
                return Err(self.refuse(index, &format!("at most {}", 1 + usize::from(u16::MAX))));
            }
        }
        Ok(())
    }

    /// Errors: too many images, of a file whose size is known.
    fn expect_few(&self) -> Result<()> {
        match self.count() {
            count if count > MOST => {
                Err(Error::field(self.header(), "number of images", format!("at most {MOST}"), count))
            }
            _ => Ok(()),
        }
    }

    /// The file that states the dimensions.
    fn header(&self) -> PathBuf {
        match self.source {
            Source::File => file_pair(&self.path).1,
            Source::Memory(_) => self.path.clone(),
        }
    }

    /// Bytes of the numbers that are in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match &self.source {
            Source::File => 0,
            Source::Memory(array) => 8 * array.len() as u64,
        }
    }

    fn refuse(&self, index: usize, expected: &str) -> Error {
        let field = format!("{} (dimension {index})", dim::NAMES[index]);
        Error::field(self.header(), field, expected, self.dims[index])
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.dims[dim::MAPS..].iter().product()
    }

    /// Whether one of them has the label.
    pub(crate) fn holds(&self, label: &Label) -> bool {
        let within = COUNTERS.iter().all(|(index, counter)| usize::from(counter(label)) < self.dims[*index]);
        within && label.encoding == 0
    }

    /// How many slices there are.
    pub(crate) fn slices(&self) -> usize {
        self.dims[dim::SLICE]
    }

    /// Their labels, in order.
    pub(crate) fn labels(&self) -> Vec<Label> {
        let [contrasts, phases, repetitions, slices, sets] =
            COUNTERS.map(|(index, _)| (0..self.dims[index]).map(|counter| counter as u16));
        let mut labels = Vec::with_capacity(self.count());
        for set in sets {
            for phase in phases.clone() {
                for repetition in repetitions.clone() {
                    for contrast in contrasts.clone() {
                        labels.extend(slices.clone().map(|slice| Label {
                            encoding: 0,
                            set,
                            phase,
                            repetition,
                            contrast,
                            slice,
                        }));
                    }
                }
            }
        }
        labels
    }

    /// Errors: a dimension of `self` that is neither 1 nor as in `samples`.
    pub(crate) fn expect_to_fit(&self, samples: &Self) -> Result<()> {
        for index in dim::MAPS..DIMS {
            let [own, wanted] = [self.dims[index], samples.dims[index]];
            if own != 1 && own != wanted {
                let expected = if wanted == 1 {
                    "1, as the samples have".into()
                } else {
                    format!("1 or {wanted}, as the samples have")
                };
                return Err(self.refuse(index, &expected));
            }
        }
        Ok(())
    }

    /// The number of the label's image in the file, the first fastest. A dimension of 1 serves all.
    pub(crate) fn place(&self, label: &Label) -> usize {
        let counter =
            |index| COUNTERS.iter().find(|(own, _)| *own == index).map_or(0, |(_, counter)| counter(label));
        (dim::MAPS..DIMS).rev().fold(0, |place, index| {
            let size = self.dims[index];
            place * size + usize::from(counter(index)).min(size - 1)
        })
    }

    /// Places of the grid of one image.
    pub(crate) fn places(&self) -> usize {
        self.dims[..dim::COIL].iter().product()
    }

    /// Samples of each readout along a trajectory.
    pub(crate) fn readout(&self) -> usize {
        self.dims[dim::PHS1]
    }

    /// Numbers of one image.
    pub(crate) fn image_len(&self) -> usize {
        self.dims[..dim::MAPS].iter().product()
    }

    /// The label's image, its dimensions from MAPS up being 1. Errors: as [`read`](super::read).
    pub(crate) fn read(&self, label: &Label) -> Result<ArrayD<C32>> {
        if let Source::Memory(array) = &self.source {
            return Ok(self.part(array, label));
        }
        let (data, header) = file_pair(&self.path);
        let mut file = opening::open(&data)?;
        expect_size(&file, &data, &header, &self.dims)?;
        let count = self.image_len();
        let start = self.place(label) as u64 * count as u64 * 8;
        file.seek(SeekFrom::Start(start)).map_err(|e| Error::read(&data, e))?;
        let numbers = values(&mut file, &data, count, &self.dims)?;
        let mut shape = [1; DIMS];
        shape[..dim::MAPS].copy_from_slice(&self.dims[..dim::MAPS]);
        ArrayD::from_shape_vec(IxDyn(&shape).f(), numbers)
            .map_err(|e| Error::field(&header, "Dimensions", "a shape", e))
    }

    fn part(&self, array: &ArrayD<C32>, label: &Label) -> ArrayD<C32> {
        let mut view = array.view();
        for (dimension, counter) in COUNTERS {
            let one = usize::from(counter(label)).min(self.dims[dimension] - 1);
            view.slice_axis_inplace(Axis(dimension), (one..=one).into());
        }
        view.to_owned()
    }

    /// Where the image axes of some of them go, when they are written as one array: slices along SLICE, the
    /// others where they were.
    pub(crate) fn layout(&self, labels: &[Label], along_trajectory: bool) -> Layout {
        let distinct =
            |counter: fn(&Label) -> u16| labels.iter().map(counter).collect::<BTreeSet<u16>>().len();
        let in_order = along_trajectory || matches!(self.source, Source::Memory(_));
        let cut = if in_order { Axes::default() } else { Axes::of(&self.dims) };
        let axes = match (distinct(|label| label.slice), cut) {
            (0 | 1, cut) => cut,
            (_, Axes::ReadIsZ) => Axes::SliceIsZOfCut,
            _ => Axes::SliceIsZ,
        };
        let mut frames = Layout::default().frames;
        for (dimension, counter) in COUNTERS.into_iter().filter(|(dimension, _)| *dimension != dim::SLICE) {
            frames[dimension - dim::MAPS] = distinct(counter);
        }
        Layout { axes, frames }
    }
}

/// All points of the trajectories of a file, image after image in the order of [`Images::place`], and the
/// numbers `[spoke, readout]` of one image.
///
/// Errors: another shape, numbers that are not real.
pub(crate) fn points(path: &Path) -> Result<(Array2<f64>, [usize; 2], Images)> {
    let images = Images::of(path)?;
    let array = super::read(path)?;
    let [components, readout, spokes, one] = [0, 1, 2, 3].map(|axis| images.dims[axis]);
    let wrong = |expected: &str| {
        let found = rayspin_core::format_shape(&images.dims[..dim::MAPS]);
        Error::field(file_pair(path).1, "BART trajectory", expected, found)
    };
    if components != 3 || one != 1 {
        return Err(wrong("[3, readout, spoke]"));
    }
    if let Some(value) = array.iter().find(|value| value.im != 0.0) {
        return Err(Error::field(path, "BART trajectory", "real numbers", value));
    }
    // The reversed axes in C order are the file's order: the component is fastest.
    let values: Vec<f64> = array.t().iter().map(|value| f64::from(value.re)).collect();
    let points =
        Array2::from_shape_vec((values.len() / 3, 3), values).map_err(|_| wrong("[3, readout, spoke]"))?;
    let flat = points.column(2).iter().all(|&kz| kz == 0.0);
    let points = if flat { points.slice(ndarray::s![.., ..2]).to_owned() } else { points };
    Ok((points, [spokes, readout], images))
}

/// Bytes of one image's numbers. Errors: as [`Images::of`].
pub(crate) fn image_bytes(path: &Path) -> Result<u64> {
    Ok(8 * Images::of(path)?.image_len() as u64)
}
