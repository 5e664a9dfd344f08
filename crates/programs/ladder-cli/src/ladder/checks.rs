//! Races and memory errors of kernels, which the emulator finds: `rayspin-ladder NAME --emulate --check`, and
//! the check of `try`.

use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rayspin::core::{Error, Progress};
use rayspin::device::{BackendKind, Device};
use rayspin::report::table::{Cell, Column, Table};
use rayspin::tune::{Session, VariantInfo};
use rayspin_emu::Emulator;
use rayspin_emu::checking::{Access, Fault, Wrong};
use rayspin_shell::interrupt::{STOP, stoppable};
use rayspin_shell::{Context, files, say};
use serde_json::{Value, json as value};

use super::benchmark::{is_stdout, write};
use super::emulate::{self, CompileCache, Emulation};
use crate::args::ladder::RunArgs;
use crate::without::{self, Missing};

/// An emulator that checks, and a device on it.
pub(super) struct Checker {
    emulator: Arc<Emulator>,
    pub(super) device: Device,
}

impl Checker {
    /// Errors: no compiler that can check.
    pub(super) fn new(host: Device, kept: &CompileCache) -> Result<Self> {
        let emulator = emulate::emulator()?.checking(Some(kept.folder.clone()));
        let emulator = Arc::new(emulator.map_err(Missing::with(without::COMPILER))?);
        Ok(Self { device: Device::with_driver(emulator.clone(), host), emulator })
    }

    /// Runs a variant and gives its error against the oracle, or why it failed; and what the emulator found.
    pub(super) fn run(
        &self,
        session: &mut dyn Session,
        variant: usize,
    ) -> (rayspin::core::Result<f64>, Vec<Fault>) {
        self.emulator.take_faults();
        let config = session.variants()[variant].space.default_config();
        let error = session.verify(variant, &config);
        (error, self.emulator.take_faults())
    }
}

/// The first element of a variant's outputs that is not what another variant computes, in words; where the
/// algorithm names its outputs, and another variant is right.
pub(super) fn first_difference(session: &mut dyn Session, variant: usize) -> Option<String> {
    let found = session.outputs(variant).ok()?;
    let kind = session.variants()[variant].backend;
    let runs = |v: &VariantInfo| v.backend == kind && v.refuses.is_none();
    let others: Vec<_> = session
        .variants()
        .iter()
        .enumerate()
        .filter(|(index, v)| *index != variant && runs(v))
        .map(|(index, v)| (index, v.space.default_config(), v.tolerance))
        .collect();
    for (other, config, tolerance) in others {
        if !session.verify(other, &config).is_ok_and(|error| error <= tolerance) {
            continue;
        }
        let expected = session.outputs(other).ok()?;
        return found
            .iter()
            .zip(&expected)
            .find_map(|(found, expected)| different(&**found, &**expected, tolerance));
    }
    None
}

fn different(found: &dyn Any, expected: &dyn Any, tolerance: f64) -> Option<String> {
    fn differ<T: PartialEq + Display + 'static>(
        found: &dyn Any,
        expected: &dyn Any,
        alike: impl Fn(&[T], usize, &T) -> bool,
    ) -> Option<String> {
        let (found, expected): (&Vec<T>, &Vec<T>) = (found.downcast_ref()?, expected.downcast_ref()?);
        let index =
            (0..found.len().min(expected.len())).find(|&index| !alike(expected, index, &found[index]))?;
        Some(format!("output[{index}] is {}, expected {}", found[index], expected[index]))
    }
    /// Floating-point numbers may be off by ten times the tolerance of the largest.
    fn near(expected: f64, found: f64, largest: f64, tolerance: f64) -> bool {
        (found - expected).abs() <= 10.0 * tolerance * largest || found == expected
    }
    fn exact<T: PartialEq>(expected: &[T], index: usize, found: &T) -> bool {
        expected[index] == *found
    }
    let largest = match (expected.downcast_ref::<Vec<f32>>(), expected.downcast_ref::<Vec<f64>>()) {
        (Some(values), _) => values.iter().fold(0.0, |most: f64, v| most.max(f64::from(v.abs()))),
        (_, Some(values)) => values.iter().fold(0.0, |most: f64, v| most.max(v.abs())),
        _ => 0.0,
    };
    None.or_else(|| {
        differ::<f32>(found, expected, |e, index, &f| near(e[index].into(), f.into(), largest, tolerance))
    })
    .or_else(|| differ::<f64>(found, expected, |e, index, &f| near(e[index], f, largest, tolerance)))
    .or_else(|| differ::<u8>(found, expected, exact))
    .or_else(|| differ::<u16>(found, expected, exact))
    .or_else(|| differ::<u32>(found, expected, exact))
    .or_else(|| differ::<i32>(found, expected, exact))
    .or_else(|| differ::<u64>(found, expected, exact))
}

