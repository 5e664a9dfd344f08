//! `rayspin metrics`, and how every command compares two images.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor, Progress as _};
use rayspin::imaging::metrics::{
    Better, CompareOptions, Compared, Numbers, Quality, Sample, better, compare,
};
use rayspin::io::{self, AnyImage, Format};
use rayspin::report::RunRecorder;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_shell::{BadInput, Context, say};
use serde::Serialize;

use super::files;
use crate::args::Metrics;

/// Compares images with their references and prints a table or JSON.
pub(crate) fn run(context: &Context, args: &Metrics) -> Result<()> {
    let inputs = files::inputs(&args.images, is_image)?;
    let references = Reference::of(&args.reference)?;
    let numbers = if args.magnitude { Numbers::Magnitudes } else { Numbers::ByKind };
    let mut pairs = Vec::new();
    let mut alone = Vec::new();
    for image in &inputs.files {
        match references.beside(image) {
            Some(reference) => pairs.push((image.as_path(), reference)),
            None => alone.push(image.display().to_string()),
        }
    }
    if pairs.is_empty() {
        let names = alone.join(", ");
        let message = format!("{}: expected an image for {names}, found none", args.reference.display());
        return Err(BadInput::new(message)
            .hint("a reference has the image's name, whatever its ending")
            .into());
    }
    let mut rows = Vec::new();
    let mut kept: Option<(&Path, AnyImage)> = None;
    for (path, beside) in pairs {
        let image = read(path)?;
        let reference = match kept.take().filter(|(known, _)| *known == beside) {
            Some((_, image)) => image,
            None => read(beside)?,
        };
        let judgement = context
            .run(|| match (&image, &reference) {
                (AnyImage::Real(image), AnyImage::Real(reference)) => {
                    judge(image, reference, numbers, args.fit)
                }
                (AnyImage::Real(image), AnyImage::Complex(reference)) => {
                    judge(image, reference, numbers, args.fit)
                }
                (AnyImage::Complex(image), AnyImage::Real(reference)) => {
                    judge(image, reference, numbers, args.fit)
                }
                (AnyImage::Complex(image), AnyImage::Complex(reference)) => {
                    judge(image, reference, numbers, args.fit)
                }
            })
            .with_context(|| format!("{} against {}", path.display(), beside.display()))?;
        kept = Some((beside, reference));
        rows.push(Row { image: path, reference: beside, judgement });
    }
    for row in rows.iter().filter(|_| !context.quiet) {
        if let Some(hint) = row.judgement.hint(true) {
            let whose = if rows.len() > 1 { format!("{}: ", row.image.display()) } else { String::new() };
            say!("hint: {whose}{hint}");
        }
    }
    inputs.say_left_out(context, "that hold no image");
    if !alone.is_empty() {
        let names = alone.join(", ");
        context
            .console
            .note(&format!("left out, as {} has no image of the name: {names}", args.reference.display()));
    }
    match &rows[..] {
        [row] if !inputs.several && args.json => files::print(&serde_json::to_string_pretty(&row.json())?),
        [row] if !inputs.several => {
            let [image, reference] = [row.image, row.reference].map(|path| path.display().to_string());
            files::print(&row.judgement.table(&image, &reference))
        }
        rows if args.json => {
            let list: Vec<Json<'_>> = rows.iter().map(Row::json).collect();
            files::print(&serde_json::to_string_pretty(&list)?)
        }
        rows => files::print(&table(rows)),
    }
}

fn is_image(path: &Path) -> bool {
    io::detect(path).is_ok_and(Format::reads_images) && !io::holds_scan(path).unwrap_or(false)
}

fn read(path: &Path) -> Result<AnyImage> {
    Ok(io::read_any_image(path)?.image)
}

/// What images are compared with.
enum Reference {
    One(PathBuf),
    /// The images of a folder by their names without endings.
    Named(BTreeMap<String, PathBuf>),
}

impl Reference {
    /// Errors: a folder without images, or with two of one name.
    fn of(path: &Path) -> Result<Self> {
        if !path.is_dir() || io::detect(path).is_ok() {
            return Ok(Self::One(path.to_owned()));
        }
        let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
        for file in files::inputs(&[path.to_owned()], is_image)?.files {
            let name = name_of(&file);
            if let Some(other) = named.insert(name.clone(), file.clone()) {
                let (file, other) = (file.display(), other.display());
                let message =
                    format!("{}: expected one image '{name}', found {other} and {file}", path.display());
                return Err(BadInput::new(message).hint("name the reference itself, not its folder").into());
            }
        }
        Ok(Self::Named(named))
    }

