//! CUDA programs through the vendor's compiler, which needs no GPU: that they compile, and what their kernels
//! take. Run with `--nocapture` for the table. Included by the tests that compile.
//!
//! `make test` installs the compiler and sets `RAYSPIN_NVRTC_REQUIRED`; without that, and without a compiler,
//! there is nothing to see here. It compiles for one generation of processors; `make test-ladders` sets
//! `RAYSPIN_TEST_ARCHITECTURES=all`, for three.

use rayon::prelude::*;
use rayspin_device::cuda::{Compiled, Program, architecture, compile, compiler_version, usages};
use rayspin_tune::Build;

/// H100, A100, RTX 50.
const CAPABILITIES: [(u32, u32); 3] = [(9, 0), (8, 0), (12, 0)];

/// The processors to compile for.
fn capabilities() -> &'static [(u32, u32)] {
    match std::env::var_os("RAYSPIN_TEST_ARCHITECTURES") {
        Some(chosen) if chosen == "all" => &CAPABILITIES,
        _ => &CAPABILITIES[..1],
    }
}

/// What is wrong with a program on one processor; its rows of the table are added to `table`.
pub(crate) fn examine(build: &Build, capability: (u32, u32), table: &mut String) -> Vec<String> {
    let architecture = architecture(capability);
    let program = Program::new(build.source, &build.defines);
    let form: Vec<String> = build
        .defines
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .filter(|d| d.len() < 40)
        .collect();
    let title = format!("{} {} {architecture}", build.source.name, form.join(" "));
    let Compiled { image, log } = match compile(&program, &architecture, true) {
        Ok(compiled) => compiled,
        Err(error) => return vec![format!("{title}: {error}")],
    };
    let mut wrong = Vec::new();
    if image.len() < 4 || image[1..4] != *b"ELF" {
        wrong.push(format!("{title}: no machine code"));
    }
    let usages = usages(&log);
    let declared = program.signatures().map(|s| s.len()).unwrap_or(0);
    if declared == 0 || usages.len() != declared {
        wrong.push(format!("{title}: {declared} kernels, {} were assembled:\n{log}", usages.len()));
    }
    for u in usages {
        table.push_str(&format!(
            "{title:<40} {:<24} {:>4} {:>7} {:>6} {:>6} {:>6}\n",
            u.kernel, u.registers, u.shared, u.stack, u.spill_stores, u.spill_loads
        ));
        if u.registers == 0 || u.registers > 255 {
            wrong.push(format!("{title}: {} takes {} registers", u.kernel, u.registers));
        }
        let spilled = u.spill_stores.max(u.spill_loads);
        if spilled > build.spill_bytes {
            wrong.push(format!(
                "{title}: {} spills {spilled} bytes of registers, its row allows {}",
                u.kernel, build.spill_bytes
            ));
        }
    }
    wrong
}

/// NVRTC's version; `None` where it is neither there nor required.
pub(crate) fn compiler() -> Option<(u32, u32)> {
    let version = compiler_version();
    if version.is_none() {
        let required = std::env::var_os("RAYSPIN_NVRTC_REQUIRED").is_some_and(|v| v != "0");
        assert!(
            !required,
            "NVRTC is required and not there: is RAYSPIN_CUDA_PATH the folder of libnvrtc.so?"
        );
        println!("passed over: NVRTC is not installed");
    }
    version
}

/// Every program compiles and keeps to its registers.
pub(crate) fn check(builds: &[Build]) {
    let Some(version) = compiler() else { return };
    assert!(!builds.is_empty());
    let work: Vec<_> =
        builds.iter().flat_map(|build| capabilities().iter().map(move |&c| (build, c))).collect();
    let (tables, wrong): (Vec<String>, Vec<Vec<String>>) = work
        .into_par_iter()
        .map(|(build, capability)| {
            let mut table = String::new();
            let wrong = examine(build, capability, &mut table);
            (table, wrong)
        })
        .unzip();
    println!("NVRTC {}.{}", version.0, version.1);
    println!("{:<40} {:<24} regs  shared  stack stores  loads", "program", "kernel");
    print!("{}", tables.concat());
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
