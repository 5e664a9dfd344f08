//! The check of ladders: every variant against the oracle.

use std::collections::{BTreeSet, HashSet};

use rayspin_core::Result;
use rayspin_device::cuda::{Define, Program};
use rayspin_device::{Backend, Device};
use rayspin_emu::Coverage;
use rayspin_tune::{Build, Config, Ladder, Session, VariantInfo, Which};

/// How ladders are checked: see [`Conformance::check`].
///
/// ```no_run
/// # fn ladders() -> Vec<Box<dyn rayspin_tune::Ladder>> { Vec::new() }
/// let device = rayspin_device::Device::cpu()?;
/// let conformed = rayspin_lab::Conformance::default().check(&ladders(), &device);
/// assert!(conformed.wrong.is_empty(), "{}", conformed.wrong.join("\n"));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Conformance<'a> {
    /// Seed of the first trial's inputs; each trial adds 1.
    pub seed: u64,
    /// Configurations besides the default that each variant runs on the last trial, at most.
    pub configs: usize,
    /// Macros whose values follow from a problem: its sizes, its accuracy, its plan. A row names programs
    /// with some of the values. The same holds for macros that are parameters of the row.
    pub open: &'a [&'a str],
    /// Programs of other algorithms that variants launch.
    pub others: &'a [Build],
}

impl Default for Conformance<'_> {
    /// Twelve configurations, no macros, no other programs.
    fn default() -> Self {
        Self { seed: 1, configs: 12, open: &[], others: &[] }
    }
}

/// What [`Conformance::check`] found.
#[derive(Debug, Default)]
pub struct Conformed {
    /// What is wrong, a line each: nothing where all variants conform.
    pub wrong: Vec<String>,
    /// Runs that were compared with the oracle.
    pub ran: usize,
    /// The ladders' variants with their errors, or why they did not run.
    pub coverage: Vec<(&'static str, Coverage)>,
}

impl Conformance<'_> {
    /// Checks the variants of `ladders` that are made for this device. On every trial that a variant does not
    /// refuse it gets fresh random inputs and poisoned outputs, and its result is compared with the f64
    /// oracle. No other code may use the device: the check compares the programs that the device launches
    /// with the programs in the row.
    ///
    /// What counts as wrong:
    ///
    /// - A run fails, or its error exceeds the row's tolerance (NaN does). The arrays are on the device, and
    ///   on the last trial also on the host.
    /// - A run launches a program that is none of the forms in its row.
    /// - A variant refuses every trial, or a ladder has no variant at all.
    /// - Two variants of a ladder have one name, or a default configuration is not in the variant's space.
    pub fn check(&self, ladders: &[Box<dyn Ladder>], device: &Device) -> Conformed {
        let mut conformed = Conformed::default();
        for ladder in ladders {
            let name = ladder.about().name;
            let mut one = One { how: self, device, coverage: Coverage::default(), ran: 0 };
            let wrong = one.ladder(ladder.as_ref()).unwrap_or_else(|error| vec![error.to_string()]);
            conformed.wrong.extend(wrong.into_iter().map(|line| format!("{name}: {line}")));
            conformed.ran += one.ran;
            conformed.coverage.push((name, one.coverage));
        }
        conformed
    }
}

/// What ladders leave unexplained, a line each: a README without a title or of a few words, a variant that it
/// does not name, a variant that reproduces a row which is not among the [published](Ladder::published) ones.
///
/// The same for a [row of the application table](Ladder::published_application): cases that the ladder does
/// not have, and numbers that the README does not state.
///
/// Errors: as [`Ladder::outline`].
///
/// ```
/// # fn ladders() -> Vec<Box<dyn rayspin_tune::Ladder>> { Vec::new() }
/// let wrong = rayspin_lab::unexplained(&ladders())?;
/// assert!(wrong.is_empty(), "{}", wrong.join("\n"));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn unexplained(ladders: &[Box<dyn Ladder>]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for ladder in ladders {
        let about = ladder.about();
        let mut say = |text: String| wrong.push(format!("{}: {text}", about.name));
        if !about.readme.starts_with("# ") || about.readme.len() <= 300 {
            say("its README has no title, or a few words only".to_owned());
        }
        for variant in ladder.outline(Which::Trial(0))?.variants {
            if !about.readme.contains(variant.name) {
                say(format!("its README does not name {}", variant.name));
            }
            if variant.reproduces.is_some_and(|row| ladder.published().iter().all(|p| p.row != row)) {
                say(format!("{} reproduces an unknown row", variant.name));
            }
        }
        let Some(row) = ladder.published_application() else { continue };
        let cases = row.cases.iter().flat_map(|&(case, one_core)| [case, one_core]);
        for unknown in cases.filter(|case| ladder.cases().iter().all(|(name, ..)| name != case)) {
            say(format!("{unknown} of the application table is no case"));
        }
        let speed_ups = format!("{:?} ×, {:?} ×", row.kernel, row.application);
        for words in [row.bottleneck, &row.threads.to_string(), &speed_ups] {
            if !about.readme.contains(words) {
                say(format!("its README does not state {words}, of the application table"));
            }
        }
    }
    Ok(wrong)
}

/// The check of one ladder.
struct One<'a> {
    how: &'a Conformance<'a>,
    device: &'a Device,
    coverage: Coverage,
    ran: usize,
}

