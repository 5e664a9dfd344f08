//! `rayspin rerun`

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{ArgMatches, FromArgMatches as _};
use rayspin::imaging::metrics::Numbers;
use rayspin::io;
use rayspin::report::RunRecord;
use rayspin::report::record::FileEntry;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_shell::args::Common;
use rayspin_shell::effect::Given;
use rayspin_shell::stdin::{self, Input};
use rayspin_shell::stdout::Output;
use rayspin_shell::{BadInput, say};
use serde_json::Value;

use super::files;
use crate::args::files::Named;
use crate::args::{self, Cli, Command, Rerun};

/// Parameters that a run measures: they tell how it went, not what it did.
const MEASURED: [&str; 15] = [
    // A folder of outputs, which lies elsewhere now.
    "cache",
    "memory stated",
    "GPU memory stated",
    "GPU memory peak",
    "GPU memory peaks beside",
    "devices beside",
    "budget",
    "images per second",
    "seconds of the stream",
    "certificates",
    "largest eigenvalue",
    "image scale",
    "lambda searched",
    "coil fit error",
    "noise standard deviation",
];
/// Images that are nearer to each other than this differ by rounding: in the order of sums, on another
/// processor.
const ROUNDING: f64 = 1e-5;

/// Repeats the run of a record in a folder of its own, and names the differences.
///
/// Errors: a file that is no record of a repeatable run, inputs that are gone or have changed, whatever the
/// run refuses, an image that differs.
pub(crate) fn run(args: &Rerun, common: &Common, given: &Given) -> Result<()> {
    let before = read(&args.record)?;
    let changed = check_inputs(&before, args.changed_inputs)?;
    let folder = folder(args);
    let repeated = repeated(&before, args, &folder)?;
    let mut cli = Cli::from_arg_matches(&repeated.matches)?;
    if given.name("device").is_some() {
        cli.common.device = common.device;
    }
    cli.common.threads = common.threads.or(cli.common.threads);
    cli.common.gpu_memory = common.gpu_memory.or(cli.common.gpu_memory);
    cli.common.quiet |= common.quiet;
    for file in &repeated.unknown {
        say!("note: {}: whether it has changed is unknown, as the record does not list it", file.display());
    }
    files::make_folder(&folder)?;
    crate::execute(cli, Given::of(&args::command(), &repeated.matches).with_line(repeated.line))?;

    let now = read(&repeated.record)?;
    let rows = differences(&before, &now, &changed);
    if rows.is_empty() {
        say!("the runs differ in times alone");
    } else {
        files::print(&table_of_differences(rows))?;
    }
    let compared: Vec<Compared> =
        before.outputs.iter().zip(&now.outputs).map(|(old, new)| Compared::of(old, new)).collect();
    files::print(&table_of(&compared))?;
    match compared.iter().find(|output| output.differs()) {
        // Other inputs give other images.
        Some(_) if !changed.is_empty() => Ok(()),
        None => Ok(()),
        Some(output) => {
            anyhow::bail!("{}: expected what the record has, found {}", output.path, output.result())
        }
    }
}

fn read(path: &Path) -> Result<RunRecord> {
    let shown = path.display();
    let text = io::read_text(path).map_err(|error| {
        BadInput::new(format!("{shown}: expected a record of a run (.json), found none ({error})"))
            .hint("recon and simulate write such a record beside their first output")
    })?;
    let record = RunRecord::from_json(&text).map_err(|error| {
        BadInput::new(format!("{shown}: expected a record of a run (.json), found other text: {error}"))
            .hint("recon and simulate write such a record beside their first output")
    })?;
    Ok(record)
}

