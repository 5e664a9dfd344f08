//! Block matching: sums of absolute differences of 4 × 4 pixels for every displacement.

mod cpu;
mod cuda;
pub mod reference;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::cuda::Source;
use rayspin_device::cuda::Texture;
use rayspin_device::{Array, Backend, BackendKind, Device};
use rayspin_tune::variant::{Variant, Work, runs_all};
use rayspin_tune::{About, Algorithm, Carried, Case, Config, Peak, Published, Space, Unit, input, tuned};

pub(crate) use cuda::programs;

/// SAD\[i, j, v, u\] = Σ_{y, x < 4} |C\[4i + y, 4j + x\] − R\[4i + y + v − r, 4j + x + u − r\]| for frames C and R `[height, width]` and
/// displacements −r … r along y and x: `[⌈height/4⌉, ⌈width/4⌉, 2r + 1, 2r + 1]`. Beyond its edges a frame goes on as its edge.
///
/// Sums of larger blocks are sums of these. Errors: shapes, arrays on different devices, a radius whose window does not fit into a
/// GPU's shared memory (about 100), empty frames.
pub fn block_match(
    current: &Array<u8>,
    reference: &Array<u8>,
    radius: usize,
    sums: &mut Array<u16>,
) -> Result<()> {
    let &[height, width] = current.shape() else {
        return Err(Error::shape("frame", &[2], &[current.shape().len()]));
    };
    expect_shape("reference frame", current.shape(), reference.shape())?;
    if current.is_empty() {
        return Err(Error::value("frame", "at least one pixel", "none"));
    }
    let most = height.max(width).saturating_add(1 << 14);
    if radius > most {
        return Err(Error::value("radius of displacements", format!("at most {most}"), radius));
    }
    let problem = Problem { height, width, radius };
    expect_shape("sums of differences", &problem.shape(), sums.shape())?;
    for other in [reference.device(), sums.device()] {
        if !other.same_as(current.device()) {
            return Err(Error::value("block matching", "arrays on one device", other.describe()));
        }
    }
    match current.device().backend() {
        Backend::Cpu(cpu) => {
            let mut padded = cpu::Padded::new(&problem)?;
            let on = (cpu.level(), Some(cpu));
            cpu::simd(on, current.cpu(), reference.cpu(), &mut padded, sums.cpu_mut(), &problem);
            Ok(())
        }
        Backend::Cuda(cuda) => {
            if let Some(why) = cuda::window_refuses(&problem) {
                return Err(Error::value("radius of displacements", "one whose window fits", why));
            }
            let config = tuned(&Sad, &problem, "gpu-packed", current.device());
            let form = ("packed", config.get("blocks")?, config.get("threads")?);
            cuda::window(cuda, form, [current, reference], sums, &problem)
        }
    }
}

/// A frame's size and the largest displacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Displacements go from −radius to radius.
    pub radius: usize,
}

impl Problem {
    fn side(&self) -> usize {
        2 * self.radius + 1
    }

    fn across(&self) -> usize {
        self.width.div_ceil(4)
    }

    fn down(&self) -> usize {
        self.height.div_ceil(4)
    }

    fn shape(&self) -> [usize; 4] {
        [self.down(), self.across(), self.side(), self.side()]
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} u8, displacements of at most {}", self.height, self.width, self.radius)
    }
}

/// Frames and sums of one problem.
pub struct Data {
    problem: Problem,
    current: Array<u8>,
    reference: Array<u8>,
    sums: Array<u16>,
    textures: Option<[Texture; 2]>,
    padded: Option<cpu::Padded>,
    seed: u64,
}

/// What a row runs.
pub type Launch = fn(&Config, &mut Data) -> Result<()>;

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Sad;

/// More sums than this are checked at random.
const WHOLE: usize = 1 << 18;

/// The lectures state the times, not the sizes.
const PUBLISHED: &[Published] = &Published::on_processors([42.5e-3, 25.6e-3, 4.75e-3]);

