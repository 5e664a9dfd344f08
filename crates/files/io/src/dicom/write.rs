//! Volumes as a folder of slices, one file each.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use rayspin_core::Geometry;
use rayspin_scan::mri::Label;

use super::modules::{Files, Order};
use super::scale::{Range, Scale};
use crate::atomic::PendingFolder;
use crate::format::{Target, VolumeWriter};
use crate::{Error, Modality, Origin, Result, Slices, Values};

/// Names this writer in its files.
pub(super) const IMPLEMENTATION: &str = "2.25.209443190843158102793465116290480125523";
pub(super) const IMPLEMENTATION_NAME: &str = concat!("RAYSPIN ", env!("CARGO_PKG_VERSION"));
/// The numbers before they are scaled, in the temporary folder.
const VALUES: &str = "values";
/// Volumes that reach down to air in Hounsfield units are taken to be in these.
const AIR_HU: f32 = -500.0;

/// Most files of a folder, whose names have six digits.
const MOST_FILES: usize = 999_999;

/// Starts a folder for the table of formats. Errors: several volumes that are not MRI's, an axis that is too
/// long, a folder that may not be replaced or cannot be written.
pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let path = target.path;
    let origin = &target.options.origin;
    let template = origin.template.as_ref();
    let modality = origin.modality.or_else(|| template.and_then(|template| template.modality()));
    if let Some(repetitions) = target.repetitions().filter(|_| modality != Some(Modality::Mr)) {
        let what = format!("a series of {repetitions} volumes that is no MRI as DICOM");
        return Err(Error::unsupported(path, what)
            .with_hint("write one of them (`--repetition`), or .nii.gz, which keeps all"));
    }
    let shape = target.volume();
    let [nz, ny, nx] = shape;
    let volumes = target.repetitions().unwrap_or(1);
    let files = nz.saturating_mul(volumes);
    let is_long = 2 * ny as u128 * nx as u128 >= u128::from(u32::MAX);
    if files > MOST_FILES || is_long || [ny, nx].iter().any(|&size| size > usize::from(u16::MAX)) {
        let found = format!("{files} of {ny} x {nx}");
        let expected = format!("at most {MOST_FILES} slices of 65535 x 65535, each below 4 GiB");
        return Err(Error::field(path, "image", expected, found));
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
        modality,
        hounsfield: target.options.hounsfield,
        labels: target.options.labels(volumes),
        is_labelled: target.options.volumes.len() == volumes,
        step_s: target.options.repetition_time_s.filter(|_| volumes > 1),
        origin: origin.clone(),
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

/// Volumes in the making. Their numbers wait in a file until their range is known.
struct Volume {
    pending: PendingFolder,
    file: BufWriter<File>,
    values: Values,
    /// Slope and intercept of integers that stand for the numbers.
    stored: Option<(f64, f64)>,
    /// What made the image, where that is known.
    modality: Option<Modality>,
    /// Whether the numbers are Hounsfield units, where that is known.
    hounsfield: Option<bool>,
    /// The volumes.
    labels: Vec<Label>,
    is_labelled: bool,
    /// The time between volumes in s, for which there is no element.
    step_s: Option<f64>,
    origin: Origin,
    /// Of each volume.
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
                self.range.add(value);
                bytes.extend(value.to_le_bytes());
            }
            self.hash.update(&bytes);
            self.file.write_all(&bytes).map_err(|e| Error::write(path, e))?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, path: &Path, volumes: usize) -> Result<Option<String>> {
        let own = *self;
        let Self { pending, file, values, stored, modality, .. } = own;
        let Self {
            hounsfield,
            mut labels,
            is_labelled,
            step_s,
            origin,
            shape,
            geometry,
            range,
            mut hash,
            ..
        } = own;
        file.into_inner().map_err(|e| pending.cause(e.into_error()))?;
        let numbers: PathBuf = pending.path().join(VALUES);
        labels.truncate(volumes);
        let places = geometry.affine_lps(shape);
        places.as_flattened().iter().for_each(|number| {
            hash.update(&number.to_le_bytes());
        });
        shape.iter().for_each(|&size| {
            hash.update(&(size as u64).to_le_bytes());
        });
        let is_mr = modality == Some(Modality::Mr);
        let hounsfield = !is_mr && hounsfield.unwrap_or(range.low() <= AIR_HU);
        // No other image has such units.
        let modality = modality.or(hounsfield.then_some(Modality::Ct));
        hash.update(format!("{modality:?} {hounsfield} {values:?} {labels:?} {origin:?}").as_bytes());
        let scale = match stored {
            // Images of MR store 0 as 0.
            Some((slope, intercept)) if !is_mr || intercept == 0.0 => {
                Scale { slope, intercept, signed: true }
            }
            _ if is_mr => Scale::through_zero(&range),
            _ => Scale::of(&range),
        };
        let order = Order::of(&labels);
        let files = Files {
            shape,
            geometry,
            scale,
            range: range.limits(),
            hash: hash.finalize(),
            modality,
            hounsfield,
            values,
            origin,
            labels,
            is_labelled,
            order,
        };
        let opened = File::open(&numbers).map_err(|e| pending.cause(e))?;
        let mut from = BufReader::with_capacity(1 << 20, opened);
        let [nz, ny, nx] = shape;
        let mut plane = vec![0; 4 * ny * nx];
        for (volume, slice) in (0..volumes).flat_map(|volume| (0..nz).map(move |slice| (volume, slice))) {
            from.read_exact(&mut plane).map_err(|e| pending.cause(e))?;
            let values = plane.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
            let mut file = pending.file(&format!("IM{:06}.dcm", volume * nz + slice + 1))?;
            let written = file.write_all(&files.bytes(volume, slice, values)).and_then(|()| file.sync_all());
            written.map_err(|e| pending.cause(e))?;
        }
        std::fs::remove_file(numbers).map_err(|e| pending.cause(e))?;
        if path.is_dir() {
            expect_own_folder(path)?;
        }
        let replaced = pending.finish_as(path)?;
        let mut notes = Vec::new();
        if files.modality.is_none() {
            let note = "nothing tells what made the image: it is written as Secondary Capture, modality OT \
                        (a DICOM template may tell CT or MR)";
            notes.push(note.to_owned());
        }
        if !is_mr && !hounsfield {
            notes.push("values are stored without a unit, for they are no Hounsfield units".to_owned());
        }
        if files.scale.slope != 1.0 && stored.is_none() {
            notes.push(format!("values are rounded to steps of {:.3e} (16 bits)", files.scale.slope));
        }
        notes.extend(files.notes());
        notes.extend(step_s.map(|step| format!("{step} s from volume to volume is not written")));
        notes.extend(replaced);
        Ok((!notes.is_empty()).then(|| notes.join("; ")))
    }
}
