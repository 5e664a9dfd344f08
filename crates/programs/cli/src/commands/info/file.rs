//! What a file holds, and what it would be understood as.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use rayspin::core::as_options;
use rayspin::core::{Monitor, Trajectory};
use rayspin::ct::scan::angle_notes;
use rayspin::io::{self, AnyImage, Detail, Format, Projections, ScanFile, ScanOptions};
use rayspin::io::{SeriesSource, ismrmrd};
use rayspin::mri::corrections::measure;
use rayspin::mri::recon::Selection;
use rayspin::mri::scan::{Facts, Frame, FrameOptions, Label, NoiseSource, Pattern, Series, readouts};
use rayspin::report::number;
use serde::Serialize;

use super::ct::CtScan;
use super::{Rows, row};
use crate::commands::files::count;

/// A file, as `info --json` writes it; docs/info.md explains the fields.
#[derive(Serialize)]
pub(super) struct Described {
    file: String,
    format: Option<&'static str>,
    bytes: Option<u64>,
    header: BTreeMap<String, Detail>,
    /// Labels of the header in the file's order.
    #[serde(skip)]
    labels: Vec<String>,
    /// What each of the names is the name of.
    #[serde(skip)]
    named: Vec<&'static str>,
    names: Vec<String>,
    scan: Option<ismrmrd::ScanSummary>,
    ct: Option<CtScan>,
    images: Option<usize>,
    understood_as: Option<String>,
    sampling: Option<Facts>,
    trajectory: Option<Readouts>,
    image: Option<Image>,
    notes: Vec<String>,
    warnings: Vec<String>,
    error: Option<String>,
}

/// A trajectory without samples, in the file's own unit.
#[derive(Serialize)]
struct Readouts {
    points: usize,
    extent: Vec<f64>,
    readouts: usize,
    pattern: Pattern,
}

#[derive(Serialize)]
struct Image {
    shape: Vec<usize>,
    voxel_mm: [f64; 3],
    centre_mm: [f64; 3],
    x_axis: [f64; 3],
    y_axis: [f64; 3],
    z_axis: [f64; 3],
    is_complex: bool,
    /// How the file stores the numbers.
    stored_as: String,
    /// Real numbers keep their signs.
    smallest: Option<f32>,
    largest: Option<f32>,
    smallest_magnitude: Option<f32>,
    largest_magnitude: Option<f32>,
}

/// Samples of an image, or a trajectory alone: what can be drawn.
pub(super) enum Sampling {
    Frame(Box<Frame>),
    Trajectory(Trajectory),
}

/// What is known of a file.
pub(super) struct Description {
    pub(super) told: Described,
    pub(super) sampling: Option<Sampling>,
}

/// Describes a file, or one of several scans or arrays in it (`file:name`); `options` are for arrays.
///
/// Errors: a file of no known format, or damaged; samples that do not fit the trajectory that is given.
pub(super) fn describe(path: &Path, options: &ScanOptions) -> Result<Description> {
    let mut description = examined(path, options)?;
    for text in description.told.notes.iter_mut().chain(&mut description.told.warnings) {
        *text = as_options(text).into_owned();
    }
    Ok(description)
}

fn examined(path: &Path, options: &ScanOptions) -> Result<Description> {
    let input = io::Input::of(path);
    if Projections::are_in(path)? {
        let scan = Projections::open(path)?;
        let mut told = Described { format: Some(scan.kind()), ..Described::new(path) };
        told.bytes = std::fs::metadata(&input.file).map(|metadata| metadata.len()).ok();
        told.ct = Some(CtScan::of(&scan));
        told.warnings = angle_notes(scan.angles());
        told.notes = scan.notes();
        return Ok(Description { told, sampling: None });
    }
    let format = io::detect(&input.file)?;
    let header = io::describe(path)?;
    let held = io::names(path)?;
    let sizes =
        io::parts(&input.file).into_iter().map(|part| std::fs::metadata(part).map(|metadata| metadata.len()));
    let mut description = Description {
        told: Described {
            format: Some(format.name),
            bytes: sizes.sum::<std::io::Result<u64>>().ok(),
            labels: header.iter().map(|(label, _)| label.clone()).collect(),
            header: header.into_iter().collect(),
            ..Described::new(path)
        },
        sampling: None,
    };
    let known = |name: &String| held.iter().any(|held| held.name == name.trim_end_matches(".npy"));
    let missing = format.reads_arrays() && input.name.as_ref().is_some_and(|name| !known(name));
    let choose = held.len() > 1 && input.name.is_none() && !format.takes_last();
    (description.told.named, description.told.names) =
        held.into_iter().map(|held| (held.what, held.name)).unzip();
    if choose {
        return Ok(description);
    }
    if io::holds_scan(path)? {
        description.scan(path)?;
    } else if format.reads_arrays() {
        description.array(path, options, missing)?;
    } else if format.reads_images() {
        description.told.image(path)?;
    } else {
        description.told.notes.push(unread(format).into());
    }
    Ok(description)
}

