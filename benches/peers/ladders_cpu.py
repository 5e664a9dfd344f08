"""What NumPy (OpenBLAS) and OpenCV take for the work of Rayspin's ladders, on the same processor.

    rayspin-ladder matrix-product reduction histogram transpose --device cpu --threads N
    python benches/peers/ladders_cpu.py N

Timed as our own (`cpu_time.py`), over arrays by turns that no cache holds. OpenCV counts 16-bit samples, half of our bytes, and f32, as many
bytes as ours. NumPy's sums and its transpose, and OpenCV's sum and transpose, run on one thread, however many there are.
"""

import os
import sys

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(THREADS)

import cpu_time  # noqa: E402
import cv2  # noqa: E402
import numpy as np  # noqa: E402

cv2.setNumThreads(THREADS)


def show(name, sets, call, flops=0, bytes_=0):
    seconds = cpu_time.seconds(lambda turn: call(*sets[turn % len(sets)]))
    rate = f"{flops / seconds / 1e9:.1f} GFLOP/s" if flops else f"{bytes_ / seconds / 1e9:.1f} GB/s"
    print(f"{name:<40} {seconds * 1e3:10.3f} ms  {rate}")


rng = np.random.default_rng(1)
print(f"{THREADS} threads, numpy {np.__version__}, OpenCV {cv2.__version__}")
for n in (1024, 4096):
    # As many as rayspin-ladder takes: three times 64 MB.
    sets = [[rng.random((n, n), dtype=np.float32) for _ in range(3)] for _ in range(-(-192_000_000 // (12 * n * n)))]
    show(f"product {n}^3 f32, numpy", sets, lambda a, b, c: np.matmul(a, b, out=c), flops=2 * n**3)
big = [(rng.integers(-1000, 1000, 1 << 26, dtype=np.int32),) for _ in range(2)]
show("sum 2^26 i32, numpy", big, lambda x: x.sum(dtype=np.int64), bytes_=4 << 26)
floats = [(rng.random(1 << 26, dtype=np.float32).reshape(8192, 8192),) for _ in range(2)]
show("sum 2^26 f32, numpy", floats, lambda x: x.sum(), bytes_=4 << 26)
show("sum 2^26 f32, OpenCV sumElems", floats, lambda x: cv2.sumElems(x), bytes_=4 << 26)
out = np.empty((8192, 8192), np.float32)
show("transpose 8192^2 f32, OpenCV", floats, lambda x: cv2.transpose(x, out), bytes_=8 << 26)
show("transpose 8192^2 f32, numpy", floats, lambda x: np.copyto(out, x.T), bytes_=8 << 26)
shape = (3984, 4096)
walk = np.clip(512 + np.cumsum(np.trunc(16 * (rng.random(shape) - 0.5) * (rng.random(shape) - 0.5)), axis=1), 0, 1023)
for kind, values in [("walk", walk), ("uniform", rng.integers(0, 1024, shape)), ("constant", np.full(shape, 512))]:
    image = [(values.astype(np.uint16),) for _ in range(4)]
    count = lambda x: cv2.calcHist([x], [0], None, [1024], [0, 1024])
    show(f"histogram {kind} 1024, OpenCV u16", image, count, bytes_=2 * values.size)
    floats = [(values.astype(np.float32),) for _ in range(4)]
    show(f"histogram {kind} 1024, OpenCV f32", floats, count, bytes_=4 * values.size)
