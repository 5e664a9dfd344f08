//! `rayspin metrics`

use anyhow::{Context as _, Result};
use rayspin::imaging::metrics::{CompareOptions, Quality, ScaleFit, compare};
use rayspin::io;
use rayspin::report::table::{Cell, Column, Table};

use super::files;
use crate::Context;
use crate::args::Metrics;

/// Compares two images and prints a table or JSON.
pub(crate) fn run(_: &Context, args: &Metrics) -> Result<()> {
    let options = io::ReadOptions::default();
    let image = io::read_image(&args.image, &options)?;
    let reference = io::read_image(&args.reference, &options)?;
    let fit = match (args.fit, args.magnitude) {
        (false, _) => ScaleFit::None,
        (true, true) => ScaleFit::Real,
        (true, false) => ScaleFit::Complex,
    };
    let compare_options = CompareOptions { fit, magnitude: args.magnitude, mask: None };
    let quality = compare(image.image.data().view(), reference.image.data().view(), &compare_options)
        .with_context(|| format!("{} against {}", args.image.display(), args.reference.display()))?;
    if !args.fit {
        let fit = if args.magnitude { ScaleFit::Real } else { ScaleFit::Complex };
        let fitted = CompareOptions { fit, ..compare_options };
        if let Ok(fitted) = compare(image.image.data().view(), reference.image.data().view(), &fitted) {
            let scale = fitted.scale[0].hypot(fitted.scale[1]);
            // A better fit at another scale: more likely two gains than a bad image.
            if !(0.8..1.25).contains(&scale) && fitted.nrmse < 0.5 * quality.nrmse {
                say!(
                    "hint: the images differ in scale: times {scale:.4} the error is {:.3} %; --fit takes that out",
                    fitted.error_percent
                );
            }
        }
    }
    if args.json {
        files::print(&serde_json::to_string_pretty(&quality)?)?;
    } else {
        files::print(&table(
            &args.image.display().to_string(),
            &args.reference.display().to_string(),
            &quality,
        ))?;
    }
    Ok(())
}

/// The metrics as a table of two columns.
pub(crate) fn table(image: &str, reference: &str, quality: &Quality) -> Table {
    let mut table = Table::new(
        format!("{image} against {reference}"),
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
    if quality.scale != [1.0, 0.0] {
        row("fitted scale", quality.scale[0].hypot(quality.scale[1]), "");
    }
    table
}
