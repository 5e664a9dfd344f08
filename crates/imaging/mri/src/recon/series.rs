use ndarray::{ArrayD, IxDyn};
use rayspin_core::{C32, Error, Image, Monitor, Ranges, Result, voxels};
use rayspin_device::cpu::{prefer_huge_pages, zeroed};
use rayspin_device::{Cpu, Device};

use super::judge::Judge;
use super::lanes::with_lanes;
use super::run::{RunEnd, SeriesRun, as_volumes};
use super::{Certificate, ReconOptions, Reconstructor, Searched, Solve};
use crate::corrections::measure;
use crate::encoding::joined;
use crate::methods::Span;
use crate::prepare::Preparation;
use crate::scan::{
    Frame, FrameIndex, FrameOptions, Label, LabelCounter, Scan, SeriesFrames, Window, grid_of,
};

/// Which images of a scan are reconstructed. All images of an encoding are taken unless some are named; with
/// a window, the first contrast, cardiac phase and set unless one is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Encoding; the first that holds images when absent.
    pub encoding: Option<usize>,
    /// Only these slices.
    pub slice: Option<Ranges>,
    /// Only these repetitions.
    pub repetition: Option<Ranges>,
    /// Only these contrasts (echoes).
    pub contrast: Option<Ranges>,
    /// Only these cardiac phases.
    pub phase: Option<Ranges>,
    /// Only these sets.
    pub set: Option<Ranges>,
    /// One image of each window over the readouts, taken across repetitions; the scan's own images when
    /// absent.
    pub window: Option<Window>,
}

/// The images of a scan and how they came about.
#[derive(Debug, Clone)]
pub struct ScanImage {
    /// `[z, y, x]`, or `[volume, z, y, x]` when there are several, in the order of the labels; coil images
    /// that are not combined are `[coil, z, y, x]`. Over a temporal basis the volumes are its coefficients,
    /// in the order of its columns. Slices that no single geometry describes are several
    /// [stacks](Image::stacks).
    pub image: Image,
    /// One entry a frame that was solved for iteratively.
    pub solves: Vec<Solve>,
    /// Sensitivity maps `[coil, z, y, x]`, or `[set, coil, z, y, x]`, when the method used any: of the first
    /// volume, or of the first readouts of each slice. They are of the scan's own coils, whatever was
    /// done to these.
    pub maps: Option<ArrayD<C32>>,
    /// What was assumed, for the user to see.
    pub notes: Vec<String>,
    /// What was measured of the transforms, once for each plan: of every trajectory, or grid, that the images
    /// have.
    pub certificates: Vec<Certificate>,
    /// The λ that was searched for, with [`ReconOptions::search_lambda`].
    pub searched: Option<Searched>,
}

/// Reconstructs the selected images of a scan, one frame after another; plans are reused while the trajectory
/// stays the same. Where each of several volumes has too few samples for maps of its own
/// ([`MAPS_SAMPLES`](crate::scan::MAPS_SAMPLES)), the maps for all come from the first readouts of a slice.
///
/// Errors: an option out of range; a selection that the scan does not hold; volumes with different
/// slices; whatever assembling or reconstructing a frame refuses.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::Device;
/// use rayspin_mri::recon::{ReconOptions, Selection, reconstruct_scan};
/// use rayspin_mri::methods::Cartesian;
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// let small = SimulateOptions { matrix: [24, 24, 1], coils: 2, ..SimulateOptions::default() };
/// let simulation = simulate(&small, &Monitor::silent())?;
/// let found = reconstruct_scan(
///     &Device::cpu()?,
///     &simulation.scan,
///     &Selection::default(),
///     &Default::default(),
///     &ReconOptions::of(Cartesian::default()),
///     &Monitor::silent(),
/// )?;
/// assert_eq!(found.image.shape_zyx(), [1, 24, 24]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn reconstruct_scan(
    device: &Device,
    scan: &Scan,
    selection: &Selection,
    frames: &FrameOptions,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let mut notes = scan.notes.clone();
    let index = scan.frames()?;
    let labels = selection.labels(&index, &mut notes)?;
    let slices = labels.first().map_or_else(Vec::new, |label| index.places().slices(label.encoding));
    let several = labels.iter().any(|label| label.volume() != labels[0].volume());
    let series = match several || selection.window.is_some() {
        true => Some(index.series(&labels, selection.window.as_ref(), frames.readouts.as_ref())?),
        false => None,
    };
    let labels = series.as_ref().map_or(labels, SeriesFrames::labels);
    let mut options = options.clone();
    if options.prepare.noise.is_none() {
        options.prepare.noise = Some(measure(scan));
    }
    let run = SeriesRun::new(device, Frames { labels: &labels, slices: &slices, notes }, &options)?;
    let mut learned = 0..series.as_ref().filter(|_| options.learns_maps()).map_or(0, SeriesFrames::slices);
    let learns: &mut LearnMaps<'_> = &mut |notes| match (&series, learned.next()) {
        (Some(series), Some(slice)) => series.maps(slice, frames, notes),
        _ => Ok(None),
    };
    let mut images = 0..labels.len();
    let mut source = |label: Label, notes: &mut Vec<String>| match (&series, images.next()) {
        (Some(series), Some(number)) => series.image(number, frames, notes),
        _ => index.assemble(label, frames, notes),
    };
    images_of(run, &labels, learns, &mut source, monitor)
}

