//! Options of ladders.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};

use super::Width;

/// More help for `rayspin-ladder applications`.
pub(super) const APPLICATIONS: &str = "\
The best variants of both processors are found, checked and compared: all threads of the CPU (--threads 1: one) with \
the GPU. Without a GPU the table is shown that is published with Rayspin, measured on an H100.

Ten algorithms have a row in the table of “CUDA application development” (lecture). A second table has these beside \
ours, also against one core: \
the first variant of a CPU, plain code on one thread.

Kernel: inputs and outputs lie in the processor's memory. Application: from memory of the host to memory of the host; \
with the GPU that is new memory and the way there for the inputs, new memory for the outputs, what a first run takes \
(plans, tables, textures), the kernel, and the way back.

Bottleneck: the larger of the shares of memory bandwidth and of arithmetic that any implementation takes of the \
measured limits, where it is at least 50 %; else launches, where those that do nothing would take half of the time; \
else what the compiled kernel's instructions let estimate (~), instruction issue or special functions; else latency, \
with the largest share beside it. A share above 120 % limits nothing: other units do that work. Not told: the kernel \
computes on units that the estimate leaves out, and none of the other shares is 50 %.

Threads at once: what multiprocessors hold of the blocks that there are, of the kernel with most threads.

Reconstructions are of simulated scans, from samples in memory to an image in memory, plans and coil sensitivities \
included. Their kernel is the stage of gridding, or of conjugate gradients; their bottleneck is the stage that takes \
longest with the GPU.

rayspin-ladder explain applications says it at length.

Examples:
  rayspin-ladder applications                             every algorithm
  rayspin-ladder applications sad coulomb --threads 1     against the best variant on one thread
  rayspin-ladder applications recon-volume --size 64
  rayspin-ladder applications --json all.json --csv all.csv --html all.html";

/// `rayspin-ladder applications`
#[derive(Debug, Args)]
pub(crate) struct Applications {
    /// Algorithms, and reconstructions: recon-gridding, recon-least-squares, recon-cartesian, recon-volume
    /// [default: all]
    #[arg(value_name = "NAME", hide_possible_values = true)]
    pub(crate) names: Vec<String>,
    /// Problem by name: rayspin-ladder list NAME lists them [default: those that stand beside the
    /// lecture's row, else the default of a GPU]
    #[arg(long, value_name = "NAME", requires = "names")]
    pub(crate) case: Option<String>,
    /// The problem in another size: 8192x8192, 4194304, 2^22; of reconstructions the voxels along each axis
    #[arg(long, value_name = "AxB", requires = "names")]
    pub(crate) size: Option<String>,
    /// Seed of the inputs
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Timed rounds per median
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) rounds: usize,
    /// Time limit for the rounds of a variant, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.5, allow_negative_numbers = true)]
    pub(crate) budget: f64,
    /// Write everything as JSON (-: instead of the table)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Write a line for each row (-: instead of the table)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page of the table, its shares and its times
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Measure the limits of the GPU anew; they are otherwise measured once and kept
    #[arg(long)]
    pub(crate) remeasure: bool,
    #[command(flatten)]
    pub(crate) width: Width,
}

/// More help for `rayspin-ladder try`.
pub(super) const TRY: &str = "\
Without FILE it prints the declaration of the kernel: what it is called with and what it has to do.

The file may have several kernels, __constant__ variables, functions, and the #include lines of a course; extern \"C\" is not \
needed. curand_kernel.h is Rayspin's own: its functions are named as cuRAND's, its numbers are others. One kernel of the \
declared name is launched with --block, --grid and --shared. Other launches are listed in the file, in lines such as these; \
they name what the declaration names:
  // array: float parts[(n + 1023) / 1024]          an array between kernels
  // copy: taps = weights                           the values of a __constant__ variable
  // launch: sums<<<(n + 1023) / 1024, 256>>>(values, parts, n)
  // launch: last<<<1, dim3(32, 8), 4 * 256>>>(parts, sum, (n + 1023) / 1024)

Your kernel must be right on every small problem of the tests, sizes of 1 and primes among them, within the tolerance of the \
algorithm's own variants. Then it is timed on one problem, and stands in one table with them.

