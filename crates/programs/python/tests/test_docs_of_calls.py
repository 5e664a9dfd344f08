"""What help() says: every public function and class states its equation or purpose, what it returns, its units and what it raises."""

import doctest
import inspect

import pytest

import rayspin
from rayspin import ct, linop, metrics, nufft, prox, render, simulate, solve

MODULES = [rayspin, ct, linop, metrics, nufft, prox, render, simulate, solve]
try:
    import rayspin.dask

    MODULES.append(rayspin.dask)
except ImportError:
    pass


def public():
    """The public functions and classes, each once, and the methods of the classes."""
    seen = {}
    for module in MODULES:
        for name in module.__all__:
            one = getattr(module, name)
            if callable(one):
                seen.setdefault(id(one), (f"{module.__name__}.{name}", one))
    for name, one in list(seen.values()):
        if inspect.isclass(one):
            for inner, value in vars(one).items():
                if not inner.startswith("_") and (callable(value) or isinstance(value, (classmethod, staticmethod))):
                    seen[id(value)] = (f"{name}.{inner}", getattr(one, inner))
    return sorted(seen.values(), key=lambda pair: pair[0])


NAMED = public()
FUNCTIONS = [(name, one) for name, one in NAMED if not inspect.isclass(one)]


def test_there_are_functions_and_classes():
    names = [name for name, _ in NAMED]
    for name in ["rayspin.recon", "rayspin.Scan.from_arrays", "rayspin.nufft.Plan.setpts", "rayspin.solve.pdhg", "rayspin.ct.recon"]:
        assert name in names


@pytest.mark.parametrize("name,one", FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_functions_say_what_they_return_and_raise(name, one):
    text = one.__doc__ or ""
    assert "eturns" in text, name
    if inspect.signature(one).parameters.keys() - {"self"}:
        assert "aise" in text, name


@pytest.mark.parametrize("name,one", NAMED, ids=[name for name, _ in NAMED])
def test_examples_give_what_they_show(name, one):
    assert (one.__doc__ or "").strip(), name
    tests = doctest.DocTestFinder(recurse=False).find(one, name, globs={})
    for test in tests:
        test.globs = {}
        lines = []
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=lines.append)
        assert not lines, "".join(lines)


@pytest.mark.parametrize(
    "one,words",
    [
        (nufft.Plan, ["exp(isign i k.x_j)", "n // 2", "complex128", "eps"]),
        (nufft.Plan.setpts, ["radian", "[point]", "None", "ValueError", "TypeError"]),
        (nufft.Plan.execute, ["out:", "[..., n1, n2, n3]", "RuntimeError", "not scaled"]),
        (rayspin.recon, ["|F x - d|^2", "complex64 `[z, y, x]`", "field_map", "Hz", "signal per field of view"]),
        (solve.least_squares, ["|Ax - y|^2 + weight L sum_i |W_i x|^2", "start:"]),
        (solve.fista, ["1/2 |Ax - y|^2 + weight g(x)"]),
        (solve.pdhg, ["1/2 |Ax - y|^2 + g(x) + sum_i weight_i f_i(K_i x)"]),
        (prox.Penalty, ["argmin_u 1/2 |u - x|^2 + t g(u)"]),
        (prox.l1, ["sum_i |x_i|"]),
        (linop.nufft, ["exp(-2 pi i k_j.x)", "cycles per field of view", "[batch..., sample]"]),
    ],
)
def test_equations_shapes_and_units_are_stated(one, words):
    # Lines of text break anywhere.
    text = " ".join(one.__doc__.split())
    for word in words:
        assert word in text, word
