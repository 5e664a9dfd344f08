//! The two copy streams, one for each direction. A GPU has a copy engine for each direction.

use std::sync::{Arc, Mutex};

use cudarc::driver::{DriverError, result as cu, sys};
use rayspin_core::{Error, Result};

use super::{Shared, failed};
use crate::cuda::driver::Stream;
use crate::cuda::{Ticket, lock};

pub(super) struct CopyStreams {
    shared: Arc<Shared>,
    /// To the device and to the host, each made when first used.
    streams: [Mutex<Option<OwnedStream>>; 2],
    /// Orders two streams. A wait keeps what the event had recorded when it was queued, so one event serves
    /// all; to make and destroy one takes longer than the order itself.
    order: Mutex<Option<Copied>>,
}

struct OwnedStream(sys::CUstream);

// SAFETY: a stream may be used from any thread that makes the context current.
unsafe impl Send for OwnedStream {}

/// The end of a copy.
struct Copied {
    event: sys::CUevent,
    shared: Arc<Shared>,
}

// SAFETY: as for streams.
unsafe impl Send for Copied {}
unsafe impl Sync for Copied {}

impl CopyStreams {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, streams: [Mutex::new(None), Mutex::new(None)], order: Mutex::new(None) }
    }

    /// The CUDA stream behind a [`Stream`].
    pub(super) fn stream(&self, which: Stream) -> Result<sys::CUstream> {
        let place = match which {
            Stream::Work => return Ok(self.shared.stream),
            Stream::Foreign(stream) => {
                return Ok(std::ptr::with_exposed_provenance_mut(stream.handle() as usize));
            }
            Stream::Upload => &self.streams[0],
            Stream::Download => &self.streams[1],
        };
        let mut stream = lock(place);
        match &*stream {
            Some(OwnedStream(stream)) => Ok(*stream),
            None => {
                let made = cu::stream::create(cu::stream::StreamKind::NonBlocking);
                Ok(stream.insert(OwnedStream(made.map_err(failed("making a stream"))?)).0)
            }
        }
    }

    /// Makes work that is queued on `to` from now on wait for all work queued on `from` so far. The context
    /// is current.
    pub(super) fn order(&self, from: Stream, to: Stream) -> Result<()> {
        let (from, to) = (self.stream(from)?, self.stream(to)?);
        let what = "ordering two streams";
        let mut order = lock(&self.order);
        let event = match &mut *order {
            Some(event) => event,
            none => {
                let event = cu::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
                none.insert(Copied { event: event.map_err(failed(what))?, shared: self.shared.clone() })
            }
        };
        // SAFETY: event and streams are of this context and live.
        unsafe {
            cu::event::record(event.event, from).map_err(failed(what))?;
            wait_event(to, event.event)
        }
    }

    /// Queues a copy on a copy stream by calling `copy`, after the work queued so far.
    ///
    /// # Safety
    /// The context is current; `copy` queues a copy on the stream that it gets.
    pub(super) unsafe fn begin(
        &self,
        direction: usize,
        copy: impl FnOnce(sys::CUstream) -> std::result::Result<(), DriverError>,
    ) -> Result<Arc<dyn Ticket>> {
        let what = "copying beside the GPU's work";
        let mut state = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: a place to write to, and our own stream.
        unsafe { sys::cuStreamIsCapturing(self.shared.stream, &mut state) }.result().map_err(failed(what))?;
        if state != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            let detail = "not possible while work is recorded".to_owned();
            return Err(Error::Device { what: what.to_owned(), detail });
        }
        let stream = self.stream(if direction == 0 { Stream::Upload } else { Stream::Download })?;
        let event = || cu::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(failed(what));
        let ticket = |event| Copied { event, shared: self.shared.clone() };
        let (before, after) = (ticket(event()?), ticket(event()?));
        // SAFETY: events and streams are of this context and live; an event that is destroyed while waited
        // for goes later.
        unsafe {
            cu::event::record(before.event, self.shared.stream).map_err(failed(what))?;
            wait_event(stream, before.event)?;
            copy(stream).map_err(failed(what))?;
            cu::event::record(after.event, stream).map_err(failed(what))?;
        }
        Ok(Arc::new(after))
    }
}

/// Queues a copy on the stream of all other work by calling `copy`.
///
/// # Safety
/// The context is current; `copy` queues a copy on the stream that it gets.
pub(super) unsafe fn in_order(
    shared: &Arc<Shared>,
    copy: impl FnOnce(sys::CUstream) -> std::result::Result<(), DriverError>,
) -> Result<Arc<dyn Ticket>> {
    let what = "copying from the GPU";
    let event = cu::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(failed(what))?;
    let after = Copied { event, shared: shared.clone() };
    copy(shared.stream).map_err(failed(what))?;
    // SAFETY: event and stream are of this context and live.
    unsafe { cu::event::record(after.event, shared.stream) }.map_err(failed(what))?;
    Ok(Arc::new(after))
}

/// # Safety
/// Both are of the current context and live.
unsafe fn wait_event(stream: sys::CUstream, event: sys::CUevent) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { cu::stream::wait_event(stream, event, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
        .map_err(failed("waiting for a copy"))
}

impl Ticket for Copied {
    fn join(&self) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: stream and event live.
        unsafe { wait_event(self.shared.stream, self.event) }
    }

    fn wait(&self) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: the event lives and was recorded.
        unsafe { cu::event::synchronize(self.event) }.map_err(failed("waiting for a copy"))
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: the event is our own.
            let _ = unsafe { cu::event::destroy(self.event) };
        }
    }
}

impl Drop for CopyStreams {
    fn drop(&mut self) {
        let Ok(_entered) = self.shared.enter() else { return };
        for stream in &self.streams {
            if let Some(OwnedStream(stream)) = lock(stream).take() {
                // SAFETY: the stream is our own; its copies are done first.
                let _ = unsafe { cu::stream::synchronize(stream).and_then(|()| cu::stream::destroy(stream)) };
            }
        }
    }
}
