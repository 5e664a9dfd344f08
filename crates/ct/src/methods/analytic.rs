//! The steps of filtered back-projection, and its parameters.

use std::sync::Arc;

use rayspin_core::{Monitor, Result, voxels};
use rayspin_device::Array;
use rayspin_device::cpu::zeroed;
use rayspin_kernels::projection::{Operation, Problem};
use rayspin_kernels::variant::Work;
use rayspin_run::{Bytes, Effort, Memory, Needs, Param, Step, Value};

use crate::analytic::{Filter, FilteredBackprojection};
use crate::recon::{REAL, Solving, Spec, lost};

const FILTER: &str = "Filter";

pub(super) const WINDOW: Param = Param::new(FILTER, "Window by which the ramp filter is multiplied");

pub(super) const CUTOFF: Param = Param::new(
    FILTER,
    "Frequency at which the window ends, as a part of the highest frequency; lower values smooth",
)
.title("cutoff of the filter")
.expects("above 0 and at most 1", |value| match value {
    Value::Number(cutoff) => *cutoff > 0.0 && *cutoff <= 1.0,
    _ => false,
});

/// Weights and filters all views on the CPU, then projects them back, some slices at a time.
pub(super) fn steps<'a>(spec: &'a Spec<'a>, filter: Filter) -> Result<Vec<Step<'a, Solving<'a>>>> {
    let method = Arc::new(FilteredBackprojection::new(spec.device(), spec.geometry(), spec.grid(), filter)?);
    let sizes = Sizes::of(spec, &method)?;
    let back = method.clone();
    let filtering = move |state: &mut Solving<'a>, _: &Monitor<'_>| {
        method.notes().iter().for_each(|note| state.note(note.clone()));
        let lines = Array::from_vec(&spec.device().host(), &spec.geometry().shape(), state.take_lines()?)?;
        state.filtered = Some(method.filter(lines)?);
        Ok(())
    };
    let project = move |state: &mut Solving<'a>, monitor: &Monitor<'_>| {
        let filtered = state.filtered.take().ok_or_else(|| lost("filtered projections"))?;
        let (slabs, views) = (spec.slabs(), spec.views_at_a_time());
        let volume = match &slabs[..] {
            [all] => back.backproject(&filtered, all.clone(), views)?,
            _ => {
                let mut volume = zeroed("volume", voxels(&spec.grid().shape_zyx())?)?;
                let slice = volume.len() / spec.grid().shape_zyx()[0];
                for slab in slabs {
                    let slices = back.backproject(&filtered, slab.clone(), views)?;
                    volume[slab.start * slice..slab.end * slice].copy_from_slice(&slices);
                    monitor.step(&format!("slices {} to {}", slab.start, slab.end - 1))?;
                }
                volume
            }
        };
        state.certify_backprojection(
            back.filtered_geometry(),
            filtered.cpu(),
            back.seen_radius_mm(),
            &volume,
        )?;
        state.finish(volume);
        Ok(())
    };
    Ok(vec![
        Step::new("filter", filtering).needs(move || Ok(sizes.filter())),
        Step::new("back-projection", project).progress(spec.slabs().len()).needs(move || sizes.project(spec)),
    ])
}

/// What filtered back-projection takes.
#[derive(Clone, Copy)]
struct Sizes {
    /// Bytes of the line integrals, and of the filtered projections.
    lines: u64,
    filtered: u64,
    /// Elements of a filtered row.
    columns: u64,
    views: u64,
    /// Whether the line integrals stay for another attempt.
    kept: bool,
    /// Voxels of views.
    updates: f64,
}

impl Sizes {
    fn of(spec: &Spec<'_>, method: &FilteredBackprojection) -> Result<Self> {
        let geometry = method.filtered_geometry();
        let [views, _, columns] = geometry.shape();
        let problem =
            Problem { operation: Operation::Backproject, geometry: geometry.clone(), grid: *spec.grid() };
        Ok(Self {
            lines: REAL * spec.pixels()?,
            filtered: REAL * voxels(&geometry.shape())? as u64,
            columns: columns as u64,
            views: views as u64,
            kept: spec.keeps_lines(),
            updates: problem.items(),
        })
    }

    /// Bytes of the filtered projections beside the line integrals that the run began with.
    fn copied(&self) -> u64 {
        if self.kept || self.filtered > self.lines { self.filtered } else { 0 }
    }

    fn filter(&self) -> Needs {
        let widened = self.filtered > self.lines;
        // A copy of the line integrals, which is widened.
        let also = if widened && self.kept { self.lines } else { 0 };
        let freed = if widened && !self.kept { self.lines } else { 0 };
        let length = (2 * self.columns).next_power_of_two() as f64;
        let rows = self.filtered as f64 / (REAL * self.columns) as f64;
        let work = Work { flops: 5.0 * rows * length * length.log2(), bytes: 4.0 * self.filtered as f64 };
        let memory = Memory::temporary(Bytes::host(self.copied() + also))
            .holding(Bytes::host(self.copied()))
            .freeing(Bytes::host(freed));
        Needs::of(memory)
            .and(Effort::transforms(rows as u64, Work { flops: work.flops / rows, bytes: work.bytes / rows }))
    }

    fn project(&self, spec: &Spec<'_>) -> Result<Needs> {
        let slabs = spec.slabs();
        let volume = REAL * spec.voxels()?;
        let slices = slabs.iter().map(|slab| slab.len()).max().unwrap_or(0) as u64;
        let slab = volume / spec.grid().shape_zyx()[0] as u64 * slices;
        let views = (spec.views_at_a_time() as u64).min(self.views);
        // A slab beside the volume, and one of some views beside the sum of the others.
        let beside = if slabs.len() > 1 { slab } else { 0 } + if views < self.views { slab } else { 0 };
        let projector = spec.projector_bytes(views, slices)?;
        let memory = match spec.on_gpu() {
            true => {
                Bytes { host: volume + beside, gpu: slab + self.filtered / self.views * views + projector }
            }
            false => Bytes::host(volume + beside + projector),
        };
        // The filtered projections go; of an own copy of the line integrals its memory as well.
        let freed = if self.kept || self.filtered > self.lines { self.filtered } else { self.lines };
        let work = Work { flops: 10.0 * self.updates, bytes: (self.filtered + volume) as f64 };
        let memory = Memory::temporary(memory).holding(Bytes::host(volume)).freeing(Bytes::host(freed));
        Ok(Needs::of(memory).and(Effort::transforms(
            self.views,
            Work { flops: work.flops / self.views as f64, bytes: work.bytes / self.views as f64 },
        )))
    }
}
