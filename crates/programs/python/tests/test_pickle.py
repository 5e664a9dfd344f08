"""Pickles and copies: an object that comes back does what it did, to the bit."""

import copy
import gc
import multiprocessing
import pickle
import weakref

import numpy as np
import pytest

import rayspin
from rayspin import ct, linop, metrics, prox, simulate, solve
from rayspin.nufft import Plan

CPU = {"device": "cpu"}
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def numbers(shape, dtype="complex64", seed=0):
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def doubled(x):
    return 2 * x


def points(count=60, dims=2):
    return np.random.default_rng(1).uniform(-4, 4, (count, dims))


def operators():
    maps, samples = numbers((3, 8, 8)), points()
    fft = linop.fft((8, 8), batch=(3,), **CPU)
    sense = linop.sense(maps, **CPU)
    encode = linop.sense(maps, samples, eps=1e-4, **CPU)
    weights = np.linspace(1, 2, 60)
    custom = linop.custom(doubled, doubled, (8, 8), (8, 8), name="double", **CPU)
    rays = ct.Geometry.cone(np.linspace(0, 6, 5), 2, 9, source_to_axis_mm=50, axis_to_detector_mm=20)
    return {
        "identity": linop.identity((3, 4), dtype="float32", **CPU),
        "fft": fft,
        "nufft": linop.nufft(samples, (8, 8), batch=(2,), eps=1e-3, dtype="complex128", **CPU),
        "nufft of single points": linop.nufft(samples.astype(np.float32), (8, 8), **CPU),
        "nufft of a list": linop.nufft([[0.5], [1.25], [-2.0]], (8,), **CPU),
        "nufft of other orders": linop.nufft(np.asfortranarray(samples)[::2], (8, 8), **CPU),
        "nudft": linop.nudft(samples, (8, 8), **CPU),
        "toeplitz": linop.toeplitz(samples, (8, 8), batch=(2,), **CPU),
        "toeplitz of maps": linop.toeplitz(samples, (8, 8), weights=weights, maps=maps, **CPU),
        "sense": sense,
        "sense of points": encode,
        "diagonal": linop.diagonal(numbers((4,), "float64"), (3, 4), **CPU),
        "diagonal of single numbers": linop.diagonal(numbers((4,), "float32"), **CPU),
        "mask": linop.mask(np.arange(8) % 3 == 0, (5, 8), dtype="complex128", **CPU),
        "differences": linop.differences((4, 5), [1], dtype="float64", **CPU),
        "wavelet": linop.wavelet((32, 32), "haar", 2, **CPU),
        "stack": linop.stack([fft, linop.identity((3, 8, 8), **CPU)]),
        "block_diagonal": linop.block_diagonal([sense, sense]),
        "custom": custom,
        "product": fft @ sense,
        "sum": sense + 3 * sense,
        "difference": custom - linop.identity((8, 8), **CPU),
        "multiple": (1 - 2j) * encode,
        "quotient": encode / 3,
        "negative": -sense,
        "adjoint": encode.H,
        "normal": encode.N,
        "several times": encode.H @ (encode @ (sense.H @ sense)) + encode.N,
        "projector": ct.Projector(rays, rays.grid(), dtype="float64", **CPU).operator,
    }


def uses(op):
    x, y = numbers(op.ishape, op.dtype, 2), numbers(op.oshape, op.dtype, 3)
    return [op(x), op.H(y), repr(op)]


def plans():
    grid = Plan(1, (8, 9), eps=1e-4, dtype="complex64", **CPU)
    x, y = points().T  # with gaps between numbers
    grid.setpts(x, y)
    single = Plan(2, (8, 9), n_trans=2, isign=1, **CPU)
    single.setpts(x.astype(np.float32), list(y))
    free = Plan(3, 2, **CPU)
    free.setpts(x, y, s=y[:7], t=x[::-1][:7])
    none = Plan(2, 8, **CPU)
    none.setpts(np.zeros(0))
    return {"type 1": grid, "type 2": single, "type 3": free, "no points": none, "unset": Plan(1, 8, **CPU)}