impl Description {
    /// A raw scan, and what its first image would be understood as.
    fn scan(&mut self, path: &Path) -> Result<()> {
        let monitor = Monitor::silent();
        let reader = io::open_scan(path, &monitor)?;
        // Where heads tell what a file holds, only the samples of the first image are read.
        let (scan, reader) = match reader.without_samples() {
            Some(heads) => (heads, Some(reader)),
            None => (reader.into_scan(&monitor)?, None),
        };
        let told = &mut self.told;
        told.scan = Some(ismrmrd::summarise(&scan));
        told.notes.extend(scan.notes.iter().cloned());
        let Ok(index) = scan.frames() else { return Ok(()) };
        let labels: Vec<Label> = index.labels().collect();
        let images = labels.len();
        told.images = Some(images);
        let Some(label) = labels.first().copied() else { return Ok(()) };
        let taken = Selection::default().labels(&index, &mut Vec::new()).unwrap_or_default();
        if let Some(fewer) = index.uneven(&taken) {
            told.notes.push(format!("not every image has the lines that the fullest one has: {fewer}"));
        }
        // What assembling the first image would assume is worth knowing before a long run.
        let (frame, noise) = match reader {
            None => {
                let frame = index.assemble(label, &Default::default(), &mut told.notes);
                (frame.map_err(Into::into), measure(&scan))
            }
            Some(reader) => {
                let series = Series::of_labels(reader.heads(), &[label], None)?;
                let mut source = SeriesSource::new(reader, series, FrameOptions::default());
                let noise = measure(&source.noise(&monitor)?);
                (source.image(0, &mut told.notes, &monitor).map_err(anyhow::Error::from), noise)
            }
        };
        match frame {
            Ok(frame) => {
                told.understood_as = Some(frame.summary().to_string());
                told.sampling = Some(Facts::of(&frame, Some(&noise), images)?);
                self.sampling = Some(Sampling::Frame(Box::new(frame)));
            }
            Err(error) => told.warnings.push(format!(
                "the first image cannot be assembled: {error}; rayspin recon mri --slice, --contrast or --encoding may choose another"
            )),
        }
        Ok(())
    }

    /// What an array without a header would be understood as: samples where a trajectory is given, else a
    /// trajectory, else k-space. An array that is `missing` is refused with the names of the others.
    fn array(&mut self, path: &Path, options: &ScanOptions, missing: bool) -> Result<()> {
        let told = &mut self.told;
        let along = options.trajectory.is_some();
        // What the user says of the array must fit.
        let stated = along || options.order.is_some();
        if !stated && let Ok(trajectory) = io::read_trajectory(path) {
            told.trajectory = Some(Readouts {
                points: trajectory.samples(),
                extent: trajectory.extent(),
                readouts: readouts(&trajectory).len(),
                pattern: Pattern::of(&trajectory),
            });
            self.sampling = Some(Sampling::Trajectory(trajectory));
            return Ok(());
        }
        match io::read_scan(path, options, &Monitor::silent()) {
            Ok(ScanFile::Frame(array)) => {
                let is_told = |note: &&String| along || note.starts_with(io::AXES);
                told.notes.extend(array.notes.iter().filter(is_told).cloned());
                told.understood_as = Some(array.summary().to_string());
                told.warnings.extend(array.frame.doubts());
                told.sampling = Some(Facts::of(&array.frame, None, 1)?);
                self.sampling = Some(Sampling::Frame(Box::new(array.frame)));
            }
            Ok(ScanFile::Series(series)) => {
                let labels: Vec<Label> = series.labels().collect();
                told.images = Some(labels.len());
                let first = labels.first().copied().unwrap_or_default();
                told.notes.extend(series.notes().iter().filter(|_| along).cloned());
                let frame = match series.frame(first, &mut told.notes) {
                    Ok(frame) => frame,
                    Err(error) if stated => return Err(error.into()),
                    Err(error) => {
                        told.notes.push(format!("it is no k-space: {error}"));
                        return Ok(());
                    }
                };
                told.understood_as = Some(series.summary(&frame).to_string());
                told.warnings.extend(frame.doubts());
                told.sampling = Some(Facts::of(&frame, None, labels.len())?);
                self.sampling = Some(Sampling::Frame(Box::new(frame)));
            }
            Ok(ScanFile::Scan(_)) => {}
            Err(error) if missing || stated => return Err(error.into()),
            Err(error) => {
                told.notes.push(format!("it is no k-space: {error}"));
                // An array that is no image either has no more to tell.
                told.image(path).ok();
            }
        }
        Ok(())
    }
}

