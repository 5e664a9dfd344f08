"""The overloads of the stubs are those of the tables of methods."""

import importlib.util
import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "stubs.py"


def test_the_stubs_have_the_keywords_of_every_method():
    if not SCRIPT.is_file():
        pytest.skip("the script is not here")
    spec = importlib.util.spec_from_file_location("stubs", SCRIPT)
    stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    if not stubs.STUBS.is_file():
        pytest.skip("the stubs are not here")
    text = stubs.STUBS.read_text()
    assert 'method: Literal["cg-sense"]' in text and "lambda_: float" in text
    assert stubs.made(text) == text, "python crates/programs/python/stubs.py writes them anew"


WRONG = """
import numpy as np
import rayspin
from rayspin import ct, linop, nufft, simulate

scan = simulate.mri(matrix=(8, 8), trajectory="radial").scan
found = rayspin.recon(scan, "cg-sense", iterations=3, lambda_=0.1)
rayspin.recon(scan, keep_maps=False, tolerance=0.1)
made = linop.identity((3,))(np.ones(3))
made.shape
found.maps[:, 0].shape
nufft.Plan(1, 4).execute(np.ones(3, complex)).dtype
rayspin.recon(scan, "cg-sens")  # wrong
rayspin.recon(scan, "cg-sense", iteration=3)  # wrong
rayspin.recon(scan, iteration=3)  # wrong
ct.recon(simulate.ct(views=4).scan, "sirt", relaxtion=1.0)  # wrong
simulate.mri(matrx=(8, 8))  # wrong
simulate.mri(trajectory="radiall")  # wrong
made.shap  # wrong
found.maps.shap  # wrong
"""


def test_type_checkers_find_names_that_there_are_not(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "calls.py").write_text(WRONG)
    said, _, _ = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "calls.py")])
    wrong = {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}
    found = {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line}
    assert found == wrong, said
