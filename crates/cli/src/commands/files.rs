//! What several commands do with files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor};
use rayspin::io::{self, Format, cfl::Layout, png::PngOptions};
use rayspin::report::{RunRecord, RunRecorder};
use rayspin_shell::Context;
pub(crate) use rayspin_shell::files::{check_distinct, check_writable, parts, print, write_text};

/// Fails before the work starts when an output cannot end well: an ending of no format that `of` chooses, missing folder, a
/// folder in its place.
pub(crate) fn check_output(path: &Path, of: fn(&Format) -> bool) -> Result<()> {
    io::expect_ending(path, of)?;
    check_writable(path)
}

/// What holds several scans or arrays, for people.
pub(crate) fn files_with_names() -> String {
    format!("a file of several scans or arrays ({})", io::endings(Format::has_names).join(", "))
}

/// Writes an image in the format of the name; a volume's picture is a montage. `layout` is where axes go in a BART array.
/// Returns what the file leaves out.
pub(crate) fn write_image(path: &Path, image: &Image, layout: Layout) -> Result<Vec<String>> {
    let png = PngOptions::preview(image.shape_zyx()[0], image.repetitions());
    let options = io::WriteOptions { png, layout, ..io::WriteOptions::default() };
    Ok(io::write_image(path, image, &options)?)
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