On a GPU your kernel runs there. Without one (--device cpu, or no GPU in the machine) it runs in the emulator, which needs \
a C++ compiler, in a small size unless --case or --size says otherwise: the times predict no GPU.
A compiler's error names the line of your file. On the small problems the emulator also looks for races (missing atomic \
additions, missing barriers of blocks and warps), accesses outside arrays, reads of what nobody wrote, and barriers that some \
threads skip, and names the lines and the threads; with a GPU too, where g++ 12 or newer is there. --fast leaves this out. On \
a GPU a kernel that writes outside its arrays may pass, and destroy what is beside them. A kernel without an end is stopped \
after 90 s on one problem in the emulator.

Examples:
  rayspin-ladder try matrix-add                    the declaration, for a file of your own
  rayspin-ladder try matrix-add mine.cu
  rayspin-ladder try histogram mine.cu --block 512 --grid 264 --case uniform
  rayspin-ladder try matrix-product mine.cu --size 512 --variant gpu-naive,gpu-wide
Exit codes: 0 the kernel is right, 1 it is wrong or fails, 2 it does not compile or an option is wrong.";

/// More help for `rayspin-ladder exercise`.
pub(super) const EXERCISE: &str = "\
Without NAME it lists the exercises. With NAME it prints the task as a file to begin with: the declaration and the goals as \
comments, and a kernel that is right and slow.

With FILE it judges your kernel in the emulator, which needs g++ 12 or newer and no GPU. The kernel must be right on every small \
problem of the tests and on the stated one, free of races and memory errors. Then its loads, stores, turns of shared memory and \
lanes are counted on the stated problem, as rayspin-ladder counters does, and each goal stands beside its number.

Files are as rayspin-ladder try takes them; they may list their launches.

Examples:
  rayspin-ladder exercise
  rayspin-ladder exercise transpose > mine.cu
  rayspin-ladder exercise transpose mine.cu
  rayspin-ladder exercise transpose --hint 2
  rayspin-ladder exercise transpose --solution
Exit codes: 0 all goals are met, 1 the kernel is wrong or a goal is missed, 2 it does not compile or an option is wrong.";

/// `rayspin-ladder exercise`
#[derive(Debug, Args)]
pub(crate) struct Exercise {
    /// Exercise [default: list them]
    #[arg(value_name = "NAME", hide_possible_values = true)]
    pub(crate) name: Option<String>,
    /// CUDA C++ with your kernel, to be judged [default: print the task]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Print the first N hints
    #[arg(long, value_name = "N", requires = "name", conflicts_with_all = ["file", "solution"],
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) hint: Option<u32>,
    /// Print a solution that meets the goals
    #[arg(long, requires = "name", conflicts_with = "file")]
    pub(crate) solution: bool,
    /// Threads of a block along x, y and z: 256, 32x8
    #[arg(long, value_name = "AxB", default_value = "256", requires = "file")]
    pub(crate) block: String,
    /// Blocks along x, y and z [default: enough for one thread for each output element]
    #[arg(long, value_name = "AxB", requires = "file")]
    pub(crate) grid: Option<String>,
    /// Bytes of dynamic shared memory of a block
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "file")]
    pub(crate) shared: u32,
    #[command(flatten)]
    pub(crate) width: Width,
}

/// `rayspin-ladder try`
#[derive(Debug, Args)]
pub(crate) struct Try {
    /// Algorithm
    #[arg(value_name = "NAME", hide_possible_values = true)]
    pub(crate) name: String,
    /// CUDA C++ with the kernel [default: print what it is called with]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Problem by name: rayspin-ladder list NAME lists them [default: the first; emulated, a small one]
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// The problem in another size: 8192x8192, 4194304, 2^22
    #[arg(long, value_name = "AxB")]
    pub(crate) size: Option<String>,
    /// Threads of a block along x, y and z: 256, 32x8, 8x8x8
    #[arg(long, value_name = "AxB", default_value = "256")]
    pub(crate) block: String,
    /// Blocks along x, y and z [default: enough for one thread for each output element; of histogram for each
    /// sample]
    #[arg(long, value_name = "AxB")]
    pub(crate) grid: Option<String>,
    /// Bytes of dynamic shared memory of a block
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) shared: u32,
    /// These variants beside it only
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Do not look for races and memory errors
    #[arg(long)]
    pub(crate) fast: bool,
    /// Seed of the inputs
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Timed rounds per median
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) rounds: usize,
    /// Time limit for the rounds of a variant, in seconds; at least three rounds run
    #[arg(long, value_name = "S", default_value_t = 0.5, allow_negative_numbers = true)]
    pub(crate) budget: f64,
    #[command(flatten)]
    pub(crate) width: Width,
}

