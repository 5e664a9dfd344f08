//! `rayspin info`

use std::path::Path;

use anyhow::Result;
use rayspin::core::Monitor;
use rayspin::device::{Backend, Device, cpu, cuda, private};
use rayspin::io::{self, ScanFile, ScanOptions, ismrmrd};
use rayspin::report::number;
use rayspin::tune::limits::{Kept, kept};
use rayspin_shell::{Context, effect};
use serde_json::{Value, map::Entry};

use super::files;
use crate::args::Info;

/// Describes this machine or a file.
pub(crate) fn run(context: &Context, args: &Info) -> Result<()> {
    if let Some(option) = context.given.name("dataset") {
        let found = match &args.file {
            None => Some("this machine".to_owned()),
            Some(path) => Some(io::detect(path)?).filter(|f| !f.has_names()).map(|f| f.to_string()),
        };
        if let Some(found) = found {
            return effect::refuse(option, &files::files_with_names(), &found);
        }
    }
    let rows = match &args.file {
        None => machine(context),
        Some(path) => file(path, args.dataset.as_deref())?,
    };
    if args.json {
        files::print(&serde_json::to_string_pretty(&json(rows))?)?;
        return Ok(());
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in rows {
        files::print(&format!("{name:width$}  {value}"))?;
    }
    Ok(())
}

/// Texts by name; a list of them where a name comes more than once, as notes do.
fn json(rows: Rows) -> serde_json::Map<String, Value> {
    let mut map = serde_json::Map::new();
    for (name, text) in rows {
        match map.entry(name) {
            Entry::Vacant(place) => {
                place.insert(Value::String(text));
            }
            Entry::Occupied(mut place) => match place.get_mut() {
                Value::Array(list) => list.push(Value::String(text)),
                first => *first = Value::Array(vec![first.take(), Value::String(text)]),
            },
        }
    }
    map
}

type Rows = Vec<(String, String)>;

fn row(rows: &mut Rows, name: &str, value: impl ToString) {
    rows.push((name.to_owned(), value.to_string()));
}

fn machine(context: &Context) -> Rows {
    let mut rows = Rows::new();
    row(&mut rows, "rayspin", env!("CARGO_PKG_VERSION"));
    row(&mut rows, "processor", cpu::model_name());
    row(&mut rows, "threads", context.threads());
    row(&mut rows, "instruction set", context.simd_name());
    if let Some((total, available)) = cpu::memory() {
        row(&mut rows, "memory", format!("{}, {} available", number::bytes(total), number::bytes(available)));
    }
    limits(&context.device.host(), &mut rows);
    gpus(context, &mut rows);
    row(&mut rows, "system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    rows
}

/// What rayspin-ladder has measured of a processor before.
fn limits(device: &Device, rows: &mut Rows) {
    let Kept::Found(limits) = kept(cuda::cache_folder().as_deref(), device) else { return };
    for (name, rate, unit) in limits.rates.rows() {
        let rate = number::significant(rate / 1e9, 4);
        row(rows, &format!("  {name}"), format!("{rate} ×10⁹ {unit}, measured by rayspin-ladder"));
    }
}

/// The GPUs of this machine, or why there is none to use.
fn gpus(context: &Context, rows: &mut Rows) {
    let count = match cuda::count() {
        Ok(count) => count,
        Err(absent) => return row(rows, "GPU", format!("none: {absent}")),
    };
    for ordinal in 0..count {
        let name = format!("GPU cuda:{ordinal}");
        let device = match Device::cuda(ordinal, context.device.host()) {
            Ok(device) => device,
            Err(error) => {
                row(rows, &name, format!("not usable: {error}"));
                continue;
            }
        };
        row(rows, &name, device.describe());
        let Backend::Cuda(gpu) = device.backend() else { continue };
        let properties = gpu.properties();
        let (major, minor) = properties.capability;
        row(rows, "  compute capability", format!("{major}.{minor}"));
        row(rows, "  driver", format!("CUDA {}.{}", properties.driver.0, properties.driver.1));
        if let Ok(free) = gpu.memory_left() {
            let (total, free) = (number::bytes(properties.memory), number::bytes(free));
            row(rows, "  memory", format!("{total}, {free} available"));
        }
        match cuda::copy_bandwidth(&device) {
            Ok(bandwidth) => {
                row(
                    rows,
                    "  copy bandwidth",
                    format!("{:.2} TB/s read and written, measured", bandwidth / 1e12),
                );
            }
            Err(error) => row(rows, "  copy bandwidth", error),
        }
        limits(&device, rows);
    }
    match cuda::compiler_version() {
        Some((major, minor)) => row(rows, "kernel compiler", format!("NVRTC {major}.{minor}")),
        None => row(rows, "kernel compiler", "none: NVRTC (libnvrtc.so) was not found"),
    }
    match cuda::archive() {
        Ok(Some(archive)) => {
            let ((major, minor), count) = (archive.compiler(), archive.len());
            let words = format!("{count} programs, PTX of CUDA {major}.{minor}, {}", archive.origin());
            row(rows, "precompiled kernels", words);
        }
        Ok(None) => match cuda::ignored_archive() {
            Some(why) => row(rows, "precompiled kernels", format!("ignored: {why}")),
            None => row(rows, "precompiled kernels", "none"),
        },
        Err(error) => row(rows, "precompiled kernels", error),
    }
    match cuda::fft_version() {
        Some((major, minor)) => row(rows, "cuFFT", format!("{major}.{minor}, for benchmarks")),
        None => row(rows, "cuFFT", "none; only benchmarks use it"),
    }
    match cuda::cache_folder() {
        Some(folder) => match private::check(&folder) {
            Ok(()) => row(rows, "kernel cache", folder.display()),
            Err(error) => row(rows, "kernel cache", format!("off: {error}")),
        },
        None => row(rows, "kernel cache", "off"),
    }
}

fn file(path: &Path, dataset: Option<&str>) -> Result<Rows> {
    let mut rows = Rows::new();
    row(&mut rows, "file", path.display());
    let format = io::detect(path)?;
    row(&mut rows, "format", format);
    rows.extend(io::describe(path)?);
    let names = io::names(path)?;
    let several = names.len() > 1;
    if let Some(of) = &format.names {
        names.iter().for_each(|name| row(&mut rows, of.what, name));
    }
    if several && dataset.is_none() {
        return Ok(rows);
    }
    if io::holds_scan(path)? {
        scan(path, dataset, &mut rows)?;
    } else if format.reads_arrays() {
        understood(path, dataset, &mut rows);
    } else {
        image(path, dataset, &mut rows)?;
    }
    Ok(rows)
}

/// A raw scan, and what it would be understood as.
fn scan(path: &Path, dataset: Option<&str>, rows: &mut Rows) -> Result<()> {
    let options = ScanOptions { name: dataset.map(str::to_owned), ..ScanOptions::default() };
    let ScanFile::Scan(scan) = io::read_scan(path, &options, &Monitor::silent())? else {
        return Ok(());
    };
    rows.extend(ismrmrd::summarise(&scan));
    let mut notes = scan.notes.clone();
    if let Ok(index) = scan.frames() {
        row(rows, "images", index.labels().count());
        if let Some(label) = index.labels().next() {
            // What assembling the first image would assume is worth knowing before a long run.
            match index.assemble(label, &Default::default(), &mut notes) {
                Ok(frame) => row(rows, "understood as", frame.summary()),
                Err(error) => notes.push(format!("the first image cannot be assembled: {error}")),
            }
        }
    }
    for note in notes {
        row(rows, "note", note);
    }
    Ok(())
}

fn image(path: &Path, dataset: Option<&str>, rows: &mut Rows) -> Result<()> {
    let file = io::read_image(path, &io::ReadOptions { array: dataset.map(str::to_owned) })?;
    let image = &file.image;
    let g = image.geometry();
    row(rows, "shape", format!("{:?} (repetition, z, y, x; leading ones left out)", image.data().shape()));
    row(rows, "voxel", format!("{:?} mm (x, y, z)", g.spacing_mm));
    row(rows, "centre", format!("{:?} mm (LPS)", g.position_mm));
    row(rows, "x axis", format!("{:?}", g.read_dir));
    row(rows, "y axis", format!("{:?}", g.phase_dir));
    row(rows, "z axis", format!("{:?}", g.slice_dir));
    let magnitude = image.magnitude();
    let (low, high) = magnitude.iter().fold((f32::MAX, f32::MIN), |(l, h), &v| (l.min(v), h.max(v)));
    row(rows, "magnitude", format!("{low} to {high}"));
    for note in file.notes {
        row(rows, "note", note);
    }
    Ok(())
}

/// What an array without a header would be understood as: a trajectory, else k-space.
fn understood(path: &Path, dataset: Option<&str>, rows: &mut Rows) {
    if let Ok((points, extent)) = io::trajectory_extent(path, dataset) {
        let numbers: Vec<String> = extent.iter().map(|k| format!("±{k:.4}")).collect();
        return row(rows, "as trajectory", format!("{points} points, {} (x, y, z)", numbers.join(", ")));
    }
    let options = ScanOptions { name: dataset.map(str::to_owned), ..ScanOptions::default() };
    match io::read_scan(path, &options, &Monitor::silent()) {
        Ok(ScanFile::Frame(array)) => {
            row(rows, "as k-space", array.summary());
            for doubt in array.frame.doubts() {
                row(rows, "warning", doubt);
            }
        }
        Ok(ScanFile::Scan(_)) => {}
        Err(error) => row(rows, "as k-space", format!("no: {error}")),
    }
}
