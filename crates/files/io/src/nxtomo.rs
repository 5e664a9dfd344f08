//! CT scans in NeXus files (HDF5) by the application definition NXtomo: one dataset of projections, flat and
//! dark fields, told apart by `image_key` (0 projection, 1 flat field, 2 dark field, 3 invalid).
//!
//! | what | where, below the entry | shape |
//! |---|---|---|
//! | images | `instrument/detector/data` or `data/data` | `[image, row, column]` |
//! | kinds | `instrument/detector/image_key`; `image_key_control` −1: an image to check the alignment by | `[image]` |
//! | angles | `sample/rotation_angle` or `data/rotation_angle`, degrees unless its `units` say otherwise | `[image]` |
//! | size of a pixel at the object | `sample/x_pixel_size`, `y_pixel_size` | |
//! | size of a pixel on the detector | `instrument/detector/x_pixel_size`, `y_pixel_size` | |
//!
//! The rays are parallel: the definition has no place for a source at a finite distance.
//!
//! M. Könnecke et al., *The NeXus data format*, J Appl Cryst 48:301, 2015; manual.nexusformat.org, NXtomo.

use std::ops::Range;
use std::path::Path;

use hdf5::{Dataset, Group};
use ndarray::{Array1, Array3};
use rayspin_device::Cpu;
use rayspin_scan::ct::PixelSize;

use crate::data_exchange::{Stored, pixel_sizes};
use crate::hdf5_file::{Value, angle, attribute, dataset, leads_nowhere, list, open, value};
use crate::opening::choose;
use crate::projections::{Header, Places, Projections, Source};
use crate::{Error, Result};

/// Groups below the root in which an entry is sought: the entry itself, or a subentry.
const DEPTH: usize = 2;
const DATA: &str = "detector/data";
const KEYS: &str = "image_key";
const CONTROL: &str = "image_key_control";
const ANGLES: &str = "sample/rotation_angle";
/// The kind of an image by which programs of the ESRF check the alignment after the scan.
const ALIGNMENT: f64 = -1.0;
const PLACES: Places = Places { flats: KEYS, angles: ANGLES, lines: None };

/// The entries of a file: groups that say they are an NXtomo, or that have images and their kinds. Those
/// without images come last.
fn entries(path: &Path, file: &hdf5::File) -> Vec<Entry> {
    let mut entries = Vec::new();
    if let Ok(root) = file.group("/") {
        seek(path, String::new(), root, &mut entries);
    }
    entries.sort_by_key(|entry| !entry.has_images());
    entries
}

/// Seeks in the group of that name.
fn seek(path: &Path, name: String, group: Group, entries: &mut Vec<Entry>) {
    // Links give one entry several names.
    let place = |group: &Group| group.loc_info().map(|info| (info.fileno, info.token)).ok();
    if entries.iter().any(|entry| place(&entry.group) == place(&group)) {
        return;
    }
    let says = dataset(path, &group, "definition").is_ok_and(|definition| {
        let text = value(path, &definition, "definition").ok().flatten().and_then(Value::text);
        text.is_some_and(|text| text.eq_ignore_ascii_case("NXtomo"))
    });
    let detector = detector(&group);
    if says || detector.as_ref().is_some_and(has_keys) {
        entries.push(Entry { name, group, detector });
        return;
    }
    let depth = name.split('/').filter(|part| !part.is_empty()).count();
    let members = if depth < DEPTH { group.member_names().unwrap_or_default() } else { Vec::new() };
    // Names come from the file and need not be valid text.
    for member in members.iter().filter_map(|name| std::str::from_utf8(name.as_bytes()).ok()) {
        if let Ok(inner) = group.group(member) {
            seek(path, format!("{name}/{member}").trim_start_matches('/').to_owned(), inner, entries);
        }
    }
}

fn detector(entry: &Group) -> Option<Group> {
    let instrument = entry.group("instrument").ok()?;
    instrument.group("detector").ok().or_else(|| {
        let groups = instrument.groups().ok()?;
        groups.into_iter().find(has_keys)
    })
}

/// Whether a detector states the kinds of its images.
fn has_keys(detector: &Group) -> bool {
    detector.link_exists(KEYS) || detector.link_exists(CONTROL)
}

/// A scan in a file.
struct Entry {
    /// As it follows the colon after the file's name.
    name: String,
    group: Group,
    detector: Option<Group>,
}

