//! Problems and rungs.

use std::fmt;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::Source;
use rayspin_device::{Array, Backend, BackendKind, Device};
use rayspin_tune::variant::{Variant, Work, runs_all};
use rayspin_tune::{
    About, Algorithm, Carried, Carry, Case, Config, Flow, Published, Space, Unit, documents, gpu,
};

use super::input::{Input, samples};
use super::sample::{self, Samples, Width};
use super::{cpu, cuda, saturate};

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

/// How many samples of which kind are counted in how many bins.
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
    bytes: Array<u8>,
    words: Array<u32>,
    /// On a GPU a count for each bin and the blocks that have ended, all zero between runs; on a CPU the tables of all threads.
    wide: Array<u32>,
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
    fn give(&mut self) {
        let wide = &self.wide.cpu()[..self.problem.bins];
        match self.problem.form {
            Form::Saturating => saturate(wide, self.bytes.cpu_mut()),
            Form::Counts => self.words.cpu_mut().copy_from_slice(wide),
        }
    }
}

/// What a row runs.
pub type Launch = fn(&Config, &mut Data) -> Result<()>;

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
    type Launch = Launch;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "histogram",
            title: "Histogram of 8, 16 and 32-bit samples",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn flow(&self, _: &Problem) -> Flow {
        Flow::Read
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        use Form::{Counts, Saturating};
        let case = |name, summary, bins, form, input| Case {
            name,
            summary,
            problem: problem(IMAGE, bins, form, input),
        };
        let of = |width, case: Case<Problem>| Case { problem: narrow(width, case.problem), ..case };
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
            of(Width::U16, case("walk-u16", "plain counts of 16-bit samples", 1024, Counts, Input::Walk)),
            of(
                Width::U16,
                case("uniform-u16", "plain counts of 16-bit samples", 1024, Counts, Input::Uniform),
            ),
            of(
                Width::U16,
                case("constant-u16", "plain counts of 16-bit samples", 1024, Counts, Input::Constant),
            ),
            of(Width::U8, case("tomogram-u8", "plain counts of bytes", 256, Counts, Input::Tomogram)),
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

    fn variants(&self, _: &Problem) -> Vec<Variant<Problem, Launch>> {
        rows()
    }

    fn sources(&self, _: &Problem, variant: &str) -> Vec<&'static Source> {
        match variant {
            "gpu-copies" | "gpu-device-memory" => vec![&cuda::MODERN],
            _ => Vec::new(),
        }
    }

    fn space(&self, problem: &Problem, variant: &str) -> Space {
        let copies = copies(problem.bins);
        let most = copies.last().copied().unwrap_or(1);
        let pass = |copies: &[i64], default: i64, blocks: i64| {
            let space = Space::none()
                .axis("threads", &[256, 512, 1024], 1024)
                .axis("blocks", &[1, 2, 4, 8], blocks)
                .axis("unroll", &cuda::UNROLL, 2);
            let space = if copies.is_empty() { space } else { space.axis("copies", copies, default) };
            space.where_(|c| matches!(c.find("threads").zip(c.find("blocks")), Some((t, b)) if t * b <= 2048))
        };
        match variant {
            "cpu-tables" => Space::none().axis("tables", &[1, 2, 4, 8], 4),
            "cpu-blocks" | "cpu-threads" => Space::none().axis("tables", &[1, 2, 4, 8], 8),
            "o2" | "o3" | "o4" => Space::none().axis("threads", &[128, 256, 512, 1024], 512),
            "o5" | "o6" | "o7" | "o8" | "o9" | "o10" | "o11" => Space::none()
                .axis("threads", &[128, 256, 512, 1024], 256)
                .axis("blocks", &[132, 264, 528, i64::from(cuda::MOST_BLOCKS)], 528),
            "gpu-one-pass" => pass(&[1], 1, 2),
            "gpu-copies" | "gpu-runs" => pass(&copies, most, 1),
            "gpu-packed" => {
                let twice = if most < 32 { [copies.as_slice(), &[2 * most]].concat() } else { copies };
                pass(&twice, (2 * most).min(32), 1)
            }
            "gpu-matched" => pass(&[], 1, 2),
            "gpu-tested" => pass(&copies, most.min(8), 2),
            "gpu-device-memory" => Space::none()
                .axis("threads", &[256, 512, 1024], 256)
                .axis("blocks", &[1, 2, 4, 8], 8)
                .axis("unroll", &[2], 2)
                .where_(|c| matches!(c.find("threads").zip(c.find("blocks")), Some((t, b)) if t * b <= 2048)),
            _ => Space::none(),
        }
    }

    fn published(&self) -> &'static [Published] {
        const fn row(row: &'static str, seconds: f64) -> Published {
            // The journal gives seconds of 1000 runs.
            let seconds = Some(seconds / 1000.0);
            Published { document: documents::HISTOGRAMS, row, seconds, rate: None }
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
            row("O10", 0.712),
            Published { document: documents::HISTOGRAMS, row: "O11", seconds: None, rate: None },
        ];
        &ROWS
    }

    fn carried<'a>(&self, _: &str, data: &'a mut Data) -> Option<Carried<'a>> {
        let output: &mut dyn Carry = match data.problem.form {
            Form::Saturating => &mut data.bytes,
            Form::Counts => &mut data.words,
        };
        Some(Carried { inputs: vec![data.samples.carry()], outputs: vec![output] })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let values = samples(device.cpu_side(), problem.input, problem.samples, problem.bins, seed)?;
        let bins = problem.bins;
        let (wide, parts) = match device.backend() {
            Backend::Cpu(cpu) => (cpu::words(cpu.threads(), bins), 0),
            Backend::Cuda(_) => (cuda::wide_len(bins), cuda::MOST_BLOCKS as usize * bins),
        };
        // Problems that no rung with rows can run have none.
        let parts = if cuda::shared_refuses(problem).is_some() { 0 } else { parts };
        Ok(Data {
            problem: *problem,
            samples: sample::array(device, problem.width, values)?,
            bytes: Array::zeros(device, &[bins])?,
            words: Array::zeros(device, &[bins])?,
            wide: Array::zeros(device, &[wide])?,
            parts: Array::zeros(device, &[parts])?,
        })
    }

    fn run(&self, variant: &Variant<Problem, Launch>, config: &Config, data: &mut Data) -> Result<()> {
        (variant.launch)(config, data)
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
                let found = data.bytes.read()?;
                found.iter().zip(&want).filter(|&(&h, &want)| u64::from(h) != want.min(255)).count()
            }
            Form::Counts => {
                let found = data.words.read()?;
                found.iter().zip(&want).filter(|&(&h, &want)| u64::from(h) != want).count()
            }
        };
        Ok(wrong as f64 / problem.bins as f64)
    }
}

