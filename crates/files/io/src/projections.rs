//! CT scans whose projections are read some views at a time.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ndarray::{Array3, ArrayViewMut3};
use rayspin_core::{ProjectionGeometry, expect_len, expect_shape, voxels};
use rayspin_device::Cpu;
use rayspin_scan::ct::{Counts, Light, Measured, PixelSize, Scan};

use crate::{Error, Result};

/// Where projections are.
pub(crate) trait Source: Send {
    /// The numbers of some views, in C order.
    fn read(&mut self, views: Range<usize>, cpu: &Cpu) -> Result<Vec<f32>>;
}

/// What a file says of its projections.
pub(crate) struct Header {
    /// `[view, row, column]`.
    pub(crate) shape: [usize; 3],
    /// Flat and dark fields, unless the projections are line integrals. Without frames the file states none.
    pub(crate) frames: Option<[Array3<f32>; 2]>,
    /// Radian; none where the file states none.
    pub(crate) angles: Option<Vec<f64>>,
    pub(crate) geometry: Option<ProjectionGeometry>,
    pub(crate) pixel: Option<PixelSize>,
    /// What the reader assumed.
    pub(crate) notes: Vec<String>,
    pub(crate) places: Places,
}

/// Where a format has what a file may lack, for errors.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) flats: &'static str,
    pub(crate) angles: &'static str,
    /// What makes projections line integrals, in words.
    pub(crate) lines: Option<&'static str>,
}

/// A CT scan in a file: everything but its projections, which are read some views at a time.
///
/// ```
/// use ndarray::Array3;
/// use rayspin_scan::ct::{Measured, Scan};
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
    /// None where the file states none.
    angles: Option<Vec<f64>>,
    geometry: Option<ProjectionGeometry>,
    pixel: Option<PixelSize>,
    pub(crate) middle_mm: Option<[f64; 2]>,
    /// What the reader assumed.
    notes: Vec<String>,
    places: Places,
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
    /// The same projections as counts with these flat and dark fields `[frame, row, column]`, in place of the
    /// file's. Without `darks` the file's dark fields stay.
    pub fn with_fields(mut self, flats: Array3<f32>, darks: Option<Array3<f32>>) -> Self {
        let [_, rows, columns] = self.shape;
        if self.frames.is_none()
            && let Some(lines) = self.places.lines
        {
            self.notes.push(format!("{lines}; with `--flat` its numbers are taken as counts"));
        }
        let own = self.frames.take().map(|[_, darks]| darks);
        let darks = darks.or(own).unwrap_or_else(|| Array3::zeros((0, rows, columns)));
        Self { frames: Some([flats, darks]), ..self }
    }

    /// The same projections with these angles, radian, where the file states none.
    ///
    /// Errors: another number than views; a file that states its angles.
    pub fn with_angles(self, angles: Vec<f64>) -> Result<Self> {
        if self.angles.is_some() {
            let (field, expected) = (self.places.angles, "a file that states no angles");
            return Err(Error::field(&self.path, field, expected, "one that does"));
        }
        expect_len("angles", &self.shape[..1], angles.len()).map_err(|e| Error::core(&self.path, e))?;
        Ok(Self { angles: Some(angles), ..self })
    }

    /// Checked as [`Scan::new`] does.
    pub(crate) fn new(
        path: &Path,
        kind: &'static str,
        source: Box<dyn Source>,
        header: Header,
    ) -> Result<Self> {
        let core = |e| Error::core(path, e);
        let Header { shape, frames, angles, geometry, pixel, notes, places } = header;
        voxels(&shape).map_err(core)?;
        if let Some(angles) = &angles {
            expect_len("angles", &shape[..1], angles.len()).map_err(core)?;
        }
        if let Some(geometry) = &geometry {
            expect_shape("projections", &geometry.shape(), &shape).map_err(core)?;
        }
        let path = path.to_owned();
        Ok(Self {
            path,
            kind,
            source,
            shape,
            frames,
            angles,
            geometry,
            pixel,
            middle_mm: None,
            notes,
            places,
            light: None,
            done: 0,
            without: 0,
        })
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

    /// Whether the file states the angle of each view.
    pub fn states_angles(&self) -> bool {
        self.angles.is_some()
    }

    /// The angle of each view, radian; empty where the file states none.
    pub fn angles(&self) -> &[f64] {
        self.angles.as_deref().unwrap_or_default()
    }

    /// The distance between pixels, where the file states it beside or without the rays.
    pub fn pixel(&self) -> Option<PixelSize> {
        self.pixel
    }

    /// Where the middle of a view lies in the coordinates that an image states ([`Views`](crate::Views)).
    pub fn middle_mm(&self) -> Option<[f64; 2]> {
        self.middle_mm
    }

    /// Errors: counts without flat fields; views without angles.
    pub fn expect_complete(&self) -> Result<()> {
        if let Some([flats, _]) = &self.frames
            && flats.is_empty()
        {
            let lines = self.places.lines.map(|lines| format!("; {lines}")).unwrap_or_default();
            let hint =
                format!("`--flat` says what the detector counts without the object (flat field){lines}");
            let expected = "flat fields, as projections are counts";
            return Err(Error::field(&self.path, self.places.flats, expected, "nothing").with_hint(hint));
        }
        if self.angles.is_none() {
            let error = Error::field(&self.path, self.places.angles, "the angle of each view", "nothing");
            return Err(error.with_hint("`--arc 180` says that the views are spread evenly over 180 degrees"));
        }
        Ok(())
    }

    /// The rays; none where the file does not tell them.
    pub fn geometry(&self) -> Option<&ProjectionGeometry> {
        self.geometry.as_ref()
    }

    /// The line integrals `[view, row, column]` of the next `count` views in C order, or of as many as are
    /// left.
    ///
    /// Errors: damage; numbers that are not finite; a view without photons; memory.
    pub fn lines(&mut self, count: usize, cpu: &Cpu) -> Result<Vec<f32>> {
        let [view_count, rows, columns] = self.shape;
        let part = self.done..view_count.min(self.done.saturating_add(count));
        if part.is_empty() {
            return Ok(Vec::new());
        }
        self.expect_complete()?;
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
        self.expect_complete()?;
        let values = self.source.read(0..self.shape[0], cpu)?;
        let views = Array3::from_shape_vec(self.shape, values)
            .map_err(|e| Error::field(&self.path, "projections", "whole views", e))?;
        let measured = match self.frames {
            None => Measured::Lines(views),
            Some([flats, darks]) => Measured::Counts(Counts { views, flats, darks }),
        };
        let scan = Scan::new(measured, self.angles.unwrap_or_default(), self.geometry);
        Ok(Scan { pixel: self.pixel, ..scan.map_err(|e| Error::core(&self.path, e))? })
    }
}
