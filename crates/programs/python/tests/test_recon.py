"""Scans, reconstructions and the command, in a process that has NumPy only."""

import os
import pickle
import re
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
    assert rayspin.recon(scan, "cg-sense", device="cpu", iterations=1, keep_maps=False).maps is None
    assert found.parameters["iterations"] == 7 and len(found.residuals[0]) <= 8
    assert ("conjugate gradients", 7, 7) in heard
    assert [name for name, _ in found.stages][-1] == "conjugate gradients"
    found.save(folder / "saved.npy")
    np.testing.assert_array_equal(np.load(folder / "saved.npy"), found.image)
    record = found.record
    assert record["parameters"]["method"] == "cg-sense" and record["parameters"]["iterations"] == 7
    assert record["convergence"][0]["residual"] == found.residuals[0] and record["notes"] == found.notes
    assert [stage["name"] for stage in record["stages"]].count("conjugate gradients") == 1
    assert 0 < sum(seconds for _, seconds in found.stages) <= record["total_seconds"]
    assert len(found.spacing_mm) == 3 and np.allclose(found.directions, np.eye(3))


def test_the_method_that_suits_is_taken_and_said(folder):
    found = rayspin.recon(rayspin.read_scan(folder / "scan.h5"), device="cpu")
    assert any(note.startswith(f"method {found.method}: ") for note in found.notes)


def test_the_centre_of_k_space_is_given(folder):
    words = "simulate mri --matrix 24,24 --coils 2 -o grid.h5".split()
    assert command(*words, cwd=folder).returncode == 0
    scan = rayspin.read_scan(folder / "grid.h5")
    found = rayspin.recon(scan, "cartesian", device="cpu", centre_line=12, combine="none")
    stated = rayspin.recon(scan, "cartesian", device="cpu", combine="none")
    np.testing.assert_array_equal(found.image, stated.image)
    # All lines were measured: about another centre they do not fit the matrix.
    with pytest.raises(ValueError, match="around its centre 13"):
        rayspin.recon(scan, "cartesian", device="cpu", centre_line=13)
    for keywords in ({"centre_line": -1}, {"centre_partition": -2}, {"reversed_centre": "back"}):
        with pytest.raises(ValueError, match=next(iter(keywords))):
            rayspin.recon(scan, "cartesian", device="cpu", **keywords)
    arrays = rayspin.Scan.from_arrays(np.ones((2, 8, 8), np.complex64))
    with pytest.raises(ValueError, match="^centre_line: expected a scan with counters"):
        rayspin.recon(arrays, "cartesian", device="cpu", centre_line=4)


def test_columns_units_and_field_of_view_of_a_trajectory_are_given(folder, tmp_path):
    def image(**keywords):
        scan = rayspin.read_scan(folder / "scan.h5")
        return rayspin.recon(scan, "gridding", device="cpu", **keywords)

    plain = image()
    stated = image(trajectory_fov="encoded", trajectory_units="cycles/fov")
    np.testing.assert_array_equal(stated.image, plain.image)
    for keywords in ({"trajectory_fov": "half"}, {"trajectory_units": "miles"}):
        with pytest.raises(ValueError, match=next(iter(keywords))):
            image(**keywords)
    arrays = rayspin.Scan.from_arrays(np.ones((2, 8, 8), np.complex64))
    for keywords in ({"trajectory_fov": "recon"}, {"trajectory_units": "cycles/fov"}, {"trajectory_weights": True}):
        with pytest.raises(ValueError, match="trajectory"):
            rayspin.recon(arrays, "cartesian", device="cpu", **keywords)
    # A third column that is never negative: a kz, or density weights.
    points = np.stack([*np.meshgrid(np.arange(-8, 8), np.arange(-8, 8)), np.ones((16, 16))], axis=-1)
    kspace = np.ones((2, 256), np.complex64)
    np.save(tmp_path / "points.npy", points.reshape(256, 3).astype(np.float32))
    np.save(tmp_path / "samples.npy", kspace)
    keywords = {"trajectory": tmp_path / "points.npy", "matrix": (16, 16), "units": "cycles/fov"}
    with pytest.raises(ValueError, match="trajectory_weights=True"):
        rayspin.read_scan(tmp_path / "samples.npy", **keywords)
    scan = rayspin.read_scan(tmp_path / "samples.npy", trajectory_weights=True, **keywords)
    np.testing.assert_array_equal(scan.arrays()[1], points.reshape(256, 3)[:, :2])


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


