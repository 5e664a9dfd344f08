"""Arrays of CuPy and torch on a GPU: no copies, the caller's stream, what is refused. Skipped without torch and a GPU."""

import multiprocessing
import pickle

import numpy as np
import pytest

import rayspin
from rayspin import linop, solve
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
    # A copy from the host would wait for that work.
    source = torch.from_numpy(data).cuda()
    values = torch.zeros(data.shape, dtype=torch.complex64, device="cuda")
    slow = big = torch.ones(6000, 6000, device="cuda")
    for _ in range(3):
        slow = slow @ big * 1e-4
    values.copy_(source)
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
        return self.array.__dlpack__(stream=-1, max_version=named.get("max_version"))

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


def laid(values, turn):
    """The same numbers in memory of another order, as far as the library of `values` has it."""
    if turn == 0:
        return values
    if turn == 1:
        library = torch if torch.is_tensor(values) else __import__("cupy")
        rows = library.stack([values, values * 0 + 9, values], 1)
        return rows[:, 2]
    return values if torch.is_tensor(values) else values[::-1].copy()[::-1]


@pytest.mark.parametrize("library", ["torch", "cupy"])
@pytest.mark.parametrize("modes", [(300,), (40, 50), (20, 21, 22)], ids=str)
def test_points_on_the_gpu_are_read_where_they_lie(library, modes):
    pytest.importorskip(library)
    rng = np.random.default_rng(3)
    plan, on_cpu = (Plan(1, modes, eps=1e-9, device=device) for device in ("cuda", "cpu"))
    for turn, count in enumerate([5000, 100, 20_000, 20_000, 1]):
        where = [rng.uniform(-4, 4, count).astype(np.float32) for _ in modes]
        data = rng.normal(size=count) + 1j * rng.normal(size=count)
        on_cpu.setpts(*where)
        expected = on_cpu.execute(data)
        given = []
        for d, axis in enumerate(where):
            axis = axis.astype([np.float32, np.float64][(turn + d) % 2])
            # The numbers of the host serve a GPU beside those that are there.
            there = torch.from_numpy(axis).cuda() if library == "torch" else __import__("cupy").asarray(axis)
            given.append(axis if (turn, d) == (2, 1) else laid(there, (turn + d) % 3))
        plan.setpts(*given)
        assert np.linalg.norm(plan.execute(data) - expected) < 4e-9 * np.linalg.norm(expected), turn


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_type_3_takes_and_gives_arrays_of_the_gpu(dims):
    rng = np.random.default_rng(dims)
    where = [rng.uniform(-4, 4, 3000) for _ in range(dims)]
    targets = dict(zip("stu", [rng.uniform(20, 40, 2000) for _ in range(dims)]))
    plan, on_cpu = (Plan(3, dims, eps=1e-9, device=device) for device in ("cuda", "cpu"))
    plan.setpts(*(torch.from_numpy(axis).cuda() for axis in where), **targets)
    on_cpu.setpts(*where, **targets)
    data = rng.normal(size=(3, 3000)) + 1j * rng.normal(size=(3, 3000))
    found, expected = plan.execute(torch.from_numpy(data).cuda()), on_cpu.execute(data)
    assert found.is_cuda and np.linalg.norm(found.cpu().numpy() - expected) < 4e-9 * np.linalg.norm(expected)
    back, expected = plan.execute_adjoint(found), on_cpu.execute_adjoint(expected)
    assert back.is_cuda and np.linalg.norm(back.cpu().numpy() - expected) < 4e-9 * np.linalg.norm(expected)


