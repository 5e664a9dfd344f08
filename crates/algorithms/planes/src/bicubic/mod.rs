//! Bicubic resampling of images to any size.

mod cpu;
mod cuda;
pub mod reference;
mod strips;
mod variants;

use std::fmt;

use fearless_simd::f32x16;
use rayspin_core::{Error, Result, voxels};
use rayspin_device::cpu::simd::Simd;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::try_with_capacity;
use rayspin_device::cuda::{Texel, Texture};
use rayspin_device::{Array, Backend, Cpu, Device};
use rayspin_tune::{About, Algorithm, Call, Case, Row, Signature, Unit, input, tuned};

use crate::plane;

/// How pixels are weighed by their distance t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// Keys' interpolation (IEEE Trans ASSP 29:1153, 1981) with its parameter a, from −3 to 0. The weight is
    /// (a+2) t³ − (a+3) t² + 1 up to t = 1, and a (t³ − 5t² + 8t − 4) up to t = 2.
    /// The parameter −1/2 is exact for parabolas, −3/4 is OpenCV's.
    Keys(f32),
    /// The cubic B-spline, which smooths: all weights are positive.
    Spline,
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys(a) => write!(f, "a = {a}"),
            Self::Spline => f.write_str("B-spline"),
        }
    }
}

/// out\[y, x\] = Σ_j Σ_i k(v − j) k(u − i) image\[j, i\], with u = (x + ½) n / m − ½.
///
/// Along x, n pixels become m; v is the same along y. So the images' edges coincide.
///
/// Both images are `[rows, columns]` of bytes or of f32. Beyond an edge the nearest pixel counts. Bytes are
/// rounded to the nearest and held to 0 … 255. Four pixels are weighed along each axis however much the image
/// shrinks. Smooth an image before it shrinks by more than 2.
///
/// Errors: Keys' parameter out of its range, images on different devices, without pixels, or with 2³⁰ rows or
/// columns; memory.
pub fn resize<T: Pixel>(image: &Array<T>, kernel: Kernel, out: &mut Array<T>) -> Result<()> {
    let (rows, columns) = plane::size("bicubic resampling", image)?;
    let (high, wide) = plane::size("output of bicubic resampling", out)?;
    plane::together("bicubic resampling", image, out)?;
    plane::asked("bicubic resampling", &[rows, columns])?;
    plane::asked("output of bicubic resampling", &[high, wide])?;
    check_kernel(kernel)?;
    let (from, to) = ([rows, columns], [high, wide]);
    let problem = Problem { from, to, kernel, bytes: size_of::<T>() == 1 };
    let tables = Tables::new(from, to, kernel)?;
    match image.device().backend() {
        Backend::Cpu(cpu) => {
            let columns =
                tuned(&Bicubic, &problem, &variants::cpu_strips(), image.device()).get("columns")? as usize;
            let job = cpu::Job { image: image.cpu(), from, to, tables: &tables };
            job.strips(cpu, columns, out.cpu_mut())
        }
        Backend::Cuda(cuda) => {
            let tables = tables.on(image.device())?;
            let config = tuned(&Bicubic, &problem, &variants::gpu_sliding(), image.device());
            let (threads, each) = (config.get("threads")?, config.get("each")? as usize);
            cuda::Job { cuda, image, out, tables: &tables, from, to }.sliding(threads, each)
        }
    }
}

/// Rows of output that a thread slides down.
const SEGMENT: usize = 32;

fn check_kernel(kernel: Kernel) -> Result<()> {
    match kernel {
        Kernel::Keys(a) if !(-3.0..=0.0).contains(&a) => {
            Err(Error::value("parameter of bicubic resampling", "a number from -3 to 0", a))
        }
        _ => Ok(()),
    }
}

/// What pixels may be: `u8` or `f32`.
pub trait Pixel: Texel + Into<f64> {
    /// In the names of kernels.
    #[doc(hidden)]
    const NAME: &'static str;
    /// What a texture's value is multiplied by.
    #[doc(hidden)]
    const UNIT: f32;
    #[doc(hidden)]
    fn single(self) -> f32;
    /// A value, rounded.
    #[doc(hidden)]
    fn of(value: f32) -> Self;
    #[doc(hidden)]
    fn singles<S: Simd>(simd: S, row: &[Self], out: &mut [f32]);
    /// Values, rounded.
    #[doc(hidden)]
    fn store<S: Simd>(simd: S, values: [f32x16<S>; 4], out: &mut [Self]);
    /// The same past the caches, to `out` from a multiple of 64 bytes on.
    #[doc(hidden)]
    #[inline(always)]
    fn stream<S: Simd>(simd: S, values: [f32x16<S>; 4], out: &mut [Self]) {
        Self::store(simd, values, out);
    }
}

