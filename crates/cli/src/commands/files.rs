//! What several commands do with files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor};
use rayspin::imaging::display::{Montage, Window, evenly_spaced};
use rayspin::io::{self, Format, cfl::Layout, png::PngOptions};
use rayspin::report::{RunRecord, RunRecorder};
pub(crate) use rayspin_shell::files::{check_distinct, check_writable, parts, print, write_text};
use rayspin_shell::{BadInput, Context};

/// Slices and repetitions together on a picture, unless asked otherwise: more get too small to see.
const PICTURE_TILES: usize = 16;

/// Fails before the work starts when an output cannot end well: unknown ending, missing folder, a folder in its place.
pub(crate) fn check_output(path: &Path, formats: &[Format]) -> Result<()> {
    let format = Format::of_name(path);
    if !format.is_some_and(|f| formats.contains(&f)) {
        let endings = formats.iter().map(|f| ending(*f)).collect::<Vec<_>>().join(", ");
        return Err(BadInput::new(format!(
            "{}: name of the output: expected the ending {endings}, found another",
            path.display()
        ))
        .hint("the format of an output follows its name")
        .into());
    }
    check_writable(path)
}

fn ending(format: Format) -> &'static str {
    match format {
        Format::Nifti => ".nii or .nii.gz",
        Format::Npy => ".npy",
        Format::Npz => ".npz",
        Format::Cfl => ".cfl",
        Format::Png => ".png",
        Format::Hdf5 => ".h5",
        _ => "another",
    }
}

/// The formats that images are written in.
pub(crate) const IMAGE_FORMATS: [Format; 5] =
    [Format::Nifti, Format::Cfl, Format::Npy, Format::Png, Format::Hdf5];

/// Writes an image in the format of the name; a volume's picture is a montage. `layout` is where axes go in a BART array.
/// Returns what the file leaves out.
pub(crate) fn write_image(path: &Path, image: &Image, layout: Layout) -> Result<Vec<String>> {
    let png = picture(image.shape_zyx()[0], image.repetitions());
    let options = io::WriteOptions { png, layout, ..io::WriteOptions::default() };
    Ok(io::write_image(path, image, &options)?)
}

/// A picture from black at 0: all slices of all repetitions where these are few, else some spread over repetitions first.
pub(crate) fn picture(slices: usize, repetitions: usize) -> PngOptions {
    let repetitions = evenly_spaced(repetitions, PICTURE_TILES);
    let each = (PICTURE_TILES / repetitions.len().max(1)).max(1);
    PngOptions {
        window: Window::Percentile { low: 0.0, high: 99.5 },
        montage: Montage { slices: Some(evenly_spaced(slices, each)), ..Montage::default() },
        repetitions: Some(repetitions),
        ..PngOptions::default()
    }
}

/// A recorder for this process on this device.
pub(crate) fn recorder(context: &Context) -> RunRecorder {
    let threads = context.threads();
    let mut recorder =
        RunRecorder::start_here("rayspin", env!("CARGO_PKG_VERSION"), context.device.describe(), threads);
    recorder.version("rayspin", env!("CARGO_PKG_VERSION"));
    recorder.version("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS));
    recorder
}

/// Gives the running stage's time to the stages that the monitor measured within it.
pub(crate) fn record_stages(recorder: &mut RunRecorder, monitor: &Monitor<'_>) {
    // Reading is a stage of the recorder's own.
    for (stage, seconds) in monitor.stages().into_iter().filter(|(stage, _)| stage != "read") {
        recorder.within(stage, Duration::from_secs_f64(seconds));
    }
}

/// Writes a record, whole or not at all.
pub(crate) fn write_record(path: &Path, record: &RunRecord) -> Result<()> {
    let mut text = record.to_json().context("run record")?;
    text.push('\n');
    write_text(path, &text)
}
