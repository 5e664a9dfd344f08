//! Arrays through the texture unit: their sizes, their textures and the launches.

#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{AddressMode, Argument, Filter, Launch, Sampling, Source, Texture};
use rayspin_device::{Array, Cuda};
use rayspin_tune::{Build, Config, gpu};

use super::cuda::{THREADS, expect};
use super::reference::{Outside, Pattern, WORDS};
use super::{Data, Problem, Topic};

static SOURCE: Source =
    Source { name: "textures", files: &[("textures.cu", include_str!("cuda/textures.cu"))] };

pub(super) fn forms() -> Vec<Build> {
    vec![Build::plain(&SOURCE)]
}

/// Shape of the output of a topic.
pub(super) fn shape(Problem { topic, n }: &Problem) -> Vec<usize> {
    let axes = match topic {
        Topic::Texture | Topic::TextureModes => 2,
        Topic::TextureVolume => 3,
        _ => 1,
    };
    vec![*n; axes]
}

/// Shape of the array that is read as a texture.
pub(super) fn image(problem: &Problem) -> Vec<usize> {
    match problem.topic {
        Topic::TextureLine => vec![WORDS],
        _ => shape(problem),
    }
}

/// Ways to read outside of an image, in the order of their textures. Each has two, first without
/// interpolation.
const MODES: [AddressMode; 4] =
    [AddressMode::Clamp, AddressMode::Border, AddressMode::Wrap, AddressMode::Mirror];

/// Wrap and mirror exist for coordinates from 0 to 1 alone.
fn normalized(mode: AddressMode) -> bool {
    matches!(mode, AddressMode::Wrap | AddressMode::Mirror)
}

/// The textures of a topic.
pub(super) fn all(cuda: &Cuda, topic: Topic, values: &Array<f32>) -> Result<Vec<Texture>> {
    let plain = |filter| Sampling { filter, address_mode: AddressMode::Clamp, normalized: false };
    let samplings = match topic {
        Topic::TextureLine => vec![plain(Filter::Linear)],
        Topic::TextureModes => MODES
            .into_iter()
            .flat_map(|address_mode| {
                [Filter::Point, Filter::Linear].map(|filter| Sampling {
                    filter,
                    address_mode,
                    normalized: normalized(address_mode),
                })
            })
            .collect(),
        _ => vec![plain(Filter::Point)],
    };
    samplings.into_iter().map(|sampling| cuda.texture(values, sampling)).collect()
}

/// How a variant gets its texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Global,
    Texture,
}

impl From {
    /// The first argument of a kernel, and the output.
    fn arguments(self, data: &mut Data, which: usize) -> Result<[Argument<'_>; 2]> {
        let Data { image, textures, out, .. } = data;
        let first = match self {
            Self::Global => image.as_ref().map(|image| image.cuda().into()),
            Self::Texture => textures.get(which).map(Argument::from),
        };
        let missing = || Error::value("access pattern", "an image", "none on this device");
        Ok([first.ok_or_else(missing)?, out.cuda_mut().into()])
    }
}

/// A size as kernels take it.
fn int(size: usize) -> Result<i32> {
    i32::try_from(size).map_err(|_| Error::value("side of an image", "at most 2³¹ − 1", size))
}

/// Blocks along an axis.
fn blocks(count: usize, threads: u32) -> Result<u32> {
    let blocks = count.div_ceil(threads as usize);
    u32::try_from(blocks).map_err(|_| Error::value("blocks of an image", "at most 2147483647", blocks))
}

