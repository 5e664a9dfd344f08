//! CT scans of phantoms: exact line integrals, then photons, the electronics and the gains of a detector.

mod spectrum;

use ndarray::{Array2, Array3, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Poisson, StandardNormal};
use rayon::prelude::*;
use rayspin_core::{Error, ProjectionGeometry, Result};
use rayspin_device::Cpu;
use rayspin_device::cpu::{Stop, expect_memory, zeroed};
use serde::Serialize;

use crate::phantom::Phantom;
use crate::scan::{Counts, Measured, Scan};
pub use spectrum::{REFERENCE_KEV, Spectrum};

/// How a detector measures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DetectorOptions {
    /// Photons that reach a pixel without the object, N₀.
    pub photons: f64,
    /// Standard deviation of the electronic noise, in photons.
    pub electronic: f64,
    /// The dark signal, in photons.
    pub dark: f64,
    /// Standard deviation of the gain between pixels, as a part of it. The flat fields show the gains, so
    /// that this alone makes no rings.
    pub gain: f64,
    /// Standard deviation of the change of the gains after the flat fields, as a part of them: this makes
    /// rings.
    pub drift: f64,
    /// Number of flat fields, and of dark fields.
    pub frames: usize,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The most flat fields and dark fields of a scan.
const MOST_FRAMES: usize = 1_000_000;

impl Default for DetectorOptions {
    /// 10⁵ photons, electronic noise of 10, a dark signal of 100, gains that differ by 2 % and do not change,
    /// 10 flat and dark fields.
    fn default() -> Self {
        Self { photons: 1e5, electronic: 10.0, dark: 100.0, gain: 0.02, drift: 0.0, frames: 10, seed: 1 }
    }
}

impl DetectorOptions {
    /// Fails where a number is out of range. [`counted`] checks it too; who simulates line integrals first
    /// need not wait for that.
    pub fn check(&self) -> Result<()> {
        let Self { photons, electronic, dark, gain, drift, frames, .. } = *self;
        if !(photons.is_finite() && photons > 0.0 && photons <= 1e15) {
            return Err(Error::value("photons", "above 0 and at most 1e15", photons));
        }
        for (what, value) in [("electronic noise", electronic), ("dark signal", dark)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::value(what, "a number of photons, not negative", value));
            }
        }
        for (what, value) in [("differences of gain", gain), ("drift of gains", drift)] {
            if !(0.0..=0.2).contains(&value) {
                return Err(Error::value(what, "0 to 0.2", value));
            }
        }
        if !(1..=MOST_FRAMES).contains(&frames) {
            return Err(Error::value("flat fields", format!("1 to {MOST_FRAMES}"), frames));
        }
        Ok(())
    }
}

/// The line integrals of a phantom.
///
/// Errors: memory.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry};
/// use rayspin_ct::phantom::Phantom;
/// use rayspin_ct::simulate::{DetectorOptions, counted, lines};
/// use rayspin_device::Device;
///
/// let device = Device::cpu()?;
/// let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 30);
/// let detector = Detector { rows: 1, columns: 40, pitch_mm: [5.0; 2], radius_mm: None };
/// let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
/// let exact = lines(device.cpu_side(), &Phantom::defrise(200.0, 0.02)?, &geometry, &orbit.angles)?;
/// let noisy = counted(device.cpu_side(), exact, &DetectorOptions::default())?;
/// let measured = noisy.into_lines(device.cpu_side(), &mut Vec::new())?;
/// assert!((measured[[3, 0, 20]] - 3.6).abs() < 0.1); // 180 mm of 0.02/mm
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn lines(cpu: &Cpu, phantom: &Phantom, geometry: &ProjectionGeometry, angles: &[f64]) -> Result<Scan> {
    beam_lines(cpu, phantom, geometry, angles, &Beam::default())
}

