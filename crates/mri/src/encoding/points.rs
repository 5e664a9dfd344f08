//! Samples anywhere: what their plans take, and the steps that make them.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use ndarray::ArrayD;
use rayspin_core::{Result, Trajectory};
use rayspin_kernels::nufft::{Needs as NufftNeeds, Nufft};
use rayspin_kernels::off_resonance::Segments;
use rayspin_kernels::toeplitz::{Series, Toeplitz};
use rayspin_kernels::variant::Work;
use rayspin_kernels::{density, walsh};
use rayspin_run::{Bytes, Effort, Memory, Needs, Step};

use super::off_resonance::Interpolators;
use super::plans::{Extent, Plans};
use super::solving::Solving;
use super::spec::{Grid, MapSource, Spec};
use super::subspace::Frames;
use super::{COMPLEX, REAL, blocks, count};
use crate::maps;
use crate::recon::Density;

/// Samples along a trajectory.
pub(super) struct Points<'a> {
    pub(super) trajectory: Trajectory,
    pub(super) field: Option<Field<'a>>,
    /// The frames that they are of, over a temporal subspace.
    pub(super) subspace: Option<Frames<'a>>,
    /// The grid that they are of, in an inhomogeneous field, and their places there.
    pub(super) grid: Option<(Grid<'a>, Vec<usize>)>,
}

/// The map of an inhomogeneous field, and when samples are taken.
pub(super) struct Field<'a> {
    pub(super) map: &'a ArrayD<f32>,
    pub(super) times: Cow<'a, [f64]>,
    /// The lowest and the highest frequency of all frames.
    pub(super) range: [f64; 2],
}

/// What planning found of a frame's trajectory on a device, for plans of the same frame with other batch sizes: sorting millions
/// of points takes a good part of a second.
#[derive(Default)]
pub struct Known(RefCell<BTreeMap<Part, Box<dyn Any>>>);

/// The part of the plans, and the number of points at once.
type Part = (&'static str, usize);

impl Known {
    /// The known value of a part for `points` points at once. Calls `find` if it is not known yet.
    fn find<T: Clone + 'static>(
        known: Option<&Self>,
        part: &'static str,
        points: usize,
        find: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(Self(parts)) = known else { return find() };
        if let Some(found) = parts.borrow().get(&(part, points)).and_then(|found| found.downcast_ref::<T>()) {
            return Ok(found.clone());
        }
        let found = find()?;
        parts.borrow_mut().insert((part, points), Box::new(found.clone()));
        Ok(found)
    }
}

/// What the plans of a trajectory take.
pub(super) struct PointNeeds {
    /// The NUFFT's plan, held.
    plan: u64,
    /// While it is made.
    planning: u64,
    /// Its fine grid and buffers, held from the first transform on.
    workspace: u64,
    /// Further ones, held from the first transform of several coils on.
    pub(super) further: u64,
    /// While transforms are done by blocks; and on the host beside a GPU.
    by_blocks: u64,
    pub(super) beside: u64,
    /// One transform of one item.
    pub(super) transform: Work,
    /// Bytes of arrays of their own for each coil: its image and samples of an inhomogeneous field's
    /// segments, its weighted samples of a temporal subspace.
    segment: u64,
    /// Transforms of an encoding, and convolutions of a normal operator.
    pub(super) encodings: u64,
    pub(super) convolutions: u64,
    /// One convolution of one item.
    pub(super) convolution: Work,
}

impl PointNeeds {
    pub(super) fn new(spec: &Spec<'_>, points: &Points<'_>) -> Result<Self> {
        let (device, trajectory, matrix) = (spec.device(), &points.trajectory, spec.domain());
        let of = blocks::settled(device, spec.options().nufft_tolerance, matrix, trajectory.samples())?;
        let known = spec.known();
        let needs = Known::find(known, "NUFFT", 0, || Nufft::<f32>::needs(device, trajectory, matrix, &of))?;
        let (mut segment, mut encodings, mut convolutions) = (0, 1, 1);
        if let Some(field) = &points.field {
            let found = Interpolators::new(field.range, &field.times, spec.options().field_tolerance)?;
            encodings = found.encoding.segments() as u64;
            convolutions = found.normal.segments() as u64;
            segment = COMPLEX * (count(matrix) + trajectory.samples() as u64);
        }
        if let Some(frames) = &points.subspace {
            encodings = frames.basis.coefficients() as u64;
            convolutions = frames.basis.spectra() as u64;
            segment = COMPLEX * trajectory.samples() as u64;
        }
        let convolution = Toeplitz::<f32>::work(matrix);
        let NufftNeeds { plan, planning, workspace, transform, .. } = needs;
        let whole = Self {
            plan,
            planning,
            workspace,
            further: needs.batch(spec.batch() as usize) - workspace,
            by_blocks: 0,
            beside: 0,
            transform,
            segment,
            encodings,
            convolutions,
            convolution,
        };
        Ok(match split(spec, trajectory) {
            None => whole,
            Some(at_once) => {
                let (by_blocks, beside) = Known::find(known, "NUFFT", at_once, || {
                    blocks::needs(device, trajectory, matrix, &of, at_once)
                })?;
                Self { plan: 0, planning: 0, workspace: 0, further: 0, by_blocks, beside, ..whole }
            }
        })
    }

