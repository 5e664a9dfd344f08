//! Box filter: means over squares.

mod bytes;
mod cpu;
mod cuda;
mod near;
pub mod reference;
mod variants;

use std::fmt;

use rayspin_core::{Error, Result, voxels};
use rayspin_device::cuda::Texel;
use rayspin_device::{Array, Backend, BackendKind, Cpu, Device, Element};
use rayspin_tune::{About, Algorithm, Call, Case, Row, Signature, Unit, gpu, input, tuned, uniform};

use crate::plane;
use cpu::Class;

/// The largest radius.
pub const MOST: usize = 65_535;

/// out\[y, x\] = (2r+1)⁻² Σ_{|j|,|i| ≤ r} p\[y+j, x+i\], with p the image and r the radius, which may exceed
/// the image.
///
/// Images `[rows, columns]` of bytes or of f32. Beyond an edge the nearest pixel counts. Means of bytes are
/// exact before they are rounded to the nearest byte (there are no ties: the area is odd). The work does not
/// depend on the radius, or on a CPU as its logarithm: sums run, so that a number that is not finite spoils
/// others in its row and column too.
///
/// Errors: a radius above [`MOST`], images that differ in shape or device, without pixels, or with 2³⁰ rows
/// or columns; memory.
pub fn box_mean<T: Pixel>(image: &Array<T>, radius: usize, out: &mut Array<T>) -> Result<()> {
    let (rows, columns) = plane::same("box filter", image, out)?;
    let (rows, columns) = plane::asked("box filter", &[rows, columns])?;
    check_radius(radius)?;
    match image.device().backend() {
        Backend::Cpu(cpu) => {
            best_on_cpu(&cpu::Job { image: image.cpu(), rows, columns, radius }, cpu, out.cpu_mut())
        }
        Backend::Cuda(cuda) => {
            let problem = Problem { rows, columns, radius, bytes: size_of::<T>() == 1 };
            let tuned = |row| tuned(&BoxFilter, &problem, &row, image.device());
            if cuda::fused_refuses(radius, cuda::WIDEST).is_none() {
                let config = tuned(variants::gpu_fused());
                let [v, threads] = [config.get("v")?, config.get("threads")?];
                let each = config.get("each")? as usize;
                return cuda::Job { cuda, image, out, rows, columns, radius }.fused(v, threads, each);
            }
            let config = tuned(variants::gpu_scanned());
            let (threads, each) = (config.get("threads")?, config.get("each")? as usize);
            let mut sums = Array::zeros(image.device(), &[rows, columns])?;
            cuda::Job { cuda, image, out, rows, columns, radius }.scanned(threads, each, &mut sums)
        }
    }
}

/// Rows of a segment without tuning: what a segment's first sum takes is a quarter of the rest at most.
fn segment(radius: usize) -> i64 {
    (8 * radius).max(64).next_multiple_of(64) as i64
}

/// Bytes in integers where their sums fit, small windows as they are.
fn best_on_cpu<T: Pixel>(job: &cpu::Job<'_, T>, cpu: &Cpu, out: &mut [T]) -> Result<()> {
    if let Some(job) = bytes::of(job) {
        job.scanned(cpu, bytemuck::cast_slice_mut(out))
    } else if let Some(job) = near::of(job) {
        job.near(cpu, bytemuck::cast_slice_mut(out))
    } else {
        job.threads(cpu, out)
    }
}

fn check_radius(radius: usize) -> Result<()> {
    if radius <= MOST {
        return Ok(());
    }
    Err(Error::value("radius of the box filter", format!("at most {MOST}"), radius))
}

/// What pixels may be: `u8` or `f32`.
pub trait Pixel: Texel + Into<f64> {
    /// In the names of kernels.
    #[doc(hidden)]
    const NAME: &'static str;
    /// Sums along y on a CPU.
    #[doc(hidden)]
    type Sum: Copy + bytemuck::Zeroable + Send + Sync;
    /// The same on a GPU.
    #[doc(hidden)]
    type OnGpu: Element;
    #[doc(hidden)]
    fn add(sum: Self::Sum, pixel: Self) -> Self::Sum;
    #[doc(hidden)]
    fn sub(sum: Self::Sum, pixel: Self) -> Self::Sum;
    #[doc(hidden)]
    fn sum_i32(sum: Self::Sum) -> i32;
    #[doc(hidden)]
    fn sum_f32(sum: Self::Sum) -> f32;
    #[doc(hidden)]
    fn sum_f64(sum: Self::Sum) -> f64;
    /// A mean, rounded.
    #[doc(hidden)]
    fn of_f32(mean: f32) -> Self;
    #[doc(hidden)]
    fn of_f64(mean: f64) -> Self;
    #[doc(hidden)]
    fn class(radius: usize) -> Class;
}

