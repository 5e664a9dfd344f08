//! `rayspin-ladder source`: the CUDA C++ of a variant, its launches, its loops on a CPU.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Result;
use rayspin::device::BackendKind;
use rayspin::device::cuda::{Launch, Program};
use rayspin::tune::{Which, sources};
use rayspin_emu::How;
use rayspin_shell::{Context, files};

use super::host::{chosen, record};
use super::{Ladders, unknown};
use crate::args::ladder::Source;

/// Seed of the inputs, the same as in other commands.
const SEED: u64 = 1;

/// Prints the source of a variant, and what else the user wants.
pub(crate) fn run(context: &Context, ladders: &Ladders, args: &Source) -> Result<()> {
    if !args.mcuda {
        print(ladders, args)?;
    }
    if !args.mcuda && !args.launch {
        return Ok(());
    }
    let chosen_ladders = ladders.named(std::slice::from_ref(&args.name))?;
    let Some(&ladder) = chosen_ladders.first() else { return Ok(()) };
    let (which, variant) = chosen(ladder, None, None, Some(&args.variant))?;
    let recorded = record(context, ladder, which, variant, SEED)?;
    let launches: Vec<(&Arc<Program>, &str, Launch)> = recorded.launches().collect();
    if args.launch {
        return files::print(&listed(&recorded.problem, &launches));
    }
    let mut programs: Vec<(&Arc<Program>, Vec<&str>)> = Vec::new();
    for (program, kernel, _) in &launches {
        match programs.iter_mut().find(|(known, _)| known == program) {
            Some((_, kernels)) if kernels.contains(kernel) => {}
            Some((_, kernels)) => kernels.push(kernel),
            None => programs.push((program, vec![kernel])),
        }
    }
    let mut text = format!(
        "// {} {}: the kernels of a run on {} as loops over the threads of a block,\n\
         // as the emulator runs them with --emulate (MCUDA). Each loop sets threadIdx to its place\n\
         // (x, y, z); t counts these places. kept_N is an array over the threads of a block, for what\n\
         // lives across a barrier. live[t] is 0 once thread t has returned.\n",
        args.name, variant, recorded.problem
    );
    for (program, kernels) in programs {
        for kernel in recorded.emulator.loops_of(program)? {
            if kernels.contains(&kernel.name.as_str()) {
                let how = match &kernel.how {
                    How::Loops(1) => "one loop".to_owned(),
                    How::Loops(count) => format!("{count} loops"),
                    How::Written(why) => format!("runs as written, each thread by itself: {why}"),
                };
                text.push_str(&format!("\n// {}::{}: {how}\n{}", program.name, kernel.name, kernel.text));
            }
        }
    }
    files::print(&text.trim_end())
}

/// Prints the CUDA C++ of a variant.
fn print(ladders: &Ladders, args: &Source) -> Result<()> {
    let ladders = ladders.named(std::slice::from_ref(&args.name))?;
    let Some(ladder) = ladders.first() else { return Ok(()) };
    // A ladder may have other variants for other cases.
    let cases = ladder.cases();
    let whiches = cases.iter().map(|case| Which::Case(Some(case.0), None));
    let mut known = Vec::new();
    for which in whiches {
        for variant in ladder.outline(which)?.variants {
            if variant.backend == BackendKind::Cuda && variant.name == args.variant {
                let mut out = std::io::stdout().lock();
                for source in sources(&variant.forms) {
                    for (file, text) in source.files {
                        writeln!(out, "// {file}\n{}", text.trim_end())?;
                    }
                }
                return Ok(());
            }
            if variant.backend == BackendKind::Cuda && !known.contains(&variant.name) {
                known.push(variant.name);
            }
        }
    }
    Err(unknown("variant for a GPU", &args.variant, &known, "rayspin-ladder list NAME lists them").into())
}

/// A program, the kernel in it, and its sizes.
type LaunchOf<'a> = (&'a Arc<Program>, &'a str, Launch);

/// Launches in order; equal ones that follow each other once, with their number.
fn listed(problem: &str, launches: &[LaunchOf<'_>]) -> String {
    let mut groups: Vec<(usize, &LaunchOf<'_>)> = Vec::new();
    for launch in launches {
        match groups.last_mut() {
            Some((count, last)) if *last == launch => *count += 1,
            _ => groups.push((1, launch)),
        }
    }
    let sides = |sides: [u32; 3]| match sides {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("dim3({x}, {y})"),
        [x, y, z] => format!("dim3({x}, {y}, {z})"),
    };
    let mut text = format!(
        "\n// Launches of a run on {problem}: kernel<<<blocks, threads, bytes of dynamic shared memory>>>"
    );
    for (count, (program, kernel, launch)) in groups {
        let times = if count > 1 { format!("  // {count} times") } else { String::new() };
        let macros: Vec<String> =
            program.defines.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let macros = if macros.is_empty() { String::new() } else { format!(" with {}", macros.join(" ")) };
        text.push_str(&format!(
            "\n// {kernel}<<<{}, {}, {}>>> of {}{macros}{times}",
            sides(launch.blocks),
            sides(launch.threads),
            launch.shared,
            program.name
        ));
    }
    text
}