def test_arrays_are_reconstructed_as_the_scan_that_they_come_from(folder):
    scan = rayspin.read_scan(folder / "scan.h5")
    expected = rayspin.recon(scan, "cg-sense", device="cpu", iterations=5)
    samples, points = scan.arrays()
    assert scan.images == 1 and samples.shape[0] == 4 and points.shape == (samples.shape[1], 2)
    again = rayspin.Scan.from_arrays(samples, points, shape=(32, 32), units="cycles/fov")
    found = rayspin.recon(again, "cg-sense", device="cpu", iterations=5)
    np.testing.assert_array_equal(found.image, expected.image)
    # Spokes and readouts, in radians per voxel, whose unit the range tells.
    readout = next(n for n in range(64, 0, -1) if len(points) % n == 0)
    runs = points.reshape(-1, readout, 2) * (2 * np.pi / 32)
    again = rayspin.Scan.from_arrays(samples.reshape(4, -1, readout), runs, shape=(32, 32), fov_mm=(320, 160))
    assert any("radians/voxel" in note for note in again.notes)
    found = rayspin.recon(again, "cg-sense", device="cpu", iterations=5)
    assert np.linalg.norm(found.image - expected.image) < 1e-4 * np.linalg.norm(expected.image)
    assert found.spacing_mm[:2] == [10, 5]


def test_maps_noise_and_coils_are_what_the_command_makes_of_them(folder):
    scan = rayspin.read_scan(folder / "scan.h5")
    rng = np.random.default_rng(1)
    maps = (rng.normal(size=(4, 1, 32, 32)) + 1j * rng.normal(size=(4, 1, 32, 32))).astype(np.complex64)
    mixing = np.eye(4) + 0.2 * rng.normal(size=(4, 4))
    np.save(folder / "maps.npy", maps)
    np.save(folder / "noise.npy", (mixing @ mixing.T).astype(np.complex64))
    words = "recon mri scan.h5 -o given.npy -m cg-sense --iterations 4 --device cpu --coils 3".split()
    done = command(*words, "--noise-covariance", "noise.npy", "--maps", "maps.npy", cwd=folder)
    assert done.returncode == 0, done.stderr
    noise = np.load(folder / "noise.npy").astype(np.complex128)
    found = rayspin.recon(
        scan, "cg-sense", device="cpu", iterations=4, maps=maps, noise_covariance=noise, coils=3
    )
    np.testing.assert_array_equal(found.image, np.load(folder / "given.npy"))
    plain = rayspin.recon(scan, "cg-sense", device="cpu", iterations=4, maps=maps)
    assert np.linalg.norm(plain.image - found.image) > 1e-3 * np.linalg.norm(plain.image)


def test_grids_and_field_maps(folder):
    words = "simulate mri --matrix 24,20 --coils 2 -t spiral --field-map-hz 60 -o field.h5 --save-field-map field.npy"
    done = command(*words.split(), cwd=folder)
    assert done.returncode == 0, done.stderr
    words = "recon mri field.h5 -o corrected.npy -m cg-sense --iterations 6 --device cpu --field-map field.npy"
    done = command(*words.split(), cwd=folder)
    assert done.returncode == 0, done.stderr
    scan, field = rayspin.read_scan(folder / "field.h5"), np.load(folder / "field.npy").real
    found = rayspin.recon(
        scan, "cg-sense", device="cpu", iterations=6, field_map=np.ascontiguousarray(field, np.float32)
    )
    np.testing.assert_array_equal(found.image, np.load(folder / "corrected.npy"))
    rng = np.random.default_rng(2)
    kspace = (rng.normal(size=(3, 12, 10)) + 1j * rng.normal(size=(3, 12, 10))).astype(np.complex64)
    found = rayspin.recon(rayspin.Scan.from_arrays(kspace), "cartesian", device="cpu")
    images = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(kspace, axes=(1, 2)), norm="ortho"), axes=(1, 2))
    magnitude = np.sqrt((np.abs(images) ** 2).sum(axis=0))
    ratio = np.abs(found.image[0]) / magnitude
    np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-4)


