//! CT scans whose projections are read some views at a time.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ndarray::{Array3, ArrayD, ArrayViewMut3, Axis};
use rayspin_core::{ProjectionGeometry, expect_len, expect_shape, voxels};
use rayspin_ct::scan::{Counts, Light, Measured, Scan};
use rayspin_device::Cpu;

use crate::format::any_of;
use crate::npy::NpyStream;
use crate::{Error, Format, Input, Result, endings};

/// Where projections are.
pub(crate) trait Source: Send {
    /// The numbers of some views, in C order.
    fn read(&mut self, views: Range<usize>, cpu: &Cpu) -> Result<Vec<f32>>;
}

fn another_shape(path: &Path, shape: &[usize]) -> Error {
    Error::field(
        path,
        "line integrals",
        "an array [view, row, column] or [view, column]",
        format!("{shape:?}"),
    )
}

impl Source for NpyStream {
    /// Views are read in their order.
    fn read(&mut self, views: Range<usize>, _: &Cpu) -> Result<Vec<f32>> {
        let view = self.shape().iter().skip(1).product::<usize>();
        self.read(views.len() * view)
    }
}

/// Projections in memory, which are read once.
struct Held {
    values: Vec<f32>,
    view: usize,
}

impl Source for Held {
    fn read(&mut self, views: Range<usize>, _: &Cpu) -> Result<Vec<f32>> {
        Ok(match views.len() * self.view == self.values.len() {
            true => std::mem::take(&mut self.values),
            false => self.values[views.start * self.view..views.end * self.view].to_vec(),
        })
    }
}

/// What a file says of its projections.
pub(crate) struct Header {
    /// `[view, row, column]`.
    pub(crate) shape: [usize; 3],
    /// Flat and dark fields, unless the projections are line integrals.
    pub(crate) frames: Option<[Array3<f32>; 2]>,
    /// Radian.
    pub(crate) angles: Vec<f64>,
    pub(crate) geometry: Option<ProjectionGeometry>,
    /// What the reader assumed.
    pub(crate) notes: Vec<String>,
}

/// A CT scan in a file: everything but its projections, which are read some views at a time.
///
/// ```
/// use ndarray::Array3;
/// use rayspin_ct::scan::{Measured, Scan};
/// use rayspin_device::Device;
/// use rayspin_io::{Projections, data_exchange};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("scan.h5");
/// let scan = Scan::new(Measured::Lines(Array3::ones((3, 1, 8))), vec![0.0, 1.0, 2.0], None)?;
/// data_exchange::write(&file, &scan)?;
/// let mut views = Projections::open(&file)?;
/// assert_eq!(views.lines(2, Device::cpu()?.cpu_side())?.len(), 2 * 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Projections {
    path: PathBuf,
    kind: &'static str,
    source: Box<dyn Source>,
    shape: [usize; 3],
    /// Flat and dark fields, unless the projections are line integrals.
    frames: Option<[Array3<f32>; 2]>,
    angles: Vec<f64>,
    geometry: Option<ProjectionGeometry>,
    /// What the reader assumed.
    notes: Vec<String>,
    /// Made of the frames when it is first needed.
    light: Option<Light>,
    done: usize,
    /// Measurements without photons.
    without: usize,
}

impl fmt::Debug for Projections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Projections").field("path", &self.path).field("shape", &self.shape).finish()
    }
}

