//! Every variant of every algorithm on every trial and device, against the oracle, and some configurations of each on the last
//! trial.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use rayspin_core::Result;
use rayspin_device::cuda::{Define, Program};
use rayspin_device::{Backend, Device};
use rayspin_emu::Coverage;
use rayspin_primitives::ladders;
use rayspin_tune::{Build, Config, Rung, Session, Which, gpu};

/// Macros whose values follow from the sizes and numbers of a problem: of those a row names some.
const OF_PROBLEMS: [&str; 5] = ["RX", "RY", "TAPS", "WIDE_A", "WIDE_B"];

/// What of `launched` is none of the forms that a row names: a line for each. Of the values that a parameter of the row may take, as
/// UNROLL does of `unroll`, it names some.
fn unnamed<'a>(
    (ladder, row): (&str, &Rung),
    named: &[Build],
    launched: impl IntoIterator<Item = &'a Program>,
) -> BTreeSet<String> {
    let open = |name: &str| {
        OF_PROBLEMS.contains(&name)
            || row.space.axes().iter().any(|axis| axis.name.eq_ignore_ascii_case(name))
    };
    let fixed = |defines: &[Define]| -> Vec<Define> {
        defines.iter().filter(|(name, _)| !open(name)).cloned().collect()
    };
    let forms: Vec<_> =
        named.iter().map(|form| (Program::new(form.source, &[]).text, fixed(&form.defines))).collect();
    let known = |program: &&Program| {
        let defines = fixed(&program.defines);
        forms.iter().any(|form| form.0 == program.text && form.1 == defines)
    };
    let line = |program: &Program| {
        let (name, of, with) = (row.name, program.name, program.options().join(" "));
        format!("{ladder}: {name} launches {of} with [{with}], which is none of the forms that it names")
    };
    launched.into_iter().filter(|program| !known(program)).map(line).collect()
}

/// What is wrong with one rung: its result, or what it launches.
fn verdict(
    ladder: &str,
    session: &mut dyn Session,
    rung: usize,
    config: &Config,
    (coverage, device): (&mut Coverage, &Device),
) -> Vec<String> {
    let row = session.rungs()[rung].clone();
    let problem = session.problem();
    let (found, mut wrong): (Result<f64>, Vec<String>) = match device.backend() {
        Backend::Cpu(_) => (session.verify(rung, config), Vec::new()),
        Backend::Cuda(cuda) => {
            let mut found = Ok(f64::NAN);
            let run = || {
                found = session.verify(rung, config);
                Ok(())
            };
            let launched = cuda.launches(run).unwrap();
            let programs = launched.iter().map(|launched| &*launched.program);
            let lines = unnamed((ladder, &row), &row.forms, programs);
            (found, lines.into_iter().collect())
        }
    };
    coverage.compared(device, row.name, *found.as_ref().unwrap_or(&f64::NAN), row.tolerance);
    match found {
        Ok(error) if error <= row.tolerance => {}
        Ok(error) => wrong
            .push(format!("{} {config} on {problem}: error {error:.3e} > {:.0e}", row.name, row.tolerance)),
        Err(error) => wrong.push(format!("{} {config} on {problem}: {error}", row.name)),
    }
    wrong
}

/// What is wrong with one rung from memory of the host to memory of the host, if anything.
fn from_host(session: &mut dyn Session, rung: usize, config: &Config) -> Option<String> {
    let row = session.rungs()[rung].clone();
    // What the outputs hold is poison until the run.
    session.verify(rung, config).ok()?;
    let found = session.whole(rung, config).and_then(|whole| Ok((whole, session.found()?)));
    match found {
        Ok((Some(whole), error)) if error <= row.tolerance && whole.bytes_out > 0 => None,
        other => Some(format!("{} from the host on {}: {other:?}", row.name, session.problem())),
    }
}

/// A test's own: what it launches stands beside what others launch at the same time.
fn devices() -> Vec<Device> {
    rayspin_emu::devices().unwrap()
}

/// Every rung with its default configuration, on each trial that it does not refuse and on one at least; on the last trial with up
/// to 12 others of its space. With `--nocapture` the largest error of every rung.
fn check(name: &str) {
    let all = ladders();
    let ladder = all.iter().find(|l| l.about().name == name).unwrap();
    let (mut wrong, mut coverage) = (Vec::new(), Coverage::default());
    let mut ran = 0;
    for device in &devices() {
        let mut expected = BTreeSet::new();
        for trial in 0..ladder.trials() {
            let of_problem = ladder.outline(Which::Trial(trial)).unwrap().rungs;
            let mut session = ladder.open(Which::Trial(trial), device, 7 + trial as u64).unwrap();
            for (at, outline) in of_problem.iter().enumerate() {
                let rung = session.rungs()[at].clone();
                if rung.backend != device.kind() {
                    continue;
                }
                expected.insert(rung.name);
                match (&outline.refuses, &rung.refuses) {
                    (None, None) => {}
                    (Some(why), _) => {
                        coverage.refused(device, rung.name, why);
                        continue;
                    }
                    (None, Some(why)) => {
                        coverage.ruled_out(device, rung.name, why);
                        continue;
                    }
                }
                let mut configs = vec![rung.space.default_config()];
                assert!(rung.space.contains(&configs[0]), "{}: its default is not in its space", rung.name);
                if trial + 1 == ladder.trials() {
                    let others = rung.space.configs();
                    let step = others.len().div_ceil(12).max(1);
                    configs.extend(others.into_iter().step_by(step));
                }
                if trial + 1 == ladder.trials() && rung.competes {
                    wrong.extend(from_host(session.as_mut(), at, &configs[0]));
                }
                for config in configs {
                    ran += 1;
                    wrong.extend(verdict(name, session.as_mut(), at, &config, (&mut coverage, device)));
                }
            }
        }
        wrong.extend(coverage.left_out(device, expected));
    }
    println!("{name}:\n{coverage}");
    assert!(ran > 0, "{name}: nothing ran");
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

/// A test for each algorithm, and one that none is left out.
macro_rules! conformance {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            check($name);
        })*

        #[test]
        fn every_algorithm_is_tested() {
            let mut tested = vec![$($name),*];
            tested.sort_unstable();
            let all: Vec<_> = ladders().iter().map(|l| l.about().name).collect();
            assert_eq!(tested, all);
        }
    };
}

