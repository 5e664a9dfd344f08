use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::available_threads;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_tune::limits::Rates;

use super::Effort;

/// The rates, and whether other programs took part of the cores meanwhile.
pub(super) fn measure(cpu: &Cpu, effort: &Effort) -> Result<(Rates, bool)> {
    let len = (effort.bytes / 4).max(1024);
    let mut from = rayspin_device::cpu::zeroed::<f32>("array whose copies are timed", len)?;
    let mut to = rayspin_device::cpu::zeroed::<f32>("copy that is timed", len)?;
    // A thread's share in one piece: long copies go past the caches.
    let share = len.div_ceil(cpu.threads());
    let level = cpu.level();
    let bytes = 4.0 * len as f64;
    let best_seconds = |work: &(dyn Fn() + Sync)| cpu.run(|| best(effort, work));
    // The first pass maps the pages.
    cpu.run(|| {
        from.par_chunks_mut(share).zip(to.par_chunks_mut(share)).for_each(|(a, b)| {
            a.fill(0.5);
            b.fill(0.25);
        })
    });
    let copy = cpu.run(|| {
        best_mut(effort, &mut || {
            to.par_chunks_mut(share)
                .zip(from.par_chunks(share))
                .for_each(|(to, from)| to.copy_from_slice(from));
        })
    });
    let write = cpu.run(|| best_mut(effort, &mut || to.par_chunks_mut(share).for_each(|to| fill(level, to))));
    let read = best_seconds(&|| {
        let sums: f32 = from.par_chunks(share).map(|from| sum(level, from)).sum();
        black_box(sums);
    });
    black_box((&from, &to));
    let threads = cpu.threads() as f64;
    let shared = Cell::new(false);
    let rate = |work: fn(Level, usize) -> f64| {
        let mut rounds = 1 << 10;
        loop {
            let began = Instant::now();
            let operations = work(level, rounds);
            let seconds = began.elapsed().as_secs_f64();
            if seconds > effort.seconds / 10.0 || rounds >= effort.rounds as usize {
                let (before, began) = (on_cores(), Instant::now());
                let seconds = best_seconds(&|| {
                    (0..cpu.threads()).into_par_iter().with_max_len(1).for_each(|_| {
                        black_box(work(level, rounds));
                    });
                });
                let wanted = began.elapsed().as_secs_f64() * threads.min(available_threads() as f64);
                if let Some((before, after)) = before.zip(on_cores())
                    && wanted > LONG
                    && after - before < FREE * wanted
                {
                    shared.set(true);
                }
                return threads * operations / seconds;
            }
            rounds *= 4;
        }
    };
    let rates = Rates {
        copy: 2.0 * bytes / copy,
        read: bytes / read,
        write: bytes / write,
        f32: rate(fma_f32),
        f64: rate(fma_f64),
        i32: rate(fma_i32),
        tensor_f64: None,
        tensor_f16: None,
        special: None,
        shared: None,
        texture: None,
        upload: None,
        download: None,
    };
    Ok((rates, shared.get()))
}

/// Threads that all compute have less of their cores than this share only where others run there.
const FREE: f64 = 0.8;
/// Seconds from which on that share can be told.
const LONG: f64 = 0.01;

/// Seconds that this process's threads were on cores since they began; `None` where the system does not say.
fn on_cores() -> Option<f64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let nanoseconds = |task: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let total: f64 = tasks.filter_map(nanoseconds).sum();
    (total > 0.0).then_some(1e-9 * total)
}

fn best(effort: &Effort, work: &(dyn Fn() + Sync)) -> f64 {
    best_mut(effort, &mut || work())
}

/// Seconds of the fastest of several runs.
fn best_mut(effort: &Effort, work: &mut dyn FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..effort.repeats {
        let began = Instant::now();
        work();
        best = best.min(began.elapsed().as_secs_f64());
    }
    best.max(1e-9)
}

fn sum(level: Level, from: &[f32]) -> f32 {
    #[inline(always)]
    fn body<S: Simd>(simd: S, from: &[f32]) -> f32 {
        let lanes = S::f32s::LEN;
        let mut sums = [S::f32s::splat(simd, 0.0); 8];
        for piece in from.chunks_exact(8 * lanes) {
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum += S::f32s::from_slice(simd, &piece[j * lanes..][..lanes]);
            }
        }
        let mut total = sums[0];
        for sum in &sums[1..] {
            total += *sum;
        }
        total.as_slice().iter().sum()
    }
    dispatch!(level, simd => body(simd, from))
}

fn fill(level: Level, to: &mut [f32]) {
    #[inline(always)]
    fn body<S: Simd>(_: S, to: &mut [f32]) {
        to.fill(1.5);
    }
    dispatch!(level, simd => body(simd, to));
}

/// Chains of multiply-adds that together hide the latency of one.
const CHAINS: usize = 12;

/// Operations of `rounds` steps of all chains of vectors.
macro_rules! chains {
    ($name:ident, $vector:ident, $number:ty, $step:expr) => {
        fn $name(level: Level, rounds: usize) -> f64 {
            #[inline(always)]
            fn body<S: Simd>(simd: S, rounds: usize) -> f64 {
                let a = S::$vector::splat(simd, black_box(1 as $number));
                let b = S::$vector::splat(simd, black_box(2 as $number));
                let mut x = [b; CHAINS];
                for _ in 0..rounds {
                    for x in &mut x {
                        *x = $step(*x, a, b);
                    }
                }
                for x in x {
                    black_box(x.as_slice());
                }
                2.0 * (rounds * CHAINS * S::$vector::LEN) as f64
            }
            dispatch!(level, simd => body(simd, rounds))
        }
    };
}

chains!(fma_f32, f32s, f32, |x: S::f32s, a: S::f32s, b: S::f32s| x.mul_add(a, b));
chains!(fma_f64, f64s, f64, |x: S::f64s, a: S::f64s, b: S::f64s| x.mul_add(a, b));
chains!(fma_i32, i32s, i32, |x: S::i32s, a: S::i32s, b: S::i32s| x * a + b);