impl Described {
    fn new(path: &Path) -> Self {
        Self {
            file: path.display().to_string(),
            format: None,
            bytes: None,
            header: BTreeMap::new(),
            labels: Vec::new(),
            named: Vec::new(),
            names: Vec::new(),
            scan: None,
            ct: None,
            images: None,
            understood_as: None,
            sampling: None,
            trajectory: None,
            image: None,
            notes: Vec::new(),
            warnings: Vec::new(),
            error: None,
        }
    }

    /// A file that cannot be described.
    pub(super) fn broken(path: &Path, error: &anyhow::Error) -> Self {
        Self { error: Some(rayspin_shell::line_of(error)), ..Self::new(path) }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.error.is_some()
    }

    /// What the file is, in a word or two.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self { image: Some(_), .. } => "an image",
            Self { ct: Some(_), .. } => "a CT scan",
            Self { names, .. } if names.len() > 1 => {
                "several arrays or scans, none of which is chosen (FILE:NAME)"
            }
            Self { scan: Some(_), .. } => "a scan whose first image cannot be assembled",
            _ => "an array that is neither",
        }
    }

    fn image(&mut self, path: &Path) -> Result<()> {
        let file = io::read_any_image(path)?;
        let (g, shape) = match &file.image {
            AnyImage::Real(image) => (image.geometry(), image.data().shape()),
            AnyImage::Complex(image) => (image.geometry(), image.data().shape()),
        };
        let complex = |image: &rayspin::core::Image| image.data().iter().any(|value| value.im != 0.0);
        let (is_complex, values, magnitudes) = match &file.image {
            AnyImage::Real(image) => {
                let numbers = image.data().iter().copied();
                (false, range(numbers.clone()), range(numbers.map(f32::abs)))
            }
            AnyImage::Complex(image) if complex(image) => {
                (true, None, range(image.data().iter().map(|value| value.norm())))
            }
            AnyImage::Complex(image) => {
                let numbers = image.data().iter().map(|value| value.re);
                (false, range(numbers.clone()), range(numbers.map(f32::abs)))
            }
        };
        self.image = Some(Image {
            shape: shape.to_vec(),
            voxel_mm: g.spacing_mm,
            centre_mm: g.position_mm,
            x_axis: g.read_dir,
            y_axis: g.phase_dir,
            z_axis: g.slice_dir,
            is_complex,
            stored_as: file.stored.to_string(),
            smallest: values.map(|(low, _)| low),
            largest: values.map(|(_, high)| high),
            smallest_magnitude: magnitudes.map(|(low, _)| low),
            largest_magnitude: magnitudes.map(|(_, high)| high),
        });
        self.notes.extend(file.notes);
        Ok(())
    }

    pub(super) fn rows(&self) -> Rows {
        let mut rows = Rows::new();
        row(&mut rows, "file", &self.file);
        if let Some(format) = self.format {
            row(&mut rows, "format", format);
        }
        for label in &self.labels {
            if let Some(detail) = self.header.get(label) {
                row(&mut rows, label, detail);
            }
        }
        self.named.iter().zip(&self.names).for_each(|(what, name)| row(&mut rows, what, name));
        rows.extend(self.scan.iter().flat_map(ismrmrd::ScanSummary::rows));
        if let Some(ct) = &self.ct {
            ct.show(&mut rows);
        }
        if let Some(images) = self.images {
            row(&mut rows, "images", images);
        }
        if let Some(text) = &self.understood_as {
            let stated = self.scan.is_some() || self.sampling.as_ref().is_some_and(|facts| !facts.on_grid);
            row(&mut rows, if stated { "understood as" } else { "as k-space" }, text);
        }
        if let Some(facts) = &self.sampling {
            sampling(&mut rows, facts);
        }
        if let Some(trajectory) = &self.trajectory {
            let numbers: Vec<String> = trajectory.extent.iter().map(|k| format!("±{k:.4}")).collect();
            let (points, axes) = (trajectory.points, numbers.join(", "));
            row(&mut rows, "as trajectory", format!("{points} points, {axes} (x, y, z)"));
            row(
                &mut rows,
                "sampling",
                format!("{}, {}", trajectory.pattern.name(), count(trajectory.readouts, "readout")),
            );
        }
        if let Some(image) = &self.image {
            image.show(&mut rows);
        }
        self.notes.iter().for_each(|note| row(&mut rows, "note", note));
        self.warnings.iter().for_each(|warning| row(&mut rows, "warning", warning));
        self.error.iter().for_each(|error| row(&mut rows, "error", error));
        rows
    }
}

