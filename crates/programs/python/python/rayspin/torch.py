"""Transforms of MRI for PyTorch, with gradients for images, sensitivities, trajectories and field maps.

    nufft           d(k) = sum_x image(x) exp(-i 2 pi k.x)                       image to samples
    nufft_adjoint   image(x) = sum_k d(k) exp(+i 2 pi k.x)                       samples to image
    sense           d(c, k) = sum_x c(x) image(x) exp(-i 2 pi (f(x) t + k.x))    image to samples of all coils
    apply           A x                                                          any operator of rayspin.linop

Images are `[..., z, y, x]` (2-D `[..., y, x]`), points `[sample, dim]` with the components x, y, z in cycles per field of view
(-n/2 to n/2). The position of index i on an axis of n pixels is x = (i - n // 2) / n. Nothing is scaled. `rayspin.nufft.Plan` has
other units: radians, and the first axis of the array first.

Data are complex64 or complex128, on the CPU or an NVIDIA GPU, where the transform runs. Points are float32 or float64, anywhere. The
relative l2 error of a transform is about `eps`, and at most 3 eps. Every function can be differentiated again.

The last eight plans are kept. A call uses one again where its points equal the plan's points in every number, so a change of the
points in place is never missed.

>>> import torch
>>> from rayspin.torch import nufft, nufft_adjoint
>>> points = torch.tensor([[0.0, 0.0], [1.5, -2.0]], requires_grad=True)
>>> samples = nufft(torch.ones(8, 8, dtype=torch.complex64), points)
>>> samples.shape
torch.Size([2])
>>> samples.abs().square().sum().backward()
>>> points.grad.shape
torch.Size([2, 2])
>>> nufft_adjoint(samples.detach(), points.detach(), (8, 8)).shape
torch.Size([8, 8])
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

try:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch import Tensor
except ImportError as error:
    raise ImportError("rayspin.torch needs PyTorch: pip install torch") from error

from .linop import LinearOperator
from .nufft import Plan

__all__ = ["apply", "nufft", "nufft_adjoint", "sense", "sense_adjoint"]

_KEPT = 8
_plans: list[tuple[tuple[Any, ...], Tensor, Plan]] = []


def nufft(image: Tensor, points: Tensor, *, eps: float = 1e-6) -> Tensor:
    """The non-uniform Fourier transform of an image (type 2): d(k) = sum_x image(x) exp(-i 2 pi k.x).

    image: complex `[..., z, y, x]`, with as many axes after the batch as points have components.
    points: `[sample, dim]`, the components x, y, z in cycles per field of view.
    eps: the tolerance, 1e-6 or more for complex64 and 1e-13 or more for complex128.

    Returns samples `[..., sample]` on the image's device. Raises TypeError for another element type and ValueError for another
    shape, points that are not finite, or a tolerance out of range.

    >>> image = torch.zeros(4, 5, dtype=torch.complex128)
    >>> image[2, 2] = 3  # the centre
    >>> torch.allclose(nufft(image, torch.rand(7, 2)), torch.tensor(3 + 0j, dtype=torch.complex128), atol=1e-4)
    True
    """
    dims = _dims(points)
    _expect_complex("image", image)
    if image.ndim < dims:
        raise ValueError(f"image: expected {dims} axes or more for points of {dims} components, found {image.ndim}")
    return _forward(image, points, _plan(points, image.shape[image.ndim - dims :], image, eps))


def nufft_adjoint(samples: Tensor, points: Tensor, shape: Sequence[int], *, eps: float = 1e-6) -> Tensor:
    """The adjoint of `nufft` (type 1): image(x) = sum_k d(k) exp(+i 2 pi k.x).

    samples: complex `[..., sample]`.
    points: `[sample, dim]`, the components x, y, z in cycles per field of view.
    shape: the image's axes, (z, y, x), as many as points have components.
    eps: the tolerance, as for `nufft`.

    Returns images `[..., z, y, x]` on the samples' device. Raises as `nufft` does.

    >>> nufft_adjoint(torch.ones(1, dtype=torch.complex64), torch.zeros(1, 1), (3,)).real.round()
    tensor([1., 1., 1.])
    """
    dims = _dims(points)
    _expect_samples(samples, points)
    if len(shape) != dims:
        raise ValueError(f"shape: expected {dims} axes for points of {dims} components, found {len(shape)}")
    return _adjoint(samples, points, _plan(points, shape, samples, eps))


def sense(
    image: Tensor,
    maps: Tensor,
    points: Tensor,
    *,
    field_map: Tensor | None = None,
    times: Tensor | None = None,
    eps: float = 1e-6,
) -> Tensor:
    """Samples of all coils: d(c, k) = sum_x c(x) image(x) exp(-i 2 pi f(x) t(k)) exp(-i 2 pi k.x).

    image: complex `[..., z, y, x]`.
    maps: the coils' sensitivities c, `[coil, z, y, x]`, of the image's element type.
    points: `[sample, dim]`, the components x, y, z in cycles per field of view.
    field_map: f, the field's deviation from the receiver's frequency in Hz, `[z, y, x]`. Give it with `times`, or neither.
    times: the time t of each sample in s, `[sample]`. There is no gradient for times.
    eps: the tolerance of the transforms, and of the factor of the field.

    Returns samples `[..., coil, sample]`. Raises as `nufft` does, and ValueError for `times` that require a gradient.

    With a field map, exp(-i 2 pi f t) is interpolated between Chebyshev nodes in time, with an error of at most `eps` at each pixel
    and time besides rounding. So a sample is wrong by at most eps sum |c image|, besides the transforms' error. The gradient for the
    field map is the gradient of that sum. L nodes cost L transforms of all coils; L is about (pi / 2) F T and some more, where F is the
    range of the field map in Hz and T the range of the times in s. For the gradient, L images are kept, and those of all coils where points
    want one.

    >>> image, maps = torch.ones(4, 4, dtype=torch.complex64), torch.ones(3, 4, 4, dtype=torch.complex64)
    >>> sense(image, maps, torch.zeros(5, 2)).shape
    torch.Size([3, 5])
    """
    dims = _expect_maps(maps, points)
    _expect_complex("image", image, maps)
    if image.shape[-dims:] != maps.shape[1:]:
        raise ValueError(f"image: expected the axes {list(maps.shape[1:])} of the maps, found {list(image.shape)}")
    plan = _plan(points, maps.shape[1:], image, eps)
    if field_map is None and times is None:
        return _forward(maps * image.unsqueeze(-1 - dims), points, plan)
    samples: Tensor | None = None
    for weights, phases in _segments(field_map, times, maps, points, eps):
        part = weights * _forward(maps * (phases * image).unsqueeze(-1 - dims), points, plan)
        samples = part if samples is None else samples + part
    assert samples is not None
    return samples


def sense_adjoint(
    samples: Tensor,
    maps: Tensor,
    points: Tensor,
    *,
    field_map: Tensor | None = None,
    times: Tensor | None = None,
    eps: float = 1e-6,
) -> Tensor:
    """The adjoint of `sense`: image(x) = sum_c conj(c(x)) sum_k d(c, k) exp(+i 2 pi f(x) t(k)) exp(+i 2 pi k.x).

    samples: complex `[..., coil, sample]`. The rest is as for `sense`.

    Returns images `[..., z, y, x]`.

    >>> samples, maps = torch.ones(3, 5, dtype=torch.complex64), torch.ones(3, 4, 4, dtype=torch.complex64)
    >>> sense_adjoint(samples, maps, torch.zeros(5, 2)).shape
    torch.Size([4, 4])
    """
    dims = _expect_maps(maps, points)
    _expect_samples(samples, points, maps)
    if samples.ndim < 2 or samples.shape[-2] != maps.shape[0]:
        raise ValueError(f"samples: expected [..., {maps.shape[0]} coils, sample], found {list(samples.shape)}")
    plan = _plan(points, maps.shape[1:], samples, eps)
    if field_map is None and times is None:
        return (maps.conj() * _adjoint(samples, points, plan)).sum(-1 - dims)
    image: Tensor | None = None
    for weights, phases in _segments(field_map, times, maps, points, eps):
        coils = _adjoint(weights.conj() * samples, points, plan)
        part = phases.conj() * (maps.conj() * coils).sum(-1 - dims)
        image = part if image is None else image + part
    assert image is not None
    return image


def apply(operator: LinearOperator, x: Tensor) -> Tensor:
    """Any linear operator A of `rayspin.linop`, a projector's (`rayspin.ct.Projector(...).operator`) too: A x, with the gradient A.H g.

    x: a tensor of the operator's shape, element type and device. Returns a tensor. Can be differentiated again. Raises as A does.

    >>> from rayspin import linop
    >>> differences = linop.differences((4,), dtype="float32", device="cpu")
    >>> x = torch.tensor([0.0, 1.0, 3.0, 3.0], requires_grad=True)
    >>> apply(differences, x).square().sum().backward()
    >>> x.grad
    tensor([-2., -2.,  4.,  0.])
    """
    applied: Tensor = _Apply.apply(x, operator)  # type: ignore[no-untyped-call, unused-ignore]
    return applied


class _Apply(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    @staticmethod
    def forward(ctx: Any, x: Tensor, operator: LinearOperator) -> Tensor:
        ctx.operator = operator
        applied: Tensor = operator(_plain(x))
        return applied

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:  # type: ignore[override, unused-ignore]
        return apply(ctx.operator.H, slope), None


class _Forward(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    @staticmethod
    def forward(ctx: Any, image: Tensor, points: Tensor | None, plan: Plan) -> Tensor:
        ctx.plan = plan
        ctx.save_for_backward(*((image, points) if ctx.needs_input_grad[1] else (None, None)))
        samples: Tensor = plan.execute(_plain(image))
        return samples

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[override, unused-ignore]
        image, points = ctx.saved_tensors
        to_image = _adjoint(slope, points, ctx.plan) if ctx.needs_input_grad[0] else None
        to_points = _to_points(slope, image, points, ctx.plan) if ctx.needs_input_grad[1] else None
        return to_image, to_points, None


class _Adjoint(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    @staticmethod
    def forward(ctx: Any, samples: Tensor, points: Tensor | None, plan: Plan) -> Tensor:
        ctx.plan = plan
        ctx.save_for_backward(*((samples, points) if ctx.needs_input_grad[1] else (None, None)))
        image: Tensor = plan.execute_adjoint(_plain(samples))
        return image

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[override, unused-ignore]
        samples, points = ctx.saved_tensors
        to_samples = _forward(slope, points, ctx.plan) if ctx.needs_input_grad[0] else None
        to_points = _to_points(samples, slope, points, ctx.plan) if ctx.needs_input_grad[1] else None
        return to_samples, to_points, None


def _forward(image: Tensor, points: Tensor | None, plan: Plan) -> Tensor:
    samples: Tensor = _Forward.apply(image, points, plan)  # type: ignore[no-untyped-call, unused-ignore]
    return samples


def _adjoint(samples: Tensor, points: Tensor | None, plan: Plan) -> Tensor:
    image: Tensor = _Adjoint.apply(samples, points, plan)  # type: ignore[no-untyped-call, unused-ignore]
    return image


def _to_points(samples: Tensor, image: Tensor, points: Tensor, plan: Plan) -> Tensor:
    """The slope of Re <samples, F image> over the points: 2 pi Im(conj(d) F(x_a image)) for each component a."""
    components = []
    for component, n in enumerate(reversed(plan.n_modes)):
        position = (torch.arange(n, device=image.device, dtype=image.real.dtype) - n // 2) / n
        moved = _forward(position.reshape(n, *[1] * component) * image, points, plan)
        components.append((samples.conj() * moved).imag.reshape(-1, len(points)).sum(0))
    return (2 * math.pi * torch.stack(components, 1)).to(points)


def _segments(
    field_map: Tensor | None, times: Tensor | None, maps: Tensor, points: Tensor, eps: float
) -> Iterator[tuple[Tensor, Tensor]]:
    """Weights `[sample]` and phases `[z, y, x]` with exp(-i 2 pi f(x) t(k)) = sum weights(k) phases(x), within eps."""
    if field_map is None or times is None:
        raise ValueError("field_map, times: expected both or neither, found one")
    if field_map.is_complex() or field_map.shape != maps.shape[1:]:
        raise ValueError(f"field_map: expected real numbers {list(maps.shape[1:])}, found {list(field_map.shape)}")
    if times.is_complex() or times.shape != points.shape[:1]:
        raise ValueError(f"times: expected real numbers [{len(points)}], one a sample, found {list(times.shape)}")
    if times.requires_grad:
        raise ValueError("times: there is no gradient for times; pass times.detach()")
    # Phases are large numbers of radians: float64 until they are factors.
    field, times = field_map.to(maps.device, torch.float64), times.to(maps.device, torch.float64)
    (low, high), (first, last) = ((float(end) for end in torch.aminmax(values.detach())) for values in (field, times))
    middle, centre, half = (low + high) / 2, (first + last) / 2, (last - first) / 2
    reach = math.pi * (high - low) * half
    if not math.isfinite(reach):
        raise ValueError("field_map, times: expected finite numbers")
    count = _nodes(reach, eps)
    order = torch.arange(count, device=maps.device, dtype=torch.float64)
    nodes = math.pi * (order + 0.5) / count
    # The Lagrange polynomial of a node is a sum of Chebyshev polynomials, and T_m(cos a) = cos(m a).
    angles = torch.acos(((times - centre) / (half or 1.0)).clamp(-1, 1))
    polynomials = torch.cos(order[:, None] * angles)
    polynomials[1:] *= 2
    shared = torch.polar(torch.ones_like(times), -2 * math.pi * middle * times)
    for node in nodes.tolist():
        weights = (torch.cos(order * node) @ polynomials / count) * shared
        turns = (field - middle) * (centre + half * math.cos(node))
        phases = torch.polar(torch.ones_like(turns), -2 * math.pi * turns)
        yield weights.to(maps.dtype), phases.to(maps.dtype)


def _nodes(reach: float, eps: float) -> int:
    """How many Chebyshev nodes interpolate exp(-i reach s) on -1 <= s <= 1 within eps.

    The error of n nodes is at most 4 sum_{k >= n} |J_k(reach)|. With |J_k(z)| <= (z / 2)^k / k!, whose terms at least halve from
    k = z on, that is at most 8 (z / 2)^n / n!.
    """
    count = 1
    while reach > 0 and (
        count < reach or math.log(8 / eps) + count * math.log(reach / 2) > math.lgamma(count + 1)
    ):
        count += 1
    return count


def _plan(points: Tensor, shape: Sequence[int], data: Tensor, eps: float) -> Plan:
    """The plan of these points, a kept one where all its points are equal. A plan's points never change, so graphs may hold it."""
    points, shape = points.detach(), tuple(shape)
    # A forked process cannot use its parent's plans.
    key = (os.getpid(), shape, data.dtype, data.device, eps, points.dtype, points.device, points.shape)
    entry = next((kept for kept in _plans if kept[0] == key and torch.equal(kept[1], points)), None)
    if entry is None:
        plan = Plan(2, shape, eps=eps, dtype=str(data.dtype).removeprefix("torch."), device=str(data.device))
        # A plan's first component belongs to the first axis and is in radians per pixel.
        components = reversed(points.to(torch.float64).unbind(1))
        plan.setpts(*(2 * math.pi / n * component for n, component in zip(shape, components, strict=True)))
        entry = (key, points.clone(), plan)
    _plans[:] = [entry, *(kept for kept in _plans if kept is not entry)][:_KEPT]
    return entry[2]


