//! Many frames as a stream: one is read while the one before is computed and the one before that is written.

use ndarray::{ArrayD, Axis};
use rayspin_core::slices::Stack;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::Device;
use rayspin_run::{Endpoints, StreamTimes};
pub use rayspin_scan::mri::StreamItem;

use super::lanes::with_lanes;
use super::run::{ONE_VOLUME, RunEnd, SeriesRun};
use super::{Certificate, Frames, ReconOptions, Searched, Solve};

/// All slices of one repetition, contrast, cardiac phase and set, or of one window.
#[derive(Debug, Clone)]
pub struct Volume {
    /// Its number in the order of the labels, from 0.
    pub index: usize,
    /// `[z, y, x]`.
    pub data: ArrayD<C32>,
    /// Where its slices lie: one stack, or several behind each other along z where no single geometry
    /// describes them.
    pub stacks: Vec<Stack>,
}

/// What a stream leaves besides the volumes.
#[derive(Debug, Clone, Default)]
pub struct StreamEnd {
    /// One entry a frame that was solved for iteratively.
    pub solves: Vec<Solve>,
    /// Sensitivity maps, as of [`ScanImage`](super::ScanImage).
    pub maps: Option<ArrayD<C32>>,
    /// What was assumed, for the user to see.
    pub notes: Vec<String>,
    /// What was measured of the transforms.
    pub certificates: Vec<Certificate>,
    /// The λ that was searched for.
    pub searched: Option<Searched>,
    /// Where the time went.
    pub times: StreamTimes,
}

/// Reconstructs frames as they come: `source` gives them in the order of the labels (after maps, where it
/// gives any) and `sink` takes each volume as soon as it is done, both on threads of their own. No more than
/// a few frames and volumes are in memory at once, however many there are, unless the method solves for all
/// of them together. The images equal the images of [`reconstruct_frames`](super::reconstruct_frames), bit
/// for bit.
///
/// Errors: the first that source, reconstruction or sink came to; the sink has had every volume that was
/// complete before.
///
/// ```
/// use rayspin_core::{Error, Monitor, Result};
/// use rayspin_device::Device;
/// use rayspin_mri::methods::Cartesian;
/// use rayspin_mri::recon::{Frames, ReconOptions, StreamItem, Volume, reconstruct_stream};
/// use rayspin_mri::scan::{FrameOptions, Label};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
/// use rayspin_run::Endpoints;
///
/// let (device, monitor) = (Device::cpu()?, Monitor::silent());
/// let options = SimulateOptions { matrix: [16, 16, 1], repetitions: 3, ..SimulateOptions::default() };
/// let scan = simulate(&options, &monitor)?.scan;
/// let index = scan.frames()?;
/// let labels: Vec<Label> = index.labels().collect();
/// let mut next = labels.iter();
/// let mut source = |notes: &mut Vec<String>| -> Result<Option<StreamItem>> {
///     let Some(&label) = next.next() else { return Ok(None) };
///     Ok(Some(StreamItem::Image(label, index.assemble(label, &FrameOptions::default(), notes)?)))
/// };
/// let mut came = Vec::new();
/// let mut sink = |volume: Volume| -> Result<()> {
///     came.push(volume.index); // here a program writes it
///     Ok(())
/// };
/// let frames = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
/// let ends = Endpoints { source: &mut source, sink: &mut sink };
/// reconstruct_stream::<Error>(&device, frames, ends, &ReconOptions::of(Cartesian::default()), &monitor)?;
/// assert_eq!(came, [0, 1, 2]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn reconstruct_stream<E: From<Error> + Send>(
    device: &Device,
    frames: Frames<'_>,
    ends: Endpoints<'_, StreamItem, Volume, E>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> std::result::Result<StreamEnd, E> {
    let labels = frames.labels;
    if options.coil_images() {
        return Err(Error::value("volumes", ONE_VOLUME, "several volumes, or windows").into());
    }
    let mut run = SeriesRun::new(device, frames, options)?;
    let slices = run.slices();
    let mut volumes =
        Volumes { slices, collected: Vec::with_capacity(slices), stacks: None, done: 0, shape: None };
    let mut expected = labels.iter();
    let times = with_lanes(&mut run, monitor, |lanes| {
        rayspin_run::stream(ends, |item, notes, emit| {
            for note in notes {
                if !lanes.run.notes.contains(&note) {
                    lanes.run.notes.push(note);
                }
            }
            let mut take = |image, run: &mut SeriesRun| volumes.push(image, run, emit, monitor);
            let (label, frame) = match item {
                Some(StreamItem::Image(label, frame)) => (label, frame),
                Some(StreamItem::Maps(label, frame)) => return lanes.learn_maps(label, &frame),
                None => {
                    lanes.finish(&mut take)?;
                    if expected.len() > 0 {
                        let found = labels.len() - expected.len();
                        return Err(Error::value("frames of a stream", labels.len().to_string(), found));
                    }
                    for image in lanes.run.all_together(labels, monitor)? {
                        take(image, lanes.run)?;
                    }
                    return Ok(());
                }
            };
            if expected.next() != Some(&label) {
                return Err(Error::value(
                    "frames of a stream",
                    "the order of the labels",
                    format!("{label:?}"),
                ));
            }
            lanes.push(label, frame, &mut take)?;
            monitor.check()
        })
    })?;
    let RunEnd { solves, maps, notes, certificates, searched } = run.finish()?;
    Ok(StreamEnd { solves, maps, notes, certificates, searched, times })
}

/// The slices of a volume, as they are done.
struct Volumes {
    slices: usize,
    collected: Vec<ArrayD<C32>>,
    stacks: Option<Vec<Stack>>,
    done: usize,
    shape: Option<Vec<usize>>,
}

impl Volumes {
    /// Takes the next slice, and gives the volume away where it is complete.
    fn push(
        &mut self,
        image: ArrayD<C32>,
        run: &mut SeriesRun,
        emit: &mut dyn FnMut(Volume) -> bool,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        if self.shape.get_or_insert_with(|| image.shape().to_vec()) != image.shape() {
            return Err(Error::value("slices", "one matrix throughout", "different matrices"));
        }
        self.collected.push(image);
        if self.collected.len() < self.slices {
            return Ok(());
        }
        let data = stack(std::mem::take(&mut self.collected))?;
        let stacks = match &self.stacks {
            Some(stacks) => stacks.clone(),
            None => self.stacks.insert(run.stacks(data.shape()[0])?).clone(),
        };
        // A sink that failed says why at the end.
        if emit(Volume { index: self.done, data, stacks }) {
            monitor.advance("")?;
        }
        self.done += 1;
        Ok(())
    }
}

fn stack(mut slices: Vec<ArrayD<C32>>) -> Result<ArrayD<C32>> {
    if slices.len() == 1
        && let Some(only) = slices.pop()
    {
        return Ok(only);
    }
    let views: Vec<_> = slices.iter().map(|slice| slice.view()).collect();
    ndarray::concatenate(Axis(0), &views)
        .map_err(|_| Error::value("slices", "one matrix throughout", "different matrices"))
}
