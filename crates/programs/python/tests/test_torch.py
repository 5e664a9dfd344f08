"""Transforms for PyTorch beside exact sums of plain torch operations, and their gradients. Skipped without torch."""

import math
import multiprocessing
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rayspin.torch as rt
from rayspin import ct, linop
from rayspin.torch import apply, nufft, nufft_adjoint, sense, sense_adjoint

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
SHAPES = [(7,), (8,), (1,), (5, 6), (6, 5), (1, 4), (3, 4, 5), (4, 1, 3)]
devices = pytest.mark.parametrize("device", DEVICES)
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
FINE = {"eps": 1e-12}
# A GPU adds in any order, so two runs differ by rounding.
ROUNDING = {"cpu": 0.0, "cuda": 1e-9}


class Numbers:
    def __init__(self, device, *seed):
        self.random = torch.Generator().manual_seed(hash(seed) % 2**31)
        self.device = device

    def complex(self, *shape, dtype=torch.complex128):
        return torch.randn(*shape, dtype=dtype, generator=self.random).to(self.device)

    def real(self, *shape, low=-1.0, high=1.0):
        return (low + (high - low) * torch.rand(*shape, dtype=torch.float64, generator=self.random)).to(self.device)

    def points(self, count, shape):
        return self.real(count, len(shape)) * torch.tensor(shape[::-1], device=self.device) / 2


