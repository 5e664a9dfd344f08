//! Types 1 and 2 as ladders: the exact sum, the fast transform coil by coil, and all coils at once.

use std::borrow::Cow;
use std::fmt;

use num_complex::Complex32;
use rayspin_core::{C64, Error, Result, Trajectory, voxels};
use rayspin_device::cpu::try_with_capacity;
use rayspin_device::{Array, Device};
use rayspin_tune::input::{self, bits, signed_unit};
use rayspin_tune::{About, Algorithm, Case, Counts, Row, Unit};

use super::variants::rows;
use super::{Nufft, Options, UPSAMPLINGS, choose_by, cuda, form};
use crate::nudft::{self, random_trajectory};

/// Outputs that are compared, of all coils together.
const COMPARED: usize = 24;

/// Samples → images or images → samples of several coils in f32, to a tolerance ε.
#[derive(Debug, Clone, Copy)]
pub struct Fast {
    to_image: bool,
}

impl Fast {
    /// Type 1: samples → images.
    pub fn type1() -> Self {
        Self { to_image: true }
    }

    /// Type 2: images → samples.
    pub fn type2() -> Self {
        Self { to_image: false }
    }
}

/// Sizes of a transform.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// Image shape without coils.
    pub matrix: Vec<usize>,
    /// Samples of a coil.
    pub samples: usize,
    /// Coils.
    pub coils: usize,
    /// ε of the plan.
    pub tolerance: f64,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matrix: Vec<_> = self.matrix.iter().map(ToString::to_string).collect();
        let Self { samples, coils, tolerance, .. } = self;
        write!(f, "{} voxels, {samples} samples, {coils} coils, ε = {tolerance:e}", matrix.join(" x "))
    }
}

impl Size {
    pub(super) fn voxels(&self) -> f64 {
        self.matrix.iter().map(|&n| n as f64).product()
    }

    pub(super) fn pairs(&self) -> f64 {
        self.voxels() * self.samples as f64 * self.coils as f64
    }

    /// Width of the kernel that a GPU's plan has.
    pub(super) fn width(&self) -> usize {
        let kernel =
            choose_by::<f32>(self.tolerance, &self.matrix, self.samples, &UPSAMPLINGS, cuda::cost::<f32>);
        kernel.map_or(0, |(_, kernel)| kernel.width)
    }
}

/// The plan, and images and samples of all coils together and of each alone.
pub struct Data {
    pub(super) trajectory: Trajectory,
    pub(super) plan: Nufft<f32>,
    pub(super) images: Array<Complex32>,
    pub(super) samples: Array<Complex32>,
    pub(super) alone: Vec<(Array<Complex32>, Array<Complex32>)>,
    /// Whether the last run left its outputs in `alone`.
    pub(super) apart: bool,
}

impl Algorithm for Fast {
    type Problem = Size;
    type Data = Data;

    fn about(&self) -> About {
        let (name, title) = match self.to_image {
            true => (form::ladder(true), "Non-uniform FFT of samples to images, f32"),
            false => (form::ladder(false), "Non-uniform FFT of images to samples, f32"),
        };
        About { name, title, readme: include_str!("README.md"), unit: Unit::Items("samples") }
    }

    fn cases(&self) -> Vec<Case<Size>> {
        let case = |name, summary, matrix: &[usize], samples, coils, tolerance| Case {
            name,
            summary,
            problem: Size { matrix: matrix.to_vec(), samples, coils, tolerance },
        };
        vec![
            case("128x128x8", "small enough for the exact sum on a few cores", &[128, 128], 1 << 15, 8, 1e-5),
            case("256x256x8", "a slice of eight coils", &[256, 256], 1 << 17, 8, 1e-5),
            case(
                "256x256x12-1e-3",
                "a slice of twelve, as exact as images are",
                &[256, 256],
                102_912,
                12,
                1e-3,
            ),
            case("128x128x128x4", "a volume of four coils", &[128; 3], 1 << 21, 4, 1e-5),
            case("128x128x128x16-1e-3", "a volume of sixteen, few samples", &[128; 3], 50_000, 16, 1e-3),
        ]
    }

    fn trials(&self) -> Vec<Size> {
        [(&[9][..], 1, 1), (&[16], 40, 3), (&[13, 16], 70, 2), (&[6, 9, 12], 90, 2)]
            .map(|(matrix, samples, coils)| Size { matrix: matrix.to_vec(), samples, coils, tolerance: 1e-5 })
            .to_vec()
    }