impl Image {
    fn show(&self, rows: &mut Rows) {
        row(rows, "shape", format!("{:?} (repetition, z, y, x; leading ones left out)", self.shape));
        row(rows, "voxel", format!("{:?} mm (x, y, z)", self.voxel_mm));
        row(rows, "centre", format!("{:?} mm (LPS)", self.centre_mm));
        row(rows, "x axis", format!("{:?}", self.x_axis));
        row(rows, "y axis", format!("{:?}", self.y_axis));
        row(rows, "z axis", format!("{:?}", self.z_axis));
        row(rows, "stored as", &self.stored_as);
        let (label, low, high) = match self.is_complex {
            true => ("magnitude", self.smallest_magnitude, self.largest_magnitude),
            false => ("values", self.smallest, self.largest),
        };
        let complex = if self.is_complex { ", complex values" } else { "" };
        if let (Some(low), Some(high)) = (low, high) {
            row(rows, label, format!("{low} to {high}{complex}"));
        }
    }
}

/// The smallest and the largest finite number, where there is one.
fn range(numbers: impl Iterator<Item = f32>) -> Option<(f32, f32)> {
    let finite = numbers.filter(|number| number.is_finite());
    finite.fold(None, |range, number| {
        let (low, high) = range.unwrap_or((number, number));
        Some((low.min(number), high.max(number)))
    })
}

/// Why nothing is read from a file of a known format.
fn unread(format: &Format) -> &'static str {
    if format.writes_images() {
        "Rayspin writes this format and does not read it"
    } else {
        "Rayspin finds no CT scan in this file"
    }
}

const AXES: [&str; 3] = ["x", "y", "z"];

/// The facts that decide how well an image can be made.
fn sampling(rows: &mut Rows, facts: &Facts) {
    let steps = facts.steps.iter().zip(AXES).filter_map(|(step, axis)| Some(((*step)?, axis)));
    let every: Vec<String> = steps
        .filter(|(step, _)| *step > 1)
        .map(|(step, axis)| format!("{} along {axis}", ordinal(step)))
        .collect();
    let mut pattern = facts.pattern.name().to_owned();
    if !every.is_empty() {
        pattern.push_str(&format!(", every {}", every.join(" and ")));
    }
    let readouts = count(facts.readouts, if facts.on_grid { "line" } else { "readout" });
    row(rows, "sampling", format!("{pattern}; {readouts}, {} of a coil", count(facts.samples, "sample")));
    for (part, axis) in facts.coverage.iter().zip(AXES).filter(|(part, _)| **part < 1.0) {
        row(rows, "partial Fourier", format!("{:.0} % of k-space along {axis}", 100.0 * part));
    }
    let factor = number::significant(facts.undersampling, 3);
    row(rows, "undersampling", format!("{factor} (places of full sampling for each place measured)"));
    let widths: Vec<String> = facts.calibration.iter().map(usize::to_string).collect();
    let unit = if facts.on_grid { "places" } else { "cycles per field of view" };
    let whose = if facts.calibration_apart { ", from readouts of its own" } else { "" };
    let text = match facts.calibration.contains(&0) {
        true => "none: the centre of k-space is not fully sampled".into(),
        false => format!("the centre of k-space, {} {unit} (x, y, z){whose}", widths.join(" × ")),
    };
    row(rows, "calibration", text);
    let scan = match facts.noise_samples {
        0 => "no noise scan".to_owned(),
        samples => format!("noise scan of {}", count(samples, "sample")),
    };
    let level = facts.noise.map(|noise| {
        let (std, snr) = (number::significant(noise.sample_std, 3), number::significant(noise.snr, 3));
        match noise.source {
            NoiseSource::NoiseScan => format!("; standard deviation {std}, signal-to-noise ratio {snr}"),
            NoiseSource::Edge | NoiseSource::Rim => {
                let place = match noise.source {
                    NoiseSource::Edge => "at the edge of the field of view",
                    _ => "at the rim of k-space",
                };
                format!("; {place} standard deviation at most {std}, signal-to-noise ratio at least {snr}")
            }
        }
    });
    row(rows, "noise", format!("{scan}{}", level.unwrap_or_default()));
}

/// `2nd`, `3rd`, `4th`
fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
