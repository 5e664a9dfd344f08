//! `rayspin batch`: many scans with one start of the processor.

mod lanes;
mod list;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Result;
use clap::FromArgMatches as _;
use rayspin::device::Device;
use rayspin::io::atomic::Claim;
use rayspin::io::{Projections, holds_scan};
use rayspin::report::RunRecord;
use rayspin::report::record::FileEntry;
use rayspin_shell::effect::Given;
use rayspin_shell::{BadInput, Console, Context, interrupt, is_interruption, line_of, say};

use self::lanes::Lanes;
use self::summary::{Became, List, Row, Summary, Whole};
use super::files::{self, RunFiles};
use super::recon::{Made, Ready};
use crate::args::batch::Batch;
use crate::args::ct::ReconCt;
use crate::args::mri::ReconMri;
use crate::args::{self, Cli, Command, Recon};

/// A scan and the command that reconstructs it.
struct Item {
    /// Its place in the whole list, from 0.
    number: usize,
    scan: PathBuf,
    command: Reconstruction,
    context: Context,
    files: RunFiles,
}

/// The options of the command that reconstructs a scan.
enum Reconstruction {
    Mri(Box<ReconMri>),
    Ct(Box<ReconCt>),
}

impl Reconstruction {
    fn outputs(&self) -> &[PathBuf] {
        match self {
            Self::Mri(args) => &args.outputs,
            Self::Ct(args) => &args.outputs,
        }
    }

    /// The file whose patient and study the images take.
    fn dicom_template(&self) -> Option<&Path> {
        match self {
            Self::Mri(args) => args.dicom_template.as_deref(),
            Self::Ct(args) => args.dicom_template.as_deref(),
        }
    }

    /// Whether the memory has a limit, which counts one scan.
    fn limits_memory(&self) -> bool {
        match self {
            Self::Mri(args) => args.options.has("memory"),
            Self::Ct(args) => args.options.has("memory"),
        }
    }

    /// Whether a processor does one step at a time.
    fn is_alone(&self) -> bool {
        self.limits_memory() || matches!(self, Self::Ct(_))
    }
}

/// What became of a scan.
enum Outcome {
    /// Reconstructed within these seconds, from the first byte read to the last one written.
    Made(f64),
    /// Its image and its record were there.
    There,
    /// Another run writes its images at this moment.
    Elsewhere,
    Failed(String),
}

/// Reconstructs every scan, or makes one summary of those of all parts.
///
/// Errors: no scan, outputs that would be one file, options that `recon` refuses; summaries that do not
/// belong together; a scan that failed or is left to another run, once all others are done.
pub(crate) fn run(context: &Context, args: &Batch) -> Result<()> {
    let check_files = || {
        args.page.iter().chain(&args.summary).try_for_each(|file| {
            with_folder(file)?;
            files::check_writable(file)
        })
    };
    if !args.merge.is_empty() {
        let has_list = !args.scans.is_empty() || !args.outputs.is_empty() || args.shard.is_some();
        if has_list || args.ct || !args.options.is_empty() {
            let message = "--merge: expected summaries alone, found scans, images or options of a batch";
            return Err(BadInput::new(message).hint("summaries tell what was made of which scans").into());
        }
        let summary = Summary::merged(&args.merge)?;
        check_files()?;
        return finish(context, args, &summary);
    }
    let is_scan = |file: &Path| holds_scan(file).unwrap_or(false);
    let is_ct = |file: &Path| Projections::are_in(file).unwrap_or(false);
    let scans = list::scans(&args.scans, if args.ct { is_ct } else { is_scan })?;
    let outputs = list::outputs(&scans, &args.outputs)?;
    let whole = Whole {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kind: if args.ct { "ct" } else { "mri" }.to_owned(),
        outputs: args.outputs.clone(),
        options: args.options.clone(),
        list: List::of(&scans),
    };
    let scans_of_all = scans.len();
    let (first, count) = args.shard.map_or((0, 1), |shard| (shard.number, shard.count));
    let chosen = scans.into_iter().zip(outputs).enumerate().skip(first).step_by(count);
    let mut items: Vec<Item> = chosen
        .map(|(number, (scan, outputs))| item(context, args, number, scan, outputs))
        .collect::<Result<_>>()?;
    if let Some(template) = items.first().and_then(|item| item.command.dicom_template())
        && scans_of_all > 1
    {
        let message = format!(
            "--dicom-template: expected one scan, found {scans_of_all} with the patient of {}",
            template.display()
        );
        return Err(BadInput::new(message).hint("`rayspin recon` takes a template for each scan").into());
    }
    if !context.beside.is_empty() && items.iter().any(|item| item.command.limits_memory()) {
        let found = 1 + context.beside.len();
        let message =
            format!("--memory: expected one GPU, as it limits the memory of one scan, found {found}");
        let hint = "a process for each GPU has a limit of its own: --shard 1/2 --device cuda:0 and --shard 2/2 --device cuda:1";
        return Err(BadInput::new(message).hint(hint).into());
    }
    let mut batch_files = RunFiles::default();
    for item in &items {
        batch_files.inputs.extend(item.files.inputs.iter().cloned());
        batch_files.outputs.extend(item.files.outputs.iter().cloned());
    }
    batch_files.outputs.extend(args.page.iter().chain(&args.summary).cloned());
    files::check_distinct(batch_files.inputs.iter(), batch_files.outputs.iter())?;
    let batch_files = Arc::new(batch_files);
    items.iter_mut().for_each(|item| item.files.batch = Some(Arc::clone(&batch_files)));
    check_files()?;
    let start = Instant::now();
    let outcomes = Outcomes {
        items: &items,
        results: Mutex::new(BTreeMap::new()),
        quiet: context.quiet,
        is_uncertain: AtomicBool::new(false),
    };
    let devices = std::iter::once(&context.device).chain(&context.beside);
    Lanes::new(devices, &items, &outcomes).run();
    let results = outcomes.results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let rows = items.iter().enumerate().map(|(index, item)| item.row(results.get(&index))).collect();
    finish(context, args, &Summary::new(whole, args.shard, start.elapsed().as_secs_f64(), rows))
}