impl Entry {
    fn images_at(&self) -> Option<(&Group, &'static str)> {
        let own = self.detector.as_ref().map(|detector| (detector, "data"));
        let places = [own, Some((&self.group, "data/data"))];
        places.into_iter().flatten().find(|(group, name)| exists(group, name))
    }

    /// Whether there is an image, or a link to images that leads nowhere.
    fn has_images(&self) -> bool {
        self.images_at().is_some_and(|(group, name)| group.dataset(name).map_or(true, |data| data.size() > 0))
    }
}

/// Whether a name of two parts is there: HDF5 looks up one part at a time.
fn exists(group: &Group, name: &str) -> bool {
    match name.split_once('/') {
        None => group.link_exists(name),
        Some((first, rest)) => group.group(first).is_ok_and(|inner| exists(&inner, rest)),
    }
}

/// Whether an HDF5 file holds such a scan. Errors: another file, or one that cannot be read.
pub(crate) fn holds(path: &Path) -> Result<bool> {
    let file = open(path, "HDF5")?;
    Ok(!entries(path, &file).is_empty() || leads_nowhere(path, &file).is_some())
}

/// Opens a scan for the table of formats.
pub(crate) fn projections(path: &Path, name: Option<&str>) -> Result<Projections> {
    let file = open(path, "a NeXus file (HDF5)")?;
    let mut entries = entries(path, &file);
    let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    let mut notes = Vec::new();
    let index = match name {
        None if entries.is_empty() => {
            let other =
                || Error::not_this_format(path, "a NeXus file with an NXtomo entry", "another HDF5 file");
            return Err(leads_nowhere(path, &file).unwrap_or_else(other));
        }
        None => {
            let default =
                attribute(path, &file, "the root", "default")?.and_then(Value::text).unwrap_or_default();
            let default = default.trim_matches('/');
            let is_default = |entry: &Entry| {
                let within = entry.name.strip_prefix(default);
                within.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && entry.has_images()
            };
            entries.iter().position(is_default).unwrap_or(0)
        }
        Some(_) => {
            let wanted = choose(path, "NXtomo entry", &names, name)?;
            names.iter().position(|known| *known == wanted).unwrap_or(0)
        }
    };
    let others: Vec<&str> = (0..entries.len())
        .filter(|&i| i != index && entries[i].has_images())
        .map(|i| &names[i][..])
        .collect();
    if name.is_none() && !others.is_empty() {
        notes.push(format!(
            "the file holds {} scans: {} is taken; a colon chooses another one, {}:{}",
            others.len() + 1,
            names[index],
            path.display(),
            others.join(", :"),
        ));
    }
    let entry = entries.swap_remove(index);
    entry.projections(path, notes)
}

