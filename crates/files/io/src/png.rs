//! 8-bit grey and colour pictures.

use std::io;
use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayD, ArrayView2, ArrayView3, ArrayView4, ArrayViewD, Axis, Ix3};
use png::{BitDepth, ColorType, Encoder, EncodingError};
use rayspin_core::{C32, ErrorKind, Geometry, Image, format_shape};
use rayspin_imaging::display::{
    Limits, Montage, Part, Window, evenly_spaced, montage, part, square_pixels, to_grey, upscale_nearest,
};

use crate::atomic::write_atomically;
use crate::format::{Target, VolumeWriter};
pub use crate::write_options::PngOptions;
use crate::{Error, Result, Slices, Values};

/// Writes a grey picture `[row, column]`. Errors: an empty picture, or a file that cannot be written.
///
/// ```
/// use rayspin_io::png::write_grey;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ramp.png");
/// let ramp = ndarray::Array2::from_shape_fn((16, 256), |(_, x)| x as u8);
/// write_grey(&path, ramp.view())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_grey(path: impl AsRef<Path>, picture: ArrayView2<'_, u8>) -> Result<()> {
    let (height, width) = picture.dim();
    let bytes: Vec<u8> = picture.iter().copied().collect();
    encode(path.as_ref(), [height, width], ColorType::Grayscale, &[&bytes], 0)
}

/// Writes a colour picture `[row, column, 3]` in sRGB. Errors: another last axis, and as [`write_grey`].
///
/// ```
/// use ndarray::Array3;
/// use rayspin_io::{detect, png};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("red.png");
/// let red = Array3::from_shape_fn((4, 6, 3), |(_, _, channel)| if channel == 0 { 255 } else { 0 });
/// png::write_rgb(&file, red.view())?;
/// assert_eq!(detect(&file)?.name, "PNG picture");
/// assert!(png::write_rgb(&file, Array3::zeros((4, 6, 2)).view()).is_err()); // two channels
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_rgb(path: impl AsRef<Path>, picture: ArrayView3<'_, u8>) -> Result<()> {
    let (height, width, channels) = picture.dim();
    if channels != 3 {
        let found = format_shape(picture.shape());
        return Err(Error::field(path.as_ref(), "picture", "shape [row, column, 3]", found));
    }
    let bytes: Vec<u8> = picture.iter().copied().collect();
    encode(path.as_ref(), [height, width], ColorType::Rgb, &[&bytes], 0)
}

/// Writes frames `[frame, row, column, channel]`, grey (1 channel) or in sRGB (3), as an animated picture
/// (APNG) that repeats without end and shows each frame for some milliseconds. One frame is a picture like
/// others.
///
/// Errors: another last axis, no frames, and as [`write_grey`].
///
/// ```
/// use ndarray::Array4;
/// use rayspin_io::png::write_animation;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("turn.png");
/// let frames = Array4::from_shape_fn((8, 16, 16, 1), |(frame, _, column, _)| if column == 2 * frame { 255 } else { 0 });
/// write_animation(&path, frames.view(), 50)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_animation(path: impl AsRef<Path>, frames: ArrayView4<'_, u8>, milliseconds: u16) -> Result<()> {
    let (count, height, width, channels) = frames.dim();
    let colour = match channels {
        1 => ColorType::Grayscale,
        3 => ColorType::Rgb,
        _ => {
            let found = format_shape(frames.shape());
            return Err(Error::field(path.as_ref(), "frames", "shape [frame, row, column, 1 or 3]", found));
        }
    };
    if count == 0 {
        return Err(Error::field(path.as_ref(), "frames", "at least one", "none"));
    }
    let frames = frames.as_standard_layout();
    let bytes = frames.as_slice().unwrap_or_default();
    let pictures: Vec<&[u8]> = bytes.chunks((height * width * channels).max(1)).collect();
    encode(path.as_ref(), [height, width], colour, &pictures, milliseconds)
}

/// Pixels of the longer side of a preview, at least: fewer are a stamp on a screen.
const PREVIEW_SIDE: usize = 256;
/// Slices and repetitions together on a picture, unless asked otherwise: more get too small to see.
const PREVIEW_TILES: usize = 16;

impl PngOptions {
    /// A picture in the [window for any image](Window::Preview): all slices of all repetitions where these
    /// are few, else some spread over repetitions first. Small ones are enlarged to 256 pixels or more.
    pub fn preview(slices: usize, repetitions: usize) -> Self {
        let repetitions = evenly_spaced(repetitions, PREVIEW_TILES);
        let each = (PREVIEW_TILES / repetitions.len().max(1)).max(1);
        Self {
            window: Window::Preview,
            montage: Montage { slices: Some(evenly_spaced(slices, each)), ..Montage::default() },
            repetitions: Some(repetitions),
            least_side: PREVIEW_SIDE,
            ..Self::default()
        }
    }
}

