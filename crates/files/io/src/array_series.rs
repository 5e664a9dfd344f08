//! Several images of arrays without a header, read one at a time.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, Array3, Array4, ArrayD, Axis, Zip, s};
use rayspin_core::{C32, Trajectory};
use rayspin_scan::mri::{Frame, Label, MAPS_SAMPLES, StreamItem, Summary, samples_of};

use crate::arrays::Reading;
use crate::cfl::images::Images;
use crate::cfl::{Axes, Layout};
use crate::scan_file::{
    Beyond, ScanOptions, along_trajectory, expect_runs, geometry_note, images_of, on_grid, place,
    read_components,
};
use crate::{Error, Result};

/// The images of a BART array of k-space, or of samples along a trajectory: read from the file one at a time.
///
/// Each has the label that it would have in a scan with a header: TE counts contrasts, TIME repetitions,
/// TIME2 cardiac phases, SLICE slices and BATCH sets. Slices lie side by side along z, in a field
/// of view that [`ScanOptions::fov_mm`] states.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Monitor};
/// use rayspin_io::{ScanFile, ScanOptions, cfl, read_scan};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("kspace.cfl");
/// // READ 6, PHS1 5, COIL 2; TIME, dimension 10, has 3 repetitions.
/// let kspace = ArrayD::from_elem(IxDyn(&[6, 5, 1, 2, 1, 1, 1, 1, 1, 1, 3]), C32::new(1.0, 0.0));
/// cfl::write(&path, kspace.view())?;
/// let ScanFile::Series(series) = read_scan(&path, &ScanOptions::default(), &Monitor::silent())? else {
///     unreachable!("it has several images")
/// };
/// let repetitions: Vec<u16> = series.labels().map(|label| label.repetition).collect();
/// assert_eq!(repetitions, [0, 1, 2]);
/// let label = series.labels().last().unwrap_or_default();
/// let frame = series.frame(label, &mut Vec::new())?;
/// assert_eq!((frame.matrix, frame.label.repetition), (vec![5, 6], 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArraySeries {
    path: PathBuf,
    images: Images,
    reading: Reading,
    options: ScanOptions,
    beyond: Beyond,
    along: Option<Along>,
    notes: Vec<String>,
}

/// The trajectories of a series.
#[derive(Debug, Clone)]
struct Along {
    /// Which images have one of their own; one serves all where the format numbers none.
    images: Option<Images>,
    /// The points of all, one after another.
    trajectory: Trajectory,
    /// What the points of one run through.
    runs: Vec<usize>,
    /// `[z, y, x]` or `[y, x]`.
    matrix: Vec<usize>,
}

impl Along {
    /// The points of an image.
    fn of(&self, label: &Label) -> rayspin_core::Result<Trajectory> {
        let (count, place) = match &self.images {
            Some(images) => (images.count(), images.place(label)),
            None => (1, 0),
        };
        let samples = self.trajectory.samples() / count.max(1);
        let rows =
            self.trajectory.points().slice_move(s![place * samples..(place + 1) * samples, ..]).to_owned();
        Trajectory::from_cycles_per_fov(rows)
    }
}

impl ArraySeries {
    pub(crate) fn new(
        path: &Path,
        images: Images,
        reading: Reading,
        options: &ScanOptions,
        beyond: Beyond,
    ) -> Result<Self> {
        let mut notes = Vec::new();
        let along = match &options.trajectory {
            None => None,
            Some(file) => {
                let of_points = images_of(file)?;
                if let Some(of_points) = &of_points {
                    of_points.expect_to_fit(&images)?;
                }
                let (points, runs) = read_components(file, options)?;
                let (trajectory, matrix) = place(file, points, options, &mut notes)?;
                Some(Along { images: of_points, trajectory, runs, matrix })
            }
        };
        notes.extend(geometry_note(options));
        Ok(Self { path: path.to_owned(), images, reading, options: options.clone(), beyond, along, notes })
    }

