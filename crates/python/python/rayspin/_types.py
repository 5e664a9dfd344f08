"""Types of arguments."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Union

Array: TypeAlias = Any
"""An array of NumPy, CuPy, torch or another library with DLPack."""

Heard: TypeAlias = Union[Callable[[str, int, int], object], bool, None]
"""A function of stage, step and steps; True for a bar, False for nothing."""

Callback: TypeAlias = Union[Callable[[int, float, Array], object], None]
"""A function of iteration, residual and x."""

Map: TypeAlias = Callable[[float, Array], Union[Array, tuple[Array, float]]]
"""A proximal map of the caller's: f(t, x)."""

Corrections: TypeAlias = Union[str, Sequence[str], dict[str, dict[str, Any]]]
"""Corrections of CT scans: their names, or names with parameters."""
