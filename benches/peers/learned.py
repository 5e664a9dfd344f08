"""Milliseconds of an iteration that learns a trajectory on a GPU: python benches/peers/learned.py

Type 2 of an image of 128^3 voxels to 10^6 points, a loss, and its gradients of image and points; the points differ in every iteration, so
that each one plans anew. Rayspin and mri-nufft with cuFINUFFT at the tolerance 1e-4, torchkbnufft at its defaults, whose error is larger; a
peer that is not installed is left out. Medians; least to most in brackets.
"""

import contextlib
import statistics
import time

import numpy as np
import torch

from rayspin.torch import nufft

N, POINTS = 128, 1_000_000

torch.manual_seed(1)
image = torch.randn(N, N, N, dtype=torch.complex64, device="cuda", requires_grad=True)
cycles = ((torch.rand(POINTS, 3, device="cuda") - 0.5) * N).requires_grad_()
radians = (cycles.detach().T * 2 * np.pi / N).contiguous().requires_grad_()
target = torch.randn(POINTS, dtype=torch.complex64, device="cuda")


def iteration(transform, points):
    (transform() - target).abs().square().sum().backward()
    image.grad = points.grad = None
    with torch.no_grad():
        points.add_(1e-4)


def measured(transform, points, rounds):
    found = []
    for turn in range(rounds + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        iteration(transform, points)
        torch.cuda.synchronize()
        if turn >= 2:
            found.append((time.perf_counter() - start) * 1e3)
    return f"{statistics.median(found):8.2f} ms ({min(found):.2f} to {max(found):.2f})"


print(torch.cuda.get_device_name())
print("Rayspin     ", measured(lambda: nufft(image, cycles, eps=1e-4), cycles, 9))
with contextlib.suppress(ImportError):
    import mrinufft

    kind = mrinufft.get_operator("cufinufft", wrt_data=True, wrt_traj=True)
    start = radians.detach().T.contiguous()
    operator = kind(start, (N,) * 3, eps=1e-4, squeeze_dims=False, density=False)
    samples = start.clone().requires_grad_()

    def learn():
        operator.samples = samples
        return operator.op(image[None, None])[0, 0]

    print("mri-nufft   ", measured(learn, samples, 9))
with contextlib.suppress(ImportError):
    import torchkbnufft

    peer = torchkbnufft.KbNufft(im_size=(N,) * 3, grid_size=(2 * N,) * 3, dtype=torch.complex64).cuda()
    print("torchkbnufft", measured(lambda: peer(image[None, None], radians)[0, 0], radians, 5))
