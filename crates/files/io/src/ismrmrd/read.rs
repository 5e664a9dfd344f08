use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::ArcArray1;
use rayon::prelude::*;
use rayspin_core::Monitor;
use rayspin_device::cpu::{expect_memory, prefer_huge_pages, zeroed};
use rayspin_scan::mri::corrections::Sources;
use rayspin_scan::mri::{Acquisition, AcquisitionHead, Flags, Label, Scan, ScanHeader, SlicePlaces};

use super::arrays::Acquisitions;
use super::check::{Checked, Repairs, Room, Settled, Stored, Tail};
use super::direct;
use super::header_in;
use super::layout::Head;
use super::open::{find_group, open};
use super::xml_string::xml_bytes;
use crate::error::{Error, Result};
use crate::hdf5_file::{check_holder, opened, reading};
use crate::scan_reader::Contents;

/// Samples are read in blocks of at most this many bytes and acquisitions, one a thread at a time: a block
/// stays in the second cache.
const BLOCK_BYTES: u64 = 1 << 20;
const BLOCK_COUNT: usize = 256;
/// HDF5's own tables.
const HDF5_BYTES: u64 = 3 << 18;
/// What HDF5 keeps of a file in its caches and free lists, which is twice what a small file holds.
const CACHED_BYTES: u64 = 5 << 19;

/// Which scan to read and how much memory it may take.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The group that holds the scan; the only one there is when absent.
    pub group: Option<String>,
    /// Bytes that the scan may take in memory; any number when absent.
    pub memory_limit: Option<u64>,
    /// Only the acquisitions of this image; all when absent.
    pub only: Option<Label>,
}

/// Reads the scan in `path`: every acquisition, in file order.
///
/// Memory: 8 bytes a sample and 4 a trajectory component, plus about 64 MiB while reading ([`contents`] gives
/// the number beforehand).
///
/// Errors name the file, the field, the expected and the found. Each of these is an error:
///
/// * A file that is not HDF5, or cut short.
/// * No scan in it, or several.
/// * No header, or a broken one.
/// * Matrix sizes outside 1 … 65535.
/// * Arrays with another length than the head states.
/// * Image acquisitions that differ in their number of coils or hold a NaN or an infinity.
/// * Trajectories of more than three dimensions.
/// * Encodings that the header lacks.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::ismrmrd::{Identity, read, write};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("scan.h5");
/// let options = SimulateOptions { matrix: [16, 16, 1], coils: 2, ..SimulateOptions::default() };
/// let scan = simulate(&options, &Monitor::silent())?.scan;
/// write(&path, &scan, Identity::LeaveOut)?;
/// assert_eq!(read(&path)?.acquisitions.len(), scan.acquisitions.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<Scan> {
    read_with(path, &ReadOptions::default(), &Monitor::silent())
}

/// [`read`] with options; `monitor` can stop it between blocks.
///
/// Errors: as [`read`]; [`rayspin_core::Error::Memory`] when the scan does not fit the limit;
/// [`rayspin_core::Error::Interrupted`].
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::ismrmrd::{Identity, ReadOptions, read_with, write};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// let monitor = Monitor::silent();
/// let options = SimulateOptions { matrix: [16, 16, 3], ..SimulateOptions::default() }; // 3 slices
/// let scan = simulate(&options, &monitor)?.scan;
/// let file = folder.path().join("raw.h5");
/// write(&file, &scan, Identity::LeaveOut)?;
/// let second = scan.frames()?.labels().nth(1);
/// let slice = read_with(&file, &ReadOptions { only: second, ..ReadOptions::default() }, &monitor)?;
/// assert_eq!(slice.acquisitions.len(), 16);
/// let small = ReadOptions { memory_limit: Some(1000), ..ReadOptions::default() };
/// assert!(read_with(&file, &small, &monitor).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_with(path: impl AsRef<Path>, options: &ReadOptions, monitor: &Monitor) -> Result<Scan> {
    read_past(path.as_ref(), options, monitor, true)
}

/// [`read_with`] by the HDF5 library alone, which the faster reader is compared with.
#[doc(hidden)]
pub fn read_by_library(path: impl AsRef<Path>, options: &ReadOptions, monitor: &Monitor) -> Result<Scan> {
    read_past(path.as_ref(), options, monitor, false)
}

