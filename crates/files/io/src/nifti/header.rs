//! The 348-byte header, and the four bytes after it that say there are no extensions.

use std::io::Read;
use std::path::Path;

use nifti::{Endianness, NiftiHeader, NiftiType};
use rayspin_core::Geometry;

use super::{NiftiOptions, affine};
use crate::element::{self, ByteOrder, Element};
use crate::{Error, NumberType, Result, Values};

pub(super) const SIZE: usize = 348;
/// Where values start in the files written: header and extension flag.
const OFFSET: usize = 352;
/// NIfTI-1 axes are 16-bit signed.
const LONGEST_AXIS: usize = i16::MAX as usize;

pub(super) struct Header {
    pub(super) raw: NiftiHeader,
    pub(super) element: Element,
    pub(super) order: ByteOrder,
    /// Byte at which the values start.
    pub(super) offset: u64,
    pub(super) notes: Vec<String>,
    pub(super) scale: Option<(f64, f64)>,
    /// x, y, z, t.
    sizes: Vec<usize>,
}

impl Header {
    /// `[y, x]`, `[z, y, x]` or `[t, z, y, x]`.
    pub(super) fn shape(&self) -> Vec<usize> {
        let mut shape = self.sizes.clone();
        shape.resize(shape.len().max(3), 1);
        shape.reverse();
        shape
    }

    /// The time between the images of a series in s, where it is stated with its unit.
    pub(super) fn step_s(&self) -> Option<f64> {
        // Codes of the standard: 8 is s, 16 is ms, 24 is µs.
        let per_second = match self.raw.xyzt_units & 0o70 {
            8 => 1.0,
            16 => 1e3,
            24 => 1e6,
            _ => return None,
        };
        // The shortest decimal of a number of single precision is what the writer meant.
        let step: f64 = self.raw.pixdim[4].to_string().parse().ok()?;
        let step = step / per_second;
        (self.sizes.len() > 3 && step.is_finite() && step > 0.0).then_some(step)
    }
}

pub(super) fn read(path: &Path, stream: &mut dyn Read) -> Result<Header> {
    let mut bytes = [0u8; SIZE];
    let got = element::fill(stream, &mut bytes).map_err(|e| super::stream_error(path, e))?;
    let first = <[u8; 4]>::try_from(&bytes[..4]).unwrap_or_default();
    if got >= 4 && [i32::from_le_bytes(first), i32::from_be_bytes(first)].contains(&540) {
        return Err(Error::unsupported(path, "NIfTI-2").with_hint("convert it to NIfTI-1"));
    }
    if got < SIZE {
        return Err(if got > 4 && i32::from_le_bytes(first) == SIZE as i32 {
            Error::truncated(path, "the header", format!("{SIZE} bytes"), format!("{got} bytes"))
        } else {
            Error::not_this_format(path, "a NIfTI-1 header of 348 bytes", format!("{got} bytes"))
        });
    }
    let raw = NiftiHeader::from_reader(&bytes[..])
        .map_err(|_| Error::not_this_format(path, "a NIfTI-1 header", "another signature"))?;
    if raw.sizeof_hdr != SIZE as i32 {
        return Err(Error::not_this_format(path, "a NIfTI-1 header of 348 bytes", raw.sizeof_hdr));
    }
    if &raw.magic == nifti::header::MAGIC_CODE_NI1 {
        return Err(Error::unsupported(path, "a NIfTI header with its values in an .img file")
            .with_hint("convert it to a single .nii file"));
    }
    let order = match raw.endianness {
        Endianness::Little => ByteOrder::Little,
        Endianness::Big => ByteOrder::Big,
    };
    let mut notes = Vec::new();
    let offset = offset(path, &raw, &mut notes)?;
    let element = element_of(path, &raw)?;
    let bits = 8 * element.size();
    if usize::try_from(raw.bitpix) != Ok(bits) {
        let (stated, datatype) = (raw.bitpix, raw.datatype);
        notes.push(format!(
            "bitpix is {stated}, and datatype {datatype} has {bits} bits a voxel: the datatype is believed"
        ));
    }
    Ok(Header { element, sizes: sizes(path, &raw)?, scale: scale(path, &raw)?, order, offset, notes, raw })
}

fn offset(path: &Path, raw: &NiftiHeader, notes: &mut Vec<String>) -> Result<u64> {
    let offset = raw.vox_offset;
    if offset == 0.0 {
        notes.push("vox_offset is 0: values are read from byte 352".into());
        return Ok(OFFSET as u64);
    }
    // Extensions take at most a few megabytes.
    if !(OFFSET as f32..=1e9).contains(&offset) || offset.fract() != 0.0 {
        return Err(Error::field(path, "vox_offset", "a whole number from 352 to 1e9", offset));
    }
    Ok(offset as u64)
}

fn element_of(path: &Path, raw: &NiftiHeader) -> Result<Element> {
    let kind =
        raw.data_type().map_err(|_| Error::field(path, "datatype", "a NIfTI data type", raw.datatype))?;
    Ok(match kind {
        NiftiType::Uint8 => Element::U8,
        NiftiType::Int8 => Element::I8,
        NiftiType::Uint16 => Element::U16,
        NiftiType::Int16 => Element::I16,
        NiftiType::Uint32 => Element::U32,
        NiftiType::Int32 => Element::I32,
        NiftiType::Uint64 => Element::U64,
        NiftiType::Int64 => Element::I64,
        NiftiType::Float32 => Element::F32,
        NiftiType::Float64 => Element::F64,
        NiftiType::Complex64 => Element::C32,
        NiftiType::Complex128 => Element::C64,
        other => {
            return Err(Error::unsupported(path, format!("NIfTI data type {other:?}"))
                .with_hint("convert it to float32 or complex64"));
        }
    })
}