def test_points_wait_for_the_caller_s_stream_and_the_caller_waits_for_their_reader():
    rng = np.random.default_rng(4)
    count, modes = 300_000, (64, 64)
    where = [rng.uniform(-3, 3, count).astype(np.float32) for _ in modes]
    data = (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(np.complex64)
    plan, on_cpu = (Plan(1, modes, eps=1e-4, dtype="complex64", device=device) for device in ("cuda", "cpu"))
    on_cpu.setpts(*where)
    expected = on_cpu.execute(data)
    stream = torch.cuda.Stream()
    for _ in range(10):
        with torch.cuda.stream(stream):
            # Complex numbers of which points are the real parts: every second number of the memory.
            given = [late(axis.astype(np.complex64), 1) for axis in where]
            plan.setpts(*(torch.view_as_real(axis)[:, 0] for axis in given))
            for axis in given:
                axis.fill_(7)
        assert close(plan.execute(data), expected)


def test_points_that_are_refused_leave_the_plan_as_it_was(case):
    plan, _, data, expected = case
    x, y = (torch.rand(1000, device="cuda") for _ in range(2))
    y[[400, 17]] = torch.tensor([float("nan"), float("inf")], device="cuda")
    with pytest.raises(ValueError, match="y: expected finite numbers, found inf at index 17"):
        plan.setpts(x, y)
    with pytest.raises(ValueError, match="y"):
        plan.setpts(x, y[:3])
    with pytest.raises(TypeError, match="gradient"):
        plan.setpts(x, x.clone().requires_grad_())
    with pytest.raises(TypeError, match="real numbers"):
        plan.setpts(x, torch.complex(x, x))
    assert close(plan.execute(data), expected)
    new = Plan(2, GRID, eps=1e-4, dtype="complex64", device="cuda")
    with pytest.raises(ValueError, match="y: expected finite numbers"):
        new.setpts(x, y)


def test_points_on_a_gpu_serve_a_plan_of_the_cpu(case):
    _, plan, data, expected = case
    on_cpu = Plan(2, GRID, eps=1e-4, dtype="complex64", device="cpu")
    rng = np.random.default_rng(1)
    on_cpu.setpts(*(torch.from_numpy(rng.uniform(-np.pi, np.pi, POINTS)).cuda() for _ in GRID))
    assert np.array_equal(on_cpu.execute(data), expected)


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


def test_operators_solvers_and_functions_of_the_caller_on_a_gpu():
    rng = np.random.default_rng(3)
    where = rng.uniform(-8, 8, (900, 2))
    maps = (rng.normal(size=(3, 16, 16)) + 1j * rng.normal(size=(3, 16, 16))).astype(np.complex64)
    data = (rng.normal(size=(3, 900)) + 1j * rng.normal(size=(3, 900))).astype(np.complex64)
    kinds = set()

    def weigh(x):
        kinds.add((type(x), str(getattr(x, "device", "cpu"))))
        return x * 2

    def threshold(t, x):
        kinds.add((type(x), str(getattr(x, "device", "cpu"))))
        size = abs(x)
        return x * (size - t).clip(0) / (size + 1e-30)

    found = {}
    for device, given in [("cpu", data), ("cuda", torch.from_numpy(data).cuda())]:
        encode = linop.sense(maps, where, eps=1e-5, device=device)
        twice = linop.custom(weigh, weigh, (16, 16), (16, 16), device=device)
        heard = []
        solved = solve.cg(
            (encode @ twice).N, (encode @ twice).H(given), iterations=200, tolerance=0, callback=lambda *a: heard.append(a)
        )
        sparse = solve.fista(encode, given, threshold, 30.0, iterations=60, tolerance=0)
        assert len(heard) == len(solved.residuals) - 1 and type(heard[0][2]) is type(given)
        found[device] = [solved.x, sparse.x, encode(solved.x), encode.N(solved.x)]
        if device == "cuda":
            assert all(isinstance(one, torch.Tensor) and one.is_cuda for one in found[device])
            found[device] = [one.cpu().numpy() for one in found[device]]
    assert kinds == {(np.ndarray, "cpu"), (torch.Tensor, "cuda:0")}
    for one, other in zip(found["cuda"], found["cpu"]):
        assert close(one, other)


def test_scans_are_reconstructed_on_a_gpu():
    rng = np.random.default_rng(4)
    angles = np.pi * np.arange(40) / 40
    radius = np.arange(-32, 32)
    where = np.stack([np.outer(np.cos(angles), radius), np.outer(np.sin(angles), radius)], axis=-1)
    samples = (rng.normal(size=(4, 40, 64)) + 1j * rng.normal(size=(4, 40, 64))).astype(np.complex64)
    on_cpu = rayspin.Scan.from_arrays(samples, where, shape=(64, 64), units="cycles/fov")
    on_gpu = rayspin.Scan.from_arrays(torch.from_numpy(samples).cuda(), where, shape=(64, 64), units="cycles/fov")
    images = [
        rayspin.recon(scan, "cg-sense", device=device, iterations=5).image
        for scan, device in [(on_cpu, "cpu"), (on_gpu, "cuda")]
    ]
    assert close(*images)


def child(queue, plan, data):
    try:
        plan.execute(data)
    except RuntimeError as error:
        queue.put(str(error))
    try:
        Plan(1, 4, device="cuda")
    except RuntimeError as error:
        queue.put(str(error))
    plan = Plan(1, 4, device="cpu")
    plan.setpts(np.zeros(3))
    queue.put(plan.execute(np.ones(3, complex))[0])


def test_a_forked_process_has_no_gpu(case):
    plan, _, data, _ = case
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue, plan, data))
    process.start()
    assert "forked" in queue.get(timeout=60) and "forked" in queue.get(timeout=60)
    assert abs(queue.get(timeout=60) - 3) < 1e-5
    process.join()


def test_large_arrays_are_not_copied():
    x = torch.ones(1 << 27, dtype=torch.complex64, device="cuda")
    out = torch.empty_like(x)
    op = linop.identity((1 << 27,), device="cuda")
    where = out.data_ptr()
    before = torch.cuda.mem_get_info()[0]
    assert op(x, out=out) is out and out.data_ptr() == where
    assert before - torch.cuda.mem_get_info()[0] < 1 << 28
    assert torch.equal(x, out)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_the_caller_s_current_gpu_stays(case):
    plan, _, data, expected = case
    with torch.cuda.device(1):
        given = torch.from_numpy(data).to("cuda:0")
        found = plan.execute(given)
        other = Plan(2, GRID, eps=1e-4, dtype="complex64", device="cuda:1")
        other.setpts(*[np.zeros(3)] * 2)
        mine = torch.empty(3, device="cuda")
        assert mine.device.index == 1 and torch.cuda.current_device() == 1
        with pytest.raises(TypeError, match="cuda:0"):
            plan.execute(torch.from_numpy(data).to("cuda:1"))
    assert found.device.index == 0 and close(found.cpu().numpy(), expected)
    assert torch.empty(3, device="cuda").device.index == 0


def test_points_of_the_host_that_have_changed_are_noticed_by_a_plan_on_a_gpu():
    x, y = np.linspace(-3, 3, 60), np.linspace(-1, 2, 60)
    plan = Plan(1, (8, 8), device="cuda")
    plan.setpts(x, y)
    again = pickle.loads(pickle.dumps(plan))
    values = np.ones(60, np.complex128)
    assert close(again.execute(values), plan.execute(values))
    y[17] = 0.5
    with pytest.raises(ValueError, match="y: the array has changed since it was given"):
        pickle.dumps(plan)
