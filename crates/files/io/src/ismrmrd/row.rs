//! What the row of ISMRMRD files takes from this module.

use std::path::Path;

use rayspin_core::Monitor;
use rayspin_scan::mri::Scan;

use super::images::ImageSeries;
use super::images_in::{read_any_images, series_of_stack};
use super::open::{open, scans_of, series_of};
use super::{Identity, ImageOptions, Reader};
use crate::format::{ImageRead, Target, VolumeWriter};
use crate::scan_reader::ScanReader;
use crate::{Error, Held, Result};

pub(crate) fn names(path: &Path) -> Result<Vec<Held>> {
    let file = open(path)?;
    let scans = scans_of(path, &file).into_iter().map(|name| Held { what: "scan", name });
    let series = series_of(path, &file).into_iter().map(|name| Held { what: "image series", name });
    Ok(scans.chain(series).collect())
}

pub(crate) fn image(path: &Path, series: Option<&str>) -> Result<ImageRead> {
    if holds(path, series)? {
        return Err(Error::not_this_format(path, "an image", "HDF5 without an image series")
            .with_hint("`rayspin recon mri` makes an image of a raw scan"));
    }
    read_any_images(path, series)
}

pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let (frames, volume) = (target.repetitions().unwrap_or(1), target.volume());
    let volumes = target.options.labels(frames);
    let options = ImageOptions { values: target.values, volumes, ..ImageOptions::default() };
    let geometry = target.geometry;
    let series = ImageSeries::create(target.path, frames, volume, geometry, &options, target.integers)?;
    Ok(Box::new(series))
}

/// A file without image series is one of a raw scan, or damaged; and so is what has the name of none.
pub(crate) fn holds(path: &Path, name: Option<&str>) -> Result<bool> {
    let series = series_of(path, &open(path)?);
    Ok(match name {
        Some(name) => {
            let known = series.iter().any(|known| known == name.trim_matches('/'));
            !known && series_of_stack(name, &series).is_none()
        }
        None => series.is_empty(),
    })
}

pub(crate) fn open_reader(path: &Path, name: Option<&str>, _: &Monitor<'_>) -> Result<Box<dyn ScanReader>> {
    Ok(Box::new(Reader::open(path, name)?))
}

pub(crate) fn write(path: &Path, scan: &Scan, identity: Identity) -> Result<Vec<String>> {
    super::write(path, scan, identity)
}
