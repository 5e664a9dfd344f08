//! Launches some of whose blocks are counted.

#![allow(unsafe_code)]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Launch, Program};

use super::{Callable, Code, NativeKernel, RawCall, named};
use crate::compile::Compiler;
use crate::counting::Counts;
use crate::counting::record::{self, Counter, RawCounting, Recording, Sample};
use crate::counting::symbols::Symbols;
use crate::{Inner, lock};

/// A program that counts, and the same without counting for the blocks that are left out.
pub(super) struct Counted {
    counter: Mutex<Counter>,
    program: Program,
    compiler: Compiler,
    plain: OnceLock<std::result::Result<Arc<Code>, String>>,
}

impl Counted {
    pub(super) fn open(
        path: &std::path::Path,
        code: &Code,
        program: &Program,
        compiler: &Compiler,
    ) -> Result<Self> {
        let missing = |e: libloading::Error| Error::Device {
            what: format!("loading {}", program.name),
            detail: e.to_string(),
        };
        // SAFETY: the library is the emulator's own, with this table; it stays loaded beside this.
        let counter = unsafe {
            let raw = *code._library.get::<*const RawCounting>(b"emu_counting\0").map_err(missing)?;
            Counter::new(raw, Symbols::of(path)?, program.clone(), compiler.has_twin(program))
        };
        Ok(Self {
            counter: Mutex::new(counter),
            program: program.clone(),
            compiler: compiler.uncounted(),
            plain: OnceLock::new(),
        })
    }

    fn plain(&self) -> Result<&Arc<Code>> {
        let made = self.plain.get_or_init(|| {
            let path = self.compiler.library(&self.program).map_err(|e| e.to_string())?;
            Code::open_alone(&path, self.program.name, false).map(Arc::new).map_err(|e| e.to_string())
        });
        made.as_ref().map_err(|detail| Error::Device {
            what: format!("compiling {}", self.program.name),
            detail: detail.clone(),
        })
    }
}

impl Callable {
    /// Runs all blocks in order on this thread, and counts some of them. `None` while nothing is counted.
    ///
    /// # Safety
    /// As for `run`.
    pub(super) unsafe fn run_counted(
        &self,
        inner: &Inner,
        counted: &Counted,
        launch: Launch,
        arguments: &[Vec<u128>],
    ) -> Result<Option<Counts>> {
        let blocks = launch.blocks.iter().map(|&b| u64::from(b)).product::<u64>();
        // SAFETY: as the caller promises.
        let part = |code: &Arc<Code>, call, blocks| unsafe {
            self.part(inner, NativeKernel { code, call }, launch, arguments, blocks)
        };
        if inner.uncounted.load(Ordering::SeqCst) {
            self.uncounted(counted, 0..blocks, &part)?;
            return Ok(None);
        }
        let kernel = self.name.rsplit("::").next().unwrap_or_default();
        let arrays = record::arrays(
            &counted.program,
            kernel,
            &lock(&inner.heap).pieces(),
            &self.variables(),
            &lock(&inner.textures),
            arguments,
        );
        let threads = launch.threads.iter().product::<u32>();
        let mut counter = lock(&counted.counter);
        let mut recording = Recording::new(&mut counter, arrays);
        let others = !inner.only_counted.load(Ordering::SeqCst);
        let mut next = 0;
        while let Some(Sample { block, stands_for }) = recording.sample(next, blocks) {
            if others {
                self.uncounted(counted, next..block, &part)?;
            }
            recording.block(stands_for, threads, || part(&self.code, self.call, block..block + 1))?;
            next += stands_for;
            if others {
                self.uncounted(counted, block + 1..next, &part)?;
            }
        }
        let shared = self.declared.saturating_add(launch.shared);
        Ok(Some(recording.finish(kernel, launch, shared)))
    }

    /// Runs blocks that are not counted by code that tells nothing.
    fn uncounted(
        &self,
        counted: &Counted,
        blocks: std::ops::Range<u64>,
        part: &impl Fn(&Arc<Code>, RawCall, std::ops::Range<u64>) -> Result<()>,
    ) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let plain = counted.plain()?;
        let missing = || Error::value("kernel", "one of the program's", &self.name);
        let kernel = self.name.rsplit("::").next().unwrap_or_default();
        let plain_kernel = plain.kernels().iter().find(|k| named(k.name, kernel)).ok_or_else(missing)?;
        let call = plain_kernel.call.ok_or_else(missing)?;
        copy_variables(&self.code, plain);
        let done = part(plain, call, blocks);
        copy_variables(plain, &self.code);
        done
    }
}

/// Two libraries of one program have variables of their own: the values go along.
fn copy_variables(from: &Code, to: &Code) {
    for (a, b) in from.variables().iter().zip(to.variables()) {
        if a.bytes == b.bytes {
            // SAFETY: both are variables with as many bytes, of different libraries.
            unsafe {
                std::ptr::copy_nonoverlapping(a.address.cast::<u8>(), b.address.cast(), a.bytes as usize)
            };
        }
    }
}
