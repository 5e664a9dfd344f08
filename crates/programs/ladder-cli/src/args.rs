//! The command line: one definition gives the parser, the help texts and the shell completions.

use clap::{Args, Parser, Subcommand};
use rayspin::report::table::{Table, legend, wrap};
use rayspin_shell::args::Common;

pub(crate) mod ladder;
pub(crate) mod tune;

/// Algorithms from naive to best: every variant checked, timed, tuned and compared, on CPUs and GPUs.
#[derive(Debug, Parser)]
#[command(name = "rayspin-ladder", version, propagate_version = true, max_term_width = 110)]
#[command(subcommand_negates_reqs = true)]
#[command(override_usage = "rayspin-ladder [OPTIONS] <NAME>...\n       rayspin-ladder [OPTIONS] <COMMAND>")]
#[command(after_help = "\
Examples:
  rayspin-ladder list                                    the algorithms
  rayspin-ladder list transpose                          its cases, variants and parameters
  rayspin-ladder explain transpose                       why each variant is faster than the one before
  rayspin-ladder transpose                               every variant that this machine can run
  rayspin-ladder transpose --size 1000x3000 --variant gpu-padded
  rayspin-ladder --all --json all.json --html all.html
  rayspin-ladder transpose --variant gpu-padded --config \"rows=8\"
  rayspin-ladder matrix-add --device cuda --variant gpu-wide --sweep threads
  rayspin-ladder reduction --device cuda --launch single  latency of one call, launch included
  rayspin-ladder nudft-adjoint coulomb sad matrix-product --emulate
  rayspin-ladder try histogram                           what a kernel of your own has to do
  rayspin-ladder try histogram my_kernel.cu              your kernel, checked and timed between the others
  rayspin-ladder exercise transpose                      a task, with goals that are counted without a GPU
  rayspin-ladder source histogram gpu-packed             the CUDA C++ of a variant
  rayspin-ladder host histogram gpu-packed               a whole CUDA program of it, with data
  rayspin-ladder run histogram-gpu-packed.cu             a whole CUDA program, emulated
  rayspin-ladder tune transpose                          the fastest parameters on this machine
  rayspin-ladder counters transpose                      sectors and bank conflicts by line, without a GPU
  rayspin-ladder report transpose                        blocks, registers, occupancy and waves of each launch
  rayspin-ladder applications --html applications.html   what limits each on the GPU, and how much faster it is
  rayspin-ladder compare before.json after.json

Each variant is checked against a simple reference, then timed; a failed check makes the exit code 1. Times are medians (on a \
GPU, by its clock); runs rotate through buffers that exceed the caches.
Exit codes: 0 done, 1 the run failed, 2 the input or an option is wrong, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: ladder::RunArgs,
}

/// Columns of a terminal that tables fit.
const COLUMNS: usize = 100;

/// How tables are printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Width {
    /// Print each row of a table on one line [default: 100 columns, the rest of the row on a second line]
    #[arg(long)]
    pub(crate) wide: bool,
}

impl Width {
    /// A table.
    pub(crate) fn text(self, table: &Table) -> String {
        if self.wide { table.to_string() } else { table.within(COLUMNS) }
    }

    /// Text beside tables, which may name machines.
    pub(crate) fn lines(self, text: &str) -> String {
        if self.wide { text.to_owned() } else { wrap(text, COLUMNS) }
    }

    /// What the headings of tables mean, for the end of the output.
    pub(crate) fn legend<'a>(self, tables: impl IntoIterator<Item = &'a Table>) -> String {
        legend(tables, COLUMNS).trim_end().to_owned()
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check and time every variant [default]; or run a CUDA program of yours, FILE.cu, in the emulator
    #[command(after_help = ladder::RUN)]
    Run(Box<ladder::RunArgs>),
    /// List the algorithms, or the cases, variants and parameters of some
    List(ladder::List),
    /// Describe an algorithm, its least possible time, and why each variant is faster than the one before
    Explain(ladder::Explain),
    /// Compare two runs, variant by variant
    Compare(ladder::Compare),
    /// Report blocks, registers, shared memory, occupancy and waves of each launch on a GPU
    #[command(after_help = ladder::REPORT)]
    Report(ladder::Report),
    /// Count what a profiler on a GPU counts, without a GPU: sectors, bank conflicts, divergence, by kernel,
    /// line and array; and predict the time on a GPU
    #[command(after_help = ladder::COUNTERS)]
    Counters(Box<ladder::Counters>),
    /// Show what limits each algorithm on the GPU, its threads there, and its speedup over the CPU with and
    /// without transfers
    #[command(after_help = ladder::APPLICATIONS)]
    Applications(Box<ladder::Applications>),
    /// Check and time your own CUDA kernel beside an algorithm's variants
    #[command(after_help = ladder::TRY)]
    Try(ladder::Try),
    /// Print an exercise, or judge your kernel by what it does: sectors, bank conflicts, lanes, without a GPU
    #[command(after_help = ladder::EXERCISE)]
    Exercise(ladder::Exercise),
    /// Print the CUDA C++ of a variant, its launches, or its loops on a CPU
    Source(ladder::Source),
    /// Write a complete CUDA program for a variant, with its data, for nvcc or rayspin-ladder run
    #[command(after_help = ladder::HOST)]
    Host(ladder::Host),
    /// Find the fastest parameters of an algorithm's variants on this machine
    Tune(Box<tune::Tune>),
    /// Print a completion script for a shell
    Completions(Completions),
}

/// `rayspin-ladder completions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rayspin-ladder completions bash > ~/.local/share/bash-completion/completions/rayspin-ladder
  rayspin-ladder completions zsh > ~/.zfunc/_rayspin-ladder")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