    fn sized(&self, problem: &Size, size: &[usize]) -> Result<Size> {
        let whole = size.iter().all(|&n| n > 0);
        match *size {
            [ref matrix @ .., samples, coils] if whole && (1..=3).contains(&matrix.len()) => {
                voxels(&[&[coils], matrix].concat())?;
                voxels(&[coils, samples, matrix.len()])?;
                Ok(Size { matrix: matrix.to_vec(), samples, coils, tolerance: problem.tolerance })
            }
            _ => Err(Error::value(
                format!("size of {}", self.about().name),
                "one to three axes, samples and coils, as in 256x256x100000x8, each at least 1",
                format!("{size:?}"),
            )),
        }
    }

    fn key(&self, p: &Size) -> (String, Vec<usize>) {
        form::key(p.width(), &p.matrix, p.samples, p.coils)
    }

    fn variants(&self, problem: &Size) -> Vec<Row<Self>> {
        rows(self.to_image, problem.tolerance)
    }

    fn counts(&self, problem: &Size) -> Counts {
        Counts { items: problem.samples as f64 * problem.coils as f64, ..Counts::default() }
    }

    fn data(&self, problem: &Size, device: &Device, seed: u64) -> Result<Data> {
        let Size { matrix, samples, coils, .. } = problem;
        let (samples, coils) = (*samples, *coils);
        let cpu = device.cpu_side();
        let trajectory = random_trajectory(cpu, seed, matrix, samples)?;
        let voxels = voxels(matrix)?;
        let number = |stream: u64, index: usize| signed_unit(seed ^ stream, index);
        // Numbers of coils from `first` on, as they are of all coils together.
        let values = |stream: u64, first: usize, coils: usize, len: usize| {
            input::filled(cpu, "images and samples", coils * len, |i| {
                let index = first * len + i;
                Complex32::new(number(stream, index), number(stream + 1, index))
            })
        };
        let alone = (0..coils).map(|coil| {
            Ok((
                Array::from_vec(device, matrix, values(10, coil, 1, voxels)?)?,
                Array::from_vec(device, &[samples], values(20, coil, 1, samples)?)?,
            ))
        });
        let batch = |stream: u64, len: usize| values(stream, 0, coils, len);
        let shape = [&[coils], matrix.as_slice()].concat();
        Ok(Data {
            plan: Nufft::new(device, &trajectory, matrix, &Options::tolerance(problem.tolerance))?,
            images: Array::from_vec(device, &shape, batch(10, voxels)?)?,
            samples: Array::from_vec(device, &[coils, samples], batch(20, samples)?)?,
            alone: alone.collect::<Result<_>>()?,
            trajectory,
            apart: false,
        })
    }

    fn poison(&self, data: &mut Data) -> Result<()> {
        let nan = Complex32::new(f32::NAN, f32::NAN);
        let outputs = if self.to_image { &mut data.images } else { &mut data.samples };
        outputs.fill(nan)?;
        data.alone
            .iter_mut()
            .try_for_each(|(image, samples)| if self.to_image { image } else { samples }.fill(nan))
    }

    fn error(&self, problem: &Size, data: &Data) -> Result<f64> {
        let (matrix, coils) = (&problem.matrix, problem.coils);
        let (inputs, outputs) =
            if self.to_image { (&data.samples, &data.images) } else { (&data.images, &data.samples) };
        let computed = match data.apart {
            false => outputs.read()?,
            true => {
                let mut joined = try_with_capacity("outputs of all coils", outputs.len())?;
                for (image, samples) in &data.alone {
                    joined.extend_from_slice(&if self.to_image { image } else { samples }.read()?);
                }
                Cow::Owned(joined)
            }
        };
        let len = outputs.len();
        let indices: Vec<usize> = match len <= 8 * COMPARED {
            true => (0..len).collect(),
            // At least one of each of the first coils.
            false => (0..COMPARED)
                .map(|i| {
                    let coil = i % coils;
                    let one = len / coils;
                    coil * one + (bits(7, i as u64) % one as u64) as usize
                })
                .collect(),
        };
        let inputs = inputs.read()?;
        let expected = match self.to_image {
            true => nudft::adjoint_at(&data.trajectory, matrix, &inputs, &indices)?,
            false => nudft::forward_at(&data.trajectory, matrix, &inputs, &indices)?,
        };
        let double = |c: Complex32| C64::new(c.re.into(), c.im.into());
        let wrong: f64 =
            expected.iter().zip(&indices).map(|(e, &index)| (e - double(computed[index])).norm_sqr()).sum();
        let whole: f64 = expected.iter().map(|e| e.norm_sqr()).sum();
        let error = (wrong / whole).sqrt();
        Ok(if error.is_nan() { f64::INFINITY } else { error })
    }
}
