//! The CPU: a thread pool of its own, and the instruction set that is found at run time.

mod allocator;
mod assumed;
mod memory;
pub mod simd;
mod small;
mod stop;

use std::sync::OnceLock;

use bytemuck::Zeroable;
use rayon::prelude::*;
use rayspin_core::{Error, Result};

pub use allocator::Allocator;
pub use memory::{
    copied, expect_addresses, expect_memory, largest_cache, memory, peak_memory, prefer_huge_pages,
    process_memory, return_freed_memory, trim_memory, try_reserve, try_with_capacity, zeroed,
};
pub use small::PoolLoop;
pub use stop::{Stop, listening};

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
                // A limit of addresses leaves no room for a stack: a failure of the machine, and not of the
                // option.
                memory::no_stacks(threads).unwrap_or_else(|| {
                    Error::value("threads", "a number that the system can start", format!("{threads} ({e})"))
                })
            })?;
        Ok(Self { pool, level })
    }

    /// Writes 0 to the first value of each memory page, on all threads, so that the system allocates the
    /// pages now and a later copy does not wait for it. What was there is lost. Slices of less than 4 MiB are
    /// left as they are.
    ///
    /// ```
    /// let device = rayspin_device::Device::cpu()?;
    /// let mut image = vec![1.0f32; 2 << 20];
    /// device.cpu_side().take_pages(&mut image);
    /// assert_eq!(image[0], 0.0); // a copy overwrites it
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn take_pages<T: Zeroable + Send>(&self, memory: &mut [T]) {
        const LEAST_BYTES: usize = 4 << 20;
        if size_of_val(memory) >= LEAST_BYTES {
            let page = 4096 / size_of::<T>().clamp(1, 4096);
            self.run(|| {
                memory.par_chunks_mut(page).with_min_len(512).for_each(|page| page[0] = T::zeroed());
            });
        }
    }

    /// Runs `work` inside the pool. `rayon`'s parallel iterators in `work` use only this device's threads. A
    /// caller that is [`listening`] is asked meanwhile whether it still wants the result.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        // A part of small work.
        if small::is_alone() { work() } else { stop::on_pool(&self.pool, work) }
    }

    /// [`Cpu::run`] for work of some microseconds, in the caller's own thread: to wake another one takes
    /// longer. Loops in it are [`PoolLoop`]s.
    ///
    /// ```
    /// let device = rayspin_device::Device::cpu()?;
    /// assert_eq!(device.cpu_side().run_small(|| 1 + 1), 2);
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn run_small<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.pool.current_thread_index().is_some() {
            return work();
        }
        stop::ask_in_time();
        small::alone(work)
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use rayon::prelude::*;
    use rayspin_core::Error;

    use super::{PoolLoop, Stop, listening};
    use crate::Device;

    #[test]
    fn small_work_and_its_loops_stay_in_the_callers_thread() {
        let device = Device::cpu_with_threads(2).unwrap();
        let cpu = device.cpu_side();
        let own = std::thread::current().id();
        let here = || assert_eq!(std::thread::current().id(), own);
        cpu.run_small(|| {
            here();
            cpu.run(here);
            (0..1000).into_par_iter().with_max_len(1).each(|_| here());
            let mut squares = [0; 1000];
            squares.par_chunks_mut(3).enumerate().each_with(
                || 0,
                |seen, (i, part)| {
                    here();
                    assert_eq!(*seen, i);
                    *seen += 1;
                    part.iter_mut().enumerate().for_each(|(j, square)| *square = (3 * i + j).pow(2));
                },
            );
            assert!(squares.iter().enumerate().all(|(i, &square)| square == i * i));
        });
        // A panic ends it, and other work spreads.
        let panics = AssertUnwindSafe(|| cpu.run_small(|| panic!("expected")));
        assert!(catch_unwind(panics).is_err());
        assert_ne!(cpu.run(|| std::thread::current().id()), own);
        cpu.run(|| (0..100).into_par_iter().each(|_| assert_ne!(std::thread::current().id(), own)));
    }

    #[test]
    fn small_work_asks_its_caller_and_hears_the_answer() {
        let device = Device::cpu_with_threads(2).unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let ask = {
            let flag = flag.clone();
            move || flag.store(true, Ordering::Relaxed)
        };
        let ended = listening(&flag, ask, || {
            assert_eq!(device.cpu_side().run_small(|| Stop::of_caller().check()), Ok(()));
            std::thread::sleep(Duration::from_millis(60));
            device.cpu_side().run_small(|| Stop::of_caller().check())
        });
        assert_eq!(ended, Err(Error::Interrupted));
    }
}
