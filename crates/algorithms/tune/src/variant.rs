//! The table row that every variant of an algorithm is: the one place that knows anything about it.

pub use rayspin_core::Work;
use rayspin_core::{Error, Result};
use rayspin_device::{BackendKind, Device};

use crate::algorithm::Peak;
use crate::build::Build;
use crate::host_transfer::HostTransfer;
use crate::space::{Config, Space};

/// One way of computing an algorithm whose problems are `P`. `I` is its implementation: [`Runnable`] in a
/// ladder, a function pointer in the tables of plain functions.
///
/// Conformance tests, the tuner, tables and the list of compiled programs iterate over an algorithm's rows.
/// Nothing else knows a variant, so adding one is a source file and a row:
///
/// ```
/// use rayspin_device::BackendKind;
/// use rayspin_tune::variant::{Runnable, Variant, Work};
///
/// let work = |n: &usize| Work { bytes: 8.0 * *n as f64, flops: 0.0 };
/// let row = Variant::new("gpu-wide", BackendKind::Cpu, "16-byte loads", Runnable::<usize, Vec<f32>>::new(|_, data| {
///     data.fill(1.0);
///     Ok(())
/// }), work);
/// let row = row.tolerance(1e-6).refuses(|n| (*n > 1 << 30).then(|| format!("{n} is too long")));
/// assert!((row.refuses)(&7).is_none());
/// ```
#[derive(Clone)]
pub struct Variant<P: 'static, I> {
    /// Short name, unique within the algorithm: what people ask for and what tuning results belong to. No
    /// code depends on it.
    pub name: &'static str,
    /// The kind of processor it runs on.
    pub backend: BackendKind,
    /// What distinguishes it, in one line.
    pub summary: &'static str,
    /// The function or functions that compute it.
    pub implementation: I,
    /// What any implementation of this form must move and compute: this variant's own work, not what the
    /// plain formula counts.
    pub work: fn(&P) -> Work,
    /// The units that do its operations, where these are not the problem's ([`crate::Counts::peak`]).
    pub peak: Option<Peak>,
    /// Why it cannot run a problem, or `None` when it can.
    pub refuses: fn(&P) -> Option<String>,
    /// Why it cannot run on a device, whatever the problem: instructions that the processor lacks.
    pub lacks: fn(&Device) -> Option<String>,
    /// The parameters that it leaves open.
    pub space: fn(&P) -> Space,
    /// Every form of the programs that it launches, as far as forms matter to a kernel's resources. The list
    /// leaves out programs of other algorithms that it calls. Tuning results of a GPU's variant belong to the
    /// sources of these programs.
    pub forms: fn() -> Vec<Build>,
    /// Error against the f64 oracle that conformance tests demand.
    pub tolerance: f64,
    /// Whether it gives the algorithm's result, so that it may be the best of them; false for a row to
    /// compare with.
    pub competes: bool,
    /// Whether [`Variant::work`] and the instructions of its kernels tell how fast it can be: not where it
    /// computes on units that the cost model leaves out, such as tensor cores.
    pub predictable: bool,
    /// The published row that it reproduces, if any.
    pub reproduces: Option<&'static str>,
}

impl<P, I> Variant<P, I> {
    /// A row that runs every problem on every device, leaves nothing open, launches no program, is exact and
    /// may be the best.
    pub const fn new(
        name: &'static str,
        backend: BackendKind,
        summary: &'static str,
        implementation: I,
        work: fn(&P) -> Work,
    ) -> Self {
        Self {
            name,
            backend,
            summary,
            implementation,
            work,
            peak: None,
            refuses: runs_all,
            lacks: |_| None,
            space: |_| Space::none(),
            forms: Vec::new,
            tolerance: 0.0,
            competes: true,
            predictable: true,
            reproduces: None,
        }
    }

    /// Sets [`Variant::refuses`].
    pub const fn refuses(mut self, refuses: fn(&P) -> Option<String>) -> Self {
        self.refuses = refuses;
        self
    }

    /// Sets [`Variant::lacks`].
    pub const fn lacks(mut self, lacks: fn(&Device) -> Option<String>) -> Self {
        self.lacks = lacks;
        self
    }

    /// Sets [`Variant::space`].
    pub const fn space(mut self, space: fn(&P) -> Space) -> Self {
        self.space = space;
        self
    }

    /// Sets [`Variant::forms`].
    pub const fn forms(mut self, forms: fn() -> Vec<Build>) -> Self {
        self.forms = forms;
        self
    }

