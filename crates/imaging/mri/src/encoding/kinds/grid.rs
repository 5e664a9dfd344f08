//! Samples on a grid in a homogeneous field: F is an FFT.
//!
//! ```text
//! (Fρ)(k) = P(k) M^{−1/2} Σ_x ρ(x) e^{−i2πk·x} = (N/√M) d(k),   FᴴF = F⁻¹ P F
//! ```
//!
//! F is unitary over the M places of the grid, and P is 1 where they were measured. The image has N voxels
//! and ρ is a density, so that samples are multiplied by N/√M. The grid may be larger than the image: what is
//! solved for lies on the grid, and is cut to the image at the end.

use std::sync::Arc;

use ndarray::{Array2, ArrayD};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Result, Trajectory};
use rayspin_device::Array;
use rayspin_kernels::fft::{self, Fft, Norm};
use rayspin_kernels::variant::Work;
use rayspin_kernels::{nudft, walsh};
use rayspin_linop::{CoilMaps, Fourier, GridNormal, LinearOp, SamplingMask};
use rayspin_run::{Bytes, Certify, Cost, Effort, Memory, Step, draws, errors};

use super::{Encoding, EncodingSpec, Given, Row, Scale, Seen, as_kind};
use crate::encoding::samples::CoilSamples;
use crate::encoding::solving::Solving;
use crate::encoding::{COMPLEX, Certificate, Extent, REAL, Spec, count};
use crate::maps::{self, Centre};
use crate::prepare::Mixing;
use crate::scan::CalibrationLines;

pub(super) const ROW: Row = Row {
    encodes: |on_grid, _| on_grid,
    on_grid: true,
    place: "for a scan on the grid",
    spec,
    extent: |_, _| Extent::default(),
    #[cfg(test)]
    examples,
};

fn spec<'a>(given: &Given<'a>) -> Result<Box<dyn EncodingSpec + 'a>> {
    Ok(Box::new(given.inputs.expect_grid()?))
}

/// Relative l2 error that an FFT in single precision is to meet.
pub const FFT_TOLERANCE: f64 = 1e-6;

/// Coil images between the operators of several sets of maps.
const SOFT_ARRAYS: u64 = 5;

/// Samples of a grid.
#[derive(Clone, Copy)]
pub(crate) struct Grid<'a> {
    /// Where it was measured.
    pub(crate) sampled: &'a ArrayD<bool>,
    /// Lines of a scan of their own.
    pub(crate) calibration: Option<&'a CalibrationLines>,
}

impl Grid<'_> {
    /// The work of one transform.
    fn transform(&self) -> Work {
        fft::Problem { shape: self.sampled.shape().to_vec(), batch: 1 }.work()
    }

    /// Bytes of calibration lines, with this number of bytes at each place.
    pub(super) fn calibration_bytes(&self, own: u64) -> u64 {
        self.calibration.map_or(0, |lines| own * count(lines.sampled.shape()))
    }

    /// Maps from the centre of k-space of samples `[coil, grid…]`, or of the calibration lines, and what a
    /// run says of them.
    pub(in crate::encoding) fn estimate_maps(
        &self,
        spec: &Spec<'_>,
        samples: &CoilSamples<'_>,
        mixing: Option<&Mixing>,
    ) -> Result<(CoilMaps<f32>, String)> {
        let settings = spec.settings();
        let (width, how) = (settings.calibration, settings.sensitivities);
        let (region, centre) = match self.calibration {
            Some(lines) => {
                let centre = Centre::of_grid(&lines.sampled, width, how)?;
                let own = CoilSamples::on_host(spec.device(), lines.kspace.view().into(), mixing);
                (own.centre(centre.width)?, centre)
            }
            None => {
                let centre = Centre::of_grid(self.sampled, width, how)?;
                (samples.centre(centre.width)?, centre)
            }
        };
        let coil_maps = maps::from_grid(region, self.sampled.shape(), &centre, spec.map_cut())?;
        let note = format!(
            "coil sensitivities from the central {} lines of {} by {} (`--calibration`, `--sensitivities` or `--maps` overrides)",
            centre.width,
            if self.calibration.is_some() { "the calibration readouts" } else { "k-space" },
            centre.how.name()
        );
        Ok((coil_maps, note))
    }

    /// What [`Self::estimate_maps`] takes.
    pub(super) fn maps_needs(&self, spec: &Spec<'_>) -> Result<Cost> {
        let (coils, domain) = (spec.coils(), self.sampled.shape());
        let held = spec.maps_held()?;
        let sampled = self.calibration.map_or(self.sampled, |lines| &lines.sampled);
        let (width, how) = (spec.settings().calibration, spec.settings().sensitivities);
        if let Some(cut) = spec.map_cut() {
            let centre = Centre::of_grid(sampled, width, how)?;
            let needs = maps::cut_needs(spec.device(), centre.how, centre.width, coils, domain, cut);
            return spec.cut_maps_needs(&needs, needs.images, 0);
        }
        let espirit = maps::espirit_on_grid(spec.device(), sampled, width, how, coils);
        let map_bytes = spec.sets() as u64 * COMPLEX * coils as u64 * count(domain);
        Ok(match espirit {
            Some(needs) => {
                let bytes = if spec.on_gpu() { map_bytes + needs.gpu } else { map_bytes.max(needs.host) };
                let passing = Memory::temporary(Bytes::with_host(spec.device(), bytes, needs.host));
                Cost::of(passing.holding(held)).and(Effort::of(needs.work))
            }
            None => {
                let (scratch, solve) = walsh::needs_on(spec.device(), coils, domain);
                Cost::of(Memory::temporary(spec.arrays(2 * map_bytes + scratch)).holding(held))
                    .and(Effort::transforms(coils as u64, self.transform()).and(solve))
            }
        })
    }
}

