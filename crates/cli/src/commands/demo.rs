//! `rayspin demo`: three simulated scans from nothing to a page of pictures.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use ndarray::{Array2, Array3, ArrayD, Axis};
use rayspin::core::{C32, Image, Monitor};
use rayspin::imaging::display::{ColourMap, Limits, Montage, evenly_spaced, montage, to_colour};
use rayspin::imaging::metrics::{CompareOptions, Numbers, compare};
use rayspin::io;
use rayspin::mri::methods::{CgSense, Combine, Gridding, Regulariser};
use rayspin::mri::recon::{ReconOptions, Reconstructor};
use rayspin::mri::scan::FrameOptions;
use rayspin::mri::simulate::trajectory::{Hardware, Sampling};
use rayspin::mri::simulate::{FieldMap, FieldShape, SimulateOptions, simulate};
use rayspin::report::page::{
    Axis as ChartAxis, ColourScale, Colours, Figure, FigureRow, LineChart, Picture, Series,
};
use rayspin::report::table::{Cell, Column, Table};
use rayspin::report::{Page, RunRecord, Section};
use rayspin_shell::{Context, say};

use super::files;
use super::metrics::{Judgement, judge};
use crate::args::Demo;

/// One scan of the tour.
struct Case {
    name: &'static str,
    title: &'static str,
    story: &'static str,
    options: SimulateOptions,
    iterations: usize,
    lambda: f64,
}

/// One reconstruction of a scan.
struct Outcome {
    name: &'static str,
    image: Image,
    judgement: Judgement,
    record: RunRecord,
    residuals: Vec<f64>,
    /// NRMSE after each iteration, compared as the image is.
    errors: Vec<f64>,
}

/// Simulates, reconstructs and shows all scans.
pub(crate) fn run(context: &Context, args: &Demo) -> Result<()> {
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("{}: cannot make the folder", args.out.display()))?;
    let mut page = Page::new(
        "Rayspin: from raw scan to image",
        "Scans of the Shepp–Logan phantom, simulated from its closed-form k-space, then reconstructed on this machine's \
         processor: two by gridding and by regularised least squares, one in an inhomogeneous field with and without its map.",
    );
    let mut pictures = Vec::new();
    for case in cases(args.seed) {
        if !context.quiet {
            say!("{}", case.title);
        }
        page = page.section(self::case(context, &case, &args.out, &mut pictures)?);
    }
    page = page.section(Section::new("Next").text(
        "The scans and images beside this page are ordinary files: rayspin info, rayspin recon mri and rayspin metrics \
         take them as they would a scanner's.",
    ));
    let index = args.out.join("index.html");
    files::write_text(&index, &page.render())?;
    for picture in &pictures {
        files::print(&picture.display())?;
    }
    files::print(&index.display())?;
    Ok(())
}