/// The frames of a series.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    /// Their labels, in the order in which they come: volume by volume, slices by their places
    /// ([`SlicePlaces`](crate::scan::SlicePlaces)).
    pub labels: &'a [Label],
    /// The slice counters of the whole scan in the order of their places, which given maps are for.
    pub slices: &'a [u16],
    /// What their reader assumed.
    pub notes: Vec<String>,
}

/// [`reconstruct_scan`] of frames that come from anywhere: `source` makes the frame of each label, in their
/// order.
///
/// Errors: as [`reconstruct_scan`], and errors of `source`.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::Device;
/// use rayspin_mri::methods::Cartesian;
/// use rayspin_mri::recon::{Frames, ReconOptions, reconstruct_frames};
/// use rayspin_mri::scan::{FrameOptions, Label};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// let (device, monitor) = (Device::cpu()?, Monitor::silent());
/// let options = SimulateOptions { matrix: [16, 16, 1], repetitions: 3, ..SimulateOptions::default() };
/// let scan = simulate(&options, &monitor)?.scan;
/// let index = scan.frames()?;
/// let labels: Vec<Label> = index.labels().collect();
/// let frames = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
/// let mut source = |label, notes: &mut Vec<String>| index.assemble(label, &FrameOptions::default(), notes);
/// let options = ReconOptions::of(Cartesian::default());
/// let found = reconstruct_frames(&device, frames, &mut source, &options, &monitor)?;
/// assert_eq!(found.image.data().shape(), [3, 1, 16, 16]); // [volume, z, y, x]
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn reconstruct_frames(
    device: &Device,
    frames: Frames<'_>,
    source: &mut dyn FnMut(Label, &mut Vec<String>) -> Result<Frame>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let labels = frames.labels;
    images_of(SeriesRun::new(device, frames, options)?, labels, &mut |_| Ok(None), source, monitor)
}

/// The next slice's samples that maps are learned from.
type LearnMaps<'a> = dyn FnMut(&mut Vec<String>) -> Result<Option<(Label, Frame)>> + 'a;

fn images_of(
    mut run: SeriesRun,
    labels: &[Label],
    learns: &mut LearnMaps<'_>,
    source: &mut dyn FnMut(Label, &mut Vec<String>) -> Result<Frame>,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let (volumes, slices) = grid_of(labels)?;
    let images = run.images_of(volumes);
    let mut stacked = Stack::new(images * slices);
    with_lanes(&mut run, monitor, |lanes| {
        while let Some((label, frame)) = learns(&mut lanes.run.notes)? {
            lanes.learn_maps(label, &frame)?;
        }
        let mut take = |image, run: &mut SeriesRun| stacked.push(image, run.device().cpu_side());
        for label in labels {
            let frame = source(*label, &mut lanes.run.notes)?;
            lanes.push(*label, frame, &mut take)?;
            monitor.check()?;
        }
        lanes.finish(&mut take)
    })?;
    let together = run.all_together(labels, monitor)?;
    together.into_iter().try_for_each(|image| stacked.push(image, run.device().cpu_side()))?;
    let data = stacked.finish(images)?;
    let stacks = run.stacks(data.shape()[data.ndim() - 3])?;
    let RunEnd { solves, maps, notes, certificates, searched } = run.finish()?;
    Ok(ScanImage { image: Image::of_stacks(data, stacks)?, solves, maps, notes, certificates, searched })
}

