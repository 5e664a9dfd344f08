//! A sliding window over the readouts of arrays without a header.

use std::ops::Range;

use ndarray::Axis;
use rayspin_core::{C32, Error, Ranges, Result, Trajectory};
use rayspin_scan::mri::{Frame, Label, MAPS_SAMPLES, Samples, StreamItem, Window, readouts};

use crate::cfl::Layout;
use crate::{ArrayFrame, ArraySeries};

/// A source for `rayspin_mri::recon::reconstruct_stream`: an image at each step of a window over the readouts
/// of samples along a trajectory, in their order. Repetitions are joined; slices have a window each.
///
/// ```
/// use ndarray::{Array2, Array3};
/// use rayspin_core::{C32, Monitor};
/// use rayspin_io::{ArrayWindows, ScanFile, ScanOptions, npy, read_scan};
/// use rayspin_scan::mri::Window;
///
/// # let folder = tempfile::tempdir()?;
/// let [samples, spokes] = ["samples.npy", "spokes.npy"].map(|name| folder.path().join(name));
/// npy::write(&samples, Array2::from_elem((2, 30 * 32), C32::ONE).view())?; // 2 coils, 30 spokes
/// let point = |(spoke, at, axis): (usize, usize, usize)| {
///     let (sin, cos) = (spoke as f64 * 1.942).sin_cos();
///     (at as f64 - 16.0) * if axis == 0 { cos } else { sin }
/// };
/// npy::write(&spokes, Array3::from_shape_fn((30, 32, 2), point).view())?;
/// let options = ScanOptions {
///     trajectory: Some(spokes),
///     matrix: Some(vec![32, 32]),
///     ..ScanOptions::default()
/// };
/// let ScanFile::Frame(array) = read_scan(&samples, &options, &Monitor::silent())? else {
///     unreachable!("an array holds one image")
/// };
/// let window = Window { readouts: 10, stride: 5, frames: None };
/// let windows = ArrayWindows::of_frame(*array, &window, None)?;
/// assert_eq!(windows.volumes(), 5); // spokes 0–9, 5–14, … 20–29
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ArrayWindows {
    slices: Vec<Slice>,
    window: Window,
    /// Images of each slice.
    count: usize,
    layout: Layout,
    /// Slices whose maps were given.
    maps: usize,
    /// The frame for the first slice's maps, to look at.
    first_maps: Option<Frame>,
    /// The next image.
    next: usize,
}

/// All samples of a slice, and where its readouts are among them.
#[derive(Debug)]
struct Slice {
    frame: Frame,
    readouts: Vec<Range<usize>>,
}

impl Slice {
    fn new(frame: Frame, chosen: Option<&Ranges>) -> Result<Self> {
        let Samples::NonCartesian { trajectory, .. } = &frame.samples else {
            let found = "samples on a grid, whose order of acquisition is not known";
            return Err(Error::value("window", "samples along a trajectory", found));
        };
        let mut ranges = readouts(trajectory);
        if let Some(chosen) = chosen {
            chosen.expect_among("readouts", &Vec::from_iter(0..ranges.len()))?;
            ranges = chosen.below(ranges.len()).map(|readout| ranges[readout].clone()).collect();
        }
        Ok(Self { frame, readouts: ranges })
    }

    /// The image of some readouts.
    fn part(&self, chosen: Range<usize>, repetition: usize) -> Result<Frame> {
        let Samples::NonCartesian { trajectory, data } = &self.frame.samples else {
            return Ok(self.frame.clone());
        };
        let kept: Vec<usize> = self.readouts[chosen].iter().flat_map(Clone::clone).collect();
        let samples = Samples::NonCartesian {
            trajectory: Trajectory::from_cycles_per_fov(trajectory.points().select(Axis(0), &kept))?,
            data: data.select(Axis(1), &kept),
        };
        let Frame { label, matrix, geometry, .. } = &self.frame;
        let label = Label { repetition: u16::try_from(repetition).unwrap_or(u16::MAX), ..*label };
        let (matrix, geometry) = (matrix.clone(), *geometry);
        let (times, calibration, interpolated) = (None, None, self.frame.interpolated);
        Ok(Frame { label, matrix, geometry, samples, times, calibration, interpolated })
    }

    /// The first readouts that hold `samples` samples, or all.
    fn first(&self, samples: usize) -> Range<usize> {
        let mut sum = 0;
        let enough = self.readouts.iter().position(|readout| {
            sum += readout.len();
            sum >= samples
        });
        0..enough.map_or(self.readouts.len(), |last| last + 1)
    }

    /// Samples that tell the sensitivities.
    fn maps_samples(&self) -> usize {
        let voxels: f64 = self.frame.matrix.iter().map(|&n| n as f64).product();
        (MAPS_SAMPLES * voxels).min(1e15) as usize
    }
}

impl ArrayWindows {
    /// Windows over the samples of one image; over its chosen readouts, counted from 0.
    ///
    /// Errors: samples on a grid; a readout that there is not; a window that the readouts do not have, as
    /// [`Window::images`].
    pub fn of_frame(array: ArrayFrame, window: &Window, chosen: Option<&Ranges>) -> Result<Self> {
        Self::new(vec![Slice::new(array.frame, chosen)?], window, array.layout)
    }

