//! A list of kernel launches, so that a tool can examine a variant without reading its code.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::{Kernel, Launch, Program, Resources, lock};

/// One launch of a kernel.
#[derive(Debug, Clone)]
pub struct Launched {
    /// The program in the form that was compiled.
    pub program: Arc<Program>,
    /// The kernel.
    pub kernel: String,
    /// Blocks, threads, shared memory.
    pub launch: Launch,
    /// The resources that a thread and a block take.
    pub resources: Resources,
    /// Number of blocks that one multiprocessor holds at once; 0 if the driver does not know.
    pub held: u32,
}

/// Collects launches while tracing is on.
#[derive(Debug, Default)]
pub(super) struct Trace {
    on: AtomicBool,
    launches: Mutex<Vec<Launched>>,
}

impl Trace {
    pub(super) fn begin(&self) {
        lock(&self.launches).clear();
        self.on.store(true, Ordering::Release);
    }

    pub(super) fn end(&self) -> Vec<Launched> {
        self.on.store(false, Ordering::Release);
        std::mem::take(&mut *lock(&self.launches))
    }

    /// Costs one read of a flag while tracing is off.
    pub(super) fn add(&self, kernel: &Kernel, launch: Launch) {
        if !self.on.load(Ordering::Acquire) {
            return;
        }
        let threads = launch.threads.iter().product();
        lock(&self.launches).push(Launched {
            program: kernel.program.clone(),
            kernel: kernel.name.rsplit("::").next().unwrap_or_default().to_owned(),
            launch,
            resources: kernel.resources(),
            held: kernel.occupancy(threads, launch.shared).unwrap_or(0),
        });
    }
}
