//! Histograms as tables, JSON and charts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use rayspin::core::Image;
use rayspin::device::Device;
use rayspin::filter::{Filter, Histogram, text};
use rayspin::report::page::{Axis, LineChart, Page, Section, Series};
use rayspin_shell::BadInput;

use crate::args::filter::Filter as Arguments;
use crate::commands::files;
use rayspin_shell::args::numbers;

/// How a histogram is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Csv,
    Json,
    Page,
}

impl Form {
    /// By the ending of a name. Errors: another ending.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match ending.as_str() {
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            "html" => Ok(Self::Page),
            _ => {
                let message =
                    format!("{}: expected the ending .csv, .json or .html, found another", path.display());
                Err(BadInput::new(message).hint("--histogram counts.csv is a table, .html a chart").into())
            }
        }
    }
}

/// A histogram to make.
pub(super) struct Wanted {
    path: PathBuf,
    form: Form,
    bins: usize,
    range: Option<[f64; 2]>,
}

impl Wanted {
    pub(super) fn of(path: &Path, args: &Arguments) -> Result<Self> {
        let range = |text: &String| -> Result<[f64; 2]> {
            let range = numbers::<f64>("--range", text, &[2])?;
            Ok([range[0], range[1]])
        };
        let range = args.range.as_ref().map(range).transpose()?;
        Ok(Self { path: path.to_owned(), form: Form::of(path)?, bins: args.bins, range })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Counts the numbers of all repetitions.
    pub(super) fn count(&self, device: &Device, image: &Image<f32>) -> Result<Histogram> {
        let values = image.data().as_slice().unwrap_or_default();
        Ok(Histogram::of(device, values, self.bins, self.range)?)
    }

    /// Writes the counts of `image` after `steps`.
    pub(super) fn write(&self, histogram: &Histogram, image: &Path, steps: &[Arc<dyn Filter>]) -> Result<()> {
        let steps: Vec<String> = steps.iter().map(|step| text(&**step)).collect();
        let told = match self.form {
            Form::Csv => table(histogram)?,
            Form::Json => {
                let record = serde_json::json!({
                    "image": image, "steps": steps, "low": histogram.low, "high": histogram.high,
                    "counts": histogram.counts, "outside": histogram.outside,
                });
                format!("{}\n", serde_json::to_string(&record)?)
            }
            Form::Page => page(histogram, &image.display().to_string(), &steps),
        };
        files::write_text(&self.path, &told)
    }
}

/// A row for each bin.
fn table(histogram: &Histogram) -> Result<String> {
    let mut rows = String::from("low,high,count\n");
    for (bin, count) in histogram.counts.iter().enumerate() {
        writeln!(rows, "{},{},{count}", histogram.edge(bin), histogram.edge(bin + 1))?;
    }
    Ok(rows)
}

/// A chart of the counts over the middles of the bins.
fn page(histogram: &Histogram, image: &str, steps: &[String]) -> String {
    let middle = |bin: usize| 0.5 * (histogram.edge(bin) + histogram.edge(bin + 1));
    let points = histogram.counts.iter().enumerate().map(|(bin, count)| (middle(bin), *count as f64));
    let chart = LineChart::new("Histogram", Axis::linear("Value", ""), Axis::log("Voxels in a bin", ""))
        .series(Series::new("voxels", points));
    let voxels = histogram.counts.iter().sum::<u64>();
    let lead = format!(
        "{} in {} from {} to {}; {} outside.",
        files::count(voxels as usize, "voxel"),
        files::count(histogram.counts.len(), "bin"),
        histogram.low,
        histogram.high,
        histogram.outside
    );
    let steps = if steps.is_empty() {
        "The image as it is.".to_owned()
    } else {
        format!("After {}.", steps.join(", then "))
    };
    Page::new(format!("Histogram of {image}"), lead)
        .section(Section::new("Counts").text(steps).chart(chart))
        .render()
}