def transforms(plan):
    said = [repr(plan), plan.n_trans, plan.isign]
    count = {1: 60, 2: 72, 3: 60}[plan.nufft_type]
    shape = (2, 8, 9) if plan.nufft_type == 2 and plan.n_modes == [8, 9] else (count,)
    if plan.n_modes == [8]:
        shape = (8,) if plan.nufft_type == 2 else (0,)
    try:
        made = plan.execute(numbers(shape, plan.dtype))
        return [made, plan.execute_adjoint(made), *said]
    except RuntimeError as error:
        return [str(error), *said]


def penalties():
    return {
        "l1": prox.l1(),
        "groups": prox.groups(),
        "nonnegative": prox.nonnegative(),
        "l2": prox.l2(numbers((4, 4), "float64", 5)),
        "wavelet": prox.wavelet((16, 16), "haar", 1, 3),
        "total variation": prox.total_variation((4, 4), 7),
    }


def shrunk(penalty):
    dtype = "complex128" if "wavelet" in repr(penalty) else "float64"
    shape = (16, 16) if "wavelet" in repr(penalty) else (4, 4)
    return [penalty(0.3, numbers(shape, dtype)), repr(penalty)]


def results():
    made = simulate.mri(matrix=(16, 16), coils=2, trajectory="radial", noise_readouts=1, snr=40, repetitions=2)
    lines = simulate.ct(geometry="fan", matrix=(16, 16), views=12, lines=True)
    counts = simulate.ct(geometry="parallel", matrix=(16, 16), views=12)
    grid = np.fft.fftshift(np.fft.fft2(numbers((2, 8, 8))), axes=(1, 2))
    times = np.arange(60.0)
    image = rayspin.Image(numbers((2, 4, 4), "float32"), spacing_mm=(1, 2, 3), hounsfield=True)
    return {
        "scan": made.scan,
        "scan of a grid": rayspin.Scan.from_arrays(grid, fov_mm=(10, 20)),
        "scan of points": rayspin.Scan.from_arrays(
            numbers((2, 60)), points(), shape=(8, 8), units="cycles/fov", times=times
        ),
        "ct scan": lines.scan,
        "ct scan of counts": counts.scan,
        "ct scan without rays": ct.Scan.from_arrays(numbers((3, 4), "float32"), angles=[0, 1, 2]),
        "geometry": ct.Geometry.helix(
            np.linspace(0, 6, 7), 2, 5, (1.5, 2), source_to_axis_mm=50, axis_to_detector_mm=20, advance_mm=3,
            curved=True, tilt=0.1,
        ),  # fmt: skip
        "selected geometry": ct.Geometry.parallel(np.linspace(0, 9, 7), 2, 5).select([4, 1]),
        "grid": ct.Grid((1, 4, 5), (0.5, 0.7, 2.0), (0, 0.1, 10)),
        "image": image,
        "complex image": rayspin.Image(numbers((3, 4))),
        "reconstruction": rayspin.recon(made.scan, "cg-sense", iterations=3, certify=4, **CPU),
        "ct reconstruction": ct.recon(lines.scan, "cgls", iterations=3, **CPU),
        "simulation": made,
        "ct simulation": lines,
        "solution": solve.cg(linop.diagonal(np.array([1.0, 2.0]), **CPU), np.ones(2)),
        "quality": metrics.compare(2 * numbers((20, 20)), numbers((20, 20)), fit=True),
        "equal images": metrics.compare(np.ones((20, 20)), np.ones((20, 20))),
    }


