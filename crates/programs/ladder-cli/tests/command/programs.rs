//! Whole CUDA programs in the emulator: programs of a user's, and those that `host` writes.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayspin::device::BackendKind;
use rayspin::tune::Which;

use crate::{ok, rayspin, refused};

/// Exercises the calls of CUDA's runtime; the first argument chooses what goes wrong.
const PROGRAM: &str = r#"#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <cstring>
#include <iostream>
using namespace std;

#define CHECK(call)                                                                                   \
    do {                                                                                              \
        cudaError_t error = (call);                                                                   \
        if (error != cudaSuccess) { cout << __LINE__ << " " << cudaGetErrorString(error) << endl; exit(3); } \
    } while (0)

__constant__ float table[4];
__device__ int blocks_done;

template <int N>
__global__ void reverse(float* out) {
    __shared__ float part[N];
    part[threadIdx.x] = threadIdx.x * table[1];
    __syncthreads();
    out[blockIdx.x * N + threadIdx.x] = part[N - 1 - threadIdx.x];
    if (threadIdx.x == 0) atomicAdd(&blocks_done, 1);
}
template <class T>
__global__ void twice(T* x, int n) {
    extern __shared__ float own[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) own[threadIdx.x] = x[i], x[i] = 2 * own[threadIdx.x];
}
extern "C" __global__ void hello() { if (threadIdx.x < 2) printf("hello %d\n", threadIdx.x); }
__global__ void inside(double* count, int n) {
    curandState state;
    curand_init(7, threadIdx.x, 0, &state);
    int in = 0;
    for (int i = 0; i < n; i++) {
        float x = curand_uniform(&state), y = curand_uniform(&state);
        in += x * x + y * y < 1;
    }
    atomicAdd(count, (double)in);
}
__global__ void sampled(cudaTextureObject_t image, float* out) {
    out[threadIdx.x] = tex2D<float>(image, threadIdx.x + 1.0f, 0.5f);
}
__global__ void part_waits(float* x) { if (threadIdx.x < 7) __syncthreads(); else
    __syncthreads(); }
__global__ void racing(int* x) { x[0] += threadIdx.x; }

int main(int argc, char** argv) {
    string wrong = argc > 1 ? argv[1] : "";
    float *d, h[512], t[4] = {1, 2, 3, 4};
    CHECK(cudaMalloc(&d, sizeof h));
    CHECK(cudaMemcpyToSymbol(table, t, sizeof t));
    reverse<256><<<2, 256>>>(d);
    CHECK(cudaGetLastError());
    twice<<<dim3(4), dim3(128), 128 * sizeof(float)>>>(d, 512);
    CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    int done;
    CHECK(cudaMemcpyFromSymbol(&done, blocks_done, sizeof done));
    printf("%g %g %d\n", h[0], h[511], done);
    hello<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
    double* count;
    CHECK(cudaMallocManaged(&count, sizeof(double)));
    *count = 0;
    inside<<<1, 256>>>(count, 1000);
    cudaDeviceSynchronize();
    printf("pi is %.1f\n", 4 * *count / 256e3);
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, 4, 2));
    float image[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image, 16, 16, 2, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    sampled<<<1, 4>>>(texture, d);
    CHECK(cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost));
    printf("%g %g %g %g\n", h[0], h[1], h[2], h[3]);
    hello<<<1, 2048>>>();
    cudaError_t error = cudaGetLastError();
    printf("%d %d\n", error == cudaErrorInvalidConfiguration, cudaGetLastError() == cudaSuccess);
    CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    printf("%d\n", cudaMemcpy(d, h, sizeof h, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    printf("%d\n", cudaMemcpy(d, h, sizeof h + 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    if (wrong == "outside") reverse<512><<<2, 512>>>(d);
    if (wrong == "host-reads") printf("%g\n", d[3]);
    if (wrong == "host-copies") memcpy(h, d, 64);
    if (wrong == "host-copies") printf("%g\n", h[3]);
    if (wrong == "host-pointer") twice<<<1, 1>>>(h, 1);
    if (wrong == "freed") { cudaFree(d); twice<<<1, 1>>>(d, 1); }
    if (wrong == "barrier") part_waits<<<1, 32>>>(d);
    if (wrong == "race") racing<<<1, 64>>>((int*)d);
    if (wrong == "unseen") twice<<<1, 1, 100000>>>(d, 1);
    if (wrong == "null") twice<<<1, 1, 4>>>((float*)nullptr, 1);
    printf("%s end\n", argc > 2 ? argv[2] : "-");
    return wrong == "seven" ? 7 : 0;
}
"#;

/// The line of the program that holds these words.
fn line(words: &str) -> usize {
    1 + PROGRAM.lines().position(|line| line.contains(words)).unwrap()
}

/// Exit code, standard output and standard error of the program with these arguments.
fn run(arguments: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    std::fs::write(folder.join("whole.cu"), PROGRAM).unwrap();
    let output = rayspin(&[&["run", "whole.cu"], arguments].concat(), folder);
    let words = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), words(output.stdout), words(output.stderr))
}

#[test]
fn a_whole_program_runs_as_on_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, words) = run(&["none", "--", "--flag"], folder.path());
    assert_eq!(code, Some(0), "{words}");
    let wanted = "1020 0 2\nhello 0\nhello 1\npi is 3.1\n0.5 1.5 2.5 3\n1 1\n1\n1\n--flag end\n";
    assert_eq!(out, wanted);
    assert!(words.contains("times predict no GPU"), "{words}");
    assert_eq!(run(&["seven"], folder.path()).0, Some(7));
}

