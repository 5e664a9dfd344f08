//! What the plans of a trajectory take.

use rayspin_core::Result;
use rayspin_kernels::nufft::{Cost as NufftCost, Nufft};
use rayspin_kernels::toeplitz::{Series, Toeplitz};
use rayspin_kernels::variant::Work;
use rayspin_kernels::{density, walsh};
use rayspin_run::{Bytes, Cost, Effort, Memory};

use super::{Counts, Modulation, Points};
use crate::encoding::known::Known;
use crate::encoding::{COMPLEX, Density, REAL, Spec, blocks};
use crate::maps;

/// What the plans of a trajectory take.
pub(super) struct PointNeeds {
    /// The NUFFT's plan, held.
    pub(super) plan: u64,
    /// While it is made.
    pub(super) planning: u64,
    /// Its fine grid and buffers, held from the first transform on.
    pub(super) workspace: u64,
    /// Further ones, held from the first transform of several coils on.
    pub(super) further: u64,
    /// While transforms are done by blocks; and on the host beside a GPU.
    by_blocks: u64,
    pub(super) beside: u64,
    /// One transform of one item.
    pub(super) transform: Work,
    pub(super) counts: Counts,
    /// One convolution of one item.
    pub(super) convolution: Work,
}

impl PointNeeds {
    fn new<M: Modulation>(spec: &Spec<'_>, points: &Points<'_, M>) -> Result<Self> {
        let (device, trajectory, matrix) = (spec.device(), &points.trajectory, points.matrix);
        let options = blocks::settled(device, spec.settings().nufft_tolerance, matrix, trajectory.samples())?;
        let known = spec.known();
        let needs =
            Known::find(known, "NUFFT", 0, || Nufft::<f32>::needs(device, trajectory, matrix, &options))?;
        let counts = points.modulation.counts(spec.settings(), points.count(), points.voxels())?;
        let convolution = Toeplitz::<f32>::work(matrix);
        let NufftCost { plan, planning, workspace, transform, .. } = needs;
        let whole = Self {
            plan,
            planning,
            workspace,
            further: needs.batch(spec.batch() as usize) - workspace,
            by_blocks: 0,
            beside: 0,
            transform,
            counts,
            convolution,
        };
        Ok(match points.split(spec) {
            None => whole,
            Some(at_once) => {
                let (by_blocks, beside) = Known::find(known, "NUFFT", at_once, || {
                    blocks::needs(device, trajectory, matrix, &options, at_once)
                })?;
                Self { plan: 0, planning: 0, workspace: 0, further: 0, by_blocks, beside, ..whole }
            }
        })
    }

    /// Bytes that transforming `coils` coils together takes besides images and samples.
    pub(super) fn passing(&self, coils: u64) -> u64 {
        self.by_blocks + coils * self.counts.of_coil
    }

    /// The work of encoding `coils` coils.
    pub(super) fn transforms(&self, coils: u64) -> Effort {
        Effort::transforms(coils * self.counts.encodings, self.transform)
    }
}

