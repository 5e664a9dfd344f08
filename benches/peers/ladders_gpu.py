"""What torch, cuBLAS and cuRAND take for the work of Rayspin's ladders and of its exact transforms, on the same GPU.

    rayspin-ladder reduction transpose matrix-product random histogram --device cuda
    python benches/peers/ladders_gpu.py

Calls rotate over buffers that together exceed the second-level cache threefold; `gpu_time.py` says how they are timed, a mark whether in a
graph. The second time is of one buffer again and again, which a small input makes a measurement of the cache. cuRAND's functions inside a
kernel are in `pi_curand.cu`, CUB is in `sum_cub.cu` and `histogram_cub.cu`.
"""

import ctypes
import glob
import sys

import gpu_time
import torch

CACHE = torch.cuda.get_device_properties(0).L2_cache_size
torch.backends.cuda.matmul.allow_tf32 = False


def library(name):
    for folder in sys.path:
        for path in sorted(glob.glob(f"{folder}/nvidia/*/lib/lib{name}.so*")):
            return ctypes.CDLL(path)
    return ctypes.CDLL(f"lib{name}.so")


def version(function, *arguments):
    number = ctypes.c_int()
    assert function(*arguments, ctypes.byref(number)) == 0
    return number.value


def show(name, count, make, call, bytes_=0, flops=0):
    """`make()` gives one set of buffers of `count` bytes in all."""
    sets = max(1, min(64, -(-3 * CACHE // count)))
    buffers = [make() for _ in range(sets)]
    try:
        graph, stream = gpu_time.timed(lambda i: call(*buffers[i]), sets)
        again, again_stream = gpu_time.timed(lambda i: call(*buffers[0]))
    except Exception as error:
        print(f"{name:<44} {type(error).__name__}: {str(error).splitlines()[0][:80]}")
        return
    time = stream if graph is None else graph
    again = again_stream if again is None else again
    rate = f"{bytes_ / time / 1e9:9.1f} GB/s" if bytes_ else f"{flops / time / 1e12:9.2f} TFLOP/s" if flops else ""
    print(f"{name:<44} {time * 1e6:10.2f} us {'stream' if graph is None else 'graph '} {rate:<18} one buffer {again * 1e6:10.2f} us")


def main():
    device = {"device": "cuda"}
    blas, rand = library("cublas"), library("curand")
    handle = ctypes.c_void_p()
    assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0
    print(
        f"{gpu_time.versions()}, cuBLAS {version(blas.cublasGetVersion_v2, handle)}, cuRAND {version(rand.curandGetVersion)}; TF32 only where it is named"
    )
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
    # Voxels of a plane times samples times voxels of a line: the products behind the exact transforms of 128^3 x 65536.
    samples, columns = 65536, 256
    for name, kind, rows, tf32 in [
        ("f32", torch.float32, 16384, False),
        ("TF32", torch.float32, 16384, True),
        ("f64", torch.float64, 8192, False),
        ("FP16", torch.float16, 16384, False),
    ]:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        part = lambda *shape: (torch.rand(shape, **device) - 0.5).to(kind)
        three = lambda: (part(rows, samples), part(samples, columns), torch.empty(rows, columns, dtype=kind, **device))
        bytes_ = torch.empty((), dtype=kind).element_size() * (rows * samples + samples * columns + rows * columns)
        flops = 2 * rows * samples * columns
        show(f"product {rows}x{samples}x{columns} {name}, cuBLAS", bytes_, three, lambda a, b, c: torch.mm(a, b, out=c), flops=flops)
    torch.backends.cuda.matmul.allow_tf32 = False
    n = 16318464
    uniform = lambda: (torch.randint(0, 1024, (n,), dtype=torch.int32, **device),)
    constant = lambda: (torch.full((n,), 512, dtype=torch.int32, **device),)
    show("histogram uniform 1024, torch.bincount", 4 * n, uniform, lambda x: torch.bincount(x, minlength=1024))
    show("histogram constant 1024, torch.bincount", 4 * n, constant, lambda x: torch.bincount(x, minlength=1024))
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
        show(f"log-normal f64 2^25, cuRAND {name}", size, double, curand("curandGenerateLogNormalDouble", count // 2, d(0), d(1)), bytes_=size)
        for mean in (4, 1000):
            show(f"Poisson {mean} 2^26, cuRAND {name}", size, words, curand("curandGeneratePoisson", count, d(mean)), bytes_=size)
    show("uniform f32 2^26, torch uniform_", 1 << 28, lambda: (torch.empty(1 << 26, **device),), lambda x: x.uniform_(), bytes_=1 << 28)


main()
