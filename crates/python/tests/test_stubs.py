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
    assert stubs.made(text) == text, "python crates/python/stubs.py writes them anew"
