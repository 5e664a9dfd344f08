//! Problems, their data and oracle.

use std::fmt;

use rayspin_core::{Error, Result};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{About, Algorithm, Case, Counts, Flow, Published, Row, Signature, Unit, documents};

use super::input::{Input, samples};
use super::sample::{self, Samples, Width};
use super::{cpu, cuda, saturate, variants};

/// What a count is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 8 bits that stop at 255.
    Saturating,
    /// 32 bits.
    Counts,
}

impl Form {
    /// The largest count.
    pub(super) fn limit(self) -> u32 {
        match self {
            Self::Saturating => 255,
            Self::Counts => u32::MAX,
        }
    }
}

/// The number and the kind of samples, and the number of bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Samples.
    pub samples: usize,
    /// Bits of each.
    pub width: Width,
    /// Bins.
    pub bins: usize,
    /// What a count is.
    pub form: Form,
    /// Kind of samples.
    pub input: Input,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = match self.form {
            Form::Saturating => "u8 counts up to 255",
            Form::Counts => "u32 counts",
        };
        let width = self.width.name();
        write!(f, "{} {width} ({}), {} bins, {counts}", self.samples, self.input, self.bins)
    }
}

/// Samples, results and the memory to count in.
pub struct Data {
    pub(super) problem: Problem,
    pub(super) samples: Box<dyn Samples>,
    pub(super) bytes: Array<u8>,
    pub(super) words: Array<u32>,
    /// On a GPU a count for each bin and the blocks that have ended, all zero between runs; on a CPU the
    /// tables of all threads.
    pub(super) wide: Array<u32>,
    /// A row for each block.
    parts: Array<u32>,
}

impl Data {
    pub(super) fn arrays_and_parts(&mut self) -> (cuda::Arrays<'_>, &mut Array<u32>) {
        let Self { problem, samples, bytes, words, wide, parts } = self;
        (cuda::Arrays { samples: &**samples, bins: problem.bins, wide, bytes, words }, parts)
    }

    pub(super) fn arrays(&mut self) -> cuda::Arrays<'_> {
        self.arrays_and_parts().0
    }

    /// The first table becomes the result.
    pub(super) fn give(&mut self) -> Result<()> {
        let wide = &self.wide.cpu()[..self.problem.bins];
        match self.problem.form {
            Form::Saturating => saturate(wide, self.bytes.cpu_mut()),
            Form::Counts => self.words.cpu_mut().copy_from_slice(wide),
        }
        Ok(())
    }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Histogram;

/// The lab journal's image.
const IMAGE: usize = 3984 * 4096;

fn problem(samples: usize, bins: usize, form: Form, input: Input) -> Problem {
    Problem { samples, width: Width::U32, bins, form, input }
}

/// The same of narrower samples.
fn narrow(width: Width, problem: Problem) -> Problem {
    Problem { width, ..problem }
}

