//! A motion-compensated predictor as video coders have it: block matching, transform, quantiser and
//! reconstruction of H.264.

pub mod block;
mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;
use std::ops::Range;

use rayon::prelude::*;
use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, BackendKind, Cpu, Device};
use rayspin_tune::{About, Algorithm, Case, Counts, Peak, PublishedApplication, Row, Unit, input, tuned};

use block::Quantizer;

/// The side of a macroblock, in pixels.
const SIDE: usize = 16;
/// The side of a frame, at most.
pub const MOST_SIDE: usize = 1 << 14;
/// The largest displacement, at most: so the window of a macroblock fits into a GPU's shared memory.
pub const MOST_RADIUS: usize = 64;

/// A coded frame.
///
/// Macroblocks have 16 × 16 pixels, blocks 4 × 4; of a macroblock only blocks count that begin in the frame.
pub struct Coded {
    /// Displacements (v, u) along y and x, `[⌈height/16⌉, ⌈width/16⌉]`.
    pub vectors: Array<[i16; 2]>,
    /// Quantised coefficients, `[⌈height/4⌉, ⌈width/4⌉, 16]`, from low to high frequencies of each block.
    pub levels: Array<i16>,
    /// Bits of the code of each block, `[⌈height/4⌉, ⌈width/4⌉]`. The first block of a macroblock counts its
    /// displacement too.
    pub bits: Array<u32>,
    /// What a decoder shows, and the reference of the next frame: `[height, width]`.
    pub reconstruction: Array<u8>,
}

impl Coded {
    /// Room for a frame. Errors: a side of 0 or above [`MOST_SIDE`], memory.
    pub fn new(device: &Device, [height, width]: [usize; 2]) -> Result<Self> {
        let p = Problem { height, width, radius: 0, qp: 0 }.checked()?;
        Ok(Self {
            vectors: Array::zeros(device, &p.macroblocks())?,
            levels: Array::zeros(device, &p.levels())?,
            bits: Array::zeros(device, &p.blocks())?,
            reconstruction: Array::zeros(device, &[height, width])?,
        })
    }

    fn rows(&mut self) -> cpu::Rows<'_> {
        cpu::Rows {
            vectors: self.vectors.cpu_mut(),
            levels: bytemuck::cast_slice_mut(self.levels.cpu_mut()),
            bits: self.bits.cpu_mut(),
            reconstruction: self.reconstruction.cpu_mut(),
        }
    }
}

/// Codes `current` as its difference from displaced macroblocks of `reference`, both `[height, width]`:
///
/// v = argmin Σ |C(x) − R(x + v)|, levels = Q(T(C(x) − R(x + v))), reconstruction = clip(R(x + v) +
/// T⁻¹(Q⁻¹(levels))).
///
/// The displacements are −radius … radius along each axis. Where sums are equal the least |v| + |u| counts,
/// then the first. T is the transform and Q the quantiser of ITU-T H.264, `qp` the quantiser's parameter: see
/// [`block`]. Beyond its edges a frame goes on as its edge. Pass the reconstruction as the reference of the
/// next frame. Errors: shapes, arrays on different devices, a radius above [`MOST_RADIUS`], a parameter above
/// 51.
pub fn encode(
    current: &Array<u8>,
    reference: &Array<u8>,
    radius: usize,
    qp: u32,
    coded: &mut Coded,
) -> Result<()> {
    let &[height, width] = current.shape() else {
        return Err(Error::shape("frame", &[2], &[current.shape().len()]));
    };
    let p = Problem { height, width, radius, qp }.checked()?;
    expect_shape("reference frame", current.shape(), reference.shape())?;
    expect_shape("displacements", &p.macroblocks(), coded.vectors.shape())?;
    expect_shape("levels", &p.levels(), coded.levels.shape())?;
    expect_shape("bits", &p.blocks(), coded.bits.shape())?;
    expect_shape("reconstruction", current.shape(), coded.reconstruction.shape())?;
    let Coded { vectors, levels, bits, reconstruction } = &*coded;
    let outputs = [vectors.device(), levels.device(), bits.device(), reconstruction.device()];
    for other in [reference.device()].into_iter().chain(outputs) {
        if !other.same_as(current.device()) {
            return Err(Error::value("coded frame", "arrays on one device", other.describe()));
        }
    }
    match current.device().backend() {
        Backend::Cpu(cpu) => variants::on_vectors(cpu, Some(cpu), [current, reference], &p, coded),
        Backend::Cuda(_) => {
            let config = tuned(&H264, &p, &variants::gpu_whole(), current.device());
            cuda::whole(&config, [current, reference], &p, coded)
        }
    }
}

/// A frame's size, the largest displacement and the quantiser parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Displacements go from −radius to radius.
    pub radius: usize,
    /// The quantiser parameter.
    pub qp: u32,
}

