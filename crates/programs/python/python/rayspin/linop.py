"""Linear operators over the arrays that you have.

An operator A maps arrays of `A.ishape` to arrays of `A.oshape`, of one element type, on one device:

    A(x), A @ x      apply it; `A(x, out=y)` fills y
    A.H, A.N         its adjoint, and A.H @ A by the operator's own short cut
    A @ B, A + B, A - B, 2 * A, A / 2, -A
    A.as_scipy()     a scipy.sparse.linalg.LinearOperator on flat vectors

Images are [z, y, x] or [y, x]; points are [sample, dim], dim in the order x, y, z, in cycles per field of view; the forward
transform is s[j] = sum_x image[x] exp(-2 pi i k_j . x) with x in fields of view, 0 at index n // 2. Operators keep copies of
the arrays that make them.

>>> import numpy as np
>>> from rayspin import linop
>>> maps = np.ones((4, 16, 16), np.complex64)
>>> rows = np.arange(16) % 2 == 0
>>> mask = linop.mask(np.repeat(rows[:, None], 16, axis=1), (4, 16, 16), device="cpu")
>>> A = mask @ linop.fft((16, 16), batch=(4,), device="cpu") @ linop.sense(maps, device="cpu")
>>> A.ishape, A.oshape
((16, 16), (4, 16, 16))
>>> y = A(np.ones((16, 16), np.complex64))
>>> A.H(y).shape
(16, 16)
"""

from ._rayspin import (
    LinearOperator,
    block_diagonal,
    custom,
    diagonal,
    differences,
    fft,
    identity,
    mask,
    nudft,
    sense,
    stack,
    toeplitz,
    wavelet,
)
from ._rayspin import nufft_operator as nufft

__all__ = [
    "LinearOperator",
    "block_diagonal",
    "custom",
    "diagonal",
    "differences",
    "fft",
    "identity",
    "mask",
    "nudft",
    "nufft",
    "sense",
    "stack",
    "toeplitz",
    "wavelet",
]
