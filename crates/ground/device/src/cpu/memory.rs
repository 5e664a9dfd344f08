//! Memory of the machine and of this process: measuring, allocating, and giving it back to the system.

use std::fmt::Display;
use std::sync::OnceLock;

use bytemuck::Zeroable;
use rayspin_core::{Error, Result};

use super::allocator::answered;

/// Bytes of physical memory and bytes that this process may take now; `None` if the system does not report
/// them. A limit of the address space (`ulimit -v`) counts.
pub fn memory() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    };
    let available = field("MemAvailable:")?;
    Some((field("MemTotal:")?, addresses_left().map_or(available, |left| left.min(available))))
}

/// Bytes of address space that arrays leave to small allocations and stacks. If one of those fails, the
/// process ends ([`super::Allocator`]).
const SPARE: u64 = 16 << 20;
/// Allocations of at least this size leave the [`SPARE`] bytes free, and fail with an error.
const LARGE: u64 = 1 << 20;

/// Bytes of address space that a limit leaves to arrays; `None` without a limit.
fn addresses_left() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    let read = || -> Option<u64> {
        let text = std::fs::read_to_string("/proc/self/limits").ok()?;
        let line = text.lines().find(|line| line.starts_with("Max address space"))?;
        line.split_whitespace().nth(3)?.parse().ok()
    };
    let limit = (*LIMIT.get_or_init(read))?;
    Some(limit.saturating_sub(own_memory("VmSize:")?).saturating_sub(SPARE))
}

/// Whether `bytes` exceed the address space, or the rest that a limit leaves.
fn beyond_addresses(bytes: Option<usize>) -> bool {
    match bytes {
        Some(bytes) if bytes <= isize::MAX as usize => {
            let bytes = bytes as u64;
            bytes >= LARGE && addresses_left().is_some_and(|left| bytes > left)
        }
        _ => true,
    }
}

/// An empty vector with capacity for `len` elements.
///
/// Errors: [`Error::Memory`] when the allocation is refused.
pub fn try_with_capacity<T>(what: impl Display, len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    try_reserve(what, &mut values, len)?;
    Ok(values)
}

/// Reserves capacity for `more` elements in addition to the present ones. Errors: as [`try_with_capacity`].
pub fn try_reserve<T>(what: impl Display, values: &mut Vec<T>, more: usize) -> Result<()> {
    if beyond_addresses(more.checked_mul(size_of::<T>()))
        || answered(|| values.try_reserve_exact(more)).is_err()
    {
        return Err(refused::<T>(what, values.len().saturating_add(more)));
    }
    Ok(())
}

/// `len` zeros, in pages that nothing has touched yet. Errors: as [`try_with_capacity`].
pub fn zeroed<T: Zeroable>(what: impl Display, len: usize) -> Result<Vec<T>> {
    // `try_zeroed_vec` panics if the bytes exceed the address space.
    if beyond_addresses(len.checked_mul(size_of::<T>())) {
        return Err(refused::<T>(what, len));
    }
    answered(|| bytemuck::allocation::try_zeroed_vec(len)).map_err(|()| refused::<T>(what, len))
}

/// A copy of `values`. Errors: as [`try_with_capacity`].
pub fn copied<T: Copy>(what: impl Display, values: &[T]) -> Result<Vec<T>> {
    let mut copy = try_with_capacity(what, values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Checks that this process may take `bytes` more. Call this before many small allocations, so that they fail
/// together with one error.
///
/// Errors: as [`try_with_capacity`].
pub fn expect_memory(what: impl Display, bytes: u64) -> Result<()> {
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    if memory().is_some_and(|(_, available)| bytes > available) {
        return Err(refused::<u8>(what, len));
    }
    try_with_capacity::<u8>(what, len).map(drop)
}

/// The error of threads that cannot start because a limit of the address space leaves no room for their
/// stacks; none without such a limit.
pub(super) fn no_stacks(threads: usize) -> Option<Error> {
    /// What the standard library gives a thread.
    const STACK: usize = 2 << 20;
    addresses_left()?;
    Some(refused::<u8>(format_args!("stacks of {threads} threads"), threads.saturating_mul(STACK)))
}

/// Checks that a limit of the address space, if there is one, leaves `bytes`. Call this before code that
/// reserves more memory than it touches.
///
/// Errors: as [`try_with_capacity`].
pub fn expect_addresses(what: impl Display, bytes: impl FnOnce() -> u64) -> Result<()> {
    let Some(left) = addresses_left() else { return Ok(()) };
    let bytes = bytes();
    if bytes <= left {
        Ok(())
    } else {
        Err(refused::<u8>(what, usize::try_from(bytes).unwrap_or(usize::MAX)))
    }
}

/// Bytes of a core's largest cache, or 0 if the system does not report it.
pub fn largest_cache() -> u64 {
    let bytes = |index: u32| -> Option<u64> {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.trim().strip_suffix('K')?.parse::<u64>().ok()? << 10)
    };
    (0..5).filter_map(bytes).max().unwrap_or(0)
}

fn refused<T>(what: impl Display, len: usize) -> Error {
    Error::Memory {
        what: what.to_string(),
        needed: (len as u64).saturating_mul(size_of::<T>() as u64),
        available: memory().map_or(0, |(_, available)| available),
    }
}

/// Peak resident memory of this process in bytes; `None` if the system does not report it.
pub fn peak_memory() -> Option<u64> {
    own_memory("VmHWM:")
}

/// The memory in bytes that this process takes in addition to the arrays that it will allocate; `None` if the
/// system does not report it. It counts the memory held now and the code of the program and its libraries.
/// The call brings that code into memory. Otherwise code is loaded when it first runs, and the amount depends
/// on the run.
///
/// Linux before 5.14 cannot load the code in advance. The result then counts three quarters of the code that
/// is not loaded yet (reconstructions on and off the grid load 0.65 to 0.9 of it, the shortest ones less).
pub fn process_memory() -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut absent = 0;
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (range, rights, inode) = (fields.next()?, fields.next()?, fields.nth(2)?);
        let (from, to) = range.split_once('-')?;
        let from = usize::from_str_radix(from, 16).ok()?;
        let bytes = usize::from_str_radix(to, 16).ok()?.checked_sub(from)?;
        if rights.starts_with("r-x") && inode != "0" && !populate(from, bytes) {
            absent += bytes as u64;
        }
    }
    let file = own_memory("RssFile:")?;
    Some(own_memory("RssAnon:")? + file + absent.saturating_sub(file) * 3 / 4)
}

