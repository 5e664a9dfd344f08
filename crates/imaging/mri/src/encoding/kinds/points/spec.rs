//! Points before anything is allocated: their steps, and what a run with them takes.

use rayspin_core::{Monitor, Result};
use rayspin_run::{Bytes, Cost, Effort, Memory, Step};

use super::{Modulation, Plans, Points};
use crate::encoding::kinds::{Encoding, EncodingSpec, Scale, as_kind};
use crate::encoding::solving::Solving;
use crate::encoding::spec::MapSource;
use crate::encoding::{COMPLEX, Combine, INDEX, REAL, Spec, count};
use crate::prepare::CompressionKind;

/// Coil images between the operators of several sets of maps.
const SOFT_ARRAYS: u64 = 3;

impl<M: Modulation> Points<'_, M> {
    /// A step of planning, which is left out where plans of a frame before do.
    fn plan_step<'s>(
        &'s self,
        spec: &'s Spec<'s>,
        name: &'static str,
        plan: fn(&Self, &Spec<'_>, &mut Plans<M::Plans>) -> Result<()>,
        needs: impl FnOnce() -> Result<Cost> + 's,
    ) -> Step<'s, Solving<'s>> {
        let work = move |state: &mut Solving<'s>, _: &Monitor<'_>| plan(self, spec, state.encoding_as()?);
        Step::new(name, work).once().unless(Solving::has_plans).needs(needs)
    }

    /// The maps of a grid, which come back to the host, and the samples of its places.
    fn before_plans<'s>(&'s self, spec: &'s Spec<'s>) -> Vec<Step<'s, Solving<'s>>> {
        let Some((grid, places)) = &self.grid else { return Vec::new() };
        let mut steps = Vec::new();
        if spec.map_source() == MapSource::Estimated {
            let needs = move || {
                let needs = grid.maps_needs(spec)?;
                let host = Bytes::host(COMPLEX * spec.coils() as u64 * self.voxels());
                // On the CPU they are the host's already.
                let beside = if spec.on_gpu() { host } else { Bytes::default() };
                let passing = Memory::temporary(needs.memory.peak + beside).holding(host);
                Ok(Cost { memory: passing, ..needs })
            };
            let estimate = move |state: &mut Solving<'s>, _: &Monitor<'_>| state.estimate_maps_of_grid(*grid);
            steps.push(Step::new("coil sensitivities", estimate).needs(needs));
        }
        // Samples along the readout become others on the grid, beside it.
        let along = matches!(spec.settings().compression, Some(compression) if compression.kind == CompressionKind::Geometric);
        let needs = move || {
            let own = if along { spec.coils() } else { spec.own_coils } as u64;
            let s = places.len() as u64;
            let beside = if along { COMPLEX * spec.coils() as u64 * count(grid.sampled.shape()) } else { 0 };
            let memory = Memory::temporary(Bytes::host(beside + (COMPLEX * own + INDEX) * s));
            Ok(Cost::of(if spec.on_gpu() {
                // The grid stays until the frame is done.
                memory.holding(Bytes::host(COMPLEX * own * s))
            } else {
                let own = COMPLEX * spec.own_coils as u64;
                memory.freeing(Bytes::host((own + COMPLEX + 1) * count(grid.sampled.shape())))
            }))
        };
        let take = move |state: &mut Solving<'s>, _: &Monitor<'_>| state.take_places(places);
        steps.push(Step::new("trajectory of the grid", take).needs(needs));
        steps
    }
}

