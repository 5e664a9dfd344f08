//! `rayspin simulate ct`

use anyhow::Result;
use ndarray::Array3;
use rayspin::core::{Detector, Error, Image, Monitor, Orbit, ProjectionGeometry, View, VolumeGrid};
use rayspin::ct::phantom::Phantom;
use rayspin::ct::scan::Scan;
use rayspin::ct::simulate::{Beam, DetectorOptions, Motion, Spectrum, beam_lines, counted};
use rayspin::device::Cpu;
use rayspin::device::cpu::expect_memory;
use rayspin::imaging::phantom::Contrast;
use rayspin::io::{self, Format, data_exchange};
use rayspin_shell::effect::{Given, Need, Row, refuse_idle};
use rayspin_shell::{BadInput, Context, stdout};

use super::{flat, matrix, pixel, place};
use crate::args::ct::{GeometryArg, PhantomArg, SimulateCt};
use crate::args::simulate::ContrastArg;
use crate::commands::files::{self, RunFiles};
use rayspin_shell::args::numbers;

/// What an option may need.
enum Requirement {
    /// Rays from a point.
    Source,
    Helix,
    /// A detector of several rows.
    Rows,
    SheppLogan,
    /// A detector that counts.
    Counts,
}

const ALWAYS: &[Requirement] = &[];
const COUNTS: &[Requirement] = &[Requirement::Counts];

/// The options of `rayspin simulate ct`.
const TABLE: &[Row<Requirement>] = &[
    ("output", ALWAYS),
    ("truth", ALWAYS),
    ("geometry", ALWAYS),
    ("views", ALWAYS),
    ("arc", ALWAYS),
    ("detector", ALWAYS),
    ("pixel", ALWAYS),
    ("source_to_axis", &[Requirement::Source]),
    ("axis_to_detector", &[Requirement::Source]),
    ("curved", &[Requirement::Source]),
    ("offset", ALWAYS),
    ("tilt", &[Requirement::Rows]),
    ("advance", &[Requirement::Helix]),
    ("phantom", ALWAYS),
    ("contrast", &[Requirement::SheppLogan]),
    ("attenuation", ALWAYS),
    ("matrix", ALWAYS),
    ("fov", ALWAYS),
    ("motion", ALWAYS),
    ("cycles", ALWAYS),
    ("kilovolts", ALWAYS),
    ("lines", ALWAYS),
    ("rays", ALWAYS),
    ("photons", COUNTS),
    ("electronic", COUNTS),
    ("dark", COUNTS),
    ("gain", COUNTS),
    ("drift", COUNTS),
    ("frames", COUNTS),
    ("seed", COUNTS),
    ("record", ALWAYS),
    ("no_record", ALWAYS),
];

impl Need for Requirement {
    type Facts<'a> = &'a SimulateCt;

    fn met(&self, run: &&SimulateCt) -> Option<bool> {
        Some(match self {
            Self::Source => run.geometry != GeometryArg::Parallel,
            Self::Helix => run.geometry == GeometryArg::Helix,
            Self::Rows => matches!(run.geometry, GeometryArg::Cone | GeometryArg::Helix),
            Self::SheppLogan => run.phantom == PhantomArg::SheppLogan,
            Self::Counts => !run.lines,
        })
    }

    fn expected(&self) -> String {
        match self {
            Self::Source => "`--geometry fan`, `cone` or `helix`",
            Self::Helix => "`--geometry helix`",
            Self::Rows => "`--geometry cone` or `helix`",
            Self::SheppLogan => "`--phantom shepp-logan`",
            Self::Counts => "a detector that counts",
        }
        .into()
    }

    fn found(&self, run: &&SimulateCt) -> String {
        match self {
            Self::Source | Self::Helix | Self::Rows => {
                format!("`--geometry {:?}`", run.geometry).to_lowercase()
            }
            Self::SheppLogan => format!("`--phantom {:?}`", run.phantom).to_lowercase(),
            Self::Counts => "`--lines`".into(),
        }
    }
}

/// What is scanned, and how.
pub(crate) struct Setup {
    phantom: Phantom,
    pub(crate) grid: VolumeGrid,
    angles: Vec<f64>,
    geometry: ProjectionGeometry,
    motion: Option<Motion>,
    spectrum: Option<Spectrum>,
    detector: Option<DetectorOptions>,
    rays: usize,
}