fn cases(seed: u64) -> [Case; 3] {
    [
        Case {
            name: "spiral",
            title: "Spiral, 8 coils, 256 × 256",
            story: "Half of the interleaves that full sampling needs. Gridding weights each sample by the area it \
                    stands for and shows the missing interleaves as swirls; least squares looks for the image that explains \
                    every coil's samples.",
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
            name: "stack",
            title: "Stack of spirals, 8 coils, 64 × 64 × 64",
            story: "The same in three dimensions: half of the interleaves of each of 64 partitions.",
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
            name: "off-resonance",
            title: "Spiral in an inhomogeneous field, 4 coils, 192 × 192",
            story: "Above the nose the field is 150 Hz too strong, and less elsewhere. During 20 ms of a spiral readout spins \
                    there turn ahead by three turns, which blurs and moves them. The same least squares with a map of the field sees \
                    them where they are.",
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

fn case(context: &Context, case: &Case, out: &Path, pictures: &mut Vec<PathBuf>) -> Result<Section> {
    let monitor = Monitor::new(&context.console, None);
    let simulation = context.run(|| simulate(&case.options, &monitor))?;
    let scan_path = out.join(format!("{}.h5", case.name));
    io::ismrmrd::write(&scan_path, &simulation.scan, io::ismrmrd::Identity::LeaveOut)?;
    let truth_path = out.join(format!("{}-true.nii.gz", case.name));
    files::write_image(&truth_path, &simulation.truth, Default::default(), None)?;
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
        None => [("gridded", gridding), ("least-squares", least_squares)],
        Some(field) => {
            let path = out.join(format!("{}-field.nii.gz", case.name));
            let real = io::WriteOptions { values: Some(io::Values::Real), ..io::WriteOptions::default() };
            io::write_image(&path, field, &real)?;
            let field_map = Some(Arc::new(field.data().mapv(|v| v.re)));
            let corrected = ReconOptions { field_map, ..least_squares.clone() };
            [("uncorrected", least_squares), ("corrected", corrected)]
        }
    };
    let scanned = Scanned { case, scan: &scan_path, truth, out };
    let outcomes = [
        reconstruct(context, &scanned, first.0, first.1)?,
        reconstruct(context, &scanned, second.0, second.1)?,
    ];
    let table = table(case, &outcomes);
    if !context.quiet {
        files::print(&format!("\n{table}"))?;
    }
    section(case, truth, &outcomes, table, out, pictures)
}

/// A simulated scan on disk, its truth, and the folder that everything goes to.
struct Scanned<'a> {
    case: &'a Case,
    scan: &'a Path,
    truth: &'a Image,
    out: &'a Path,
}

fn reconstruct(
    context: &Context,
    &Scanned { case, scan: scan_path, truth, out }: &Scanned<'_>,
    name: &'static str,
    options: ReconOptions,
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
    let path = out.join(format!("{}-{name}.nii.gz", case.name));
    files::write_image(&path, &image, Default::default(), None)?;
    recorder.output(&path)?;
    recorder.stage("metrics");
    let judgement = judge(&image, truth, Numbers::ByKind, true)?;
    let image = scaled(image, judgement.quality.scale[0])?;
    judgement.record(&mut recorder, name, "true");
    crate::methods::record(&mut recorder, &*options.method, |_| None);
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
    files::write_record(&out.join(format!("{}-{name}.json", case.name)), &record)?;
    let errors = errors.borrow().clone();
    Ok(Outcome { name, image, judgement, record, residuals, errors })
}

fn table(case: &Case, outcomes: &[Outcome; 2]) -> Table {
    let compared = outcomes[0].judgement.quality.compared.name();
    let mut table = Table::new(
        format!("{}: error against the true image, {compared} compared, scale fitted", case.title),
        [
            Column::text("Image"),
            Column::number("Error").unit("%").decimals(1).lowest_best(),
            Column::number("PSNR").unit("dB").decimals(1).highest_best(),
            Column::number("SSIM").decimals(3).highest_best(),
            Column::number("Time").seconds(),
        ],
    );
    table.push([Cell::Text("True".into()), Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty]);
    for outcome in outcomes {
        let q = &outcome.judgement.quality;
        table.push([
            Cell::Text(title(outcome.name).into()),
            Cell::Number(q.error_percent),
            Cell::Number(q.psnr_db),
            q.ssim.map_or(Cell::Empty, Cell::Number),
            Cell::Number(outcome.record.total_seconds),
        ]);
    }
    table
}

fn title(name: &str) -> &str {
    match name {
        "gridded" => "Gridded",
        "uncorrected" => "Uncorrected",
        "corrected" => "Corrected",
        _ => "Least squares",
    }
}

fn section(
    case: &Case,
    truth: &Image,
    outcomes: &[Outcome],
    table: Table,
    out: &Path,
    pictures: &mut Vec<PathBuf>,
) -> Result<Section> {
    let shown = view(truth)?;
    let peak = f64::from(shown.iter().copied().fold(0.0f32, f32::max)).max(f64::MIN_POSITIVE);
    let mut figures =
        vec![Figure::new("True", "the phantom that was scanned", Picture::gray(shown.view(), 0.0, peak)?)];
    let scale = ColourScale::new("Absolute error", "", 0.0, 0.25 * peak, Colours::Magma)?;
    let mut error_figures = Vec::new();
    save(out, pictures, &format!("{}-true.png", case.name), &figures[0].picture)?;
    for outcome in outcomes {
        let picture = Picture::gray(view(&outcome.image)?.view(), 0.0, peak)?;
        save(out, pictures, &format!("{}-{}.png", case.name, outcome.name), &picture)?;
        let percent = format!("error {:.1} %", outcome.judgement.quality.error_percent);
        let alt = format!("{} reconstruction of the phantom", title(outcome.name));
        figures.push(Figure::new(title(outcome.name), alt, picture).detail(percent.clone()));

        let picture = scale.picture((view(&outcome.image)? - &shown).mapv(f32::abs).view())?;
        save(out, pictures, &format!("{}-{}-error.png", case.name, outcome.name), &picture)?;
        let alt = format!("absolute error of the {} image", title(outcome.name).to_lowercase());
        error_figures.push(Figure::new(title(outcome.name), alt, picture).detail(percent));
    }
    let strip = strip(&[&shown, &view(&outcomes[0].image)?, &view(&outcomes[1].image)?], peak as f32)?;
    let path = out.join(format!("{}.png", case.name));
    io::png::write_rgb(&path, strip.view())?;
    pictures.push(path);
    let mut section = Section::new(case.title)
        .text(case.story)
        .figures(FigureRow::new(figures))
        .table(table)
        .text(match case.options.field {
            None => {
                "The published comparison of these two methods, on another phantom and trajectory, found 42 % for gridding \
                 and 12 % for least squares."
            }
            Some(_) => "What is left of the error is that of every image of edges: the scan resolves no finer.",
        })
        .figures(FigureRow::new(error_figures).caption("Where each image is wrong.").scale(scale));
    for outcome in outcomes.iter().filter(|o| !o.residuals.is_empty()) {
        let chart = LineChart::new(
            "Conjugate gradients",
            ChartAxis::linear("Iteration", ""),
            ChartAxis::log("Relative", ""),
        )
        .series(Series::by_index("residual of the normal equations", outcome.residuals.iter().copied()))
        .series(Series::new(
            "error against the true image",
            outcome.errors.iter().enumerate().map(|(i, e)| ((i + 1) as f64, *e)),
        ));
        section = section.chart(chart);
    }
    for outcome in outcomes {
        section = section
            .text(format!("The run that made the {} image:", title(outcome.name).to_lowercase()))
            .record(outcome.record.clone());
    }
    Ok(section)
}

fn save(out: &Path, pictures: &mut Vec<PathBuf>, name: &str, picture: &Picture) -> Result<()> {
    let path = out.join(name);
    io::atomic::write_stream_atomically(&path, |file| std::io::Write::write_all(file, picture.png()))?;
    pictures.push(path);
    Ok(())
}

/// The image as it was compared.
fn scaled(image: Image, factor: f64) -> Result<Image> {
    let geometry = *image.geometry();
    Ok(Image::new(image.data().mapv(|v| v * factor as f32), geometry)?)
}

/// The true image and the others side by side, and each one's error below: the picture for a README or a slide.
fn strip(views: &[&Array2<f32>; 3], peak: f32) -> Result<Array3<u8>> {
    let colour = |image: &Array2<f32>, high: f32, map: ColourMap| {
        to_colour(image.view(), Limits { low: 0.0, high }, map)
    };
    let mut rows = Vec::new();
    for errors in [false, true] {
        let parts: Vec<Array3<u8>> = views
            .iter()
            .map(|image| {
                if errors {
                    colour(&(*image - views[0]).mapv(f32::abs), 0.25 * peak, ColourMap::Inferno)
                } else {
                    colour(image, peak, ColourMap::Grey)
                }
            })
            .collect();
        let parts: Vec<_> = parts.iter().map(|part| part.view()).collect();
        rows.push(ndarray::concatenate(Axis(1), &parts)?);
    }
    let rows: Vec<_> = rows.iter().map(|row| row.view()).collect();
    Ok(ndarray::concatenate(Axis(0), &rows)?)
}

/// The magnitude as one picture: the slice, or four slices of a volume.
fn view(image: &Image) -> Result<Array2<f32>> {
    let magnitude = image.magnitude().into_dimensionality::<ndarray::Ix3>()?;
    let depth = magnitude.len_of(Axis(0));
    if depth == 1 {
        return Ok(magnitude.index_axis_move(Axis(0), 0));
    }
    // The ends of the volume hold little of the head.
    let slices = evenly_spaced(depth, 6)[1..5].to_vec();
    Ok(montage(magnitude.view(), &Montage { slices: Some(slices), columns: Some(2), gap: 0 })?)
}
