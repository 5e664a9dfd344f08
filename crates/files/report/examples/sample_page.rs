//! Writes a page with everything a page can hold, from images computed here.
//!
//! `cargo run --release -p rayspin-report --example sample_page -- sample.html`

use ndarray::Array2;
use rayspin_report::page::{
    Axis, ColourScale, Colours, Figure, FigureRow, LineChart, Page, Picture, Section, Series,
};
use rayspin_report::record::{FileEntry, RunRecord};
use rayspin_report::table::{Cell, Column, Table};
use rayspin_report::{Block, RunRecorder};

type Failure = Box<dyn std::error::Error>;

/// An ellipse: centre y, x; half axes y, x; value; in units of half the field of view.
type Ellipse = (f64, f64, f64, f64, f64);

const HEAD: [Ellipse; 8] = [
    (0.0, 0.0, 0.92, 0.69, 1.0),
    (0.02, 0.0, 0.87, 0.66, -0.75),
    (0.0, 0.22, 0.31, 0.11, -0.18),
    (0.0, -0.22, 0.41, 0.16, -0.18),
    (-0.35, 0.0, 0.25, 0.21, 0.25),
    (0.1, 0.0, 0.046, 0.046, 0.3),
    (0.6, -0.08, 0.023, 0.046, 0.35),
    (0.6, 0.06, 0.046, 0.023, 0.35),
];

fn head(n: usize) -> Array2<f32> {
    Array2::from_shape_fn((n, n), |(row, column)| {
        let [y, x] = [row, column].map(|i| (2.0 * i as f64 + 1.0) / n as f64 - 1.0);
        let inside = |e: &&Ellipse| ((y - e.0) / e.2).powi(2) + ((x - e.1) / e.3).powi(2) <= 1.0;
        HEAD.iter().filter(inside).map(|e| e.4).sum::<f64>() as f32
    })
}

/// The mean over a square of half-width `reach`, with a ripple, as an undersampled gridding would leave.
fn blurred(image: &Array2<f32>, reach: usize, ripple: f32) -> Array2<f32> {
    let (rows, columns) = image.dim();
    Array2::from_shape_fn((rows, columns), |(y, x)| {
        let (y0, y1) = (y.saturating_sub(reach), (y + reach + 1).min(rows));
        let (x0, x1) = (x.saturating_sub(reach), (x + reach + 1).min(columns));
        let mean = image.slice(ndarray::s![y0..y1, x0..x1]).mean().unwrap_or(0.0);
        let radius = (y as f32 - rows as f32 / 2.0).hypot(x as f32 - columns as f32 / 2.0);
        mean + ripple * (radius * 0.9).sin()
    })
}

/// ‖a − b‖ / ‖b‖.
fn nrmse(a: &Array2<f32>, b: &Array2<f32>) -> f64 {
    let squares = |image: &Array2<f32>| image.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>();
    (squares(&(a - b)) / squares(b)).sqrt()
}

/// 20 log₁₀(max b / RMSE).
fn psnr(a: &Array2<f32>, b: &Array2<f32>) -> f64 {
    let mse = (a - b).iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / a.len() as f64;
    let peak = b.iter().fold(0.0f32, |most, &v| most.max(v));
    20.0 * (f64::from(peak) / mse.sqrt()).log10()
}

fn images(truth: &Array2<f32>, found: &[(&str, &Array2<f32>)]) -> Result<(FigureRow, FigureRow), Failure> {
    let true_picture = Picture::gray(truth.view(), 0.0, 0.6)?;
    let mut row = vec![Figure::new("True", "The head phantom.", true_picture).detail("128 × 128, 1.9 mm")];
    let scale = ColourScale::new("Image − true", "", -0.3, 0.3, Colours::Diverging)?;
    let mut errors = Vec::new();
    for (name, image) in found {
        let percent = format!("NRMSE {:.1} %", 100.0 * nrmse(image, truth));
        let alt = format!("The head phantom as {name} gives it.");
        row.push(Figure::new(*name, alt, Picture::gray(image.view(), 0.0, 0.6)?).detail(&percent));
        let difference = scale.picture((*image - truth).view())?;
        let alt = format!("Error of {name}, largest at the skull's edge.");
        errors.push(Figure::new(*name, alt, difference).detail(&percent));
    }
    Ok((
        FigureRow::new(row)
            .caption("All in one window, 0 to 0.6. Tap a picture to enlarge it; step to compare."),
        FigureRow::new(errors).scale(scale),
    ))
}

