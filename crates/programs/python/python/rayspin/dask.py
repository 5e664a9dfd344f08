"""Reconstructions on a cluster of dask.distributed: many scans, the slices of one, and series as lazy arrays.

    batch       files to files: a task for each scan, which reads where it computes and writes there
    recon       one scan of many slices: a task for each group of slices
    series      the images of a series as a lazy dask.array or xarray.DataArray
    frames      the same of samples that are such arrays

    from distributed import Client
    import rayspin.dask

    with Client("tcp://scheduler:8786") as client:
        rows = rayspin.dask.batch("scans/*.h5", "out/{stem}.nii.gz", "cg-sense", client=client, iterations=15)

Workers need rayspin of the same version, and see files under the names that the caller uses. The first call settles each worker,
those that come later too. It computes on the card of its number on its host, or on the first that it sees where dask-cuda has ordered
them. It takes its share of the host's cores: all cores over the workers of the host. `device=` and the variable RAYSPIN_THREADS
override this. On the dashboard tasks are named after what they do: rayspin-batch, rayspin-recon, rayspin-series, rayspin-frames.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import inspect
import json
import math
import os
import queue
import re
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np

from . import _worker
from ._progress import listener
from ._rayspin import Reconstruction, Scan, plan_recon, recon_options
from ._types import Heard

try:
    _dask: Any = import_module("dask")
    _distributed: Any = import_module("distributed")
except ImportError as error:
    raise ImportError("rayspin.dask needs dask and its scheduler: pip install 'dask[distributed]'") from error

__all__ = ["batch", "frames", "recon", "series"]

_LOOK = 0.5
"""Seconds between two looks at the workers."""
_AHEAD = 4
# Times that a task waits for another process, or comes back from a worker without its card.
_WAITS = 50
"""Tasks that wait for each thread of the cluster. More only fill the scheduler's memory."""

Path = str | os.PathLike[str]