def factors(points, shape, field_map=None, times=None):
    """exp(-i 2 pi (f t + k.x)) as a matrix [sample, pixel], from the definitions in docs/conventions.md."""
    axes = [(torch.arange(n, dtype=torch.float64, device=points.device) - n // 2) / n for n in shape]
    pixels = torch.stack([axis.reshape(-1) for axis in torch.meshgrid(*axes, indexing="ij")][::-1], 1)
    cycles = points.double() @ pixels.T
    if field_map is not None:
        cycles = cycles + times.double()[:, None] * field_map.double().reshape(1, -1)
    return torch.exp(-2j * math.pi * cycles)


def exact(image, points, shape, **off):
    return image.to(torch.complex128).reshape(*image.shape[: image.ndim - len(shape)], -1) @ factors(points, shape, **off).T


def exact_adjoint(samples, points, shape, **off):
    found = samples.to(torch.complex128) @ factors(points, shape, **off).conj()
    return found.reshape(*samples.shape[:-1], *shape)


def distance(found, expected):
    return float((found - expected).norm() / expected.norm())


@devices
@shapes
@pytest.mark.parametrize("lead", [(), (3,), (2, 1, 2)], ids=str)
@pytest.mark.parametrize("dtype,eps", [(torch.complex64, 1e-5), (torch.complex128, 1e-10)], ids=str)
def test_transforms_are_the_exact_sums(device, shape, lead, dtype, eps):
    make = Numbers(device, shape, lead)
    points = make.points(40, shape)
    image, samples = make.complex(*lead, *shape, dtype=dtype), make.complex(*lead, 40, dtype=dtype)
    for found, expected in [
        (nufft(image, points, eps=eps), exact(image, points, shape)),
        (nufft_adjoint(samples, points, shape, eps=eps), exact_adjoint(samples, points, shape)),
        (nufft(image, points.float(), eps=eps), exact(image, points.float(), shape)),
        # Points on the host serve data anywhere.
        (nufft(image, points.cpu(), eps=eps), exact(image, points, shape)),
    ]:
        assert found.dtype == dtype and found.device == image.device and found.shape == expected.shape
        assert distance(found, expected) <= 3 * eps


def slopes(function, given, weights):
    """The gradients of Re <weights, function> for all of `given`."""
    given = [one.detach().clone().requires_grad_() for one in given]
    (weights.conj() * function(*given)).real.sum().backward()
    return [one.grad for one in given]


@devices
@shapes
@pytest.mark.parametrize("lead", [(), (3,)], ids=str)
def test_gradients_are_those_of_the_exact_sums(device, shape, lead):
    make = Numbers(device, shape, lead, 2)
    points, image, samples = make.points(30, shape), make.complex(*lead, *shape), make.complex(*lead, 30)
    cases = [
        (lambda f, k: nufft(f, k, eps=1e-11), lambda f, k: exact(f, k, shape), image, samples),
        (lambda d, k: nufft_adjoint(d, k, shape, eps=1e-11), lambda d, k: exact_adjoint(d, k, shape), samples, image),
    ]
    for ours, plain, data, weights in cases:
        found, expected = (slopes(function, (data, points), weights) for function in (ours, plain))
        assert distance(found[0], expected[0]) < 1e-9
        # A component along an axis of one pixel has the gradient 0.
        assert (found[1] - expected[1]).norm() < 1e-9 * weights.norm() * data.norm() * 30
        assert found[1].shape == points.shape


@devices
@shapes
def test_first_and_second_derivatives_pass_gradcheck(device, shape):
    make = Numbers(device, shape, 3)
    points, image, samples = make.points(6, shape), make.complex(2, *shape), make.complex(2, 6)
    for one in (points, image, samples):
        one.requires_grad_()
    for function, given in [
        (lambda f, k: nufft(f, k, **FINE), (image, points)),
        (lambda d, k: nufft_adjoint(d, k, shape, **FINE), (samples, points)),
    ]:
        assert torch.autograd.gradcheck(function, given, nondet_tol=ROUNDING[device])
        assert torch.autograd.gradgradcheck(function, given, nondet_tol=ROUNDING[device], fast_mode=True)


@devices
@pytest.mark.parametrize("data_wants,points_want", [(True, False), (False, True), (False, False)])
def test_only_what_wants_a_gradient_gets_one(device, data_wants, points_want):
    make, shape = Numbers(device, 4), (4, 5)
    points, image, samples = make.points(9, shape), make.complex(*shape), make.complex(9)
    for function, plain, data in [
        (lambda f, k: nufft(f, k, **FINE), lambda f, k: exact(f, k, shape), image),
        (lambda d, k: nufft_adjoint(d, k, shape, **FINE), lambda d, k: exact_adjoint(d, k, shape), samples),
    ]:
        data, where = data.clone().requires_grad_(data_wants), points.clone().requires_grad_(points_want)
        found = function(data, where)
        assert found.requires_grad == (data_wants or points_want)
        wanted = [one for one in (data, where) if one.requires_grad]
        if wanted:
            found = torch.autograd.grad(found.abs().square().sum(), wanted)
            expected = torch.autograd.grad(plain(data, where).abs().square().sum(), wanted)
            assert all(distance(a, b) < 1e-9 for a, b in zip(found, expected))


@devices
def test_second_derivatives_over_the_image_alone(device):
    make, shape = Numbers(device, 17), (4, 5)
    points, image, step = make.points(9, shape), make.complex(*shape).requires_grad_(), make.complex(*shape)
    results = []
    for function in (lambda f: nufft(f, points, **FINE), lambda f: exact(f, points, shape)):
        (slope,) = torch.autograd.grad(function(image).abs().pow(3).sum(), image, create_graph=True)
        results.append(torch.autograd.grad((slope * step.conj()).real.sum(), image)[0])
    assert distance(*results) < 1e-9


@devices
def test_a_gradient_lies_where_its_points_lie(device):
    make, shape = Numbers(device, 5), (4, 5)
    points = make.points(9, shape).cpu().float().requires_grad_()
    nufft(make.complex(*shape), points).abs().sum().backward()
    assert points.grad.device.type == "cpu" and points.grad.dtype == torch.float32 and points.grad.abs().sum() > 0


@devices
def test_views_give_what_their_copies_give(device):
    make, shape = Numbers(device, 6), (4, 6)
    points, image, samples = make.points(9, shape), make.complex(3, *shape), make.complex(3, 9)
    strided = torch.empty(9, 4, dtype=torch.float64, device=device)[:, ::2].copy_(points)
    for view in [
        image.conj(),
        image.permute(0, 2, 1).contiguous().permute(0, 2, 1),
        image[:, :, ::2].repeat_interleave(2, 2)[..., :6],
        image[:1].expand(3, *shape),
        image[::2],
    ]:
        expected = exact(view.resolve_conj().contiguous(), points, shape)
        assert distance(nufft(view, strided, **FINE), expected) < 1e-10
    assert distance(nufft_adjoint(samples.conj()[::2], points, shape, **FINE), exact_adjoint(samples.conj()[::2], points, shape)) < 1e-10
    # Gradients arrive as views, too.
    given = image.clone().requires_grad_()
    nufft(given, points, **FINE).sum().real.backward()
    assert distance(given.grad, exact_adjoint(torch.ones(3, 9, device=device), points, shape)) < 1e-10


@devices
def test_a_changed_trajectory_gets_another_plan(device):
    make, shape = Numbers(device, 7), (6, 6)
    points, image = make.points(20, shape), make.complex(*shape)

    def right():
        return distance(nufft(image, points, eps=1e-9), exact(image, points, shape)) < 1e-8

    assert right()
    points[3, 1] += 0.25
    assert right()
    # These two change the numbers behind torch's version counter.
    version = points._version
    points.data[5, 0] -= 0.5
    assert points._version == version and right()
    if device == "cpu":
        points.numpy()[7, 1] = 0.125
        assert points._version == version and right()
    # New points in memory that a freed tensor had.
    for turn in range(5):
        address = points.data_ptr()
        del points
        points = make.points(20, shape)
        assert right(), (turn, address == points.data_ptr())
    # The same points for another shape, tolerance and element type.
    assert distance(nufft(image[:5].contiguous(), points, eps=1e-9), exact(image[:5], points, (5, 6))) < 1e-8
    assert distance(nufft(image, points, eps=1e-12), exact(image, points, shape)) < 1e-11
    assert nufft(image.to(torch.complex64), points).dtype == torch.complex64


@devices
def test_backward_uses_the_points_of_its_forward(device):
    make, shape = Numbers(device, 8), (6, 6)
    points, image = make.points(20, shape), make.complex(*shape).requires_grad_()
    before = points.clone()
    found = nufft(image, points, **FINE)
    points.zero_()
    found.sum().real.backward()
    assert distance(image.grad, exact_adjoint(torch.ones(20, device=device), before, shape)) < 1e-10
    points.requires_grad_()
    found = nufft(image, points, **FINE)
    with torch.no_grad():
        points.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.sum().real.backward()


@devices
def test_a_fixed_trajectory_is_planned_once(device, monkeypatch):
    make, shape, made = Numbers(device, 9), (6, 6), []
    monkeypatch.setattr(rt, "Plan", lambda *given, plan=rt.Plan, **named: made.append(1) or plan(*given, **named))
    points, image = make.points(20, shape), make.complex(*shape).requires_grad_()
    for _ in range(3):
        nufft_adjoint(nufft(image, points), points.clone(), shape).abs().sum().backward()
    assert len(made) == 1
    for _ in range(2 * rt._KEPT):
        nufft(image, make.points(20, shape))
    assert len(made) == 1 + 2 * rt._KEPT and len(rt._plans) == rt._KEPT


@devices
def test_threads_share_the_plans(device):
    make, shape, wrong = Numbers(device, 10), (6, 6), []
    image = make.complex(*shape)
    cases = [(points := make.points(20, shape), exact(image, points, shape)) for _ in range(rt._KEPT + 2)]

    def work(start):
        for turn in range(60):
            points, expected = cases[(start * 3 + turn) % len(cases)]
            if not distance(nufft(image, points, eps=1e-9), expected) < 1e-8:
                wrong.append(turn)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def child(queue, image, points):
    queue.put(nufft(torch.from_numpy(image), torch.from_numpy(points)).numpy())


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch forbids forks once it has used a GPU")
def test_a_forked_process_makes_its_own_plans():
    make, shape = Numbers("cpu", 11), (6, 6)
    points, image = make.points(20, shape), make.complex(*shape)
    expected = nufft(image, points).numpy()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue, image.numpy(), points.numpy()))
    process.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected)
    process.join()


