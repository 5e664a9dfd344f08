"""What cuSOLVER takes to factor a matrix in f64 with partial pivoting, and what a copy takes, on the GPU of `rayspin-ladder linpack`.

    rayspin-ladder linpack --case lu --device cuda
    python benches/peers/linpack_gpu.py

cuSOLVER's getrf is called through CuPy, in place, on a matrix in its own order (columns). The matrix is restored before each run, outside of the
measured time. Medians of 15 runs after 3 that warm up, by device events; the residual is High Performance Linpack's.
"""

import cupy as cp
import numpy as np
from cupy_backends.cuda.libs import cusolver
from cupyx.scipy.linalg import lu_solve

RUNS, WARM = 15, 3


def median_time(run, before=lambda: None):
    times = []
    for _ in range(WARM + RUNS):
        before()
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        cp.cuda.Device().synchronize()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end) * 1e-3)
    times = np.sort(times[WARM:])
    return np.median(times), times[0], times[-1]


def lu(n):
    start = cp.asfortranarray(cp.random.random((n, n), dtype=cp.float64) - 0.5)
    a, pivots, info = start.copy(order="F"), cp.empty(n, cp.int32), cp.empty(1, cp.int32)
    handle = cp.cuda.Device().cusolver_handle
    work = cp.empty(cusolver.dgetrf_bufferSize(handle, n, n, a.data.ptr, n), cp.float64)
    factor = lambda: cusolver.dgetrf(handle, n, n, a.data.ptr, n, work.data.ptr, pivots.data.ptr, info.data.ptr)
    time, low, high = median_time(factor, lambda: cp.copyto(a, start))
    assert int(info[0]) == 0
    b = cp.random.random(n) - 0.5
    x = lu_solve((a, pivots - 1), b)  # getrf counts rows from 1
    norm = lambda v: float(cp.abs(v).max()) if v.ndim == 1 else float(cp.abs(v).sum(axis=1).max())
    residual = norm(start @ x - b) / (np.finfo(float).eps * (norm(start) * norm(x) + norm(b)) * n)
    print(f"LU {n} x {n} f64, cuSOLVER getrf  {time * 1e3:9.3f} ms ({low * 1e3:.3f} to {high * 1e3:.3f})  {2 / 3 * n**3 / time / 1e12:6.2f} TFLOP/s  residual {residual:.4f}")


def copy(count):
    a, b = cp.random.random(count, dtype=cp.float32), cp.empty(count, cp.float32)
    time, low, high = median_time(lambda: cp.copyto(b, a))
    print(f"copy of {count} f32, cudaMemcpy   {time * 1e6:9.2f} us ({low * 1e6:.2f} to {high * 1e6:.2f})  {8 * count / time / 1e9:7.1f} GB/s")


def main():
    properties = cp.cuda.runtime.getDeviceProperties(0)
    runtime, driver = cp.cuda.runtime.runtimeGetVersion(), cp.cuda.runtime.driverGetVersion()
    print(f"{properties['name'].decode()}, CuPy {cp.__version__}, CUDA {runtime}, driver {driver}, cuSOLVER {cusolver._getVersion() if hasattr(cusolver, '_getVersion') else '?'}")
    copy(1 << 26)
    copy(1 << 28)
    for n in (2048, 4096, 8192, 16384):
        lu(n)


main()
