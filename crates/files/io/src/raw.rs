//! Scans with a header, made of arrays without one.

use std::path::{Path, PathBuf};

use rayspin_core::Monitor;
use rayspin_device::cpu::expect_memory;
use rayspin_scan::mri::{Frame, Scan, ScanBuilder};

use crate::array_file::arrays_of;
use crate::arrays::Numbers;
use crate::scan_file::{Beyond, matrix_of_grid, read_arrays};
use crate::{Error, Input, Result, ScanFile, ScanOptions};

/// What [`scan_of_arrays`] adds to arrays.
#[derive(Debug, Clone, Default)]
pub struct RawOptions {
    /// Noise that was measured without a signal: an array `[coil, sample]`, or samples in BART's order.
    pub noise: Option<PathBuf>,
    /// Time between samples in µs.
    pub dwell_us: Option<f64>,
}

/// Makes a scan with a header of k-space on a grid, or of samples with a trajectory: what
/// [`read_scan`](crate::read_scan) reads, understood alike, as ISMRMRD files hold it. Each line or spoke is a
/// readout. [`write_scan`](crate::write_scan) writes the scan.
///
/// The scan has the same image as the arrays. A grid keeps all its samples, whatever
/// [`ScanOptions::matrix`] says: the header states the matrix. Samples along a trajectory beyond the matrix's
/// own k-space are kept too, and left out by the reader.
///
/// Errors: as [`read_scan`](crate::read_scan); a file of a scan or of images; noise of other coils.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Monitor};
/// use rayspin_io::ismrmrd::Identity;
/// use rayspin_io::{RawOptions, ScanOptions, npy, scan_of_arrays, write_scan};
///
/// let folder = tempfile::tempdir()?;
/// let kspace = folder.path().join("kspace.npy");
/// npy::write(&kspace, ArrayD::from_elem(IxDyn(&[2, 5, 6]), C32::new(1.0, 0.0)).view())?;
///
/// let options = ScanOptions { fov_mm: Some(vec![240.0, 200.0]), ..ScanOptions::default() };
/// let raw = RawOptions { dwell_us: Some(5.0), ..RawOptions::default() };
/// let scan = scan_of_arrays(&kspace, &options, &raw, &Monitor::silent())?;
/// assert_eq!((scan.acquisitions.len(), scan.header.coils), (5, Some(2)));
/// assert_eq!(scan.header.encodings[0].recon.fov_mm, [240.0, 200.0, 1.0]);
/// write_scan(folder.path().join("scan.h5"), &scan, Identity::LeaveOut)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn scan_of_arrays(
    path: impl AsRef<Path>,
    options: &ScanOptions,
    raw: &RawOptions,
    monitor: &Monitor<'_>,
) -> Result<Scan> {
    let path = path.as_ref();
    let core = |error| Error::core(&Input::of(path).file, error);
    arrays_of(&Input::of(path), "k-space or samples")?;
    let on_grid = options.trajectory.is_none();
    // A grid stays whole.
    let reading = ScanOptions { matrix: options.matrix.clone().filter(|_| !on_grid), ..options.clone() };
    let mut builder = ScanBuilder::new(raw.dwell_us.unwrap_or(0.0)).map_err(core)?;
    let mut matrix = Vec::new();
    let mut add = |frame: &Frame, readout| {
        matrix.clone_from(&frame.matrix);
        builder.frame(frame, readout).map_err(core)
    };
    let notes = match read_arrays(path, &reading, Beyond::Property)? {
        ScanFile::Scan(_) => return Err(Error::not_this_format(path, "arrays", "a raw scan with a header")),
        ScanFile::Frame(array) => {
            add(&array.frame, array.readout)?;
            array.notes
        }
        ScanFile::Series(series) => {
            let mut notes = series.notes().to_vec();
            let count = series.labels().count() as u64;
            let needed = series.image_bytes().saturating_mul(count);
            expect_memory("readouts of all images", needed).map_err(core)?;
            for label in series.labels() {
                add(&series.frame(label, &mut notes)?, series.readout())?;
                monitor.check().map_err(core)?;
            }
            notes
        }
    };
    if let Some(noise) = &raw.noise {
        let input = Input::of(noise);
        let arrays = arrays_of(&input, "noise samples")?;
        let array = (arrays.read)(&input.file, input.name.as_deref(), Numbers::Complex)?;
        let (samples, _) = (arrays.axes.samples)(&input.file, array, None)?;
        builder.noise(samples.view()).map_err(|error| Error::core(&input.file, error))?;
    }
    let mut scan = builder.finish().map_err(core)?;
    scan.notes = notes;
    if let (Some(wanted), Some(encoding)) = (&options.matrix, scan.header.encodings.first_mut())
        && on_grid
    {
        for (own, size) in
            encoding.recon.matrix.iter_mut().zip(matrix_of_grid(path, &matrix, wanted)?.iter().rev())
        {
            *own = *size;
        }
    }
    Ok(scan)
}
