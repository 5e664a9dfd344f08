"""Operators, solvers and penalties: laws, sums written out, SciPy, functions of the caller's."""

import gc
import weakref

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator as Scipy
from scipy.sparse.linalg import lsqr

import rayspin
from rayspin import linop, prox, solve


class Model:
    """Holds operators that are its own methods, as models of networks do."""

    def __init__(self, make):
        self.array = np.zeros(1000)
        own = linop.custom(self.forward, self.forward, (3,), (3,), dtype="float64", device="cpu")
        self.operator = make(own)

    def forward(self, x):
        return 2 * x


@pytest.mark.parametrize(
    "make",
    [
        lambda op: op,
        lambda op: op.H,
        lambda op: (op.N @ op + 3 * op - op / 2) @ op,
        lambda op: linop.stack([op, linop.identity((3,), dtype="float64", device="cpu"), -op]),
        lambda op: [op, linop.block_diagonal([op, op.H])],
    ],
)
def test_an_object_that_holds_operators_of_its_own_methods_is_freed(make):
    model = Model(make)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_operators_keep_the_functions_that_they_call():
    own = linop.custom(lambda x: 2 * x, lambda y: 2 * y, (3,), (3,), dtype="float64", device="cpu")
    same = linop.identity((3,), dtype="float64", device="cpu")
    made = [own.H @ own, same + own, linop.stack([same, own]), -own]
    del own
    gc.collect()
    assert [op(np.ones(3))[-1] for op in made] == [4, 3, 2, -2]