impl<M: Modulation> EncodingSpec for Points<'_, M> {
    fn domain(&self) -> &[usize] {
        self.matrix
    }

    fn samples(&self) -> u64 {
        self.count()
    }

    fn coefficients(&self) -> Option<usize> {
        self.modulation.coefficients()
    }

    fn scale(&self, voxels: f64) -> Scale {
        Scale::Arriving(voxels)
    }

    fn frame_bytes(&self, spec: &Spec<'_>) -> u64 {
        let own = COMPLEX * spec.own_coils as u64;
        let trajectory = COMPLEX * self.trajectory.dims() as u64;
        let (frame, of_grid) = match &self.grid {
            None => (if spec.on_gpu() { own } else { 0 }, 0),
            Some((grid, _)) => {
                (0, (own + COMPLEX + 1) * count(grid.sampled.shape()) + grid.calibration_bytes(own))
            }
        };
        (trajectory + frame) * self.count() + of_grid
    }

    fn unplanned(&self) -> Box<dyn Encoding> {
        Box::new(Plans::<M::Plans>::default())
    }

    fn reuse(&self, spec: &Spec<'_>, before: Box<dyn Encoding>) -> Result<Option<Box<dyn Encoding>>> {
        let Some(mut plans) = as_kind::<Plans<M::Plans>>(before) else { return Ok(None) };
        Ok(if plans.take_over(spec, self)? { Some(plans) } else { None })
    }

    /// On the CPU coils become fewer before memory is taken for plans; on a GPU they come once there are
    /// plans.
    fn planning<'s>(&'s self, spec: &'s Spec<'s>) -> Vec<Step<'s, Solving<'s>>> {
        let mut steps = self.before_plans(spec);
        if !spec.on_gpu() {
            steps.push(spec.samples_to_device());
        }
        steps.push(self.plan_step(spec, M::STEP, Self::plan_modulation, move || {
            if !M::MULTIPLIES {
                return Ok(Cost::default());
            }
            Ok(self.modulation.needs(spec, self.point_needs(spec)?.counts.encodings))
        }));
        steps.push(self.plan_step(spec, "NUFFT plan", Self::plan_nufft, move || {
            let needs = self.point_needs(spec)?;
            let memory = Memory::temporary(spec.arrays(needs.planning)).holding(spec.arrays(needs.plan));
            Ok(Cost::of(memory))
        }));
        if spec.needs_density() {
            steps.push(self.plan_step(spec, "density", Self::plan_density, move || {
                let held = spec.arrays(REAL * self.count());
                let needs = self.density_needs(spec)?;
                Ok(Cost { memory: needs.memory.holding(held), ..needs })
            }));
        }
        // The plan's workspace is made for the first transform, and kept.
        steps.push(
            Step::silent(|_, _| Ok(()))
                .needs(move || Ok(Cost::of(Memory::held(spec.arrays(self.point_needs(spec)?.workspace))))),
        );
        if spec.needs_normal() {
            steps.push(
                self.plan_step(spec, "Toeplitz kernel", Self::plan_normal, move || self.kernel_needs(spec)),
            );
        }
        if spec.on_gpu() {
            steps.push(spec.samples_to_device());
        }
        steps
    }

    fn estimates_maps_first(&self) -> bool {
        self.grid.is_some()
    }

    fn maps(&self, spec: &Spec<'_>) -> Result<Cost> {
        self.maps_needs(spec)
    }

    fn right_hand_side(&self, spec: &Spec<'_>) -> Result<Cost> {
        let needs = self.point_needs(spec)?;
        let (sets, freed) = (spec.sets() as u64, spec.arrays(spec.samples_held()));
        let one = COMPLEX * self.voxels();
        let coil_bytes = one * spec.coils() as u64;
        // Maps by set, and the images of all coils as they were and as they become.
        let soft = if sets > 1 { sets * coil_bytes } else { 0 };
        let held = Memory::held(spec.arrays(soft + needs.further));
        let (part, images) = if sets > 1 {
            (spec.samples_to_come(), coil_bytes)
        } else {
            (spec.part_of_samples(), spec.batch() * one)
        };
        // The coefficients of a temporal subspace, and one in work.
        let coefficient_bytes = self.coefficients().map_or(0, |k| one * k as u64);
        let arrays = one + coefficient_bytes + part + images + needs.passing(spec.batch());
        let memory = Memory::temporary(Bytes::with_host(spec.device(), arrays, needs.beside));
        let kept = spec.arrays(coefficient_bytes.max(sets * one));
        Ok(Cost::of(held.then(memory.freeing(freed).holding(kept)))
            .and(needs.transforms(spec.coils() as u64)))
    }

    fn normal_bytes(&self, spec: &Spec<'_>) -> Result<u64> {
        let (sets, coils) = (spec.sets() as u64, spec.coils() as u64);
        let n = COMPLEX * self.voxels();
        let coil_bytes = coils * n;
        let soft = if sets > 1 { SOFT_ARRAYS * coil_bytes } else { 0 };
        // What is multiplied, and what becomes of it: of all coils where several sets of maps see them.
        let multiplied = match M::MULTIPLIES {
            false => 0,
            true if sets > 1 => 2 * coil_bytes,
            true => 2 * n,
        };
        // With several sets of maps all coils are images at once: batch sizes of about one size.
        let together = if spec.sees_all_coils() { coils.div_ceil(coils.div_ceil(spec.batch())) } else { 1 };
        Ok(soft + multiplied + self.convolution_bytes(spec, together)?)
    }

    fn normal_effort(&self, spec: &Spec<'_>, count: u64) -> Result<Effort> {
        let needs = self.point_needs(spec)?;
        Ok(Effort::transforms(count * needs.counts.convolutions, needs.convolution))
    }

    fn kept_by_normal(&self, spec: &Spec<'_>) -> Result<Bytes> {
        self.spectra(spec)
    }

    fn coil_images(&self, spec: &Spec<'_>) -> Result<Cost> {
        let needs = self.point_needs(spec)?;
        let images = COMPLEX * spec.batch() * self.voxels();
        let arrays = spec.part_of_samples() + images + needs.passing(spec.batch());
        let freed = if spec.takes_all_coils() { spec.samples() } else { 0 };
        let memory = Memory::temporary(Bytes::with_host(spec.device(), arrays, needs.beside))
            .freeing(spec.arrays(freed))
            .holding(spec.arrays(images));
        Ok(Cost::of(Memory::held(spec.arrays(needs.further)).then(memory))
            .and(needs.transforms(spec.coils() as u64)))
    }

    fn gridding(&self, spec: &Spec<'_>) -> Result<Cost> {
        let needs = self.point_needs(spec)?;
        let (voxels, whole) = (self.voxels(), spec.takes_all_coils());
        let weighted = COMPLEX * spec.batch() * self.count();
        let images = COMPLEX * spec.batch() * voxels;
        // The sum of the coils before.
        let sum = match spec.settings().combine {
            _ if whole => 0,
            Combine::Maps => COMPLEX * voxels,
            Combine::RootSumOfSquares => REAL * voxels,
            Combine::None if spec.on_gpu() => 0,
            Combine::None => COMPLEX * voxels * spec.coils() as u64,
        };
        let gridded = (weighted + images + needs.passing(spec.batch()) + sum).max(images + spec.combining());
        // Taken whole, the samples are gone once they are weighted.
        let gridded = if whole { gridded.saturating_sub(spec.samples()) } else { gridded };
        let arrays = (spec.part_of_samples() + weighted).max(gridded);
        let beside = spec.to_host() + needs.beside;
        let memory = Memory::held(spec.arrays(needs.further)).then(Memory::temporary(Bytes::with_host(
            spec.device(),
            arrays,
            beside,
        )));
        Ok(Cost::of(memory).and(needs.transforms(spec.coils() as u64)))
    }
}