/// Reconstructs one frame, `[z, y, x]` or `[y, x]` as it is; `notes` are what its reader assumed.
///
/// Errors: as [`reconstruct_scan`].
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry, Monitor};
/// use rayspin_device::Device;
/// use rayspin_mri::methods::Cartesian;
/// use rayspin_mri::recon::{ReconOptions, reconstruct_frame};
/// use rayspin_mri::scan::Frame;
///
/// // k-space of 4 coils.
/// let kspace = ArrayD::from_elem(IxDyn(&[4, 12, 16]), C32::ONE);
/// let frame = Frame::from_grid(kspace, Geometry::default())?;
/// let options = ReconOptions::of(Cartesian::default());
/// let found = reconstruct_frame(&Device::cpu()?, frame, Vec::new(), &options, &Monitor::silent())?;
/// assert_eq!(found.image.shape_zyx(), [1, 12, 16]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn reconstruct_frame(
    device: &Device,
    frame: Frame,
    notes: Vec<String>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let (frame, of_frames) = match &options.basis {
        None => (frame, None),
        Some(basis) => {
            basis.expect_frames(1)?;
            let (frame, of_frames) = joined(vec![frame])?;
            (frame, Some(of_frames))
        }
    };
    image_of_frame(device, frame, of_frames, notes, options, monitor)
}

/// [`reconstruct_frame`] of a frame that several may be joined to.
pub(super) fn image_of_frame(
    device: &Device,
    frame: Frame,
    of_frames: Option<Vec<usize>>,
    mut notes: Vec<String>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let mut reconstructor = Reconstructor::new(device, options.clone())?;
    let mut preparation = Preparation::new(&options.prepare, &mut notes)?;
    let (label, geometry, dims) = (frame.label, frame.geometry, frame.matrix.len());
    let mut judge = Judge::default();
    judge.look(label, &frame);
    notes.extend(judge.notes());
    reconstructor.prepare(&mut preparation, &frame, &mut notes, monitor)?;
    if let Some(given) = &options.maps
        && preparation.changes_coils()
    {
        reconstructor.set_maps(Some(preparation.maps_of_prepared(&label, given.as_ref().clone())?));
    }
    let searched = match options.search_lambda {
        true => Some(reconstructor.search(&frame, &mut notes, monitor)?),
        false => None,
    };
    let mut result = match options.method.uses().span {
        Span::Frame => reconstructor.frame_of(frame, of_frames, monitor)?,
        Span::Series => {
            let mut made = reconstructor.series(&[frame], monitor)?;
            made.image.index_axis_inplace(ndarray::Axis(0), 0);
            made
        }
    };
    if options.basis.as_ref().is_some_and(|basis| basis.coefficients() == 1) {
        result.image.index_axis_inplace(ndarray::Axis(0), 0);
    }
    if options.coil_images() || options.basis.is_some() {
        result.image = as_volumes(result.image, dims);
    }
    notes.extend(result.notes);
    let of_scan = |maps| Ok(as_volumes(preparation.maps_of_scan(&label, maps, dims)?, dims));
    Ok(ScanImage {
        image: Image::new(result.image, geometry)?,
        solves: result.solve.into_iter().collect(),
        maps: result.maps.map(of_scan).transpose()?,
        notes,
        certificates: result.certificates.into_iter().map(|certificate| certificate.of(label)).collect(),
        searched,
    })
}

/// Volumes `[z, y, x]` of one shape, one behind the other in one array from the first on; or coil images
/// `[coil, z, y, x]`.
struct Stack {
    count: usize,
    filled: usize,
    data: Option<ArrayD<C32>>,
}

impl Stack {
    fn new(count: usize) -> Self {
        Self { count, filled: 0, data: None }
    }

    fn push(&mut self, volume: ArrayD<C32>, cpu: &Cpu) -> Result<()> {
        if self.count == 1 {
            self.data = Some(volume);
            return Ok(());
        }
        let different = || Error::value("slices", "one matrix throughout", "different matrices");
        let axis = volume.ndim() - 3;
        let (mut shape, depth) = (volume.shape().to_vec(), volume.shape()[axis]);
        shape[axis] *= self.count;
        let data = match &mut self.data {
            Some(data) => data,
            None => {
                let mut values = zeroed("images of a series", voxels(&shape)?)?;
                prefer_huge_pages(&mut values);
                let data = ArrayD::from_shape_vec(IxDyn(&shape), values).map_err(|_| different())?;
                self.data.insert(data)
            }
        };
        if data.shape() != shape {
            return Err(different());
        }
        let start = self.filled * depth;
        let to = data.slice_axis_mut(ndarray::Axis(axis), (start..start + depth).into());
        // New pages take longer than the copy: 8 ms of one thread for 17 MB.
        cpu.run(|| ndarray::Zip::from(to).and(&volume).par_for_each(|to, value| *to = *value));
        self.filled += 1;
        Ok(())
    }

