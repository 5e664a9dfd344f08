//! `rayspin-ladder run FILE.cu`: a whole CUDA program in the emulator.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use rayspin::core::Error;
use rayspin_emu::{Uncompiled, WholeProgram};
use rayspin_shell::interrupt::STOP;
use rayspin_shell::{BadInput, Context, effect, say};

use super::Ladders;
use super::emulate::{self, CompileCache};
use crate::args::ladder::RunArgs;
use crate::without::{self, Missing};

/// The program that the first name is, if it is one: it ends in `.cu`, or is a file and no ladder.
pub(super) fn named<'a>(args: &'a RunArgs, ladders: &Ladders) -> Option<&'a Path> {
    let name = args.names.first()?;
    let path = Path::new(name);
    let is_ladder = ladders.all().iter().any(|ladder| ladder.about().name == name);
    let is_program = path.extension().is_some_and(|ending| ending == "cu") || (path.is_file() && !is_ladder);
    is_program.then_some(path)
}

/// Compiles and runs a program. Its exit code, if it is not 0, is this one's.
pub(super) fn run(context: &Context, args: &RunArgs, file: &Path) -> Result<()> {
    refuse_idle(context)?;
    if !file.is_file() {
        let message = format!("{}: expected a CUDA program, found no file", file.display());
        return Err(BadInput::new(message).hint("rayspin-ladder run --help tells of programs").into());
    }
    let kept = CompileCache::new()?;
    let emulator = match args.check {
        true => emulate::emulator()?.checking(None).map_err(Missing::with(without::COMPILER))?,
        false => emulate::emulator()?,
    };
    let program = compiled(emulator.compile_program(file, Some(kept.folder.clone())), file)?;
    say!("{}: emulated on the CPU: times predict no GPU", file.display());
    let arguments: Vec<OsString> = args.names.iter().skip(1).map(OsString::from).collect();
    let ended = program.run(&arguments, context.threads())?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    for note in &ended.notes {
        say!("note: {note}");
    }
    let (notes, errors): (Vec<_>, Vec<_>) = ended.faults.into_iter().partition(|fault| fault.is_note());
    for fault in &notes {
        say!("note: {fault}");
    }
    for fault in &errors {
        say!("{fault}");
    }
    if let Some(why) = ended.failed {
        anyhow::bail!("{why}");
    }
    if let Some(first) = errors.first() {
        anyhow::bail!("{}: {}", file.display(), first.title());
    }
    match ended.status.code() {
        Some(0) => {
            if args.check {
                say!("{}: no race and no memory error was found in its kernels", file.display());
            }
            Ok(())
        }
        Some(code) => std::process::exit(code),
        None => anyhow::bail!("{} was ended: {}", file.display(), ended.status),
    }
}

/// Errors: the compiler's words, or what the emulator does not have.
fn compiled(program: std::result::Result<WholeProgram, Uncompiled>, file: &Path) -> Result<WholeProgram> {
    let hint = "rayspin-ladder run --help says what programs may use";
    program.map_err(|error| match error {
        Uncompiled::Compiler(words) => {
            say!("{words}");
            let message = format!("{}: expected CUDA C++ that compiles", file.display());
            BadInput::new(message).hint("the compiler's words are above").into()
        }
        Uncompiled::Refused(error) => BadInput::new(error.to_string()).hint(hint).into(),
    })
}

/// Refuses options of benchmarks, and a GPU.
fn refuse_idle(context: &Context) -> Result<()> {
    let fields = [
        "all",
        "case",
        "size",
        "variant",
        "config",
        "sweep",
        "emulate",
        "counters",
        "on",
        "seed",
        "rounds",
        "budget",
        "one_buffer",
        "launch",
        "json",
        "csv",
        "html",
        "remeasure",
        "no_limits",
        "wide",
        "device",
    ];
    match fields.iter().find_map(|field| context.given.name(field)) {
        Some(option) => effect::refuse(option, "algorithms", "a program, which runs in the emulator"),
        None => Ok(()),
    }
}
