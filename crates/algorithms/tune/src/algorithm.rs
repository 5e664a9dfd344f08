//! What an algorithm says of itself to be a ladder.

use std::fmt::Display;

use rayspin_core::Result;
use rayspin_device::{BackendKind, Device};
use serde::{Deserialize, Serialize};

use crate::own::Signature;
use crate::variant::{Runnable, Variant};

/// An algorithm's names and texts.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// As the command line has it: `transpose`.
    pub name: &'static str,
    /// One line: `Transpose of a matrix`.
    pub title: &'static str,
    /// The folder's README: the maths, the floor, why each variant is as it is.
    pub readme: &'static str,
    /// What its rate counts.
    pub unit: Unit,
}

/// What a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Bytes to and from memory: GB/s.
    Bytes,
    /// Operations of the problem ([`Counts::flops`]), whichever variant runs: GFLOP/s.
    Flops,
    /// [`Counts::items`]: pairs, samples, points.
    Items(&'static str),
}

/// Which of the machine's rates bounds the operations that [`crate::variant::Work::flops`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peak {
    /// f32 multiply-adds, two operations each.
    F32,
    /// f64 multiply-adds, two operations each.
    F64,
    /// 32-bit integer multiply-adds, two operations each.
    I32,
    /// Multiply-adds of FP64 tensor cores, two operations each.
    TensorF64,
    /// Multiply-adds of FP16 tensor cores with f32 sums, two operations each.
    TensorF16,
}

impl Peak {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32 multiply-add",
            Self::F64 => "f64 multiply-add",
            Self::I32 => "i32 multiply-add",
            Self::TensorF64 => "FP64 tensor cores",
            Self::TensorF16 => "FP16 tensor cores",
        }
    }
}

/// Which way the bytes go that [`crate::variant::Work::bytes`] counts: each way has a bandwidth of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    /// In and out.
    #[default]
    Copy,
    /// In alone, or nearly.
    Read,
    /// Out alone, or nearly.
    Write,
    /// From the host to a GPU.
    Upload,
    /// From a GPU to the host.
    Download,
    /// From the host to a GPU and back, the same number each way, at once.
    Duplex,
}

/// A problem that people ask for by name.
#[derive(Debug, Clone)]
pub struct Case<P> {
    /// As the command line has it: `2^22-i32`.
    pub name: &'static str,
    /// What it is and whose table it reproduces.
    pub summary: &'static str,
    /// The problem.
    pub problem: P,
}

/// Lectures and journals whose tables ladders reproduce.
pub mod documents {
    /// Reductions, Sobel filters, banks of shared memory.
    pub const MEMORY_OPTIMIZATION: &str = "“CUDA memory optimization” (tutorial, 2016)";
    /// Exact transforms, reconstruction, kernels on GPUs and on multicore processors.
    pub const APPLICATION_DEVELOPMENT: &str = "“CUDA application development” (lecture)";
    /// Convolutions and textures.
    pub const COMPUTING: &str = "“CUDA computing” (tutorial)";
    /// Transposes, products, random numbers.
    pub const OPTIMIZATION_STRATEGIES: &str = "“Optimization strategies” (lecture 7)";
    /// Histograms of an image.
    pub const HISTOGRAMS: &str = "“Histograms” (lab journal)";
}

/// A row of a table of a lecture or journal: what stands beside the variant that names it in
/// [`reproduces`](crate::variant::Variant::reproduces).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    /// The document that has the table: one of [`documents`], as heads of columns name it.
    pub document: &'static str,
    /// The row's label: `K3`.
    pub row: &'static str,
    /// Seconds, where stated.
    pub seconds: Option<f64>,
    /// The table's own rate, in the algorithm's [`Unit`] a second, where stated.
    pub rate: Option<f64>,
    /// The problem that was measured, as the ladder's own problems print: `4194304 i32`. Empty where the
    /// document states no size.
    pub problem: &'static str,
    /// What a reader has to know of the row: `Intel MKL on several cores`. Empty: nothing.
    pub note: &'static str,
}

impl Published {
    /// A row without figures, size and note.
    pub const fn new(document: &'static str, row: &'static str) -> Self {
        Self { document, row, seconds: None, rate: None, problem: "", note: "" }
    }

    /// Sets [`Published::seconds`].
    pub const fn seconds(mut self, seconds: f64) -> Self {
        self.seconds = Some(seconds);
        self
    }

    /// Sets [`Published::rate`].
    pub const fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets [`Published::problem`].
    pub const fn measured_at(mut self, problem: &'static str) -> Self {
        self.problem = problem;
        self
    }

    /// Sets [`Published::note`].
    pub const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    /// The table of kernels on GPUs and multicore processors: seconds of C on a CPU, of the CUDA source
    /// there, and on a GPU.
    pub const fn on_processors(seconds: [f64; 3]) -> [Self; 3] {
        const fn row(row: &'static str, seconds: f64) -> Published {
            Published::new(documents::APPLICATION_DEVELOPMENT, row).seconds(seconds)
        }
        let [c, source, gpu] = seconds;
        [row("C on a CPU", c), row("CUDA source on a CPU", source), row("CUDA on a GPU", gpu)]
    }
}

