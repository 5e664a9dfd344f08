//! An allocator for programs. If an allocation fails that nobody can answer, the program ends with one line.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Whether the allocation under way returns an error when it is refused. Without destructor, so that a
    /// thread may read it until its end.
    static ANSWERED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `request`, whose allocations may be refused: [`Allocator`] then returns a null pointer.
pub(super) fn answered<T>(request: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ANSWERED.set(self.0);
        }
    }
    let _before = Before(ANSWERED.replace(true));
    request()
}

/// The system's allocator. If it refuses a request, the process ends with one line on stderr and exit code 1.
///
/// The standard library cannot return an error for most requests: lists that grow, strings, threads. The
/// process would end with a signal. [`try_with_capacity`](super::try_with_capacity) and similar functions
/// return an error instead, and the process goes on. Only programs should install this allocator; a library
/// must leave the choice to its programs.
///
/// ```
/// use rayspin_device::cpu::{Allocator, try_with_capacity};
///
/// #[global_allocator]
/// static ALLOCATOR: Allocator = Allocator;
///
/// assert!(try_with_capacity::<u8>("an array", isize::MAX as usize).is_err());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

// SAFETY: every call passes the caller's arguments to the system's allocator and returns its result.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.realloc(pointer, layout, size) }, size)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[inline]
fn granted(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() && !ANSWERED.get() {
        end(bytes);
    }
    pointer
}

/// Prints one line without allocating, and ends the process.
#[cold]
#[inline(never)]
fn end(bytes: usize) {
    #[cfg(unix)]
    {
        use std::sync::atomic::{AtomicBool, Ordering};
        unsafe extern "C" {
            fn write(file: std::ffi::c_int, bytes: *const std::ffi::c_void, count: usize) -> isize;
            fn _exit(code: std::ffi::c_int) -> !;
        }
        static ENDING: AtomicBool = AtomicBool::new(false);
        if ENDING.swap(true, Ordering::Relaxed) {
            // Another thread prints the line and ends the process.
            loop {
                std::thread::yield_now();
            }
        }
        let mut line = [0; LINE];
        let line = words(bytes, &mut line);
        // SAFETY: write(2) reads as many bytes as the slice has. _exit(2) runs nothing that could allocate.
        unsafe {
            write(2, line.as_ptr().cast(), line.len());
            _exit(1)
        }
    }
    // The standard library ends the process with its own message.
    #[cfg(not(unix))]
    let _ = bytes;
}

#[cfg(any(unix, test))]
const LINE: usize = 160;

/// Writes the line for a refused request of `bytes` bytes into `line`.
#[cfg(any(unix, test))]
fn words(bytes: usize, line: &mut [u8; LINE]) -> &[u8] {
    const BEFORE: &[u8] = b"error: the system has no ";
    const AFTER: &[u8] = b" bytes of memory left for this process: less must be computed at once, or a limit (ulimit -v) raised\n";
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = bytes;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut len = 0;
    for part in [BEFORE, &digits[first..], AFTER] {
        line[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    &line[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_bytes() {
        for bytes in [0, 7, 10, 65_536, usize::MAX] {
            let mut line = [0; LINE];
            let text = String::from_utf8(words(bytes, &mut line).to_vec()).unwrap();
            assert!(
                text.starts_with(&format!("error: the system has no {bytes} bytes of memory left")),
                "{text}"
            );
            assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
        }
    }

    #[test]
    fn requests_with_an_answer_are_refused_and_others_granted() {
        let layout = |size| Layout::from_size_align(size, 64).unwrap();
        assert!(!ANSWERED.get());
        assert!(answered(|| answered(|| ANSWERED.get()) && ANSWERED.get()));
        assert!(std::panic::catch_unwind(|| answered(|| panic!("unwinds"))).is_err());
        assert!(!ANSWERED.get());
        // SAFETY: sizes are not 0; each pointer is used within its size and freed with its layout.
        unsafe {
            assert!(answered(|| Allocator.alloc(layout(1 << 62))).is_null());
            assert!(answered(|| Allocator.alloc_zeroed(layout(1 << 62))).is_null());
            let small = Allocator.alloc(layout(100));
            small.write_bytes(7, 100);
            assert!(answered(|| Allocator.realloc(small, layout(100), 1 << 62)).is_null());
            let grown = Allocator.realloc(small, layout(100), 5000);
            assert!(grown.addr() % 64 == 0 && (0..100).all(|i| grown.add(i).read() == 7));
            Allocator.dealloc(grown, layout(5000));
            let zeros = Allocator.alloc_zeroed(layout(300));
            assert!((0..300).all(|i| zeros.add(i).read() == 0));
            Allocator.dealloc(zeros, layout(300));
        }
    }
}