def test_results_show_themselves(folder):
    found = rayspin.recon(rayspin.read_scan(folder / "scan.h5"), device="cpu")
    assert "data:image/png;base64,iVBOR" in found._repr_html_() and "<li>" in found._repr_html_()


def test_wrong_arrays_of_scans_are_refused():
    samples, points = np.ones((2, 6), np.complex64), np.zeros((6, 2))
    make = rayspin.Scan.from_arrays
    for call, error, words in [
        (lambda: make(samples), ValueError, "coil"),
        (lambda: make(np.array(["a"]), points, shape=(4, 4)), TypeError, "kspace: expected an array of numbers"),
        (lambda: make(samples, points), ValueError, "shape"),
        (lambda: make(samples, points[:5], shape=(4, 4)), ValueError, "trajectory"),
        (lambda: make(samples, points, shape=(4, 4, 4)), ValueError, "2 numbers"),
        (lambda: make(samples, points, shape=(4, 0)), ValueError, "each 1 or more"),
        (lambda: make(samples, points, shape=(4, 4), units="miles"), ValueError, "radians/voxel"),
        (lambda: make(samples, points * np.nan, shape=(4, 4)), ValueError, "finite"),
        (lambda: make(samples * np.nan, points, shape=(4, 4), units="cycles/fov"), ValueError, "finite"),
        (lambda: make(samples, points, shape=(4, 4), units="cycles/fov", times=np.zeros(5)), ValueError, "times"),
        (lambda: make(samples.reshape(2, 3, 2), points.reshape(2, 3, 2), shape=(4, 4), units="cycles/fov").arrays(1),
         ValueError, "image"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_a_field_map_is_seen_where_the_method_is_chosen():
    rng = np.random.default_rng(5)
    grid = rng.normal(size=(3, 24, 20)) + 1j * rng.normal(size=(3, 24, 20))
    scan = rayspin.Scan.from_arrays(grid, times=np.linspace(0, 0.01, 24 * 20))
    assert rayspin.recon(scan, device="cpu").method == "cartesian"
    found = rayspin.recon(scan, field_map=np.full((24, 20), 30.0), device="cpu")
    assert found.method != "cartesian" and np.isfinite(found.image).all()


def test_images_of_bart_arrays_keep_their_dimensions(tmp_path):
    rng = np.random.default_rng(6)
    program = os.path.join(os.path.dirname(sys.executable), "rayspin")
    for name, dims in [("plane", (24, 20, 1, 3)), ("across", (1, 24, 20, 3)), ("volume", (8, 12, 10, 3))]:
        values = rng.normal(size=dims) + 1j * rng.normal(size=dims)
        values.astype(np.complex64).ravel(order="F").tofile(tmp_path / f"{name}.cfl")
        (tmp_path / f"{name}.hdr").write_text("# Dimensions\n" + " ".join(map(str, dims)) + " 1" * 12 + "\n")
        for combine in ("rss", "none"):
            words = [program, "recon", "mri", f"{name}.cfl", "--method", "cartesian", "--combine", combine, "--device", "cpu"]
            subprocess.run([*words, "-o", "theirs.cfl", "--no-record"], cwd=tmp_path, check=True, capture_output=True)
            found = rayspin.recon(rayspin.read_scan(tmp_path / f"{name}.cfl"), "cartesian", combine=combine, device="cpu")
            found.save(tmp_path / "mine.cfl")
            for end in ("cfl", "hdr"):
                mine, theirs = ((tmp_path / f"{whose}.{end}").read_bytes() for whose in ("mine", "theirs"))
                assert mine == theirs, (name, combine, end)


def test_samples_without_the_centre_of_k_space_are_said():
    grid = np.zeros((2, 16, 16), complex)
    grid[:, :5] = np.random.default_rng(7).normal(size=(2, 5, 16))
    notes = rayspin.recon(rayspin.Scan.from_arrays(grid), "cartesian", device="cpu").notes
    assert any("centre of k-space is not among the samples" in note for note in notes)


@pytest.fixture(scope="module")
def several(folder):
    words = "simulate mri --matrix 24,20,3 --fov 240,200,15 --coils 4 --repetitions 4 --snr 30 --noise-readouts 4 -o several.h5"
    done = command(*words.split(), cwd=folder)
    assert done.returncode == 0, done.stderr
    return rayspin.read_scan(folder / "several.h5")


def by_command(folder, words):
    done = command(*f"recon mri {words} -o compared.npy --device cpu".split(), cwd=folder)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "compared.npy")


def test_slices_repetitions_and_readouts_are_chosen_as_by_the_command(folder, several):
    whole = rayspin.recon(several, "cg-sense", iterations=3, device="cpu").image
    assert whole.shape == (4, 3, 20, 24)
    part = rayspin.recon(several, "cg-sense", iterations=3, device="cpu", slices=[0, 2], repetitions=range(1, 3)).image
    expected = by_command(folder, "several.h5 -m cg-sense --iterations 3 --slice 0,2 --repetition 1-2")
    np.testing.assert_array_equal(part, expected)
    assert part.shape == (2, 2, 20, 24)
    one = rayspin.recon(several, "cartesian", device="cpu", slices=1, repetitions=np.int64(3), readouts=np.arange(4, 18)).image
    expected = by_command(folder, "several.h5 -m cartesian --slice 1 --repetition 3 --readouts 4-17")
    np.testing.assert_array_equal(one, expected)
    assert one.shape == (1, 20, 24)
    for name in ("contrasts", "cardiac_phases", "sets", "encoding"):
        np.testing.assert_array_equal(rayspin.recon(several, "cg-sense", iterations=3, device="cpu", **{name: 0}).image, whole)
        with pytest.raises(ValueError, match="expected 0, found 1"):
            rayspin.recon(several, device="cpu", **{name: 1})


def test_contrasts_and_cardiac_phases_are_volumes(several, tmp_path):
    kspace = several.arrays()[0].reshape(4, -1, 20, 24)[:, 0]  # [coil, y, x]
    factors = 1 + np.arange(6).reshape(2, 3)  # [cardiac phase, contrast]
    dims = [24, 20, 1, 4, 1, 3, 1, 1, 1, 1, 1, 2]
    array = np.einsum("cyx,pe->pecyx", kspace, factors).astype(np.complex64)
    array.tofile(tmp_path / "k.cfl")
    (tmp_path / "k.hdr").write_text("# Dimensions\n" + " ".join(map(str, dims + [1] * 4)) + "\n")
    scan = tmp_path / "k.cfl"
    one = rayspin.recon(scan, "cartesian", device="cpu", contrasts=0, cardiac_phases=0)
    found = rayspin.recon(scan, "cartesian", device="cpu")
    assert found.image.shape == (6, 1, 20, 24) and one.image.shape == (1, 20, 24)
    np.testing.assert_allclose(found.image, factors.reshape(6, 1, 1, 1) * one.image, rtol=1e-4, atol=1e-6)
    counters = [(volume["cardiac_phase"], volume["contrast"]) for volume in found.volumes]
    assert counters == [(phase, echo) for phase in range(2) for echo in range(3)]
    again = pickle.loads(pickle.dumps(found))
    assert again.volumes == found.volumes
    found.save(tmp_path / "i.npy")
    assert np.load(tmp_path / "i.npy").shape == (2, 3, 1, 20, 24)
    some = rayspin.recon(scan, "cartesian", device="cpu", contrasts=[0, 2], cardiac_phases=1)
    np.testing.assert_array_equal(some.image, found.image[[3, 5]])


def test_images_are_saved_with_names_of_bids_and_as_dicom(folder, several, tmp_path):
    found = rayspin.recon(several, "cg-sense", iterations=3, device="cpu")
    found = pickle.loads(pickle.dumps(found))
    notes = found.save(tmp_path / "sub-01_bold.nii.gz", bids=True, phase=True)
    assert any("part-phase_bold.nii.gz" in note for note in notes), notes
    phase = rayspin.read_image(tmp_path / "sub-01_part-phase_bold.nii.gz").data
    np.testing.assert_allclose(phase, np.angle(found.image), atol=1e-5)
    words = "recon mri several.h5 -m cg-sense --iterations 3 --device cpu -o sub-01_bold.nii.gz --bids --phase --no-record"
    assert command(*words.split(), cwd=folder).returncode == 0
    for part in ("mag", "phase"):
        name = f"sub-01_part-{part}_bold"
        assert (tmp_path / f"{name}.json").read_text() == (folder / f"{name}.json").read_text()
        np.testing.assert_array_equal(*(rayspin.read_image(at / f"{name}.nii.gz").data for at in (tmp_path, folder)))
    found.save(tmp_path / "phase.nii", phase=True)
    assert rayspin.read_image(tmp_path / "phase.nii").data.min() < -1

    # The command writes the same files.
    command(*f"{words} -o all.dicom".replace("--bids", "").replace("-o sub-01_bold.nii.gz", "").split(), cwd=folder)
    found.save(tmp_path / "all.dicom", phase=True)
    names = sorted(file.name for file in (folder / "all.dicom").iterdir())
    assert len(names) == 12
    assert all((folder / "all.dicom" / name).read_bytes() == (tmp_path / "all.dicom" / name).read_bytes() for name in names)
    one = rayspin.recon(several, "cartesian", device="cpu", repetitions=0)
    template = tmp_path / "all.dicom" / names[0]
    one.save(tmp_path / "one.dicom", dicom_template=template)
    study = [rayspin.read_image(tmp_path / "one.dicom"), rayspin.read_image(template)]
    assert study[0].data.shape == (3, 20, 24)
    rayspin.Image(np.abs(one.image)).save(tmp_path / "bare.dicom", dicom_template=template)
    uid = (tmp_path / "bare.dicom" / names[0]).read_bytes().split(b"\x20\x00\x0d\x00UI")[1][2:40]
    assert uid in template.read_bytes() and b"1.2.840.10008.5.1.4.1.1.4\0" in (tmp_path / "bare.dicom" / names[0]).read_bytes()
    for path, given, said in [
        ("x.nii", {"dicom_template": template}, "dicom_template"),
        ("x.dicom", {"dicom_template": folder / "several.h5"}, "a DICOM file"),
        ("x.npy", {"bids": True}, "names of BIDS"),
    ]:
        with pytest.raises(ValueError, match=said):
            found.save(tmp_path / path, **given)
    with pytest.raises(FileNotFoundError):
        found.save(tmp_path / "x.dicom", dicom_template=tmp_path / "none.dcm")
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"slices": 3}, ValueError, "slices: expected numbers from 0 to 2, found 3"),
        ({"slices": []}, ValueError, "slices: expected at least one number"),
        ({"slices": -1}, ValueError, "slices: expected a whole number from 0, found -1"),
        ({"repetitions": [0, -2]}, ValueError, "repetitions: expected a whole number from 0, found -2"),
        ({"repetitions": "1-2"}, TypeError, "repetitions: expected a whole number, or several"),
        ({"repetitions": 1.5}, TypeError, "repetitions: expected a whole number, or several"),
        ({"contrasts": 70000}, ValueError, "contrasts: expected 0, found 70000"),
        ({"map_crop": 0.5, "sensitivities": "walsh"}, ValueError, 'map_crop: expected sensitivities="espirit"'),
        ({"sensitivities": "caldir"}, ValueError, "sensitivities: expected walsh or espirit"),
        ({"calibration": 8, "method": "cartesian"}, ValueError, "calibration: expected a run that estimates"),
        ({"density": "radial"}, ValueError, 'density: expected method="gridding", or maps estimated along a trajectory .*, found method="cg-sense" on a grid'),
        ({"density": "ramp"}, ValueError, "density: expected pipe-menon or radial"),
        ({"compression": "svd"}, ValueError, "compression: expected coils= beside it"),
        ({"compression": "gcc", "coils": 2}, ValueError, "compression: expected svd or geometric"),
        ({"field_tolerance": 1e-3}, ValueError, "field_tolerance: expected field_map= beside it"),
        ({"map_sets": 1, "maps": np.ones((4, 3, 20, 24))}, ValueError, "map_sets: expected without maps, found both"),
        ({"independent": True, "repetitions": 0}, ValueError, "independent: expected several repetitions"),
        ({"independent": True, "method": "cartesian"}, ValueError, "independent: expected estimated"),
        ({"lambda_": "auto", "method": "cartesian"}, TypeError, "lambda_: no parameter of method cartesian"),
        ({"lambda_": "auto", "regulariser": "none"}, ValueError, "lambda_: expected"),
        ({"calibration": 2}, ValueError, "^calibration: expected a width of at least 4"),
        ({"map_sets": 9}, ValueError, "map_sets"),
        ({"map_crop": 2.0}, ValueError, "map_crop"),
        ({"lambda_": "much", "method": "cg-sense"}, TypeError, "lambda_: expected a number"),
    ],
)
def test_choices_that_a_scan_has_not_or_that_do_nothing_are_refused(several, given, error, said):
    with pytest.raises(error, match=said):
        rayspin.recon(several, **{"method": "cg-sense", "device": "cpu", **given})