/// Copies of a block's counts that shared memory of an H100 holds, 4 bytes a bin: powers of two, one at least.
pub(super) fn copies(bins: usize) -> Vec<i64> {
    let fit = (0..6).map(|p| 1i64 << p).filter(|&c| 4 * bins * c as usize <= 224 << 10);
    let fit: Vec<_> = fit.collect();
    if fit.is_empty() { vec![1] } else { fit }
}

/// Every sample is read once; the bins are nothing beside that.
fn work(problem: &Problem) -> Work {
    let bin = if problem.form == Form::Counts { 4.0 } else { 1.0 };
    Work { bytes: (problem.width.bytes() * problem.samples) as f64 + bin * problem.bins as f64, flops: 0.0 }
}

fn one_pass(name: &'static str, config: &Config, data: &mut Data) -> Result<()> {
    let limit = data.problem.form.limit();
    let device = data.samples.device().clone();
    cuda::one_pass(gpu(&device)?, name, cuda::OnePass::of(config)?, limit, &mut data.arrays())
}

fn too_many_bins(problem: &Problem) -> Option<String> {
    (4 * problem.bins > 224 << 10)
        .then(|| format!("{problem}: a multiprocessor's shared memory holds 57344 bins of 32 bits"))
}

fn rows() -> Vec<Variant<Problem, Launch>> {
    type Refuses = fn(&Problem) -> Option<String>;
    let row = |name, backend, summary, launch: Launch, refuses, reproduces| Variant {
        name,
        backend,
        summary,
        launch,
        refuses,
        work,
        tolerance: 0.0,
        reproduces,
    };
    let on_cpu = |name, summary, launch: Launch, reproduces| {
        row(name, BackendKind::Cpu, summary, launch, runs_all, reproduces)
    };
    let journal = |name, reproduces, summary, refuses: Refuses, launch: Launch| {
        row(name, BackendKind::Cuda, summary, launch, refuses, Some(reproduces))
    };
    let modern = |name, summary, refuses: Refuses, launch: Launch| {
        row(name, BackendKind::Cuda, summary, launch, refuses, None)
    };
    let shared = cuda::shared_refuses;
    vec![
        on_cpu(
            "cpu-scalar",
            "one thread, one table",
            |_, d| {
                let wide = &mut d.wide.cpu_mut()[..d.problem.bins];
                wide.fill(0);
                d.samples.scalar(wide);
                d.give();
                Ok(())
            },
            Some("CPU"),
        ),
        on_cpu(
            "cpu-tables",
            "one thread, neighbours in tables of their own",
            |config, d| {
                let tables = config.get("tables")? as usize;
                d.samples.tables(tables, d.wide.cpu_mut(), d.problem.bins);
                d.give();
                Ok(())
            },
            None,
        ),
        on_cpu(
            "cpu-blocks",
            "compared with the number of bins in vectors, counted in 16 bits",
            |config, d| {
                let tables = config.get("tables")? as usize;
                let level = d.samples.device().cpu_side().level();
                d.samples.blocks(level, tables, d.wide.cpu_mut(), d.problem.bins);
                d.give();
                Ok(())
            },
            None,
        ),
        on_cpu(
            "cpu-threads",
            "the same on all cores",
            |config, d| {
                let tables = config.get("tables")? as usize;
                let device = d.samples.device().clone();
                d.samples.threads(device.cpu_side(), tables, d.wide.cpu_mut(), d.problem.bins);
                d.give();
                Ok(())
            },
            None,
        ),
        journal("o1", "O1", "one thread", cuda::words_only, |_, d| cuda::single("one_thread", 1, false, d)),
        journal("o2", "O2", "one block, a piece of the samples for each thread", cuda::words_only, |c, d| {
            cuda::single("one_block", c.get("threads")?, false, d)
        }),
        journal("o3", "O3", "one block, neighbours by neighbouring threads", cuda::words_only, |c, d| {
            cuda::single("interleaved", c.get("threads")?, false, d)
        }),
        journal("o4", "O4", "one block, counts in shared memory", shared, |c, d| {
            cuda::single("in_shared", c.get("threads")?, true, d)
        }),
        journal("o5", "O5", "many blocks, then a kernel that clamps", shared, |c, d| {
            cuda::added("many_blocks", false, "clamp_by_branch", c, d)
        }),
        journal("o6", "O6", "clamped by min", cuda::saturating_only, |c, d| {
            cuda::added("many_blocks", false, "clamp_by_min", c, d)
        }),
        journal("o7", "O7", "a full bin is not added to", cuda::saturating_only, |c, d| {
            cuda::added("tested", true, "clamp_by_min", c, d)
        }),
        journal("o8", "O8", "4 samples of a thread at once", shared, |c, d| {
            cuda::added("unrolled_4", true, "clamp_by_min", c, d)
        }),
        journal("o9", "O9", "12 samples of a thread at once", shared, |c, d| {
            cuda::added("unrolled_12", true, "clamp_by_min", c, d)
        }),
        journal("o10", "O10", "plain stores, added by a second kernel", shared, |c, d| {
            cuda::second_pass("stored", c, d)
        }),
        journal("o11", "O11", "16-byte loads", shared, |c, d| cuda::second_pass("stored_wide", c, d)),
        modern("gpu-device-memory", "counts in the device's memory: any number of bins", runs_all, |c, d| {
            one_pass("everywhere", c, d)
        }),
        modern(
            "gpu-one-pass",
            "one kernel: the block that ends last gives the result",
            too_many_bins,
            |c, d| one_pass("each", c, d),
        ),
        modern("gpu-matched", "equal values of a warp are added once", too_many_bins, |c, d| {
            one_pass("matched", c, d)
        }),
        modern("gpu-copies", "a copy of the counts for each lane", too_many_bins, |c, d| {
            one_pass("each", c, d)
        }),
        modern("gpu-packed", "two 16-bit counts in a word, runs added at once", too_many_bins, |c, d| {
            one_pass("packed", c, d)
        }),
        modern("gpu-runs", "copies, and runs of a thread added at once", too_many_bins, |c, d| {
            one_pass("runs", c, d)
        }),
        modern("gpu-tested", "copies, and a full bin is not added to", tested_refuses, |c, d| {
            one_pass("tested_one_pass", c, d)
        }),
    ]
}

fn tested_refuses(problem: &Problem) -> Option<String> {
    let plain = problem.form == Form::Counts;
    plain.then(|| "plain counts have no limit to test".to_owned()).or_else(|| too_many_bins(problem))
}
