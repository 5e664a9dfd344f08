//! A cone-beam CT scan of few views: filtered back-projection, total variation, and pictures of the volume.

use std::path::Path;

use anyhow::{Context as _, Result};
use ndarray::{Array2, Array3, Ix3, s};
use rayspin::core::vector::scaled;
use rayspin::core::{Detector, Error, Image, Monitor, Orbit, ProjectionGeometry, VolumeGrid};
use rayspin::ct::methods::{Fdk, Method, TotalVariation};
use rayspin::ct::phantom::Phantom;
use rayspin::ct::recon::{ReconOptions, reconstruct as make_volume};
use rayspin::ct::simulate::{Beam, DetectorOptions, beam_lines, counted};
use rayspin::device::Array;
use rayspin::imaging::metrics::Numbers;
use rayspin::imaging::phantom::Contrast;
use rayspin::io::{Values, data_exchange};
use rayspin::kernels::render::{Camera, Knot, Lens, Mode, Renderer, Scene, Surface, Transfer};
use rayspin::report::Section;
use rayspin::report::page::{Axis as ChartAxis, Figure, FigureRow, LineChart, Picture, Series};
use rayspin_shell::Context;

use super::{Out, Outcome, Story, view};
use crate::commands::files;
use crate::commands::metrics::judge;

pub(super) const STORY: Story = Story {
    name: "cone",
    title: "Cone-beam CT, 60 views, 96 × 96 × 96",
    text: "A source and a flat detector turn once around the head. Six times more views would be usual. Filtered back-projection \
           (FDK) smears what is missing into streaks, and photon noise with it. Total variation looks for the volume with the fewest \
           edges that explains every ray.",
    remark: "Both volumes are attenuations in 1/mm, compared without a fitted scale. What is left at the top and the bottom of FDK is \
             the cone's own error: a circle does not show these slices completely.",
};

/// Voxels along each axis, and pixels along each side of the detector.
const SIDE: usize = 96;
const VIEWS: usize = 60;
/// Side of the volume, mm.
const WIDTH: f64 = 256.0;
/// From the source to the axis, and on to the detector, mm.
const RADIUS: f64 = 600.0;
/// Attenuation of the skull, 1/mm.
const SKULL: f64 = 0.02;
/// Pixels along each side of a picture.
const PIXELS: usize = 256;

