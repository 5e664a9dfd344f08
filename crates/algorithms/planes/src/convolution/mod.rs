//! Convolution with separable taps: Gaussian and any other, of images and of lines.

mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayspin_core::{Error, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{
    About, Algorithm, Case, Published, Row, Signature, Unit, documents, input, tuned, uniform,
};

use crate::plane;

/// The largest radius of taps.
pub const MOST: usize = 16_383;

/// out\[y, x\] = Σ_j Σ_i down\[j\] across\[i\] image\[y − j, x − i\], with taps counted from the middle of
/// their slices, −r … r.
///
/// Images `[rows, columns]`; beyond an edge the nearest pixel counts. Sums are of f32.
///
/// Errors: an even number of taps, or a radius above [`MOST`]; images that differ in shape or device, without
/// pixels, or with 2³⁰ rows or columns; memory.
pub fn separable(image: &Array<f32>, across: &[f32], down: &[f32], out: &mut Array<f32>) -> Result<()> {
    let (rows, columns) = plane::same("convolution", image, out)?;
    plane::asked("convolution", &[rows, columns])?;
    run(image, rows, columns, across, down, out)
}

/// out\[x\] = Σ_i taps\[i\] signal\[x − i\] of a signal `[n]`, else as [`separable`].
pub fn line(signal: &Array<f32>, taps: &[f32], out: &mut Array<f32>) -> Result<()> {
    let n = match *signal.shape() {
        [n] if n > 0 => n,
        _ => return Err(Error::value("convolution", "a signal [n]", format!("{:?}", signal.shape()))),
    };
    expect_shape("output of a convolution", signal.shape(), out.shape())?;
    plane::together("convolution", signal, out)?;
    plane::asked("convolution", &[1, n])?;
    run(signal, 1, n, taps, &[1.0], out)
}

/// [`separable`] with the taps of [`gaussian_taps`] along both axes. Errors: as there and as
/// [`gaussian_taps`].
pub fn gaussian(image: &Array<f32>, sigma: f64, out: &mut Array<f32>) -> Result<()> {
    let taps = gaussian_taps(sigma)?;
    separable(image, &taps, &taps, out)
}

/// w_i = e^{−i²/2σ²} / Σ_j e^{−j²/2σ²}, |i| ≤ ⌈4σ⌉. Errors: σ (in pixels) that is not positive, or too large
/// for [`MOST`].
pub fn gaussian_taps(sigma: f64) -> Result<Vec<f32>> {
    if !(sigma > 0.0 && 4.0 * sigma <= MOST as f64) {
        let expected = format!("a number above 0, at most {}", MOST / 4);
        return Err(Error::value("sigma of a Gaussian in pixels", expected, sigma));
    }
    let radius = (4.0 * sigma).ceil() as i64;
    let weights: Vec<f64> = (-radius..=radius).map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp()).collect();
    let sum: f64 = weights.iter().sum();
    Ok(weights.iter().map(|w| (w / sum) as f32).collect())
}

fn check_taps(taps: &[f32]) -> Result<()> {
    if taps.len() % 2 == 1 && taps.len() / 2 <= MOST {
        return Ok(());
    }
    Err(Error::value("taps of a convolution", format!("an odd number up to {}", 2 * MOST + 1), taps.len()))
}

fn run(
    image: &Array<f32>,
    rows: usize,
    columns: usize,
    across: &[f32],
    down: &[f32],
    out: &mut Array<f32>,
) -> Result<()> {
    check_taps(across)?;
    check_taps(down)?;
    match image.device().backend() {
        Backend::Cpu(cpu) => {
            cpu::Job { image: image.cpu(), rows, columns, across, down }.threads(cpu, out.cpu_mut())
        }
        Backend::Cuda(cuda) => {
            let device = image.device();
            let taps: Vec<f32> = across.iter().chain(down).copied().collect();
            let taps = Array::from_vec(device, &[taps.len()], taps)?;
            let (rx, ry, line) = (across.len() / 2, down.len() / 2, down == [1.0]);
            let mut job = cuda::Job { cuda, image, taps: &taps, out, rows, columns, rx, ry, line };
            if rx.max(ry) <= cuda::SLIDING_MOST {
                let problem = Problem { rows, columns, rx, ry, line };
                let config = tuned(&Convolution, &problem, &variants::gpu_sliding(), device);
                return job.sliding(config.get("threads")?, config.get("each")? as usize);
            }
            if rows > 65535 {
                return Err(Error::value(
                    "rows of a convolution on a GPU",
                    "at most 65535 with a radius above 12",
                    rows,
                ));
            }
            let mut between = Array::zeros(device, if line { &[0] } else { image.shape() })?;
            let problem = Problem { rows, columns, rx, ry, line };
            let config = tuned(&Convolution, &problem, &variants::gpu_separable(), device);
            job.separable(config.get("x")?, config.get("y")?, &mut between)
        }
    }
}

/// Rows that a thread slides down.
const SEGMENT: usize = 64;

/// An image's size and its taps' radii.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Taps to either side of the middle along x.
    pub rx: usize,
    /// The same along y; of lines 0.
    pub ry: usize,
    /// Whether this is a line, with nothing to do along y.
    pub line: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nx, ny) = (2 * self.rx + 1, 2 * self.ry + 1);
        if self.line {
            return write!(f, "{} f32, {nx} taps", self.columns);
        }
        write!(f, "{} x {} f32, {ny} x {nx} taps", self.rows, self.columns)
    }
}