fn code_of(path: &Path, element: Element) -> Result<NiftiType> {
    Ok(match element {
        Element::U8 => NiftiType::Uint8,
        Element::I8 => NiftiType::Int8,
        Element::U16 => NiftiType::Uint16,
        Element::I16 => NiftiType::Int16,
        Element::U32 => NiftiType::Uint32,
        Element::I32 => NiftiType::Int32,
        Element::U64 => NiftiType::Uint64,
        Element::I64 => NiftiType::Int64,
        Element::F32 => NiftiType::Float32,
        Element::F64 => NiftiType::Float64,
        Element::C32 => NiftiType::Complex64,
        Element::C64 => NiftiType::Complex128,
        Element::Bool | Element::F16 => {
            return Err(Error::unsupported(path, format!("{} numbers in NIfTI", element.name())));
        }
    })
}

fn sizes(path: &Path, raw: &NiftiHeader) -> Result<Vec<usize>> {
    let dims = raw
        .dim()
        .map_err(|_| Error::field(path, "dim", "1 to 7 positive sizes", format!("{:?}", raw.dim)))?;
    let mut sizes: Vec<usize> = dims.iter().copied().map(usize::from).collect();
    if let Some(size) = sizes.iter().find(|&&size| size > LONGEST_AXIS) {
        return Err(Error::field(path, "dim", format!("sizes from 1 to {LONGEST_AXIS}"), size));
    }
    while sizes.len() > 3 && sizes.last() == Some(&1) {
        sizes.pop();
    }
    if sizes.len() > 4 {
        return Err(Error::unsupported(path, format!("an image of {} axes ({sizes:?})", sizes.len()))
            .with_hint("split it along the axes after the fourth"));
    }
    Ok(sizes)
}

/// Slope and intercept, absent when the header sets none: a slope of 0, or, as other readers have it, one
/// that is not finite.
fn scale(path: &Path, raw: &NiftiHeader) -> Result<Option<(f64, f64)>> {
    let (slope, intercept) = (f64::from(raw.scl_slope), f64::from(raw.scl_inter));
    if slope == 0.0 || !slope.is_finite() || (slope, intercept) == (1.0, 0.0) {
        return Ok(None);
    }
    if !intercept.is_finite() {
        return Err(Error::field(path, "scl_inter", "a finite number", intercept));
    }
    Ok(Some((slope, intercept)))
}

/// Header and extension flag for `repetitions` images `[z, y, x]`, in four axes where they are a series.
pub(super) fn bytes(
    path: &Path,
    [nz, ny, nx]: [usize; 3],
    repetitions: Option<usize>,
    geometry: &Geometry,
    options: &NiftiOptions,
    integers: Option<NumberType>,
) -> Result<Vec<u8>> {
    let sizes = [nx, ny, nz, repetitions.unwrap_or(1)];
    let mut dim = [1i16; 8];
    dim[0] = if repetitions.is_some() { 4 } else { 3 };
    for (to, &size) in dim[1..].iter_mut().zip(&sizes) {
        *to = i16::try_from(size)
            .map_err(|_| Error::field(path, "dim", format!("axes of at most {LONGEST_AXIS}"), size))?;
    }
    let usual = if options.values == Values::Complex { Element::C32 } else { Element::F32 };
    let NumberType { element, scale, .. } = integers.unwrap_or(usual.into());
    let (datatype, bits) = (code_of(path, element)?, 8 * element.size() as i16);
    let (slope, intercept) = scale.unwrap_or((1.0, 0.0));
    let affine = geometry.affine_ras([nz, ny, nx]);
    let (quaternion, qfac) = affine::quaternion(affine, geometry.spacing_mm);
    let mut pixdim = [1f32; 8];
    pixdim[0] = qfac;
    for (to, spacing) in pixdim[1..].iter_mut().zip(geometry.spacing_mm) {
        *to = spacing as f32;
    }
    // Codes of the standard: mm is 2, s is 8; a time step of 1 in no unit says that none is known.
    let mut units = 2u8;
    if let Some(seconds) = options.repetition_time_s {
        pixdim[4] = seconds as f32;
        units |= 8;
    }

    let mut out = Bytes(vec![0; OFFSET]);
    out.put(0, &(SIZE as i32).to_le_bytes());
    out.put(38, b"r");
    out.all(40, dim.map(i16::to_le_bytes));
    out.put(70, &(datatype as i16).to_le_bytes());
    out.put(72, &bits.to_le_bytes());
    out.all(76, pixdim.map(f32::to_le_bytes));
    out.put(108, &(OFFSET as f32).to_le_bytes());
    out.put(112, &(slope as f32).to_le_bytes());
    out.put(116, &(intercept as f32).to_le_bytes());
    out.put(123, &[units]);
    out.put(148, concat!("Rayspin ", env!("CARGO_PKG_VERSION")).as_bytes());
    // Both forms hold scanner coordinates (code 1).
    out.put(252, &1i16.to_le_bytes());
    out.put(254, &1i16.to_le_bytes());
    out.all(256, quaternion.map(|q| (q as f32).to_le_bytes()));
    out.all(268, affine.map(|row| (row[3] as f32).to_le_bytes()));
    for (row, values) in affine.iter().enumerate() {
        out.all(280 + 16 * row, values.map(|v| (v as f32).to_le_bytes()));
    }
    out.put(344, nifti::header::MAGIC_CODE_NIP1);
    Ok(out.0)
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn all<const N: usize, const M: usize>(&mut self, offset: usize, values: [[u8; N]; M]) {
        self.put(offset, values.as_flattened());
    }
}
