//! Sobel's edges: s (|H| + |V|), H and V the gradients of 3×3 pixels.

mod cpu;
mod cuda;
pub mod reference;
mod variants;

use std::fmt;

use rayon::prelude::*;
use rayspin_core::{Error, Result, voxels};
use rayspin_device::cuda::Texture;
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::{
    About, Algorithm, Case, Counts, Peak, Published, Row, Signature, Unit, documents, input, tuned,
};

use rayspin_planes::plane;

/// out\[y, x\] = min(255, ⌊s (|H| + |V|)⌋), where with p the image
///
/// H = p\[y−1, x+1\] + 2 p\[y, x+1\] + p\[y+1, x+1\] − p\[y−1, x−1\] − 2 p\[y, x−1\] − p\[y+1, x−1\] and V is
/// the same with x and y exchanged.
///
/// Images `[rows, columns]` of bytes. Beyond an edge the nearest pixel counts. The product with `scale` s is
/// computed in f32, rounded to nearest, and then cut towards zero: every processor gives the same bytes. At
/// s = 1 every |H| + |V| above 255 becomes 255. At s = 1/8 all of them fit.
///
/// Errors: a scale that is negative or not finite, images that differ in shape or device, without pixels, or
/// with 2³⁰ rows or columns.
pub fn sobel(image: &Array<u8>, scale: f32, out: &mut Array<u8>) -> Result<()> {
    let (rows, columns) = plane::same("Sobel", image, out)?;
    let (rows, columns) = plane::asked("Sobel", &[rows, columns])?;
    check_scale(scale)?;
    let problem = Problem { rows, columns, scale };
    match image.device().backend() {
        Backend::Cpu(cpu) => {
            cpu::threads(cpu, image.cpu(), problem, out.cpu_mut());
            Ok(())
        }
        Backend::Cuda(cuda) => {
            let config = tuned(&Sobel, &problem, &variants::gpu_halves(), image.device());
            let form = cuda::Form::from_config(&config, scale, true)?;
            cuda::sliding(cuda, form, image, [rows, columns], scale, out)
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

/// The ladder.
#[derive(Debug, Clone, Copy)]
pub struct Sobel;

impl Algorithm for Sobel {
    type Problem = Problem;
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

    fn variants(&self, _: &Problem) -> Vec<Row<Self>> {
        variants::rows()
    }

    fn key(&self, problem: &Problem) -> (String, Vec<usize>) {
        // All scales but 1 use the same form of the kernels, which multiplies by the scale.
        let kind = if problem.scale == 1.0 { "scale 1" } else { "scaled" };
        (kind.to_owned(), vec![problem.rows, problem.columns])
    }

    fn counts(&self, _: &Problem) -> Counts {
        Counts { peak: Peak::I32, ..Counts::default() }
    }

    fn published(&self) -> &'static [Published] {
        const fn row(row: &'static str) -> Published {
            Published::new(documents::MEMORY_OPTIMIZATION, row)
        }
        &const { [row("a"), row("b"), row("c"), row("d")] }
    }

    fn signature(&self, _: &Problem) -> Option<Signature<Problem, Data>> {
        Some(Signature {
            kernel: "sobel",
            declaration: "\
// out[y * columns + x] = min(255, (int)(scale * (|H| + |V|))), the product rounded to float and then cut
// (__fmul_rn), where with p(y, x) the image H = p(y-1, x+1) + 2 p(y, x+1) + p(y+1, x+1) - p(y-1, x-1) - 2
// p(y, x-1) - p(y+1, x-1), and V is the same with x and y exchanged. Beyond an edge the nearest pixel counts.
extern \"C\" __global__ void sobel(const unsigned char* image, unsigned char* out, int rows, int columns, float scale)",
            extent: |p| [p.columns, p.rows, 1],
            defines: |_| Vec::new(),
            call: |data, call| {
                let Data { problem, image, out, .. } = data;
                // Sides are below 2³⁰.
                let [rows, columns] = [problem.rows as i32, problem.columns as i32].map(Into::into);
                let device = image.device().clone();
                call(&device, &mut [image.cuda().into(), out.cuda_mut().into(), rows, columns, problem.scale.into()])
            },
        })
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

    fn poison(&self, data: &mut Data) -> Result<()> {
        // What the oracle gives, inverted: no byte is one that no variant would write.
        let Problem { rows, columns, scale } = data.problem;
        let image = data.image.read()?;
        let inverted =
            |index: usize| !reference::pixel(&image, rows, columns, scale, index / columns, index % columns);
        let cpu = data.image.device().cpu_side();
        data.out.set(&input::filled(cpu, "wrong pixels", image.len(), inverted)?)
    }

    fn error(&self, problem: &Problem, data: &Data) -> Result<f64> {
        let Problem { rows, columns, scale } = *problem;
        let (image, out) = (data.image.read()?, data.out.read()?);
        let wrong = |&index: &usize| {
            out[index] != reference::pixel(&image, rows, columns, scale, index / columns, index % columns)
        };
        let cpu = data.out.device().cpu_side();
        let count = cpu.run(|| (0..out.len()).into_par_iter().filter(wrong).count());
        Ok(count as f64 / out.len() as f64)
    }
}
