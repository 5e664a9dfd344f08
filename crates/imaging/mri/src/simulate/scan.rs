use ndarray::{Array2, Array3, Array4, ArrayD, Axis, s};
use rayon::prelude::*;
use rayspin_core::{C32, C64, Error, Image, Monitor, Result, TrajectoryUnits};
use rayspin_device::cpu::{Stop, expect_memory};

use super::coils::CoilSensitivities;
use super::dynamics::{Dynamics, TruthWindow};
use super::field::{FieldSampler, FieldSlice};
use super::noise::Noise;
use super::options::{LARGEST_DATA, NOISE_SAMPLES, SimulateOptions};
use super::phantom::Phantom;
use super::trajectory::{Layout, Sampling, Shot};
use crate::scan::{
    Acquisition, Counters, EncodedSpace, Encoding, Flags, Limits, Scan, ScanHeader, TrajectoryKind,
};

/// A simulated scan and what it was made from.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// The scan, as a file would hold it.
    pub scan: Scan,
    /// The object `[z, y, x]`: its mean over each voxel (see [`Phantom::voxel_means`]), without coil
    /// sensitivities. A changing object is `[image, z, y, x]`, at the mean time of each repetition, or
    /// window.
    pub truth: Image,
    /// The sensitivities at the voxel centres, `[coil, z, y, x]`.
    pub maps: Array4<C32>,
    /// The field at the voxel centres in Hz, where it is inhomogeneous.
    pub field: Option<Image>,
    /// Largest relative distance of a sensitivity from the loop field it was fitted to.
    pub coil_fit_error: f64,
    /// Standard deviation of the real part (and of the imaginary part) of the noise of a sample; 0 without
    /// noise.
    pub noise_std: f64,
    /// What was chosen or derived, one sentence each.
    pub notes: Vec<String>,
}

/// Streams of the random generator from here on belong to noise readouts.
const NOISE_READOUT_STREAMS: u64 = 1 << 40;
/// A tick of time stamps, as the converters of Siemens' files write them.
const TICK_MS: f64 = 2.5;
/// Readouts between two looks at the monitor.
const BATCH: usize = 64;

