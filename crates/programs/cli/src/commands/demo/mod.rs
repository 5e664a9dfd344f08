//! `rayspin demo`: simulated scans of MRI and CT from nothing to a page of pictures.

mod ct;
mod mri;

use std::path::{Path, PathBuf};

use anyhow::Result;
use ndarray::{Array2, Array3, ArrayView3, Axis};
use rayspin::imaging::display::{ColourMap, Limits, Montage, evenly_spaced, montage, to_colour};
use rayspin::io;
use rayspin::report::page::{ColourScale, Colours, Figure, FigureRow, LineChart, Picture};
use rayspin::report::table::{Cell, Column, Table};
use rayspin::report::{Page, RunRecord, Section};
use rayspin_shell::{Context, say};

use super::files;
use super::metrics::Judgement;
use crate::args::Demo;

/// A scan of the tour, as the page tells of it.
struct Story {
    /// How the names of its files begin.
    name: &'static str,
    title: &'static str,
    /// What the scan is, and what its reconstructions do with it.
    text: &'static str,
    /// What the errors mean.
    remark: &'static str,
}

/// One reconstruction of a scan.
struct Outcome {
    name: &'static str,
    title: &'static str,
    /// The image as it was compared, as one picture.
    shown: Array2<f32>,
    judgement: Judgement,
    record: RunRecord,
    /// How its iterations went.
    chart: Option<LineChart>,
}

/// The folder of the demo, and the pictures that were written to it.
struct Out<'a> {
    folder: &'a Path,
    pictures: Vec<PathBuf>,
}

/// Simulates, reconstructs and shows all scans.
pub(crate) fn run(context: &Context, args: &Demo) -> Result<()> {
    files::make_folder(&args.out)?;
    let mut page = Page::new(
        "Rayspin: from raw scan to image",
        "Scans of the Shepp–Logan phantom, simulated from its closed forms and reconstructed on this machine's processor. Three of \
         MRI: two by gridding and by regularised least squares, one in an inhomogeneous field with and without its map. One of CT, from \
         few views: by filtered back-projection and with total variation.",
    );
    let mut out = Out { folder: &args.out, pictures: Vec::new() };
    for case in mri::cases(args.seed) {
        if !context.quiet {
            say!("{}", case.story.title);
        }
        page = page.section(mri::section(context, &case, &mut out)?);
    }
    if !context.quiet {
        say!("{}", ct::STORY.title);
    }
    page = page.section(ct::section(context, args.seed, &mut out)?);
    page = page.section(Section::new("Next").text(
        "The scans and images beside this page are ordinary files: rayspin info, rayspin recon, rayspin render and rayspin \
         metrics take them as they would a scanner's.",
    ));
    let index = args.out.join("index.html");
    files::write_text(&index, &page.render())?;
    for picture in &out.pictures {
        files::print(&picture.display())?;
    }
    files::print(&index.display())?;
    Ok(())
}

fn table(story: &Story, outcomes: &[Outcome; 2]) -> Table {
    let quality = &outcomes[0].judgement.quality;
    let scale = if quality.fitted { "a scale fitted to each" } else { "no scale fitted" };
    let rule = format!("{} compared, {scale}", quality.compared.name());
    let mut table = Table::new(
        format!("{}: error against the true image, {rule}", story.title),
        [
            Column::text("Image"),
            Column::number("Error").unit("%").decimals(1).lowest_best(),
            Column::number("PSNR").unit("dB").decimals(1).highest_best(),
            Column::number("SSIM").decimals(3).highest_best(),
            Column::number("Time").seconds(),
        ],
    );
    table.push([Cell::Text("True".into()), Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty]);
    for outcome in outcomes {
        let q = &outcome.judgement.quality;
        table.push([
            Cell::Text(outcome.title.into()),
            Cell::Number(q.error_percent),
            Cell::Number(q.psnr_db),
            q.ssim.map_or(Cell::Empty, Cell::Number),
            Cell::Number(outcome.record.total_seconds),
        ]);
    }
    table
}