    /// The images, in the order of their labels.
    pub fn labels(&self) -> impl Iterator<Item = Label> {
        self.images.labels().into_iter()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What was assumed, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What a frame of the series was understood as; sizes in the order x, y, z, or BART's for slices across
    /// the readout.
    pub fn summary(&self, frame: &Frame) -> Summary {
        let mut summary = frame.summary();
        if self.layout(&[frame.label]).axes == Axes::ReadIsZ {
            summary.matrix.reverse();
        }
        summary
    }

    /// Where the axes of the images of some labels go, written as one BART array: slices along SLICE, volumes
    /// along the dimensions that count them.
    pub fn layout(&self, labels: &[Label]) -> Layout {
        self.images.layout(labels, self.along.is_some())
    }

    /// Whether images have trajectories of their own.
    pub fn has_several_trajectories(&self) -> bool {
        self.along.as_ref().and_then(|along| along.images.as_ref()).is_some_and(|images| images.count() > 1)
    }

    /// Samples of each readout along a trajectory.
    pub fn readout(&self) -> Option<usize> {
        self.along.is_some().then(|| self.images.readout())
    }

    /// Bytes of the file that one image takes.
    pub fn image_bytes(&self) -> u64 {
        8 * self.images.image_len() as u64
    }

    /// Bytes that the series holds all along: its trajectories, and numbers whose axes were put in order.
    pub fn held_bytes(&self) -> u64 {
        self.trajectory_bytes() + self.images.memory_bytes()
    }

    /// Bytes of its trajectories.
    pub fn trajectory_bytes(&self) -> u64 {
        self.along.as_ref().map_or(0, |along| 8 * along.trajectory.points().len() as u64)
    }

    /// Bytes that reading one image takes besides the frame that is made.
    pub fn reading_bytes(&self) -> u64 {
        (self.reading.copies[usize::from(self.along.is_some())] - 1) * self.image_bytes()
    }

    /// Reads the samples of one image; what had to be assumed goes to `notes` (once each).
    ///
    /// Errors: a label that the series does not have; a file that cannot be read; samples that [`Frame`]
    /// refuses.
    pub fn frame(&self, label: Label, notes: &mut Vec<String>) -> Result<Frame> {
        self.expect(&label)?;
        let array = self.images.read(&label)?;
        let frame = match &self.along {
            None => on_grid(&self.path, (self.reading.grid)(&self.path, array)?.values, &self.options),
            Some(along) => {
                let (data, runs) = (self.reading.samples)(&self.path, array, None)?;
                expect_runs(&self.path, &runs, &along.runs)?;
                along
                    .of(&label)
                    .and_then(|trajectory| self.along_trajectory(along, data, trajectory, notes))
                    .map_err(|e| Error::core(&self.path, e))
            }
        };
        let mut frame = frame.map_err(|error| of_image(error, &label))?;
        if let Some(readouts) = &self.options.readouts {
            frame = frame.with_readouts(readouts).map_err(|e| Error::core(&self.path, e))?;
        }
        self.label(&mut frame, label);
        Ok(frame)
    }

    fn along_trajectory(
        &self,
        along: &Along,
        data: Array2<C32>,
        trajectory: Trajectory,
        notes: &mut Vec<String>,
    ) -> rayspin_core::Result<Frame> {
        along_trajectory(data, trajectory, &along.matrix, &self.options, self.beyond, notes)
    }

    fn expect(&self, label: &Label) -> Result<()> {
        if !self.images.holds(label) {
            return Err(Error::field(&self.path, "image", "one that the file holds", format!("{label:?}")));
        }
        Ok(())
    }

    /// Says which image a frame is, and where it lies.
    fn label(&self, frame: &mut Frame, label: Label) {
        frame.label = label;
        let slices = self.images.slices();
        if slices > 1 && frame.matrix.len() == 2 {
            let z =
                self.options.fov_mm.as_ref().and_then(|fov| fov.get(2)).map_or(1.0, |z| z / slices as f64);
            frame.geometry.spacing_mm[2] = z;
            frame.geometry.position_mm[2] += (f64::from(label.slice) - (slices / 2) as f64) * z;
        }
    }

    /// The first readouts of several images as one frame, to learn what all have in common: as many as hold
    /// `samples`, or all. Where a place of a grid is measured more than once it has the mean.
    ///
    /// Errors: as [`ArraySeries::frame`].
    pub(crate) fn joined(&self, labels: &[Label], samples: usize, notes: &mut Vec<String>) -> Result<Frame> {
        let label = labels.first().copied().unwrap_or_default();
        let mut frame = match &self.along {
            None => on_grid(&self.path, self.joined_grid(labels, samples)?, &self.options)?,
            Some(along) => {
                let core = |e| Error::core(&self.path, e);
                let (data, points) = self.joined_samples(along, labels, samples)?;
                let trajectory = Trajectory::from_cycles_per_fov(points).map_err(core)?;
                self.along_trajectory(along, data, trajectory, notes).map_err(core)?
            }
        };
        self.label(&mut frame, label);
        Ok(frame)
    }

    fn joined_grid(&self, labels: &[Label], samples: usize) -> Result<ArrayD<C32>> {
        let mut joined: Option<(Array4<C32>, Array3<f32>)> = None;
        let mut taken = 0;
        for label in labels {
            let grid = self.grid(label)?;
            let (coils, nz, ny, nx) = grid.dim();
            let (sum, counts) = joined
                .get_or_insert_with(|| (Array4::zeros((coils, nz, ny, nx)), Array3::zeros((nz, ny, nx))));
            for ((z, y), measured) in measured_lines(&grid) {
                if taken >= samples {
                    break;
                }
                let mut line = sum.slice_mut(s![.., z, y, ..]);
                line += &grid.slice(s![.., z, y, ..]);
                Zip::from(counts.slice_mut(s![z, y, ..])).and(&measured).for_each(|n, &m| *n += f32::from(m));
                taken += nx;
            }
            if taken >= samples {
                break;
            }
        }
        let (mut sum, counts) =
            joined.ok_or_else(|| Error::field(&self.path, "images", "at least one", 0))?;
        for mut coil in sum.outer_iter_mut() {
            Zip::from(&mut coil).and(&counts).for_each(|value, &count| *value /= count.max(1.0));
        }
        Ok(sum.into_dyn())
    }

    /// The grid `[coil, z, y, x]` of an image.
    fn grid(&self, label: &Label) -> Result<Array4<C32>> {
        let grid = (self.reading.grid)(&self.path, self.images.read(label)?)?.values;
        grid.into_dimensionality()
            .map_err(|e| Error::field(&self.path, "k-space", "an array [coil, z, y, x]", e))
    }

    /// Samples of a coil that the readouts of an image hold.
    fn samples_of(&self, label: &Label) -> Result<usize> {
        match &self.along {
            Some(along) => Ok(along.trajectory.samples() / along.images.as_ref().map_or(1, Images::count)),
            None => {
                let grid = self.grid(label)?;
                Ok(measured_lines(&grid).count() * grid.dim().3)
            }
        }
    }

    fn joined_samples(
        &self,
        along: &Along,
        labels: &[Label],
        samples: usize,
    ) -> Result<(Array2<C32>, Array2<f64>)> {
        let (mut data, mut points) = (Vec::new(), Vec::new());
        let (mut taken, readout) = (0, self.images.readout());
        for label in labels {
            if taken >= samples {
                break;
            }
            let (values, _) = (self.reading.samples)(&self.path, self.images.read(label)?, None)?;
            let core = |e| Error::core(&self.path, e);
            let trajectory = along.of(label).map_err(core)?;
            if trajectory.samples() != values.ncols() {
                let expected = format!("{}, as the trajectory has", trajectory.samples());
                return Err(Error::field(&self.path, "samples of an image", expected, values.ncols()));
            }
            let mut kept: Vec<usize> = match &self.options.readouts {
                Some(chosen) => samples_of(&trajectory, chosen).map_err(core)?,
                None => (0..values.ncols()).collect(),
            };
            kept.truncate((samples - taken).div_ceil(readout).saturating_mul(readout));
            data.push(values.select(Axis(1), &kept));
            points.push(trajectory.points().select(Axis(0), &kept));
            taken += kept.len();
        }
        let wrong = |e| Error::field(&self.path, "samples of images", "one number of coils and axes", e);
        let data: Vec<_> = data.iter().map(|part| part.view()).collect();
        let points: Vec<_> = points.iter().map(|part| part.view()).collect();
        Ok((
            ndarray::concatenate(Axis(1), &data).map_err(wrong)?,
            ndarray::concatenate(Axis(0), &points).map_err(wrong)?,
        ))
    }
}

/// The lines z, y of a grid `[coil, z, y, x]` in which anything was measured, and where along x.
fn measured_lines(grid: &Array4<C32>) -> impl Iterator<Item = ((usize, usize), Array1<bool>)> {
    let (_, nz, ny, _) = grid.dim();
    (0..nz).flat_map(move |z| (0..ny).map(move |y| (z, y))).filter_map(|(z, y)| {
        let line = grid.slice(s![.., z, y, ..]);
        let measured = line.map_axis(Axis(0), |coils| coils.iter().any(|v| *v != C32::ZERO));
        measured.iter().any(|&measured| measured).then_some(((z, y), measured))
    })
}

/// An error that says which image it is about.
fn of_image(error: Error, label: &Label) -> Error {
    let Error::Core { path, source: rayspin_core::Error::Value { what, expected, found } } = error else {
        return error;
    };
    let mut name = String::new();
    let counters = [
        ("contrast", label.contrast),
        ("cardiac phase", label.phase),
        ("repetition", label.repetition),
        ("slice", label.slice),
    ];
    for (counter, value) in counters.into_iter().filter(|(_, value)| *value > 0) {
        let _ = write!(name, ", {counter} {value}");
    }
    let what = if name.is_empty() { format!("{what} of the first image") } else { format!("{what}{name}") };
    Error::core(path, rayspin_core::Error::value(what, expected, found))
}

/// A source for `rayspin_mri::recon::reconstruct_stream`: images of an [`ArraySeries`], each read when it is
/// its turn.
#[derive(Debug)]
pub struct ArraySource {
    series: ArraySeries,
    labels: Vec<Label>,
    /// Slices whose maps were given.
    maps: usize,
    /// The frame for the first slice's maps, read ahead.
    first_maps: Option<Frame>,
    /// The next image.
    next: usize,
}

impl ArraySource {
    /// The images of `labels`, which are labels of the series in their order.
    pub fn new(series: ArraySeries, labels: Vec<Label>) -> Self {
        let mut source = Self { series, labels, maps: 0, first_maps: None, next: 0 };
        source.maps = source.slices();
        source
    }