    /// Windows over the images of `labels`, whose repetitions are joined.
    ///
    /// Errors: as [`ArrayWindows::of_frame`] and [`ArraySeries::frame`].
    pub fn of_series(
        series: &ArraySeries,
        labels: &[Label],
        window: &Window,
        chosen: Option<&Ranges>,
        notes: &mut Vec<String>,
    ) -> crate::Result<Self> {
        let core = |error| crate::Error::core(series.path(), error);
        let of_slice = |label: &Label| Label { repetition: 0, ..*label };
        let mut slices: Vec<Slice> = Vec::new();
        for label in labels {
            if slices.iter().any(|slice| of_slice(&slice.frame.label) == of_slice(label)) {
                continue;
            }
            let labels: Vec<Label> =
                labels.iter().filter(|other| of_slice(other) == of_slice(label)).copied().collect();
            slices.push(Slice::new(series.joined(&labels, usize::MAX, notes)?, chosen).map_err(core)?);
        }
        Self::new(slices, window, series.layout(labels)).map_err(core)
    }

    fn new(mut slices: Vec<Slice>, window: &Window, layout: Layout) -> Result<Self> {
        let shortest = slices.iter().map(|slice| slice.readouts.len()).min().unwrap_or(0);
        let (window, count, maps) = (*window, window.images(shortest)?, slices.len());
        let used = (count - 1) * window.stride + window.readouts;
        slices.iter_mut().for_each(|slice| slice.readouts.truncate(used));
        Ok(Self { slices, window, count, layout, maps, first_maps: None, next: 0 })
    }

    /// The labels of the images: all slices of the first point in time, then all slices of the next.
    pub fn labels(&self) -> Vec<Label> {
        (0..self.count * self.slices.len()).map(|index| self.label(index)).collect()
    }

    fn label(&self, index: usize) -> Label {
        let (time, slice) = (index / self.slices.len(), index % self.slices.len());
        Label { repetition: u16::try_from(time).unwrap_or(u16::MAX), ..self.slices[slice].frame.label }
    }

    /// Slices of each point in time.
    pub fn slices(&self) -> usize {
        self.slices.len()
    }

    /// Points in time.
    pub fn volumes(&self) -> usize {
        self.count
    }

    /// Where the axes of the images go in a BART array.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Bytes of all samples and their places.
    pub fn held_bytes(&self) -> u64 {
        let bytes_of = |slice: &Slice| match &slice.frame.samples {
            Samples::NonCartesian { trajectory, data } => {
                size_of::<C32>() * data.len() + size_of::<f64>() * trajectory.points().len()
            }
            Samples::Cartesian { .. } => 0,
        };
        self.slices.iter().map(|slice| bytes_of(slice) as u64).sum()
    }

    /// Makes frames for the coil sensitivities come before the images, if a single image has too few samples
    /// to estimate them well, as [`ArraySource::learn_maps`](crate::ArraySource::learn_maps).
    ///
    /// Errors: as [`ArrayWindows::image`].
    pub fn learn_maps(&mut self, notes: &mut Vec<String>) -> Result<Option<&Frame>> {
        if let Some(slice) = self.slices.first()
            && slice.first(slice.maps_samples()).len() > self.window.readouts
        {
            self.maps = 0;
            self.first_maps = Some(self.maps_frame(0)?);
            notes.push(
                "coil sensitivities are estimated from the first readouts of a slice, for all images".into(),
            );
        }
        Ok(self.first_maps.as_ref())
    }

    fn maps_frame(&self, slice: usize) -> Result<Frame> {
        let slice = &self.slices[slice];
        slice.part(slice.first(slice.maps_samples()), 0)
    }

    /// Image `index` of the stream, to look at, without going on to it. Errors: numbers that are no
    /// trajectory; no such image.
    pub fn image(&self, index: usize) -> Result<Frame> {
        let count = self.count * self.slices.len();
        if index >= count {
            return Err(Error::value("image", format!("below {count}"), index));
        }
        let (time, slice) = (index / self.slices.len(), index % self.slices.len());
        let start = time * self.window.stride;
        self.slices[slice].part(start..start + self.window.readouts, time)
    }

    /// The image that [`ArrayWindows::next_item`] gives next; none while maps come first, and after the last
    /// image.
    pub fn upcoming(&self) -> Option<Label> {
        let count = self.count * self.slices.len();
        (self.maps == self.slices.len() && self.next < count).then(|| self.label(self.next))
    }

    /// Goes on past the [upcoming](Self::upcoming) image, which [`ArrayWindows::image`] has given already.
    pub fn skip(&mut self) {
        self.next += 1;
    }

    /// The next of the stream, none after the last image. Errors: as [`ArrayWindows::image`].
    pub fn next_item(&mut self) -> Result<Option<StreamItem>> {
        if self.maps < self.slices.len() {
            let frame = match self.first_maps.take() {
                Some(frame) => frame,
                None => self.maps_frame(self.maps)?,
            };
            self.maps += 1;
            return Ok(Some(StreamItem::Maps(frame.label, frame)));
        }
        if self.next == self.count * self.slices.len() {
            return Ok(None);
        }
        let frame = self.image(self.next)?;
        self.next += 1;
        Ok(Some(StreamItem::Image(frame.label, frame)))
    }
}
