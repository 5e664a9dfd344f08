//! What several commands do with files.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor, Progress as _};
use rayspin::device::Device;
use rayspin::io::atomic::{self, staged};
use rayspin::io::{self, Format, png::PngOptions};
use rayspin::job::ComputeTarget;
use rayspin::report::record::{FileEntry, SCHEMA};
use rayspin::report::{RunRecord, RunRecorder};
pub(crate) use rayspin_shell::files::{
    argument, check_distinct, check_file, check_writable, make_folder, parts, print, sources, write_text,
};
use rayspin_shell::stdin::{self, Input};
use rayspin_shell::stdout::{self, Output};
use rayspin_shell::{BadInput, Context, say};

use crate::args::files::{Named, RECORD};
use crate::args::{self, Command};

/// Fails before the work starts when an output cannot end well: an ending of no format that `fits`, a missing
/// folder, a folder in its place.
pub(crate) fn check_output(path: &Path, fits: fn(&Format) -> bool) -> Result<()> {
    io::expect_ending(path, fits)?;
    check_writable(path)
}

/// The files of a run, checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunFiles {
    pub(crate) inputs: Vec<PathBuf>,
    /// With the record.
    pub(crate) outputs: Vec<PathBuf>,
    /// The run record, unless none is written.
    pub(crate) record: Option<PathBuf>,
    /// All files of the batch, if the run is part of one.
    pub(crate) batch: Option<Arc<Self>>,
    /// What the outputs were before the run.
    before: BTreeMap<PathBuf, u64>,
}

impl RunFiles {
    /// Those that the command line names, and the record where it names none: beside the first output.
    ///
    /// Errors: an output that is an input or another output as well, or that is there and no file; a record
    /// that cannot be written, or in the place of a file that is no record.
    pub(crate) fn of(command: &mut Command) -> Result<Self> {
        let args::files::Files { named, record_of, has_sidecar } = command.files();
        let (mut files, mut folders) = (Self::default(), Vec::new());
        for named in named {
            match named {
                Named::Input(Input { path, .. }) => files.inputs.push(path.clone()),
                Named::Output(Output { path, option, .. }) => {
                    check_file(path)?;
                    if option == RECORD {
                        check_writable(path)?;
                        expect_record(path)?;
                        files.record = Some(path.clone());
                    }
                    files.outputs.push(path.clone());
                }
                Named::File(path) => {
                    check_file(path)?;
                    files.outputs.push(path.clone());
                }
                Named::Folder(path) => folders.push(path.clone()),
            }
        }
        if let Some(output) = record_of {
            let record = record_path(&output, has_sidecar)?;
            files.outputs.push(record.clone());
            files.record = Some(record);
        }
        // What lies in a folder stays: no output may take its place.
        check_distinct(files.inputs.iter().chain(&folders), files.outputs.iter())?;
        files.before = numbers(&files.outputs);
        Ok(files)
    }

    /// Checks files whose names the command line does not tell: stacks of slices, echoes.
    ///
    /// Errors: one that is an input or another output as well.
    pub(crate) fn expect_apart(&self, files: &[PathBuf]) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let run = self.batch.as_deref().unwrap_or(self);
        check_distinct(run.inputs.iter(), run.outputs.iter().chain(files))
    }

    /// After a run that failed: removes the record of before where an output that it tells of is a new one.
    pub(crate) fn remove_outdated_record(&self) {
        let now = numbers(&self.outputs);
        let changed = |file: &Path| now.get(file) != self.before.get(file);
        let Some(path) = self.record.as_deref().filter(|path| now.contains_key(*path) && !changed(path))
        else {
            return;
        };
        let Found::Record(record) = Found::at(path) else { return };
        let told = |output: &PathBuf| {
            let names = parts(output).into_iter().chain([output.clone()]);
            names.filter_map(|file| Some(file.file_name()?.to_owned())).any(|name| tells_of(&record, &name))
        };
        let replaced =
            |output: &PathBuf| parts(output).iter().chain([output]).any(|file| changed(file)) && told(output);
        if self.outputs.iter().filter(|output| *output != path).any(replaced)
            && std::fs::remove_file(path).is_ok()
        {
            say!(
                "note: {}: removed, as it told of an earlier image that this run has replaced",
                path.display()
            );
        }
    }

    /// Begins to hash the inputs, beside the run, where a record is to have the hashes. What arrives through
    /// a pipe can be read once, and has no hash.
    pub(crate) fn hashing(&self) -> Option<Hashing> {
        self.record.as_ref()?;
        let stream = |file: &PathBuf| file.as_os_str() == "-" || (file.exists() && !file.is_file());
        let files: Vec<PathBuf> = self.inputs.iter().flat_map(sources).filter(|file| !stream(file)).collect();
        let files: Arc<[PathBuf]> = files.into();
        let beside = Arc::clone(&files);
        Some(match std::thread::Builder::new().spawn(move || hashes(&beside)) {
            Ok(thread) => Hashing::Beside(thread),
            Err(_) => Hashing::Afterwards(files),
        })
    }

    /// Hashes the files that a run has written, where a record is to have the hashes.
    pub(crate) fn record_outputs(&self, recorder: &mut RunRecorder, written: &[PathBuf]) -> Result<()> {
        match self.record {
            Some(_) => written.iter().try_for_each(|file| record_output(recorder, file)),
            None => Ok(()),
        }
    }
}

