//! `rayspin simulate mri`

use anyhow::Result;
use clap::ValueEnum;
use rayspin::core::Monitor;
use rayspin::io::{self, Format};
use rayspin::mri::simulate::trajectory::{CartesianPattern, Hardware, Sampling, SphereOrder, SpokeAngles};
use rayspin::mri::simulate::{
    Contrast, Dynamics, FieldMap, FieldShape, Object, SimulateOptions, TruthWindow, neighbour_covariance,
    simulate,
};
use rayspin::report::RunRecorder;
use rayspin_shell::effect::{Given, Need, Row, any_of, refuse_idle};
use rayspin_shell::{BadInput, Context, stdout};

use super::files::{self, RunFiles};
use crate::args::simulate::{
    AnglesArg, ContrastArg, DynamicsArg, FieldShapeArg, Mri, ObjectArg, TrajectoryArg,
};
use rayspin_shell::args::numbers;

/// What an option may need.
enum Requirement {
    /// One of some trajectories.
    Trajectory(&'static [TrajectoryArg]),
    /// Lines that are left out.
    Gaps,
    /// `--snr`.
    Noise,
    Coils,
    /// Noise, or a pattern that is drawn.
    Chance,
    /// The head of Shepp and Logan.
    SheppLogan,
}

const ALWAYS: &[Requirement] = &[];
const LINES: &[TrajectoryArg] = &[TrajectoryArg::Cartesian, TrajectoryArg::Poisson];
const SPOKES: &[TrajectoryArg] =
    &[TrajectoryArg::Radial, TrajectoryArg::Kooshball, TrajectoryArg::StackOfStars];
const LINES_AND_SPOKES: &[TrajectoryArg] = &[LINES[0], LINES[1], SPOKES[0], SPOKES[1], SPOKES[2]];
const DRAWN: &[TrajectoryArg] = &[TrajectoryArg::Poisson, TrajectoryArg::Random];
/// Those whose shots are counted.
const SHOTS: &[TrajectoryArg] = &[
    SPOKES[0],
    SPOKES[1],
    SPOKES[2],
    TrajectoryArg::Spiral,
    TrajectoryArg::StackOfSpirals,
    TrajectoryArg::Epi,
    TrajectoryArg::Random,
];
/// Those that the gradients' limits shape.
const SHAPED: &[Requirement] =
    &[Requirement::Trajectory(&[TrajectoryArg::Spiral, TrajectoryArg::StackOfSpirals, TrajectoryArg::Epi])];

/// The options of `rayspin simulate mri`.
const TABLE: &[Row<Requirement>] = &[
    ("output", ALWAYS),
    ("truth", ALWAYS),
    ("maps", ALWAYS),
    ("dims", ALWAYS),
    ("matrix", ALWAYS),
    ("fov", ALWAYS),
    ("trajectory", ALWAYS),
    ("shots", &[Requirement::Trajectory(SHOTS)]),
    ("samples", &[Requirement::Trajectory(&[TrajectoryArg::Random])]),
    ("angles", &[Requirement::Trajectory(SPOKES)]),
    (
        "acceleration",
        &[Requirement::Trajectory(&[
            LINES[0],
            LINES[1],
            TrajectoryArg::Spiral,
            TrajectoryArg::StackOfSpirals,
        ])],
    ),
    ("calibration", &[Requirement::Trajectory(LINES), Requirement::Gaps]),
    ("density_slope", &[Requirement::Trajectory(&[TrajectoryArg::Poisson])]),
    ("coils", ALWAYS),
    ("snr", ALWAYS),
    ("noise_correlation", &[Requirement::Coils]),
    ("field_map_hz", ALWAYS),
    ("field_shape", ALWAYS),
    ("save_field_map", ALWAYS),
    ("noise_readouts", &[Requirement::Noise]),
    ("repetitions", ALWAYS),
    ("dynamics", ALWAYS),
    ("period", ALWAYS),
    ("tr", ALWAYS),
    ("window", ALWAYS),
    ("stride", ALWAYS),
    ("oversampling", &[Requirement::Trajectory(LINES_AND_SPOKES)]),
    ("phantom", ALWAYS),
    ("contrast", &[Requirement::SheppLogan]),
    ("gradient", SHAPED),
    ("slew", SHAPED),
    ("dwell", ALWAYS),
    ("seed", &[Requirement::Chance]),
    ("record", ALWAYS),
    ("no_record", ALWAYS),
];

impl Need for Requirement {
    type Facts<'a> = &'a Mri;

