#![allow(unsafe_code, reason = "kernels are launched: each block says why they stay inside their arrays")]

use std::ops::Range;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Argument, Launch, Source, View, ViewMut};
use rayspin_device::{Cuda, HostCopy};
use rayspin_tune::{Build, Config, gpu};

use super::{Data, Ended};

static SOURCE: Source =
    Source { name: "transfers", files: &[("transfers.cu", include_str!("cuda/transfers.cu"))] };

/// Threads of a block.
const THREADS: u32 = 256;
/// Values of a thread.
const EACH: usize = 4;

pub(super) fn forms() -> Vec<Build> {
    vec![Build::plain(&SOURCE)]
}

/// The pieces that a configuration copies `n` values in.
fn pieces(config: &Config, n: usize) -> Result<impl Iterator<Item = Range<usize>> + Clone> {
    let piece = piece(config)?;
    Ok((0..n).step_by(piece).map(move |start| start..n.min(start + piece)))
}

/// Values of a copy.
fn piece(config: &Config) -> Result<usize> {
    Ok((config.get("kib")? as usize * 1024 / size_of::<f32>()).max(1))
}

pub(super) fn upload_pageable(way: HostCopy, config: &Config, data: &mut Data) -> Result<()> {
    for range in pieces(config, data.to.len())? {
        data.to.put(range.start, &data.from[range], way)?;
    }
    Ok(())
}

pub(super) fn upload_pinned(config: &Config, data: &mut Data) -> Result<()> {
    for range in pieces(config, data.to.len())? {
        data.to.receive_part(range.start, &mut data.pinned_from, range)?;
    }
    Ok(())
}

pub(super) fn upload_mapped(config: &Config, data: &mut Data) -> Result<()> {
    let (device, pieces) = (data.to.device().clone(), pieces(config, data.to.len())?);
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "copy")?;
    let mut to = data.to.cuda_mut();
    data.pinned_from.lend(|from| {
        let from = from.view();
        for range in pieces {
            let n = range.len();
            let arguments =
                &mut [part(&from, &range)?.into(), part_mut(&mut to, &range)?.into(), (n as u64).into()];
            // SAFETY: both parts have n values.
            unsafe { kernel.launch(covering(n), arguments) }?;
        }
        Ok(())
    })
}

pub(super) fn download_pageable(way: HostCopy, config: &Config, data: &mut Data) -> Result<()> {
    for range in pieces(config, data.source.len())? {
        data.source.get(range.start, &mut data.into[range], way)?;
    }
    data.ended = Some(Ended::Pageable);
    Ok(())
}

pub(super) fn download_pinned(config: &Config, data: &mut Data) -> Result<()> {
    for range in pieces(config, data.source.len())? {
        data.source.send_part(range.start, &mut data.pinned_into, range)?;
    }
    arrived(data)
}

pub(super) fn download_mapped(config: &Config, data: &mut Data) -> Result<()> {
    let (device, pieces) = (data.source.device().clone(), pieces(config, data.source.len())?);
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "copy")?;
    let source = data.source.cuda();
    data.pinned_into.lend(|mut into| {
        for range in pieces {
            let n = range.len();
            let arguments =
                &mut [part(&source, &range)?.into(), part_mut(&mut into, &range)?.into(), (n as u64).into()];
            // SAFETY: both parts have n values.
            unsafe { kernel.launch(covering(n), arguments) }?;
        }
        Ok(())
    })?;
    arrived(data)
}

pub(super) fn both_pageable(way: HostCopy, config: &Config, data: &mut Data) -> Result<()> {
    upload_pageable(way, config, data)?;
    download_pageable(way, config, data)
}

pub(super) fn both_pinned(config: &Config, data: &mut Data) -> Result<()> {
    upload_pinned(config, data)?;
    download_pinned(config, data)
}

pub(super) fn both_mapped(config: &Config, data: &mut Data) -> Result<()> {
    let (device, pieces) = (data.source.device().clone(), pieces(config, data.source.len())?);
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "copy_both")?;
    let (source, mut to) = (data.source.cuda(), data.to.cuda_mut());
    let into = &mut data.pinned_into;
    data.pinned_from.lend(|from| {
        let from = from.view();
        into.lend(|mut into| {
            for range in pieces {
                let n = range.len();
                let arguments = &mut [
                    part(&from, &range)?.into(),
                    part_mut(&mut to, &range)?.into(),
                    part(&source, &range)?.into(),
                    part_mut(&mut into, &range)?.into(),
                    (n as u64).into(),
                ];
                // SAFETY: all parts have n values.
                unsafe { kernel.launch(covering(n), arguments) }?;
            }
            Ok(())
        })
    })?;
    arrived(data)
}

