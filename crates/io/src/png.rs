//! 8-bit grey and colour pictures.

use std::io;
use std::path::Path;

use ndarray::{ArrayD, ArrayView2, ArrayView3, ArrayViewD, Axis, Ix3};
use png::{BitDepth, ColorType, Encoder, EncodingError};
use rayspin_core::{C32, ErrorKind, Geometry, Image, format_shape};
use rayspin_imaging::display::{
    Limits, Montage, Part, Window, evenly_spaced, montage, part, square_pixels, to_grey, upscale_nearest,
};

use crate::atomic::write_atomically;
use crate::{Error, Result};

/// How an image becomes a picture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PngOptions {
    /// The real number shown.
    pub part: Part,
    /// What is black and what is white; phase is shown from −π to π unless a range is given. Percentiles are taken over the
    /// whole volume that is shown.
    pub window: Window,
    /// Slices and their layout.
    pub montage: Montage,
    /// The repetition of a series that is shown. When absent: up to 16 repetitions, spread over the series, each by its middle
    /// slice, or by the only one that the montage names.
    pub repetition: Option<usize>,
    /// Each pixel becomes a block of this many, squared; 0 counts as 1.
    pub enlarge: usize,
}

/// Writes a grey picture `[row, column]`. Errors: an empty picture, or a file that cannot be written.
pub fn write_grey(path: impl AsRef<Path>, picture: ArrayView2<'_, u8>) -> Result<()> {
    let (height, width) = picture.dim();
    let bytes: Vec<u8> = picture.iter().copied().collect();
    encode(path.as_ref(), [height, width], ColorType::Grayscale, &bytes)
}

/// Writes a colour picture `[row, column, 3]` in sRGB. Errors: another last axis, and as [`write_grey`].
pub fn write_rgb(path: impl AsRef<Path>, picture: ArrayView3<'_, u8>) -> Result<()> {
    let (height, width, channels) = picture.dim();
    if channels != 3 {
        let found = format_shape(picture.shape());
        return Err(Error::field(path.as_ref(), "picture", "shape [row, column, 3]", found));
    }
    let bytes: Vec<u8> = picture.iter().copied().collect();
    encode(path.as_ref(), [height, width], ColorType::Rgb, &bytes)
}

/// Tiles of a series: more get too small to see.
const SERIES_TILES: usize = 16;

/// Writes an image as a grey montage on square pixels: the slices of a volume, or one slice of each of some repetitions of a
/// series. Errors: a repetition or slice that does not exist, a window that makes no sense, and as [`write_grey`].
pub fn write_image(path: impl AsRef<Path>, image: &Image, options: &PngOptions) -> Result<()> {
    let path = path.as_ref();
    let series = series(image);
    let repetitions = image.repetitions();
    if let Some(found) = options.repetition.filter(|&found| found >= repetitions) {
        let expected = format!("0 to {}", repetitions - 1);
        return Err(Error::field(path, "repetition", expected, found));
    }
    if options.repetition.is_none() && repetitions > 1 {
        let mut tiles = SeriesTiles::new(repetitions, image.geometry(), options);
        series.outer_iter().enumerate().try_for_each(|(index, volume)| tiles.push(path, index, volume))?;
        return tiles.write(path);
    }
    let volume = series.index_axis(Axis(0), options.repetition.unwrap_or(0));
    write_tiles(path, volume, image.geometry(), options)
}

/// One slice of some of a series' volumes, as they come; all slices of a single volume.
pub(crate) struct SeriesTiles {
    frames: usize,
    chosen: Vec<usize>,
    tiles: Vec<ArrayD<C32>>,
    geometry: Geometry,
    options: PngOptions,
}

impl SeriesTiles {
    /// Tiles spread over `frames` volumes.
    pub(crate) fn new(frames: usize, geometry: &Geometry, options: &PngOptions) -> Self {
        let (chosen, options) = (evenly_spaced(frames, SERIES_TILES), options.clone());
        Self { frames, chosen, tiles: Vec::new(), geometry: *geometry, options }
    }

