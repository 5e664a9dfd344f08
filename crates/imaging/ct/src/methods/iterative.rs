//! What iterative methods share: parameters, subsets of views, memory.

use std::ops::Range;
use std::sync::Arc;

use rayspin_core::{Monitor, Result};
use rayspin_device::{Array, Device, at_once};
use rayspin_kernels::projection::{Operation, Problem};
use rayspin_kernels::variant::Work;
use rayspin_linop::{Across, AcrossDevices, LinearOp as _, Op, Projection};
use rayspin_run::{Bytes, Cost, Effort, Memory, Param, Value};
use rayspin_solve::{Part, Subset};

use super::Shared;
use crate::analytic::note_of_truncated;
use crate::solving::{REAL, Solve, Solving, Spec, lost};

const ITERATION: &str = "Iterations";
const PENALTY: &str = "Penalty";

pub(super) const ITERATIONS: Param = Param::new(ITERATION, "Largest number of iterations")
    .short('i')
    .expects("1 to 100000", |value| matches!(value, Value::Count(1..=100_000)));

pub(super) const TOLERANCE: Param = Param::new(
    ITERATION,
    "Relative residual (TV: relative change) at which iterations stop; 0 runs all of them",
)
.expects("0 <= tolerance < 1", |value| match value {
    Value::Number(tolerance) => (0.0..1.0).contains(tolerance),
    _ => false,
});

pub(super) const RELAXATION: Param =
    Param::new(ITERATION, "Part of the full step that each update takes; less is slower and less noisy")
        .expects("above 0 and below 2", |value| match value {
            Value::Number(relaxation) => *relaxation > 0.0 && *relaxation < 2.0,
            _ => false,
        });

pub(super) const SUBSETS: Param = Param::new(
    ITERATION,
    "Number of subsets of views, each of which updates the volume; at most the number of views",
)
.expects("1 to 100000", |value| matches!(value, Value::Count(1..=100_000)));

pub(super) const LAMBDA: Param = Param::new(
    PENALTY,
    "Weight of the penalty, relative to the largest eigenvalue of AᵀA and to the volume's brightness (99th percentile)",
)
.short('l')
.expects("a finite number >= 0", |value| match value {
    Value::Number(lambda) => *lambda >= 0.0 && lambda.is_finite(),
    _ => false,
});

/// The projections and line integrals of each subset of views, and within it of each device.
pub(super) type OfSubsets = Vec<Vec<(Projection<f32>, Array<f32>)>>;

/// Shares the views of each subset among the devices, which get their line integrals.
pub(super) fn parts(spec: &Spec<'_>, state: &mut Solving<'_>, subsets: &[Vec<usize>]) -> Result<OfSubsets> {
    let [all, rows, columns] = spec.geometry().shape();
    let devices = spec.devices();
    let note = note_of_truncated(spec.geometry(), &state.lines(0..all)?);
    note.into_iter().for_each(|note| state.note(note));
    if let ([device], [_]) = (devices, subsets)
        && !spec.keeps_lines()
    {
        let data = Array::from_vec(device, &spec.geometry().shape(), state.take_lines()?)?;
        return Ok(vec![vec![(Projection::new(device, spec.geometry(), spec.grid())?, data)]]);
    }
    let from = &*state;
    let on_device = |index: usize, ()| -> Result<Vec<_>> {
        let device = &devices[index];
        let of_subset = |(number, views): (usize, &Vec<usize>)| {
            let own = &views[share(views.len(), number, index, devices.len())];
            let geometry = spec.geometry().select(own.iter().copied())?;
            let mut data = Array::zeros(device, &geometry.shape())?;
            for (to, &view) in own.iter().enumerate() {
                data.set_part(to * rows * columns, &from.lines(view..view + 1)?)?;
            }
            Ok((Projection::new(device, &geometry, spec.grid())?, data))
        };
        subsets.iter().enumerate().map(of_subset).collect()
    };
    let of_devices = at_once(devices, devices.iter().map(|_| ()), on_device)?;
    if !spec.keeps_lines() {
        drop(state.take_lines()?);
    }
    let mut of_subsets: OfSubsets = subsets.iter().map(|_| Vec::with_capacity(devices.len())).collect();
    for of_device in of_devices {
        of_subsets.iter_mut().zip(of_device).for_each(|(subset, part)| subset.push(part));
    }
    Ok(of_subsets)
}

