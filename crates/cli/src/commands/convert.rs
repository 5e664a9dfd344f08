//! `rayspin convert`

use anyhow::Result;
use rayspin::core::Monitor;
use rayspin::imaging::display::{Montage, Window};
use rayspin::io::{self, Format, ismrmrd};

use super::files;
use crate::Context;
use crate::args::{Convert, numbers};
use crate::failure::BadInput;

/// Reads a file in one format and writes it in another.
pub(crate) fn run(context: &Context, args: &Convert) -> Result<()> {
    files::check_output(&args.to, &files::IMAGE_FORMATS)?;
    let monitor = Monitor::new(&context.console, None);
    let to = Format::of_name(&args.to);
    if io::detect(&args.from)? == Format::Hdf5 && ismrmrd::image_series(&args.from)?.is_empty() {
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
        ismrmrd::write(&args.to, &scan)?;
        return Ok(());
    }
    if to != Some(Format::Png) && (args.slice.is_some() || args.montage || args.window.is_some()) {
        return Err(BadInput::new(format!(
            "--slice, --montage or --window: expected a PNG to write, found {}",
            args.to.display()
        ))
        .hint("leave them out: other formats hold the whole image")
        .into());
    }
    let file = io::read_image(&args.from, &io::ReadOptions::default())?;
    let mut notes = file.notes;
    if to == Some(Format::Png) {
        let mut png = files::picture(&file.image);
        let depth = file.image.shape_zyx()[0];
        png.montage = if args.montage {
            Montage::default()
        } else {
            Montage { slices: Some(vec![args.slice.unwrap_or(depth / 2)]), ..Montage::default() }
        };
        if let Some(text) = &args.window {
            let range = numbers::<f32>("--window", text, &[2])?;
            png.window = Window::Range { low: range[0], high: range[1] };
        }
        let options = io::WriteOptions { png, ..io::WriteOptions::default() };
        notes.extend(io::write_image(&args.to, &file.image, &options)?);
    } else {
        notes.extend(files::write_image(&args.to, &file.image)?);
    }
    for note in notes {
        monitor.note(&note);
    }
    Ok(())
}
