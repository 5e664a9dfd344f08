//! Every CUDA program through the vendor's compiler, which needs no GPU: that it compiles, and what its
//! kernels take. Run with `--nocapture` for the table.
//!
//! `make test` installs the compiler and sets `RAYSPIN_NVRTC_REQUIRED`; without that, and without a compiler,
//! there is nothing to see here. It compiles for one generation of processors; `make test-ladders` sets
//! `RAYSPIN_TEST_ARCHITECTURES=all`, for three.

use rayon::prelude::*;
use rayspin_device::cuda::{Compiled, Program, Source, architecture, compile, compiler_version, usages};
use rayspin_kernels::{Build, precompiled};

/// H100, A100, RTX 50.
const CAPABILITIES: [(u32, u32); 3] = [(9, 0), (8, 0), (12, 0)];

/// The processors to compile for.
fn capabilities() -> &'static [(u32, u32)] {
    match std::env::var_os("RAYSPIN_TEST_ARCHITECTURES") {
        Some(chosen) if chosen == "all" => &CAPABILITIES,
        _ => &CAPABILITIES[..1],
    }
}

/// Every program of Rayspin.
fn programs() -> Vec<Build> {
    let mut builds = rayspin_kernels::programs();
    builds.extend(rayspin_primitives::programs());
    builds.extend(rayspin_gallery::programs());
    builds.extend(rayspin_lab::limits::programs());
    builds
}

/// What is wrong with a program on one processor; its rows of the table are added to `table`.
fn examine(build: &Build, capability: (u32, u32), table: &mut String) -> Vec<String> {
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
fn compiler() -> Option<(u32, u32)> {
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

#[test]
fn every_program_compiles_and_keeps_to_its_registers() {
    let Some(version) = compiler() else { return };
    let builds = programs();
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

#[test]
fn programs_for_machines_without_a_compiler_are_text_for_the_oldest_processor() {
    if compiler().is_none() {
        return;
    }
    let builds = precompiled(usize::MAX);
    // Every form would take minutes. The test takes a few of them, spread over the list; `programs` covers
    // the shared sources.
    builds.iter().step_by(builds.len() / 13 + 1).for_each(|build| {
        let program = Program::new(build.source, &build.defines);
        let text = String::from_utf8(compile(&program, "compute_80", false).unwrap().image).unwrap();
        assert!(text.contains(".target sm_80"), "{}", program.name);
        for kernel in program.signatures().unwrap().keys() {
            assert!(text.contains(&format!(".entry {kernel}(")), "{}: {kernel}", program.name);
        }
    });
}

#[test]
fn a_kernel_that_spills_is_refused_unless_its_row_allows_it() {
    static GREEDY: Source = Source {
        name: "greedy",
        files: &[(
            "greedy.cu",
            r#"extern "C" __global__ void __launch_bounds__(1024, 2) greedy(const float* x, float* y, int n) {
                float v[96];
                #pragma unroll
                for (int i = 0; i < 96; i++) v[i] = x[i * n + threadIdx.x];
                __syncthreads();
                #pragma unroll
                for (int i = 0; i < 96; i++) y[i * n + threadIdx.x] = v[95 - i] * v[i];
            }"#,
        )],
    };
    if compiler().is_none() {
        return;
    }
    let build = |spill_bytes| Build { source: &GREEDY, defines: Vec::new(), spill_bytes };
    let mut table = String::new();
    let wrong = examine(&build(0), (9, 0), &mut table);
    assert!(wrong.len() == 1 && wrong[0].contains("greedy spills"), "{wrong:?}\n{table}");
    assert_eq!(examine(&build(4096), (9, 0), &mut table), Vec::<String>::new());
}

#[test]
fn what_the_emulator_s_tests_run_is_cuda() {
    static SOURCE: Source = Source { name: "kernels", files: &[("kernels.cu", include_str!("kernels.cu"))] };
    if compiler().is_none() {
        return;
    }
    let defines = vec![("DOUBLE", "0".to_owned())];
    let build = Build { source: &SOURCE, defines, spill_bytes: 0 };
    assert_eq!(examine(&build, (9, 0), &mut String::new()), Vec::<String>::new());
    static TEXTURES: Source =
        Source { name: "textures", files: &[("textures.cu", include_str!("textures.cu"))] };
    let build = Build { source: &TEXTURES, defines: Vec::new(), ..build };
    assert_eq!(examine(&build, (9, 0), &mut String::new()), Vec::<String>::new());
}