impl Problem {
    fn checked(self) -> Result<Self> {
        for side in [self.height, self.width] {
            if !(1..=MOST_SIDE).contains(&side) {
                return Err(Error::value("side of a frame", format!("1 to {MOST_SIDE}"), side));
            }
        }
        if self.radius > MOST_RADIUS {
            return Err(Error::value(
                "radius of displacements",
                format!("at most {MOST_RADIUS}"),
                self.radius,
            ));
        }
        Quantizer::new(self.qp).map(|_| self)
    }

    fn side(&self) -> usize {
        2 * self.radius + 1
    }

    fn down(&self) -> usize {
        self.height.div_ceil(4)
    }

    fn across(&self) -> usize {
        self.width.div_ceil(4)
    }

    fn blocks(&self) -> [usize; 2] {
        [self.down(), self.across()]
    }

    fn levels(&self) -> [usize; 3] {
        [self.down(), self.across(), 16]
    }

    fn macroblocks(&self) -> [usize; 2] {
        [self.height.div_ceil(SIDE), self.width.div_ceil(SIDE)]
    }

    /// Rows and columns of a macroblock, as far as blocks begin in the frame.
    fn pixels(&self, [i, j]: [usize; 2]) -> [Range<usize>; 2] {
        let within = |index: usize, blocks: usize| SIDE * index..(SIDE * (index + 1)).min(4 * blocks);
        [within(i, self.down()), within(j, self.across())]
    }

    /// Differences of the search.
    fn differences(&self) -> f64 {
        let side = self.side() as f64;
        16.0 * (self.down() * self.across()) as f64 * side * side
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { height, width, radius, qp } = self;
        write!(f, "{height} x {width} u8, displacements of at most {radius}, QP {qp}")
    }
}

/// A pixel of a frame that goes on beyond its edges.
#[inline(always)]
fn pixel(frame: &[u8], p: &Problem, y: isize, x: isize) -> u8 {
    let inside = |place: isize, size: usize| place.clamp(0, size as isize - 1) as usize;
    frame[inside(y, p.height) * p.width + inside(x, p.width)]
}

/// What a `displacement`, counted row by row, is compared by: sum, |v| + |u| and order.
#[inline(always)]
fn key(p: &Problem, displacement: usize, sum: u32) -> u64 {
    let far = (displacement / p.side()).abs_diff(p.radius) + (displacement % p.side()).abs_diff(p.radius);
    u64::from(sum) << 32 | (far << 20 | displacement) as u64
}

/// The displacement of a key.
fn displacement(p: &Problem, key: u64) -> [i16; 2] {
    let displacement = key as usize & 0xf_ffff;
    [displacement / p.side(), displacement % p.side()].map(|d| d as i16 - p.radius as i16)
}

/// Frame `t` of a scene, `[height, width]`: a background that moves by (1, −2) a frame, six things that move
/// on their own, and noise of ±2.
///
/// Errors: memory.
pub fn scene(cpu: &Cpu, [height, width]: [usize; 2], t: i64, seed: u64) -> Result<Vec<u8>> {
    let hash = |seed: u64, y: i64, x: i64| input::bits(seed, ((y as u64) << 32) ^ (x as u32 as u64)) >> 32;
    // Bilinear between random numbers 8 pixels apart, and a grain of 32.
    let texture = |seed: u64, y: i64, x: i64| -> i64 {
        let ([i, j], [b, a]) = ([y, x].map(|d| d.div_euclid(8)), [y, x].map(|d| d.rem_euclid(8)));
        let corner = |k: i64, l: i64| (hash(seed, i + k, j + l) % 224) as i64;
        let line = |k: i64| corner(k, 0) * (8 - a) + corner(k, 1) * a;
        (line(0) * (8 - b) + line(1) * b) / 64 + (hash(seed ^ 0x77, y, x) % 32) as i64
    };
    let sides = [height as i64, width as i64];
    let moving = |k: u64| {
        let random = |index: u64, most: i64| (input::bits(seed ^ 0x5ce, 8 * k + index) >> 33) as i64 % most;
        let size = sides.map(|side| 1 + side / 6);
        let velocity = [random(2, 13) - 6, random(3, 13) - 6];
        let corner = [0, 1].map(|d| random(d as u64, sides[d]) + velocity[d] * t);
        (corner, size, velocity)
    };
    let things: Vec<_> = (0..6).map(moving).collect();
    let value = |index: usize| {
        let (y, x) = ((index / width) as i64, (index % width) as i64);
        let on = |(corner, size, _): &&([i64; 2], [i64; 2], [i64; 2])| {
            (0..size[0]).contains(&(y - corner[0])) && (0..size[1]).contains(&(x - corner[1]))
        };
        let uppermost = things.iter().enumerate().rev().find(|(_, thing)| on(thing));
        let (own, [v, u]) = uppermost.map_or((seed, [1, -2]), |(k, thing)| (seed + 1 + k as u64, thing.2));
        let noise = (hash(seed ^ (0x4e01 + t as u64), y, x) % 5) as i64 - 2;
        (texture(own, y - v * t, x - u * t) + noise).clamp(0, 255) as u8
    };
    input::filled(cpu, "frame of a scene", voxels(&[height, width])?, value)
}