/// [`Reader::open`] by the HDF5 library alone, which the faster reader is compared with.
#[doc(hidden)]
pub fn open_by_library(path: impl AsRef<Path>) -> Result<Reader> {
    Reader::of(path.as_ref(), Raw::open(path.as_ref(), None, false)?)
}

/// Whether the samples of a file are read past the HDF5 library.
#[doc(hidden)]
pub fn is_read_past_library(path: impl AsRef<Path>) -> Result<bool> {
    Ok(Raw::open(path.as_ref(), None, true)?.acquisitions.is_direct())
}

fn read_past(path: &Path, options: &ReadOptions, monitor: &Monitor, past_library: bool) -> Result<Scan> {
    let raw = Raw::open(path, options.group.as_deref(), past_library)?;
    if let Some(available) = options.memory_limit
        && raw.memory_bytes() > available
    {
        let needed = raw.memory_bytes();
        let what = "raw scan".to_owned();
        let error = rayspin_core::Error::Memory { what, needed, available };
        return Err(Error::core(path, error));
    }
    Reader::of(path, raw)?.into_scan(options.only, monitor)
}

/// What `path` holds; `group` as in [`ReadOptions`]. Reads the header and the heads, not the samples.
///
/// Errors: as [`read`], as far as they concern these.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::ismrmrd::{Identity, contents, write};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("scan.h5");
/// let options = SimulateOptions { matrix: [16, 16, 1], coils: 2, ..SimulateOptions::default() };
/// let scan = simulate(&options, &Monitor::silent())?.scan;
/// write(&path, &scan, Identity::LeaveOut)?;
/// // Known without reading the samples.
/// assert_eq!(contents(&path, None)?.images.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn contents(path: impl AsRef<Path>, group: Option<&str>) -> Result<Contents> {
    Ok(Reader::open(path, group)?.contents())
}

/// A scan whose header and heads are read and whose samples are not.
struct Raw {
    header: ScanHeader,
    heads: Vec<Head>,
    acquisitions: Acquisitions,
    notes: Vec<String>,
}

/// What reading acquisitions goes by, and what it counts.
struct Reading<'a, 'm> {
    path: &'a Path,
    checked: &'a [Checked],
    repairs: &'a mut Repairs,
    /// Acquisitions that were read before: their repairs are counted.
    counted: &'a mut [bool],
    monitor: &'a Monitor<'m>,
    /// Whether the acquisitions stay together.
    together: bool,
}

impl Raw {
    fn open(path: &Path, wanted: Option<&str>, past_library: bool) -> Result<Self> {
        let file = open(path)?;
        let (_, scan) = find_group(&file, path, wanted)?;
        let mut notes = Vec::new();
        let xml = scan.dataset("xml").map_err(|e| reading(path, "the XML header", &e))?;
        check_holder(path, &xml)?;
        let xml = header_in::text(&xml_bytes(path, &xml)?, &mut notes);
        let header = header_in::parse(path, xml, &mut notes)?;
        let dataset = opened(path, &scan, "data")?;
        check_holder(path, &dataset)?;
        let mut acquisitions = Acquisitions::new(path, dataset)?;
        if !acquisitions.missing.is_empty() {
            notes.push(format!(
                "the acquisition heads lack {}; zero was assumed",
                acquisitions.missing.join(", ")
            ));
        }
        let heads = acquisitions.heads(past_library)?;
        Ok(Self { header, heads, acquisitions, notes })
    }

    fn memory_bytes(&self) -> u64 {
        let arrays = self.heads.iter().fold(0u64, |sum, h| sum.saturating_add(Self::resident(h)));
        let stored = self.heads.iter().map(|h| self.acquisitions.stored(h));
        let (total, largest) = stored.fold((0u64, 0), |(sum, most), h| (sum.saturating_add(h), h.max(most)));
        // A thread's block is in memory twice where HDF5 reads it: as it hands the block out and as it
        // converts it.
        let threads = rayon::current_num_threads() as u64;
        let block = 2 * total.min(largest.max(BLOCK_BYTES).saturating_mul(threads));
        let heads = size_of::<Head>() + size_of::<Checked>() + size_of::<bool>() + direct::EACH_BYTES;
        arrays.saturating_add((heads * self.heads.len()) as u64 + block).saturating_add(self.library_bytes())
    }

