//! Sobel's edges: s (|H| + |V|), H and V the gradients of 3×3 pixels.

mod cpu;
mod cuda;
pub mod reference;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, voxels};
use rayspin_device::cuda::Source;
use rayspin_device::cuda::Texture;
use rayspin_device::{Array, Backend, BackendKind, Device};
use rayspin_tune::variant::{Variant, Work, runs_all};
use rayspin_tune::{
    About, Algorithm, Carried, Case, Config, Peak, Published, Space, Unit, documents, gpu, input, tuned,
};

use crate::plane;
pub(crate) use cuda::programs;

/// out\[y, x\] = min(255, ⌊s (|H| + |V|)⌋), where with p the image
///
/// H = p\[y−1, x+1\] + 2 p\[y, x+1\] + p\[y+1, x+1\] − p\[y−1, x−1\] − 2 p\[y, x−1\] − p\[y+1, x−1\] and V is the same with x and y exchanged.
///
/// Images `[rows, columns]` of bytes. Beyond an edge the nearest pixel counts. The product with `scale` s is that of f32, rounded to
/// nearest, and then cut towards zero: every processor gives the same bytes. At s = 1 only gradients of up to 255 together are told
/// apart; s = 1/8 loses none.
///
/// Errors: a scale that is negative or not finite, images that differ in shape or device, without pixels, or with 2³⁰ rows or columns.
pub fn sobel(image: &Array<u8>, scale: f32, out: &mut Array<u8>) -> Result<()> {
    let (rows, columns) = plane::same("Sobel", image, out)?;
    let (rows, columns) = plane::asked("Sobel", &[rows, columns])?;
    check_scale(scale)?;
    match image.device().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, image.cpu(), rows, columns, scale, out.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let problem = Problem { rows, columns, scale };
            let config = tuned(&Sobel, &problem, "gpu-halves", image.device());
            let form = cuda::Form::from_config(&config, scale, true)?;
            cuda::sliding(cuda, form, image, (rows, columns), scale, out)
        }
    }
}

fn check_scale(scale: f32) -> Result<()> {
    if scale.is_finite() && scale >= 0.0 {
        return Ok(());
    }
    Err(Error::value("scale of Sobel", "a finite number from 0", scale))
}

/// An image's size and the scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// What the sum of gradients is multiplied by.
    pub scale: f32,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} u8, scale {}", self.rows, self.columns, self.scale)
    }
}

/// The images of one problem.
pub struct Data {
    problem: Problem,
    image: Array<u8>,
    /// The image again, on a GPU where one holds it.
    texture: Option<Texture>,
    out: Array<u8>,
}

/// What a row runs.
pub type Launch = fn(&Config, &mut Data) -> Result<()>;

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Sobel;

impl Algorithm for Sobel {
    type Problem = Problem;
    type Launch = Launch;
    type Data = Data;

