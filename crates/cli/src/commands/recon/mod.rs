//! `rayspin recon mri`

mod arrays;
mod effect;
mod images;
mod input;
pub(crate) mod options;
mod output;
mod record;
mod stopped;
pub(crate) mod stream;
pub(crate) mod taken;
mod understood;

use anyhow::{Context as _, Result};
use rayspin::core::{C32, Image, Monitor};
use rayspin::device::Device;
use rayspin::device::cuda::Starting;
use rayspin::io::cfl::Layout;
use rayspin::io::{ArrayFrame, ImageFile, ScanOptions};
use rayspin::mri::recon::{
    Certificate, Frames, ReconOptions, ScanImage, Searched, Solve, StreamTimes, reconstruct_frame,
    reconstruct_frames,
};
use rayspin::report::RunRecorder;
use rayspin_shell::Context;

use self::taken::Taken;
use super::files::{Hashing, RunFiles, together};
use super::{certify, files, plan};
use crate::args::mri::ReconMri;

/// A reconstruction under way.
struct Session<'a> {
    context: &'a Context,
    args: &'a ReconMri,
    monitor: Monitor<'a>,
    recorder: RunRecorder,
    scan_options: ScanOptions,
    options: ReconOptions,
    device: Device,
    /// A GPU that starts while the scan is read.
    starting: Option<Starting>,
}

/// Reconstructs a scan, writes the images and the run record.
pub(crate) fn run(context: &Context, args: &ReconMri, files: RunFiles) -> Result<()> {
    Ready::read(context, args, files)?.reconstruct()?.map_or(Ok(()), Made::write)
}

/// A scan that was read.
pub(crate) struct Ready<'a> {
    session: Session<'a>,
    files: RunFiles,
    known: effect::Run<'a>,
    hashing: Option<Hashing>,
    read: input::Read,
}

/// A scan that was reconstructed.
pub(crate) struct Made<'a> {
    session: Session<'a>,
    files: RunFiles,
    result: Done,
    layout: Layout,
    taken: Option<Taken>,
    reference: Option<ImageFile>,
}

impl<'a> Ready<'a> {
    /// Reads the scan.
    pub(crate) fn read(context: &'a Context, args: &'a ReconMri, files: RunFiles) -> Result<Self> {
        input::check_outputs(args)?;
        let mut session = Session::begin(context, args)?;
        let known = session.known()?;
        let hashing = (!args.run.dry_run).then(|| files.hashing());
        let read = session.read()?;
        Ok(Self { session, files, known, hashing, read })
    }

    /// Makes the images; none where the plan alone is wanted.
    pub(crate) fn reconstruct(self) -> Result<Option<Made<'a>>> {
        let Self { mut session, files, mut known, hashing, read } = self;
        let (context, args) = (session.context, session.args);
        let layout = understood::layout(&read.source);
        let taken = read.shape.taken.clone();
        understood::say(&read.source, &read.shape, context, &mut session.recorder);
        session.recorder.stage("plan");
        let read = session.choose_method(read, &mut known)?;
        let Some(fitted) = session.plan(read)? else { return Ok(None) };
        session.ready(&fitted)?;
        let reference = session.read_reference()?;
        session.compile_ahead(&fitted);
        let input::Fitted { source, .. } = fitted;

        session.recorder.stage("reconstruct");
        let Session { device, monitor, options, scan_options, .. } = &session;
        let result = match source {
            plan::Source::Stream(stream) => {
                stream::run(device, context.quiet, (args, &files), *stream, options, monitor)
            }
            other => reconstruct(device, args, other, scan_options, options, monitor).map(Done::of),
        };
        let result = result.with_context(|| format!("{}", args.scan.display()))?;
        hashing.map_or(Ok(()), |hashing| hashing.record(&mut session.recorder))?;
        session.reconstructed(&result)?;
        Ok(Some(Made { session, files, result, layout, taken, reference }))
    }
}