impl Projections {
    /// Opens a scan of any format that holds CT scans, by its content. A name after a colon chooses one of several ([`Input`]).
    ///
    /// Errors: a file of no such format; errors of the format's reader.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let input = Input::of(path);
        let format = input.format()?;
        let Some(open) = format.projections else {
            let of = endings(|format| format.projections.is_some());
            return Err(Error::unsupported(&input.file, format!("reading a CT scan from {format}"))
                .with_hint(format!("give a CT scan as {}", any_of(&of))));
        };
        open(&input.file, input.name.as_deref())
    }

    /// Line integrals that are read from an array `[view, row, column]` or `[view, column]` as they arrive.
    ///
    /// Errors: another number of axes, or of angles.
    pub fn of_stream(path: impl AsRef<Path>, stream: NpyStream, angles: Vec<f64>) -> Result<Self> {
        let path = path.as_ref();
        let shape = match *stream.shape() {
            [views, columns] => [views, 1, columns],
            [views, rows, columns] => [views, rows, columns],
            ref other => return Err(another_shape(path, other)),
        };
        let header = Header { shape, frames: None, angles, geometry: None, notes: Vec::new() };
        Self::new(path, "array", Box::new(stream), header)
    }

    /// Line integrals in memory, `[view, row, column]` or `[view, column]`.
    ///
    /// Errors: another number of axes, or of angles.
    pub fn of_array(path: impl AsRef<Path>, lines: ArrayD<f32>, angles: Vec<f64>) -> Result<Self> {
        let path = path.as_ref();
        let shape = match *lines.shape() {
            [views, columns] => [views, 1, columns],
            [views, rows, columns] => [views, rows, columns],
            ref other => return Err(another_shape(path, other)),
        };
        let lines = if lines.is_standard_layout() { lines } else { lines.as_standard_layout().into_owned() };
        let header = Header { shape, frames: None, angles, geometry: None, notes: Vec::new() };
        let held = Held { values: lines.into_raw_vec_and_offset().0, view: shape[1] * shape[2] };
        Self::new(path, "array", Box::new(held), header)
    }

    /// The same projections as counts with these flat and dark fields, `[frame, row, column]`.
    pub fn with_fields(self, flats: Array3<f32>, darks: Array3<f32>) -> Self {
        Self { frames: Some([flats, darks]), ..self }
    }

    /// Whether a file holds a CT scan. Files that cannot be read hold none.
    pub fn are_in(path: impl AsRef<Path>) -> bool {
        let input = Input::of(path);
        let holds = |format: &Format| format.holds_projections.is_some_and(|holds| holds(&input.file));
        input.format().is_ok_and(holds)
    }

    /// Checked as [`Scan::new`] does.
    pub(crate) fn new(
        path: &Path,
        kind: &'static str,
        source: Box<dyn Source>,
        header: Header,
    ) -> Result<Self> {
        let core = |e| Error::core(path, e);
        let Header { shape, frames, angles, geometry, notes } = header;
        voxels(&shape).map_err(core)?;
        expect_len("angles", &shape[..1], angles.len()).map_err(core)?;
        if let Some(geometry) = &geometry {
            expect_shape("projections", &geometry.shape(), &shape).map_err(core)?;
        }
        let path = path.to_owned();
        let light = None;
        Ok(Self { path, kind, source, shape, frames, angles, geometry, notes, light, done: 0, without: 0 })
    }

    /// The name of the file's format for people, such as Data Exchange.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The shape of all projections, `[view, row, column]`.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Numbers of flat and dark fields; none where the projections are line integrals.
    pub fn frames(&self) -> Option<[usize; 2]> {
        self.frames.as_ref().map(|frames| frames.each_ref().map(|frames| frames.dim().0))
    }

    /// The angle of each view, radian.
    pub fn angles(&self) -> &[f64] {
        &self.angles
    }

    /// The rays; none where the file does not tell them.
    pub fn geometry(&self) -> Option<&ProjectionGeometry> {
        self.geometry.as_ref()
    }

    /// The line integrals `[view, row, column]` of the next `count` views in C order, or of as many as are left.
    ///
    /// Errors: damage; numbers that are not finite; a view without photons; memory.
    pub fn lines(&mut self, count: usize, cpu: &Cpu) -> Result<Vec<f32>> {
        let [all, rows, columns] = self.shape;
        let part = self.done..all.min(self.done.saturating_add(count));
        if part.is_empty() {
            return Ok(Vec::new());
        }
        let mut values = self.source.read(part.clone(), cpu)?;
        let core = |e| Error::core(&self.path, e);
        if let Some([flats, darks]) = &self.frames {
            let light = match self.light.take() {
                Some(light) => light,
                None => Light::new(flats.view(), darks.view()).map_err(core)?,
            };
            let views = ArrayViewMut3::from_shape((part.len(), rows, columns), &mut values)
                .map_err(|e| Error::field(&self.path, "projections", "whole views", e))?;
            self.without += light.lines(cpu, views, part.start).map_err(core)?;
            self.light = Some(light);
        }
        self.done = part.end;
        Ok(values)
    }

    /// What was assumed and mended so far, for people.
    pub fn notes(&self) -> Vec<String> {
        let mended = self.light.as_ref().map_or_else(Vec::new, |light| light.notes(self.without));
        self.notes.iter().cloned().chain(mended).collect()
    }

    /// The whole scan, as it was measured.
    ///
    /// Errors: damage; no views; fields of another size than the projections; memory.
    pub fn into_scan(mut self, cpu: &Cpu) -> Result<Scan> {
        let values = self.source.read(0..self.shape[0], cpu)?;
        let views = Array3::from_shape_vec(self.shape, values)
            .map_err(|e| Error::field(&self.path, "projections", "whole views", e))?;
        let measured = match self.frames {
            None => Measured::Lines(views),
            Some([flats, darks]) => Measured::Counts(Counts { views, flats, darks }),
        };
        Scan::new(measured, self.angles, self.geometry).map_err(|e| Error::core(&self.path, e))
    }
}

/// The numbers of an array or image: `[view, row, column]`, or `[view, column]`. The slices of an image are views, and one slice is a
/// sinogram.
///
/// Errors: a file of another kind; numbers with imaginary parts.
pub fn read_views(path: impl AsRef<Path>) -> Result<ArrayD<f32>> {
    let path = path.as_ref();
    if !crate::detect(path)?.reads_arrays() {
        let image = crate::read_volume(path)?.image.into_data();
        return Ok(if image.shape()[0] == 1 { image.index_axis_move(Axis(0), 0) } else { image });
    }
    let array = crate::read_array(path, "line integrals")?;
    match array.iter().find(|value| value.im != 0.0) {
        Some(value) => {
            Err(Error::field(path, "line integrals", "real numbers", format!("the number {value}")))
        }
        None => Ok(array.mapv(|value| value.re)),
    }
}