impl<M: Modulation> Points<'_, M> {
    /// What is known of the trajectory's plans, found once.
    pub(super) fn point_needs(&self, spec: &Spec<'_>) -> Result<&PointNeeds> {
        if let Some(needs) = self.needs.get() {
            return Ok(needs);
        }
        let needs = PointNeeds::new(spec, self)?;
        Ok(self.needs.get_or_init(|| needs))
    }

    /// Points planned at once, where that is not all of them. Then the host computes the centre of k-space
    /// for the maps: a GPU has no room for a plan of all points.
    pub(super) fn split(&self, spec: &Spec<'_>) -> Option<usize> {
        spec.batch_sizes().points.filter(|&points| points < self.trajectory.samples())
    }

    /// Bytes of the workspace for the convolutions of `coils` coils at once.
    pub(super) fn convolution_bytes(&self, spec: &Spec<'_>, coils: u64) -> Result<u64> {
        Toeplitz::<f32>::bytes_of_work(spec.device(), self.matrix, coils as usize)
    }

    /// The density iteration.
    pub(super) fn density_needs(&self, spec: &Spec<'_>) -> Result<Cost> {
        let (device, matrix, trajectory) = (spec.device(), self.matrix, &self.trajectory);
        let s = self.count();
        if spec.settings().density == Density::Radial {
            return Ok(Cost::of(Memory::temporary(Bytes::with_host(device, REAL * s, REAL * s))));
        }
        let known = spec.known();
        let whole = || density::pipe_menon_needs(device, trajectory, matrix);
        let whole = Known::find(known, "density", 0, whole)?;
        let (arrays, beside) = match self.split(spec) {
            None => (whole.planning.max(whole.plan + whole.workspace + 2 * COMPLEX * s), 0),
            Some(at_once) => Known::find(known, "density", at_once, || {
                density::pipe_menon_by_blocks_needs(device, trajectory, matrix, at_once)
            })?,
        };
        let iterations = spec.settings().density_iterations as u64;
        let effort = Effort::of(whole.spreading).times(2 * iterations).iterations(iterations);
        Ok(Cost::of(Memory::temporary(Bytes::with_host(device, arrays, beside))).and(effort))
    }

    /// Bytes of the kernels' spectra, where they lie.
    pub(super) fn spectra(&self, spec: &Spec<'_>) -> Result<Bytes> {
        let (count, cut) =
            (self.point_needs(spec)?.counts.convolutions as usize, spec.batch_sizes().segments);
        let (held, pinned) = Series::<f32>::bytes_needed_on(spec.device(), self.matrix, count, cut)?;
        Ok(spec.arrays(held) + Bytes::host(pinned))
    }

    /// The kernels of the normal operator, and where their spectra lie.
    pub(super) fn kernel_needs(&self, spec: &Spec<'_>) -> Result<Cost> {
        let (device, matrix) = (spec.device(), self.matrix);
        let needs = self.point_needs(spec)?;
        let convolutions = needs.counts.convolutions;
        let making = Toeplitz::<f32>::bytes_of_making(device, matrix)?;
        let filling = Toeplitz::<f32>::from_adjoint_needs(device, self.trajectory.samples(), matrix)?;
        // The host holds the weights of all convolutions, and one convolution's. The convolution in work
        // takes its own weights again, and the weighted phases.
        let table = self.modulation.table(self.count(), convolutions);
        let weights = if M::MULTIPLIES { (REAL + COMPLEX) * self.count() } else { 0 };
        let spectra = |count: u64| {
            Series::<f32>::bytes_needed_on(device, matrix, count as usize, spec.batch_sizes().segments)
        };
        let ((held, pinned), (others, _)) = (spectra(convolutions)?, spectra(convolutions - 1)?);
        // Those made before have no work buffer yet; all but one are where they stay.
        let before = if pinned > 0 { held } else { others };
        let on_host = if spec.on_gpu() { 0 } else { table };
        let arrays = (filling + needs.by_blocks).max(making) + before + weights + on_host;
        // What a GPU does not hold comes to the host.
        let memory = Memory::held(Bytes::host(pinned)).then(
            Memory::temporary(Bytes::with_host(device, arrays, needs.beside + table))
                .holding(spec.arrays(held)),
        );
        let blocks = 1u64 << (matrix.len() - 1);
        Ok(Cost::of(memory).and(Effort::transforms(blocks * convolutions, needs.transform)))
    }

    /// The maps of samples anywhere.
    pub(super) fn maps_needs(&self, spec: &Spec<'_>) -> Result<Cost> {
        let (device, matrix, coils) = (spec.device(), self.matrix, spec.coils());
        let n = COMPLEX * self.voxels();
        let coil_bytes = coils as u64 * n;
        let width = spec.settings().calibration.unwrap_or(maps::DEFAULT_WIDTH);
        let how = spec.settings().sensitivities.unwrap_or(maps::Sensitivities::Walsh);
        let on_host = self.split(spec).is_some();
        let (region, beside) = Known::find(spec.known(), "centre", usize::from(on_host), || {
            maps::region_needs(device, &self.trajectory, matrix, coils, width, on_host)
        })?;
        if let Some(cut) = spec.map_cut() {
            let cut = maps::cut_needs(device, how, width, coils, matrix, cut);
            return spec.cut_maps_needs(&cut, region.max(cut.images), beside);
        }
        let (solving, on_host, solve) = match maps::espirit_needs(device, how, width, coils, matrix) {
            Some(espirit) => {
                let own = if spec.on_gpu() { espirit.gpu } else { espirit.host };
                (espirit.sets * coil_bytes + own, beside.max(espirit.host), espirit.work)
            }
            None => {
                let (scratch, solve) = walsh::needs_on(device, coils, matrix);
                (2 * coil_bytes + scratch, beside, solve)
            }
        };
        let memory = Memory::temporary(Bytes::with_host(device, region.max(solving), on_host));
        Ok(Cost::of(memory.holding(spec.maps_held()?)).and(Effort::of(solve)))
    }
}