/// The command line of a scan, as `recon` parses and records it.
fn item(
    context: &Context,
    batch: &Batch,
    number: usize,
    scan: PathBuf,
    outputs: Vec<PathBuf>,
) -> Result<Item> {
    let text = |path: &Path| path.display().to_string();
    let kind = if batch.ct { "ct" } else { "mri" };
    let mut line: Vec<String> = ["rayspin", "recon", kind].map(str::to_owned).into();
    line.push(text(&scan));
    line.extend(outputs.iter().flat_map(|output| ["-o".to_owned(), text(output)]));
    line.extend(batch.options.iter().cloned());
    let refused = |error: clap::Error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        BadInput::new(format!("options of recon {kind}: {first}"))
            .hint(format!("rayspin recon {kind} --help lists them"))
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
    let Command::Recon(recon) = cli.command else {
        return Err(BadInput::new("expected options of recon after --, found another command").into());
    };
    let (run, command) = match recon {
        Recon::Mri(args) => (args.run.clone(), Reconstruction::Mri(args)),
        Recon::Ct(args) => (args.run.clone(), Reconstruction::Ct(args)),
    };
    if command.outputs() != outputs {
        let message = "--output: expected before --, found after it";
        return Err(BadInput::new(message).hint("a name after -- would be the same for all scans").into());
    }
    if !run.has_default_record() {
        let message =
            "expected a record beside each image, found --record, --no-record or --dry-run after --";
        return Err(BadInput::new(message).hint("what is done is known by the records").into());
    }
    let context = Context {
        device: context.device.clone(),
        finish_on_cpu: context.finish_on_cpu,
        undecided: None,
        gpus: None,
        beside: Vec::new(),
        both: false,
        gpu_memory: context.gpu_memory,
        console: Console::new(true),
        quiet: true,
        given,
    };
    Ok(Item { number, scan, command, context, files })
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
        self.record().is_some_and(|record| {
            record.command.get(1..) == self.context.given.line().get(1..)
                && record.version == env!("CARGO_PKG_VERSION")
                && same(&record.outputs)
                && same(&record.inputs)
        })
    }

    /// The record that is there.
    fn record(&self) -> Option<RunRecord> {
        let text = rayspin::io::read_text(self.files.record.as_deref()?).ok()?;
        RunRecord::from_json(&text).ok()
    }

    /// Claims the outputs; none where another run has one of them.
    fn claim(&self) -> Result<Option<Claim>> {
        self.command.outputs().iter().try_for_each(|output| with_folder(output))?;
        Ok(Claim::on(&self.files.outputs)?)
    }

    /// Does all steps on a device.
    fn make(&self, device: &Device) -> Result<()> {
        match &self.command {
            Reconstruction::Mri(args) => {
                let made = Ready::read(&self.context, device, args, self.files.clone())?.reconstruct()?;
                made.map_or(Ok(()), Made::write)
            }
            Reconstruction::Ct(args) => {
                files::together(|| super::ct::recon::run(&self.context, device, args, self.files.clone()))
            }
        }
    }

    fn row(&self, outcome: Option<&Outcome>) -> Row {
        let (result, why, seconds) = match outcome {
            Some(Outcome::Made(seconds)) => (Became::Reconstructed, None, Some(*seconds)),
            Some(Outcome::There) => (Became::ThereBefore, None, None),
            Some(Outcome::Elsewhere) => (Became::Elsewhere, None, None),
            Some(Outcome::Failed(why)) => (Became::Failed, Some(why.clone()), None),
            None => (Became::Left, None, None),
        };
        let is_made = matches!(result, Became::Reconstructed | Became::ThereBefore);
        let record = self.record().filter(|_| is_made);
        Row {
            number: self.number + 1,
            scan: self.scan.display().to_string(),
            images: self.names(),
            result,
            why,
            seconds,
            files: record.map_or_else(Vec::new, |record| record.outputs),
        }
    }

    fn names(&self) -> Vec<String> {
        self.command.outputs().iter().map(|path| path.display().to_string()).collect()
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
    /// Whether it was said that the file system has no locks.
    is_uncertain: AtomicBool,
}

