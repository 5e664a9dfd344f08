//! `rayspin metrics`, and how every command compares two images.

use anyhow::{Context as _, Result};
use rayspin::core::Image;
use rayspin::imaging::metrics::{CompareOptions, Compared, Numbers, Quality, compare};
use rayspin::io;
use rayspin::report::RunRecorder;
use rayspin::report::table::{Cell, Column, Table};
use rayspin_shell::{Context, say};

use super::files;
use crate::args::Metrics;

/// Another way to compare is worth a word where its error is below this part of the one at hand.
const BETTER: f64 = 0.5;
/// A fitted factor farther from 1 than this says that two scales are compared.
const OTHER_SCALE: f64 = 0.2;

/// Compares two images and prints a table or JSON.
pub(crate) fn run(context: &Context, args: &Metrics) -> Result<()> {
    let options = io::ReadOptions::default();
    let image = io::read_image(&args.image, &options)?;
    let reference = io::read_image(&args.reference, &options)?;
    let numbers = if args.magnitude { Numbers::Magnitudes } else { Numbers::ByKind };
    let judgement = context
        .run(|| judge(&image.image, &reference.image, numbers, args.fit))
        .with_context(|| format!("{} against {}", args.image.display(), args.reference.display()))?;
    if let Some(hint) = judgement.hint.as_ref().filter(|_| !context.quiet) {
        say!("hint: {hint}");
    }
    if args.json {
        files::print(&serde_json::to_string_pretty(&judgement.quality)?)?;
    } else {
        let [image, reference] = [&args.image, &args.reference].map(|path| path.display().to_string());
        files::print(&judgement.table(&image, &reference))?;
    }
    Ok(())
}

/// An image beside its reference.
pub(crate) struct Judgement {
    pub(crate) quality: Quality,
    /// Repetitions that the one image of the reference stands for, where they are several.
    repeated: Option<usize>,
    /// What would compare them better.
    pub(crate) hint: Option<String>,
}

/// Compares an image with a reference, which may be one image for all repetitions. What is compared follows from the images'
/// kinds, unless `numbers` says otherwise.
pub(crate) fn judge(image: &Image, reference: &Image, numbers: Numbers, fit: bool) -> Result<Judgement> {
    let alike = image.shape_zyx() == reference.shape_zyx();
    let repeated = (alike && reference.repetitions() == 1).then(|| image.repetitions()).filter(|&n| n > 1);
    let broadcast = repeated.and_then(|_| reference.data().broadcast(image.data().raw_dim()));
    let reference = broadcast.unwrap_or_else(|| reference.data().view());
    let compared = |numbers, fit| {
        let options = CompareOptions { numbers, fit, mask: None };
        compare(image.data().view(), reference.view(), &options)
    };
    let quality = compared(numbers, fit)?;
    let complex = quality.compared == Compared::ComplexValues;
    let fitted = if fit { None } else { Some(compared(numbers, true)?) };
    let magnitudes = if complex { Some(compared(Numbers::Magnitudes, fit)?) } else { None };
    let other_scale = fitted.filter(|fitted| {
        let [re, im] = fitted.scale;
        (re - 1.0).hypot(im) > OTHER_SCALE && fitted.nrmse < BETTER * quality.nrmse
    });
    let other_phase = magnitudes.filter(|of| of.nrmse < BETTER * quality.nrmse);
    let hint = match (other_scale, other_phase) {
        (scale, Some(of)) if scale.is_none_or(|scale| of.nrmse < BETTER * scale.nrmse) => Some(format!(
            "the images differ most in phase: the error of magnitudes is {:.3} %; rayspin metrics --magnitude compares these",
            of.error_percent
        )),
        (Some(scale), _) => Some(format!(
            "the images differ in scale{}: times {:.4} the error is {:.3} %; --fit takes that out",
            if complex { " and phase" } else { "" },
            scale.scale[0].hypot(scale.scale[1]),
            scale.error_percent
        )),
        (None, _) => None,
    };
    Ok(Judgement { quality, repeated, hint })
}

impl Judgement {
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
