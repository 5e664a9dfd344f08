//! A volume as a folder of CT slices, one file each (CT Image Storage).

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use rayspin_core::Geometry;

use super::encode::{self, Elements};
use super::tag;
use crate::atomic::PendingFolder;
use crate::format::{Target, VolumeWriter};
use crate::{Error, Result, Slices, Values};

/// CT Image Storage.
const CLASS: &str = "1.2.840.10008.5.1.4.1.1.2";
/// Names this writer in its files.
const IMPLEMENTATION: &str = "2.25.209443190843158102793465116290480125523";
const IMPLEMENTATION_NAME: &str = concat!("RAYSPIN ", env!("CARGO_PKG_VERSION"));
/// The numbers before they are scaled, in the temporary folder.
const VALUES: &str = "values";
/// Volumes that reach down to air in Hounsfield units are taken to be in these.
const AIR_HU: f32 = -500.0;

/// Starts a folder for the table of formats. Errors: a series of volumes, an axis that is too long, a folder
/// that may not be replaced or cannot be written.
pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let path = target.path;
    if let Some(repetitions) = target.repetitions() {
        return Err(Error::unsupported(path, format!("a series of {repetitions} volumes as DICOM"))
            .with_hint("write one of them (`--repetition`), or .nii.gz, which keeps all"));
    }
    let shape = target.volume();
    let [nz, ny, nx] = shape;
    if nz > 999_999 || [ny, nx].iter().any(|&size| size > usize::from(u16::MAX)) {
        let found = format!("{nz} of {ny} x {nx}");
        return Err(Error::field(path, "image", "at most 999999 slices of 65535 x 65535", found));
    }
    if path.is_dir() {
        expect_own_folder(path)?;
    }
    let pending = PendingFolder::create(path)?;
    let file = pending.file(VALUES)?;
    Ok(Box::new(Volume {
        pending,
        file: BufWriter::with_capacity(1 << 20, file),
        values: target.values,
        stored: target.integers.and_then(|integers| integers.scale()),
        hounsfield: target.options.hounsfield,
        shape,
        geometry: *target.geometry,
        range: Range::default(),
        hash: blake3::Hasher::new(),
    }))
}