/// image.json → image-rerun, where the command is started.
fn folder(args: &Rerun) -> PathBuf {
    let stem = args.record.file_stem().unwrap_or_default().to_string_lossy();
    // A folder that begins with - would make options of the outputs in it.
    files::argument(args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{stem}-rerun"))))
}

/// That each input is the file that the record has seen. Returns rows of those that are not, where these are
/// allowed.
fn check_inputs(record: &RunRecord, changed: bool) -> Result<Vec<[String; 3]>> {
    let mut rows = Vec::new();
    for input in &record.inputs {
        if stdin::stands_for(Path::new(&input.path)) {
            let message = "expected inputs of the recorded run that are files, found standard input";
            return Err(BadInput::new(message).hint("what came through it is gone: run it again").into());
        }
        let entry = FileEntry::read(&input.path).map_err(|error| {
            BadInput::new(format!(
                "{}: expected the input of the recorded run, found none ({error})",
                input.path
            ))
            .hint("start rerun in the folder in which the run was started")
        })?;
        if entry.blake3 == input.blake3 {
            continue;
        }
        let text = format!(
            "{}: expected {} bytes of hash {}…, found {} bytes of hash {}…",
            input.path,
            input.bytes,
            brief(&input.blake3),
            entry.bytes,
            brief(&entry.blake3)
        );
        if !changed {
            return Err(BadInput::new(text)
                .hint("the file has changed since the run; --changed-inputs runs with it as it is")
                .into());
        }
        let hash = |entry: &FileEntry| format!("hash {}…", brief(&entry.blake3));
        rows.push([input.path.clone(), hash(input), hash(&entry)]);
    }
    Ok(rows)
}

/// The first digits of a hash.
fn brief(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// The recorded command with its outputs in another folder.
struct Repeated {
    line: Vec<String>,
    matches: ArgMatches,
    /// Where its record goes.
    record: PathBuf,
    /// Inputs that the record does not list.
    unknown: Vec<PathBuf>,
}

fn repeated(before: &RunRecord, args: &Rerun, folder: &Path) -> Result<Repeated> {
    let refused = |found: &str| -> anyhow::Error {
        let message =
            format!("{}: expected a record of recon or simulate, found {found}", args.record.display());
        BadInput::new(message).hint("recon and simulate write such a record beside their first output").into()
    };
    if before.program != "rayspin" {
        return Err(refused(&format!("one of {}", before.program)));
    }
    let parse = |line: &[String]| -> Result<ArgMatches> {
        let matches = args::command().try_get_matches_from(line).map_err(|error| {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            refused(&format!("a command that this version does not know ({first})"))
        })?;
        Ok(matches)
    };
    let matches = parse(&before.command)?;
    if !matches!(matches.subcommand_name(), Some("recon" | "simulate")) {
        return Err(refused(&format!("a run of {}", matches.subcommand_name().unwrap_or("another"))));
    }
    let mut cli = Cli::from_arg_matches(&matches)?;
    let moved = moved(&mut cli.command, folder);
    let mut line: Vec<String> = before.command.iter().map(|argument| elsewhere(argument, &moved)).collect();
    let given = innermost(&matches).try_get_one::<PathBuf>("record").ok().flatten();
    let given = given.and_then(|given| moved.iter().find(|(from, _)| *from == given.display().to_string()));
    let record = match given {
        Some((_, to)) => PathBuf::from(to),
        None => {
            let record = folder.join(args.record.file_name().unwrap_or_default());
            // Behind -- nothing is an option.
            let end = line.iter().position(|argument| argument == "--").unwrap_or(line.len());
            line.splice(end..end, ["--record".to_owned(), record.display().to_string()]);
            record
        }
    };
    let matches = parse(&line)?;
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let mut again = Cli::from_arg_matches(&matches)?;
    for named in again.command.files().named {
        match named {
            Named::Input(Input { path, .. }) => inputs.extend(files::sources(path)),
            Named::Output(Output { path, .. }) | Named::File(path) | Named::Folder(path) => {
                if path.parent() != Some(folder) {
                    return Err(refused(&format!("the output {}, which would not move", path.display())));
                }
                outputs.push(path.clone());
            }
        }
    }
    let kept = before.inputs.iter().chain(&before.outputs).map(|entry| PathBuf::from(&entry.path));
    let kept: Vec<PathBuf> = kept.chain([args.record.clone()]).collect();
    files::check_distinct(kept.iter().chain(&inputs), outputs.iter()).map_err(|error| {
        BadInput::new(format!("--out {}: {error}", folder.display()))
            .hint("name another folder: what was recorded stays, and the new outputs are compared with it")
    })?;
    let unknown = inputs.into_iter().filter(|file| !kept.contains(file) && file.is_file()).collect();
    Ok(Repeated { line, matches, record, unknown })
}

/// The outputs of a command line, and where they go in `folder`.
fn moved(command: &mut Command, folder: &Path) -> Vec<(String, String)> {
    let mut moved: Vec<(String, String)> = Vec::new();
    for named in command.files().named {
        let path = match named {
            Named::Output(Output { path, .. }) | Named::File(path) | Named::Folder(path) => path,
            Named::Input(_) => continue,
        };
        let name = match path.file_name() {
            Some(name) if path.as_os_str() != "-" => name.to_string_lossy().into_owned(),
            _ => "output.npy".into(),
        };
        // Outputs of one name lay in several folders.
        let names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{number}-{name}")));
        let mut places = names.map(|name| folder.join(name).display().to_string());
        if let Some(place) = places.find(|place| moved.iter().all(|(_, taken)| taken != place)) {
            moved.push((path.display().to_string(), place));
        }
    }
    moved
}

/// The arguments of the subcommand within.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}

/// An argument that names an output, alone or after an option (`--truth=a.npy`, `-oa.npy`, `-o=a.npy`), with
/// the output's new place.
fn elsewhere(argument: &str, moved: &[(String, String)]) -> String {
    for (from, to) in moved {
        match argument.strip_suffix(from.as_str()) {
            Some("") => return to.clone(),
            // -o ends what may be several options of one letter.
            Some(option)
                if option.starts_with("--") && option.ends_with('=')
                    || option.starts_with('-') && option.trim_end_matches('=').ends_with('o') =>
            {
                return format!("{option}{to}");
            }
            _ => {}
        }
    }
    argument.to_owned()
}

/// What differs between two runs besides times and outputs: a quantity, its recorded value and the one now.
fn differences(before: &RunRecord, now: &RunRecord, inputs: &[[String; 3]]) -> Vec<[String; 3]> {
    let mut rows = inputs.to_vec();
    let mut row = |what: &str, before: String, now: String| {
        if before != now {
            rows.push([what.to_owned(), before, now]);
        }
    };
    row("version", before.version.clone(), now.version.clone());
    row("processor", before.device.clone(), now.device.clone());
    row("threads", before.threads.to_string(), now.threads.to_string());
    let names =
        before.versions.keys().chain(now.versions.keys().filter(|name| !before.versions.contains_key(*name)));
    for name in names.filter(|name| *name != "rayspin") {
        let version_in =
            |record: &RunRecord| record.versions.get(name).cloned().unwrap_or_else(|| "none".into());
        row(name, version_in(before), version_in(now));
    }
    let others = now.parameters.keys().filter(|name| !before.parameters.contains_key(*name));
    for name in before.parameters.keys().chain(others).filter(|name| !MEASURED.contains(&name.as_str())) {
        let (old, new) = (before.parameters.get(name), now.parameters.get(name));
        if !alike(old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null)) {
            let text =
                |value: Option<&Value>| value.map_or_else(|| "not recorded".to_owned(), Value::to_string);
            row(name, text(old), text(new));
        }
    }
    // Notes name outputs, which lie elsewhere now.
    let recorded = |note: &String| {
        let outputs = before.outputs.iter().zip(&now.outputs);
        outputs.fold(note.clone(), |note, (old, new)| note.replace(&new.path, &old.path))
    };
    let notes: Vec<String> = now.notes.iter().map(recorded).collect();
    for note in before.notes.iter().filter(|note| !notes.contains(note)) {
        row("note", note.clone(), "none".into());
    }
    for note in notes.iter().filter(|note| !before.notes.contains(note)) {
        row("note", "none".into(), note.clone());
    }
    rows
}

fn table_of_differences(rows: Vec<[String; 3]>) -> Table {
    let columns = [Column::text("What"), Column::text("Recorded"), Column::text("Now")];
    let mut table = Table::new("What differs besides times", columns);
    for [what, before, now] in rows {
        table.push([Cell::Text(what), Cell::Text(before), Cell::Text(now)]);
    }
    table
}

/// Whether two values are the same but for the last digits of numbers.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            a == b || (a - b).abs() <= 1e-4 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| alike(a, b)))
        }
        _ => a == b,
    }
}

