//! Types 1 and 2 as ladders: the exact sum, the fast transform coil by coil, and all coils at once.

use std::borrow::Cow;
use std::fmt;

use num_complex::Complex32;
use rayspin_core::{C64, Error, Result, Trajectory, voxels};
use rayspin_device::cpu::room;
use rayspin_device::cuda::Source;
use rayspin_device::{Array, BackendKind, Device};
use rayspin_tune::input::{self, bits, signed_unit};
use rayspin_tune::{About, Algorithm, Carried, Carry, Case, Config, Space, Unit};

use super::form::{self, Asked};
use super::{BOUND, Nufft, Options, UPSAMPLINGS, choose_by, cuda};
use crate::nudft::{self, random_trajectory};
use crate::variant::{Variant, Work, runs_all};

/// Pairs of sample and voxel that the exact rungs take on: a second of a few cores, and of a GPU.
const MOST_PAIRS: [f64; 2] = [2e10, 1e12];
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
    fn voxels(&self) -> f64 {
        self.matrix.iter().map(|&n| n as f64).product()
    }

    fn pairs(&self) -> f64 {
        self.voxels() * self.samples as f64 * self.coils as f64
    }

    /// Width of the kernel that a GPU's plan has.
    fn width(&self) -> usize {
        let kernel =
            choose_by::<f32>(self.tolerance, &self.matrix, self.samples, &UPSAMPLINGS, cuda::cost::<f32>);
        kernel.map_or(0, |(_, kernel)| kernel.width)
    }
}

/// The plan, and images and samples of all coils together and of each alone.
pub struct Data {
    trajectory: Trajectory,
    plan: Nufft<f32>,
    images: Array<Complex32>,
    samples: Array<Complex32>,
    alone: Vec<(Array<Complex32>, Array<Complex32>)>,
    /// Where the last run left its outputs.
    apart: bool,
}

/// What a row runs: whether samples become images, with which form, on these data.
type Launch = fn(bool, Option<Asked>, &mut Data) -> Result<()>;

fn exact(to_image: bool, _: Option<Asked>, data: &mut Data) -> Result<()> {
    data.apart = false;
    match to_image {
        true => nudft::adjoint(&data.trajectory, &data.samples, &mut data.images),
        false => nudft::forward(&data.trajectory, &data.images, &mut data.samples),
    }
}

fn one_by_one(to_image: bool, _: Option<Asked>, data: &mut Data) -> Result<()> {
    data.apart = true;
    data.alone.iter_mut().try_for_each(|(image, samples)| match to_image {
        true => data.plan.adjoint(samples, image),
        false => data.plan.forward(image, samples),
    })
}

fn batched(to_image: bool, asked: Option<Asked>, data: &mut Data) -> Result<()> {
    data.apart = false;
    if asked.is_some() {
        let engine = data.plan.on_gpu()?;
        return match to_image {
            true => engine.adjoint(&data.samples, &mut data.images, asked),
            false => engine.forward(&data.images, &mut data.samples, asked),
        };
    }
    match to_image {
        true => data.plan.adjoint(&data.samples, &mut data.images),
        false => data.plan.forward(&data.images, &mut data.samples),
    }
}

impl Fast {
    /// The form of a configuration. Defaults are those of an H100: another GPU has its own.
    fn asked(&self, config: &Config, data: &Data) -> Result<Asked> {
        let (plan, items) = (&data.plan, data.alone.len());
        let usual = cuda::usual(self.to_image, plan.matrix().len(), plan.width(), items);
        let space = form::space(self.to_image, usual);
        if *config == space.default_config() {
            return plan.on_gpu()?.usual(self.to_image, items);
        }
        // Kernels are made for forms of this space.
        let asked = Asked::of(config).filter(|_| space.contains(config));
        asked.ok_or_else(|| Error::value("configuration", format!("one of {space:?}"), config))
    }
}

impl Algorithm for Fast {
    type Problem = Size;
    type Launch = Launch;
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

    fn space(&self, p: &Size, variant: &str) -> Space {
        match variant {
            form::RUNG => {
                form::space(self.to_image, cuda::usual(self.to_image, p.matrix.len(), p.width(), p.coils))
            }
            _ => Space::none(),
        }
    }

