//! A kernel of the user's own, in an algorithm's table.
#![allow(unsafe_code)]

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Argument, Define, Launch, Program, Source};
use rayspin_device::{BackendKind, Device};

use crate::algorithm::{Algorithm, Row};
use crate::gpu;
use crate::variant::{Runnable, Variant};

/// What a kernel is called with to compute an algorithm's problem: the contract of a user's own kernel.
pub struct Signature<P: 'static, D: 'static> {
    /// Its name.
    pub kernel: &'static str,
    /// Its declaration in CUDA C++, below a comment that defines the arguments and the result.
    pub declaration: &'static str,
    /// Elements that want a thread each, where the user does not say how many blocks there are.
    pub threads: fn(&P) -> usize,
    /// Macros that the problem fixes.
    pub defines: fn(&P) -> Vec<Define>,
    /// Calls its argument with the kernel's arguments, in the order of the declaration, once outputs hold
    /// what the declaration says.
    pub call: fn(&mut D, &mut Call<'_>) -> Result<()>,
}

/// Takes the arguments of a kernel and launches it.
pub type Call<'a> = dyn FnMut(&Device, &mut [Argument<'_>]) -> Result<()> + 'a;

/// A kernel that a user wrote, and how it is to be launched.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// The name of its row.
    pub name: &'static str,
    /// Its source.
    pub source: &'static Source,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks; as many as give each element a thread where none are named.
    pub blocks: Option<u32>,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl Own {
    /// A user's source, which is kept until the process ends, as kernels are: `file` is its name in the
    /// compiler's messages.
    pub fn new(name: &str, file: &str, text: String, threads: u32) -> Self {
        let keep = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let files: &'static [(&'static str, &'static str)] =
            Box::leak(Box::new([(keep(file), &*Box::leak(text.into_boxed_str()))]));
        let name = keep(name);
        let source = Box::leak(Box::new(Source { name, files }));
        Self { name, source, threads, blocks: None, shared: 0 }
    }

    /// Errors: it has no kernel of this name, or one of other parameters than the declaration.
    fn check(&self, kernel: &str, declaration: &str, defines: &[Define]) -> Result<()> {
        let file = self.name;
        let program = |text: String| Program { name: self.name, text, defines: defines.to_vec() };
        let mut declared = program(format!("{declaration} {{}}")).signatures()?;
        let mut signatures = Program::new(self.source, defines).signatures()?;
        let declared = declared.remove(kernel).unwrap_or_default();
        let Some(own) = signatures.remove(kernel) else {
            let mut names: Vec<_> = signatures.into_keys().collect();
            names.sort_unstable();
            let names = if names.is_empty() {
                "none that is extern \"C\" __global__".to_owned()
            } else {
                names.join(", ")
            };
            return Err(Error::value(format!("kernels of {file}"), format!("one named {kernel}"), names));
        };
        if own.len() != declared.len() {
            return Err(Error::value(
                format!("{file}: parameters of {kernel}"),
                declared.len().to_string(),
                own.len(),
            ));
        }
        for (i, (own, declared)) in own.iter().zip(&declared).enumerate() {
            let same = (&own.element, own.pointer) == (&declared.element, declared.pointer);
            if !same || (own.writes && !declared.writes) {
                let what = format!("{file}: {kernel}, parameter {} ({})", i + 1, declared.name);
                return Err(Error::value(what, declared.to_string(), own));
            }
        }
        Ok(())
    }

    /// Its row for a problem. The row takes its tolerance from the least exact variant that competes on a
    /// GPU. It takes its work and its host transfers from the last such variant. Where no variant is for a
    /// GPU, it takes them from the variants for the CPU.
    ///
    /// The row does not name its programs: [`Variant::forms`] does that, for rows that stay in an algorithm's
    /// table ([`crate::With`]).
    ///
    /// Errors: the algorithm has no [`Signature`] for this problem; the source has no such kernel, or one of
    /// other parameters.
    pub fn row<A: Algorithm>(self, algorithm: &A, problem: &A::Problem) -> Result<Row<A>> {
        let name = algorithm.about().name;
        let Signature { kernel, declaration, threads, defines, call } = self.called(algorithm, problem)?;
        let rows = algorithm.variants(problem);
        let on = |kind| -> Vec<&Row<A>> { rows.iter().filter(|r| r.competes && r.backend == kind).collect() };
        let others = match on(BackendKind::Cuda) {
            gpu if gpu.is_empty() => on(BackendKind::Cpu),
            gpu => gpu,
        };
        let Some(last) = others.last() else {
            return Err(Error::value(format!("ladder {name}"), "a variant to stand beside", "none"));
        };
        let tolerance = others.iter().map(|row| row.tolerance).fold(0.0, f64::max);
        let (elements, defines) = (threads(problem), defines(problem));
        self.check(kernel, declaration, &defines)?;
        let run = Runnable::new(move |_, data| {
            call(data, &mut |device, arguments| {
                let kernel = gpu(device)?.kernel(self.source, &defines, kernel)?;
                let launch = match self.blocks {
                    Some(blocks) => Launch::linear(blocks, self.threads),
                    None => Launch::covering(elements, self.threads),
                };
                let launch = Launch { shared: self.shared, ..launch };
                // SAFETY: the kernel is the user's own program, run because the user said so; that it stays
                // inside its arrays is the contract that the declaration states. Number and types of its
                // arguments are compared with its own declaration.
                unsafe { kernel.launch(launch, arguments) }
            })
        });
        let run = run.host_transfer(last.implementation.host_transfer);
        let row = Variant::new(self.name, BackendKind::Cuda, "a kernel of your own", run, last.work);
        Ok(row.tolerance(tolerance).unpredictable())
    }

    /// Errors: the algorithm has no [`Signature`] for this problem; the source does not compile.
    pub(crate) fn compile<A: Algorithm>(
        self,
        algorithm: &A,
        problem: &A::Problem,
        device: &Device,
    ) -> Result<()> {
        let Signature { kernel, defines, .. } = self.called(algorithm, problem)?;
        gpu(device)?.kernel(self.source, &defines(problem), kernel).map(|_| ())
    }

    fn called<A: Algorithm>(
        self,
        algorithm: &A,
        problem: &A::Problem,
    ) -> Result<Signature<A::Problem, A::Data>> {
        let none = || {
            let expected = "a problem that one kernel of a user's own may compute";
            Error::value(format!("ladder {}", algorithm.about().name), expected, problem)
        };
        algorithm.signature(problem).ok_or_else(none)
    }
}
