//! Block matching: sums of absolute differences of 4 × 4 pixels for every displacement.

mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::cuda::Texture;
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{About, Algorithm, Case, Counts, Peak, Published, Row, Signature, Unit, input, tuned};

/// SAD\[i, j, v, u\] = Σ_{y, x < 4} |C\[4i + y, 4j + x\] − R\[4i + y + v − r, 4j + x + u − r\]| for frames C
/// and R.
///
/// The frames are `[height, width]`, the displacements −r … r along y and x. The sums are
/// `[⌈height/4⌉, ⌈width/4⌉, 2r + 1, 2r + 1]`. Beyond its edges a frame goes on as its edge.
///
/// Sums of larger blocks are sums of these. Errors: shapes, arrays on different devices, a radius whose
/// window does not fit into a GPU's shared memory (about 100), empty frames.
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
            let frames = [current.cpu(), reference.cpu()];
            cpu::simd(cpu.level(), Some(cpu), frames, &mut padded, sums.cpu_mut(), &problem);
            Ok(())
        }
        Backend::Cuda(cuda) => {
            if let Some(why) = cuda::window_refuses(&problem) {
                return Err(Error::value("radius of displacements", "one whose window fits", why));
            }
            let config = tuned(&Sad, &problem, &variants::gpu_packed(), current.device());
            let window = cuda::Window::new("packed", &config)?;
            window.launch(cuda, [current, reference], sums, &problem)
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

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Sad;

/// More sums than this are checked at random.
const WHOLE: usize = 1 << 18;

/// The lecture states the times, neither the sizes nor the GPU's kernel.
const PUBLISHED: &[Published] = {
    let [c, source, gpu] = Published::on_processors([42.5e-3, 25.6e-3, 4.75e-3]);
    &[c, source, gpu.note("the lecture does not describe the kernel")]
};

impl Algorithm for Sad {
    type Problem = Problem;
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

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { peak: Peak::I32, items: 16.0 * count(problem), ..Counts::default() }
    }

    fn published(&self) -> &'static [Published] {
        PUBLISHED
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "sad",
            declaration: "\
// sums[(t * s + dy + radius) * s + dx + radius] = sum over the 4 x 4 pixels (y, x) of tile t of |current(y,
// x) - reference(y + dy, x + dx)|, where s = 2 * radius + 1, dy and dx go from -radius to radius, and t = (y
// / 4) * ((width + 3) / 4) + x / 4. Outside a frame its nearest pixel counts; tiles may cross the right and
// the bottom edge.
extern \"C\" __global__ void sad(const unsigned char* current, const unsigned char* reference, unsigned short* sums, int height, int width, int radius)",
            extent: |p| [p.shape().iter().product(), 1, 1],
            defines: |_| Vec::new(),
            call: |data, call| {
                let Data { problem, current, reference, sums, .. } = data;
                let device = current.device().clone();
                let size = |n: usize| {
                    i32::try_from(n).map_err(|_| Error::value("side of a frame", format!("at most {}", i32::MAX), n))
                };
                let [height, width, radius] =
                    [size(problem.height)?, size(problem.width)?, size(problem.radius)?].map(Into::into);
                let (current, reference) = (current.cuda().into(), reference.cuda().into());
                call(&device, &mut [current, reference, sums.cuda_mut().into(), height, width, radius])
            },
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let shape = [problem.height, problem.width];
        let frame = |seed: u64| -> Result<Array<u8>> {
            let byte = |index: usize| (input::bits(seed, index as u64) >> 56) as u8;
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
            let index = match *turn {
                turn if whole => turn,
                0 => sums.len() - 1,
                turn => (input::bits(data.seed ^ 0x5ad, turn as u64) % sums.len() as u64) as usize,
            };
            let block = index / side / side;
            let place = [block / across, block % across, index / side % side, index % side];
            reference::sum(&current, &reference, problem, place) != sums[index]
        };
        let cpu = data.sums.device().cpu_side();
        let wrong = cpu.run(|| (0..count).into_par_iter().filter(wrong).count());
        Ok(wrong as f64 / count as f64)
    }
}

fn count(problem: &Problem) -> f64 {
    problem.shape().iter().map(|&n| n as f64).product()
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
