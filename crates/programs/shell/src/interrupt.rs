//! Ctrl-C: what is being written disappears, what is complete stays.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context;
use rayspin_io::atomic;

/// Set when a run is to stop by itself.
pub static STOP: AtomicBool = AtomicBool::new(false);
/// Runs that look at [`STOP`], to keep what is complete.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// Runs `work`, which ends soon after [`STOP`] is set: the first signal only sets it.
pub fn stoppable<T>(work: impl FnOnce() -> T) -> T {
    LOOKING.fetch_add(1, Ordering::SeqCst);
    let value = work();
    LOOKING.fetch_sub(1, Ordering::SeqCst);
    value
}

/// Installs the handler for SIGINT, SIGTERM and SIGHUP: temporary files are removed, then the process ends
/// with the code that shells give for a signal. No output gets its name meanwhile, and no other thread ends
/// the process with a code of its own. A stoppable run gets a word first, and a second signal to end it at
/// once. Once it is installed, another call changes nothing.
pub fn install() -> anyhow::Result<()> {
    let installed = ctrlc::set_handler(|| {
        if LOOKING.load(Ordering::SeqCst) > 0 && !STOP.swap(true, Ordering::SeqCst) {
            return;
        }
        // Held until the process has ended.
        let mut names = atomic::hold();
        let left = names.remove_in_flight();
        // The progress bar hides the cursor and leaves its line unfinished.
        let _ = write!(std::io::stderr(), "\r\x1b[2K\x1b[?25h");
        match &left[..] {
            [] => say!("interrupted: nothing half-written is left"),
            some => say!(
                "interrupted: could not remove {}",
                some.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
            ),
        }
        std::process::exit(130);
    });
    match installed {
        Err(ctrlc::Error::MultipleHandlers) => Ok(()),
        installed => installed.context("installing the interrupt handler"),
    }
}

/// Waits for the handler where a signal has come: it decides how the process ends.
pub(crate) fn yield_to_handler() {
    drop(atomic::hold());
}