impl Setup {
    /// What the detector measures.
    pub(crate) fn scan(&self, cpu: &Cpu, monitor: &Monitor<'_>) -> rayspin::core::Result<Scan> {
        let beam = Beam { motion: self.motion.as_ref(), spectrum: self.spectrum.as_ref(), rays: self.rays };
        let scan = monitor.stage("line integrals", 0, || {
            beam_lines(cpu, &self.phantom, &self.geometry, &self.angles, &beam)
        })?;
        let scan = match &self.detector {
            Some(detector) => monitor.stage("detector", 0, || counted(cpu, scan, detector))?,
            None => scan,
        };
        monitor.check()?;
        Ok(scan)
    }

    /// The attenuation at 60 keV and at the object's first place.
    pub(crate) fn truth(&self, cpu: &Cpu, monitor: &Monitor<'_>) -> rayspin::core::Result<Image<f32>> {
        let volume = monitor.stage("truth", 0, || self.phantom.volume(cpu, &self.grid))?;
        let volume = Array3::from_shape_vec(self.grid.shape_zyx(), volume)
            .map_err(|e| Error::value("truth", "one number a voxel", e))?;
        Image::new(volume.into_dyn(), self.grid.geometry())
    }
}

/// Simulates a scan and writes it, its truth and the run record.
pub(crate) fn run(context: &Context, args: &SimulateCt, paths: RunFiles) -> Result<()> {
    files::check_output(&args.output, Format::writes_scans)?;
    if let Some(truth) = &args.truth {
        files::check_output(truth, Format::writes_images)?;
    }
    let setup = setup(args, &context.given)?;
    let mut recorder = files::recorder(context);
    let monitor = Monitor::new(&context.console, Some(&rayspin_shell::interrupt::STOP));
    let cpu = context.device.cpu_side();

    recorder.stage("simulate");
    let scan = setup.scan(cpu, &monitor)?;
    recorder.stage("write");
    monitor.stage("write", 0, || data_exchange::write(&args.output, &scan))?;
    drop(scan);
    let mut written = vec![args.output.clone()];
    if let Some(truth) = &args.truth {
        let image = setup.truth(cpu, &monitor)?;
        let origin = io::Origin { modality: Some(io::Modality::Ct), ..io::Origin::default() };
        let of_ct = io::WriteOptions { origin, ..io::WriteOptions::default() };
        for note in files::write_image(truth, &image, None, of_ct)? {
            monitor.note(&format!("{}: {note}", stdout::name(truth)));
        }
        written.extend(files::written(truth));
    }
    files::record_stages(&mut recorder, &monitor);
    paths.record_outputs(&mut recorder, &written)?;
    let [views, rows, columns] = setup.geometry.shape();
    recorder.parameter("views", views);
    recorder.parameter("detector", serde_json::to_value(setup.geometry.detector())?);
    recorder.parameter("angles", serde_json::to_value(&setup.angles)?);
    recorder.parameter("phantom", format!("{:?}", args.phantom).to_lowercase());
    recorder.parameter("attenuation", args.attenuation);
    recorder.parameter("voxels", serde_json::to_value(setup.grid)?);
    recorder.parameter("rays along a pixel", args.rays);
    recorder.parameter("motion", serde_json::to_value(setup.motion)?);
    recorder.parameter("spectrum", serde_json::to_value(&setup.spectrum)?);
    recorder.parameter("photons", serde_json::to_value(setup.detector)?);
    let finished = recorder.finish(rayspin::device::cpu::peak_memory());
    if let Some(path) = paths.record {
        files::write_record(&path, &finished)?;
        written.push(path);
    }
    if !context.quiet {
        let names: Vec<_> = written.iter().map(|path| stdout::name(path)).collect();
        let seconds = finished.total_seconds;
        let names = names.join(", ");
        files::say_made(format!("{views} views of {rows} x {columns} pixels, {seconds:.2} s: {names}"));
    }
    Ok(())
}

