//! The launches of the same runs on a GPU, in order, so that a profiler's numbers can be put beside the
//! counts.

use std::path::Path;

use anyhow::Result;
use rayspin::device::cuda::Launched;
use rayspin::device::{Backend, BackendKind};
use rayspin_shell::{BadInput, Context, say};
use serde_json::{Value, json as value};

use super::super::benchmark::write;
use super::super::emulate::Emulation;
use super::SEED;

/// Runs each variant twice and writes what was launched: to make ready, in the first run, in the second.
pub(super) fn run(context: &Context, plans: &[Emulation<'_>], file: &Path) -> Result<()> {
    let device = &context.device;
    let Backend::Cuda(cuda) = device.backend() else {
        let message = "--launches: expected a GPU, found none";
        return Err(BadInput::new(message)
            .hint("without a GPU leave it out: the kernels are counted")
            .into());
    };
    let mut ladders = Vec::new();
    for Emulation { ladder, which, names } in plans {
        let mut opened = None;
        let opening = cuda.launches(|| {
            opened = Some(ladder.open(*which, device, SEED)?);
            Ok(())
        })?;
        let Some(mut session) = opened else { continue };
        let mut variants = Vec::new();
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
                    "variant": variant.name, "first": list(&first), "second": list(&second),
                })),
                Err(error) => say!("{} of {}: {error}", variant.name, ladder.about().name),
            }
        }
        ladders.push(value!({
            "ladder": ladder.about().name, "problem": session.problem(), "opening": list(&opening),
            "variants": variants,
        }));
        // A profiler that is stopped leaves the launches so far.
        write(file, &(serde_json::to_string_pretty(&ladders)? + "\n"))?;
    }
    Ok(())
}

fn list(launched: &[Launched]) -> Vec<Value> {
    let one = |one: &Launched| {
        value!({
            "program": one.program.name, "kernel": one.kernel, "blocks": one.launch.blocks,
            "threads": one.launch.threads,
        })
    };
    launched.iter().map(one).collect()
}
