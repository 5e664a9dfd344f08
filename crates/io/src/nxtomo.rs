//! CT scans in NeXus files (HDF5) by the application definition NXtomo: one dataset of projections, flat and dark fields, told apart by
//! `image_key` (0 projection, 1 flat field, 2 dark field, 3 invalid).
//!
//! | what | where, below the entry | shape |
//! |---|---|---|
//! | images | `instrument/detector/data` or `data/data` | `[image, row, column]` |
//! | kinds | `instrument/detector/image_key` | `[image]` |
//! | angles | `sample/rotation_angle` or `data/rotation_angle`, degrees unless its `units` say radian | `[image]` |
//! | size of a pixel | `instrument/detector/x_pixel_size`, `y_pixel_size` | |
//!
//! The rays are parallel: the definition has no place for a source at a finite distance.
//!
//! M. Könnecke et al., *The NeXus data format*, J Appl Cryst 48:301, 2015; manual.nexusformat.org, NXtomo.

use std::ops::Range;
use std::path::Path;

use hdf5::{Dataset, Group};
use ndarray::{Array1, Array3, Ix1};
use rayspin_device::Cpu;

use crate::data_exchange::{Stored, attribute, numbers, values};
use crate::hdf5_file::{lossy, open, reading};
use crate::projections::{Header, Projections, Source};
use crate::{Error, Result};

/// Groups below the root in which an entry is sought: the entry itself, or a subentry.
const DEPTH: usize = 2;

/// The entry: a group that says it is an NXtomo, or one with images and their kinds.
fn entry(group: &Group, depth: usize) -> Option<Group> {
    if depth > DEPTH {
        return None;
    }
    let says = group.dataset("definition").is_ok_and(|definition| {
        text(&definition).is_some_and(|text| text.trim().eq_ignore_ascii_case("NXtomo"))
    });
    if says || detector(group).is_some_and(|detector| detector.link_exists("image_key")) {
        return Some(group.clone());
    }
    group.groups().ok()?.iter().find_map(|inner| entry(inner, depth + 1))
}

fn text(data: &Dataset) -> Option<String> {
    use hdf5::types::{FixedAscii, VarLenAscii, VarLenUnicode};
    let first = |texts: Vec<String>| texts.into_iter().next();
    let unicode =
        data.read_raw::<VarLenUnicode>().map(|all| all.iter().map(|t| lossy(t.as_bytes())).collect());
    let ascii =
        || data.read_raw::<VarLenAscii>().map(|all| all.iter().map(|t| lossy(t.as_bytes())).collect());
    let fixed =
        || data.read_raw::<FixedAscii<64>>().map(|all| all.iter().map(|t| lossy(t.as_bytes())).collect());
    first(unicode.or_else(|_| ascii()).or_else(|_| fixed()).ok()?)
}

fn detector(entry: &Group) -> Option<Group> {
    let instrument = entry.group("instrument").ok()?;
    instrument.group("detector").ok().or_else(|| {
        let groups = instrument.groups().ok()?;
        groups.into_iter().find(|group| group.link_exists("image_key"))
    })
}

/// Whether a file holds such a scan. Files that cannot be read hold none.
pub(crate) fn holds(path: &Path) -> bool {
    open(path, "HDF5").is_ok_and(|file| entry(&file, 0).is_some())
}

/// Opens a scan for the table of formats.
pub(crate) fn projections(path: &Path, _: Option<&str>) -> Result<Projections> {
    let file = open(path, "a NeXus file (HDF5)")?;
    let Some(entry) = entry(&file, 0) else {
        return Err(Error::not_this_format(path, "a NeXus file with an NXtomo entry", "another HDF5 file"));
    };
    let none = || Error::field(path, "instrument/detector", "a detector with images", "nothing");
    let detector = detector(&entry).ok_or_else(none)?;
    let data = first(&[(&detector, "data"), (&entry, "data/data")]).ok_or_else(none)?;
    let shape = <[usize; 3]>::try_from(data.shape()).map_err(|shape| {
        Error::field(path, "detector/data", "images [image, row, column]", format!("shape {shape:?}"))
    })?;
    let [images, rows, columns] = shape;
    let fail = |e: hdf5::Error| reading(path, "image_key", &e);
    let keys: Array1<f64> = match detector.link_exists("image_key") {
        true => numbers::<f64, Ix1>(path, &detector.dataset("image_key").map_err(fail)?, "image_key")?,
        false => Array1::zeros(images),
    };
    let name = "sample/rotation_angle";
    let angles = first(&[(&entry, name), (&entry, "data/rotation_angle"), (&detector, "rotation_angle")])
        .ok_or_else(|| Error::field(path, name, "the angle of each image", "nothing"))?;
    let radian =
        attribute(&angles, "units").is_some_and(|units| units.trim().to_lowercase().starts_with("rad"));
    let all = numbers::<f64, Ix1>(path, &angles, name)?;
    for (what, found) in [("image_key", keys.len()), (name, all.len())] {
        if found != images {
            return Err(Error::field(path, what, format!("one for each of {images} images"), found));
        }
    }
    let mut images: [Vec<usize>; 3] = Default::default();
    for (at, &key) in keys.iter().enumerate() {
        match key as i64 {
            kind @ 0..=2 if key.fract() == 0.0 => images[kind as usize].push(at),
            3 => {}
            _ => return Err(Error::field(path, "image_key", "0, 1, 2 or 3", key)),
        }
    }
    let [views, flats, darks] = images;
    let cpu = rayspin_device::Device::cpu().map_err(|e| Error::core(path, e))?;
    let frames = |kept: &[usize]| -> Result<Array3<f32>> {
        let values = chosen(&Stored { path: path.into(), data: data.clone() }, kept, cpu.cpu_side())?;
        Array3::from_shape_vec((kept.len(), rows, columns), values)
            .map_err(|e| Error::field(path, "detector/data", "whole images", e))
    };
    let angle = |at: &usize| if radian { all[*at] } else { all[*at].to_radians() };
    let (flats, darks) = (frames(&flats)?, frames(&darks)?);
    let mut notes = Vec::new();
    if flats.is_empty() {
        notes.push("the file holds no flat field: --flat says what it is".into());
    }
    let invalid = keys.iter().filter(|&&key| key == 3.0).count();
    if invalid > 0 {
        notes.push(format!("{invalid} images that the file calls invalid are left out"));
    }
    let header = Header {
        shape: [views.len(), rows, columns],
        frames: Some([flats, darks]),
        angles: views.iter().map(angle).collect(),
        geometry: None,
        notes,
    };
    let source = Kept { stored: Stored { path: path.into(), data }, views };
    Projections::new(path, "NeXus NXtomo", Box::new(source), header)
}

/// The first of several places that holds a dataset.
fn first(places: &[(&Group, &str)]) -> Option<Dataset> {
    places.iter().find_map(|(group, name)| group.dataset(name).ok())
}

/// Images of a dataset, which need not follow one another.
struct Kept {
    stored: Stored,
    views: Vec<usize>,
}

impl Source for Kept {
    fn read(&mut self, views: Range<usize>, cpu: &Cpu) -> Result<Vec<f32>> {
        chosen(&self.stored, &self.views[views], cpu)
    }
}

/// Images that follow one another are read together.
fn chosen(stored: &Stored, images: &[usize], cpu: &Cpu) -> Result<Vec<f32>> {
    let mut all = Vec::new();
    for run in images.chunk_by(|a, b| a + 1 == *b) {
        let part = values(&stored.path, &stored.data, run[0]..run[0] + run.len(), cpu)?;
        if all.is_empty() { all = part } else { all.extend(part) }
    }
    Ok(all)
}