/// How an output compares with the recorded one.
struct Compared {
    path: String,
    outcome: Outcome,
}

enum Outcome {
    Same,
    /// Relative root mean square difference of the images.
    Images(f64),
    /// Why only the bytes can be compared.
    Bytes(&'static str),
}

impl Compared {
    fn of(before: &FileEntry, now: &FileEntry) -> Self {
        let outcome = if before.blake3 == now.blake3 {
            Outcome::Same
        } else if FileEntry::read(&before.path).is_ok_and(|entry| entry.blake3 == before.blake3) {
            nrmse(&now.path, &before.path)
                .map_or(Outcome::Bytes("no image that can be read"), Outcome::Images)
        } else {
            Outcome::Bytes("the recorded file is gone or has changed")
        };
        Self { path: now.path.clone(), outcome }
    }

    fn differs(&self) -> bool {
        match self.outcome {
            Outcome::Same => false,
            Outcome::Images(error) => error.is_nan() || error > ROUNDING,
            Outcome::Bytes(_) => true,
        }
    }

    fn result(&self) -> String {
        match self.outcome {
            Outcome::Same => "the same bytes".into(),
            Outcome::Images(error) => format!("an image {error:.1e} away (relative RMS)"),
            Outcome::Bytes(why) => format!("other bytes ({why})"),
        }
    }
}

/// The relative difference of two images, none where these cannot be compared.
fn nrmse(image: &str, reference: &str) -> Option<f64> {
    let (image, reference) = (io::read_image(image).ok()?.image, io::read_image(reference).ok()?.image);
    let judgement = super::metrics::judge(&image, &reference, Numbers::ByKind, false).ok()?;
    Some(judgement.quality.nrmse)
}

fn table_of(outputs: &[Compared]) -> Table {
    let mut table =
        Table::new("Outputs beside the recorded ones", [Column::text("File"), Column::text("Result")]);
    for output in outputs {
        table.push([Cell::Text(output.path.clone()), Cell::Text(output.result())]);
    }
    table
}