    fn about(&self) -> About {
        About { name: "sobel", title: "Sobel's edges", readme: include_str!("README.md"), unit: Unit::Bytes }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, rows, columns, scale| Case {
            name,
            summary,
            problem: Problem { rows, columns, scale },
        };
        vec![
            case("8192x8192", "larger than any cache, not scaled", 8192, 8192, 1.0),
            case("8192x8192-scaled", "the same with a scale that needs a product a pixel", 8192, 8192, 0.125),
            case("4001x6007", "rows that begin at any byte", 4001, 6007, 1.0),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [
            (1, 1, 1.0),
            (1, 9, 0.3),
            (9, 1, 1.0),
            (2, 2, 0.125),
            (5, 3, 1.0),
            (19, 131, 0.1),
            (17, 16, 1.0),
            (33, 36, 2.5),
            (18, 136, 0.2),
            (35, 144, 0.125),
        ]
        .map(|(rows, columns, scale)| Problem { rows, columns, scale })
        .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let (rows, columns) = plane::asked("sobel", size)?;
        Ok(Problem { rows, columns, ..*problem })
    }

    fn variants(&self, _: &Problem) -> Vec<Variant<Problem, Launch>> {
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
        let on_cpu =
            |name, summary, launch: Launch| row(name, BackendKind::Cpu, summary, launch, runs_all, None);
        let on_gpu = |name, summary, launch: Launch, refuses: fn(&Problem) -> Option<String>, reproduces| {
            row(name, BackendKind::Cuda, summary, launch, refuses, reproduces)
        };
        vec![
            on_cpu("scalar", "one thread, each neighbour looked for", |_, d| {
                let Problem { rows, columns, scale } = d.problem;
                cpu::scalar(d.image.cpu(), rows, columns, scale, d.out.cpu_mut());
                Ok(())
            }),
            on_cpu("simd", "one thread, rows as vectors of 16-bit integers", |_, d| {
                let Problem { rows, columns, scale } = d.problem;
                let level = d.image.device().cpu_side().level();
                cpu::simd(level, d.image.cpu(), rows, columns, scale, 0, d.out.cpu_mut());
                Ok(())
            }),
            on_cpu("threads", "the same on all cores", |_, d| {
                let Problem { rows, columns, scale } = d.problem;
                let device = d.image.device().clone();
                cpu::threads(device.cpu_side(), d.image.cpu(), rows, columns, scale, d.out.cpu_mut());
                Ok(())
            }),
            on_gpu(
                "gpu-twelve-reads",
                "twelve reads a pixel, in floating point",
                cuda::twelve_reads,
                cuda::per_pixel_refuses,
                Some("a"),
            ),
            on_gpu(
                "gpu-eight-reads",
                "eight reads, in integers",
                cuda::eight_reads,
                cuda::per_pixel_refuses,
                Some("b"),
            ),
            on_gpu(
                "gpu-texture",
                "through the texture unit, a block a row",
                cuda::texture,
                cuda::texture_refuses,
                Some("c"),
            ),
            on_gpu(
                "gpu-shared",
                "a shared tile with its apron, four pixels a thread by a sliding window, several rows",
                cuda::shared_tile,
                cuda::per_pixel_refuses,
                Some("d"),
            ),
            on_gpu(
                "gpu-packed",
                "strips that slide down in registers, 16 bytes a load, two pixels an instruction",
                |config, d| sliding(config, d, false),
                runs_all,
                None,
            ),
            on_gpu(
                "gpu-halves",
                "the same in half precision, which is exact here and takes half the instructions",
                |config, d| sliding(config, d, true),
                runs_all,
                None,
            ),
        ]
    }

    fn sources(&self, _: &Problem, variant: &str) -> Vec<&'static Source> {
        match variant {
            "gpu-halves" => vec![&cuda::SLIDING],
            _ => Vec::new(),
        }
    }

