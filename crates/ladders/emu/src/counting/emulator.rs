//! The emulator that counts.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use rayspin_core::Result;

use super::Counts;
use crate::{Emulator, Inner, lock};

impl Emulator {
    /// The same emulator, which counts what kernels do ([`crate::counting`]), with compiled libraries cached
    /// in the folder `cache`. Blocks run in order on one thread, without the special instructions of this
    /// processor: one version of the compiler gives the same numbers on every machine. Errors: the compiler
    /// is not GCC 12 or newer; the thread pool cannot be started.
    pub fn counting(self, cache: Option<PathBuf>) -> Result<Self> {
        let mut compiler = self.compiler;
        if let Some(cache) = cache {
            compiler = compiler.keeping(cache);
        }
        let inner = Inner { counts: Some(Mutex::default()), ..self.inner.afresh(crate::pool(1)?) };
        Ok(Self { compiler: compiler.counting()?, programs: self.programs, inner: Arc::new(inner) })
    }

    /// Counts launches from now on, or runs them without; it counts at first.
    pub fn count(&self, on: bool) {
        self.inner.uncounted.store(!on, Ordering::SeqCst);
    }

    /// Leaves out the blocks that are not counted, or runs them; it runs them at first. Results are then
    /// wrong: for large problems whose blocks need nothing of each other.
    pub fn count_only(&self, on: bool) {
        self.inner.only_counted.store(on, Ordering::SeqCst);
    }

    /// What kernels did since the last call, in the order of their first launches; launches of one kernel
    /// with one grid are one. Empty unless the emulator counts.
    pub fn take_counts(&self) -> Vec<Counts> {
        self.inner.counts.as_ref().map(|counts| std::mem::take(&mut *lock(counts))).unwrap_or_default()
    }

    /// What the compiler says of itself.
    pub fn compiler(&self) -> &str {
        self.compiler.version()
    }
}
