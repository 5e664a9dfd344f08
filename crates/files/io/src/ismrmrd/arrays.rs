//! The `data` dataset: its type, its heads, and its samples in blocks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hdf5::types::TypeDescriptor;
use hdf5::{Dataset, H5Type};
use rayspin_device::cpu::expect_memory;

use super::direct::{Arrays, Direct};
use super::layout::{DataReIm, DataReal, DataRealImag, DataRi, Head, HeadOnly, OPTIONAL_HEAD, Samples, Traj};
use super::references;
use crate::error::{Error, Result};
use crate::hdf5_file::reading;

/// How the file holds complex samples.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SampleType {
    Interleaved,
    RealImag,
    ReIm,
    Ri,
}

/// Takes an acquisition's number, its trajectory and its interleaved samples.
type Take<'a> = dyn FnMut(usize, &[f32], &[f32]) -> Result<()> + 'a;

/// The acquisitions of a file, not yet read.
pub(super) struct Acquisitions {
    path: PathBuf,
    dataset: Dataset,
    samples: SampleType,
    trajectory: bool,
    /// Bytes of one complex sample in the file.
    sample_bytes: u64,
    /// Bytes of one trajectory component in the file.
    component_bytes: u64,
    /// Members of `head` that the file lacks.
    pub(super) missing: Vec<&'static str>,
    /// How many there are, at least 1.
    pub(super) count: usize,
    /// Where the trajectory and the samples state their lengths, within an element of the file; the former
    /// may be absent.
    references: (Option<usize>, usize),
    /// The file, and its length in bytes when it was opened.
    file: File,
    file_bytes: u64,
    /// Reads the arrays past the HDF5 library where their layout is known.
    direct: Option<Direct>,
    /// What blocks were read into, for the blocks to come: one for each thread.
    buffers: Mutex<Vec<Arrays>>,
}

impl Acquisitions {
    /// Looks at the type and the shape of `dataset`; reads nothing.
    pub(super) fn new(path: &Path, dataset: Dataset) -> Result<Self> {
        let fail = |e: hdf5::Error| reading(path, "the type of the acquisitions", &e);
        let shape = dataset.get_shape().map_err(fail)?;
        let &[count] = shape.as_slice() else {
            return Err(Error::field(path, "data", "one dimension", format!("shape {shape:?}")));
        };
        if count == 0 {
            return Err(Error::field(path, "data", "at least one acquisition", "none"));
        }
        // The dataset may lie in another file, through a link.
        let file = File::open(dataset.filename()).or_else(|_| File::open(path));
        let file = file.map_err(|e| Error::open(path, e))?;
        let file_bytes = file.metadata().map_err(|e| Error::read(path, e))?.len();
        let most = file_bytes / 16;
        if count as u64 > most {
            return Err(Error::field(
                path,
                "number of acquisitions",
                format!("at most {most} in a file of {file_bytes} bytes"),
                count,
            ));
        }
        let descriptor = dataset.dtype().and_then(|t| t.to_descriptor()).map_err(fail)?;
        let expected = "a compound of head, traj and data";
        let TypeDescriptor::Compound(acquisition) = &descriptor else {
            return Err(Error::field(path, "data", expected, descriptor));
        };
        let member = |name: &str| acquisition.fields.iter().find(|f| f.name == name).map(|f| &f.ty);
        let place = |name: &str| acquisition.fields.iter().find(|f| f.name == name).map(|f| f.offset);
        let head = match member("head") {
            Some(TypeDescriptor::Compound(head)) => head,
            Some(other) => return Err(Error::field(path, "data.head", "a compound", other)),
            None => return Err(Error::field(path, "data", expected, "no head")),
        };
        let has = |name: &str| head.fields.iter().any(|f| f.name == name);
        for name in ["number_of_samples", "active_channels"] {
            if !has(name) {
                return Err(Error::field(path, format!("data.head.{name}"), "a number", "nothing"));
            }
        }
        let missing = OPTIONAL_HEAD.into_iter().filter(|name| !has(name)).collect();
        let (samples, sample_bytes) = match member("data") {
            Some(ty) => sample_type(path, ty)?,
            None => return Err(Error::field(path, "data", expected, "no data")),
        };
        let component_bytes = match member("traj") {
            None => 0,
            Some(TypeDescriptor::VarLenArray(base)) if is_number(base) => base.size() as u64,
            Some(other) => {
                let expected = "numbers of variable length";
                return Err(Error::field(path, "data.traj", expected, other));
            }
        };
        Ok(Self {
            path: path.to_owned(),
            dataset,
            samples,
            trajectory: component_bytes > 0,
            sample_bytes,
            component_bytes,
            missing,
            count,
            references: (place("traj"), place("data").unwrap_or(0)),
            file,
            file_bytes,
            direct: None,
            buffers: Mutex::default(),
        })
    }

