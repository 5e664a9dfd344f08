"""What a worker of a cluster does for `rayspin.dask`: it takes its card and its threads, reads, reconstructs and writes."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import ct
from ._rayspin import (
    Reconstruction,
    Scan,
    __version__,
    claim,
    gpus,
    open_device,
    plan_recon,
    read_files,
    recon,
    remade,
    set_threads,
    threads,
    written_files,
)

_CORES = threads()

DEVICES: dict[str, str] = {}
"""The processor of each worker in this process, by the worker's address."""

# What does not end otherwise on another worker.
_LASTING = (ValueError, TypeError, ArithmeticError, FileNotFoundError, IsADirectoryError, NotADirectoryError)


class Busy(TimeoutError):
    """An output that another process is writing."""


class OutOfPlace(RuntimeError):
    """A worker whose processor does not work."""


def place(number: int, of: int, environment: Mapping[str, str], cards: int, pinned: bool) -> tuple[str, int]:
    """The processor and the threads of a worker, the `number`-th of `of` on its host.

    A worker that sees a card takes it. Of several cards it takes the one of its number, or the first one where dask-cuda has
    ordered them for it (`pinned`). A worker for which CUDA_VISIBLE_DEVICES names cards has one, even where `cards` finds none: it
    must fail rather than compute on the CPU what others do on cards.
    """
    named = [card for card in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if card.strip()]
    if named == ["-1"] or named == ["NoDevFiles"]:
        named = []
    seen = len(named) or cards
    device = f"cuda:{0 if pinned else number % seen}" if seen else "cpu"
    # Where the system gives this process fewer cores, these are its share already.
    return device, max(1, min(_CORES, (os.cpu_count() or 1) // max(1, of)))


def settle(address: str, number: int, of: int, pinned: bool) -> tuple[str, int]:
    """Takes the place of the worker at this address."""
    device, share = place(number, of, os.environ, gpus(), pinned)
    DEVICES[address] = device
    # A number that its user has set holds.
    if "RAYSPIN_THREADS" not in os.environ:
        try:
            set_threads(share)
        except RuntimeError:
            share = threads()
    return device, share


def address() -> str:
    """The address of this worker; empty outside of one."""
    from importlib import import_module

    try:
        return str(import_module("distributed").get_worker().address)
    except ValueError:
        return ""


def device_of(wanted: str | None) -> str:
    """The processor to compute on, or several GPUs, which were opened. Raises OutOfPlace where it does not work."""
    own = address()
    device = wanted or DEVICES.get(own, "auto")
    try:
        open_device(device)
    except Exception as error:
        raise OutOfPlace(f"{own or 'this process'}: {device} does not work: {error}") from error
    return device


def record_path(image: str) -> str:
    """image.nii.gz → image.json, as the command has it."""
    folder, name = os.path.split(image)
    stem = name.removesuffix(".gz")
    return os.path.join(folder, f"{stem.rpartition('.')[0] or stem}.json")


def entries(files: Sequence[tuple[str, int, str]]) -> list[dict[str, Any]]:
    return [{"path": path, "bytes": length, "blake3": digits} for path, length, digits in files]


def _record(path: str) -> dict[str, Any] | None:
    """The record of an earlier run. Raises ValueError for a file of another program."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        found = json.loads(text) if text.strip() else None
    except FileNotFoundError:
        return None
    except ValueError:
        found = False
    if found is None:
        return None
    if not isinstance(found, dict) or "schema" not in found or not str(found.get("program")).startswith("rayspin"):
        raise ValueError(f"{path}: expected the record of a run, or no file, found another file")
    return found


def _is_there(record: dict[str, Any] | None, command: list[str]) -> bool:
    """Whether the record tells of this call and version, and its files are as it says."""

    def same(named: Any) -> bool:
        files = [] if not isinstance(named, list) else named
        try:
            found = [read_files(file["path"]) for file in files]
        except OSError:
            return False
        hashes = [{digits for _, _, digits in some} for some in found]
        return bool(files) and all(file["blake3"] in some for file, some in zip(files, hashes, strict=True))

    if record is None or record.get("command") != command or record.get("version") != __version__:
        return False
    return same(record.get("outputs")) and same(record.get("inputs"))


def _write(path: str, record: dict[str, Any]) -> None:
    """Writes a record, whole or not at all."""
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", suffix=".part", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=2, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """The mask of new files, which only setting it tells; other threads of the worker may write meanwhile, so it is read from /proc."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1], 8) for line in file if line.startswith("Umask:"))
    except (OSError, StopIteration):
        return 0o022


def reconstruct(
    scan: str,
    images: list[str],
    kind: str,
    method: str | None,
    device: str | None,
    options: dict[str, Any],
    command: list[str],
    patience: float,
) -> dict[str, Any]:
    """Reconstructs a scan into files. Returns what became of it; an error is a part of this, with `again` where another worker may do
    better."""
    start = time.monotonic()
    row: dict[str, Any] = {"scan": scan, "images": images, "result": "failed", "why": None, "seconds": None, "files": []}
    row["worker"] = address()
    try:
        record = record_path(images[0])
        done = _record(record)
        if not _is_there(done, command):
            for folder in {os.path.dirname(image) for image in images}:
                os.makedirs(folder, exist_ok=True)
            held = _claimed([*images, record], patience)
            try:
                # The same task may have run elsewhere, where it was taken for lost.
                done = _record(record)
                if not _is_there(done, command):
                    done = _made(scan, images, kind, method, device, options, command, record)
                    row["result"] = "reconstructed"
                    row["seconds"] = time.monotonic() - start
            finally:
                held.release()
        if row["result"] == "failed":
            row["result"] = "there before"
        row["files"] = (done or {}).get("outputs", [])
    except Exception as error:
        row["why"] = str(error) or repr(error)
        row["again"] = not isinstance(error, _LASTING)
        row["busy"] = isinstance(error, Busy)
        row["lost"] = isinstance(error, OutOfPlace)
    return row


def _claimed(outputs: list[str], patience: float) -> Any:
    """A claim on the outputs. Raises Busy where another process keeps it."""
    end = time.monotonic() + patience
    while True:
        held = claim(outputs)
        if held is not None:
            return held
        if time.monotonic() > end:
            raise Busy(f"{outputs[0]}: another process has been writing it for {patience:g} s")
        time.sleep(0.1)


def _made(
    scan: str,
    images: list[str],
    kind: str,
    method: str | None,
    device: str | None,
    options: dict[str, Any],
    command: list[str],
    record: str,
) -> dict[str, Any]:
    beside = [value for value in options.values() if isinstance(value, (str, os.PathLike)) and os.path.isfile(value)]
    inputs = entries([one for path in (scan, *beside) for one in read_files(path)])
    own = device_of(device)
    if kind == "ct":
        found: Any = ct.recon(scan, method, device=own, progress=False, **options)  # type: ignore[arg-type]
    else:
        found = recon(scan, method, device=own, progress=False, keep_maps=False, **options)  # type: ignore[arg-type]
    notes = [note for image in images for note in found.save(image)]
    stacks = len(getattr(found, "stacks", "1"))
    told: dict[str, Any] = found.record
    told["command"], told["inputs"] = command, inputs
    told["outputs"] = [one for image in images for one in entries(written_files(image, stacks))]
    told["notes"] = [*told.get("notes", []), *notes]
    _write(record, told)
    return told


def fixed(options: dict[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the weight that the whole scan's noise tells: a part alone would tell another one."""
    told = any("(lambda_= overrides)" in note for note in plan["notes"])
    return {**options, "lambda_": plan["parameters"]["lambda_"]} if told and "lambda_" not in options else options


def plan(scan: Any, method: str | None, options: dict[str, Any]) -> dict[str, Any]:
    return plan_recon(scan, method, device="cpu", **options)


def part(scan: Any, method: str | None, device: str | None, keep_maps: bool, options: dict[str, Any]) -> Any:
    """A part of a scan. Returns its reconstruction, or what became of it."""
    try:
        own = device_of(device)
        return recon(scan, method, device=own, keep_maps=keep_maps, progress=False, **options)  # type: ignore[arg-type]
    except Exception as error:
        again = not isinstance(error, _LASTING)
        return {"error": error, "again": again, "lost": isinstance(error, OutOfPlace), "worker": address()}


def frames(
    scan: Any, method: str | None, device: str | None, shape: tuple[int, ...], maps: Any, options: dict[str, Any]
) -> Any:
    """Some volumes of a series, complex64 `[volume, z, y, x]`."""
    if maps is not None:
        options = {**options, "maps": maps}
    own = device_of(device)
    found = recon(scan, method, device=own, keep_maps=False, progress=False, **options)  # type: ignore[arg-type]
    return np.asarray(found.image).reshape(shape)


def maps_of(scan: Any, method: str | None, device: str | None, options: dict[str, Any]) -> Any:
    """The sensitivities that a part of a series gives, or None for a method without any."""
    own = device_of(device)
    return recon(scan, method, device=own, progress=False, **options).maps  # type: ignore[arg-type]


def of_arrays(
    samples: Any, points: Any, method: str | None, device: str | None, made: dict[str, Any], options: dict[str, Any]
) -> Any:
    """The images of a block of samples, `[frame, z, y, x]`."""
    own, images = device_of(device), []
    for one in np.ascontiguousarray(samples):
        scan = Scan.from_arrays(one, points, **made)
        found = recon(scan, method, device=own, keep_maps=False, progress=False, **options)  # type: ignore[arg-type]
        images.append(np.asarray(found.image))
    return np.stack(images)


Stack = tuple[int, tuple[Sequence[float], Sequence[float], Sequence[Sequence[float]]]]


def joined(parts: Sequence[Reconstruction], told: Sequence[str]) -> Reconstruction:
    """One reconstruction of those of groups of slices, with what was told of the whole scan.

    Slices in one direction get the order of their places, and become one stack where they lie at one distance.
    """
    pickled: list[Any] = [part.__reduce__() for part in parts]
    (_, (kind, version, _)), every = pickled[0], [own for _, (_, _, own) in pickled]
    first = every[0]
    places = [place for own in every for place in _places(own["stacks"])]
    image = np.concatenate([own["image"] for own in every], axis=-3)
    maps = None
    if all(own["maps"] is not None for own in every):
        maps = np.concatenate([own["maps"] for own in every], axis=-3)
    normal = np.asarray(places[0][2][2])
    order = list(range(len(places)))
    if all(np.allclose(place[2], places[0][2], atol=1e-6) for place in places):
        order.sort(key=lambda index: float(np.dot(normal, places[index][1])))
    if order != sorted(order):
        image = np.ascontiguousarray(np.take(image, order, axis=-3))
        maps = None if maps is None else np.ascontiguousarray(np.take(maps, order, axis=-3))
        places = [places[index] for index in order]
    notes = list(dict.fromkeys([*told, *(note for own in every for note in own["notes"])]))
    stages: dict[str, float] = {}
    for own in every:
        for name, seconds in own["stages"]:
            stages[name] = stages.get(name, 0.0) + seconds
    record = json.loads(first["record"])
    record["notes"], record["parameters"]["parts"] = notes, len(every)
    record["stages"] = [{"name": name, "seconds": seconds} for name, seconds in stages.items()]
    record["total_seconds"] = sum(json.loads(own["record"])["total_seconds"] for own in every)
    return remade(  # type: ignore[no-any-return]
        kind,
        version,
        {
            **first,
            "image": image,
            "maps": maps,
            "stacks": _stacks(places),
            "notes": notes,
            "stages": list(stages.items()),
            "residuals": [one for own in every for one in own["residuals"]],
            "certificates": [one for own in every for one in own["certificates"]],
            "record": json.dumps(record, indent=2),
        },
    )


def _places(stacks: Sequence[Stack]) -> list[tuple[Any, Any, Any]]:
    """Spacing, centre and directions of each slice."""
    places = []
    for count, (spacing, centre, directions) in stacks:
        for index in range(count):
            away = (index - count // 2) * spacing[2]
            places.append((spacing, np.add(centre, np.multiply(directions[2], away)), directions))
    return places


def _stacks(places: list[tuple[Any, Any, Any]]) -> list[Stack]:
    """One stack of slices that lie behind each other at one distance, else one of each."""
    spacing, _, directions = places[0]
    steps = np.diff([place[1] for place in places], axis=0)
    alike = all(
        np.allclose(place[2], directions, atol=1e-6) and np.allclose(place[0][:2], spacing[:2], rtol=1e-6) for place in places
    )
    distance = float(np.dot(steps.mean(axis=0), directions[2])) if len(steps) else float(spacing[2])
    if alike and distance > 0 and np.allclose(steps, np.multiply(directions[2], distance), atol=1e-3 * distance):
        centre = places[len(places) // 2][1]
        return [_stack(len(places), (spacing[0], spacing[1], distance), centre, directions)]
    return [_stack(1, place[0], place[1], place[2]) for place in places]


def _stack(count: int, spacing: Any, centre: Any, directions: Any) -> Stack:
    return count, (
        tuple(float(size) for size in spacing),
        tuple(float(value) for value in centre),
        tuple(tuple(float(value) for value in one) for one in directions),
    )