impl Pixel for u8 {
    const NAME: &'static str = "u8";
    const UNIT: f32 = 255.0;
    #[inline(always)]
    fn single(self) -> f32 {
        f32::from(self)
    }
    #[inline(always)]
    fn of(value: f32) -> u8 {
        (value.clamp(0.0, 255.0) + 0.5) as i32 as u8
    }
    #[inline(always)]
    fn singles<S: Simd>(simd: S, row: &[u8], out: &mut [f32]) {
        strips::singles_of_bytes(simd, row, out);
    }
    #[inline(always)]
    fn store<S: Simd>(simd: S, values: [f32x16<S>; 4], out: &mut [u8]) {
        strips::store_bytes(simd, values, out);
    }
}

impl Pixel for f32 {
    const NAME: &'static str = "f32";
    const UNIT: f32 = 1.0;
    #[inline(always)]
    fn single(self) -> f32 {
        self
    }
    #[inline(always)]
    fn of(value: f32) -> f32 {
        value
    }
    #[inline(always)]
    fn singles<S: Simd>(_: S, row: &[f32], out: &mut [f32]) {
        out.copy_from_slice(row);
    }
    #[inline(always)]
    fn store<S: Simd>(_: S, values: [f32x16<S>; 4], out: &mut [f32]) {
        for (value, out) in values.iter().zip(out.chunks_exact_mut(16)) {
            value.store_slice(out);
        }
    }
    #[inline(always)]
    fn stream<S: Simd>(simd: S, values: [f32x16<S>; 4], out: &mut [f32]) {
        crate::simd::stream(simd, values, out);
    }
}

/// An entry for each row of the output, then for each column: the pixel before it, and four weights. The
/// weights belong to that pixel, its neighbour before, and two neighbours after.
#[derive(Default)]
struct Tables {
    places: Vec<i32>,
    weights: Vec<[f32; 4]>,
}

impl Tables {
    fn new(from: [usize; 2], to: [usize; 2], kernel: Kernel) -> Result<Self> {
        let len = to[0] + to[1];
        let (mut places, mut weights) =
            (try_with_capacity("places of pixels", len)?, try_with_capacity("weights of pixels", len)?);
        for axis in [0, 1] {
            for pixel in 0..to[axis] {
                let (before, part) = reference::place(pixel, from[axis], to[axis]);
                places.push(before as i32);
                weights.push([1.0, 0.0, -1.0, -2.0].map(|i| reference::weight(kernel, part + i) as f32));
            }
        }
        Ok(Self { places, weights })
    }

    /// Rows' and columns' places, then their weights.
    fn split(&self, high: usize) -> ([&[i32]; 2], [&[[f32; 4]]; 2]) {
        let (ys, xs) = self.places.split_at(high);
        let (down, across) = self.weights.split_at(high);
        ([ys, xs], [down, across])
    }

    fn on(&self, device: &Device) -> Result<cuda::Tables> {
        Ok(cuda::Tables {
            places: Array::from_slice(device, &[self.places.len()], &self.places)?,
            weights: Array::from_slice(device, &[self.weights.len()], &self.weights)?,
        })
    }
}

/// Sizes, kernel and pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Rows and columns of the image.
    pub from: [usize; 2],
    /// Rows and columns of the output.
    pub to: [usize; 2],
    /// The weights.
    pub kernel: Kernel,
    /// Whether pixels are bytes; f32 otherwise.
    pub bytes: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([rows, columns], [high, wide]) = (self.from, self.to);
        let pixels = if self.bytes { "u8" } else { "f32" };
        write!(f, "{rows} x {columns} to {high} x {wide} {pixels}, {}", self.kernel)
    }
}

/// The images and tables of one problem.
pub struct Data(Images);

enum Images {
    Bytes(Set<u8>),
    Floats(Set<f32>),
}

struct Set<T: Pixel> {
    problem: Problem,
    tables: Tables,
    on_gpu: Option<cuda::Tables>,
    /// The image read at points, and read between them.
    textures: Option<[Texture; 2]>,
    image: Array<T>,
    out: Array<T>,
}

