//! Many frames as a stream: one is read while the one before is computed and the one before that is written.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use ndarray::{ArrayD, Axis};
use rayspin_core::{C32, Error, Geometry, Monitor, Result};
use rayspin_device::Device;

use super::run::{Run, RunEnd};
use super::{Certificate, ReconOptions, Solve};
use crate::scan::{Frame, Label};

/// Frames that wait before reconstruction, and volumes that wait to be written. With those in work there are up to
/// [`FRAMES_AHEAD`] frames and [`VOLUMES_BEHIND`] volumes in memory.
const QUEUE: usize = 1;
/// Frames that are read before they are needed: in the queue, and in the reader's hand.
pub const FRAMES_AHEAD: usize = QUEUE + 1;
/// Volumes that are done and not yet written: the one whose slices are collected, in the queue, in the writer's hand.
pub const VOLUMES_BEHIND: usize = QUEUE + 2;

/// What a source gives.
#[derive(Debug)]
pub enum StreamItem {
    /// Samples that tell the sensitivities of a slice, for all its images; such come before the images.
    Maps(Label, Frame),
    /// The samples of the next image.
    Image(Label, Frame),
}

/// All slices of one point in time.
#[derive(Debug, Clone)]
pub struct Volume {
    /// Which point in time, from 0.
    pub index: usize,
    /// `[z, y, x]`.
    pub data: ArrayD<C32>,
    /// Where it lies.
    pub geometry: Geometry,
}

/// Seconds in which each part of a stream was at work, and of the whole, which is less than their sum where they overlapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct StreamTimes {
    /// The source: reading, and making frames of what was read.
    pub read: f64,
    /// Reconstruction.
    pub reconstruct: f64,
    /// The sink.
    pub write: f64,
    /// From the first frame asked for to the last volume written.
    pub wall: f64,
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
    /// Where the time went.
    pub times: StreamTimes,
}

/// Gives the next frame, none after the last; what it assumes goes to the notes.
pub type Source<'a, E> =
    dyn FnMut(&mut Vec<String>) -> std::result::Result<Option<StreamItem>, E> + Send + 'a;
/// Takes volumes as they are done.
pub type Sink<'a, E> = dyn FnMut(Volume) -> std::result::Result<(), E> + Send + 'a;

