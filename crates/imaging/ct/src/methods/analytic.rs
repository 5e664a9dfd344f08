//! The steps of filtered back-projection, and its parameters.

use std::ops::Range;
use std::sync::Arc;

use rayspin_core::{Monitor, Result, voxels};
use rayspin_device::cpu::{prefer_huge_pages, zeroed};
use rayspin_device::{Array, BackendKind, Device, at_once};
use rayspin_kernels::projection::{Operation, Problem};
use rayspin_kernels::variant::Work;
use rayspin_run::{Bytes, Cost, Effort, Memory, Param, Step, Value};

use crate::analytic::{Ends, Filter, FilteredBackprojection, extension_note};
use crate::solving::{REAL, Slab, Solving, Spec, checks, lost, parts};

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

/// What one device does: it filters rows of the detector, and projects them back to slices of the volume.
struct Part {
    method: Arc<FilteredBackprojection>,
    rows: Range<usize>,
    planes: Range<usize>,
    sizes: Sizes,
}

impl Part {
    /// All rows and slices of one device. Of several, each takes some slices and filters the rows on which
    /// these fall. Rows that several devices need are filtered by each of them: sharing them would send more
    /// bytes between devices than the host sends twice.
    fn all(spec: &Spec<'_>, whole: &Arc<FilteredBackprojection>) -> Result<Vec<Self>> {
        let ([_, rows, _], slices) = (spec.geometry().shape(), spec.grid().shape_zyx()[0]);
        if !spec.is_shared() {
            let sizes = Sizes::of(spec, whole, 0..slices)?;
            return Ok(vec![Self { method: whole.clone(), rows: 0..rows, planes: 0..slices, sizes }]);
        }
        let one = |(device, planes): (&Device, Range<usize>)| {
            let rows = whole.rows_of(&planes);
            let method = whole.of_rows(device, rows.clone()).map_err(|error| device.named(error))?;
            let sizes = Sizes::of(spec, &method, planes.clone())?;
            Ok(Self { method: Arc::new(method), rows, planes, sizes })
        };
        spec.devices().iter().zip(spec.shares(slices)).map(one).collect()
    }

    /// The line integrals of its rows in some views, where they are filtered.
    fn lines(&self, state: &Solving<'_>, views: Range<usize>) -> Result<Array<f32>> {
        let ([_, _, columns], device) = (state.geometry().shape(), self.method.filter_device());
        let mut lines = Array::unset(device, &[views.len(), self.rows.len(), columns])?;
        let of_views = views.map(|view| state.lines_of_rows(view..view + 1, self.rows.clone()));
        let of_views: Vec<_> = of_views.collect::<Result<_>>()?;
        lines.set_pieces(&of_views.iter().map(|values| &values[..]).collect::<Vec<_>>())?;
        Ok(lines)
    }

    /// Its filtered projections.
    fn filter(&self, spec: &Spec<'_>, state: &Solving<'_>, ends: &Ends) -> Result<Array<f32>> {
        let [views, _, _] = spec.geometry().shape();
        if self.sizes.filtered_on != FilteredOn::Parts {
            return self.method.filter_extended(self.lines(state, 0..views)?, 0..views, ends);
        }
        let (shape, some) = (self.method.filtered_geometry().shape(), spec.views_at_a_time());
        let mut projections = zeroed("filtered projections", voxels(&shape)?)?;
        for (part, to) in
            parts(views, some).into_iter().zip(projections.chunks_mut(some * shape[1] * shape[2]))
        {
            let (lines, ends) = (self.lines(state, part.clone())?, ends.part(part.clone()));
            to.copy_from_slice(&self.method.filter_extended(lines, part, &ends)?.read()?);
        }
        Array::from_vec(&spec.device().host(), &shape, projections)
    }
}

