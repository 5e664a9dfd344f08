"""Arrays of CuPy and torch on a GPU: no copies, the caller's stream, what is refused. Skipped without torch and a GPU."""

import numpy as np
import pytest

from rayspin.nufft import Plan

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

GRID, POINTS, BATCH = (256, 256), 200_000, 12


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(1)
    where = [rng.uniform(-np.pi, np.pi, POINTS) for _ in GRID]
    plans = [Plan(2, GRID, eps=1e-4, dtype="complex64", device=device) for device in ("cuda", "cpu")]
    for plan in plans:
        plan.setpts(*where)
    data = (rng.normal(size=(BATCH, *GRID)) + 1j * rng.normal(size=(BATCH, *GRID))).astype(np.complex64)
    return *plans, data, plans[1].execute(data)


def close(found, expected):
    return np.linalg.norm(found - expected) < 1e-3 * np.linalg.norm(expected)


def test_results_are_arrays_of_the_caller_s_library(case):
    plan, _, data, expected = case
    assert close(plan.execute(data), expected)
    found = plan.execute(torch.from_numpy(data).cuda())
    assert isinstance(found, torch.Tensor) and found.is_cuda and close(found.cpu().numpy(), expected)
    out = torch.full_like(found, float("nan"))
    assert plan.execute(torch.from_numpy(data).cuda(), out=out) is out
    assert close(out.cpu().numpy(), expected)


def test_cupy_arrays_are_used_where_they_lie(case):
    cupy = pytest.importorskip("cupy")
    plan, _, data, expected = case
    given = cupy.asarray(data)
    found = plan.execute(given)
    assert isinstance(found, cupy.ndarray) and close(cupy.asnumpy(found), expected)
    out = cupy.full((BATCH, POINTS), cupy.nan, dtype=cupy.complex64)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        plan.execute(given, out=out)
        copy = out * 1
        stream.synchronize()
    assert close(cupy.asnumpy(copy), expected)


def late(data, factor):
    """`data` times `factor`, which the GPU writes only after some milliseconds of other work."""
    values = torch.zeros(data.shape, dtype=torch.complex64, device="cuda")
    slow = big = torch.ones(6000, 6000, device="cuda")
    for _ in range(3):
        slow = slow @ big * 1e-4
    values.copy_(torch.from_numpy(data).cuda())
    return values.mul_(factor)


def test_work_is_ordered_with_the_caller_s_stream(case):
    plan, _, data, expected = case
    stream = torch.cuda.Stream()
    for turn in range(1, 20):
        with torch.cuda.stream(stream):
            given = late(data, turn)
            found = plan.execute(given)
            given.zero_()
            copy = found * 1
            del found
            # Takes the memory that the result had.
            torch.full((BATCH, POINTS), 7, dtype=torch.complex64, device="cuda")
        stream.synchronize()
        assert close(copy.cpu().numpy(), turn * expected), turn


class Unordered:
    """An array whose owner names another stream than the one that it works on."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **named):
        return self.array.__dlpack__(stream=-1)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_the_test_of_order_would_see_a_missing_wait(case):
    plan, _, data, expected = case
    wrong = 0
    stream = torch.cuda.Stream()
    for turn in range(1, 6):
        with torch.cuda.stream(stream):
            given = late(data, turn)
        out = torch.zeros((BATCH, POINTS), dtype=torch.complex64, device="cuda")
        plan.execute(Unordered(given), out=Unordered(out))
        wrong += not close(out.cpu().numpy(), turn * expected)
        torch.cuda.synchronize()
    assert wrong


def test_memory_goes_back_to_its_owner(case):
    plan, _, data, _ = case
    given = torch.from_numpy(data).cuda()
    plan.execute(given)
    before = torch.cuda.memory_allocated()
    for _ in range(50):
        plan.execute(given)
    assert torch.cuda.memory_allocated() == before


def test_wrong_arrays_of_a_gpu_are_refused(case):
    plan, on_cpu, data, _ = case
    given = torch.from_numpy(data).cuda()
    for call, error, words in [
        (lambda: on_cpu.execute(given), TypeError, "data: expected an array on cpu"),
        (lambda: plan.execute(given.to(torch.complex128)), TypeError, "complex64"),
        (lambda: plan.execute(given.transpose(1, 2)), ValueError, "contiguous"),
        (lambda: plan.execute(given, out=given), ValueError, "shape"),
    ]:
        with pytest.raises(error, match=words):
            call()