impl EncodingSpec for Grid<'_> {
    fn domain(&self) -> &[usize] {
        self.sampled.shape()
    }

    fn samples(&self) -> u64 {
        count(self.sampled.shape())
    }

    fn grid(&self) -> Option<Grid<'_>> {
        Some(*self)
    }

    fn scale(&self, voxels: f64) -> Scale {
        Scale::Transformed(voxels / (self.samples() as f64).sqrt())
    }

    fn frame_bytes(&self, spec: &Spec<'_>) -> u64 {
        let own = COMPLEX * spec.own_coils as u64;
        // A GPU has a copy, of some coils at a time where not all are taken at once: the frame stays.
        let frame = if spec.on_gpu() { own } else { 0 };
        (frame + 1) * self.samples() + self.calibration_bytes(own)
    }

    fn unplanned(&self) -> Box<dyn Encoding> {
        Box::new(Transform { shape: self.sampled.shape().to_vec(), fft: None })
    }

    fn reuse(&self, _: &Spec<'_>, before: Box<dyn Encoding>) -> Result<Option<Box<dyn Encoding>>> {
        let before = as_kind::<Transform>(before).filter(|before| before.shape == self.sampled.shape());
        Ok(before.map(|before| before as Box<dyn Encoding>))
    }

    fn planning<'s>(&'s self, spec: &'s Spec<'s>) -> Vec<Step<'s, Solving<'s>>> {
        // Maps come from the centre, wherever that is.
        if spec.tells_maps_alone() { Vec::new() } else { vec![spec.samples_to_device()] }
    }

    fn maps(&self, spec: &Spec<'_>) -> Result<Cost> {
        self.maps_needs(spec)
    }

    fn right_hand_side(&self, spec: &Spec<'_>) -> Result<Cost> {
        let (sets, freed) = (spec.sets() as u64, spec.arrays(spec.samples_held()));
        let one = COMPLEX * self.samples();
        // Several sets of maps see all coils at once.
        let taken = if sets > 1 { spec.samples_to_come() } else { spec.part_of_samples() };
        let memory = Memory::temporary(spec.arrays(sets * one + taken));
        Ok(Cost::of(memory.freeing(freed).holding(spec.arrays(sets * one)))
            .and(Effort::transforms(spec.coils() as u64, self.transform())))
    }

    fn normal_bytes(&self, spec: &Spec<'_>) -> Result<u64> {
        let sets = spec.sets() as u64;
        let n = COMPLEX * self.samples();
        let coil_bytes = spec.coils() as u64 * n;
        let mask = REAL * self.samples();
        Ok(mask
            + match spec.sees_all_coils() {
                // Maps by set, and what each operator hands to the next.
                true if sets > 1 => sets * coil_bytes + SOFT_ARRAYS * coil_bytes,
                true => 2 * spec.batch() * n,
                false => n,
            })
    }

    fn normal_effort(&self, _: &Spec<'_>, count: u64) -> Result<Effort> {
        Ok(Effort::transforms(2 * count, self.transform()))
    }

    fn coil_images(&self, spec: &Spec<'_>) -> Result<Cost> {
        Ok(Cost::of(Memory::held(spec.arrays(spec.part_of_samples())))
            .and(Effort::transforms(spec.coils() as u64, self.transform())))
    }
}

/// The FFT of a grid, made for the first transform.
struct Transform {
    shape: Vec<usize>,
    fft: Option<Fft<f32>>,
}

impl Encoding for Transform {
    fn adjoint(&mut self, spec: &Spec<'_>, mut samples: Array<C32>) -> Result<Array<C32>> {
        let fft = match &self.fft {
            Some(fft) => fft,
            None => self.fft.insert(Fft::new(spec.device(), &self.shape, Norm::Unitary)?),
        };
        fft.inverse(&mut samples)?;
        Ok(samples)
    }

    fn normal(&self, spec: &Spec<'_>, seen: Seen) -> Result<Arc<dyn LinearOp<C32>>> {
        let (device, sampled) = (spec.device(), spec.expect_grid()?.sampled.view());
        Ok(match seen {
            Seen::Alone => Arc::new(GridNormal::new(device, sampled, None, None)?),
            Seen::Coils(maps) => {
                Arc::new(GridNormal::new(device, sampled, Some(maps), spec.batch_sizes().coils)?)
            }
            Seen::Sets(soft) => {
                let encode = SamplingMask::new(device, soft.range(), sampled)?
                    .compose(Fourier::new(device, &[spec.coils()], spec.domain())?)?
                    .compose(soft)?;
                Arc::new(encode.normal_op())
            }
        })
    }

