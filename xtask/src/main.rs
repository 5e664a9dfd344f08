//! `cargo xtask ptx`: the kernels compiled beforehand, for machines that have only the driver.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use rayon::prelude::*;
use rayspin_device::cuda::{Packed, Program, compile, compiler_version, pack};
use rayspin_kernels::precompiled;

/// The lowest capability that Rayspin runs on: PTX for it is PTX for all.
const LOWEST: (u32, u32) = (8, 0);
/// Capabilities with instructions of their own, which a source may ask for with `__CUDA_ARCH__`.
const OWN: [(u32, u32); 1] = [(9, 0)];

#[derive(Parser)]
#[command(about = "What developers of Rayspin run beside cargo")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compiles every kernel to PTX, into one file that RAYSPIN_PTX names at run time, or RAYSPIN_PTX_EMBED when building
    /// with the feature `precompiled`. Needs NVRTC, no GPU
    Ptx {
        /// The file
        #[arg(long, short, default_value = "target/ptx/rayspin.ptx")]
        out: PathBuf,
        /// Points of the longest Fourier transform: images of 512 voxels an axis take 1024 where they are doubled. There are
        /// kernels for up to 8192
        #[arg(long, default_value_t = 1024)]
        longest: usize,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Ptx { out, longest } => ptx(&out, longest),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn ptx(out: &std::path::Path, longest: usize) -> Result<()> {
    let Some(compiler) = compiler_version() else {
        bail!(
            "NVRTC was not found: RAYSPIN_CUDA_PATH=\"$(scripts/nvrtc.sh)\" names the one that scripts/python.sh installs"
        );
    };
    let builds = precompiled(longest);
    let work: Vec<_> = builds
        .iter()
        .flat_map(|build| {
            let own = build.source.files.iter().any(|(_, text)| text.contains("__CUDA_ARCH"));
            let own = OWN.into_iter().filter(move |_| own).map(|capability| (capability, true));
            std::iter::once((LOWEST, false)).chain(own).map(move |(at, only)| (build, at, only))
        })
        .collect();
    let done = AtomicUsize::new(0);
    let made = work.par_iter().map(|&(build, capability, only)| {
        let program = Program::new(build.source, &build.defines);
        let (major, minor) = capability;
        let architecture = format!("compute_{major}{minor}{}", if only { "a" } else { "" });
        let ptx = compile(&program, &architecture, false)?.image;
        let count = done.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_multiple_of(200) {
            eprintln!("{count} of {}", work.len());
        }
        Ok((ptx.len(), Packed::new(&program, capability, only, &ptx)?))
    });
    let made: Vec<_> = made.collect::<Result<_>>()?;
    let text: usize = made.iter().map(|(bytes, _)| bytes).sum();
    let count = made.len();
    let archive = pack(compiler, made.into_iter().map(|(_, packed)| packed).collect());
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let part = out.with_extension("part");
    std::fs::write(&part, &archive)
        .and_then(|()| std::fs::rename(&part, out))
        .with_context(|| format!("writing {}", out.display()))?;
    println!(
        "{}: {count} programs of {} sources, PTX of CUDA {}.{}, {:.1} MB ({:.1} MB unpacked)",
        out.display(),
        builds.iter().map(|build| build.source.name).collect::<std::collections::HashSet<_>>().len(),
        compiler.0,
        compiler.1,
        archive.len() as f64 / 1e6,
        text as f64 / 1e6
    );
    Ok(())
}
