//! The steps of filtered back-projection, and its parameters.

use std::sync::Arc;

use rayspin_core::{Monitor, Result, voxels};
use rayspin_device::cpu::zeroed;
use rayspin_device::{Array, BackendKind};
use rayspin_kernels::projection::{Operation, Problem};
use rayspin_kernels::variant::Work;
use rayspin_run::{Bytes, Cost, Effort, Memory, Param, Step, Value};

use crate::analytic::{Filter, FilteredBackprojection, extension_note};
use crate::solving::{REAL, Solving, Spec, checks, lost, parts};

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

pub(super) const EXTEND: Param = Param::new(
    FILTER,
    "How rows go on beyond the detector before they are filtered, where it does not see the whole object",
)
.title("extension of rows");

/// Weights and filters all views, then projects them back, some slices at a time. A GPU that cannot hold all
/// views filters some at a time.
pub(super) fn steps<'a>(spec: &'a Spec<'a>, filter: Filter) -> Result<Vec<Step<'a, Solving<'a>>>> {
    let method = Arc::new(FilteredBackprojection::new(spec.device(), spec.geometry(), spec.grid(), filter)?);
    let sizes = Sizes::of(spec, &method)?;
    let back = method.clone();
    let filtering = move |state: &mut Solving<'a>, _: &Monitor<'_>| {
        method.notes().iter().for_each(|note| state.note(note.clone()));
        checks::note_of_seen(spec.grid(), method.seen_radius_mm())?
            .into_iter()
            .for_each(|note| state.note(note));
        let [views, rows, columns] = spec.geometry().shape();
        let (device, some) = (method.filter_device(), spec.views_at_a_time());
        let mut extended = [0; 2];
        let mut ends = |lines: &[f32], views| {
            let ends = method.ends(lines, views)?;
            extended.iter_mut().zip(ends.count()).for_each(|(sum, count)| *sum += count);
            Ok(ends)
        };
        let filtered = match sizes.filtered_on {
            FilteredOn::Host => {
                let lines = state.take_lines()?;
                let ends = ends(&lines, 0..views)?;
                let lines = Array::from_vec(device, &[views, rows, columns], lines)?;
                method.filter_extended(lines, 0..views, &ends)?
            }
            FilteredOn::Gpu => {
                let lines = state.lines(0..views)?;
                let ends = ends(&lines, 0..views)?;
                let lines = Array::from_slice(device, &[views, rows, columns], &lines)?;
                method.filter_extended(lines, 0..views, &ends)?
            }
            FilteredOn::Parts => {
                let shape = method.filtered_geometry().shape();
                let mut projections = zeroed("filtered projections", voxels(&shape)?)?;
                for (part, to) in
                    parts(views, some).into_iter().zip(projections.chunks_mut(some * shape[1] * shape[2]))
                {
                    let lines = state.lines(part.clone())?;
                    let ends = ends(&lines, part.clone())?;
                    let lines = Array::from_slice(device, &[part.len(), rows, columns], &lines)?;
                    to.copy_from_slice(&method.filter_extended(lines, part, &ends)?.read()?);
                }
                Array::from_vec(&spec.device().host(), &shape, projections)?
            }
        };
        extension_note(filter.extend, extended, views).into_iter().for_each(|note| state.note(note));
        state.filtered = Some(filtered);
        Ok(())
    };
    let project = move |state: &mut Solving<'a>, monitor: &Monitor<'_>| {
        let filtered = state.filtered.take().ok_or_else(|| lost("filtered projections"))?;
        let (slabs, views) = (spec.slabs(), spec.views_at_a_time());
        let volume = match &slabs[..] {
            [slab] => back.backproject(&filtered, slab.clone(), views)?,
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
        state.certify_backprojection(back.filtered_geometry(), &filtered, back.seen_radius_mm(), &volume)?;
        state.finish(volume);
        Ok(())
    };
    Ok(vec![
        Step::new("filter", filtering).needs(move || Ok(sizes.filter())),
        Step::new("back-projection", project).progress(spec.slabs().len()).needs(move || sizes.project(spec)),
    ])
}

/// Where line integrals are filtered, and where the filtered projections are then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilteredOn {
    /// On the CPU.
    Host,
    /// On a GPU that holds all of them.
    Gpu,
    /// On a GPU, some views at a time; then on the CPU.
    Parts,
}