/// The same as solvers take it.
pub(super) fn in_subsets(parts: &OfSubsets) -> Vec<Subset<'_, f32>> {
    parts
        .iter()
        .map(|subset| Subset::of_parts(subset.iter().map(|(op, data)| Part { op, data }).collect()))
        .collect()
}

/// AᵀA and Aᵀp, on the first device. Each device projects along the rays of its views.
pub(super) fn normal_equations(spec: &Spec<'_>, state: &mut Solving<'_>) -> Result<(Op<f32>, Array<f32>)> {
    let all = subsets(spec.geometry().views().len(), 1);
    let parts: Vec<_> = parts(spec, state, &all)?.into_iter().flatten().collect();
    let (projections, data): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let shape = spec.grid().shape_zyx();
    let mut rhs = Array::zeros(spec.device(), &shape)?;
    let none = Array::zeros(spec.device(), &shape)?;
    let across = Across::new(spec.devices(), &shape)?;
    across.sum(&none, &mut rhs, |index, _, rhs| projections[index].adjoint_into(&data[index], rhs))?;
    drop((none, data));
    let normals = projections.into_iter().map(|project| -> Op<f32> { Arc::new(project.normal_op()) });
    let mut parts: Vec<_> = spec.devices().iter().cloned().zip(normals.map(Some)).collect();
    // One device's operator may be recorded.
    let normal = match &mut parts[..] {
        [(_, normal)] => normal.take().ok_or_else(|| lost("projection"))?,
        _ => Arc::new(AcrossDevices::new(parts)?),
    };
    Ok((normal, rhs))
}

/// Stores the volume and the course of the iterations. Certifies the volume first if the run certifies.
pub(super) fn finish(
    spec: &Spec<'_>,
    state: &mut Solving<'_>,
    volume: Array<f32>,
    solve: Solve,
    monitor: &Monitor<'_>,
) -> Result<()> {
    monitor.check()?;
    if state.certifies() {
        let values = volume.read()?;
        let mut lines =
            at_once(spec.devices(), spec.shares(spec.geometry().views().len()), |index, views| {
                let device = &spec.devices()[index];
                let project = Projection::<f32>::new(device, &spec.geometry().select(views)?, spec.grid())?;
                match index {
                    0 => project.forward(&volume)?.into_vec(),
                    _ => project.forward(&Array::from_slice(device, volume.shape(), &values)?)?.into_vec(),
                }
            })?;
        let lines = if lines.len() == 1 { lines.remove(0) } else { lines.concat() };
        state.certify_projection(&lines, &values);
    }
    state.finish(volume.into_vec()?);
    state.solved(solve);
    Ok(())
}

/// Views of each of `count` subsets: every `count`-th one. The subsets follow one another by the golden
/// section, so that neighbours in time look from directions far apart.
pub(super) fn subsets(views: usize, count: usize) -> Vec<Vec<usize>> {
    let count = count.clamp(1, views.max(1));
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| {
        let place = |index: usize| (index as f64 * 0.618_033_988_749_894_9).fract();
        place(*a).total_cmp(&place(*b))
    });
    order.into_iter().map(|first| (first..views).step_by(count).collect()).collect()
}

/// The part of a subset of `count` views that device `index` of `devices` takes. Which devices take one view
/// more changes from subset to subset.
pub(super) fn share(count: usize, subset: usize, index: usize, devices: usize) -> Range<usize> {
    let part = (index + subset) % devices;
    part * count / devices..(part + 1) * count / devices
}

/// Views of each device, of all subsets.
fn views_of_each(spec: &Spec<'_>, subsets: usize) -> Vec<usize> {
    Shared { subsets, ..Shared::views(spec.geometry().views().len()) }.of_each(spec.devices().len())
}