    /// Whether arrays are read past the HDF5 library.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Every head; past the HDF5 library where that is allowed and the layout is known. A file cannot hold
    /// more samples than it has bytes, so heads that promise more are refused.
    pub(super) fn heads(&mut self, past_library: bool) -> Result<Vec<Head>> {
        let bytes = self.count.saturating_mul(size_of::<HeadOnly>() + size_of::<Head>()) as u64;
        expect_memory("heads of acquisitions", bytes).map_err(|e| Error::core(&self.path, e))?;
        let direct = past_library.then(|| Direct::new(&self.path, &self.dataset, self.count)).flatten();
        // The library tells what is wrong: types may state other numbers than their sizes do.
        if let Some((direct, heads)) = direct.and_then(Direct::with_heads)
            && self.check(&heads, Some(&direct)).is_ok()
            && self.confirms(&heads, &direct)
        {
            self.direct = Some(direct);
            return Ok(heads);
        }
        let mut heads = vec![HeadOnly::default(); self.count];
        self.dataset
            .as_reader()
            .read_into_raw(&mut heads)
            .map_err(|e| reading(&self.path, "the heads of the acquisitions", &e))?;
        let heads: Vec<Head> = heads.into_iter().map(|h| h.head).collect();
        self.check(&heads, None)?;
        Ok(heads)
    }

    /// Whether the HDF5 library reads the first, the middle and the last acquisition as `direct` does: types
    /// may state numbers of other kinds than their sizes tell.
    fn confirms(&self, heads: &[Head], direct: &Direct) -> bool {
        [0, self.count / 2, self.count - 1].into_iter().all(|index| {
            let mut arrays = Arrays::default();
            if direct.arrays(index..index + 1, &mut arrays).is_none() {
                return false;
            }
            let head = self.slice::<HeadOnly>(index..index + 1);
            let Ok([own]) = head.as_deref() else { return false };
            let mut same = bytemuck::bytes_of(&own.head) == bytemuck::bytes_of(&heads[index]);
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            let read = self.block_of_library(index..index + 1, |_, points, samples| {
                same &= arrays.iter().all(|pair| pair.map(bits) == [points, samples].map(bits));
                Ok(())
            });
            same && read.is_ok()
        })
    }

    fn check(&self, heads: &[Head], direct: Option<&Direct>) -> Result<()> {
        let promised: u128 = heads.iter().map(|head| u128::from(self.stored(head))).sum();
        if promised > u128::from(self.file_bytes) {
            return Err(Error::truncated(
                &self.path,
                format!("the data of {} acquisitions", self.count),
                format!("{promised} bytes"),
                format!("a file of {} bytes", self.file_bytes),
            ));
        }
        self.lengths(heads, direct)
    }

    /// Refuses arrays that state to be longer than their heads say.
    fn lengths(&self, heads: &[Head], direct: Option<&Direct>) -> Result<()> {
        let (traj, data) = self.references;
        let components = if self.samples == SampleType::Interleaved { 2 } else { 1 };
        let check = |index: u64, [points, numbers]: [u32; 2]| {
            let Some(head) = usize::try_from(index).ok().and_then(|i| heads.get(i)) else {
                return Ok(());
            };
            let samples = u64::from(head.number_of_samples);
            let most = samples.saturating_mul(u64::from(head.trajectory_dimensions));
            if traj.is_some() && u64::from(points) > most {
                let field = format!("acquisition {index}: traj");
                return Err(Error::field(&self.path, field, format!("at most {most} numbers"), points));
            }
            let most = samples.saturating_mul(u64::from(head.active_channels)).saturating_mul(components);
            if u64::from(numbers) > most {
                let field = format!("acquisition {index}: data");
                return Err(Error::field(&self.path, field, format!("at most {most} numbers"), numbers));
            }
            Ok(())
        };
        if let Some(direct) = direct {
            return (0..self.count).try_for_each(|index| check(index as u64, direct.lengths(index)));
        }
        // Without a trajectory the data's place stands in for it, and any length will do.
        references::lengths(&self.path, &self.dataset, [traj.unwrap_or(data), data], check)
    }

    /// Bytes that an acquisition takes in the file.
    pub(super) fn stored(&self, head: &Head) -> u64 {
        let samples = u64::from(head.number_of_samples);
        let data = samples.saturating_mul(u64::from(head.active_channels)).saturating_mul(self.sample_bytes);
        let points = samples
            .saturating_mul(u64::from(head.trajectory_dimensions))
            .saturating_mul(self.component_bytes);
        data.saturating_add(points)
    }

