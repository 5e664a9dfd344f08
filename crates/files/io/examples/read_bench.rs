//! Times of reading a raw scan, for `benches/twix.py`: the heads, all readouts batch by batch, and all at
//! once, beside the bound, which is to copy the file's bytes to buffers that are there.
//!
//!     cargo run --release -p rayspin-io --example read_bench -- FILE RUNS THREADS...

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;
use rayspin_core::Monitor;
use rayspin_device::Device;
use rayspin_io::open_scan;

/// Bytes that a thread copies at once.
const PIECE: usize = 1 << 20;

fn copy(path: &Path) -> std::io::Result<()> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len() as usize;
    let piece = |buffer: &mut Vec<u8>, start: usize| {
        buffer.resize(PIECE, 0);
        file.read_exact_at(&mut buffer[..PIECE.min(bytes - start)], start as u64)
    };
    (0..bytes.div_ceil(PIECE)).into_par_iter().map(|index| index * PIECE).map_init(Vec::new, piece).collect()
}

/// Seconds of processors that this process has taken, in steps of 10 ms.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = behind.skip(11).take(2).filter_map(|number| number.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// Seconds of some runs, sorted.
fn times(
    runs: usize,
    mut run: impl FnMut() -> Result<f64, Box<dyn Error + Send + Sync>>,
) -> Result<Vec<f64>, Box<dyn Error + Send + Sync>> {
    let mut seconds = (0..runs).map(|_| run()).collect::<Result<Vec<f64>, _>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds)
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("expected a file")?;
    let path = Path::new(&path);
    let runs: usize = arguments.next().ok_or("expected the number of runs")?.parse()?;
    let bytes = std::fs::metadata(path)?.len() as f64;
    let monitor = Monitor::silent();
    for threads in arguments {
        let device = Device::cpu_with_threads(threads.parse()?)?;
        let mut before = processor();
        let mut show = |what: &str, seconds: &[f64]| {
            let median = seconds[seconds.len() / 2];
            let all: Vec<String> = seconds.iter().map(|one| format!("{one:.4}")).collect();
            let rate = bytes / median / 1e9;
            let own = (processor() - before) / seconds.len() as f64;
            before = processor();
            let all = all.join(" ");
            println!(
                "{threads:>3} threads  {what:<8} {median:8.4} s {rate:7.2} GB/s   {own:7.3} s of processors   {all}"
            );
        };
        let on_threads = |work: &mut (dyn FnMut() -> Result<f64, Box<dyn Error + Send + Sync>> + Send)| {
            device.cpu_side().run(work)
        };
        show(
            "copy",
            &times(runs, || {
                on_threads(&mut || {
                    let start = Instant::now();
                    copy(path)?;
                    Ok(start.elapsed().as_secs_f64())
                })
            })?,
        );
        show(
            "heads",
            &times(runs, || {
                on_threads(&mut || {
                    let start = Instant::now();
                    let reader = open_scan(path, &monitor)?;
                    let seconds = start.elapsed().as_secs_f64();
                    drop(reader);
                    Ok(seconds)
                })
            })?,
        );
        show(
            "batches",
            &times(runs, || {
                on_threads(&mut || {
                    let mut reader = open_scan(path, &monitor)?;
                    let count = reader.contents().acquisitions;
                    let start = Instant::now();
                    let mut seen = 0;
                    reader.read(&mut (0..count), &monitor, &mut |_, readout| seen += readout.data.len())?;
                    assert!(seen > 0, "samples");
                    Ok(start.elapsed().as_secs_f64())
                })
            })?,
        );
        show(
            "whole",
            &times(runs, || {
                on_threads(&mut || {
                    let reader = open_scan(path, &monitor)?;
                    let start = Instant::now();
                    let scan = reader.into_scan(&monitor)?;
                    let seconds = start.elapsed().as_secs_f64();
                    drop(scan);
                    Ok(seconds)
                })
            })?,
        );
    }
    Ok(())
}