    fn library_bytes(&self) -> u64 {
        let stored = self.heads.iter().fold(0u64, |sum, h| sum.saturating_add(self.acquisitions.stored(h)));
        HDF5_BYTES + stored.saturating_mul(2).min(CACHED_BYTES)
    }

    /// Bytes that an acquisition takes in memory.
    fn resident(head: &Head) -> u64 {
        let numbers = 8 * u64::from(head.active_channels) + 4 * u64::from(head.trajectory_dimensions);
        let each = std::mem::size_of::<Acquisition>() as u64;
        numbers.saturating_mul(u64::from(head.number_of_samples)).saturating_add(each)
    }

    /// Reads the acquisitions `wanted`, in rising order, in blocks of neighbours.
    fn acquisitions_of(
        &self,
        reading: Reading<'_, '_>,
        wanted: impl Iterator<Item = usize>,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        let Reading { path, checked, repairs, counted, monitor, together } = reading;
        let blocks = self.blocks(wanted);
        let values = |block: &Range<usize>| checked[block.clone()].iter().map(Checked::values).sum::<usize>();
        let components =
            |block: &Range<usize>| checked[block.clone()].iter().map(Checked::components).sum::<usize>();
        // Acquisitions that stay together share memory. Fresh large pages cost a quarter of fresh small
        // pages.
        let mut memory = Vec::new();
        for some in blocks.chunks(if together { blocks.len().max(1) } else { 1 }) {
            let fail = |e| Error::core(path, e);
            let samples = zeroed("samples of acquisitions", some.iter().map(values).sum()).map_err(fail)?;
            let points = zeroed("points of acquisitions", some.iter().map(components).sum()).map_err(fail)?;
            memory.push((some, samples, points));
        }
        let mut parts = Vec::with_capacity(blocks.len());
        for (some, samples, points) in &mut memory {
            prefer_huge_pages(samples);
            prefer_huge_pages(points);
            let mut room = Room { samples, points };
            for block in *some {
                let [own, behind] = room.split(values(block), components(block));
                parts.push((block, own));
                room = behind;
            }
        }
        // The first block that failed: those behind it are not read.
        let failed = AtomicUsize::new(blocks.len());
        let before = &*counted;
        let read = |block: &Range<usize>, mut room: Room<'_>| {
            monitor.check().map_err(|e| Error::core(path, e))?;
            let (mut repairs, mut out) = (Repairs::default(), Vec::with_capacity(block.len()));
            let mut again = Repairs::default();
            self.acquisitions.block(block.clone(), |index, points, samples| {
                let stored = Stored { head: &self.heads[index], points, samples };
                let [own, behind] =
                    std::mem::take(&mut room).split(checked[index].values(), checked[index].components());
                room = behind;
                let repairs = if before[index] { &mut again } else { &mut repairs };
                out.push(checked[index].settle(path, &self.header, &stored, own, repairs)?);
                Ok(())
            })?;
            Ok((out, repairs))
        };
        let until_failed = |(number, (block, room))| {
            let behind = number > failed.load(Ordering::Relaxed);
            let done = if behind { Ok(Default::default()) } else { read(block, room) };
            if done.is_err() {
                failed.fetch_min(number, Ordering::Relaxed);
            }
            done
        };
        let done: Vec<Result<(Vec<Settled>, Repairs)>> =
            parts.into_par_iter().enumerate().map(until_failed).collect();
        // In order, so that the error names the first bad acquisition of the file.
        let mut done = done.into_iter();
        for (some, samples, points) in memory {
            let (samples, points) = (ArcArray1::from_vec(samples), ArcArray1::from_vec(points));
            let (mut first_sample, mut first_component) = (0, 0);
            for (block, done) in some.iter().zip(&mut done) {
                let (settled, own) = done?;
                repairs.add(&own);
                counted[block.clone()].fill(true);
                for (index, settled) in block.clone().zip(&settled) {
                    let fewer = || {
                        Error::field(path, format!("acquisition {index}"), "its samples and points", "fewer")
                    };
                    let own = &checked[index];
                    let acquisition = own.acquisition(
                        &self.heads[index],
                        settled,
                        Tail { numbers: &samples, first: first_sample },
                        Tail { numbers: &points, first: first_component },
                    );
                    first_sample += own.values();
                    first_component += own.components();
                    take(index, acquisition.ok_or_else(fewer)?);
                }
            }
        }
        Ok(())
    }

    /// Blocks of neighbours.
    fn blocks(&self, wanted: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
        let mut blocks: Vec<Range<usize>> = Vec::new();
        let mut bytes = 0;
        for index in wanted {
            let own = self.acquisitions.stored(&self.heads[index]);
            match blocks.last_mut() {
                Some(block)
                    if block.end == index && block.len() < BLOCK_COUNT && bytes + own <= BLOCK_BYTES =>
                {
                    block.end += 1;
                    bytes += own;
                }
                _ => {
                    blocks.push(index..index + 1);
                    bytes = own;
                }
            }
        }
        blocks
    }
}