/// Weights and filters all views, then projects them back, some slices at a time. A GPU that cannot hold all
/// views filters some at a time. Several devices each make a slab of the volume.
pub(super) fn steps<'a>(spec: &'a Spec<'a>, filter: Filter) -> Result<Vec<Step<'a, Solving<'a>>>> {
    // What finds the ends of rows; it filters none of them where several devices do.
    let host = spec.device().host();
    let device = if spec.is_shared() { &host } else { spec.device() };
    let whole = Arc::new(FilteredBackprojection::new(device, spec.geometry(), spec.grid(), filter)?);
    let all = Arc::new(Part::all(spec, &whole)?);
    let [filters, projects, filter_needs, filter_beside, project_needs, project_beside] =
        std::array::from_fn(|_| all.clone());
    let slabs = spec.slabs(&all[0].planes).len();
    let filtering = move |state: &mut Solving<'a>, _: &Monitor<'_>| {
        whole.notes().iter().for_each(|note| state.note(note.clone()));
        checks::note_of_seen(spec.grid(), whole.seen_radius_mm())?
            .into_iter()
            .for_each(|note| state.note(note));
        let [views, rows, columns] = spec.geometry().shape();
        let mut ends = Ends::default();
        for part in parts(views, spec.views_at_a_time()) {
            ends.append(whole.ends(&state.lines(part.clone())?, part)?);
        }
        state.filtered = match &filters[..] {
            [one] if one.sizes.filtered_on == FilteredOn::Host => {
                let lines = state.take_lines()?;
                let lines = Array::from_vec(one.method.filter_device(), &[views, rows, columns], lines)?;
                vec![one.method.filter_extended(lines, 0..views, &ends)?]
            }
            several => {
                let from = &*state;
                at_once(spec.devices(), several, |_, part| part.filter(spec, from, &ends))?
            }
        };
        extension_note(filter.extend, ends.count(), views).into_iter().for_each(|note| state.note(note));
        Ok(())
    };
    let project = move |state: &mut Solving<'a>, monitor: &Monitor<'_>| {
        let (filtered, views) = (std::mem::take(&mut state.filtered), spec.views_at_a_time());
        if filtered.len() != projects.len() {
            return Err(lost("filtered projections"));
        }
        let (volume, finite) = match &projects[..] {
            // Its memory becomes the volume.
            [one] if slabs == 1 && spec.device().kind() == BackendKind::Cpu => {
                (one.method.backproject(&filtered[0], one.planes.clone(), views)?, false)
            }
            several => {
                let mut volume = zeroed("volume", voxels(&spec.grid().shape_zyx())?)?;
                prefer_huge_pages(&mut volume);
                let slice = volume.len() / spec.grid().shape_zyx()[0];
                let (mut rest, mut work) = (&mut volume[..], Vec::with_capacity(several.len()));
                for (part, filtered) in several.iter().zip(&filtered) {
                    let (own, others) = rest.split_at_mut(part.planes.len() * slice);
                    work.push((part, filtered, own));
                    rest = others;
                }
                let finite = at_once(spec.devices(), work, |index, (part, filtered, own)| {
                    let mut finite = true;
                    for slab in spec.slabs(&part.planes) {
                        let first = (slab.start - part.planes.start) * slice;
                        let slices = &mut own[first..first + slab.len() * slice];
                        finite &= part.method.backproject_to(filtered, slab.clone(), views, slices)?;
                        match index {
                            0 if slabs > 1 => {
                                monitor.step(&format!("slices {} to {}", slab.start, slab.end - 1))?;
                            }
                            _ => monitor.check()?,
                        }
                    }
                    Ok(finite)
                })?;
                (volume, finite.into_iter().all(|finite| finite))
            }
        };
        let made: Vec<Slab<'_>> = projects
            .iter()
            .zip(&filtered)
            .map(|(part, filtered)| Slab {
                geometry: part.method.filtered_geometry(),
                filtered,
                planes: part.planes.clone(),
            })
            .collect();
        state.certify_backprojection(&made, projects[0].method.seen_radius_mm(), &volume)?;
        state.finish_looked_at(volume, finite);
        Ok(())
    };
    let filter_memory = |part: &Part| Ok(part.sizes.filter().memory);
    let project_memory = move |part: &Part| Ok(part.sizes.project(spec, false)?.memory);
    Ok(vec![
        Step::new("filter", filtering)
            .needs(move || Ok(together(filter_needs.iter().map(|part| part.sizes.filter()))))
            .beside(move || filter_beside[1..].iter().map(filter_memory).collect()),
        Step::new("back-projection", project)
            .progress(slabs)
            .needs(move || {
                let costs = project_needs.iter().enumerate();
                let costs = costs.map(|(index, part)| part.sizes.project(spec, index == 0));
                Ok(together(costs.collect::<Result<Vec<_>>>()?))
            })
            .beside(move || project_beside[1..].iter().map(project_memory).collect()),
    ])
}