/// Simulates a scan: d_n(k) = ∫ c_n(x) ρ(x) e^{−i2πk·x} dx + η_n, x in fields of view.
///
/// A sample does not know the matrix: d matches the mean (1/N) Σ_voxels c ρ e^{−i2πk·x} over the N voxels of
/// any matrix, and Σ_k d(k) e^{+i2πk·x} over the full grid shows the object's own intensities.
///
/// **Noise.** SNR is the mean of |ρ|·√Σ_n|c_n|² over the voxels inside the object's outline, divided by the
/// standard deviation of the real part of the noise. It holds for white noise, in the optimally combined
/// image of a fully sampled Cartesian scan of the same matrix and oversampling o. So σ = √(o/N) · mean / SNR
/// per sample, N the voxels (of a slice in 2-D). Other samplings get the same σ, as they would on the same
/// scanner; a covariance keeps the mean variance over coils.
///
/// **Files.** Trajectory points are rounded to the f32 that files hold *before* the samples are computed.
/// Cartesian readouts carry counters and no trajectory.
///
/// Errors: options out of range, each named; memory; [`Error::Interrupted`].
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// let small = SimulateOptions { matrix: [24, 24, 1], coils: 2, ..SimulateOptions::default() };
/// let simulation = simulate(&small, &Monitor::silent())?;
/// assert_eq!(simulation.scan.acquisitions.len(), 24);
/// assert_eq!(simulation.maps.dim(), (2, 1, 24, 24));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn simulate(options: &SimulateOptions, monitor: &Monitor) -> Result<Simulation> {
    options.check()?;
    expect_memory("coil maps and truth", options.image_bytes())?;
    let shape = options.shape_zyx();
    let geometry = options.geometry()?;
    let mut notes = Vec::new();

    let parts = monitor.stage("coils", 0, || Objects::new(options))?;
    if options.coils > 1 {
        notes.push(format!(
            "coil sensitivities: {} harmonics, within {:.1} % of the fields of loops",
            parts.harmonics,
            100.0 * parts.fit_error
        ));
    }
    let stop = Stop::of_caller();
    let (truth, maps) = monitor.stage("truth", 0, || {
        let made = (parts.truth(shape), parts.maps(shape));
        stop.check()?;
        Ok::<_, Error>(made)
    })?;

    let mut acquisitions = Vec::new();
    let mut last: Option<(Layout, Vec<Acquisition>)> = None;
    for repetition in 0..options.repetitions {
        let layout = monitor.stage("trajectory", 0, || {
            options.sampling.layout(&options.grid(), &options.hardware, options.seed, repetition)
        })?;
        // If the object does not change and the trajectory is the same, the samples are the same.
        let readouts = match last.take() {
            Some((before, readouts)) if before == layout && options.dynamics.is_none() => readouts,
            _ => {
                expect_samples(&layout, options, repetition)?;
                let steps = (layout.shots.len() * options.slices()).div_ceil(BATCH);
                let first = repetition * layout.shots.len() * options.slices();
                monitor.stage("samples", steps, || parts.acquire(options, &layout, first, monitor))?
            }
        };
        let first = acquisitions.len();
        acquisitions.extend(readouts.iter().cloned().enumerate().map(|(index, mut readout)| {
            readout.counters.repetition = repetition as u16;
            if let Some(interval) = options.readout_interval_ms {
                readout.time_stamp = ((first + index) as f64 * interval / TICK_MS).round() as u32;
            }
            readout
        }));
        last = Some((layout, readouts));
    }
    let Some((layout, _)) = last else {
        return Err(Error::value("repetitions", "at least 1", options.repetitions));
    };
    if let Some(final_readout) = acquisitions.last_mut() {
        final_readout.flags = final_readout.flags.with(Flags::LAST_IN_MEASUREMENT);
    }
    notes.extend(layout.notes.iter().cloned());

    let mut noise_std = 0.0;
    if let Some(snr) = options.snr {
        let signal = parts.mean_signal(&truth, &maps);
        let density = if options.sampling.oversamples() { options.oversampling } else { 1 };
        noise_std = (density as f64 / options.encoded_voxels()).sqrt() * signal / snr;
        let covariance = options.noise_covariance.as_ref();
        let noise = Noise::new(noise_std, options.coils, covariance, options.seed)?;
        monitor.stage("noise", 0, || {
            acquisitions
                .par_iter_mut()
                .enumerate()
                .filter(|_| !stop.is_set())
                .for_each(|(index, readout)| noise.add(readout.data.view_mut(), index as u64));
            stop.check()?;
            monitor.check()
        })?;
        let alone = noise_readouts(options, &noise);
        acquisitions.splice(0..0, alone);
        notes.push(format!(
            "noise: standard deviation {noise_std:.4e} per real and imaginary part of a sample, for an image SNR of {snr}"
        ));
    }

    let field = match &options.field {
        None => None,
        Some(field) => {
            let map = field.map(shape, options.field_dims());
            let (low, high) = map.iter().fold((f64::MAX, f64::MIN), |(l, h), f| (l.min(*f), h.max(*f)));
            notes.push(format!("field map: {low:.1} to {high:.1} Hz"));
            Some(Image::new(map.mapv(|f| C32::new(f as f32, 0.0)).into_dyn(), geometry)?)
        }
    };
    let narrow = |truth: Array3<f64>| truth.mapv(|v| C32::new(v as f32, 0.0)).into_dyn();
    let seen = match &options.dynamics {
        None => narrow(truth),
        Some(dynamics) => monitor.stage("truth", 0, || {
            let times = truth_times(options, layout.shots.len())?;
            let mut series = ArrayD::zeros([&[times.len()], &shape[..]].concat());
            for (times, mut volume) in times.iter().zip(series.outer_iter_mut()) {
                volume.assign(&narrow(parts.changed_truth(options, dynamics, times, shape)?));
                stop.check()?;
                monitor.check()?;
            }
            Ok::<_, Error>(series)
        })?,
    };
    Ok(Simulation {
        scan: Scan { header: header(options, &layout), acquisitions, notes: Vec::new() },
        truth: Image::new(seen, geometry)?,
        maps,
        field,
        coil_fit_error: parts.fit_error,
        noise_std,
        notes,
    })
}