/// The header of a scan; `group` as in [`ReadOptions`]. Errors: as [`read`], as far as they concern it.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::ismrmrd::{Identity, header, write};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// let options = SimulateOptions { matrix: [16, 12, 1], ..SimulateOptions::default() };
/// let file = folder.path().join("raw.h5");
/// write(&file, &simulate(&options, &Monitor::silent())?.scan, Identity::LeaveOut)?;
/// assert_eq!(header(&file, None)?.encodings[0].recon.matrix, [16, 12, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn header(path: impl AsRef<Path>, group: Option<&str>) -> Result<ScanHeader> {
    Ok(Raw::open(path.as_ref(), group, true)?.header)
}

/// A scan that stays open. [`Self::read`] reads the acquisitions that the caller names.
///
/// HDF5 works for one thread at a time: a reader on a thread of its own waits while another thread writes a
/// file of that format.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::ismrmrd::{Identity, Reader, write};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// let monitor = Monitor::silent();
/// let options = SimulateOptions { matrix: [16, 16, 1], coils: 2, ..SimulateOptions::default() };
/// let file = folder.path().join("raw.h5");
/// write(&file, &simulate(&options, &monitor)?.scan, Identity::LeaveOut)?;
/// let mut reader = Reader::open(&file, None)?;
/// assert_eq!(reader.heads().len(), 16);
/// let mut read = Vec::new();
/// reader.read([2, 7].into_iter(), &monitor, &mut |number, readout| read.push((number, readout.data.dim())))?;
/// assert_eq!(read, [(2, (2, 16)), (7, (2, 16))]); // [coil, sample]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader {
    path: PathBuf,
    raw: Raw,
    checked: Vec<Checked>,
    repairs: Repairs,
    counted: Vec<bool>,
    coils: Option<usize>,
}

impl Reader {
    /// Opens `path`, reads the header and the heads of all acquisitions, and checks these; `group` as in
    /// [`ReadOptions`].
    ///
    /// Errors: as [`read`], as far as they concern these.
    pub fn open(path: impl AsRef<Path>, group: Option<&str>) -> Result<Self> {
        let path = path.as_ref();
        Self::of(path, Raw::open(path, group, true)?)
    }

    fn of(path: &Path, raw: Raw) -> Result<Self> {
        let (mut repairs, mut coils) = (Repairs::default(), None);
        let heads = raw.heads.iter().enumerate();
        let check = |(index, head)| Checked::new(path, &raw.header, index, head, &mut coils, &mut repairs);
        let checked = heads.map(check).collect::<Result<Vec<_>>>()?;
        let (counted, coils) = (vec![false; checked.len()], coils.map(|(_, n)| n as usize));
        Ok(Self { path: path.to_owned(), raw, checked, repairs, counted, coils })
    }

    /// What the file holds.
    pub fn contents(&self) -> Contents {
        let mut images = BTreeMap::new();
        for (head, checked) in self.raw.heads.iter().zip(&self.checked) {
            if let Some(label) = checked.label() {
                let bytes = images.entry(label).or_insert(0u64);
                *bytes = bytes.saturating_add(Raw::resident(head));
            }
        }
        Contents {
            images,
            memory_bytes: self.raw.memory_bytes(),
            library_bytes: self.raw.library_bytes(),
            acquisitions: self.raw.heads.len(),
            header: self.raw.header.clone(),
        }
    }