def numbers(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def points(count, dims, seed=3):
    return np.random.default_rng(seed).uniform(-4, 4, (count, dims))


def operators(dtype):
    """All operators of numbers of this type, small."""
    named = {"dtype": dtype, "device": "cpu"}
    yield linop.identity((3, 4), **named)
    yield linop.differences((3, 4), **named)
    yield linop.differences((5, 1, 3), axes=[0, 2], **named)
    yield linop.diagonal(numbers(1, (4,), dtype), (3, 4), device="cpu")
    if np.dtype(dtype).kind == "f":
        return
    yield linop.fft((3, 4), batch=(2,), **named)
    yield linop.nufft(points(17, 2), (8, 7), batch=(2,), eps=1e-4, **named)
    yield linop.nufft(points(9, 1), (8,), **named)
    yield linop.nudft(points(17, 3), (4, 3, 5), **named)
    yield linop.toeplitz(points(40, 2), (8, 7), weights=np.random.default_rng(1).uniform(0, 1, 40), **named)
    yield linop.toeplitz(points(40, 2), (8, 7), maps=numbers(2, (3, 8, 7), dtype), **named)
    yield linop.sense(numbers(1, (3, 5, 4), dtype), device="cpu")
    yield linop.sense(numbers(1, (3, 8, 8), dtype), points(20, 2), device="cpu")
    yield linop.mask(np.arange(12).reshape(3, 4) % 3 == 0, (2, 3, 4), **named)
    yield linop.wavelet((9, 8), **named)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_operators_obey_their_laws(dtype):
    rounding = 2e-5 if dtype in ("float32", "complex64") else 1e-11
    for op in operators(dtype):
        x, z = numbers(1, op.ishape, dtype), numbers(3, op.ishape, dtype)
        y = numbers(2, op.oshape, dtype)
        applied = op(x)
        scale = np.linalg.norm(applied) * np.linalg.norm(y)
        assert abs(np.vdot(y, applied) - np.vdot(op.H(y), x)) <= rounding * scale, op
        assert np.allclose(op(2 * x - z), 2 * applied - op(z), rtol=0, atol=rounding * np.abs(applied).max() * 20), op
        normal, twice = op.N(x), op.H(applied)
        # Operators with short cuts of their own: FᴴF by convolution, to the transform's tolerance.
        assert np.linalg.norm(normal - twice) <= max(rounding * 10, 1e-4) * np.linalg.norm(twice), op
        assert applied.dtype == dtype and applied.shape == op.oshape and op.dtype == dtype and op.device == "cpu"


def exact(points, shape):
    """The matrix exp(-2 pi i k.x) over samples and voxels, x in fields of view."""
    axes = [(np.arange(n) - n // 2) / n for n in shape]
    grid = np.meshgrid(*axes, indexing="ij")
    phases = sum(np.outer(points[:, dim], grid[len(shape) - 1 - dim].ravel()) for dim in range(len(shape)))
    return np.exp(-2j * np.pi * phases)


@pytest.mark.parametrize("shape", [(9,), (6, 7), (4, 5, 3)])
def test_transforms_are_the_sums_that_they_state(shape):
    where = points(23, len(shape))
    matrix = exact(where, shape)
    x = numbers(1, shape, "complex128")
    for op in [
        linop.nudft(where, shape, dtype="complex128", device="cpu"),
        linop.nufft(where, shape, eps=1e-10, dtype="complex128", device="cpu"),
    ]:
        np.testing.assert_allclose(op(x), matrix @ x.ravel(), atol=1e-8)
    weights = np.random.default_rng(2).uniform(0, 1, 23)
    normal = rayspin.toeplitz(where, shape, weights=weights, eps=1e-10, dtype="complex128", device="cpu")
    np.testing.assert_allclose(normal(x).ravel(), matrix.conj().T @ (weights * (matrix @ x.ravel())), atol=1e-7)
    centred = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(x), norm="ortho"))
    np.testing.assert_allclose(rayspin.fft(shape, dtype="complex128", device="cpu")(x), centred, atol=1e-12)
    maps = numbers(4, (2, *shape), "complex128")
    np.testing.assert_allclose(
        linop.sense(maps, where, eps=1e-10, device="cpu")(x), (maps * x).reshape(2, -1) @ matrix.T, atol=1e-8
    )


def test_algebra_is_matrix_algebra():
    a, b = (numbers(seed, (4, 4), "complex128") for seed in (1, 2))

    def dense(m):
        return linop.custom(
            lambda x: m @ x, lambda y: m.conj().T @ y, (4,), (4,), name="dense", dtype="complex128", device="cpu"
        )

    A, B = dense(a), dense(b)
    x = numbers(3, (4,), "complex128")
    for op, matrix in [
        (A @ B, a @ b),
        (A * B, a @ b),
        (A + B, a + b),
        (A - B, a - b),
        ((2 - 1j) * A, (2 - 1j) * a),
        (A * 3, 3 * a),
        (A / 2, a / 2),
        (A / (2 - 1j), a / (2 - 1j)),
        (A / np.float64(4) - B, a / 4 - b),
        (np.float64(2) * A, 2 * a),
        (-A, -a),
        (A.H, a.conj().T),
        (A.N, a.conj().T @ a),
        ((A @ B).H, (a @ b).conj().T),
        (linop.stack([A, B]), np.concatenate([a, b])),
    ]:
        np.testing.assert_allclose(op(x), matrix @ x, atol=1e-12)
        np.testing.assert_allclose(op @ x, matrix @ x, atol=1e-12)
        np.testing.assert_allclose(op.H(op(x)), matrix.conj().T @ matrix @ x, atol=1e-10)
    both = np.stack([x, 2 * x])
    np.testing.assert_allclose(linop.block_diagonal([A, B])(both), np.stack([a @ x, 2 * b @ x]), atol=1e-12)
    np.testing.assert_allclose(A * x, a @ x, atol=1e-12)


def test_scipy_solves_with_an_operator():
    op = linop.nufft(points(60, 2), (6, 5), eps=1e-10, dtype="complex128", device="cpu")
    flat = op.as_scipy()
    assert isinstance(flat, Scipy) and flat.shape == (60, 30)
    truth = numbers(1, (30,), "complex128")
    found = lsqr(flat, flat @ truth, atol=1e-10, btol=1e-10)[0]
    np.testing.assert_allclose(found, truth, atol=1e-5)


def test_solvers_find_what_dense_algebra_finds():
    where = points(80, 2)
    op = linop.nufft(where, (6, 5), eps=1e-12, dtype="complex128", device="cpu")
    matrix, truth = exact(where, (6, 5)), numbers(1, (6, 5), "complex128")
    y = op(truth) + numbers(5, (80,), "complex128")
    expected = np.linalg.lstsq(matrix, y, rcond=None)[0].reshape(6, 5)
    exactly = {"iterations": 500, "tolerance": 1e-11}
    np.testing.assert_allclose(solve.least_squares(op, y, **exactly).x, expected, atol=1e-7)
    np.testing.assert_allclose(solve.cg(op.N, op.H(y), **exactly).x, expected, atol=1e-7)
    largest = np.linalg.eigvalsh(matrix.conj().T @ matrix)[-1]
    assert abs(solve.largest_eigenvalue(op.N, tolerance=1e-9) / largest - 1) < 1e-4
    weight = 0.03
    ridge = np.linalg.solve(matrix.conj().T @ matrix + weight * largest * np.eye(30), matrix.conj().T @ y)
    found = solve.least_squares(op, y, weight=weight, **exactly)
    # λ is relative to an estimate of the eigenvalue.
    np.testing.assert_allclose(found.x.ravel(), ridge, rtol=0, atol=2e-3 * np.abs(ridge).max())
    exact_weight = solve.least_squares(op, y, weight=weight, largest_eigenvalue=largest, **exactly)
    np.testing.assert_allclose(exact_weight.x.ravel(), ridge, rtol=0, atol=1e-8 * np.abs(ridge).max())
    assert found.converged and abs(found.largest_eigenvalue / largest - 1) < 1e-2

    def value(x, weight):
        return 0.5 * np.linalg.norm(op(x) - y) ** 2 + weight * np.abs(x).sum()

    sparse = solve.fista(op, y, prox.l1(), 3.0, iterations=3000, tolerance=1e-12)
    own = solve.fista(
        op, y, lambda t, x: x * np.maximum(1 - t / np.maximum(np.abs(x), 1e-300), 0), 3.0, iterations=3000, tolerance=1e-12
    )
    both = solve.pdhg(op, y, [(linop.identity((6, 5), dtype="complex128", device="cpu"), prox.l1(), 3.0)],
                      iterations=20000, tolerance=1e-12)
    np.testing.assert_allclose(own.x, sparse.x, atol=1e-9)
    np.testing.assert_allclose(both.x, sparse.x, atol=1e-7)
    rng = np.random.default_rng(9)
    for _ in range(20):
        step = 1e-3 * (rng.normal(size=(6, 5)) + 1j * rng.normal(size=(6, 5)))
        assert value(sparse.x + step, 3.0) > value(sparse.x, 3.0)
    assert abs(both.objective[-1] - value(sparse.x, 3.0)) < 1e-6 * value(sparse.x, 3.0)


@pytest.mark.parametrize("dtype,rounding", [("complex64", 1e-5), ("complex128", 1e-10)])
def test_objectives_are_the_stated_ones_of_every_iterate(dtype, rounding):
    op = linop.nufft(points(60, 2), (6, 5), eps=1e-4 if dtype == "complex64" else 1e-10, dtype=dtype, device="cpu")
    matrix = np.stack([op(one).astype("complex128") for one in np.eye(30, dtype=dtype).reshape(30, 6, 5)], axis=1)
    y, start = numbers(5, (60,), dtype), numbers(6, (6, 5), dtype)
    largest = np.linalg.eigvalsh(matrix.conj().T @ matrix)[-1]
    edges = linop.differences((6, 5), dtype=dtype, device="cpu")

    def data(x):
        return 0.5 * np.linalg.norm(matrix @ x.ravel() - y) ** 2

    def at_every_iterate(solver, value, *given, **named):
        seen = []
        found = solver(*given, iterations=8, tolerance=0.0, callback=lambda step, residual, x: seen.append(value(x)), **named)
        assert len(found.objective) == len(seen) == 8
        np.testing.assert_allclose(found.objective, seen, rtol=0, atol=rounding * np.linalg.norm(y) ** 2)
        return found

    for begin in [None, start]:
        named = {"start": begin}
        for normal in [None, op.N]:
            at_every_iterate(
                solve.fista, lambda x: data(x) + 3.0 * np.abs(x).sum(), op, y, prox.l1(), 3.0,
                largest_eigenvalue=largest, normal=normal, **named,
            )
        # A relative weight is multiplied by L and the 99th percentile of |A^H y| / L.
        back = np.sort(np.abs(matrix.conj().T @ y))
        scale = back[int(np.ceil(0.99 * back.size)) - 1] / largest
        at_every_iterate(
            solve.fista, lambda x: data(x) + 0.02 * largest * scale * np.abs(x).sum(), op, y, prox.l1(), 0.02,
            relative=True, largest_eigenvalue=largest, **named,
        )
        at_every_iterate(
            solve.least_squares,
            lambda x: 2 * data(x) + 0.1 * largest * np.linalg.norm(edges(x)) ** 2, op, y,
            weight=0.1, regularisers=[edges], largest_eigenvalue=largest, **named,
        )
        at_every_iterate(
            solve.least_squares, lambda x: 2 * data(x) + 0.1 * largest * np.linalg.norm(x) ** 2, op, y,
            weight=0.1, largest_eigenvalue=largest, **named,
        )
        at_every_iterate(
            solve.cg, lambda x: data(x) - 0.5 * np.linalg.norm(y) ** 2, op.N, op.H(y), **named,
        )
    # PDHG's terms are those of the results of their proximal maps, which tend to K x.
    def with_edges(x):
        return data(x) + 2.0 * np.sqrt((np.abs(edges(x)) ** 2).sum(axis=0)).sum()

    found = solve.pdhg(op, y, [(edges, prox.groups(), 2.0)], iterations=4000, tolerance=0.0, start=start)
    assert found.objective[-1] == pytest.approx(with_edges(found.x), rel=10 * rounding)
    # Nothing near is better.
    for seed in range(10):
        other = found.x + 0.01 * numbers(20 + seed, (6, 5), dtype)
        assert with_edges(other) > found.objective[-1] * (1 - rounding)


def test_least_squares_begin_where_the_caller_says():
    op = linop.nufft(points(60, 2), (6, 5), eps=1e-10, dtype="complex128", device="cpu")
    y = op(numbers(1, (6, 5), "complex128"))
    exactly = {"weight": 0.01, "tolerance": 1e-9, "iterations": 200}
    found = solve.least_squares(op, y, **exactly)
    again = solve.least_squares(op, y, start=found.x, **exactly)
    assert again.converged and len(again.residuals) == 1 and len(found.residuals) > 5
    np.testing.assert_allclose(again.x, found.x, rtol=1e-12)
    start = numbers(8, (6, 5), "complex128")
    np.testing.assert_array_equal(solve.least_squares(op, y, start=start, iterations=0, weight=0.01).x.round(12), start.round(12))


def test_total_variation_and_bounds_on_real_numbers():
    rng = np.random.default_rng(1)
    step = np.repeat([0.0, 1.0], 4)
    np.testing.assert_allclose(prox.total_variation((8,), 500)(0.4, step), np.repeat([0.1, 0.9], 4), atol=1e-3)
    edges = linop.differences((8,), dtype="float64", device="cpu")
    same = linop.identity((8,), dtype="float64", device="cpu")
    found = solve.pdhg(same, step, [(edges, prox.groups(), 0.4)], iterations=5000, tolerance=1e-10)
    np.testing.assert_allclose(found.x, np.repeat([0.1, 0.9], 4), atol=1e-4)
    a = rng.normal(size=(9, 5))
    op = linop.custom(lambda x: a @ x, lambda y: a.T @ y, (5,), (9,), dtype="float64", device="cpu")
    y = rng.normal(size=9)
    found = solve.pdhg(op, y, [], g=prox.nonnegative(), iterations=20000, tolerance=1e-12).x
    slope = a.T @ (a @ found - y)
    assert (found >= 0).all() and (slope > -1e-7).all() and (found * slope < 1e-7).all() and (found == 0).any()
    np.testing.assert_allclose(prox.l2(y)(1.0, np.zeros(9)), y / 2)
    image = numbers(2, (8, 8), "complex64")
    np.testing.assert_allclose(prox.wavelet((8, 8))(0.0, image), image, atol=1e-5)
    assert np.abs(prox.wavelet((8, 8), "haar")(1e9, np.ones((8, 8), "complex64")) - 1).max() < 1e-4


def test_callbacks_see_iterates_and_exceptions_come_back():
    op = linop.diagonal(np.arange(1.0, 9.0), device="cpu")
    seen = []
    found = solve.cg(op, np.ones(8), iterations=5, tolerance=0, callback=lambda *step: seen.append(step))
    assert [step[0] for step in seen] == [1, 2, 3, 4, 5]
    assert [step[1] for step in seen] == found.residuals[1:]
    np.testing.assert_array_equal(seen[-1][2], found.x)
    heard = []
    solve.cg(op, np.ones(8), iterations=5, tolerance=0, progress=lambda *step: heard.append(step))
    assert heard[0] == ("conjugate gradients", 0, 5) and ("conjugate gradients", 5, 5) in heard

    class Enough(Exception):
        pass

    def stop(*_):
        raise Enough("now")

    same = linop.custom(stop, stop, (8,), (8,), dtype="float64", device="cpu")
    for call in [
        lambda: solve.cg(op, np.ones(8), callback=stop),
        lambda: solve.cg(op, np.ones(8), progress=stop),
        lambda: same(np.ones(8)),
        lambda: same.H(np.ones(8)),
        lambda: (op @ same)(np.ones(8)),
        lambda: solve.cg(same, np.ones(8)),
        lambda: solve.fista(op, np.ones(8), stop, 1.0),
    ]:
        with pytest.raises(Enough, match="now"):
            call()
    # What failed before is no cause of what fails later.
    with pytest.raises(ValueError, match="x"):
        op(np.ones(7))


def test_wrong_arguments_are_refused_with_what_to_do():
    op = linop.fft((4, 4), device="cpu")
    double = linop.fft((4, 4), dtype="complex128", device="cpu")
    x = np.ones((4, 4), "complex64")

    def shaped(shape):
        return linop.custom(lambda x: np.ones(shape, "complex64"), lambda y: y, (4, 4), (4, 4), device="cpu")

    for call, error, words in [
        (lambda: op(x.astype("complex128")), TypeError, "astype"),
        (lambda: op(x[:3]), ValueError, "4"),
        (lambda: op(x.T[::-1]), ValueError, "ascontiguousarray"),
        (lambda: op(x, out=x), ValueError, "apart"),
        (lambda: op + double, TypeError, "complex64"),
        (lambda: op @ linop.fft((3, 4), device="cpu"), ValueError, "domain"),
        (lambda: op + 1, TypeError, None),
        (lambda: 1j * linop.identity((3,), dtype="float32", device="cpu"), TypeError, "real"),
        (lambda: linop.fft((4,), dtype="float32"), TypeError, "complex64"),
        (lambda: linop.nufft(np.ones(4), (4,)), ValueError, "sample, dim"),
        (lambda: linop.nufft(np.full((4, 1), np.nan), (4,)), ValueError, "finite"),
        (lambda: linop.nufft(np.ones((4, 2)), (4,)), ValueError, None),
        (lambda: linop.wavelet((8,), "db9"), ValueError, "haar"),
        (lambda: linop.stack([]), ValueError, "at least one"),
        (lambda: shaped((3, 3))(x), ValueError, "result of a function"),
        (lambda: linop.custom(lambda x: None, None, (4, 4), (4, 4), device="cpu")(x), TypeError, None),
        (lambda: solve.cg(op, np.full((4, 4), np.nan, "complex64")), ValueError, "finite"),
        (lambda: solve.fista(op, x, "l1", 1.0), TypeError, "rayspin.prox"),
        (lambda: solve.fista(op, x, prox.l1(), -1.0), ValueError, None),
        (lambda: solve.fista(op, x, prox.nonnegative(), 1.0), ValueError, "real"),
        (lambda: solve.cg(op, x, progress=3), TypeError, "progress"),
        (lambda: prox.wavelet((4, 4))(1.0, np.ones((4, 4))), ValueError, "complex"),
        (lambda: linop.mask(np.ones((4, 4)), (4, 4)), TypeError, None),
        (lambda: linop.toeplitz(points(9, 2), (4, 4), weights=np.ones(8)), ValueError, "8"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_operators_keep_copies_and_let_arrays_go():
    factors = np.array([1.0, 2.0])
    op = linop.diagonal(factors, device="cpu")
    gone = weakref.ref(factors)
    factors[:] = 0
    del factors
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(op(np.ones(2)), [1, 2])
    x = np.ones(2)
    kept = weakref.ref(x)
    solve.cg(op, x)
    op(x)
    del x
    gc.collect()
    assert kept() is None


def test_default_steps_of_pdhg_suit_every_scale_and_the_objective_is_the_function():
    rng = np.random.default_rng(2)
    image = np.zeros((24, 24))
    image[6:16, 4:18] = 1
    for scale in (0.05, 1.0, 40.0):
        named = {"dtype": "float64", "device": "cpu"}
        a, d = scale * linop.identity((24, 24), **named), linop.differences((24, 24), **named)
        y, weight = scale * (image + 0.2 * rng.normal(size=image.shape)), 0.15 * scale**2
        found = solve.pdhg(a, y, [(d, prox.groups(), weight)], tolerance=0)

        def function(x):
            return 0.5 * np.linalg.norm(a(x) - y) ** 2 + weight * np.sqrt((d(x) ** 2).sum(0)).sum()

        assert np.isclose(found.objective[-1], function(found.x), rtol=1e-9)
        exact = prox.total_variation((24, 24), 3000)(0.15, y / scale)
        assert found.objective[-1] < 1.002 * function(exact)


def test_arrays_at_odd_addresses_are_read_and_not_written():
    # As messages of other processes hand them over.
    x = np.frombuffer(b" " + np.arange(6, dtype=np.complex64).tobytes(), np.complex64, offset=1).reshape(2, 3)
    assert not x.flags.aligned
    op = linop.identity((2, 3), device="cpu")
    np.testing.assert_array_equal(op(x), x)
    out = np.frombuffer(bytearray(49), np.complex64, offset=1).reshape(2, 3)
    with pytest.raises(ValueError, match="found one at an odd address"):
        op(np.ones((2, 3), np.complex64), out=out)
