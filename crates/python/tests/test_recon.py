"""Scans, reconstructions and the command, in a process that has NumPy only."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import rayspin


def command(*words, **named):
    program = os.path.join(os.path.dirname(sys.executable), "rayspin")
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, **named)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scan")
    words = "simulate mri --matrix 32,32 -t radial --coils 4 -o scan.h5 --truth truth.npy".split()
    done = command(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_scan_is_reconstructed_as_the_command_does_it(folder):
    scan = rayspin.read_scan(folder / "scan.h5")
    heard = []
    found = rayspin.recon(scan, "cg-sense", device="cpu", iterations=7, progress=lambda *one: heard.append(one))
    words = "recon mri scan.h5 -o image.npy --method cg-sense --iterations 7 --device cpu".split()
    done = command(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(found.image, np.load(folder / "image.npy"))
    assert found.image.shape == (1, 32, 32) and found.image.dtype == np.complex64
    assert found.maps.shape == (4, 1, 32, 32)
    assert found.parameters["iterations"] == 7 and len(found.residuals[0]) <= 8
    assert ("conjugate gradients", 7, 7) in heard
    assert [name for name, _ in found.stages][-1] == "conjugate gradients"
    found.save(folder / "saved.npy")
    np.testing.assert_array_equal(np.load(folder / "saved.npy"), found.image)
    assert len(found.spacing_mm) == 3 and np.allclose(found.directions, np.eye(3))


def test_the_method_that_suits_is_taken_and_said(folder):
    found = rayspin.recon(rayspin.read_scan(folder / "scan.h5"), device="cpu")
    assert any(note.startswith(f"method {found.method}: ") for note in found.notes)


def test_methods_state_their_parameters():
    help_text, parameters = rayspin.methods()["cg-sense"]
    assert "coils" in help_text
    assert parameters["iterations"]["default"] == 30 and parameters["iterations"]["help"]


def test_wrong_keywords_and_files_raise(folder):
    scan = rayspin.read_scan(folder / "scan.h5")
    for error, words, named in [
        (ValueError, "cg-sense", {"method": "magic"}),
        (TypeError, "no parameter", {"method": "cg-sense", "wavelet": "db2"}),
        (TypeError, "whole number", {"method": "cg-sense", "iterations": "many"}),
        (ValueError, "iterations", {"method": "cg-sense", "iterations": 0}),
        (ValueError, "regulariser", {"method": "cg-sense", "regulariser": "haar"}),
        (ValueError, "device", {"device": "tpu"}),
    ]:
        with pytest.raises(error, match=words):
            rayspin.recon(scan, **named)
    with pytest.raises(OSError):
        rayspin.read_scan(folder / "none.h5")
    (folder / "text.h5").write_text("no scan")
    with pytest.raises(ValueError):
        rayspin.read_scan(folder / "text.h5")


def test_an_exception_of_progress_stops_the_run(folder):
    def stop(stage, step, steps):
        if stage == "conjugate gradients" and step == 2:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        rayspin.recon(rayspin.read_scan(folder / "scan.h5"), "cg-sense", device="cpu", progress=stop)


def test_ctrl_c_stops_a_run(folder):
    scan = rayspin.read_scan(folder / "scan.h5")
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            rayspin.recon(scan, "cg-sense", device="cpu", iterations=10000, tolerance=0.0)
    timer.join()


def test_the_command_has_its_exit_codes(folder):
    assert command("--version").stdout.split() == ["rayspin", rayspin.__version__]
    wrong = command("recon", "mri", "none.h5", "-o", "image.npy", cwd=folder)
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: ")