    fn sources(&self, _: &Size, variant: &str) -> Vec<&'static Source> {
        if variant == form::RUNG { form::sources(self.to_image) } else { Vec::new() }
    }

    fn variants(&self, problem: &Size) -> Vec<Variant<Size, Launch>> {
        let row = |name, backend, summary, launch: Launch, exact: bool| Variant {
            name,
            backend,
            summary,
            launch,
            refuses: match (exact, backend) {
                (false, _) => runs_all,
                (true, BackendKind::Cpu) => |p: &Size| too_long(p, MOST_PAIRS[0]),
                (true, BackendKind::Cuda) => |p: &Size| too_long(p, MOST_PAIRS[1]),
            },
            work: if exact { work_of_sum } else { work_of_fft },
            // Rounding of exact sums, else what the sweep of all kinds of points allows a plan.
            tolerance: if exact { 1e-6 } else { BOUND * problem.tolerance },
            reproduces: None,
        };
        let (cpu, gpu) = (BackendKind::Cpu, BackendKind::Cuda);
        let mut rows = vec![
            row("exact", cpu, "the exact sum by its best variant", exact as Launch, true),
            row("one-by-one", cpu, "one coil after another", one_by_one, false),
            row("batched", cpu, "all coils at once", batched, false),
        ];
        // Of images to samples the exact sum is left to the CPU beside the GPU.
        if self.to_image {
            rows.push(row("gpu-exact", gpu, "the exact sum by its best variant", exact, true));
        }
        rows.push(row("gpu-one-by-one", gpu, "one coil after another", one_by_one, false));
        rows.push(row("gpu-batched", gpu, "all coils at once", batched, false));
        rows
    }

    fn items(&self, problem: &Size) -> f64 {
        problem.samples as f64 * problem.coils as f64
    }

    fn carried<'a>(&self, variant: &str, data: &'a mut Data) -> Option<Carried<'a>> {
        let Data { images, samples, alone, .. } = data;
        let mut sides: [Vec<&mut dyn Carry>; 2] = if variant.ends_with("one-by-one") {
            let (images, samples) =
                alone.iter_mut().map(|(i, s)| (i as &mut dyn Carry, s as &mut dyn Carry)).unzip();
            [images, samples]
        } else {
            [vec![images], vec![samples]]
        };
        if self.to_image {
            sides.reverse();
        }
        let [inputs, outputs] = sides;
        Some(Carried { inputs, outputs })
    }

    fn set_up(&self, problem: &Size, variant: &Variant<Size, Launch>, data: &mut Data) -> Result<()> {
        if !variant.name.ends_with("exact") {
            let device = data.images.device().clone();
            data.plan = Nufft::new(
                &device,
                &data.trajectory,
                &problem.matrix,
                &Options::tolerance(problem.tolerance),
            )?;
        }
        Ok(())
    }

    fn data(&self, problem: &Size, device: &Device, seed: u64) -> Result<Data> {
        let Size { matrix, samples, coils, .. } = problem;
        let (samples, coils) = (*samples, *coils);
        let cpu = device.cpu_side();
        let trajectory = random_trajectory(cpu, seed, matrix, samples)?;
        let voxels = voxels(matrix)?;
        let number = |stream: u64, at: usize| signed_unit(seed ^ stream, at);
        // Numbers of coils from `first` on, as they are of all coils together.
        let values = |stream: u64, first: usize, coils: usize, len: usize| {
            input::filled(cpu, "images and samples", coils * len, |i| {
                let at = first * len + i;
                Complex32::new(number(stream, at), number(stream + 1, at))
            })
        };
        let alone = (0..coils).map(|coil| {
            Ok((
                Array::from_vec(device, matrix, values(10, coil, 1, voxels)?)?,
                Array::from_vec(device, &[samples], values(20, coil, 1, samples)?)?,
            ))
        });
        let all = |stream: u64, len: usize| values(stream, 0, coils, len);
        let shape = [&[coils], matrix.as_slice()].concat();
        Ok(Data {
            plan: Nufft::new(device, &trajectory, matrix, &Options::tolerance(problem.tolerance))?,
            images: Array::from_vec(device, &shape, all(10, voxels)?)?,
            samples: Array::from_vec(device, &[coils, samples], all(20, samples)?)?,
            alone: alone.collect::<Result<_>>()?,
            trajectory,
            apart: false,
        })
    }

    fn run(&self, variant: &Variant<Size, Launch>, config: &Config, data: &mut Data) -> Result<()> {
        let asked = if variant.name == form::RUNG { Some(self.asked(config, data)?) } else { None };
        (variant.launch)(self.to_image, asked, data)
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
        let found = match data.apart {
            false => outputs.read()?,
            true => {
                let mut all = room("outputs of all coils", outputs.len())?;
                for (image, samples) in &data.alone {
                    all.extend_from_slice(&if self.to_image { image } else { samples }.read()?);
                }
                Cow::Owned(all)
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
            expected.iter().zip(&indices).map(|(e, &at)| (e - double(found[at])).norm_sqr()).sum();
        let whole: f64 = expected.iter().map(|e| e.norm_sqr()).sum();
        let error = (wrong / whole).sqrt();
        Ok(if error.is_nan() { f64::INFINITY } else { error })
    }
}

/// 12 operations a pair; images, samples and trajectory once.
fn work_of_sum(p: &Size) -> Work {
    Work { bytes: crossing(p), flops: 12.0 * p.pairs() }
}

/// The least that any fast transform does: images, samples and trajectory once, 5 n log₂ n operations of an FFT of each image.
fn work_of_fft(p: &Size) -> Work {
    Work { bytes: crossing(p), flops: p.coils as f64 * 5.0 * p.voxels() * p.voxels().max(2.0).log2() }
}

fn crossing(p: &Size) -> f64 {
    let (samples, coils) = (p.samples as f64, p.coils as f64);
    8.0 * coils * (p.voxels() + samples) + 8.0 * p.matrix.len() as f64 * samples
}

fn too_long(p: &Size, most: f64) -> Option<String> {
    let pairs = p.pairs();
    (pairs > most).then(|| {
        format!("{pairs:.1e} pairs of sample and voxel, and the exact sum is for at most {most:.0e}")
    })
}