impl Made<'_> {
    /// Writes the images and the record.
    pub(crate) fn write(self) -> Result<()> {
        let Self { mut session, files, result, layout, taken, reference } = self;
        let mismatch = together(|| {
            let written = session.write(&files, &result, layout)?;
            let mismatch = session.judge(reference.as_ref(), &result, taken.as_ref());
            session.finish(&files, &result, &written)?;
            Ok(mismatch)
        })?;
        if let Some(missed) = result.certificates.iter().find(|certificate| !certificate.met()) {
            return Err(certify::missed(missed, record::name_of(missed, &result.certificates)).into());
        }
        mismatch
    }
}

/// What is to be recorded of a reconstruction.
struct Done {
    /// The image, unless a stream wrote it and nobody compares it.
    image: Option<Image>,
    shape: [usize; 3],
    repetitions: usize,
    /// Stacks of slices, which are files of their own.
    stacks: usize,
    solves: Vec<Solve>,
    maps: Option<ndarray::ArrayD<C32>>,
    notes: Vec<String>,
    certificates: Vec<Certificate>,
    searched: Option<Searched>,
    /// The times of a stream, whose images are already written.
    times: Option<StreamTimes>,
}

impl Done {
    fn of(scan: ScanImage) -> Self {
        let ScanImage { image, solves, maps, notes, certificates, searched } = scan;
        let (shape, repetitions, stacks) = (image.shape_zyx(), image.repetitions(), image.stacks().len());
        Self {
            image: Some(image),
            shape,
            repetitions,
            stacks,
            solves,
            maps,
            notes,
            certificates,
            searched,
            times: None,
        }
    }
}

/// Reconstructs whatever the file held.
fn reconstruct(
    device: &Device,
    args: &ReconMri,
    source: plan::Source,
    scan_options: &ScanOptions,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let assembly = options::frames(args, scan_options);
    match source {
        plan::Source::Whole { mut scan, labels, slices, only } => {
            let notes = std::mem::take(&mut scan.notes);
            let frames = Frames { labels: &labels, slices: &slices, notes };
            if let Some(frame) = only {
                drop(scan);
                let mut frame = Some(*frame);
                let gone = || rayspin::core::Error::value("frame", "one", "none");
                let mut take = |_, _: &mut Vec<String>| frame.take().ok_or_else(gone);
                return Ok(reconstruct_frames(device, frames, &mut take, options, monitor)?);
            }
            let index = scan.frames()?;
            let mut assemble = |label, notes: &mut Vec<String>| index.assemble(label, &assembly, notes);
            Ok(reconstruct_frames(device, frames, &mut assemble, options, monitor)?)
        }
        plan::Source::Parts { labels, slices, notes } => {
            // The command reports an error in the file as such, and not as the reconstruction's.
            let mut broken = None;
            let mut read = |label, notes: &mut Vec<String>| {
                plan::read_part(&args.scan, label, &assembly, notes, monitor).map_err(|error| {
                    let text = error.to_string();
                    broken = Some(error);
                    rayspin::core::Error::value("scan", "images that can be read", text)
                })
            };
            let frames = Frames { labels: &labels, slices: &slices, notes };
            let result = reconstruct_frames(device, frames, &mut read, options, monitor);
            match broken {
                Some(error) => Err(error),
                None => Ok(result?),
            }
        }
        plan::Source::Frame(array) => {
            let ArrayFrame { frame, notes, .. } = *array;
            Ok(reconstruct_frame(device, frame, notes, options, monitor)?)
        }
        plan::Source::Arrays { series, labels, slices, notes } => {
            // The command reports an error in the file as such, and not as the reconstruction's.
            let mut broken = None;
            let mut read = |label, notes: &mut Vec<String>| {
                series.frame(label, notes).map_err(|error| {
                    let text = error.to_string();
                    broken = Some(error);
                    rayspin::core::Error::value("array", "images that can be read", text)
                })
            };
            let frames = Frames { labels: &labels, slices: &slices, notes };
            let result = reconstruct_frames(device, frames, &mut read, options, monitor);
            match broken {
                Some(error) => Err(error.into()),
                None => Ok(result?),
            }
        }
        plan::Source::Stream(_) => Err(anyhow::anyhow!("a stream is not reconstructed as a whole")),
    }
}