def test_arrays_of_one_image_have_nothing_to_choose(several):
    scan = rayspin.Scan.from_arrays(several.arrays()[0])
    for given, said in [
        ({"slices": 0}, "slices: expected a scan with counters"),
        ({"readouts": [1]}, "readouts: expected a scan with readouts"),
        ({"contrasts": 0}, "contrasts: expected a scan with counters"),
        ({"window": 4}, "window: expected a scan with readouts"),
    ]:
        with pytest.raises(ValueError, match=f"^{said}"):
            rayspin.recon(scan, device="cpu", **given)


def test_a_path_is_read_as_the_run_needs_it(folder, several, tmp_path):
    words = "simulate mri --matrix 24,24 -t radial --angles golden --shots 40 --coils 4 --snr 40 -o windows.h5"
    assert command(*words.split(), cwd=folder).returncode == 0
    for name, given in [
        ("scan.h5", {"method": "cg-sense", "iterations": 3}),
        ("several.h5", {"method": "cg-sense", "iterations": 3}),
        ("several.h5", {"method": "cartesian", "repetitions": 1, "slices": [0, 2]}),
        ("windows.h5", {"method": "gridding", "window": 10, "stride": 5}),
        ("windows.h5", {"method": "gridding", "window": 40}),
    ]:
        whole = rayspin.recon(rayspin.read_scan(folder / name), device="cpu", **given)
        found = rayspin.recon(folder / name, device="cpu", **given)
        np.testing.assert_array_equal(found.image, whole.image)
        np.testing.assert_array_equal(found.stacks[0]["position_mm"], whole.stacks[0]["position_mm"])
    with pytest.raises(ValueError, match=r"scan\.h5"):
        rayspin.recon(str(folder / "scan.h5"), "gridding", device="cpu").save(folder / "scan.h5")
    np.save(tmp_path / "one.npy", several.arrays()[0])
    assert rayspin.recon(tmp_path / "one.npy", "cartesian", device="cpu").image.shape == (1, 20, 24)
    with pytest.raises(FileNotFoundError):
        rayspin.recon(tmp_path / "none.h5")
    with pytest.raises(TypeError, match="scan: expected a rayspin.Scan, or the path of a file"):
        rayspin.recon(3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"maps": np.ones((4, 3, 20, 24)), "method": "cartesian", "combine": "rss"}, "maps: expected a run with sensitivity maps"),
        ({"nufft_tolerance": 1e-3}, "nufft_tolerance: expected a scan with a trajectory, or field_map="),
        ({"trajectory_units": "cycles/fov"}, "trajectory_units: expected a scan with a trajectory"),
    ],
)
def test_keywords_that_do_nothing_are_refused_by_the_rows_of_the_command(several, given, said):
    with pytest.raises(ValueError, match=f"^{said}.* with which it does nothing"):
        rayspin.recon(several, **{"method": "cg-sense", "device": "cpu", **given})


