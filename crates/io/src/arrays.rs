//! Arrays without a header: k-space, samples, trajectories, sensitivity maps, covariances.

use std::path::Path;

use ndarray::{Array2, ArrayD, ArrayViewD};
use rayspin_core::C32;

use crate::cfl::Layout;
use crate::format::any_of;
use crate::{Error, Format, Input, Result, detect, endings, expect_ending, parts};

/// Which number types a reader accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    Any,
    Real,
    Complex,
}

/// Samples `[coil, sample]` or points `[sample, dim]`, and the sizes of what these samples run through, such as
/// `[spoke, readout]`, without sizes of 1.
pub(crate) type Runs<T> = (Array2<T>, Vec<usize>);

/// An array as `[coil, z, y, x]` or `[coil, y, x]`.
pub(crate) struct Grid {
    pub(crate) values: ArrayD<C32>,
    /// What became of its dimensions.
    pub(crate) layout: Layout,
    /// What was assumed, one sentence each.
    pub(crate) notes: Vec<String>,
}

type WriteArray = fn(&Path, ArrayViewD<'_, C32>, Layout) -> Result<()>;

/// How a format holds arrays, and what their axes are taken as.
pub struct Arrays {
    /// Reads an array with the axes of the file; the name chooses one of several.
    pub(crate) read: fn(&Path, Option<&str>, Numbers) -> Result<ArrayD<C32>>,
    /// An array as a grid.
    pub(crate) grid: fn(&Path, ArrayD<C32>) -> Result<Grid>,
    /// An array as samples.
    pub(crate) samples: fn(&Path, ArrayD<C32>) -> Result<Runs<C32>>,
    /// Reads a trajectory in the file's own unit, components x, y, z; one that is 2-D has two.
    pub(crate) points: fn(&Path, Option<&str>) -> Result<Runs<f64>>,
    /// Whose trajectories are in cycles per field of view, where a trajectory in this format is taken so unless it may count
    /// voxels.
    pub(crate) cycles_per_fov: Option<&'static str>,
    /// Writes `[coil, z, y, x]` or `[set, coil, z, y, x]`.
    pub(crate) write: Option<WriteArray>,
    /// How often the values are in memory at once while k-space on a grid, or samples along a trajectory, are read.
    pub(crate) copies: [u64; 2],
}

/// The arrays of a file that is to hold `what`. Errors: a format without arrays.
fn arrays_of(input: &Input, what: &str) -> Result<&'static Arrays> {
    let format = input.format()?;
    format.arrays.as_ref().ok_or_else(|| {
        let expected = format!("{what} as {}", any_of(&endings(Format::reads_arrays)));
        Error::not_this_format(&input.file, expected, format)
    })
}

/// Reads an array with the axes of the file, real numbers as complex ones. `what` it is to be is for the error. A name after a
/// colon chooses one of several ([`Input`]).
///
/// Errors: a format without arrays; several arrays and no name; errors of the format's reader.
pub fn read_array(path: impl AsRef<Path>, what: &str) -> Result<ArrayD<C32>> {
    let input = Input::of(path);
    (arrays_of(&input, what)?.read)(&input.file, input.name.as_deref(), Numbers::Any)
}

/// Reads sensitivity maps `[coil, z, y, x]`. Errors: as [`read_array`].
pub fn read_maps(path: impl AsRef<Path>) -> Result<ArrayD<C32>> {
    let input = Input::of(path);
    let arrays = arrays_of(&input, "maps")?;
    let array = (arrays.read)(&input.file, input.name.as_deref(), Numbers::Any)?;
    Ok((arrays.grid)(&input.file, array)?.values)
}

/// Writes `[coil, z, y, x]` or `[set, coil, z, y, x]` in the format of the name; `layout` is where axes go in a BART array.
///
/// Errors: an ending of a format without arrays; errors of the format's writer.
pub fn write_coil_array(path: impl AsRef<Path>, maps: ArrayViewD<'_, C32>, layout: Layout) -> Result<()> {
    let path = path.as_ref();
    match expect_ending(path, Format::writes_arrays)?.arrays.as_ref().and_then(|arrays| arrays.write) {
        Some(write) => write(path, maps, layout),
        None => Ok(()),
    }
}

/// Bytes that [`read_scan`](crate::read_scan) needs at its peak for k-space on a grid, or for samples along a trajectory; 0 for
/// a format without arrays. Errors: as [`detect`].
pub fn array_memory(path: impl AsRef<Path>, along_trajectory: bool) -> Result<u64> {
    let path = path.as_ref();
    let copies =
        detect(path)?.arrays.as_ref().map_or(0, |arrays| arrays.copies[usize::from(along_trajectory)]);
    let sizes = parts(path).into_iter().filter_map(|part| part.metadata().ok()).map(|file| file.len());
    Ok(copies * sizes.sum::<u64>())
}

/// The sizes other than 1.
pub(crate) fn without_ones(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().copied().filter(|&n| n != 1).collect()
}