/// `rayspin-ladder source`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rayspin-ladder source histogram gpu-packed
  rayspin-ladder source matrix-add gpu-wide > mine.cu
  rayspin-ladder source reduction gpu-tree --launch        which kernels a run launches, with blocks and threads
  rayspin-ladder source matrix-product gpu-tiled --mcuda   as loops over the threads of a block")]
pub(crate) struct Source {
    /// Algorithm
    #[arg(value_name = "NAME", hide_possible_values = true)]
    pub(crate) name: String,
    /// Variant for a GPU: rayspin-ladder list NAME lists them
    #[arg(value_name = "VARIANT")]
    pub(crate) variant: String,
    /// Below the source: the kernels that a run launches, in order, with their blocks, threads and bytes of
    /// dynamic shared memory. The run is emulated, in a small size
    #[arg(long)]
    pub(crate) launch: bool,
    /// Instead of the source: the loops over the threads of a block that the emulator makes of its kernels
    /// (the method MCUDA), and why a kernel runs as written
    #[arg(long, conflicts_with = "launch")]
    pub(crate) mcuda: bool,
}

/// More help for `rayspin-ladder host`.
pub(super) const HOST: &str = "\
The program has the kernels' source, allocations, copies, launches as the variant makes them, checks of every call, events \
around the launches, and a comparison with the expected output. Inputs and expected outputs lie in a file beside it. It is \
written from a run in the emulator (with a C++ compiler), in a small size unless --case or --size says otherwise.

Examples:
  rayspin-ladder host transpose gpu-padded
  rayspin-ladder run transpose-gpu-padded.cu                        in the emulator
  nvcc -std=c++17 -arch=native transpose-gpu-padded.cu -o transpose && ./transpose
Exit codes: 0 done, 1 a file cannot be written, 2 an option is wrong or the variant cannot be written as a program.";

/// `rayspin-ladder host`
#[derive(Debug, Args)]
pub(crate) struct Host {
    /// Algorithm
    #[arg(value_name = "NAME", hide_possible_values = true)]
    pub(crate) name: String,
    /// Variant for a GPU: rayspin-ladder list NAME lists them [default: the first]
    #[arg(value_name = "VARIANT")]
    pub(crate) variant: Option<String>,
    /// Problem by name: rayspin-ladder list NAME lists them [default: a small one]
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// The problem in another size: 8192x8192, 4194304, 2^22
    #[arg(long, value_name = "AxB")]
    pub(crate) size: Option<String>,
    /// Seed of the inputs
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Folder for the files NAME-VARIANT.cu and NAME-VARIANT.bin [default: this one]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
}

/// More help for `rayspin-ladder report`.
pub(super) const REPORT: &str = "\
On a GPU the driver states registers, memory and the blocks that a multiprocessor holds; the compiler states spilled \
registers. Each variant runs as rayspin-ladder NAME runs it: with its tuned configuration, else with its default.

Without a GPU, or with --architecture, nothing is run: launches are recorded on a device without memory, registers and memory \
come from the compiler, and occupancy from the rules of the CUDA occupancy calculator. This needs NVRTC (pip install \
nvidia-cuda-nvrtc), and no GPU.

Held: blocks that a multiprocessor holds at once, and what limits them. Occupancy: threads of these blocks over the most that \
it holds. Waves: blocks over those that all multiprocessors hold at once. Last wave: how much of the last one is filled.

Examples:
  rayspin-ladder report transpose
  rayspin-ladder report histogram --variant gpu-packed --json -
  rayspin-ladder report matrix-product --size 1024 --architecture sm_80,sm_90
Exit codes: 0 done, 1 a variant fails or NVRTC is missing, 2 an option is wrong.";

/// `rayspin-ladder report`
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Algorithms
    #[arg(value_name = "NAME", hide_possible_values = true, required = true)]
    pub(crate) names: Vec<String>,
    /// These variants only
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Problem by name: rayspin-ladder list NAME lists them [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// The problem in another size: 8192x8192, 4194304, 2^22
    #[arg(long, value_name = "AxB")]
    pub(crate) size: Option<String>,
    /// Run nothing, and compile for these: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120 [default: the
    /// GPU; without one, sm_90]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) architecture: Vec<String>,
    /// Write everything as JSON (-: instead of the tables)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) width: Width,
}