fn hashes(files: &[PathBuf]) -> Result<Vec<FileEntry>> {
    let hash = |file: &PathBuf| {
        let mut entry = FileEntry::read(file).with_context(|| format!("hashing {}", file.display()))?;
        if stdin::stands_for(file) {
            entry.path = "-".to_owned();
        }
        Ok(entry)
    };
    files.iter().map(hash).collect()
}

/// The number of each file and its parts in the file system: a file that takes the name of another has one of
/// its own.
fn numbers(files: &[PathBuf]) -> BTreeMap<PathBuf, u64> {
    let names = files.iter().flat_map(|file| parts(file).into_iter().chain([file.clone()]));
    names.filter_map(|file| std::fs::metadata(&file).ok().map(|metadata| (file, metadata.ino()))).collect()
}

/// Inputs whose hashes are found beside the run, on a thread of their own; after it where no thread could
/// start.
pub(crate) enum Hashing {
    Beside(std::thread::JoinHandle<Result<Vec<FileEntry>>>),
    Afterwards(Arc<[PathBuf]>),
}

impl Hashing {
    /// Records the inputs with their hashes.
    pub(crate) fn record(self, recorder: &mut RunRecorder) -> Result<()> {
        let entries = match self {
            Self::Beside(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Self::Afterwards(files) => hashes(&files),
        };
        entries?.into_iter().for_each(|entry| recorder.input_entry(entry));
        Ok(())
    }
}

/// The record of an image: image.nii.gz → image.json, or image.nii.gz.json where image.json is there and is
/// something else: the record of another output, a file of another program, or is to be a sidecar.
///
/// Errors: both are there and something else.
pub(crate) fn record_path(image: &Path, has_sidecar: bool) -> Result<PathBuf> {
    let name = image.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    let names = [stem, &name].map(|name| image.with_file_name(format!("{name}.json")));
    match names.iter().skip(usize::from(has_sidecar)).find(|record| !is_of_another(record, &name)) {
        Some(record) => Ok(record.clone()),
        None => {
            let message = format!(
                "{}: expected the record of {name}, or no file, found another file",
                names[1].display()
            );
            Err(BadInput::new(message).hint("--record FILE names the record, --no-record writes none").into())
        }
    }
}

/// What lies where a record is to go.
enum Found {
    /// No file, an empty one, or a record that was cut off.
    Nothing,
    Record(Box<RunRecord>),
    /// A file of another program, a folder, a pipe.
    Other,
}

impl Found {
    fn at(file: &Path) -> Self {
        match io::read_text(file) {
            Ok(text) if text.trim().is_empty() || is_cut(&text) => Self::Nothing,
            Ok(text) => {
                RunRecord::from_json(&text).map_or(Self::Other, |record| Self::Record(Box::new(record)))
            }
            Err(_) if file.exists() => Self::Other,
            Err(_) => Self::Nothing,
        }
    }
}

/// Whether this is the beginning of a record.
fn is_cut(text: &str) -> bool {
    let begin = format!("{{\n  \"schema\": {SCHEMA},\n  \"program\": \"rayspin");
    let cut = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err_and(|error| error.is_eof());
    (text.starts_with(&begin) || begin.starts_with(text.trim_end())) && cut()
}

/// Errors: a file that is no record.
fn expect_record(file: &Path) -> Result<()> {
    match Found::at(file) {
        Found::Nothing | Found::Record(_) => Ok(()),
        Found::Other => {
            let message = format!(
                "{RECORD}: {}: expected a record of a run, or no file, found another file",
                file.display()
            );
            Err(BadInput::new(message).hint("give the record another name").into())
        }
    }
}

/// Whether this is the record of a run with an output of that name.
fn tells_of(record: &RunRecord, output: &std::ffi::OsStr) -> bool {
    let mut outputs = record.outputs.iter().map(|output| Path::new(&output.path));
    outputs.any(|path| path.iter().any(|part| part == output))
}

/// Whether there is something that is not the record of a run with an output `image`, or with its stacks of
/// slices.
fn is_of_another(file: &Path, image: &str) -> bool {
    let mut names = io::stack_paths(image, 2).unwrap_or_default();
    names.push(image.into());
    match Found::at(file) {
        Found::Nothing => false,
        Found::Record(record) => !names.iter().any(|name| tells_of(&record, name.as_os_str())),
        Found::Other => true,
    }
}

/// Says what a run has made, once its outputs have their names.
pub(crate) fn say_made(line: String) {
    atomic::once_named(move || say!("{line}"));
}

/// Writes an image in the format of the name; a volume's picture is a montage. `values` is the part of
/// complex numbers that is written; the format decides when it is absent. The numbers are no Hounsfield
/// units.
pub(crate) fn write_image<T: io::Pixel>(
    path: &Path,
    image: &Image<T>,
    values: Option<io::Values>,
    options: io::WriteOptions,
) -> Result<Vec<String>> {
    let png = PngOptions::preview(image.shape_zyx()[0], image.repetitions());
    let options = io::WriteOptions { png, values, hounsfield: Some(false), ..options };
    Ok(io::write_image(path, image, &options)?)
}

/// The DICOM file whose patient and study images take over. Errors: a file that cannot be one.
pub(crate) fn dicom_template(path: Option<&Path>) -> Result<Option<Arc<io::DicomTemplate>>> {
    Ok(path.map(io::DicomTemplate::read).transpose()?.map(Arc::new))
}

/// A recorder for this process on its device.
pub(crate) fn recorder(context: &Context) -> RunRecorder {
    recorder_on(context, &context.device)
}

/// A recorder for this process on a device.
pub(crate) fn recorder_on(context: &Context, device: &Device) -> RunRecorder {
    let (threads, line) = (context.threads(), context.given.line().iter().cloned());
    let mut recorder =
        RunRecorder::start("rayspin", env!("CARGO_PKG_VERSION"), line, device.describe(), threads);
    recorder.version("rayspin", env!("CARGO_PKG_VERSION"));
    recorder.version("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS));
    recorder
}

/// Where a run on a device computes, and what it may take.
pub(crate) fn compute_target(context: &Context, device: &Device) -> ComputeTarget {
    let mut target = ComputeTarget::of(device.clone());
    target.undecided = context.undecided;
    target.gpus = context.gpus;
    target.finish_on_cpu = context.finish_on_cpu;
    target.gpu_memory = context.gpu_memory;
    target
}

/// Gives the running stage's time to the stages that the monitor measured within it.
pub(crate) fn record_stages(recorder: &mut RunRecorder, monitor: &Monitor<'_>) {
    // Reading is a stage of the recorder's own.
    for (stage, seconds) in monitor.stages().into_iter().filter(|(stage, _)| stage != "read") {
        recorder.within(stage, Duration::from_secs_f64(seconds));
    }
}

/// Gives all outputs that `work` writes their names in one step: an image and its record, and both files of
/// an array. Those that are whole get theirs also where another one fails.
pub(crate) fn together<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    atomic::together(|| Ok::<_, io::Error>(work()))?
}

/// The files of an output that was written: several of an array in BART's format, and a folder as such.
pub(crate) fn written(output: &Path) -> Vec<PathBuf> {
    if staged(output).is_dir() { vec![output.to_owned()] } else { parts(output) }
}

/// Hashes a file or a folder that a run has written.
fn record_output(recorder: &mut RunRecorder, file: &Path) -> Result<()> {
    let there = staged(file);
    // Each file of a folder has its own hash.
    let files = if there.is_dir() { parts(&there) } else { vec![there.clone()] };
    for part in files {
        let mut entry = FileEntry::read(&part).with_context(|| format!("hashing {}", file.display()))?;
        let name = part.strip_prefix(&there).ok().filter(|name| !name.as_os_str().is_empty());
        let path = name.map_or_else(|| file.to_owned(), |name| file.join(name));
        entry.path =
            if stdout::stands_for(file) { "-".to_owned() } else { path.to_string_lossy().into_owned() };
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

/// The files that arguments name: each file itself, a folder that is one image too, and of other folders the
/// files that are wanted.
pub(crate) struct Inputs {
    pub(crate) files: Vec<PathBuf>,
    /// Whether they were several from the start: a folder counts as such.
    pub(crate) several: bool,
    left_out: Vec<PathBuf>,
}

/// The files that `paths` name; those in folders in the order of their names, hidden ones and folders in
/// folders aside.
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
        let mut files: Vec<PathBuf> =
            entries.with_context(fail)?.iter().map(std::fs::DirEntry::path).collect();
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            // A file of two parts counts once, as its data.
            file.is_file() && !name.starts_with('.') && parts(file).last() == Some(file)
        });
        files.sort();
        let (taken, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| wanted(file));
        if taken.is_empty() {
            let message = format!("{}: expected a folder with files to read, found none", path.display());
            return Err(BadInput::new(message).hint("`rayspin info FOLDER` lists what it can read").into());
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
        let folder = tempfile::tempdir().unwrap();
        let of = |image: &str| {
            record_path(&folder.path().join(image), false)
                .map(|record| record.strip_prefix(&folder).unwrap().display().to_string())
        };
        let write = |name: &str, outputs: serde_json::Value| {
            let mut record = serde_json::to_value(
                rayspin::report::RunRecorder::start("rayspin", "1", ["rayspin"], "cpu", 1).finish(None),
            )
            .unwrap();
            record["outputs"] = outputs;
            std::fs::write(folder.path().join(name), record.to_string()).unwrap();
        };
        let output = |path: &str| serde_json::json!([{ "path": path, "bytes": 1, "blake3": "" }]);
        assert_eq!(of("b.nii.gz").unwrap(), "b.json");
        assert_eq!(of("b.v2.png").unwrap(), "b.v2.json");
        // Its own record is replaced, wherever the run was started, also one that was cut off.
        write("b.json", output("elsewhere/b.nii.gz"));
        assert_eq!(of("b.nii.gz").unwrap(), "b.json");
        let whole = rayspin::report::RunRecorder::start("rayspin", "1", ["rayspin"], "cpu", 1).finish(None);
        let whole = whole.to_json().unwrap();
        let whole = whole.trim_end();
        for cut in ["", "\n", "{\n", &whole[..whole.len() / 2], &whole[..whole.len() - 1]] {
            std::fs::write(folder.path().join("c.json"), cut).unwrap();
            assert_eq!(of("c.npy").unwrap(), "c.json", "{cut}");
        }
        for other in ["a list", "{\"a\": 1}\n{\"a\": 2}", "\u{feff}{}", "{\n  \"Modality\": \"MR"] {
            std::fs::write(folder.path().join("c.json"), other).unwrap();
            assert_eq!(of("c.npy").unwrap(), "c.npy.json", "{other}");
        }
        std::fs::write(folder.path().join("c.json"), b"{\"Name\": \"\xe9\"}").unwrap();
        assert_eq!(of("c.npy").unwrap(), "c.npy.json");
        write("d.json", output("d.dicom/IM000001.dcm"));
        assert_eq!(of("d.dicom").unwrap(), "d.json");
        write("s.json", output("s_1.nii"));
        assert_eq!((of("s.nii").unwrap(), of("s.npy").unwrap()), ("s.json".into(), "s.npy.json".into()));
        // The record of a scan, or what another program keeps beside an image, is not.
        assert_eq!(of("b.npy").unwrap(), "b.npy.json");
        std::fs::write(folder.path().join("e.json"), r#"{"RepetitionTime": 2}"#).unwrap();
        assert_eq!(of("e.nii").unwrap(), "e.nii.json");
        std::fs::write(folder.path().join("e.nii.json"), "[]").unwrap();
        assert!(of("e.nii").unwrap_err().to_string().contains("e.nii.json"));
    }
}