def attributes(found, depth=3, computes=True):
    """What an object says of itself."""
    values = [repr(found)]
    for name in dir(found) if depth else []:
        if name.startswith("_"):
            continue
        try:
            value = getattr(found, name)
        except ValueError as error:
            value = str(error)
        if callable(value):
            continue
        is_own = type(value).__module__.startswith("rayspin")
        values += attributes(value, depth - 1, computes) if is_own else [value]
    if isinstance(found, rayspin.Scan):
        images = [found.arrays(image) for image in range(found.images)]
        values += [array for both in images for array in both]
        values += [rayspin.recon(found, **CPU).image] if computes else []
    if isinstance(found, ct.Scan) and computes:
        values += [len(found), found.line_integrals(**CPU)]
    return values


def projections(project):
    return [project.forward(numbers(project.grid.shape, project.dtype)), repr(project)]


def projectors():
    rays = ct.Geometry.parallel(np.linspace(0, 3, 4), 1, 9)
    return {"projector": ct.Projector(rays, ct.Grid((1, 8, 8), 1.0), **CPU)}


KINDS = {
    "operators": (operators, uses),
    "plans": (plans, transforms),
    "penalties": (penalties, shrunk),
    "projectors": (projectors, projections),
    "results": (results, attributes),
}


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    make, use = KINDS[request.param]
    return make(), use


def test_objects_come_back(kind):
    objects, use = kind
    for name, one in objects.items():
        expected = use(one)
        ways = [lambda one, protocol=protocol: pickle.loads(pickle.dumps(one, protocol)) for protocol in PROTOCOLS]
        for way in [*ways, copy.copy, copy.deepcopy]:
            again = way(one)
            assert type(again) is type(one)
            for before, after in zip(expected, use(again), strict=True):
                assert same(before, after), name


