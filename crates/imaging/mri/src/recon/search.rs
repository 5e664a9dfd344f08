//! The weight λ of a penalty, searched for: by how well an image made without some samples predicts them.
//!
//! Samples in a few pieces of the scan are held out. For every λ tried an image ρ(λ) is made of the others,
//! and
//!
//! ```text
//! e(λ) = ‖E_h ρ(λ) − d_h‖² − ‖d_h‖² = ρᴴ E_hᴴE_h ρ − 2 Re ρᴴ E_hᴴ d_h
//! ```
//!
//! tells how far it is from the samples d_h that it has not seen, with E_h their encoding. Too small a λ fits
//! noise, which predicts nothing; too large a λ loses what is there. No reference image takes part.
//!
//! Stone, *Cross-validatory choice and assessment of statistical predictions*, J R Stat Soc B 36:111, 1974.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use ndarray::{Array2, ArrayD, Axis, IxDyn};
use rayspin_core::{C32, Error, Monitor, Result, Trajectory};
use rayspin_device::Array;
use rayspin_kernels::vector;
use rayspin_linop::LinearOp;
use rayspin_run::with_recovery;
use serde::Serialize;

use super::Reconstructor;
use crate::crop::centre_crop;
use crate::methods::{self, MapUse, Span, Value};
use crate::scan::{Frame, Samples};

/// The parameter that is searched for.
pub const LAMBDA: &str = "lambda";
/// About one piece in 12 is held out.
const PIECES: usize = 12;
/// Length of the pieces of a trajectory that are held out, in cycles per field of view. Neighbours within a
/// cycle hold nearly the same information. A piece longer than the gaps between readouts could not be
/// predicted from the other samples.
const PIECE: f64 = 3.0;
/// Samples of the pieces of a grid's line that are held out. Few whole lines would say little: of 21 lines a
/// twelfth is two, and their prediction was off by two powers of ten in λ.
const LINE_PIECE: usize = 4;
/// Samples nearer to the centre of k-space than this, in cycles per field of view, are never held out: they
/// carry the contrast of the image, and the maps come from them.
const CENTRE: f64 = 12.0;
/// Steps of the search, in powers of ten.
const COARSE: f64 = 1.0;
const FINE: f64 = 0.5;
/// The range of the search, in powers of ten.
const RANGE: [f64; 2] = [-8.0, 0.0];
/// The largest number of images in a search, for the plan.
pub(super) const MOST: usize = 9;

/// A λ that was searched for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Searched {
    /// The best λ.
    pub lambda: f64,
    /// Whether it lies between others that were tried; else it is the λ where the search began.
    pub inside: bool,
    /// Every λ tried and its e(λ), over the largest −e(λ): −1 is the best prediction, 0 an image of zeros.
    pub tried: Vec<[f64; 2]>,
}

/// What the samples that were held out say of an image.
struct Held {
    rhs: Array<C32>,
    normal: Arc<dyn LinearOp<C32>>,
}

impl Held {
    /// e of an image of the frame's matrix.
    fn error(&self, image: ArrayD<C32>) -> Result<f64> {
        let image = Array::from_host(self.rhs.device(), &centre_crop(image, self.rhs.shape())?)?;
        let mut seen = Array::zeros(self.rhs.device(), self.rhs.shape())?;
        self.normal.forward_into(&image, &mut seen)?;
        Ok(vector::dot(&image, &seen)?.re - 2.0 * vector::dot(&image, &self.rhs)?.re)
    }
}