    fn beside(&self, image: &Path) -> Option<&Path> {
        match self {
            Self::One(path) => Some(path),
            Self::Named(names) => names.get(&name_of(image)).map(PathBuf::as_path),
        }
    }
}

/// The name of a file without the ending of its format.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let endings = Format::of_name(path).map_or(&[][..], |format| format.endings);
    let lower = name.to_ascii_lowercase();
    // The longest: .nii.gz before .gz.
    let ending = endings.iter().filter(|ending| lower.ends_with(**ending)).map(|ending| ending.len()).max();
    name[..name.len() - ending.unwrap_or(0)].to_owned()
}

/// An image, its reference and how they compare.
struct Row<'a> {
    image: &'a Path,
    reference: &'a Path,
    judgement: Judgement,
}

#[derive(Serialize)]
struct Json<'a> {
    image: std::borrow::Cow<'a, str>,
    reference: std::borrow::Cow<'a, str>,
    #[serde(flatten)]
    quality: &'a Quality,
}

impl Row<'_> {
    fn json(&self) -> Json<'_> {
        Json {
            image: self.image.to_string_lossy(),
            reference: self.reference.to_string_lossy(),
            quality: &self.judgement.quality,
        }
    }
}

/// A row for each image; what was compared stands in the caption where it is the same for all.
fn table(rows: &[Row<'_>]) -> Table {
    let first = &rows[0];
    let rule = |row: &Row<'_>| match row.judgement.quality.fitted {
        true => format!("{} compared, scale fitted", row.judgement.quality.compared.name()),
        false => row.judgement.rule(),
    };
    let [one_rule, one_reference] = [
        rows.iter().all(|row| rule(row) == rule(first)),
        rows.iter().all(|row| row.reference == first.reference),
    ];
    let mut caption = match one_reference {
        true => format!("Against {}", first.reference.display()),
        false => "Against the images of the same names".into(),
    };
    if one_rule {
        caption.push_str(&format!(": {}", rule(first)));
    }
    let fitted = rows.iter().any(|row| row.judgement.quality.fitted);
    let mut columns = vec![
        Column::text("Image"),
        Column::number("Error").unit("%").lowest_best(),
        Column::number("PSNR").unit("dB").highest_best(),
        Column::number("SNR").unit("dB").highest_best(),
        Column::number("SSIM").highest_best(),
        Column::number("Largest error"),
    ];
    columns.extend(fitted.then(|| Column::number("Scale")));
    columns.extend((!one_rule).then(|| Column::text("Compared")));
    let mut table = Table::new(caption, columns);
    for row in rows {
        let quality = &row.judgement.quality;
        let mut cells = vec![
            Cell::Text(row.image.display().to_string()),
            Cell::Number(quality.error_percent),
            Cell::Number(quality.psnr_db),
            Cell::Number(quality.snr_db),
            quality.ssim.map_or(Cell::Empty, Cell::Number),
            Cell::Number(quality.max_error),
        ];
        cells.extend(fitted.then(|| Cell::Number(quality.scale[0].hypot(quality.scale[1]))));
        cells.extend((!one_rule).then(|| Cell::Text(rule(row))));
        table.push(cells);
    }
    table
}

/// An image beside its reference.
pub(crate) struct Judgement {
    pub(crate) quality: Quality,
    /// Repetitions that the one image of the reference stands for, where they are several.
    repeated: Option<usize>,
    /// What would compare them better.
    better: Option<Better>,
}

/// An image that a run made, and what it is to be compared with.
pub(crate) struct Comparison<'a, T> {
    pub(crate) image: &'a Image<T>,
    pub(crate) reference: &'a Image<T>,
    /// What people call both.
    pub(crate) names: [String; 2],
    /// Whether a scale is fitted.
    pub(crate) fit: bool,
}