def test_coils_without_noise_readouts_and_one_coil_are_not_whitened():
    scan = rayspin.simulate.mri(matrix=(16, 16), coils=2).scan
    with pytest.raises(ValueError, match="^prewhiten: expected a scan with noise readouts, found a scan without"):
        rayspin.recon(scan, device="cpu", prewhiten=False)
    scan = rayspin.simulate.mri(matrix=(16, 16), coils=1).scan
    with pytest.raises(ValueError, match="^noise_covariance: expected several coils, found one coil"):
        rayspin.recon(scan, device="cpu", noise_covariance=np.eye(1))


def test_a_run_takes_its_work_in_parts_to_fit_the_memory():
    scan = rayspin.simulate.mri(matrix=(48, 48), coils=1, trajectory="radial", shots=20000).scan
    given = {"method": "gridding", "combine": "rss", "device": "cpu"}
    whole = rayspin.recon(scan, **given)
    assert whole.record["parameters"]["points at a time"] is None
    with pytest.raises(ValueError, match="^memory: expected at least .* for the scan, found 1.00 MiB; .*method=") as refused:
        rayspin.recon(scan, memory=1 << 20, **given)
    # Cut, it takes 30 MiB less than whole.
    least, unit = re.search(r"at least ([\d.]+) ([MG])iB", str(refused.value)).groups()
    limit = int(float(least) * {"M": 1 << 20, "G": 1 << 30}[unit]) + (12 << 20)
    parts = rayspin.recon(scan, memory=limit, **given)
    told = parts.record["parameters"]
    assert told["points at a time"] < 20000 * 48 and told["memory stated"] <= told["memory limit"] == limit
    np.testing.assert_allclose(parts.image, whole.image, atol=1e-5 * np.abs(whole.image).max())


