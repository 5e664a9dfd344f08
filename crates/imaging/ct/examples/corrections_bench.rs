//! Corrections of line integrals in a file, for `benches/peers/ct_corrections.py`: times, and what comes out.
//!
//!     cargo run --release -p rayspin-ct --example corrections_bench -- LINES.npy THREADS [FOLDER]
//!
//! LINES is `[view, row, column]` in f32. With a FOLDER each result is written there once, and nothing is
//! timed.

#[path = "../../../ladders/primitives/examples/timed/mod.rs"]
mod timed;

use std::path::PathBuf;

use ndarray::Array3;
use rayspin_core::{Error, Result};
use rayspin_ct::corrections::{Content, Correction, Outliers, Rings, RingsWavelet, Views};
use rayspin_device::Device;
use rayspin_kernels::median;

fn named(name: &'static str, correction: impl Correction + 'static) -> (&'static str, Box<dyn Correction>) {
    (name, Box::new(correction))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or_else(|| Error::value(what, "an argument", "none"));
    let (path, threads) = (next("file")?, next("threads")?);
    let folder = next("folder").ok().map(PathBuf::from);
    let threads = threads.parse().map_err(|_| Error::value("threads", "a number", &threads))?;
    let lines: Array3<f32> =
        ndarray_npy::read_npy(&path).map_err(|e| Error::value(path, "an array of f32", e))?;
    let device = Device::cpu_with_threads(threads)?;
    let corrections = [
        named("rings", Rings::default()),
        named("rings-wavelet", RingsWavelet::default()),
        named("outliers", Outliers::default()),
    ];
    let (count, rows, columns) = lines.dim();
    let mut views = Views { values: lines.clone(), content: Content::Lines, pixel_mm: None };
    for (name, correction) in corrections {
        views.values.assign(&lines);
        match &folder {
            Some(folder) => {
                correction.views(&device, &mut views)?;
                let file = folder.join(format!("{name}.npy"));
                ndarray_npy::write_npy(&file, &views.values).map_err(|e| Error::value(name, "a file", e))?;
            }
            // What is corrected once takes as long again.
            None => timed::show(&device, name, &mut |_| correction.views(&device, &mut views).map(|_| ()))?,
        }
    }
    for (name, radius) in [("median 3x3", [0, 1, 1]), ("median 5x5", [0, 2, 2]), ("median 3x3x3", [1, 1, 1])]
    {
        let shape = [count, rows, columns];
        let mut run = |_| {
            let (from, to) =
                (lines.as_slice().unwrap_or_default(), views.values.as_slice_mut().unwrap_or_default());
            median::boxed(device.cpu_side(), from, shape, radius, to)
        };
        match &folder {
            Some(folder) => {
                run(0)?;
                let file = folder.join(format!("{name}.npy"));
                ndarray_npy::write_npy(&file, &views.values).map_err(|e| Error::value(name, "a file", e))?;
            }
            None => timed::show(&device, name, &mut run)?,
        }
    }
    Ok(())
}
