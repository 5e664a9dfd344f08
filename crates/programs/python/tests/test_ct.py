"""Rays, line integrals, scans and reconstructions of CT, beside exact numbers and the command."""

import json
import os
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from rayspin import ct


def command(folder, words):
    program = os.path.join(os.path.dirname(sys.executable), "rayspin")
    done = subprocess.run([program, *words.split()], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


TURN = np.linspace(0, 2 * np.pi, 24, endpoint=False)
CONE = {"source_to_axis_mm": 200.0, "axis_to_detector_mm": 100.0}


GEOMETRIES = [
    ("parallel", ct.Geometry.parallel(TURN / 2, 9, 31, 0.8)),
    ("cone", ct.Geometry.cone(TURN, 9, 31, (1.2, 1.0), **CONE)),
    ("helix", ct.Geometry.helix(TURN * 2, 9, 31, 1.5, advance_mm=6.0, **CONE)),
    ("curved", ct.Geometry.cone(TURN, 9, 31, 1.2, curved=True, offset_mm=(3.0, -1.0), tilt=0.05, **CONE)),
]


@pytest.mark.parametrize("name,rays", GEOMETRIES)
def test_projections_are_line_integrals(name, rays):
    # A Gaussian's line integral is sqrt(2 pi) sigma exp(-d^2 / 2 sigma^2) at the distance d of the ray. Linear interpolation between
    # voxels of h errs by at most h^2 / 8 times the second derivative, peak / sigma^2, along each of two axes.
    sigma, place, h = 2.2, np.array([1.0, -0.5, 0.25]), 0.5
    grid = ct.Grid((40, 40, 40), h)
    z, y, x = np.meshgrid(*(np.arange(40) * h + grid.first_mm[0] for _ in range(3)), indexing="ij")
    square = (x - place[0]) ** 2 + (y - place[1]) ** 2 + (z - place[2]) ** 2
    found = ct.Projector(rays, grid, device="cpu", dtype="float64").forward(0.02 * np.exp(-square / (2 * sigma**2)))
    views, rows, columns = rays.shape
    peak = 0.02 * np.sqrt(2 * np.pi) * sigma
    exact = np.zeros(rays.shape)
    for view, row, column in np.ndindex(rays.shape):
        pixel = np.array(rays.pixel_mm(view, row, column))
        source = rays.vectors[view, :3]
        along = source if rays.is_parallel else pixel - source
        distance = np.linalg.norm(np.cross(place - pixel, along)) / np.linalg.norm(along)
        exact[view, row, column] = peak * np.exp(-(distance**2) / (2 * sigma**2))
    assert exact.max() > 0.9 * peak and exact.min() < 0.01 * peak
    assert np.abs(found - exact).max() < h**2 / 4 / sigma**2 * peak


@pytest.mark.parametrize("dtype,rounding", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("name,rays", GEOMETRIES)
def test_projectors_are_adjoint_pairs(name, rays, dtype, rounding):
    rng = np.random.default_rng(1)
    project = ct.Projector(rays, ct.Grid((7, 12, 11), (1.1, 0.9, 1.3), (1.0, -2.0, 0.5)), device="cpu", dtype=dtype)
    x = rng.uniform(0.5, 1, project.grid.shape).astype(dtype)
    y = rng.uniform(0.5, 1, rays.shape).astype(dtype)
    forward, back = project.forward(x), project.adjoint(y)
    assert forward.dtype == dtype and forward.shape == rays.shape and back.shape == x.shape
    left, right = np.vdot(forward.astype(float), y), np.vdot(x, back.astype(float))
    assert left > 0 and abs(left - right) <= rounding * left
    out = np.full(rays.shape, np.nan, dtype)
    assert project.forward(x, out=out) is out
    np.testing.assert_array_equal(out, forward)


def test_geometries_say_where_rays_run():
    rays = ct.Geometry.cone(TURN, 3, 5, 2.0, axis=1.0, **CONE)
    assert len(rays) == 24 and rays.shape == (24, 3, 5) and rays.pitch_mm == (2.0, 2.0) and not rays.is_parallel
    # The axis falls on column 1 in every view, and the ray of a pixel comes back to it.
    assert all(np.allclose(rays.project(view, (0, 0, 0)), (1, 1)) for view in range(24))
    assert np.allclose(rays.project(7, rays.pixel_mm(7, 0.3, 3.2)), (0.3, 3.2))
    back = ct.Geometry.from_vectors(rays.vectors, 3, 5)
    assert np.allclose(back.vectors, rays.vectors) and np.allclose(back.angles, TURN)
    assert rays.select([3, 5]).angles.tolist() == TURN[[3, 5]].tolist()
    assert rays.select(list(range(24))) == rays != rays.select([0])
    assert rays.grid(voxel_mm=1.0, matrix=(8, 9)).shape == (1, 9, 8)
    helix = ct.Geometry.helix([0, 2 * np.pi], 3, 5, advance_mm=10.0, **CONE)
    assert np.allclose(helix.vectors[:, 2], [-5, 5])
    assert ct.Geometry.parallel(TURN, 1, 4, 0.5).vectors[0].tolist() == [0, 1, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ct")
    command(folder, "simulate ct -o scan.h5 -g parallel --matrix 48,48 --views 60 --truth truth.npy --drift 0.02")
    command(folder, "simulate ct -o cone.h5 --matrix 16,16,8 --views 40 --lines")
    return folder


@pytest.mark.parametrize(
    "words,named",
    [
        ("scan.h5", {}),
        ("scan.h5 --method cgls --iterations 4", {"method": "cgls", "iterations": 4}),
        ("scan.h5 --correct outliers,rings", {"correct": ["outliers", "rings"]}),
        ("scan.h5 --correct bin --bin-columns 2", {"correct": {"bin": {"bin_columns": 2}}}),
        ("scan.h5 --matrix 20,20 --voxel 3", {"matrix": (20, 20), "voxel_mm": 3}),
        ("cone.h5 --window hann", {"window": "hann"}),
        ("cone.h5 --centre 4,0,2 --method sirt", {"centre_mm": (4, 0, 2), "method": "sirt"}),
    ],
)
def test_a_scan_is_reconstructed_as_the_command_does_it(folder, words, named):
    file, *_ = words.split()
    command(folder, f"recon ct {words} -o volume.npy --device cpu")
    found = ct.recon(ct.read_scan(folder / file), device="cpu", **named)
    expected = np.load(folder / "volume.npy")
    assert found.volume.dtype == np.float32 and found.volume.shape == found.grid.shape
    np.testing.assert_array_equal(ct.recon(folder / file, device="cpu", **named).volume, found.volume)
    np.testing.assert_array_equal(found.volume, expected.reshape(found.volume.shape))
    found.save(folder / "saved.npy")
    np.testing.assert_array_equal(np.load(folder / "saved.npy"), found.volume)
    told = json.loads((folder / "volume.json").read_text())["parameters"]
    own = found.record["parameters"]
    # The scan is in memory, beside all else that this process holds.
    others = set(own) - {"memory stated", "budget"}
    assert {name: told.get(name) for name in others} == {name: own[name] for name in others}
    assert {"method", "voxels", "corrections"} < set(found.record["parameters"])
    assert found.method in ct.methods() and set(found.parameters) == set(ct.methods()[found.method][1])
    if found.method in ("cgls", "sirt"):
        assert len(found.residuals) >= found.parameters["iterations"] and found.residuals[-1] < found.residuals[0] == 1
    else:
        assert any("chooses another" in note for note in found.notes)


def test_pictures_are_those_of_the_command(folder):
    command(folder, "recon ct cone.h5 -o command.png --device cpu")
    ct.recon(ct.read_scan(folder / "cone.h5"), device="cpu").save(folder / "library.png")
    assert (folder / "library.png").read_bytes() == (folder / "command.png").read_bytes()


def test_scans_are_made_of_arrays(folder):
    scan = ct.read_scan(folder / "scan.h5")
    assert len(scan) == 60 and scan.shape == (60, 1, 48) and scan.flats.shape == (10, 1, 48)
    again = ct.Scan.from_arrays(
        scan.projections[:, 0], scan.geometry, flats=scan.flats[:, 0], darks=scan.darks[:, 0]
    )
    np.testing.assert_array_equal(
        ct.recon(again, device="cpu").volume, ct.recon(scan, device="cpu").volume
    )
    lines = scan.line_integrals(device="cpu")
    flat, dark = scan.flats.mean(0), scan.darks.mean(0)
    expected = -np.log((scan.projections - dark) / (flat - dark))
    assert np.allclose(lines, expected, atol=1e-5)
    scan.save(folder / "saved.h5")
    np.testing.assert_array_equal(ct.read_scan(folder / "saved.h5").projections, scan.projections)
    assert np.allclose(ct.read_scan(folder / "saved.h5").geometry.vectors, scan.geometry.vectors)
    whole = ct.Scan.from_arrays(lines.astype(float), scan.geometry)
    assert whole.flats is None and whole.darks is None
    part = whole.select(views=slice(0, 60, 2), columns=range(10, 30))
    np.testing.assert_array_equal(part.projections, lines[::2, :, 10:30])
    for column in (0, 7):
        assert np.allclose(part.geometry.pixel_mm(3, 0, column), whole.geometry.pixel_mm(6, 0, 10 + column))
    # 16-bit counts, as cameras give them.
    counts = np.full((4, 2, 8), 500, np.uint16)
    plain = ct.Scan.from_arrays(counts, angles=TURN[:4], flats=np.full((2, 8), 1100), darks=100)
    assert np.allclose(plain.line_integrals(device="cpu"), -np.log(0.4)) and plain.geometry is None


def test_the_axis_is_found(folder):
    rays = ct.Geometry.parallel(np.linspace(0, np.pi, 90, endpoint=False), 1, 64, axis=28.5)
    grid = ct.Grid((1, 128, 128), (0.5, 0.5, 1))
    y, x = np.mgrid[:128, :128] / 2 - 31.75
    volume = (((x - 6) / 14) ** 2 + ((y - 2) / 9) ** 2 < 1).astype(np.float32)[None] * 0.02
    lines = ct.Projector(rays, grid, device="cpu").forward(volume)
    scan = ct.Scan.from_arrays(lines, angles=rays.angles)
    assert abs(scan.find_axis(device="cpu") - 28.5) < 0.1
    # A column corrects the axis of a scan that states its rays.
    stated = ct.recon(ct.Scan.from_arrays(lines, rays), axis=30.0, matrix=(64, 64), voxel_mm=1, device="cpu")
    assert stated.axis == 30.0 and any("in place of column 28.50" in note for note in stated.notes)
    # Columns that do not see the whole object.
    part = ct.Scan.from_arrays(lines, rays).select(columns=range(22, 64))
    extended = ct.recon(part, matrix=(16, 16), voxel_mm=0.5, device="cpu")
    assert any('extend="none"' in note for note in extended.notes)
    plain = ct.recon(part, extend="none", matrix=(16, 16), voxel_mm=0.5, device="cpu")
    assert not any("cylinder" in note for note in plain.notes)
    found = ct.recon(scan, axis="find", matrix=(64, 64), voxel_mm=1, device="cpu")
    assert abs(found.axis - 28.5) < 0.1 and any("states no rays" in note for note in found.notes)
    given = ct.recon(scan, axis=28.5, matrix=(64, 64), voxel_mm=1, device="cpu").volume
    means = volume.reshape(1, 64, 2, 64, 2).mean((2, 4))
    middle = means == np.float32(0.02)
    assert np.abs(given - means)[middle].mean() < 6e-4
    # As the command takes the same numbers from a file.
    np.save(folder / "lines.npy", lines)
    command(folder, "recon ct lines.npy --arc 180 --axis 28.5 --matrix 64,64 --voxel 1 -o axis.npy --device cpu")
    np.testing.assert_array_equal(np.load(folder / "axis.npy").reshape(given.shape), given)
    read = ct.read_scan(folder / "lines.npy", arc=np.pi)
    np.testing.assert_array_equal(ct.read_scan(folder / "lines.npy", geometry=rays).projections, lines)
    np.testing.assert_array_equal(read.projections, lines)
    np.save(folder / "counts.npy", (1e4 * np.exp(-lines)).astype(np.float32))
    counts = ct.read_scan(folder / "counts.npy", geometry=rays, flats=1e4)
    assert np.allclose(counts.line_integrals(device="cpu"), lines, atol=1e-5)
    # The fields that are given replace those of the file.
    dimmed = ct.read_scan(folder / "scan.h5", flats=np.full(48, 2e5), darks=100)
    assert dimmed.flats.shape == dimmed.darks.shape == (1, 1, 48) and dimmed.geometry is not None


def test_rtk_geometries_are_read(folder):
    (folder / "rtk.xml").write_text(
        "<?xml version='1.0'?><RTKThreeDCircularGeometry version='3'><SourceToIsocenterDistance>200</SourceToIsocenterDistance>"
        "<SourceToDetectorDistance>300</SourceToDetectorDistance>"
        + "".join(f"<Projection><GantryAngle>{angle}</GantryAngle></Projection>" for angle in (0, 90))
        + "</RTKThreeDCircularGeometry>"
    )
    rays = ct.Geometry.read_rtk(folder / "rtk.xml", 3, 5, 2.0)
    assert len(rays) == 2 and rays.pitch_mm == (2.0, 2.0)
    assert np.allclose(np.linalg.norm(rays.vectors[:, :3], axis=1), 200)
    assert np.allclose(np.linalg.norm(rays.vectors[:, 3:6] - rays.vectors[:, :3], axis=1), 300)


def test_wrong_input_is_refused_with_what_is_wrong(folder):
    rays = ct.Geometry.parallel(TURN, 3, 8)
    grid = ct.Grid((3, 8, 8), 1.0)
    project = ct.Projector(rays, grid, device="cpu")
    volume, lines = np.zeros(grid.shape, np.float32), np.zeros(rays.shape, np.float32)
    scan, stated = ct.Scan.from_arrays(lines, angles=TURN), ct.Scan.from_arrays(lines, rays)
    for call, error, words in [
        (lambda: project.forward(volume.astype(float)), TypeError, "volume: expected float32"),
        (lambda: project.forward(volume[:2].copy()), ValueError, "volume: expected shape"),
        (lambda: project.adjoint(volume), ValueError, "projections: expected shape"),
        (lambda: project.forward(np.asfortranarray(volume)), ValueError, "ascontiguousarray"),
        (lambda: project.forward(volume, out=volume.copy()), ValueError, "out: expected shape"),
        (lambda: project.forward("volume"), TypeError, "str"),
        (lambda: ct.Projector(rays, grid, dtype="int8"), TypeError, "float64"),
        (lambda: ct.Projector(rays, grid, device="tpu"), ValueError, "auto"),
        (lambda: ct.Projector(grid, rays), TypeError, "Geometry"),
        (lambda: ct.Grid((3, 0, 8), 1.0), ValueError, "each 1 or more"),
        (lambda: ct.Grid((8, 8), 1.0), TypeError, "shape: expected three"),
        (lambda: ct.Grid((3, 8, 8), -1.0), ValueError, "spacing"),
        (lambda: ct.Geometry.parallel([0.0, np.nan], 1, 8), ValueError, "angles"),
        (lambda: ct.Geometry.parallel([[0.0]], 1, 8), ValueError, r"angles: expected the axes \[view\]"),
        (lambda: ct.Geometry.parallel(TURN, 1, 8, (1.0, 1.0, 1.0)), TypeError, "pitch_mm"),
        (lambda: ct.Geometry.parallel(TURN, 1, 8, axis=2.0, offset_mm=(1.0, 0.0)), ValueError, "axis"),
        (lambda: ct.Geometry.cone(TURN, 1, 8, source_to_axis_mm=-5, axis_to_detector_mm=1), ValueError, "source"),
        (lambda: ct.Geometry.from_vectors(np.zeros((2, 11)), 1, 8), ValueError, "vectors"),
        (lambda: rays.pixel_mm(24, 0, 0), ValueError, "one of 0 to 23"),
        (lambda: rays.select([30]), ValueError, "view"),
        (lambda: ct.Scan.from_arrays(lines), TypeError, "geometry or angles"),
        (lambda: ct.Scan.from_arrays(lines[:, :2], rays), ValueError, "projections: expected shape"),
        (lambda: ct.Scan.from_arrays(lines + 1j, rays), TypeError, "real"),
        (lambda: ct.Scan.from_arrays(lines, rays, flats=np.ones((4, 4))), ValueError, "flat fields"),
        (lambda: ct.Scan.from_arrays(lines, rays, darks=1), TypeError, "flats"),
        (lambda: ct.Scan.from_arrays(np.array(["a"]), rays), TypeError, "numbers"),
        (lambda: stated.select(columns=[1, 3]), ValueError, "side by side"),
        (lambda: stated.select(views=[]), ValueError, "views"),
        (lambda: ct.recon(stated, "magic"), ValueError, "fdk"),
        (lambda: ct.recon(stated, "fbp", iterations=3), TypeError, "no parameter of method fbp"),
        (lambda: ct.recon(stated, "cgls", iterations=0), ValueError, "iterations"),
        (lambda: ct.recon(stated, correct="magic"), ValueError, "rings"),
        (lambda: ct.recon(stated, correct={"rings": {"magic": 1}}), TypeError, "correction rings"),
        (lambda: ct.recon(stated, axis=3000.0), ValueError, "a column from 0 to"),
        (lambda: ct.recon(scan, axis=30.0), ValueError, "column from 0 to 7"),
        (lambda: ct.recon(scan, axis="middle"), TypeError, "find"),
        (lambda: ct.recon(stated, grid=grid, matrix=(8, 8)), ValueError, "grid"),
        (lambda: ct.recon(ct.Scan.from_arrays(lines * np.nan, rays)), ValueError, "finite"),
        (lambda: ct.read_scan(folder / "truth.npy"), ValueError, "geometry= or arc="),
        (lambda: ct.read_scan(folder / "scan.h5", arc=3.0), ValueError, "one that states them"),
        (lambda: ct.read_scan(folder / "scan.h5", darks=3.0), TypeError, "flats"),
        (lambda: ct.read_scan(folder / "none.h5"), OSError, "none.h5"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_progress_is_told_and_its_exception_stops_the_run(folder):
    scan, heard = ct.read_scan(folder / "cone.h5"), []
    ct.recon(scan, "cgls", device="cpu", iterations=3, progress=lambda *one: heard.append(one))
    assert ("conjugate gradients", 3, 3) in heard and heard[0][0] == "line integrals"

    def stop(stage, step, steps):
        if stage == "conjugate gradients" and step == 2:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        ct.recon(scan, "cgls", device="cpu", progress=stop)


def test_ctrl_c_stops_a_run(folder):
    scan = ct.read_scan(folder / "cone.h5")
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            ct.recon(scan, "sirt", device="cpu", iterations=10000)
    timer.join()


def test_vectors_of_skewed_detectors_make_projectors():
    angles = np.linspace(0, 2 * np.pi, 30, endpoint=False)
    straight = ct.Geometry.cone(angles, 24, 28, (2.0, 2.5), source_to_axis_mm=200.0, axis_to_detector_mm=100.0)
    vectors = straight.vectors
    vectors[:, 9:] += 0.3 * vectors[:, 6:9]  # Rows shift along columns.
    rays = ct.Geometry.from_vectors(vectors, 24, 28)
    np.testing.assert_allclose(rays.vectors, vectors, rtol=0, atol=1e-12)
    assert np.allclose(rays.pixel_mm(3, 11.5, 13.5), vectors[3, 3:6])
    for point in [(4.0, -7.0, 5.0), (-9.0, 2.0, -3.0)]:
        row, column = rays.project(7, point)
        source, end = vectors[7, :3], np.array(rays.pixel_mm(7, row, column))
        along = (end - source) / np.linalg.norm(end - source)
        away = np.array(point) - source
        assert np.linalg.norm(away - (away @ along) * along) < 1e-9
    grid = ct.Grid((14, 16, 18), 2.0)
    project = ct.Projector(rays, grid, device="cpu", dtype="float64")
    volume = np.zeros(grid.shape)
    volume[8, 5, 12] = 1
    lines = project.forward(volume)
    centre = (np.array([12, 5, 8]) - np.array([8.5, 7.5, 6.5])) * 2.0
    for view in (0, 11, 22):
        row, column = rays.project(view, centre)
        rows, columns = np.indices(lines.shape[1:])
        total = lines[view].sum()
        found = (lines[view] * rows).sum() / total, (lines[view] * columns).sum() / total
        assert np.allclose(found, (row, column), atol=0.25)
    data = np.random.default_rng(9).normal(size=rays.shape)
    assert np.isclose(np.vdot(lines, data), np.vdot(volume, project.adjoint(data)))
    truth = np.zeros(grid.shape, np.float32)
    truth[4:10, 5:11, 5:13] = 0.02
    scan = ct.Scan.from_arrays(ct.Projector(rays, grid, device="cpu").forward(truth), rays)
    found = ct.recon(scan, "cgls", grid=grid, iterations=15, device="cpu").volume
    assert np.linalg.norm(found - truth) < 0.15 * np.linalg.norm(truth)
    assert ct.recon(scan, grid=grid, device="cpu").method not in ("fbp", "fdk", "fourier")
    with pytest.raises(ValueError, match="rows and columns of pixels at right angles, found 76.5"):
        ct.recon(scan, "fdk", grid=grid, device="cpu")
    with pytest.raises(ValueError, match="right angles on a|on a curved detector"):
        ct.Geometry.from_vectors(vectors, 24, 28, radius_mm=300.0)


def test_degrees_that_are_taken_to_be_radian_are_said():
    degrees = np.arange(0, 180, 1.5)
    for call in [
        lambda: ct.Geometry.parallel(degrees, 2, 8),
        lambda: ct.Geometry.cone(2 * degrees, 2, 8, source_to_axis_mm=90, axis_to_detector_mm=30),
        lambda: ct.Scan.from_arrays(np.ones((120, 1, 8)), angles=degrees),
    ]:
        with pytest.warns(UserWarning, match=r"angles: .* turns, as degrees.*numpy.radians\(angles\)"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ct.Geometry.parallel(np.radians(degrees), 2, 8)
        ct.Geometry.parallel(np.arange(400) * np.radians(111.246), 2, 8)
        ct.Geometry.helix(
            np.linspace(0, 12 * np.pi, 900), 2, 8, source_to_axis_mm=90, axis_to_detector_mm=30, advance_mm=5
        )


def test_a_scan_states_the_size_of_its_pixels():
    rays = ct.Geometry.parallel(np.linspace(0, 3, 4), 2, 8, (0.5, 0.75))
    scan = ct.Scan.from_arrays(np.ones((4, 2, 8), np.float32), rays)
    assert scan.pixel_mm == (0.5, 0.75)
    assert ct.Scan.from_arrays(np.ones((4, 2, 8), np.float32), angles=[0, 1, 2, 3]).pixel_mm is None
