//! The product's CUDA programs through the vendor's compiler, and the kernels of the emulator's own tests.

#[path = "../../../../tests/nvrtc.rs"]
mod nvrtc;

use nvrtc::{compiler, examine};
use rayspin_device::cuda::{Program, Source, compile};
use rayspin_kernels::precompiled;
use rayspin_tune::Build;

#[test]
fn every_program_compiles_and_keeps_to_its_registers() {
    nvrtc::check(&[rayspin_kernels::programs(), rayspin_planes::programs()].concat());
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