impl Algorithm for Histogram {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "histogram",
            title: "Histogram of 8, 16 and 32-bit samples",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn counts(&self, _: &Problem) -> Counts {
        Counts { flow: Flow::Read, ..Counts::default() }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        use Form::{Counts, Saturating};
        let case = |name, summary, bins, form, input| Case {
            name,
            summary,
            problem: problem(IMAGE, bins, form, input),
        };
        let narrowed = |width, case: Case<Problem>| Case { problem: narrow(width, case.problem), ..case };
        vec![
            case(
                "walk",
                "the lab journal's: 3984 x 4096 samples, neighbours alike",
                1024,
                Saturating,
                Input::Walk,
            ),
            case("uniform", "the same size, every bin alike", 1024, Saturating, Input::Uniform),
            case("constant", "the same size, one value", 1024, Saturating, Input::Constant),
            case("tomogram", "the same size, air, tissue and bone", 1024, Saturating, Input::Tomogram),
            case("walk-counts", "plain counts of the walk", 1024, Counts, Input::Walk),
            case("uniform-counts", "plain counts, every bin alike", 1024, Counts, Input::Uniform),
            case("constant-counts", "plain counts of one value", 1024, Counts, Input::Constant),
            case("tomogram-256", "plain counts in 256 bins", 256, Counts, Input::Tomogram),
            case(
                "tomogram-4096",
                "plain counts in 4096 bins: a 12-bit scanner",
                4096,
                Counts,
                Input::Tomogram,
            ),
            case("uniform-256", "plain counts in 256 bins", 256, Counts, Input::Uniform),
            case("uniform-4096", "plain counts in 4096 bins", 4096, Counts, Input::Uniform),
            narrowed(
                Width::U16,
                case("walk-u16", "plain counts of 16-bit samples", 1024, Counts, Input::Walk),
            ),
            narrowed(
                Width::U16,
                case("uniform-u16", "plain counts of 16-bit samples", 1024, Counts, Input::Uniform),
            ),
            narrowed(
                Width::U16,
                case("constant-u16", "plain counts of 16-bit samples", 1024, Counts, Input::Constant),
            ),
            narrowed(Width::U8, case("tomogram-u8", "plain counts of bytes", 256, Counts, Input::Tomogram)),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        use Form::{Counts, Saturating};
        vec![
            problem(1, 1, Saturating, Input::Constant),
            problem(2, 3, Counts, Input::Uniform),
            problem(1021, 1, Counts, Input::Beyond),
            problem(4096, 1024, Saturating, Input::Uniform),
            problem(4099, 33, Saturating, Input::Walk),
            problem(4095, 4096, Counts, Input::Tomogram),
            problem(5000, 1000, Counts, Input::Constant),
            problem(6007, 20_000, Counts, Input::Beyond),
            narrow(Width::U16, problem(4101, 300, Counts, Input::Beyond)),
            narrow(Width::U16, problem(8195, 65_536, Counts, Input::Uniform)),
            narrow(Width::U8, problem(8205, 256, Saturating, Input::Uniform)),
            narrow(Width::U8, problem(15, 100, Counts, Input::Beyond)),
            // A full bin between empty ones.
            problem(6011, 6, Saturating, Input::Constant),
            problem(9001, 17, Saturating, Input::Beyond),
        ]
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let (samples, bins) = match *size {
            [samples] => (samples, problem.bins),
            [samples, bins] => (samples, bins),
            _ => (0, 0),
        };
        if (1..=u32::MAX as usize).contains(&samples) && (1..=1 << 24).contains(&bins) {
            return Ok(Problem { samples, bins, ..*problem });
        }
        let wanted = "SAMPLES or SAMPLESxBINS: 1 to 4294967295, 1 to 16777216";
        Err(Error::value("size of histogram", wanted, format!("{size:?}")))
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn published(&self) -> &'static [Published] {
        const fn row(row: &'static str, seconds: f64) -> Published {
            // The journal gives seconds of 1000 runs.
            let row = Published::new(documents::HISTOGRAMS, row).seconds(seconds / 1000.0);
            row.measured_at("16318464 u32 (walk), 1024 bins, u8 counts up to 255")
        }
        const ROWS: [Published; 12] = [
            row("CPU", 11.07),
            row("O1", 7720.0),
            row("O2", 38.807),
            row("O3", 9.275),
            row("O4", 7.940),
            row("O5", 0.776),
            row("O6", 0.7676),
            row("O7", 0.766),
            row("O8", 0.720),
            row("O9", 0.711),
            row("O10", 0.712).note("the journal's ten timings of it are a copy of O9's"),
            Published::new(documents::HISTOGRAMS, "O11").note("the journal did not get it to work"),
        ];
        &ROWS
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "histogram",
            declaration: "\
// counts[v] += how many of the n samples are v, for v < bins; samples of bins or more are not counted. Counts
// are 0 before. Rayspin defines SAMPLE (unsigned char, unsigned short or unsigned int). Where counts have 8
// bits, a kernel of Rayspin clamps yours to 255.
extern \"C\" __global__ void histogram(const SAMPLE* samples, unsigned long long n, unsigned bins, unsigned* counts)",
            extent: |p| [p.samples, 1, 1],
            defines: |p| vec![("SAMPLE", cuda::sample(p.width).to_owned())],
            call: cuda::counted_by,
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let values = samples(device.cpu_side(), problem.input, problem.samples, problem.bins, seed)?;
        let bins = problem.bins;
        let (wide, parts) = match device.backend() {
            Backend::Cpu(cpu) => (cpu::words(cpu.threads(), bins), 0),
            Backend::Cuda(_) => (cuda::wide_len(bins), cuda::MOST_BLOCKS as usize * bins),
        };
        // Problems that no variant with rows can run have none.
        let parts = if variants::shared_refuses(problem).is_some() { 0 } else { parts };
        Ok(Data {
            problem: *problem,
            samples: sample::array(device, problem.width, values)?,
            bytes: Array::zeros(device, &[bins])?,
            words: Array::zeros(device, &[bins])?,
            wide: Array::zeros(device, &[wide])?,
            parts: Array::zeros(device, &[parts])?,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        // 255 is what a full bin holds.
        data.bytes.fill(0xaa)?;
        data.words.fill(u32::MAX)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let want = data.samples.reference(problem.bins)?;
        let wrong = match problem.form {
            Form::Saturating => {
                let counts = data.bytes.read()?;
                counts.iter().zip(&want).filter(|&(&h, &want)| u64::from(h) != want.min(255)).count()
            }
            Form::Counts => {
                let counts = data.words.read()?;
                counts.iter().zip(&want).filter(|&(&h, &want)| u64::from(h) != want).count()
            }
        };
        Ok(wrong as f64 / problem.bins as f64)
    }
}
