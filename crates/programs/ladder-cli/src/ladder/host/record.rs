//! A run of a variant in the emulator, step by step.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use rayspin::core::Error;
use rayspin::device::cuda::{Launch, Program};
use rayspin::device::{BackendKind, Device};
use rayspin::tune::{Ladder, Which};
use rayspin_emu::{Emulator, RunRecord, Step};
use rayspin_shell::{BadInput, Context};

use super::super::emulate::{self, CompileCache};

/// What a run of a variant did.
pub(in super::super) struct Recorded {
    pub(super) variant: &'static str,
    pub(super) summary: &'static str,
    pub(in super::super) problem: String,
    /// The error against the reference that the variant may have.
    pub(super) tolerance: f64,
    /// All steps of a check; those of the run are `run`.
    pub(super) record: RunRecord,
    pub(super) run: std::ops::Range<usize>,
    /// The addresses of the arrays that the run is judged by.
    pub(super) outputs: BTreeSet<u64>,
    /// Those whose numbers come in an order that differs from run to run.
    pub(super) unordered: BTreeSet<u64>,
    pub(in super::super) emulator: Arc<Emulator>,
}

impl Recorded {
    pub(super) fn steps(&self) -> &[Step] {
        &self.record.steps[self.run.clone()]
    }

    /// The run's launches in order.
    pub(in super::super) fn launches(&self) -> impl Iterator<Item = (&Arc<Program>, &str, Launch)> {
        self.steps().iter().filter_map(|step| match step {
            Step::Launch { program, kernel, launch, .. } => Some((program, kernel.as_str(), *launch)),
            _ => None,
        })
    }
}

/// Runs a variant in the emulator: once to make its tables and plans, then for the record.
///
/// Errors: no compiler; the variant refuses the problem, fails or is wrong; its runs differ from each other.
pub(in super::super) fn record(
    context: &Context,
    ladder: &dyn Ladder,
    which: Which<'_>,
    variant: &str,
    seed: u64,
) -> Result<Recorded> {
    let kept = CompileCache::new()?;
    // Several threads, so that blocks that run at once show where their order matters.
    let emulator =
        emulate::emulator()?.measuring(context.threads().max(4), Some(kept.folder.clone()), false)?;
    let emulator = Arc::new(emulator);
    let device = Device::with_driver(emulator.clone(), context.device.host());
    let mut session = ladder.open(which, &device, seed)?;
    let is_wanted = |v: &rayspin::tune::VariantInfo| v.backend == BackendKind::Cuda && v.name == variant;
    let missing = || Error::value("variant", "one for a GPU", variant);
    let index = session.variants().iter().position(is_wanted).ok_or_else(missing)?;
    let info = session.variants()[index].clone();
    let name = ladder.about().name;
    if let Some(why) = info.refuses {
        let message = format!("{variant} of {name}: expected a problem that it takes: {why}");
        return Err(BadInput::new(message)
            .hint(format!("rayspin-ladder list {name} lists its cases"))
            .into());
    }
    let config = info.space.default_config();
    let error = session.verify(index, &config)?;
    // NaN is wrong too.
    if error.is_nan() || error > info.tolerance {
        anyhow::bail!(
            "{variant} of {name}: wrong: error {error:.2e}, at most {:.0e} is allowed",
            info.tolerance
        );
    }
    let alone = emulator.record(0, || {
        session.run(index, &config, 0)?;
        device.synchronize()
    })?;
    // In the other order of threads.
    emulator.turn(true);
    let whole = emulator.record(0, || session.verify(index, &config).map(drop))?;
    emulator.turn(false);
    let count = alone.steps.len();
    let first = whole.steps.windows(count.max(1)).position(|steps| alike(steps, &alone.steps));
    let Some(first) = first.filter(|_| count > 0) else {
        let message = format!(
            "{variant} of {name}: expected a run that repeats itself, found one that differs from run to run"
        );
        return Err(BadInput::new(message)
            .hint(format!("rayspin-ladder list {name} lists other variants"))
            .into());
    };
    // The check spoils the outputs first: what it spoils is what the run is judged by.
    let record = emulator.record(first, || session.verify(index, &config).map(drop))?;
    let run = first..first + count;
    let differs = || {
        let message = format!(
            "{variant} of {name}: expected a run that repeats itself, found one that differs from run to run"
        );
        BadInput::new(message).hint(format!("rayspin-ladder list {name} lists other variants"))
    };
    if !record.steps.get(run.clone()).is_some_and(|steps| alike(steps, &alone.steps)) {
        return Err(differs().into());
    }
    let outputs = spoilt(&record, first);
    let unordered =
        outputs.iter().copied().filter(|&address| in_another_order(address, &record, &whole)).collect();
    Ok(Recorded {
        variant: info.name,
        summary: info.summary,
        problem: session.problem(),
        tolerance: info.tolerance,
        record,
        run,
        outputs,
        unordered,
        emulator,
    })
}

/// Whether two lists of steps do the same to memory, whatever its addresses and values.
fn alike(a: &[Step], b: &[Step]) -> bool {
    let same = |(a, b): (&Step, &Step)| match (a, b) {
        (
            Step::Launch { program, kernel, launch, .. },
            Step::Launch { program: other, kernel: kernel_of_other, launch: launch_of_other, .. },
        ) => program == other && kernel == kernel_of_other && launch == launch_of_other,
        (Step::Upload { bytes: a, .. }, Step::Upload { bytes: b, .. }) => a.len() == b.len(),
        (Step::Copy { bytes: a, .. }, Step::Copy { bytes: b, .. }) => a == b,
        (Step::Set { bytes: a, .. }, Step::Set { bytes: b, .. }) => a == b,
        (Step::Read(a), Step::Read(b)) => a == b,
        (Step::Other(a), Step::Other(b)) => a == b,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Whether two runs left the same words in an array, each in its own order.
fn in_another_order(address: u64, one: &RunRecord, other: &RunRecord) -> bool {
    let words = |record: &RunRecord| {
        let array = record.arrays.iter().find(|array| array.address == address)?;
        Some(array.after.chunks(4).map(<[u8]>::to_vec).collect::<Vec<_>>())
    };
    let (Some(mut a), Some(mut b)) = (words(one), words(other)) else { return false };
    let differ = a != b;
    a.sort_unstable();
    b.sort_unstable();
    differ && a == b
}

/// The arrays that the steps before a run write.
fn spoilt(record: &RunRecord, first: usize) -> BTreeSet<u64> {
    let mut addresses = Vec::new();
    for step in &record.steps[..first] {
        match step {
            Step::Upload { to, .. } | Step::Copy { to, .. } => addresses.push(*to),
            Step::Set { address, .. } => addresses.push(*address),
            Step::Launch { program, kernel, arguments, .. } => {
                let signatures = program.signatures().unwrap_or_default();
                let parameters = signatures.get(kernel).map(Vec::as_slice).unwrap_or_default();
                let written = parameters.iter().zip(arguments).filter(|(parameter, _)| parameter.writes);
                addresses.extend(
                    written.filter_map(|(_, bytes)| bytes.as_slice().try_into().ok().map(u64::from_ne_bytes)),
                );
            }
            Step::Read(_) | Step::Other(_) => {}
        }
    }
    let array = |address: &u64| {
        let holds = |a: &&rayspin_emu::RecordedMemory| {
            (a.address..a.address + a.before.len() as u64).contains(address)
        };
        record.arrays.iter().find(holds).map(|array| array.address)
    };
    addresses.iter().filter_map(array).collect()
}
