//! `rayspin render`

mod camera;
mod look;
mod output;
mod volume;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ndarray::{Array3, Array4, Axis};
use rayspin::core::{Error, ErrorKind, Monitor, VolumeGrid};
use rayspin::device::Array;
use rayspin::io::Format;
use rayspin::kernels::render::{Renderer, Scene};
use rayspin_shell::effect::{Need, Row, refuse_idle};
use rayspin_shell::{BadInput, Context, say, stdout};

use super::files;
use crate::args::render::{ModeArg, Render};
use volume::Volume;

/// What an option may need.
#[derive(Clone, Copy)]
enum Needs {
    /// A picture or numbers: pixels.
    Pixels,
    /// A picture.
    Picture,
    /// A picture of `--mode xray` or `mip`.
    Grey,
    /// A picture of `--mode xray` or `mip`, or a page.
    Window,
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
const TABLE: &[Row<Needs>] = &[
    ("image", &[]),
    ("outputs", &[]),
    ("mode", &[Needs::Pixels]),
    ("hu", &[]),
    ("water", &[Needs::Units]),
    ("view", &[Needs::Pixels]),
    ("azimuth", &[Needs::Pixels]),
    ("elevation", &[Needs::Pixels]),
    ("perspective", &[Needs::Pixels]),
    ("distance", &[Needs::Pixels]),
    ("width", &[Needs::Pixels]),
    ("size", &[Needs::Pixels]),
    ("step", &[Needs::Pixels]),
    ("window", &[Needs::Window]),
    ("invert", &[Needs::Picture, Needs::Grey]),
    ("preset", &[Needs::Pixels, Needs::Volume]),
    ("transfer", &[Needs::Pixels, Needs::Volume]),
    ("iso", &[Needs::Pixels, Needs::Surface]),
    ("colour", &[Needs::Pixels, Needs::Surface]),
    ("background", &[Needs::Picture, Needs::Colour]),
    ("turntable", &[Needs::Pixels]),
    ("frame_time", &[Needs::Picture]),
];

impl Need for Needs {
    type Run<'a> = &'a Render;

    fn met(&self, args: &&Render) -> Option<bool> {
        let xray = args.mode == ModeArg::Xray;
        Some(match self {
            Self::Pixels => args.outputs.iter().any(|path| !output::is_page(path)),
            Self::Picture => args.outputs.iter().any(|path| output::is_picture(path)),
            Self::Grey => matches!(args.mode, ModeArg::Xray | ModeArg::Mip),
            Self::Window => {
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
            Self::Grey => "--mode xray or mip",
            Self::Window => "a picture of --mode xray or mip, or a page, to write",
            Self::Colour => "--mode volume or surface",
            Self::Volume => "--mode volume",
            Self::Surface => "--mode surface",
            Self::Units => "--mode xray with --hu, or --mode volume with a preset and without --hu",
        }
        .into()
    }

    fn found(&self, args: &&Render) -> String {
        let page = "a page alone".to_owned();
        let mode = || format!("--mode {}", look::name(args.mode));
        match self {
            Self::Pixels => page,
            Self::Picture => "none".into(),
            Self::Units => format!("{}{}", mode(), if args.hu { " with --hu" } else { "" }),
            _ => mode(),
        }
    }
}

/// Draws a volume, and writes pictures, numbers and pages of it.
pub(crate) fn run(context: &Context, args: &Render) -> Result<()> {
    check_outputs(args)?;
    refuse_idle(TABLE, &context.given, &args)?;
    let size = camera::size(args)?;
    let monitor = Monitor::new(&context.console, Some(&rayspin_shell::interrupt::STOP));
    let mut volume = monitor.stage("read", 0, || volume::read(args, &monitor))?;
    let (pages, others): (Vec<&Path>, Vec<&Path>) =
        args.outputs.iter().map(AsRef::as_ref).partition(|path| output::is_page(path));
    for page in pages {
        monitor.stage("page", 0, || output::write_page(page, &volume, args, &monitor))?;
    }
    if !others.is_empty() {
        let look = look::of(args, &volume)?;
        let camera::Views { cameras, pitch_mm } = camera::views(args, &volume, size)?;
        let scenes: Vec<Scene> = cameras
            .into_iter()
            .map(|camera| {
                let step = args.step.unwrap_or_else(|| volume.finest_mm());
                Scene::new(camera, look.mode.clone()).step(&volume.grid, step)
            })
            .collect::<rayspin::core::Result<_>>()
            .context("--step")?;
        if let Some(values) = look.values {
            values.of(&mut volume);
        }
        let drawn = draw(context, volume, &scenes, &monitor)?;
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
        say!("{}", names.join(", "));
    }
    Ok(())
}

/// Errors: an output of no format, or that cannot be written, or that is the input; numbers of a mode that has colours.
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
                format!("{}: expected a picture (.png) of --mode {mode}, found numbers", path.display());
            return Err(BadInput::new(message).hint("--mode xray and mip have a number a pixel").into());
        }
    }
    let inputs = std::iter::once(&args.image).chain(&args.transfer);
    files::check_distinct(inputs, args.outputs.iter())
}

/// The pictures `[view, row, column, channel]`. A GPU that has too little memory leaves them to the CPU, unless the user chose it.
fn draw(context: &Context, volume: Volume, scenes: &[Scene], monitor: &Monitor<'_>) -> Result<Array4<f32>> {
    let Volume { values, grid, .. } = volume;
    let shape = grid.shape_zyx();
    let on_gpu = context.device.kind() == rayspin::device::BackendKind::Cuda;
    if on_gpu {
        // The numbers stay here for the CPU.
        match draw_on(&grid, || Array::from_slice(&context.device, &shape, &values), scenes, monitor) {
            Err(error) if context.finish_on_cpu && error.kind() == ErrorKind::Failure => {
                monitor.note(&format!("the CPU takes over: {error}"));
            }
            other => return Ok(other?),
        }
    }
    Ok(draw_on(&grid, || Array::from_vec(&context.device.host(), &shape, values), scenes, monitor)?)
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
    let mut all = Vec::new();
    let mut picture = Array::zeros(&device, &first.shape())?;
    monitor.stage("render", scenes.len(), || {
        for scene in scenes {
            renderer.draw(scene, &mut picture)?;
            all.push(
                Array3::from_shape_vec([rows, columns, channels], picture.to_vec()?)
                    .map_err(|e| Error::value("picture", "numbers of its pixels", e))?,
            );
            monitor.step("")?;
        }
        Ok::<(), Error>(())
    })?;
    let views: Vec<_> = all.iter().map(|one| one.view()).collect();
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
