//! Raw scans that stay open: what their heads say, and the acquisitions that a caller names.

use std::collections::BTreeMap;
use std::path::Path;

use rayspin_core::Monitor;
use rayspin_scan::mri::{Acquisition, AcquisitionHead, Label, Scan, ScanHeader, SlicePlaces};

use crate::Result;

/// What a file holds, known before its samples are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The header.
    pub header: ScanHeader,
    /// How many acquisitions.
    pub acquisitions: usize,
    /// Bytes that reading needs at its peak: the scan itself, one block and a library's own.
    pub memory_bytes: u64,
    /// The part of these bytes that a library keeps once the scan is read.
    pub library_bytes: u64,
    /// The images and the bytes that the acquisitions of each take in memory, in label order.
    pub images: BTreeMap<Label, u64>,
}

/// Bytes of acquisitions that are read together: enough for all threads, little beside a scan.
const BATCH: u64 = 32 << 20;

/// Acquisitions that are read together, in order: as many as [`BATCH`] holds, at least one.
pub(crate) fn batches<'a>(
    wanted: &'a [usize],
    bytes_of: impl Fn(&usize) -> u64 + 'a,
) -> impl Iterator<Item = &'a [usize]> + 'a {
    let mut rest = wanted;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let more = rest.iter().take_while(|number| {
            let first = bytes == 0;
            bytes += bytes_of(number);
            first || bytes <= BATCH
        });
        let (batch, behind) = rest.split_at_checked(more.count().max(1))?;
        rest = behind;
        Some(batch)
    })
}

/// A raw scan with a header, of any format. Opening reads the header and the heads of all acquisitions;
/// [`ScanReader::read`] reads the acquisitions that the caller names.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_io::{ismrmrd, open_scan};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// # let folder = tempfile::tempdir()?;
/// let monitor = Monitor::silent();
/// let options = SimulateOptions { matrix: [16, 16, 1], coils: 2, ..SimulateOptions::default() };
/// let file = folder.path().join("raw.h5");
/// ismrmrd::write(&file, &simulate(&options, &monitor)?.scan, ismrmrd::Identity::LeaveOut)?;
/// let mut reader = open_scan(&file, &monitor)?;
/// assert_eq!(reader.heads().len(), 16);
/// let mut read = Vec::new();
/// reader.read(&mut [2, 7].into_iter(), &monitor, &mut |number, readout| read.push((number, readout.data.dim())))?;
/// assert_eq!(read, [(2, (2, 16)), (7, (2, 16))]); // [coil, sample]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ScanReader: Send {
    /// The file.
    fn path(&self) -> &Path;

    /// The header of the scan.
    fn header(&self) -> &ScanHeader;

    /// What the file holds.
    fn contents(&self) -> Contents;

    /// The place of every acquisition, in file order.
    fn heads(&self) -> Vec<AcquisitionHead>;

    /// Where the slices lie, as the heads of their first readouts state it.
    fn slice_places(&self) -> SlicePlaces;

    /// Bytes that reading takes besides the acquisitions that it returns.
    fn memory_bytes(&self) -> u64;

    /// The part of these bytes that a library keeps once the reader is gone.
    fn library_bytes(&self) -> u64 {
        0
    }

    /// Reads acquisitions by their numbers in the file, which rise; `take` gets each with its number.
    ///
    /// Errors: a file that cannot be read, acquisitions that contradict their heads, numbers of images that
    /// are not finite; [`rayspin_core::Error::Interrupted`].
    fn read(
        &mut self,
        wanted: &mut dyn Iterator<Item = usize>,
        monitor: &Monitor<'_>,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()>;

    /// What had to be assumed or repaired, one sentence each, by the acquisitions read so far.
    fn notes(&self) -> Vec<String>;

    /// Where the file holds images, if the part of it that is read holds none.
    fn images_elsewhere(&self) -> Option<String> {
        None
    }

    /// The scan with zeros for samples, which share memory, where heads alone describe it.
    fn without_samples(&self) -> Option<Scan> {
        None
    }

    /// Reads every acquisition, and closes the file.
    ///
    /// Errors: as [`ScanReader::read`]; more than memory has.
    fn into_scan(self: Box<Self>, monitor: &Monitor<'_>) -> Result<Scan>;
}
