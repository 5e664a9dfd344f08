//! What a run does to the device, step by step, with all memory that it touches: enough to write the run as a
//! program.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Launch, Program, TextureLayout};

use crate::{Emulator, Inner, Work, lock};

/// One thing that was done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A kernel ran.
    Launch {
        /// Its program.
        program: Arc<Program>,
        /// The kernel.
        kernel: String,
        /// Blocks, threads, shared memory.
        launch: Launch,
        /// The bytes of its arguments, in order.
        arguments: Vec<Vec<u8>>,
    },
    /// The host wrote bytes.
    Upload {
        /// The address of the first.
        to: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Bytes were copied on the device.
    Copy {
        /// Where from.
        from: u64,
        /// Where to.
        to: u64,
        /// How many.
        bytes: u64,
    },
    /// Bytes were set.
    Set {
        /// The address of the first.
        address: u64,
        /// The value of each.
        byte: u8,
        /// How many.
        bytes: u64,
    },
    /// The host read so many bytes.
    Read(u64),
    /// Something that is not kept, in words.
    Other(&'static str),
}

/// Memory at the beginning and at the end of a record.
#[derive(Debug, Clone, Default)]
pub struct RecordedMemory {
    /// The address of its first byte.
    pub address: u64,
    /// What it held when the steps began.
    pub before: Vec<u8>,
    /// What it held at the end.
    pub after: Vec<u8>,
}

/// A `__constant__` or `__device__` variable.
#[derive(Debug, Clone)]
pub struct RecordedVariable {
    /// Its program.
    pub program: Arc<Program>,
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub memory: RecordedMemory,
}

/// A texture.
#[derive(Debug, Clone, Copy)]
pub struct RecordedTexture {
    /// The handle that kernels are given.
    pub handle: u64,
    /// What it looks like.
    pub layout: TextureLayout,
    /// The address of its texels, which are one of the arrays.
    pub texels: u64,
}

/// What a run did.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// All memory of the device, by address.
    pub arrays: Vec<RecordedMemory>,
    /// The variables of all programs.
    pub variables: Vec<RecordedVariable>,
    /// The textures.
    pub textures: Vec<RecordedTexture>,
}

/// A record that is being made.
pub(crate) struct Recorder {
    steps: Vec<Step>,
    /// The number of the step before which memory is kept.
    keep_at: usize,
    arrays: BTreeMap<u64, Vec<u8>>,
    variables: BTreeMap<u64, Vec<u8>>,
    textures: BTreeMap<u64, (TextureLayout, u64)>,
    /// Memory that was freed meanwhile: it stays, so that an address means one array.
    freed: Vec<u64>,
}

/// A variable of a loaded program.
pub(crate) struct NamedVariable {
    pub(crate) program: Arc<Program>,
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// # Safety
/// The range is allocated.
unsafe fn bytes_at(address: u64, bytes: u64) -> Vec<u8> {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(address as usize as *const u8, bytes as usize) }.to_vec()
}

impl Inner {
    /// Notes a step, where steps are recorded.
    pub(crate) fn note(&self, step: impl FnOnce() -> Step) {
        let mut recorder = lock(&self.recorder);
        let Some(recorder) = recorder.as_mut() else { return };
        if recorder.steps.len() == recorder.keep_at {
            self.keep(recorder);
        }
        recorder.steps.push(step());
        recorder.textures.extend(lock(&self.surfaces).iter().map(|(&handle, &surface)| (handle, surface)));
    }

    /// Notes what work is to be done.
    pub(crate) fn note_work(&self, work: &Work) {
        self.note(|| match work {
            Work::Launch { kernel, launch, arguments } => Step::Launch {
                program: kernel.program.clone(),
                kernel: kernel.name.rsplit("::").next().unwrap_or_default().to_owned(),
                launch: *launch,
                arguments: kernel.bytes_of(arguments),
            },
            Work::Upload { to, bytes } => Step::Upload { to: *to, bytes: bytes.clone() },
            Work::Copy { from, to, bytes } => Step::Copy { from: *from, to: *to, bytes: *bytes },
            Work::Set { address, byte, bytes } => Step::Set { address: *address, byte: *byte, bytes: *bytes },
            Work::Fft { .. } => Step::Other("it calls the vendor's Fourier transforms (cuFFT)"),
        });
    }

    /// Whether memory is to be freed at the end of a record.
    pub(crate) fn frees_later(&self, address: u64) -> bool {
        let mut recorder = lock(&self.recorder);
        recorder.as_mut().map(|recorder| recorder.freed.push(address)).is_some()
    }

    fn keep(&self, recorder: &mut Recorder) {
        let pieces = lock(&self.heap).pieces();
        // SAFETY: the heap holds its pieces while it is locked or a record is made, and programs their
        // variables.
        recorder.arrays = pieces.iter().map(|&(at, bytes)| (at, unsafe { bytes_at(at, bytes) })).collect();
        let variables = lock(&self.variables);
        recorder.variables =
            variables.iter().map(|v| (v.address, unsafe { bytes_at(v.address, v.bytes) })).collect();
    }

    fn finish(&self, recorder: Recorder) -> RunRecord {
        let pieces = lock(&self.heap).pieces();
        let memory = |at: u64, bytes: u64, before: &BTreeMap<u64, Vec<u8>>| {
            // SAFETY: as above.
            let after = unsafe { bytes_at(at, bytes) };
            // Memory that was allocated meanwhile began as all memory does.
            let fresh = || vec![crate::memory::POISON; bytes as usize];
            RecordedMemory { address: at, before: before.get(&at).cloned().unwrap_or_else(fresh), after }
        };
        let arrays = pieces.iter().map(|&(at, bytes)| memory(at, bytes, &recorder.arrays)).collect();
        let variables = lock(&self.variables);
        let variables = variables.iter().map(|v| RecordedVariable {
            program: v.program.clone(),
            name: v.name.clone(),
            memory: memory(v.address, v.bytes, &recorder.variables),
        });
        let textures = recorder.textures.iter().map(|(&handle, &(layout, texels))| RecordedTexture {
            handle,
            layout,
            texels,
        });
        RunRecord {
            arrays,
            variables: variables.collect(),
            textures: textures.collect(),
            steps: recorder.steps,
        }
    }
}

impl Emulator {
    /// Records what `work` does to the device. `before` of memory is what it holds before step `keep_at`,
    /// counted from 0. Memory that is freed meanwhile is freed at the end. Errors: another record is being
    /// made; those of `work`.
    pub fn record(&self, keep_at: usize, work: impl FnOnce() -> Result<()>) -> Result<RunRecord> {
        let recorder = Recorder {
            steps: Vec::new(),
            keep_at,
            arrays: BTreeMap::new(),
            variables: BTreeMap::new(),
            textures: BTreeMap::new(),
            freed: Vec::new(),
        };
        {
            let mut own = lock(&self.inner.recorder);
            if own.is_some() {
                let what = "recording of the emulated GPU".to_owned();
                return Err(Error::Device { what, detail: "another record is being made".to_owned() });
            }
            *own = Some(recorder);
        }
        let done = work();
        let recorder = lock(&self.inner.recorder).take();
        let Some(mut recorder) = recorder else { return done.map(|()| RunRecord::default()) };
        let freed = std::mem::take(&mut recorder.freed);
        let record = self.inner.finish(recorder);
        for address in freed {
            lock(&self.inner.heap).free(address)?;
        }
        done.map(|()| record)
    }
}