/// Image, taps and result of one problem.
pub struct Data {
    problem: Problem,
    across: Vec<f32>,
    down: Vec<f32>,
    image: Array<f32>,
    /// Those along x, then those along y.
    taps: Array<f32>,
    between: Array<f32>,
    out: Array<f32>,
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Convolution;

impl Algorithm for Convolution {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "convolution",
            title: "Convolution with separable taps",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, [rows, columns, rx, ry]: [usize; 4], line| Case {
            name,
            summary,
            problem: Problem { rows, columns, rx, ry, line },
        };
        vec![
            case("4096x4096-r8", "17 x 17 taps", [4096, 4096, 8, 8], false),
            case("4096x4096-r2", "5 x 5 taps", [4096, 4096, 2, 2], false),
            case("4096x4096-r32", "65 x 65 taps", [4096, 4096, 32, 32], false),
            case("line-r8", "a line of 2^24, 17 taps", [1, 1 << 24, 8, 0], true),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [
            ([1, 1, 0, 0], false),
            ([1, 1, 3, 2], false),
            ([3, 2, 5, 8], false),
            ([1, 301, 8, 0], true),
            ([19, 67, 17, 3], false),
            ([70, 136, 2, 2], false),
        ]
        .map(|([rows, columns, rx, ry], line)| Problem { rows, columns, rx, ry, line })
        .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let (shape, radius) = match *size {
            [rows, columns, radius] => ([rows, columns], Some(radius)),
            [rows, columns] => ([rows, columns], None),
            _ => {
                let expected = "ROWSxCOLUMNS or ROWSxCOLUMNSxRADIUS";
                return Err(Error::value("size of convolution", expected, format!("{size:?}")));
            }
        };
        let (rows, columns) = plane::asked("convolution", &shape)?;
        if radius.is_some_and(|r| r > MOST) {
            return Err(Error::value(
                "radius of a convolution",
                format!("at most {MOST}"),
                format!("{radius:?}"),
            ));
        }
        let line = problem.line && rows == 1;
        let ry = if line { 0 } else { radius.unwrap_or(problem.rx) };
        Ok(Problem { rows, columns, rx: radius.unwrap_or(problem.rx), ry, line })
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn published(&self) -> &'static [Published] {
        const fn row(row: &'static str) -> Published {
            Published::new(documents::COMPUTING, row)
        }
        &const { [row("loop"), row("unrolled")] }
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "convolution",
            declaration: "\
// out[y * columns + x] = sum over |j| <= ry and |i| <= rx of down[ry + j] * across[rx + i] * p(y - j, x -
// i), where p(y, x) = image[y * columns + x] and beyond an edge the nearest pixel counts. There are 2 rx
// + 1 taps across and 2 ry + 1 down. A __constant__ array takes them by a line such as // copy: taps =
// across
extern \"C\" __global__ void convolution(const float* image, const float* across, const float* down, float* out, int rows, int columns, int rx, int ry)",
            extent: |p| [p.columns, p.rows, 1],
            defines: |_| Vec::new(),
            call: |data, call| {
                let Data { problem, image, taps, out, .. } = data;
                let Problem { rows, columns, rx, ry, .. } = *problem;
                let device = image.device().clone();
                let part = |from: usize, radius: usize| {
                    let wanted = || format!("{} taps from tap {from}", 2 * radius + 1);
                    let lacking = || Error::value("taps of a convolution", wanted(), taps.len());
                    taps.cuda().part(from, 2 * radius + 1).ok_or_else(lacking)
                };
                let (across, down) = (part(0, rx)?, part(2 * rx + 1, ry)?);
                // Sides are below 2³⁰.
                let [rows, columns, rx, ry] = [rows, columns, rx, ry].map(|n| (n as i32).into());
                let (image, out) = (image.cuda().into(), out.cuda_mut().into());
                call(&device, &mut [image, across.into(), down.into(), out, rows, columns, rx, ry])
            },
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        let Problem { rows, columns, rx, ry, line } = *problem;
        // None is below a half, so that sums of equal pixels do not cancel.
        let cpu = device.cpu_side();
        let random =
            |seed, len| input::filled(cpu, "taps", len, |index| input::signed_unit(seed, index) + 1.5);
        let across = random(seed ^ 1, 2 * rx + 1)?;
        let down = if line { vec![1.0] } else { random(seed ^ 2, 2 * ry + 1)? };
        check_taps(&across)?;
        check_taps(&down)?;
        let shape = [rows, columns];
        let taps: Vec<f32> = across.iter().chain(&down).copied().collect();
        Ok(Data {
            problem: *problem,
            image: Array::from_vec(device, &shape, uniform(cpu, seed, voxels(&shape)?)?)?,
            taps: Array::from_vec(device, &[taps.len()], taps)?,
            between: Array::zeros(device, &shape)?,
            out: Array::zeros(device, &shape)?,
            across,
            down,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        data.between.fill(f32::NAN)?;
        data.out.fill(f32::NAN)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let Problem { rows, columns, rx, ry, .. } = *problem;
        let (image, out) = (data.image.read()?, data.out.read()?);
        let n = rows * columns;
        let some = (30_000_000 / ((2 * rx + 1) * (2 * ry + 1))).max(16);
        let (mut off, mut norm) = (0.0, f64::MIN_POSITIVE);
        for i in 0..some.min(n) {
            let index = if some >= n { i } else { rayspin_tune::input::bits(9, i as u64) as usize % n };
            let place = [index / columns, index % columns];
            let want = reference::pixel(&image, [rows, columns], &data.across, &data.down, place);
            let output = f64::from(out[index]);
            if !output.is_finite() {
                return Ok(f64::INFINITY);
            }
            off += (output - want).powi(2);
            norm += want * want;
        }
        Ok((off / norm).sqrt())
    }
}