    /// Takes volume `index` `[z, y, x]`, where it is shown. Errors: a slice that does not exist.
    pub(crate) fn push(&mut self, path: &Path, index: usize, volume: ArrayViewD<'_, C32>) -> Result<()> {
        if self.frames == 1 {
            self.tiles.push(volume.to_owned());
        } else if self.chosen.contains(&index) {
            let slices = volume.shape()[0];
            let slice = match self.options.montage.slices.as_deref() {
                Some(&[only]) => only,
                _ => slices / 2,
            };
            if slice >= slices {
                return Err(Error::field(path, "slice", format!("0 to {}", slices - 1), slice));
            }
            self.tiles.push(volume.index_axis(Axis(0), slice).to_owned());
        }
        Ok(())
    }

    pub(crate) fn write(self, path: &Path) -> Result<()> {
        if let (1, [volume]) = (self.frames, &self.tiles[..]) {
            return write_tiles(path, volume.view(), &self.geometry, &self.options);
        }
        let tiles: Vec<_> = self.tiles.iter().map(|tile| tile.view()).collect();
        let stacked =
            ndarray::stack(Axis(0), &tiles).map_err(|e| Error::field(path, "image", "frames", e))?;
        let montage = Montage { slices: None, ..self.options.montage.clone() };
        let options = PngOptions { montage, ..self.options };
        write_tiles(path, stacked.view(), &self.geometry, &options)
    }
}

fn write_tiles(
    path: &Path,
    volume: ArrayViewD<'_, C32>,
    geometry: &Geometry,
    options: &PngOptions,
) -> Result<()> {
    let core = |e| Error::core(path, e);
    let volume =
        volume.into_dimensionality::<Ix3>().map_err(|e| Error::field(path, "image", "shape [z, y, x]", e))?;
    let shown = part(volume, options.part);
    let limits = match (options.part, options.window) {
        (Part::Phase, Window::Percentile { .. }) => Limits::PHASE,
        (_, window) => window.limits(shown.view()).map_err(core)?,
    };
    let [sx, sy, _] = geometry.spacing_mm;
    let square = shown
        .outer_iter()
        .map(|slice| square_pixels(slice, [sy, sx], options.part != Part::Phase))
        .collect::<rayspin_core::Result<Vec<_>>>()
        .map_err(core)?;
    let square: Vec<_> = square.iter().map(|slice| slice.view()).collect();
    let shown = ndarray::stack(Axis(0), &square).map_err(|e| Error::field(path, "image", "slices", e))?;
    let picture = montage(to_grey(shown.view(), limits).view(), &options.montage).map_err(core)?;
    let picture = upscale_nearest(picture.view(), options.enlarge.max(1)).map_err(core)?;
    write_grey(path, picture.view())
}

/// The values as `[repetition, z, y, x]`.
fn series(image: &Image) -> ArrayViewD<'_, C32> {
    let data: &ArrayD<_> = image.data();
    let mut view = data.view();
    if view.ndim() == 3 {
        view.insert_axis_inplace(Axis(0));
    }
    view
}

fn encode(path: &Path, [height, width]: [usize; 2], colour: ColorType, bytes: &[u8]) -> Result<()> {
    let side = |name: &str, n: usize| {
        u32::try_from(n)
            .ok()
            .filter(|n| (1..=i32::MAX as u32).contains(n))
            .ok_or_else(|| Error::field(path, name, "1 to 2147483647 pixels", n))
    };
    let (height, width) = (side("height", height)?, side("width", width)?);
    write_atomically(path, |temporary| {
        let fail = |e: io::Error| Error::write(path, e);
        let encoded = |e: EncodingError| match e {
            EncodingError::IoError(e) => Error::write(path, e),
            other => Error::library(path, "encoding the picture", other, ErrorKind::Failure),
        };
        let file = std::fs::File::options().write(true).truncate(true).open(temporary).map_err(fail)?;
        let mut file = io::BufWriter::with_capacity(1 << 20, file);
        let mut encoder = Encoder::new(&mut file, width, height);
        encoder.set_color(colour);
        encoder.set_depth(BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(encoded)?;
        writer.write_image_data(bytes).map_err(encoded)?;
        writer.finish().map_err(encoded)?;
        io::Write::flush(&mut file).map_err(fail)
    })
}
