//! Steps: what a run does, one after another, and what each takes.

use rayspin_core::{Monitor, Result};
use rayspin_kernels::variant::Work;
use serde::Serialize;

use crate::memory::Memory;

/// How much work a step is. Iterations are counted as if none converged early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Effort {
    /// Transforms of one item: FFT, NUFFT or Toeplitz convolution, projection.
    pub transforms: u64,
    /// Iterations at most.
    pub iterations: u64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes to and from memory.
    pub traffic: f64,
}

impl Effort {
    /// The work of one thing.
    pub fn of(work: Work) -> Self {
        Self { flops: work.flops, traffic: work.bytes, ..Self::default() }
    }

    /// `count` transforms, each of this work.
    pub fn transforms(count: u64, each: Work) -> Self {
        Self { transforms: count, ..Self::of(each).times(count) }
    }

    /// With so many iterations.
    #[must_use]
    pub fn iterations(self, iterations: u64) -> Self {
        Self { iterations, ..self }
    }

    /// With more work.
    #[must_use]
    pub fn and(self, work: Work) -> Self {
        Self { flops: self.flops + work.flops, traffic: self.traffic + work.bytes, ..self }
    }

    /// So many times over.
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

/// What a step takes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Needs {
    /// Its memory.
    pub memory: Memory,
    /// Its work.
    pub effort: Effort,
}

impl Needs {
    /// Memory, and no work that counts.
    pub fn of(memory: Memory) -> Self {
        Self { memory, effort: Effort::default() }
    }

    /// With work.
    #[must_use]
    pub fn and(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }
}

type Stating<'a> = Box<dyn FnOnce() -> Result<Needs> + 'a>;
type Running<'a, S> = Box<dyn FnOnce(&mut S, &Monitor<'_>) -> Result<()> + 'a>;
type Skipping<'a, S> = Box<dyn Fn(&S) -> bool + 'a>;

/// One step of a run: what it does to the state `S`, and what it takes.
///
/// A plan asks for its [needs](Self::needs) and a [run] runs it: what is stated and what is done stand side by side.
pub struct Step<'a, S> {
    name: String,
    once: bool,
    progress: usize,
    needs: Stating<'a>,
    run: Running<'a, S>,
    skip: Option<Skipping<'a, S>>,
}

impl<'a, S> Step<'a, S> {
    /// A step that runs `work`. Its name is the stage that is reported and timed; without one it is neither.
    pub fn new(name: impl Into<String>, work: impl FnOnce(&mut S, &Monitor<'_>) -> Result<()> + 'a) -> Self {
        let needs: Stating<'a> = Box::new(|| Ok(Needs::default()));
        Self { name: name.into(), once: false, progress: 0, needs, run: Box::new(work), skip: None }
    }

    /// A step that is no stage of its own.
    pub fn silent(work: impl FnOnce(&mut S, &Monitor<'_>) -> Result<()> + 'a) -> Self {
        Self::new("", work)
    }

    /// What it takes, which only a plan asks for.
    #[must_use]
    pub fn needs(self, needs: impl FnOnce() -> Result<Needs> + 'a) -> Self {
        Self { needs: Box::new(needs), ..self }
    }

    /// The progress of a run counts so many steps of it.
    #[must_use]
    pub fn progress(self, progress: usize) -> Self {
        Self { progress, ..self }
    }

    /// It is done for the first image, and what it makes is kept for the others.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// A run leaves it out where this holds.
    #[must_use]
    pub fn unless(self, skip: impl Fn(&S) -> bool + 'a) -> Self {
        Self { skip: Some(Box::new(skip)), ..self }
    }

    /// The stage's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn into_needs(self) -> (String, bool, Result<Needs>) {
        (self.name, self.once, (self.needs)())
    }
}

/// Runs steps one after another, each with a name as a stage of `monitor`.
///
/// Errors: the first of a step.
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