    /// Bytes that transforming `coils` coils together takes besides images and samples.
    pub(super) fn passing(&self, coils: u64) -> u64 {
        self.by_blocks + coils * self.segment
    }

    /// Bytes of the workspace for the convolutions of `coils` coils at once.
    pub(super) fn convolution_bytes(&self, spec: &Spec<'_>, coils: u64) -> Result<u64> {
        Toeplitz::<f32>::bytes_of_work(spec.device(), spec.domain(), coils as usize)
    }
}

/// Points planned at once, where that is not all of them.
fn split(spec: &Spec<'_>, trajectory: &Trajectory) -> Option<usize> {
    spec.batch_sizes().points.filter(|&points| points < trajectory.samples())
}

impl<'a> Spec<'a> {
    /// Whether plans weigh samples by their density: to grid, or to estimate maps from them.
    pub(super) fn needs_density(&self) -> bool {
        self.uses().density || self.map_source() == MapSource::Estimated
    }

    /// Whether the host computes the centre of k-space for the maps: where a GPU has no room for a plan of all points.
    pub(super) fn centre_on_host(&self, trajectory: &Trajectory) -> bool {
        split(self, trajectory).is_some()
    }

    pub(super) fn needs_normal(&self) -> bool {
        self.uses().normal
    }

    /// Samples and plans of a trajectory. On the CPU coils become fewer before memory is taken for plans; on a GPU they come once
    /// there are plans.
    pub(super) fn point_steps(&'a self, points: &'a Points<'a>, steps: &mut Vec<Step<'a, Solving<'a>>>) {
        steps.extend(self.grid_in_field(points));
        if !self.on_gpu() {
            steps.push(self.samples_to_device());
        }
        if points.field.is_some() {
            steps.push(self.plan_step("time segments", Plans::plan_segments, points, move || {
                self.segment_needs(points)
            }));
        }
        if let Some(frames) = &points.subspace {
            steps.push(self.plan_step("temporal subspace", Plans::plan_subspace, points, move || {
                Ok(frames.needs(self))
            }));
        }
        steps.push(self.plan_step("NUFFT plan", Plans::plan_nufft, points, move || {
            let needs = self.point_needs(points)?;
            let memory = Memory::temporary(self.arrays(needs.planning)).holding(self.arrays(needs.plan));
            Ok(Needs::of(memory))
        }));
        if self.needs_density() {
            steps.push(self.plan_step("density", Plans::plan_density, points, move || {
                let held = self.arrays(REAL * points.trajectory.samples() as u64);
                let needs = self.density_needs(points)?;
                Ok(Needs { memory: needs.memory.holding(held), ..needs })
            }));
        }
        // The plan's workspace is made for the first transform, and kept.
        steps
            .push(Step::silent(|_, _| Ok(())).needs(move || {
                Ok(Needs::of(Memory::held(self.arrays(self.point_needs(points)?.workspace))))
            }));
        if self.needs_normal() {
            steps.push(
                self.plan_step("Toeplitz kernel", Plans::plan_normal, points, move || {
                    self.kernel_needs(points)
                }),
            );
        }
        if self.on_gpu() {
            steps.push(self.samples_to_device());
        }
    }