def batch(
    files: Path | Iterable[Path],
    out: str | Sequence[str],
    method: str | None = None,
    *,
    client: Any = None,
    kind: Literal["mri", "ct"] = "mri",
    device: str | None = None,
    retries: int = 2,
    timeout: float = 60.0,
    progress: Heard = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Reconstructs scans from files to files on a cluster: a task for each scan.

    files: names of scans, or patterns (`*` is any text, `**` any folders).
    out: the image of each scan; `{stem}` is the scan's name without its ending, `{folder}` its folder's name. Several names write
        several images.
    method, options: as `rayspin.recon` takes them, with kind="ct" as `rayspin.ct.recon` does.
    client: of dask.distributed; the default one unless given.
    device: the processor of every task; the worker's own unless given.
    retries: how often a scan is tried again after an error that another worker may not have: of a card, of memory, of the system. It
        is then tried on another worker, and a worker whose processor does not open gets no more scans.
    timeout: seconds without any worker after which the call ends.
    progress: a function f(stage, step, steps); True for a bar of tqdm; False for nothing.

    Images and records (image.json) appear whole or not at all, and of two tasks that would write one image, one does at a time: a
    task may run again. A scan is skipped where its record tells of the same files, call and version by their hashes, so the same call
    resumes a batch that was interrupted.

    Returns a list with a dictionary for each scan, sorted by name: "scan", "images", "result" ("reconstructed", "there before" or
    "failed"), "why" it failed, "seconds", "worker", and "files" with the names, lengths and hashes of what was written. Warns where
    scans failed. Raises ValueError for no scans and for two scans with one image, TimeoutError where the cluster has no workers, and
    TypeError for what is no client.

    >>> from distributed import Client  # doctest: +SKIP
    >>> rows = batch("scans/*.h5", "out/{stem}.nii.gz", "cg-sense", client=Client(), iterations=15)  # doctest: +SKIP
    """
    client = _settled(client)
    if kind not in ("mri", "ct"):
        raise ValueError(f'kind: expected "mri" or "ct", found {kind!r}')
    scans = _listed(files)
    images = _images(scans, [out] if isinstance(out, str) else list(out))
    options = _absolute(options, kind)
    said = json.dumps({name: _said(value) for name, value in sorted(options.items())})
    calls = []
    for scan, own in zip(scans, images, strict=True):
        command = ["rayspin.dask.batch", kind, scan, *own, str(method), said]
        calls.append((scan, own, kind, method, device, options, command, timeout))
    names = [os.path.basename(scan) for scan in scans]
    rows: list[dict[str, Any]] = []
    for row in _done(client, "batch", _worker.reconstruct, calls, names, retries, timeout, progress):
        if not isinstance(row, dict):
            row = {"scan": None, "images": [], "result": "failed", "why": str(row), "seconds": None, "files": [], "worker": None}
        rows.append({name: row[name] for name in ("scan", "images", "result", "why", "seconds", "files", "worker")})
    for row, scan, own in zip(rows, scans, images, strict=True):
        row.update(scan=scan, images=own)
    failed = [row for row in rows if row["result"] == "failed"]
    if failed:
        text = f"{len(failed)} of {len(rows)} scans failed, the first one {failed[0]['scan']}: {failed[0]['why']}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return rows


def recon(
    scan: Scan | Path,
    method: str | None = None,
    *,
    client: Any = None,
    parts: int | None = None,
    device: str | None = None,
    keep_maps: bool = True,
    retries: int = 2,
    timeout: float = 60.0,
    progress: Heard = None,
    **options: Any,
) -> Reconstruction:
    """The images of one scan of many slices, on a cluster: a task for each group of slices.

    scan, method, keep_maps, options: as `rayspin.recon` takes them. A path is read by the workers, each its own slices. A `Scan` goes
        to a worker once.
    parts: the number of groups; as many as the cluster has threads unless given.
    client, device, retries, timeout, progress: as of `batch`. `rayspin.recon` takes a client too, and no parts, retries and timeout.

    Slices are reconstructed apart from each other, so that the images are those of `rayspin.recon`: a weight that the noise of the
    scan tells is the same for all. A scan of one slice, a volume that is measured as one, and coils compressed to a part of the energy
    are one task. Slices are numbered from 0 on; name those of other scans by `slices=`.

    Returns a `Reconstruction`; its stages add up the seconds of all tasks. Raises as `rayspin.recon` does and TimeoutError where the
    cluster has no workers. Raises ValueError for lambda_="auto" of several slices, which would get different weights.
    """
    client = _settled(client)
    path = isinstance(scan, (str, os.PathLike))
    if isinstance(scan, (str, os.PathLike)):
        scan = os.path.abspath(scan)
    held = scan if path else client.scatter(scan)
    # Maps and other images go to a worker once, too, and not to the scheduler with each task.
    images = {name: value for name, value in options.items() if isinstance(value, np.ndarray) and value.ndim > 1}
    options = {**_absolute(options), **{name: client.scatter(value) for name, value in images.items()}}
    (plan,) = _results(client, _worker.plan, [(held, method, options)], ["plan"], retries, timeout, False)
    chosen = options.get("slices")
    # Each once: a slice of two groups would be there twice.
    numbers = sorted({int(number) for number in np.atleast_1d(range(plan["slices"]) if chosen is None else chosen)})
    threads = sum(worker["nthreads"] for worker in _workers(client).values())
    count = max(1, min(len(numbers), parts if parts is not None else threads))
    if plan["slices"] == 1 or plan["shape"] is None:
        count = 1
    coils = options.get("coils")
    if isinstance(coils, float) and coils < 1:
        # The first slice decides how many virtual coils hold this part of the energy.
        count = 1
    if count > 1 and isinstance(options.get("lambda_"), str):
        raise ValueError(
            'lambda_: expected a number, because workers compute slices apart, found "auto"; rayspin.dask.recon with parts=1, or '
            "rayspin.recon without a client, computes them together"
        )
    method = plan["method"]
    if count > 1:
        options = _worker.fixed(options, plan)
    calls: list[tuple[Any, ...]] = []
    for group in np.array_split(np.asarray(numbers), count):
        own = options if count == 1 else {**options, "slices": [int(number) for number in group]}
        calls.append((held, method, device, keep_maps, own))
    names = [f"slices {call[4]['slices'][0]} to {call[4]['slices'][-1]}" if count > 1 else "scan" for call in calls]
    found = _results(client, _worker.part, calls, names, retries, timeout, progress)
    return found[0] if count == 1 else _worker.joined(found, plan["notes"])


def _of_recon(
    scan: Scan | Path,
    method: str | None,
    client: Any,
    device: str,
    keep_maps: bool,
    progress: Heard,
    options: dict[str, Any],
) -> Reconstruction:
    """`rayspin.recon` with a client: it takes the same keywords as without one."""
    for name in inspect.signature(recon).parameters.keys() & options.keys():
        raise TypeError(f"{name}: rayspin.recon has no such keyword; rayspin.dask.recon has it")
    own = None if device == "auto" else device
    return recon(scan, method, client=client, device=own, keep_maps=keep_maps, progress=progress, **options)


def series(
    scan: Scan | Path,
    method: str | None = None,
    *,
    chunk: int = 1,
    device: str | None = None,
    maps: Any = None,
    xarray: bool = False,
    **options: Any,
) -> Any:
    """The images of a series as a lazy array: a block is reconstructed when it is needed, where dask computes it.

    scan, method, options: as `rayspin.recon` takes them: a scan of several repetitions, contrasts, cardiac phases or sets, or one
        with `window`. Files are read by the workers.
    chunk: volumes in a block.
    maps: sensitivities `[coil, z, y, x]` for all volumes. Unless given, a task estimates them from the first block, and all volumes
        take these; `independent=True` estimates them in each block.
    device: the processor; the worker's own unless given.
    xarray: whether to return an xarray.DataArray, whose coordinates are the counters of the volumes.

    A relative weight refers to the first volume of each block, in `rayspin.recon` to the first of the series: with windows over other
    readouts the weights differ as their largest eigenvalues do.

    Returns a dask.array `[volume, z, y, x]` of complex64, or an xarray.DataArray of it. Raises ValueError for a scan of one volume,
    for coil images and coefficients of a basis, and for methods that make all volumes together. Computing raises as
    `rayspin.recon` does.

    >>> images = series("beat.h5", "gridding", window=21)  # doctest: +SKIP
    >>> abs(images).mean(axis=0).compute()  # doctest: +SKIP
    """
    array: Any = import_module("dask.array")
    if isinstance(scan, (str, os.PathLike)):
        scan = os.path.abspath(scan)
    if chunk < 1:
        raise ValueError(f"chunk: expected a number of volumes from 1, found {chunk}")
    options = _absolute(options)
    plan = plan_recon(scan, method, device="cpu", **options)
    volumes, shape = plan["volumes"], plan["shape"]
    if len(volumes) < 2 or shape is None:
        raise ValueError("scan: expected a series of several volumes, found one image, coil images or coefficients of a basis")
    if plan["method"] in ("low-rank-sparse",):
        raise ValueError(f"method: expected one that makes volumes apart, found {plan['method']}, which makes them together")
    method, shape, options = plan["method"], tuple(shape[1:]), _worker.fixed(options, plan)
    groups = [range(start, min(start + chunk, len(volumes))) for start in range(0, len(volumes), chunk)]
    parts = [_part_of(options, volumes, group) for group in groups]
    token = _dask.base.tokenize(str(scan) if not isinstance(scan, str) else scan, method, chunk, maps, options, uuid.uuid4().hex)
    held = scan if isinstance(scan, str) else _dask.delayed(scan, pure=False, name=f"rayspin-scan-{token}")
    if maps is None and not options.get("independent"):
        task = _dask.delayed(_worker.maps_of, name=f"rayspin-maps-of-{token}", pure=False)
        maps = task(held, method, device, parts[0], dask_key_name=f"rayspin-maps-{token}")
    elif maps is not None:
        maps = _dask.delayed(np.asarray(maps), name=f"rayspin-given-maps-{token}")
    blocks = []
    task = _dask.delayed(_worker.frames, name=f"rayspin-frames-of-{token}", pure=False)
    for number, (group, own) in enumerate(zip(groups, parts, strict=True)):
        size = (len(group), *shape)
        block = task(held, method, device, size, maps, own, dask_key_name=("rayspin-series-" + token, number))
        blocks.append(array.from_delayed(block, shape=size, dtype=np.complex64, meta=np.empty((0,) * 4, np.complex64)))
    images = array.concatenate(blocks)
    if not xarray:
        return images
    named: Any = import_module("xarray")
    counters = {name: ("volume", [volume[name] for volume in volumes]) for name in volumes[0]}
    return named.DataArray(images, dims=("volume", "z", "y", "x"), coords=counters, name="image")


def frames(
    samples: Any,
    points: Any = None,
    method: str | None = None,
    *,
    shape: Sequence[int] | None = None,
    units: str | None = None,
    fov_mm: Sequence[float] | None = None,
    device: str | None = None,
    **options: Any,
) -> Any:
    """Images of samples that are lazy arrays: a frame is reconstructed when it is needed, where dask computes it.

    samples: a dask.array or xarray.DataArray, `[frame, coil, y, x]` or `[frame, coil, z, y, x]` on a grid, `[frame, coil, sample]` or
        `[frame, coil, spoke, readout]` along a trajectory. Blocks along the first axis stay; other axes become one block.
    points: the trajectory of all frames, as `Scan.from_arrays` takes it.
    shape, units, fov_mm: as `Scan.from_arrays` takes them; samples along a trajectory need the shape.
    method, options: as `rayspin.recon` takes them. The sensitivities of each frame are its own unless `maps` are given.
    device: the processor; the worker's own unless given.

    Returns `[frame, z, y, x]` of complex64, of the same library as the samples. Raises TypeError for samples of another library and
    ValueError for shapes that do not fit.
    """
    array: Any = import_module("dask.array")
    given = samples
    if hasattr(given, "dims") and hasattr(given, "data"):
        samples = given.data
    if not isinstance(samples, array.Array):
        raise TypeError(f"samples: expected a dask.array, or an xarray.DataArray of one, found {type(samples).__name__}")
    if samples.ndim < 3:
        raise ValueError(f"samples: expected [frame, coil, ...], found {samples.ndim} axes")
    if points is None and shape is None:
        shape = samples.shape[2:]
    if shape is None or not 2 <= len(shape) <= 3:
        raise ValueError("shape: expected (y, x) or (z, y, x), found none" if shape is None else f"shape: found {tuple(shape)}")
    image = (1,) * (3 - len(shape)) + tuple(int(size) for size in shape)
    made = {"shape": tuple(image[-len(shape) :]), "units": units, "fov_mm": fov_mm}
    made = {name: value for name, value in made.items() if value is not None}
    options = _absolute(options)
    one = samples.rechunk({axis: -1 for axis in range(1, samples.ndim)})
    images = one.map_blocks(
        _worker.of_arrays,
        None if points is None else np.asarray(points),
        method,
        device,
        made,
        options,
        dtype=np.complex64,
        chunks=(one.chunks[0], *((size,) for size in image)),
        drop_axis=list(range(1, one.ndim)),
        new_axis=[1, 2, 3],
        meta=np.empty((0,) * 4, np.complex64),
        name="rayspin-frames-" + uuid.uuid4().hex,
    )
    if given is samples:
        return images
    named: Any = import_module("xarray")
    first = given.dims[0]
    coords = {first: given.coords[first]} if first in given.coords else {}
    return named.DataArray(images, dims=(first, "z", "y", "x"), coords=coords, name="image")


def _part_of(options: dict[str, Any], volumes: list[dict[str, int]], group: range) -> dict[str, Any]:
    """The options that choose some volumes of a series."""
    window = options.get("window")
    if window is not None:
        stride = options.get("stride") or window
        if options.get("readouts") is not None:
            raise ValueError("readouts: expected none with window, found some")
        # The readouts of these windows, which are as many windows again.
        readouts = range(group[0] * stride, group[-1] * stride + window)
        return {**options, "readouts": list(readouts), "windows": len(group)}
    keywords = {"set": "sets", "cardiac_phase": "cardiac_phases", "repetition": "repetitions", "contrast": "contrasts"}
    chosen = [volumes[index] for index in group]
    varying = [name for name in keywords if len({volume[name] for volume in volumes}) > 1]
    picked = {name: sorted({volume[name] for volume in chosen}) for name in varying}
    if math.prod(len(numbers) for numbers in picked.values()) != len(chosen):
        raise ValueError("chunk: expected volumes of a block that differ in one counter, found more; chunk=1 takes them apart")
    return {**options, **{keywords[name]: numbers for name, numbers in picked.items()}}


def _absolute(options: dict[str, Any], kind: Literal["mri", "ct"] = "mri") -> dict[str, Any]:
    """The options with names of files that hold in every folder: a worker may run in another one."""
    rows = recon_options(kind)

    def is_file(name: str, value: Any) -> bool:
        takes = rows[name]["kind"] if name in rows else ""
        # Where arrays are taken, a text may be something else, such as basis="svd:2".
        named = takes == "path" or ("path" in takes and isinstance(value, str) and os.path.exists(value))
        return isinstance(value, os.PathLike) or (isinstance(value, str) and named)

    return {name: os.path.abspath(value) if is_file(name, value) else value for name, value in options.items()}


def _listed(files: Path | Iterable[Path]) -> list[str]:
    """The scans, each once, sorted, with names that hold in every folder."""
    names = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    scans = set()
    for name in names:
        text = os.path.abspath(os.fspath(name))
        found = [text] if os.path.exists(text) else glob.glob(text, recursive=True)
        if not found and not glob.has_magic(text):
            # A scan that is not there fails alone.
            found = [text]
        if not found:
            raise ValueError(f"files: expected scans, found none of {os.fspath(name)}")
        scans.update(found)
    if not scans:
        raise ValueError("files: expected scans, found none")
    return sorted(scans)


def _images(scans: list[str], patterns: list[str]) -> list[list[str]]:
    """The images of each scan. Raises ValueError for two scans with one image."""
    if not patterns:
        raise ValueError("out: expected the name of an image, found none")
    taken: dict[str, str] = {}
    images = []
    for scan in scans:
        folder, name = os.path.split(scan)
        words = {"{stem}": os.path.splitext(name)[0], "{folder}": os.path.basename(folder)}
        own = []
        for pattern in patterns:
            # What is filled in may hold such words itself.
            filled = re.sub(r"\{(?:stem|folder)\}", lambda found: words[found[0]], pattern)
            own.append(os.path.abspath(filled))
        if len(set(own)) < len(own):
            raise ValueError(f"out: expected different images, found {own[0]} twice")
        for image in own:
            if taken.setdefault(image, scan) != scan:
                raise ValueError(f"out: expected an image for each scan, found {image} of {taken[image]} and {scan}")
        images.append(own)
    return images


def _said(value: Any) -> Any:
    """A value of an option for the record."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(name): _said(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [_said(one) for one in value]
    array = np.ascontiguousarray(value)
    if array.dtype == object:
        raise TypeError(f"options: expected numbers, texts and arrays, found {type(value).__name__}")
    digits = hashlib.blake2b(array.tobytes(), digest_size=32).hexdigest()
    return {"shape": list(array.shape), "dtype": str(array.dtype), "blake2b": digits}


class _Settle(_distributed.WorkerPlugin):  # type: ignore[misc]
    """Gives each worker its card and its threads when it comes."""

    name = "rayspin"
    idempotent = True

    async def setup(self, worker: Any) -> None:
        info = await worker.scheduler.identity()
        host = worker.address.rpartition(":")[0]
        others = sorted(address for address in {*info["workers"], worker.address} if address.rpartition(":")[0] == host)
        pinned = any(type(plugin).__module__.startswith("dask_cuda") for plugin in worker.plugins.values())
        number = others.index(worker.address)
        # The number that a cluster has given to a worker stays when the worker starts again; its address does not.
        name = str(worker.name).rpartition("-")[2]
        _worker.settle(worker.address, int(name) if name.isdigit() else number, len(others), pinned)


def _settled(client: Any) -> Any:
    """The client, whose workers have their places."""
    if client is None:
        try:
            client = _distributed.default_client()
        except ValueError:
            raise TypeError("client: expected a distributed.Client, found none: Client(address) makes one") from None
    if not isinstance(client, _distributed.Client):
        raise TypeError(f"client: expected a distributed.Client, found {type(client).__name__}")
    if client.asynchronous:
        raise TypeError("client: expected one that waits, found an asynchronous one")
    client.register_plugin(_Settle())
    return client


def _workers(client: Any) -> dict[str, Any]:
    return dict(client.scheduler_info(n_workers=-1)["workers"])


def _results(
    client: Any,
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    names: Sequence[str],
    retries: int,
    timeout: float,
    progress: Heard,
) -> list[Any]:
    """What all calls return. Raises the first error."""
    results = []
    for result in _done(client, "recon", work, calls, names, retries, timeout, progress):
        if isinstance(result, dict) and "error" in result:
            result = result["error"]
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


def _done(
    client: Any,
    group: str,
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    names: Sequence[str],
    retries: int,
    timeout: float,
    progress: Heard,
) -> Iterator[Any]:
    """What each call returned, in their order: an exception for one whose workers died. A call whose result says `again` is made again,
    on another worker.

    Raises TimeoutError where no worker has been there for `timeout` seconds.
    """
    heard = listener(progress)
    token = uuid.uuid4().hex[:8]
    left = deque(range(len(calls)))
    tries, waits = [0] * len(calls), [0] * len(calls)
    patience = [timeout] * len(calls)
    avoided: list[set[str]] = [set() for _ in calls]
    lost: dict[str, str] = {}
    results: dict[int, Any] = {}
    running: dict[Any, int] = {}
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
    gone: list[Any] = []
    seen = looked = time.monotonic()
    workers = _workers(client)
    try:
        while len(results) < len(calls):
            now = time.monotonic()
            if now - looked > _LOOK:
                workers, looked = _workers(client), now
            fit = [address for address in workers if address not in lost]
            if fit:
                seen = now
            elif now - seen > timeout or (workers and lost and not running):
                why = f"; {next(iter(lost.values()))}" if lost else ""
                what = "no worker with a processor that works" if lost else f"no worker for {timeout:g} s"
                raise TimeoutError(f"the cluster has {what}: {len(calls) - len(results)} of {len(calls)} tasks are left{why}")
            room = _AHEAD * sum(workers[address]["nthreads"] for address in fit)
            while left and fit and len(running) < room:
                number = left.popleft()
                better = [address for address in fit if address not in avoided[number]] or fit
                future = client.submit(
                    work,
                    *calls[number],
                    key=(f"rayspin-{group}-{token}", f"{names[number]} {number}.{tries[number]}.{waits[number]}"),
                    pure=False,
                    workers=better if len(better) < len(workers) else None,
                    allow_other_workers=len(better) < len(workers),
                )
                running[future] = number
                future.add_done_callback(ended.put)
            # A callback of a lost future is called at once.
            for future in [future for future in gone if future.status not in _AWAY]:
                gone.remove(future)
                ended.put(future)
            with contextlib.suppress(queue.Empty):
                future = ended.get(timeout=_LOOK)
                number = running.pop(future)
                result = _result(future, patience[number])
                if result is _GONE:
                    # The cluster makes it again where it has workers. What was only slow has more time then.
                    patience[number] *= 2
                    running[future] = number
                    gone.append(future)
                    continue
                future.release()
                if isinstance(result, dict) and result.get("again"):
                    if result["lost"]:
                        lost[result["worker"]] = str(result.get("why") or result.get("error"))
                    # Another process writes the image, or a worker without its card took the task: the scan is not at fault.
                    elsewhere = bool(result["lost"] or result.get("busy"))
                    waits[number] += elsewhere
                    if (elsewhere and waits[number] <= _WAITS) or tries[number] < retries:
                        tries[number] += not elsewhere
                        avoided[number].add(result["worker"])
                        left.append(number)
                        continue
                results[number] = result
                if heard is not None:
                    heard("tasks", len(results), len(calls))
    finally:
        for future in running:
            future.cancel()
    yield from (results[number] for number in range(len(calls)))


# A result whose worker left before it was fetched, and what a future of it is then.
_GONE = object()
_AWAY = ("pending", "lost")


def _result(future: Any, patience: float) -> Any:
    """What a task returned, or the exception of one that ended otherwise; `_GONE` where its worker left with it.

    A task is done when its worker says so. If that worker leaves before the result is fetched, the result is pending again, and without
    other workers it stays so: nobody waits for it longer than `patience` seconds.
    """
    status = future.status
    if status == "cancelled":
        return RuntimeError("the task was cancelled")
    if status in _AWAY:
        return _GONE
    try:
        if status == "finished":
            return future.result(timeout=patience)
        failure = future.exception(timeout=patience)
    except TimeoutError:
        return _GONE
    if isinstance(failure, _distributed.KilledWorker):
        return RuntimeError(f"{failure.task[1]}: every worker that took it died, the last one {failure.last_worker.address}")
    return failure