/// More help for `rayspin-ladder counters`.
pub(super) const COUNTERS: &str = "\
The CUDA sources run on the CPU (with g++ 12 or newer), in small sizes unless --case, --size or --measured says otherwise. What \
every thread reads and writes is kept, and the lanes of each warp are then replayed together: they part at branches and meet \
again where the ways join. Of big grids some blocks are counted and the numbers scaled; the output says so.

Sectors: pieces of 32 bytes that move. Moved / asked: bytes of these over the bytes that lanes ask for; 1 is the best. Turns / \
least: how often shared memory is busy (ncu: wavefronts) over the least for that width. Lanes: active lanes of a warp, of 32.

The predicted time is the largest of several limits: bytes from memory and from the second-level cache, turns, atomic \
operations, instructions, and the waits of few warps; and the launch. Instructions are those of the host's compiler: the \
prediction orders variants, it does not replace a measurement.

Examples:
  rayspin-ladder counters transpose
  rayspin-ladder counters transpose --variant gpu-naive --size 1024x1024 --lines
  rayspin-ladder counters transpose --variant gpu-naive,gpu-padded --changed
  rayspin-ladder counters histogram --own mine.cu --grid 4 --on rtx4090
Exit codes: 0 done, 1 a variant fails, 2 an option is wrong.";

/// `rayspin-ladder counters`
#[derive(Debug, Args)]
pub(crate) struct Counters {
    /// Algorithms
    #[arg(value_name = "NAME", hide_possible_values = true, required_unless_present = "all")]
    pub(crate) names: Vec<String>,
    /// Every algorithm
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// These variants only
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// A kernel of your own, as rayspin-ladder try takes it, beside the variants that --variant names
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) own: Option<PathBuf>,
    /// Threads of a block of your own kernel along x, y and z: 256, 32x8
    #[arg(long, value_name = "AxB", default_value = "256")]
    pub(crate) block: String,
    /// Blocks of your own kernel along x, y and z [default: enough for one thread for each output element]
    #[arg(long, value_name = "AxB")]
    pub(crate) grid: Option<String>,
    /// Bytes of dynamic shared memory of a block of your own kernel
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) shared: u32,
    /// Problem by name: rayspin-ladder list NAME lists them [default: a small one]
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// The problem in another size: 8192x8192, 4194304, 2^22
    #[arg(long, value_name = "AxB")]
    pub(crate) size: Option<String>,
    /// The problem that a GPU is measured with: minutes for some algorithms
    #[arg(long, conflicts_with_all = ["case", "size"])]
    pub(crate) measured: bool,
    /// Run only the blocks that are counted: seconds for problems of any size, where blocks need nothing of
    /// each other
    #[arg(long)]
    pub(crate) sampled: bool,
    /// The GPU to predict the time on: h100, h200, a100, rtx4090
    #[arg(long, value_name = "NAME", default_value = "h100")]
    pub(crate) on: String,
    /// Run each variant twice instead, on the GPU if there is one, and write the launches of both runs in
    /// order, for a profiler's numbers to be put beside these
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["own", "json"])]
    pub(crate) launches: Option<PathBuf>,
    /// A table of every line that reads, writes, waits or parts [default: where one variant is counted]
    #[arg(long)]
    pub(crate) lines: bool,
    /// What changed between two variants, by array and line
    #[arg(long)]
    pub(crate) changed: bool,
    /// Write everything as JSON (-: instead of the tables)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) width: Width,
}

/// More help for `rayspin-ladder run`.
pub(super) const RUN: &str = "\
A name that ends in .cu, or is a file and no algorithm, is a whole CUDA C++ program, with main and \
kernel<<<blocks, threads>>>(arguments). It is compiled for the CPU (with g++) and runs in the emulator: no GPU and no nvcc are \
needed. Its exit code is the command's. It has the calls of CUDA's runtime for memory, copies, errors, streams, events, properties, arrays and texture \
objects, and a stand-in for curand_kernel.h, which gives other random numbers than NVIDIA's. All work is done when its call \
returns. Times are of this CPU.

Memory of the GPU is memory of its own: the host's access to it, a kernel's access beside its arrays and a pointer of the \
host as a kernel's argument end the program, with the line. --check finds races as well, and pointers of the host that a \
kernel takes from memory.

