//! An open scan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hdf5::Dataset;
use ndarray::{ArcArray2, Array3, s};
use rayspin_core::{C32, Monitor, all_finite};
use rayspin_device::cpu::expect_memory;
use rayspin_scan::mri::{
    Acquisition, AcquisitionHead, Counters, EncodedSpace, Encoding, Flags, Label, Limits, Scan, ScanHeader,
    SlicePlace, SlicePlaces, TrajectoryKind,
};

use super::IMAGES;
use crate::hdf5_file::arrays::complex_slab;
use crate::hdf5_file::{dataset, expect_within, open, value};
use crate::ismrmrd::{Contents, parse_header};
use crate::scan_reader::ScanReader;
use crate::{Error, Result};

/// The data set of the samples.
pub(super) const KSPACE: &str = "kspace";
const HEADER: &str = "ismrmrd_header";
const MASK: &str = "mask";

/// A scan whose header is read, and which columns were measured.
pub(super) struct Reader {
    path: PathBuf,
    header: ScanHeader,
    data: Dataset,
    slices: usize,
    coils: usize,
    rows: usize,
    columns: usize,
    /// The columns that were measured, and the number of the line of each.
    lines: Vec<(usize, u16)>,
    /// The factor of all samples.
    factor: f32,
    notes: Vec<String>,
}

/// The header, where the file has one.
fn header_of(path: &Path, file: &hdf5::File, notes: &mut Vec<String>) -> Result<Option<ScanHeader>> {
    if !file.link_exists(HEADER) {
        return Ok(None);
    }
    let held = dataset(path, file, HEADER)?;
    let text = value(path, &held, HEADER)?.and_then(crate::hdf5_file::Value::text);
    let Some(text) = text else {
        return Err(Error::field(path, HEADER, "the XML header of ISMRMRD", "another value"));
    };
    let (mut header, of_header) = parse_header(path, text.as_bytes())?;
    header.xml = Some(text);
    notes.extend(of_header);
    Ok(Some(header))
}

/// Rows and columns of an image of the authors, where the file has one.
fn image_of(path: &Path, file: &hdf5::File) -> Result<Option<[usize; 2]>> {
    let Some(name) = IMAGES.into_iter().find(|name| file.link_exists(name)) else { return Ok(None) };
    match crate::hdf5_file::opened(path, file, name)?.shape()[..] {
        [_, rows, columns] => Ok(Some([rows, columns])),
        _ => Ok(None),
    }
}

/// The size of a voxel of an image of `[row, column]`, mm.
pub(super) fn voxel_mm(path: &Path, [rows, columns]: [usize; 2]) -> Result<[f64; 3]> {
    let file = open(path, "a file of fastMRI (HDF5)")?;
    let header = header_of(path, &file, &mut Vec::new())?;
    let recon = header.and_then(|header| header.encodings.first().map(|encoding| encoding.recon));
    Ok(recon.map_or([1.0; 3], |recon| {
        [recon.fov_mm[0] / rows.max(1) as f64, recon.fov_mm[1] / columns.max(1) as f64, recon.fov_mm[2]]
    }))
}

impl Reader {
    /// Errors: a damaged file; another shape; a mask or a header that does not fit.
    pub(super) fn open(path: &Path, monitor: &Monitor<'_>) -> Result<Self> {
        let file = open(path, "a file of fastMRI (HDF5)")?;
        let data = dataset(path, &file, KSPACE)?;
        let shape = data.shape();
        let (slices, coils, rows, columns) = match shape[..] {
            [slices, coils, rows, columns] => (slices, coils, rows, columns),
            [slices, rows, columns] => (slices, 1, rows, columns),
            _ => (0, 0, 0, 0),
        };
        let most = usize::from(u16::MAX);
        if [slices, coils, rows, columns].iter().any(|&size| size == 0 || size > most) {
            let expected = format!("slice, coil, row, column or slice, row, column, each 1 to {most}");
            return Err(Error::field(path, "axes of kspace", expected, format!("{shape:?}")));
        }
        let bytes = data.dtype().map_or(8, |kind| kind.size());
        expect_within(path, &data, KSPACE, bytes)?;
        let mut notes = Vec::new();
        let stated = header_of(path, &file, &mut notes)?;
        let image = image_of(path, &file)?;
        let header = fitted(stated, image, [rows, columns], &mut notes);
        let factor = factor(&header, [rows, columns]);
        notes.push(format!("samples are multiplied by {factor:.4e}, so that images have fastMRI's scale"));
        let mut reader = Self {
            path: path.to_owned(),
            header,
            data,
            slices,
            coils,
            rows,
            columns,
            lines: Vec::new(),
            factor,
            notes,
        };
        reader.lines = reader.measured(&file, monitor)?;
        Ok(reader)
    }

