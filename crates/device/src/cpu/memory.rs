//! Memory: what there is, what this process holds, how it is taken and how it is given back.

use std::fmt::Display;
use std::sync::OnceLock;

use bytemuck::Zeroable;
use rayspin_core::{Error, Result};

/// Bytes of physical memory, and bytes that this process may take now, where the system says. A limit of the address space
/// (`ulimit -v`) counts.
pub fn memory() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    };
    let available = field("MemAvailable:")?;
    Some((field("MemTotal:")?, addresses_left().map_or(available, |left| left.min(available))))
}

/// Addresses that arrays leave to small allocations and to stacks, which end the process where they fail ([`super::Allocator`]).
const SPARE: u64 = 16 << 20;
/// Allocations from this size on leave them, and fail with an error.
pub(super) const LARGE: u64 = 1 << 20;

/// Bytes of addresses that a limit leaves to arrays; none where there is no limit.
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

/// Whether `bytes` are too many for an address space, or for what a limit leaves of it.
fn beyond_addresses(bytes: Option<usize>) -> bool {
    match bytes {
        Some(bytes) if bytes <= isize::MAX as usize => {
            let bytes = bytes as u64;
            bytes >= LARGE && addresses_left().is_some_and(|left| bytes > left)
        }
        _ => true,
    }
}

/// An empty vector with room for `len` elements: what pushes that many allocates nothing.
///
/// Errors: [`Error::Memory`] when the allocation is refused.
pub fn room<T>(what: impl Display, len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    make_room(what, &mut values, len)?;
    Ok(values)
}

/// Room for `more` elements behind those that `values` has. Errors: as [`room`].
pub fn make_room<T>(what: impl Display, values: &mut Vec<T>, more: usize) -> Result<()> {
    if beyond_addresses(more.checked_mul(size_of::<T>())) || values.try_reserve_exact(more).is_err() {
        return Err(refused::<T>(what, values.len().saturating_add(more)));
    }
    Ok(())
}

/// `len` zeros, in pages that nothing has touched yet. Errors: as [`room`].
pub fn zeroed<T: Zeroable>(what: impl Display, len: usize) -> Result<Vec<T>> {
    // `try_zeroed_vec` panics where the bytes exceed the address space.
    if beyond_addresses(len.checked_mul(size_of::<T>())) {
        return Err(refused::<T>(what, len));
    }
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| refused::<T>(what, len))
}

/// A copy of `values`. Errors: as [`room`].
pub fn copied<T: Copy>(what: impl Display, values: &[T]) -> Result<Vec<T>> {
    let mut copy = room(what, values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// That this process may take `bytes` more: what is going to be taken in many small parts is refused as a whole.
///
/// Errors: as [`room`].
pub fn expect_memory(what: impl Display, bytes: u64) -> Result<()> {
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    if memory().is_some_and(|(_, available)| bytes > available) {
        return Err(refused::<u8>(what, len));
    }
    room::<u8>(what, len).map(drop)
}

/// That a limit of the address space, where there is one, leaves `bytes` of addresses: for what reserves more than it touches.
///
/// Errors: as [`room`].
pub fn expect_addresses(what: impl Display, bytes: impl FnOnce() -> u64) -> Result<()> {
    let Some(left) = addresses_left() else { return Ok(()) };
    let bytes = bytes();
    if bytes <= left {
        Ok(())
    } else {
        Err(refused::<u8>(what, usize::try_from(bytes).unwrap_or(usize::MAX)))
    }
}

/// Bytes of the largest cache of a core, or 0 where the system does not say.
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

/// The most memory this process has held resident so far, in bytes, where the system says.
pub fn peak_memory() -> Option<u64> {
    own_memory("VmHWM:")
}

/// The memory that this process takes beside the arrays it is going to make, in bytes, where the system says: what it
/// holds, with the code of the program and its libraries, which is brought into memory for that. Code otherwise comes as
/// it is run, and how much of it does depends on the run.
///
/// Where the system cannot be told to (Linux before 5.14), three quarters of the code that is not there yet are counted
/// (0.65 to 0.9 of it in reconstructions on and off the grid, less in the shortest).
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

/// Brings the pages of a file's mapping into memory; whether that is done.
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
        // SAFETY: madvise(2) with this advice reads the pages of a range and changes nothing; where the range is not
        // mapped any more, or the advice unknown, it fails.
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

/// Arrays from this size on are the system's own as soon as they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const RETURNED_BYTES: std::ffi::c_int = 1 << 20;

/// Gives back what small arrays have left behind: pages of the heap that nothing lies on. Worth while after many small
/// arrays were freed between others that stay. Only the GNU allocator is told to.
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

/// From now on memory of freed arrays goes back to the system at once. The GNU allocator otherwise keeps up to 64 MiB of
/// it, more the larger the arrays were, and a process' peak depends on what it did before. Elsewhere this does nothing.
#[allow(unsafe_code)]
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const TRIM_THRESHOLD: std::ffi::c_int = -1;
        const MMAP_THRESHOLD: std::ffi::c_int = -3;
        unsafe extern "C" {
            fn mallopt(parameter: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
        }
        // SAFETY: mallopt(3) takes any integers and may be called at any time; these parameters exist since glibc 2.0.
        unsafe {
            mallopt(MMAP_THRESHOLD, RETURNED_BYTES);
            mallopt(TRIM_THRESHOLD, RETURNED_BYTES);
        }
    }
}

/// Asks for large pages (2 MiB rather than 4 KiB) under memory that is going to be written for the first time, in no
/// particular order: fewer page faults, and fewer misses of the address translation. Memory of a few MiB or less is left
/// as it is, and so is all but Linux'.
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
            // SAFETY: the range lies within `memory`. The advice changes no contents, and a system without large pages, or
            // with larger small ones, refuses it.
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
            assert_eq!(needed(room::<f64>(what(), len)), bytes);
            assert_eq!(needed(zeroed::<f64>(what(), len)), bytes);
        }
        assert_eq!(needed(make_room(what(), &mut vec![0u8; 3], isize::MAX as usize)), isize::MAX as u64 + 3);
        assert_eq!(needed(expect_memory(what(), 1 << 60)), 1 << 60);
        assert_eq!(needed(expect_memory(what(), u64::MAX)), u64::MAX);
        expect_memory("a page", 4096).unwrap();
    }

    #[test]
    fn memory_that_is_there_is_given() {
        let empty = room::<u32>("numbers", 100).unwrap();
        assert!(empty.is_empty() && empty.capacity() >= 100);
        assert_eq!(zeroed::<u16>("numbers", 3).unwrap(), [0; 3]);
        assert_eq!(copied("numbers", &[1, 2]).unwrap(), [1, 2]);
        assert!(zeroed::<f64>("none", 0).unwrap().is_empty());
    }
}