impl Reconstructor {
    /// Searches for the λ of the method with a frame, and takes it from here on. Where the smallest or
    /// the largest λ is the best, the search says nothing, and the λ where it began stays.
    ///
    /// Errors: a method without λ, over a series, or that combines coil images; sets of maps; a frame too
    /// small to hold samples out; as [`Self::frame`].
    pub(super) fn search(
        &mut self,
        frame: &Frame,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<Searched> {
        let first = self.expect_lambda()?;
        let (kept, held) = split(frame)?;
        let options = self.options.clone();
        let (shared, eigenvalue) = (self.cache.shared.clone(), self.cache.eigenvalue);
        let observer = self.cache.observer.take();
        self.options.certify = None;
        self.options.keep_maps = false;
        let best = self.best(frame, [&kept, &held], first, notes, monitor);
        let sizes = self.options.run.batch_sizes;
        self.options = options;
        self.options.run.batch_sizes = sizes;
        self.cache.shared = shared;
        self.cache.eigenvalue = eigenvalue;
        self.cache.observer = observer;
        self.cache.give_back();
        let best = best?;
        let value = Value::Number(best.lambda);
        self.options.method = methods::with(&*self.options.method, [(LAMBDA.to_owned(), value)])?;
        notes.push(match best.inside {
            true => format!(
                "lambda {:.1e}: the best of {} in predicting samples that were held out (`--lambda` overrides)",
                best.lambda,
                best.tried.len()
            ),
            false => format!(
                "lambda {:.1e} stays: none of {} tried predicts samples that were held out better than those beside it (`--lambda` \
                 overrides)",
                best.lambda,
                best.tried.len()
            ),
        });
        Ok(best)
    }

    /// The λ where the search begins.
    fn expect_lambda(&self) -> Result<f64> {
        let method = &self.options.method;
        let uses = method.uses();
        let one_image = uses.span == Span::Frame && !matches!(uses.maps, MapUse::Combining(_));
        let sets = self.options.map_sets() > 1;
        match method.get(LAMBDA) {
            Some(Value::Number(first)) if one_image && !sets && first > 0.0 => Ok(first),
            _ => Err(Error::value(
                "search for lambda",
                "a method that solves for one image seen by all coils, with a penalty",
                method.about().name,
            )),
        }
    }

    fn best(
        &mut self,
        whole: &Frame,
        [kept, held]: [&Frame; 2],
        first: f64,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<Searched> {
        let uniform = self.coils(whole) == 1 && self.options.method.uses().maps == MapUse::One;
        let estimates = self.options.needs_maps() && self.options.maps.is_none() && !uniform;
        if estimates && self.cache.shared.is_none() {
            self.cache.shared = Some(self.estimate(whole, &mut Vec::new(), monitor)?);
        }
        self.cache.eigenvalue = None;
        let held = with_recovery(self, notes, |recon, _| {
            recon.cache.give_back();
            let (rhs, normal) = recon.encode(held, monitor)?;
            Ok(Held { rhs, normal })
        })?;
        self.cache.give_back();
        let mut errors = Vec::new();
        let exponent = minimum(first.log10(), |exponent| {
            let lambda = (LAMBDA.to_owned(), Value::Number(10f64.powf(exponent)));
            self.options.method = methods::with(&*self.options.method, [lambda])?;
            let made =
                with_recovery(self, notes, |recon, _| recon.attempt(Cow::Borrowed(kept), None, monitor))?;
            // Every λ keeps the same samples.
            self.cache.eigenvalue = made.solve.map(|solve| solve.eigenvalue);
            let error = held.error(made.image)?;
            if !error.is_finite() {
                return Err(Error::Numerical {
                    what: "search for lambda".into(),
                    detail: "the samples held out were predicted by numbers that are not finite".into(),
                });
            }
            errors.push([10f64.powf(exponent), error]);
            Ok(error)
        })?;
        let scale = errors.iter().map(|[_, error]| -error).fold(f64::MIN_POSITIVE, f64::max);
        let beyond =
            |way: fn(f64, f64) -> bool| errors.iter().any(|[lambda, _]| way(lambda.log10(), exponent));
        let inside = beyond(|tried, best| tried < best - 1e-9) && beyond(|tried, best| tried > best + 1e-9);
        let tried = errors.iter().map(|[lambda, error]| [*lambda, error / scale]).collect();
        Ok(Searched { lambda: if inside { 10f64.powf(exponent) } else { first }, inside, tried })
    }

    /// Right-hand side and normal operator of a frame.
    fn encode(
        &mut self,
        frame: &Frame,
        monitor: &Monitor<'_>,
    ) -> Result<(Array<C32>, Arc<dyn LinearOp<C32>>)> {
        let mixing = self.mixing.clone();
        let context = self.context(self.coils(frame));
        let mut inputs = super::Inputs::new(Cow::Borrowed(frame));
        let samples = inputs.take_samples()?;
        let spec = self.options.encoding(&self.device, &inputs, context)?;
        let mut solving = super::Solving::new(&spec, samples, mixing.as_deref(), &mut self.cache)?;
        rayspin_run::run(spec.frame_of_series(), &mut solving, monitor)?;
        Ok((solving.take_rhs()?, solving.normal()?))
    }
}

/// Where a function of log₁₀ λ with one valley is least: steps of a power of ten downhill from `first`, half
/// a power beside the least, and the vertex of the parabola through the least three.
fn minimum(first: f64, mut objective: impl FnMut(f64) -> Result<f64>) -> Result<f64> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut evaluate = |x: f64, points: &mut Vec<(f64, f64)>| -> Result<()> {
        let x = x.clamp(RANGE[0], RANGE[1]);
        if points.len() < MOST && points.iter().all(|(known, _)| (known - x).abs() > 1e-9) {
            points.push((x, objective(x)?));
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        Ok(())
    };
    let least = |points: &[(f64, f64)]| {
        // Ties go to the larger λ: less noise.
        (0..points.len()).rev().min_by(|&a, &b| points[a].1.total_cmp(&points[b].1)).unwrap_or(0)
    };
    for x in [first, first - COARSE, first + COARSE] {
        evaluate(x, &mut points)?;
    }
    loop {
        let (index, count) = (least(&points), points.len());
        if index == 0 {
            evaluate(points[0].0 - COARSE, &mut points)?;
        } else if index + 1 == count {
            evaluate(points[count - 1].0 + COARSE, &mut points)?;
        }
        if points.len() == count {
            break;
        }
    }
    let centre = points[least(&points)].0;
    evaluate(centre - FINE, &mut points)?;
    evaluate(centre + FINE, &mut points)?;
    let index = least(&points);
    if index == 0 || index + 1 == points.len() {
        return Ok(points[index].0);
    }
    let [(x0, y0), (x1, y1), (x2, y2)] = [points[index - 1], points[index], points[index + 1]];
    let (left, right) = ((x1 - x0) * (y1 - y2), (x1 - x2) * (y1 - y0));
    let bend = left - right;
    if bend == 0.0 {
        return Ok(x1);
    }
    Ok((x1 - 0.5 * ((x1 - x0) * left - (x1 - x2) * right) / bend).clamp(x0, x2))
}

/// The pieces that are held out of `candidates`: one of [`PIECES`], in the order of a hash, so that no period
/// of the sampling matches.
fn held_out(candidates: BTreeSet<u64>) -> BTreeSet<u64> {
    let hash = |piece: &u64| {
        let mut x = piece.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let count = candidates.len().div_ceil(PIECES);
    let mut ordered: Vec<u64> = candidates.into_iter().collect();
    ordered.sort_by_key(hash);
    ordered.into_iter().take(count).collect()
}

/// The frame without the samples that are held out, and these alone.
fn split(frame: &Frame) -> Result<(Frame, Frame)> {
    let parts = match &frame.samples {
        Samples::Cartesian { kspace, sampled } => split_grid(kspace, sampled, &frame.times),
        Samples::NonCartesian { trajectory, data } => split_trajectory(frame, trajectory, data)?,
    };
    let too_few = || Error::value("search for lambda", "more samples to hold some out", "too few");
    let [kept, held] = parts.ok_or_else(too_few)?;
    let frame_with = |(samples, times)| Frame { samples, times, ..without_samples(frame) };
    Ok((frame_with(kept), frame_with(held)))
}

/// All of a frame but its samples and their times.
fn without_samples(frame: &Frame) -> Frame {
    Frame {
        label: frame.label,
        matrix: frame.matrix.clone(),
        geometry: frame.geometry,
        samples: Samples::Cartesian { kspace: ArrayD::zeros(vec![0]), sampled: ArrayD::default(vec![0]) },
        times: None,
        calibration: frame.calibration.clone(),
        interpolated: frame.interpolated,
    }
}

/// Samples, and the times of all of them.
type Part = (Samples, Option<Vec<f64>>);

/// Pieces of the lines of a grid, or places where lines have gaps.
fn split_grid(kspace: &ArrayD<C32>, sampled: &ArrayD<bool>, times: &Option<Vec<f64>>) -> Option<[Part; 2]> {
    let axes = sampled.ndim();
    let count = |line: ndarray::ArrayView1<'_, bool>| line.iter().filter(|known| **known).count();
    let counts: Vec<usize> =
        sampled.lanes(Axis(axes - 1)).into_iter().map(count).filter(|&n| n > 0).collect();
    let lines = counts.iter().all(|n| *n == counts[0]);
    let shape = sampled.shape().to_vec();
    let own = if lines { axes - 1 } else { axes };
    let piece = |index: &IxDyn| {
        let place = |axis: usize| if axis < own { index[axis] } else { index[axis] / LINE_PIECE };
        (0..axes).fold(0, |piece, axis| piece * shape[axis] as u64 + place(axis) as u64)
    };
    let off = |index: &IxDyn, axis: usize| (index[axis] as f64 - (shape[axis] / 2) as f64).abs();
    let far = |index: &IxDyn| (0..own).any(|axis| off(index, axis) >= CENTRE.min(shape[axis] as f64 / 4.0));
    let candidates = sampled.indexed_iter().filter(|(index, known)| **known && far(index));
    let held = held_out(candidates.map(|(index, _)| piece(&index)).collect());
    if held.is_empty() {
        return None;
    }
    let mut out = sampled.clone();
    for (index, known) in out.indexed_iter_mut() {
        *known = *known && held.contains(&piece(&index));
    }
    let kept = ndarray::Zip::from(sampled).and(&out).map_collect(|known, held| *known && !*held);
    let masked = |mask: &ArrayD<bool>| {
        let mut kspace = kspace.clone();
        for mut coil in kspace.axis_iter_mut(Axis(0)) {
            ndarray::Zip::from(&mut coil).and(mask).for_each(|value, known| {
                if !*known {
                    *value = C32::ZERO;
                }
            });
        }
        kspace
    };
    let part = |sampled: ArrayD<bool>| Samples::Cartesian { kspace: masked(&sampled), sampled };
    Some([(part(kept), times.clone()), (part(out), times.clone())])
}

/// Pieces of the readouts of a trajectory.
fn split_trajectory(frame: &Frame, trajectory: &Trajectory, data: &Array2<C32>) -> Result<Option<[Part; 2]>> {
    let samples = trajectory.samples();
    let near = |sample: usize| trajectory.point(sample).iter().map(|k| k * k).sum::<f64>() < CENTRE * CENTRE;
    let mut indices = [Vec::new(), Vec::new()];
    let step = |sample: usize| {
        let (a, b) = (trajectory.point(sample - 1), trajectory.point(sample));
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < samples {
        let (mut end, mut length) = (start + 1, 0.0);
        while end < samples {
            length += step(end);
            if length >= PIECE {
                break;
            }
            end += 1;
        }
        pieces.push(start..end);
        start = end;
    }
    let candidates = pieces.iter().enumerate().filter(|(_, piece)| !(*piece).clone().any(near));
    let held = held_out(candidates.map(|(index, _)| index as u64).collect());
    for (index, piece) in pieces.into_iter().enumerate() {
        indices[usize::from(held.contains(&(index as u64)))].extend(piece);
    }
    if indices.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    let part_of = |indices: &[usize]| -> Result<Part> {
        let points = trajectory.points().select(Axis(0), indices);
        let times = frame.times.as_ref().map(|times| indices.iter().map(|&i| times[i]).collect());
        let trajectory = Trajectory::from_cycles_per_fov(points)?;
        Ok((Samples::NonCartesian { trajectory, data: data.select(Axis(1), indices) }, times))
    };
    Ok(Some([part_of(&indices[0])?, part_of(&indices[1])?]))
}
