//! The CPU: a thread pool of its own and the instruction set found at run time.

pub mod simd;

use rayspin_core::{Error, Result};

/// A pool of threads and the SIMD level of this machine.
pub struct Cpu {
    pool: rayon::ThreadPool,
    level: simd::Level,
}

impl Cpu {
    pub(crate) fn new(threads: usize, level: simd::Level) -> Result<Self> {
        if threads == 0 {
            return Err(Error::value("threads", "at least 1", 0));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("rayspin-{i}"))
            .build()
            .map_err(|e| {
                Error::value("threads", "a number that the system can start", format!("{threads} ({e})"))
            })?;
        Ok(Self { pool, level })
    }

    /// Runs `work` inside the pool: `rayon`'s parallel iterators in it use this device's threads and no others.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The SIMD level, for [`simd::dispatch!`].
    pub fn level(&self) -> simd::Level {
        self.level
    }

    /// The instruction set's name, for people.
    pub fn simd_name(&self) -> &'static str {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            if self.level.as_avx512().is_some() {
                return "AVX-512";
            }
            if self.level.as_avx2().is_some() {
                return "AVX2+FMA";
            }
            if self.level.as_sse4_2().is_some() {
                return "SSE4.2";
            }
        }
        #[cfg(target_arch = "aarch64")]
        if self.level.as_neon().is_some() {
            return "NEON";
        }
        "baseline"
    }
}

impl std::fmt::Debug for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cpu({} threads, {})", self.threads(), self.simd_name())
    }
}

/// Number of threads that this process may run at once (affinity and container limits included).
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The processor's name as the system states it, or its architecture.
pub fn model_name() -> String {
    let stated = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split(':').nth(1)?.trim().to_owned())
    });
    stated.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Bytes of physical memory and bytes available now, where the system says.
pub fn memory() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    };
    Some((field("MemTotal:")?, field("MemAvailable:")?))
}

/// The most memory this process has held resident so far, in bytes, where the system says.
pub fn peak_memory() -> Option<u64> {
    own_memory("VmHWM:")
}

/// The memory that this process takes beside the arrays it is going to make, in bytes, where the system says: what it
/// holds now, and three quarters of the code of the program and its libraries that is yet to come into memory as it is
/// run (0.65 to 0.9 of it in reconstructions on and off the grid, less in the shortest).
pub fn process_memory() -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let code = maps.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (range, rights, inode) = (fields.next()?, fields.next()?, fields.nth(2)?);
        let (from, to) = range.split_once('-')?;
        let bytes = u64::from_str_radix(to, 16).ok()?.checked_sub(u64::from_str_radix(from, 16).ok()?)?;
        (rights.starts_with("r-x") && inode != "0").then_some(bytes)
    });
    let file = own_memory("RssFile:")?;
    Some(own_memory("RssAnon:")? + file + code.sum::<u64>().saturating_sub(file) * 3 / 4)
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
