//! The emulator that checks.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rayspin_core::Result;

use super::Fault;
use crate::memory::Heap;
use crate::{Emulator, Inner, lock};

impl Emulator {
    /// The same emulator, which looks for races and memory errors ([`crate::checking`]), with compiled
    /// libraries cached in the folder `cache`. Blocks run in order on one thread; a kernel takes about 30
    /// times as long. Errors: the compiler is not GCC 12 or newer; the thread pool cannot be started.
    pub fn checking(self, cache: Option<PathBuf>) -> Result<Self> {
        let mut compiler = self.compiler;
        if let Some(cache) = cache {
            compiler = compiler.keeping(cache);
        }
        let afresh = self.inner.afresh(crate::pool(1)?);
        let heap = Mutex::new(Heap::new(afresh.properties.memory, true));
        let inner = Inner { faults: Some(Mutex::default()), heap, ..afresh };
        Ok(Self { compiler: compiler.checking()?, programs: self.programs, inner: Arc::new(inner) })
    }

    /// What was found since the last call, each pair of lines once. Empty unless the emulator checks.
    pub fn take_faults(&self) -> Vec<Fault> {
        self.inner.faults.as_ref().map(|faults| std::mem::take(&mut *lock(faults))).unwrap_or_default()
    }
}
