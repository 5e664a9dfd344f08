//! Small work, which the thread of its caller does alone: to wake another thread takes longer.

use std::cell::Cell;

use rayon::iter::IndexedParallelIterator;
use rayon::iter::plumbing::{Producer, ProducerCallback};

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread does small work.
pub(super) fn is_alone() -> bool {
    ALONE.get()
}

/// Does small work in this thread.
pub(super) fn alone<T>(work: impl FnOnce() -> T) -> T {
    /// Puts back what was, also after a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(true));
    work()
}

/// Loops over a parallel iterator, on the threads of the pool, or in small work ([`Cpu::run_small`]) in this
/// thread alone. A loop by rayon's own methods in small work would wake the threads of rayon's global pool.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use rayon::prelude::*;
/// use rayspin_device::cpu::PoolLoop;
///
/// let sum = AtomicUsize::new(0);
/// let add = |i| drop(sum.fetch_add(i, Ordering::Relaxed));
/// rayspin_device::Device::cpu()?.cpu_side().run_small(|| (0..10).into_par_iter().each(add));
/// assert_eq!(sum.into_inner(), 45);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
///
/// [`Cpu::run_small`]: super::Cpu::run_small
pub trait PoolLoop: IndexedParallelIterator {
    /// Does `work` with each item.
    fn each(self, work: impl Fn(Self::Item) + Send + Sync) {
        if is_alone() { self.with_producer(InTurn(work)) } else { self.for_each(work) }
    }

    /// Does `work` with each item and a state, which items of one thread share in turn.
    fn each_with<S>(
        self,
        state: impl Fn() -> S + Send + Sync,
        work: impl Fn(&mut S, Self::Item) + Send + Sync,
    ) {
        if is_alone() {
            let mut state = state();
            self.with_producer(InTurn(|item| work(&mut state, item)));
        } else {
            self.for_each_init(state, work);
        }
    }
}

impl<I: IndexedParallelIterator> PoolLoop for I {}

struct InTurn<F>(F);

impl<T, F: FnMut(T)> ProducerCallback<T> for InTurn<F> {
    type Output = ();

    fn callback<P: Producer<Item = T>>(self, producer: P) {
        producer.into_iter().for_each(self.0);
    }
}