/// A row of the lecture's application table: what limited an application on a GPU, and how much faster it was
/// than on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PublishedApplication {
    /// The document that has the table: one of [`documents`].
    pub document: &'static str,
    /// The row's label: `LBM`.
    pub row: &'static str,
    /// What limited the kernel.
    pub bottleneck: &'static str,
    /// Threads at once.
    pub threads: u32,
    /// How much faster the kernel was.
    pub kernel: f64,
    /// How much faster the application was, transfers included.
    pub application: f64,
    /// The cases that stand beside it, each with the case on which one core is timed. That is a smaller case
    /// where one core would take a minute; its rate then counts.
    pub cases: &'static [(&'static str, &'static str)],
}

impl PublishedApplication {
    /// A row of the lecture's table. `speed_ups`: of the kernel and of the application.
    pub const fn of_lecture(
        row: &'static str,
        bottleneck: &'static str,
        threads: u32,
        speed_ups: [f64; 2],
        cases: &'static [(&'static str, &'static str)],
    ) -> Self {
        let [kernel, application] = speed_ups;
        let document = documents::APPLICATION_DEVELOPMENT;
        Self { document, row, bottleneck, threads, kernel, application, cases }
    }
}

/// What a problem's work is counted in, whichever variant does it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// What bounds the operations.
    pub peak: Peak,
    /// Which way the bytes go.
    pub flow: Flow,
    /// What [`Unit::Items`] counts.
    pub items: f64,
    /// What [`Unit::Flops`] counts where variants do less than the problem's plain formula; `None`: what each
    /// variant's [`Work::flops`](crate::variant::Work::flops) counts.
    pub flops: Option<f64>,
}

impl Default for Counts {
    /// f32 multiply-adds, bytes both ways, no items, operations as the variants count them.
    fn default() -> Self {
        Self { peak: Peak::F32, flow: Flow::Copy, items: 0.0, flops: None }
    }
}

/// A row of an algorithm's table.
pub type Row<A> =
    Variant<<A as Algorithm>::Problem, Runnable<<A as Algorithm>::Problem, <A as Algorithm>::Data>>;

/// An algorithm with its problems, its variants and its oracle.
///
/// Conformance tests run every variant on every trial; ladders run every variant of a case; the tuner
/// searches the spaces.
pub trait Algorithm: Send + Sync + 'static {
    /// Sizes, types and kind of input.
    type Problem: Clone + Display + Send + Sync + 'static;
    /// Inputs and outputs on a device, with all memory for a run.
    type Data: 'static;

    /// Names and texts.
    fn about(&self) -> About;

    /// Problems by name: the first is the default, unless [`Algorithm::default_case`] names another.
    fn cases(&self) -> Vec<Case<Self::Problem>>;

    /// The default case for one kind of processor, where it is not the first: a GPU may need more work than a
    /// CPU to show differences.
    fn default_case(&self, _kind: BackendKind) -> Option<&'static str> {
        None
    }

    /// Small problems for tests: odd, prime, of size 1, longer than a tile, of every type and kind of input.
    fn trials(&self) -> Vec<Self::Problem>;

    /// `problem` in another size. Errors: too many or too few numbers, a size that is not possible.
    fn sized(&self, problem: &Self::Problem, size: &[usize]) -> Result<Self::Problem>;

    /// What tuning results of a problem belong to: its kind and its sizes. As it stands, the words and the
    /// whole numbers of its text, with `x` between numbers left out: `8192 x 100 f32` is `f32` and 8192, 100.
    fn key(&self, problem: &Self::Problem) -> (String, Vec<usize>) {
        let text = problem.to_string();
        let (mut kind, mut sizes) = (Vec::new(), Vec::new());
        for word in text.split([' ', ',']).filter(|word| !word.is_empty() && !matches!(*word, "x" | "×")) {
            match word.parse() {
                Ok(size) => sizes.push(size),
                Err(_) => kind.push(word),
            }
        }
        (kind.join(" "), sizes)
    }

    /// The rows for a problem, the CPU's first, slowest first each.
    fn variants(&self, problem: &Self::Problem) -> Vec<Row<Self>>
    where
        Self: Sized;

    /// What a kernel of a user's own is called with, where one kernel may compute the problem.
    fn signature(&self, _problem: &Self::Problem) -> Option<Signature<Self::Problem, Self::Data>> {
        None
    }

    /// What its work is counted in.
    fn counts(&self, _problem: &Self::Problem) -> Counts {
        Counts::default()
    }

    /// The rows of the lecture or journal that it follows.
    fn published(&self) -> &'static [Published] {
        &[]
    }

    /// Its row of the lecture's application table.
    fn published_application(&self) -> Option<PublishedApplication> {
        None
    }

    /// Inputs of a problem, random where they are, by `seed`, and room for outputs.
    fn data(&self, problem: &Self::Problem, device: &Device, seed: u64) -> Result<Self::Data>;

    /// Writes into all outputs what no variant would: NaN, or all bits set.
    fn poison(&self, data: &mut Self::Data) -> Result<()>;

    /// How far the outputs are from the f64 oracle: the relative error that
    /// [`tolerance`](crate::variant::Variant::tolerance) bounds, infinite for NaN; of large problems at
    /// random outputs. For exact variants 0 or the share of wrong outputs.
    fn error(&self, problem: &Self::Problem, data: &Self::Data) -> Result<f64>;

    /// What the outputs say, in a line for people: of algorithms whose output is a number, such as
    /// `π ≈ 3.14 ± 0.01`.
    fn result(&self, _problem: &Self::Problem, _data: &Self::Data) -> Result<Option<String>> {
        Ok(None)
    }
}