/// How a phantom moves during a scan: along a vector and back, as in breathing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Motion {
    /// The way from one end of the movement to the other, mm.
    pub by_mm: [f64; 3],
    /// Cycles during the scan.
    pub cycles: f64,
}

impl Motion {
    /// Where the phantom is in a view, mm from its place in the first one.
    pub fn at(&self, view: usize, views: usize) -> [f64; 3] {
        let phase = std::f64::consts::TAU * self.cycles * view as f64 / views.max(1) as f64;
        self.by_mm.map(|length| 0.5 * length * (1.0 - phase.cos()))
    }
}

/// What line integrals are of, besides a phantom and rays.
#[derive(Debug, Clone, Copy)]
pub struct Beam<'a> {
    /// How the phantom moves; it rests when absent.
    pub motion: Option<&'a Motion>,
    /// The energies of the X-rays; 60 keV alone when absent.
    pub spectrum: Option<&'a Spectrum>,
    /// Rays along each side of a pixel. A detector measures what all of them leave of the photons; a single
    /// ray goes to the centre.
    pub rays: usize,
}

impl Default for Beam<'_> {
    /// One ray of one energy, and a phantom at rest.
    fn default() -> Self {
        Self { motion: None, spectrum: None, rays: 1 }
    }
}

/// The line integrals of a phantom that moves, or that X-rays of many energies cross: −ln of the part of the
/// signal that is left.
///
/// A spectrum crosses the phantom's [materials](Phantom::materials).
///
/// Errors: numbers that are not finite; no rays; memory; interruption.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry};
/// use rayspin_ct::phantom::Phantom;
/// use rayspin_ct::simulate::{Beam, Motion, beam_lines};
/// use rayspin_device::Device;
///
/// let device = Device::cpu()?;
/// let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 30);
/// let detector = Detector { rows: 1, columns: 40, pitch_mm: [5.0; 2], radius_mm: None };
/// let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
/// let breath = Motion { by_mm: [0.0, 0.0, 20.0], cycles: 1.0 };
/// let discs = Phantom::defrise(200.0, 0.02)?;
/// let beam = Beam { motion: Some(&breath), rays: 2, ..Beam::default() };
/// let scan = beam_lines(device.cpu_side(), &discs, &geometry, &orbit.angles, &beam)?;
/// assert_eq!(scan.shape(), [30, 1, 40]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn beam_lines(
    cpu: &Cpu,
    phantom: &Phantom,
    geometry: &ProjectionGeometry,
    angles: &[f64],
    beam: &Beam<'_>,
) -> Result<Scan> {
    let Beam { motion, spectrum, rays } = *beam;
    if !(1..=64).contains(&rays) {
        return Err(Error::value("rays along a pixel", "1 to 64", rays));
    }
    if let Some(motion) = motion
        && !(motion.cycles.is_finite() && motion.by_mm.iter().all(|x| x.is_finite()))
    {
        return Err(Error::value("motion", "finite lengths and cycles", format!("{motion:?}")));
    }
    let [views, rows, columns] = geometry.shape();
    let count = rayspin_core::voxels(&[views, rows, columns])?;
    expect_memory("projections", (count * size_of::<f32>()) as u64)?;
    let mut values = zeroed("projections", count)?;
    let materials = spectrum.map(|spectrum| (spectrum, phantom.materials()));
    let (nothing, stop) = (Phantom::new(Vec::new())?, Stop::of_caller());
    cpu.run(|| {
        values.par_chunks_mut(rows * columns).enumerate().for_each(|(view, values)| {
            let moved = |phantom: &Phantom| match motion {
                Some(motion) => phantom.clone().moved(motion.at(view, views)),
                None => phantom.clone(),
            };
            let [tissue, bone] = match &materials {
                None => [moved(phantom), Phantom::clone(&nothing)],
                Some((_, parts)) => parts.each_ref().map(moved),
            };
            let attenuated = |place: [f64; 2]| match &materials {
                None => tissue.ray_at(geometry, view, place),
                Some((spectrum, _)) => {
                    let line = |part: &Phantom| part.ray_at(geometry, view, place);
                    spectrum.seen(line(&tissue), line(&bone))
                }
            };
            for (index, value) in values.iter_mut().enumerate() {
                if stop.is_set() {
                    return;
                }
                let centre = [(index / columns) as f64, (index % columns) as f64];
                let between = |i: usize| (i as f64 + 0.5) / rays as f64 - 0.5;
                *value = if rays == 1 {
                    attenuated(centre)
                } else {
                    let place =
                        |ray: usize| [centre[0] + between(ray / rays), centre[1] + between(ray % rays)];
                    let left: f64 = (0..rays * rays).map(|ray| (-attenuated(place(ray))).exp()).sum();
                    -(left / (rays * rays) as f64).ln()
                } as f32;
            }
        });
    });
    stop.check()?;
    let values = Array3::from_shape_vec((views, rows, columns), values);
    let values = values.map_err(|e| Error::value("projections", "one number a pixel", e))?;
    Scan::new(Measured::Lines(values), angles.to_vec(), Some(geometry.clone()))
}