/// Frames and what they become.
pub struct Data {
    problem: Problem,
    current: Array<u8>,
    reference: Array<u8>,
    coded: Coded,
    /// Sums of all blocks and displacements, where a variant stores them.
    sums: Array<u16>,
    /// What lies on the host beside a GPU.
    host: Option<Host>,
    seed: u64,
}

struct Host {
    sums: Vec<u16>,
    coded: Coded,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct H264;

/// Macroblocks that are checked, at most.
const CHECKED: usize = 512;

impl Algorithm for H264 {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "h264",
            title: "Motion-compensated prediction of video, as in H.264",
            readme: include_str!("README.md"),
            unit: Unit::Items("differences"),
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, height, width| Case {
            name,
            summary,
            problem: Problem { height, width, radius: 16, qp: 28 },
        };
        vec![
            case("qcif", "144 x 176 pixels, displacements of at most 16", 144, 176),
            case("1080p", "1080 x 1920 pixels: 2.3e9 differences", 1080, 1920),
        ]
    }

    fn default_case(&self, kind: BackendKind) -> Option<&'static str> {
        (kind == BackendKind::Cuda).then_some("1080p")
    }

    fn trials(&self) -> Vec<Problem> {
        [(1, 1, 0, 0), (1, 5, 2, 51), (7, 3, 9, 10), (13, 30, 3, 23), (33, 64, 4, 28), (40, 53, 6, 36)]
            .map(|(height, width, radius, qp)| Problem { height, width, radius, qp })
            .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        match *size {
            [height, width, radius] => Problem { height, width, radius, ..*problem }.checked(),
            _ => Err(Error::value("size of h264", "HEIGHTxWIDTHxRADIUS", format!("{size:?}"))),
        }
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn counts(&self, problem: &Problem) -> Counts {
        Counts { peak: Peak::I32, items: problem.differences(), ..Counts::default() }
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        let (bottleneck, cases) = ("registers, global memory latency", &[("1080p", "qcif")]);
        Some(PublishedApplication::of_lecture("H.264", bottleneck, 3936, [20.2, 1.5], cases))
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let (p, shape) = (problem.checked()?, [problem.height, problem.width]);
        let frame = |t| Array::from_vec(device, &shape, scene(device.cpu_side(), shape, t, seed)?);
        let sums = [p.down(), p.across(), p.side(), p.side()];
        let host = match device.backend() {
            Backend::Cpu(_) => None,
            Backend::Cuda(_) => Some(Host {
                sums: rayspin_device::cpu::zeroed("sums of differences", voxels(&sums)?)?,
                coded: Coded::new(&device.host(), shape)?,
            }),
        };
        Ok(Data {
            problem: p,
            current: frame(1)?,
            reference: frame(0)?,
            coded: Coded::new(device, shape)?,
            sums: Array::zeros(device, &sums)?,
            host,
            seed,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.coded.vectors.fill([i16::MAX; 2])?;
        data.coded.levels.fill(i16::MAX)?;
        data.coded.bits.fill(u32::MAX)?;
        // No one value is wrong everywhere: this one is in all but a few flat places.
        data.coded.reconstruction.fill(255)
    }

    /// The share of wrong macroblocks.
    fn error(&self, p: &Problem, data: &Data) -> Result<f64> {
        let (current, reference) = (data.current.read()?, data.reference.read()?);
        let Coded { vectors, levels, bits, reconstruction } = &data.coded;
        let (vectors, levels, bits) = (vectors.read()?, levels.read()?, bits.read()?);
        let (reconstruction, q) = (reconstruction.read()?, Quantizer::new(p.qp)?);
        let [down, across] = p.macroblocks();
        let macroblocks = down * across;
        let right = |turn: &usize| {
            let macroblock = match *turn {
                turn if macroblocks <= CHECKED => turn,
                // The last one may be incomplete.
                0 => macroblocks - 1,
                turn => (input::bits(data.seed ^ 0x264, turn as u64) % macroblocks as u64) as usize,
            };
            let place = [macroblock / across, macroblock % across];
            let [ys, xs] = p.pixels(place);
            let corners = ys.step_by(4).flat_map(|y| xs.clone().step_by(4).map(move |x| [y, x]));
            let expected = reference::macroblock([&current, &reference], p, &q, place);
            vectors[macroblock] == expected.vector
                && corners.zip(expected.blocks).all(|([y, x], (of_levels, of_bits, pixels))| {
                    let block = y / 4 * p.across() + x / 4;
                    let shown = (0..16).filter(|k| y + k / 4 < p.height && x + k % 4 < p.width);
                    let same = |k: usize| reconstruction[(y + k / 4) * p.width + x + k % 4] == pixels[k];
                    levels[16 * block..][..16] == of_levels
                        && bits[block] == of_bits
                        && shown.into_iter().all(same)
                })
        };
        let count = macroblocks.min(CHECKED);
        let cpu = data.current.device().cpu_side();
        Ok(cpu.run(|| (0..count).into_par_iter().filter(|turn| !right(turn)).count()) as f64 / count as f64)
    }
}

#[cfg(test)]
mod tests;
