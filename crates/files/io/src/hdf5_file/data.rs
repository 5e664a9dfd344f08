//! Data sets of a file: where their numbers lie, and reading them. A data set may lie in another file, behind
//! a link, or be put together from data sets of other files (virtual data sets, raw files beside the HDF5
//! file).

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use hdf5::filters::Filter;
use hdf5::plist::dataset_create::Layout;
use hdf5::{Dataset, Datatype, Group, H5Type};
use ndarray::{Array1, ArrayD, s};
use rayon::prelude::*;
use rayspin_core::voxels;
use rayspin_device::Cpu;
use rayspin_device::cpu::{expect_memory, zeroed};

use super::elsewhere::raw_file;
use super::{reading, written};
use crate::error::{Error, Result};

/// The largest factor by which HDF5's deflate shrinks data, with room for others.
const LARGEST_RATIO: u64 = 1100;
/// Numbers that a thread reads at a time.
const PART: usize = 1 << 20;
/// Filters that are registered with The HDF Group and that Rayspin lacks.
const FILTERS: [(i32, &str); 12] = [
    (4, "szip"),
    (32001, "blosc"),
    (32004, "lz4"),
    (32008, "bitshuffle"),
    (32013, "zfp"),
    (32015, "zstd"),
    (32017, "sz"),
    (32018, "fcidecomp"),
    (32019, "jpeg"),
    (32024, "sz3"),
    (32026, "blosc2"),
    (307, "bzip2"),
];

/// The data set of that name below a group. Links are followed, into other files too.
///
/// Errors: no such data set; a link, virtual data set or external storage that names a missing file; a filter
/// that Rayspin lacks; numbers that were never written.
pub(crate) fn dataset(path: &Path, group: &Group, name: &str) -> Result<Dataset> {
    expect_data(path, group, name, true)
}

/// Opens a data set as [`dataset`] does, but without the check that its numbers were written.
pub(crate) fn opened(path: &Path, group: &Group, name: &str) -> Result<Dataset> {
    expect_data(path, group, name, false)
}

fn expect_data(path: &Path, group: &Group, name: &str, complete: bool) -> Result<Dataset> {
    let data = group.dataset(name).map_err(|e| reading(path, &format!("opening {name}"), &e))?;
    expect_readable(path, &data, name, 0, complete)?;
    Ok(data)
}

/// Whether HDF5 compresses or otherwise changes the numbers on their way into the file. Filters that cannot
/// be told count.
pub(crate) fn is_filtered(data: &Dataset) -> bool {
    data.dcpl().and_then(|plist| plist.get_filters()).map_or(true, |filters| !filters.is_empty())
}

/// Where the numbers of a data set lie one after another: in which file, and from which byte on. None where
/// they do not, or where only the HDF5 library knows it.
pub(crate) fn place(data: &Dataset) -> Option<(PathBuf, u64)> {
    let plain = data.layout() == Layout::Contiguous && !is_filtered(data);
    // Numbers that were never written lie nowhere.
    let offset = data.offset().filter(|_| plain && data.storage_size() > 0)?;
    Some((data.filename().into(), offset))
}

/// The bytes of the file that holds a data set; none where several files hold it.
pub(crate) fn file_bytes(path: &Path, data: &Dataset) -> Result<Option<u64>> {
    let plist = data.dcpl().map_err(|e| reading(path, "how the data lie", &e))?;
    if data.layout() == Layout::Virtual || !plist.external().is_empty() {
        return Ok(None);
    }
    let holder = std::fs::metadata(data.filename()).or_else(|_| std::fs::metadata(path));
    Ok(Some(holder.map_err(|e| Error::read(path, e))?.len()))
}

/// Errors: more numbers than the file can hold, where one file holds the data set. `bytes` is the size of
/// one.
pub(crate) fn expect_within(path: &Path, data: &Dataset, name: &str, bytes: usize) -> Result<()> {
    let shape = data.shape();
    let wanted = shape.iter().fold(bytes as u128, |all, &size| all.saturating_mul(size as u128));
    let most = file_bytes(path, data)?.map(|bytes| u128::from(bytes) * u128::from(LARGEST_RATIO));
    match most.filter(|most| wanted > *most) {
        Some(most) => {
            let expected = format!("at most {most} bytes in a file of this size");
            Err(Error::field(path, name, expected, format!("shape {shape:?}")))
        }
        None => Ok(()),
    }
}

/// The numbers of some images of a data set `[image, row, column]`, in C order.
pub(crate) fn values(
    path: &Path,
    data: &Dataset,
    name: &str,
    images: Range<usize>,
    cpu: &Cpu,
) -> Result<Vec<f32>> {
    let core = |e| Error::core(path, e);
    let shape = data.shape();
    let image: usize = voxels(&shape[1..]).map_err(core)?;
    let count = voxels(&[images.len(), image]).map_err(core)?;
    let fail = |e: hdf5::Error| reading(path, &format!("reading {name}"), &e);
    let native = Datatype::from_type::<f32>().and_then(|native| Ok(data.dtype()? == native)).map_err(fail)?;
    if native
        && let Some((holder, offset)) = place(data)
        && let Ok(file) = File::open(&holder)
    {
        // The file has them as memory does: HDF5 would read them on one thread, in small parts.
        let mut values = zeroed("projections", count).map_err(core)?;
        let first = offset.saturating_add((images.start * image * size_of::<f32>()) as u64);
        let part = |(index, values): (usize, &mut [f32])| {
            let place = first.saturating_add((index * PART * size_of::<f32>()) as u64);
            file.read_exact_at(bytemuck::cast_slice_mut(values), place)
        };
        cpu.run(|| values.par_chunks_mut(PART).enumerate().try_for_each(part))
            .map_err(|e| Error::read(&holder, e))?;
        return Ok(values);
    }
    // HDF5 converts a copy.
    expect_memory(name, 2 * (count * size_of::<f32>()) as u64).map_err(core)?;
    let values: ndarray::Array3<f32> = data.read_slice(s![images, .., ..]).map_err(fail)?;
    Ok(values.into_raw_vec_and_offset().0)
}

