"""The command `rayspin`."""

import sys

from ._rayspin import command


def main() -> int:
    """Runs the command with the arguments of this process; returns its exit code."""
    return command(["rayspin", *sys.argv[1:]])
