"""Plans beside finufft and exact sums, and what they refuse."""

import multiprocessing
import threading

import finufft
import numpy as np
import pytest

from rayspin.nufft import Plan


def points(rng, dims, count, real, reach=np.pi):
    return [rng.uniform(-reach, reach, count).astype(real) for _ in range(dims)]


def numbers(rng, shape, dtype):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype,eps", [("complex64", 1e-4), ("complex128", 1e-9)])
@pytest.mark.parametrize("modes", [(31,), (16, 21), (8, 9, 10), (1, 5)])
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("isign", [None, 1, -1])
def test_plans_agree_with_finufft(dtype, eps, modes, kind, isign):
    rng = np.random.default_rng([*modes, kind, isign is None])
    real = np.float32 if dtype == "complex64" else np.float64
    size = len(modes) if kind == 3 else modes
    ours = Plan(kind, size, 2, eps, isign, dtype=dtype, device="cpu")
    theirs = finufft.Plan(kind, size, 2, eps / 10, isign, dtype=dtype)
    targets = dict(zip("stu", points(rng, len(modes), 77, real, 20))) if kind == 3 else {}
    for plan in (ours, theirs):
        plan.setpts(*(where := points(np.random.default_rng(5), len(modes), 300, real)), **targets)
    data = numbers(rng, (2, *modes) if kind == 2 else (2, len(where[0])), dtype)
    found, expected = ours.execute(data), theirs.execute(data)
    assert found.dtype == dtype and found.shape == expected.shape
    assert np.linalg.norm(found - expected) <= 3 * eps * np.linalg.norm(expected)
    # <Ax, y> = <x, A*y>.
    other = numbers(rng, found.shape, dtype)
    back = ours.execute_adjoint(other)
    assert back.shape == data.shape
    rounding = 1e-4 if dtype == "complex64" else 1e-11
    scale = np.linalg.norm(found) * np.linalg.norm(other)
    assert abs(np.vdot(other, found) - np.vdot(back, data)) <= rounding * scale


def plan_2d(**named):
    plan = Plan(2, (6, 8), dtype="complex64", eps=1e-4, device="cpu", **named)
    plan.setpts(*points(np.random.default_rng(1), 2, 20, np.float64))
    return plan


def test_results_go_where_the_caller_says_without_a_copy():
    plan, data = plan_2d(), numbers(np.random.default_rng(2), (3, 6, 8), "complex64")
    out = np.full((3, 20), np.nan, np.complex64)
    assert plan.execute(data, out=out) is out
    np.testing.assert_array_equal(out, plan.execute(data))
    # An array through DLPack alone, read-only or not, is used as it is.
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **named):
            return self.array.__dlpack__(**named)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    np.testing.assert_array_equal(out, plan.execute(Foreign(data)))
    again = np.zeros_like(out)
    plan.execute(Foreign(data), out=Foreign(again))
    np.testing.assert_array_equal(out, again)
    frozen = data.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(out, plan.execute(frozen))


def test_wrong_arrays_are_refused_with_what_to_do():
    plan, rng = plan_2d(), np.random.default_rng(3)
    data = numbers(rng, (6, 8), "complex64")
    frozen = np.zeros(20, np.complex64)
    frozen.flags.writeable = False
    shared = np.zeros(48 + 20, np.complex64)
    for call, error, words in [
        (lambda: plan.execute(data.astype("complex128")), TypeError, "astype"),
        (lambda: plan.execute(data.real.astype("int32")), TypeError, "complex64"),
        (lambda: plan.execute(np.asfortranarray(data)), ValueError, "ascontiguousarray"),
        (lambda: plan.execute(data[:, ::2]), ValueError, "ascontiguousarray"),
        (lambda: plan.execute(data[:5].copy()), ValueError, "data"),
        (lambda: plan.execute([1, 2]), TypeError, "list"),
        (lambda: plan.execute(data.astype(">c8")), TypeError, "complex64"),
        (lambda: plan.execute(data, out=np.zeros(19, np.complex64)), ValueError, "shape"),
        (lambda: plan.execute(data, out=np.zeros(20, np.complex128)), TypeError, "out"),
        (lambda: plan.execute(data, out=frozen), ValueError, "writable"),
        (lambda: plan.execute(shared[:48].reshape(6, 8), out=shared[40:60]), ValueError, "apart"),
        (lambda: plan.setpts(np.zeros(3)), ValueError, "y"),
        (lambda: plan.setpts(np.zeros(3), np.zeros(4)), ValueError, "y"),
        (lambda: plan.setpts(np.zeros((3, 1)), np.zeros((3, 1))), ValueError, "x"),
        (lambda: plan.setpts(np.array([0, np.nan]), np.zeros(2)), ValueError, "finite"),
        (lambda: plan.setpts(np.zeros(2), np.zeros(2), s=np.zeros(2)), ValueError, "type 3"),
        (lambda: plan.setpts(np.zeros(2), np.zeros(2), np.zeros(2)), ValueError, "z"),
        (lambda: Plan(2, (4, 4)).execute(data), RuntimeError, "setpts"),
        (lambda: plan_2d(n_trans=2).execute(data), ValueError, "n_trans"),
        (lambda: Plan(4, 3), ValueError, "1, 2 or 3"),
        (lambda: Plan(1, (3, 3), eps=1e-30), ValueError, "eps"),
        (lambda: Plan(1, (3, 3, 3, 3)), ValueError, "dimensions"),
        (lambda: Plan(1, "ab"), TypeError, "tuple"),
        (lambda: Plan(1, (3, 3), dtype="int8"), TypeError, "complex128"),
        (lambda: Plan(1, (3, 3), device="tpu"), ValueError, "auto"),
        (lambda: Plan(1, (3, 3), device="cuda:99"), ValueError, "GPU|cuda:0"),
    ]:
        with pytest.raises(error, match=words):
            call()


