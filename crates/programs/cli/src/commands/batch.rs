//! `rayspin batch`: many scans with one start of the processor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Result;
use clap::FromArgMatches as _;
use rayspin::report::RunRecord;
use rayspin::report::page::{Page, Section};
use rayspin::report::record::FileEntry;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_shell::effect::Given;
use rayspin_shell::{BadInput, Console, Context, interrupt, line_of, say};

use super::files::{self, RunFiles};
use super::recon::{Made, Ready};
use crate::args::batch::Batch;
use crate::args::mri::ReconMri;
use crate::args::{self, Cli, Command, Recon};

/// A scan and the command that reconstructs it.
struct Item {
    scan: PathBuf,
    args: Box<ReconMri>,
    context: Context,
    files: RunFiles,
}

/// What became of a scan.
enum Outcome {
    /// Reconstructed within these seconds, from the first byte read to the last one written.
    Made(f64),
    /// Its image and its record were there.
    There,
    Failed(String),
}

/// Reconstructs every scan.
///
/// Errors: no scan, outputs that would be one file, options that `recon mri` refuses; a scan that failed,
/// once all others are done.
pub(crate) fn run(context: &Context, args: &Batch) -> Result<()> {
    let scans = scans(&args.scans)?;
    let outputs = outputs(&scans, &args.outputs)?;
    let shard = args.shard.map_or((0, 1), |shard| (shard.number, shard.count));
    let chosen = scans.into_iter().zip(outputs).skip(shard.0).step_by(shard.1);
    let mut items: Vec<Item> =
        chosen.map(|(scan, outputs)| item(context, scan, outputs, &args.options)).collect::<Result<_>>()?;
    if let [first, _, ..] = &items[..]
        && let Some(template) = &first.args.dicom_template
    {
        let message = format!(
            "--dicom-template: expected one scan, found {} with the patient of {}",
            items.len(),
            template.display()
        );
        return Err(BadInput::new(message).hint("`rayspin recon mri` takes a template for each scan").into());
    }
    let mut batch_files = RunFiles::default();
    for item in &items {
        batch_files.inputs.extend(item.files.inputs.iter().cloned());
        batch_files.outputs.extend(item.files.outputs.iter().cloned());
    }
    batch_files.outputs.extend(args.page.clone());
    files::check_distinct(batch_files.inputs.iter(), batch_files.outputs.iter())?;
    let batch_files = Arc::new(batch_files);
    items.iter_mut().for_each(|item| item.files.batch = Some(Arc::clone(&batch_files)));
    if let Some(page) = &args.page {
        with_folder(page)?;
        files::check_writable(page)?;
    }
    let start = Instant::now();
    let outcomes = Outcomes { items: &items, results: Mutex::new(BTreeMap::new()), quiet: context.quiet };
    // Where threads cannot start, nothing has begun.
    if items.iter().any(|item| item.args.options.has("memory")) || overlapped(&items, &outcomes).is_err() {
        one_after_another(&items, &outcomes);
    }
    let results = outcomes.results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    finish(context, args, &items, &results, start.elapsed().as_secs_f64())
}

/// The scans that names, folders and patterns stand for.
///
/// Errors: a pattern or a folder without scans, a name that is not Unicode.
fn scans(names: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut scans = Vec::new();
    for name in names {
        if name.exists() {
            let is_scan = |file: &Path| rayspin::io::holds_scan(file).unwrap_or(false);
            scans.extend(files::inputs(std::slice::from_ref(name), is_scan)?.files);
            continue;
        }
        let refused = |found: &str| {
            let name = name.display();
            BadInput::new(format!("{name}: expected scans, a folder of scans or a pattern, found {found}"))
                .hint("a pattern stands in quotes: 'scans/*.h5'")
        };
        let pattern = name.to_str().ok_or_else(|| refused("a name that is not Unicode"))?;
        let paths = glob::glob(pattern).map_err(|error| refused(&format!("no pattern ({error})")))?;
        let before = scans.len();
        for path in paths {
            scans.push(path.map_err(|error| refused(&error.to_string()))?);
        }
        scans[before..].sort();
        if scans.len() == before {
            return Err(refused("none").into());
        }
    }
    scans.dedup();
    // A name that begins with - is an option to the parser of the command that is made of it.
    scans
        .into_iter()
        .map(|scan| match scan.to_str() {
            Some(_) => Ok(files::argument(scan)),
            None => {
                let message = format!("{}: expected a name in Unicode, found other bytes", scan.display());
                Err(BadInput::new(message).hint("give the scan another name").into())
            }
        })
        .collect()
}

