//! The steps from a frame to its samples, plans and maps, and to what methods iterate with; each with what it takes.

use rayspin_core::{Error, Result};
use rayspin_kernels::{fft, walsh};
use rayspin_linop::CoilMaps;
use rayspin_run::{Bytes, Effort, Memory, Needs, Step};

use super::points::Points;
use super::solving::{EIGENVALUE, Solving};
use super::spec::{Grid, MapSource, Place, Spec};
use super::{COMPLEX, INDEX, REAL, count};
use crate::maps;
use crate::methods::{Combine, MapUse};
use crate::prepare::{CompressionKind, mixing_needs};

/// Coil images between the operators of several sets of maps.
const SOFT_ARRAYS_GRID: u64 = 5;
const SOFT_ARRAYS_POINTS: u64 = 3;

impl<'a> Spec<'a> {
    /// All steps from the frame to its image.
    pub(crate) fn steps(&'a self) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let mut steps = self.encoding_steps();
        steps.extend(self.options().method.steps(self)?);
        Ok(steps)
    }

    /// Samples, plans and maps.
    pub(crate) fn encoding_steps(&'a self) -> Vec<Step<'a, Solving<'a>>> {
        let mut steps = Vec::new();
        match &self.place {
            Place::Grid(_) => steps.push(self.samples_to_device()),
            Place::Points(points) => self.point_steps(points, &mut steps),
        }
        if self.options().certify.is_some() {
            steps.push(
                Step::new("certify", |state: &mut Solving<'_>, _| state.certify())
                    .unless(|state| state.is_certified()),
            );
        }
        steps.extend(self.map_steps());
        steps
    }

    /// The steps that make the maps of a frame that is no image.
    pub(crate) fn maps_only(&'a self) -> Vec<Step<'a, Solving<'a>>> {
        let mut steps = Vec::new();
        match &self.place {
            Place::Grid(_) => {}
            Place::Points(points) => self.point_steps(points, &mut steps),
        }
        steps.extend(self.map_steps());
        steps
    }

    /// The steps of one frame of those that a method solves for together, up to its right-hand side and normal operator.
    pub(crate) fn frame_of_series(&'a self) -> Vec<Step<'a, Solving<'a>>> {
        let mut steps = self.encoding_steps();
        steps.extend([self.right_hand_side(), self.normal_operator()]);
        steps
    }

    /// Bytes that each further frame of a series leaves held: its right-hand side and its normal operator. Its plans make room for
    /// the next one's.
    pub(crate) fn kept_in_series(&self) -> Result<Bytes> {
        let kernels = match &self.place {
            Place::Grid(_) => Bytes::default(),
            Place::Points(points) => self.spectra(points)?,
        };
        Ok(kernels + self.arrays(self.image_bytes() + self.normal_bytes()?))
    }

    /// Bytes of the frame itself, on the host.
    pub(crate) fn frame_bytes(&self) -> Bytes {
        let own = COMPLEX * self.own_coils as u64;
        let lines = |grid: &Grid<'_>| grid.calibration.map_or(0, |lines| own * count(lines.sampled.shape()));
        Bytes::host(match &self.place {
            Place::Grid(grid) => {
                // A GPU has a copy, of some coils at a time where not all are taken at once: the frame stays.
                let frame = if self.on_gpu() { own } else { 0 };
                (frame + 1) * self.points_of_coil() + lines(grid)
            }
            Place::Points(points) => {
                let trajectory = COMPLEX * points.trajectory.dims() as u64;
                let of_grid = |(grid, _): &(Grid<'_>, Vec<usize>)| {
                    (own + COMPLEX + 1) * count(grid.sampled.shape()) + lines(grid)
                };
                let frame = if self.on_gpu() && points.grid.is_none() { own } else { 0 };
                (trajectory + frame) * self.points_of_coil() + points.grid.as_ref().map_or(0, of_grid)
            }
        })
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
                return Ok(Needs::of(Memory::held(held)));
            }
            let (own, points) = (self.own_coils as u64, self.points_of_coil());
            let line = match (&self.place, self.options().prepare.compression) {
                (Place::Grid(grid), Some(of)) if of.kind == CompressionKind::Geometric => {
                    grid.sampled.shape().last().copied().unwrap_or(1)
                }
                _ => 1,
            };
            let piece = mixing_needs(self.device().kind(), own, self.coils() as u64, points, line as u64);
            Ok(Needs::of(if self.on_gpu() {
                // Wherever samples come to the GPU.
                Memory::held(held + self.arrays(piece))
            } else {
                Memory::temporary(Bytes::host(COMPLEX * own * points + self.samples() + piece)).holding(held)
            }))
        })
    }

    /// Maps, wherever they come from.
    fn map_steps(&'a self) -> Option<Step<'a, Solving<'a>>> {
        // In an inhomogeneous field the grid's maps were estimated before it became a trajectory.
        let of_grid = matches!(&self.place, Place::Points(points) if points.grid.is_some());
        let held = move || self.maps_held();
        match self.map_source() {
            MapSource::Unused => None,
            MapSource::Estimated if !of_grid => Some(
                Step::new("coil sensitivities", Solving::estimate_maps).needs(move || match &self.place {
                    Place::Grid(grid) => self.grid_maps_needs(*grid),
                    Place::Points(points) => self.point_maps_needs(points),
                }),
            ),
            _ => Some(
                Step::silent(|state: &mut Solving<'_>, _| state.find_maps())
                    .needs(move || Ok(Needs::of(Memory::held(held()?)))),
            ),
        }
    }

    /// What the maps take all along.
    pub(super) fn maps_held(&self) -> Result<Bytes> {
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

    /// What making cut maps takes, with `images` bytes of arrays while coil images are made: their places on the GPU are taken at the
    /// end.
    pub(super) fn cut_maps_needs(&self, needs: &maps::CutNeeds, images: u64, beside: u64) -> Result<Needs> {
        let shape = [&[self.coils()], self.domain()].concat();
        let (gpu, pinned) =
            CoilMaps::<f32>::bytes_needed(self.device(), &shape, self.map_cut().map(|cut| cut.coils))?;
        let arrays = images.max(needs.solving);
        let passing = Memory::temporary(Bytes { gpu: arrays, host: needs.host.max(beside) });
        let memory = match pinned {
            0 => Memory::held(Bytes { gpu, host: 0 }).then(passing),
            _ => Memory::held(Bytes::host(pinned)).then(passing.holding(Bytes { gpu, host: 0 })),
        };
        Ok(Needs::of(memory).and(Effort::of(needs.work)))
    }

    fn grid_maps_needs(&self, grid: Grid<'_>) -> Result<Needs> {
        let (coils, domain) = (self.coils(), grid.sampled.shape());
        let held = self.maps_held()?;
        let sampled = grid.calibration.map_or(grid.sampled, |lines| &lines.sampled);
        let (width, how) = (self.options().calibration, self.options().sensitivities);
        if let Some(cut) = self.map_cut() {
            let centre = maps::Centre::of_grid(sampled, width, how)?;
            let needs = maps::cut_needs(self.device(), centre.how, centre.width, (coils, domain), cut);
            return self.cut_maps_needs(&needs, needs.images, 0);
        }
        let espirit = maps::espirit_on_grid(self.device(), sampled, width, how, coils);
        let all = self.sets() as u64 * COMPLEX * coils as u64 * count(domain);
        Ok(match espirit {
            Some(needs) => {
                let bytes = if self.on_gpu() { all + needs.gpu } else { all.max(needs.host) };
                let passing = Memory::temporary(Bytes::with_host(self.device(), bytes, needs.host));
                Needs::of(passing.holding(held)).and(Effort::of(needs.work))
            }
            None => {
                let (scratch, solve) = walsh::needs_on(self.device(), coils, domain);
                let transform = fft::Problem { shape: domain.to_vec(), batch: 1 }.work();
                Needs::of(Memory::temporary(self.arrays(2 * all + scratch)).holding(held))
                    .and(Effort::transforms(coils as u64, transform).and(solve))
            }
        })
    }

    /// The maps of a grid in an inhomogeneous field, which come back to the host, and the samples of its places.
    pub(super) fn grid_in_field(&'a self, points: &'a Points<'a>) -> Vec<Step<'a, Solving<'a>>> {
        let Some((grid, places)) = &points.grid else { return Vec::new() };
        let mut steps = Vec::new();
        if self.map_source() == MapSource::Estimated {
            let needs = move || {
                let needs = self.grid_maps_needs(*grid)?;
                let host = Bytes::host(COMPLEX * self.coils() as u64 * count(self.voxels().matrix()));
                // On the CPU they are the host's already.
                let beside = if self.on_gpu() { host } else { Bytes::default() };
                let passing = Memory::temporary(needs.memory.peak + beside).holding(host);
                Ok(Needs { memory: passing, ..needs })
            };
            steps.push(Step::new("coil sensitivities", Solving::estimate_maps_of_grid).needs(needs));
        }
        // Samples along the readout become others on the grid, beside it.
        let along =
            matches!(self.options().prepare.compression, Some(of) if of.kind == CompressionKind::Geometric);
        let needs = move || {
            let own = if along { self.coils() } else { self.own_coils } as u64;
            let s = places.len() as u64;
            let beside = if along { COMPLEX * self.coils() as u64 * count(grid.sampled.shape()) } else { 0 };
            let memory = Memory::temporary(Bytes::host(beside + (COMPLEX * own + INDEX) * s));
            Ok(Needs::of(if self.on_gpu() {
                // The grid stays until the frame is done.
                memory.holding(Bytes::host(COMPLEX * own * s))
            } else {
                let own = COMPLEX * self.own_coils as u64;
                memory.freeing(Bytes::host((own + COMPLEX + 1) * count(grid.sampled.shape())))
            }))
        };
        let take = move |state: &mut Solving<'_>, _: &rayspin_core::Monitor<'_>| state.take_places(places);
        steps.push(Step::new("trajectory of the grid", take).needs(needs));
        steps
    }

    /// Eᴴd, after which the samples are gone.
    pub fn right_hand_side(&'a self) -> Step<'a, Solving<'a>> {
        Step::new("right-hand side", |state: &mut Solving<'_>, _| state.make_rhs()).needs(move || {
            let (sets, freed) = (self.sets() as u64, self.arrays(self.samples_held()));
            let one = COMPLEX * self.voxels_of_domain();
            match &self.place {
                Place::Grid(grid) => {
                    // Several sets of maps see all coils at once.
                    let taken = if sets > 1 { self.samples_to_come() } else { self.part_of_samples() };
                    let memory = Memory::temporary(self.arrays(sets * one + taken));
                    let transform = fft::Problem { shape: grid.sampled.shape().to_vec(), batch: 1 }.work();
                    Ok(Needs::of(memory.freeing(freed).holding(self.arrays(sets * one)))
                        .and(Effort::transforms(self.coils() as u64, transform)))
                }
                Place::Points(points) => {
                    let needs = self.point_needs(points)?;
                    let all = COMPLEX * self.coils() as u64 * self.voxels_of_domain();
                    // Maps by set, and the images of all coils as they were and as they become.
                    let soft = if sets > 1 { sets * all } else { 0 };
                    let held = Memory::held(self.arrays(soft + needs.further));
                    let (part, images) = if sets > 1 {
                        (self.samples_to_come(), all)
                    } else {
                        (self.part_of_samples(), self.batch() * one)
                    };
                    // The coefficients of a temporal subspace, and one in work.
                    let all = self.coefficients().map_or(0, |k| one * k as u64);
                    let arrays = one + all + part + images + needs.passing(self.batch());
                    let memory = Memory::temporary(Bytes::with_host(self.device(), arrays, needs.beside));
                    let kept = self.arrays(all.max(sets * one));
                    Ok(Needs::of(held.then(memory.freeing(freed).holding(kept)))
                        .and(Effort::transforms(self.coils() as u64 * needs.encodings, needs.transform)))
                }
            }
        })
    }

    /// EᴴE of a method that solves for one image, FᴴF of one that goes coil by coil.
    pub fn normal_operator(&'a self) -> Step<'a, Solving<'a>> {
        Step::silent(|state: &mut Solving<'_>, _| state.make_normal())
            .needs(move || Ok(Needs::of(Memory::held(self.arrays(self.normal_bytes()?)))))
    }

    fn sees_all_coils(&self) -> bool {
        !matches!(self.uses().maps, MapUse::Combining(_))
    }

    /// Bytes that the normal operator works in, held from its first application on.
    fn normal_bytes(&self) -> Result<u64> {
        let (sets, coils) = (self.sets() as u64, self.coils() as u64);
        let n = COMPLEX * self.voxels_of_domain();
        let all = coils * n;
        Ok(match &self.place {
            Place::Grid(_) => {
                let mask = REAL * self.voxels_of_domain();
                mask + match self.sees_all_coils() {
                    // Maps by set, and what each operator hands to the next.
                    true if sets > 1 => sets * all + SOFT_ARRAYS_GRID * all,
                    true => 2 * self.batch() * n,
                    false => n,
                }
            }
            Place::Points(points) => {
                let needs = self.point_needs(points)?;
                let soft = if sets > 1 { SOFT_ARRAYS_POINTS * all } else { 0 };
                // What is turned, or made of coefficients, and what becomes of it: of all coils where several
                // sets of maps see them.
                let turned = if points.field.is_none() && points.subspace.is_none() {
                    0
                } else if sets > 1 {
                    2 * all
                } else {
                    2 * n
                };
                // With several sets of maps all coils are images at once: batch_sizes of about one size.
                let together =
                    if self.sees_all_coils() { coils.div_ceil(coils.div_ceil(self.batch())) } else { 1 };
                soft + turned + needs.convolution_bytes(self, together)?
            }
        })
    }

    /// The work of `applications` applications of the normal operator, to all images that the method solves
    /// for at once.
    pub fn normal_effort(&self, applications: u64) -> Result<Effort> {
        let coils = if self.sees_all_coils() { self.coils() as u64 } else { 1 };
        let count = coils * applications * self.frames() as u64;
        Ok(match &self.place {
            Place::Grid(grid) => {
                let transform = fft::Problem { shape: grid.sampled.shape().to_vec(), batch: 1 }.work();
                Effort::transforms(2 * count, transform)
            }
            Place::Points(points) => {
                let needs = self.point_needs(points)?;
                Effort::transforms(count * needs.convolutions, needs.convolution)
            }
        })
    }

    /// L, the largest eigenvalue of the normal operator, unless a frame before has it.
    pub fn largest_eigenvalue(&'a self) -> Step<'a, Solving<'a>> {
        Step::new("largest eigenvalue", |state: &mut Solving<'_>, _| state.find_eigenvalue())
            .unless(|state| state.has_eigenvalue())
            .needs(move || {
                let iterations = EIGENVALUE.max_iterations as u64;
                let effort = self.normal_effort(iterations)?.iterations(iterations);
                Ok(Needs::of(Memory::temporary(self.arrays(3 * self.image_bytes()))).and(effort))
            })
    }

    /// What the coils' images before they are solved for take, for a method that goes coil by coil.
    pub(crate) fn coil_images(&self) -> Result<Needs> {
        Ok(match &self.place {
            Place::Grid(grid) => {
                let transform = fft::Problem { shape: grid.sampled.shape().to_vec(), batch: 1 }.work();
                Needs::of(Memory::held(self.arrays(self.part_of_samples())))
                    .and(Effort::transforms(self.coils() as u64, transform))
            }
            Place::Points(points) => {
                let needs = self.point_needs(points)?;
                let images = COMPLEX * self.batch() * self.voxels_of_domain();
                let arrays = self.part_of_samples() + images + needs.passing(self.batch());
                let freed = if self.takes_all_coils() { self.samples() } else { 0 };
                let memory = Memory::temporary(Bytes::with_host(self.device(), arrays, needs.beside))
                    .freeing(self.arrays(freed))
                    .holding(self.arrays(images));
                Needs::of(Memory::held(self.arrays(needs.further)).then(memory))
                    .and(Effort::transforms(self.coils() as u64 * needs.encodings, needs.transform))
            }
        })
    }

    /// What gridding takes.
    pub(crate) fn gridding_needs(&self) -> Result<Needs> {
        let Place::Points(points) = &self.place else {
            return Err(Error::value("samples", "a trajectory", "a grid"));
        };
        let needs = self.point_needs(points)?;
        let (voxels, whole) = (self.voxels_of_domain(), self.takes_all_coils());
        let weighted = COMPLEX * self.batch() * self.points_of_coil();
        let images = COMPLEX * self.batch() * voxels;
        // The sum of the coils before.
        let sum = match self.options().combine() {
            _ if whole => 0,
            Combine::Maps => COMPLEX * voxels,
            Combine::RootSumOfSquares => REAL * voxels,
            Combine::None if self.on_gpu() => 0,
            Combine::None => COMPLEX * voxels * self.coils() as u64,
        };
        let gridded = (weighted + images + needs.passing(self.batch()) + sum).max(images + self.combining());
        // Taken whole, the samples are gone once they are weighted.
        let gridded = if whole { gridded.saturating_sub(self.samples()) } else { gridded };
        let arrays = (self.part_of_samples() + weighted).max(gridded);
        let beside = self.to_host() + needs.beside;
        let memory = Memory::held(self.arrays(needs.further)).then(Memory::temporary(Bytes::with_host(
            self.device(),
            arrays,
            beside,
        )));
        Ok(Needs::of(memory).and(Effort::transforms(self.coils() as u64 * needs.encodings, needs.transform)))
    }
}
