//! What a device asks of the emulator: memory, copies, programs, graphs, times.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{
    Driver, Event, FftPlan, Graph, Module, Program, Properties, Stream, TextureLayout, TextureMemory, Ticket,
};

use crate::{Emulator, Inner, Step, Work, copy_streams, lock, module, texture};

/// What a record does not keep.
const ASYNCHRONOUS: &str = "it copies on streams of its own, beside the kernels";

// SAFETY: memory is the host's, looked up before a copy touches it; all work is done when a call that waits
// for it returns.
#[allow(unsafe_code)]
unsafe impl Driver for Emulator {
    fn properties(&self) -> &Properties {
        &self.inner.properties
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(lock(&self.inner.heap).left())
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        let _order = self.inner.not_recording("allocating emulated GPU memory")?;
        lock(&self.inner.heap).allocate(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: u64) {
        let mut order = lock(&self.inner.order);
        let idle = {
            let mut copies = lock(&self.inner.copies);
            copies.catch_up();
            copies.give_back(address, bytes)
        };
        let freed = match self.inner.frees_later(address) {
            true => Ok(()),
            false => lock(&self.inner.heap).free(address),
        };
        if let Err(error) = idle.and(freed) {
            order.failure.get_or_insert(error);
        }
    }

    fn reads_late(&self, from: &[u8]) -> bool {
        lock(&self.inner.copies).reads_late(from)
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        if self.reads_late(from) {
            let _order = self.inner.not_recording("copying to the emulated GPU")?;
            self.inner.expect(to, from.len() as u64)?;
            self.inner.note(|| Step::Upload { to, bytes: from.to_vec() });
            // SAFETY: the range was just found to be allocated; the rest as the caller promises.
            unsafe {
                lock(&self.inner.copies).upload_late(from.as_ptr(), to as usize as *mut u8, from.len())
            };
            self.inner.written(to, from.len() as u64);
            return Ok(());
        }
        self.inner.ask(Work::Upload { to, bytes: from.to_vec() })
    }

    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        let _order = self.inner.not_recording("copying from the emulated GPU")?;
        self.inner.expect(from, to.len() as u64)?;
        self.inner.note(|| Step::Read(to.len() as u64));
        // SAFETY: the range was just found to be allocated; host slices are elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(from as usize as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    fn pin(&self, bytes: u64) -> Result<*mut u8> {
        let pointer = copy_streams::pin(bytes)?;
        lock(&self.inner.copies).pinned(pointer, bytes);
        Ok(pointer)
    }

    unsafe fn unpin(&self, pointer: *mut u8, bytes: u64) {
        let mut order = lock(&self.inner.order);
        let mut copies = lock(&self.inner.copies);
        copies.unpinned(pointer);
        if let Err(error) = copies.give_back(pointer as u64, bytes) {
            order.failure.get_or_insert(error);
        }
        // SAFETY: as the caller promises.
        unsafe { copy_streams::unpin(pointer, bytes) }
    }

    unsafe fn upload_async(&self, to: u64, from: *const u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        self.inner.note(|| Step::Other(ASYNCHRONOUS));
        self.inner.expect(to, bytes)?;
        self.inner.written(to, bytes);
        // SAFETY: the range was just found to be allocated; the rest as the caller promises.
        unsafe { copy_streams::AsyncCopy::begin(&self.inner, from, to as usize as *mut u8, bytes) }
    }

    unsafe fn download_async(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        self.inner.note(|| Step::Other(ASYNCHRONOUS));
        self.inner.expect(from, bytes)?;
        // SAFETY: as above.
        unsafe { copy_streams::AsyncCopy::begin(&self.inner, from as usize as *const u8, to, bytes) }
    }

    unsafe fn download_in_order(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        self.inner.note(|| Step::Other(ASYNCHRONOUS));
        self.inner.expect(from, bytes)?;
        // SAFETY: the range was just found to be allocated; the rest as the caller promises.
        unsafe { copy_streams::OrderedCopy::begin(&self.inner, from as usize as *const u8, to, bytes) }
    }

    fn order_streams(&self, from: Stream, _to: Stream) -> Result<()> {
        let _order = self.inner.not_recording("waiting for copies of the emulated GPU")?;
        lock(&self.inner.copies).finish(from);
        Ok(())
    }

