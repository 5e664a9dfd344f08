"""The stubs are made from the module, whose help states the types."""

import importlib.util
import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "stubs.py"


@pytest.fixture(scope="module")
def stubs():
    if not SCRIPT.is_file():
        pytest.skip("the script is not here")
    spec = importlib.util.spec_from_file_location("stubs", SCRIPT)
    stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    return stubs


def test_the_stubs_are_those_of_the_module(stubs):
    made = stubs.made()
    assert 'method: Literal["cg-sense"]' in made and "lambda_: float" in made
    assert stubs.STUBS.read_text() == made, "python crates/programs/python/stubs.py writes them anew"


def function_with(text):
    def function(data, *, device="auto"): ...

    function.__doc__ = text
    return function


def test_types_of_the_help_get_the_defaults_of_the_function(stubs):
    text = "Works.\n\n`(data: ct.Scan, *,\ndevice: str) -> int`\n`(data: Array, *, device: str) -> Any`"
    made = stubs.of_function("function", function_with(text))
    assert made == (
        '@overload\ndef function(data: CtScan, *, device: str = "auto") -> int:\n    """Works."""\n'
        '@overload\ndef function(data: Array, *, device: str = "auto") -> Any: ...\n'
    )


@pytest.mark.parametrize(
    "text,said",
    [
        ("Has no types.", "function: expected types"),
        ("`(date: Array, *, device: str) -> int`", r"parameters \(data, \*, device='auto'\)"),
        ("`(data: Array, *, device: ) -> int`", "expected types such as"),
        ("`(data: Array, device: str) -> int`", "expected types of the parameters"),
        ("`(data: Array) -> int`", "expected types of the parameters"),
        ("`(data, *, device: str) -> int`", "a type without a default for data"),
        ('`(data: Array, *, device: str = "cpu") -> int`', "a type without a default for device"),
        ("`(data: Array, *, device: str) -> int`\n`other() -> int`", "the types of one function"),
    ],
)
def test_types_that_are_not_the_functions_are_refused(stubs, text, said):
    with pytest.raises(SystemExit, match=said):
        stubs.of_function("function", function_with(text))


def test_types_of_properties_and_special_methods_are_expected(stubs):
    class Base:
        """Has what Python adds to its own classes."""

    def kind(text, of_it):
        return type("Kind", (Base,), {"__doc__": text, "size": property(lambda self: 1, doc=of_it)})

    assert "def size(self) -> int:" in stubs.of_class("Kind", kind("A kind.", "The size.\n`-> int`"))
    with pytest.raises(SystemExit, match="Kind.size: expected the type of a property"):
        stubs.of_class("Kind", kind("A kind.", "The size."))
    with pytest.raises(SystemExit, match="found those of __neg__"):
        stubs.of_class("Kind", kind("A kind.\n\n`__neg__() -> Kind`", "`-> int`"))


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
