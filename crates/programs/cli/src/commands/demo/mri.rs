//! Scans of MRI: gridded and by least squares, and in an inhomogeneous field.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use ndarray::{Array2, ArrayD};
use rayspin::core::{C32, Image, Monitor};
use rayspin::imaging::metrics::{CompareOptions, Numbers, compare};
use rayspin::io;
use rayspin::mri::methods::{CgSense, Combine, Gridding, Regulariser};
use rayspin::mri::recon::{ReconOptions, Reconstructor};
use rayspin::mri::scan::FrameOptions;
use rayspin::mri::simulate::trajectory::{Hardware, Sampling};
use rayspin::mri::simulate::{FieldMap, FieldShape, SimulateOptions, simulate};
use rayspin::report::Section;
use rayspin::report::page::{Axis as ChartAxis, LineChart, Series};
use rayspin_shell::Context;

use super::{Out, Outcome, Story, view};
use crate::commands::files;
use crate::commands::metrics::judge;

const UNDERSAMPLED: &str = "The published comparison of these two methods, on another phantom and trajectory, found 42 % for \
                            gridding and 12 % for least squares.";
const FIELD: &str = "What is left of the error is that of every image of edges: the scan resolves no finer.";

/// A scan and its reconstruction.
pub(super) struct Case {
    pub(super) story: Story,
    options: SimulateOptions,
    iterations: usize,
    lambda: f64,
}

/// The scans: two that lack half of the samples, and one in an inhomogeneous field.
pub(super) fn cases(seed: u64) -> [Case; 3] {
    [
        Case {
            story: Story {
                name: "spiral",
                title: "Spiral, 8 coils, 256 × 256",
                text: "Half of the interleaves that full sampling needs. Gridding weights each sample by the area it \
                    stands for and shows the missing interleaves as swirls; least squares looks for the image that explains \
                    every coil's samples.",
                remark: UNDERSAMPLED,
            },
            options: SimulateOptions {
                sampling: Sampling::Spiral { interleaves: 12, acceleration: 2 },
                snr: Some(60.0),
                seed,
                ..SimulateOptions::default()
            },
            iterations: 40,
            lambda: 1e-4,
        },
        Case {
            story: Story {
                name: "stack",
                title: "Stack of spirals, 8 coils, 64 × 64 × 64",
                text: "The same in three dimensions: half of the interleaves of each of 64 partitions.",
                remark: UNDERSAMPLED,
            },
            options: SimulateOptions {
                dims: 3,
                matrix: [64; 3],
                fov_mm: [220.0; 3],
                sampling: Sampling::StackOfSpirals { interleaves: 4, acceleration: 2 },
                snr: Some(60.0),
                seed,
                ..SimulateOptions::default()
            },
            iterations: 20,
            lambda: 1e-3,
        },
        Case {
            story: Story {
                name: "off-resonance",
                title: "Spiral in an inhomogeneous field, 4 coils, 192 × 192",
                text: "Above the nose the field is 150 Hz too strong, and less elsewhere. During 20 ms of a spiral readout spins \
                    there turn ahead by three turns, which blurs and moves them. The same least squares with a map of the field sees \
                    them where they are.",
                remark: FIELD,
            },
            options: SimulateOptions {
                matrix: [192, 192, 1],
                coils: 4,
                sampling: Sampling::Spiral { interleaves: 8, acceleration: 1 },
                hardware: Hardware { gradient_mt_m: 22.0, slew_t_m_s: 100.0, dwell_us: 5.0 },
                field: Some(FieldMap { shape: FieldShape::Smooth, peak_hz: 150.0 }),
                snr: Some(60.0),
                seed,
                ..SimulateOptions::default()
            },
            iterations: 20,
            lambda: 1e-4,
        },
    ]
}

/// Simulates, reconstructs and shows a scan.
pub(super) fn section(context: &Context, case: &Case, out: &mut Out<'_>) -> Result<Section> {
    let (name, folder) = (case.story.name, out.folder);
    let monitor = Monitor::new(&context.console, None);
    let simulation = context.run(|| simulate(&case.options, &monitor))?;
    let scan_path = folder.join(format!("{name}.h5"));
    io::ismrmrd::write(&scan_path, &simulation.scan, io::ismrmrd::Identity::LeaveOut)?;
    let truth_path = folder.join(format!("{name}-true.nii.gz"));
    files::write_image(&truth_path, &simulation.truth, None, Default::default())?;
    let maps = Arc::new(simulation.maps.into_dyn());

    let given = |options: ReconOptions| ReconOptions { maps: Some(maps.clone()), ..options };
    let gridding = given(ReconOptions::of(Gridding { combine: Some(Combine::Maps) }));
    let least_squares = given(ReconOptions::of(CgSense {
        // As many iterations as the pages show.
        tolerance: 0.0,
        regulariser: Regulariser::Differences,
        lambda: case.lambda,
        iterations: case.iterations,
        ..CgSense::default()
    }));
    let truth = &simulation.truth;
    let [first, second] = match &simulation.field {
        None => [
            Reconstruction { name: "gridded", title: "Gridded", options: gridding },
            Reconstruction { name: "least-squares", title: "Least squares", options: least_squares },
        ],
        Some(field) => {
            let path = folder.join(format!("{name}-field.nii.gz"));
            let real = io::WriteOptions { values: Some(io::Values::Real), ..io::WriteOptions::default() };
            io::write_image(&path, field, &real)?;
            let field_map = Some(Arc::new(field.data().mapv(|v| v.re)));
            let corrected = ReconOptions { field_map, ..least_squares.clone() };
            [
                Reconstruction { name: "uncorrected", title: "Uncorrected", options: least_squares },
                Reconstruction { name: "corrected", title: "Corrected", options: corrected },
            ]
        }
    };
    let scanned = Scanned { name, scan: &scan_path, truth, folder };
    let outcomes = [reconstruct(context, &scanned, first)?, reconstruct(context, &scanned, second)?];
    super::section(context, &case.story, &magnitudes(truth)?, outcomes, out)
}

