"""Functions whose keywords are options of the command, with help that lists them."""

import textwrap
from collections.abc import Callable
from typing import Any, Literal

from ._rayspin import simulate_ct, simulate_mri, simulate_options
from ._types import Heard


def documented(kind: Literal["mri", "ct"]) -> Callable[..., Any]:
    """`simulate.mri` or `simulate.ct`, whose help lists the options."""
    simulate: Callable[..., Any] = simulate_mri if kind == "mri" else simulate_ct

    def call(*, progress: Heard = None, **options: Any) -> Any:
        return simulate(progress=progress, **options)

    call.__name__ = call.__qualname__ = kind
    call.__module__ = "rayspin.simulate"
    rows = [
        textwrap.fill(f"{name}: {row['help']}", 120, subsequent_indent="    ")
        for name, row in simulate_options(kind).items()
    ]
    call.__doc__ = "\n".join([f"{simulate.__doc__}\n", "Options:\n", *rows])
    return call
