//! What `benches/peers/turns.py` reads: a line of JSON for each benchmark. `cpu_ms` is what the threads
//! together had of the processor for a run, on Linux: on a machine that others use, too, it says more than
//! the clock.

use rayspin_core::Result;
use rayspin_device::Device;
use rayspin_lab::{Protocol, measure};

/// Milliseconds of processor time that this process's threads had; 0 where the system does not tell.
fn processor_ms() -> f64 {
    let seconds = |thread: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.filter_map(seconds).sum::<f64>() * 1e-6
}

/// Measures `run` and prints its time. `run` gets 0, 1, 2 … in turn.
pub(crate) fn show(device: &Device, name: &str, run: &mut dyn FnMut(usize) -> Result<()>) -> Result<()> {
    let (mut runs, before) = (0, processor_ms());
    let timing = measure(device, &Protocol::default(), |turn| {
        runs += 1;
        run(turn)
    })?;
    let each = (processor_ms() - before) / f64::from(runs);
    println!("{{\"name\": \"{name}\", \"ms\": {:.4}, \"cpu_ms\": {each:.4}}}", 1e3 * timing.median);
    Ok(())
}