    /// The arrays.
    pub fn series(&self) -> &ArraySeries {
        &self.series
    }

    /// The images.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Slices of each volume.
    pub fn slices(&self) -> usize {
        let first = self.labels.first().map(Label::volume);
        self.labels.iter().take_while(|label| Some(label.volume()) == first).count()
    }

    /// Volumes: repetitions, contrasts and cardiac phases.
    pub fn volumes(&self) -> usize {
        self.labels.len() / self.slices().max(1)
    }

    /// Makes frames for the coil sensitivities come before the images, if a single image has too few samples
    /// to estimate them well. Each slice then has one such frame: its first readouts, with 1.5 samples for
    /// each voxel. Returns the frame of the first slice, to look at, if so.
    ///
    /// Errors: as [`ArraySeries::frame`].
    pub fn learn_maps(&mut self, notes: &mut Vec<String>) -> Result<Option<&Frame>> {
        let first = self.labels.first().copied().unwrap_or_default();
        if self.series.samples_of(&first)? < self.maps_samples() {
            self.maps = 0;
            self.first_maps = Some(self.maps_frame(0, notes)?);
            notes.push(
                "coil sensitivities are estimated from the first readouts of a slice, for all images".into(),
            );
        }
        Ok(self.first_maps.as_ref())
    }