/// The section of a scan: pictures, errors, and the runs.
fn section(
    context: &Context,
    story: &Story,
    shown: &Array2<f32>,
    outcomes: [Outcome; 2],
    out: &mut Out<'_>,
) -> Result<Section> {
    let table = table(story, &outcomes);
    if !context.quiet {
        files::print(&format!("\n{table}"))?;
    }
    let peak = f64::from(shown.iter().copied().fold(0.0f32, f32::max)).max(f64::MIN_POSITIVE);
    let mut figures =
        vec![Figure::new("True", "the phantom that was scanned", Picture::gray(shown.view(), 0.0, peak)?)];
    let scale = ColourScale::new("Absolute error", "", 0.0, 0.25 * peak, Colours::Magma)?;
    let mut error_figures = Vec::new();
    out.save(&format!("{}-true.png", story.name), &figures[0].picture)?;
    for outcome in &outcomes {
        let picture = Picture::gray(outcome.shown.view(), 0.0, peak)?;
        out.save(&format!("{}-{}.png", story.name, outcome.name), &picture)?;
        let percent = format!("error {:.1} %", outcome.judgement.quality.error_percent);
        let alt = format!("{} reconstruction of the phantom", outcome.title);
        figures.push(Figure::new(outcome.title, alt, picture).detail(percent.clone()));

        let picture = scale.picture((&outcome.shown - shown).mapv(f32::abs).view())?;
        out.save(&format!("{}-{}-error.png", story.name, outcome.name), &picture)?;
        let alt = format!("absolute error of the image: {}", outcome.title);
        error_figures.push(Figure::new(outcome.title, alt, picture).detail(percent));
    }
    let strip = strip(&[shown, &outcomes[0].shown, &outcomes[1].shown], peak as f32)?;
    let path = out.folder.join(format!("{}.png", story.name));
    io::png::write_rgb(&path, strip.view())?;
    out.pictures.push(path);
    let mut section = Section::new(story.title)
        .text(story.text)
        .figures(FigureRow::new(figures))
        .table(table)
        .text(story.remark)
        .figures(FigureRow::new(error_figures).caption("Where each image is wrong.").scale(scale));
    let runs = outcomes.map(|Outcome { title, record, chart, .. }| (title, record, chart));
    let mut records = Vec::new();
    for (title, record, chart) in runs {
        section = chart.into_iter().fold(section, Section::chart);
        records.push((title, record));
    }
    for (title, record) in records {
        section = section.text(format!("The run that made the image “{title}”:")).record(record);
    }
    Ok(section)
}

impl Out<'_> {
    fn save(&mut self, name: &str, picture: &Picture) -> Result<()> {
        let path = self.folder.join(name);
        io::atomic::write_stream_atomically(&path, |file| std::io::Write::write_all(file, picture.png()))?;
        self.pictures.push(path);
        Ok(())
    }
}

/// The true image and the others side by side, and each one's error below: the picture for a README or a
/// slide.
fn strip(views: &[&Array2<f32>; 3], peak: f32) -> Result<Array3<u8>> {
    let colour = |image: &Array2<f32>, high: f32, map: ColourMap| {
        to_colour(image.view(), Limits { low: 0.0, high }, map)
    };
    let mut rows = Vec::new();
    for errors in [false, true] {
        let parts: Vec<Array3<u8>> = views
            .iter()
            .map(|image| {
                if errors {
                    colour(&(*image - views[0]).mapv(f32::abs), 0.25 * peak, ColourMap::Inferno)
                } else {
                    colour(image, peak, ColourMap::Grey)
                }
            })
            .collect();
        let parts: Vec<_> = parts.iter().map(|part| part.view()).collect();
        rows.push(ndarray::concatenate(Axis(1), &parts)?);
    }
    let rows: Vec<_> = rows.iter().map(|row| row.view()).collect();
    Ok(ndarray::concatenate(Axis(0), &rows)?)
}

/// Real numbers as one picture: the slice, or four slices of a volume.
fn view(values: ArrayView3<'_, f32>) -> Result<Array2<f32>> {
    let depth = values.len_of(Axis(0));
    if depth == 1 {
        return Ok(values.index_axis_move(Axis(0), 0).to_owned());
    }
    // The ends of the volume hold little of the head.
    let slices = evenly_spaced(depth, 6)[1..5].to_vec();
    Ok(montage(values, &Montage { slices: Some(slices), columns: Some(2), gap: 0 })?)
}
