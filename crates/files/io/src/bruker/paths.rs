//! Paths of readouts that are no lines of a grid: echo-planar lines that are sampled on ramps, and `traj`.
//!
//! Sample j of an echo-planar line lies at
//!
//! ```text
//! k = κ_j − κ_max/2                        of lines 0, 2, … of a train
//! k = κ_max/2 − κ_j + p₁ N / 2π            of the others, which are multiplied by e^{i 2 p₀}
//! ```
//!
//! in cycles per field of view of N pixels. κ is `PVM_EpiTrajAdjkx`, p₀ and p₁ are `PVM_EpiPhaseCorrection`:
//! a phase 2p₀ + p₁ x over pixels x is what the other lines lack.

use std::f64::consts::TAU;

use ndarray::{ArcArray2, Array2};
use rayspin_core::C32;
use rayspin_device::cpu::zeroed;

use super::folder::{Folder, TRAJECTORY};
use super::jcamp::MOST;
use crate::{Error, Result, opening};

/// Samples of a line at most.
const LONGEST: usize = 65_535;
/// The largest |k| of `traj`, in cycles per voxel: 0.5 is the edge of k-space.
const FARTHEST: f64 = 1.0;

/// The train of an echo-planar scan.
#[derive(Debug, Clone)]
pub(super) struct Train {
    pub(super) shots: usize,
    /// Lines of a shot.
    pub(super) lines: usize,
    /// Samples before the lines, of a navigator.
    pub(super) before: usize,
    /// Samples of a line.
    pub(super) samples: usize,
    /// Places of the samples of a line, from the middle, in cycles per field of view.
    places: Vec<f64>,
}

impl Train {
    /// The train of a scan of `samples` samples; none where the method has no trains.
    ///
    /// Errors: numbers that do not fit each other.
    pub(super) fn of(folder: &Folder, samples: usize, notes: &mut Vec<String>) -> Result<Option<Self>> {
        let method = &folder.method;
        let named = folder.method_name().to_ascii_uppercase().contains("EPI");
        let Some(lines) = method.count("PVM_EpiNEchoes")?.filter(|_| named || method.is_on("PVM_IsEpiScan"))
        else {
            return Ok(None);
        };
        let shots = match method.count("PVM_EpiNShots")? {
            Some(shots) => shots,
            None => method.count("NSegments")?.unwrap_or(1),
        };
        let before = match method.is_on("PVM_EpiPrefixNavYes") {
            true => method.count("PVM_EpiPrefixNavSize")?.unwrap_or(0),
            false => 0,
        };
        let of_lines = samples.saturating_sub(before);
        if lines == 0 || shots == 0 || of_lines == 0 || of_lines % lines != 0 || of_lines / lines > LONGEST {
            let expected = format!("a divisor of the {of_lines} samples of a train");
            return Err(method.field("PVM_EpiNEchoes", expected, lines));
        }
        let own = of_lines / lines;
        let measured = method.numbers("PVM_EpiTrajAdjkx", LONGEST)?;
        let measured = measured.filter(|places| places.iter().any(|place| *place != 0.0));
        let places = match measured {
            Some(places) if places.len() == own => places,
            Some(places) => {
                let expected = format!("a place of each of the {own} samples of a line");
                return Err(method.field("PVM_EpiTrajAdjkx", expected, format!("{} places", places.len())));
            }
            None => {
                notes.push(
                    "the file has no measured places of samples (PVM_EpiTrajAdjkx): those of the gradient's trapezoid are taken"
                        .into(),
                );
                trapezoid(folder, own)?
            }
        };
        let middle = places.iter().copied().fold(0.0, f64::max) / 2.0;
        let places: Vec<f64> = places.into_iter().map(|place| place - middle).collect();
        Ok(Some(Self { shots, lines, before, samples: own, places }))
    }

    /// The path of a line at these steps; `shift` is what phases of the other direction shift it by.
    pub(super) fn path(&self, reversed: bool, shift: f64, steps: &[f32]) -> ArcArray2<f32> {
        let place = |sample: usize| if reversed { shift - self.places[sample] } else { self.places[sample] };
        Array2::from_shape_fn((self.samples, 1 + steps.len()), |(sample, axis)| match axis {
            0 => place(sample) as f32,
            _ => steps[axis - 1],
        })
        .into_shared()
    }
}

/// Places of samples under a trapezoidal gradient, in samples at full strength.
fn trapezoid(folder: &Folder, samples: usize) -> Result<Vec<f64>> {
    let method = &folder.method;
    let positive = |name: &str| match method.number(name)? {
        Some(number) if number >= 0.0 => Ok(number),
        other => Err(method.field(
            name,
            "a time of 0 or more",
            other.map_or("nothing".to_owned(), |n| n.to_string()),
        )),
    };
    let (ramp, plateau) = (positive("PVM_EpiRampTime")?, positive("PVM_EpiPlateau")?);
    let bandwidth = positive("PVM_EffSWh")?;
    if bandwidth == 0.0 {
        return Err(method.field("PVM_EffSWh", "a bandwidth above 0", bandwidth));
    }
    // The lobe's middle is the line's.
    let dwell = 1e3 / bandwidth;
    let whole = 2.0 * ramp + plateau;
    let start = (whole - samples as f64 * dwell) / 2.0;
    let area = |time: f64| {
        let up = time.clamp(0.0, ramp);
        let flat = (time - ramp).clamp(0.0, plateau);
        let down = (time - ramp - plateau).clamp(0.0, ramp);
        let rise = if ramp > 0.0 { up * up / (2.0 * ramp) + down - down * down / (2.0 * ramp) } else { 0.0 };
        (rise + flat) / dwell
    };
    let first = area(start + 0.5 * dwell);
    Ok((0..samples).map(|sample| area(start + (sample as f64 + 0.5) * dwell) - first).collect())
}

