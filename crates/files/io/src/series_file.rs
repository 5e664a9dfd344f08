//! Image series that are written volume by volume, as they come.

use std::path::{Path, PathBuf};

use rayspin_core::{Geometry, expect_shape};

use crate::format::{Property, Target, VolumeWriter, any_of};
use crate::image_file::{geometry_note, lost_note};
use crate::{Error, Format, NumberType, Result, Slices, Values, WriteOptions, expect_ending};

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

/// A file of `[frame, z, y, x]` in the making, in the format of its name. No more than one volume of it is in
/// memory (of a picture, what it shows). Dropped unfinished it leaves nothing.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry};
/// use rayspin_io::{SeriesShape, SeriesWriter, read_image};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("series.nii");
/// let shape = SeriesShape { frames: 3, volume: [2, 4, 5], geometry: Geometry::default() };
/// let mut writer = SeriesWriter::create(&path, &shape, &Default::default())?;
/// for frame in 0..3 {
///     writer.push(ArrayD::from_elem(IxDyn(&[2, 4, 5]), C32::new(frame as f32, 0.0)).view())?;
/// }
/// writer.finish()?;
/// assert_eq!(read_image(&path)?.image.repetitions(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SeriesWriter {
    path: PathBuf,
    format: &'static Format,
    /// `[z, y, x]` or `[frame, z, y, x]`.
    shape: Vec<usize>,
    geometry: Geometry,
    writer: Box<dyn VolumeWriter>,
    values: Values,
    /// Whether slices may come one after another.
    by_slices: bool,
    /// Whole volumes, and slices of the next one.
    pushed: usize,
    slices: usize,
    lost: bool,
}

impl SeriesWriter {
    /// A temporary file beside `path`. Errors: another ending, axes or numbers that the format cannot hold, a
    /// folder that cannot be written.
    pub fn create(path: impl AsRef<Path>, shape: &SeriesShape, options: &WriteOptions) -> Result<Self> {
        let [nz, ny, nx] = shape.volume;
        let shape_of_file = match shape.frames {
            1 => vec![nz, ny, nx],
            frames => vec![frames, nz, ny, nx],
        };
        Self::start(path.as_ref(), &shape_of_file, &shape.geometry, options, None)
    }

    /// [`SeriesWriter::create`] of `[z, y, x]` or `[frame, z, y, x]`. `integers` hold every number to come,
    /// which is real.
    pub(crate) fn start(
        path: &Path,
        shape: &[usize],
        geometry: &Geometry,
        options: &WriteOptions,
        integers: Option<NumberType>,
    ) -> Result<Self> {
        let format = expect_ending(path, Format::writes_images)?;
        let Some(images) = &format.images else {
            return Err(Error::unsupported(path, format!("writing an image as {format}")));
        };
        // A picture shows what its own options say.
        let usual = images.values.first().copied().unwrap_or(Values::Complex);
        let values = options.values.filter(|_| !format.is_picture()).unwrap_or(usual);
        if !format.is_picture() && !images.values.contains(&values) {
            let stored: Vec<&str> = images.values.iter().map(|values| values.name()).collect();
            return Err(Error::unsupported(path, format!("an image of {} as {format}", values.name()))
                .with_hint(format!("write {}", any_of(&stored))));
        }
        let writer = (images.create)(&Target { path, shape, geometry, values, integers, options })?;
        Ok(Self {
            path: path.to_owned(),
            format,
            shape: shape.to_vec(),
            geometry: *geometry,
            writer,
            values,
            by_slices: images.by_slices,
            pushed: 0,
            slices: 0,
            lost: false,
        })
    }

    /// Bytes that a writer of `frames` volumes of `volume` bytes each holds in memory, by the format of its
    /// name.
    pub fn memory(path: impl AsRef<Path>, frames: u64, volume: u64) -> u64 {
        let images = Format::of_name(path).and_then(|format| format.images.as_ref());
        images.map_or(0, |images| (images.memory)(frames, volume))
    }

    /// Where the file is to be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Volumes that it has.
    pub fn pushed(&self) -> usize {
        self.pushed
    }

    fn frames(&self) -> usize {
        self.shape.iter().rev().nth(3).copied().unwrap_or(1)
    }