/// The numbers of a data set with as many axes as `D`.
pub(crate) fn numbers<T: H5Type + Clone, D: ndarray::Dimension>(
    path: &Path,
    data: &Dataset,
    name: &str,
) -> Result<ndarray::Array<T, D>> {
    let shape = data.shape();
    let axes = D::NDIM.unwrap_or(shape.len());
    if shape.len() != axes {
        return Err(Error::field(path, name, format!("{axes} axes"), format!("shape {shape:?}")));
    }
    let count = voxels(&shape).map_err(|e| Error::core(path, e))?;
    let stored = data.dtype().map_err(|e| reading(path, &format!("reading {name}"), &e))?.size();
    expect_within(path, data, name, stored)?;
    // HDF5 converts a copy.
    expect_memory(name, 2 * (count * size_of::<T>()) as u64).map_err(|e| Error::core(path, e))?;
    let values: ArrayD<T> = data.read_dyn().map_err(|e| reading(path, &format!("reading {name}"), &e))?;
    values.into_dimensionality().map_err(|e| Error::field(path, name, format!("{axes} axes"), e))
}

/// The numbers of a data set that is a list: one axis, and beside it axes of length 1.
pub(crate) fn list(path: &Path, data: &Dataset, name: &str) -> Result<Array1<f64>> {
    let values = numbers::<f64, ndarray::IxDyn>(path, data, name)?;
    if values.shape().iter().filter(|&&count| count != 1).count() > 1 {
        return Err(Error::field(path, name, "a list of numbers", format!("shape {:?}", values.shape())));
    }
    Ok(Array1::from(values.into_raw_vec_and_offset().0))
}

/// Errors: filters that Rayspin lacks; files that hold the numbers and are missing or too short, for which
/// HDF5 would read zeros; where the numbers should be `complete`, also some that were never written. `depth`
/// counts virtual data sets, one within the other.
pub(super) fn expect_readable(
    path: &Path,
    data: &Dataset,
    name: &str,
    depth: usize,
    complete: bool,
) -> Result<()> {
    let plist = data.dcpl().map_err(|e| reading(path, &format!("opening {name}"), &e))?;
    let filters = plist.get_filters().unwrap_or_default();
    if let Some(index) = filters.iter().position(is_missing)
        && is_used(data, index)
    {
        return Err(missing_filter(path, name, filters[index].id()));
    }
    let holder = PathBuf::from(data.filename());
    if data.layout() == Layout::Virtual {
        return written::expect_sources(path, data, name, depth, complete);
    }
    let mut raw = 0u64;
    let files = plist.external();
    for file in &files {
        let (from, most) = (file.offset as u64, if file.size == 0 { u64::MAX } else { file.size as u64 });
        let metadata = raw_file(&holder, &file.name)?.and_then(|file| std::fs::metadata(file).ok());
        let Some(metadata) = metadata else {
            let expected = format!("the file {} that holds its numbers (external storage)", file.name);
            return Err(Error::field(path, name, expected, "none").with_hint(
                "HDF5 seeks such a file in the working directory, and where HDF5_EXTFILE_PREFIX says: \
                 HDF5_EXTFILE_PREFIX='${ORIGIN}' is the folder of the HDF5 file",
            ));
        };
        raw = raw.saturating_add(most.min(metadata.len().saturating_sub(from)));
    }
    let bytes = data.dtype().map_or(0, |ty| ty.size()) as u64;
    let wanted =
        bytes.saturating_mul(data.shape().iter().fold(1u64, |product, &n| product.saturating_mul(n as u64)));
    if !files.is_empty() && raw < wanted {
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        let what = format!("{name} in {}", names.join(", "));
        return Err(Error::truncated(path, what, format!("{wanted} bytes"), format!("{raw} bytes")));
    }
    if complete { written::expect_written(path, data, name) } else { Ok(()) }
}

/// Whether HDF5 needs another library to undo a filter. The folder of plugins that users state may hold it.
fn is_missing(filter: &Filter) -> bool {
    matches!(filter, Filter::SZip(..) | Filter::User(..)) && std::env::var_os("HDF5_PLUGIN_PATH").is_none()
}

/// Whether a chunk went through the filter in this place: programs may leave a filter out that they lack.
fn is_used(data: &Dataset, index: usize) -> bool {
    let mut used = false;
    let visited = data.chunks_visit(|chunk| {
        used = chunk.filter_mask & (1 << index.min(31)) == 0;
        i32::from(used)
    });
    used || visited.is_err()
}

fn missing_filter(path: &Path, name: &str, id: i32) -> Error {
    let known = FILTERS.iter().find(|(known, _)| *known == id);
    without_filter(path, name, &known.map_or_else(|| id.to_string(), |(_, name)| (*name).to_owned()))
}

/// The error of numbers that went through a filter that Rayspin lacks.
pub(super) fn without_filter(path: &Path, what: &str, filter: &str) -> Error {
    // Names of plugins go on with an address.
    let filter = filter.split(';').next().unwrap_or(filter);
    let filter = filter.trim_start_matches("HDF5 ").trim_end_matches(" filter");
    Error::unsupported(path, format!("{what}: the HDF5 filter {filter}")).with_hint(format!(
        "h5repack -f GZIP=4 {} new.h5 (with the plugin of {filter}) writes a file that Rayspin reads",
        path.display()
    ))
}
