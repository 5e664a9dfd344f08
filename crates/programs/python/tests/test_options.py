"""Keywords of reconstructions are the options of the command, from one table."""

import inspect
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import rayspin
from rayspin import ct, simulate

PROGRAM = os.path.join(os.path.dirname(sys.executable), "rayspin")

# What the command writes or prints itself, and what does so here.
INSTEAD = {
    "output": "Reconstruction.save",
    "complex": "arrays are complex",
    "phase": "numpy.angle, Reconstruction.save(phase=True)",
    "save-maps": "Reconstruction.maps",
    "dry-run": "plan",
    "reference": "metrics.compare",
    "fit": "metrics.compare(fit=True)",
    "record": "Reconstruction.record",
    "no-record": "Reconstruction.record",
    "keep-identity": "Scan.save(keep_identity=True)",
    "bids": "Reconstruction.save(bids=True)",
    "dicom-template": "Reconstruction.save(dicom_template=...)",
    "gpu-memory": "arrays of the caller share the GPU",
    "threads": "set_threads",
    "quiet": "progress=False",
    "help": "help",
    "version": "__version__",
}
RENAMED = {"lambda": "lambda_", "slice": "slices", "repetition": "repetitions", "contrast": "contrasts", "cardiac-phase": "cardiac_phases", "set": "sets", "average": "averages", "frames": "windows", "epsilon": "nufft_tolerance"}
RENAMED |= {"traj": "trajectory", "traj-units": "trajectory_units", "traj-fov": "trajectory_fov", "traj-weights": "trajectory_weights"}
RENAMED |= {"echo-times": "echo_times_ms", "no-prewhiten": "prewhiten", "fov": "fov_mm", "dwell": "dwell_us"}
OF_CT = {"view": "views", "row": "rows", "column": "columns", "flat": "flats", "dark": "darks", "voxel": "voxel_mm", "centre": "centre_mm"}
OF_CT |= {"pixel": "pixel_mm", "source-to-axis": "source_to_axis_mm", "axis-to-detector": "axis_to_detector_mm", "lambda": "lambda_"}


@pytest.mark.parametrize("kind,call,methods,names", [("mri", rayspin.recon, rayspin.methods, RENAMED), ("ct", ct.recon, ct.methods, OF_CT)])
def test_every_option_of_the_command_is_here(kind, call, methods, names):
    text = subprocess.run([PROGRAM, "recon", kind, "--help"], check=True, capture_output=True, text=True).stdout
    options = set(re.findall(r"^ {2,6}(?:-\w, )?--([a-z][a-z0-9-]+)", text, re.MULTILINE))
    assert {"output", "method", "memory", "certify"} <= options
    keywords = set(inspect.signature(call).parameters)
    for _, parameters in methods().values():
        keywords |= set(parameters)
    # Parameters of corrections stand within correct=.
    within = {name for _, parameters in ct.corrections().values() for name in parameters} if kind == "ct" else set()
    for option in options - set(INSTEAD):
        keyword = names.get(option, option.replace("-", "_"))
        assert keyword in keywords | within, option


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    words = "simulate mri --matrix 24,24 --coils 3 -t radial --shots 30 --repetitions 3 --snr 30 --noise-readouts 8 -o series.h5"
    subprocess.run([PROGRAM, *words.split()], cwd=folder, check=True, capture_output=True)
    return folder


def by_command(folder, words):
    subprocess.run([PROGRAM, "recon", *words.split()], cwd=folder, check=True, capture_output=True)
    return np.load(folder / "by.npy")