def test_maps_are_estimated_as_the_command_does_it(folder, several):
    for given, words in [
        ({"calibration": 12}, "--calibration 12"),
        ({"sensitivities": "walsh"}, "--sensitivities walsh"),
        ({"map_crop": 0.5}, "--map-crop 0.5"),
        ({"map_sets": 2}, "--map-sets 2"),
        ({"independent": True}, "--independent"),
    ]:
        image = rayspin.recon(several, "cg-sense", iterations=2, device="cpu", **given).image
        np.testing.assert_array_equal(image, by_command(folder, f"several.h5 -m cg-sense --iterations 2 {words}"))


def test_lambda_is_searched_for_as_the_command_does_it(folder):
    words = "simulate mri --matrix 32,32 -t radial --shots 16 --coils 4 --snr 20 -o noisy.h5"
    assert command(*words.split(), cwd=folder).returncode == 0
    scan = rayspin.read_scan(folder / "noisy.h5")
    found = rayspin.recon(scan, "cg-sense", lambda_="auto", device="cpu")
    np.testing.assert_array_equal(found.image, by_command(folder, "noisy.h5 -m cg-sense --lambda auto"))
    assert found.searched["lambda_"] == found.parameters["lambda_"] > 0.0
    tried = [one for one, _ in found.searched["tried"]]
    assert found.searched["inside"] and min(tried) < found.searched["lambda_"] < max(tried)
    assert rayspin.recon(scan, "cg-sense", device="cpu", iterations=1).searched is None
    assert found.record["parameters"]["lambda searched"]["lambda"] == found.searched["lambda_"]
    # The other way round.
    given = rayspin.recon(scan, "cg-sense", lambda_=found.parameters["lambda_"], device="cpu")
    np.testing.assert_allclose(given.image, found.image, atol=1e-4 * np.abs(found.image).max())


