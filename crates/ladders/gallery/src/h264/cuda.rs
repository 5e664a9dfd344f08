#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Result, expect_len};
use rayspin_device::Array;
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_tune::blocks::whole_warps;
use rayspin_tune::{Build, Config, Space, gpu};

use super::block::Quantizer;
use super::{Coded, Problem, SIDE};

static SOURCE: Source = Source { name: "h264", files: &[("h264.cu", include_str!("cuda/h264.cu"))] };

/// Threads of a block of the kernel that codes blocks of pixels.
const CODERS: u32 = 128;

fn defines(threads: u32) -> Vec<Define> {
    vec![("THREADS", threads.to_string())]
}

pub(super) fn forms() -> Vec<Build> {
    [160, 320].map(|threads| Build { defines: defines(threads), ..Build::plain(&SOURCE) }).to_vec()
}

pub(super) fn space(_: &Problem) -> Space {
    Space::none().axis("threads", &[64, 96, 128, 160, 320], 160)
}

/// The displacements of all macroblocks, then the codes of all blocks.
pub(super) fn whole(
    config: &Config,
    [current, reference]: [&Array<u8>; 2],
    p: &Problem,
    coded: &mut Coded,
) -> Result<()> {
    let (p, q) = (p.checked()?, Quantizer::new(p.qp)?);
    let threads = config.get("threads")?;
    whole_warps(threads)?;
    let Coded { vectors, levels, bits, reconstruction } = coded;
    for frame in [current, reference, &*reconstruction] {
        expect_len("frame", &[p.height, p.width], frame.len())?;
    }
    expect_len("displacements", &p.macroblocks(), vectors.len())?;
    expect_len("levels", &p.levels(), levels.len())?;
    expect_len("bits", &p.blocks(), bits.len())?;
    let device = current.device().clone();
    let [search, code] =
        ["search", "code"].map(|name| gpu(&device)?.kernel(&SOURCE, &defines(threads), name));
    let [height, width]: [Argument<'_>; 2] = [p.height, p.width].map(|side| (side as i32).into());
    // Sides are at most MOST_SIDE: pixels, blocks and macroblocks fit 32 bits.
    let macroblocks = p.macroblocks().iter().product::<usize>() as u32;
    let window = (2 * p.radius + 20) / 4 * (SIDE + 2 * p.radius) * size_of::<u32>();
    let arguments = &mut [
        current.cuda().into(),
        reference.cuda().into(),
        vectors.cuda_mut().into(),
        height,
        width,
        (p.radius as i32).into(),
    ];
    // SAFETY: frames and displacements have these sizes, and the kernel holds places to the frames; shared
    // memory has room for the window, and a word of it beyond each group of four displacements.
    unsafe { search?.launch(Launch::linear(macroblocks, threads).with_shared(window), arguments) }?;
    let [height, width]: [Argument<'_>; 2] = [p.height, p.width].map(|side| (side as i32).into());
    let mut arguments: Vec<Argument<'_>> = vec![
        current.cuda().into(),
        reference.cuda().into(),
        vectors.cuda().into(),
        levels.cuda_mut().into(),
        bits.cuda_mut().into(),
        reconstruction.cuda_mut().into(),
        height,
        width,
    ];
    let numbers = q.forward.into_iter().chain(q.back).chain([q.shift as i32, q.rounding]);
    arguments.extend(numbers.map(Argument::from));
    let coders = ((p.down() * p.across()) as u32).div_ceil(CODERS);
    // SAFETY: all arrays have these sizes; a thread takes a block that begins in the frame, and writes pixels
    // that lie in it.
    unsafe { code?.launch(Launch::linear(coders, CODERS), &mut arguments) }
}
