//! Ctrl-C: what is being written disappears, what is complete stays.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

/// Set when a run is to stop by itself.
pub static STOP: AtomicBool = AtomicBool::new(false);
/// Whether a run looks at [`STOP`], to keep what is complete.
static LOOKED_AT: AtomicBool = AtomicBool::new(false);

/// Runs `work`, which ends soon after [`STOP`] is set: the first signal only sets it.
pub fn stoppable<T>(work: impl FnOnce() -> T) -> T {
    LOOKED_AT.store(true, Ordering::SeqCst);
    let value = work();
    LOOKED_AT.store(false, Ordering::SeqCst);
    value
}

/// Installs the handler for SIGINT, SIGTERM and SIGHUP: temporary files are removed, then the process ends with the
/// code that shells give for a signal. A stoppable run gets a word first, and a second signal to end it at once. Once it is
/// installed, another call changes nothing.
pub fn install() -> anyhow::Result<()> {
    let installed = ctrlc::set_handler(|| {
        if LOOKED_AT.load(Ordering::SeqCst) && !STOP.swap(true, Ordering::SeqCst) {
            return;
        }
        rayspin_io::atomic::remove_in_flight();
        // The progress bar hides the cursor and leaves its line unfinished.
        eprint!("\r\x1b[2K\x1b[?25h");
        say!("interrupted: nothing half-written is left");
        std::process::exit(130);
    });
    match installed {
        Err(ctrlc::Error::MultipleHandlers) => Ok(()),
        installed => installed.context("installing the interrupt handler"),
    }
}
