//! The steps from a frame to its samples, plans and maps, and to what methods iterate with; each with what it
//! takes.

use rayspin_core::Result;
use rayspin_linop::CoilMaps;
use rayspin_run::{Bytes, Cost, Effort, Memory, Step};

use super::COMPLEX;
use super::solving::{EIGENVALUE, Solving};
use super::spec::{MapSource, Spec};
use crate::maps;
use crate::prepare::{CompressionKind, mixing_needs};

impl<'a> Spec<'a> {
    /// Samples, plans and maps; maps alone, where the frame is no image.
    pub(crate) fn encoding_steps(&'a self) -> Vec<Step<'a, Solving<'a>>> {
        let mut steps = self.kind().planning(self);
        if self.settings().certify.is_some() && !self.tells_maps_alone() {
            steps.push(
                Step::new("certify", |state: &mut Solving<'_>, _| state.certify())
                    .unless(|state| state.is_certified()),
            );
        }
        steps.extend(self.map_steps());
        steps
    }

    /// The steps of one frame of those that a method solves for together, up to its right-hand side and
    /// normal operator.
    pub(crate) fn frame_of_series(&'a self) -> Vec<Step<'a, Solving<'a>>> {
        let mut steps = self.encoding_steps();
        steps.extend([self.right_hand_side(), self.normal_operator()]);
        steps
    }

    /// Bytes that each further frame of a series leaves held: its right-hand side and its normal operator.
    /// Its plans make room for the next one's.
    pub(crate) fn kept_in_series(&self) -> Result<Bytes> {
        let held = self.image_bytes() + self.kind().normal_bytes(self)?;
        Ok(self.kind().kept_by_normal(self)? + self.arrays(held))
    }

    /// Bytes of the frame itself, on the host.
    pub(crate) fn frame_bytes(&self) -> Bytes {
        Bytes::host(self.kind().frame_bytes(self))
    }

    /// Samples come to the device, where coils become others.
    pub(super) fn samples_to_device(&'a self) -> Step<'a, Solving<'a>> {
        let (work, prepared) = (Solving::move_samples_to_device, self.will_mix_coils());
        let step = if prepared && (!self.on_gpu() || self.takes_all_coils()) {
            Step::new("coils", work)
        } else {
            Step::silent(work)
        };
        step.needs(move || {
            let held = self.arrays(self.samples_held());
            if !prepared {
                return Ok(Cost::of(Memory::held(held)));
            }
            let (own, points) = (self.own_coils as u64, self.points_of_coil());
            let line = match (self.kind().grid(), self.settings().compression) {
                (Some(grid), Some(compression)) if compression.kind == CompressionKind::Geometric => {
                    grid.sampled.shape().last().copied().unwrap_or(1)
                }
                _ => 1,
            };
            let piece = mixing_needs(self.device().kind(), own, self.coils() as u64, points, line as u64);
            Ok(Cost::of(if self.on_gpu() {
                // Wherever samples come to the GPU.
                Memory::held(held + self.arrays(piece))
            } else {
                Memory::temporary(Bytes::host(COMPLEX * own * points + self.samples() + piece)).holding(held)
            }))
        })
    }

    /// Maps, wherever they come from.
    fn map_steps(&'a self) -> Option<Step<'a, Solving<'a>>> {
        match self.map_source() {
            MapSource::Unused => None,
            MapSource::Estimated if !self.kind().estimates_maps_first() => Some(
                Step::new("coil sensitivities", |state: &mut Solving<'_>, _| state.estimate_maps())
                    .needs(move || self.kind().maps(self)),
            ),
            // Those of a frame before are held already.
            MapSource::Shared => Some(Step::silent(|state: &mut Solving<'_>, _| state.find_maps())),
            _ => Some(
                Step::silent(|state: &mut Solving<'_>, _| state.find_maps())
                    .needs(move || Ok(Cost::of(Memory::held(self.maps_held()?)))),
            ),
        }
    }

    /// What the maps take all along.
    pub(crate) fn maps_held(&self) -> Result<Bytes> {
        let shape = [&[self.coils()], self.domain()].concat();
        let (gpu, pinned) =
            CoilMaps::<f32>::bytes_needed(self.device(), &shape, self.map_cut().map(|cut| cut.coils))?;
        Ok(Bytes::with_host(self.device(), gpu, pinned) * self.sets() as u64)
    }

    /// How maps are made and kept, where a GPU does not hold the maps of all coils. A block has half the maps
    /// that the GPU may hold, because two blocks are there at once. A slab has about as many bytes.
    pub(crate) fn map_cut(&self) -> Option<maps::Cut> {
        let held = self.batch_sizes().maps.filter(|&held| held < self.coils())?;
        if !self.on_gpu() || self.sets() > 1 {
            return None;
        }
        let planes = self.domain().first().copied().unwrap_or(1);
        Some(maps::Cut { planes: (planes * held).div_ceil(2 * self.coils()), coils: (held / 2).max(1) })
    }

    /// What making cut maps takes, with `images` bytes of arrays while coil images are made: their places on
    /// the GPU are taken at the end.
    pub(super) fn cut_maps_needs(&self, needs: &maps::CutNeeds, images: u64, beside: u64) -> Result<Cost> {
        let shape = [&[self.coils()], self.domain()].concat();
        let (gpu, pinned) =
            CoilMaps::<f32>::bytes_needed(self.device(), &shape, self.map_cut().map(|cut| cut.coils))?;
        let arrays = images.max(needs.solving);
        let passing = Memory::temporary(Bytes { gpu: arrays, host: needs.host.max(beside) });
        let memory = match pinned {
            0 => Memory::held(Bytes { gpu, host: 0 }).then(passing),
            _ => Memory::held(Bytes::host(pinned)).then(passing.holding(Bytes { gpu, host: 0 })),
        };
        Ok(Cost::of(memory).and(Effort::of(needs.work)))
    }

    /// Eᴴd, after which the samples are gone.
    pub fn right_hand_side(&'a self) -> Step<'a, Solving<'a>> {
        if self.is_spread() {
            return Step::silent(|_, _| Ok(()));
        }
        Step::new("right-hand side", |state: &mut Solving<'_>, _| state.make_rhs())
            .needs(move || self.kind().right_hand_side(self))
    }

    /// EᴴE of a method that solves for one image, FᴴF of one that goes coil by coil.
    pub fn normal_operator(&'a self) -> Step<'a, Solving<'a>> {
        if self.is_spread() {
            return Step::silent(|_, _| Ok(()));
        }
        Step::silent(|state: &mut Solving<'_>, _| state.make_normal())
            .needs(move || Ok(Cost::of(Memory::held(self.arrays(self.kind().normal_bytes(self)?)))))
    }

    /// The work of `applications` applications of the normal operator, to all images that the method solves
    /// for at once.
    pub fn normal_effort(&self, applications: u64) -> Result<Effort> {
        let coils = if self.sees_all_coils() { self.coils() as u64 } else { 1 };
        self.kind().normal_effort(self, coils * applications * self.frames() as u64)
    }

    /// L, the largest eigenvalue of the normal operator, unless a frame before has it.
    pub fn largest_eigenvalue(&'a self) -> Step<'a, Solving<'a>> {
        Step::new("largest eigenvalue", |state: &mut Solving<'_>, _| state.find_eigenvalue())
            .unless(|state| state.has_eigenvalue())
            .needs(move || {
                let iterations = EIGENVALUE.max_iterations as u64;
                let effort = self.normal_effort(iterations)?.iterations(iterations);
                Ok(Cost::of(Memory::temporary(self.arrays(3 * self.image_bytes()))).and(effort))
            })
    }

    /// What the coils' images before they are solved for take, for a method that goes coil by coil.
    pub(crate) fn coil_images(&self) -> Result<Cost> {
        self.kind().coil_images(self)
    }

    /// What gridding takes.
    pub(crate) fn gridding_needs(&self) -> Result<Cost> {
        self.kind().gridding(self)
    }
}