/// Seconds at which the truth of a changing object is given, for each image and slice.
fn truth_times(options: &SimulateOptions, shots: usize) -> Result<Vec<Vec<f64>>> {
    let (slices, readouts) = (options.slices(), shots * options.repetitions);
    let window = options.truth_window.unwrap_or(TruthWindow { readouts: shots, stride: shots });
    if window.readouts > readouts {
        let expected = format!("at most the {readouts} readouts of a slice");
        return Err(Error::value("window of the truth", expected, window.readouts));
    }
    let interval = options.readout_interval_ms.unwrap_or(0.0) / 1e3;
    // Repetitions are slowest, then slices.
    let time = |slice: usize, readout: usize| {
        let order = (readout / shots * slices + slice) * shots + readout % shots;
        order as f64 * interval
    };
    let images = (readouts - window.readouts) / window.stride + 1;
    if images.checked_mul(options.matrix.iter().product()).is_none_or(|n| n > LARGEST_DATA) {
        return Err(Error::value("truth", format!("at most {LARGEST_DATA} voxels in all images"), images));
    }
    let bytes = images * options.matrix.iter().product::<usize>() * size_of::<C32>();
    expect_memory("truth of all images", bytes as u64)?;
    let mean = |slice: usize, first: usize| {
        (first..first + window.readouts).map(|readout| time(slice, readout)).sum::<f64>()
            / window.readouts as f64
    };
    let of_image = |image| (0..slices).map(|slice| mean(slice, image * window.stride)).collect();
    Ok((0..images).map(of_image).collect())
}

/// The object and the coils: one pair for a volume or for each slice.
struct Objects {
    pairs: Vec<(Phantom, CoilSensitivities)>,
    harmonics: usize,
    fit_error: f64,
}

impl Objects {
    fn new(options: &SimulateOptions) -> Result<Self> {
        let slices = options.slices();
        let solid = options.dims == 3 || slices > 1;
        let coils = CoilSensitivities::loops(if solid { 3 } else { 2 }, options.coils)?;
        let (harmonics, fit_error) = (coils.harmonics().len(), coils.fit_error());
        let pairs = if options.dims == 3 {
            vec![(options.phantom(3), coils)]
        } else if slices == 1 {
            vec![(options.phantom(2), coils)]
        } else {
            let phantom = options.phantom(3);
            (0..slices)
                .map(|slice| {
                    let z = (slice as f64 - (slices / 2) as f64) / slices as f64;
                    Ok((phantom.slice(z)?, coils.slice(z)))
                })
                .collect::<Result<_>>()?
        };
        Ok(Self { pairs, harmonics, fit_error })
    }

    /// The phantom of a slice, or of the volume, at time `t`.
    fn changed(
        &self,
        options: &SimulateOptions,
        dynamics: &Dynamics,
        slice: usize,
        t: f64,
    ) -> Result<Phantom> {
        if self.pairs.len() == 1 {
            return dynamics.at(&self.pairs[0].0, t);
        }
        let whole = dynamics.at(&options.phantom(3), t)?;
        let slices = self.pairs.len();
        whole.slice((slice as f64 - (slices / 2) as f64) / slices as f64)
    }

