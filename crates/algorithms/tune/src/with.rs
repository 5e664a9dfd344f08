//! An algorithm with variants of another crate.

use rayspin_core::Result;
use rayspin_device::{BackendKind, Device};

use crate::algorithm::{About, Algorithm, Case, Counts, Published, PublishedApplication, Row};
use crate::own::Signature;

/// An algorithm with more rows: a variant of your own stands in the table of an algorithm that you did not
/// write.
///
/// Such a ladder replaces the algorithm's own one in a list of ladders, and everything that goes over rows
/// has the new ones: tables, runs, the tuner, the list of programs, conformance. The library goes on with the
/// variants that it knows.
///
/// A row for a CPU, or for a GPU with a launch of its own, is made beside one that is there
/// ([`Variant::beside`](crate::variant::Variant::beside)); a CUDA source that has the algorithm's
/// [`Signature`] is a row by [`Own::row`](crate::Own::row).
///
/// ```
/// use rayspin_device::BackendKind;
/// use rayspin_tune::{Algorithm, Ladder, With};
///
/// /// For algorithms of one input and one output of f32.
/// fn with_mine<A: Algorithm + Copy>(algorithm: A) -> Box<dyn Ladder> {
///     Box::new(With::new(algorithm, move |problem| {
///         let known = algorithm.variants(problem);
///         let mine = |row: &rayspin_tune::Row<A>| {
///             row.beside("cpu-mine", BackendKind::Cpu, "from the end", |_, arrays| {
///                 let (inputs, mut outputs) = arrays.arrays::<f32, f32>()?;
///                 for (to, from) in outputs[0].cpu_mut().iter_mut().zip(inputs[0].cpu()).rev() {
///                     *to = from.sqrt();
///                 }
///                 Ok(())
///             })
///         };
///         known.first().map(mine).into_iter().collect()
///     }))
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct With<A, F> {
    algorithm: A,
    rows: F,
}

impl<A: Algorithm, F: Fn(&A::Problem) -> Vec<Row<A>>> With<A, F> {
    /// `algorithm` with the rows that `rows` gives for a problem: each after the rows for the same kind of
    /// processor.
    pub fn new(algorithm: A, rows: F) -> Self {
        Self { algorithm, rows }
    }
}

impl<A, F> Algorithm for With<A, F>
where
    A: Algorithm,
    F: Fn(&A::Problem) -> Vec<Row<A>> + Send + Sync + 'static,
{
    type Problem = A::Problem;
    type Data = A::Data;

    fn about(&self) -> About {
        self.algorithm.about()
    }

    fn cases(&self) -> Vec<Case<A::Problem>> {
        self.algorithm.cases()
    }

    fn default_case(&self, kind: BackendKind) -> Option<&'static str> {
        self.algorithm.default_case(kind)
    }

    fn trials(&self) -> Vec<A::Problem> {
        self.algorithm.trials()
    }

    fn sized(&self, problem: &A::Problem, size: &[usize]) -> Result<A::Problem> {
        self.algorithm.sized(problem, size)
    }

    fn key(&self, problem: &A::Problem) -> (String, Vec<usize>) {
        self.algorithm.key(problem)
    }

    fn variants(&self, problem: &A::Problem) -> Vec<Row<Self>> {
        let mut rows = self.algorithm.variants(problem);
        rows.extend((self.rows)(problem));
        rows.sort_by_key(|row| row.backend == BackendKind::Cuda);
        rows
    }

    fn signature(&self, problem: &A::Problem) -> Option<Signature<A::Problem, A::Data>> {
        self.algorithm.signature(problem)
    }

    fn counts(&self, problem: &A::Problem) -> Counts {
        self.algorithm.counts(problem)
    }

    fn published(&self) -> &'static [Published] {
        self.algorithm.published()
    }

    fn published_application(&self) -> Option<PublishedApplication> {
        self.algorithm.published_application()
    }

    fn data(&self, problem: &A::Problem, device: &Device, seed: u64) -> Result<A::Data> {
        self.algorithm.data(problem, device, seed)
    }

    fn poison(&self, data: &mut A::Data) -> Result<()> {
        self.algorithm.poison(data)
    }

    fn error(&self, problem: &A::Problem, data: &A::Data) -> Result<f64> {
        self.algorithm.error(problem, data)
    }

    fn result(&self, problem: &A::Problem, data: &A::Data) -> Result<Option<String>> {
        self.algorithm.result(problem, data)
    }
}