#[test]
fn what_a_gpu_would_not_do_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |wrong: &str, words: &[&str]| {
        let (code, out, told) = run(&[wrong], folder.path());
        assert_eq!(code, Some(1), "{wrong}: {told}");
        assert!(out.contains("pi is 3.1") && !out.contains(" end"), "{wrong}: {out}");
        for word in words {
            assert!(told.contains(word), "{wrong}: '{word}' is not in: {told}");
        }
    };
    let at = |words: &str| format!("whole.cu:{}: ", line(words));
    let launch = |wrong: &str| format!("line {}", line(&format!("wrong == \"{wrong}\"")));
    fails(
        "outside",
        &["past the end of d of 2048 bytes", &at("out[blockIdx.x"), &launch("outside"), "reverse<512>"],
    );
    fails("host-reads", &["memory of the GPU", &at("d[3]")]);
    fails("host-copies", &["memory of the GPU", &at("memcpy(h, d, 64)")]);
    fails("host-pointer", &["argument 1 points to memory of the host", &launch("host-pointer")]);
    fails("freed", &["points to d, which was freed", &launch("freed")]);
    fails("null", &["a null pointer", &at("own[threadIdx.x] = x[i]")]);
    let barrier = line("part_waits(float* x)");
    fails("barrier", &[&format!("line {barrier}"), &format!("line {}", barrier + 1)]);
    // A launch that fails unseen is told, and changes no exit code.
    let (code, _, told) = run(&["unseen"], folder.path());
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("100000 bytes of dynamic shared memory") && told.contains(&launch("unseen")),
        "{told}"
    );
}

#[test]
fn a_program_is_checked_for_races() {
    if !rayspin_emu::Emulator::new().is_ok_and(|emulator| emulator.checking(None).is_ok()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (code, out, told) = run(&["none", "--check"], folder.path());
    assert_eq!(code, Some(0), "{told}");
    assert!(out.ends_with("- end\n") && told.contains("no race and no memory error"), "{out}{told}");
    let (code, _, told) = run(&["race", "--check"], folder.path());
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("a race on d[0]"), "{told}");
    assert!(told.contains(&format!("whole.cu:{}: thread", line("void racing"))), "{told}");
}