/// What came of a variant.
struct Checked {
    variant: &'static str,
    error: Option<f64>,
    faults: Vec<Fault>,
    /// Why it was not run, or failed.
    why: Option<String>,
}

impl Checked {
    fn is_wrong(&self) -> bool {
        self.why.as_ref().is_some_and(|why| why.starts_with("FAILED"))
            || self.faults.iter().any(|f| !f.is_note())
    }

    fn words(&self) -> String {
        let count = |wanted: &[Wrong]| self.faults.iter().filter(|f| wanted.contains(&f.wrong)).count();
        let one = |count: usize, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let parts = [
            one(count(&[Wrong::Race]), "race", "races"),
            one(count(&[Wrong::Outside, Wrong::Unwritten]), "memory error", "memory errors"),
            one(count(&[Wrong::SameValues, Wrong::Ended, Wrong::TooLarge]), "note", "notes"),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }
}

/// What came of a problem.
struct Found {
    ladder: &'static str,
    problem: String,
    variants: Vec<Checked>,
}

/// Checks the variants of these problems, prints tables and what was found, and writes a file.
pub(super) fn run(context: &Context, args: &RunArgs, plans: &[Emulation<'_>]) -> Result<()> {
    let kept = CompileCache::new()?;
    let checker = Checker::new(context.device.host(), &kept)?;
    let tables = !args.json.as_deref().is_some_and(is_stdout);
    let mut problems = Vec::new();
    let ran = stoppable(|| -> Result<()> {
        for emulation in plans {
            if STOP.load(Ordering::SeqCst) {
                break;
            }
            let found = problem(context, args, &checker, emulation)?;
            if tables {
                files::print(&args.width.text(&table(&found)))?;
                for checked in &found.variants {
                    checked.faults.iter().for_each(|fault| say!("{}: {fault}", checked.variant));
                }
            }
            problems.push(found);
        }
        Ok(())
    });
    if let Some(file) = &args.json {
        write(file, &json(&problems)?)?;
    }
    ran?;
    if STOP.load(Ordering::SeqCst) {
        return Err(Error::Interrupted.into());
    }
    if let Some(first) = problems.first().filter(|_| tables) {
        files::print(&args.width.legend([&table(first)]))?;
    }
    let wrong: Vec<_> = problems
        .iter()
        .flat_map(|found| found.variants.iter().map(move |checked| (found.ladder, checked)))
        .filter(|(_, checked)| checked.is_wrong())
        .map(|(ladder, checked)| format!("{} of {ladder}", checked.variant))
        .collect();
    if !wrong.is_empty() {
        anyhow::bail!("failed or wrong: {}", wrong.join(", "));
    }
    Ok(())
}

fn problem(context: &Context, args: &RunArgs, checker: &Checker, emulation: &Emulation<'_>) -> Result<Found> {
    let Emulation { ladder, which, names } = emulation;
    let mut session = ladder.open(*which, &checker.device, args.seed)?;
    let chosen: Vec<_> = session
        .variants()
        .iter()
        .enumerate()
        .filter(|(_, v)| v.backend == BackendKind::Cuda && names.contains(&v.name))
        .map(|(index, v)| (index, v.name, v.tolerance, v.refuses.clone()))
        .collect();
    let (stage, began) = (format!("{}: checks", ladder.about().name), Instant::now());
    context.console.begin(&stage, chosen.len());
    let mut variants = Vec::new();
    for (index, variant, tolerance, refuses) in chosen {
        if STOP.load(Ordering::SeqCst) {
            break;
        }
        context.console.step(variant);
        let mut checked = Checked { variant, error: None, faults: Vec::new(), why: None };
        if let Some(why) = refuses {
            checked.why = Some(format!("not run: {why}"));
        } else {
            let (error, faults) = checker.run(session.as_mut(), index);
            checked.faults = faults;
            match error {
                // Not `error > tolerance`: NaN is wrong too.
                Ok(error) if error <= tolerance => checked.error = Some(error),
                Ok(error) => {
                    checked.error = Some(error);
                    checked.why =
                        Some(format!("FAILED: error {error:.2e}, at most {tolerance:.0e} is allowed"));
                }
                Err(Error::Interrupted) => break,
                Err(error) => checked.why = Some(format!("FAILED: {}", first_line(&error.to_string()))),
            }
        }
        variants.push(checked);
    }
    context.console.end(&stage, began.elapsed().as_secs_f64());
    Ok(Found { ladder: ladder.about().name, problem: session.problem(), variants })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn table(found: &Found) -> Table {
    let columns = vec![
        Column::text("Variant"),
        Column::number("Error").significant(2).legend("against the reference, relative"),
        Column::text("Found").legend("races, accesses outside arrays, reads of what nobody wrote"),
        Column::text("Why"),
    ];
    let caption = format!("{}: {}, checked on the CPU", found.ladder, found.problem);
    let mut table = Table::new(caption, columns);
    for checked in &found.variants {
        let ran = checked.why.as_ref().is_none_or(|why| why.starts_with("FAILED"));
        table.push(vec![
            checked.variant.into(),
            checked.error.into(),
            if ran { checked.words().into() } else { Cell::Empty },
            checked.why.as_deref().unwrap_or_default().into(),
        ]);
    }
    table
}

fn json(problems: &[Found]) -> Result<String> {
    let access = |access: &Access| {
        value!({
            "file": access.place.as_ref().map(|place| &place.file),
            "line": access.place.as_ref().map(|place| place.line),
            "text": access.text, "does": format!("{:?}", access.does).to_lowercase(),
            "block": access.block, "thread": access.thread,
        })
    };
    let fault = |fault: &Fault| {
        let kind = match fault.wrong {
            Wrong::Race => "race",
            Wrong::SameValues => "same-values",
            Wrong::Outside => "outside",
            Wrong::Unwritten => "unwritten",
            Wrong::Ended => "ended",
            Wrong::TooLarge => "too-large",
        };
        value!({
            "fault": kind, "note": fault.is_note(), "kernel": fault.kernel, "array": fault.array,
            "index": fault.index, "elements": fault.elements, "access": fault.access.as_ref().map(access),
            "other": fault.other.as_ref().map(access),
        })
    };
    let ladders: Vec<Value> = problems
        .iter()
        .map(|found| {
            value!({
                "ladder": found.ladder, "problem": found.problem,
                "variants": found.variants.iter().map(|checked| value!({
                    "variant": checked.variant, "error": checked.error, "why": checked.why,
                    "faults": checked.faults.iter().map(fault).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    let document = value!({
        "program": "rayspin-ladder --emulate --check", "version": env!("CARGO_PKG_VERSION"), "ladders": ladders,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::ladder::Ladders;

    /// Variants with a fault that changes no result, and where it is.
    const KNOWN: [(&str, &str, Wrong); 4] = [
        // The padding of a row in shared memory is read and not used.
        ("backproject", "gpu-lines", Wrong::Unwritten),
        ("project", "gpu-lines", Wrong::Unwritten),
        ("project-adjoint", "gpu-lines", Wrong::Unwritten),
        // A word is read for one of its halves, while another block writes the other.
        ("lbm", "gpu-words", Wrong::Race),
    ];

    #[test]
    fn all_variants_are_free_of_races_and_memory_errors() {
        let host = Device::cpu_with_threads(1).unwrap();
        let checker = || {
            let emulator = Arc::new(Emulator::new()?.checking(None)?);
            Ok::<_, Error>(Checker { device: Device::with_driver(emulator.clone(), host.clone()), emulator })
        };
        if let Err(error) = checker() {
            println!("passed over: {error}");
            return;
        }
        let ladders = Ladders::new(crate::ladders());
        let plans: Vec<_> = ladders
            .all()
            .into_iter()
            .flat_map(|ladder| emulate::plan(ladder, None, None, &[]).unwrap())
            .collect();
        let (next, ran, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(4) {
                scope.spawn(|| {
                    let checker = checker().unwrap();
                    while let Some(plan) = plans.get(next.fetch_add(1, Ordering::SeqCst)) {
                        let name = plan.ladder.about().name;
                        let mut session = plan.ladder.open(plan.which, &checker.device, 1).unwrap();
                        for index in 0..session.variants().len() {
                            let variant = &session.variants()[index];
                            let (own, tolerance) = (variant.name, variant.tolerance);
                            if variant.backend != BackendKind::Cuda
                                || variant.refuses.is_some()
                                || !plan.names.contains(&own)
                            {
                                continue;
                            }
                            ran.fetch_add(1, Ordering::SeqCst);
                            let (error, faults) = checker.run(session.as_mut(), index);
                            if !error.as_ref().is_ok_and(|&error| error <= tolerance) {
                                wrong.lock().unwrap().push(format!("{own} of {name}: {error:?}"));
                            }
                            let known =
                                |fault: &Fault| fault.is_note() || KNOWN.contains(&(name, own, fault.wrong));
                            for fault in faults.iter().filter(|fault| !known(fault)) {
                                wrong.lock().unwrap().push(format!("{own} of {name}: {fault}"));
                            }
                        }
                    }
                });
            }
        });
        let wrong = wrong.into_inner().unwrap();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(ran.into_inner() > 150, "every variant is run");
    }

    #[test]
    fn the_first_output_that_differs_is_told() {
        let (found, expected) = (vec![1.0f32, 2.0, f32::NAN, 4.0], vec![1.0f32, 2.000_001, 3.0, 5.0]);
        assert_eq!(different(&found, &expected, 1e-6).unwrap(), "output[2] is NaN, expected 3");
        assert_eq!(different(&vec![7u32, 8], &vec![7u32, 9], 0.0).unwrap(), "output[1] is 8, expected 9");
        assert!(different(&vec![7u8], &vec![7u8], 0.0).is_none());
    }
}
