//! The frames of a series as one frame of points, for encodings over all of them.

use ndarray::{Array2, Axis, concatenate, s};
use rayspin_core::{Error, Result, Trajectory, expect_shape};

use super::kinds::{places, values_at};
use crate::scan::{Frame, Samples};

/// The frames of a series as one frame of points, and the number of points of each. Frames are given up one
/// after another.
///
/// Errors: no frame; frames of other matrices or numbers of coils than the first one's; memory.
pub(crate) fn joined(frames: Vec<Frame>) -> Result<(Frame, Vec<usize>)> {
    let interpolated = frames.iter().any(|frame| frame.interpolated);
    let Some(first) = frames.first() else { return Err(Error::value("frames", "at least one", 0)) };
    let (label, matrix, geometry, coils) = (first.label, first.matrix.clone(), first.geometry, first.coils());
    let samples: Vec<usize> = frames.iter().map(measured).collect();
    let count: usize = samples.iter().sum();
    let mut points = Vec::with_capacity(frames.len());
    let mut data = Array2::zeros((coils, count));
    let mut start = 0;
    for frame in frames {
        if frame.matrix != matrix {
            return Err(Error::value("frames of a series", "one matrix throughout", "different matrices"));
        }
        expect_shape("coils of a frame of the series", &[coils], &[frame.coils()])?;
        let (trajectory, values) = match frame.samples {
            Samples::NonCartesian { trajectory, data } => (trajectory, data),
            Samples::Cartesian { kspace, sampled } => {
                let (measured, trajectory) = places(&sampled, &matrix)?;
                (trajectory, values_at(&kspace, &measured))
            }
        };
        data.slice_mut(s![.., start..start + values.ncols()]).assign(&values);
        start += values.ncols();
        points.push(trajectory);
    }
    let views: Vec<_> = points.iter().map(Trajectory::points).collect();
    let points = concatenate(Axis(0), &views).map_err(|_| {
        Error::value("frames of a series", "points of as many dimensions", "different numbers")
    })?;
    let trajectory = Trajectory::from_cycles_per_fov(points)?;
    let joined = Samples::NonCartesian { trajectory, data };
    let (times, calibration) = (None, None);
    Ok((Frame { label, matrix, geometry, samples: joined, times, calibration, interpolated }, samples))
}

/// What a run says of frames that are [`joined`].
pub(crate) fn notes_of_joined(frames: &[Frame]) -> Vec<String> {
    let mut notes = Vec::new();
    if frames.iter().any(|frame| matches!(frame.samples, Samples::Cartesian { .. })) {
        let text = "temporal subspace: lines of the grid are encoded as points at their places, by a NUFFT";
        notes.push(text.to_owned());
    }
    if frames.iter().any(|frame| frame.calibration.is_some()) {
        let text = "calibration lines apart from the images are not used with a temporal basis: sensitivities \
                    come from the samples of all frames (`--maps` overrides)";
        notes.push(text.to_owned());
    }
    notes
}

/// `count` frames that are measured as this one, [`joined`], with values of 0, which take no memory until
/// something reads them: for plans, where the other frames are not known.
pub(crate) fn repeated(frame: &Frame, count: usize) -> Result<(Frame, Vec<usize>)> {
    let trajectory = match &frame.samples {
        Samples::NonCartesian { trajectory, .. } => trajectory.clone(),
        Samples::Cartesian { sampled, .. } => places(sampled, &frame.matrix)?.1,
    };
    let samples = trajectory.samples();
    let views = vec![trajectory.points(); count];
    let points = concatenate(Axis(0), &views)
        .map_err(|_| Error::value("frames of a series", "at least one", count))?;
    let data = Array2::zeros((frame.coils(), samples * count));
    let joined = Samples::NonCartesian { trajectory: Trajectory::from_cycles_per_fov(points)?, data };
    let (label, matrix, geometry) = (frame.label, frame.matrix.clone(), frame.geometry);
    let (times, calibration, interpolated) = (None, None, frame.interpolated);
    let joined = Frame { label, matrix, geometry, samples: joined, times, calibration, interpolated };
    Ok((joined, vec![samples; count]))
}

/// The number of samples of a coil that a frame holds.
pub(crate) fn measured(frame: &Frame) -> usize {
    match &frame.samples {
        Samples::NonCartesian { trajectory, .. } => trajectory.samples(),
        Samples::Cartesian { sampled, .. } => sampled.iter().filter(|known| **known).count(),
    }
}
