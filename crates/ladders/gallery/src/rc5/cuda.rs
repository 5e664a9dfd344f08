#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use rayspin_core::{Error, Result};
use rayspin_device::Array;
use rayspin_device::cuda::{Argument, Define, Launch, Source};
use rayspin_tune::blocks::expect;
use rayspin_tune::{Build, Config, Space, gpu};

use super::{Data, Problem, Search};

static SOURCE: Source = Source { name: "rc5", files: &[("rc5.cu", include_str!("cuda/rc5.cu"))] };

fn defines([threads, turns]: [u32; 2]) -> Vec<Define> {
    vec![("THREADS", threads.to_string()), ("TURNS", turns.to_string())]
}

fn form(form: [u32; 2]) -> Build {
    Build { source: &SOURCE, defines: defines(form), spill_bytes: 0 }
}

/// The form of the kernels of one key a thread, which no macro changes.
const ONE: [u32; 2] = [128, 1];

pub(super) fn one_forms() -> Vec<Build> {
    vec![form(ONE)]
}

pub(super) fn several_forms() -> Vec<Build> {
    vec![form([128, 16])]
}

pub(super) fn one_space(_: &Problem) -> Space {
    Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256)
}

pub(super) fn several_space(_: &Problem) -> Space {
    Space::none().axis("threads", &[64, 128, 256], 128).axis("turns", &[1, 4, 16, 64, 256], 16)
}

fn launch(name: &str, form: [u32; 2], shape: Launch, search: &Search, list: &mut Array<u32>) -> Result<()> {
    search.check()?;
    let device = list.device().clone();
    let kernel = gpu(&device)?.kernel(&SOURCE, &defines(form), name)?;
    list.fill(0)?;
    // SAFETY: the kernel stores candidates as far as there is room, and `room` is the array's length, at
    // least 1 for their number.
    unsafe { kernel.launch(shape, &mut arguments(search, list)?) }
}

/// What kernels are called with.
pub(super) fn arguments<'a>(search: &Search, list: &'a mut Array<u32>) -> Result<[Argument<'a>; 9]> {
    let room = Argument::count(list.len())?;
    Ok([
        search.upper.into(),
        search.lower.into(),
        Argument::count(search.keys)?,
        search.plain[0].into(),
        search.plain[1].into(),
        search.cipher[0].into(),
        search.mask().into(),
        list.cuda_mut().into(),
        room,
    ])
}

/// A kernel of a key a thread.
pub(super) fn one(name: &str, config: &Config, data: &mut Data) -> Result<()> {
    let threads = config.get("threads")?;
    expect("threads of a block", 1..=1024, threads)?;
    launch(name, ONE, Launch::covering(data.search.keys, threads), &data.search, &mut data.list)
}

pub(super) fn several(config: &Config, search: &Search, list: &mut Array<u32>) -> Result<()> {
    let [threads, turns] = [config.get("threads")?, config.get("turns")?];
    expect("threads of a block", 1..=1024, threads)?;
    if !matches!(turns, 1..=256) || !turns.is_power_of_two() {
        return Err(Error::value("keys of a thread", "a divisor of 256", turns));
    }
    // Threads begin with the group of the first key.
    let before = (search.lower & 255) as usize;
    let shape = Launch::covering((search.keys + before).div_ceil(turns as usize), threads);
    launch("several", [threads, turns], shape, search, list)
}