fn convergence() -> LineChart {
    let decay = |rate: f64, floor: f64| (0..31).map(move |i| (-rate * f64::from(i)).exp() + floor);
    LineChart::new(
        "Residual by iteration",
        Axis::linear("Iteration", ""),
        Axis::log("Relative residual ‖Fᴴ(Fx − d)‖ / ‖Fᴴd‖", ""),
    )
    .caption("CG on the normal equations, with and without density compensation.")
    .series(Series::by_index("CG", decay(0.28, 2e-5)))
    .series(Series::by_index("CG, compensated", decay(0.52, 3e-6)))
}

fn profile(truth: &Array2<f32>, found: &Array2<f32>) -> LineChart {
    let row = truth.nrows() / 2;
    let line = |image: &Array2<f32>| -> Vec<(f64, f64)> {
        let positions = (0..image.ncols()).map(|x| (x as f64 - 64.0) * 1.9);
        positions.zip(image.row(row).iter().map(|&v| f64::from(v))).collect()
    };
    LineChart::new("Profile through the middle", Axis::linear("x", "mm"), Axis::linear("Magnitude", ""))
        .series(Series::new("True", line(truth)))
        .series(Series::new("Least squares", line(found)))
}

fn record(truth: &Array2<f32>, found: &Array2<f32>) -> RunRecord {
    let command = ["rayspin", "recon", "spiral head.h5", "--lambda", "1e-3", "-o", "head.nii"];
    let mut run = RunRecorder::start("rayspin", "0.1.0", command, "AMD EPYC 9654, 16 threads, AVX-512", 16);
    run.stage("read");
    run.input_entry(FileEntry::of("spiral head.h5", &[7; 4096]));
    std::thread::sleep(std::time::Duration::from_millis(12));
    run.stage("plan");
    run.parameter("matrix", vec![128, 128]);
    run.parameter("lambda", 1e-3);
    run.parameter("tolerance", 1e-5);
    run.parameter("density", "pipe");
    run.version("hdf5", "1.14.6");
    std::thread::sleep(std::time::Duration::from_millis(5));
    run.stage("solve");
    std::thread::sleep(std::time::Duration::from_millis(60));
    run.converged("frame 0", (0..31).map(|i| (-0.28 * f64::from(i)).exp()));
    let measures = [("nrmse", nrmse(found, truth)), ("psnr_db", psnr(found, truth))];
    run.quality("head.nii", "true.nii", "real values compared, no scale fitted", measures);
    run.stage("write");
    run.output_entry(FileEntry::of("head.nii", &[1; 65_888]));
    run.note(
        "The trajectory's unit is not stated; its largest radius is 64.0, taken as cycles per field of view.",
    );
    run.finish(Some(412_000_000))
}

fn page() -> Result<Page, Failure> {
    let truth = head(128);
    let gridded = blurred(&truth, 3, 0.02);
    let least_squares = blurred(&truth, 1, 0.004);
    let found = [("Gridded", &gridded), ("Least squares", &least_squares)];
    let (row, errors) = images(&truth, &found)?;
    let mut quality = Table::new(
        "Quality against the true image",
        [
            Column::text("Image"),
            Column::number("NRMSE").significant(3).lowest_best(),
            Column::number("PSNR").unit("dB").decimals(1).highest_best(),
            Column::number("Iterations").decimals(0),
            Column::number("Time").seconds().lowest_best(),
        ],
    )
    .row(["True".into()]);
    for ((name, image), (iterations, time)) in found.iter().zip([(0.0, 0.0123), (30.0, 0.418)]) {
        let iterations = if iterations > 0.0 { Cell::Number(iterations) } else { Cell::Empty };
        let measures = [nrmse(image, &truth).into(), psnr(image, &truth).into()];
        quality.push([(*name).into()].into_iter().chain(measures).chain([iterations, time.into()]));
    }
    print!("{quality}");
    Ok(Page::new(
        "Head phantom from an undersampled spiral",
        "Twelve interleaves, eight coils. Least squares takes the error of gridding down to a third \
         in thirty iterations.",
    )
    .section(Section::new("Images").figures(row).table(quality))
    .section(
        Section::new("Where the error lies")
            .text("Blue is too dark, red too bright. Both maps share one scale.")
            .figures(errors),
    )
    .section(Section::new("Convergence").chart(convergence()).chart(profile(&truth, &least_squares)))
    .section(Section::new("How it was made").block(Block::Record(Box::new(record(&truth, &least_squares))))))
}

fn main() -> Result<(), Failure> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "sample.html".into());
    std::fs::write(&path, page()?.render())?;
    println!("{}", path.to_string_lossy());
    Ok(())
}