Examples:
  rayspin-ladder run transpose                  as rayspin-ladder transpose
  rayspin-ladder run mine.cu                    a program of yours
  rayspin-ladder run mine.cu 1000 -- --verbose  the same with arguments
  rayspin-ladder run mine.cu --check
Exit codes of programs: the program's own, 1 a kernel fails, 2 it does not compile.";

/// `rayspin-ladder run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Algorithms; or a CUDA program of yours, FILE.cu, and the program's arguments (behind --, where they
    /// begin with a dash): it runs in the emulator
    #[arg(value_name = "NAME", hide_possible_values = true, required_unless_present = "all")]
    pub(crate) names: Vec<String>,
    /// Every algorithm
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Problem by name: rayspin-ladder list NAME lists them [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// The problem in another size: 8192x8192, 4194304, 2^22
    #[arg(long, value_name = "AxB")]
    pub(crate) size: Option<String>,
    /// These variants only
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Parameters of the one variant that --variant names, as in "threads=128 unroll=4"
    #[arg(long, value_name = "PARAMETERS")]
    pub(crate) config: Option<String>,
    /// Every value of this parameter, for each variant that has it
    #[arg(long, value_name = "PARAMETER")]
    pub(crate) sweep: Option<String>,
    /// Run the CUDA sources on the CPU: as written (threads as fibres) and as loops over threads (the method
    /// MCUDA); the variants in Rust, and the GPU if there is one, stand beside them. In small sizes that
    /// every variant takes, unless --case or --size says otherwise. Needs a C++ compiler
    #[arg(long, conflicts_with_all = ["config", "sweep", "launch", "remeasure", "no_limits"])]
    pub(crate) emulate: bool,
    /// With --emulate, or a program FILE.cu: look for races, accesses outside arrays and reads of what nobody
    /// wrote, and name their lines, instead of taking times. Needs g++ 12 or newer
    #[arg(long, conflicts_with_all = ["csv", "html", "rounds", "budget", "one_buffer"])]
    pub(crate) check: bool,
    /// With --emulate: count what the kernels do as well, as rayspin-ladder counters does, and predict their
    /// times on a GPU. Needs g++ 12 or newer
    #[arg(long, requires = "emulate", conflicts_with = "check")]
    pub(crate) counters: bool,
    /// With --counters: the GPU to predict times on: h100, h200, a100, rtx4090
    #[arg(long, value_name = "NAME", requires = "counters", default_value = "h100")]
    pub(crate) on: String,
    /// Seed of the inputs
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Timed rounds per median
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub(crate) rounds: usize,
    /// Time limit for the rounds of a variant, in seconds; at least three rounds run
    #[arg(long, value_name = "S", default_value_t = 2.0, allow_negative_numbers = true)]
    pub(crate) budget: f64,
    /// Reuse the same buffers, so that small data stay in the caches, as in many published figures
    #[arg(long)]
    pub(crate) one_buffer: bool,
    /// How the host launches the timed runs [default: graph where they can be captured, else stream]
    #[arg(long, value_name = "HOW")]
    pub(crate) launch: Option<LaunchArg>,
    /// Write everything as JSON (-: instead of the tables)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Write a line for each variant (-: instead of the tables)
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
    #[command(flatten)]
    pub(crate) width: Width,
}

/// How runs are launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaunchArg {
    /// Each round as one CUDA graph, without launch overhead
    Graph,
    /// Back to back, with one synchronisation at the end
    Stream,
    /// Each synchronised before the next: latency; the spread of single runs
    Single,
}

/// `rayspin-ladder list`
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Algorithms to list the cases, variants and parameters of
    #[arg(value_name = "NAME", hide_possible_values = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) width: Width,
}

/// `rayspin-ladder explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Algorithm, or applications: what the columns of that table mean
    #[arg(value_name = "NAME", hide_possible_values = true, required = true)]
    pub(crate) names: Vec<String>,
}

/// `rayspin-ladder compare`
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// What --json wrote before: of runs, or of counters
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// What --json wrote after
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) width: Width,
}

/// Takes any text, which the command judges with the nearest name at hand, and tells shells the names there
/// are, with their titles.
#[derive(Debug, Clone)]
pub(crate) struct Names(pub(crate) Vec<(&'static str, &'static str)>);

impl TypedValueParser for Names {
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
        Some(Box::new(self.0.iter().map(|&(name, title)| PossibleValue::new(name).help(title))))
    }
}
