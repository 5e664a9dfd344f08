"""Metrics beside their formulas and the command."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from rayspin import metrics


def images(kind, shape=(3, 20, 24)):
    rng = np.random.default_rng(3)
    truth, noise = rng.normal(size=(2, *shape))
    if kind.startswith("complex"):
        truth, noise = truth + 1j * rng.normal(size=shape), noise + 1j * rng.normal(size=shape)
    if kind.startswith(("int", "uint")):
        truth, noise = 100 + 20 * truth, 50 * noise
    return (truth + 0.1 * noise).astype(kind), truth.astype(kind)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128", "int16", "uint8", "float16"])
def test_metrics_are_their_formulas(kind):
    image, truth = images(kind)
    wide = np.complex128 if kind.startswith("complex") else np.float64
    error, energy = np.abs(image.astype(wide) - truth.astype(wide)), np.abs(truth.astype(wide))
    mse = np.mean(error**2)
    found = metrics.compare(image, truth)
    for value, expected in [
        (found.mse, mse),
        (found.nrmse, np.sqrt(np.sum(error**2) / np.sum(energy**2))),
        (found.error_percent, 100 * found.nrmse),
        (found.psnr_db, 20 * np.log10(energy.max() / np.sqrt(mse))),
        (found.snr_db, 20 * np.log10(np.sqrt(np.mean(energy**2) / mse))),
        (found.max_error, error.max()),
        (found.reference_max, energy.max()),
        (metrics.nrmse(image, truth), found.nrmse),
        (metrics.psnr(image, truth), found.psnr_db),
    ]:
        assert np.isclose(value, expected, rtol=1e-10)
    assert found.voxels == image.size and found.scale == 1
    similar = metrics.ssim(image, truth)
    assert 0.5 < similar < 1 and (found.ssim is None) == kind.startswith("complex")
    if found.ssim is not None:
        assert found.ssim == similar


def test_the_command_prints_the_same(tmp_path):
    for name, image in zip(["image", "truth"], images("complex64")):
        np.save(tmp_path / f"{name}.npy", image)
    program = os.path.join(os.path.dirname(sys.executable), "rayspin")
    image, truth = images("complex64")
    for words, named in [([], {}), (["--fit"], {"fit": True}), (["--magnitude"], {"magnitude": True})]:
        line = [program, "metrics", "image.npy", "truth.npy", "--json", *words]
        done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        told, found = json.loads(done.stdout), metrics.compare(image, truth, **named)
        for name in ["mse", "psnr_db", "snr_db", "nrmse", "error_percent", "ssim", "max_error", "reference_max", "voxels"]:
            assert getattr(found, name) == told[name], name
        assert [found.scale.real, found.scale.imag] == told["scale"]
        assert found.compared.replace(" ", "-") == told["compared"]


def test_masks_fits_repetitions_and_kinds():
    image, truth = images("float64")
    mask = np.zeros(truth.shape[1:], bool)
    mask[5:9, 3:20] = True
    found = metrics.compare(image, truth, mask=mask)
    assert found.voxels == 3 * mask.sum()
    assert np.isclose(found.nrmse, np.linalg.norm((image - truth)[:, mask]) / np.linalg.norm(truth[:, mask]))
    turned = metrics.compare(truth * 2j, truth * (1 + 0j), fit=True)
    assert turned.nrmse < 1e-12 and np.isclose(turned.scale, -0.5j) or turned.compared == "magnitudes"
    phases = metrics.compare(truth * 1j, (truth + 1j) * 1.0)
    assert "phase" in phases.hint or "scale" in phases.hint
    repeated = metrics.compare(np.stack([image, truth]), truth)
    assert "one truth for 2 repetitions" in repeated.rule and repeated.voxels == 2 * truth.size
    assert metrics.compare(truth, truth).psnr_db == np.inf and metrics.compare(truth, truth).hint is None
    assert "1.0000" in repr(metrics.compare(truth, truth))


def test_wrong_images_are_refused():
    image, truth = images("float64")
    for call, error, words in [
        (lambda: metrics.compare(image[:2], truth), ValueError, "expected shape"),
        (lambda: metrics.compare(image * np.nan, truth), ValueError, "finite"),
        (lambda: metrics.compare(np.array(["a", "b"]), truth), TypeError, "image: expected an array of numbers"),
        (lambda: metrics.compare(image, truth, mask=np.zeros((2, 2))), ValueError, "mask"),
        (lambda: metrics.compare(image, truth, mask=np.zeros(truth.shape, bool)), ValueError, "mask"),
        (lambda: metrics.ssim(np.zeros((0, 3)), np.zeros((0, 3))), ValueError, "image"),
        (lambda: metrics.nrmse(image.T, truth), ValueError, "shape"),
    ]:
        with pytest.raises(error, match=words):
            call()
