//! What several commands do with files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor, Progress as _};
use rayspin::io::{self, Format, cfl::Layout, png::PngOptions};
use rayspin::report::record::FileEntry;
use rayspin::report::{RunRecord, RunRecorder};
pub(crate) use rayspin_shell::files::{argument, check_distinct, check_writable, parts, print, write_text};
use rayspin_shell::{BadInput, Context, stdout};

/// Fails before the work starts when an output cannot end well: an ending of no format that `of` chooses, missing folder, a
/// folder in its place.
pub(crate) fn check_output(path: &Path, of: fn(&Format) -> bool) -> Result<()> {
    io::expect_ending(path, of)?;
    check_writable(path)
}

/// The files that a reconstruction reads, and its record.
pub(crate) struct RunFiles {
    inputs: Vec<PathBuf>,
    /// The run record, unless none is written.
    pub(crate) record: Option<PathBuf>,
}

impl RunFiles {
    /// With `images` and perhaps another file `also` as outputs. Of the record there is none, one beside the first image, or the
    /// one that the user names.
    ///
    /// Errors: an output that cannot be written, or that is an input as well.
    pub(crate) fn check(
        inputs: Vec<PathBuf>,
        images: &[PathBuf],
        also: Option<&PathBuf>,
        record: Option<Option<&PathBuf>>,
    ) -> Result<Self> {
        for output in images {
            check_output(output, Format::writes_images)?;
        }
        let record = match record {
            Some(Some(record)) => {
                check_writable(record)?;
                Some(record.clone())
            }
            Some(None) => {
                images.iter().find(|image| !stdout::stands_for(image)).map(|image| record_path(image))
            }
            None => None,
        };
        check_distinct(inputs.iter(), images.iter().chain(also).chain(&record))?;
        Ok(Self { inputs, record })
    }

    /// Begins to hash the inputs, beside the run.
    pub(crate) fn hashing(&self) -> Hashing {
        let files: Vec<PathBuf> = self.inputs.iter().flat_map(parts).collect();
        let hash =
            |file: &PathBuf| FileEntry::read(file).with_context(|| format!("hashing {}", file.display()));
        Hashing(std::thread::spawn(move || files.iter().map(hash).collect()))
    }
}

/// Inputs whose hashes are found on a thread of its own.
pub(crate) struct Hashing(std::thread::JoinHandle<Result<Vec<FileEntry>>>);

impl Hashing {
    /// Records the inputs with their hashes.
    pub(crate) fn record(self, recorder: &mut RunRecorder) -> Result<()> {
        match self.0.join() {
            Ok(entries) => entries?.into_iter().for_each(|entry| recorder.input_entry(entry)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(())
    }
}

/// image.nii.gz → image.json
pub(crate) fn record_path(image: &Path) -> PathBuf {
    let name = image.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    image.with_file_name(format!("{stem}.json"))
}

/// Writes an image in the format of the name; a volume's picture is a montage. `layout` is where axes go in a BART array.
/// `values` are what is written of complex numbers, by the format when absent.
pub(crate) fn write_image<T: io::Pixel>(
    path: &Path,
    image: &Image<T>,
    layout: Layout,
    values: Option<io::Values>,
) -> Result<Vec<String>> {
    let png = PngOptions::preview(image.shape_zyx()[0], image.repetitions());
    let options = io::WriteOptions { png, layout, values, ..io::WriteOptions::default() };
    Ok(io::write_image(path, image, &options)?)
}

/// A recorder for this process on this device.
pub(crate) fn recorder(context: &Context) -> RunRecorder {
    let (threads, line) = (context.threads(), context.given.line().iter().cloned());
    let mut recorder =
        RunRecorder::start("rayspin", env!("CARGO_PKG_VERSION"), line, context.device.describe(), threads);
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

/// Hashes an output of a run.
pub(crate) fn record_output(recorder: &mut RunRecorder, file: &Path) -> Result<()> {
    // Each file of a folder has its own hash.
    let of_folder = if file.is_dir() { parts(file) } else { vec![file.to_owned()] };
    for file in of_folder {
        let mut entry = FileEntry::read(&file).with_context(|| format!("hashing {}", file.display()))?;
        if stdout::stands_for(&file) {
            entry.path = "-".to_owned();
        }
        recorder.output_entry(entry);
    }
    Ok(())
}

/// Writes a record, whole or not at all.
pub(crate) fn write_record(path: &Path, record: &RunRecord) -> Result<()> {
    let mut text = record.to_json().context("run record")?;
    text.push('\n');
    write_text(path, &text)
}

/// The files that arguments name: each file itself, a folder that is one image too, and of other folders the files that are
/// wanted.
pub(crate) struct Inputs {
    pub(crate) files: Vec<PathBuf>,
    /// Whether they were several from the start: a folder counts as such.
    pub(crate) several: bool,
    left_out: Vec<PathBuf>,
}

/// The files that `paths` name; those in folders in the order of their names, hidden ones and folders in folders aside.
///
/// Errors: a folder that cannot be read, or that holds none that is `wanted`.
pub(crate) fn inputs(paths: &[PathBuf], wanted: impl Fn(&Path) -> bool) -> Result<Inputs> {
    let mut inputs = Inputs { files: Vec::new(), several: paths.len() > 1, left_out: Vec::new() };
    for path in paths {
        if !path.is_dir() || io::detect(path).is_ok() {
            inputs.files.push(path.clone());
            continue;
        }
        inputs.several = true;
        let fail = || path.display().to_string();
        let entries: std::io::Result<Vec<_>> = std::fs::read_dir(path).with_context(fail)?.collect();
        let mut found: Vec<PathBuf> =
            entries.with_context(fail)?.iter().map(std::fs::DirEntry::path).collect();
        found.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            // A file of two parts counts once, as its data.
            file.is_file() && !name.starts_with('.') && parts(file).last() == Some(file)
        });
        found.sort();
        let (taken, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|file| wanted(file));
        if taken.is_empty() {
            let message = format!("{}: expected a folder with files to read, found none", path.display());
            return Err(BadInput::new(message).hint("rayspin info FOLDER lists what it can read").into());
        }
        inputs.files.extend(taken);
        inputs.left_out.extend(others);
    }
    Ok(inputs)
}

impl Inputs {
    /// Says which files of folders were left out, and why.
    pub(crate) fn say_left_out(&self, context: &Context, why: &str) {
        if self.left_out.is_empty() || context.quiet {
            return;
        }
        let some: Vec<String> = self.left_out.iter().take(4).map(|file| file.display().to_string()).collect();
        let more = if self.left_out.len() > some.len() { ", …" } else { "" };
        let note =
            format!("left out {} {why}: {}{more}", count(self.left_out.len(), "file"), some.join(", "));
        context.console.note(&note);
    }
}

/// `1 file`, `2 files`
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_named_after_the_image() {
        assert_eq!(record_path(Path::new("a/b.nii.gz")), Path::new("a/b.json"));
        assert_eq!(record_path(Path::new("b.v2.png")), Path::new("b.v2.json"));
    }
}
