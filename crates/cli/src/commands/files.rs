//! What several commands do with files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor};
use rayspin::imaging::display::{Montage, Window, evenly_spaced};
use rayspin::io::{self, Format, cfl::Layout, png::PngOptions};
use rayspin::report::{RunRecord, RunRecorder};

use crate::Context;
use crate::failure::BadInput;

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

/// Fails when the folder of `path` does not exist or `path` is a folder.
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(BadInput::new(format!(
            "{}: cannot write: expected the folder {} to exist, found none",
            path.display(),
            folder.display()
        ))
        .hint(format!("mkdir -p {}", folder.display()))
        .into());
    }
    if path.is_dir() {
        return Err(BadInput::new(format!(
            "{}: cannot write: expected a file name, found a folder",
            path.display()
        ))
        .into());
    }
    Ok(())
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

/// Fails when an output would overwrite an input, or two outputs each other.
pub(crate) fn check_distinct<'a>(
    inputs: impl Iterator<Item = &'a PathBuf>,
    outputs: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    let place = |path: PathBuf| {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        path.canonicalize().unwrap_or_else(|_| folder.join(path.file_name().unwrap_or_default()))
    };
    let mut taken: Vec<(PathBuf, &str)> =
        inputs.flat_map(|input| parts(input)).map(|file| (place(file), "an input of this run")).collect();
    for output in outputs {
        for file in parts(output) {
            let file_place = place(file);
            if let Some((_, by)) = taken.iter().find(|(path, _)| *path == file_place) {
                return Err(BadInput::new(format!(
                    "{}: expected a file of its own for each output, found {by}",
                    output.display()
                ))
                .hint("give the output another name")
                .into());
            }
            taken.push((file_place, "another output of this run"));
        }
    }
    Ok(())
}

/// Prints a result on stdout; a pipe that was closed is an error to be passed on, not a panic.
pub(crate) fn print(text: &dyn std::fmt::Display) -> Result<()> {
    use std::io::Write;
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
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

/// Both paths of a BART pair, or the one file.
pub(crate) fn parts(path: &Path) -> Vec<PathBuf> {
    if Format::of_name(path) == Some(Format::Cfl) || (!path.exists() && path.with_extension("hdr").exists()) {
        let (data, header) = io::cfl::file_pair(path);
        vec![header, data]
    } else {
        vec![path.to_path_buf()]
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

/// Writes a text file, whole or not at all.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    Ok(io::atomic::write_stream_atomically(path, |file| std::io::Write::write_all(file, text.as_bytes()))?)
}