/// Fails where a folder holds anything but slices that this writer has made.
pub(crate) fn expect_own_folder(path: &Path) -> Result<()> {
    let entries = std::fs::read_dir(path).map_err(|e| Error::open(path, e))?;
    for entry in entries {
        let entry = entry.map_err(|e| Error::read(path, e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let digits = name.strip_prefix("IM").and_then(|name| name.strip_suffix(".dcm"));
        let numbered = digits.is_some_and(|n| n.len() == 6 && n.bytes().all(|byte| byte.is_ascii_digit()));
        if !numbered || !is_own(&entry.path()) {
            return Err(Error::field(path, "output", "a new folder, or one of Rayspin's slices", name)
                .with_hint("give the output another name, or remove the folder"));
        }
    }
    Ok(())
}

fn is_own(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(1024).read_to_end(&mut start));
    read.is_ok() && memchr::memmem::find(&start, IMPLEMENTATION.as_bytes()).is_some()
}

/// The smallest and largest of some numbers, and whether all are whole.
struct Range {
    low: f32,
    high: f32,
    whole: bool,
}

impl Default for Range {
    fn default() -> Self {
        Self { low: f32::INFINITY, high: f32::NEG_INFINITY, whole: true }
    }
}

/// How numbers are stored in 16 bits with a sign: `slope` · stored + `intercept`.
struct Scale {
    slope: f64,
    intercept: f64,
}

impl Scale {
    /// Whole numbers that fit are stored as they are, or moved where the range alone fits. Others are rounded
    /// to the finest step at which the range fits.
    fn of(range: &Range) -> Self {
        let (low, high) = (f64::from(range.low), f64::from(range.high));
        let (least, most) = (f64::from(i16::MIN), f64::from(i16::MAX));
        if range.whole && high - low <= most - least {
            let fits = low >= least && high <= most;
            return Self { slope: 1.0, intercept: if fits { 0.0 } else { low - least } };
        }
        let read_back = |number: f64| encode::decimal(number).parse().unwrap_or(number);
        // Both are rounded to what fits into 16 characters; the margin is more than that.
        let slope = ((high - low) + 1e-8 * low.abs().max(high.abs())) / 65530.0;
        Self { slope: read_back(slope), intercept: read_back(0.5 * (low + high)) }
    }

    fn stored(&self, value: f32) -> i16 {
        ((f64::from(value) - self.intercept) / self.slope).round() as i16
    }
}

/// A volume in the making. Its numbers wait in a file until their range is known.
struct Volume {
    pending: PendingFolder,
    file: BufWriter<File>,
    values: Values,
    /// Slope and intercept of integers that stand for the numbers.
    stored: Option<(f64, f64)>,
    /// Whether the numbers are Hounsfield units, where that is known.
    hounsfield: Option<bool>,
    shape: [usize; 3],
    geometry: Geometry,
    range: Range,
    hash: blake3::Hasher,
}

impl VolumeWriter for Volume {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        let path = self.pending.wanted();
        for plane in slices.planes() {
            let plane = plane.stored(self.values);
            let mut bytes = Vec::with_capacity(4 * plane.len());
            for &value in &plane {
                if !value.is_finite() {
                    return Err(Error::field(path, "values", "finite numbers", value)
                        .with_hint("write .nii.gz or .npy, which keep such values"));
                }
                let Range { low, high, whole } = &mut self.range;
                (*low, *high) = (low.min(value), high.max(value));
                *whole = *whole && value.fract() == 0.0;
                bytes.extend(value.to_le_bytes());
            }
            self.hash.update(&bytes);
            self.file.write_all(&bytes).map_err(|e| Error::write(path, e))?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, path: &Path, _: usize) -> Result<Option<String>> {
        let Self { pending, file, stored, hounsfield, shape, geometry, range, mut hash, .. } = *self;
        file.into_inner().map_err(|e| pending.cause(e.into_error()))?;
        let values: PathBuf = pending.path().join(VALUES);
        let places = geometry.affine_lps(shape);
        places.as_flattened().iter().for_each(|number| {
            hash.update(&number.to_le_bytes());
        });
        shape.iter().for_each(|&size| {
            hash.update(&(size as u64).to_le_bytes());
        });
        let scale = match stored {
            Some((slope, intercept)) => Scale { slope, intercept },
            None => Scale::of(&range),
        };
        let hounsfield = hounsfield.unwrap_or(range.low <= AIR_HU);
        let writer = Slice { shape, geometry, scale, hash: hash.finalize(), hounsfield };
        let mut from = BufReader::with_capacity(1 << 20, File::open(&values).map_err(|e| pending.cause(e))?);
        let [nz, ny, nx] = shape;
        let mut plane = vec![0; 4 * ny * nx];
        for slice in 0..nz {
            from.read_exact(&mut plane).map_err(|e| pending.cause(e))?;
            let mut file = pending.file(&format!("IM{:06}.dcm", slice + 1))?;
            let written = file.write_all(&writer.bytes(slice, &plane)).and_then(|()| file.sync_all());
            written.map_err(|e| pending.cause(e))?;
        }
        std::fs::remove_file(values).map_err(|e| pending.cause(e))?;
        if path.is_dir() {
            expect_own_folder(path)?;
        }
        let replaced = pending.finish_as(path)?;
        let unit =
            (!hounsfield).then_some("values are stored without a unit, for they are no Hounsfield units");
        let step = (writer.scale.slope != 1.0 && stored.is_none())
            .then(|| format!("values are rounded to steps of {:.3e} (16 bits)", writer.scale.slope));
        let notes: Vec<String> = unit.map(str::to_owned).into_iter().chain(step).chain(replaced).collect();
        Ok((!notes.is_empty()).then(|| notes.join("; ")))
    }
}

/// What the slices of a volume share.
struct Slice {
    shape: [usize; 3],
    geometry: Geometry,
    scale: Scale,
    /// Hash of the values and their place: equal volumes have equal UIDs.
    hash: blake3::Hash,
    hounsfield: bool,
}

impl Slice {
    /// A UID that is made of a UUID (PS3.5 B.2), version 8.
    fn uid(&self, what: &str) -> String {
        let hash = blake3::Hasher::new().update(self.hash.as_bytes()).update(what.as_bytes()).finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        format!("2.25.{}", u128::from_be_bytes(bytes))
    }

    /// The file of slice `slice`; `plane` are its numbers as bytes.
    fn bytes(&self, slice: usize, plane: &[u8]) -> Vec<u8> {
        let [_, ny, nx] = self.shape;
        let Geometry { spacing_mm: [sx, sy, sz], read_dir, phase_dir, .. } = self.geometry;
        let affine = self.geometry.affine_lps(self.shape);
        let instance = self.uid(&format!("slice {slice}"));
        let mut set = Elements::new();
        let empty = |set: &mut Elements, tags: &[(tag::Tag, &[u8; 2])]| {
            tags.iter().for_each(|(tag, kind)| set.text(*tag, kind, ""));
        };
        set.text(tag::IMAGE_TYPE, b"CS", "DERIVED\\SECONDARY\\AXIAL");
        set.text(tag::SOP_CLASS, b"UI", CLASS);
        set.text(tag::SOP_INSTANCE, b"UI", &instance);
        empty(&mut set, &[(tag::STUDY_DATE, b"DA"), (tag::STUDY_TIME, b"TM"), (tag::ACCESSION, b"SH")]);
        set.text(tag::MODALITY, b"CS", "CT");
        set.text(tag::MANUFACTURER, b"LO", "Rayspin");
        // What must be there, and is known of no patient.
        empty(&mut set, &[(tag::PHYSICIAN, b"PN"), (tag::PATIENT_NAME, b"PN"), (tag::PATIENT_ID, b"LO")]);
        empty(&mut set, &[(tag::BIRTH_DATE, b"DA"), (tag::SEX, b"CS")]);
        set.decimals(tag::THICKNESS, &[sz]);
        empty(&mut set, &[(tag::KVP, b"DS")]);
        set.decimals(tag::BETWEEN_SLICES, &[sz]);
        set.text(tag::SOFTWARE, b"LO", concat!("Rayspin ", env!("CARGO_PKG_VERSION")));
        empty(&mut set, &[(tag::PATIENT_POSITION, b"CS")]);
        set.text(tag::STUDY, b"UI", &self.uid("study"));
        set.text(tag::SERIES, b"UI", &self.uid("series"));
        empty(&mut set, &[(tag::STUDY_ID, b"SH")]);
        set.text(tag::SERIES_NUMBER, b"IS", "1");
        empty(&mut set, &[(tag::ACQUISITION, b"IS")]);
        set.text(tag::INSTANCE, b"IS", &(slice + 1).to_string());
        set.decimals(tag::POSITION, &affine.map(|row| row[3] + row[2] * slice as f64));
        set.decimals(tag::ORIENTATION, [read_dir, phase_dir].as_flattened());
        set.text(tag::FRAME_OF_REFERENCE, b"UI", &self.uid("frame of reference"));
        empty(&mut set, &[(tag::LATERALITY, b"CS"), (tag::POSITION_REFERENCE, b"LO")]);
        set.short(tag::SAMPLES, 1);
        set.text(tag::PHOTOMETRIC, b"CS", "MONOCHROME2");
        set.short(tag::ROWS, ny as u16);
        set.short(tag::COLUMNS, nx as u16);
        set.decimals(tag::PIXEL_SPACING, &[sy, sx]);
        set.short(tag::BITS_ALLOCATED, 16);
        set.short(tag::BITS_STORED, 16);
        set.short(tag::HIGH_BIT, 15);
        set.short(tag::REPRESENTATION, 1);
        set.decimals(tag::INTERCEPT, &[self.scale.intercept]);
        set.decimals(tag::SLOPE, &[self.scale.slope]);
        set.text(tag::RESCALE_TYPE, b"LO", if self.hounsfield { "HU" } else { "US" });
        let numbers = plane.as_chunks().0.iter().map(|four| self.scale.stored(f32::from_le_bytes(*four)));
        let pixels: Vec<u8> = numbers.flat_map(i16::to_le_bytes).collect();
        set.put(tag::PIXEL_DATA, b"OW", &pixels);
        let head = encode::head(CLASS, &instance, IMPLEMENTATION, IMPLEMENTATION_NAME);
        [head, set.into_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_value_leaves_sixteen_bits(numbers in prop::collection::vec(-1e30f32..1e30, 1..20), exponent in -70..0) {
            let numbers: Vec<f32> = numbers.iter().map(|v| v * 10f32.powi(exponent) + 3.0).collect();
            let low = numbers.iter().copied().fold(f32::INFINITY, f32::min);
            let high = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let whole = numbers.iter().all(|v| v.fract() == 0.0);
            let scale = Scale::of(&Range { low, high, whole });
            for number in numbers {
                let back = scale.slope * f64::from(scale.stored(number)) + scale.intercept;
                let off = (back - f64::from(number)).abs();
                let allowed = (f64::from(high) - f64::from(low)) / 130_000.0 + 1e-8 * f64::from(number.abs());
                prop_assert!(off <= allowed * 1.01, "{number} {back} {} {}", scale.slope, scale.intercept);
            }
        }

        #[test]
        fn decimals_fit_and_are_near(mantissa in -10f64..10.0, exponent in -300..300) {
            let number = mantissa * 10f64.powi(exponent);
            let text = encode::decimal(number);
            prop_assert!(text.len() <= 16, "{text}");
            let found: f64 = text.parse().unwrap();
            prop_assert!((found - number).abs() <= 1e-8 * number.abs(), "{text} {number}");
        }
    }

    #[test]
    fn whole_numbers_are_stored_as_they_are() {
        for (low, high, slope, intercept) in [
            (-1024.0, 3071.0, 1.0, 0.0),
            (-32768.0, 32767.0, 1.0, 0.0),
            (0.0, 65535.0, 1.0, 32768.0),
            (40000.0, 40000.0, 1.0, 72768.0),
        ] {
            let scale = Scale::of(&Range { low, high, whole: true });
            assert_eq!((scale.slope, scale.intercept), (slope, intercept));
            for value in [low, high] {
                assert_eq!(f64::from(scale.stored(value)) + scale.intercept, f64::from(value));
            }
        }
    }
}