/// An image read by blocks of `x` by 256 / `x` threads.
pub(super) fn plane(from: From, config: &Config, data: &mut Data) -> Result<()> {
    expect(data, Topic::Texture)?;
    let x = config.get("x")?;
    if !(1..=THREADS).contains(&x) {
        return Err(Error::value("threads of a block along x", format!("1 to {THREADS}"), x));
    }
    data.ran = Some(Pattern::Image);
    let (side, y) = (data.problem.n, THREADS / x);
    let count = side.div_ceil(x as usize) * side.div_ceil(y as usize);
    let shape = Launch { blocks: [blocks(count, 1)?, 1, 1], threads: [x, y, 1], shared: 0 };
    let device = data.out.device().clone();
    let name = if from == From::Texture { "image_texture" } else { "image_global" };
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], name)?;
    let size = int(side)?;
    let [first, out] = from.arguments(data, 0)?;
    // SAFETY: image and output have side x side texels.
    unsafe { kernel.launch(shape, &mut [first, out, size.into(), size.into()]) }
}

/// Numbers between those of a table.
pub(super) fn line(from: From, data: &mut Data) -> Result<()> {
    expect(data, Topic::TextureLine)?;
    data.ran = Some(Pattern::Line);
    let n = data.out.len();
    let count = u32::try_from(n).map_err(|_| Error::value("places", "at most 2³² − 1", n))?;
    let device = data.out.device().clone();
    let name = if from == From::Texture { "line_texture" } else { "line_global" };
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], name)?;
    let [first, out] = from.arguments(data, 0)?;
    let mut arguments = [first, out, count.into(), (WORDS as u32).into()];
    // SAFETY: the output has n words, and the kernel reads two neighbours below the table's length.
    unsafe { kernel.launch(Launch::covering(n, THREADS), &mut arguments) }
}

/// A volume of which neighbouring threads read neighbours along axis `along`.
pub(super) fn volume(from: From, config: &Config, data: &mut Data) -> Result<()> {
    expect(data, Topic::TextureVolume)?;
    let along: u32 = config.get("along")?;
    if along > 2 {
        return Err(Error::value("axis of a volume", "0, 1 or 2", along));
    }
    data.ran = Some(Pattern::Image);
    let shape =
        Launch { blocks: [blocks(data.out.len(), THREADS)?, 1, 1], threads: [THREADS, 1, 1], shared: 0 };
    let device = data.out.device().clone();
    let name = if from == From::Texture { "volume_texture" } else { "volume_global" };
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], name)?;
    let size = int(data.problem.n)?;
    let [first, out] = from.arguments(data, 0)?;
    let mut arguments = [first, out, size.into(), (along as i32).into()];
    // SAFETY: volume and output have n x n x n texels, and the axis is one of three.
    unsafe { kernel.launch(shape, &mut arguments) }
}

/// An image at places between texels and outside.
pub(super) fn modes(from: From, mode: AddressMode, config: &Config, data: &mut Data) -> Result<()> {
    expect(data, Topic::TextureModes)?;
    let linear: u32 = config.get("linear")?;
    if linear > 1 {
        return Err(Error::value("linear", "0 or 1", linear));
    }
    let filter = if linear == 1 { Filter::Linear } else { Filter::Point };
    data.ran = Some(Pattern::Modes(Outside { address_mode: mode, filter }));
    let side = data.problem.n;
    let [x, y] = [32, THREADS / 32];
    let shape = Launch { blocks: [blocks(side, x)?, blocks(side, y)?, 1], threads: [x, y, 1], shared: 0 };
    let device = data.out.device().clone();
    let name = if from == From::Texture { "modes_texture" } else { "mirror_global" };
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], name)?;
    let size = int(side)?;
    let place = MODES.iter().position(|&other| other == mode).unwrap_or_default();
    let [first, out] = from.arguments(data, 2 * place + linear as usize)?;
    let last: Argument<'_> = match from {
        From::Texture if normalized(mode) => (1.0 / side as f32).into(),
        From::Texture => 1.0f32.into(),
        From::Global => (linear as i32).into(),
    };
    // SAFETY: image and output have side x side texels; the kernel for global memory mirrors every place into
    // the image.
    unsafe { kernel.launch(shape, &mut [first, out, size.into(), last]) }
}