def test_a_scan_states_its_matrix_and_saves_itself(folder, several):
    assert (several.shape, several.coils) == ((20, 24), 4)
    np.testing.assert_allclose(several.fov_mm, (240, 200, 5))
    assert several.save(folder / "again.h5") == []
    again = rayspin.read_scan(folder / "again.h5")
    assert (len(again), again.images) == (len(several), several.images)
    image = rayspin.recon(several, "cg-sense", iterations=2, device="cpu").image
    np.testing.assert_array_equal(rayspin.recon(again, "cg-sense", iterations=2, device="cpu").image, image)
    with pytest.raises(ValueError, match="several.h5"):
        several.save(folder / "several.h5")
    with pytest.raises(ValueError, match="scan.nii"):
        several.save(folder / "scan.nii")


def test_arrays_are_saved_as_a_scan(folder):
    radial = rayspin.read_scan(folder / "scan.h5")
    samples, points = radial.arrays()
    times = np.arange(samples.shape[1]) * 1e-6
    made = rayspin.Scan.from_arrays(samples, points, shape=(32, 32), fov_mm=(220, 220), units="cycles/fov", times=times)
    assert (made.shape, made.coils) == ((32, 32), 4)
    np.testing.assert_allclose(made.fov_mm, (220, 220, 1))
    assert made.save(folder / "made.h5") == ["times of the samples are not written"]
    found = rayspin.read_scan(folder / "made.h5").arrays()
    np.testing.assert_array_equal(found[0], samples)
    np.testing.assert_allclose(found[1], points, atol=1e-5)