conformance! {
    access: "access",
    bicubic: "bicubic",
    box_filter: "box-filter",
    convolution: "convolution",
    coulomb: "coulomb",
    histogram: "histogram",
    matrix_add: "matrix-add",
    matrix_product: "matrix-product",
    sad: "sad",
    sobel: "sobel",
    reduction: "reduction",
    transfers: "transfers",
    transpose: "transpose",
    pi: "pi",
    random: "random",
}

#[test]
fn a_program_that_a_row_does_not_name_is_told() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let all = ladders();
    let ladder = all.iter().find(|l| l.about().name == "transpose").unwrap();
    let mut session = ladder.open(Which::Trial(0), &device, 1).unwrap();
    let rung = session.rungs().iter().position(|rung| rung.name == "gpu-wide").unwrap();
    let config = session.rungs()[rung].space.default_config();
    let launched = gpu(&device).unwrap().launches(|| session.run(rung, &config, 0)).unwrap();
    let launched: Vec<&Program> = launched.iter().map(|launched| &*launched.program).collect();
    let row = ("transpose", &session.rungs()[rung]);
    let named = session.rungs()[rung].forms.clone();
    assert_eq!(unnamed(row, &named, launched.clone()), BTreeSet::new());
    // Another type of element, and another source.
    let mut of_bytes = named.clone();
    of_bytes.iter_mut().flat_map(|form| &mut form.defines).for_each(|define| define.1 = "uchar".to_owned());
    let others: Vec<Build> =
        all.iter().filter(|l| l.about().name == "pi").flat_map(|l| l.programs()).collect();
    for named in [of_bytes, others, vec![]] {
        let told = unnamed(row, &named, launched.clone());
        let told = told.first().unwrap();
        assert!(
            ["transpose: gpu-wide launches", "ELEMENT="].iter().all(|part| told.contains(part)),
            "{told}"
        );
    }
}

#[test]
fn rows_are_named_once_and_explain_themselves() {
    for ladder in ladders() {
        let about = ladder.about();
        assert!(about.readme.starts_with("# ") && about.readme.len() > 300, "{}: README", about.name);
        let cpu = &Device::cpu_with_threads(1).unwrap();
        let session = ladder.open(Which::Trial(0), cpu, 1).unwrap();
        let mut names: Vec<_> = session.rungs().iter().map(|r| r.name).collect();
        for name in &names {
            assert!(about.readme.contains(name), "{}: its README does not name {name}", about.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), session.rungs().len(), "{}: names are not unique", about.name);
        for rung in session.rungs() {
            let known = rung.reproduces.is_none_or(|row| ladder.published().iter().any(|p| p.row == row));
            assert!(known, "{}: {} reproduces an unknown row", about.name, rung.name);
        }
    }
}

#[test]
fn unknown_cases_and_sizes_are_refused() {
    for ladder in ladders() {
        let cpu = &Device::cpu_with_threads(1).unwrap();
        for which in [
            Which::Case(Some("no such case"), None),
            Which::Case(None, Some(&[])),
            Which::Case(None, Some(&[0, 0, 0, 0, 0, 0, 0])),
            Which::Case(None, Some(&[usize::MAX])),
            Which::Case(None, Some(&[1 << 32, (1 << 32) - 1])),
            Which::Case(None, Some(&[usize::MAX; 2])),
            Which::Case(None, Some(&[1 << 31; 3])),
            Which::Case(None, Some(&[1 << 31; 4])),
            Which::Trial(usize::MAX),
        ] {
            let error = ladder.open(which, cpu, 1).err();
            let kind = error.map(|e| e.kind());
            assert_eq!(kind, Some(rayspin_core::ErrorKind::Input), "{} {which:?}", ladder.about().name);
        }
    }
}

/// Every size of a copy and every number of parts, also of cases that are not the last trial.
#[test]
fn copies_are_whole_in_pieces_of_any_size() {
    let all = ladders();
    let ladder = all.iter().find(|l| l.about().name == "transfers").unwrap();
    let mut wrong = Vec::new();
    for device in devices().iter().filter(|device| device.kind() == rayspin_device::BackendKind::Cuda) {
        for case in ladder.cases() {
            let mut session =
                ladder.open(Which::Case(Some(case.0), Some(&[3 * 1024 + 5])), device, 3).unwrap();
            for at in 0..session.rungs().len() {
                for config in session.rungs()[at].space.clone().configs() {
                    let mut coverage = Coverage::default();
                    wrong.extend(verdict(
                        "transfers",
                        session.as_mut(),
                        at,
                        &config,
                        (&mut coverage, device),
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