    fn maps_samples(&self) -> usize {
        let voxels = match &self.series.along {
            Some(along) => along.matrix.iter().map(|&n| n as f64).product(),
            None => self.series.images.places() as f64,
        };
        (MAPS_SAMPLES * voxels).min(1e15) as usize
    }

    fn maps_frame(&self, slice: usize, notes: &mut Vec<String>) -> Result<Frame> {
        let labels: Vec<Label> = self.labels.iter().skip(slice).step_by(self.slices()).copied().collect();
        self.series.joined(&labels, self.maps_samples(), notes)
    }

    /// The next of the stream, none after the last image. Errors: as [`ArraySeries::frame`].
    pub fn next(&mut self, notes: &mut Vec<String>) -> Result<Option<StreamItem>> {
        if self.maps < self.slices() {
            let frame = match self.first_maps.take() {
                Some(frame) => frame,
                None => self.maps_frame(self.maps, notes)?,
            };
            self.maps += 1;
            return Ok(Some(StreamItem::Maps(frame.label, frame)));
        }
        let Some(&label) = self.labels.get(self.next) else { return Ok(None) };
        self.next += 1;
        Ok(Some(StreamItem::Image(label, self.series.frame(label, notes)?)))
    }

    /// The image that [`ArraySource::next`] gives next; none while maps come first, and after the last image.
    pub fn upcoming(&self) -> Option<Label> {
        (self.maps == self.slices()).then(|| self.labels.get(self.next).copied()).flatten()
    }

    /// Goes on past the [upcoming](Self::upcoming) image, which [`ArraySeries::frame`] has given already.
    pub fn skip(&mut self) {
        self.next += 1;
    }
}