def test_keywords_do_what_options_do(folder):
    path = folder / "series.h5"
    for keywords, options in [
        ({"matrix": (16, 16)}, "--matrix 16,16"),
        ({"repetitions": [0, 2], "independent": True}, "--repetition 0,2 --independent"),
        ({"certify": 50, "certify_seed": 3}, "--certify 50 --certify-seed 3"),
        ({"cache": folder / "kernels"}, "--cache kernels"),
        ({"sensitivities": "espirit", "map_crop": 0.5, "calibration": 12}, "--sensitivities espirit --map-crop 0.5 --calibration 12"),
        ({"coils": 2, "compression": "svd"}, "--coils 2 --compression svd"),
        ({"prewhiten": False, "density": "radial"}, "--no-prewhiten --density radial"),
    ]:
        found = rayspin.recon(path, "cg-sense", iterations=3, device="cpu", **keywords)
        words = f"mri series.h5 -m cg-sense --iterations 3 {options} --device cpu -o by.npy"
        np.testing.assert_array_equal(found.image, by_command(folder, words), err_msg=options)
    certificates = rayspin.recon(path, "cg-sense", device="cpu", certify=True).certificates
    assert certificates and all(one["met"] and one["outputs"] == 1000 for one in certificates)
    assert (folder / "kernels").is_dir()


def test_arrays_and_paths_stand_for_maps_and_fields(folder):
    path = folder / "series.h5"
    found = rayspin.recon(path, "cg-sense", iterations=2, device="cpu")
    np.save(folder / "maps.npy", found.maps)
    by_array = rayspin.recon(path, "cg-sense", iterations=2, device="cpu", maps=found.maps).image
    np.testing.assert_array_equal(rayspin.recon(path, "cg-sense", iterations=2, device="cpu", maps=folder / "maps.npy").image, by_array)
    with pytest.raises(ValueError, match="intensity: expected maps= beside it, found none"):
        rayspin.recon(path, "cg-sense", device="cpu", intensity=True)
    one, two = (rayspin.recon(path, "cg-sense", iterations=2, device="cpu", maps=by * found.maps, intensity=True).image for by in (1, 2))
    np.testing.assert_allclose(2 * two, one, atol=1e-5 * np.abs(one).max())


def test_a_plan_is_what_the_run_takes(folder):
    plan = rayspin.plan(folder / "series.h5", device="cpu", memory=2**40)
    assert plan["method"] == "cg-sense" and plan["cut"] == "3 images" and plan["gpu_memory"] == 0
    assert plan["memory"] >= max(stage["memory"] for stage in plan["stages"]) > 0
    with pytest.raises(ValueError, match="memory: expected at least"):
        rayspin.plan(folder / "series.h5", device="cpu", memory=1000)
    scan = simulate.ct(matrix=(12, 12, 12), views=10).scan
    assert ct.plan(scan, "cgls", iterations=7, device="cpu")["method"] == "cgls"


def test_images_come_one_by_one(folder):
    whole = rayspin.recon(folder / "series.h5", "cg-sense", iterations=3, device="cpu").image
    images = rayspin.images(folder / "series.h5", "cg-sense", iterations=3, device="cpu")
    for image, expected in zip(images, whole, strict=True):
        np.testing.assert_array_equal(image, expected)
    assert images.method == "cg-sense" and images.notes
    assert list(images) == []
    (single,) = rayspin.images(folder / "series.h5", "gridding", repetitions=1, device="cpu")
    assert single.shape == (1, 24, 24)
    # A caller who takes no more ends the run.
    some = rayspin.images(folder / "series.h5", "gridding", window=10, stride=1, device="cpu")
    next(some)
    some.close()
    assert list(some) == []
    with pytest.raises(FileNotFoundError):
        next(rayspin.images(folder / "none.h5", "gridding"))
    with pytest.raises(TypeError, match="no parameter of method gridding"):
        rayspin.images(folder / "series.h5", "gridding", iterations=3)


def test_images_that_nobody_takes_hold_no_interpreter(folder):
    text = f"import rayspin; one = rayspin.images({str(folder / 'series.h5')!r}, 'gridding', window=10, stride=1, device='cpu'); next(one)"
    subprocess.run([sys.executable, "-c", text], check=True, timeout=50)


