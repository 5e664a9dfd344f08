//! The CPU: a thread pool of its own, and the instruction set that is found at run time.

mod allocator;
mod assumed;
mod memory;
pub mod simd;
mod stop;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rayspin_core::{Error, Result};

pub use allocator::Allocator;
pub use memory::{
    copied, expect_addresses, expect_memory, largest_cache, memory, peak_memory, prefer_huge_pages,
    process_memory, return_freed_memory, trim_memory, try_reserve, try_with_capacity, zeroed,
};
pub use stop::{Stop, listening};

/// A pool of threads and the SIMD level of this machine.
pub struct Cpu {
    pool: rayon::ThreadPool,
    /// One thread for small work; none where the system can start no more.
    alone: OnceLock<Option<rayon::ThreadPool>>,
    /// Whether a caller has that thread.
    taken: AtomicBool,
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
                // A limit of addresses leaves no room for a stack: a failure of the machine, and not of the
                // option.
                memory::no_stacks(threads).unwrap_or_else(|| {
                    Error::value("threads", "a number that the system can start", format!("{threads} ({e})"))
                })
            })?;
        Ok(Self { pool, alone: OnceLock::new(), taken: AtomicBool::new(false), level })
    }

    /// Runs `work` inside the pool. `rayon`'s parallel iterators in `work` use only this device's threads. A
    /// caller that is [`listening`] is asked meanwhile whether it still wants the result.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        // Small work goes on in its own thread.
        let alone = self.alone.get().and_then(Option::as_ref);
        let pool = alone.filter(|alone| alone.current_thread_index().is_some()).unwrap_or(&self.pool);
        stop::on_pool(pool, work)
    }

    /// [`Cpu::run`] on one thread, for work of some microseconds: to wake other threads takes longer. While
    /// another caller has that thread, the work runs in the pool.
    ///
    /// ```
    /// let device = rayspin_device::Device::cpu()?;
    /// assert_eq!(device.cpu_side().run_small(|| 1 + 1), 2);
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn run_small<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        /// Frees the thread at the end, also of a panic.
        struct Taken<'a>(&'a AtomicBool);
        impl Drop for Taken<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        let of_pool = self.threads() == 1 || self.pool.current_thread_index().is_some();
        if of_pool || self.taken.swap(true, Ordering::Acquire) {
            return self.run(work);
        }
        let _taken = Taken(&self.taken);
        let alone = || {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(1);
            builder.thread_name(|_| "rayspin-small".to_owned()).build().ok()
        };
        stop::on_pool(self.alone.get_or_init(alone).as_ref().unwrap_or(&self.pool), work)
    }

    /// [`Cpu::run`] on new threads, as many as the pool has, which end with the work. The memory that
    /// libraries keep for
    /// each thread is freed with them: a matrix product leaves tens of megabytes of packed panels behind.
    pub fn run_on_new_threads<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match rayon::ThreadPoolBuilder::new().num_threads(self.threads()).build() {
            Ok(pool) => stop::on_pool(&pool, work),
            Err(_) => self.run(work),
        }
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
    assumed::cores().unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// The most threads that a program starts on request. More than a few for each core only cost memory, and
/// each has a stack.
pub fn most_threads() -> usize {
    4 * available_threads()
}

/// The processor's name as the system states it, or its architecture.
pub fn model_name() -> String {
    // The system asks every core for its clock when this file is read: a millisecond and more.
    static NAME: OnceLock<String> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split(':').nth(1)?.trim().to_owned())
    };
    NAME.get_or_init(|| {
        assumed::processor().or_else(read).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
    })
    .clone()
}

/// The clock of the fastest core at this moment in MHz; `None` if the system does not report it.
pub fn clock_mhz() -> Option<f64> {
    let governed = (0..available_threads()).filter_map(|core| {
        let path = format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        Some(std::fs::read_to_string(path).ok()?.trim().parse::<f64>().ok()? / 1e3)
    });
    governed.reduce(f64::max).or_else(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
        let lines = text.lines().filter(|line| line.starts_with("cpu MHz"));
        lines.filter_map(|line| line.split(':').nth(1)?.trim().parse().ok()).reduce(f64::max)
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::Device;

    #[test]
    fn small_work_stays_in_its_thread_and_does_not_wait_for_other_small_work() {
        let device = Device::cpu_with_threads(2).unwrap();
        let cpu = device.cpu_side();
        let name = || std::thread::current().name().unwrap_or_default().to_owned();
        // Work inside goes on in the same thread; work of another caller meanwhile finds the pool.
        let (inside, other) = cpu.run_small(|| {
            let other = std::thread::scope(|scope| scope.spawn(|| cpu.run_small(name)).join().unwrap());
            (cpu.run(name), other)
        });
        assert_eq!(inside, "rayspin-small");
        assert!(other.starts_with("rayspin-") && other != inside, "{other}");
        // A panic gives the thread back.
        let panics = AssertUnwindSafe(|| cpu.run_small(|| panic!("expected")));
        assert!(catch_unwind(panics).is_err());
        assert_eq!(cpu.run_small(name), "rayspin-small");
    }
}