/// What a detector counts of line integrals p:
///
/// ```text
/// counts = gain (1 + drift) · Poisson(N₀ e^(−p)) + dark + electronic noise
/// ```
///
/// Flat fields are the same with p = 0 and without the drift, dark fields with N₀ = 0. Every view draws its
/// own random numbers, so that they do not depend on the number of threads.
///
/// Errors: a scan that is counted already; options out of range; memory.
pub fn counted(cpu: &Cpu, scan: Scan, options: &DetectorOptions) -> Result<Scan> {
    options.check()?;
    let Measured::Lines(mut values) = scan.measured else {
        return Err(Error::value("scan to count", "line integrals", "counts"));
    };
    let (views, rows, columns) = values.dim();
    let fields = rayspin_core::voxels(&[2, options.frames, rows, columns])?;
    expect_memory("flat and dark fields", (fields * size_of::<f32>()) as u64)?;
    let stream = |number: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
        rng.set_stream(number as u64);
        rng
    };
    let normal = |rng: &mut ChaCha8Rng| -> f64 { rng.sample(StandardNormal) };
    let spread = |number: usize, size: f64| {
        let mut rng = stream(number);
        Array2::from_shape_simple_fn((rows, columns), || (1.0 + size * normal(&mut rng)).max(0.0))
    };
    let gains = spread(0, options.gain);
    let drifted = &gains * &spread(1, options.drift);
    let count = |rng: &mut ChaCha8Rng, mean: f64, gain: f64| {
        // A mean of 0 has no distribution of its own.
        let photons =
            if mean > 0.0 { Poisson::new(mean).map_or(mean, |poisson| poisson.sample(rng)) } else { 0.0 };
        (gain * photons + options.dark + options.electronic * normal(rng)) as f32
    };
    let stop = Stop::of_caller();
    cpu.run(|| {
        let views: Vec<_> = values.axis_iter_mut(Axis(0)).collect();
        views.into_par_iter().enumerate().filter(|_| !stop.is_set()).for_each(|(index, mut view)| {
            let mut rng = stream(2 + index);
            ndarray::Zip::from(&mut view).and(&drifted).for_each(|value, &gain| {
                *value = count(&mut rng, options.photons * (-f64::from(*value)).exp(), gain);
            });
        });
    });
    let frames = |first: usize, photons: f64| {
        let mut fields = Array3::zeros((options.frames, rows, columns));
        for (index, mut field) in fields.outer_iter_mut().enumerate().take_while(|_| !stop.is_set()) {
            let mut rng = stream(first + index);
            ndarray::Zip::from(&mut field)
                .and(&gains)
                .for_each(|value, &gain| *value = count(&mut rng, photons, gain));
        }
        fields
    };
    let first = 2 + views;
    let (flats, darks) = cpu.run(|| (frames(first, options.photons), frames(first + options.frames, 0.0)));
    stop.check()?;
    let counts = Counts { views: values, flats, darks };
    Scan::new(Measured::Counts(counts), scan.angles, scan.geometry)
}