    /// Appends a volume `[z, y, x]`, or the next slices of one where the format takes them one after another.
    /// Errors: another shape, more volumes than were announced, a part of a volume for a format that needs
    /// all of it, a file that cannot be written.
    pub fn push<'a>(&mut self, slices: impl Into<Slices<'a>>) -> Result<()> {
        let slices = slices.into();
        let core = |e| Error::core(&self.path, e);
        let own = &self.shape[self.shape.len().saturating_sub(3)..];
        let missing = own[0] - self.slices;
        let part = slices.shape().first().filter(|&&some| self.by_slices && (1..missing).contains(&some));
        let count = part.copied().unwrap_or(missing);
        expect_shape("volume", &[count, own[1], own[2]], slices.shape()).map_err(core)?;
        if self.pushed == self.frames() {
            let expected = format!("{} volumes", self.frames());
            return Err(Error::field(&self.path, "series", expected, "one more"));
        }
        self.lost = self.lost || slices.lose(self.values);
        self.writer.push(&slices)?;
        self.slices = (self.slices + count) % own[0];
        self.pushed += usize::from(self.slices == 0);
        Ok(())
    }

    /// The file under its name. Returns what it leaves out, one sentence each. Errors: volumes that are
    /// missing; a file that cannot be written.
    pub fn finish(self) -> Result<Vec<String>> {
        if self.pushed < self.frames() {
            let expected = format!("{} volumes", self.frames());
            let found = match self.slices {
                0 => self.pushed.to_string(),
                slices => format!("{}, and {slices} slices", self.pushed),
            };
            return Err(Error::field(&self.path, "series", expected, found));
        }
        let mut notes = Vec::new();
        if self.lost {
            notes.push(lost_note(self.values));
        }
        if !self.format.is_picture() && !self.format.keeps(Property::Geometry) {
            notes.extend(geometry_note(&self.geometry, &self.shape));
        }
        notes.extend(self.writer.finish(&self.path, self.pushed)?);
        Ok(notes)
    }

    /// Keeps the volumes so far as a sound file of their own, `image.nii.gz` as `image.partial.nii.gz`.
    /// Returns its path, or nothing before the first volume. What was at the file's own name stays. Errors: a
    /// file that cannot be written.
    pub fn keep_partial(self) -> Result<Option<PathBuf>> {
        // A part of a volume is no volume.
        if self.pushed == 0 || self.slices > 0 {
            return Ok(None);
        }
        let path = partial_name(&self.path, self.format);
        self.writer.finish(&path, self.pushed)?;
        Ok(Some(path))
    }
}

/// image.nii.gz → image.partial.nii.gz
fn partial_name(path: &Path, format: &Format) -> PathBuf {
    before_ending(path, format, ".partial")
}

fn before_ending(path: &Path, format: &Format, text: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ending = format.ending_of(path).map_or(0, str::len);
    let end = name.len() - ending.min(name.len());
    path.with_file_name(format!("{}{text}{}", &name[..end], &name[end..]))
}

/// The files of an image's stacks: its own name where it is one stack, else numbered names, `image_1.nii.gz`
/// and so on. Arrays and other files that hold no geometry have all slices in one file.
///
/// Errors: an ending that no format has.
///
/// ```
/// use std::path::Path;
/// let names = rayspin_io::stack_paths("image.nii.gz", 2)?;
/// assert_eq!(names, [Path::new("image_1.nii.gz"), Path::new("image_2.nii.gz")]);
/// assert_eq!(rayspin_io::stack_paths("image.npy", 2)?, [Path::new("image.npy")]);
/// # Ok::<(), rayspin_io::Error>(())
/// ```
pub fn stack_paths(path: impl AsRef<Path>, stacks: usize) -> Result<Vec<PathBuf>> {
    let path = path.as_ref();
    if stacks == 1 {
        return Ok(vec![path.to_owned()]);
    }
    let format = expect_ending(path, Format::writes_images)?;
    if !format.keeps(Property::Geometry) && !format.is_picture() {
        return Ok(vec![path.to_owned()]);
    }
    Ok((1..=stacks).map(|number| before_ending(path, format, &format!("_{number}"))).collect())
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
            let format = Format::of_name(name).unwrap();
            assert_eq!(partial_name(Path::new(name), format), Path::new(expected));
        }
    }
}
