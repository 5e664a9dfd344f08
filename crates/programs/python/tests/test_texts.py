"""Texts that reach Python name keywords and radian, not options of the command and degrees."""

import re

import numpy as np
import pytest

import rayspin
from rayspin import ct, render, simulate

OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def options():
    yield from simulate.options("mri").items()
    yield from simulate.options("ct").items()
    yield from render.options().items()


def test_angles_are_in_radian():
    angles = {name: row for name, row in options() if row["unit"] == "radian"}
    assert set(angles) == {"arc", "tilt", "azimuth", "elevation", "perspective"}
    assert "default: pi for parallel rays, else 2*pi" in angles["arc"]["help"]
    assert "pi/6 without a number" in angles["perspective"]["help"]
    assert angles["tilt"]["default"] == "0"
    for name, row in options():
        assert "degree" not in row["help"] and "°" not in row["help"], name
        assert ("in radian" in row["help"]) == (name in angles), name


def test_the_default_of_an_angle_is_what_the_help_says():
    named = {"geometry": "parallel", "matrix": (8, 8), "views": 4, "lines": True}
    stated = simulate.ct(arc=np.pi, **named).scan
    np.testing.assert_array_equal(stated.angles, simulate.ct(**named).scan.angles)
    assert stated.angles[1] == pytest.approx(np.pi / 4)


@pytest.mark.parametrize(
    "call,words",
    [
        (lambda: simulate.ct(arc=1e6), r"arc: expected at most 1000 turns, 2000\*pi, found 1000000$"),
        (lambda: render.drr(np.ones((3, 3, 3)), 1.0, elevation=2.0), "elevation: expected at most pi/2, found 2$"),
        (
            lambda: render.drr(np.ones((3, 3, 3)), 1.0, perspective=4.0),
            r"more than 0 and less than pi, found 4; perspective=pi/6",
        ),
    ],
)
def test_ranges_of_angles_are_in_radian(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_an_angle_is_no_text():
    with pytest.raises(TypeError, match="arc: expected a number of radian, found str '180'"):
        simulate.ct(arc="180")


def test_help_names_keywords():
    texts = [row["help"] for _, row in options()]
    for table in (rayspin.methods(), ct.methods(), ct.corrections()):
        for what, parameters in table.values():
            texts += [what, *(row["help"] for row in parameters.values())]
    for text in texts:
        # What the command itself takes is named with the command.
        assert not OPTION.search(re.sub(r"rayspin recon mri --window", "", text)), text
    anatomy = rayspin.methods()["cg-sense"][1]["anatomy"]["help"]
    assert 'needs regulariser="differences" or method="tv"' in anatomy
    mri = simulate.options("mri")
    assert mri["noise_readouts"]["help"].endswith("with snr=")
    assert 'Samples of each readout of trajectory="random"' in mri["samples"]["help"]


@pytest.fixture(scope="module")
def made():
    return simulate.mri(matrix=(32, 32), coils=4, trajectory="radial", snr=30.0)


def test_notes_name_keywords(made):
    notes = rayspin.recon(made.scan, "cg-sense", iterations=2, device="cpu").notes
    said = next(note for note in notes if note.startswith("coil sensitivities"))
    assert said.endswith(" (calibration=, sensitivities= or maps= overrides)")
    assert not any("--" in note for note in notes)
    assert any("(lambda_= overrides)" in note for note in notes)
    samples, points = made.scan.arrays()
    turns = points * (2 * np.pi / 32)
    notes = rayspin.Scan.from_arrays(samples, turns, shape=(24, 24)).notes
    assert any("(units= overrides)" in note for note in notes)
    notes = rayspin.Scan.from_arrays(samples, points, shape=(24, 24), units="cycles/fov").notes
    assert any("(a larger shape= takes them)" in note for note in notes)


def test_words_of_the_command_stay(tmp_path):
    scan = simulate.ct(matrix=(8, 8, 60), views=4).scan
    (note,) = ct.recon(scan, "cgls", iterations=1, device="cpu").save(tmp_path / "image.png")
    assert "rayspin convert --montage shows all" in note


@pytest.mark.parametrize(
    "call,words",
    [
        (lambda: simulate.mri(shots=4), r'shots: expected trajectory="radial", "kooshball".* found trajectory="cartesian"'),
        (lambda: simulate.mri(noise_readouts=4), "noise_readouts: expected snr=, found a scan without noise"),
        (lambda: simulate.ct(advance=5.0), 'advance: expected geometry="helix", found geometry="cone"'),
        (lambda: simulate.ct(lines=True, photons=5.0), "photons: .*lines=True"),
        (lambda: simulate.ct(photons=-5.0), "photons= sets them"),
        (lambda: render.drr(np.ones((3, 3, 3)), 1.0, colour=(1, 1, 1)), "colour: expected render.surface, found render.drr"),
    ],
)
def test_errors_of_commands_name_keywords(call, words):
    with pytest.raises(ValueError, match=words) as raised:
        call()
    assert not OPTION.search(str(raised.value)), raised.value


def test_parameters_that_do_nothing_are_refused(made):
    with pytest.raises(ValueError, match='lambda_: expected regulariser="identity" or "differences", found regulariser="none"'):
        rayspin.recon(made.scan, "cg-sense", regulariser="none", lambda_=0.1, device="cpu")
    with pytest.raises(ValueError, match="anatomy_edge: expected anatomy=, found none"):
        rayspin.recon(made.scan, "cg-sense", regulariser="differences", anatomy_edge=0.1, device="cpu")


def test_errors_of_corrections_name_keywords():
    scan = simulate.ct(geometry="parallel", matrix=(16, 16), views=8).scan
    with pytest.raises(ValueError, match="hardening_2=, hardening_3= or tube="):
        ct.recon(scan, correct="hardening", device="cpu")
    with pytest.raises(ValueError, match='method="fbp"'):
        ct.recon(scan, "fdk", device="cpu")
