//! Arrays without a header, as a run reads them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rayspin_core::Monitor;
use rayspin_device::cpu;
use rayspin_io::{self as io, ArraySeries, ArraySource, ArrayWindows, ScanFile, ScanOptions};
use rayspin_mri::corrections::Noise;
use rayspin_mri::scan::Window;
use rayspin_run::BadInput;

use super::read::Reading;
use super::request::Request;
use super::source::{Shape, Source};
use super::stream::Stream;
use super::taken::Taken;
use crate::Result;

/// Reads an array of one image, or one over whose readouts a window slides; opens an array of several.
pub(super) fn read(path: &Path, reading: &Reading<'_>, monitor: &Monitor<'_>) -> Result<(Source, Shape)> {
    let Reading { request, memory, process, .. } = *reading;
    let Request { selection, input, .. } = request;
    let arrays = &request.arrays;
    let read = io::array_memory(path, arrays)?;
    request.short().refuse(memory, process + read)?;
    cpu::expect_memory(path.display(), read)?;
    if let Some(window) = &selection.window {
        return read_windows(path, window, request, monitor);
    }
    let series = match io::read_scan(path, arrays, monitor)? {
        ScanFile::Frame(array) => {
            let coils = array.frame.coils();
            let shape = Shape { frames: 1, read, coils, ..Shape::default() };
            return Ok((Source::Frame(Arc::new(*array)), shape));
        }
        ScanFile::Series(series) => series,
        ScanFile::Scan(_) => {
            return Err(BadInput::new(format!("{}: expected k-space", path.display())).into());
        }
    };
    let mut notes = series.notes().to_vec();
    let chosen = selection.choose(series.labels(), &mut notes);
    let labels = chosen.map_err(|error| input.error(error))?;
    let taken = Some(Taken::of(series.labels().collect(), &labels));
    let slices = slices_of(&series);
    let frame = series.frame(labels[0], &mut notes)?;
    // The points as they are read, sorted and converted.
    let read = read.max(5 * series.trajectory_bytes());
    let (kept, coils) = (series.held_bytes(), frame.coils());
    if labels.iter().any(|label| label.volume() != labels[0].volume()) {
        let source = ArraySource::new(*series, labels);
        let shape = Shape {
            noise: None,
            taken,
            ..Shape::of_stream((frame, Vec::new()), read, kept, source.volumes(), Noise::None)
        };
        return Ok((Source::Stream(Box::new(Stream::of_arrays(source, slices, notes))), shape));
    }
    let (held, frames, frame) = (series.reading_bytes(), labels.len(), Some(Box::new(frame)));
    let shape = Shape { frame, held, frames, assembled: true, read, kept, coils, taken, ..Shape::default() };
    Ok((Source::Arrays { series, labels, slices, notes }, shape))
}

/// Reads arrays over whose readouts a window slides.
fn read_windows(
    path: &Path,
    window: &Window,
    request: &Request,
    monitor: &Monitor<'_>,
) -> Result<(Source, Shape)> {
    let Request { selection, input, .. } = request;
    let arrays = &request.arrays;
    let of_file = |error| input.error(error);
    let chosen = arrays.readouts.as_ref();
    // Chosen ones are counted over all that the window slides over.
    let whole = ScanOptions { readouts: None, ..arrays.clone() };
    let (windows, notes, taken, slices) = match io::read_scan(path, &whole, monitor)? {
        ScanFile::Frame(mut array) => {
            let notes = std::mem::take(&mut array.notes);
            (ArrayWindows::of_frame(*array, window, chosen).map_err(of_file)?, notes, None, vec![0])
        }
        ScanFile::Series(series) => {
            let mut notes = series.notes().to_vec();
            let labels = selection.choose(series.labels(), &mut notes).map_err(of_file)?;
            let taken = Taken::of(series.labels().collect(), &labels).joined();
            let windows = ArrayWindows::of_series(&series, &labels, window, chosen, &mut notes)?;
            (windows, notes, Some(taken), slices_of(&series))
        }
        ScanFile::Scan(_) => return Err(BadInput::new(format!("{}: expected arrays", path.display())).into()),
    };
    let (frame, kept) = (windows.image(0).map_err(of_file)?, windows.held_bytes());
    // The samples as they are read, sorted and taken over.
    let shape = Shape::of_stream((frame, Vec::new()), 2 * kept, kept, windows.volumes(), Noise::None);
    let stream = Stream::of_windows(windows, slices, notes);
    Ok((Source::Stream(Box::new(stream)), Shape { noise: None, taken, ..shape }))
}

/// The slices of all images.
fn slices_of(series: &ArraySeries) -> Vec<u16> {
    Vec::from_iter(series.labels().map(|label| label.slice).collect::<BTreeSet<u16>>())
}
