//! Copies between pageable host memory and the device through pinned buffers. Each copying thread (a lane)
//! has two buffers: while the device copies one, the thread fills or empties the other. Several threads are
//! needed, because one core copies some 7 GB/s of memory that lies in no cache, and less of new memory whose
//! pages it touches first, while a link carries 55 GB/s (`rayspin-ladder transfers`).

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::{DriverError, result as cu, sys};

use super::Shared;

/// Bytes of a buffer.
const CHUNK: usize = 2 << 20;
/// Maximum number of lanes.
const LANES: usize = 8;
/// Minimum number of chunks for another lane: a thread takes some 20 µs to start, and a core copies a chunk
/// in 300 µs.
const CHUNKS_OF_A_LANE: usize = 2;
/// Smaller copies go through the driver's own buffer.
pub(super) const SMALL: usize = 64 << 10;

pub(super) struct Staging {
    shared: Arc<Shared>,
    /// Maximum number of threads that copy at once.
    threads: usize,
    lanes: Vec<Lane>,
}

type Lane = [Pinned; 2];

/// Maximum bytes of the buffers of `threads` threads.
pub(in crate::cuda) fn bytes(threads: usize) -> u64 {
    (threads.clamp(1, LANES) * 2 * CHUNK) as u64
}

struct Pinned {
    bytes: *mut c_void,
    /// Marks that the last copy out of or into the buffer is done.
    done: sys::CUevent,
}

// SAFETY: a buffer owns its memory, and events may be used from any thread.
unsafe impl Send for Pinned {}

/// # Safety
/// The context is current; `to` begins as many allocated bytes as `from` has.
pub(super) unsafe fn upload_unstaged(shared: &Shared, to: u64, from: &[u8]) -> Result<(), DriverError> {
    // SAFETY: as the caller promises. A copy from pageable memory returns when the bytes are read. For long
    // copies this holds only if the driver stages them, so the call waits for those.
    unsafe {
        cu::memcpy_htod_async(to, from, shared.stream)?;
        if from.len() <= SMALL { Ok(()) } else { cu::stream::synchronize(shared.stream) }
    }
}

/// # Safety
/// The context is current; `from` begins as many allocated bytes as `to` has.
pub(super) unsafe fn download_unstaged(shared: &Shared, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
    // SAFETY: as the caller promises; the call waits for the bytes before the borrow ends.
    unsafe {
        cu::memcpy_dtoh_async(to, from, shared.stream)?;
        cu::stream::synchronize(shared.stream)
    }
}

impl Staging {
    pub(super) fn new(shared: Arc<Shared>, threads: usize) -> Self {
        Self { shared, threads, lanes: Vec::new() }
    }

