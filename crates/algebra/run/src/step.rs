//! The steps of a run, with the memory and work of each.

use rayspin_core::{Monitor, Result, Work};
use serde::Serialize;

use crate::memory::Memory;

/// The amount of work of a step. Iterations are counted as if none converged early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Effort {
    /// Number of transforms of one item: FFT, NUFFT, Toeplitz convolution or projection.
    pub transforms: u64,
    /// Maximum number of iterations.
    pub iterations: u64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read from and written to memory.
    pub traffic: f64,
}

impl Effort {
    /// An effort that is this `work`.
    pub fn of(work: Work) -> Self {
        Self { flops: work.flops, traffic: work.bytes, ..Self::default() }
    }

    /// `count` transforms of work `each`.
    pub fn transforms(count: u64, each: Work) -> Self {
        Self { transforms: count, ..Self::of(each).times(count) }
    }

    /// Sets the number of iterations.
    #[must_use]
    pub fn iterations(self, iterations: u64) -> Self {
        Self { iterations, ..self }
    }

    /// Adds work.
    #[must_use]
    pub fn and(self, work: Work) -> Self {
        Self { flops: self.flops + work.flops, traffic: self.traffic + work.bytes, ..self }
    }

    /// Both efforts, of parts of the same iterations.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            transforms: self.transforms + other.transforms,
            iterations: self.iterations.max(other.iterations),
            flops: self.flops + other.flops,
            traffic: self.traffic + other.traffic,
        }
    }

    /// The effort of doing the same `count` times.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self {
            transforms: self.transforms * count,
            iterations: self.iterations * count,
            flops: self.flops * count as f64,
            traffic: self.traffic * count as f64,
        }
    }
}

/// The memory and work of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// The step's memory.
    pub memory: Memory,
    /// The step's work.
    pub effort: Effort,
}

impl Cost {
    /// Memory without work.
    pub fn of(memory: Memory) -> Self {
        Self { memory, effort: Effort::default() }
    }

    /// Sets the work.
    #[must_use]
    pub fn and(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }
}

type Stating<'a> = Box<dyn FnOnce() -> Result<Cost> + 'a>;
type StatingBeside<'a> = Box<dyn FnOnce() -> Result<Vec<Memory>> + 'a>;
type Running<'a, S> = Box<dyn FnOnce(&mut S, &Monitor<'_>) -> Result<()> + 'a>;
type Skipping<'a, S> = Box<dyn Fn(&S) -> bool + 'a>;

/// One step of a run: its action on the state `S`, and the memory and work that it needs.
///
/// A plan reads the step's [needs](Self::needs), and [`run`] executes its action. Both stand side by side in
/// the code.
pub struct Step<'a, S> {
    name: String,
    once: bool,
    progress: usize,
    needs: Stating<'a>,
    beside: StatingBeside<'a>,
    run: Running<'a, S>,
    skip: Option<Skipping<'a, S>>,
}

impl<'a, S> Step<'a, S> {
    /// A step that runs `work`. A run reports and times it as the stage `name`, unless `name` is empty.
    pub fn new(name: impl Into<String>, work: impl FnOnce(&mut S, &Monitor<'_>) -> Result<()> + 'a) -> Self {
        let needs: Stating<'a> = Box::new(|| Ok(Cost::default()));
        let beside: StatingBeside<'a> = Box::new(|| Ok(Vec::new()));
        Self { name: name.into(), once: false, progress: 0, needs, beside, run: Box::new(work), skip: None }
    }

    /// A step without a stage of its own.
    pub fn silent(work: impl FnOnce(&mut S, &Monitor<'_>) -> Result<()> + 'a) -> Self {
        Self::new("", work)
    }

    /// Sets the needs. Only a plan evaluates them.
    #[must_use]
    pub fn needs(self, needs: impl FnOnce() -> Result<Cost> + 'a) -> Self {
        Self { needs: Box::new(needs), ..self }
    }

    /// Sets what the step takes at the same time on each device beside the first one.
    #[must_use]
    pub fn beside(self, needs: impl FnOnce() -> Result<Vec<Memory>> + 'a) -> Self {
        Self { beside: Box::new(needs), ..self }
    }

    /// Sets the number of progress steps that the stage reports.
    #[must_use]
    pub fn progress(self, progress: usize) -> Self {
        Self { progress, ..self }
    }

    /// Marks a step that runs for the first image only. The other images reuse its result.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Makes a run skip the step if `skip` holds.
    #[must_use]
    pub fn unless(self, skip: impl Fn(&S) -> bool + 'a) -> Self {
        Self { skip: Some(Box::new(skip)), ..self }
    }

    /// The name of the stage.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn into_needs(self) -> (String, bool, Result<(Cost, Vec<Memory>)>) {
        let needs = (self.needs)().and_then(|cost| Ok((cost, (self.beside)()?)));
        (self.name, self.once, needs)
    }
}

/// Runs steps one after another. Each step with a name is a stage of `monitor`.
///
/// Errors: the first error of a step.
pub fn run<S>(steps: Vec<Step<'_, S>>, state: &mut S, monitor: &Monitor<'_>) -> Result<()> {
    for step in steps {
        if step.skip.is_some_and(|skip| skip(state)) {
            continue;
        }
        match step.name.as_str() {
            "" => (step.run)(state, monitor)?,
            name => monitor.stage(name, step.progress, || (step.run)(state, monitor))?,
        }
    }
    Ok(())
}
