"""Types of arguments."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, Union

import numpy as np

Array: TypeAlias = Any
"""An array of NumPy, CuPy, torch or another library with DLPack. Results for libraries besides these three, such as JAX, are NumPy's."""

MaybeNone: TypeAlias = Any
"""None in some cases, which callers know: a type checker takes the value for what it is besides."""

Number = TypeVar("Number", bound=np.generic)
"""The type of the numbers of an array of NumPy."""

Heard: TypeAlias = Union[Callable[[str, int, int], object], bool, None]
"""A function of stage, step and steps; True for a bar, False for nothing."""

Callback: TypeAlias = Union[Callable[[int, float, Array], object], None]
"""A function of iteration, residual and x."""

Map: TypeAlias = Callable[[float, Array], Union[Array, tuple[Array, float]]]
"""A proximal map of the caller's: f(t, x)."""

Corrections: TypeAlias = Union[str, Sequence[str], dict[str, dict[str, Any]]]
"""Corrections of CT scans: their names, or names with parameters."""
