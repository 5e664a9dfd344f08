"""BART .cfl files read and written as BART's documentation describes them, with numpy alone.

The value at indices (i0, i1, ...) is the sum of 10^n (i_n + 1), plus 1j times i0.

usage: cfl_numpy.py write FOLDER    theirs.{cfl,hdr} of dimensions 3 4 2 5 1 2
       cfl_numpy.py check FOLDER    compares ours.{cfl,hdr} of the same dimensions
"""

import pathlib
import sys

import numpy as np

DIMS = (3, 4, 2, 5, 1, 2)


def expected():
    indices = np.indices(DIMS)
    return sum(10.0**n * (indices[n] + 1) for n in range(len(DIMS))) + 1j * indices[0]


def write(folder):
    padded = list(DIMS) + [1] * (16 - len(DIMS))
    header = "# Dimensions\n" + " ".join(map(str, padded)) + " \n# Command\nones 2 3 4 out\n# Creator\nBART v0.9.00\n"
    (folder / "theirs.hdr").write_text(header)
    expected().astype("<c8").ravel(order="F").tofile(folder / "theirs.cfl")


def check(folder):
    lines = (folder / "ours.hdr").read_text().splitlines()
    assert lines[0] == "# Dimensions", lines
    dims = [int(word) for word in lines[1].split()]
    assert dims == list(DIMS) + [1] * (16 - len(DIMS)), dims
    values = np.fromfile(folder / "ours.cfl", "<c8").reshape(DIMS, order="F")
    assert np.array_equal(values, expected().astype("c8"))
    print("checked")


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
