"""The backend of mri-nufft beside its own finufft backend and exact sums. Skipped without mri-nufft."""

import numpy as np
import pytest

mrinufft = pytest.importorskip("mrinufft")

import rayspin.mrinufft

try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
except ImportError:
    cupy = None

GPU = torch is not None and torch.cuda.is_available()
no_gpu = pytest.mark.skipif(not GPU, reason="no GPU")
devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=no_gpu)])
SHAPES = [(12, 15), (8, 9, 6)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
COILS, COUNT = 3, 200
pytestmark = pytest.mark.filterwarnings("ignore:Samples will be rescaled", "ignore:data is on gpu", "ignore:Lipschitz")


def numbers(rng, shape, dtype):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def case(shape, real="float32", seed=1):
    rng = np.random.default_rng([*shape, seed])
    points = rng.uniform(-np.pi, np.pi, (COUNT, len(shape))).astype(real)
    return rng, points, np.result_type(real, "complex64").name


def operators(points, shape, device="cpu", **named):
    """Rayspin's and finufft's, with the same arguments."""
    ours = mrinufft.get_operator("rayspin")(points, shape, device=device, **named)
    return ours, mrinufft.get_operator("finufft")(points, shape, **named)


def distance(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def kinds(device):
    """Ways into and out of the array libraries whose arrays the operator takes."""
    found = {"numpy": (lambda a: a, lambda a: a)}
    if torch is not None:
        found["torch"] = (torch.from_numpy, lambda a: a.numpy())
    if GPU:
        found["torch on a GPU"] = (lambda a: torch.from_numpy(a).cuda(), lambda a: a.cpu().numpy())
    if GPU and cupy is not None:
        found["cupy"] = (cupy.asarray, cupy.asnumpy)
    return found


def test_the_operator_is_the_scaled_exact_sum():
    assert "rayspin" in mrinufft.list_backends(available_only=True) and mrinufft.check_backend("rayspin")
    shape = (4, 5)
    rng, points, dtype = case(shape, "float64")
    image = numbers(rng, shape, dtype)
    pixels = np.stack(np.meshgrid(*[np.arange(n) - n // 2 for n in shape], indexing="ij"), -1).reshape(-1, 2)
    matrix = np.exp(-1j * points @ pixels.T) / np.sqrt(4 * 5 * 2**2)
    operator = mrinufft.get_operator("rayspin", False, False, False, points, shape, eps=1e-10, device="cpu")
    assert distance(operator.op(image), matrix @ image.ravel()) < 1e-9
    samples = numbers(rng, COUNT, dtype)
    assert distance(operator.adj_op(samples).ravel(), matrix.conj().T @ samples) < 1e-9


@devices
@shapes
@pytest.mark.parametrize("real,bound", [("float32", 1e-5), ("float64", 1e-5)])
@pytest.mark.parametrize("maps", [False, True])
@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("squeeze_dims", [False, True])
@pytest.mark.parametrize("batches,coils", [(1, 1), (1, COILS), (2, 1), (2, COILS)])
def test_operators_agree_with_finufft_s(device, shape, real, bound, maps, density, squeeze_dims, batches, coils):
    rng, points, dtype = case(shape, real)
    named = {"n_coils": coils, "n_batchs": batches, "squeeze_dims": squeeze_dims}
    named["smaps"] = numbers(rng, (coils, *shape), dtype) if maps else None
    named["density"] = rng.uniform(0.5, 2, COUNT).astype(real) if density else False
    ours, theirs = operators(points, shape, device, **named)
    assert ours.img_full_shape == theirs.img_full_shape and ours.ksp_full_shape == theirs.ksp_full_shape
    image, samples = numbers(rng, ours.img_full_shape, dtype), numbers(rng, ours.ksp_full_shape, dtype)
    expected = theirs.op(image), theirs.adj_op(samples)
    for name, (enter, leave) in kinds(device).items():
        for found, wanted in zip((ours.op(enter(image)), ours.adj_op(enter(samples))), expected):
            assert type(found) is type(enter(image)) and leave(found).dtype == dtype, name
            assert leave(found).shape == wanted.shape and distance(leave(found), wanted) < bound, name
        # The slope of a weighted square: the weights are in adj_op, once.
        found = leave(ours.data_consistency(enter(image), enter(samples)))
        wanted = theirs.adj_op(theirs.op(image).reshape(samples.shape) - samples)
        assert found.shape == wanted.shape and distance(found, wanted) < bound, name


@devices
@shapes
def test_maps_and_weights_of_any_library_serve_data_of_any_other(device, shape):
    rng, points, dtype = case(shape)
    maps, weights = numbers(rng, (COILS, *shape), dtype), rng.uniform(0.5, 2, COUNT)
    image, samples = numbers(rng, shape, dtype), numbers(rng, (COILS, COUNT), dtype)
    theirs = mrinufft.get_operator("finufft")(points, shape, n_coils=COILS, smaps=maps, density=weights.astype("float32"))
    for enter, _ in kinds(device).values():
        ours = mrinufft.get_operator("rayspin")(
            enter(points), shape, n_coils=COILS, smaps=enter(maps), density=enter(weights), device=device
        )
        for put, leave in kinds(device).values():
            assert distance(leave(ours.op(put(image))), theirs.op(image)) < 1e-5
            assert distance(leave(ours.adj_op(put(samples))), theirs.adj_op(samples)) < 1e-5
    # Other maps and weights take the place of the copies.
    ours.smaps, ours.density = maps[:, ::-1], weights[::-1]
    theirs.smaps, theirs.density = np.ascontiguousarray(maps[:, ::-1]), weights[::-1].astype("float32")
    for put, leave in kinds(device).values():
        assert distance(leave(ours.op(put(image))), theirs.op(image)) < 1e-5
        assert distance(leave(ours.adj_op(put(samples))), theirs.adj_op(samples)) < 1e-5


@devices
@shapes
def test_samples_change(device, shape):
    rng, points, dtype = case(shape)
    ours, theirs = operators(points, shape, device, density="voronoi" if len(shape) == 2 else None)
    image, samples = numbers(rng, shape, dtype), numbers(rng, COUNT, dtype)
    assert len(shape) != 2 or distance(ours.density, theirs.density) < 1e-6
    for new in [points[::-1], points / (2 * np.pi), points.reshape(4, -1, len(shape)) * 0.5]:
        ours.samples = theirs.samples = new
        assert ours.n_samples == theirs.n_samples and distance(ours.samples, theirs.samples) < 1e-6
        assert distance(ours.op(image), theirs.op(image)) < 1e-5
        assert distance(ours.adj_op(samples), theirs.adj_op(samples)) < 1e-5


@devices
@shapes
def test_norms_and_inverses_agree_with_finufft_s(device, shape):
    rng, points, dtype = case(shape)
    maps = numbers(rng, (COILS, *shape), dtype)
    pair = operators(points, shape, device, n_coils=COILS, smaps=maps)
    norms = []
    for operator in pair:
        np.random.seed(1)  # mri-nufft's iterations begin with np.random.
        norms.append(operator.get_lipschitz_cst(10))
    assert abs(norms[0] - norms[1]) < 1e-4 * norms[1]
    assert pair[0].n_coils == COILS and pair[0].uses_sense and pair[0].squeeze_dims
    samples = pair[1].op(numbers(rng, shape, dtype))
    found, expected = (operator.pinv_solver(samples, max_iter=5) for operator in pair)
    assert distance(found, expected) < 1e-3


@devices
@shapes
def test_off_resonance_agrees_with_finufft_s(device, shape):
    rng, points, dtype = case(shape)
    field = np.linspace(-80, 120, np.prod(shape)).reshape(shape).astype("float32")
    times = np.linspace(0, 0.01, COUNT).astype("float32")
    maps = numbers(rng, (COILS, *shape), dtype)
    ours, theirs = (
        operator.with_off_resonance_correction(times, field, interpolator={"name": "svd", "L": 8})
        for operator in operators(points, shape, device, n_coils=COILS, smaps=maps)
    )
    image, samples = numbers(rng, shape, dtype), numbers(rng, (COILS, COUNT), dtype)
    assert distance(ours.op(image), theirs.op(image)) < 1e-4
    assert distance(ours.adj_op(samples), theirs.adj_op(samples)) < 1e-4


@devices
def test_stacks_agree_with_finufft_s(device):
    shape = (12, 15, 6)
    rng, points, dtype = case(shape[:2])
    named = {"z_index": np.array([0, 2, 5]), "n_coils": COILS, "smaps": numbers(rng, (COILS, *shape), dtype)}
    ours = mrinufft.get_operator("stacked-rayspin")(points, shape, device=device, **named)
    theirs = mrinufft.get_operator("stacked-finufft")(points, shape, **named)
    image, samples = numbers(rng, shape, dtype), numbers(rng, (COILS, 3 * COUNT), dtype)
    assert distance(ours.op(image), theirs.op(image)) < 1e-5
    assert distance(ours.adj_op(samples), theirs.adj_op(samples)) < 1e-5


@devices
def test_pipe_s_weights_flatten_the_response(device):
    """On radial spokes the weights grow with the radius, as the area of a sample does."""
    spokes, readout, n = 40, 48, 24
    radius = (np.arange(readout) + 0.5) / readout - 0.5
    angles = np.pi * np.arange(spokes) / spokes
    points = (radius[None, :, None] * np.stack([np.cos(angles), np.sin(angles)], -1)[:, None]).astype("float32")
    for density in [True, "pipe", {"name": "pipe", "backend": "rayspin"}, {"name": "pipe", "osf": 3, "max_iter": 20}]:
        operator = mrinufft.get_operator("rayspin")(points, (n, n), density=density, device=device)
        weights = operator.density.reshape(spokes, readout)
        assert weights.min() > 0
        inner = np.abs(radius) < 0.4
        slope = weights[:, inner] / np.abs(radius[inner])
        assert slope.std() < 0.2 * slope.mean()
    # A* w A of a constant image has mean 1, and comes nearer to the image than without weights.
    image = np.ones((n, n), "complex64")
    back = operator.adj_op(operator.op(image))
    assert abs(np.abs(back).mean() - 1) < 1e-3
    inside = (slice(6, 18), slice(6, 18))
    assert np.abs(back[inside]).std() < 0.1


@devices
@shapes
@pytest.mark.parametrize("maps", [False, True])
def test_gradients_agree_with_those_of_exact_sums(device, shape, maps):
    pytest.importorskip("torch")
    pytest.importorskip("deepinv")
    shape = tuple(n + n % 2 for n in shape)  # mri-nufft's gradient over points takes even axes.
    rng, points, dtype = case(shape, "float64")
    place = "cuda" if device == "cuda" else "cpu"
    sensitivities = numbers(rng, (COILS, *shape), dtype) if maps else None
    where = torch.from_numpy(points).to(place)
    operator = mrinufft.get_operator("rayspin", wrt_data=True, wrt_traj=True)(
        where, shape, n_coils=COILS, smaps=sensitivities, squeeze_dims=False, eps=1e-10, device=device
    )
    pixels = np.stack(np.meshgrid(*[np.arange(n) - n // 2 for n in shape], indexing="ij"), -1).reshape(-1, len(shape))
    pixels = torch.from_numpy(pixels.astype("float64")).to(place)
    coils = 1 if sensitivities is None else torch.from_numpy(sensitivities).to(place)
    scale = float(operator.nufft_op.norm_factor)

    def exact(image):
        return (image * coils).reshape(1, COILS, -1) @ torch.exp(-1j * (operator.samples @ pixels.T)).T / scale

    def exact_adjoint(samples):
        images = (samples @ torch.exp(1j * (operator.samples @ pixels.T)) / scale).reshape(1, COILS, *shape)
        return (images * coils.conj()).sum(1, keepdim=True) if maps else images

    image = torch.from_numpy(numbers(rng, (1, 1 if maps else COILS, *shape), dtype)).to(place)
    samples = torch.from_numpy(numbers(rng, (1, COILS, COUNT), dtype)).to(place)
    for ours, plain, data in [(operator.op, exact, image), (operator.adj_op, exact_adjoint, samples)]:
        data.requires_grad_()
        results = []
        for function in (ours, plain):
            made = function(data)
            results.append([made, *torch.autograd.grad(made.abs().square().sum(), (data, operator.samples))])
        for found, expected in zip(*results):
            assert found.shape == expected.shape
            assert (found - expected).norm() < 1e-8 * expected.norm()


def test_wrong_arguments_are_refused():
    rng, points, dtype = case((4, 5))
    make = mrinufft.get_operator("rayspin")
    operator = make(points, (4, 5), device="cpu")
    for call, error, words in [
        (lambda: make(points.astype("int64") * 2, (4, 5)), TypeError, "samples: expected float32"),
        (lambda: make(points, (4, 5, 6)), ValueError, "samples: expected 3 components"),
        (lambda: make(points, (4, 5), eps=1e-12), ValueError, "eps: expected"),
        (lambda: make(points, (4, 5), density=np.ones(3)), ValueError, "density: expected"),
        (lambda: make(points, (4, 5), smaps=np.ones((2, 4, 6), dtype)), ValueError, "smaps: expected"),
        (lambda: make(points, (4, 5), density="no such method"), ValueError, "no such method"),
        (lambda: operator.op(numbers(rng, (4, 6), dtype)), ValueError, "not compatible"),
        (lambda: operator.adj_op(numbers(rng, 7, dtype)), ValueError, "not compatible"),
        (lambda: operator.op([1, 2]), (TypeError, AttributeError), "list"),
    ]:
        with pytest.raises(error, match=words):
            call()