/// Brings the pages of a file's mapping into memory. Returns whether the system did so.
#[allow(unsafe_code)]
fn populate(from: usize, bytes: usize) -> bool {
    #[cfg(target_os = "linux")]
    {
        const POPULATE_READ: std::ffi::c_int = 22;
        unsafe extern "C" {
            fn madvise(
                address: *mut std::ffi::c_void,
                length: usize,
                advice: std::ffi::c_int,
            ) -> std::ffi::c_int;
        }
        // SAFETY: madvise(2) with this advice reads the pages of a range and changes nothing. It fails if the
        // range is no longer mapped or the advice is unknown.
        unsafe { madvise(std::ptr::with_exposed_provenance_mut(from), bytes, POPULATE_READ) == 0 }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, bytes);
        false
    }
}

fn own_memory(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// Arrays of at least this size go back to the system as soon as they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const RETURNED_BYTES: std::ffi::c_int = 1 << 20;

/// Gives empty pages of the heap back to the system. This helps after many small arrays were freed between
/// others that stay. It acts on the GNU allocator only.
#[allow(unsafe_code)]
pub fn trim_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: malloc_trim(3) may be called at any time, from any thread.
        unsafe {
            malloc_trim(0);
        }
    }
}

/// Makes the memory of freed arrays go back to the system at once. Otherwise the GNU allocator keeps up to 64
/// MiB, more after larger arrays, and the peak of a process depends on its past. With other allocators this
/// does nothing.
#[allow(unsafe_code)]
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const TRIM_THRESHOLD: std::ffi::c_int = -1;
        const MMAP_THRESHOLD: std::ffi::c_int = -3;
        unsafe extern "C" {
            fn mallopt(parameter: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
        }
        // SAFETY: mallopt(3) takes any integers and may be called at any time; these parameters exist since
        // glibc 2.0.
        unsafe {
            mallopt(MMAP_THRESHOLD, RETURNED_BYTES);
            mallopt(TRIM_THRESHOLD, RETURNED_BYTES);
        }
    }
}

/// Requests large pages (2 MiB instead of 4 KiB) for memory that will be written for the first time in no
/// particular order. This causes fewer page faults and fewer misses in address translation. It acts on Linux
/// only, and only on more than a few MiB.
#[allow(unsafe_code)]
pub fn prefer_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const LEAST_BYTES: usize = 4 << 20;
        const PAGE: usize = 4096;
        const MADV_HUGEPAGE: std::ffi::c_int = 14;
        unsafe extern "C" {
            fn madvise(
                address: *mut std::ffi::c_void,
                len: usize,
                advice: std::ffi::c_int,
            ) -> std::ffi::c_int;
        }
        let bytes = size_of_val(memory);
        let start = memory.as_mut_ptr().cast::<u8>();
        let before = start.align_offset(PAGE);
        if bytes >= LEAST_BYTES && before < bytes {
            // SAFETY: the range lies within `memory`. The advice changes no contents. A system without large
            // pages, or with larger normal pages, refuses it.
            unsafe {
                madvise(start.add(before).cast(), bytes - before, MADV_HUGEPAGE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed<T: std::fmt::Debug>(refused: Result<T>) -> u64 {
        match refused {
            Err(Error::Memory { what, needed, .. }) => {
                assert_eq!(what, "samples of 3 coils");
                needed
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn refused_memory_is_an_error_that_says_how_much() {
        let coils = 3;
        let what = || format!("samples of {coils} coils");
        for len in [usize::MAX, usize::MAX / 8, 1 << 56] {
            let bytes = (len as u64).saturating_mul(8);
            assert_eq!(needed(try_with_capacity::<f64>(what(), len)), bytes);
            assert_eq!(needed(zeroed::<f64>(what(), len)), bytes);
        }
        assert_eq!(
            needed(try_reserve(what(), &mut vec![0u8; 3], isize::MAX as usize)),
            isize::MAX as u64 + 3
        );
        assert_eq!(needed(expect_memory(what(), 1 << 60)), 1 << 60);
        assert_eq!(needed(expect_memory(what(), u64::MAX)), u64::MAX);
        expect_memory("a page", 4096).unwrap();
    }

    #[test]
    fn memory_that_is_there_is_given() {
        let empty = try_with_capacity::<u32>("numbers", 100).unwrap();
        assert!(empty.is_empty() && empty.capacity() >= 100);
        assert_eq!(zeroed::<u16>("numbers", 3).unwrap(), [0; 3]);
        assert_eq!(copied("numbers", &[1, 2]).unwrap(), [1, 2]);
        assert!(zeroed::<f64>("none", 0).unwrap().is_empty());
    }
}