class Lying:
    """Pickles as what it is given."""

    def __init__(self, reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


def spoilt_arrays(array):
    yield from [array[:0], array[:-1], array.T, array[None], array.astype("O"), array.astype("complex128")]
    yield from [array.astype("i1"), np.broadcast_to(array[..., :1], array.shape)]
    for number in [-1, 0, 1, 2**16, 2**31, 2**62, np.nan, np.inf]:
        if array.dtype.kind not in "fc" and not np.isfinite(number):
            continue
        filled = np.broadcast_to(np.float64(number), array.shape).astype(array.dtype)
        yield filled
        for column in range(array.shape[-1] if array.ndim == 2 and array.shape[-1] < 25 else 0):
            yield np.concatenate([array[:, :column], filled[:, :1], array[:, column + 1 :]], axis=1)


def spoilt_values(value):
    """Values in its place that another program may have written."""
    yield from [None, -1, 0, 2**70, float("nan"), "x", [], {}, (1,), np.zeros(3), object]
    if isinstance(value, np.ndarray):
        yield from spoilt_arrays(value)
    elif isinstance(value, dict):
        yield from spoilt(value)
    elif isinstance(value, (list, tuple)):
        for at, one in enumerate(value[:12]):
            yield from (type(value)([*value[:at], other, *value[at + 1 :]]) for other in spoilt_values(one))
    elif type(value) is int:
        yield from [value - 1, value + 1]


def spoilt(parts):
    for name, value in parts.items():
        yield from ({**parts, name: other} for other in spoilt_values(value))
        yield {other: parts[other] for other in parts if other != name}


# What spoilt points, shapes and angles make may be unusual and still something.
@pytest.mark.filterwarnings("ignore")
def test_no_pickle_does_harm(kind):
    objects, use = kind
    refused = 0
    for one in objects.values():
        function, (of_class, version, parts) = one.__reduce__()
        for wrong in spoilt(parts):
            # A panic is no Exception.
            try:
                again = function(of_class, version, wrong)
            except Exception as error:
                assert str(error)
                refused += 1
                continue
            try:
                attributes(again, computes=False) if use is attributes else use(again)
            except Exception as error:
                assert str(error)
    assert refused


def test_another_version_is_refused():
    function, (of_class, version, parts) = prox.l1().__reduce__()
    text = pickle.dumps(Lying((function, (of_class, version + 1, parts))))
    with pytest.raises(ValueError, match=r"pickle of rayspin.prox.Penalty: expected version 1, .* found version 2"):
        pickle.loads(text)
    with pytest.raises(TypeError, match="class of rayspin"):
        function(int, version, {})


def test_pickles_name_public_things():
    for objects in (operators(), plans(), penalties(), projectors(), results()):
        for one in objects.values():
            assert b"_rayspin" not in pickle.dumps(one)


def test_large_arrays_leave_pickles_out_of_band():
    made = simulate.mri(matrix=(64, 64), coils=4, trajectory="radial")
    of_points = points(5000)
    operator, image = linop.nufft(of_points, (64, 64), **CPU), rayspin.Image(numbers((4, 64, 64)))
    plan = Plan(1, (64, 64), **CPU)
    plan.setpts(*np.ascontiguousarray(of_points.T))
    for one, size in [
        (made.scan, made.scan.arrays()[0].nbytes),
        (image, image.data.nbytes),
        (operator, of_points.nbytes),
        (plan, of_points.nbytes),
    ]:
        buffers = []
        text = pickle.dumps(one, protocol=5, buffer_callback=buffers.append)
        assert sum(buffer.raw().nbytes for buffer in buffers) >= size
        assert len(text) < 100_000, type(one)
        # Bytes that cannot be written to, as those of a message that came in.
        again = pickle.loads(text, buffers=[bytes(buffer.raw()) for buffer in buffers])
        assert repr(again) == repr(one)
    assert np.array_equal(again.execute(np.ones(5000, complex)), plan.execute(np.ones(5000, complex)))


def test_the_arrays_of_a_pickled_image_are_not_copied():
    image = rayspin.Image(numbers((4, 64, 64)))
    buffers = []
    pickle.dumps(image, protocol=5, buffer_callback=buffers.append)
    assert np.shares_memory(np.frombuffer(buffers[0].raw(), np.complex64), image.data)


def test_points_that_have_changed_are_not_pickled_as_others():
    of_points, x = points(), np.linspace(-3, 3, 60)
    operator, plan = linop.nufft(of_points, (8, 8), **CPU), Plan(1, 8, **CPU)
    plan.setpts(x)
    text = pickle.dumps((operator, plan))
    of_points[-1, 1] += 1e-9
    x[17] = 0.5
    for one, name in [(operator, "points"), (plan, "x")]:
        with pytest.raises(ValueError, match=f"{name}: the array has changed since it was given"):
            pickle.dumps(one)
    operator, plan = pickle.loads(text)
    assert pickle.loads(pickle.dumps(operator)).oshape == (60,)
    # In two dimensions the plan knows that one has changed, not which; what is no point has changed, too.
    for value in (0.25, np.nan):
        x, y = np.linspace(-3, 3, 60), np.linspace(-1, 2, 60)
        plan = Plan(2, (8, 9), **CPU)
        plan.setpts(x, y)
        again = pickle.loads(pickle.dumps(plan))
        image = numbers((8, 9), "complex128")
        assert np.array_equal(again.execute(image), plan.execute(image))
        y[40] = value
        with pytest.raises(ValueError, match="x, y: one of the arrays has changed since it was given"):
            pickle.dumps(plan)


def test_maps_that_have_changed_are_those_of_the_operator():
    maps = numbers((3, 8, 8))
    operator = linop.sense(maps, **CPU)
    expected = uses(operator)
    maps *= 2
    assert same(expected, uses(pickle.loads(pickle.dumps(operator))))


def test_operators_of_functions_that_do_not_pickle_say_so():
    operator = 2 * linop.custom(lambda x: x, lambda x: x, (3,), (3,), **CPU)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(operator)


class Doubling:
    """Holds an operator of its own functions."""

    def __init__(self):
        self.factor = 2
        self.operator = linop.custom(self.apply, self.apply, (3,), (3,), dtype="float64", **CPU).N

    def apply(self, x):
        return self.factor * x


@pytest.mark.parametrize("way", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_an_object_that_holds_an_operator_of_its_functions(way):
    one = Doubling()
    again = way(one)
    again.factor = 3
    assert one.operator(np.ones(3))[0] == 4 and again.operator(np.ones(3))[0] == 9
    gone = [weakref.ref(one), weakref.ref(again)]
    del one, again
    gc.collect()
    assert gone[0]() is None and gone[1]() is None


def test_a_copy_of_a_plan_has_points_of_its_own():
    plan = Plan(1, 8, **CPU)
    plan.setpts(np.linspace(-3, 3, 20))
    expected = plan.execute(np.ones(20, complex))
    for again in (copy.copy(plan), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        again.setpts(np.linspace(-1, 1, 30))
        assert np.array_equal(plan.execute(np.ones(20, complex)), expected)
        assert again.execute(np.ones(30, complex)).shape == (8,)


def test_copies_of_images_share_their_arrays_and_deep_ones_do_not():
    image = rayspin.Image(np.ones((2, 4, 4), np.float32))
    found = rayspin.recon(simulate.mri(matrix=(16, 16), coils=2).scan, **CPU)
    for one, array in [(image, "data"), (found, "image")]:
        before = getattr(one, array)
        assert getattr(copy.copy(one), array) is before
        assert not np.shares_memory(getattr(copy.deepcopy(one), array), before)


def test_an_operator_in_another_one_twice_is_made_once():
    encode = linop.custom(doubled, doubled, (8, 8), (8, 8), **CPU)
    both = pickle.dumps(encode.H @ encode)
    assert both.count(b"doubled") == pickle.dumps(encode).count(b"doubled")


def test_images_that_are_being_made_are_not_pickled():
    scan = simulate.mri(matrix=(16, 16), coils=2, repetitions=3).scan
    with_rest = rayspin.images(scan, "cartesian", **CPU)
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"still being made .* pickle list\(images\)"):
            way(with_rest)
    assert len(list(with_rest)) == 3


def test_a_device_that_is_not_there_raises_as_ever():
    function, (of_class, version, parts) = linop.identity((3,), **CPU).__reduce__()
    parts = {**parts, "arguments": {**parts["arguments"], "device": "cuda:77"}}
    with pytest.raises(Exception) as expected:
        linop.identity((3,), device="cuda:77")
    with pytest.raises(expected.type):
        function(of_class, version, parts)


def test_a_scan_that_went_through_a_pickle_saves_the_same(tmp_path):
    for name, scan in results().items():
        if not isinstance(scan, (rayspin.Scan, ct.Scan)) or name == "ct scan without rays":
            continue
        pickle.loads(pickle.dumps(scan)).save(tmp_path / "again.h5")
        scan.save(tmp_path / "scan.h5")
        read = rayspin.read_scan if isinstance(scan, rayspin.Scan) else ct.read_scan
        found, expected = read(tmp_path / "again.h5"), read(tmp_path / "scan.h5")
        assert same(attributes(found), attributes(expected)), name


def test_processes_that_are_spawned_share_the_work():
    frames = [numbers((8, 8), seed=seed) for seed in range(6)]
    plan = Plan(2, (8, 8), dtype="complex64", eps=1e-4, **CPU)
    plan.setpts(*points().T)
    operator = linop.nufft(points(), (8, 8), **CPU) @ linop.mask(np.eye(8, dtype=bool), **CPU)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for work in (plan.execute, operator):
            assert same(pool.map(work, frames), [work(frame) for frame in frames])
        # What a process returns: a reconstruction with its arrays.
        scan = simulate.mri(matrix=(16, 16), coils=2).scan
        found = pool.apply(rayspin.recon, (scan,), CPU)
    assert same(found.image, rayspin.recon(scan, **CPU).image)
