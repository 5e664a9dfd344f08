//! Standard output in place of a file: `-`.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use rayspin_io::atomic::ScratchFolder;

use crate::BadInput;

/// The file whose content goes to standard output at the end; none where results are printed there.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Whether an output stands for standard output.
pub fn stands_for(path: &Path) -> bool {
    path.as_os_str() == "-" || FILE.get().is_some_and(|file| file == path)
}

/// The name of a file for people.
pub fn name(path: &Path) -> String {
    if stands_for(path) {
        return "standard output".to_owned();
    }
    crate::stdin::named(&path.display().to_string()).into_owned()
}

/// Whether the content of a file goes to standard output, so that results must not.
pub(crate) fn is_taken() -> bool {
    FILE.get().is_some()
}

/// An output of the command line that may be `-`.
pub struct Output<'a> {
    /// The option, for messages.
    pub option: &'a str,
    /// Its value.
    pub path: &'a mut PathBuf,
    /// The ending that decides the format of `-`, without its point.
    pub ending: &'a str,
}

/// What goes to standard output once the command is done. Programs pipe it on; formats need a file to seek
/// in, so that it is written to a temporary one first.
#[derive(Default)]
pub struct StandardOutput {
    folder: Option<ScratchFolder>,
}

impl StandardOutput {
    /// Gives the one output that is named `-` a temporary file.
    ///
    /// Errors: two such outputs; a terminal, which cannot show binary data; no temporary file.
    pub fn of<'a>(outputs: impl Iterator<Item = Output<'a>>) -> Result<Self> {
        let mut taken: Option<(String, ScratchFolder)> = None;
        for Output { option, path, ending } in outputs.filter(|output| output.path.as_os_str() == "-") {
            if let Some((first, _)) = &taken {
                let message =
                    format!("{option}: expected one output on standard output, found {first} there too");
                return Err(BadInput::new(message).hint("name a file for one of them").into());
            }
            let text = ["json", "csv", "html"].contains(&ending);
            if !text && std::io::stdout().is_terminal() {
                let message =
                    format!("{option}: expected standard output to be a file or a program, found a terminal");
                return Err(BadInput::new(message).hint(format!("add > FILE.{ending}, or | PROGRAM")).into());
            }
            let folder = ScratchFolder::create().context("standard output")?;
            *path = folder.path().join(format!("output.{ending}"));
            // A process runs one command line, so the first path is the only one.
            let _ = FILE.set(path.clone());
            taken = Some((option.to_owned(), folder));
        }
        Ok(Self { folder: taken.map(|(_, folder)| folder) })
    }

    /// Sends the content. Errors: a file that was not written, a reader that is gone.
    pub fn send(self) -> Result<()> {
        let (Some(_folder), Some(path)) = (self.folder, FILE.get()) else { return Ok(()) };
        let mut file = std::fs::File::open(path).context("standard output")?;
        let mut stdout = std::io::stdout().lock();
        std::io::copy(&mut file, &mut stdout)?;
        Ok(stdout.flush()?)
    }
}
