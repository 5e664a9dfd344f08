//! `rayspin render`

mod camera;
mod look;
mod output;
mod volume;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ndarray::{Array3, Array4, Axis};
use rayspin::core::{Error, ErrorKind, Image, Monitor, VolumeGrid};
use rayspin::device::Array;
use rayspin::io::Format;
use rayspin::job::ComputeTarget;
use rayspin::kernels::render::{Renderer, Scene, Transfer};
use rayspin_shell::effect::{Given, Need, Row, refuse_idle};
use rayspin_shell::{BadInput, Context, stdout};

use super::files;
use crate::args::render::{ModeArg, Render};
use look::Unseen;
use volume::Volume;

/// What an option may need.
#[derive(Clone, Copy)]
enum Requirement {
    /// A picture or numbers: pixels.
    Pixels,
    /// A picture.
    Picture,
    /// A picture of `--mode xray` or `mip`.
    Grey,
    /// A picture of `--mode xray` or `mip`, or a page.
    Values,
    /// `--mode volume` or `surface`.
    Colour,
    /// `--mode volume`.
    Volume,
    /// `--mode surface`.
    Surface,
    /// Hounsfield units that become attenuations, or the other way.
    Units,
}

/// The options of `rayspin render`.
const TABLE: &[Row<Requirement>] = &[
    ("image", &[]),
    ("outputs", &[]),
    ("mode", &[Requirement::Pixels]),
    ("hu", &[]),
    ("water", &[Requirement::Units]),
    ("view", &[Requirement::Pixels]),
    ("azimuth", &[Requirement::Pixels]),
    ("elevation", &[Requirement::Pixels]),
    ("perspective", &[Requirement::Pixels]),
    ("distance", &[Requirement::Pixels]),
    ("width", &[Requirement::Pixels]),
    ("size", &[Requirement::Pixels]),
    ("step", &[Requirement::Pixels]),
    ("grey", &[Requirement::Values]),
    ("invert", &[Requirement::Picture, Requirement::Grey]),
    ("preset", &[Requirement::Pixels, Requirement::Volume]),
    ("transfer", &[Requirement::Pixels, Requirement::Volume]),
    ("iso", &[Requirement::Pixels, Requirement::Surface]),
    ("colour", &[Requirement::Pixels, Requirement::Surface]),
    ("background", &[Requirement::Picture, Requirement::Colour]),
    ("turntable", &[Requirement::Pixels]),
    ("frame_time", &[Requirement::Picture]),
];

impl Need for Requirement {
    type Facts<'a> = &'a Render;

    fn met(&self, args: &&Render) -> Option<bool> {
        let xray = args.mode == ModeArg::Xray;
        Some(match self {
            Self::Pixels => args.outputs.iter().any(|path| !output::is_page(path)),
            Self::Picture => args.outputs.iter().any(|path| output::is_picture(path)),
            Self::Grey => matches!(args.mode, ModeArg::Xray | ModeArg::Mip),
            Self::Values => {
                let (page, picture) =
                    (|path: &PathBuf| output::is_page(path), |path: &PathBuf| output::is_picture(path));
                let grey = matches!(args.mode, ModeArg::Xray | ModeArg::Mip);
                args.outputs.iter().any(page) || grey && args.outputs.iter().any(picture)
            }
            Self::Colour => matches!(args.mode, ModeArg::Volume | ModeArg::Surface),
            Self::Volume => args.mode == ModeArg::Volume,
            Self::Surface => args.mode == ModeArg::Surface,
            Self::Units => {
                xray && args.hu || args.mode == ModeArg::Volume && !args.hu && args.transfer.is_none()
            }
        })
    }

    fn expected(&self) -> String {
        match self {
            Self::Pixels => "a picture or numbers to write",
            Self::Picture => "a picture to write (.png)",
            Self::Grey => "`--mode xray` or `mip`",
            Self::Values => "a picture of `--mode xray` or `mip`, or a page, to write",
            Self::Colour => "`--mode volume` or `surface`",
            Self::Volume => "`--mode volume`",
            Self::Surface => "`--mode surface`",
            Self::Units => "`--mode xray` with `--hu`, or `--mode volume` with a preset and without `--hu`",
        }
        .into()
    }

