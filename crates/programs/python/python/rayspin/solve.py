"""Iterative solvers over operators.

    cg              A x = b for Hermitian positive semidefinite A, such as A.N
    least_squares   |Ax - y|^2 + weight L sum |W_i x|^2, L the largest eigenvalue of A.N
    fista           1/2 |Ax - y|^2 + weight g(x)
    pdhg            1/2 |Ax - y|^2 + g(x) + sum weight_i f_i(K_i x)

Each returns a `Solution`: x, in an array of the library that the data are of, with residuals and objective. `callback(iteration,
residual, x)` sees every iterate; its exception ends the run, as Ctrl-C does. `normal=` takes a faster A.N, such as
`rayspin.toeplitz`.

>>> import numpy as np
>>> from rayspin import linop, solve
>>> A = linop.diagonal(np.array([1.0, 2.0, 4.0]), device="cpu")
>>> found = solve.cg(A, np.array([1.0, 1.0, 1.0]), tolerance=1e-8)
>>> found.x
array([1.  , 0.5 , 0.25])
"""

from ._rayspin import Solution, cg, fista, largest_eigenvalue, least_squares, pdhg

__all__ = ["Solution", "cg", "fista", "largest_eigenvalue", "least_squares", "pdhg"]
