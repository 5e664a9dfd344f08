//! Options that say what of a scan is reconstructed.

use rayspin_core::{Error, TrajectoryUnits};
use rayspin_mri::scan::{TrajectoryFov, Window};

use super::super::basis::BasisOf;
use super::super::effect::{HEADER, NUMBERED, OVER_A_BASIS, Requirement};
use super::super::request::Beside;
use super::Row;
use crate::rows::{Kind, Setting, choice, expect_fov, typed};

const SCAN: &str = "Scan";

/// No T2 of 10 ms or more shows in echoes that are all earlier than this.
const SHORT_TIMES_MS: f64 = 0.5;

/// What to do about a counter that the scan has not.
const HOLDS: &str = "`rayspin info FILE` lists what the file holds";
/// What to do about too few readouts.
const COUNTS: &str = "`rayspin info FILE` counts readouts and repetitions";

pub(super) const ROWS: &[Row] = &[
    Row::new(SCAN, "traj", Kind::File, "Trajectory of a scan without a header ({arrays read})")
        .details(
            "BART [3, readout, spoke], for each image of a series or for all, or NumPy [sample, dim] or [spoke, readout, dim]. \
             Components are kx, ky, kz in this order (SigPy's are the other way round: kz, ky, kx).",
        )
        .value("FILE")
        .keyword("trajectory")
        .needs(&[Requirement::Described, Requirement::Array])
        .recorded("trajectory", |request| serde_json::json!(request.arrays.trajectory))
        .puts(|request, given| {
            request.arrays.trajectory = Some(given.file()?.to_owned());
            Ok(())
        }),
    Row::new(SCAN, "traj_units", Kind::Text, "Units of the trajectory, such as cycles/fov [default: by range]")
        .remedies(&[
            (
                &["trajectory units"],
                "say which they are with `--traj-units`, or the matrix with `--matrix`; components are kx, \
                 ky, kz, not SigPy's kz, ky, kx",
            ),
        ])
        .details(
            "cycles/fov, cycles/voxel, radians/voxel, cycles/m, radians/m or cycles/cm. Replaces the unit that the file states or that follows \
             from the range of the points. `--traj` needs `--traj-units` or `--matrix`, except for BART arrays that reach beyond 4.",
        )
        .value("UNITS")
        .keyword("trajectory_units")
        .needs(&[Requirement::Described, Requirement::Trajectory])
        .recorded("trajectory units", |request| serde_json::json!(request.frames.units.map(|units| units.to_string())))
        .puts(|request, given| {
            let units: TrajectoryUnits = given.text()?.parse()?;
            (request.arrays.units, request.frames.units) = (Some(units), Some(units));
            Ok(())
        }),
    Row::new(SCAN, "sequence", Kind::File, "Pulseq sequence (.seq) that made the scan; its gradients are the trajectory")
        .remedies(&[(&["ADC events"], "`--sequence` takes the sequence that made this scan")])
        .details(
            "Versions 1.2 to 1.5. The field of view is the sequence's, and the matrix holds all samples unless `--matrix` sets it. \
             The sequence must have an ADC event for each readout of the scan, of as many samples. \
             Readouts that are lines of a grid make a Cartesian or echo-planar scan, but for methods that take trajectories alone.",
        )
        .value("FILE")
        .rare()
        .needs(HEADER)
        .recorded("sequence", |request| serde_json::json!(request.sequence))
        .puts(|request, given| {
            request.sequence = Some(given.file()?.to_owned());
            Ok(())
        }),
    Row::new(
        SCAN,
        "traj_fov",
        Kind::Names(&[
            choice("encoded", "The encoded one, with oversampling"),
            choice("recon", "The reconstructed one"),
        ]),
        "Field of view that a trajectory in cycles/fov counts over [default: by range]",
    )
    .details(
        "The header's encoded field of view, unless it is wider than the image's (oversampling) and the points stay within the \
         image's own k-space and fill it. Then it is the image's.",
    )
    .value("TRAJ_FOV")
    .rare()
    .keyword("trajectory_fov")
    .needs(&[Requirement::Header, Requirement::Trajectory])
    .recorded("trajectory field of view", |request| serde_json::json!(request.frames.trajectory.fov))
    .puts(|request, given| {
        let views = [("encoded", TrajectoryFov::Encoded), ("recon", TrajectoryFov::Recon)];
        request.frames.trajectory.fov = Some(given.one_of(&views)?);
        Ok(())
    }),
    Row::new(
        SCAN,
        "traj_weights",
        Kind::Flag,
        "The last column of the trajectory holds density weights: leave it out",
    )
    .details(
        "A fourth column always does, and so does a third one that is never negative in a two-dimensional ISMRMRD scan.",
    )
    .rare()
    .keyword("trajectory_weights")
    .needs(&[Requirement::Described, Requirement::Trajectory])
    .recorded("trajectory weights", |request| request.frames.trajectory.weights.into())
    .puts(|request, _| {
        (request.arrays.weights, request.frames.trajectory.weights) = (true, true);
        Ok(())
    }),
    Row::new(SCAN, "matrix", Kind::Counts(&[2, 3]), "Matrix of the image [default: the scan's own]")
        .remedies(&[
            (
                &["matrix", "matrix size", "matrix along x", "matrix along y", "matrix along z"],
                "`--matrix X,Y[,Z]` sets it",
            ),
        ])
        .details("The field of view stays as it is.")
        .value("X,Y[,Z]")
        .needs(&[Requirement::Described])
        .puts(|request, given| {
            let matrix = given.counts()?;
            (request.arrays.matrix, request.frames.matrix) = (Some(matrix.clone()), Some(matrix));
            Ok(())
        }),
    Row::new(SCAN, "fov", Kind::Numbers(&[2, 3]), "Field of view in mm of a scan without a header")
        .remedies(&[(&["field of view"], "`--fov` says it of a file without a header")])
        .value("X,Y[,Z]")
        .keyword("fov_mm")
        .needs(&[Requirement::Described, Requirement::Array])
        .puts(|request, given| {
            let fov = given.numbers()?;
            expect_fov(given.name, &fov)?;
            request.arrays.fov_mm = Some(fov);
            Ok(())
        }),
    Row::new(SCAN, "order", Kind::Text, "What each axis of an array counts, such as x,y,slice,coil [default: the format's own]")
        .remedies(&[
            (
                &["order", "axes of the array", "axes of the k-space"],
                "`--order` names each axis, such as coil,z,y,x or readout,spoke,coil",
            ),
        ])
        .details(
            "On a grid x, y, z and coil; with `--traj` readout, spoke and coil, or sample and coil. Images are counted by slice, \
             repetition, contrast and phase (cardiac). 1 is an axis of length 1. The order is the one in which NumPy, h5py or MATLAB \
             shows the shape; of BART's dimensions READ is the first.",
        )
        .value("AXIS,AXIS,...")
        .rare()
        .needs(&[Requirement::Described, Requirement::Array])
        .recorded("order", |request| serde_json::json!(request.arrays.order.as_ref().map(ToString::to_string)))
        .puts(|request, given| {
            request.arrays.order = Some(given.text()?.parse()?);
            Ok(())
        }),
    Row::new(SCAN, "encoding", Kind::Count, "Encoding to reconstruct [default: the first that holds images]")
        .remedies(&[(&["encoding"], HOLDS)])
        .value("N")
        .rare()
        .needs(HEADER)
        .puts(|request, given| {
            request.selection.encoding = Some(given.count()?);
            Ok(())
        }),
    Row::new(SCAN, "slice", Kind::Ranges, "Only these slices, counted from 0: 3, 1-2 or 0,3 [default: all]")
        .remedies(&[(&["slice", "selection", "acquisition", "acquisitions"], HOLDS)])
        .value("NUMBERS")
        .keyword("slices")
        .needs(NUMBERED)
        .recorded("slice", |request| typed(&request.selection.slice))
        .puts(|request, given| {
            request.selection.slice = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(SCAN, "repetition", Kind::Ranges, "Only these repetitions, counted from 0 [default: all]")
        .remedies(&[
            (&["repetition"], HOLDS),
            (&["repetitions"], COUNTS),
        ])
        .value("NUMBERS")
        .keyword("repetitions")
        .needs(NUMBERED)
        .recorded("repetition", |request| typed(&request.selection.repetition))
        .puts(|request, given| {
            request.selection.repetition = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(
        SCAN,
        "readouts",
        Kind::Ranges,
        "Only these readouts of each image, counted from 0 in order of acquisition",
    )
    .remedies(&[(&["readouts"], COUNTS)])
    .details(
        "With `--window` they are counted over the whole scan. On a grid the other lines are then missing: keep the centre of k-space. \
         Readouts of an array are found along its trajectory; rayspin info counts them.",
    )
    .value("NUMBERS")
    .rare()
    .needs(&[Requirement::Readouts])
    .recorded("readouts", |request| typed(&request.frames.readouts))
    .puts(|request, given| {
        let readouts = given.ranges()?;
        (request.arrays.readouts, request.frames.readouts) = (Some(readouts.clone()), Some(readouts));
        Ok(())
    }),
    Row::new(SCAN, "contrast", Kind::Ranges, "Only these contrasts (usually echoes), counted from 0 [default: all]")
        .remedies(&[(&["contrast", "contrasts", "volumes"], HOLDS)])
        .details("With `--window` the default is the first contrast.")
        .value("NUMBERS")
        .rare()
        .keyword("contrasts")
        .needs(NUMBERED)
        .recorded("contrast", |request| typed(&request.selection.contrast))
        .puts(|request, given| {
            request.selection.contrast = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(SCAN, "cardiac_phase", Kind::Ranges, "Only these cardiac phases, counted from 0 [default: all]")
        .remedies(&[(&["cardiac phase", "cardiac phases"], HOLDS)])
        .details("With `--window` the default is the first cardiac phase.")
        .value("NUMBERS")
        .rare()
        .keyword("cardiac_phases")
        .needs(NUMBERED)
        .recorded("cardiac phase", |request| typed(&request.selection.phase))
        .puts(|request, given| {
            request.selection.phase = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(SCAN, "set", Kind::Ranges, "Only these sets (such as velocity encodings), counted from 0 [default: all]")
        .remedies(&[(&["set", "sets"], HOLDS)])
        .details("With `--window` the default is the first set.")
        .value("NUMBERS")
        .rare()
        .keyword("sets")
        .needs(NUMBERED)
        .recorded("set", |request| typed(&request.selection.set))
        .puts(|request, given| {
            request.selection.set = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(SCAN, "average", Kind::Ranges, "Only these averages, counted from 0 [default: the mean of all]")
        .remedies(&[(&["average"], HOLDS)])
        .details("Readouts of other averages are left out.")
        .value("NUMBERS")
        .rare()
        .keyword("averages")
        .needs(HEADER)
        .recorded("average", |request| typed(&request.averages))
        .puts(|request, given| {
            request.averages = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(SCAN, "window", Kind::Count, "Sliding window of N readouts an image, as for golden angles")
        .remedies(&[(&["window"], COUNTS)])
        .details(
            "Readouts are taken in order of acquisition and across repetitions. Without it the file defines the images.",
        )
        .value("N")
        .needs(&[Requirement::Readouts])
        .recorded("window", |request| serde_json::json!(request.selection.window.map(|window| window.readouts)))
        .puts(|request, given| {
            let readouts = given.count()?;
            request.selection.window = Some(Window { readouts, stride: readouts, frames: None });
            Ok(())
        }),
    Row::new(
        SCAN,
        "stride",
        Kind::Count,
        "Readouts from one window to the next [default: the window, so that no readout is in two images]",
    )
    .remedies(&[(&["stride"], COUNTS)])
    .value("N")
    .rare()
    .beside("window")
    .recorded("stride", |request| serde_json::json!(request.selection.window.map(|window| window.stride)))
    .puts(|request, given| {
        let stride = given.count()?;
        request.selection.window.iter_mut().for_each(|window| window.stride = stride);
        Ok(())
    }),
    Row::new(SCAN, "frames", Kind::Count, "Only the first N windows")
        .remedies(&[(&["frames"], COUNTS)])
        .value("N")
        .rare()
        .keyword("windows")
        .beside("window")
        .recorded("frames", |request| serde_json::json!(request.selection.window.and_then(|window| window.frames)))
        .puts(|request, given| {
            let frames = given.count()?;
            request.selection.window.iter_mut().for_each(|window| window.frames = Some(frames));
            Ok(())
        }),
    Row::new(
        SCAN,
        "basis",
        Kind::DoubleOr(BasisOf::PREFIX),
        "Write the few coefficient images c_i whose sums x_f = Σ_i Φ_fi c_i are the images of the series",
    )
    .remedies(&[
        (
            &["temporal basis", "coefficients of a temporal basis"],
            "`--basis` has a row for each image of the series; svd:K takes the header's echo times, or \
             `--echo-times`",
        ),
    ])
    .details(
        "The images of a series are its volumes or windows. FILE is Φ, [image, \
         coefficient] ({arrays read}; a BART array has images in TE and coefficients in COEFF). svd:K is the first K singular \
         vectors of 256 decays e^(-t/T2) with T2 from 10 ms to 2 s at the echo times t. The run record has Φ. Methods: \
         {methods over a basis}. Excludes `--field-map`, `--independent`, `--map-sets 2`, `--lambda auto` and `--reference`.",
    )
    .value("FILE|svd:K")
    .rare()
    .needs(&[OVER_A_BASIS, Requirement::Volumes])
    .recorded("basis", |request| request.basis.as_ref().map_or(serde_json::Value::Null, BasisOf::recorded))
    .puts(|request, given| {
        request.basis = Some(match given.setting {
            Setting::Double(array) => BasisOf::Given(Beside::Array(array.clone())),
            Setting::File(path) => BasisOf::Given(Beside::File(path.clone())),
            _ => {
                let text = given.text()?;
                let count = text.strip_prefix(BasisOf::PREFIX).and_then(|count| count.parse().ok());
                let expected = "svd: and a number of coefficients, such as svd:4";
                BasisOf::Decays(count.ok_or_else(|| Error::value(given.name, expected, text))?)
            }
        });
        Ok(())
    }),
    Row::new(
        SCAN,
        "echo_times",
        Kind::Numbers(&[]),
        "Echo time of each image in ms, for `--basis svd:K` [default: sequenceParameters/TE of the header]",
    )
    .value("MS,MS,...")
    .rare()
    .keyword("echo_times_ms")
    .beside("basis")
    .recorded("echo times", |request| serde_json::json!(request.echo_times_s))
    .puts(|request, given| {
        if !matches!(request.basis, Some(BasisOf::Decays(_))) {
            return Err(Error::value(given.name, "`--basis svd:K` beside it", "a basis that is given").into());
        }
        let times = given.numbers()?;
        if times.iter().any(|&ms| !(ms >= 0.0 && ms.is_finite())) {
            return Err(Error::value(given.name, "times in ms, not negative", format!("{times:?}")).into());
        }
        if times.iter().all(|&ms| ms < SHORT_TIMES_MS) {
            let expected = "times in ms";
            return Err(Error::value(given.name, expected, format!("{times:?}, which are seconds if anything")).into());
        }
        request.echo_times_s = Some(times.into_iter().map(|ms| ms * 1e-3).collect());
        Ok(())
    }),
    Row::new(
        SCAN,
        "independent",
        Kind::Flag,
        "Estimate coil sensitivities anew for each volume or window",
    )
    .details(
        "The largest eigenvalue, to which λ is relative, is computed anew too. Without this option both are computed once for all \
         images.",
    )
    .rare()
    .needs(&[Requirement::Shared, Requirement::Volumes])
    .recorded("independent", |request| request.options.independent.into())
    .puts(|request, _| {
        request.options.independent = true;
        Ok(())
    }),
];