impl Outcomes<'_> {
    fn add(&self, number: usize, outcome: Outcome) {
        let mut results = self.results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !self.quiet && !stopped() {
            let (item, count) = (&self.items[number], self.items.len());
            let (scan, done, names) = (item.scan.display(), results.len() + 1, item.names().join(", "));
            match &outcome {
                Outcome::Made(seconds) => say!("{done}/{count} {scan}: {names}, {seconds:.2} s"),
                Outcome::There => say!("{done}/{count} {scan}: {names} is there"),
                Outcome::Elsewhere => {
                    say!("{done}/{count} {scan}: left to another run, which writes {names}")
                }
                Outcome::Failed(why) => say!("{done}/{count} {scan}: failed: {why}"),
            }
        }
        results.insert(number, outcome);
    }

    /// Claims the outputs of a scan that is to be made. None where they are there, another run writes them,
    /// or they cannot be written.
    fn begin(&self, number: usize) -> Option<Begun> {
        let (item, start) = (&self.items[number], Instant::now());
        if item.is_there() {
            Claim::clear(&item.files.outputs);
            self.add(number, Outcome::There);
            return None;
        }
        match item.claim() {
            Err(error) => self.ended(number, start, Err(error)),
            Ok(None) => self.add(number, Outcome::Elsewhere),
            // Another run was done with it a moment ago.
            Ok(Some(_claim)) if item.is_there() => self.add(number, Outcome::There),
            Ok(Some(claim)) => {
                if !claim.is_certain() && !self.is_uncertain.swap(true, Ordering::Relaxed) {
                    say!(
                        "note: the file system of the outputs locks no files: start no other run that writes the same images"
                    );
                }
                return Some(Begun { number, start, _claim: claim });
            }
        }
        None
    }

    fn ended(&self, number: usize, start: Instant, result: Result<()>) {
        if result.is_err() {
            self.items[number].files.remove_outdated_record();
        }
        // It is left for the next run.
        if stopped() && result.as_ref().is_err_and(is_interruption) {
            return;
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

/// A scan whose outputs are claimed until its images are there.
struct Begun {
    number: usize,
    start: Instant,
    _claim: Claim,
}

fn stopped() -> bool {
    interrupt::STOP.load(Ordering::Relaxed)
}

/// Shows the table, writes the page and the summary, and fails where a scan did.
fn finish(context: &Context, args: &Batch, summary: &Summary) -> Result<()> {
    summary.write(args.page.as_deref(), args.summary.as_deref())?;
    if !context.quiet {
        files::print(&summary.table())?;
    }
    say!("{}", summary.lead());
    if stopped() {
        return Err(rayspin::core::Error::Interrupted.into());
    }
    let scans = files::count(summary.scans.len(), "scan");
    match [Became::Failed, Became::Elsewhere, Became::Left].map(|what| summary.count(what)) {
        [0, 0, 0] => Ok(()),
        [0, 0, left] => anyhow::bail!("{left} of {scans} left: run the same command again"),
        [0, elsewhere, _] => {
            anyhow::bail!(
                "{elsewhere} of {scans} left to another run: run the same command again once it has ended"
            )
        }
        [failed, ..] => anyhow::bail!("{failed} of {scans} failed"),
    }
}