impl<T: Pixel> Set<T> {
    fn new(problem: &Problem, device: &Device, pixels: Vec<T>) -> Result<Self> {
        let image = Array::from_vec(device, &problem.from, pixels)?;
        let out = Array::zeros(device, &problem.to)?;
        let (problem, tables) = (*problem, Tables::default());
        let mut set = Self { problem, tables, on_gpu: None, textures: None, image, out };
        set.set_up(variants::texture(&problem).is_none())?;
        Ok(set)
    }

    /// Tables, and on a GPU textures where they are wanted.
    fn set_up(&mut self, textures: bool) -> Result<()> {
        self.tables = Tables::new(self.problem.from, self.problem.to, self.problem.kernel)?;
        let device = self.image.device();
        if let Backend::Cuda(cuda) = device.backend() {
            self.on_gpu = Some(self.tables.on(device)?);
            if textures {
                let texture = |sampling| cuda.texture(&self.image, sampling);
                self.textures = Some([texture(cuda::POINTS)?, texture(cuda::LINEAR)?]);
            }
        }
        Ok(())
    }

    fn on_cpu(&mut self, run: impl FnOnce(cpu::Job<'_, T>, &Cpu, &mut [T]) -> Result<()>) -> Result<()> {
        let Self { problem: Problem { from, to, .. }, tables, image, out, .. } = self;
        let job = cpu::Job { image: image.cpu(), from: *from, to: *to, tables };
        run(job, image.device().cpu_side(), out.cpu_mut())
    }

    fn on_gpu(&mut self) -> Result<(cuda::Job<'_, T>, Option<&[Texture; 2]>)> {
        let Self { problem: Problem { from, to, .. }, on_gpu, textures, image, out, .. } = self;
        let device = image.device();
        let (Backend::Cuda(cuda), Some(tables)) = (device.backend(), on_gpu) else {
            return Err(Error::value("device of bicubic resampling", "a GPU", device.describe()));
        };
        Ok((cuda::Job { cuda, image, out, tables, from: *from, to: *to }, textures.as_ref()))
    }

    /// A kernel of a user's own.
    fn called_by(&mut self, call: &mut Call<'_>) -> Result<()> {
        let Self { problem: Problem { from, to, kernel, .. }, image, out, .. } = self;
        // Sides are below 2³⁰.
        let [rows, columns] = from.map(|n| (n as i32).into());
        let [high, wide] = to.map(|n| (n as i32).into());
        let (a, spline) = match *kernel {
            Kernel::Keys(a) => (a, 0),
            Kernel::Spline => (0.0, 1),
        };
        let device = image.device().clone();
        let (image, out) = (image.cuda().into(), out.cuda_mut().into());
        call(&device, &mut [image, out, rows, columns, high, wide, a.into(), spline.into()])
    }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Bicubic;

impl Algorithm for Bicubic {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "bicubic",
            title: "Bicubic resampling",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, from, to, kernel, bytes| Case {
            name,
            summary,
            problem: Problem { from: [from; 2], to: [to; 2], kernel, bytes },
        };
        let keys = Kernel::Keys(-0.75);
        vec![
            case("f32-x2", "twice as large, f32", 2048, 4096, keys, false),
            case("u8-x2", "twice as large, bytes", 2048, 4096, keys, true),
            case("f32-x0.7", "smaller, f32", 4096, 2867, keys, false),
            case(
                "f32-x2-spline",
                "B-spline, of which four fetches of a texture are enough",
                2048,
                4096,
                Kernel::Spline,
                false,
            ),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        let keys = Kernel::Keys(-0.5);
        [
            ([1, 1], [1, 1], keys, true),
            ([1, 1], [5, 9], Kernel::Spline, false),
            ([7, 3], [1, 1], keys, false),
            ([9, 50], [31, 17], Kernel::Keys(-0.75), true),
            ([40, 33], [6, 70], keys, false),
            ([12, 200], [20, 330], Kernel::Keys(-0.75), true),
            ([10, 300], [6, 200], keys, false),
            ([16, 16], [33, 65], Kernel::Spline, true),
            ([20, 24], [40, 131], Kernel::Spline, false),
        ]
        .map(|(from, to, kernel, bytes)| Problem { from, to, kernel, bytes })
        .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let ask = |size: &[usize]| plane::asked("bicubic", size).map(|(rows, columns)| [rows, columns]);
        let (from, to) = match *size {
            // Two sides beyond what a number holds are beyond what is taken, too.
            [rows, columns] => ([rows, columns], [rows, columns].map(|n| n.saturating_mul(2))),
            [rows, columns, high, wide] => ([rows, columns], [high, wide]),
            _ => {
                let expected = "ROWSxCOLUMNS, to be doubled, or ROWSxCOLUMNSxHIGHxWIDE";
                return Err(Error::value("size of bicubic", expected, format!("{size:?}")));
            }
        };
        Ok(Problem { from: ask(&from)?, to: ask(&to)?, ..*problem })
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn key(&self, problem: &Problem) -> (String, Vec<usize>) {
        // Weights are tabled: times do not depend on them.
        let pixels = if problem.bytes { "u8" } else { "f32" };
        (pixels.to_owned(), [problem.from, problem.to].concat())
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "bicubic",
            declaration: "\
// out[y * wide + x] = sum over j and i from -1 to 2 of k(v - j) k(u - i) p(row + j, column + i).
// p(row, column) is image[row * columns + column]; beyond an edge the nearest pixel counts.
// column + u = (x + 0.5) columns / wide - 0.5, with a whole number `column` and 0 <= u < 1; row and v are the
// same along y, with rows / high.
// Let t be the size of a distance. Where spline is 0, k is (a + 2) t^3 - (a + 3) t^2 + 1 up to t = 1, and
// a (t^3 - 5 t^2 + 8 t - 4) up to t = 2. Else k is 2 / 3 - t^2 + t^3 / 2 up to 1, and (2 - t)^3 / 6 up to 2.
// Rayspin defines PIXEL (unsigned char or float). Results in unsigned char are held to 0 ... 255 and rounded
// to the nearest.
extern \"C\" __global__ void bicubic(const PIXEL* image, PIXEL* out, int rows, int columns, int high, int wide, float a, int spline)",
            extent: |p| [p.to[1], p.to[0], 1],
            defines: |p| vec![("PIXEL", plane::c_name(p.bytes).to_owned())],
            call: |data, call| match &mut data.0 {
                Images::Bytes(set) => set.called_by(call),
                Images::Floats(set) => set.called_by(call),
            },
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        check_kernel(problem.kernel)?;
        let (cpu, n) = (device.cpu_side(), voxels(&problem.from)?);
        Ok(Data(if problem.bytes {
            Images::Bytes(Set::new(problem, device, plane::bytes(cpu, seed, n)?)?)
        } else {
            // Not around zero, where relative errors would say little.
            let values = input::filled(cpu, "image", n, |index| input::signed_unit(seed, index) + 2.0)?;
            Images::Floats(Set::new(problem, device, values)?)
        }))
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        match &mut data.0 {
            // Far from what any output may be: neighbours of 0 are not 255 everywhere.
            Images::Bytes(set) => {
                let wrong = if set.image.read()?.first().is_some_and(|&p| p < 128) { 255 } else { 0 };
                set.out.fill(wrong)
            }
            Images::Floats(set) => set.out.fill(f32::NAN),
        }
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        match &data.0 {
            Images::Bytes(set) => error(problem, set),
            Images::Floats(set) => error(problem, set),
        }
    }
}

/// For f32 the relative l2 error. For bytes the largest error beyond rounding, as a fraction of 255.
fn error<T: Pixel>(problem: &Problem, set: &Set<T>) -> Result<f64> {
    let Problem { from, to, kernel, bytes } = *problem;
    let (image, out) = (set.image.read()?, set.out.read()?);
    let n = to[0] * to[1];
    let some = n.min(500_000);
    let (mut off, mut norm, mut most) = (0.0, f64::MIN_POSITIVE, 0.0f64);
    for i in 0..some {
        let index = if some == n { i } else { rayspin_tune::input::bits(9, i as u64) as usize % n };
        let want = reference::pixel(&image, from, to, kernel, [index / to[1], index % to[1]]);
        let output: f64 = out[index].into();
        if !output.is_finite() {
            return Ok(f64::INFINITY);
        }
        off += (output - want).powi(2);
        norm += want * want;
        most = most.max(((output - want.clamp(0.0, 255.0)).abs() - 0.5) / 255.0);
    }
    Ok(if bytes { most } else { (off / norm).sqrt() })
}