pub(super) fn both_beside(config: &Config, data: &mut Data) -> Result<()> {
    let device = data.source.device().clone();
    let (from, into) = (&mut data.pinned_from, &mut data.pinned_into);
    gpu(&device)?.exchange(&mut data.to, from, &data.source, into, piece(config)?)?;
    arrived(data)
}

pub(super) fn there_and_back_pageable(way: HostCopy, data: &mut Data) -> Result<()> {
    data.to.put(0, &data.from, way)?;
    work(data)?;
    data.to.get(0, &mut data.into, way)?;
    data.ended = Some(Ended::Pageable);
    Ok(())
}

pub(super) fn there_and_back_pinned(data: &mut Data) -> Result<()> {
    let n = data.to.len();
    data.to.receive_part(0, &mut data.pinned_from, 0..n)?;
    work(data)?;
    data.to.send_part(0, &mut data.pinned_into, 0..n)?;
    arrived(data)
}

pub(super) fn there_and_back_mapped(data: &mut Data) -> Result<()> {
    let (device, n, rounds) = (data.to.device().clone(), data.to.len(), data.problem.rounds);
    let kernel = gpu(&device)?.kernel(&SOURCE, &[], "grow_there")?;
    let into = &mut data.pinned_into;
    data.pinned_from.lend(|from| {
        into.lend(|mut into| {
            let [count, rounds, a, b] = growth(n, rounds)?;
            let (from, into) = (part(&from.view(), &(0..n))?, part_mut(&mut into, &(0..n))?);
            // SAFETY: both parts have n values.
            unsafe { kernel.launch(covering(n), &mut [from.into(), into.into(), count, rounds, a, b]) }
        })
    })?;
    arrived(data)
}

pub(super) fn there_and_back_overlapped(config: &Config, data: &mut Data) -> Result<()> {
    let (device, rounds) = (data.to.device().clone(), data.problem.rounds);
    let cuda = gpu(&device)?;
    let part = data.to.len().div_ceil(config.get("parts")?.max(1) as usize).max(1);
    let (from, into) = (&mut data.pinned_from, &mut data.pinned_into);
    cuda.pipeline(&mut data.to, from, into, part, |values| grow(cuda, values, rounds))?;
    arrived(data)
}

/// The work on all of `to`, where it is.
fn work(data: &mut Data) -> Result<()> {
    let device = data.to.device().clone();
    grow(gpu(&device)?, data.to.cuda_mut(), data.problem.rounds)
}

fn grow(cuda: &Cuda, values: ViewMut<'_, f32>, rounds: u32) -> Result<()> {
    let n = values.len();
    let [count, rounds, a, b] = growth(n, rounds)?;
    let kernel = cuda.kernel(&SOURCE, &[], "grow")?;
    // SAFETY: there are n values.
    unsafe { kernel.launch(covering(n), &mut [values.into(), count, rounds, a, b]) }
}

/// Values, rounds, and the x + 1 that each round makes of x.
fn growth<'a>(n: usize, rounds: u32) -> Result<[Argument<'a>; 4]> {
    let rounds = i32::try_from(rounds).map_err(|_| Error::value("rounds", "at most 2³¹ − 1", rounds))?;
    Ok([(n as u64).into(), rounds.into(), 1f32.into(), 1f32.into()])
}

/// The host waits until the values have arrived, so that a run ends where they can be used.
fn arrived(data: &mut Data) -> Result<()> {
    data.ended = Some(Ended::Pinned);
    data.pinned_into.read().map(drop)
}

fn covering(n: usize) -> Launch {
    Launch::covering(n.div_ceil(EACH), THREADS)
}

fn outside(range: &Range<usize>) -> Error {
    Error::value("piece of a copy", "one of the values", format!("{range:?}"))
}

fn part<'a>(whole: &View<'a, f32>, range: &Range<usize>) -> Result<View<'a, f32>> {
    whole.part(range.start, range.len()).ok_or_else(|| outside(range))
}

fn part_mut<'a>(whole: &'a mut ViewMut<'_, f32>, range: &Range<usize>) -> Result<ViewMut<'a, f32>> {
    whole.part(range.start, range.len()).ok_or_else(|| outside(range))
}
