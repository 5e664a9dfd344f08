//! `rayspin filter`

mod compare;
mod histogram;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor};
use rayspin::filter::{self, Filters};
use rayspin::imaging::display::Window;
use rayspin::io::{self, Format, Values, png::PngOptions};
use rayspin_shell::effect::{Need, Row, refuse_idle};
use rayspin_shell::{BadInput, Context, stdout};

use super::files;
use crate::args::filter::Filter as Arguments;
use crate::args::grey;

/// What an option may need.
enum Requirement {
    /// A picture to write.
    Picture,
    /// A picture before and after.
    Compare,
    /// A histogram to write.
    Histogram,
}

/// The options of `rayspin filter`.
const TABLE: &[Row<Requirement>] = &[
    ("image", &[]),
    ("outputs", &[]),
    ("steps", &[]),
    ("compare", &[]),
    ("slice", &[Requirement::Compare]),
    ("grey", &[Requirement::Picture]),
    ("histogram", &[]),
    ("bins", &[Requirement::Histogram]),
    ("range", &[Requirement::Histogram]),
];

impl Need for Requirement {
    type Facts<'a> = &'a Arguments;

    fn met(&self, args: &&Arguments) -> Option<bool> {
        Some(match self {
            Self::Picture => args.compare.is_some() || args.outputs.iter().any(|path| is_picture(path)),
            Self::Compare => args.compare.is_some(),
            Self::Histogram => args.histogram.is_some(),
        })
    }

    fn expected(&self) -> String {
        match self {
            Self::Picture => "a picture to write (.png), or `--compare`",
            Self::Compare => "`--compare`",
            Self::Histogram => "`--histogram`",
        }
        .into()
    }

    fn found(&self, _: &&Arguments) -> String {
        "none".into()
    }
}

fn is_picture(path: &Path) -> bool {
    Format::of_name(path).is_some_and(Format::is_picture)
}

/// Filters an image, and writes it, pictures before and after, and histograms.
pub(crate) fn run(context: &Context, args: &Arguments) -> Result<()> {
    check_outputs(args)?;
    refuse_idle(TABLE, &context.given, &args)?;
    let steps = steps(args)?;
    let window = args.grey.as_deref().map(grey).transpose()?;
    let wanted = args.histogram.as_deref().map(|path| histogram::Wanted::of(path, args)).transpose()?;
    let monitor = Monitor::new(&context.console, Some(&rayspin_shell::interrupt::STOP));
    let start = std::time::Instant::now();
    let (image, kept) = monitor.stage("read", 0, || read(&args.image, &monitor))?;
    let of_file = || args.image.display().to_string();
    let pair = match &args.compare {
        Some(_) => Some(compare::Pair::before(&image, args.slice, window).with_context(of_file)?),
        None => None,
    };
    let image = filter::run(&context.device, &steps, image, &monitor).with_context(of_file)?;
    let counts = wanted.as_ref().map(|wanted| wanted.count(&context.device, &image)).transpose()?;
    if let (Some(path), Some(pair)) = (&args.compare, &pair) {
        let one = steps.iter().all(|step| step.keeps_unit());
        let note = monitor.stage("compare", 0, || pair.write(path, &image, one))?;
        monitor.note(&format!("{}: {note}", stdout::name(path)));
    }
    if let (Some(wanted), Some(histogram)) = (&wanted, &counts) {
        wanted.write(histogram, &args.image, &steps)?;
        if histogram.outside > 0 {
            let count = files::count(usize::try_from(histogram.outside)?, "voxel");
            monitor.note(&format!("{}: {count} outside the range", stdout::name(wanted.path())));
        }
    }
    for path in &args.outputs {
        let notes = monitor.stage("write", 0, || write(path, &image, &kept, window))?;
        notes.iter().for_each(|note| monitor.note(&format!("{}: {note}", stdout::name(path))));
    }
    if !context.quiet {
        let [nz, ny, nx] = image.shape_zyx();
        let written = args.outputs.iter().chain(&args.compare).chain(&args.histogram);
        let names: Vec<_> = written.map(|path| stdout::name(path)).collect();
        let seconds = start.elapsed().as_secs_f64();
        files::say_made(format!("{nx} x {ny} x {nz} voxels, {seconds:.2} s: {}", names.join(", ")));
    }
    Ok(())
}

/// Errors: an output of no format, or that cannot be written.
fn check_outputs(args: &Arguments) -> Result<()> {
    for path in &args.outputs {
        files::check_output(path, Format::writes_images)?;
    }
    if let Some(path) = &args.compare {
        files::check_output(path, Format::is_picture)?;
    }
    if let Some(path) = &args.histogram {
        histogram::Form::of(path)?;
        files::check_writable(path)?;
    }
    Ok(())
}

/// The filters of `--step`, in order. Errors: a text that names none; images to write and no filter.
fn steps(args: &Arguments) -> Result<Vec<Arc<dyn filter::Filter>>> {
    if args.steps.is_empty() && (args.compare.is_some() || !args.outputs.is_empty()) {
        let message = "--step: expected a filter, found none";
        return Err(BadInput::new(message)
            .hint("`--step gaussian:1.5`; `rayspin convert` writes an image as it is")
            .into());
    }
    let filters = Filters::default();
    let parse = |text: &String| -> Result<_> {
        filters.parse(text).map_err(|error| {
            let hint = "`rayspin filter -h` lists the filters and their parameters";
            BadInput::new(format!("--step {text}: {error}")).hint(hint).into()
        })
    };
    args.steps.iter().map(parse).collect()
}

/// An image of real numbers: magnitudes of complex ones. Errors: a file without an image.
fn read(path: &Path, monitor: &Monitor<'_>) -> Result<(Image<f32>, io::WriteOptions)> {
    let io::ImageFile { image, notes, layout, modality, stored, repetition_time_s, .. } =
        io::read_any_image(path)?;
    notes.iter().for_each(|note| monitor.note(note));
    let (image, magnitudes) = image.into_real();
    if magnitudes {
        monitor.note("magnitudes of complex numbers are filtered");
    }
    let origin = io::Origin { modality, ..io::Origin::default() };
    let stored = Some(stored);
    Ok((image, io::WriteOptions { layout, stored, repetition_time_s, origin, ..io::WriteOptions::default() }))
}

/// Integers that are whole numbers still are written as such.
fn write(
    path: &Path,
    image: &Image<f32>,
    kept: &io::WriteOptions,
    window: Option<Window>,
) -> Result<Vec<String>> {
    let window = window.unwrap_or_default();
    let png = PngOptions { window, ..PngOptions::preview(image.shape_zyx()[0], image.repetitions()) };
    let options = io::WriteOptions { png, values: Some(Values::Real), ..kept.clone() };
    Ok(io::write_image(path, image, &options)?)
}

#[cfg(test)]
mod tests {
    use crate::args::tests::expect_complete;

    #[test]
    fn every_option_has_a_row() {
        expect_complete(&["filter"], super::TABLE);
    }
}
