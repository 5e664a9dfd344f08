"""Rayspin as a backend of mri-nufft: after `import rayspin.mrinufft`, `mrinufft.get_operator("rayspin")` finds it.

    op        y(b, c, k) = s sum_x c(x) image(b, x) exp(-i w(k).x)
    adj_op    image(b, x) = s sum_c conj(c(x)) sum_k density(k) y(b, c, k) exp(+i w(k).x)

with s = 1 / sqrt(2^dim prod(shape)), points w in radians per pixel and pixels x from -(n // 2). These are mri-nufft's conventions: the
first component of a point belongs to the first axis of the image. They are not those of `rayspin.torch`.

>>> import numpy as np
>>> import mrinufft
>>> import rayspin.mrinufft
>>> points = np.random.default_rng(1).uniform(-np.pi, np.pi, (100, 2)).astype(np.float32)
>>> operator = mrinufft.get_operator("rayspin")(points, (16, 16), n_coils=3, device="cpu")
>>> operator.op(np.ones((3, 16, 16), np.complex64)).shape
(3, 100)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

try:
    from mrinufft._utils import proper_trajectory  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from mrinufft.operators.base import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        FourierOperatorBase,
    )
except ImportError as error:
    raise ImportError("rayspin.mrinufft needs mri-nufft: pip install mri-nufft") from error

from .nufft import Plan

__all__ = ["MRIRayspin"]


class MRIRayspin(FourierOperatorBase):  # type: ignore[misc, unused-ignore]
    """The Fourier operator of mri-nufft over a `rayspin.nufft.Plan`.

    samples: points `[..., dim]` in radians per pixel; points within -0.5 to 0.5 are taken as cycles per pixel, with a warning. float32
        points make an operator of complex64, float64 points one of complex128.
    shape: the image's axes.
    density: weights `[sample]`, or what `compute_density` takes: True, the name of a method, a dictionary or a function.
    n_coils, n_batchs: the axes before the image's, and before the samples'.
    n_trans: for code that gives it; all coils of an image are transformed at once.
    smaps: sensitivities `[coil, *shape]`, or what `compute_smaps` takes.
    squeeze_dims: drop the axes of batches and coils where they have one element. Automatic differentiation wants False.
    eps: the relative tolerance of the transforms.
    device: "auto", "cpu", "cuda" or "cuda:1".

    Data are arrays of NumPy, CuPy or torch; results are of the same library and device. Arrays of another device than the operator's
    are copied there and back. Sensitivities and weights are copied to the data's library and device once: set them again after
    a change in place. Raises TypeError for other points, and ValueError for shapes that do not fit.
    """

    backend = "rayspin"
    available = True
    autograd_available = True

    def __init__(
        self,
        samples: Any,
        shape: Sequence[int],
        density: Any = False,
        n_coils: int = 1,
        n_batchs: int = 1,
        n_trans: int = 1,
        smaps: Any = None,
        squeeze_dims: bool = True,
        *,
        eps: float = 1e-6,
        device: str = "auto",
    ) -> None:
        super().__init__()
        self.shape = shape
        self.n_coils, self.n_batchs, self.n_trans = n_coils, n_batchs, n_trans
        self.squeeze_dims = squeeze_dims
        self._copies: dict[tuple[str, str, str], Any] = {}
        self._mirrored = False
        self.dtype = _dtype(samples)
        if self.dtype.name not in ("float32", "float64"):
            raise TypeError(f"samples: expected float32 or float64, found {self.dtype.name}")
        self._plan = Plan(2, self.shape, eps=eps, dtype=self.cpx_dtype.name, device=device)
        self._set_points(samples, unsafe=False)
        self.compute_density(density)
        self.compute_smaps(smaps)

    def op(self, data: Any) -> Any:
        """Samples `[batch, coil, sample]` of images `[batch, coil, *shape]`, with one coil where there are sensitivities."""
        self.check_shape(image=data)
        return self._apply(self._forward, data, (self.n_samples,))

    def adj_op(self, coeffs: Any) -> Any:
        """Images `[batch, coil, *shape]` of samples `[batch, coil, sample]`, with one coil where there are sensitivities."""
        self.check_shape(ksp=coeffs)
        return self._apply(self._adjoint, coeffs, self.shape)

    def data_consistency(self, image_data: Any, obs_data: Any) -> Any:
        """The slope of the weighted |op(x) - y|^2 / 2: adj_op(op(x) - y)."""
        found = self.op(image_data)
        return self.adj_op(found - _beside(obs_data, found).reshape(found.shape))

    def update_samples(self, new_samples: Any, *, unsafe: bool = False) -> None:
        """Takes other points, `[..., dim]`; `unsafe` takes them as radians without a look.

        The density is estimated again where a method made it, and dropped where it was an array, as in mri-nufft's backends.
        """
        self._set_points(new_samples, unsafe)
        self.compute_density(self._density_method)

    def compute_density(self, method: Any = None) -> None:
        """Sets the density: weights `[sample]` of any library, or what mri-nufft's operators take. True and "pipe" mean `pipe`."""
        self._forget("density")
        if hasattr(method, "shape"):
            self.density = method
            return
        if method is True or method == "pipe":
            method = {"name": "pipe"}
        if isinstance(method, dict) and method.get("name") == "pipe" and "backend" not in method:
            method = {"device": self._plan.device, **method}
        super().compute_density(method)

    def compute_smaps(self, method: Any = None) -> None:
        """Sets the sensitivities: `[coil, *shape]` of any library, or what mri-nufft's operators take."""
        if hasattr(method, "shape"):
            self.smaps = method
        else:
            super().compute_smaps(method)

    @property
    def smaps(self) -> Any:
        """The sensitivities `[coil, *shape]`, or None."""
        return self._smaps

    @smaps.setter
    def smaps(self, maps: Any) -> None:
        self._forget("smaps")
        if maps is not None:
            if tuple(maps.shape[1:]) != self.shape:
                raise ValueError(f"smaps: expected [coil, {self.shape}], found {tuple(maps.shape)}")
            self.n_coils = maps.shape[0]
        self._smaps = maps

    @property
    def density(self) -> Any:
        """The weights `[sample]`, or None."""
        return self._density

    @density.setter
    def density(self, weights: Any) -> None:
        self._forget("density")
        if weights is not None and tuple(weights.shape) != (self.n_samples,):
            raise ValueError(f"density: expected [{self.n_samples}], found {tuple(weights.shape)}")
        self._density = weights

    @contextmanager
    def grad_traj_plan(self) -> Iterator[None]:
        """Within it, `op` has the other sign and conjugate sensitivities: mri-nufft's slope of `adj_op` over points wants that."""
        self.toggle_grad_traj()
        try:
            yield
        finally:
            self.toggle_grad_traj()

    def toggle_grad_traj(self) -> None:
        """Enters or leaves `grad_traj_plan`."""
        self._mirrored = not self._mirrored

    @classmethod
    def pipe(
        cls,
        kspace_loc: Any,
        volume_shape: Sequence[int],
        max_iter: int = 10,
        osf: float = 2,
        normalize: bool = True,
        **named: Any,
    ) -> Any:
        """Weights by the iterations of Pipe and Menon: w <- w / |A T A* w|, from w = 1.

        A is the transform of a grid of `osf` times the shape. T is a triangle on each of its axes, so A T A* is a convolution with a
        product of squared sincs, which are not negative. With `normalize`, A* w A of a constant image of `volume_shape` has mean 1.
        The other arguments are the operator's.

        Source: Pipe, Menon, "Sampling density compensation in MRI", Magn Reson Med 41 (1999) 179-186.
        """
        grid = tuple(max(1, round(osf * n)) for n in volume_shape)
        wide = cls(kspace_loc, grid, **named)
        window = np.ones((), wide.dtype)
        for n in grid:
            window = window[..., None] * (1 - np.abs(np.arange(n) - n // 2) / (n / 2)).astype(wide.dtype)
        weights = _beside(np.ones(wide.n_samples, wide.cpx_dtype), kspace_loc)
        window = _beside(window, weights)
        for _ in range(max_iter):
            weights = weights / abs(wide.op(window * wide.adj_op(weights)))
        weights = weights.real
        if normalize:
            narrow = cls(kspace_loc, volume_shape, density=weights, **named)
            ones = _beside(np.ones(narrow.shape, narrow.cpx_dtype), weights)
            weights = weights / abs(narrow.adj_op(narrow.op(ones))).mean()
        return weights

    def _set_points(self, samples: Any, unsafe: bool) -> None:
        if not unsafe:
            samples = proper_trajectory(samples, normalize="pi")
        # Points on a GPU stay there, since mri-nufft wants them beside the data for the gradient over points.
        samples = _ready(samples if _on_gpu(samples) else _beside(samples, np.empty(0)), self.dtype.name)
        if samples.shape[-1] != self.ndim:
            raise ValueError(f"samples: expected {self.ndim} components a point, found {samples.shape[-1]}")
        self._plan.setpts(*(_ready(samples[:, axis], self.dtype.name) for axis in range(self.ndim)))
        self._samples = samples

    def _apply(self, transform: Callable[[Any], Any], data: Any, axes: Sequence[int]) -> Any:
        """The transform of data where the plan can read them, with the axes and the place that the caller expects."""
        away = _on_gpu(data) and self._plan.device == "cpu"
        ready = _ready(_beside(data, np.empty(0)) if away else data, self.cpx_dtype.name)
        if self._mirrored:
            ready = _ready(transform(_ready(ready.conj(), self.cpx_dtype.name)).conj(), self.cpx_dtype.name)
        else:
            ready = transform(ready)
        ready /= float(self.norm_factor)
        lead = ready.shape[: ready.ndim - len(axes)]
        if self.squeeze_dims:
            ready = ready.reshape([n for n in lead if n != 1] + list(axes))
        return _beside(ready, data) if away else ready

    def _forward(self, images: Any) -> Any:
        if not self.uses_sense:
            return self._plan.execute(images.reshape(self.n_batchs, self.n_coils, *self.shape))
        maps = self._copy("smaps", images, self.cpx_dtype.name)
        # One batch at a time, so the images of coils need no more memory than the sensitivities.
        batches = images.reshape(self.n_batchs, *self.shape)
        return _library(images).stack([self._plan.execute(maps * image) for image in batches])

    def _adjoint(self, samples: Any) -> Any:
        samples = samples.reshape(self.n_batchs, self.n_coils, self.n_samples)
        if self.uses_density:
            samples = samples * self._copy("density", samples, self.dtype.name)
        if not self.uses_sense:
            return self._plan.execute_adjoint(samples)
        maps = self._copy("smaps", samples, self.cpx_dtype.name).conj()
        coils = (maps * self._plan.execute_adjoint(batch) for batch in samples)
        return _library(samples).stack([images.sum(0)[None] for images in coils])

    def _copy(self, name: str, data: Any, dtype: str) -> Any:
        """The sensitivities or weights in the library and on the device of data."""
        key = (name, _library(data).__name__, str(getattr(data, "device", "cpu")))
        if key not in self._copies:
            self._copies[key] = _ready(_beside(getattr(self, "_" + name), data), dtype)
        return self._copies[key]

    def _forget(self, name: str) -> None:
        self._copies = {key: copy for key, copy in self._copies.items() if key[0] != name}


def _library(array: Any) -> Any:
    """The module that an array belongs to: numpy, cupy or torch."""
    for one in type(array).__mro__:
        name = one.__module__.partition(".")[0]
        if name in ("numpy", "cupy", "torch"):
            return sys.modules[name]
    raise TypeError(f"expected an array of numpy, cupy or torch, found {type(array).__name__}")


def _dtype(array: Any) -> np.dtype[Any]:
    return np.dtype(str(array.dtype).removeprefix("torch."))


def _on_gpu(array: Any) -> bool:
    name = _library(array).__name__
    return name == "cupy" or (name == "torch" and bool(array.is_cuda))


def _ready(array: Any, dtype: str) -> Any:
    """The numbers in C order and of this element type."""
    library = _library(array)
    if library.__name__ != "torch":
        return library.ascontiguousarray(array, dtype=dtype)
    plain = array.detach().to(getattr(library, dtype))
    return plain.resolve_conj().resolve_neg().contiguous()


def _beside(array: Any, like: Any) -> Any:
    """The array in the library and on the device of another."""
    source, target = _library(array).__name__, _library(like).__name__
    if source == "torch":
        array = array.detach().resolve_conj().resolve_neg()
        if target == "numpy" or not array.is_cuda:
            array = array.cpu().numpy()
    elif source == "numpy":
        array = np.ascontiguousarray(array)
    elif target == "numpy":
        array = array.get()
    if target == "torch":
        return _library(like).as_tensor(array, device=like.device)
    return array if target == "numpy" else _library(like).asarray(array)