impl Algorithm for Sad {
    type Problem = Problem;
    type Launch = Launch;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "sad",
            title: "Block matching by sums of absolute differences",
            readme: include_str!("README.md"),
            unit: Unit::Items("differences"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, height, width, radius| Case {
            name,
            summary,
            problem: Problem { height, width, radius },
        };
        vec![
            case("qcif", "144 x 176 pixels, displacements of at most 16", 144, 176, 16),
            case("1080p", "1080 x 1920 pixels: 282 MB of sums", 1080, 1920, 16),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [(1, 1, 0), (1, 5, 2), (7, 3, 9), (13, 30, 3), (8, 64, 4), (9, 37, 5)]
            .map(|(height, width, radius)| Problem { height, width, radius })
            .to_vec()
    }

    fn sized(&self, _: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [height, width, radius] if height.min(width) > 0 && radius <= 1 << 12 => {
                // With room for what padded frames have beyond their edges.
                voxels(&[height, width, 4])?;
                let problem = Problem { height, width, radius };
                voxels(&problem.shape())?;
                Ok(problem)
            }
            _ => {
                Err(Error::value("size of sad", "HEIGHTxWIDTHxRADIUS, a radius to 4096", format!("{size:?}")))
            }
        }
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
        let on_cpu = |name, summary, launch: Launch, reproduces| {
            row(name, BackendKind::Cpu, summary, launch, runs_all, reproduces)
        };
        let on_gpu = |name, summary, launch: Launch, refuses: fn(&Problem) -> Option<String>, reproduces| {
            row(name, BackendKind::Cuda, summary, launch, refuses, reproduces)
        };
        vec![
            on_cpu(
                "scalar",
                "as the formula has it, one thread",
                |_, d| {
                    cpu::scalar(d.current.cpu(), d.reference.cpu(), d.sums.cpu_mut(), &d.problem);
                    Ok(())
                },
                Some("C on a CPU"),
            ),
            on_cpu(
                "simd",
                "16 displacements at a time, padded frames, one thread",
                |_, d| on_simd(d, false),
                None,
            ),
            on_cpu("threads", "the same on all cores", |_, d| on_simd(d, true), None),
            on_gpu("gpu-naive", "a thread a sum, bytes from global memory", cuda::naive, runs_all, None),
            on_gpu(
                "gpu-texture",
                "the same through textures",
                cuda::textured,
                runs_all,
                Some("CUDA on a GPU"),
            ),
            on_gpu(
                "gpu-shared",
                "the window of the reference in shared memory",
                |config, d| cuda::window_of("shared_bytes", config, d),
                cuda::window_refuses,
                None,
            ),
            on_gpu(
                "gpu-packed",
                "four differences an instruction, stores in pairs",
                |config, d| cuda::window_of("packed", config, d),
                cuda::window_refuses,
                None,
            ),
        ]
    }