/// What the writer of a [preview](PngOptions::preview) holds. One volume: its values, sorted for the window,
/// and grey. A
/// series: at most what it shows.
pub(crate) fn memory(frames: u64, volume: u64) -> u64 {
    if frames == 1 { 9 * volume / 8 } else { frames.min(PREVIEW_TILES as u64) * volume }
}

/// Starts a picture for the table of formats.
pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let (frames, options) = (target.repetitions().unwrap_or(1), &target.options.png);
    let values = target.options.values;
    let part = match values {
        Some(Values::Phase) => Part::Phase,
        Some(Values::Real) => Part::Real,
        Some(Values::Magnitude) => Part::Magnitude,
        Some(Values::Complex) | None => options.part,
    };
    let options = PngOptions { part, ..options.clone() };
    let tiles = SeriesTiles::new(target.path, frames, target.volume(), target.geometry, &options)?;
    Ok(Box::new(SeriesTiles { magnitudes: values == Some(Values::Magnitude), ..tiles }))
}

/// Writes an image as a grey montage on square pixels: slices of a volume, or slices of repetitions of a
/// series. Returns what the picture leaves out, one sentence. Errors: a repetition or slice that does not
/// exist, a window that makes no sense, and as [`write_grey`].
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::png::{PngOptions, write_image};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("image.png");
/// let data = ArrayD::from_shape_fn(IxDyn(&[2, 4, 5]), |place| C32::new(place[2] as f32, 0.0));
/// let image = Image::new(data, Geometry::default())?;
/// let left_out = write_image(&path, &image, &PngOptions::preview(2, 1))?;
/// assert_eq!(left_out, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_image(path: impl AsRef<Path>, image: &Image, options: &PngOptions) -> Result<Option<String>> {
    let (path, shape) = (path.as_ref(), image.shape_zyx());
    let mut tiles = SeriesTiles::new(path, image.repetitions(), shape, image.geometry(), options)?;
    match image.data().ndim() {
        4 => image.data().outer_iter().try_for_each(|volume| tiles.push(&volume.into()))?,
        _ => tiles.push(&image.data().view().into())?,
    }
    Box::new(tiles).finish(path, image.repetitions())
}

/// The tiles that show a series, volume by volume; for a single volume, the picture.
struct SeriesTiles {
    wanted: PathBuf,
    repetitions: Chosen,
    slices: Chosen,
    tiles: Vec<ArrayD<f32>>,
    picture: Option<Picture>,
    pushed: usize,
    geometry: Geometry,
    options: PngOptions,
    /// Whether magnitudes of real numbers, too, are shown.
    magnitudes: bool,
}

/// A picture, and what it does not show.
struct Picture {
    pixels: Array2<u8>,
    blank: Option<String>,
}

impl SeriesTiles {
    /// For `frames` volumes `[z, y, x]`. Errors: a repetition or slice that does not exist.
    fn new(
        path: &Path,
        frames: usize,
        volume: [usize; 3],
        geometry: &Geometry,
        options: &PngOptions,
    ) -> Result<Self> {
        let repetitions = Chosen::of(path, "repetition", options.repetitions.as_deref(), frames)?;
        let slices = Chosen::of(path, "slice", options.montage.slices.as_deref(), volume[0])?;
        Ok(Self {
            wanted: path.to_owned(),
            repetitions,
            slices,
            tiles: Vec::new(),
            picture: None,
            pushed: 0,
            geometry: *geometry,
            options: options.clone(),
            magnitudes: false,
        })
    }

    /// The picture of a single volume, or of all that is shown of a series.
    fn picture(&self, shown: ArrayViewD<'_, f32>) -> Result<Picture> {
        let Self { repetitions, slices, .. } = self;
        let mut options = self.options.clone();
        options.montage.slices = (repetitions.count == 1).then(|| slices.shown.clone());
        if repetitions.shown.len() > 1 && slices.shown.len() > 1 {
            options.montage.columns = options.montage.columns.or(Some(slices.shown.len()));
        }
        picture(&self.wanted, shown, &self.geometry, &options)
    }
}

