"""Penalties g, by their proximal maps prox(t, x) = argmin_u 1/2 |u - x|^2 + t g(u).

A function f(t, x) of yours that returns the array, or the array and g of it, is a penalty too.

>>> import numpy as np
>>> from rayspin import prox
>>> prox.l1()(1.0, np.array([4.0, -0.5, -3.0]))
array([ 3., -0., -2.])
"""

from ._rayspin import Penalty, groups, l1, l2, nonnegative, total_variation
from ._rayspin import wavelet_penalty as wavelet

__all__ = ["Penalty", "groups", "l1", "l2", "nonnegative", "total_variation", "wavelet"]