    /// Reads every acquisition, or the acquisitions of one image, and closes the file.
    ///
    /// Errors: as [`read`]; [`rayspin_core::Error::Interrupted`].
    pub fn into_scan(mut self, only: Option<Label>, monitor: &Monitor) -> Result<Scan> {
        let Self { path, raw, checked, .. } = &self;
        let serves = |index: usize, image| {
            Sources::all().serve(Flags(raw.heads[index].flags), checked[index].counted(), image)
        };
        let wanted = |index: &usize| only.is_none_or(|image| serves(*index, image));
        let wanted: Vec<usize> = (0..raw.heads.len()).filter(wanted).collect();
        let bytes = wanted.iter().map(|&index| Raw::resident(&raw.heads[index]));
        let bytes = bytes.fold(BLOCK_BYTES, u64::saturating_add);
        expect_memory("acquisitions", bytes).map_err(|e| Error::core(path, e))?;
        let mut acquisitions = Vec::with_capacity(wanted.len());
        self.read_some(true, wanted.into_iter(), monitor, &mut |_, acquisition| {
            acquisitions.push(acquisition)
        })?;
        let notes = self.notes();
        let Self { raw: Raw { header, heads, acquisitions: file, .. }, checked, .. } = self;
        drop((file, heads, checked));
        // HDF5's small buffers lie between the acquisitions, and are free now.
        rayspin_device::cpu::trim_memory();
        Ok(Scan { header, acquisitions, notes })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header of the scan.
    pub fn header(&self) -> &ScanHeader {
        &self.raw.header
    }

    /// The place of every acquisition, in file order. A calibration readout whose head states a trajectory is
    /// read, since the file may hold none.
    pub fn heads(&self) -> Vec<AcquisitionHead> {
        let places = self.raw.heads.iter().zip(&self.checked).enumerate();
        let place = |(index, (head, checked)): (usize, (&Head, &Checked))| {
            let place = checked.place(head, Raw::resident(head));
            let unsure = place.trajectory && place.flags.is_calibration_line();
            // As the acquisition will have it.
            let centre_sample =
                checked.centre(&self.raw.header, head, place.trajectory, &mut Repairs::default());
            AcquisitionHead {
                centre_sample,
                trajectory: place.trajectory && (!unsure || self.raw.acquisitions.has_trajectory(index)),
                ..place
            }
        };
        places.map(place).collect()
    }

    /// Where the slices lie, as the heads of their first readouts state it.
    pub fn slice_places(&self) -> SlicePlaces {
        let mut places = SlicePlaces::default();
        for (head, checked) in self.raw.heads.iter().zip(&self.checked) {
            if let Some(label) = checked.label() {
                places.add(&label, checked.slice_place(head));
            }
        }
        places
    }

    /// Bytes that reading takes besides the acquisitions that it returns: their heads, and what HDF5 keeps.
    pub fn memory_bytes(&self) -> u64 {
        let acquisitions: u64 = self.raw.heads.iter().map(Raw::resident).sum();
        self.raw.memory_bytes().saturating_sub(acquisitions)
    }

    /// The part of these bytes that the HDF5 library keeps once the reader is gone.
    pub fn library_bytes(&self) -> u64 {
        self.raw.library_bytes()
    }

    /// Reads acquisitions by their numbers in the file, which rise; `take` gets each with its number.
    ///
    /// Errors: as [`read`], as far as they concern these acquisitions; [`rayspin_core::Error::Interrupted`].
    pub fn read(
        &mut self,
        wanted: impl Iterator<Item = usize>,
        monitor: &Monitor,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        self.read_some(false, wanted, monitor, take)
    }

    fn read_some(
        &mut self,
        together: bool,
        wanted: impl Iterator<Item = usize>,
        monitor: &Monitor,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        let Self { path, raw, checked, repairs, counted, .. } = self;
        raw.acquisitions_of(Reading { path, checked, repairs, counted, monitor, together }, wanted, take)
    }

    /// What had to be assumed or repaired, one sentence each, by the acquisitions read so far.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.raw.notes.clone();
        self.repairs.say(&self.raw.header, self.coils, &mut notes);
        notes
    }
}
