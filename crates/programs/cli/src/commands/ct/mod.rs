//! CT: `rayspin recon ct` and `rayspin simulate ct`.

pub(crate) mod recon;
pub(crate) mod simulate;

use anyhow::Result;
use rayspin::core::Detector;

use rayspin_shell::args::numbers;

/// `U[,V]` of an option: both sizes of a pixel, mm.
fn pixel(text: &str) -> Result<[f64; 2]> {
    let sizes = numbers::<f64>("--pixel", text, &[1, 2])?;
    Ok([sizes[0], sizes.get(1).copied().unwrap_or(sizes[0])])
}

/// `X,Y[,Z]` of `--matrix`.
fn matrix(text: &str) -> Result<[usize; 3]> {
    let sizes = numbers::<usize>("--matrix", text, &[2, 3])?;
    Ok([sizes[0], sizes[1], sizes.get(2).copied().unwrap_or(1)])
}

/// `X,Y,Z` of an option, mm.
fn place(option: &str, text: &str) -> Result<[f64; 3]> {
    let place = numbers::<f64>(option, text, &[3])?;
    Ok([place[0], place[1], place[2]])
}

/// A flat detector.
fn flat(rows: usize, columns: usize, pitch_mm: [f64; 2]) -> Detector {
    Detector { rows, columns, pitch_mm, radius_mm: None }
}
