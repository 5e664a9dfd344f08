//! `rayspin convert`

use anyhow::{Context as _, Result};
use rayspin::core::{C32, Image, Monitor, Ranges};
use rayspin::io::{self, AnyImage, Format, Pixel, ScanFile, ismrmrd::Identity, png::PngOptions};
use rayspin_shell::effect::{Need, Row, refuse_idle};
use rayspin_shell::{BadInput, Context};

use super::files;
use crate::args::arrays::array_options;
use crate::args::{Convert, grey};

/// What an option may need.
enum Requirement {
    /// A picture to write.
    Picture,
    /// A raw scan, with a header.
    Scan,
    /// An image, with numbers to choose from.
    Numbers,
    /// A file that states whose image it is.
    Origin,
}

/// The options of `rayspin convert`.
const TABLE: &[Row<Requirement>] = &[
    ("from", &[]),
    ("to", &[]),
    ("complex", &[Requirement::Numbers]),
    ("phase", &[Requirement::Numbers]),
    ("slice", &[Requirement::Numbers]),
    ("repetition", &[Requirement::Numbers]),
    ("montage", &[Requirement::Picture]),
    ("grey", &[Requirement::Picture]),
    ("dicom_template", &[Requirement::Origin]),
    ("keep_identity", &[Requirement::Scan]),
    ("raw", &[]),
    ("traj", &[]),
    ("order", &[]),
    ("traj_units", &[]),
    ("noise", &[]),
    ("matrix", &[]),
    ("fov", &[]),
    ("dwell", &[]),
];

/// What is known of a conversion.
struct Conversion {
    /// The format that is written.
    to: Option<&'static Format>,
    /// Whether a raw scan is read.
    raw: bool,
    /// Whether a raw scan is made of arrays.
    made: bool,
}

impl Need for Requirement {
    type Facts<'a> = Conversion;

    fn met(&self, run: &Conversion) -> Option<bool> {
        Some(match self {
            Self::Picture => run.to.is_some_and(Format::is_picture),
            Self::Scan => run.raw && !run.made,
            Self::Numbers => !run.raw && !run.made,
            Self::Origin => run.to.is_some_and(Format::states_origin),
        })
    }

    fn expected(&self) -> String {
        match self {
            Self::Picture => format!("a {} to write", io::endings(Format::is_picture).join(", ")),
            Self::Numbers => "an image".into(),
            Self::Origin => {
                let endings = io::endings(Format::states_origin).join(", ");
                format!("an output that names a patient ({endings})")
            }
            Self::Scan => format!("a raw scan ({}) to read", io::endings(Format::reads_scans).join(", ")),
        }
    }

    fn found(&self, run: &Conversion) -> String {
        match self {
            _ if run.made => "--raw".into(),
            Self::Picture | Self::Origin => {
                run.to.map_or_else(|| "another".into(), |format| format.to_string())
            }
            Self::Scan => "an image".into(),
            Self::Numbers => "a raw scan".into(),
        }
    }
}

/// Reads a file in one format and writes it in another.
pub(crate) fn run(context: &Context, args: &Convert) -> Result<()> {
    files::check_output(&args.to, |to| to.writes_images() || to.writes_scans())?;
    let monitor = Monitor::new(&context.console, None);
    let to = Format::of_name(&args.to);
    let raw = io::holds_scan(&args.from)?;
    let made = args.raw.raw;
    refuse_idle(TABLE, &context.given, &Conversion { to, raw, made })?;
    if made {
        return make_scan(args, &monitor);
    }
    if raw {
        return convert_scan(args, &monitor);
    }
    let template = files::dicom_template(args.dicom_template.as_deref())?;
    let file = io::read_any_image(&args.from)?;
    let hounsfield = file.states_hounsfield();
    let io::ImageFile { image, layout, modality, stored, repetition_time_s, mut notes, .. } = file;
    let origin = io::Origin { modality, template, ..io::Origin::default() };
    let stored = Some(stored);
    let options = io::WriteOptions {
        layout,
        stored,
        hounsfield,
        repetition_time_s,
        origin,
        ..io::WriteOptions::default()
    };
    let complex_first = to.is_some_and(Format::writes_complex_first);
    notes.extend(match image {
        AnyImage::Real(image) => write(image, args, options)?,
        // Numbers without imaginary parts are real where the format has such.
        AnyImage::Complex(image) if !complex_first && image.data().iter().all(|value| value.im == 0.0) => {
            write(image.map(|value| value.re), args, options)?
        }
        AnyImage::Complex(image) => write(image, args, options)?,
    });
    for note in notes {
        monitor.note(&note);
    }
    Ok(())
}