#[cfg(test)]
mod tests {
    use rayspin_core::{Detector, Orbit};
    use rayspin_device::Device;

    use super::*;
    use crate::phantom::{Form, Solid};

    fn scan(device: &Device) -> Scan {
        let plate = Phantom::new(vec![Solid::new(Form::Box, [0.0; 3], [1e3, 10.0, 1e3], 0.1)]).unwrap();
        let orbit = Orbit::default().arc(0.0, 0.0, 40);
        let detector = Detector { rows: 30, columns: 25, pitch_mm: [1.0; 2], radius_mm: None };
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        lines(device.cpu_side(), &plate, &geometry, &orbit.angles).unwrap()
    }

    #[test]
    fn counts_have_the_mean_and_variance_of_photons_and_electronics() {
        let device = Device::cpu().unwrap();
        let options = DetectorOptions {
            photons: 1e4,
            electronic: 15.0,
            dark: 50.0,
            gain: 0.0,
            ..DetectorOptions::default()
        };
        let counted = counted(device.cpu_side(), scan(&device), &options).unwrap();
        let Measured::Counts(counts) = counted.measured else { panic!("no counts") };
        let statistics = |values: &Array3<f32>| {
            let count = values.len() as f64;
            let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
            (mean, values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / count)
        };
        let behind = 1e4 * (-2.0f64).exp();
        for (values, mean, variance) in [
            (&counts.views, behind + 50.0, behind + 225.0),
            (&counts.flats, 1e4 + 50.0, 1e4 + 225.0),
            (&counts.darks, 50.0, 225.0),
        ] {
            let (found, spread) = statistics(values);
            // Four standard errors of each.
            let count = values.len() as f64;
            assert!((found - mean).abs() < 4.0 * (variance / count).sqrt(), "{found} for {mean}");
            assert!((spread / variance - 1.0).abs() < 4.0 * (2.0 / count).sqrt(), "{spread} for {variance}");
        }
    }