    /// A step of planning, which is left out where plans of a frame before do.
    fn plan_step(
        &'a self,
        name: &'static str,
        plan: fn(&mut Plans, &Extent<'_>) -> Result<()>,
        points: &'a Points<'a>,
        needs: impl FnOnce() -> Result<Needs> + 'a,
    ) -> Step<'a, Solving<'a>> {
        let work = move |state: &mut Solving<'a>, _: &rayspin_core::Monitor<'_>| {
            let extent = Extent {
                device: self.device(),
                matrix: self.domain(),
                trajectory: &points.trajectory,
                field: points.field.as_ref(),
                subspace: points.subspace.as_ref(),
                options: self.options(),
                normal: self.needs_normal(),
            };
            state.plan(|plans| plan(plans, &extent))
        };
        Step::new(name, work).once().unless(Solving::has_plans).needs(needs)
    }

    fn segment_needs(&self, points: &Points<'_>) -> Result<Needs> {
        let Some(field) = &points.field else { return Ok(Needs::default()) };
        let table = Segments::<f32>::bytes_needed(&field.times, self.point_needs(points)?.encodings as usize);
        let held = REAL * count(self.domain()) + table;
        let times = Bytes::host(COMPLEX * field.times.len() as u64);
        let memory =
            Memory::held(times).then(Memory::temporary(self.arrays(2 * held)).holding(self.arrays(held)));
        Ok(Needs::of(memory))
    }

    /// The density iteration.
    fn density_needs(&self, points: &Points<'_>) -> Result<Needs> {
        let (device, matrix, trajectory) = (self.device(), self.domain(), &points.trajectory);
        let s = trajectory.samples() as u64;
        if self.options().density == Density::Radial {
            return Ok(Needs::of(Memory::temporary(Bytes::with_host(device, REAL * s, REAL * s))));
        }
        let known = self.known();
        let whole = || density::pipe_menon_needs(device, trajectory, matrix);
        let whole = Known::find(known, "density", 0, whole)?;
        let (arrays, beside) = match split(self, trajectory) {
            None => (whole.planning.max(whole.plan + whole.workspace + 2 * COMPLEX * s), 0),
            Some(at_once) => Known::find(known, "density", at_once, || {
                density::pipe_menon_by_blocks_needs(device, trajectory, matrix, at_once)
            })?,
        };
        let iterations = self.options().density_iterations as u64;
        let effort = Effort::of(whole.spreading).times(2 * iterations).iterations(iterations);
        Ok(Needs::of(Memory::temporary(Bytes::with_host(device, arrays, beside))).and(effort))
    }

    /// Bytes of the kernels' spectra, where they lie.
    pub(super) fn spectra(&self, points: &Points<'_>) -> Result<Bytes> {
        let (count, cut) = (self.point_needs(points)?.convolutions as usize, self.batch_sizes().segments);
        let (held, pinned) = Series::<f32>::bytes_needed_on(self.device(), self.domain(), count, cut)?;
        Ok(self.arrays(held) + Bytes::host(pinned))
    }

    /// The kernels of the normal operator, and where their spectra lie.
    fn kernel_needs(&self, points: &Points<'_>) -> Result<Needs> {
        let (device, matrix) = (self.device(), self.domain());
        let needs = self.point_needs(points)?;
        let s = points.trajectory.samples();
        let making = Toeplitz::<f32>::bytes_of_making(device, matrix)?;
        let filling = Toeplitz::<f32>::from_adjoint_needs(device, s, matrix)?;
        let s = s as u64;
        // The host holds complex weights in double precision and an index per sample, for all segments, and
        // one segment's weights. The segment in work takes its own weights again, and the weighted phases.
        let (table, weights) = match &points.field {
            None if points.subspace.is_some() => (REAL * s, (REAL + COMPLEX) * s),
            None => (0, 0),
            Some(field) => (
                2 * Segments::<f32>::bytes_needed(&field.times, needs.convolutions as usize) + REAL * s,
                (REAL + COMPLEX) * s,
            ),
        };
        let spectra = |count: u64| {
            Series::<f32>::bytes_needed_on(device, matrix, count as usize, self.batch_sizes().segments)
        };
        let ((held, pinned), (others, _)) = (spectra(needs.convolutions)?, spectra(needs.convolutions - 1)?);
        // Those made before have no work buffer yet; all but one are where they stay.
        let before = if pinned > 0 { held } else { others };
        let on_host = if self.on_gpu() { 0 } else { table };
        let arrays = (filling + needs.by_blocks).max(making) + before + weights + on_host;
        // What a GPU does not hold comes to the host.
        let memory = Memory::held(Bytes::host(pinned)).then(
            Memory::temporary(Bytes::with_host(device, arrays, needs.beside + table))
                .holding(self.arrays(held)),
        );
        let blocks = 1u64 << (matrix.len() - 1);
        Ok(Needs::of(memory).and(Effort::transforms(blocks * needs.convolutions, needs.transform)))
    }

    /// The maps of samples anywhere.
    pub(super) fn point_maps_needs(&self, points: &Points<'_>) -> Result<Needs> {
        let (device, matrix, coils) = (self.device(), self.domain(), self.coils());
        let n = COMPLEX * count(matrix);
        let all = coils as u64 * n;
        let width = self.options().calibration.unwrap_or(maps::DEFAULT_WIDTH);
        let how = self.options().sensitivities.unwrap_or(maps::Sensitivities::Walsh);
        let on_host = self.centre_on_host(&points.trajectory);
        let (region, beside) = Known::find(self.known(), "centre", usize::from(on_host), || {
            maps::region_needs(device, &points.trajectory, matrix, coils, width, on_host)
        })?;
        if let Some(cut) = self.map_cut() {
            let cut = maps::cut_needs(device, how, width, (coils, matrix), cut);
            return self.cut_maps_needs(&cut, region.max(cut.images), beside);
        }
        let (solving, on_host, solve) = match maps::espirit_needs(device, how, width, coils, matrix) {
            Some(espirit) => {
                let own = if self.on_gpu() { espirit.gpu } else { espirit.host };
                (espirit.sets * all + own, beside.max(espirit.host), espirit.work)
            }
            None => {
                let (scratch, solve) = walsh::needs_on(device, coils, matrix);
                (2 * all + scratch, beside, solve)
            }
        };
        let memory = Memory::temporary(Bytes::with_host(device, region.max(solving), on_host));
        Ok(Needs::of(memory.holding(self.maps_held()?)).and(Effort::of(solve)))
    }
}
