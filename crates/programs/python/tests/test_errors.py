"""Wrong calls: each exception is of the type that people expect, names the argument, and says what was expected and found."""

import os
import subprocess
import sys

import numpy as np
import pytest

import rayspin
from rayspin import ct, linop, metrics, prox, render, simulate, solve
from rayspin.nufft import Plan

X = np.ones((4, 4), np.complex64)
POINTS = np.random.default_rng(1).uniform(-2, 2, (9, 2))
CPU = {"device": "cpu"}


def refused(cases):
    """Each of `call, exception, words`: the exception is of exactly this type and has these words."""
    return pytest.mark.parametrize("call,kind,words", cases, ids=[str(number) for number in range(len(cases))])


def check(call, kind, words):
    with pytest.raises(kind, match=words) as raised:
        call()
    assert type(raised.value) is kind, repr(raised.value)


class Unversioned:
    """An array through DLPack before its version 1.0, which cannot say that it is read-only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class WithUnit(np.ndarray):
    """An array in degrees."""

    unit = "deg"


class Wants:
    """An array through DLPack with what torch says of its tensors."""

    def __init__(self, array, **said):
        self.array, self.said = array, said

    def __getattr__(self, name):
        if name in self.__dict__.get("said", {}):
            return self.said[name]
        raise AttributeError(name)

    def __dlpack__(self, **named):
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def operator():
    return linop.fft((4, 4), **CPU)


def plan():
    made = Plan(2, (4, 4), dtype="complex64", eps=1e-4, **CPU)
    made.setpts(*POINTS.T)
    return made


def frozen(shape, dtype):
    array = np.zeros(shape, dtype)
    array.flags.writeable = False
    return array


@refused(
    [
        (lambda: operator()(X.astype("complex128")), TypeError, r"x: expected complex64, found complex128; convert it with .astype"),
        (lambda: operator()(X.real.astype("int32")), TypeError, r"x: expected float32.*found int32; .astype\(\) converts"),
        (lambda: operator()(X.tolist()), TypeError, r"x: expected an array.*found list; numpy.asarray\(x\)"),
        (lambda: operator()(None), TypeError, "x: expected an array.*found NoneType"),
        (lambda: operator()(X[:3].copy()), ValueError, r"x: expected shape \[4, 4\], found \[3, 4\]"),
        (lambda: operator()(X[:0].copy()), ValueError, r"x: expected shape \[4, 4\], found \[0, 4\]"),
        (lambda: operator()(np.asfortranarray(np.eye(4, dtype="complex64") + X[0])[::-1]), ValueError, "x: .*ascontiguousarray"),
        (lambda: operator()(X, out=np.zeros((4, 4))), TypeError, "out: expected complex64, found float64"),
        (lambda: operator()(X, out=[0]), TypeError, "out: expected an array.*found list"),
        (lambda: operator()(X, out=frozen((4, 4), "complex64")), ValueError, "out: expected a writable array"),
        (lambda: operator()(X, out=Unversioned(X.copy())), ValueError, "out: expected a writable array.*DLPack does not say"),
        (lambda: operator()(np.ma.masked_equal(X, X[0, 0])), ValueError, r"x: expected numbers everywhere, found 16 that are masked; x.filled"),
        (lambda: linop.nufft(np.ma.masked_greater(POINTS, 1), (4, 4)), ValueError, "points: .*masked"),
        (lambda: linop.nufft(POINTS.view(WithUnit), (4, 4)), TypeError, "points: expected numbers without a unit, found an array in deg"),
        (lambda: linop.mask(np.ma.masked_array([True, False], [False, True])), ValueError, "mask: .*masked"),
        (lambda: operator()(X, out=np.zeros((4, 5), "complex64")), ValueError, r"out: expected shape \[4, 4\]"),
        (lambda: operator()(Wants(X, requires_grad=True)), TypeError, r"x: .*rayspin.torch.apply\(A, x\).*pass x.detach\(\)"),
        (lambda: operator()(Wants(X, is_conj=lambda: True)), TypeError, r"pass x.resolve_conj\(\)"),
        (lambda: operator()(Wants(X, is_neg=lambda: True)), TypeError, r"pass x.resolve_neg\(\)"),
        (lambda: operator()(X, out=Wants(X.copy(), requires_grad=True)), TypeError, r"pass out.detach\(\)"),
        (lambda: operator() / 0, ZeroDivisionError, "divided by zero"),
        (lambda: operator() / "2", TypeError, None),
        (lambda: 2 / operator(), TypeError, None),
        (lambda: operator() / X, TypeError, None),
        (lambda: linop.fft((4, -4)), ValueError, r"shape: expected the lengths.*found \[4, -4\]"),
        (lambda: linop.fft((0, 4)), ValueError, "shape: expected the lengths of the axes, each 1 or more"),
        (lambda: linop.fft(()), ValueError, "shape"),
        (lambda: linop.fft("ab"), TypeError, "shape"),
        (lambda: linop.fft((4.5, 4)), TypeError, "shape"),
        (lambda: linop.fft((4,), batch=(-1,)), ValueError, "batch"),
        (lambda: linop.fft((4,), dtype="quad"), TypeError, "dtype: expected float32.*found quad"),
        (lambda: linop.fft((4,), device="gpu"), ValueError, "device: expected auto, cpu, cuda"),
        (lambda: linop.fft((4,), device=0), TypeError, "device"),
        (lambda: linop.fft((4,), bach=(2,)), TypeError, "bach"),
        (lambda: linop.identity((-3,)), ValueError, "shape"),
        (lambda: linop.nufft(POINTS, (4, 4), eps=-1e-3), ValueError, "eps: expected"),
        (lambda: linop.nufft(POINTS, (4, 4), eps=float("nan")), ValueError, "eps: expected"),
        (lambda: linop.nufft(POINTS * np.nan, (4, 4)), ValueError, "points: expected finite numbers, found NaN at index 0"),
        (lambda: linop.nufft(POINTS + 1j, (4, 4)), TypeError, "points: expected real numbers, found complex ones"),
        (lambda: linop.nufft(POINTS[:0], (4, 4)), ValueError, "points: expected at least one sample"),
        (lambda: linop.nufft([[1, 2], [3]], (4, 4)), ValueError, "points: expected an array of numbers"),
        (lambda: linop.nufft(POINTS, (4, 4, 4)), ValueError, "^shape: expected shape 2 axes"),
        (lambda: linop.sense(np.ones((2, 4, 4))), TypeError, "complex64 or complex128 for maps"),
        (lambda: linop.mask(np.ones((4, 4))), TypeError, "mask: expected booleans, found numbers of float64; pass mask != 0"),
        (lambda: linop.mask([[True], [True, False]]), ValueError, "mask"),
        (lambda: linop.differences((4, 4), axes=(-1,)), ValueError, "axes"),
        (lambda: linop.differences((4, 4), axes=(2,)), ValueError, "ax"),
        (lambda: linop.wavelet((8, 8), levels=-1), ValueError, "levels"),
        (lambda: linop.custom(len, len, (-1,), (2,)), ValueError, "ishape"),
        (lambda: linop.stack(operator()), TypeError, "operators"),
        (lambda: linop.stack([operator(), X]), TypeError, "operators"),
    ]
)
def test_operators(call, kind, words):
    check(call, kind, words)


@refused(
    [
        (lambda: plan().execute(X.astype("complex128")), TypeError, "data: expected complex64, found complex128"),
        (lambda: plan().execute(Wants(X, requires_grad=True)), TypeError, r"rayspin.torch.*pass data.detach\(\)"),
        (lambda: plan().execute(X, out=frozen(9, "complex64")), ValueError, "out: expected a writable array"),
        (lambda: plan().setpts(POINTS[:, 0] * np.inf, POINTS[:, 1]), ValueError, "x: expected finite numbers"),
        (lambda: plan().setpts(POINTS[:, 0], POINTS[:, 1] * np.nan), ValueError, "y: expected finite numbers, found NaN at index 0"),
        (lambda: plan().setpts(*(POINTS + 1j).T), TypeError, "x: expected real numbers"),
        (lambda: plan().setpts("ab", "cd"), TypeError, "x: expected an array of numbers"),
        (lambda: plan().setpts(), TypeError, "x"),
        (lambda: Plan(-1, (4, 4)), ValueError, "nufft_type: expected 1, 2 or 3, found -1"),
        (lambda: Plan("2", (4, 4)), TypeError, "nufft_type"),
        (lambda: Plan(2, (4, 0)), ValueError, "n_modes_or_dim"),
        (lambda: Plan(2, -4), ValueError, "n_modes_or_dim"),
        (lambda: Plan(2, (4, 4.5)), TypeError, r"n_modes_or_dim: expected a tuple of the grid's lengths, found tuple \(4, 4.5\)"),
        (lambda: Plan(3, (4, 4)), TypeError, "n_modes_or_dim: expected the number of dimensions for type 3"),
        (lambda: Plan(2, (4, 4), eps=-1.0), ValueError, "eps: expected"),
        (lambda: Plan(2, (4, 4), eps=0.0), ValueError, "eps: expected"),
        (lambda: Plan(2, (4, 4), eps="small"), TypeError, "eps"),
        (lambda: Plan(2, (4, 4), n_trans=-1), ValueError, "n_trans"),
        (lambda: Plan(2, (4, 4), n_trans=0), ValueError, "n_trans: expected a whole number from 1, found 0"),
        (lambda: Plan(2, (4, 4), n_trans=True), TypeError, "expected a whole number, found bool True"),
        (lambda: Plan(2, (3.0, 2.0)), TypeError, r"found tuple \(3.0, 2.0\), whose numbers are not whole ones"),
        (lambda: Plan(2, True), TypeError, "n_modes_or_dim: expected a tuple of the grid's lengths, found bool True"),
        (lambda: plan().setpts(np.ma.masked_less(POINTS[:, 0], 0), POINTS[:, 1]), ValueError, "x: .*masked"),
        (lambda: Plan(2, (4, 4), epsilon=1e-3), TypeError, "epsilon"),
    ]
)
def test_plans(call, kind, words):
    check(call, kind, words)


@refused(
    [
        (lambda: solve.cg(operator(), X, iterations=-3), ValueError, "iterations: expected a whole number from 0, found -3"),
        (lambda: solve.cg(operator(), X, iterations=3.5), TypeError, "iterations"),
        (lambda: solve.cg(operator(), X, iterations=True), TypeError, "expected a whole number, found bool True"),
        (lambda: prox.total_variation((8,), True), TypeError, "expected a whole number, found bool True"),
        (lambda: solve.pdhg(operator(), X, [], balance=0.0), ValueError, "balance"),
        (lambda: solve.cg(operator(), X, tolerance=-1.0), ValueError, "^tolerance: expected 0 or more"),
        (lambda: solve.cg(operator(), np.ones((4, 4), "float32")), TypeError, "b: expected complex64, found float32"),
        (lambda: solve.cg(operator(), X[:2].copy()), ValueError, "right-hand side"),
        (lambda: solve.cg(operator(), X, start=X[:2].copy()), ValueError, "start"),
        (lambda: solve.cg(np.eye(4), X), TypeError, "'a'"),
        (lambda: solve.cg(operator(), X, max_iter=3), TypeError, "max_iter"),
        (lambda: solve.least_squares(operator(), X, weight=-1.0), ValueError, "^weight: expected 0 or more"),
        (lambda: solve.least_squares(operator(), X.tolist()), TypeError, "y: expected an array.*found list"),
        (lambda: solve.least_squares(operator(), X, start=X.astype("complex128")), TypeError, "start: expected complex64"),
        (lambda: solve.least_squares(operator(), X, regularisers=[X]), TypeError, "regularisers"),
        (lambda: solve.fista(operator(), X, prox.l1(), float("nan")), ValueError, "^weight: expected 0 or more"),
        (lambda: solve.fista(operator(), X, 3, 1.0), TypeError, "penalty: expected a penalty of rayspin.prox.*found int 3"),
        (lambda: solve.fista(operator(), X, prox.l1(), 1.0, average=-1), ValueError, "average"),
        (lambda: solve.pdhg(operator(), X, [(operator(), prox.l1(), -1.0)]), ValueError, None),
        (lambda: solve.pdhg(operator(), X, [prox.l1()]), TypeError, "terms"),
        (lambda: prox.l1()(-1.0, X), ValueError, "t: expected a number from 0, found -1"),
        (lambda: prox.l1()(1.0, [1.0]), TypeError, "x: expected an array.*found list"),
        (lambda: prox.l2([1.0]), TypeError, "data: expected an array.*found list"),
        (lambda: prox.wavelet((8, -8)), ValueError, "shape"),
        (lambda: prox.wavelet((8, 8), seed=-1), ValueError, "seed"),
        (lambda: prox.total_variation((8,), 0), ValueError, "steps: expected 1 or more"),
        (lambda: prox.total_variation((8,), -2), ValueError, "steps"),
    ]
)
def test_solvers_and_penalties(call, kind, words):
    check(call, kind, words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "text.h5").write_text("no scan")
    np.save(folder / "kspace.npy", X[None])
    np.save(folder / "real.npy", X.real)
    return folder


@pytest.fixture(scope="module")
def mri():
    return simulate.mri(matrix=(16, 16), coils=2, trajectory="radial").scan


@pytest.mark.parametrize("read", [rayspin.read_scan, ct.read_scan], ids=["mri", "ct"])
def test_files_that_the_system_refuses(read, folder):
    for path in [folder / "none.h5", folder / "none.npy", folder / "none" / "none.h5", str(folder / "none.cfl")]:
        with pytest.raises(FileNotFoundError) as raised:
            read(path, **({"arc": 1.0} if read is ct.read_scan else {}))
        assert raised.value.errno == 2 and "none" in raised.value.filename
    with pytest.raises(IsADirectoryError, match="name one of the files"):
        read(folder, **({"arc": 1.0} if read is ct.read_scan else {}))
    for wrong in [3, None, [1]]:
        with pytest.raises(TypeError, match="path"):
            read(wrong)
    with pytest.raises(ValueError, match="text.h5"):
        read(folder / "text.h5")


def test_files_that_cannot_be_written(folder, mri):
    found = rayspin.recon(mri, "gridding", device="cpu")
    with pytest.raises(FileNotFoundError, match="make the folder .*none first") as raised:
        found.save(folder / "none" / "image.npy")
    assert raised.value.filename == str(folder / "none" / "image.npy")
    with pytest.raises(ValueError, match="image.xyz"):
        found.save(folder / "image.xyz")
    if os.getuid() != 0:
        (folder / "closed").mkdir(mode=0o500)
        with pytest.raises(PermissionError):
            found.save(folder / "closed" / "image.npy")


def test_no_file_replaces_the_one_that_was_read(folder, mri):
    np.save(folder / "kspace.npy", X[None])
    np.save(folder / "lines.npy", np.ones((6, 1, 8), np.float32))
    os.symlink(folder / "kspace.npy", folder / "link.npy")
    image = rayspin.recon(rayspin.read_scan(folder / "kspace.npy"), device="cpu")
    scan = ct.read_scan(folder / "lines.npy", arc=np.pi)
    volume = ct.recon(scan, axis=3.5, device="cpu")
    for made, name in [(image, "kspace.npy"), (image, "link.npy"), (volume, "lines.npy"), (scan, "lines.npy")]:
        with pytest.raises(ValueError, match=f"{name}.* input of this run"):
            made.save(folder / name)
    assert np.array_equal(np.load(folder / "kspace.npy"), X[None])
    image.save(folder / "lines.npy")


def test_a_header_settles_what_keywords_would(folder, mri):
    path = folder / "scan.h5"
    program = os.path.join(os.path.dirname(sys.executable), "rayspin")
    words = [program, "simulate", "mri", "--matrix", "16,16", "--coils", "2", "-o", path]
    subprocess.run(words, check=True, capture_output=True)
    for name, value in [("matrix", (8, 8)), ("units", "cycles/fov"), ("fov_mm", (1, 1)), ("trajectory", path)]:
        with pytest.raises(ValueError, match=f"{name}: expected a file of arrays without a header.*leave {name} out"):
            rayspin.read_scan(path, **{name: value})
    assert rayspin.recon(rayspin.read_scan(path), "cartesian", device="cpu").image.shape == (1, 16, 16)
    assert rayspin.recon(rayspin.read_scan(path), "cartesian", device="cpu", matrix=(8, 8)).image.shape == (1, 8, 8)
    with pytest.raises(ValueError, match="matrix: expected a scan from a file, or one with a header"):
        rayspin.recon(rayspin.read_scan(folder / "kspace.npy"), matrix=(8, 8))
    # Of an array they act.
    assert rayspin.recon(rayspin.read_scan(folder / "kspace.npy", matrix=(2, 2)), "cartesian", device="cpu").image.shape == (1, 2, 2)
    wide = rayspin.read_scan(folder / "kspace.npy", fov_mm=(8, 4))
    assert rayspin.recon(wide, "cartesian", device="cpu").spacing_mm[:2] == [2, 1]


def recon(named):
    return lambda scan: rayspin.recon(scan, **{"device": "cpu", "method": "cg-sense", **named})


@pytest.mark.parametrize(
    "named,kind,words",
    [
        ({"method": "cg-sens"}, ValueError, "method: expected one of cartesian.*found cg-sens; did you mean cg-sense?"),
        ({"method": 3}, TypeError, "method"),
        ({"itertions": 3}, TypeError, "itertions: no parameter of method cg-sense.*did you mean iterations?"),
        ({"map": X}, TypeError, "map: .*did you mean maps?"),
        ({"wavelet_levels": 3}, TypeError, "wavelet_levels: no parameter of method cg-sense; method wavelet has it"),
        ({"lambda": 3}, TypeError, "lambda: .*did you mean lambda_?"),
        ({"iterations": -1}, ValueError, "iterations: expected a whole number from 0, found -1"),
        ({"iterations": 0}, ValueError, "iterations: expected 1 to 100000, found int 0"),
        ({"iterations": True}, TypeError, "iterations: expected a whole number, found bool True"),
        ({"iterations": 2.5}, TypeError, "iterations: expected a whole number, found float 2.5"),
        ({"lambda_": -1.0}, ValueError, "lambda_: expected a finite number >= 0, found float -1.0"),
        ({"lambda_": "much"}, TypeError, "lambda_: expected a number, found str 'much'"),
        ({"regulariser": "l1"}, ValueError, "regulariser: expected one of none, identity, differences, found l1"),
        ({"anatomy": "head.nii", "regulariser": "differences"}, TypeError, "anatomy: expected an array of numbers"),
        ({"coils": 0}, ValueError, "coils: expected"),
        ({"coils": 9}, ValueError, "^coils: expected fewer"),
        ({"coils": "all"}, TypeError, "coils"),
        ({"maps": np.ones((3, 1, 16, 16))}, ValueError, r"^maps: expected shape \[2, 16, 16\], found \[3, 16, 16\]"),
        ({"maps": np.ones((2, 1, 8, 8))}, ValueError, "^maps: expected shape"),
        ({"maps": "maps.npy"}, FileNotFoundError, "maps.npy"),
        ({"maps": [[1, 2], [3]]}, ValueError, "maps: expected an array of numbers"),
        ({"maps": np.full((2, 1, 16, 16), np.nan)}, ValueError, "maps.*finite"),
        ({"noise_covariance": np.eye(3)}, ValueError, r"noise_covariance: expected shape \[2, 2\], found \[3, 3\]"),
        ({"noise_covariance": np.ones(2)}, ValueError, r"noise_covariance: expected shape \[coil, coil\], found \[2\]"),
        ({"field_map": np.zeros((8, 8))}, ValueError, "^field_map: expected shape"),
        ({"field_map": np.zeros((16, 16)) + 1j}, TypeError, "field_map: expected real numbers"),
        ({"nufft_tolerance": -1.0}, ValueError, "^nufft_tolerance: expected"),
        ({"progress": 3}, TypeError, "progress"),
        ({"device": "tpu"}, ValueError, "device: expected auto"),
    ],
    ids=str,
)
def test_reconstructions(mri, named, kind, words):
    check(lambda: recon(named)(mri), kind, words)


@refused(
    [
        (lambda: rayspin.recon("none.h5"), FileNotFoundError, "none.h5"),
        (lambda: rayspin.recon(X), TypeError, "scan: expected a rayspin.Scan, or the path of a file, found ndarray"),
        (lambda: rayspin.recon(simulate.ct(matrix=(8, 8), geometry="fan", views=2).scan), TypeError, "rayspin.ct.recon takes it"),
        (lambda: ct.recon(rayspin.Scan.from_arrays(X[None])), TypeError, "rayspin.recon takes it"),
        (lambda: rayspin.Scan.from_arrays(X[None]).arrays(-1), ValueError, "image: expected a whole number from 0"),
        (lambda: rayspin.Scan.from_arrays(X[None]).arrays(1), ValueError, "image"),
        (lambda: rayspin.Scan.from_arrays([[1, 2], [3]]), ValueError, "kspace: expected an array of numbers"),
        (lambda: rayspin.Scan.from_arrays("kspace.npy"), TypeError, "kspace: expected an array of numbers"),
        (lambda: rayspin.Scan.from_arrays(np.zeros((0, 4, 4))), ValueError, "^kspace: expected shape"),
        (lambda: rayspin.Scan.from_arrays(np.zeros((2, 4, 4))), ValueError, "^kspace: expected at least one value"),
        (lambda: rayspin.Scan.from_arrays(X[None], shape=(-4, 4)), ValueError, "shape"),
        (lambda: rayspin.Scan.from_arrays(X, POINTS, shape=(4, 4)), ValueError, "kspace: expected"),
        (lambda: rayspin.Scan.from_arrays(np.ones((2, 9)), POINTS, shape=(4, 4), units="parsec"), ValueError, "units: expected one of cycles/fov"),
        (lambda: rayspin.Scan.from_arrays(np.ones((2, 9)), POINTS, shape=4), TypeError, "shape"),
        (lambda: rayspin.Scan.from_arrays(Wants(X[None], requires_grad=True)), TypeError, r"pass kspace.detach\(\)"),
        (lambda: simulate.mri(matirx=(8, 8)), TypeError, "matirx: no option of simulate.mri.*did you mean matrix?"),
        (lambda: simulate.ct(view=3), TypeError, "did you mean views?"),
        (lambda: simulate.mri(coils=-1), ValueError, "coils"),
        (lambda: simulate.mri(coils="many"), ValueError, "coils: expected a whole number"),
        (lambda: simulate.mri(matrix=object()), TypeError, "matrix: expected a number, a name or several numbers, found object"),
        (lambda: render.drr(np.ones((3, 3, 3)), 1.0, azimut=0.1), TypeError, "did you mean azimuth?"),
        (lambda: render.drr([[1, 2], [3]], 1.0), ValueError, "volume: expected an array of numbers"),
        (lambda: metrics.nrmse(np.ones((3, 3)), np.ones((3, 4))), ValueError, "^image: expected shape"),
        (lambda: metrics.nrmse([[1, 2], [3]], np.ones((3, 4))), ValueError, "image: expected an array of numbers"),
        (lambda: ct.Grid((4, -4, 4), 1.0), ValueError, "shape: expected the lengths of the axes"),
        (lambda: ct.Geometry.parallel([0.0], 1, 4).grid(matrix=(4, -4)), ValueError, "matrix: expected the lengths of the axes"),
        (lambda: ct.Geometry.parallel([0.0], -1, 4), ValueError, "rows: expected 1 or more, found -1"),
        (lambda: ct.Geometry.parallel([0.0], 1, 0), ValueError, "columns: expected 1 or more"),
        (lambda: ct.Geometry.parallel([0.0], 1, 4).pixel_mm(-1, 0, 0), ValueError, "view"),
        (lambda: ct.Geometry.parallel([0.0, np.nan], 1, 4), ValueError, "angle"),
        (lambda: ct.Geometry.parallel([0.0], 1, 4).select([-1]), ValueError, "view"),
        (lambda: ct.recon(simulate.ct(matrix=(8, 8), geometry="fan", views=4).scan, "cgsl"), ValueError, "did you mean cgls?"),
        (lambda: ct.recon(simulate.ct(matrix=(8, 8), geometry="fan", views=4).scan, correct="ring"), ValueError, "did you mean rings?"),
    ]
)
def test_scans_simulations_and_pictures(call, kind, words):
    check(call, kind, words)


def test_numbers_of_other_precisions_are_converted_where_they_are_copied():
    rng = np.random.default_rng(4)
    kspace = rng.normal(size=(2, 12, 10)) + 1j * rng.normal(size=(2, 12, 10))
    single = rayspin.Scan.from_arrays(kspace.astype("complex64"))
    for given in [kspace, np.asfortranarray(kspace), kspace.tolist(), Wants(kspace), kspace.astype("complex64")[:, :, ::1]]:
        np.testing.assert_array_equal(rayspin.Scan.from_arrays(given).arrays()[0], single.arrays()[0])
    np.testing.assert_array_equal(rayspin.Scan.from_arrays(kspace.real).arrays()[0], kspace.real.astype("complex64"))
    samples, points = rng.normal(size=(2, 40)) + 0j, rng.uniform(-4, 4, (40, 2))
    scan = rayspin.Scan.from_arrays(samples, points, shape=(8, 8), units="cycles/fov")
    maps = rng.normal(size=(2, 1, 8, 8)) + 1j * rng.normal(size=(2, 1, 8, 8))
    named = {"method": "cg-sense", "iterations": 3, "device": "cpu"}
    noise = np.array([[2, 0.5j], [-0.5j, 1]])
    expected = rayspin.recon(scan, maps=maps.astype("complex64"), noise_covariance=noise, **named).image
    found = rayspin.recon(scan, maps=maps, noise_covariance=noise.astype("complex64"), **named).image
    np.testing.assert_array_equal(found, expected)
    plain = rayspin.recon(scan, maps=maps, **named).image
    np.testing.assert_array_equal(rayspin.recon(scan, maps=maps, noise_covariance=np.eye(2), **named).image, plain)
    assert np.linalg.norm(plain - expected) > 1e-3 * np.linalg.norm(plain)