/// Reconstructs frames as they come: `source` gives them in the order of `labels` (after maps, where it gives any) and `sink` takes
/// each volume as soon as it is done, both on threads of their own. No more than a few frames and volumes are in memory at
/// once, however many there are. The images are those of [`reconstruct_frames`](super::reconstruct_frames), bit for bit.
///
/// `slices` are the slice counters of the whole scan. The source gets the notes, to say what it assumed.
///
/// Errors: the first that source, reconstruction or sink came to; the sink has had every volume that was complete before.
pub fn reconstruct_stream<E: From<Error> + Send>(
    device: &Device,
    labels: &[Label],
    slices: &[u16],
    source: &mut Source<'_, E>,
    sink: &mut Sink<'_, E>,
    notes: Vec<String>,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> std::result::Result<StreamEnd, E> {
    let begun = Instant::now();
    let mut run = Run::new(device, labels, slices, options, notes)?;
    let (frames_in, frames) = sync_channel(QUEUE);
    let (volumes, volumes_out) = sync_channel(QUEUE);
    let mut seconds = 0.0;
    let ends = std::thread::scope(|scope| {
        let refused = |error: std::io::Error| Error::Device {
            what: "starting a thread that reads or writes".to_owned(),
            detail: error.to_string(),
        };
        let start = std::thread::Builder::new;
        let reader = start().spawn_scoped(scope, move || read(source, &frames_in)).map_err(refused)?;
        let writer = start().spawn_scoped(scope, move || write(sink, &volumes_out)).map_err(refused)?;
        let done = compute(&mut run, labels, &frames, &volumes, &mut seconds, monitor);
        // Both ends notice that nobody is there any more.
        drop((frames, volumes));
        Ok::<_, Error>((join(reader), done, join(writer)))
    });
    let (read, done, written) = ends?;
    let (write_seconds, written) = written;
    written?;
    let (read_seconds, read) = read;
    // A source that failed ends the frames, which is no fault of the reconstruction.
    read?;
    done?;
    let (end, _) = run.finish()?;
    let RunEnd { solves, maps, notes, certificates } = end;
    let wall = begun.elapsed().as_secs_f64();
    let times = StreamTimes { read: read_seconds, reconstruct: seconds, write: write_seconds, wall };
    Ok(StreamEnd { solves, maps, notes, certificates, times })
}

type Sent = (StreamItem, Vec<String>);

fn read<E>(source: &mut Source<'_, E>, frames: &SyncSender<Sent>) -> (f64, std::result::Result<(), E>) {
    let (mut seconds, mut said) = (0.0, 0);
    let mut notes = Vec::new();
    loop {
        let start = Instant::now();
        let item = source(&mut notes);
        seconds += start.elapsed().as_secs_f64();
        let item = match item {
            Ok(Some(item)) => item,
            Ok(None) => return (seconds, Ok(())),
            Err(error) => return (seconds, Err(error)),
        };
        // Sources note what is new to their list, which is kept for that.
        let new = notes[said..].to_vec();
        said = notes.len();
        if frames.send((item, new)).is_err() {
            return (seconds, Ok(()));
        }
    }
}

fn write<E>(sink: &mut Sink<'_, E>, volumes: &Receiver<Volume>) -> (f64, std::result::Result<(), E>) {
    let mut seconds = 0.0;
    for volume in volumes {
        let start = Instant::now();
        let taken = sink(volume);
        seconds += start.elapsed().as_secs_f64();
        if taken.is_err() {
            return (seconds, taken);
        }
    }
    (seconds, Ok(()))
}

fn compute(
    run: &mut Run,
    labels: &[Label],
    frames: &Receiver<Sent>,
    volumes: &SyncSender<Volume>,
    seconds: &mut f64,
    monitor: &Monitor<'_>,
) -> Result<()> {
    let slices = run.slices();
    let mut collected = Vec::with_capacity(slices);
    let mut geometry = None;
    let mut shape = None;
    let mut expected = labels.iter();
    for (item, notes) in frames {
        let start = Instant::now();
        for note in notes {
            if !run.notes.contains(&note) {
                run.notes.push(note);
            }
        }
        let (label, frame) = match item {
            StreamItem::Maps(label, frame) => {
                run.learn_maps(label, frame, monitor)?;
                *seconds += start.elapsed().as_secs_f64();
                continue;
            }
            StreamItem::Image(label, frame) => (label, frame),
        };
        if expected.next() != Some(&label) {
            return Err(Error::value("frames of a stream", "the order of the labels", format!("{label:?}")));
        }
        let image = run.image(label, frame, monitor)?;
        if shape.get_or_insert_with(|| image.shape().to_vec()) != image.shape() {
            return Err(Error::value("slices", "one matrix throughout", "different matrices"));
        }
        collected.push(image);
        *seconds += start.elapsed().as_secs_f64();
        monitor.check()?;
        if collected.len() < slices {
            continue;
        }
        let geometry = match geometry {
            Some(geometry) => geometry,
            None => *geometry.insert(run.geometry()?),
        };
        let index = labels.len() / slices - expected.len() / slices - 1;
        let volume = Volume { index, data: stack(std::mem::take(&mut collected))?, geometry };
        if volumes.send(volume).is_err() {
            // The sink failed, and says why.
            return Ok(());
        }
        monitor.advance("")?;
    }
    match expected.len() {
        0 => Ok(()),
        missing => Err(Error::value("frames of a stream", labels.len().to_string(), labels.len() - missing)),
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

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
