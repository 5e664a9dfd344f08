"""Progress of runs."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

Listener = Callable[[str, int, int], object]


class _Bar:
    """A bar of tqdm for each stage with steps. It appears after a second."""

    def __init__(self, tqdm: Any) -> None:
        self.tqdm = tqdm
        self.bar: Any = None
        self.stage = ""

    def __call__(self, stage: str, step: int, steps: int) -> None:
        if stage != self.stage or step == 0:
            self.close()
            self.stage = stage
            if steps > 1:
                self.bar = self.tqdm(total=steps, desc=stage, leave=False, delay=1)
        if self.bar is not None:
            self.bar.update(step - self.bar.n)
            if step >= steps:
                self.close()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def __del__(self) -> None:
        self.close()


def listener(progress: Listener | bool | None) -> Listener | None:
    """The function that hears of progress: the caller's, or a bar where people can see it and tqdm is installed."""
    if callable(progress):
        return progress
    if progress is False:
        return None
    if progress not in (None, True):
        raise TypeError(f"progress: expected a function f(stage, step, steps), True or False, found {progress!r}")
    if progress is None and not (sys.stderr is not None and sys.stderr.isatty()) and "ipykernel" not in sys.modules:
        return None
    try:
        return _Bar(import_module("tqdm.auto").tqdm)
    except ImportError:
        return None