def _plain(data: Tensor) -> Tensor:
    """The numbers in C order, as memory has them."""
    return data.detach().resolve_conj().resolve_neg().contiguous()


def _dims(points: Tensor) -> int:
    if points.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"points: expected float32 or float64, found {points.dtype}")
    if points.ndim != 2 or not 1 <= points.shape[1] <= 3:
        raise ValueError(f"points: expected [sample, dim] with 1 to 3 components, found {list(points.shape)}")
    return int(points.shape[1])


def _expect_complex(what: str, data: Tensor, like: Tensor | None = None) -> None:
    if data.dtype not in (torch.complex64, torch.complex128):
        raise TypeError(f"{what}: expected complex64 or complex128, found {data.dtype}; convert it with .to(torch.complex64)")
    if like is not None and data.dtype != like.dtype:
        raise TypeError(f"{what}: expected {like.dtype} as the maps, found {data.dtype}; convert one with .to()")


def _expect_samples(samples: Tensor, points: Tensor, maps: Tensor | None = None) -> None:
    _expect_complex("samples", samples, maps)
    if samples.ndim < 1 or samples.shape[-1] != len(points):
        raise ValueError(f"samples: expected [..., {len(points)}] for {len(points)} points, found {list(samples.shape)}")


def _expect_maps(maps: Tensor, points: Tensor) -> int:
    dims = _dims(points)
    _expect_complex("maps", maps)
    if maps.ndim != dims + 1:
        raise ValueError(f"maps: expected [coil, ...] with {dims} axes after the coils, found {list(maps.shape)}")
    return dims
