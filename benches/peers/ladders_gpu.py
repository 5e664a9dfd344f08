"""What torch, cuBLAS and cuRAND take for the work of Rayspin's ladders, on the same GPU.

    rayspin ladder reduction transpose matrix-product random histogram --device cuda
    python benches/peers/ladders_gpu.py

Protocol of `rayspin ladder`: calls in rotation over buffers that together exceed the second-level cache threefold, many in one CUDA
graph where the call can be captured (a mark says so), the device's clock, the median of 15 rounds. The second time is of one buffer
again and again, which a small input makes a measurement of the cache.
"""

import ctypes
import glob
import statistics
import sys

import torch

CACHE = torch.cuda.get_device_properties(0).L2_cache_size
torch.backends.cuda.matmul.allow_tf32 = False


def library(name):
    for folder in sys.path:
        for path in sorted(glob.glob(f"{folder}/nvidia/*/lib/lib{name}.so*")):
            return ctypes.CDLL(path)
    return ctypes.CDLL(f"lib{name}.so")


def seconds(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def median(call, sets, rounds=15):
    """Seconds of one call, and whether a graph was timed."""
    for i in range(sets):
        call(i)
    torch.cuda.synchronize()
    runs = max(1, min(1000, int(2e-3 / max(seconds(lambda: call(0)), 1e-6))))
    runs = -(-runs // sets) * sets
    many = lambda: [call(i % sets) for i in range(runs)]
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            many()
        work, captured = graph.replay, True
    except Exception:
        torch.cuda.synchronize()
        work, captured = many, False
    work()
    times = [seconds(work) / runs for _ in range(rounds)]
    return statistics.median(times), captured


def show(name, count, make, call, bytes_=0, flops=0):
    """`make()` gives one set of buffers of `count` bytes in all."""
    sets = max(1, min(64, -(-3 * CACHE // count)))
    buffers = [make() for _ in range(sets)]
    try:
        time, captured = median(lambda i: call(*buffers[i]), sets)
        again, _ = median(lambda i: call(*buffers[0]), 1)
    except Exception as error:
        print(f"{name:<44} {type(error).__name__}: {str(error).splitlines()[0][:80]}")
        return
    rate = f"{bytes_ / time / 1e9:9.1f} GB/s" if bytes_ else f"{flops / time / 1e12:9.2f} TFLOP/s" if flops else ""
    print(f"{name:<44} {time * 1e6:10.2f} us {'graph' if captured else '     '} {rate:<18} one buffer {again * 1e6:10.2f} us")


def main():
    device = {"device": "cuda"}
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "CUDA", torch.version.cuda)
    ints = lambda n: torch.randint(-1000, 1000, (n,), dtype=torch.int32, **device)
    floats = lambda *n: torch.rand(*n, **device)
    for power, kind, make in [(22, "i32", ints), (28, "i32", ints), (28, "f32", floats)]:
        n = 1 << power
        out = torch.empty((), dtype=torch.int64 if kind == "i32" else torch.float32, **device)
        total = lambda x, o=out: torch.sum(x, dim=0, dtype=o.dtype, out=o)
        show(f"sum 2^{power} {kind}, torch.sum", 4 * n, lambda: (make(n),), total, bytes_=4 * n)
    n = 8192
    pair = lambda: (floats(n, n), torch.empty(n, n, **device))
    show("copy 8192^2 f32, torch copy_", 8 * n * n, pair, lambda a, b: b.copy_(a), bytes_=8 * n * n)
    show("transpose 8192^2 f32, torch copy_(a.T)", 8 * n * n, pair, lambda a, b: b.copy_(a.T), bytes_=8 * n * n)
    blas = library("cublas")
    handle = ctypes.c_void_p()
    assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    pointer = lambda t: ctypes.c_void_p(t.data_ptr())

    def geam(a, b):
        blas.cublasSetStream_v2(handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        size = ctypes.c_int(n)
        status = blas.cublasSgeam(
            handle, 1, 0, size, size, ctypes.byref(one), pointer(a), size, ctypes.byref(zero), pointer(b), size, pointer(b), size
        )
        assert status == 0, status

    show("transpose 8192^2 f32, cublasSgeam", 8 * n * n, pair, geam, bytes_=8 * n * n)
    for n in (4096, 1024):
        three = lambda: (floats(n, n), floats(n, n), torch.empty(n, n, **device))
        show(f"product {n}^3 f32, cuBLAS sgemm", 12 * n * n, three, lambda a, b, c: torch.mm(a, b, out=c), flops=2 * n**3)
    n = 16318464
    uniform = lambda: (torch.randint(0, 1024, (n,), dtype=torch.int32, **device),)
    constant = lambda: (torch.full((n,), 512, dtype=torch.int32, **device),)
    show("histogram uniform 1024, torch.bincount", 4 * n, uniform, lambda x: torch.bincount(x, minlength=1024))
    show("histogram constant 1024, torch.bincount", 4 * n, constant, lambda x: torch.bincount(x, minlength=1024))
    rand = library("curand")
    for number, name in [(161, "Philox"), (100, "default, XORWOW")]:
        generator = ctypes.c_void_p()
        assert rand.curandCreateGenerator(ctypes.byref(generator), number) == 0

        def curand(function, count, *more):
            def call(x):
                rand.curandSetStream(generator, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
                status = getattr(rand, function)(generator, pointer(x), ctypes.c_size_t(count), *more)
                assert status == 0, status

            return call

        count = 1 << 26
        words = lambda: (torch.empty(count, dtype=torch.int32, **device),)
        single = lambda: (torch.empty(count, **device),)
        double = lambda: (torch.empty(count // 2, dtype=torch.float64, **device),)
        f, d = ctypes.c_float, ctypes.c_double
        size = 4 * count
        show(f"bits 2^26, cuRAND {name}", size, words, curand("curandGenerate", count), bytes_=size)
        show(f"uniform f32 2^26, cuRAND {name}", size, single, curand("curandGenerateUniform", count), bytes_=size)
        show(f"uniform f64 2^25, cuRAND {name}", size, double, curand("curandGenerateUniformDouble", count // 2), bytes_=size)
        show(f"normal f32 2^26, cuRAND {name}", size, single, curand("curandGenerateNormal", count, f(0), f(1)), bytes_=size)
        show(f"normal f64 2^25, cuRAND {name}", size, double, curand("curandGenerateNormalDouble", count // 2, d(0), d(1)), bytes_=size)
        show(f"log-normal f32 2^26, cuRAND {name}", size, single, curand("curandGenerateLogNormal", count, f(0), f(1)), bytes_=size)
        for mean in (4, 1000):
            show(f"Poisson {mean} 2^26, cuRAND {name}", size, words, curand("curandGeneratePoisson", count, d(mean)), bytes_=size)
    show("uniform f32 2^26, torch uniform_", 1 << 28, lambda: (torch.empty(1 << 26, **device),), lambda x: x.uniform_(), bytes_=1 << 28)
    monte_carlo(device)


PI = r"""
#include <curand_kernel.h>
extern "C" __global__ void estimate(unsigned long long* hits, int each) {
    curandStatePhilox4_32_10_t state;
    curand_init(1, blockIdx.x * blockDim.x + threadIdx.x, 0, &state);
    unsigned count = 0;
    for (int i = 0; i < each; i += 2) {
        const float4 u = curand_uniform4(&state);
        count += u.x * u.x + u.y * u.y <= 1.0f;
        count += u.z * u.z + u.w * u.w <= 1.0f;
    }
    for (int lane = 16; lane > 0; lane /= 2) count += __shfl_down_sync(0xffffffffu, count, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (unsigned long long)count);
}
"""


def monte_carlo(device):
    folders = [p for f in sys.path for p in glob.glob(f"{f}/nvidia/*/include")] + ["/usr/local/cuda/include"]
    folders += [f"{folder}/cccl" for folder in folders]
    points, threads, blocks = 100_000_000, 256, 132 * 8
    each = -(-points // (threads * blocks)) + 1 & ~1
    try:
        kernel = torch.cuda._compile_kernel(PI, "estimate", cuda_include_dirs=folders)
        hits = torch.zeros((), dtype=torch.int64, **device)
        kernel((blocks, 1, 1), (threads, 1, 1), (hits, each))
        torch.cuda.synchronize()
        pi = 4 * hits.item() / (each * threads * blocks)
        times = [seconds(lambda: kernel((blocks, 1, 1), (threads, 1, 1), (hits, each))) for _ in range(15)]
        time = statistics.median(times) * points / (each * threads * blocks)
        print(f"{'pi, 1e8 points, curand_uniform4 in the kernel':<44} {time * 1e6:10.2f} us       {points / time / 1e9:.1f} Gpoints/s, f32, pi {pi:.5f}")
    except Exception as error:
        print("pi with cuRAND in the kernel:", type(error).__name__, str(error)[:1200])


main()