def test_images_in_files_keep_numbers_and_places(tmp_path):
    rng = np.random.default_rng(3)
    turned = [[0, 1, 0], [-1, 0, 0], [0, 0, 1]]
    for data in (rng.normal(size=(3, 4, 5)).astype(np.float32), (rng.normal(size=(2, 3, 4, 5)) + 1j).astype(np.complex64)):
        image = rayspin.Image(data, spacing_mm=(1, 2, 3), position_mm=(10, -5, 7), directions=turned)
        for name in ("image.h5", "image.nii.gz"):
            assert image.save(tmp_path / name) == [] or np.iscomplexobj(data)
            read = rayspin.read_image(tmp_path / name)
            expected = np.abs(data) if np.iscomplexobj(data) and not np.iscomplexobj(read.data) else data
            np.testing.assert_allclose(read.data, expected, rtol=1e-6)
            np.testing.assert_allclose(read.position_mm, (10, -5, 7), atol=1e-4)
            np.testing.assert_allclose(read.directions, turned, atol=1e-6)
            assert read.spacing_mm == [1, 2, 3]
            with pytest.raises(ValueError):
                read.save(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        rayspin.read_image(tmp_path / "none.nii")
    with pytest.raises(ValueError):
        rayspin.Image(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="image.xyz"):
        rayspin.Image(np.zeros((2, 3))).save(tmp_path / "image.xyz")


def test_filters_are_those_of_the_command(tmp_path):
    data = np.random.default_rng(4).normal(size=(3, 16, 20)).astype(np.float32)
    image = rayspin.Image(data, spacing_mm=2.0)
    image.save(tmp_path / "image.nii.gz")
    assert "sigma" in rayspin.filters()["gaussian"][1]
    for name, parameters, step in [
        ("gaussian", {"sigma": 1.5}, "gaussian:1.5"),
        ("median", {"size": 3}, "median:3"),
        ("sobel", {}, "sobel"),
        ("resize", {"factor": 0.5}, "resize:0.5"),
    ]:
        words = [PROGRAM, "filter", "image.nii.gz", "--step", step, "-o", "by.npy", "--device", "cpu", "-q"]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
        found = rayspin.filter(image, name, device="cpu", **parameters)
        np.testing.assert_allclose(found.data, np.load(tmp_path / "by.npy"), atol=1e-6)
    assert found.spacing_mm == [4, 4, 3]  # 3 slices become 2
    assert rayspin.filter(data[0], "median", device="cpu").shape == (16, 20)
    with pytest.raises(ValueError, match="filter: expected one of gaussian.*found blur"):
        rayspin.filter(data, "blur")
    with pytest.raises(TypeError, match="radius"):
        rayspin.filter(data, "gaussian", radius=2, device="cpu")
    with pytest.raises(ValueError, match="finite"):
        rayspin.filter(np.full((4, 4), np.nan), "median", device="cpu")


def test_a_ct_scan_in_a_file_of_arrays_takes_what_the_command_takes(tmp_path):
    scan = simulate.ct(geometry="parallel", matrix=(24, 24), views=30, lines=True).scan
    np.save(tmp_path / "lines.npy", scan.projections)
    found = ct.recon(tmp_path / "lines.npy", "fbp", arc=np.pi, pixel_mm=2.0, device="cpu")
    words = "ct lines.npy -m fbp --arc 180 --pixel 2 --device cpu -o by.npy"
    np.testing.assert_array_equal(found.volume, by_command(tmp_path, words))
    counts = np.exp(-scan.projections) * 1000
    np.save(tmp_path / "counts.npy", counts)
    by_number = ct.recon(tmp_path / "counts.npy", "fbp", arc=np.pi, pixel_mm=2.0, flats=1000, axis=11.5, device="cpu").volume
    flats = np.full(counts.shape[1:], 1000, np.float32)
    by_array = ct.recon(tmp_path / "counts.npy", "fbp", arc=np.pi, pixel_mm=2.0, flats=flats, axis=11.5, device="cpu").volume
    np.testing.assert_array_equal(by_number, by_array)
    np.testing.assert_allclose(by_number, found.volume, atol=1e-3 * np.abs(found.volume).max())
    for wrong, said in [
        ({"darks": 3}, "darks: expected flats= beside it"),
        ({"views": -1}, "views: expected a whole number from 0"),
        ({"axis": "middle"}, "axis: expected a number or 'find'"),
        ({"voxel_mm": (1, 2)}, r"voxel_mm: expected 1 or 3 numbers \(x, y, z\)"),
    ]:
        with pytest.raises((ValueError, TypeError), match=said):
            ct.recon(tmp_path / "lines.npy", "fbp", **({"arc": np.pi} | wrong), device="cpu")
    with pytest.raises(ValueError, match="flats: expected a scan in a file"):
        ct.recon(scan, "fbp", flats=3, device="cpu")


def test_a_series_over_a_temporal_basis(folder):
    path = folder / "series.h5"
    found = rayspin.recon(path, basis="svd:2", echo_times_ms=[10, 20, 30], device="cpu")
    assert found.image.shape == (2, 1, 24, 24)
    assert any("temporal subspace: 3 frames from 2 coefficients" in note for note in found.notes)
    words = "mri series.h5 --basis svd:2 --echo-times 10,20,30 --device cpu -o by.npy"
    np.testing.assert_array_equal(found.image, by_command(folder, words))
    assert rayspin.plan(path, basis="svd:2", echo_times_ms=[10, 20, 30], device="cpu")["method"] == found.method
    assert len(list(rayspin.images(path, "tv", basis="svd:1", echo_times_ms=[10, 20, 30], device="cpu"))) == 1
    # The identity as basis: every image is its own coefficient.
    alone = rayspin.recon(path, "cg-sense", maps=found.maps, iterations=4, lambda_=0.0, device="cpu").image
    identity = rayspin.recon(path, "cg-sense", maps=found.maps, iterations=4, lambda_=0.0, basis=np.eye(3), device="cpu").image
    assert identity.shape == alone.shape
    for wrong, said in [
        ({"basis": "svd:2"}, "echo_times_ms= states them"),
        ({"basis": "svd:two", "echo_times_ms": [1, 2, 3]}, "basis: expected svd: and a number"),
        ({"basis": np.ones((4, 1))}, "expected 3 rows, one for each image of the series, found 4"),
        ({"basis": np.eye(3), "method": "gridding"}, "basis: expected method="),
        ({"echo_times_ms": [1, 2, 3]}, "echo_times_ms: expected basis= beside it"),
    ]:
        with pytest.raises(ValueError, match=said):
            rayspin.recon(path, device="cpu", **wrong)


def test_nrrd_is_a_format_like_others(tmp_path):
    data = np.random.default_rng(5).normal(size=(2, 3, 4)).astype(np.float32)
    rayspin.Image(data, spacing_mm=(1, 2, 3), position_mm=(4, 5, 6)).save(tmp_path / "image.nrrd")
    read = rayspin.read_image(tmp_path / "image.nrrd")
    np.testing.assert_array_equal(read.data, data)
    assert read.spacing_mm == [1, 2, 3] and read.position_mm == [4, 5, 6]


def test_a_volume_that_would_be_made_slab_by_slab_is_refused(tmp_path):
    path = tmp_path / "scan.h5"
    simulate.ct(matrix=(128, 128, 128), views=12, lines=True).scan.save(path)
    # With a limit, memory that earlier runs have left is given back first.
    whole = ct.plan(path, "fdk", stream=True, device="cpu", memory=2**40)
    memory = whole["memory"] - 4 * 128**3 // 2
    cut = ct.plan(path, "fdk", stream=True, device="cpu", memory=memory)
    assert "slices at a time" in cut["cut"] and cut["memory"] <= memory
    with pytest.raises(ValueError, match="volume: expected memory for all of it at once"):
        ct.recon(path, "fdk", stream=True, device="cpu", memory=memory)
    assert ct.recon(path, "fdk", stream=True, device="cpu").volume.shape == (128, 128, 128)