    /// Sets [`Variant::tolerance`].
    pub const fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets [`Variant::work`].
    pub const fn counting(mut self, work: fn(&P) -> Work) -> Self {
        self.work = work;
        self
    }

    /// Sets [`Variant::peak`].
    pub const fn on(mut self, peak: Peak) -> Self {
        self.peak = Some(peak);
        self
    }

    /// A row to compare with: it does not give the algorithm's result.
    pub const fn to_compare(mut self) -> Self {
        self.competes = false;
        self
    }

    /// A row whose work does not tell how fast it can be: clears [`Variant::predictable`].
    pub const fn unpredictable(mut self) -> Self {
        self.predictable = false;
        self
    }

    /// Sets [`Variant::reproduces`].
    pub const fn reproduces(mut self, row: &'static str) -> Self {
        self.reproduces = Some(row);
        self
    }

    /// The same row, run in another way.
    pub fn run_by<M>(self, to_run: impl FnOnce(I) -> M) -> Variant<P, M> {
        let Self { name, backend, summary, implementation, work, peak, refuses, lacks, space, forms, .. } =
            self;
        let Self { tolerance, competes, predictable, reproduces, .. } = self;
        let implementation = to_run(implementation);
        Variant {
            name,
            backend,
            summary,
            implementation,
            work,
            peak,
            refuses,
            lacks,
            space,
            forms,
            tolerance,
            competes,
            predictable,
            reproduces,
        }
    }
}

impl<P: 'static, D: 'static> Variant<P, Runnable<P, D>> {
    /// Another row for the same problems, with this one's work and tolerance. `implementation` gets the
    /// arrays of this row's transfer ([`Runnable::host_transfer`]). So a crate that cannot see an
    /// algorithm's data adds a variant to it. This row's result must lie in these arrays.
    ///
    /// Errors of a run: this row names no arrays; `implementation` fails.
    pub fn beside(
        &self,
        name: &'static str,
        backend: BackendKind,
        summary: &'static str,
        implementation: impl Fn(&Config, HostTransfer<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let (host_transfer, name_of_row) = (self.implementation.host_transfer, self.name);
        let run = Runnable::new(move |config, data| match host_transfer(data) {
            Some(arrays) => implementation(config, arrays),
            None => Err(Error::value(format!("variant {name_of_row}"), "arrays that it copies", "none")),
        });
        Self::new(name, backend, summary, run.host_transfer(host_transfer), self.work)
            .tolerance(self.tolerance)
    }
}

/// How a row of a ladder runs on data `D`, and what goes between host and device for it.
pub struct Runnable<P, D> {
    implementation: Implementation<D>,
    pub(crate) host_transfer: fn(&mut D) -> Option<HostTransfer<'_>>,
    set_up: fn(&P, &mut D) -> Result<()>,
}

type Implementation<D> = Box<dyn Fn(&Config, &mut D) -> Result<()> + Send + Sync>;

impl<P, D> Runnable<P, D> {
    /// Runs `implementation`: outputs from inputs, which stay as they are. It allocates nothing.
    pub fn new(implementation: impl Fn(&Config, &mut D) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { implementation: Box::new(implementation), host_transfer: |_| None, set_up: |_, _| Ok(()) }
    }

    /// Names the arrays whose values come from the host before a run that begins there, and those whose
    /// values go back. Without it, nobody would ask for such a run.
    pub fn host_transfer(mut self, host_transfer: fn(&mut D) -> Option<HostTransfer<'_>>) -> Self {
        self.host_transfer = host_transfer;
        self
    }

    /// Makes anew the plans, the tables and the textures of the inputs that the variant uses besides these
    /// arrays. Its workspace is not included.
    pub fn set_up(mut self, set_up: fn(&P, &mut D) -> Result<()>) -> Self {
        self.set_up = set_up;
        self
    }

    /// Runs the variant: outputs from inputs.
    pub fn launch(&self, config: &Config, data: &mut D) -> Result<()> {
        (self.implementation)(config, data)
    }

    pub(crate) fn transferred<'a>(&self, data: &'a mut D) -> Option<HostTransfer<'a>> {
        (self.host_transfer)(data)
    }

    pub(crate) fn prepare(&self, problem: &P, data: &mut D) -> Result<()> {
        (self.set_up)(problem, data)
    }
}

/// For variants that run every problem.
pub fn runs_all<P>(_: &P) -> Option<String> {
    None
}