    /// The inverse FFT of one coil's k-space.
    fn certify(&self, _: &Spec<'_>, certify: &Certify, kspace: &CoilSamples<'_>) -> Result<Vec<Certificate>> {
        let mut rng = ChaCha8Rng::seed_from_u64(certify.seed);
        let shape = kspace.of_coil();
        let coil = rng.random_range(0..kspace.coils());
        let mut image = kspace.part(&(coil..coil + 1))?.reshape(shape)?;
        let conjugate: Vec<C32> = image.read()?.iter().map(|v| v.conj()).collect();
        Fft::new(kspace.device(), shape, Norm::Unitary)?.inverse(&mut image)?;
        let indices = draws(&mut rng, certify.outputs, image.len());
        // Σ d e^{+i2πk·x} at voxel x is the conjugate of the sum of conj d at the place k = x·n of a
        // trajectory.
        let points = Array2::from_shape_fn((indices.len(), shape.len()), |(row, component)| {
            let axis = shape.len() - 1 - component;
            let below: usize = shape[axis + 1..].iter().product();
            let n = shape[axis];
            (indices[row] / below % n) as f64 - (n / 2) as f64
        });
        let places = Trajectory::from_cycles_per_fov(points)?;
        let outputs: Vec<usize> = (0..indices.len()).collect();
        let scale = 1.0 / (image.len() as f64).sqrt();
        let exact: Vec<C64> = nudft::reference::forward_at(&places, shape, &conjugate, &outputs)?
            .into_iter()
            .map(|sum| sum.conj() * scale)
            .collect();
        let deviations = errors(&image.read()?, &exact, &indices);
        Ok(vec![Certificate::new("inverse FFT", image.len(), &deviations, FFT_TOLERANCE)])
    }

    fn estimate_maps(
        &self,
        spec: &Spec<'_>,
        samples: &CoilSamples<'_>,
        mixing: Option<&Mixing>,
    ) -> Result<(CoilMaps<f32>, String)> {
        spec.expect_grid()?.estimate_maps(spec, samples, mixing)
    }

    /// What was certified of a grid holds for the FFT that is made anew.
    fn give_back(self: Box<Self>) -> Option<Box<dyn Encoding>> {
        Some(Box::new(Self { fft: None, ..*self }))
    }
}

/// What was measured of a grid as a trajectory, and where it lies in the grid: for encodings that are no FFT.
///
/// The grid has the image's voxels over a field of view that may be larger, so that its places are
/// matrix/grid cycles per field of view of the image apart.
pub(in crate::encoding) fn places(
    sampled: &ArrayD<bool>,
    matrix: &[usize],
) -> Result<(Vec<usize>, Trajectory)> {
    let grid = sampled.shape();
    let places: Vec<usize> =
        sampled.iter().enumerate().filter(|(_, known)| **known).map(|(place, _)| place).collect();
    let points = Array2::from_shape_fn((places.len(), grid.len()), |(row, component)| {
        // Components are x, y, z and axes z, y, x.
        let axis = grid.len() - 1 - component;
        let below: usize = grid[axis + 1..].iter().product();
        let index = places[row] / below % grid[axis];
        (index as f64 - (grid[axis] / 2) as f64) * matrix[axis] as f64 / grid[axis] as f64
    });
    Ok((places, Trajectory::from_cycles_per_fov(points)?))
}

/// The samples `[coil, place]` of a grid.
pub(in crate::encoding) fn values_at(kspace: &ArrayD<C32>, places: &[usize]) -> Array2<C32> {
    let coils = kspace.shape()[0];
    let mut data = Array2::zeros((coils, places.len()));
    for (mut row, coil) in data.rows_mut().into_iter().zip(kspace.outer_iter()) {
        let coil = coil.as_standard_layout();
        let flat = coil.as_slice().unwrap_or_default();
        for (to, &place) in row.iter_mut().zip(places) {
            *to = flat[place];
        }
    }
    data
}

#[cfg(test)]
fn examples(draw: &mut super::tests::Draw) -> Vec<super::tests::Example> {
    use super::tests::{Example, options, places_of, waves};
    let shapes = [(vec![6, 5], vec![6, 5]), (vec![4, 6], vec![5, 9]), (vec![3, 4, 5], vec![3, 4, 8])];
    let example = |(matrix, grid): (Vec<usize>, Vec<usize>)| {
        let frame = draw.grid(&matrix, &grid);
        let crate::scan::Samples::Cartesian { sampled, .. } = &frame.samples else { unreachable!("a grid") };
        let places = sampled.len() as f64;
        let mut waves = waves(&places_of(&grid), &grid) / C64::from(places.sqrt());
        for (mut row, known) in waves.outer_iter_mut().zip(sampled) {
            row.mapv_inplace(|wave| if *known { wave } else { C64::ZERO });
        }
        let scale = matrix.iter().product::<usize>() as f64 / places.sqrt();
        Example { frame, of_frames: None, options: options(), matrix: waves, scale }
    };
    shapes.into_iter().map(example).collect()
}
