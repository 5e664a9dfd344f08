//! What every method obeys, measured: use it on your own methods.

use std::collections::BTreeSet;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::Device;

use crate::encoding::takes;
use crate::methods::{Method, Methods, Span, Value, with};
use crate::recon::plan::{self, Planned};
use crate::recon::{Frames, ReconOptions, reconstruct_frames};
use crate::scan::{Frame, FrameOptions, Label, Samples};
use crate::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use crate::simulate::{SimulateOptions, simulate};

/// How far an image of a scan that is 100 times as bright may be from 100 times the image.
const GAIN: f64 = 1e-3;
/// How far an image of another device may be.
const DEVICE: f64 = 1e-3;

/// Checks a method with its default parameters:
///
/// * Its parameters have distinct names and defaults in range, and take back what they give. They agree in
///   kind with parameters of the same name in `among`.
/// * An image of a scan 100 times as bright is 100 times the image, and finite.
/// * The stages that run are stages that were planned.
/// * Every device gives the same image.
///
/// Errors: the first that does not hold, named.
pub fn check(method: &dyn Method, among: &Methods, devices: &[Device]) -> Result<()> {
    check_table(method, among)?;
    let mut first: Option<ArrayD<C32>> = None;
    for device in devices {
        let frames = frames(method, 1.0)?;
        let (image, stages) = image(method, frames.clone(), device)?;
        let planned = planned(method, &frames, device)?;
        if let Some(unplanned) = stages.iter().find(|stage| !planned.contains(*stage)) {
            return Err(broken(method, "stages that were planned", format!("the stage '{unplanned}'")));
        }
        let bright = self::image(method, self::frames(method, 100.0)?, device)?.0.mapv(|v| v / 100.0);
        let apart = relative(&bright, &image);
        if apart.is_nan() || apart > GAIN {
            return Err(broken(
                method,
                "100 times the image of a scan 100 times as bright",
                format!("{apart:e} apart"),
            ));
        }
        match &first {
            None => first = Some(image),
            Some(first) => {
                let apart = relative(&image, first);
                if apart.is_nan() || apart > DEVICE {
                    let found = format!("{apart:e} apart on {}", device.describe());
                    return Err(broken(method, "the same image on every device", found));
                }
            }
        }
    }
    Ok(())
}

fn broken(method: &dyn Method, law: &str, found: String) -> Error {
    Error::value(format!("method {}", method.about().name), law, found)
}

fn check_table(method: &dyn Method, among: &Methods) -> Result<()> {
    method.check_values()?;
    method.check()?;
    let known = among.params();
    let mut names = BTreeSet::new();
    for param in method.table() {
        if !names.insert(param.name) {
            return Err(broken(method, "parameters of distinct names", format!("'{}' twice", param.name)));
        }
        if let Some((other, _)) = known.iter().find(|(other, _)| other.name == param.name)
            && (other.kind, other.short) != (param.kind, param.short)
        {
            let found = format!("'{}' as {:?}", param.name, param.kind);
            return Err(broken(method, "parameters of one name to agree among methods", found));
        }
        let value = method.get(param.name).unwrap_or(Value::Nothing);
        let back = with(method, [(param.name.to_owned(), value.clone())])?.get(param.name);
        if back != Some(value) {
            return Err(broken(
                method,
                "parameters that take what they give",
                format!("'{}' as {back:?}", param.name),
            ));
        }
    }
    Ok(())
}

/// A small scan that suits the method: one frame, or several for a method over a series.
fn frames(method: &dyn Method, gain: f32) -> Result<Vec<Frame>> {
    let sampling = match takes(method.uses(), true) {
        true => Sampling::Cartesian(CartesianPattern::Uniform { acceleration: [2, 1], calibration: 12 }),
        false => Sampling::Radial { spokes: 24, angles: SpokeAngles::Golden },
    };
    let repetitions = if method.uses().span == Span::Series { 3 } else { 1 };
    let options = SimulateOptions {
        matrix: [32, 28, 1],
        coils: 3,
        sampling,
        repetitions,
        ..SimulateOptions::default()
    };
    let scan = simulate(&options, &Monitor::silent())?.scan;
    let index = scan.frames()?;
    let labels: Vec<Label> = index.labels().collect();
    let mut frames = Vec::with_capacity(labels.len());
    for label in labels {
        let mut frame = index.assemble(label, &FrameOptions::default(), &mut Vec::new())?;
        match &mut frame.samples {
            Samples::Cartesian { kspace, .. } => kspace.mapv_inplace(|v| v * gain),
            Samples::NonCartesian { data, .. } => data.mapv_inplace(|v| v * gain),
        }
        if let Some(lines) = &mut frame.calibration {
            lines.kspace.mapv_inplace(|v| v * gain);
        }
        frames.push(frame);
    }
    Ok(frames)
}

fn image(method: &dyn Method, frames: Vec<Frame>, device: &Device) -> Result<(ArrayD<C32>, Vec<String>)> {
    let options = ReconOptions::with_method(with(method, [])?);
    let labels: Vec<Label> = frames.iter().map(|frame| frame.label).collect();
    let mut next = frames.into_iter();
    let mut source =
        |_, _: &mut Vec<String>| next.next().ok_or_else(|| Error::value("frames", "one more", "none"));
    let monitor = Monitor::silent();
    let series = Frames { labels: &labels, slices: &[0], notes: Vec::new() };
    let reconstruction = reconstruct_frames(device, series, &mut source, &options, &monitor)?;
    let image = reconstruction.image.into_data();
    if image.iter().any(|v| !(v.re.is_finite() && v.im.is_finite()))
        || image.iter().all(|v| v.norm_sqr() == 0.0)
    {
        return Err(broken(method, "a finite image that is not 0", "another".into()));
    }
    Ok((image, monitor.stages().into_iter().map(|(stage, _)| stage).collect()))
}

fn planned(method: &dyn Method, frames: &[Frame], device: &Device) -> Result<BTreeSet<String>> {
    let options = ReconOptions::with_method(with(method, [])?);
    let Some(frame) = frames.first() else { return Ok(BTreeSet::new()) };
    let planned = Planned { count: frames.len(), held: 0, assembled: false, coils: frame.coils() };
    let budget = plan::of_frames(frame, &planned, &options, device, &plan::Known::default())?;
    Ok(budget.stages.into_iter().map(|stage| stage.name).collect())
}

/// ‖a − b‖ / ‖b‖.
fn relative(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    let square = |v: C32| f64::from(v.norm_sqr());
    let apart: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
    (apart / b.iter().map(|b| square(*b)).sum::<f64>()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_obeys_them() {
        let devices = [Device::cpu_with_threads(2).unwrap()];
        let methods = Methods::default();
        for method in methods.iter() {
            check(method, &methods, &devices).unwrap();
        }
    }
}