    fn found(&self, args: &&Render) -> String {
        let page = "a page alone".to_owned();
        let mode = || format!("`--mode {}`", look::name(args.mode));
        match self {
            Self::Pixels => page,
            Self::Picture => "none".into(),
            Self::Units => format!("{}{}", mode(), if args.hu { " with `--hu`" } else { "" }),
            _ => mode(),
        }
    }
}

/// Draws a volume, and writes pictures, numbers and pages of it.
pub(crate) fn run(context: &Context, args: &Render) -> Result<()> {
    check_outputs(args)?;
    refuse_idle(TABLE, &context.given, &args)?;
    camera::size(args)?;
    let monitor = Monitor::new(&context.console, Some(&rayspin_shell::interrupt::STOP));
    let volume = monitor.stage("read", 0, || volume::read(args, &monitor))?;
    let (pages, others): (Vec<&Path>, Vec<&Path>) =
        args.outputs.iter().map(AsRef::as_ref).partition(|path| output::is_page(path));
    for page in pages {
        monitor.stage("page", 0, || output::write_page(page, &volume, args, &monitor))?;
    }
    if !others.is_empty() {
        let transfer = args.transfer.as_deref().map(look::read_transfer).transpose()?;
        let target = files::compute_target(context, &context.device);
        let Drawn { pixels: drawn, pitch_mm } = pictures(args, volume, transfer, &target, &monitor)?;
        for path in others {
            let notes = monitor.stage("write", 0, || match output::is_picture(path) {
                true => output::write_picture(path, &drawn, args),
                false => output::write_numbers(path, &drawn, pitch_mm),
            })?;
            notes.iter().for_each(|note| monitor.note(&format!("{}: {note}", stdout::name(path))));
        }
    }
    if !context.quiet {
        let names: Vec<_> = args.outputs.iter().map(|path| stdout::name(path)).collect();
        files::say_made(names.join(", "));
    }
    Ok(())
}

/// Errors: an output of no format, or that cannot be written; numbers of a mode that has colours.
fn check_outputs(args: &Render) -> Result<()> {
    for path in &args.outputs {
        if output::is_page(path) {
            files::check_writable(path)?;
            continue;
        }
        files::check_output(path, Format::writes_images)?;
        if !output::is_picture(path) && matches!(args.mode, ModeArg::Volume | ModeArg::Surface) {
            let mode = look::name(args.mode);
            let message =
                format!("{}: expected a picture (.png) of `--mode {mode}`, found numbers", path.display());
            return Err(BadInput::new(message).hint("`--mode xray` and `mip` have a number a pixel").into());
        }
    }
    Ok(())
}

/// Pictures `[view, row, column, channel]`, and the size of a pixel at the middle of the volume.
struct Drawn {
    pixels: Array4<f32>,
    pitch_mm: f64,
}

/// Draws a volume, on the CPU where the device fails and the CPU may take over.
fn pictures(
    args: &Render,
    mut volume: Volume,
    transfer: Option<Transfer>,
    target: &ComputeTarget,
    monitor: &Monitor<'_>,
) -> Result<Drawn> {
    let look = look::of(args, &volume, transfer)?;
    let camera::Views { cameras, pitch_mm } = camera::views(args, &volume, camera::size(args)?)?;
    let scenes: Vec<Scene> = cameras
        .into_iter()
        .map(|camera| {
            let step = args.step.unwrap_or_else(|| volume.finest_mm());
            Scene::new(camera, look.mode.clone()).step(&volume.grid, step)
        })
        .collect::<rayspin::core::Result<_>>()
        .context("`--step`")?;
    if let Some(values) = look.values {
        values.of(&mut volume);
    }
    let unseen = look.unseen(&volume);
    let pixels = draw(target, volume, &scenes, monitor)?;
    match unseen {
        Some(Unseen::Filled(note)) => monitor.note(&note),
        Some(Unseen::Empty(note)) if output::is_empty(pixels.view()) => monitor.note(&note),
        _ => {}
    }
    Ok(Drawn { pixels, pitch_mm })
}

