"""Simulated scans beside those that the command writes."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import rayspin
from rayspin import ct, simulate


def command(folder, words):
    program = os.path.join(os.path.dirname(sys.executable), "rayspin")
    done = subprocess.run([program, *words.split()], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words,named",
    [
        ("--matrix 32,24", {"matrix": (32, 24)}),
        (
            "-t spiral --shots 8 --coils 3 --matrix 32,32 --snr 20 --seed 5 --field-map-hz 40",
            {"trajectory": "spiral", "shots": 8, "coils": 3, "matrix": [32, 32], "snr": 20.0, "seed": 5, "field_map_hz": 40},
        ),
        (
            "--dims 3 --matrix 16,24,24 -t poisson --acceleration 2 --calibration 8",
            {"dims": 3, "matrix": np.array([16, 24, 24]), "trajectory": "poisson", "acceleration": 2.0, "calibration": 8},
        ),
    ],
)
def test_mri_scans_are_those_of_the_command(tmp_path, words, named):
    field = " --save-field-map field.npy" if "field_map_hz" in named else ""
    command(tmp_path, f"simulate mri -o scan.h5 --truth truth.npy --maps maps.npy {words}{field}")
    made = simulate.mri(**named)
    np.testing.assert_array_equal(made.truth, np.load(tmp_path / "truth.npy").reshape(made.truth.shape))
    np.testing.assert_array_equal(made.maps, np.load(tmp_path / "maps.npy").reshape(made.maps.shape))
    assert (made.field_hz is not None) == bool(field)
    if field:
        np.testing.assert_array_equal(made.field_hz, np.load(tmp_path / "field.npy").real.reshape(made.field_hz.shape))
    read = rayspin.read_scan(tmp_path / "scan.h5")
    assert len(read) == len(made.scan)
    method = {"method": "cg-sense", "iterations": 3, "device": "cpu"}
    np.testing.assert_array_equal(
        rayspin.recon(made.scan, **method).image, rayspin.recon(read, **method).image
    )


@pytest.mark.parametrize(
    "words,named",
    [
        ("-g parallel --matrix 32,32 --views 40", {"geometry": "parallel", "matrix": (32, 32), "views": 40}),
        (
            "-g fan --matrix 32,32 --views 40 --arc -90 --kilovolts 100 --motion 0,-3,0 --curved --seed 9",
            {
                "geometry": "fan",
                "matrix": (32, 32),
                "views": 40,
                "arc": -np.pi / 2,
                "kilovolts": 100,
                "motion": (0, -3, 0),
                "curved": True,
                "seed": 9,
            },
        ),
        (
            "-g helix --matrix 16,16,8 --views 30 --lines --phantom forbild --detector 20,6",
            {
                "geometry": "helix",
                "matrix": (16, 16, 8),
                "views": 30,
                "lines": True,
                "phantom": "forbild",
                "detector": (20, 6),
            },
        ),
    ],
)
def test_ct_scans_are_those_of_the_command(tmp_path, words, named):
    command(tmp_path, f"simulate ct -o scan.h5 --truth truth.npy {words}")
    made, read = simulate.ct(**named), ct.read_scan(tmp_path / "scan.h5")
    np.testing.assert_array_equal(made.scan.projections, read.projections)
    assert np.allclose(made.scan.angles, read.angles, rtol=0, atol=1e-12)
    assert np.allclose(made.scan.geometry.vectors, read.geometry.vectors, rtol=0, atol=1e-9)
    if "lines" in named:
        assert made.scan.flats is None
    else:
        np.testing.assert_array_equal(made.scan.flats, read.flats)
        np.testing.assert_array_equal(made.scan.darks, read.darks)
    np.testing.assert_array_equal(made.truth, np.load(tmp_path / "truth.npy").reshape(made.truth.shape))
    assert made.grid.shape == made.truth.shape


def test_options_are_listed_and_wrong_ones_refused():
    listed = simulate.options("ct")
    assert listed["views"]["default"] == "360" and "fan" in listed["geometry"]["names"] and listed["arc"]["help"]
    assert listed["lines"]["default"] is False and "output" not in listed and "truth" not in listed
    assert "field_map_hz" in simulate.options("mri")
    for call, error, words in [
        (lambda: simulate.ct(view=3), TypeError, "view: no option of simulate.ct, which has geometry"),
        (lambda: simulate.ct(output="scan.h5"), TypeError, "no option"),
        (lambda: simulate.ct(views="many"), ValueError, "views: expected a whole number"),
        (lambda: simulate.ct(geometry="spiral"), ValueError, "geometry: expected parallel, fan, cone or helix"),
        (lambda: simulate.ct(lines=1), TypeError, "True or False"),
        (lambda: simulate.ct(views=True), TypeError, "a value"),
        (lambda: simulate.ct(views=[1, object()]), TypeError, "views"),
        (lambda: simulate.ct(photons=-5), ValueError, "photons"),
        (lambda: simulate.ct(advance=5.0), ValueError, 'advance: expected geometry="helix"'),
        (lambda: simulate.mri(shots=4), ValueError, "does nothing"),
        (lambda: simulate.mri(matrix=(0, 4)), ValueError, "matrix"),
        (lambda: simulate.options("pet"), ValueError, "mri or ct"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_progress_and_ctrl_c_stop_a_run():
    heard = []
    simulate.ct(geometry="fan", matrix=(16, 16), views=8, progress=lambda *one: heard.append(one[0]))
    assert heard[0] == "line integrals" and "truth" in heard

    def stop(stage, step, steps):
        raise LookupError("enough")

    for run in (simulate.ct, simulate.mri):
        with pytest.raises(LookupError, match="enough"):
            run(matrix=(32, 32), progress=stop, **({"geometry": "fan"} if run is simulate.ct else {}))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            simulate.mri(matrix=(64, 64), trajectory="radial", shots=400)
    timer.join()


@pytest.mark.parametrize("kind", ["mri", "ct"])
def test_help_lists_the_options(kind):
    function = getattr(simulate, kind)
    text = function.__doc__
    assert function.__name__ == kind and "Returns" in text
    for name, row in simulate.options(kind).items():
        assert f"\n{name}: {row['help'][:20]}" in text, name
