//! How a format holds arrays without a header: k-space, samples, trajectories, sensitivity maps, covariances.

use std::path::Path;

use ndarray::{Array2, ArrayD, ArrayViewD};
use rayspin_core::C32;

use crate::Result;
use crate::cfl::Layout;
use crate::cfl::images::Images;

/// Which number types a reader accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    Any,
    Real,
    Complex,
}

/// Samples `[coil, sample]` or points `[sample, dim]`, and the sizes of what these samples run through, such
/// as `[spoke, readout]`, without sizes of 1.
pub(crate) type Runs<T> = (Array2<T>, Vec<usize>);

/// An array as `[coil, z, y, x]` or `[coil, y, x]`.
pub(crate) struct Grid {
    pub(crate) values: ArrayD<C32>,
    /// What became of its dimensions.
    pub(crate) layout: Layout,
    /// What the axes of the file are taken as, where this is a convention that the file may not follow.
    pub(crate) axes: Option<&'static str>,
    /// What was assumed, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// How the axes of an array are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// An array as a grid.
    pub(crate) grid: fn(&Path, ArrayD<C32>) -> Result<Grid>,
    /// An array as samples, of as many points of a trajectory as are given.
    pub(crate) samples: ReadSamples,
    /// How often the values are in memory at once while k-space on a grid, or samples along a trajectory, are
    /// read.
    pub(crate) copies: [u64; 2],
}

type ReadSamples = fn(&Path, ArrayD<C32>, Option<usize>) -> Result<Runs<C32>>;
type CountBytes = fn(&Path, Option<&str>) -> Result<u64>;
type WriteArray = fn(&Path, ArrayViewD<'_, C32>, Layout) -> Result<()>;

/// How a format holds arrays, and what their axes are taken as.
#[derive(Debug)]
pub struct Arrays {
    /// Reads an array with the axes of the file; the name chooses one of several.
    pub(crate) read: fn(&Path, Option<&str>, Numbers) -> Result<ArrayD<C32>>,
    /// How the axes of arrays are read.
    pub(crate) axes: Reading,
    /// Whether files keep no last axes of length 1.
    pub(crate) drops_ones: bool,
    /// Reads a trajectory in the file's own unit, components x, y, z; one that is 2-D has two. Trajectories
    /// of several images follow one another, and run through the sizes of one. `Numbers` says whether complex
    /// numbers kx + i·ky may be points.
    pub(crate) points: fn(&Path, Option<&str>, Numbers) -> Result<Runs<f64>>,
    /// An array as sensitivity maps `[coil, z, y, x]` or `[set, coil, z, y, x]`.
    pub(crate) maps: fn(&Path, ArrayD<C32>) -> Result<ArrayD<C32>>,
    /// Finds the images of k-space, samples or trajectories, in a format whose files number them.
    pub(crate) images: Option<fn(&Path) -> Result<Images>>,
    /// Whose trajectories are in cycles per field of view, where a trajectory in this format is taken so
    /// unless it may count voxels.
    pub(crate) cycles_per_fov: Option<&'static str>,
    /// Writes `[coil, z, y, x]` or `[set, coil, z, y, x]`.
    pub(crate) write: Option<WriteArray>,
    /// Bytes of the numbers of one of several arrays, where the size of the file does not tell them.
    pub(crate) bytes: Option<CountBytes>,
}

/// The sizes other than 1.
pub(crate) fn without_ones(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().copied().filter(|&n| n != 1).collect()
}