impl One<'_> {
    fn ladder(&mut self, ladder: &dyn Ladder) -> Result<Vec<String>> {
        let (mut wrong, mut expected) = (Vec::new(), BTreeSet::new());
        for trial in 0..ladder.trials() {
            let of_problem = ladder.outline(Which::Trial(trial))?.variants;
            let mut names = HashSet::new();
            let twice = of_problem.iter().filter(|variant| !names.insert(variant.name));
            wrong.extend(twice.map(|variant| format!("two variants are called {}", variant.name)));
            if of_problem.is_empty() {
                wrong.push(format!("trial {trial} has no variants"));
            }
            let mut session =
                ladder.open(Which::Trial(trial), self.device, self.how.seed.wrapping_add(trial as u64))?;
            for (index, outline) in of_problem.iter().enumerate() {
                let Some(variant) = session.variants().get(index).cloned() else { continue };
                if variant.backend != self.device.kind() {
                    continue;
                }
                expected.insert(variant.name);
                match (&outline.refuses, &variant.refuses) {
                    (None, None) => {
                        let last = trial + 1 == ladder.trials();
                        wrong.extend(self.variant(session.as_mut(), index, &variant, last)?);
                    }
                    (Some(why), _) => self.coverage.refused(self.device, variant.name, why),
                    (None, Some(why)) => self.coverage.ruled_out(self.device, variant.name, why),
                }
            }
        }
        if ladder.trials() == 0 {
            wrong.push("it has no trials".to_owned());
        }
        wrong.extend(self.coverage.left_out(self.device, expected));
        Ok(wrong)
    }

    fn variant(
        &mut self,
        session: &mut dyn Session,
        index: usize,
        variant: &VariantInfo,
        last: bool,
    ) -> Result<Vec<String>> {
        let default = variant.space.default_config();
        let mut wrong = Vec::new();
        if !variant.space.contains(&default) {
            wrong.push(format!("{}: its default is not in its space", variant.name));
        }
        if last {
            wrong.extend(self.host_transfer(session, index, &default));
        }
        let mut configs = vec![default];
        if last && self.how.configs > 0 {
            let others = variant.space.configs();
            let step = others.len().div_ceil(self.how.configs).max(1);
            configs.extend(others.into_iter().step_by(step));
        }
        for config in configs {
            wrong.extend(self.verdict(session, index, &config)?);
        }
        Ok(wrong)
    }

    /// What is wrong with one run: its result, or what it launches.
    fn verdict(&mut self, session: &mut dyn Session, index: usize, config: &Config) -> Result<Vec<String>> {
        let variant = session.variants()[index].clone();
        let problem = session.problem();
        let (verified, mut wrong) = match self.device.backend() {
            Backend::Cpu(_) => (session.verify(index, config), BTreeSet::new()),
            Backend::Cuda(cuda) => {
                let mut verified = Ok(f64::NAN);
                let launched = cuda.launches(|| {
                    verified = session.verify(index, config);
                    Ok(())
                })?;
                (verified, self.unnamed(&variant, launched.iter().map(|launched| &*launched.program)))
            }
        };
        self.ran += 1;
        self.coverage.compared(
            self.device,
            variant.name,
            *verified.as_ref().unwrap_or(&f64::NAN),
            variant.tolerance,
        );
        let run = || match config.values().next() {
            Some(_) => format!("{} with {config} on {problem}", variant.name),
            None => format!("{} on {problem}", variant.name),
        };
        match verified {
            Ok(error) if error <= variant.tolerance => {}
            Ok(error) => {
                wrong.insert(format!(
                    "{}: error {error:.3e}, at most {:.0e} is allowed",
                    run(),
                    variant.tolerance
                ));
            }
            Err(error) => {
                wrong.insert(format!("{}: {error}", run()));
            }
        }
        Ok(wrong.into_iter().collect())
    }

    /// What is wrong with a run from memory of the host to memory of the host, if anything. Only variants to
    /// compare with may do without.
    fn host_transfer(&self, session: &mut dyn Session, index: usize, config: &Config) -> Option<String> {
        let variant = session.variants()[index].clone();
        // The run on the device reports what fails here.
        session.verify(index, config).ok()?;
        match session.end_to_end(index, config).and_then(|whole| Ok((whole, session.found()?))) {
            Ok((Some(whole), error)) if error <= variant.tolerance && whole.bytes_out > 0 => None,
            Ok((None, _)) if !variant.competes => None,
            other => Some(format!("{} from the host on {}: {other:?}", variant.name, session.problem())),
        }
    }

    /// The programs of `launched` that are none of the forms that the row names: a line for each.
    fn unnamed<'a>(
        &self,
        variant: &VariantInfo,
        launched: impl IntoIterator<Item = &'a Program>,
    ) -> BTreeSet<String> {
        let open = |name: &str| {
            self.how.open.contains(&name)
                || variant.space.axes().iter().any(|axis| axis.name.eq_ignore_ascii_case(name))
        };
        let fixed = |defines: &[Define]| -> Vec<Define> {
            defines.iter().filter(|(name, _)| !open(name)).cloned().collect()
        };
        let forms = |builds: &[Build]| -> Vec<(String, Vec<Define>)> {
            builds.iter().map(|form| (Program::new(form.source, &[]).text, fixed(&form.defines))).collect()
        };
        let (own, others) = (forms(&variant.forms), forms(self.how.others));
        let known = |program: &&Program| {
            let defines = fixed(&program.defines);
            let is = |form: &(String, Vec<Define>)| form.0 == program.text && form.1 == defines;
            // Programs of the row's own sources are the row's to name.
            let of_row = own.iter().any(|form| form.0 == program.text);
            if of_row { own.iter().any(is) } else { others.iter().any(is) }
        };
        let line = |program: &Program| {
            let (name, program_name, with) = (variant.name, program.name, program.options().join(" "));
            format!("{name} launches {program_name} with [{with}], which is none of the forms that it names")
        };
        launched.into_iter().filter(|program| !known(program)).map(line).collect()
    }
}
