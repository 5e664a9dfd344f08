//! `rayspin convert`

use anyhow::Result;
use rayspin::core::Monitor;
use rayspin::imaging::display::Window;
use rayspin::io::{self, Format, ismrmrd, ismrmrd::Identity};
use rayspin_shell::effect::{Need, Row, refuse_idle};
use rayspin_shell::{BadInput, Context};

use super::files;
use crate::args::{Convert, numbers};

/// What an option may need.
enum Needs {
    /// A picture to write.
    Picture,
    /// A raw scan, with a header.
    Scan,
}

/// The options of `rayspin convert`.
const TABLE: &[Row<Needs>] = &[
    ("from", &[]),
    ("to", &[]),
    ("slice", &[Needs::Picture]),
    ("montage", &[Needs::Picture]),
    ("window", &[Needs::Picture]),
    ("keep_identity", &[Needs::Scan]),
];

impl Need for Needs {
    /// The format that is written, and whether a raw scan is read.
    type Run<'a> = (Option<Format>, bool);

    fn met(&self, (to, raw): &(Option<Format>, bool)) -> Option<bool> {
        Some(match self {
            Self::Picture => *to == Some(Format::Png),
            Self::Scan => *raw,
        })
    }

    fn expected(&self) -> String {
        match self {
            Self::Picture => "a .png to write".into(),
            Self::Scan => "a raw scan (ISMRMRD) to read".into(),
        }
    }

    fn found(&self, (to, _): &(Option<Format>, bool)) -> String {
        match self {
            Self::Picture => to.map_or_else(|| "another".into(), |format| format.to_string()),
            Self::Scan => "an image".into(),
        }
    }
}

/// Reads a file in one format and writes it in another.
pub(crate) fn run(context: &Context, args: &Convert) -> Result<()> {
    files::check_output(&args.to, &files::IMAGE_FORMATS)?;
    let monitor = Monitor::new(&context.console, None);
    let to = Format::of_name(&args.to);
    let raw = io::detect(&args.from)? == Format::Hdf5 && ismrmrd::image_series(&args.from)?.is_empty();
    refuse_idle(TABLE, &context.given, &(to, raw))?;
    if raw {
        if to != Some(Format::Hdf5) {
            return Err(BadInput::new(format!(
                "{}: expected an image, found a raw scan",
                args.from.display()
            ))
            .hint("rayspin recon mri makes an image of it")
            .into());
        }
        let scan = ismrmrd::read_with(&args.from, &ismrmrd::ReadOptions::default(), &monitor)?;
        for note in &scan.notes {
            monitor.note(note);
        }
        let identity = if args.keep_identity { Identity::Keep } else { Identity::LeaveOut };
        let left_out = ismrmrd::write(&args.to, &scan, identity)?;
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            monitor.note(&format!(
                "left out of the header, as it may tell whose scan it is (--keep-identity writes it): {names}"
            ));
        }
        return Ok(());
    }
    let file = io::read_image(&args.from, &io::ReadOptions::default())?;
    let mut notes = file.notes;
    if to == Some(Format::Png) {
        let depth = file.image.shape_zyx()[0];
        let mut png = files::picture(depth, file.image.repetitions());
        let slice = args.slice.unwrap_or(depth / 2);
        png.montage.slices = (!args.montage).then(|| vec![slice]);
        png.repetitions = png.repetitions.filter(|_| !args.montage);
        if let Some(text) = &args.window {
            let range = numbers::<f32>("--window", text, &[2])?;
            png.window = Window::Range { low: range[0], high: range[1] };
        }
        let options = io::WriteOptions { png, ..io::WriteOptions::default() };
        notes.extend(io::write_image(&args.to, &file.image, &options)?);
    } else {
        notes.extend(files::write_image(&args.to, &file.image, file.layout)?);
    }
    for note in notes {
        monitor.note(&note);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::args::tests::expect_complete;

    #[test]
    fn every_option_has_a_row() {
        expect_complete(&["convert"], super::TABLE);
    }
}