#[test]
fn what_does_not_compile_or_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    std::fs::write(f.join("bad.cu"), "int main() {\n    return nothing;\n}\n").unwrap();
    let output = rayspin(&["run", "bad.cu"], f);
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("bad.cu:2:") && words.contains("nothing"), "{words}");
    std::fs::write(f.join("library.cu"), "\n#include <thrust/sort.h>\nint main() {}\n").unwrap();
    refused(&["run", "library.cu"], f, &["library.cu:2", "thrust/sort.h"]);
    std::fs::write(f.join("launch.cu"), "__global__ void k() {}\nint main() { k<<<1, 1>>>; }\n").unwrap();
    refused(&["run", "launch.cu"], f, &["launch.cu:2", "<<<"]);
    refused(&["run", "none.cu"], f, &["none.cu"]);
    refused(&["run", "bad.cu", "--rounds", "3"], f, &["--rounds"]);
}

#[test]
fn host_writes_programs_that_run_for_every_ladder() {
    let folder = tempfile::tempdir().unwrap();
    let ladders = rayspin_ladder_cli::ladders();
    let on_gpu = |ladder: &dyn rayspin::tune::Ladder| {
        let variants = ladder.outline(Which::Case(None, None)).unwrap().variants;
        variants.iter().any(|variant| variant.backend == BackendKind::Cuda)
    };
    let names: Vec<_> =
        ladders.iter().filter(|l| on_gpu(l.as_ref())).map(|ladder| ladder.about().name).collect();
    assert!(names.len() > 30, "{names:?}");
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(4) {
            scope.spawn(|| {
                while let Some(&name) = names.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let written = rayspin(&["host", name, "--out", "programs"], folder.path());
                    let told = String::from_utf8(written.stdout).unwrap();
                    let file = told.split(':').next().unwrap_or_default();
                    if !written.status.success() {
                        let words = String::from_utf8(written.stderr).unwrap();
                        wrong.lock().unwrap().push(format!("{name}: {words}"));
                        continue;
                    }
                    let ran = rayspin(&["run", file], folder.path());
                    let (out, words) =
                        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
                    if !ran.status.success() || !out.contains(": right, ") {
                        wrong.lock().unwrap().push(format!("{file}: {out}{words}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_written_program_finds_a_wrong_result() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    ok(&["host", "matrix-add", "gpu-wide"], f);
    let text = std::fs::read_to_string(f.join("matrix-add-gpu-wide.cu")).unwrap();
    let launch = text.lines().find(|line| line.contains("<<<")).unwrap();
    std::fs::write(f.join("matrix-add-gpu-wide.cu"), text.replace(launch, "")).unwrap();
    let output = rayspin(&["run", "matrix-add-gpu-wide.cu"], f);
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("WRONG") && out.contains("differ"), "{out}");
    // Data of another program.
    std::fs::write(f.join("matrix-add-gpu-wide.bin"), b"RAYSPIN1").unwrap();
    assert_eq!(rayspin(&["run", "matrix-add-gpu-wide.cu"], f).status.code(), Some(1));
    refused(&["host", "matrix-add", "gpu-wid"], f, &["gpu-wide"]);
    refused(&["host", "fft"], f, &["a variant for a GPU"]);
}

#[test]
fn launches_and_loops_of_a_variant_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let text = |arguments: &[&str]| String::from_utf8(ok(arguments, folder.path()).stdout).unwrap();
    let launches = text(&["source", "matrix-product", "gpu-tiled", "--launch"]);
    assert!(launches.contains("__global__") && launches.contains("// Launches of a run on"), "{launches}");
    assert!(
        launches.contains("// tiled<<<256, dim3(16, 16), 0>>> of matrix_product with TILE=16"),
        "{launches}"
    );
    let loops = text(&["source", "matrix-product", "gpu-tiled", "--mcuda"]);
    assert!(loops.contains(" loops\n") && loops.matches("for (unsigned z = 0;").count() >= 2, "{loops}");
    assert!(!loops.contains("emu_") && !loops.contains("emu::"), "{loops}");
    let written = text(&["source", "reduction", "gpu-shuffle", "--mcuda"]);
    assert!(
        written.contains("runs as written, each thread by itself: ") && written.contains("__shfl"),
        "{written}"
    );
}