/// The memory of the first device, and the work of all.
fn together(costs: impl IntoIterator<Item = Cost>) -> Cost {
    let all = costs.into_iter().reduce(|all, one| Cost { effort: all.effort.plus(one.effort), ..all });
    all.unwrap_or_default()
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
#[derive(Clone)]
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
    /// The slices of the volume that it makes.
    planes: Range<usize>,
}

impl Sizes {
    fn of(spec: &Spec<'_>, method: &FilteredBackprojection, planes: Range<usize>) -> Result<Self> {
        let geometry = method.filtered_geometry();
        let [views, rows, columns] = geometry.shape();
        let grid = spec.grid().slab(planes.start, planes.len())?;
        let problem = Problem { operation: Operation::Backproject, geometry: geometry.clone(), grid };
        let filtered_on = match method.filter_device().kind() {
            BackendKind::Cpu => FilteredOn::Host,
            BackendKind::Cuda if spec.views_at_a_time() >= views => FilteredOn::Gpu,
            BackendKind::Cuda => FilteredOn::Parts,
        };
        Ok(Self {
            filtered_on,
            lines: REAL * voxels(&[views, rows, spec.geometry().detector().columns])? as u64,
            filtered: REAL * voxels(&geometry.shape())? as u64,
            columns: columns as u64,
            views: views as u64,
            some: (spec.views_at_a_time() as u64).min(views as u64),
            extensions: method.extension_bytes(views),
            kept: spec.keeps_lines(),
            updates: problem.items(),
            planes,
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

    /// The first device's part counts the volume on the host.
    fn project(&self, spec: &Spec<'_>, first: bool) -> Result<Cost> {
        let slabs = spec.slabs(&self.planes);
        let slice = REAL * spec.voxels()? / spec.grid().shape_zyx()[0] as u64;
        let volume = if first { REAL * spec.voxels()? } else { 0 };
        let slices = slabs.iter().map(|slab| slab.len()).max().unwrap_or(0) as u64;
        let slab = slice * slices;
        // On the CPU a slab beside the volume; on a GPU one of some views beside the sum of the others.
        let beside = if slabs.len() > 1 || spec.is_shared() { slab } else { 0 };
        let sums = if self.some < self.views { 2 * slab } else { slab };
        let projector = spec.backproject_bytes(self.some, slices);
        // A certificate reads the filtered projections.
        let read = if self.filtered_on == FilteredOn::Gpu && spec.certifies() { self.filtered } else { 0 };
        let uploaded = if self.filtered_on == FilteredOn::Gpu { 0 } else { self.part(self.filtered) };
        let memory = match spec.on_gpu() {
            true => Bytes { host: volume + read, gpu: sums + uploaded + projector },
            false => Bytes::host(volume + beside + projector),
        };
        // The filtered projections are freed, or the copy of the line integrals in whose memory they lie.
        let freed = match self.beside() {
            Bytes { host: 0, gpu: 0 } => Bytes::host(self.lines),
            own => own,
        };
        let work = Work {
            flops: 10.0 * self.updates,
            bytes: (self.filtered + slice * self.planes.len() as u64) as f64,
        };
        let memory = Memory::temporary(memory).holding(Bytes::host(volume)).freeing(freed);
        Ok(Cost::of(memory).and(Effort::transforms(
            self.views,
            Work { flops: work.flops / self.views as f64, bytes: work.bytes / self.views as f64 },
        )))
    }
}
