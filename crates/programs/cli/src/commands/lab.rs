//! `rayspin ladder` and `rayspin tune`: they start `rayspin-ladder`, a program of its own. Reconstruction
//! needs nothing of what it links.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

/// The program to start.
const NAME: &str = "rayspin-ladder";

/// The program is not there.
#[derive(Debug)]
pub(crate) struct NotInstalled;

impl NotInstalled {
    /// What to do about it.
    pub(crate) const HINT: &str =
        "make ladder builds it, or cargo build --release -p rayspin-ladder-cli; both put it beside rayspin";
}

impl std::fmt::Display for NotInstalled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ladder, tune: expected the program {NAME} beside rayspin or in PATH, found none")
    }
}

impl std::error::Error for NotInstalled {}

/// Gives way to `rayspin-ladder`, with the arguments of this command: `rayspin ladder NAME` is
/// `rayspin-ladder NAME`, and `rayspin tune NAME` is `rayspin-ladder tune NAME`. Its exit code becomes this
/// program's. Errors: it is not there, it cannot be started.
pub(crate) fn start() -> anyhow::Result<()> {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(word) = arguments.iter().position(|argument| argument == "ladder" || argument == "tune")
        && arguments[word] == "ladder"
    {
        arguments.remove(word);
    }
    let mut command = Command::new(beside().unwrap_or_else(|| NAME.into()));
    let failed = become_one(command.args(arguments));
    match failed.kind() {
        std::io::ErrorKind::NotFound => Err(NotInstalled.into()),
        _ => Err(failed).with_context(|| format!("starting {NAME}")),
    }
}

/// The program in the folder of this one, where it is.
fn beside() -> Option<PathBuf> {
    let name = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::current_exe().ok()?.parent()?.join(name);
    path.is_file().then_some(path)
}

/// Runs the other program in the place of this one. Returns only where it cannot be started.
#[cfg(unix)]
fn become_one(command: &mut Command) -> std::io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

/// Runs the other program, and ends with its exit code. Returns only where it cannot be started.
#[cfg(not(unix))]
fn become_one(command: &mut Command) -> std::io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}
