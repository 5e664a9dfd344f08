//! `rayspin ladder`

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};

/// `rayspin ladder`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  rayspin ladder list                                    the algorithms
  rayspin ladder list transpose                          its cases, rungs and parameters
  rayspin ladder explain transpose                       why each rung is faster than the one before
  rayspin ladder transpose                               every rung that this machine can run
  rayspin ladder transpose --size 1000x3000 --rung gpu-padded
  rayspin ladder --all --json all.json --html all.html
  rayspin ladder transpose --rung gpu-padded --config \"rows=8\"
  rayspin ladder matrix-add --device cuda --rung gpu-wide --sweep threads
  rayspin ladder nudft-adjoint coulomb sad matrix-product --emulate
  rayspin ladder compare before.json after.json

Each rung is checked against a plain oracle before it is timed; one that misses its tolerance makes the exit code 1.
Times are medians, by the device's own clock on a GPU, over buffers in rotation that no cache holds.")]
pub(crate) struct Ladder {
    #[command(subcommand)]
    pub(crate) command: Option<LadderCommand>,
    #[command(flatten)]
    pub(crate) run: LadderRun,
}

/// What to do with ladders.
#[derive(Debug, Subcommand)]
pub(crate) enum LadderCommand {
    /// Check and time every rung [default]
    Run(Box<LadderRun>),
    /// List the algorithms, or the cases, rungs and parameters of some
    List(LadderList),
    /// Print what an algorithm is, its floor, and why each rung is faster than the one before
    Explain(LadderExplain),
    /// Compare two runs, rung by rung
    Compare(LadderCompare),
}

/// `rayspin ladder run`
#[derive(Debug, Args)]
pub(crate) struct LadderRun {
    /// Algorithms
    #[arg(value_name = "NAME", value_parser = LadderName, hide_possible_values = true, required_unless_present = "all")]
    pub(crate) names: Vec<String>,
    /// Every algorithm
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Problem by name: rayspin ladder list NAME lists them [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// The problem in another size: 8192x8192, 4194304, 2^22
    #[arg(long, value_name = "AxB")]
    pub(crate) size: Option<String>,
    /// These rungs only
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) rung: Vec<String>,
    /// Parameters of the one rung that --rung names, as in "threads=128 unroll=4"
    #[arg(long, value_name = "PARAMETERS")]
    pub(crate) config: Option<String>,
    /// Every value of this parameter, for each rung that has it
    #[arg(long, value_name = "PARAMETER")]
    pub(crate) sweep: Option<String>,
    /// The CUDA sources on the CPU instead: as written (threads as fibres) and as loops over threads (MCUDA), beside the rungs in
    /// Rust and the GPU, if there is one; in small sizes unless --case or --size says otherwise. Needs a C++ compiler
    #[arg(long, conflicts_with_all = ["config", "sweep", "json", "csv", "html", "remeasure", "no_limits"])]
    pub(crate) emulate: bool,
    /// Seed of the inputs
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Rounds that a median is of
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub(crate) rounds: usize,
    /// Seconds that the rounds of a rung may take; at least three are made
    #[arg(long, value_name = "S", default_value_t = 2.0, allow_negative_numbers = true)]
    pub(crate) budget: f64,
    /// Run on the same buffers again and again: what fits a cache is found there, as many published figures have it
    #[arg(long)]
    pub(crate) one_buffer: bool,
    /// Write everything as JSON (-: instead of the tables)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Write a line for each rung (-: instead of the tables)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page of tables, bar charts, rooflines and curves
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Measure the limits of the machine anew; they are otherwise measured once and kept
    #[arg(long)]
    pub(crate) remeasure: bool,
    /// Leave the limits of the machine out
    #[arg(long, conflicts_with = "remeasure")]
    pub(crate) no_limits: bool,
}

/// `rayspin ladder list`
#[derive(Debug, Args)]
pub(crate) struct LadderList {
    /// Algorithms to list the cases, rungs and parameters of
    #[arg(value_name = "NAME", value_parser = LadderName, hide_possible_values = true)]
    pub(crate) names: Vec<String>,
}

/// `rayspin ladder explain`
#[derive(Debug, Args)]
pub(crate) struct LadderExplain {
    /// Algorithm
    #[arg(value_name = "NAME", value_parser = LadderName, hide_possible_values = true, required = true)]
    pub(crate) names: Vec<String>,
}

/// `rayspin ladder compare`
#[derive(Debug, Args)]
pub(crate) struct LadderCompare {
    /// What --json wrote before
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// What --json wrote after
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Takes any text, which the command judges with the nearest name at hand, and tells shells the names there are.
#[derive(Debug, Clone)]
pub(crate) struct LadderName;

impl TypedValueParser for LadderName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names: Vec<_> = rayspin::ladders()
            .iter()
            .map(|ladder| PossibleValue::new(ladder.about().name).help(ladder.about().title))
            .collect();
        Some(Box::new(names.into_iter()))
    }
}
