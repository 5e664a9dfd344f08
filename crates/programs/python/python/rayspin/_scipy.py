"""Operators as SciPy has them."""

from importlib import import_module
from typing import Any

import numpy as np


def as_scipy(operator: Any) -> Any:
    """`scipy.sparse.linalg.LinearOperator` of an operator on flat vectors."""
    try:
        linalg = import_module("scipy.sparse.linalg")
    except ImportError as error:
        raise ImportError("as_scipy needs SciPy: pip install scipy") from error

    def applied(one: Any) -> Any:
        def apply(x: Any) -> Any:
            values = np.ascontiguousarray(x, dtype=operator.dtype).reshape(one.ishape)
            return one(values).ravel()

        return apply

    shape = (int(np.prod(operator.oshape)), int(np.prod(operator.ishape)))
    return linalg.LinearOperator(shape, matvec=applied(operator), rmatvec=applied(operator.H), dtype=np.dtype(operator.dtype))