    fn met(&self, run: &&Mri) -> Option<bool> {
        Some(match self {
            Self::Trajectory(some) => some.contains(&run.trajectory),
            Self::Gaps => run.trajectory != TrajectoryArg::Cartesian || run.acceleration.is_some(),
            Self::Noise => run.snr.is_some(),
            Self::Coils => run.coils > 1,
            Self::Chance => run.snr.is_some() || DRAWN.contains(&run.trajectory),
            Self::SheppLogan => run.phantom == ObjectArg::SheppLogan,
        })
    }

    fn expected(&self) -> String {
        match self {
            Self::Trajectory(some) => {
                let names: Vec<String> = some.iter().copied().map(name).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("`--trajectory {}`", any_of(&names))
            }
            Self::Gaps => "`--acceleration`".into(),
            Self::Noise => "`--snr`".into(),
            Self::Coils => "several coils".into(),
            Self::SheppLogan => "`--phantom shepp-logan`".into(),
            Self::Chance => {
                let names: Vec<String> = DRAWN.iter().copied().map(name).collect();
                format!("`--snr`, or `--trajectory {}`", names.join(" or "))
            }
        }
    }

    fn found(&self, run: &&Mri) -> String {
        match self {
            Self::Trajectory(_) => format!("`--trajectory {}`", name(run.trajectory)),
            Self::Gaps => "a full grid".into(),
            Self::Noise => "a scan without noise".into(),
            Self::Coils => "one coil".into(),
            Self::Chance => "a scan without chance".into(),
            Self::SheppLogan => "`--phantom thorax`".into(),
        }
    }
}

/// The trajectory as the command line names it.
fn name(trajectory: TrajectoryArg) -> String {
    trajectory.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Simulates a scan and writes it, its truth, its coil maps and the run record.
pub(crate) fn run(context: &Context, args: &Mri, paths: RunFiles) -> Result<()> {
    files::check_output(&args.output, Format::writes_scans)?;
    if let Some(truth) = &args.truth {
        files::check_output(truth, Format::writes_images)?;
    }
    if let Some(maps) = &args.maps {
        files::check_output(maps, Format::writes_arrays)?;
    }
    if let Some(field) = &args.save_field_map {
        files::check_output(field, Format::writes_signed)?;
    }
    let options = options(args, &context.given)?;
    let mut recorder = files::recorder(context);
    let monitor = Monitor::new(&context.console, None);

    recorder.stage("simulate");
    let simulation = context.run(|| simulate(&options, &monitor))?;
    files::record_stages(&mut recorder, &monitor);
    for note in &simulation.notes {
        monitor.note(note);
        recorder.note(note.as_str());
    }
    recorder.stage("write");
    let identity = io::ismrmrd::Identity::LeaveOut;
    monitor.stage("write", 0, || io::write_scan(&args.output, &simulation.scan, identity))?;
    let mut written = vec![args.output.clone()];
    let origin = io::Origin { modality: Some(io::Modality::Mr), ..io::Origin::default() };
    let of_mri = io::WriteOptions { origin, ..io::WriteOptions::default() };
    if let Some(truth) = &args.truth {
        for note in files::write_image(truth, &simulation.truth, None, of_mri.clone())? {
            monitor.note(&format!("{}: {note}", stdout::name(truth)));
        }
        written.extend(files::written(truth));
    }
    if let Some(maps) = &args.maps {
        io::write_coil_array(maps, simulation.maps.view().into_dyn(), Default::default())?;
        written.extend(files::written(maps));
    }
    if let (Some(path), Some(field)) = (&args.save_field_map, &simulation.field) {
        // A complex file keeps the field as real parts, of either sign.
        io::write_image(path, field, &io::WriteOptions { values: Some(io::Values::Real), ..of_mri })?;
        written.extend(files::written(path));
    }
    paths.record_outputs(&mut recorder, &written)?;
    parameters(&mut recorder, &options)?;
    recorder.parameter("coil fit error", simulation.coil_fit_error);
    recorder.parameter("noise standard deviation", simulation.noise_std);
    let finished = recorder.finish(rayspin::device::cpu::peak_memory());
    if let Some(path) = paths.record {
        files::write_record(&path, &finished)?;
        written.push(path);
    }
    if !context.quiet {
        let names: Vec<_> = written.iter().map(|path| stdout::name(path)).collect();
        files::say_made(format!(
            "{} readouts of {} coils, {:.2} s: {}",
            simulation.scan.acquisitions.len(),
            options.coils,
            finished.total_seconds,
            names.join(", ")
        ));
    }
    Ok(())
}

/// Records every option with the value that was used.
fn parameters(recorder: &mut RunRecorder, options: &SimulateOptions) -> Result<()> {
    if let serde_json::Value::Object(fields) = serde_json::to_value(options)? {
        for (name, value) in fields {
            recorder.parameter(name.replace('_', " "), value);
        }
    }
    Ok(())
}

/// What the options say. Errors: one that does nothing, or makes no sense.
pub(crate) fn options(args: &Mri, given: &Given) -> Result<SimulateOptions> {
    refuse_idle(TABLE, given, &args)?;
    use TrajectoryArg as T;
    let volume = matches!(args.trajectory, T::Kooshball | T::StackOfStars | T::StackOfSpirals);
    let matrix = args.matrix.as_deref().map(|t| numbers::<usize>("--matrix", t, &[2, 3])).transpose()?;
    let dims = args.dims.unwrap_or(if volume { 3 } else { 2 });
    let matrix = match matrix {
        Some(m) if dims == 3 && m.len() == 2 => {
            return Err(BadInput::new(format!(
                "`--matrix`: expected three numbers for a volume, found {m:?}"
            ))
            .into());
        }
        Some(m) => [m[0], m[1], m.get(2).copied().unwrap_or(1)],
        None if dims == 3 => [64; 3],
        None => [256, 256, 1],
    };
    let fov_mm = match args.fov.as_deref().map(|t| numbers::<f64>("--fov", t, &[2, 3])).transpose()? {
        Some(f) if f.len() == 3 => [f[0], f[1], f[2]],
        Some(f) if dims == 3 => {
            return Err(
                BadInput::new(format!("`--fov`: expected three numbers for a volume, found {f:?}")).into()
            );
        }
        Some(f) => [f[0], f[1], 5.0 * matrix[2] as f64],
        None if dims == 3 => [220.0; 3],
        None => [220.0, 220.0, 5.0 * matrix[2] as f64],
    };
    let noise_covariance = args.noise_correlation.map(|r| neighbour_covariance(args.coils, r)).transpose()?;
    Ok(SimulateOptions {
        phantom: match args.phantom {
            ObjectArg::SheppLogan => Object::SheppLogan,
            ObjectArg::Thorax => Object::Thorax,
        },
        contrast: match args.contrast {
            ContrastArg::Standard => Contrast::Standard,
            ContrastArg::Modified => Contrast::Modified,
        },
        dims,
        matrix,
        fov_mm,
        coils: args.coils,
        sampling: sampling(args, dims, matrix)?,
        hardware: Hardware { gradient_mt_m: args.gradient, slew_t_m_s: args.slew, dwell_us: args.dwell },
        oversampling: args.oversampling,
        repetitions: args.repetitions,
        dynamics: args.dynamics.map(|kind| match kind {
            DynamicsArg::Beat => Dynamics::Beat { period_s: args.period },
            DynamicsArg::Enhance => Dynamics::Enhance { time_s: args.period },
        }),
        readout_interval_ms: args.tr.or(args.dynamics.map(|_| 5.0)),
        truth_window: args
            .window
            .map(|readouts| TruthWindow { readouts, stride: args.stride.unwrap_or(readouts) }),
        snr: args.snr,
        noise_covariance,
        field: args.field_map_hz.map(|peak_hz| FieldMap {
            shape: match args.field_shape {
                FieldShapeArg::Linear => FieldShape::Linear,
                FieldShapeArg::Quadratic => FieldShape::Quadratic,
                FieldShapeArg::Smooth => FieldShape::Smooth,
            },
            peak_hz,
        }),
        noise_readouts: args.noise_readouts,
        seed: args.seed,
    })
}

fn sampling(args: &Mri, dims: usize, matrix: [usize; 3]) -> Result<Sampling> {
    let longest = if dims == 3 { matrix.iter().copied().max() } else { matrix[..2].iter().copied().max() };
    let longest = longest.unwrap_or(1) as f64;
    // Nyquist at the edge: neighbouring spokes are one cycle per field of view apart at |k| = n/2.
    let full_spokes = (std::f64::consts::FRAC_PI_2 * longest).ceil() as usize;
    let angles = match args.angles {
        AnglesArg::Uniform => SpokeAngles::Uniform,
        AnglesArg::Golden => SpokeAngles::Golden,
    };
    let acceleration = args.acceleration.as_deref();
    // A quarter of the shorter side leaves lines to spare for the rest of the pattern.
    let shortest = matrix.iter().take(dims).skip(1).copied().min().unwrap_or(1);
    let calibration = args.calibration.unwrap_or_else(|| 24.min(shortest / 4));
    Ok(match args.trajectory {
        TrajectoryArg::Cartesian => Sampling::Cartesian(match acceleration {
            None => CartesianPattern::Full,
            Some(text) => {
                let r = numbers::<usize>("--acceleration", text, &[1, 2])?;
                CartesianPattern::Uniform {
                    acceleration: [r[0], r.get(1).copied().unwrap_or(1)],
                    calibration,
                }
            }
        }),
        TrajectoryArg::Poisson => Sampling::Cartesian(CartesianPattern::PoissonDisc {
            acceleration: numbers::<f64>("--acceleration", acceleration.unwrap_or("4"), &[1])?[0],
            calibration,
            slope: args.density_slope,
        }),
        TrajectoryArg::Radial => Sampling::Radial { spokes: args.shots.unwrap_or(full_spokes), angles },
        TrajectoryArg::Spiral => {
            Sampling::Spiral { interleaves: args.shots.unwrap_or(16), acceleration: whole(acceleration)? }
        }
        TrajectoryArg::Epi => Sampling::Epi { shots: args.shots.unwrap_or(1) },
        TrajectoryArg::Kooshball => Sampling::Kooshball {
            // π n²/2 half-spokes through the centre cover the sphere of radius n/2 at Nyquist.
            spokes: args.shots.unwrap_or((std::f64::consts::FRAC_PI_2 * longest * longest).ceil() as usize),
            order: match args.angles {
                AnglesArg::Uniform => SphereOrder::Spiral,
                AnglesArg::Golden => SphereOrder::GoldenMeans,
            },
        },
        TrajectoryArg::StackOfStars => {
            Sampling::StackOfStars { spokes: args.shots.unwrap_or(full_spokes), angles }
        }
        TrajectoryArg::StackOfSpirals => Sampling::StackOfSpirals {
            interleaves: args.shots.unwrap_or(4),
            acceleration: whole(acceleration)?,
        },
        TrajectoryArg::Random => {
            Sampling::Random { shots: args.shots.unwrap_or(full_spokes), samples: args.samples }
        }
    })
}

/// --acceleration as one whole number, 1 when absent.
fn whole(acceleration: Option<&str>) -> Result<usize> {
    acceleration.map_or(Ok(1), |text| Ok(numbers::<usize>("--acceleration", text, &[1])?[0]))
}

#[cfg(test)]
mod tests {
    use crate::args::tests::expect_complete;

    #[test]
    fn every_option_has_a_row() {
        expect_complete(&["simulate", "mri"], super::TABLE);
    }
}