    /// The truth of slices at times of their own.
    fn changed_truth(
        &self,
        options: &SimulateOptions,
        dynamics: &Dynamics,
        times: &[f64],
        shape: [usize; 3],
    ) -> Result<Array3<f64>> {
        if self.pairs.len() == 1 {
            return Ok(self.changed(options, dynamics, 0, times[0])?.voxel_means(shape));
        }
        let mut truth = Array3::zeros(shape);
        for ((slice, mut plane), &t) in truth.axis_iter_mut(Axis(0)).enumerate().zip(times) {
            let phantom = self.changed(options, dynamics, slice, t)?;
            plane.assign(&phantom.voxel_means([1, shape[1], shape[2]]).index_axis(Axis(0), 0));
        }
        Ok(truth)
    }

    fn truth(&self, shape: [usize; 3]) -> Array3<f64> {
        if let [(phantom, _)] = self.pairs.as_slice() {
            return phantom.voxel_means(shape);
        }
        let mut truth = Array3::zeros(shape);
        for ((phantom, _), mut plane) in self.pairs.iter().zip(truth.axis_iter_mut(Axis(0))) {
            plane.assign(&phantom.voxel_means([1, shape[1], shape[2]]).index_axis(Axis(0), 0));
        }
        truth
    }

    fn maps(&self, shape: [usize; 3]) -> Array4<C32> {
        if let [(_, coils)] = self.pairs.as_slice() {
            return coils.maps(shape);
        }
        let count = self.pairs.first().map_or(0, |(_, coils)| coils.coils());
        let mut maps = Array4::zeros((count, shape[0], shape[1], shape[2]));
        for (slice, (_, coils)) in self.pairs.iter().enumerate() {
            let plane = coils.maps([1, shape[1], shape[2]]);
            maps.slice_mut(s![.., slice, .., ..]).assign(&plane.index_axis(Axis(1), 0));
        }
        maps
    }

    /// Mean of |ρ|·√Σ|c|² over the voxels whose centres lie inside the outline.
    fn mean_signal(&self, truth: &Array3<f64>, maps: &Array4<C32>) -> f64 {
        let (nz, ny, nx) = truth.dim();
        let coordinate = |i: usize, n: usize| (i as f64 - (n / 2) as f64) / n as f64;
        let (mut sum, mut count) = (0.0, 0usize);
        for ((iz, iy, ix), value) in truth.indexed_iter() {
            let index = if self.pairs.len() > 1 { iz } else { 0 };
            if !self.pairs[index].0.outline_contains(&[
                coordinate(ix, nx),
                coordinate(iy, ny),
                coordinate(iz, nz),
            ]) {
                continue;
            }
            let rss =
                maps.slice(s![.., iz, iy, ix]).iter().map(|c| f64::from(c.norm_sqr())).sum::<f64>().sqrt();
            sum += value.abs() * rss;
            count += 1;
        }
        sum / count.max(1) as f64
    }