/// What filtered back-projection takes.
#[derive(Clone, Copy)]
struct Sizes {
    filtered_on: FilteredOn,
    /// Bytes of the line integrals, and of the filtered projections.
    lines: u64,
    filtered: u64,
    /// Elements of a filtered row.
    columns: u64,
    views: u64,
    /// Views at a time.
    some: u64,
    /// Bytes that extensions of rows take on the host and on a GPU.
    extensions: [u64; 2],
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
        let filtered_on = match method.filter_device().kind() {
            BackendKind::Cpu => FilteredOn::Host,
            BackendKind::Cuda if spec.views_at_a_time() >= views => FilteredOn::Gpu,
            BackendKind::Cuda => FilteredOn::Parts,
        };
        // Ends of rows are found where line integrals are filtered.
        let ends = if filtered_on == FilteredOn::Parts { spec.views_at_a_time() } else { views };
        Ok(Self {
            filtered_on,
            lines: REAL * spec.pixels()?,
            filtered: REAL * voxels(&geometry.shape())? as u64,
            columns: columns as u64,
            views: views as u64,
            some: (spec.views_at_a_time() as u64).min(views as u64),
            extensions: method.extension_bytes(ends),
            kept: spec.keeps_lines(),
            updates: problem.items(),
        })
    }

    /// Bytes of some of the views.
    fn part(&self, bytes: u64) -> u64 {
        bytes / self.views * self.some
    }

    /// Bytes of the filtered projections beside the line integrals that the run began with.
    fn beside(&self) -> Bytes {
        match self.filtered_on {
            FilteredOn::Host if !self.kept && self.filtered == self.lines => Bytes::default(),
            FilteredOn::Host | FilteredOn::Parts => Bytes::host(self.filtered),
            FilteredOn::Gpu => Bytes { host: 0, gpu: self.filtered },
        }
    }

    /// Bytes of weights and places of a pixel.
    fn weights(&self, views: u64) -> u64 {
        views * REAL * (self.columns + 3)
    }

    fn filter(&self) -> Cost {
        let (also, freed) = match self.filtered_on {
            // A copy of the line integrals, which is widened.
            FilteredOn::Host if self.filtered > self.lines => match self.kept {
                true => (Bytes::host(self.lines), 0),
                false => (Bytes::default(), self.lines),
            },
            FilteredOn::Host => (Bytes::default(), 0),
            FilteredOn::Gpu => (Bytes { host: 0, gpu: self.lines }, 0),
            FilteredOn::Parts => {
                (Bytes { host: self.part(self.filtered), gpu: self.part(self.lines + self.filtered) }, 0)
            }
        };
        let weights = self.weights(self.some);
        let weights =
            Bytes { host: weights, gpu: if self.filtered_on == FilteredOn::Host { 0 } else { weights } };
        let [host, gpu] = self.extensions;
        let extensions = Bytes { host, gpu: if self.filtered_on == FilteredOn::Host { 0 } else { gpu } };
        let length = (2 * self.columns).next_power_of_two() as f64;
        let rows = self.filtered as f64 / (REAL * self.columns) as f64;
        let work = Work { flops: 5.0 * rows * length * length.log2(), bytes: 4.0 * self.filtered as f64 };
        let memory = Memory::temporary(self.beside() + also + weights + extensions)
            .holding(self.beside())
            .freeing(Bytes::host(freed));
        Cost::of(memory)
            .and(Effort::transforms(rows as u64, Work { flops: work.flops / rows, bytes: work.bytes / rows }))
    }

    fn project(&self, spec: &Spec<'_>) -> Result<Cost> {
        let slabs = spec.slabs();
        let volume = REAL * spec.voxels()?;
        let slices = slabs.iter().map(|slab| slab.len()).max().unwrap_or(0) as u64;
        let slab = volume / spec.grid().shape_zyx()[0] as u64 * slices;
        // A slab beside the volume; on a GPU one of some views beside the sum of the others.
        let beside = if slabs.len() > 1 { slab } else { 0 };
        let sums = if self.some < self.views { 2 * slab } else { slab };
        let projector = spec.backproject_bytes(self.some, slices);
        // A certificate reads the filtered projections.
        let read = if self.filtered_on == FilteredOn::Gpu && spec.certifies() { self.filtered } else { 0 };
        let uploaded = if self.filtered_on == FilteredOn::Gpu { 0 } else { self.part(self.filtered) };
        let memory = match spec.on_gpu() {
            true => Bytes { host: volume + beside + read, gpu: sums + uploaded + projector },
            false => Bytes::host(volume + beside + projector),
        };
        // The filtered projections are freed, or the copy of the line integrals in whose memory they lie.
        let freed = match self.beside() {
            Bytes { host: 0, gpu: 0 } => Bytes::host(self.lines),
            own => own,
        };
        let work = Work { flops: 10.0 * self.updates, bytes: (self.filtered + volume) as f64 };
        let memory = Memory::temporary(memory).holding(Bytes::host(volume)).freeing(freed);
        Ok(Cost::of(memory).and(Effort::transforms(
            self.views,
            Work { flops: work.flops / self.views as f64, bytes: work.bytes / self.views as f64 },
        )))
    }
}