/// What the options say. Errors: one that does nothing, or makes no sense.
pub(crate) fn setup(args: &SimulateCt, given: &Given) -> Result<Setup> {
    refuse_idle(TABLE, given, &args)?;
    use GeometryArg as G;
    let planar = matches!(args.geometry, G::Parallel | G::Fan);
    let shape = match &args.matrix {
        Some(text) => matrix(text)?,
        None if planar => [256, 256, 1],
        None => [128; 3],
    };
    if planar && shape[2] != 1 && args.geometry == G::Fan {
        let message = format!("`--matrix`: expected one slice for a fan beam, found {}", shape[2]);
        return Err(BadInput::new(message).hint("`--geometry cone` scans volumes").into());
    }
    if !(args.fov.is_finite() && args.fov > 0.0) {
        return Err(
            BadInput::new(format!("`--fov`: expected a positive length in mm, found {}", args.fov)).into()
        );
    }
    let voxel = args.fov / shape[0].max(1) as f64;
    let grid = VolumeGrid::new([shape[2], shape[1], shape[0]], [voxel; 3], [0.0; 3])?;
    let source = (args.geometry != G::Parallel).then_some(args.source_to_axis);
    let magnification = source.map_or(1.0, |radius| (radius + args.axis_to_detector) / radius);
    let [columns, rows] = match &args.detector {
        Some(text) => {
            let sizes = numbers::<usize>("--detector", text, &[1, 2])?;
            [sizes[0], sizes.get(1).copied().unwrap_or(if planar { 1 } else { sizes[0] })]
        }
        None => [shape[0], shape[2]],
    };
    if args.geometry == G::Fan && rows != 1 {
        let message = format!("`--detector`: expected one row for a fan beam, found {rows}");
        return Err(BadInput::new(message).hint("`--geometry cone` has several rows").into());
    }
    let pitch = args.pixel.as_deref().map_or(Ok([voxel * magnification; 2]), pixel)?;
    let radius_mm = args.curved.then_some(args.source_to_axis + args.axis_to_detector);
    let detector = Detector { radius_mm, ..flat(rows, columns, pitch) };
    let arc = args.arc.unwrap_or(if args.geometry == G::Parallel { 180.0 } else { 360.0 });
    if !(arc.is_finite() && arc.abs() <= 360_000.0) {
        return Err(
            BadInput::new(format!("`--arc`: expected at most 1000 turns, 360000°, found {arc}°")).into()
        );
    }
    let orbit = Orbit {
        source_to_axis_mm: source,
        axis_to_detector_mm: args.axis_to_detector,
        offset_mm: [args.offset, 0.0],
        tilt: args.tilt.to_radians(),
        advance_mm: if args.geometry == G::Helix { args.advance } else { 0.0 },
        ..Orbit::default()
    };
    let projections = rayspin::core::voxels(&[args.views, rows, columns]).map_err(|_| {
        let found = format!("{} of {rows} x {columns} pixels", args.views);
        BadInput::new(format!("`--views`: expected projections that fit the address space, found {found}"))
            .hint("fewer `--views`, or a smaller `--detector`")
    })?;
    let each = size_of::<f64>() + size_of::<View>();
    let bytes = args.views.saturating_mul(each).saturating_add(projections * size_of::<f32>());
    expect_memory("projections", bytes as u64)?;
    let orbit = orbit.arc(0.0, arc.to_radians(), args.views);
    let motion = args.motion.as_deref().map(|text| -> Result<Motion> {
        Ok(Motion { by_mm: place("--motion", text)?, cycles: args.cycles })
    });
    let counting = (!args.lines).then_some(DetectorOptions {
        photons: args.photons,
        electronic: args.electronic,
        dark: args.dark,
        gain: args.gain,
        drift: args.drift,
        frames: args.frames,
        seed: args.seed,
    });
    counting.iter().try_for_each(DetectorOptions::check)?;
    Ok(Setup {
        phantom: phantom(args, if planar && shape[2] == 1 { 2 } else { 3 })?,
        grid,
        geometry: ProjectionGeometry::orbit(detector, &orbit)?,
        angles: orbit.angles,
        motion: motion.transpose()?,
        spectrum: args.kilovolts.map(Spectrum::tube).transpose()?,
        detector: counting,
        rays: args.rays,
    })
}

fn phantom(args: &SimulateCt, dims: usize) -> Result<Phantom> {
    let contrast = match args.contrast {
        ContrastArg::Standard => Contrast::Standard,
        ContrastArg::Modified => Contrast::Modified,
    };
    Ok(match args.phantom {
        PhantomArg::SheppLogan => Phantom::shepp_logan(dims, args.fov, contrast, args.attenuation)?,
        PhantomArg::Forbild => Phantom::forbild_head(args.attenuation)?,
        PhantomArg::Defrise => Phantom::defrise(args.fov, args.attenuation)?,
    })
}

#[cfg(test)]
mod tests {
    use crate::args::tests::expect_complete;

    #[test]
    fn every_option_has_a_row() {
        expect_complete(&["simulate", "ct"], super::TABLE);
    }
}