impl VolumeWriter for SeriesTiles {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        let shown = || match slices {
            Slices::Real(slices) if self.options.part == Part::Magnitude && !self.magnitudes => {
                slices.to_owned()
            }
            _ => shown(slices, self.options.part),
        };
        if self.repetitions.count == 1 {
            self.picture = Some(self.picture(shown().view())?);
        } else if self.repetitions.shown.contains(&self.pushed) {
            self.tiles.push(shown().select(Axis(0), &self.slices.shown));
        }
        self.pushed += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>, path: &Path, _: usize) -> Result<Option<String>> {
        let picture = match self.picture.take() {
            Some(picture) => picture,
            None => {
                let tiles: Vec<_> = self.tiles.iter().map(|tile| tile.view()).collect();
                let shown = ndarray::concatenate(Axis(0), &tiles)
                    .map_err(|e| Error::field(path, "image", "at least one repetition to show", e))?;
                self.tiles.clear();
                self.picture(shown.view())?
            }
        };
        write_grey(path, picture.pixels.view())?;
        let some: Vec<String> =
            [&self.repetitions, &self.slices].into_iter().filter_map(Chosen::some).collect();
        let shows =
            || format!("the picture shows {} (`rayspin convert --montage` shows all)", some.join(", "));
        let notes: Vec<String> = picture.blank.into_iter().chain((!some.is_empty()).then(shows)).collect();
        Ok((!notes.is_empty()).then(|| notes.join("; ")))
    }
}

/// Some of the repetitions, or of the slices.
struct Chosen {
    what: &'static str,
    shown: Vec<usize>,
    /// How many there are.
    count: usize,
}

impl Chosen {
    fn of(path: &Path, what: &'static str, chosen: Option<&[usize]>, count: usize) -> Result<Self> {
        let shown = chosen.map_or_else(|| (0..count).collect(), <[usize]>::to_vec);
        match shown.iter().find(|&&index| index >= count) {
            Some(index) => Err(Error::field(path, what, format!("0 to {}", count.saturating_sub(1)), index)),
            None => Ok(Self { what, shown, count }),
        }
    }

    /// Names what is shown where it is not all there is.
    fn some(&self) -> Option<String> {
        let Self { what, shown, count } = self;
        let is_whole = (0..*count).all(|index| shown.contains(&index));
        let names: Vec<String> = shown.iter().map(usize::to_string).collect();
        let (plural, names) = (if shown.len() == 1 { "" } else { "s" }, names.join(", "));
        (!is_whole).then(|| format!("{what}{plural} {names} of 0 to {}", count - 1))
    }
}

/// The real numbers that are shown.
fn shown(slices: &Slices<'_>, what: Part) -> ArrayD<f32> {
    match (slices, what) {
        (Slices::Complex(slices), what) => part(slices.view(), what),
        (Slices::Real(slices), Part::Real) => slices.to_owned(),
        (Slices::Real(slices), Part::Magnitude) => slices.mapv(f32::abs),
        (Slices::Real(slices), what) => part(slices.mapv(C32::from).view(), what),
    }
}

fn picture(
    path: &Path,
    shown: ArrayViewD<'_, f32>,
    geometry: &Geometry,
    options: &PngOptions,
) -> Result<Picture> {
    let core = |e| Error::core(path, e);
    let shown =
        shown.into_dimensionality::<Ix3>().map_err(|e| Error::field(path, "image", "shape [z, y, x]", e))?;
    let limits = match (options.part, options.window) {
        (Part::Phase, Window::Percentile { .. } | Window::Preview) => Limits::PHASE,
        (_, window) => window.limits(shown).map_err(core)?,
    };
    let Montage { slices, columns, gap } = &options.montage;
    let shown = match slices {
        Some(slices) => shown.select(Axis(0), slices),
        None => shown.to_owned(),
    };
    let [sx, sy, _] = geometry.spacing_mm;
    let square = shown
        .outer_iter()
        .map(|slice| square_pixels(slice, [sy, sx], options.part != Part::Phase))
        .collect::<rayspin_core::Result<Vec<_>>>()
        .map_err(core)?;
    drop(shown);
    let square: Vec<_> = square.iter().map(|slice| slice.view()).collect();
    let shown = ndarray::stack(Axis(0), &square).map_err(|e| Error::field(path, "image", "slices", e))?;
    let layout = Montage { slices: None, columns: *columns, gap: *gap };
    let grey = to_grey(shown.view(), limits);
    let blank = limits.blank(shown.view(), grey.view());
    let picture = montage(grey.view(), &layout).map_err(core)?;
    let longer = picture.nrows().max(picture.ncols()).max(1);
    let times = options.enlarge.max(options.least_side.div_ceil(longer)).max(1);
    let pixels = upscale_nearest(picture.view(), times).map_err(core)?;
    Ok(Picture { pixels, blank })
}

fn encode(
    path: &Path,
    [height, width]: [usize; 2],
    colour: ColorType,
    frames: &[&[u8]],
    milliseconds: u16,
) -> Result<()> {
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
        if frames.len() > 1 {
            encoder.set_animated(frames.len() as u32, 0).map_err(encoded)?;
            encoder.set_frame_delay(milliseconds, 1000).map_err(encoded)?;
        }
        let mut writer = encoder.write_header().map_err(encoded)?;
        for bytes in frames {
            writer.write_image_data(bytes).map_err(encoded)?;
        }
        writer.finish().map_err(encoded)?;
        io::Write::flush(&mut file).map_err(fail)
    })
}
