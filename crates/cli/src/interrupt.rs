//! Ctrl-C: what is being written disappears, what is complete stays.

use anyhow::Context;

/// Installs the handler for SIGINT, SIGTERM and SIGHUP: temporary files are removed, then the process ends with the
/// code that shells give for a signal.
pub(crate) fn install() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        rayspin::io::atomic::remove_in_flight();
        // The progress bar hides the cursor and leaves its line unfinished.
        eprint!("\r\x1b[2K\x1b[?25h");
        say!("interrupted: nothing half-written is left");
        std::process::exit(130);
    })
    .context("installing the interrupt handler")
}