    fn encoding(&self) -> Option<&Encoding> {
        self.header.encodings.first()
    }

    /// The columns that the mask and the header call measured; without a mask, those that are not zero.
    fn measured(&mut self, file: &hdf5::File, monitor: &Monitor<'_>) -> Result<Vec<(usize, u16)>> {
        let limits = self.encoding().and_then(|encoding| encoding.step_1);
        let limits =
            limits.unwrap_or(Limits { minimum: 0, maximum: self.columns - 1, centre: self.columns / 2 });
        // The centre of k-space is in the middle of the columns.
        let line = |column: usize| (column + limits.centre).checked_sub(self.columns / 2);
        let mut lines: Vec<(usize, u16)> = (0..self.columns)
            .filter_map(|column| {
                let line = line(column).filter(|line| (limits.minimum..=limits.maximum).contains(line))?;
                Some((column, u16::try_from(line).ok()?))
            })
            .collect();
        let padded = self.columns - lines.len();
        if file.link_exists(MASK) {
            let mask = crate::hdf5_file::arrays::flags(&self.path, &dataset(&self.path, file, MASK)?, MASK)?;
            if mask.len() != self.columns {
                let expected = format!("{} values, one for each column of kspace", self.columns);
                return Err(Error::field(&self.path, MASK, expected, mask.len()));
            }
            lines.retain(|(column, _)| mask[*column]);
        } else {
            let slice = self.slice(self.slices / 2, monitor)?;
            let is_measured = |column: usize| slice.slice(s![.., .., column]).iter().any(|v| *v != C32::ZERO);
            lines.retain(|(column, _)| is_measured(*column));
        }
        if padded > 0 {
            self.notes.push(format!("{padded} columns lie beyond the lines of the header, and are left out"));
        }
        if lines.is_empty() {
            return Err(Error::field(&self.path, KSPACE, "columns that were measured", "none"));
        }
        Ok(lines)
    }

    /// K-space `[coil, row, column]` of a slice.
    fn slice(&self, slice: usize, monitor: &Monitor<'_>) -> Result<Array3<C32>> {
        monitor.check().map_err(|e| Error::core(&self.path, e))?;
        let slab = complex_slab(&self.path, &self.data, KSPACE, slice)?;
        slab.into_shape_with_order((self.coils, self.rows, self.columns))
            .map_err(|e| Error::field(&self.path, KSPACE, "a slice of coils, rows and columns", e))
    }

    fn count(&self) -> usize {
        self.slices * self.lines.len()
    }

    fn counters(&self, number: usize) -> Counters {
        let (slice, line) = (number / self.lines.len(), number % self.lines.len());
        Counters { step_1: self.lines[line].1, slice: slice as u16, ..Counters::default() }
    }

    fn resident(&self) -> u64 {
        (self.coils * self.rows * size_of::<C32>() + size_of::<Acquisition>()) as u64
    }

    fn acquisition(&self, number: usize, data: ArcArray2<C32>) -> Acquisition {
        Acquisition {
            flags: Flags::default(),
            counters: self.counters(number),
            encoding: 0,
            centre_sample: self.rows / 2,
            discard_pre: 0,
            discard_post: 0,
            sample_time_us: 0.0,
            time_stamp: 0,
            position: [0.0; 3],
            read_dir: [0.0; 3],
            phase_dir: [0.0; 3],
            slice_dir: [0.0; 3],
            data,
            trajectory: None,
        }
    }

    fn label(&self, slice: usize) -> Label {
        Label::of(0, &Counters { slice: slice as u16, ..Counters::default() })
    }
}

/// What makes images of fastMRI's scale: its Fourier transform is orthonormal over all samples, while
/// Rayspin's images are signal per field of view of the voxels that are kept.
fn factor(header: &ScanHeader, [rows, columns]: [usize; 2]) -> f32 {
    let samples = (rows * columns) as f64;
    let kept =
        header.encodings.first().map_or(samples, |one| (one.recon.matrix[0] * one.recon.matrix[1]) as f64);
    (samples.sqrt() / kept.max(1.0)) as f32
}

