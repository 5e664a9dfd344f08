//! What the row of ISMRMRD files takes from this module.

use std::path::Path;

use rayspin_core::Monitor;
use rayspin_mri::scan::Scan;

use super::images::ImageSeries;
use super::{Identity, ImageKind, ImageOptions, ReadOptions, image_series, read_images, read_with};
use crate::cfl::Layout;
use crate::format::{ImageRead, Target};
use crate::series_file::VolumeWriter;
use crate::{Error, Result, Values};

pub(crate) fn names(path: &Path) -> Result<Vec<String>> {
    image_series(path)
}

pub(crate) fn image(path: &Path, series: Option<&str>) -> Result<ImageRead> {
    if holds(path)? {
        return Err(Error::not_this_format(path, "an image", "HDF5 without an image series")
            .with_hint("rayspin recon mri makes an image of a raw scan"));
    }
    let (image, notes) = read_images(path, series)?;
    Ok(ImageRead { image, layout: Layout::default(), notes })
}

pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let kind = if target.values == Values::Complex { ImageKind::Complex } else { ImageKind::Magnitude };
    let options = ImageOptions { kind, ..ImageOptions::default() };
    let (frames, volume) = (target.repetitions().unwrap_or(1), target.volume());
    Ok(Box::new(ImageSeries::create(target.path, frames, volume, target.geometry, &options)?))
}

/// A file without image series is one of a raw scan, or damaged.
pub(crate) fn holds(path: &Path) -> Result<bool> {
    Ok(image_series(path)?.is_empty())
}

pub(crate) fn read(path: &Path, name: Option<&str>, monitor: &Monitor<'_>) -> Result<Scan> {
    let options = ReadOptions { group: name.map(str::to_owned), ..ReadOptions::default() };
    read_with(path, &options, monitor)
}

pub(crate) fn write(path: &Path, scan: &Scan, identity: Identity) -> Result<Vec<String>> {
    super::write(path, scan, identity)
}