impl Pixel for u8 {
    const NAME: &'static str = "u8";
    type Sum = i32;
    type OnGpu = u32;
    #[inline(always)]
    fn add(sum: i32, pixel: u8) -> i32 {
        sum + i32::from(pixel)
    }
    #[inline(always)]
    fn sub(sum: i32, pixel: u8) -> i32 {
        sum - i32::from(pixel)
    }
    #[inline(always)]
    fn sum_i32(sum: i32) -> i32 {
        sum
    }
    #[inline(always)]
    fn sum_f32(sum: i32) -> f32 {
        sum as f32
    }
    #[inline(always)]
    fn sum_f64(sum: i32) -> f64 {
        f64::from(sum)
    }
    #[inline(always)]
    fn of_f32(mean: f32) -> u8 {
        (mean + 0.5) as i32 as u8
    }
    #[inline(always)]
    fn of_f64(mean: f64) -> u8 {
        (mean + 0.5) as i32 as u8
    }
    fn class(radius: usize) -> Class {
        match radius {
            // 81² · 255: the f32 mean errs by less than the 1 / (2 area) that keeps it off a half.
            0..=40 => Class::Small,
            // 2901² · 255 < 2³¹.
            41..=1450 => Class::Medium,
            _ => Class::Large,
        }
    }
}

impl Pixel for f32 {
    const NAME: &'static str = "f32";
    type Sum = f64;
    type OnGpu = f32;
    #[inline(always)]
    fn add(sum: f64, pixel: f32) -> f64 {
        sum + f64::from(pixel)
    }
    #[inline(always)]
    fn sub(sum: f64, pixel: f32) -> f64 {
        sum - f64::from(pixel)
    }
    #[inline(always)]
    fn sum_i32(sum: f64) -> i32 {
        sum as i32
    }
    #[inline(always)]
    fn sum_f32(sum: f64) -> f32 {
        sum as f32
    }
    #[inline(always)]
    fn sum_f64(sum: f64) -> f64 {
        sum
    }
    #[inline(always)]
    fn of_f32(mean: f32) -> f32 {
        mean
    }
    #[inline(always)]
    fn of_f64(mean: f64) -> f32 {
        mean as f32
    }
    fn class(_: usize) -> Class {
        Class::Real
    }
}

/// An image's size, its pixels and the radius.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Pixels to either side of the middle.
    pub radius: usize,
    /// Whether pixels are bytes; f32 otherwise.
    pub bytes: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pixels = if self.bytes { "u8" } else { "f32" };
        write!(f, "{} x {} {pixels}, radius {}", self.rows, self.columns, self.radius)
    }
}

/// The images of one problem.
pub struct Data(Images);

enum Images {
    Bytes(Set<u8>),
    Floats(Set<f32>),
}

struct Set<T: Pixel> {
    problem: Problem,
    image: Array<T>,
    out: Array<T>,
    /// Sums along y, of a GPU.
    sums: Array<T::OnGpu>,
}

impl<T: Pixel> Set<T> {
    fn new(problem: &Problem, device: &Device, pixels: Vec<T>) -> Result<Self> {
        let shape = [problem.rows, problem.columns];
        let sums = if device.kind() == BackendKind::Cuda { shape } else { [0, 0] };
        Ok(Self {
            problem: *problem,
            image: Array::from_vec(device, &shape, pixels)?,
            out: Array::zeros(device, &shape)?,
            sums: Array::zeros(device, &sums)?,
        })
    }

    fn on_cpu(&mut self, run: impl FnOnce(&cpu::Job<'_, T>, &Cpu, &mut [T]) -> Result<()>) -> Result<()> {
        let Self { problem: Problem { rows, columns, radius, .. }, image, out, .. } = self;
        let job = cpu::Job { image: image.cpu(), rows: *rows, columns: *columns, radius: *radius };
        run(&job, image.device().cpu_side(), out.cpu_mut())
    }

    fn on_gpu(&mut self) -> Result<(cuda::Job<'_, T>, &mut Array<T::OnGpu>)> {
        let Self { problem: Problem { rows, columns, radius, .. }, image, out, sums } = self;
        let (cuda, rows, columns, radius) = (gpu(image.device())?, *rows, *columns, *radius);
        Ok((cuda::Job { cuda, image, out, rows, columns, radius }, sums))
    }

    /// A kernel of a user's own.
    fn called_by(&mut self, call: &mut Call<'_>) -> Result<()> {
        let Self { problem: Problem { rows, columns, radius, .. }, image, out, .. } = self;
        // Sides are below 2³⁰, and the radius is below 2¹⁶.
        let [rows, columns, radius] = [*rows, *columns, *radius].map(|n| (n as i32).into());
        let device = image.device().clone();
        call(&device, &mut [image.cuda().into(), out.cuda_mut().into(), rows, columns, radius])
    }
}

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct BoxFilter;

impl Algorithm for BoxFilter {
    type Problem = Problem;
    type Data = Data;

