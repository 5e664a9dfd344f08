//! What iterative methods share: parameters, subsets of views, memory.

use rayspin_core::{Monitor, Result};
use rayspin_device::Array;
use rayspin_kernels::projection::{Operation, Problem};
use rayspin_kernels::variant::Work;
use rayspin_linop::Projection;
use rayspin_run::{Bytes, Cost, Effort, Memory, Param, Value};

use crate::analytic::note_of_truncated;
use crate::solving::{REAL, Solve, Solving, Spec};

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

/// The operator of a scan.
pub(super) fn projection(spec: &Spec<'_>) -> Result<Projection<f32>> {
    Projection::new(spec.device(), spec.geometry(), spec.grid())
}

/// The line integrals on the device.
pub(super) fn data(spec: &Spec<'_>, state: &mut Solving<'_>) -> Result<Array<f32>> {
    let lines = state.take_lines()?;
    note_of_truncated(spec.geometry(), &lines).into_iter().for_each(|note| state.note(note));
    Array::from_vec(spec.device(), &spec.geometry().shape(), lines)
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
        state.certify_projection(&projection(spec)?, &volume)?;
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

/// What a method takes that holds `volumes` volumes and `lines` times the line integrals on the device, with
/// `iterations` of a projection and its transpose each.
pub(super) fn needs(spec: &Spec<'_>, volumes: f64, lines: f64, iterations: usize) -> Result<Cost> {
    let (volume, line) = (REAL * spec.voxels()?, REAL * spec.pixels()?);
    let views = spec.geometry().views().len() as u64;
    let arrays = (volumes * volume as f64 + lines * line as f64) as u64;
    let on_device = arrays + spec.projector_bytes(views, spec.grid().shape_zyx()[0] as u64)?;
    let memory = match (spec.on_gpu(), spec.keeps_lines()) {
        // A copy of the line integrals goes to the GPU, and the volume comes back.
        (true, _) => Bytes { host: line.max(volume), gpu: on_device },
        // One of the arrays is the line integrals as they were given.
        (false, _) => Bytes::host(on_device.saturating_sub(line)),
    };
    let freed = if spec.keeps_lines() { 0 } else { line };
    let problem =
        Problem { operation: Operation::Forward, geometry: spec.geometry().clone(), grid: *spec.grid() };
    let each = Work { flops: 8.0 * problem.items(), bytes: (volume + line) as f64 };
    let effort = Effort::transforms(2 * iterations as u64, each).iterations(iterations as u64);
    Ok(Cost::of(Memory::temporary(memory).holding(Bytes::host(volume)).freeing(Bytes::host(freed)))
        .and(effort))
}

#[cfg(test)]
mod tests {
    use super::subsets;

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