    #[test]
    fn a_moving_phantom_is_where_its_motion_has_it() {
        let device = Device::cpu().unwrap();
        let ball = Phantom::new(vec![Solid::new(Form::Ellipsoid, [0.0; 3], [4.0; 3], 0.1)]).unwrap();
        let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 8);
        let detector = Detector { rows: 25, columns: 25, pitch_mm: [1.0; 2], radius_mm: None };
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        let motion = Motion { by_mm: [0.0, 0.0, 6.0], cycles: 1.0 };
        let scan = beam_lines(
            device.cpu_side(),
            &ball,
            &geometry,
            &orbit.angles,
            &Beam { motion: Some(&motion), ..Beam::default() },
        )
        .unwrap();
        let Measured::Lines(lines) = scan.measured else { panic!("no lines") };
        for view in 0..8 {
            let height = 3.0 * (1.0 - (std::f64::consts::TAU * view as f64 / 8.0).cos());
            let mut sums = [0.0; 2];
            for ((row, _), value) in lines.index_axis(Axis(0), view).indexed_iter() {
                sums[0] += f64::from(*value);
                sums[1] += f64::from(*value) * (row as f64 - 12.0);
            }
            assert!((sums[1] / sums[0] - height).abs() < 0.1, "{view}: {} for {height}", sums[1] / sums[0]);
        }
    }

    #[test]
    fn a_pixel_counts_the_photons_of_all_its_rays() {
        let device = Device::cpu().unwrap();
        // A thick plate covers half of the middle pixel: half of the photons are left, and not e^-5 of them.
        let plate =
            Phantom::new(vec![Solid::new(Form::Box, [50.0, 0.0, 0.0], [50.0, 5.0, 1e3], 1.0)]).unwrap();
        let orbit = Orbit::default().arc(0.0, 0.0, 1);
        let detector = Detector { rows: 1, columns: 3, pitch_mm: [1.0; 2], radius_mm: None };
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        let run = |rays: usize| {
            beam_lines(device.cpu_side(), &plate, &geometry, &orbit.angles, &Beam { rays, ..Beam::default() })
        };
        let Measured::Lines(lines) = run(4).unwrap().measured else { panic!("no lines") };
        let wanted = [0.0, -(0.5 * (1.0 + (-10.0f32).exp())).ln(), 10.0];
        assert!(lines.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{lines:?}");
        assert!(run(0).is_err() && run(65).is_err());
    }

    #[test]
    fn a_spectrum_hardens_behind_bone() {
        let device = Device::cpu().unwrap();
        let head =
            Phantom::shepp_logan(2, 200.0, rayspin_imaging::phantom::Contrast::Standard, 0.02).unwrap();
        let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 4);
        let detector = Detector { rows: 1, columns: 50, pitch_mm: [4.0; 2], radius_mm: None };
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        let tube = Spectrum::tube(100.0).unwrap();
        let exact = head.project(device.cpu_side(), &geometry).unwrap();
        let scan = beam_lines(
            device.cpu_side(),
            &head,
            &geometry,
            &orbit.angles,
            &Beam { spectrum: Some(&tube), ..Beam::default() },
        )
        .unwrap();
        let Measured::Lines(lines) = scan.measured else { panic!("no lines") };
        let [tissue, bone] = head.materials();
        for (at, (seen, exact)) in lines.iter().zip(&exact).enumerate() {
            let (t, b) =
                (tissue.ray(&geometry, at / 50, 0, at % 50), bone.ray(&geometry, at / 50, 0, at % 50));
            assert!((t + b - f64::from(*exact)).abs() < 1e-5, "{t} + {b} for {exact}");
            assert!(b >= -1e-9 && t >= -1e-9);
            assert!((f64::from(*seen) - tube.seen(t, b)).abs() < 1e-5);
        }
    }

    #[test]
    fn gains_cancel_and_drifts_stay() {
        let device = Device::cpu().unwrap();
        let quiet = DetectorOptions {
            photons: 1e12,
            electronic: 0.0,
            dark: 0.0,
            gain: 0.1,
            ..DetectorOptions::default()
        };
        for (drift, least, most) in [(0.0, 0.0, 1e-4), (0.05, 0.02, 1.0)] {
            let counted =
                counted(device.cpu_side(), scan(&device), &DetectorOptions { drift, ..quiet }).unwrap();
            let found = counted.into_lines(device.cpu_side(), &mut Vec::new()).unwrap();
            let worst = found.iter().map(|p| (p - 2.0).abs()).fold(0.0, f32::max);
            assert!(f64::from(worst) >= least && f64::from(worst) <= most, "{drift}: {worst}");
        }
    }

    #[test]
    fn random_numbers_do_not_depend_on_threads_and_bad_options_are_refused() {
        let device = Device::cpu().unwrap();
        let options = DetectorOptions::default();
        let one = Device::cpu_with_threads(1).unwrap();
        let first = counted(device.cpu_side(), scan(&device), &options).unwrap();
        assert_eq!(first, counted(one.cpu_side(), scan(&device), &options).unwrap());
        for bad in [
            DetectorOptions { photons: 0.0, ..options },
            DetectorOptions { electronic: -1.0, ..options },
            DetectorOptions { dark: f64::NAN, ..options },
            DetectorOptions { gain: 0.3, ..options },
            DetectorOptions { drift: -0.1, ..options },
            DetectorOptions { frames: 0, ..options },
            DetectorOptions { frames: 1 << 60, ..options },
            DetectorOptions { frames: usize::MAX, ..options },
        ] {
            assert!(counted(device.cpu_side(), scan(&device), &bad).is_err());
        }
        assert!(counted(device.cpu_side(), first, &options).is_err());
    }
}