    /// The readouts of one repetition, slice after slice; `first` were before it.
    fn acquire(
        &self,
        options: &SimulateOptions,
        layout: &Layout,
        first: usize,
        monitor: &Monitor,
    ) -> Result<Vec<Acquisition>> {
        let reach = layout.reach();
        let (slices, stop) = (self.pairs.len(), Stop::of_caller());
        let mut readouts = Vec::with_capacity(layout.shots.len() * slices);
        for (slice, (phantom, coils)) in self.pairs.iter().enumerate() {
            let offset = (slice as f64 - (slices / 2) as f64) / slices as f64;
            let position = [0.0, 0.0, (offset * options.fov_mm[2]) as f32];
            let field = options.field.as_ref().map(|field| {
                let longest = layout.shots.iter().flat_map(|shot| shot.times(&options.hardware));
                let longest = longest.fold(0.0f64, |most, t| most.max(t.abs()));
                let slice = FieldSlice { z: offset, dims: options.field_dims() };
                FieldSampler::new(field, slice, phantom, coils, reach, longest)
            });
            let field = field.transpose()?;
            let mut curved = match &field {
                Some(field) => in_field(field, layout, options)?,
                None => None,
            };
            // A linear field moves points beyond the trajectory's own.
            let sampler = coils.sampler(phantom, if field.is_some() { 0.0 } else { reach })?;
            for batch in layout.shots.chunks(BATCH) {
                let before = first + readouts.len();
                let mut computed: Vec<_> = batch.iter().map(|_| None).collect();
                if let Some(batches) = &mut curved {
                    computed.iter_mut().for_each(|data| *data = batches.next());
                }
                let done: Result<Vec<Acquisition>> = batch
                    .par_iter()
                    .zip(computed)
                    .enumerate()
                    .map(|(index, (shot, computed))| {
                        stop.check()?;
                        let trajectory = shot.points.mapv(|k| k as f32);
                        let mut points = trajectory.mapv(f64::from);
                        if let Some(field) = &field {
                            let times: Vec<f64> = shot.times(&options.hardware).collect();
                            points = field.shifted(&points, &times).unwrap_or(points);
                        }
                        let data = match (computed, &options.dynamics, options.readout_interval_ms) {
                            (Some(data), ..) => data,
                            (None, Some(dynamics), Some(interval)) => {
                                let t = (before + index) as f64 * interval / 1e3;
                                let phantom = self.changed(options, dynamics, slice, t)?;
                                coils.sampler(&phantom, reach)?.sample(points.view())?
                            }
                            _ => sampler.sample(points.view())?,
                        };
                        let mut readout = blank(options, narrow(&data), shot.centre_sample);
                        readout.flags = shot.flags;
                        readout.counters = Counters { slice: slice as u16, ..shot.counters };
                        readout.position = position;
                        readout.trajectory = (!layout.on_grid).then(|| trajectory.into_shared());
                        Ok(readout)
                    })
                    .collect();
                readouts.extend(done?);
                monitor.step(&format!("{} of {} readouts", readouts.len(), layout.shots.len() * slices))?;
            }
            let shots = layout.shots.len();
            for (index, flag) in
                [(slice * shots, Flags::FIRST_IN_SLICE), ((slice + 1) * shots - 1, Flags::LAST_IN_SLICE)]
            {
                readouts[index].flags = readouts[index].flags.with(flag);
            }
        }
        Ok(readouts)
    }
}

/// The samples `[coil, sample]` of each shot in turn, in a field that is not linear.
fn in_field(
    field: &FieldSampler,
    layout: &Layout,
    options: &SimulateOptions,
) -> Result<Option<impl Iterator<Item = Array2<C64>> + use<>>> {
    let views: Vec<_> = layout.shots.iter().map(|shot| shot.points.view()).collect();
    let points = ndarray::concatenate(Axis(0), &views)
        .map_err(|_| Error::value("readouts", "points of one number of dimensions", "several"))?;
    // As files hold them.
    let points = points.mapv(|k| f64::from(k as f32));
    let times: Vec<f64> = layout.shots.iter().flat_map(|shot| shot.times(&options.hardware)).collect();
    let Some(samples) = field.samples(points.view(), &times)? else { return Ok(None) };
    let lengths: Vec<usize> = layout.shots.iter().map(|shot| shot.points.nrows()).collect();
    let mut first = 0;
    Ok(Some(lengths.into_iter().map(move |len| {
        let own = samples.slice(s![.., first..first + len]).to_owned();
        first += len;
        own
    })))
}

fn narrow(data: &Array2<C64>) -> Array2<C32> {
    data.mapv(|v| C32::new(v.re as f32, v.im as f32))
}