impl<T: Sample> Comparison<'_, T> {
    /// Compares, prints and records the quality.
    ///
    /// Errors: images that cannot be compared.
    pub(crate) fn run(
        &self,
        context: &Context,
        recorder: &mut RunRecorder,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let Self { image, reference, names: [name, beside], fit } = self;
        match context.run(|| judge(image, reference, Numbers::ByKind, *fit)) {
            Ok(judgement) => {
                // Complex images are MRI's. Those of CT have no coils.
                if let Some(hint) = judgement.hint(T::COMPLEX) {
                    monitor.note(&hint);
                    recorder.note(hint);
                }
                judgement.record(recorder, name, beside);
                files::print(&judgement.table(name, beside))
            }
            Err(error) => {
                recorder.note(format!("not compared with {beside}: {error}"));
                Err(error.context(format!("the image is written; comparing with {beside}")))
            }
        }
    }
}

/// Compares an image with a reference, which may be one image for all repetitions. What is compared follows
/// from the images' kinds, unless `numbers` says otherwise.
pub(crate) fn judge<T: Sample, U: Sample>(
    image: &Image<T>,
    reference: &Image<U>,
    numbers: Numbers,
    fit: bool,
) -> Result<Judgement> {
    let alike = image.shape_zyx() == reference.shape_zyx();
    let repeated = (alike && reference.repetitions() == 1).then(|| image.repetitions()).filter(|&n| n > 1);
    let broadcast = repeated.and_then(|_| reference.data().broadcast(image.data().raw_dim()));
    let reference = broadcast.unwrap_or_else(|| reference.data().view());
    let options = CompareOptions { numbers, fit, mask: None };
    let quality = compare(image.data().view(), reference.view(), &options)?;
    let better = better(image.data().view(), reference.view(), &options, &quality)?;
    Ok(Judgement { quality, repeated, better })
}

impl Judgement {
    /// What would compare the images better. Images without `coils` have other reasons for their shading, on
    /// which it says nothing.
    pub(crate) fn hint(&self, coils: bool) -> Option<String> {
        Some(match self.better? {
            Better::Magnitudes(magnitudes) => format!(
                "the images differ most in phase: the error of magnitudes is {:.3} %; rayspin metrics --magnitude compares these",
                magnitudes.error_percent
            ),
            Better::Fitted(scale) => format!(
                "the images differ in scale{}: times {:.4} the error is {:.3} %; --fit takes that out",
                if self.quality.compared == Compared::ComplexValues { " and phase" } else { "" },
                scale.scale[0].hypot(scale.scale[1]),
                scale.error_percent
            ),
            Better::Shading(_) if !coils => return None,
            Better::Shading(shading) => format!(
                "the images differ in a smooth factor, {:.2} to {:.2} over the object: without it the error is {:.3} %. Coils shade images \
                 so where their sensitivities are estimated or not used: recon mri --maps with the coils' own sensitivities takes it \
                 out (simulate mri --maps writes them)",
                shading.factor[0], shading.factor[1], shading.error_percent
            ),
        })
    }

    /// What was compared with what, in words.
    fn rule(&self) -> String {
        let rule = self.quality.rule();
        match self.repeated {
            Some(count) => format!("{rule}, one reference for {count} repetitions"),
            None => rule,
        }
    }

    /// The metrics as a table of two columns.
    pub(crate) fn table(&self, image: &str, reference: &str) -> Table {
        let quality = &self.quality;
        let mut table = Table::new(
            format!("{image} against {reference}: {}", self.rule()),
            [Column::text("Metric"), Column::number("Value"), Column::text("Unit")],
        );
        let mut row = |name: &str, value: f64, unit: &str| {
            table.push([Cell::Text(name.into()), Cell::Number(value), Cell::Text(unit.into())]);
        };
        row("error (NRMSE)", quality.error_percent, "%");
        row("MSE", quality.mse, "reference²");
        row("PSNR", quality.psnr_db, "dB");
        row("SNR", quality.snr_db, "dB");
        if let Some(ssim) = quality.ssim {
            row("SSIM", ssim, "");
        }
        row("largest error", quality.max_error, "reference");
        table
    }

    /// Notes the metrics by name, and the rule that they follow.
    pub(crate) fn record(&self, recorder: &mut RunRecorder, image: &str, reference: &str) {
        let quality = &self.quality;
        let mut metrics = vec![
            ("nrmse", quality.nrmse),
            ("mse", quality.mse),
            ("psnr_db", quality.psnr_db),
            ("snr_db", quality.snr_db),
            ("scale", quality.scale[0].hypot(quality.scale[1])),
        ];
        metrics.extend(quality.ssim.map(|ssim| ("ssim", ssim)));
        recorder.quality(image, reference, self.rule(), metrics);
    }
}