def sense_case(device, shape, lead, seed=12):
    make = Numbers(device, shape, seed)
    points, image, maps = make.points(15, shape), make.complex(*lead, *shape), make.complex(3, *shape)
    field_map, times = make.real(*shape, low=-150, high=90), make.real(15, low=-0.002, high=0.009)
    return image, maps, points, field_map, times


def exact_sense(image, maps, points, field_map=None, times=None):
    shape = maps.shape[1:]
    return exact(maps * image.unsqueeze(-1 - len(shape)), points, shape, field_map=field_map, times=times)


@devices
@pytest.mark.parametrize("shape", [(9,), (4, 5), (3, 4, 2)], ids=str)
@pytest.mark.parametrize("lead", [(), (2, 2)], ids=str)
@pytest.mark.parametrize("off", [False, True])
def test_sense_and_its_gradients_are_those_of_the_exact_sum(device, shape, lead, off):
    image, maps, points, field_map, times = sense_case(device, shape, lead)
    given = (image, maps, points, field_map) if off else (image, maps, points)
    named = {"times": times} if off else {}
    expected = exact_sense(*given, *named.values())
    found = sense(*given[:3], field_map=field_map if off else None, eps=1e-11, **named)
    assert found.shape == (*lead, 3, 15) and distance(found, expected) < 1e-9
    weights = Numbers(device, 13).complex(*expected.shape)
    ours = slopes(lambda f, c, k, *b: sense(f, c, k, field_map=b[0] if b else None, eps=1e-11, **named), given, weights)
    plain = slopes(lambda f, c, k, *b: exact_sense(f, c, k, *b, *named.values()), given, weights)
    for a, b in zip(ours, plain):
        assert a.shape == b.shape and distance(a, b) < 1e-8
    # <A x, y> = <x, A* y>.
    back = sense_adjoint(weights, *given[1:3], field_map=field_map if off else None, eps=1e-11, **named)
    inner = (weights.conj() * found).sum()
    assert back.shape == image.shape and abs(inner - (back.conj() * image).sum()) < 1e-10 * abs(inner)
    assert distance(back, ours[0]) < 1e-9