def test_windows_slide_as_by_the_command(folder):
    words = "simulate mri --matrix 24,24 -t radial --angles golden --shots 60 --coils 4 --snr 40 --dynamics beat -o golden.h5"
    assert command(*words.split(), cwd=folder).returncode == 0
    scan = rayspin.read_scan(folder / "golden.h5")
    for method in ("gridding", "cg-sense", "low-rank-sparse"):
        given = {"iterations": 3} if method != "gridding" else {}
        found = rayspin.recon(scan, method, window=20, stride=8, windows=4, device="cpu", **given).image
        words = f"golden.h5 -m {method} --window 20 --stride 8 --frames 4" + "".join(f" --{k} {v}" for k, v in given.items())
        np.testing.assert_array_equal(found, by_command(folder, words))
        assert found.shape == (4, 1, 24, 24)
    assert rayspin.recon(scan, "gridding", window=20, device="cpu").image.shape[0] == 3
    chosen = rayspin.recon(scan, "gridding", window=10, readouts=range(30), device="cpu").image
    np.testing.assert_array_equal(chosen, by_command(folder, "golden.h5 -m gridding --window 10 --readouts 0-29"))
    for wrong, said in [
        ({"window": 61}, "window: expected"),
        ({"window": 0}, "window: expected"),
        ({"window": -1}, "window: expected a whole number from 0"),
        ({"window": 10, "stride": 0}, "stride: expected"),
        ({"window": 10, "windows": 7}, "windows: expected"),
        ({"stride": 2}, "stride: expected window= beside it"),
        ({"windows": 2}, "windows: expected window= beside it"),
    ]:
        with pytest.raises(ValueError, match=said):
            rayspin.recon(scan, "gridding", device="cpu", **wrong)


def test_densities_and_coils_are_those_of_the_command(folder, several):
    scan = rayspin.read_scan(folder / "scan.h5")
    for method, given, words in [
        ("gridding", {"density": "radial"}, "--density radial"),
        ("cg-sense", {"density": "radial", "iterations": 2}, "--density radial --iterations 2"),
    ]:
        image = rayspin.recon(scan, method, device="cpu", **given).image
        np.testing.assert_array_equal(image, by_command(folder, f"scan.h5 -m {method} {words}"))
    image = rayspin.recon(several, "cg-sense", iterations=2, coils=2, compression="geometric", device="cpu").image
    words = "several.h5 -m cg-sense --iterations 2 --coils 2 --compression geometric"
    np.testing.assert_array_equal(image, by_command(folder, words))
    field = np.full((1, 32, 32), 20.0, np.float32)
    field[:, 16:] = -10.0
    np.save(folder / "field.npy", field)
    image = rayspin.recon(scan, "cg-sense", iterations=2, field_map=field, field_tolerance=1e-2, device="cpu").image
    words = "scan.h5 -m cg-sense --iterations 2 --field-map field.npy --field-tolerance 1e-2"
    np.testing.assert_array_equal(image, by_command(folder, words))
