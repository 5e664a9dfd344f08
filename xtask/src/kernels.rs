//! Compiles programs on all cores, and packs them.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use rayspin_device::cuda::{Code, Form, Program, architecture, compile, compiler_version, pack};
use rayspin_kernels::{precompiled, programs};

use crate::common;
use crate::gpus::gpus;

/// The lowest capability that Rayspin runs on: PTX for it is PTX for all.
const LOWEST: (u32, u32) = (8, 0);
/// Bytes of code that are compressed together.
const BLOCK: usize = 2 << 20;
/// A block as zstd, by its strongest level, whose window spans a block.
#[cfg(feature = "strong")]
fn compressed(block: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(block, 22)
}

/// A block as zstd, by a library without C code and a weak level: for tests, whose build the C code would
/// lengthen.
#[cfg(not(feature = "strong"))]
fn compressed(block: &[u8]) -> std::io::Result<Vec<u8>> {
    Ok(ruzstd::encoding::compress_to_vec(block, ruzstd::encoding::CompressionLevel::Fastest))
}

/// A program in one form for one capability.
type Wanted = (Form, (u32, u32), Program);
/// Its code.
type Compiled = (Form, (u32, u32), Code);

pub(crate) fn run(arguments: &crate::Kernels) -> Result<()> {
    let start = Instant::now();
    let version = compiler_version().map(|(major, minor)| format!("{major}.{minor}"));
    if let Some(wanted) = arguments.nvrtc.as_ref().filter(|wanted| version.as_ref() != Some(wanted)) {
        bail!("--nvrtc: expected version {wanted}, found {}", version.as_deref().unwrap_or("none"));
    }
    let wanted = wanted(arguments)?;
    for ((form, capability), count) in
        count(wanted.iter().map(|(form, capability, _)| (*form, *capability, 1)))
    {
        println!("{}: {count} programs", name(form, capability));
    }
    println!("{:.0} s for the list", start.elapsed().as_secs_f64());
    if arguments.count {
        return Ok(());
    }
    let Some(compiler) = compiler_version() else {
        bail!("NVRTC was not found: scripts/kernels.sh installs one and calls this");
    };
    let codes = compile_all(wanted)?;
    for ((form, capability), bytes) in
        count(codes.iter().map(|(form, capability, code)| (*form, *capability, code.len())))
    {
        println!("{}: {:.1} MB", name(form, capability), bytes as f64 / 1e6);
    }
    println!(
        "{:.0} s with compilation by NVRTC {}.{}",
        start.elapsed().as_secs_f64(),
        compiler.0,
        compiler.1
    );
    let codes = codes.into_iter().map(|(_, _, code)| code).collect();
    let archive = pack(compiler, codes, BLOCK, compressed)?;
    let out = &arguments.out;
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let part = out.with_extension("part");
    std::fs::write(&part, &archive)
        .and_then(|()| std::fs::rename(&part, out))
        .with_context(|| format!("writing {}", out.display()))?;
    let (seconds, bytes) = (start.elapsed().as_secs_f64(), archive.len() as f64 / 1e6);
    println!("{}: {bytes:.1} MB, {seconds:.0} s", out.display());
    Ok(())
}

fn name(form: Form, (major, minor): (u32, u32)) -> String {
    let form = match form {
        Form::Machine => "machine code",
        Form::Ptx => "PTX",
    };
    format!("{form} for {major}.{minor}")
}

fn count(all: impl Iterator<Item = (Form, (u32, u32), usize)>) -> BTreeMap<(Form, (u32, u32)), usize> {
    let mut found = BTreeMap::new();
    all.for_each(|(form, capability, n)| *found.entry((form, capability)).or_default() += n);
    found
}

/// Machine code of what common runs load on each GPU and of programs in fixed forms, and PTX of all general
/// programs.
fn wanted(arguments: &crate::Kernels) -> Result<Vec<Wanted>> {
    let only = &arguments.only;
    let chosen = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let mut wanted = Vec::new();
    for (properties, capability) in gpus() {
        if !chosen(&format!("{}.{}", capability.0, capability.1)) {
            continue;
        }
        let mut found = common::programs(&properties, arguments.few)?;
        if !arguments.few {
            found.extend(programs().iter().map(|build| Program::new(build.source, &build.defines)));
        }
        wanted.extend(found.into_iter().map(|program| (Form::Machine, capability, program)));
    }
    if chosen("ptx") {
        let general = precompiled(if arguments.few { 64 } else { arguments.longest });
        let texts = general.iter().map(|build| Program::new(build.source, &build.defines));
        wanted.extend(texts.map(|program| (Form::Ptx, LOWEST, program)));
    }
    if wanted.is_empty() {
        bail!("--only: expected 8.0, 9.0, 10.0, 12.0 or ptx, found {}", only.join(","));
    }
    let mut seen = HashSet::new();
    wanted.retain(|(form, capability, program)| {
        seen.insert((*form, *capability, program.name, program.text.len(), program.options()))
    });
    Ok(wanted)
}

fn compile_all(wanted: Vec<Wanted>) -> Result<Vec<Compiled>> {
    let (done, all) = (AtomicUsize::new(0), wanted.len());
    let codes = wanted.into_par_iter().map(|(form, capability, program)| {
        let to = match form {
            Form::Machine => architecture(capability),
            Form::Ptx => format!("compute_{}{}", capability.0, capability.1),
        };
        let image = compile(&program, &to, false)?.image;
        let count = done.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_multiple_of(200) {
            eprintln!("{count} of {all}");
        }
        Ok((form, capability, Code::new(&program, form, capability, image)))
    });
    codes.collect()
}
