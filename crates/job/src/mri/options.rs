//! The options of a run of an MRI scan, one row each.

use rayspin_core::{Error, TrajectoryUnits};
use rayspin_mri::maps::{EspiritOptions, Sensitivities};
use rayspin_mri::prepare::{Compression, CompressionKind, VirtualCoils};
use rayspin_mri::recon::Density;
use rayspin_mri::scan::{ReversedCentre, TrajectoryFov, Window};
use rayspin_run::{BadInput, Certify};

use super::effect::{HEADER, IN_A_FIELD, ITERATES, NUMBERED, Needs};
use super::request::{Beside, Request};
use crate::Result;
use crate::rows::{Kind, Named, OptionRow, Setting, choice, expect_fov, typed};

type Row = OptionRow<Request, Needs>;

const SCAN: &str = "Scan";
const COILS: &str = "Coils";
const FIELD: &str = "Field and accuracy";
const RUN: &str = "Run";

/// The options of a run besides the parameters of methods, whose tables say who has them.
pub const OPTIONS: &[Row] = &[
    Row::program("scan", &[]),
    Row::program("outputs", &[]),
    Row::program("complex", &[Needs::Numbers, Needs::Phase]),
    Row::program("phase", &[Needs::Phase]),
    Row::program("dry_run", &[]),
    Row::new(SCAN, "traj", Kind::File, "Trajectory of a scan without a header ({arrays read})")
        .details(
            "BART [3, readout, spoke], for each image of a series or for all, or NumPy [sample, dim] or [spoke, readout, dim]. \
             Components are kx, ky, kz in this order (SigPy's are the other way round: kz, ky, kx).",
        )
        .value("FILE")
        .keyword("trajectory")
        .needs(&[Needs::Described, Needs::Array])
        .recorded("trajectory", |request| serde_json::json!(request.arrays.trajectory))
        .puts(|request, given| {
            request.arrays.trajectory = Some(given.file()?.to_owned());
            Ok(())
        }),
    Row::new(SCAN, "traj_units", Kind::Text, "Units of the trajectory, such as cycles/fov [default: by range]")
        .details(
            "cycles/fov, cycles/voxel, radians/voxel, cycles/m or radians/m. Replaces the unit that the file states or that follows \
             from the range of the points. --traj needs --traj-units or --matrix, except for BART arrays that reach beyond 4.",
        )
        .value("UNITS")
        .keyword("trajectory_units")
        .needs(&[Needs::Described, Needs::Trajectory])
        .recorded("trajectory units", |request| serde_json::json!(request.frames.units.map(|units| units.to_string())))
        .puts(|request, given| {
            let units: TrajectoryUnits = given.text()?.parse()?;
            (request.arrays.units, request.frames.units) = (Some(units), Some(units));
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
    .needs(&[Needs::Header, Needs::Trajectory])
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
    .needs(&[Needs::Described, Needs::Trajectory])
    .recorded("trajectory weights", |request| request.frames.trajectory.weights.into())
    .puts(|request, _| {
        (request.arrays.weights, request.frames.trajectory.weights) = (true, true);
        Ok(())
    }),
    Row::new(SCAN, "matrix", Kind::Counts(&[2, 3]), "Matrix of the image [default: the scan's own]")
        .details("The field of view stays as it is.")
        .value("X,Y[,Z]")
        .needs(&[Needs::Described])
        .puts(|request, given| {
            let matrix = given.counts()?;
            (request.arrays.matrix, request.frames.matrix) = (Some(matrix.clone()), Some(matrix));
            Ok(())
        }),
    Row::new(SCAN, "fov", Kind::Numbers(&[2, 3]), "Field of view in mm of a scan without a header")
        .value("X,Y[,Z]")
        .keyword("fov_mm")
        .needs(&[Needs::Described, Needs::Array])
        .puts(|request, given| {
            let fov = given.numbers()?;
            expect_fov(given.name, &fov)?;
            request.arrays.fov_mm = Some(fov);
            Ok(())
        }),
    Row::new(
        SCAN,
        "centre_line",
        Kind::Count,
        "Line at the centre of k-space [default: the header's; if it is impossible, the line where the energy peaks]",
    )
    .details("Counted as kspace_encode_step_1.")
    .value("LINE")
    .rare()
    .needs(HEADER)
    .recorded("centre line", |request| serde_json::json!(request.frames.centres.line))
    .puts(|request, given| {
        request.frames.centres.line = Some(given.count()?);
        Ok(())
    }),
    Row::new(
        SCAN,
        "centre_partition",
        Kind::Count,
        "Partition at the centre of k-space [default: as for --centre-line]",
    )
    .details("Counted as kspace_encode_step_2.")
    .value("PARTITION")
    .rare()
    .needs(HEADER)
    .recorded("centre partition", |request| serde_json::json!(request.frames.centres.partition))
    .puts(|request, given| {
        request.frames.centres.partition = Some(given.count()?);
        Ok(())
    }),
    Row::new(
        SCAN,
        "reversed_centre",
        Kind::Names(&[
            choice("stored", "In the order in which they are stored"),
            choice("forward", "As if the readout were not reversed, as Siemens' scanners do"),
        ]),
        "How center_sample counts the samples of reversed readouts [default: as readouts of both directions tell]",
    )
    .value("REVERSED_CENTRE")
    .rare()
    .needs(HEADER)
    .recorded("reversed centre", |request| serde_json::json!(request.frames.centres.reversed))
    .puts(|request, given| {
        let conventions = [("stored", ReversedCentre::Stored), ("forward", ReversedCentre::Forward)];
        request.frames.centres.reversed = Some(given.one_of(&conventions)?);
        Ok(())
    }),
    Row::new(SCAN, "encoding", Kind::Count, "Encoding to reconstruct [default: the first that holds images]")
        .value("N")
        .rare()
        .needs(HEADER)
        .puts(|request, given| {
            request.selection.encoding = Some(given.count()?);
            Ok(())
        }),
    Row::new(SCAN, "slice", Kind::Ranges, "Only slices with these counters, from 0: 3, 1-2 or 0,3")
        .value("NUMBERS")
        .keyword("slices")
        .needs(NUMBERED)
        .recorded("slice", |request| typed(&request.selection.slice))
        .puts(|request, given| {
            request.selection.slice = Some(given.ranges()?);
            Ok(())
        }),
    Row::new(SCAN, "repetition", Kind::Ranges, "Only repetitions with these counters, from 0")
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
    .details(
        "With --window they are counted over the whole scan. On a grid the other lines are then missing: keep the centre of k-space. \
         Readouts of an array are found along its trajectory; rayspin info counts them.",
    )
    .value("NUMBERS")
    .rare()
    .needs(&[Needs::Readouts])
    .recorded("readouts", |request| typed(&request.frames.readouts))
    .puts(|request, given| {
        let readouts = given.ranges()?;
        (request.arrays.readouts, request.frames.readouts) = (Some(readouts.clone()), Some(readouts));
        Ok(())
    }),
    Row::new(SCAN, "contrast", Kind::Counter, "Contrast (echo) to reconstruct [default: the first]")
        .value("N")
        .rare()
        .needs(NUMBERED)
        .puts(|request, given| {
            request.selection.contrast = Some(given.count()?);
            Ok(())
        }),
    Row::new(SCAN, "cardiac_phase", Kind::Counter, "Cardiac phase to reconstruct [default: the first]")
        .value("N")
        .rare()
        .needs(NUMBERED)
        .puts(|request, given| {
            request.selection.phase = Some(given.count()?);
            Ok(())
        }),
    Row::new(SCAN, "set", Kind::Counter, "Set to reconstruct [default: the first]")
        .value("N")
        .rare()
        .needs(HEADER)
        .puts(|request, given| {
            request.selection.set = Some(given.count()?);
            Ok(())
        }),
    Row::new(SCAN, "window", Kind::Count, "Make one image of every N readouts, as for golden angles")
        .details(
            "Readouts are taken in order of acquisition and across repetitions. Without it the file defines the images.",
        )
        .value("N")
        .needs(&[Needs::Readouts])
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
        "independent",
        Kind::Flag,
        "Estimate coil sensitivities anew in each repetition or window",
    )
    .details(
        "The largest eigenvalue, to which λ is relative, is computed anew too. Without this option both are computed once for all \
         images.",
    )
    .rare()
    .needs(&[Needs::Shared, Needs::Repetitions])
    .recorded("independent", |request| request.options.independent.into())
    .puts(|request, _| {
        request.options.independent = true;
        Ok(())
    }),
    Row::new(COILS, "maps", Kind::Complex, "Sensitivity maps to use instead of estimated ones")
        .details(
            "[coil, z, y, x] or [set, coil, z, y, x], or in BART's order with sets in MAPS and slices in SLICE ({arrays read}).",
        )
        .value("FILE")
        .needs(&[Needs::Maps])
        .recorded("maps", |request| recorded(&request.maps))
        .puts(|request, given| {
            request.maps = Some(match given.setting {
                Setting::Complex(maps) => Beside::Array(maps.clone()),
                _ => Beside::File(given.file()?.to_owned()),
            });
            Ok(())
        }),
    Row::new(
        COILS,
        "intensity",
        Kind::Flag,
        "Solve with maps of unit intensity, and divide the image by that of --maps: no shading by the coils",
    )
    .details(
        "The intensity is the root of the sum of squares of the maps over coils. Without this option the image has no shading either \
         once iterations have converged; with it they converge faster, and a penalty weighs all of the image alike.",
    )
    .rare()
    .needs(&[Needs::Maps])
    .beside("maps")
    .recorded("intensity", |request| request.intensity.into())
    .puts(|request, _| {
        request.intensity = true;
        Ok(())
    }),
    Row::program("save_maps", &[Needs::Maps]),
    Row::new(
        COILS,
        "sensitivities",
        Kind::Names(&[
            choice("walsh", "Local principal components of low-resolution coil images"),
            choice("espirit", "Eigenvectors of the reproducing operator of the k-space centre"),
        ]),
        "How sensitivity maps are estimated [default: espirit on the grid, walsh with a trajectory]",
    )
    .value("SENSITIVITIES")
    .rare()
    .needs(&[Needs::Estimate])
    .without(&["maps"])
    .puts(|request, given| {
        let espirit = Sensitivities::Espirit(EspiritOptions::default());
        let how = given.one_of(&[("walsh", Sensitivities::Walsh), ("espirit", espirit)])?;
        request.options.sensitivities = Some(how);
        Ok(())
    }),
    Row::new(
        COILS,
        "map_sets",
        Kind::Count,
        "Sets of ESPIRiT maps, 1 or 2 ({methods over sets of maps}) [default: 2 on a grid where the object is larger than the field \
         of view, else 1]",
    )
    .details(
        "Such an object folds over itself, and the image shows both layers. Implies --sensitivities espirit.",
    )
    .value("N")
    .rare()
    .needs(&[Needs::Estimate])
    .without(&["maps"])
    .puts(|request, given| {
        let sets = given.count()?;
        espirit(request, given, |espirit| espirit.sets = sets)
    }),
    Row::new(COILS, "map_crop", Kind::Number, "Eigenvalue below which ESPIRiT maps are 0 [default: 0.8]")
        .value("VALUE")
        .rare()
        .needs(&[Needs::Estimate])
        .without(&["maps"])
        .puts(|request, given| {
            let crop = given.number()?;
            espirit(request, given, |espirit| espirit.crop = crop)
        }),
    Row::new(
        COILS,
        "calibration",
        Kind::Count,
        "Width of the k-space centre for maps, at most the fully sampled width [default: 24]",
    )
    .value("LINES")
    .rare()
    .needs(&[Needs::Estimate])
    .puts(|request, given| {
        request.options.calibration = Some(given.count()?);
        Ok(())
    }),
    Row::new(
        COILS,
        "coils",
        Kind::Number,
        "Compress to N virtual coils, or to those that hold this PART of the energy",
    )
    .details("A number below 1 keeps as many virtual coils as hold this part of the energy.")
    .value("N|PART")
    .needs(&[Needs::Coils])
    .recorded("compression", |request| serde_json::json!(request.options.prepare.compression))
    .puts(|request, given| {
        let number = given.number()?;
        let coils = match number {
            part if part > 0.0 && part < 1.0 => VirtualCoils::Energy(part),
            count if count >= 0.0 && count.fract() == 0.0 => VirtualCoils::Count(count as usize),
            _ => {
                let expected = "a number of virtual coils or a part of the energy below 1";
                let message = format!("{}: expected {expected}, found {number}", given.name);
                return Err(BadInput::new(message).into());
            }
        };
        request.options.prepare.compression = Some(Compression { coils, kind: CompressionKind::default() });
        Ok(())
    }),
    Row::new(
        COILS,
        "compression",
        Kind::Names(&[
            choice("svd", "Principal components of all samples"),
            choice(
                "geometric",
                "Principal components at each position along the readout, aligned (Cartesian, fully sampled readouts)",
            ),
        ]),
        "How coils are compressed [default: svd]",
    )
    .value("COMPRESSION")
    .rare()
    .beside("coils")
    .puts(|request, given| {
        let kinds = [("svd", CompressionKind::Svd), ("geometric", CompressionKind::Geometric)];
        let kind = given.one_of(&kinds)?;
        request.options.prepare.compression.iter_mut().for_each(|compression| compression.kind = kind);
        Ok(())
    }),
    Row::new(COILS, "no_prewhiten", Kind::Flag, "Do not whiten coils by the scan's noise readouts")
        .rare()
        .unless("prewhiten", "Whiten coils by the scan's noise readouts")
        .needs(&[Needs::Noise, Needs::Coils])
        .without(&["noise_covariance"])
        .recorded("prewhiten", |request| request.options.prepare.prewhiten.into())
        .puts(|request, _| {
            request.options.prepare.prewhiten = false;
            Ok(())
        }),
    Row::new(
        COILS,
        "noise_covariance",
        Kind::Double,
        "Covariance of the coils' noise [coil, coil] ({arrays read}) to whiten by, instead of the scan's noise readouts",
    )
    .value("FILE")
    .rare()
    .needs(&[Needs::Coils])
    .recorded("noise covariance", |request| recorded(&request.noise_covariance))
    .puts(|request, given| {
        request.noise_covariance = Some(match given.setting {
            Setting::Double(covariance) => Beside::Array(covariance.clone()),
            _ => Beside::File(given.file()?.to_owned()),
        });
        Ok(())
    }),
    Row::new(FIELD, "field_map", Kind::Real, "Map of the field in Hz: corrects off-resonance")
        .details(
            "The map [z, y, x] has the image's matrix ({images read}) and states how far the field is from the receiver's frequency. \
             It corrects shifts and blurring of long readouts ({methods in a field}). The scan must be ISMRMRD and state its dwell \
             time. The sample at the centre of each readout has time 0.",
        )
        .value("FILE")
        .needs(&[IN_A_FIELD])
        .recorded("field map", |request| recorded(&request.field_map))
        .puts(|request, given| {
            request.field_map = Some(match given.setting {
                Setting::Real(map) => Beside::Array(map.clone()),
                _ => Beside::File(given.file()?.to_owned()),
            });
            request.frames.times = true;
            Ok(())
        }),
    Row::new(
        FIELD,
        "field_tolerance",
        Kind::Number,
        "Largest error of the field's phases, which decides the number of time segments [default: 1e-4]",
    )
    .value("ERROR")
    .rare()
    .beside("field_map")
    .recorded("field tolerance", |request| serde_json::json!(request.field_map.as_ref().map(|_| request.options.field_tolerance)))
    .puts(|request, given| {
        request.options.field_tolerance = given.number()?;
        Ok(())
    }),
    Row::new(FIELD, "dwell", Kind::Number, "Time between samples in µs, where the scan's header states 0")
        .value("US")
        .rare()
        .keyword("dwell_us")
        .beside("field_map")
        .needs(HEADER)
        .recorded("dwell", |request| serde_json::json!(request.frames.dwell_us))
        .puts(|request, given| {
            let dwell = given.number()?;
            if !(dwell > 0.0 && dwell.is_finite()) {
                return Err(Error::value(given.name, "a positive time in µs", dwell).into());
            }
            request.frames.dwell_us = Some(dwell);
            Ok(())
        }),
    Row::new(
        FIELD,
        "epsilon",
        Kind::Number,
        "Relative error that the NUFFT is planned for; the error is at most 3 times as large [default: 0.0001]",
    )
    .value("EPSILON")
    .rare()
    .keyword("nufft_tolerance")
    .needs(&[Needs::Nufft])
    .recorded("epsilon", |request| request.options.nufft_tolerance.into())
    .puts(|request, given| {
        request.options.nufft_tolerance = given.number()?;
        Ok(())
    }),
    Row::new(
        FIELD,
        "density",
        Kind::Names(&[
            choice("pipe-menon", "Iteration of Pipe and Menon, for any trajectory"),
            choice("radial", "The ramp of straight spokes through the centre"),
        ]),
        "Density compensation of gridding [default: pipe-menon]",
    )
    .value("DENSITY")
    .rare()
    .needs(&[Needs::Weights])
    .recorded("density", |request| serde_json::json!(request.options.density))
    .puts(|request, given| {
        request.options.density =
            given.one_of(&[("pipe-menon", Density::PipeMenon), ("radial", Density::Radial)])?;
        Ok(())
    }),
    Row::new(
        FIELD,
        "certify",
        Kind::CountOr(1000),
        "Compare N random outputs of each transform with the exact sums",
    )
    .details("The images are written in any case. An error above its bound is said, and the command ends with exit code 1.")
    .value("N")
    .rare()
    .without(&["dry_run"])
    .recorded("certify", |request| serde_json::json!(request.certify))
    .puts(|request, given| {
        request.certify = Some(Certify { outputs: given.count()?, seed: 1 });
        Ok(())
    }),
    Row::new(FIELD, "certify_seed", Kind::Count, "Seed of the outputs that are drawn")
        .value("SEED")
        .rare()
        .beside("certify")
        .puts(|request, given| {
            let seed = given.count()?;
            request.certify.iter_mut().for_each(|certify| certify.seed = seed);
            Ok(())
        }),
    Row::program("reference", &[]),
    Row::program("fit", &[]),
    Row::program("record", &[]),
    Row::program("no_record", &[]),
    Row::program("keep_identity", HEADER),
    Row::new(RUN, "memory", Kind::Bytes, "Memory that the run may take")
        .details(
            "The run takes its work in parts to fit. If nothing fits, it is refused, and the error states the memory that it needs.",
        )
        .value("SIZE")
        .puts(|request, given| {
            request.memory = Some(given.count()?);
            Ok(())
        }),
    Row::new(
        RUN,
        "cache",
        Kind::Folder,
        "Folder that keeps the trajectory's Toeplitz kernel for the next run ({methods with a normal operator})",
    )
    .value("FOLDER")
    .rare()
    .needs(&[ITERATES, Needs::Trajectory])
    .puts(|request, given| {
        request.cache = Some(given.file()?.to_owned());
        Ok(())
    }),
];

/// Changes how ESPIRiT estimates maps. Errors: Walsh's method is asked for, which has neither sets nor a crop.
fn espirit(request: &mut Request, given: Named<'_>, change: impl FnOnce(&mut EspiritOptions)) -> Result<()> {
    let how = &mut request.options.sensitivities;
    match how.get_or_insert_with(|| Sensitivities::Espirit(EspiritOptions::default())) {
        Sensitivities::Espirit(options) => {
            change(options);
            Ok(())
        }
        Sensitivities::Walsh => {
            let name = given.name;
            Err(BadInput::new(format!("{name}: expected --sensitivities espirit, found walsh"))
                .hint(format!("leave {name} or --sensitivities walsh out"))
                .into())
        }
    }
}

fn recorded<T>(array: &Option<Beside<T>>) -> serde_json::Value {
    array.as_ref().map_or(serde_json::Value::Null, Beside::recorded)
}
