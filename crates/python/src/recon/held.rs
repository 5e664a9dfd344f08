//! What a run looks at in a scan in memory, and its images.

use rayspin::core::{Error, Monitor};
use rayspin::device::Device;
use rayspin::mri::maps::{self, Sensitivities};
use rayspin::mri::methods::{MapUse, Value};
use rayspin::mri::prepare;
use rayspin::mri::recon::{ReconOptions, ScanImage, Selection, reconstruct_frame, reconstruct_scan};
use rayspin::mri::scan::{Facts, FrameIndex, FrameOptions, SeriesFrames};

use crate::scan::Held;

/// Refuses keywords that do nothing with the method or the scan: `of_maps`, a keyword of estimated maps that was given; `density`, where it was
/// given; and `independent`.
pub(super) fn expect_effects(
    (held, facts): (&Held, &Facts),
    (selection, frames): (&Selection, &FrameOptions),
    options: &ReconOptions,
    (of_maps, density): (Option<&str>, bool),
) -> rayspin::core::Result<()> {
    let (method, uses) = (options.method.about().name, options.method.uses());
    // One coil that sees everything alike needs none.
    let uniform = uses.maps == MapUse::One && facts.coils == 1;
    let estimates = options.maps.is_none() && options.needs_maps() && !uniform;
    if let Some(keyword) = of_maps.filter(|_| !estimates) {
        let found = match (&options.maps, uniform) {
            (Some(_), _) => "maps=".to_owned(),
            (_, true) => "one coil".to_owned(),
            _ => format!("method {method}"),
        };
        let found = format!("{found}, with which it does nothing");
        return Err(Error::value(keyword, "a run that estimates sensitivity maps", found));
    }
    let along_trajectory = !facts.on_grid;
    let weighs = (uses.density && (along_trajectory || options.field_map.is_some()))
        || (along_trajectory && estimates);
    if density && !weighs {
        let place = if along_trajectory { "a trajectory" } else { "a grid" };
        let found = format!("method {method} on {place}, with which it does nothing");
        return Err(Error::value("density", "gridding, or maps estimated along a trajectory", found));
    }
    if options.independent {
        let repetitions = match held {
            Held::Image(_) => 1,
            Held::Whole(scan) => {
                let index = scan.frames()?;
                let series = series(&index, selection, frames)?;
                series.labels().len() / series.slices()
            }
        };
        let none = options.method.get("regulariser") == Some(Value::Choice("none"));
        let shared = estimates || (uses.normal && !uses.own_eigenvalue && !none);
        if !shared {
            let expected = "estimated sensitivity maps, or a penalty";
            let found = format!("method {method}, with which it does nothing");
            return Err(Error::value("independent", expected, found));
        }
        if repetitions < 2 {
            return Err(Error::value(
                "independent",
                "several repetitions",
                "one image, for which it does nothing",
            ));
        }
    }
    Ok(())
}

pub(super) fn has_trajectory(held: &Held) -> bool {
    match held {
        Held::Whole(scan) => scan.acquisitions.iter().any(|readout| readout.trajectory.is_some()),
        Held::Image(_) => false,
    }
}

pub(super) fn reconstruct(
    device: &Device,
    held: &Held,
    (selection, frames): (&Selection, &FrameOptions),
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> rayspin::core::Result<ScanImage> {
    match held {
        Held::Whole(scan) => reconstruct_scan(device, scan, selection, frames, options, monitor),
        Held::Image(array) => {
            reconstruct_frame(device, array.frame.clone(), array.notes.clone(), options, monitor)
        }
    }
}

/// The facts that choose a method and its parameters, of the image that has the most readouts, and whether this measures the centre of
/// k-space.
pub(super) fn facts_of(
    held: &Held,
    selection: &Selection,
    frames: &FrameOptions,
) -> rayspin::core::Result<(Facts, bool)> {
    match held {
        Held::Image(array) => Ok((Facts::of(&array.frame, None, 1)?, array.frame.measures_centre())),
        Held::Whole(scan) => {
            let index = scan.frames()?;
            let series = series(&index, selection, frames)?;
            let [fullest, another] = series.fullest_and_another();
            let frame = series.image(fullest, frames, &mut Vec::new())?;
            let images = series.labels().len();
            let facts = Facts::of(&frame, Some(&prepare::measure(scan)), images)?;
            let centre = frame.measures_centre();
            if another == fullest {
                return Ok((facts, centre));
            }
            let another = series.image(another, frames, &mut Vec::new())?;
            Ok((facts.in_series(images / series.slices(), &frame, &another), centre))
        }
    }
}

/// The images of a run.
fn series<'a>(
    index: &'a FrameIndex<'a>,
    selection: &Selection,
    frames: &FrameOptions,
) -> rayspin::core::Result<SeriesFrames<'a>> {
    let labels = selection.labels(index, &mut Vec::new())?;
    index.series(&labels, selection.window.as_ref(), frames.readouts.as_ref())
}

/// Two sets of maps for an object that folds over itself, and why.
pub(super) fn second_set(
    device: &Device,
    held: &Held,
    selection: &Selection,
    frames: &FrameOptions,
    options: &ReconOptions,
) -> rayspin::core::Result<Option<(Sensitivities, String)>> {
    match held {
        _ if options.method.uses().maps != MapUse::Sets => Ok(None),
        Held::Image(array) => maps::second_set(device, &array.frame, options),
        Held::Whole(scan) => {
            let index = scan.frames()?;
            let series = series(&index, selection, frames)?;
            let [fullest, _] = series.fullest_and_another();
            let frame = series.image(fullest, frames, &mut Vec::new())?;
            maps::second_set(device, &frame, options)
        }
    }
}