    /// Calls `take` with the trajectory and the interleaved samples of each acquisition in `range`.
    pub(super) fn block(
        &self,
        range: std::ops::Range<usize>,
        mut take: impl FnMut(usize, &[f32], &[f32]) -> Result<()>,
    ) -> Result<()> {
        let Some(direct) = &self.direct else { return self.block_of_library(range, take) };
        let buffers = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut arrays = buffers().pop().unwrap_or_default();
        let done = match direct.arrays(range.clone(), &mut arrays) {
            Some(()) => range
                .zip(arrays.iter())
                .try_for_each(|(index, [points, samples])| take(index, points, samples)),
            None => self.block_of_library(range, take),
        };
        buffers().push(arrays);
        done
    }

    /// Whether the file has a trajectory of acquisition `index`, whatever its head states. One that cannot be
    /// read counts.
    pub(super) fn has_trajectory(&self, index: usize) -> bool {
        let mut has_points = false;
        let read = self.block(index..index + 1, |_, points, _| {
            has_points = !points.is_empty();
            Ok(())
        });
        has_points || read.is_err()
    }

    fn block_of_library(
        &self,
        range: std::ops::Range<usize>,
        mut take: impl FnMut(usize, &[f32], &[f32]) -> Result<()>,
    ) -> Result<()> {
        // HDF5 reads zeros behind the end of a file, and goes through a heap of zeros for ever.
        let length = self.file.metadata().map_err(|e| Error::read(&self.path, e))?.len();
        if length < self.file_bytes {
            let what = named(&range);
            let expected = format!("{} bytes, which the file had when it was opened", self.file_bytes);
            return Err(Error::truncated(&self.path, what, expected, format!("{length} bytes")));
        }
        match self.samples {
            SampleType::Interleaved => self.block_of::<DataReal>(range, &mut take),
            SampleType::RealImag => self.block_of::<DataRealImag>(range, &mut take),
            SampleType::ReIm => self.block_of::<DataReIm>(range, &mut take),
            SampleType::Ri => self.block_of::<DataRi>(range, &mut take),
        }
    }

    /// Where a block cannot be read, its acquisitions are read one by one: the error then names the first bad
    /// acquisition, however the blocks are cut.
    fn block_of<S: Samples>(&self, range: std::ops::Range<usize>, take: &mut Take<'_>) -> Result<()> {
        let (traj, data) = match self.arrays_of::<S>(range.clone()) {
            Err(_) if range.len() > 1 => {
                return range.into_iter().try_for_each(|index| self.block_of::<S>(index..index + 1, take));
            }
            arrays => arrays?,
        };
        for (offset, samples) in data.iter().enumerate() {
            let points = traj.get(offset).map_or(&[][..], |t| t.traj.as_slice());
            take(range.start + offset, points, &samples.interleaved())?;
        }
        Ok(())
    }

    fn arrays_of<S: H5Type>(&self, range: std::ops::Range<usize>) -> Result<(Vec<Traj>, Vec<S>)> {
        let traj = if self.trajectory { self.slice(range.clone())? } else { Vec::new() };
        Ok((traj, self.slice(range)?))
    }

    fn slice<T: H5Type>(&self, range: std::ops::Range<usize>) -> Result<Vec<T>> {
        let what = named(&range);
        let values = self.dataset.read_slice_1d::<T, _>(range).map_err(|e| reading(&self.path, &what, &e))?;
        Ok(values.into_raw_vec_and_offset().0)
    }
}

/// Some acquisitions, as errors name them.
fn named(range: &std::ops::Range<usize>) -> String {
    match range.len() {
        1 => format!("acquisition {}", range.start),
        _ => format!("acquisitions {} to {}", range.start, range.end - 1),
    }
}

fn is_number(ty: &TypeDescriptor) -> bool {
    use TypeDescriptor::{Float, Integer, Unsigned};
    matches!(ty, Float(_) | Integer(_) | Unsigned(_))
}

/// How `data` holds its samples, and the bytes of one.
fn sample_type(path: &Path, ty: &TypeDescriptor) -> Result<(SampleType, u64)> {
    let expected = "numbers or complex numbers of variable length";
    let TypeDescriptor::VarLenArray(base) = ty else {
        return Err(Error::field(path, "data.data", expected, ty));
    };
    match base.as_ref() {
        number if is_number(number) => Ok((SampleType::Interleaved, 2 * number.size() as u64)),
        TypeDescriptor::Compound(pair) if pair.fields.iter().all(|f| is_number(&f.ty)) => {
            let mut names: Vec<&str> = pair.fields.iter().map(|f| f.name.as_str()).collect();
            names.sort_unstable();
            let kind = match names.as_slice() {
                ["imag", "real"] => SampleType::RealImag,
                ["im", "re"] => SampleType::ReIm,
                ["i", "r"] => SampleType::Ri,
                _ => {
                    let found = format!("a compound of {}", names.join(", "));
                    let expected = "a complex number (real, imag)";
                    return Err(Error::field(path, "data.data", expected, found));
                }
            };
            Ok((kind, pair.size as u64))
        }
        other => Err(Error::field(path, "data.data", expected, format!("[{other}]"))),
    }
}