/// The outputs of each scan. Errors: two scans with one output.
fn outputs(scans: &[PathBuf], patterns: &[String]) -> Result<Vec<Vec<PathBuf>>> {
    let mut taken: BTreeMap<PathBuf, &PathBuf> = BTreeMap::new();
    let mut outputs = Vec::with_capacity(scans.len());
    for scan in scans {
        let name = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, folder) = (name(scan.file_stem()), name(scan.parent().and_then(Path::file_name)));
        let fill = |pattern: &String| PathBuf::from(filled(pattern, &stem, &folder));
        let own: Vec<PathBuf> = patterns.iter().map(fill).map(files::argument).collect();
        for output in &own {
            if let Some(other) = taken.insert(output.clone(), scan) {
                let (one, other, scan) = (output.display(), other.display(), scan.display());
                let message =
                    format!("--output: expected an image for each scan, found {one} of {other} and {scan}");
                let hint =
                    "{stem} stands for the scan's name without its ending, {folder} for its folder's name";
                return Err(BadInput::new(message).hint(hint).into());
            }
        }
        outputs.push(own);
    }
    Ok(outputs)
}

/// A pattern with `{stem}` and `{folder}` filled in, which may hold such words themselves.
fn filled(pattern: &str, stem: &str, folder: &str) -> String {
    let (mut filled, mut rest) = (String::new(), pattern);
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        let words = [("stem}", stem), ("folder}", folder)];
        let word = words.iter().find_map(|(word, text)| Some((*text, after.strip_prefix(word)?)));
        let (text, left) = word.unwrap_or(("{", after));
        filled += text;
        rest = left;
    }
    filled + rest
}

/// The command line of a scan, as `recon mri` parses and records it.
fn item(context: &Context, scan: PathBuf, outputs: Vec<PathBuf>, options: &[String]) -> Result<Item> {
    let text = |path: &Path| path.display().to_string();
    let mut line: Vec<String> = ["rayspin", "recon", "mri"].map(str::to_owned).into();
    line.push(text(&scan));
    line.extend(outputs.iter().flat_map(|output| ["-o".to_owned(), text(output)]));
    line.extend(options.iter().cloned());
    let refused = |error: clap::Error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        BadInput::new(format!("options of recon mri: {first}")).hint("rayspin recon mri --help lists them")
    };
    let matches = args::command().try_get_matches_from(&line).map_err(refused)?;
    let given = Given::of(&args::command(), &matches).with_line(line);
    let mut cli = Cli::from_arg_matches(&matches).map_err(refused)?;
    let files = RunFiles::of(&mut cli.command)?;
    for (option, is_given) in [
        ("--device", cli.common.device != rayspin_shell::args::DeviceArg::Auto),
        ("--threads", cli.common.threads.is_some()),
        ("--gpu-memory", cli.common.gpu_memory.is_some()),
    ] {
        if is_given {
            let message = format!("{option}: expected before --, found after it");
            return Err(BadInput::new(message).hint("all scans run on one processor").into());
        }
    }
    let Command::Recon(Recon::Mri(args)) = cli.command else {
        return Err(BadInput::new("expected options of recon mri after --, found another command").into());
    };
    if args.outputs != outputs {
        let message = "--output: expected before --, found after it";
        return Err(BadInput::new(message).hint("a name after -- would be the same for all scans").into());
    }
    if !args.run.has_default_record() {
        let message =
            "expected a record beside each image, found --record, --no-record or --dry-run after --";
        return Err(BadInput::new(message).hint("what is done is known by the records").into());
    }
    let context = Context {
        device: context.device.clone(),
        finish_on_cpu: context.finish_on_cpu,
        undecided: None,
        gpus: None,
        both: false,
        gpu_memory: context.gpu_memory,
        console: Console::new(true),
        quiet: true,
        given,
    };
    Ok(Item { scan, args, context, files })
}

impl Item {
    /// Whether the record tells of the same scan, command and version, and the images are those that it tells
    /// of.
    fn is_there(&self) -> bool {
        let same = |entries: &[FileEntry]| {
            let same =
                |entry: &FileEntry| FileEntry::read(&entry.path).is_ok_and(|now| now.blake3 == entry.blake3);
            !entries.is_empty() && entries.iter().all(same)
        };
        let text = rayspin::io::read_text(self.files.record.as_deref().unwrap_or(Path::new("")));
        text.ok().and_then(|text| RunRecord::from_json(&text).ok()).is_some_and(|record| {
            record.command.get(1..) == self.context.given.line().get(1..)
                && record.version == env!("CARGO_PKG_VERSION")
                && same(&record.outputs)
                && same(&record.inputs)
        })
    }

    fn read(&self) -> Result<Ready<'_>> {
        self.args.outputs.iter().try_for_each(|output| with_folder(output))?;
        Ready::read(&self.context, &self.args, self.files.clone())
    }
}

/// Makes the folder of a file.
fn with_folder(file: &Path) -> Result<()> {
    file.parent().map_or(Ok(()), files::make_folder)
}

/// What became of the scans so far.
struct Outcomes<'a> {
    items: &'a [Item],
    results: Mutex<BTreeMap<usize, Outcome>>,
    quiet: bool,
}