    unsafe fn queue_upload(&self, stream: Stream, to: u64, from: *const u8, bytes: u64) -> Result<()> {
        self.inner.note(|| Step::Other(ASYNCHRONOUS));
        let _order = self.inner.not_recording("copying to the emulated GPU")?;
        self.inner.expect(to, bytes)?;
        self.inner.written(to, bytes);
        // SAFETY: the range was just found to be allocated; the rest as the caller promises.
        unsafe { lock(&self.inner.copies).upload(stream, from, to as usize as *mut u8, bytes as usize) };
        Ok(())
    }

    unsafe fn queue_download(&self, stream: Stream, from: u64, to: *mut u8, bytes: u64) -> Result<()> {
        self.inner.note(|| Step::Other(ASYNCHRONOUS));
        let _order = self.inner.not_recording("copying from the emulated GPU")?;
        self.inner.expect(from, bytes)?;
        // SAFETY: as above.
        unsafe { lock(&self.inner.copies).download(stream, from as usize as *const u8, to, bytes as usize) };
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        self.inner.ask(Work::Copy { from, to, bytes })
    }

    unsafe fn set_bytes(&self, address: u64, byte: u8, bytes: u64) -> Result<()> {
        self.inner.ask(Work::Set { address, byte, bytes })
    }

    fn texture(&self, layout: &TextureLayout) -> Result<Arc<dyn TextureMemory>> {
        let _order = self.inner.not_recording("making an emulated texture")?;
        Ok(Arc::new(texture::Surface::new(layout, self.inner.clone())?))
    }

    fn offers(&self, program: &Program) -> bool {
        self.programs.as_ref().is_none_or(|list| list.contains(program))
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn Module>> {
        if !self.offers(program) {
            return Err(Error::Device {
                what: format!("loading {}", program.name),
                detail: format!("not among the precompiled programs: {:?}", program.defines),
            });
        }
        Ok(Arc::new(module::Loaded::load(program, &self.compiler, self.inner.clone())?))
    }

    unsafe fn fft(&self, plan: &FftPlan, sign: i32, from: u64, to: u64) -> Result<()> {
        self.inner.ask(Work::Fft { plan: plan.clone(), sign, from, to })
    }

    fn mark(&self) -> Result<Box<dyn Event>> {
        let _order = self.inner.not_recording("marking a time")?;
        Ok(Box::new(Mark(Instant::now())))
    }

    fn seconds(&self, from: &dyn Event, to: &dyn Event) -> Result<f64> {
        match (from.as_any().downcast_ref::<Mark>(), to.as_any().downcast_ref::<Mark>()) {
            (Some(from), Some(to)) => Ok(to.0.saturating_duration_since(from.0).as_secs_f64()),
            _ => Err(Error::value("event", "one of this device", "another device's")),
        }
    }

    fn begin_recording(&self) -> Result<()> {
        self.inner.not_recording("recording")?.recording = Some(Vec::new());
        Ok(())
    }

    fn end_recording(&self) -> Result<Option<Box<dyn Graph>>> {
        let work = lock(&self.inner.order).recording.take().ok_or_else(|| Error::Device {
            what: "recording".to_owned(),
            detail: "none was begun".to_owned(),
        })?;
        Ok(Some(Box::new(Recorded { work, inner: self.inner.clone() })))
    }

    fn synchronize(&self) -> Result<()> {
        let mut order = self.inner.not_recording("waiting for the emulated GPU")?;
        lock(&self.inner.copies).tell();
        match order.failure.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn idle(&self) -> Result<()> {
        let _order = self.inner.not_recording("waiting for the emulated GPU")?;
        lock(&self.inner.copies).settle();
        Ok(())
    }
}

struct Mark(Instant);

impl Event for Mark {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Recorded {
    work: Vec<Work>,
    inner: Arc<Inner>,
}

impl Graph for Recorded {
    fn launch(&self) -> Result<()> {
        let _order = self.inner.not_recording("launching a graph")?;
        self.work.iter().try_for_each(|work| self.inner.perform(work))
    }
}