/// Simulates, reconstructs and shows the scan.
pub(super) fn section(context: &Context, seed: u64, out: &mut Out<'_>) -> Result<Section> {
    let (cpu, folder) = (context.device.cpu_side(), out.folder);
    let phantom = Phantom::shepp_logan(3, WIDTH, Contrast::Modified, SKULL)?;
    let voxel = WIDTH / SIDE as f64;
    let grid = VolumeGrid::new([SIDE; 3], [voxel; 3], [0.0; 3])?;
    let orbit = Orbit { source_to_axis_mm: Some(RADIUS), axis_to_detector_mm: RADIUS, ..Orbit::default() }
        .turn(VIEWS);
    let detector = Detector { rows: SIDE, columns: SIDE, pitch_mm: [2.0 * voxel; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
    let beam = Beam { rays: 3, ..Beam::default() };
    let scan = beam_lines(cpu, &phantom, &geometry, &orbit.angles, &beam)?;
    let scan = counted(cpu, scan, &DetectorOptions { photons: 3e4, seed, ..DetectorOptions::default() })?;
    let path = folder.join("cone.h5");
    data_exchange::write(&path, &scan)?;
    let truth = Array3::from_shape_vec(grid.shape_zyx(), phantom.volume(cpu, &grid)?)
        .map_err(|e| Error::value("truth", "one number a voxel", e))?;
    let truth = Image::new(truth.into_dyn(), grid.geometry())?;
    write(&folder.join("cone-true.nii.gz"), &truth)?;
    let scanned = Scanned { scan: &path, truth: &truth, grid, folder };
    let variation = TotalVariation { lambda: 1e-3, iterations: 40, ..TotalVariation::default() };
    let (fdk, smeared) = reconstruct(context, &scanned, "fdk", "FDK", Fdk::default())?;
    let (tv, volume) = reconstruct(context, &scanned, "tv", "Total variation", variation)?;
    let profiles = profiles([("true", &truth), ("FDK", &smeared), ("total variation", &volume)], voxel)?;
    let section = super::section(context, &STORY, &shown(&truth)?, [fdk, tv], out)?;
    let figures = pictures(context, volume, &grid, out)?;
    let row = FigureRow::new(figures).caption("The volume of total variation, as rayspin render draws it.");
    Ok(section.chart(profiles).figures(row))
}

/// A simulated scan on disk, its truth, and the folder that everything goes to.
struct Scanned<'a> {
    scan: &'a Path,
    truth: &'a Image<f32>,
    grid: VolumeGrid,
    folder: &'a Path,
}

fn write(path: &Path, image: &Image<f32>) -> Result<()> {
    files::write_image(path, image, Some(Values::Real), Default::default()).map(drop)
}

fn reconstruct(
    context: &Context,
    &Scanned { scan: scan_path, truth, grid, folder }: &Scanned<'_>,
    name: &'static str,
    title: &'static str,
    method: impl Method + 'static,
) -> Result<(Outcome, Image<f32>)> {
    let mut recorder = files::recorder(context);
    let monitor = Monitor::new(&context.console, None);
    recorder.stage("read");
    let scan = data_exchange::read(scan_path, context.device.cpu_side())?;
    recorder.input(scan_path)?;
    let mut notes = Vec::new();
    let geometry = scan.geometry.clone().context("the scan states no rays")?;
    let lines = scan.into_lines(context.device.cpu_side(), &mut notes)?;

    recorder.stage("reconstruct");
    let options = ReconOptions { finish_on_cpu: context.finish_on_cpu, ..ReconOptions::new(method, grid) };
    let made = make_volume(&context.device, lines, &geometry, &options, &monitor)?;
    files::record_stages(&mut recorder, &monitor);
    notes.extend(made.notes);
    let image = Image::new(made.volume.into_dyn(), grid.geometry())?;

    recorder.stage("write");
    let path = folder.join(format!("cone-{name}.nii.gz"));
    write(&path, &image)?;
    recorder.output(&path)?;
    recorder.stage("metrics");
    let judgement = judge(&image, truth, Numbers::ByKind, false)?;
    judgement.record(&mut recorder, name, "true");
    rayspin::job::asked::record(&mut recorder, &*options.method, |_| None);
    recorder.parameter("voxels", serde_json::to_value(grid)?);
    let residuals = made.solve.map(|solve| solve.residuals).unwrap_or_default();
    let chart = (!residuals.is_empty()).then(|| {
        recorder.converged(name, residuals.clone());
        let axes = (ChartAxis::linear("Iteration", ""), ChartAxis::log("Relative", ""));
        LineChart::new(title, axes.0, axes.1).series(Series::by_index("change of the volume", residuals))
    });
    notes.into_iter().for_each(|note| recorder.note(note));
    let record = recorder.finish(rayspin::device::cpu::peak_memory());
    files::write_record(&folder.join(format!("cone-{name}.json")), &record)?;
    Ok((Outcome { name, title, shown: shown(&image)?, judgement, record, chart }, image))
}

/// Attenuations as one picture.
fn shown(image: &Image<f32>) -> Result<Array2<f32>> {
    view(image.data().view().into_dimensionality()?)
}

/// Attenuation along x through the ventricles and the tumours in front of them.
fn profiles(images: [(&str, &Image<f32>); 3], voxel: f64) -> Result<LineChart> {
    let chart = LineChart::new(
        "Profiles through the middle, from right to left",
        ChartAxis::linear("Place", "mm"),
        ChartAxis::linear("Attenuation", "1/mm"),
    );
    let place = |column: usize| (column as f64 + 0.5 - 0.5 * SIDE as f64) * voxel;
    images.into_iter().try_fold(chart, |chart, (name, image)| {
        let values = image.data().view().into_dimensionality::<Ix3>()?;
        let row = values.slice(s![SIDE / 2, SIDE / 2, ..]).to_owned();
        let points = row.into_iter().enumerate().map(|(column, value)| (place(column), f64::from(value)));
        Ok(chart.series(Series::new(name, points)))
    })
}

/// A radiograph, the tissue inside the skull, and the skull as a surface.
fn pictures(
    context: &Context,
    volume: Image<f32>,
    grid: &VolumeGrid,
    out: &mut Out<'_>,
) -> Result<Vec<Figure>> {
    let device = &context.device;
    let values: Vec<f32> = volume.into_data().into_iter().collect();
    let renderer = Renderer::new(grid, Array::from_vec(device, &grid.shape_zyx(), values)?)?;
    let skull = SKULL as f32;
    let knot = |part: f32, colour, opacity| Knot { value: part * skull, colour, opacity };
    // Brain has 0.2 of the skull's attenuation, tumours 0.3 and 0.4.
    let tissue = Transfer::new(vec![
        knot(0.24, [0.9, 0.3, 0.2], 0.0),
        knot(0.3, [0.9, 0.35, 0.2], 0.04),
        knot(0.4, [0.95, 0.6, 0.2], 0.06),
        knot(0.55, [0.8, 0.8, 0.9], 0.002),
        knot(1.0, [0.8, 0.8, 0.9], 0.004),
    ])?;
    let modes = [
        ("xray", "X-ray", "radiograph of the phantom", Mode::XRay),
        ("tissue", "Emission and absorption", "tumours in a translucent skull", Mode::Volume(tissue)),
        ("surface", "Surface", "surface of the skull", Mode::Surface(Surface::of(0.5 * skull))),
    ];
    let (azimuth, elevation) = (0.5f64, 0.35f64);
    let eye = [azimuth.sin() * elevation.cos(), -azimuth.cos() * elevation.cos(), elevation.sin()];
    let lens = Lens::Perspective { field_of_view: 0.4 };
    let camera = Camera::new(lens, scaled(eye, 3.0 * WIDTH), [0.0; 3], [0.0, 0.0, 1.0], [PIXELS; 2])?;
    modes
        .into_iter()
        .map(|(name, title, alt, mode)| {
            // From brain to skull is a voxel, in which the tumours' values are a fraction: coarser samples
            // miss them here and there.
            let scene = Scene::new(camera.clone(), mode).step(grid, WIDTH / SIDE as f64 / 8.0)?;
            let mut drawn = Array::zeros(device, &scene.shape())?;
            renderer.draw(&scene, &mut drawn)?;
            let drawn = drawn.to_vec()?;
            let picture = match scene.mode.channels() {
                1 => {
                    let most = drawn.iter().copied().fold(0.0, f32::max);
                    let picture = Array2::from_shape_vec([PIXELS; 2], drawn)?;
                    Picture::gray(picture.view(), 0.0, f64::from(most))?
                }
                _ => {
                    let rgb = drawn.chunks_exact(4).flat_map(|pixel| &pixel[..3]);
                    let bytes: Vec<u8> =
                        rgb.map(|light| (light.clamp(0.0, 1.0) * 255.0).round() as u8).collect();
                    Picture::rgb8(PIXELS, PIXELS, &bytes)?
                }
            };
            out.save(&format!("cone-{name}.png"), &picture)?;
            Ok(Figure::new(title, alt, picture))
        })
        .collect()
}
