//! The search for batch sizes: what is done at once, until a run fits its limits.

use rayspin_core::Result;

use crate::memory::Budget;

/// Something that a run may do less of at once: coils, points of a trajectory, slabs of a volume.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// How much is done at once now.
    pub now: usize,
    /// Where `now` is no more than this, doing less saves nothing.
    pub least: usize,
    /// Whether it relieves a GPU's memory alone, and takes more of the host's.
    pub gpu_only: bool,
    /// What a run says of so much at once.
    pub said: fn(usize) -> String,
}

/// The first knob that can be turned down, and its new value: half of what it was. `gpu_short` says that a GPU's memory is short.
pub fn halve(knobs: &[Knob], gpu_short: bool) -> Option<(Knob, usize)> {
    let knob = knobs.iter().find(|knob| knob.now > knob.least && (gpu_short || !knob.gpu_only))?;
    Some((*knob, knob.now.div_ceil(2)))
}

/// What a run may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the process.
    pub memory: Option<u64>,
    /// Bytes of arrays on a GPU.
    pub gpu: Option<u64>,
}

/// The budget of a run, and the process beneath it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the run takes.
    pub budget: Budget,
    /// Bytes of the process itself.
    pub process: u64,
}

impl Plan {
    /// The most memory that the process is to hold.
    pub fn peak(&self) -> u64 {
        self.process + self.budget.peak()
    }

    /// By how much the limits are passed, in the larger share of one.
    pub fn excess(&self, limits: &Limits) -> f64 {
        let of = |peak: u64, limit: Option<u64>| limit.map_or(0.0, |limit| peak as f64 / limit.max(1) as f64);
        of(self.peak(), limits.memory).max(of(self.budget.gpu_peak(), limits.gpu))
    }

    fn short(&self) -> Short {
        Short { memory: self.peak(), gpu: self.budget.gpu_peak() }
    }
}

/// What the least that a run can be cut to takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Bytes of the process.
    pub memory: u64,
    /// Bytes of a GPU's arrays.
    pub gpu: u64,
}

/// A run whose batch sizes are to be found.
pub trait Job {
    /// What may be done less of at once, in the order in which that is tried.
    fn knobs(&self) -> Result<Vec<Knob>>;
    /// Does so much at once from here on.
    fn set(&mut self, knob: &str, to: usize);
    /// What the run takes as it stands.
    fn plan(&self) -> Result<Plan>;
}

/// Halves what is done at once, knob after knob, until the job fits the limits; what the least takes where nothing does.
///
/// A knob that is turned down before the one that helps is turned up again as far as the limits allow: batches that are
/// smaller than they need be cost time.
///
/// Errors: those of the job.
pub fn fit(job: &mut dyn Job, limits: &Limits) -> Result<std::result::Result<Plan, Short>> {
    let mut plan = job.plan()?;
    let (mut least, mut excess) = (plan.short(), plan.excess(limits));
    let before = job.knobs()?;
    while plan.excess(limits) > 1.0 {
        let gpu_short = limits.gpu.is_some_and(|limit| plan.budget.gpu_peak() > limit);
        let Some((knob, to)) = halve(&job.knobs()?, gpu_short) else { return Ok(Err(least)) };
        job.set(knob.name, to);
        plan = job.plan()?;
        if plan.excess(limits) < excess {
            (least, excess) = (plan.short(), plan.excess(limits));
        }
    }
    let changed: Vec<Knob> = job
        .knobs()?
        .into_iter()
        .filter(|knob| before.iter().any(|was| was.name == knob.name && was.now > knob.now))
        .collect();
    // The last one is as large as it can be; those before it may have been halved in vain.
    let in_vain = changed.len().saturating_sub(1);
    for knob in &changed[..in_vain] {
        let full = before.iter().find(|was| was.name == knob.name).map_or(knob.now, |was| was.now);
        let mut now = knob.now;
        while now < full {
            let to = (2 * now).min(full);
            job.set(knob.name, to);
            let larger = job.plan()?;
            if larger.excess(limits) > 1.0 {
                job.set(knob.name, now);
                break;
            }
            (plan, now) = (larger, to);
        }
    }
    Ok(Ok(plan))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Bytes, Ledger, Memory};
    use crate::step::{Needs, Step};

    /// Takes `a` + `b` bytes of a GPU and `most − b` of the host.
    struct Two {
        a: usize,
        b: usize,
        most: usize,
        tried: std::cell::Cell<usize>,
    }

    impl Job for Two {
        fn knobs(&self) -> Result<Vec<Knob>> {
            let said = |n: usize| format!("{n} at a time");
            Ok(vec![
                Knob { name: "a", now: self.a, least: 1, gpu_only: false, said },
                Knob { name: "b", now: self.b, least: 2, gpu_only: true, said },
            ])
        }
        fn set(&mut self, knob: &str, to: usize) {
            *(if knob == "a" { &mut self.a } else { &mut self.b }) = to;
        }
        fn plan(&self) -> Result<Plan> {
            self.tried.set(self.tried.get() + 1);
            let gpu = (self.a + self.b) as u64;
            let memory = Memory::passing(Bytes { host: (self.most - self.b) as u64, gpu });
            let mut ledger = Ledger::new(Bytes::default(), 1);
            ledger.add(Step::new("work", |_: &mut (), _| Ok(())).needs(move || Ok(Needs::of(memory))))?;
            Ok(Plan { budget: ledger.finish(), process: 10 })
        }
    }

    fn two() -> Two {
        Two { a: 16, b: 100, most: 100, tried: 0.into() }
    }

    #[test]
    fn knobs_are_turned_down_until_it_fits_and_those_in_vain_up_again() {
        let mut job = two();
        let plan = fit(&mut job, &Limits { memory: None, gpu: Some(60) }).unwrap().unwrap();
        // b = 50 is what helps: a is as large as the limit leaves it.
        assert_eq!((job.b, job.a, plan.budget.gpu_peak()), (50, 8, 58));
        let mut job = two();
        assert!(fit(&mut job, &Limits::default()).unwrap().is_ok());
        assert_eq!((job.a, job.b, job.tried.get()), (16, 100, 1));
    }

    #[test]
    fn what_does_not_fit_says_the_least_that_it_takes() {
        let mut job = two();
        let short = fit(&mut job, &Limits { memory: None, gpu: Some(2) }).unwrap().unwrap_err();
        assert_eq!(short, Short { memory: 10 + 98, gpu: 3 });
        // The host's memory is not relieved by a knob of the GPU's.
        let mut job = two();
        let short = fit(&mut job, &Limits { memory: Some(9), gpu: None }).unwrap().unwrap_err();
        assert_eq!((job.b, short.memory), (100, 10));
    }
}
