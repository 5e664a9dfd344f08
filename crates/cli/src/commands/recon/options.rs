//! The command line as a request.

use std::path::PathBuf;

use anyhow::Result;
use rayspin::core::TrajectoryUnits;
use rayspin::io::ScanOptions;
use rayspin::job::mri::{Beside, Input, Request};
use rayspin::mri::maps::{EspiritOptions, Sensitivities};
use rayspin::mri::prepare::{Compression, CompressionKind, PrepareOptions, VirtualCoils};
use rayspin::mri::recon::{Density, ReconOptions, Selection};
use rayspin::mri::scan::{Centres, FrameOptions, ReversedCentre, TrajectoryFov, TrajectoryOptions, Window};
use rayspin_shell::BadInput;
use rayspin_shell::effect::Given;

use super::arrays::read_covariance;
use crate::args::mri::{
    CompressionArg, DensityArg, ReconMri, ReversedCentreArg, SensitivitiesArg, TrajectoryFovArg,
};
use crate::args::numbers;

/// The command line as a request. Errors: what is no number or no unit; a noise covariance that cannot be read.
pub(super) fn request(args: &ReconMri, given: &Given) -> Result<Request> {
    let arrays = scan_options(args)?;
    Ok(Request {
        input: Input::File(args.scan.clone()),
        method: args.method.asked(),
        options: options(args)?,
        frames: frames(args, &arrays),
        arrays,
        selection: selection(args),
        maps: args.maps.clone().map(Beside::File),
        field_map: args.field_map.clone().map(Beside::File),
        noise_covariance: args.noise_covariance.clone(),
        given: given.options().clone(),
        outputs: args.outputs.clone(),
        compared: args.run.reference.is_some(),
        // Images are kept for a comparison alone, which `compared` counts.
        collects: false,
        cache: args.cache.clone(),
        certify: args.run.certify(),
        dry_run: args.run.dry_run,
    })
}

/// What decides the image besides the method.
fn options(args: &ReconMri) -> Result<ReconOptions> {
    let default = ReconOptions::default();
    Ok(ReconOptions {
        field_tolerance: args.field_tolerance.unwrap_or(default.field_tolerance),
        nufft_tolerance: args.epsilon,
        density: match args.density {
            DensityArg::PipeMenon => Density::PipeMenon,
            DensityArg::Radial => Density::Radial,
        },
        calibration: args.calibration,
        sensitivities: sensitivities(args)?,
        independent: args.independent,
        keep_maps: args.save_maps.is_some(),
        prepare: prepare(args)?,
        ..default
    })
}

fn prepare(args: &ReconMri) -> Result<PrepareOptions> {
    let kind = match args.compression {
        CompressionArg::Svd => CompressionKind::Svd,
        CompressionArg::Geometric => CompressionKind::Geometric,
    };
    let coils = match args.coils.as_deref() {
        None => None,
        Some(text) => Some(match (text.trim().parse::<usize>(), text.trim().parse::<f64>()) {
            (Ok(count), _) => VirtualCoils::Count(count),
            (_, Ok(part)) => VirtualCoils::Energy(part),
            _ => {
                return Err(BadInput::new(format!(
                    "--coils: expected a number of virtual coils or a part of the energy below 1, found '{text}'"
                ))
                .into());
            }
        }),
    };
    let noise_covariance = args.noise_covariance.as_deref().map(read_covariance).transpose()?;
    Ok(PrepareOptions {
        prewhiten: !args.no_prewhiten,
        noise: None,
        noise_covariance,
        compression: coils.map(|coils| Compression { coils, kind }),
    })
}