    fn sources(&self, _: &Problem, variant: &str) -> Vec<&'static Source> {
        match variant {
            "gpu-packed" => vec![&cuda::SOURCE],
            _ => Vec::new(),
        }
    }

    fn space(&self, problem: &Problem, variant: &str) -> Space {
        match variant {
            "gpu-naive" | "gpu-texture" => Space::none().axis("threads", &[64, 128, 256, 512], 256),
            "gpu-shared" | "gpu-packed" => cuda::window_space(problem),
            _ => Space::none(),
        }
    }

    fn peak(&self, _: &Problem) -> Peak {
        Peak::I32
    }

    fn items(&self, problem: &Problem) -> f64 {
        16.0 * count(problem)
    }

    fn published(&self) -> &'static [Published] {
        PUBLISHED
    }

    fn carried<'a>(&self, _: &str, data: &'a mut Data) -> Option<Carried<'a>> {
        Some(Carried { inputs: vec![&mut data.current, &mut data.reference], outputs: vec![&mut data.sums] })
    }

    fn set_up(&self, _: &Problem, variant: &Variant<Problem, Launch>, data: &mut Data) -> Result<()> {
        if let ("gpu-texture", Backend::Cuda(cuda)) = (variant.name, data.current.device().clone().backend())
        {
            data.textures = Some(cuda::textures(cuda, [&data.current, &data.reference])?);
        }
        Ok(())
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let shape = [problem.height, problem.width];
        let frame = |seed: u64| -> Result<Array<u8>> {
            let byte = |at: usize| (input::bits(seed, at as u64) >> 56) as u8;
            let bytes = input::filled(device.cpu_side(), "frame", voxels(&shape)?, byte)?;
            Array::from_vec(device, &shape, bytes)
        };
        let (current, reference) = (frame(seed)?, frame(seed ^ 0x5555)?);
        let (textures, padded) = match device.backend() {
            Backend::Cpu(_) => (None, Some(cpu::Padded::new(problem)?)),
            Backend::Cuda(cuda) => (Some(cuda::textures(cuda, [&current, &reference])?), None),
        };
        let sums = Array::zeros(device, &problem.shape())?;
        Ok(Data { problem: *problem, current, reference, sums, textures, padded, seed })
    }

    fn run(&self, variant: &Variant<Problem, Launch>, config: &Config, data: &mut Data) -> Result<()> {
        (variant.launch)(config, data)
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.sums.fill(u16::MAX)
    }

    /// The share of wrong sums.
    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let (current, reference) = (data.current.read()?, data.reference.read()?);
        let sums = data.sums.read()?;
        let (side, across) = (problem.side(), problem.across());
        let whole = sums.len() <= WHOLE;
        let count = if whole { sums.len() } else { WHOLE };
        let wrong = |turn: &usize| {
            let at = match *turn {
                turn if whole => turn,
                0 => sums.len() - 1,
                turn => (input::bits(data.seed ^ 0x5ad, turn as u64) % sums.len() as u64) as usize,
            };
            let block = at / side / side;
            let place = [block / across, block % across, at / side % side, at % side];
            reference::sum(&current, &reference, problem, place) != sums[at]
        };
        let cpu = data.sums.device().cpu_side();
        let wrong = cpu.run(|| (0..count).into_par_iter().filter(wrong).count());
        Ok(wrong as f64 / count as f64)
    }
}

fn on_simd(data: &mut Data, all: bool) -> Result<()> {
    let Data { problem, current, reference, sums, padded, .. } = data;
    let padded = padded
        .as_mut()
        .ok_or_else(|| Error::value("device of block matching", "a CPU", current.device().describe()))?;
    let cpu = current.device().cpu_side();
    let on = (cpu.level(), all.then_some(cpu));
    cpu::simd(on, current.cpu(), reference.cpu(), padded, sums.cpu_mut(), problem);
    Ok(())
}

fn count(problem: &Problem) -> f64 {
    problem.shape().iter().map(|&n| n as f64).product()
}

/// Both frames read, the sums written; a subtraction, an absolute value and an addition a difference.
fn work(problem: &Problem) -> Work {
    let frames = 2.0 * problem.height as f64 * problem.width as f64;
    Work { bytes: frames + 2.0 * count(problem), flops: 48.0 * count(problem) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_displaced_frame_is_found_and_bad_shapes_are_refused() {
        for device in rayspin_emu::devices().unwrap() {
            let (h, w, radius) = (8, 12, 3);
            let pixel = |y: usize, x: usize| (input::bits(9, (64 * y + x) as u64) >> 56) as u8;
            let frame = |dy: usize, dx: usize| {
                let values: Vec<_> = (0..h * w).map(|i| pixel(i / w + dy, i % w + dx)).collect();
                Array::from_vec(&device, &[h, w], values).unwrap()
            };
            let (current, reference) = (frame(2, 1), frame(0, 0));
            let mut sums = Array::zeros(&device, &[2, 3, 7, 7]).unwrap();
            block_match(&current, &reference, radius, &mut sums).unwrap();
            // The first block of `current` lies 2 rows below and a column to the right in `reference`.
            let first = &sums.to_vec().unwrap()[..49];
            let least = (0..49).min_by_key(|&i| first[i]).unwrap();
            assert_eq!((least / 7, least % 7, first[least]), (radius + 2, radius + 1, 0));
            assert!(block_match(&current, &reference, 4, &mut sums).is_err());
            let other = Array::zeros(&device, &[w, h]).unwrap();
            assert!(block_match(&current, &other, radius, &mut sums).is_err());
            assert!(block_match(&current, &reference, usize::MAX, &mut sums).is_err());
        }
    }
}
