//! The launches of the same runs on a GPU, in order, so that a profiler's numbers can be put beside the
//! counts.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rayspin::device::cuda::{Launched, Program};
use rayspin::device::{Backend, BackendKind, Device};
use rayspin_shell::{Context, say};
use serde_json::{Value, json as value};

use super::super::benchmark::write;
use super::super::emulate::{self, Emulation};
use super::SEED;

/// Runs each variant twice and writes what was launched: to make ready, in the first run, in the second.
/// Without a GPU the emulator launches the same kernels.
pub(super) fn run(context: &Context, plans: &[Emulation<'_>], file: &Path) -> Result<()> {
    let device = &match context.device.backend() {
        Backend::Cuda(_) => context.device.clone(),
        Backend::Cpu(_) => Device::with_driver(Arc::new(emulate::emulator()?), context.device.host()),
    };
    let Backend::Cuda(cuda) = device.backend() else { return Ok(()) };
    let mut ladders = Vec::new();
    for Emulation { ladder, which, names } in plans {
        let mut opened = None;
        let opening = cuda.launches(|| {
            opened = Some(ladder.open(*which, device, SEED)?);
            Ok(())
        })?;
        let Some(mut session) = opened else { continue };
        let (mut variants, mut programs) = (Vec::new(), Vec::new());
        let listed: Vec<_> = session.variants().iter().cloned().enumerate().collect();
        for (index, variant) in listed {
            if variant.backend != BackendKind::Cuda
                || variant.refuses.is_some()
                || !names.contains(&variant.name)
            {
                continue;
            }
            let config = variant.space.default_config();
            let mut once = || {
                let launched = cuda.launches(|| session.run(index, &config, 0))?;
                device.synchronize()?;
                Ok::<_, rayspin::core::Error>(launched)
            };
            match once().and_then(|first| Ok((first, once()?))) {
                Ok((first, second)) => variants.push(value!({
                    "variant": variant.name, "first": list(&first, &mut programs),
                    "second": list(&second, &mut programs),
                })),
                Err(error) => say!("{} of {}: {error}", variant.name, ladder.about().name),
            }
        }
        ladders.push(value!({
            "ladder": ladder.about().name, "problem": session.problem(), "opening": list(&opening, &mut programs),
            "variants": variants, "programs": programs.iter().map(|program| program_text(program)).collect::<Vec<_>>(),
        }));
        // A profiler that is stopped leaves the launches so far.
        write(file, &(serde_json::to_string_pretty(&ladders)? + "\n"))?;
    }
    Ok(())
}

/// Launches, each with the number of its program among `programs`.
fn list(launched: &[Launched], programs: &mut Vec<Arc<Program>>) -> Vec<Value> {
    let mut one = |one: &Launched| {
        let at = programs.iter().position(|program| *program == one.program).unwrap_or_else(|| {
            programs.push(one.program.clone());
            programs.len() - 1
        });
        value!({
            "program": one.program.name, "program_number": at, "kernel": one.kernel, "blocks": one.launch.blocks,
            "threads": one.launch.threads,
        })
    };
    launched.iter().map(&mut one).collect()
}

/// A program as a compiler gets it: its machine code may explain what a profiler counts.
fn program_text(program: &Program) -> Value {
    value!({"name": program.name, "options": program.options(), "text": program.text})
}
