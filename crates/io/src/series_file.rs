//! Image series that are written volume by volume, as they come.

use std::path::{Path, PathBuf};

use ndarray::ArrayViewD;
use rayspin_core::{C32, Geometry, expect_shape};

use crate::cfl::CflSeries;
use crate::image_file::{geometry_note, lost_note, lost_part};
use crate::ismrmrd::{ImageKind, ImageOptions, ImageSeries};
use crate::nifti::{NiftiOptions, NiftiSeries};
use crate::npy::NpySeries;
use crate::png::SeriesTiles;
use crate::{Error, Format, Result, Values, WriteOptions};

/// What is known of a series before its first volume is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesShape {
    /// Volumes to come, at least 1.
    pub frames: usize,
    /// Each, `[z, y, x]`.
    pub volume: [usize; 3],
    /// Where it lies.
    pub geometry: Geometry,
}

/// A file of `[frame, z, y, x]` in the making, in the format of its name: `.nii`, `.nii.gz`, `.npy`, `.cfl`, `.h5` or `.png` (a
/// montage). It has the bytes that [`write_image`](crate::write_image) writes of the whole series, and no more than one volume
/// of it is in memory (of a picture, what it shows). Dropped unfinished it leaves nothing.
pub struct SeriesWriter {
    path: PathBuf,
    shape: SeriesShape,
    file: File,
    values: Values,
    pushed: usize,
    lost: bool,
}

enum File {
    Nifti(Box<NiftiSeries>),
    Npy(NpySeries),
    Cfl(CflSeries),
    Images(ImageSeries),
    Png(SeriesTiles),
}

impl SeriesWriter {
    /// A temporary file beside `path`. Errors: another ending, axes that the format cannot hold, a folder that cannot be
    /// written.
    pub fn create(path: impl AsRef<Path>, shape: &SeriesShape, options: &WriteOptions) -> Result<Self> {
        let path = path.as_ref();
        let format = Format::of_name(path);
        let values = options.values.unwrap_or(match format {
            Some(Format::Npy | Format::Cfl) => Values::Complex,
            _ => Values::Magnitude,
        });
        let SeriesShape { frames, volume, geometry } = shape;
        let file = match format {
            Some(Format::Nifti) => {
                let options = NiftiOptions { values, repetition_time_s: options.repetition_time_s };
                File::Nifti(Box::new(NiftiSeries::create(path, *frames, *volume, geometry, options)?))
            }
            Some(Format::Npy) => File::Npy(NpySeries::create(path, *frames, *volume, values)?),
            Some(Format::Cfl) => File::Cfl(CflSeries::create(path, *volume, values)?),
            Some(Format::Hdf5) => {
                let kind = match values {
                    Values::Magnitude => ImageKind::Magnitude,
                    Values::Complex => ImageKind::Complex,
                    Values::Real => return Err(no_real_parts(path)),
                };
                let options = ImageOptions { kind, ..ImageOptions::default() };
                File::Images(ImageSeries::create(path, *frames, *volume, geometry, &options)?)
            }
            Some(Format::Png) => File::Png(SeriesTiles::new(path, *frames, *volume, geometry, &options.png)?),
            _ => return Err(crate::image_file::no_ending(path)),
        };
        Ok(Self { path: path.to_owned(), shape: *shape, file, values, pushed: 0, lost: false })
    }

    /// Where the file is to be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Volumes that it has.
    pub fn pushed(&self) -> usize {
        self.pushed
    }

    /// Appends a volume `[z, y, x]`. Errors: another shape, more volumes than were announced, a file that cannot be written.
    pub fn push(&mut self, volume: ArrayViewD<'_, C32>) -> Result<()> {
        let core = |e| Error::core(&self.path, e);
        expect_shape("volume", &self.shape.volume, volume.shape()).map_err(core)?;
        if self.pushed == self.shape.frames {
            let expected = format!("{} volumes", self.shape.frames);
            return Err(Error::field(&self.path, "series", expected, "one more"));
        }
        self.lost = self.lost || lost_part(volume.iter(), self.values);
        match &mut self.file {
            File::Nifti(file) => file.push(volume)?,
            File::Npy(file) => file.push(volume)?,
            File::Cfl(file) => file.push(volume)?,
            File::Images(file) => file.push(volume)?,
            File::Png(tiles) => tiles.push(self.pushed, volume),
        }
        self.pushed += 1;
        Ok(())
    }

    /// The file under its name. Returns what it leaves out, one sentence each. Errors: volumes that are missing; a file that
    /// cannot be written.
    pub fn finish(self) -> Result<Vec<String>> {
        if self.pushed < self.shape.frames {
            let expected = format!("{} volumes", self.shape.frames);
            return Err(Error::field(&self.path, "series", expected, self.pushed));
        }
        let mut notes = self.notes();
        match self.file {
            File::Nifti(file) => file.finish()?,
            File::Npy(file) => file.finish()?,
            File::Cfl(file) => file.finish(&self.path, self.pushed)?,
            File::Images(file) => file.finish()?,
            File::Png(tiles) => notes.extend(tiles.write(&self.path)?),
        }
        Ok(notes)
    }

    /// The volumes so far as a sound file of their own, `image.nii.gz` as `image.partial.nii.gz`; none when there are none.
    /// What was at the file's own name stays. Errors: a file that cannot be written.
    pub fn keep_partial(self) -> Result<Option<PathBuf>> {
        let path = partial_name(&self.path);
        match self.file {
            _ if self.pushed == 0 => return Ok(None),
            File::Nifti(file) => file.finish_as(&path, self.pushed)?,
            File::Npy(file) => file.finish_as(&path, self.pushed)?,
            File::Cfl(file) => file.finish(&path, self.pushed)?,
            File::Images(file) => file.finish_as(&path)?,
            File::Png(tiles) => tiles.write(&path).map(drop)?,
        }
        Ok(Some(path))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if matches!(self.file, File::Png(_)) {
            return notes;
        }
        if self.lost {
            notes.push(lost_note(self.values));
        }
        if matches!(self.file, File::Npy(_) | File::Cfl(_)) {
            let shape = crate::npy::series_shape(self.shape.frames, self.shape.volume);
            notes.extend(geometry_note(&self.shape.geometry, &shape));
        }
        notes
    }
}

pub(crate) fn no_real_parts(path: &Path) -> Error {
    Error::unsupported(path, "an ISMRMRD image of real parts").with_hint("write magnitudes or complex values")
}

/// image.nii.gz → image.partial.nii.gz
fn partial_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let end = if name.to_ascii_lowercase().ends_with(".nii.gz") { ".nii.gz".len() } else { 0 };
    let at = if end > 0 { name.len() - end } else { name.rfind('.').unwrap_or(name.len()) };
    path.with_file_name(format!("{}.partial{}", &name[..at], &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_files_keep_their_ending() {
        for (name, expected) in [
            ("a/b.nii.gz", "a/b.partial.nii.gz"),
            ("b.v2.npy", "b.v2.partial.npy"),
            ("c.NII.GZ", "c.partial.NII.GZ"),
        ] {
            assert_eq!(partial_name(Path::new(name)), Path::new(expected));
        }
    }
}