def laid(values, turn):
    """The same numbers in memory of another order: with gaps, backwards, as one component of points, in a record at an odd address."""
    if turn == 0:
        return values
    if turn == 1:
        return np.stack([values, np.full_like(values, np.nan)], 1)[:, 0]
    if turn == 2:
        return values[::-1].copy()[::-1]
    if turn == 3:
        return np.repeat(values, 3)[::-3][::-1]
    packed = np.zeros(len(values), np.dtype([("gap", "i1"), ("k", values.dtype)]))
    packed["k"] = values
    return packed["k"]


@pytest.mark.parametrize("modes", [(30,), (9, 14), (6, 7, 8)], ids=str)
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_points_are_read_in_any_layout_and_precision(kind, modes):
    rng = np.random.default_rng(8)
    where = [axis.astype(np.float32) for axis in points(rng, len(modes), 500, np.float64)]
    plan, other = (Plan(kind, len(modes) if kind == 3 else modes, eps=1e-9, device="cpu") for _ in range(2))

    def targets(axes):
        return dict(zip("stu", axes)) if kind == 3 else {}

    data = numbers(rng, modes if kind == 2 else (500,), "complex128")
    other.setpts(*(axis.astype(np.float64).tolist() for axis in where), **targets([axis * 2 for axis in where]))
    expected = other.execute(data)
    for turn in range(5):
        # Every component lies otherwise, and every second one is of the other precision.
        given = [laid(axis.astype([np.float32, np.float64][(turn + d) % 2]), (turn + d) % 5) for d, axis in enumerate(where)]
        plan.setpts(*given, **targets([axis * 2 for axis in given]))
        assert np.linalg.norm(plan.execute(data) - expected) < 1e-12 * np.linalg.norm(expected)


def test_points_that_are_refused_leave_the_plan_as_it_was():
    plan, rng = plan_2d(), np.random.default_rng(6)
    data = numbers(rng, (6, 8), "complex64")
    expected = plan.execute(data)
    x, y = points(rng, 2, 50, np.float32)
    y[[17, 30]] = np.inf, np.nan
    for given, words in [((x, y), "y: expected finite numbers, found inf at index 17"), ((x, y[:3]), "y")]:
        with pytest.raises(ValueError, match=words):
            plan.setpts(*given)
        assert np.array_equal(plan.execute(data), expected)
    assert np.isnan(y[30])


def test_threads_share_a_plan_while_its_points_change():
    plan, rng = plan_2d(), np.random.default_rng(4)
    data = numbers(rng, (6, 8), "complex64")
    sets = [points(rng, 2, 20, np.float64) for _ in range(2)]
    expected = []
    for one in sets:
        plan.setpts(*one)
        expected.append(plan.execute(data))
    strange = []

    def work():
        for _ in range(50):
            found = plan.execute(data)
            if not any(np.allclose(found, one, atol=1e-5) for one in expected):
                strange.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(50):
        plan.setpts(*sets[turn % 2])
    for thread in threads:
        thread.join()
    assert not strange


def child(queue, plan, data):
    try:
        plan.execute(data)
        queue.put("no error")
    except RuntimeError as error:
        queue.put(str(error))
    queue.put(plan_2d().execute(data))


def test_a_forked_process_makes_plans_of_its_own():
    plan, data = plan_2d(), numbers(np.random.default_rng(6), (6, 8), "complex64")
    expected = plan.execute(data)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue, plan, data))
    process.start()
    assert "forked" in queue.get(timeout=60)
    np.testing.assert_array_equal(queue.get(timeout=60), expected)
    process.join()


def test_sums_of_no_points_are_empty():
    grid, none = np.ones((2, 5, 4), complex), np.zeros((2, 0), complex)
    for kind, forward, adjoint in [(2, grid, none), (1, none, grid)]:
        plan = Plan(kind, (5, 4), device="cpu")
        plan.setpts([], [])
        found = plan.execute(forward)
        assert found.shape == adjoint.shape and found.dtype == complex and not found.any()
        back = plan.execute_adjoint(adjoint)
        assert back.shape == forward.shape and not back.any()
        out = np.ones(adjoint.shape, complex)
        assert plan.execute(forward, out=out) is out and not out.any()
        with pytest.raises(ValueError, match="data"):
            plan.execute(np.ones((2, 3), complex))
        # Points may follow.
        plan.setpts([0.0], [0.0])
        assert plan.execute(np.ones((5, 4) if kind == 2 else 1, complex)).ravel()[0] != 0
    free = Plan(3, 2, device="cpu")
    free.setpts([0.0, 1.0], [0.0, 1.0], s=[], t=[])
    assert free.execute(np.ones(2, complex)).shape == (0,)
    assert not free.execute_adjoint(np.zeros(0, complex)).any()
    some = Plan(2, (5, 4), device="cpu")
    some.setpts([0.5, 1.0, 2.0], [0.0, 1.0, 0.0])
    assert some.execute(np.ones((0, 5, 4), complex)).shape == (0, 3)
