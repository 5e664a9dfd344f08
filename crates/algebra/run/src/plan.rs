//! The search for batch sizes that keep a run within its memory limits.

use rayspin_core::Result;

use crate::memory::Budget;

/// A batch size that a plan may reduce: how many coils, points of a trajectory or slabs of a volume a run
/// processes at once.
#[derive(Debug, Clone, Copy)]
pub struct BatchSize {
    /// The name that [`Job::set`] takes.
    pub name: &'static str,
    /// The current batch size.
    pub now: usize,
    /// The smallest useful batch size: smaller batches save no memory.
    pub least: usize,
    /// Whether a smaller batch saves GPU memory only. It then costs host memory.
    pub gpu_only: bool,
    /// Describes a batch size to the user, for example "coils taken 4 at a time".
    pub describe: fn(usize) -> String,
}

/// The first batch size that can be reduced, and its new value, half of the old one. `gpu_short` says that
/// the GPU's memory is short.
pub fn halve(sizes: &[BatchSize], gpu_short: bool) -> Option<(BatchSize, usize)> {
    let size = sizes.iter().find(|size| size.now > size.least && (gpu_short || !size.gpu_only))?;
    Some((*size, size.now.div_ceil(2)))
}

/// The memory limits of a run; `None` where there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of host memory that the process may hold.
    pub memory: Option<u64>,
    /// Bytes that arrays on a GPU may take.
    pub gpu: Option<u64>,
}

/// The memory of a run, and the memory of the process before the run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The memory and work of the run, stage by stage.
    pub budget: Budget,
    /// Bytes that the process holds before the run.
    pub process: u64,
}

impl Plan {
    /// Peak memory of the process in bytes.
    pub fn peak(&self) -> u64 {
        self.process + self.budget.peak()
    }

    /// The larger of memory/limit and GPU memory/GPU limit. A value above 1 exceeds a limit.
    pub fn excess(&self, limits: &Limits) -> f64 {
        let share =
            |peak: u64, limit: Option<u64>| limit.map_or(0.0, |limit| peak as f64 / limit.max(1) as f64);
        share(self.peak(), limits.memory).max(share(self.budget.gpu_peak(), limits.gpu))
    }

    fn needed(&self) -> OverBudget {
        OverBudget { memory: self.peak(), gpu: self.budget.gpu_peak() }
    }
}

/// The memory of a run that exceeds its limits, with the batch sizes that come closest to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBudget {
    /// Peak memory of the process in bytes.
    pub memory: u64,
    /// Peak memory of the GPU's arrays in bytes.
    pub gpu: u64,
}

/// A run whose batch sizes [`plan_within`] chooses.
pub trait Job {
    /// The batch sizes that may be reduced, in the order in which the search reduces them.
    fn batch_sizes(&self) -> Result<Vec<BatchSize>>;
    /// Sets the batch size called `name`.
    fn set(&mut self, name: &str, to: usize);
    /// The plan with the current batch sizes.
    fn plan(&self) -> Result<Plan>;
}

/// Halves batch sizes, one after another, until the job's plan is within `limits`, and returns that plan.
/// Returns [`OverBudget`] if the smallest batches exceed the limits.
///
/// A batch size that was halved before the one that helped is raised again as far as the limits allow,
/// because needlessly small batches cost time.
///
/// Errors: errors of the job.
pub fn plan_within(job: &mut dyn Job, limits: &Limits) -> Result<std::result::Result<Plan, OverBudget>> {
    let mut plan = job.plan()?;
    let (mut least, mut excess) = (plan.needed(), plan.excess(limits));
    let before = job.batch_sizes()?;
    while plan.excess(limits) > 1.0 {
        let gpu_short = limits.gpu.is_some_and(|limit| plan.budget.gpu_peak() > limit);
        let Some((size, to)) = halve(&job.batch_sizes()?, gpu_short) else { return Ok(Err(least)) };
        job.set(size.name, to);
        plan = job.plan()?;
        if plan.excess(limits) < excess {
            (least, excess) = (plan.needed(), plan.excess(limits));
        }
    }
    let changed: Vec<BatchSize> = job
        .batch_sizes()?
        .into_iter()
        .filter(|size| before.iter().any(|was| was.name == size.name && was.now > size.now))
        .collect();
    // The last one is as large as the limits allow. Halving the earlier ones may have been in vain.
    let in_vain = changed.len().saturating_sub(1);
    for size in &changed[..in_vain] {
        let full = before.iter().find(|was| was.name == size.name).map_or(size.now, |was| was.now);
        let mut now = size.now;
        while now < full {
            let to = (2 * now).max(now + 1).min(full);
            job.set(size.name, to);
            let larger = job.plan()?;
            if larger.excess(limits) > 1.0 {
                job.set(size.name, now);
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
    use crate::step::{Cost, Step};

    /// Takes `a` + `b` bytes of a GPU and `most − b` of the host.
    struct Two {
        a: usize,
        b: usize,
        most: usize,
        tried: std::cell::Cell<usize>,
    }

    impl Job for Two {
        fn batch_sizes(&self) -> Result<Vec<BatchSize>> {
            let describe = |n: usize| format!("{n} at a time");
            Ok(vec![
                BatchSize { name: "a", now: self.a, least: 1, gpu_only: false, describe },
                BatchSize { name: "b", now: self.b, least: 2, gpu_only: true, describe },
            ])
        }
        fn set(&mut self, name: &str, to: usize) {
            *(if name == "a" { &mut self.a } else { &mut self.b }) = to;
        }
        fn plan(&self) -> Result<Plan> {
            self.tried.set(self.tried.get() + 1);
            let gpu = (self.a + self.b) as u64;
            let memory = Memory::temporary(Bytes { host: (self.most - self.b) as u64, gpu });
            let mut ledger = Ledger::new(Bytes::default(), 1);
            ledger.add(Step::new("work", |_: &mut (), _| Ok(())).needs(move || Ok(Cost::of(memory))))?;
            Ok(Plan { budget: ledger.finish(), process: 10 })
        }
    }

    fn two() -> Two {
        Two { a: 16, b: 100, most: 100, tried: 0.into() }
    }

    #[test]
    fn batches_are_halved_until_the_plan_fits_and_restored_where_that_was_in_vain() {
        let mut job = two();
        let plan = plan_within(&mut job, &Limits { memory: None, gpu: Some(60) }).unwrap().unwrap();
        // b = 50 is what helps: a is as large as the limit leaves it.
        assert_eq!((job.b, job.a, plan.budget.gpu_peak()), (50, 8, 58));
        let mut job = two();
        assert!(plan_within(&mut job, &Limits::default()).unwrap().is_ok());
        assert_eq!((job.a, job.b, job.tried.get()), (16, 100, 1));
    }

    #[test]
    fn a_plan_over_budget_states_the_memory_that_it_needs() {
        let mut job = two();
        let over = plan_within(&mut job, &Limits { memory: None, gpu: Some(2) }).unwrap().unwrap_err();
        assert_eq!(over, OverBudget { memory: 10 + 98, gpu: 3 });
        // A batch size of the GPU does not save host memory.
        let mut job = two();
        let over = plan_within(&mut job, &Limits { memory: Some(9), gpu: None }).unwrap().unwrap_err();
        assert_eq!((job.b, over.memory), (100, 10));
    }
}