@devices
def test_sense_passes_gradcheck(device):
    image, maps, points, field_map, times = sense_case(device, (3, 2), (2,))
    maps, points, times = maps[:2].clone(), points[:4].clone(), times[:4] / 10
    given = tuple(one.requires_grad_() for one in (image, maps, points, field_map))
    off = lambda f, c, k, b: sense(f, c, k, field_map=b, times=times, **FINE)
    assert torch.autograd.gradcheck(off, given, nondet_tol=ROUNDING[device])
    assert torch.autograd.gradgradcheck(off, given, nondet_tol=ROUNDING[device], fast_mode=True)
    samples = Numbers(device, 14).complex(2, 2, 4).requires_grad_()
    back = lambda d, c, k, b: sense_adjoint(d, c, k, field_map=b, times=times, **FINE)
    assert torch.autograd.gradcheck(back, (samples, *given[1:]), nondet_tol=ROUNDING[device])


@devices
@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("hertz,seconds", [(0, 0.01), (50, 0), (1, 0.001), (100, 0.01), (400, 0.03), (2000, 0.05)])
def test_the_field_s_factor_is_within_eps(device, eps, hertz, seconds):
    make = Numbers(device, 15)
    field_map, times = make.real(300, low=-hertz, high=hertz / 3), make.real(200, low=0.02, high=0.02 + seconds)
    maps, points = torch.ones(1, 300, dtype=torch.complex128, device=device), make.points(200, (300,))
    parts = list(rt._segments(field_map, times, maps, points, eps))
    found = sum(weights[:, None] * phases for weights, phases in parts)
    expected = torch.exp(-2j * math.pi * times[:, None] * field_map)
    # The rounding of a phase of some thousand radians.
    assert float((found - expected).abs().max()) <= eps + 1e-11
    reach = math.pi / 2 * float(field_map.max() - field_map.min()) * float(times.max() - times.min())
    assert len(parts) <= 1.36 * reach + 3 - 3 * math.log10(eps)


