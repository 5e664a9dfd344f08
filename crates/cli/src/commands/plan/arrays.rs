//! Arrays without a header, as a reconstruction reads them.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use rayspin::core::Monitor;
use rayspin::device::cpu;
use rayspin::io::{self, ArraySeries, ArraySource, ArrayWindows, ScanFile, ScanOptions};
use rayspin::mri::prepare::Noise;
use rayspin::mri::recon::Selection;
use rayspin_shell::BadInput;

use super::{LESS_MRI, Shape, Source, refuse};
use crate::args::mri::ReconMri;
use crate::commands::recon::stream::{self, Stream};
use crate::commands::recon::taken::Taken;

/// Reads an array of one image, or one over whose readouts a window slides; opens an array of several.
pub(super) fn read(
    args: &ReconMri,
    options: &ScanOptions,
    selection: &Selection,
    process: u64,
    monitor: &Monitor<'_>,
) -> Result<(Source, Shape)> {
    let path = &args.scan;
    let read = io::array_memory(path, options.trajectory.is_some())?;
    refuse(args.run.memory, process + read, path, LESS_MRI)?;
    cpu::expect_memory(path.display(), read)?;
    if let Some(readouts) = args.window {
        return read_windows(args, readouts, options, selection, monitor);
    }
    let series = match io::read_scan(path, options, monitor)? {
        ScanFile::Frame(array) => {
            let (held, kept, coils) = (0, 0, array.frame.coils());
            let (frame, noise, taken, uneven) = (None, None, None, None);
            let shape =
                Shape { frame, held, frames: 1, assembled: false, read, kept, coils, noise, taken, uneven };
            return Ok((Source::Frame(array), shape));
        }
        ScanFile::Series(series) => series,
        ScanFile::Scan(_) => {
            return Err(BadInput::new(format!("{}: expected k-space", path.display())).into());
        }
    };
    let mut notes = series.notes().to_vec();
    let labels = selection.choose(series.labels(), &mut notes).with_context(|| path.display().to_string())?;
    let taken = Some(Taken::of(series.labels().collect(), &labels));
    let slices = slices_of(&series);
    let frame = series.frame(labels[0], &mut notes)?;
    // The points as they are read, sorted and converted.
    let read = read.max(5 * series.held_bytes());
    let (kept, coils) = (series.held_bytes(), frame.coils());
    if labels.iter().any(|label| label.repetition != labels[0].repetition) {
        let source = ArraySource::new(*series, labels);
        let shape = Shape {
            noise: None,
            taken,
            ..Shape::of_stream(frame, read, kept, source.repetitions(), Noise::None)
        };
        return Ok((Source::Stream(Box::new(Stream::of_arrays(source, slices, notes))), shape));
    }
    let (held, frames, frame) = (series.reading_bytes(), labels.len(), Some(Box::new(frame)));
    let (noise, uneven) = (None, None);
    let shape = Shape { frame, held, frames, assembled: true, read, kept, coils, noise, taken, uneven };
    Ok((Source::Arrays { series, labels, slices, notes }, shape))
}

/// Reads arrays over whose readouts a window slides.
fn read_windows(
    args: &ReconMri,
    readouts: usize,
    options: &ScanOptions,
    selection: &Selection,
    monitor: &Monitor<'_>,
) -> Result<(Source, Shape)> {
    let path = &args.scan;
    let of_file = || path.display().to_string();
    let (window, chosen) = (stream::window(args, readouts), options.readouts.as_ref());
    // Chosen ones are counted over all that the window slides over.
    let whole = ScanOptions { readouts: None, ..options.clone() };
    let (windows, notes, taken, slices) = match io::read_scan(path, &whole, monitor)? {
        ScanFile::Frame(mut array) => {
            let notes = std::mem::take(&mut array.notes);
            (ArrayWindows::of_frame(*array, &window, chosen).with_context(of_file)?, notes, None, vec![0])
        }
        ScanFile::Series(series) => {
            let mut notes = series.notes().to_vec();
            let labels = selection.choose(series.labels(), &mut notes).with_context(of_file)?;
            let taken = Taken::of(series.labels().collect(), &labels).joined();
            let windows = ArrayWindows::of_series(&series, &labels, &window, chosen, &mut notes)?;
            (windows, notes, Some(taken), slices_of(&series))
        }
        ScanFile::Scan(_) => return Err(BadInput::new(format!("{}: expected arrays", path.display())).into()),
    };
    let (frame, kept) = (windows.image(0).with_context(of_file)?, windows.held_bytes());
    // The samples as they are read, sorted and taken over.
    let shape = Shape::of_stream(frame, 2 * kept, kept, windows.repetitions(), Noise::None);
    let stream = Stream::of_windows(windows, slices, notes);
    Ok((Source::Stream(Box::new(stream)), Shape { noise: None, taken, ..shape }))
}

/// The slices of all images.
fn slices_of(series: &ArraySeries) -> Vec<u16> {
    Vec::from_iter(series.labels().map(|label| label.slice).collect::<BTreeSet<u16>>())
}