/// Writes what the arguments choose of an image; returns what the file leaves out.
fn write<T: Pixel>(image: Image<T>, args: &Convert, mut options: io::WriteOptions) -> Result<Vec<String>> {
    let of_file = || args.from.display().to_string();
    let to = Format::of_name(&args.to);
    let picture = to.is_some_and(Format::is_picture);
    let magnitudes = image.data().iter().all(|value| {
        let value: C32 = value.clone().into();
        value.im == 0.0 && value.re >= 0.0
    });
    if args.numbers.phase && magnitudes {
        let message = format!("{}: expected an image with a phase, found magnitudes", args.from.display());
        return Err(BadInput::new(message)
            .hint("recon mri --complex writes images that keep the phase")
            .into());
    }
    if let Some(repetitions) = &args.repetition
        && !follow_each_other(&numbers_of("repetition", repetitions, image.repetitions()).unwrap_or_default())
    {
        options.repetition_time_s = None;
    }
    let image = if picture { image } else { part(image, args).with_context(of_file)? };
    let mut png = PngOptions::preview(image.shape_zyx()[0], image.repetitions());
    if picture {
        shown(&mut png, &image, args).with_context(of_file)?;
    }
    if let Some(text) = &args.grey {
        png.window = grey(text)?;
    }
    // Numbers that are none below zero count as magnitudes where the format tells them apart.
    let usual = to.and_then(|to| to.images.as_ref()).and_then(|images| images.values.first()).copied();
    let usual = usual.filter(|usual| magnitudes && *usual == io::Values::Magnitude);
    options = io::WriteOptions { png, values: args.numbers.values().or(usual), ..options };
    let mut left_out = io::write_image(&args.to, &image, &options)?;
    let keeps_time = to.is_none_or(|to| to.is_picture() || to.keeps(io::Property::RepetitionTime));
    if let Some(seconds) = options.repetition_time_s.filter(|_| !keeps_time && image.data().ndim() > 3) {
        let endings = io::endings(|format| format.keeps(io::Property::RepetitionTime)).join(", ");
        left_out.push(format!("{seconds} s between repetitions is not written: {endings} keeps it"));
    }
    Ok(left_out)
}

fn follow_each_other(numbers: &[usize]) -> bool {
    numbers.windows(2).all(|pair| pair[0] + 1 == pair[1])
}

/// The slices and repetitions that are chosen.
fn part<T: Clone>(mut image: Image<T>, args: &Convert) -> Result<Image<T>> {
    if let Some(slices) = &args.slice {
        image = image.slices(slices)?;
    }
    if let Some(repetitions) = &args.repetition {
        image = image.only_repetitions(repetitions)?;
    }
    Ok(image)
}

/// What a picture shows of the image.
fn shown<T: Clone>(png: &mut PngOptions, image: &Image<T>, args: &Convert) -> Result<()> {
    let depth = image.shape_zyx()[0];
    png.montage.slices = match &args.slice {
        Some(slices) => Some(numbers_of("slice", slices, depth)?),
        None if args.montage => None,
        None => Some(vec![depth / 2]),
    };
    png.repetitions = match &args.repetition {
        Some(repetitions) => Some(numbers_of("repetition", repetitions, image.repetitions())?),
        None => png.repetitions.take().filter(|_| !args.montage),
    };
    Ok(())
}

/// The chosen numbers. Errors: one that is not below `count`.
fn numbers_of(what: &str, chosen: &Ranges, count: usize) -> Result<Vec<usize>> {
    chosen.expect_among(what, &Vec::from_iter(0..count))?;
    Ok(chosen.below(count).collect())
}

/// Makes a raw scan of arrays.
fn make_scan(args: &Convert, monitor: &Monitor<'_>) -> Result<()> {
    let from = &args.raw;
    files::check_output(&args.to, Format::writes_scans)?;
    let texts = [&from.traj_units, &from.matrix, &from.fov, &from.order].map(|text| text.as_deref());
    let options = array_options(from.traj.clone(), texts)?;
    let raw = io::RawOptions { noise: from.noise.clone(), dwell_us: from.dwell };
    let scan = io::scan_of_arrays(&args.from, &options, &raw, monitor)?;
    for note in &scan.notes {
        monitor.note(note);
    }
    let readouts = files::count(scan.acquisitions.len(), "readout");
    monitor.note(&format!("{readouts} of {}", files::count(scan.header.coils.unwrap_or(0), "coil")));
    io::write_scan(&args.to, &scan, Identity::LeaveOut)?;
    Ok(())
}

fn convert_scan(args: &Convert, monitor: &Monitor<'_>) -> Result<()> {
    let not_an_image =
        || BadInput::new(format!("{}: expected an image, found a raw scan", args.from.display()));
    if !Format::of_name(&args.to).is_some_and(Format::writes_scans) {
        return Err(not_an_image().hint("`rayspin recon mri` makes an image of it").into());
    }
    let ScanFile::Scan(scan) = io::read_scan(&args.from, &io::ScanOptions::default(), monitor)? else {
        return Err(not_an_image().into());
    };
    for note in &scan.notes {
        monitor.note(note);
    }
    let identity = if args.keep_identity { Identity::Keep } else { Identity::LeaveOut };
    let left_out = io::write_scan(&args.to, &scan, identity)?;
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        monitor.note(&format!(
            "left out of the header, as it may tell whose scan it is (--keep-identity writes it): {names}"
        ));
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