/// The header with the matrix of the samples, and of the authors' image.
fn fitted(
    stated: Option<ScanHeader>,
    image: Option<[usize; 2]>,
    [rows, columns]: [usize; 2],
    notes: &mut Vec<String>,
) -> ScanHeader {
    let mut header = stated.unwrap_or_else(|| {
        notes.push("the file has no header: 1 mm for each sample is assumed, at the isocentre".into());
        let space = EncodedSpace { matrix: [rows, columns, 1], fov_mm: [rows as f64, columns as f64, 1.0] };
        let encoding = Encoding {
            encoded: space,
            recon: space,
            trajectory: TrajectoryKind::Cartesian,
            step_1: None,
            step_2: None,
            slice: None,
            repetition: None,
            acceleration: None,
            ramps: None,
            places: None,
        };
        ScanHeader { encodings: vec![encoding], ..ScanHeader::default() }
    });
    header.encodings.truncate(1);
    for encoding in &mut header.encodings {
        let before = *encoding.encoded.matrix.first_chunk::<2>().unwrap_or(&[rows, columns]);
        let voxel: [f64; 2] =
            std::array::from_fn(|axis| encoding.encoded.fov_mm[axis] / [rows, columns][axis] as f64);
        encoding.encoded.matrix = [rows, columns, 1];
        if before != [rows, columns] {
            notes.push(format!("kspace has {rows} rows and {columns} columns, the header {before:?}"));
            header.xml = None;
        }
        let Some(image) = image else { continue };
        if encoding.recon.matrix[..2] != image {
            header.xml = None;
            encoding.recon.matrix[..2].copy_from_slice(&image);
            for axis in 0..2 {
                encoding.recon.fov_mm[axis] = voxel[axis] * image[axis] as f64;
            }
            notes.push(format!(
                "the image has {} rows and {} columns, as the authors' image",
                image[0], image[1]
            ));
        }
        encoding.recon.matrix[2] = 1;
    }
    header
}

impl ScanReader for Reader {
    fn path(&self) -> &Path {
        &self.path
    }

    fn header(&self) -> &ScanHeader {
        &self.header
    }

    fn contents(&self) -> Contents {
        let bytes = self.resident().saturating_mul(self.lines.len() as u64);
        let images: BTreeMap<Label, u64> = (0..self.slices).map(|slice| (self.label(slice), bytes)).collect();
        Contents {
            header: self.header.clone(),
            acquisitions: self.count(),
            memory_bytes: bytes.saturating_mul(self.slices as u64).saturating_add(self.memory_bytes()),
            library_bytes: 0,
            images,
        }
    }

    fn heads(&self) -> Vec<AcquisitionHead> {
        let head = |number| AcquisitionHead {
            flags: Flags::default(),
            counters: self.counters(number),
            encoding: 0,
            time_stamp: 0,
            trajectory: false,
            samples: self.rows,
            centre_sample: self.rows / 2,
            bytes: self.resident(),
        };
        (0..self.count()).map(head).collect()
    }

    fn slice_places(&self) -> SlicePlaces {
        let mut places = SlicePlaces::default();
        (0..self.slices).for_each(|slice| places.add(&self.label(slice), SlicePlace::default()));
        places
    }

    fn memory_bytes(&self) -> u64 {
        // As the file has a slice, and as complex numbers.
        (self.coils as u64 * self.rows as u64).saturating_mul(self.columns as u64).saturating_mul(16)
    }

    fn read(
        &mut self,
        wanted: &mut dyn Iterator<Item = usize>,
        monitor: &Monitor<'_>,
        take: &mut dyn FnMut(usize, Acquisition),
    ) -> Result<()> {
        let mut held: Option<(usize, Array3<C32>)> = None;
        let count = self.count();
        for number in wanted.filter(|number| *number < count) {
            let (slice, line) = (number / self.lines.len(), number % self.lines.len());
            let block = match held.take_if(|(own, _)| *own == slice) {
                Some((_, block)) => block,
                None => {
                    let block = self.slice(slice, monitor)?;
                    if !all_finite(bytemuck::cast_slice(block.as_slice().unwrap_or_default())) {
                        let field = format!("{KSPACE}, slice {slice}");
                        return Err(Error::field(&self.path, field, "finite numbers", "another"));
                    }
                    block
                }
            };
            let column = self.lines[line].0;
            let data = block.slice(s![.., .., column]).mapv(|value| value * self.factor).into_shared();
            take(number, self.acquisition(number, data));
            held = Some((slice, block));
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn without_samples(&self) -> Option<Scan> {
        let zeros = ArcArray2::<C32>::zeros((self.coils, self.rows));
        let acquisitions = (0..self.count()).map(|number| self.acquisition(number, zeros.clone())).collect();
        Some(Scan { header: self.header.clone(), acquisitions, notes: self.notes.clone() })
    }

    fn into_scan(mut self: Box<Self>, monitor: &Monitor<'_>) -> Result<Scan> {
        expect_memory("readouts", self.contents().memory_bytes).map_err(|e| Error::core(&self.path, e))?;
        let mut acquisitions = Vec::with_capacity(self.count());
        let count = self.count();
        self.read(&mut (0..count), monitor, &mut |_, acquisition| acquisitions.push(acquisition))?;
        Ok(Scan { header: self.header, acquisitions, notes: self.notes })
    }
}