fn sensitivities(args: &ReconMri) -> Result<Option<Sensitivities>> {
    // Walsh's method has neither sets nor a crop.
    let of_espirit = [("--map-sets", args.map_sets.is_some()), ("--map-crop", args.map_crop.is_some())];
    let of_espirit = of_espirit.iter().find(|(_, given)| *given);
    match (args.sensitivities, of_espirit) {
        (Some(SensitivitiesArg::Walsh), Some((option, _))) => {
            Err(BadInput::new(format!("{option}: expected --sensitivities espirit, found walsh"))
                .hint(format!("leave {option} or --sensitivities walsh out"))
                .into())
        }
        (Some(SensitivitiesArg::Walsh), None) => Ok(Some(Sensitivities::Walsh)),
        (None, None) => Ok(None),
        (Some(SensitivitiesArg::Espirit), _) | (None, Some(_)) => {
            let default = EspiritOptions::default();
            Ok(Some(Sensitivities::Espirit(EspiritOptions {
                sets: args.map_sets.unwrap_or(default.sets),
                crop: args.map_crop.unwrap_or(default.crop),
                ..default
            })))
        }
    }
}

fn scan_options(args: &ReconMri) -> Result<ScanOptions> {
    let texts = [args.traj_units.as_deref(), args.matrix.as_deref(), args.fov.as_deref()];
    Ok(ScanOptions {
        readouts: args.readouts.clone(),
        weights: args.traj_weights,
        ..array_options(args.traj.clone(), texts)?
    })
}

/// No scanner has a field of view below this along every axis: the length is in metres.
const SHORT_FOV_MM: f64 = 1.0;

/// How arrays are read, from what `--traj-units`, `--matrix` and `--fov` say. Errors: what is no unit or no number.
pub(crate) fn array_options(
    trajectory: Option<PathBuf>,
    [units, matrix, fov]: [Option<&str>; 3],
) -> Result<ScanOptions> {
    let units = units.map(str::parse::<TrajectoryUnits>).transpose()?;
    let matrix = matrix.map(|text| numbers::<usize>("--matrix", text, &[2, 3])).transpose()?;
    let fov_mm = fov.map(|text| numbers::<f64>("--fov", text, &[2, 3])).transpose()?;
    if let Some(fov) = &fov_mm
        && fov.iter().any(|&f| !(f > 0.0 && f.is_finite()))
    {
        return Err(BadInput::new(format!("--fov: expected positive lengths in mm, found {fov:?}")).into());
    }
    if let Some(fov) = fov_mm.as_ref().filter(|fov| fov.iter().all(|&f| f < SHORT_FOV_MM)) {
        let message = format!("--fov: expected lengths in mm, found {fov:?}, which are metres if anything");
        return Err(BadInput::new(message).hint("0.24 m are 240 mm: --fov 240,240").into());
    }
    Ok(ScanOptions { trajectory, units, matrix, fov_mm, ..ScanOptions::default() })
}

/// How the images of a scan are put together.
fn frames(args: &ReconMri, options: &ScanOptions) -> FrameOptions {
    FrameOptions {
        units: options.units,
        trajectory: trajectory(args),
        matrix: options.matrix.clone(),
        times: args.field_map.is_some(),
        readouts: args.readouts.clone(),
        centres: centres(args),
    }
}

/// The options of trajectories.
fn trajectory(args: &ReconMri) -> TrajectoryOptions {
    TrajectoryOptions {
        weights: args.traj_weights,
        fov: args.traj_fov.map(|fov| match fov {
            TrajectoryFovArg::Encoded => TrajectoryFov::Encoded,
            TrajectoryFovArg::Recon => TrajectoryFov::Recon,
        }),
    }
}

/// The centres of k-space that are given.
fn centres(args: &ReconMri) -> Centres {
    Centres {
        line: args.centre_line,
        partition: args.centre_partition,
        reversed: args.reversed_centre.map(|convention| match convention {
            ReversedCentreArg::Stored => ReversedCentre::Stored,
            ReversedCentreArg::Forward => ReversedCentre::Forward,
        }),
    }
}

fn selection(args: &ReconMri) -> Selection {
    Selection {
        encoding: args.encoding,
        slice: args.slice.clone(),
        repetition: args.repetition.clone(),
        contrast: args.contrast,
        phase: args.cardiac_phase,
        set: args.set,
        window: args.window.map(|readouts| Window {
            readouts,
            stride: args.stride.unwrap_or(readouts),
            frames: args.frames,
        }),
    }
}
