//! `rayspin-ladder tune`

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Width;

/// `rayspin-ladder tune`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rayspin-ladder tune                                         what can be tuned on which processor
  rayspin-ladder tune transpose                               every variant with parameters that this machine can run
  rayspin-ladder tune --all --budget 20
  rayspin-ladder tune matrix-product --variant gpu-wide --size 1000x1000x1000
  rayspin-ladder tune nudft-q --variant gpu-sfu --exhaustive     every configuration: what pruning would have lost
  rayspin-ladder tune transpose --replay results.jsonl        the search again, on results instead of a device
  rayspin-ladder tune nudft-q --replay h200 --exhaustive --html q.html     results of an H200 that Rayspin brings, drawn

Every configuration is checked against a plain oracle before it is timed, and every result is kept, failures too; a search
that was interrupted goes on from there. The library takes the fastest for the nearest size; RAYSPIN_WISDOM names another file.")]
pub(crate) struct Tune {
    /// Algorithms [default: list what can be tuned on which processor]
    #[arg(value_name = "NAME", hide_possible_values = true)]
    pub(crate) names: Vec<String>,
    /// Every algorithm
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// These variants only
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Problem by name: rayspin-ladder list NAME lists them [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// The problem in another size: 8192x8192, 4194304, 2^22
    #[arg(long, value_name = "AxB")]
    pub(crate) size: Option<String>,
    /// Seconds for each variant
    #[arg(long, value_name = "S", default_value_t = 60.0, allow_negative_numbers = true)]
    pub(crate) budget: f64,
    /// Time every configuration, however long it takes, and say what pruning would have lost
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Measure again what was measured before
    #[arg(long)]
    pub(crate) again: bool,
    /// Take these results for what a device would have done; nothing is kept. h200: results that Rayspin
    /// brings
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) replay: Option<PathBuf>,
    /// Seed of the inputs and of the search
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write everything as JSON (-: instead of the table)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Write a page: times over the parameters, and what the cost model keeps of the space
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) width: Width,
}