impl Entry {
    fn projections(&self, path: &Path, mut notes: Vec<String>) -> Result<Projections> {
        let none = || Error::field(path, "instrument/detector", "a detector with images", "nothing");
        let (group, name) = self.images_at().ok_or_else(none)?;
        let data = dataset(path, group, name)?;
        let [images, rows, columns] = <[usize; 3]>::try_from(data.shape()).map_err(|shape| {
            Error::field(path, DATA, "images [image, row, column]", format!("shape {shape:?}"))
        })?;
        let detector = self.detector.as_ref();
        let listed = |group: &Group, name: &str| -> Result<Array1<f64>> {
            let values = list(path, &dataset(path, group, name)?, name)?;
            match values.len() == images {
                true => Ok(values),
                false => {
                    Err(Error::field(path, name, format!("one for each of {images} images"), values.len()))
                }
            }
        };
        let optional = |name: &str| -> Result<Option<Array1<f64>>> {
            detector
                .filter(|detector| detector.link_exists(name))
                .map(|detector| listed(detector, name))
                .transpose()
        };
        let control = optional(CONTROL)?;
        let mut keys = match (optional(KEYS)?, &control) {
            (Some(keys), _) => keys,
            (None, Some(control)) => {
                notes.push("the file has no image_key: image_key_control says what the images are".into());
                control.clone()
            }
            (None, None) => {
                notes.push("the file has no image_key: all images are taken as projections".into());
                Array1::zeros(images)
            }
        };
        if let Some(control) = control {
            let of_control = keys.iter_mut().zip(&control);
            of_control
                .filter(|(_, control)| [ALIGNMENT, 3.0].contains(*control))
                .for_each(|(key, control)| *key = *control);
        }
        let mut kinds: [Vec<usize>; 3] = Default::default();
        let [mut alignment, mut invalid] = [0; 2];
        for (index, &key) in keys.iter().enumerate() {
            match key {
                0.0 | 1.0 | 2.0 => kinds[key as usize].push(index),
                3.0 => invalid += 1,
                ALIGNMENT => alignment += 1,
                _ => return Err(Error::field(path, KEYS, "0, 1, 2 or 3", key)),
            }
        }
        let [views, flats, darks] = kinds;
        if alignment > 0 {
            let images = if alignment == 1 { "image that checks" } else { "images that check" };
            let are = if alignment == 1 { "is" } else { "are" };
            notes.push(format!("{alignment} {images} the alignment (image_key_control −1) {are} left out"));
        }
        if invalid > 0 {
            let (images, are) = if invalid == 1 { ("image", "is") } else { ("images", "are") };
            notes.push(format!("{invalid} {images} that the file calls invalid {are} left out"));
        }
        let stored = Stored { path: path.into(), data, name: DATA };
        let cpu = rayspin_device::Device::cpu().map_err(|e| Error::core(path, e))?;
        let frames = |kept: &[usize]| -> Result<Array3<f32>> {
            let values = chosen(kept, |images| stored.images(images, cpu.cpu_side()))?;
            Array3::from_shape_vec((kept.len(), rows, columns), values)
                .map_err(|e| Error::field(path, DATA, "whole images", e))
        };
        let frames = Some([frames(&flats)?, frames(&darks)?]);
        let header = Header {
            shape: [views.len(), rows, columns],
            frames,
            angles: self.angles(path, images, &views)?,
            geometry: None,
            pixel: self.pixel(path, &mut notes)?,
            notes,
            places: PLACES,
        };
        Projections::new(path, "NeXus NXtomo", Box::new(Kept { stored, views }), header)
    }

    /// The angles of these images, radian; none where the file states none.
    fn angles(&self, path: &Path, images: usize, kept: &[usize]) -> Result<Option<Vec<f64>>> {
        let of_detector = self.detector.as_ref().map(|detector| (detector, "rotation_angle"));
        let places = [Some((&self.group, ANGLES)), Some((&self.group, "data/rotation_angle")), of_detector];
        let Some((group, name)) = places.into_iter().flatten().find(|(group, name)| exists(group, name))
        else {
            return Ok(None);
        };
        let data: Dataset = dataset(path, group, name)?;
        let unit = angle(path, &data, name)?;
        let angles = list(path, &data, name)?;
        if angles.len() != images {
            return Err(Error::field(path, name, format!("one for each of {images} images"), angles.len()));
        }
        Ok(Some(kept.iter().map(|&index| angles[index] * unit).collect()))
    }

    fn pixel(&self, path: &Path, notes: &mut Vec<String>) -> Result<Option<PixelSize>> {
        let sample = self.group.group("sample").ok();
        let places = [
            (sample.as_ref(), ["x_pixel_size", "y_pixel_size"], true),
            (self.detector.as_ref(), ["x_magnified_pixel_size", "y_magnified_pixel_size"], true),
            (self.detector.as_ref(), ["x_pixel_size", "y_pixel_size"], false),
        ];
        for (group, names, at_object) in places {
            if let Some(group) = group
                && let Some(mm) = pixel_sizes(path, group, names, notes)?
            {
                return Ok(Some(PixelSize { mm, at_object }));
            }
        }
        Ok(None)
    }
}

/// Images of a dataset, which need not follow one another.
struct Kept {
    stored: Stored,
    views: Vec<usize>,
}

impl Source for Kept {
    fn read(&mut self, views: Range<usize>, cpu: &Cpu) -> Result<Vec<f32>> {
        chosen(&self.views[views], |images| self.stored.images(images, cpu))
    }
}

/// Images that follow one another are read together.
fn chosen(images: &[usize], read: impl Fn(Range<usize>) -> Result<Vec<f32>>) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    for run in images.chunk_by(|a, b| a + 1 == *b) {
        let part = read(run[0]..run[0] + run.len())?;
        if values.is_empty() { values = part } else { values.extend(part) }
    }
    Ok(values)
}