/// A readout of `data` with everything that all readouts share.
fn blank(options: &SimulateOptions, data: Array2<C32>, centre_sample: usize) -> Acquisition {
    Acquisition {
        flags: Flags::default(),
        counters: Counters::default(),
        encoding: 0,
        centre_sample,
        discard_pre: 0,
        discard_post: 0,
        sample_time_us: options.hardware.dwell_us as f32,
        time_stamp: 0,
        position: [0.0; 3],
        read_dir: [1.0, 0.0, 0.0],
        phase_dir: [0.0, 1.0, 0.0],
        slice_dir: [0.0, 0.0, 1.0],
        data: data.into_shared(),
        trajectory: None,
    }
}

fn noise_readouts(options: &SimulateOptions, noise: &Noise) -> Vec<Acquisition> {
    (0..options.noise_readouts)
        .map(|index| {
            let mut readout = blank(options, Array2::zeros((options.coils, NOISE_SAMPLES)), 0);
            readout.flags = Flags::NOISE;
            noise.add(readout.data.view_mut(), NOISE_READOUT_STREAMS + index as u64);
            readout
        })
        .collect()
}

/// Errors: more samples than a scan may have; memory for those that are still to be made, from this
/// repetition on.
fn expect_samples(layout: &Layout, options: &SimulateOptions, repetition: usize) -> Result<()> {
    let samples: usize = layout.shots.iter().map(|shot: &Shot| shot.points.nrows()).sum();
    let total = [options.slices(), options.repetitions, options.coils]
        .into_iter()
        .try_fold(samples, usize::checked_mul);
    match total {
        Some(total) if total <= LARGEST_DATA => {
            expect_memory("readouts", options.readout_bytes(samples, options.repetitions - repetition))
        }
        _ => Err(Error::value(
            "scan",
            format!("at most {LARGEST_DATA} samples over all coils"),
            format!(
                "{samples} samples × {} slices × {} repetitions × {} coils",
                options.slices(),
                options.repetitions,
                options.coils
            ),
        )),
    }
}

fn header(options: &SimulateOptions, layout: &Layout) -> ScanHeader {
    let [nx, ny, nz] = options.matrix;
    let [fx, fy, fz] = options.fov_mm;
    let recon = if options.dims == 3 {
        EncodedSpace { matrix: [nx, ny, nz], fov_mm: [fx, fy, fz] }
    } else {
        EncodedSpace { matrix: [nx, ny, 1], fov_mm: [fx, fy, fz / nz as f64] }
    };
    let mut encoded = recon;
    if layout.on_grid {
        encoded.matrix[0] *= options.oversampling;
        encoded.fov_mm[0] *= options.oversampling as f64;
    }
    let range = |n: usize, centre: usize| Some(Limits { minimum: 0, maximum: n - 1, centre });
    let name = match (&options.sampling, layout.kind) {
        (Sampling::Kooshball { .. }, _) => "kooshball",
        (Sampling::StackOfStars { .. }, _) => "stack of stars",
        (Sampling::StackOfSpirals { .. }, _) => "stack of spirals",
        (_, TrajectoryKind::Cartesian) => "Cartesian",
        (_, TrajectoryKind::Epi) => "echo-planar",
        (_, TrajectoryKind::Radial) => "radial",
        (_, TrajectoryKind::GoldenAngle) => "golden-angle radial",
        (_, TrajectoryKind::Spiral) => "spiral",
        (_, TrajectoryKind::Other) => "random",
    };
    ScanHeader {
        encodings: vec![Encoding {
            encoded,
            recon,
            trajectory: layout.kind,
            step_1: Some(layout.step_1),
            step_2: Some(layout.step_2),
            slice: range(options.slices(), options.slices() / 2),
            repetition: range(options.repetitions, 0),
            acceleration: layout.acceleration,
            ramps: None,
            places: None,
        }],
        coils: Some(options.coils),
        field_strength_t: None,
        vendor: Some("Rayspin".into()),
        model: Some("simulation".into()),
        protocol: Some(format!("Shepp-Logan, {name}")),
        patient_position: Some("HFS".into()),
        trajectory_units: (!layout.on_grid).then_some(TrajectoryUnits::CyclesPerFov),
        xml: None,
    }
}
