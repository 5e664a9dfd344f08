"""Cone-beam projectors of ASTRA on a GPU: the problems of Rayspin's ladders `backproject` and `project`, arrays on the GPU.

    pip install astra-toolbox torch
    python benches/peers/ct_gpu.py
    rayspin-ladder backproject project --device cuda --size 512x360      # in the same minutes

A full turn, source to axis = axis to detector = 3 n, n cubed voxels of 1 mm, a detector of 2 n mm. One run to warm up, then the
median of 5. ASTRA interpolates with the texture unit.
"""

import time

import astra
import numpy as np
import torch
from astra.experimental import direct_BP3D, direct_FP3D

PROBLEMS = [(256, 360, 256, True), (512, 360, 512, True), (512, 720, 1024, True), (1024, 720, 1024, False)]


def seconds(work):
    work()
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return sorted(times)


def main():
    print("astra", astra.__version__, torch.cuda.get_device_name())
    for n, views, pixels, forward in PROBLEMS:
        pitch = 2.0 * n / pixels
        angles = np.linspace(0, 2 * np.pi, views, endpoint=False)
        rays = astra.create_proj_geom("cone", pitch, pitch, pixels, pixels, angles, 3.0 * n, 3.0 * n)
        projector = astra.create_projector("cuda3d", rays, astra.create_vol_geom(n, n, n))
        volume = torch.full((n, n, n), 0.01, device="cuda")
        projections = torch.full((pixels, views, pixels), 1.0, device="cuda")
        name = f"ASTRA {n}^3 x {views} of {pixels}^2:"
        times = seconds(lambda: direct_BP3D(projector, volume, projections))
        print(f"{name} back {times[2] * 1e3:.2f} ms {views * n**3 / times[2] * 1e-9:.0f} G/s", times, flush=True)
        if forward:
            times = seconds(lambda: direct_FP3D(projector, volume, projections))
            print(f"{name} forward {times[2] * 1e3:.2f} ms {views * pixels**2 * n / times[2] * 1e-9:.0f} G/s", times, flush=True)
        astra.projector.delete(projector)


if __name__ == "__main__":
    main()