/// A simulated scan on disk, its truth, and the folder that everything goes to.
struct Scanned<'a> {
    /// How the names of files begin.
    name: &'a str,
    scan: &'a Path,
    truth: &'a Image,
    folder: &'a Path,
}

/// A reconstruction of the scan, and how it is named.
struct Reconstruction {
    /// In the names of files.
    name: &'static str,
    title: &'static str,
    options: ReconOptions,
}

fn reconstruct(
    context: &Context,
    &Scanned { name: scan_name, scan: scan_path, truth, folder }: &Scanned<'_>,
    Reconstruction { name, title, options }: Reconstruction,
) -> Result<Outcome> {
    let mut recorder = files::recorder(context);
    let monitor = Monitor::new(&context.console, None);
    recorder.stage("read");
    let scan = io::ismrmrd::read(scan_path)?;
    recorder.input(scan_path)?;

    recorder.stage("reconstruct");
    let index = scan.frames()?;
    let label = index.labels().next().context("the scan holds no image")?;
    let mut notes = Vec::new();
    let frames = FrameOptions { times: options.field_map.is_some(), ..FrameOptions::default() };
    let frame = index.assemble(label, &frames, &mut notes)?;
    let wanted = truth.data().clone().into_shape_with_order(frame.matrix.clone())?;
    let errors = Rc::new(RefCell::new(Vec::new()));
    let mut reconstructor = Reconstructor::new(&context.device, options.clone())?;
    let seen = Rc::clone(&errors);
    // Gridding of half the samples has no scale of its own: one factor is fitted to every image.
    let fitted = CompareOptions { fit: true, ..CompareOptions::default() };
    reconstructor.observe(Box::new(move |_, image: &ArrayD<C32>| {
        seen.borrow_mut().extend(compare(image.view(), wanted.view(), &fitted).map(|quality| quality.nrmse));
    }));
    let geometry = frame.geometry;
    let result = reconstructor.frame(frame, &monitor)?;
    files::record_stages(&mut recorder, &monitor);
    notes.extend(result.notes);
    let image = Image::new(result.image, geometry)?;

    recorder.stage("write");
    let path = folder.join(format!("{scan_name}-{name}.nii.gz"));
    files::write_image(&path, &image, None, Default::default())?;
    recorder.output(&path)?;
    recorder.stage("metrics");
    let judgement = judge(&image, truth, Numbers::ByKind, true)?;
    let image = scaled(image, judgement.quality.scale[0])?;
    judgement.record(&mut recorder, name, "true");
    rayspin::job::asked::record(&mut recorder, &*options.method, |_| None);
    recorder.parameter("epsilon", options.nufft_tolerance);
    recorder.parameter("sensitivities", "known from the simulation");
    let residuals = result.solve.map(|s| s.residuals).unwrap_or_default();
    if !residuals.is_empty() {
        recorder.converged(name, residuals.clone());
    }
    for note in notes {
        recorder.note(note);
    }
    let record = recorder.finish(rayspin::device::cpu::peak_memory());
    files::write_record(&folder.join(format!("{scan_name}-{name}.json")), &record)?;
    let errors = errors.borrow().clone();
    let chart = (!residuals.is_empty()).then(|| {
        let axes = (ChartAxis::linear("Iteration", ""), ChartAxis::log("Relative", ""));
        LineChart::new("Conjugate gradients", axes.0, axes.1)
            .series(Series::by_index("residual of the normal equations", residuals))
            .series(Series::new(
                "error against the true image",
                errors.iter().enumerate().map(|(i, e)| ((i + 1) as f64, *e)),
            ))
    });
    Ok(Outcome { name, title, shown: magnitudes(&image)?, judgement, record, chart })
}

/// The image as it was compared.
fn scaled(image: Image, factor: f64) -> Result<Image> {
    let geometry = *image.geometry();
    Ok(Image::new(image.data().mapv(|v| v * factor as f32), geometry)?)
}

/// Magnitudes as one picture.
fn magnitudes(image: &Image) -> Result<Array2<f32>> {
    view(image.magnitude().into_dimensionality::<ndarray::Ix3>()?.view())
}
