//! The end of a computation before its time, where its caller no longer wants the result.
//!
//! A caller wraps its call in [`listening`]. Threads that wait for a [`Cpu`](super::Cpu) then ask the caller
//! several times a second, and loops that take long look at [`Stop`].

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rayspin_core::{Error, Result};

/// Time between two questions to the caller.
const PERIOD: Duration = Duration::from_millis(50);

thread_local! {
    /// Whoever wants the result of this thread's computation.
    static CALLER: RefCell<Option<Caller>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Caller {
    stop: Stop,
    /// Asks the caller whether it still wants the result. Only the caller's own thread has the question.
    question: Option<Rc<Question>>,
}

struct Question {
    ask: Box<dyn Fn()>,
    asked: Cell<Instant>,
}

impl Question {
    fn ask(&self) {
        (self.ask)();
        self.asked.set(Instant::now());
    }

    fn ask_in_time(&self) {
        if self.asked.get().elapsed() >= PERIOD {
            self.ask();
        }
    }
}

/// Asks the caller of this thread if it was not asked for a while.
pub(super) fn ask_in_time() {
    let question = CALLER.with_borrow(|caller| caller.as_ref().and_then(|caller| caller.question.clone()));
    if let Some(question) = question {
        question.ask_in_time();
    }
}

/// Whether the caller of a computation wants it to end. Without [`listening`] it never does.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use rayspin_core::Error;
/// use rayspin_device::cpu::{Stop, listening};
///
/// assert_eq!(Stop::of_caller().check(), Ok(()));
/// let flag = Arc::new(AtomicBool::new(false));
/// let seen = listening(&flag, || {}, || {
///     flag.store(true, Ordering::Relaxed);
///     Stop::of_caller().check()
/// });
/// assert_eq!(seen, Err(Error::Interrupted));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// The flag of the computation that this thread does. A loop takes it before it spreads over threads.
    pub fn of_caller() -> Self {
        CALLER.with_borrow(|caller| caller.as_ref().map(|caller| caller.stop.clone())).unwrap_or_default()
    }

    /// Whether the computation is to end: a loop leaves out what it has not begun, and its function fails by
    /// [`check`](Self::check).
    pub fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Fails with [`Error::Interrupted`] where the computation is to end.
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Does `work` in this thread for a caller that may want it to end: `flag` says so. `ask` is called in this
/// thread several times a second while threads of a CPU compute, and may set the flag.
pub fn listening<T>(flag: &Arc<AtomicBool>, ask: impl Fn() + 'static, work: impl FnOnce() -> T) -> T {
    let question = Question { ask: Box::new(ask), asked: Cell::new(Instant::now()) };
    let caller = Caller { stop: Stop(Some(flag.clone())), question: Some(Rc::new(question)) };
    on_behalf_of(caller, work)
}

/// Puts back the caller that a thread had before.
struct Before(Option<Caller>);

impl Drop for Before {
    fn drop(&mut self) {
        CALLER.set(self.0.take());
    }
}

fn on_behalf_of<T>(caller: Caller, work: impl FnOnce() -> T) -> T {
    let _before = Before(CALLER.replace(Some(caller)));
    work()
}

/// Does `work` on the threads of a pool, for the caller of this thread, whom this thread asks while it waits.
pub(super) fn on_pool<T: Send>(pool: &rayon::ThreadPool, work: impl FnOnce() -> T + Send) -> T {
    let (mut work, mut result) = (Some(work), None);
    on_pool_erased(pool, &mut || result = work.take().map(|work| work()));
    match result {
        Some(result) => result,
        None => unreachable!("the pool did the work, or its panic went on in this thread"),
    }
}

/// [`on_pool`] for work of any type. Compiled for each of the 130 types of the kernels' work, it was a sixth
/// of all code that the compiler made of them.
fn on_pool_erased(pool: &rayon::ThreadPool, work: &mut (dyn FnMut() + Send)) {
    let caller = CALLER.with_borrow(Clone::clone);
    // Work of a pool's own thread goes on in this thread.
    let Some(Caller { stop, question }) = caller.filter(|_| pool.current_thread_index().is_none()) else {
        return pool.install(work);
    };
    let work = move || on_behalf_of(Caller { stop, question: None }, work);
    let Some(question) = question else { return pool.install(work) };
    question.ask_in_time();
    let (result, ended) = (Mutex::new(None::<thread::Result<()>>), Condvar::new());
    let lock = || -> MutexGuard<'_, _> { result.lock().unwrap_or_else(PoisonError::into_inner) };
    pool.in_place_scope(|scope| {
        scope.spawn(|_| {
            let done = catch_unwind(AssertUnwindSafe(work));
            *lock() = Some(done);
            ended.notify_one();
        });
        let mut waiting = lock();
        loop {
            match waiting.take() {
                Some(Ok(())) => return,
                Some(Err(panic)) => resume_unwind(panic),
                None => {}
            }
            let (guard, time) = ended.wait_timeout(waiting, PERIOD).unwrap_or_else(PoisonError::into_inner);
            waiting = guard;
            if time.timed_out() && waiting.is_none() {
                drop(waiting);
                question.ask();
                waiting = lock();
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use rayon::prelude::*;

    use super::*;
    use crate::Device;

    #[test]
    fn threads_of_a_cpu_end_where_the_caller_wants_it_and_only_its_own_work() {
        let device = Device::cpu_with_threads(2).unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let asks = Arc::new(AtomicUsize::new(0));
        let ask = {
            let (flag, asks) = (flag.clone(), asks.clone());
            move || flag.store(asks.fetch_add(1, Ordering::Relaxed) > 0, Ordering::Relaxed)
        };
        let rounds = AtomicUsize::new(0);
        let until_stopped = || {
            let stop = Stop::of_caller();
            (0..1_000_000).into_par_iter().for_each(|_| {
                if !stop.is_set() {
                    thread::sleep(Duration::from_millis(1));
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
            stop.check()
        };
        let ended = listening(&flag, ask, || device.cpu_side().run(|| device.cpu_side().run(until_stopped)));
        assert_eq!(ended, Err(Error::Interrupted));
        assert!(asks.load(Ordering::Relaxed) >= 2);
        assert!(rounds.load(Ordering::Relaxed) < 10_000);
        // The threads and this one work on for others.
        assert_eq!(device.cpu_side().run(|| Stop::of_caller().check()), Ok(()));
        assert_eq!(Stop::of_caller().check(), Ok(()));
    }

    #[test]
    fn a_panic_of_the_work_is_the_callers() {
        let device = Device::cpu_with_threads(1).unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let work = || listening(&flag, || {}, || device.cpu_side().run::<()>(|| panic!("of the work")));
        let panic: Box<dyn std::any::Any + Send> = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"of the work"));
        assert!(!Stop::of_caller().is_set());
    }

    #[test]
    fn short_calls_ask_too() {
        let device = Device::cpu_with_threads(1).unwrap();
        let (flag, asks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let count = asks.clone();
        let ask = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        listening(&flag, ask, || {
            for _ in 0..30 {
                thread::sleep(Duration::from_millis(5));
                device.cpu_side().run(|| ());
            }
        });
        assert!(asks.load(Ordering::Relaxed) >= 2);
    }
}