@devices
def test_complex64_with_a_field_stays_within_its_tolerance(device):
    image, maps, points, field_map, times = sense_case(device, (12, 10), ())
    named = {"field_map": field_map.float(), "times": times.float()}
    found = sense(image.to(torch.complex64), maps.to(torch.complex64), points.float(), eps=1e-5, **named)
    expected = exact_sense(image, maps, points.float(), *named.values())
    assert found.dtype == torch.complex64 and distance(found, expected) < 4e-5


def test_wrong_arguments_are_refused_with_what_to_do():
    make, shape = Numbers("cpu", 16), (4, 5)
    image, points, samples = make.complex(*shape), make.points(9, shape), make.complex(9)
    maps, field_map, times = make.complex(2, *shape), make.real(*shape), make.real(9)
    off = lambda **named: sense(image, maps, points, **{"field_map": field_map, "times": times, **named})
    for call, error, words in [
        (lambda: nufft(image.real, points), TypeError, "image: expected complex64 or complex128"),
        (lambda: nufft(image, points.to(torch.complex64)), TypeError, "points: expected float32"),
        (lambda: nufft(image, points.half()), TypeError, "points: expected float32"),
        (lambda: nufft(image, points[:, 0]), ValueError, r"points: expected \[sample, dim\]"),
        (lambda: nufft(image, torch.zeros(3, 4)), ValueError, "1 to 3 components"),
        (lambda: nufft(image[0], points), ValueError, "image: expected 2 axes"),
        (lambda: nufft(image, points * math.nan), ValueError, "finite"),
        (lambda: nufft(image.to(torch.complex64), points, eps=1e-9), ValueError, "eps: expected"),
        (lambda: nufft_adjoint(samples[:8], points, shape), ValueError, "samples: expected"),
        (lambda: nufft_adjoint(samples, points, (4, 5, 6)), ValueError, "shape: expected 2 axes"),
        (lambda: sense(image, maps.to(torch.complex64), points), TypeError, "image: expected torch.complex64"),
        (lambda: sense(image, maps[0], points), ValueError, "maps: expected"),
        (lambda: sense(image[:3], maps, points), ValueError, "image: expected the axes"),
        (lambda: sense_adjoint(samples, maps, points), ValueError, "samples: expected"),
        (lambda: off(times=None), ValueError, "both or neither"),
        (lambda: off(times=times[:3]), ValueError, "times: expected"),
        (lambda: off(times=times.requires_grad_()), ValueError, "no gradient for times"),
        (lambda: off(field_map=field_map[0], times=times.detach()), ValueError, "field_map: expected"),
        (lambda: off(field_map=field_map * math.inf, times=times.detach()), ValueError, "finite"),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert nufft(image, points[:0]).shape == (0,)


@pytest.mark.parametrize("device", DEVICES)
def test_operators_and_projectors_have_gradients(device):
    rays = ct.Geometry.cone(np.linspace(0, 6, 4), 3, 7, 2.0, source_to_axis_mm=50, axis_to_detector_mm=50)
    grid = ct.Grid((3, 5, 6), 1.0)
    if device == "cpu":
        project = ct.Projector(rays, grid, device=device, dtype="float64").operator
        volume = torch.rand(3, 5, 6, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: apply(project, x), volume)
        assert torch.autograd.gradgradcheck(lambda x: apply(project, x), volume)
        twice = 2j * linop.fft((4, 3), dtype="complex128", device=device)
        image = torch.rand(4, 3, dtype=torch.complex128, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: apply(twice, x), image)
    project = ct.Projector(rays, grid, device=device).operator
    volume = torch.rand(3, 5, 6, device=device, requires_grad=True)
    lines = apply(project, volume)
    weights = torch.rand_like(lines)
    (lines * weights).sum().backward()
    assert volume.grad.device == volume.device
    assert torch.allclose(volume.grad, project.H(weights), atol=1e-5)