/// What a method takes that holds `volumes` volumes on the first device and `lines` times the line integrals
/// on all of them, in so many subsets, with `iterations` of a projection and its transpose each.
pub(super) fn needs(
    spec: &Spec<'_>,
    volumes: f64,
    (lines, subsets): (f64, usize),
    iterations: usize,
) -> Result<Cost> {
    let (volume, line) = (REAL * spec.voxels()?, REAL * spec.pixels()?);
    let views = views_of_each(spec, subsets)[0];
    let on_device = (volumes * volume as f64) as u64 + of_views(spec, lines, views)? + of_sum(spec)?.0;
    let memory = match (spec.on_gpu(), spec.keeps_lines()) {
        // A copy of the line integrals goes to the GPU, and the volume comes back.
        (true, _) => Bytes { host: line.max(volume), gpu: on_device },
        (false, true) => Bytes::host(on_device),
        // One of the arrays is the line integrals as they were given.
        (false, false) => Bytes::host(on_device.saturating_sub(line)),
    };
    let freed = if spec.keeps_lines() { 0 } else { line };
    let problem =
        Problem { operation: Operation::Forward, geometry: spec.geometry().clone(), grid: *spec.grid() };
    let each = Work { flops: 8.0 * problem.items(), bytes: (volume + line) as f64 };
    let effort = Effort::transforms(2 * iterations as u64, each).iterations(iterations as u64);
    Ok(Cost::of(Memory::temporary(memory).holding(Bytes::host(volume)).freeing(Bytes::host(freed)))
        .and(effort))
}

/// What each device beside the first takes for the same.
pub(super) fn beside(spec: &Spec<'_>, (lines, subsets): (f64, usize)) -> Result<Vec<Memory>> {
    let others = spec.devices().iter().zip(views_of_each(spec, subsets)).skip(1);
    let one = |(device, views): (&Device, usize)| {
        let bytes = of_views(spec, lines, views)? + of_sum(spec)?.1;
        Ok(Memory::temporary(Bytes::on(device, bytes)))
    };
    others.map(one).collect()
}

/// Bytes of `lines` times the line integrals of some views, and of their projector.
fn of_views(spec: &Spec<'_>, lines: f64, views: usize) -> Result<u64> {
    let [all, slices] = [spec.geometry().views().len(), spec.grid().shape_zyx()[0]];
    let line = (REAL * spec.pixels()?) as f64 * views as f64 / all as f64;
    Ok((lines * line) as u64 + spec.projector_bytes(views as u64, slices as u64)?)
}

/// Bytes that sums over devices take, on the first device and on each other one.
fn of_sum(spec: &Spec<'_>) -> Result<(u64, u64)> {
    Ok(match spec.is_shared() {
        true => Across::<f32>::bytes(spec.devices().len(), spec.voxels()? as usize),
        false => (0, 0),
    })
}

#[cfg(test)]
mod tests {
    use super::{Shared, share, subsets};

    #[test]
    fn devices_take_about_as_many_views_of_all_subsets() {
        for (views, count, devices) in
            [(100, 15, 4), (90, 15, 4), (180, 15, 8), (101, 7, 3), (13, 4, 3), (9, 1, 4)]
        {
            let shared = Shared { subsets: count, ..Shared::views(views) };
            let each = shared.of_each(devices);
            assert_eq!(each.iter().sum::<usize>(), views);
            assert!(
                each.iter().max().unwrap() - each.iter().min().unwrap() <= 2,
                "{views} {count}: {each:?}"
            );
            for (number, subset) in subsets(views, count).iter().enumerate() {
                let mut own: Vec<_> = (0..devices).map(|k| share(subset.len(), number, k, devices)).collect();
                own.sort_by_key(|range| range.start);
                assert_eq!(own.into_iter().flatten().collect::<Vec<_>>(), Vec::from_iter(0..subset.len()));
            }
        }
    }

    #[test]
    fn every_view_is_in_one_subset() {
        for (views, count) in [(1, 1), (7, 3), (10, 10), (5, 9), (360, 20)] {
            let parts = subsets(views, count);
            assert_eq!(parts.len(), count.min(views));
            let mut all = parts.concat();
            all.sort_unstable();
            assert_eq!(all, (0..views).collect::<Vec<_>>());
        }
    }
}