impl Outcomes<'_> {
    fn add(&self, number: usize, outcome: Outcome) {
        let mut results = self.results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !self.quiet && !stopped() {
            let (item, count) = (&self.items[number], self.items.len());
            let names: Vec<String> =
                item.args.outputs.iter().map(|path| path.display().to_string()).collect();
            let (scan, done, names) = (item.scan.display(), results.len() + 1, names.join(", "));
            match &outcome {
                Outcome::Made(seconds) => say!("{done}/{count} {scan}: {names}, {seconds:.2} s"),
                Outcome::There => say!("{done}/{count} {scan}: {names} is there"),
                Outcome::Failed(why) => say!("{done}/{count} {scan}: failed: {why}"),
            }
        }
        results.insert(number, outcome);
    }

    fn ended(&self, number: usize, start: Instant, result: Result<()>) {
        if result.is_err() {
            self.items[number].files.remove_outdated_record();
        }
        self.add(
            number,
            match result {
                Ok(()) => Outcome::Made(start.elapsed().as_secs_f64()),
                Err(error) => Outcome::Failed(line_of(&error)),
            },
        );
    }
}

fn stopped() -> bool {
    interrupt::STOP.load(Ordering::Relaxed)
}

fn one_after_another(items: &[Item], outcomes: &Outcomes<'_>) {
    for (number, item) in items.iter().enumerate() {
        if stopped() {
            return;
        }
        if item.is_there() {
            outcomes.add(number, Outcome::There);
            continue;
        }
        let start = Instant::now();
        let made = item.read().and_then(Ready::reconstruct);
        outcomes.ended(number, start, made.and_then(|made| made.map_or(Ok(()), Made::write)));
    }
}

/// The next scan is read while one is computed and the last is written.
///
/// Errors: a thread cannot start; no scan has been read then.
fn overlapped(items: &[Item], outcomes: &Outcomes<'_>) -> std::io::Result<()> {
    // Without room in between: a scan that was read waits for the one that is computed.
    let (read, to_compute) = sync_channel::<(usize, Instant, Ready<'_>)>(0);
    let (computed, to_write) = sync_channel::<(usize, Instant, Made<'_>)>(0);
    std::thread::scope(|scope| {
        std::thread::Builder::new().spawn_scoped(scope, move || {
            for (number, start, made) in to_write {
                outcomes.ended(number, start, made.write());
            }
        })?;
        std::thread::Builder::new().spawn_scoped(scope, move || {
            for (number, item) in items.iter().enumerate() {
                if stopped() {
                    return;
                }
                if item.is_there() {
                    outcomes.add(number, Outcome::There);
                    continue;
                }
                let start = Instant::now();
                match item.read() {
                    Ok(ready) => {
                        if read.send((number, start, ready)).is_err() {
                            return;
                        }
                    }
                    Err(error) => outcomes.ended(number, start, Err(error)),
                }
            }
        })?;
        for (number, start, ready) in to_compute {
            match ready.reconstruct() {
                Ok(Some(made)) => {
                    if computed.send((number, start, made)).is_err() {
                        break;
                    }
                }
                Ok(None) => {}
                Err(error) => outcomes.ended(number, start, Err(error)),
            }
        }
        drop(computed);
        Ok(())
    })
}

/// Shows the table, writes the page, and fails where a scan did.
fn finish(
    context: &Context,
    args: &Batch,
    items: &[Item],
    results: &BTreeMap<usize, Outcome>,
    seconds: f64,
) -> Result<()> {
    let failed = results.values().filter(|outcome| matches!(outcome, Outcome::Failed(_))).count();
    let there = results.values().filter(|outcome| matches!(outcome, Outcome::There)).count();
    let made = results.len() - failed - there;
    let left = items.len() - results.len();
    let mut lead = format!("{} in {seconds:.2} s: {made} reconstructed", files::count(items.len(), "scan"));
    for (number, what) in [(there, "there before"), (failed, "failed"), (left, "left")] {
        if number > 0 {
            lead += &format!(", {number} {what}");
        }
    }
    let table = table(items, results);
    if let Some(page) = &args.page {
        let page_of = Page::new("Batch", lead.clone()).section(Section::new("Scans").table(table.clone()));
        files::write_text(page, &page_of.render())?;
    }
    if !context.quiet {
        files::print(&table)?;
    }
    say!("{lead}");
    if stopped() {
        return Err(rayspin::core::Error::Interrupted.into());
    }
    match failed {
        0 => Ok(()),
        _ => anyhow::bail!("{failed} of {} failed", files::count(items.len(), "scan")),
    }
}

fn table(items: &[Item], results: &BTreeMap<usize, Outcome>) -> Table {
    let columns =
        [Column::text("Scan"), Column::text("Images"), Column::text("Result"), Column::number("Seconds")];
    let mut table = Table::new("", columns);
    for (number, item) in items.iter().enumerate() {
        let images: Vec<String> = item.args.outputs.iter().map(|path| path.display().to_string()).collect();
        let (result, seconds) = match results.get(&number) {
            Some(Outcome::Made(seconds)) => ("reconstructed".to_owned(), Some(*seconds)),
            Some(Outcome::There) => ("there before".to_owned(), None),
            Some(Outcome::Failed(why)) => (why.clone(), None),
            None => ("left".to_owned(), None),
        };
        table.push([
            Cell::from(item.scan.display().to_string()),
            Cell::from(images.join(", ")),
            Cell::from(result),
            Cell::from(seconds),
        ]);
    }
    table
}
