"""The tables of docs/python-peers.md: both cells of each line give the same numbers.

    pip install -r scripts/requirements-peers.txt

Tables whose library is missing are skipped. BART's Python is not on PyPI: put its folder `python` on PYTHONPATH.
"""

import functools
import pathlib
import re

import numpy as np
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[4] / "docs" / "python-peers.md"
# The module of each table, and how far lines agree that state no tolerance. 1e-5 is rounding of 32-bit numbers: some hundred units in
# the last place. mri-nufft's lines are NUFFTs: Rayspin's have the tolerance 1e-5 and err by at most three times that.
PEERS = {"SigPy": ("sigpy", 1e-5), "mri-nufft": ("mrinufft", 3e-5), "ASTRA": ("astra", 1e-5), "BART's Python": ("bart", 1e-5)}
# For filters and kernels that differ. A sign, an axis or a factor that is wrong changes more.
LOOSEST = 5e-2
pytestmark = pytest.mark.filterwarnings("ignore:Samples will be rescaled")


def chapters():
    """The block and the lines of each table of the page."""
    if not PAGE.is_file():
        return {}
    parts = re.split(r"^## (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {}
    for name, text in zip(parts[1::2], parts[2::2]):
        (block,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        rows = [re.split(r" *\| *", line.strip("| ")) for line in text.splitlines() if line.startswith("|")]
        found[name] = block, rows[2:]
    return found


CHAPTERS = chapters()
LINES = [pytest.param(name, row, id=f"{name}: {row[0]}") for name, (_, rows) in CHAPTERS.items() for row in rows]


@functools.cache
def names(peer):
    """What the block of a table defines."""
    found = {}
    exec(CHAPTERS[peer][0], found)
    return found


def test_the_page_has_a_table_for_each_peer():
    if not PAGE.is_file():
        pytest.skip("the pages are not here")
    assert list(CHAPTERS) == list(PEERS)
    assert all(len(rows) >= 8 for _, rows in CHAPTERS.values())


@pytest.mark.parametrize("peer, row", LINES)
def test_both_cells_of_a_line_give_the_same_numbers(peer, row):
    what, *cells = row
    codes = [re.fullmatch(r"`([^`]+)`", cell) for cell in cells]
    assert len(cells) == 2 and all(codes), f"{what}: a cell is not one expression in backticks: {cells}"
    module, tolerance = PEERS[peer]
    stated = re.search(r"\(to (.*)\)$", what)
    if stated:
        tolerance = float(stated[1])
    assert tolerance <= LOOSEST
    pytest.importorskip(module)
    np.random.seed(1)  # The power methods of SigPy and mri-nufft begin with np.random.
    expected, found = (np.asarray(eval(code[1], names(peer))) for code in codes)
    assert expected.shape == found.shape and np.isfinite(expected).all() and np.any(expected)
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error <= tolerance, f"{what}: the cells differ by {error:.1e}"