    /// `[z, y, x]`, or `[volume, z, y, x]` of several; coil images as they are.
    fn finish(self, volumes: usize) -> Result<ArrayD<C32>> {
        let data = self.data.ok_or_else(|| Error::value("frames", "at least one", 0))?;
        let shape = data.shape().to_vec();
        if volumes == 1 {
            return Ok(data);
        }
        data.into_shape_with_order(IxDyn(&[volumes, shape[0] / volumes, shape[1], shape[2]]))
            .map_err(|_| Error::value("volumes", "the same slices in each", "different numbers"))
    }
}

impl Selection {
    /// The frames of a scan that are selected, volume by volume, and slices in the order of their places.
    /// `notes` names what is left out.
    ///
    /// Errors: a counter that the scan does not hold, or counters that do not occur together.
    pub fn labels(&self, index: &FrameIndex<'_>, notes: &mut Vec<String>) -> Result<Vec<Label>> {
        let chosen = self.choose(index.labels(), notes)?;
        Ok(index.places().sorted(chosen, notes))
    }

    /// The labels that are selected, of labels that are known without a scan; in the order in which they
    /// come.
    pub fn choose(&self, labels: impl Iterator<Item = Label>, notes: &mut Vec<String>) -> Result<Vec<Label>> {
        select(labels, self, notes)
    }
}

/// The numbers in ascending order, each once.
fn sorted(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let distinct: std::collections::BTreeSet<usize> = numbers.collect();
    distinct.into_iter().collect()
}

fn select(
    labels: impl Iterator<Item = Label>,
    wanted: &Selection,
    notes: &mut Vec<String>,
) -> Result<Vec<Label>> {
    let present: Vec<Label> = labels.collect();
    if present.is_empty() {
        let found = "noise, calibration, navigator and dummy readouts alone";
        return Err(Error::value("acquisitions", "at least one that carries image data", found));
    }
    let lowest = present.iter().map(|l| l.encoding).min().unwrap_or_default();
    let encoding = wanted.encoding.unwrap_or(lowest);
    let encodings = sorted(present.iter().map(|l| l.encoding));
    Ranges::from(encoding).expect_among("encoding", &encodings)?;
    let mut note = |text: String| {
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    if wanted.encoding.is_none() && encoding != 0 {
        note(format!("the scan holds no encoding 0: {encoding} is reconstructed"));
    }
    if encodings.len() > 1 {
        note(format!(
            "the scan holds encoding {encodings:?}: only {encoding} is reconstructed (`--encoding`)"
        ));
    }
    let mut chosen: Vec<Label> = present.iter().copied().filter(|l| l.encoding == encoding).collect();
    let counters: [(LabelCounter, &Option<Ranges>); 5] = [
        (("slice", |l| l.slice), &wanted.slice),
        (("repetition", |l| l.repetition), &wanted.repetition),
        (("contrast", |l| l.contrast), &wanted.contrast),
        (("cardiac phase", |l| l.phase), &wanted.phase),
        (("set", |l| l.set), &wanted.set),
    ];
    for ((name, counter), ranges) in counters {
        let values = sorted(present.iter().filter(|l| l.encoding == encoding).map(|l| counter(l).into()));
        if let Some(ranges) = ranges {
            ranges.expect_among(name, &values)?;
            chosen.retain(|label| ranges.contains(counter(label).into()));
        }
        // A window runs over the readouts of one volume, whose repetitions are joined.
        if wanted.window.is_none() || matches!(name, "slice" | "repetition") {
            continue;
        }
        let option = name.replace(' ', "-");
        match (ranges, values.first()) {
            (None, Some(&first)) if values.len() > 1 => {
                note(format!("the scan holds {name} {values:?}: the windows are of {first} (`--{option}`)"));
                chosen.retain(|label| usize::from(counter(label)) == first);
            }
            (Some(ranges), _) if values.iter().filter(|&&value| ranges.contains(value)).count() > 1 => {
                return Err(Error::value(name, "one, because a window runs over its readouts", ranges));
            }
            _ => {}
        }
    }
    if chosen.is_empty() {
        let text =
            |ranges: &Option<Ranges>| ranges.as_ref().map_or_else(|| "all".to_owned(), Ranges::to_string);
        let asked = counters.map(|((name, _), ranges)| format!("{name} {}", text(ranges)));
        let found = format!("encoding {encoding}, {}", asked.join(", "));
        return Err(Error::value("selection", "counters that occur together in the scan", found));
    }
    Ok(chosen)
}