    /// The lanes of a copy. Makes missing lanes, and fewer of them if pinned memory runs out.
    fn lanes(&mut self, bytes: usize) -> Result<&mut [Lane], DriverError> {
        let wanted = bytes.div_ceil(CHUNK * CHUNKS_OF_A_LANE).clamp(1, self.threads.clamp(1, LANES));
        while self.lanes.len() < wanted {
            match Pinned::new().and_then(|first| Ok([first, Pinned::new()?])) {
                Ok(lane) => self.lanes.push(lane),
                Err(error) if self.lanes.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        let count = wanted.min(self.lanes.len());
        Ok(&mut self.lanes[..count])
    }

    /// # Safety
    /// The context is current; `to` begins as many allocated bytes as `from` has.
    pub(super) unsafe fn upload(&mut self, to: u64, from: &[u8]) -> Result<(), DriverError> {
        if from.len() <= SMALL {
            // SAFETY: as the caller promises.
            return unsafe { upload_unstaged(&self.shared, to, from) };
        }
        // SAFETY: as the caller promises.
        unsafe { self.upload_pieces(to, &[from]) }
    }

    /// # Safety
    /// The context is current; `to` begins as many allocated bytes as all pieces have.
    pub(super) unsafe fn upload_pieces(&mut self, to: u64, pieces: &[&[u8]]) -> Result<(), DriverError> {
        let mut bytes = 0;
        let ends: Vec<usize> = pieces
            .iter()
            .map(|piece| {
                bytes += piece.len();
                bytes
            })
            .collect();
        let shared = self.shared.clone();
        let next = AtomicUsize::new(0);
        on_each(&shared, self.lanes(bytes)?, |lane| {
            for buffer in (0..2).cycle() {
                let buffer = &mut lane[buffer];
                let start = next.fetch_add(CHUNK, Ordering::Relaxed);
                if start >= bytes {
                    break;
                }
                let staged = buffer.bytes((bytes - start).min(CHUNK))?;
                gather(pieces, &ends, start, staged);
                // SAFETY: as the caller promises; the buffer stays as it is until its event has come.
                unsafe {
                    cu::memcpy_htod_async(to + start as u64, staged, shared.stream)?;
                    cu::event::record(buffer.done, shared.stream)?;
                }
            }
            Ok(())
        })
    }

    /// # Safety
    /// The context is current; `from` begins as many allocated bytes as `to` has.
    pub(super) unsafe fn download(&mut self, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
        if to.len() <= SMALL {
            // SAFETY: as the caller promises.
            return unsafe { download_unstaged(&self.shared, from, to) };
        }
        let shared = self.shared.clone();
        let lanes = self.lanes(to.len())?;
        let chunks = Mutex::new(to.chunks_mut(CHUNK).enumerate());
        on_each(&shared, lanes, |lane| {
            let mut on_its_way: Option<(usize, &mut [u8])> = None;
            for buffer in (0..2).cycle() {
                let next = super::lock(&chunks).next();
                if let Some((i, chunk)) = &next {
                    let to = lane[buffer].bytes(chunk.len())?;
                    // SAFETY: as the caller promises; the buffer is read once its event has come.
                    unsafe {
                        cu::memcpy_dtoh_async(to, from + (i * CHUNK) as u64, shared.stream)?;
                        cu::event::record(lane[buffer].done, shared.stream)?;
                    }
                }
                if let Some((other, chunk)) = on_its_way.take() {
                    chunk.copy_from_slice(lane[other].bytes(chunk.len())?);
                }
                let Some((_, chunk)) = next else { break };
                on_its_way = Some((buffer, chunk));
            }
            Ok(())
        })
    }
}

/// Copies the bytes from `start` on of pieces that follow each other; `ends` says where each one ends.
fn gather(pieces: &[&[u8]], ends: &[usize], start: usize, mut to: &mut [u8]) {
    let first = ends.partition_point(|&end| end <= start);
    let mut skipped = pieces.get(first).map_or(0, |piece| start + piece.len() - ends[first]);
    for piece in &pieces[first..] {
        if to.is_empty() {
            break;
        }
        let from = &piece[skipped..];
        let (now, rest) = to.split_at_mut(from.len().min(to.len()));
        now.copy_from_slice(&from[..now.len()]);
        (to, skipped) = (rest, 0);
    }
}

/// Calls `work` with every lane, the first on this thread and each other one on a thread of its own. Waits
/// for all of them and returns the first error.
fn on_each(
    shared: &Shared,
    lanes: &mut [Lane],
    work: impl Fn(&mut Lane) -> Result<(), DriverError> + Sync,
) -> Result<(), DriverError> {
    let Some((first, others)) = lanes.split_first_mut() else { return Ok(()) };
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = others
            .iter_mut()
            .filter_map(|lane| {
                let copy = move || {
                    // SAFETY: the context is retained as long as the machine lives.
                    unsafe { cu::ctx::set_current(shared.context) }?;
                    work(lane)
                };
                // If a thread cannot be started, the others do its share.
                std::thread::Builder::new().spawn_scoped(scope, copy).ok()
            })
            .collect();
        let mut done = work(first);
        for other in others {
            done = done.and(other.join().unwrap_or(Err(DriverError(sys::CUresult::CUDA_ERROR_UNKNOWN))));
        }
        done
    })
}

impl Pinned {
    fn new() -> Result<Self, DriverError> {
        // SAFETY: the context is current; plain pinned memory.
        let bytes = unsafe { cu::malloc_host(CHUNK, 0) }?;
        match cu::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING) {
            Ok(done) => Ok(Self { bytes, done }),
            Err(error) => {
                // SAFETY: the memory is this function's own.
                let _ = unsafe { cu::free_host(bytes) };
                Err(error)
            }
        }
    }

    /// The first bytes of the buffer, once the last copy out of or into it is done.
    fn bytes(&mut self, len: usize) -> Result<&mut [u8], DriverError> {
        // SAFETY: the buffer holds CHUNK bytes, which are set or copied to before they are read. No copy is
        // under way after its event has occurred.
        unsafe {
            cu::event::synchronize(self.done)?;
            Ok(std::slice::from_raw_parts_mut(self.bytes.cast::<u8>(), len.min(CHUNK)))
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let Ok(_entered) = self.shared.enter() else { return };
        for buffer in self.lanes.iter().flatten() {
            // SAFETY: both belong to the buffer. The stream is waited for, so that no copy is under way.
            unsafe {
                let _ = cu::stream::synchronize(self.shared.stream);
                let _ = cu::event::destroy(buffer.done);
                let _ = cu::free_host(buffer.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::gather;

    #[test]
    fn pieces_are_gathered_from_any_byte_on() {
        let all: Vec<u8> = (0..40).collect();
        for cuts in [&[0, 40][..], &[0, 1, 40], &[0, 7, 7, 20, 40], &[0, 0, 39, 40, 40]] {
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &all[cut[0]..cut[1]]).collect();
            let ends = &cuts[1..];
            for start in 0..40 {
                for len in 1..=40 - start {
                    let mut to = vec![255; len];
                    gather(&pieces, ends, start, &mut to);
                    assert_eq!(to, all[start..start + len], "{cuts:?} from {start}");
                }
            }
        }
    }
}
