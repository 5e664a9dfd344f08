"""Functions whose keywords are options of the command, with signatures and help that list them."""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, Literal

from ._rayspin import (
    plan_recon,
    plan_recon_ct,
    recon,
    recon_ct,
    recon_options,
    simulate_ct,
    simulate_mri,
    simulate_options,
    stream_recon,
)
from ._types import Heard


def documented(kind: Literal["mri", "ct"]) -> Callable[..., Any]:
    """`simulate.mri` or `simulate.ct`, whose help lists the options."""
    simulate: Callable[..., Any] = simulate_mri if kind == "mri" else simulate_ct

    def call(*, progress: Heard = None, **options: Any) -> Any:
        return simulate(progress=progress, **options)

    return _named(call, kind, "rayspin.simulate", simulate.__doc__, simulate_options(kind))


def reconstruction(name: Literal["recon", "plan", "images"], kind: Literal["mri", "ct"]) -> Callable[..., Any]:
    """`recon`, `plan` or `images`, of MRI or CT, whose signature and help list the options."""
    functions: dict[tuple[str, str], Callable[..., Any]] = {
        ("recon", "mri"): recon,
        ("plan", "mri"): plan_recon,
        ("images", "mri"): stream_recon,
        ("recon", "ct"): recon_ct,
        ("plan", "ct"): plan_recon_ct,
    }
    function = functions[name, kind]
    rows = recon_options(kind)

    def call(scan: Any, method: Any = None, **options: Any) -> Any:
        return function(scan, method, **options)

    own = list(inspect.signature(function).parameters.values())
    only = inspect.Parameter.KEYWORD_ONLY
    listed = [inspect.Parameter(name, only, default=row["default"]) for name, row in rows.items()]
    call.__signature__ = inspect.Signature([*own[:-1], *listed, own[-1]])  # type: ignore[attr-defined]
    return _named(call, name, "rayspin" if kind == "mri" else "rayspin.ct", function.__doc__, rows)


def _named(
    call: Callable[..., Any], name: str, module: str, text: str | None, rows: dict[str, Any]
) -> Callable[..., Any]:
    """The function with a name, and with help that lists its options before the examples."""
    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    lines = [textwrap.fill(f"{name}: {row['help']}", 120, subsequent_indent="    ") for name, row in rows.items()]
    about, sign, examples = (text or "").partition("\n>>> ")
    call.__doc__ = "\n".join([f"{about.rstrip()}\n", "Options:\n", *lines]) + ("\n" + sign + examples if sign else "")
    return call