    fn about(&self) -> About {
        About {
            name: "box-filter",
            title: "Box filter: means over squares",
            readme: include_str!("README.md"),
            unit: Unit::Bytes,
        }
    }

    fn cases(&self) -> Vec<Case<Problem>> {
        let case = |name, summary, bytes, radius| Case {
            name,
            summary,
            problem: Problem { rows: 4096, columns: 4096, radius, bytes },
        };
        vec![
            case("u8-r8", "bytes, 17 x 17", true, 8),
            case("u8-r64", "bytes, 129 x 129", true, 64),
            case("f32-r8", "f32, 17 x 17", false, 8),
            case("f32-r64", "f32, 129 x 129", false, 64),
        ]
    }

    fn trials(&self) -> Vec<Problem> {
        [
            (1, 1, 0, true),
            (1, 1, 3, false),
            (3, 2, 7, true),
            (2, 50, 60, true),
            (17, 5, 1, false),
            (9, 300, 2, true),
            (9, 70, 2, false),
            (13, 67, 41, false),
            (11, 264, 5, false),
            (5, 150, 64, true),
            (7, 131, 9, true),
            (9, 512, 3, true),
        ]
        .map(|(rows, columns, radius, bytes)| Problem { rows, columns, radius, bytes })
        .to_vec()
    }

    fn sized(&self, problem: &Problem, size: &[usize]) -> Result<Problem> {
        let (size, radius) = match *size {
            [rows, columns, radius] => ([rows, columns], radius),
            [rows, columns] => ([rows, columns], problem.radius),
            _ => {
                return Err(Error::value(
                    "size of box-filter",
                    "ROWSxCOLUMNS or ROWSxCOLUMNSxRADIUS",
                    format!("{size:?}"),
                ));
            }
        };
        let (rows, columns) = plane::asked("box-filter", &size)?;
        check_radius(radius)?;
        Ok(Problem { rows, columns, radius, ..*problem })
    }

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "box_filter",
            declaration: "\
// out[y * columns + x] = the mean of image over the (2 radius + 1)² pixels from (y - radius, x - radius) to
// (y + radius, x + radius). Beyond an edge the nearest pixel counts. Rayspin defines PIXEL (unsigned char or
// float). Means of unsigned char are exact, then rounded to the nearest whole number.
extern \"C\" __global__ void box_filter(const PIXEL* image, PIXEL* out, int rows, int columns, int radius)",
            extent: |p| [p.columns, p.rows, 1],
            defines: |p| vec![("PIXEL", plane::c_name(p.bytes).to_owned())],
            call: |data, call| match &mut data.0 {
                Images::Bytes(set) => set.called_by(call),
                Images::Floats(set) => set.called_by(call),
            },
        })
    }

    fn data(&self, problem: &Problem, device: &Device, seed: u64) -> Result<Data> {
        check_radius(problem.radius)?;
        let (cpu, n) = (device.cpu_side(), voxels(&[problem.rows, problem.columns])?);
        Ok(Data(if problem.bytes {
            Images::Bytes(Set::new(problem, device, plane::bytes(cpu, seed, n)?)?)
        } else {
            Images::Floats(Set::new(problem, device, uniform(cpu, seed, n)?)?)
        }))
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        match &mut data.0 {
            Images::Bytes(set) => {
                let image = set.image.read()?;
                let cpu = set.image.device().cpu_side();
                set.out.set(&input::filled(cpu, "wrong pixels", image.len(), |index| image[index] ^ 0x80)?)
            }
            Images::Floats(set) => set.out.fill(f32::NAN),
        }
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        match &data.0 {
            // Bytes are the rounded mean or wrong.
            Images::Bytes(set) => {
                error(problem, set, |output, want| f64::from(output) != (want + 0.5).floor())
            }
            Images::Floats(set) => error(problem, set, |output, _| !output.is_finite()),
        }
    }
}

/// Relative l2 error at pixels of all parts of the image; infinite where `wrong` says so.
fn error<T: Pixel>(problem: &Problem, set: &Set<T>, wrong: impl Fn(T, f64) -> bool) -> Result<f64> {
    let Problem { rows, columns, radius, bytes } = *problem;
    let (image, out) = (set.image.read()?, set.out.read()?);
    let n = rows * columns;
    // 3e7 pixels of windows take a second at most; a step that shares no factor with the width visits all
    // columns.
    let some = (30_000_000 / (2 * radius + 1).pow(2)).clamp(16, n.max(16));
    let (mut off, mut norm) = (0.0, f64::MIN_POSITIVE);
    for i in 0..some.min(n) {
        let index = if some >= n { i } else { rayspin_tune::input::bits(9, i as u64) as usize % n };
        let want = reference::pixel(&image, [rows, columns], radius, [index / columns, index % columns]);
        if wrong(out[index], want) {
            return Ok(f64::INFINITY);
        }
        if !bytes {
            off += (out[index].into() - want).powi(2);
            norm += want * want;
        }
    }
    Ok((off / norm).sqrt())
}