/// A picture of a volume in memory.
#[derive(Debug, Clone)]
pub enum Picture {
    /// Numbers `[view, row, column]` of line integrals or maxima.
    Numbers(Array3<f32>),
    /// Red, green and blue `[view, row, column, 3]`.
    Colours(Array4<u8>),
}

/// Draws a volume; numbers of the modes that have them, else colours. Returns the size of a pixel at the
/// middle of the volume in mm too.
///
/// Errors: options that do nothing or make no sense; a volume that cannot be drawn.
pub(crate) fn in_memory(
    args: &Render,
    given: &Given,
    image: Image<f32>,
    transfer: Option<Transfer>,
    target: &ComputeTarget,
    monitor: &Monitor<'_>,
) -> Result<(Picture, f64)> {
    refuse_idle(TABLE, given, &args)?;
    let volume = volume::of_image(args, image, false)?;
    let Drawn { pixels, pitch_mm } = pictures(args, volume, transfer, target, monitor)?;
    let picture = match pixels.shape()[3] {
        1 => Picture::Numbers(pixels.index_axis_move(Axis(3), 0)),
        _ => {
            Picture::Colours(output::coloured(pixels.view(), look::colour("--background", &args.background)?))
        }
    };
    Ok((picture, pitch_mm))
}

/// The pictures `[view, row, column, channel]`. A GPU that has too little memory leaves them to the CPU,
/// unless the user chose it.
fn draw(
    target: &ComputeTarget,
    volume: Volume,
    scenes: &[Scene],
    monitor: &Monitor<'_>,
) -> Result<Array4<f32>> {
    let device = &target.device;
    let Volume { values, grid, .. } = volume;
    let shape = grid.shape_zyx();
    let on_gpu = device.kind() == rayspin::device::BackendKind::Cuda;
    if on_gpu {
        // The numbers stay here for the CPU.
        match draw_on(&grid, || Array::from_slice(device, &shape, &values), scenes, monitor) {
            Err(error) if target.finish_on_cpu && error.kind() == ErrorKind::Failure => {
                monitor.note(&format!("the CPU takes over: {error}"));
            }
            other => return Ok(other?),
        }
    }
    Ok(draw_on(&grid, || Array::from_vec(&device.host(), &shape, values), scenes, monitor)?)
}

fn draw_on(
    grid: &VolumeGrid,
    load: impl FnOnce() -> rayspin::core::Result<Array<f32>>,
    scenes: &[Scene],
    monitor: &Monitor<'_>,
) -> rayspin::core::Result<Array4<f32>> {
    let (device, renderer) = monitor.stage("load", 0, || {
        let values = load()?;
        Ok::<_, Error>((values.device().clone(), Renderer::new(grid, values)?))
    })?;
    let Some(first) = scenes.first() else { return Err(Error::value("views", "at least one", 0)) };
    let ([rows, columns], channels) = (first.camera.shape(), first.mode.channels());
    let mut pictures = Vec::new();
    let mut picture = Array::zeros(&device, &first.shape())?;
    monitor.stage("render", scenes.len(), || {
        for scene in scenes {
            renderer.draw(scene, &mut picture)?;
            pictures.push(
                Array3::from_shape_vec([rows, columns, channels], picture.to_vec()?)
                    .map_err(|e| Error::value("picture", "numbers of its pixels", e))?,
            );
            monitor.step("")?;
        }
        Ok::<(), Error>(())
    })?;
    let views: Vec<_> = pictures.iter().map(|one| one.view()).collect();
    ndarray::stack(Axis(0), &views).map_err(|e| Error::value("views", "pictures of one shape", e))
}

#[cfg(test)]
mod tests {
    use crate::args::tests::expect_complete;

    #[test]
    fn every_option_has_a_row() {
        expect_complete(&["render"], super::TABLE);
    }
}
