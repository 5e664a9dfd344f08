//! Standard input in place of a file: `-`.

use std::borrow::Cow;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use rayspin_io::atomic::ScratchFolder;

use crate::BadInput;

/// The file that holds what came through standard input.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// What people call it.
const NAME: &str = "standard input";
/// The first byte of a NumPy array, of no other format that is read.
const NUMPY: u8 = 0x93;

/// Whether an input stands for standard input.
pub fn stands_for(path: &Path) -> bool {
    path.as_os_str() == "-" || FILE.get().is_some_and(|file| file == path)
}

/// The text with standard input under its own name.
pub(crate) fn named(text: &str) -> Cow<'_, str> {
    match FILE.get().map(|file| file.to_string_lossy()) {
        Some(file) if text.contains(&*file) => text.replace(&*file, NAME).into(),
        _ => text.into(),
    }
}

/// An input of the command line that may be `-`.
pub struct Input<'a> {
    /// Its value.
    pub path: &'a mut PathBuf,
    /// Whether NumPy arrays are taken as they arrive.
    pub arriving: bool,
}

/// What came through standard input. Most readers need a file to seek in, so that it is written to a
/// temporary one first.
#[derive(Default)]
pub struct StandardInput {
    _folder: Option<ScratchFolder>,
}

impl StandardInput {
    /// Gives the one input that is named `-` a temporary file, unless it is taken as it arrives.
    ///
    /// Errors: two such inputs; a terminal; nothing that arrives; no temporary file.
    pub fn of<'a>(inputs: impl Iterator<Item = Input<'a>>) -> Result<Self> {
        let mut standard: Vec<Input<'a>> = inputs.filter(|input| input.path.as_os_str() == "-").collect();
        let Some(Input { path, arriving }) = standard.pop() else { return Ok(Self::default()) };
        if !standard.is_empty() {
            let message = format!("expected one input on {NAME}, found {}", standard.len() + 1);
            return Err(BadInput::new(message).hint("name a file for the others").into());
        }
        let mut stdin = std::io::stdin().lock();
        if stdin.is_terminal() {
            let message = format!("expected {NAME} to be a file or a program, found a terminal");
            return Err(BadInput::new(message).hint("add < FILE, or PROGRAM | before the command").into());
        }
        let first = stdin.fill_buf().context(NAME)?.first().copied();
        match first {
            Some(NUMPY) if arriving => return Ok(Self::default()),
            Some(_) => {}
            None => {
                let message = format!("expected a file on {NAME}, found nothing");
                return Err(BadInput::new(message).hint("did the program before it fail?").into());
            }
        }
        let folder = ScratchFolder::create().context(NAME)?;
        let file = folder.path().join("input");
        let mut copy = std::fs::File::create(&file).context(NAME)?;
        std::io::copy(&mut stdin, &mut copy).context(NAME)?;
        // A process runs one command line, so nothing was set before.
        let _ = FILE.set(file.clone());
        *path = file;
        Ok(Self { _folder: Some(folder) })
    }
}