/// The phase that lines of the other direction lack.
#[derive(Debug, Clone, Default)]
pub(super) struct Phase {
    /// What the samples of each coil are multiplied by.
    pub(super) factors: Vec<C32>,
    /// The shift of the path, in cycles per field of view.
    pub(super) shift: f64,
}

/// The phases of each object, as objects were acquired; none where the file states none that fit.
///
/// Errors: numbers that cannot be read.
pub(super) fn phases(
    folder: &Folder,
    objects: usize,
    coils: usize,
    pixels: usize,
    notes: &mut Vec<String>,
) -> Result<Vec<Phase>> {
    let method = &folder.method;
    let Some(numbers) = method.numbers("PVM_EpiPhaseCorrection", MOST)? else {
        notes
            .push("the file has no phase correction (PVM_EpiPhaseCorrection): images may have ghosts".into());
        return Ok(Vec::new());
    };
    let each = objects.saturating_mul(coils);
    if numbers.is_empty() || numbers.len() % each != 0 {
        notes.push(format!(
            "PVM_EpiPhaseCorrection has {} numbers, no whole number for each of {objects} images and {coils} coils, and is not used: \
             images may have ghosts",
            numbers.len()
        ));
        return Ok(Vec::new());
    }
    let orders = numbers.len() / each;
    let term = |coil: usize, object: usize, order: usize| match order < orders {
        true => numbers[(coil * objects + object) * orders + order],
        false => 0.0,
    };
    let higher = (0..coils)
        .any(|coil| (0..objects).any(|object| (2..orders).any(|order| term(coil, object, order) != 0.0)));
    if higher {
        notes.push("PVM_EpiPhaseCorrection has terms above the first order, which are not used".into());
    }
    let mut widest = 0.0f64;
    let phases = (0..objects).map(|object| {
        let constant = |coil: usize| {
            let angle = (2.0 * term(coil, object, 0)).rem_euclid(TAU) as f32;
            C32::new(angle.cos(), angle.sin())
        };
        let slopes: Vec<f64> = (0..coils).map(|coil| term(coil, object, 1)).collect();
        let mean = slopes.iter().sum::<f64>() / coils as f64;
        widest = slopes.iter().map(|slope| (slope - mean).abs()).fold(widest, f64::max);
        Phase { factors: (0..coils).map(constant).collect(), shift: mean * pixels as f64 / TAU }
    });
    let phases: Vec<Phase> = phases.collect();
    let off = widest * pixels as f64 / TAU;
    if off > 0.05 {
        notes.push(format!(
            "the linear phases of the coils differ by up to {off:.2} cycles per field of view: their mean is used"
        ));
    }
    notes.push(
        "lines of the other direction have the phase of PVM_EpiPhaseCorrection: its constant is in the samples, its slope in the trajectory"
            .into(),
    );
    Ok(phases)
}

/// The paths of `traj`, each of the samples that the file has, in cycles per field of view; `matrix` is the
/// number of voxels along each axis.
///
/// Errors: no file; a size or places that cannot be.
pub(super) fn of_file(folder: &Folder, projections: usize, matrix: &[usize]) -> Result<Vec<ArcArray2<f32>>> {
    let path = folder.path.join(TRAJECTORY);
    if !path.is_file() {
        return Err(Error::field(&folder.path, TRAJECTORY, "the file with the places of samples", "none")
            .with_hint("copy traj of the scan beside its raw data"));
    }
    let mut file = opening::open(&path)?;
    let bytes = file.metadata().map_err(|e| Error::read(&path, e))?.len();
    let dims = matrix.len();
    let each = 8 * dims as u64 * projections as u64;
    if bytes == 0 || each == 0 || bytes % each != 0 || bytes / each > LONGEST as u64 {
        let expected =
            format!("a multiple of {each} bytes ({dims} numbers for samples of {projections} projections)");
        return Err(Error::field(&path, "size of the file", expected, format!("{bytes} bytes")));
    }
    let samples = (bytes / each) as usize;
    let mut buffer = zeroed("a projection of traj", 8 * dims * samples).map_err(|e| Error::core(&path, e))?;
    let mut paths = Vec::with_capacity(projections);
    let mut farthest = 0.0f64;
    for projection in 0..projections {
        std::io::Read::read_exact(&mut file, &mut buffer).map_err(|e| Error::read(&path, e))?;
        let numbers: Vec<f64> =
            buffer.as_chunks::<8>().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect();
        if let Some(wrong) = numbers.iter().find(|number| number.is_nan() || number.abs() > FARTHEST) {
            let expected = format!("cycles per voxel, at most {FARTHEST}");
            return Err(Error::field(&path, format!("projection {projection}"), expected, wrong));
        }
        farthest = numbers.iter().fold(farthest, |most, number| most.max(number.abs()));
        let place =
            |(sample, axis): (usize, usize)| (numbers[dims * sample + axis] * matrix[axis] as f64) as f32;
        paths.push(Array2::from_shape_fn((samples, dims), place).into_shared());
    }
    if farthest == 0.0 {
        return Err(Error::field(&path, "places of samples", "numbers other than 0", "0 alone"));
    }
    Ok(paths)
}