    fn space(&self, problem: &Problem, variant: &str) -> Space {
        match variant {
            "gpu-twelve-reads" | "gpu-eight-reads" => Space::none()
                .axis("x", &[8, 16, 32, 64, 128, 256], 32)
                .axis("y", &[1, 2, 4, 8, 16, 32], 8)
                .where_(|c| between(c, &["x", "y"], 32, 1024)),
            "gpu-texture" => Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256),
            "gpu-shared" => Space::none()
                .axis("x", &[8, 16, 32, 64], 32)
                .axis("y", &[1, 2, 4, 8, 16], 4)
                .axis("rows", &[1, 2, 4, 8], 4)
                .where_(|c| between(c, &["x", "y"], 32, 512) && between(c, &["x", "y", "rows"], 32, 4096)),
            "gpu-packed" | "gpu-halves" => {
                let aligns = cuda::aligns(problem.columns);
                Space::none()
                    .axis("align", &aligns, aligns.last().copied().unwrap_or(1))
                    .axis("threads", &[32, 64, 128, 256], 64)
                    .axis("rows", &[3, 6, 9, 12, 16, 18, 24, 32, 48, 64], 6)
            }
            _ => Space::none(),
        }
    }

    fn key(&self, problem: &Problem) -> (String, Vec<usize>) {
        // One form of the kernels multiplies by the scale, whichever it is.
        let kind = if problem.scale == 1.0 { "scale 1" } else { "scaled" };
        (kind.to_owned(), vec![problem.rows, problem.columns])
    }

    fn peak(&self, _: &Problem) -> Peak {
        Peak::I32
    }

    fn published(&self) -> &'static [Published] {
        const fn row(row: &'static str) -> Published {
            Published { document: documents::MEMORY_OPTIMIZATION, row, seconds: None, rate: None }
        }
        &const { [row("a"), row("b"), row("c"), row("d")] }
    }

    fn carried<'a>(&self, _: &str, data: &'a mut Data) -> Option<Carried<'a>> {
        Some(Carried { inputs: vec![&mut data.image], outputs: vec![&mut data.out] })
    }

    fn set_up(&self, _: &Problem, variant: &Variant<Problem, Launch>, data: &mut Data) -> Result<()> {
        if let ("gpu-texture", Backend::Cuda(cuda)) = (variant.name, data.image.device().clone().backend()) {
            data.texture = Some(cuda.texture(&data.image, cuda::CLAMPED)?);
        }
        Ok(())
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        check_scale(problem.scale)?;
        let shape = [problem.rows, problem.columns];
        // Smooth but for some noise, as pictures are: gradients of all sizes arise, most below 255.
        let mut pixels = plane::bytes(device.cpu_side(), seed, voxels(&shape)?)?;
        for (y, row) in pixels.chunks_exact_mut(problem.columns).enumerate() {
            if y % 3 != 0 {
                for (x, pixel) in row.iter_mut().enumerate() {
                    *pixel = (*pixel >> 3).wrapping_add(((x + 2 * y) / 3) as u8);
                }
            }
        }
        let image = Array::from_vec(device, &shape, pixels)?;
        let texture = match device.backend() {
            Backend::Cuda(cuda) if cuda::texture_refuses(problem).is_none() => {
                Some(cuda.texture(&image, cuda::CLAMPED)?)
            }
            _ => None,
        };
        Ok(Data { problem: *problem, image, texture, out: Array::zeros(device, &shape)? })
    }

    fn run(&self, variant: &Variant<Problem, Launch>, config: &Config, data: &mut Data) -> Result<()> {
        (variant.launch)(config, data)
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        // What the oracle gives, inverted: no byte is one that no variant would write.
        let Problem { rows, columns, scale } = data.problem;
        let image = data.image.read()?;
        let inverted =
            |at: usize| !reference::pixel(&image, rows, columns, scale, at / columns, at % columns);
        let cpu = data.image.device().cpu_side();
        data.out.set(&input::filled(cpu, "wrong pixels", image.len(), inverted)?)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let Problem { rows, columns, scale } = *problem;
        let (image, out) = (data.image.read()?, data.out.read()?);
        let wrong = |&at: &usize| {
            out[at] != reference::pixel(&image, rows, columns, scale, at / columns, at % columns)
        };
        let cpu = data.out.device().cpu_side();
        let count = cpu.run(|| (0..out.len()).into_par_iter().filter(wrong).count());
        Ok(count as f64 / out.len() as f64)
    }
}

/// Strips sliding down with the forms of a configuration.
fn sliding(config: &Config, d: &mut Data, halves: bool) -> Result<()> {
    let Problem { rows, columns, scale } = d.problem;
    let device = d.image.device().clone();
    let form = cuda::Form::from_config(config, scale, halves)?;
    cuda::sliding(gpu(&device)?, form, &d.image, (rows, columns), scale, &mut d.out)
}

/// Whether the product of some parameters lies within bounds.
fn between(config: &Config, names: &[&str], least: i64, most: i64) -> bool {
    let product = names.iter().try_fold(1, |n, name| Some(n * config.find(name)?));
    product.is_some_and(|n| (least..=most).contains(&n))
}

/// A byte read and one written; eight additions and two doublings a gradient, absolute values and their sum.
fn work(problem: &Problem) -> Work {
    let n = problem.rows as f64 * problem.columns as f64;
    Work { bytes: 2.0 * n, flops: 16.0 * n }
}
