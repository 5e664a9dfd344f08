"""Non-uniform fast Fourier transforms, with the habits of finufft.

Points are in radians, the first axis of the grid is x, and the exponents are

    type 1   f[k] = sum_j c[j] exp(+i k.x_j)        points to grid
    type 2   c[j] = sum_k f[k] exp(-i k.x_j)        grid to points
    type 3   f[k] = sum_j c[j] exp(+i s_k.x_j)      points to points

unless `isign` gives another sign. Grid index 0 is the frequency -(n // 2).

>>> import numpy as np
>>> from rayspin.nufft import Plan
>>> plan = Plan(2, (32, 32), eps=1e-5, dtype="complex64", device="cpu")
>>> plan.setpts(np.linspace(-3, 3, 50), np.linspace(3, -3, 50))
>>> image = np.zeros((32, 32), np.complex64)
>>> image[16, 16] = 1  # the frequency 0
>>> bool(np.allclose(plan.execute(image), 1, atol=1e-4))
True
"""

from ._rayspin import Plan

__all__ = ["Plan"]
