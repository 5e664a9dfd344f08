"""Reconstructions on a cluster of dask.distributed, of four worker processes."""

import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask
import dask.array
import distributed
from distributed.protocol import deserialize, serialize

import rayspin
import rayspin.dask
from rayspin import _worker, ct, simulate

CPU = {"device": "cpu"}
PROGRAM = os.path.join(os.path.dirname(sys.executable), "rayspin")
WORKERS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six scans, one of several slices, a series, a file that is no scan, and two scans of CT."""
    folder = tmp_path_factory.mktemp("dask")
    (folder / "scans").mkdir()
    for number in range(6):
        made = simulate.mri(matrix=(48, 48), trajectory="radial", coils=4, snr=40.0, seed=number)
        made.scan.save(folder / "scans" / f"s{number}.h5")
    (folder / "scans" / "none.h5").write_text("no scan")
    slices = "simulate mri -q --no-record -o slices.h5 --matrix 32,32,5 --dims 2 --coils 3 -t radial --snr 40"
    series = "simulate mri -q --no-record -o series.h5 --matrix 24,24 --coils 3 -t radial --repetitions 4 --snr 40"
    golden = "simulate mri -q --no-record -o golden.h5 --matrix 24,24 --coils 3 -t radial --angles golden --shots 60 --snr 40"
    for words in (slices, series, golden):
        subprocess.run([PROGRAM, *words.split()], cwd=folder, check=True, capture_output=True)
    (folder / "ct").mkdir()
    for number in range(2):
        words = f"simulate ct -q --no-record -o ct/c{number}.h5 -g fan --matrix 24,24 --views 24 --seed {number}"
        subprocess.run([PROGRAM, *words.split()], cwd=folder, check=True, capture_output=True)
    return folder


def started(environments=({},) * WORKERS):
    """A cluster whose workers have these environments."""

    def worker(environment):
        return {"cls": distributed.Nanny, "options": {"nthreads": 1, "env": dict(environment), "memory_limit": 0}}

    workers = {number: worker(own) for number, own in enumerate(environments)}
    scheduler = {"cls": distributed.Scheduler, "options": {"port": 0, "dashboard": False, "dashboard_address": None, "host": "127.0.0.1"}}
    return distributed.SpecCluster(workers=workers, worker=worker({}), scheduler=scheduler, silence_logs=50)


@pytest.fixture(scope="module")
def client():
    with started() as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(WORKERS, timeout=60)
        yield client


def expect_near(found, wanted):
    """Images that differ by rounding alone: another number of threads adds numbers in another order."""
    assert np.shape(found) == np.shape(wanted)
    assert np.linalg.norm(np.asarray(found) - wanted) <= 1e-5 * np.linalg.norm(wanted)


def names(folder):
    return sorted(file.name for file in pathlib.Path(folder).iterdir())


def expect_whole(out, count):
    """Every image has its record, which tells its hash, and nothing else is left."""
    assert names(out) == sorted(f"s{number}.{ending}" for number in range(count) for ending in ("json", "npy"))
    for number in range(count):
        record = json.loads((out / f"s{number}.json").read_text())
        ((path, length, digits),) = rayspin._rayspin.read_files(out / f"s{number}.npy")
        assert record["outputs"] == [{"path": path, "bytes": length, "blake3": digits}]
        assert record["inputs"][0]["path"].endswith(f"scans/s{number}.h5")


def test_scans_become_images_as_alone_and_what_is_there_is_not_made_again(client, folder, tmp_path):
    heard, out = [], tmp_path / "out"
    call = {"method": "cg-sense", "client": client, "iterations": 4, "lambda_": 0.01}
    rows = rayspin.dask.batch(
        folder / "scans" / "s*.h5", str(out / "{stem}.npy"), progress=lambda *step: heard.append(step), **call
    )
    assert [row["result"] for row in rows] == ["reconstructed"] * 6 and heard[-1] == ("tasks", 6, 6)
    assert [os.path.basename(row["scan"]) for row in rows] == [f"s{number}.h5" for number in range(6)]
    assert len({row["worker"] for row in rows}) > 1
    expect_whole(out, 6)
    alone = rayspin.recon(folder / "scans" / "s3.h5", "cg-sense", iterations=4, lambda_=0.01, **CPU).image
    expect_near(np.load(out / "s3.npy"), np.squeeze(alone)[None])
    # Again, with an image that was changed, one that is gone, and a scan that is none.
    (out / "s1.npy").write_text("changed")
    (out / "s2.npy").unlink()
    before = (out / "s0.npy").stat().st_mtime_ns
    with pytest.warns(RuntimeWarning, match="1 of 7 scans failed, the first one .*none.h5: "):
        rows = rayspin.dask.batch([folder / "scans" / "*.h5"], str(out / "{stem}.npy"), **call)
    found = {os.path.basename(row["scan"]): row["result"] for row in rows}
    made = {f"s{number}.h5": "reconstructed" if number in (1, 2) else "there before" for number in range(6)}
    assert found == {**made, "none.h5": "failed"}
    assert (out / "s0.npy").stat().st_mtime_ns == before
    expect_whole(out, 6)
    # Other options make all anew.
    rows = rayspin.dask.batch(folder / "scans/s*.h5", str(out / "{stem}.npy"), **{**call, "iterations": 3})
    assert {row["result"] for row in rows} == {"reconstructed"}


def test_ct_scans_and_several_images(client, folder, tmp_path):
    out = [str(tmp_path / "{folder}" / "{stem}.npy"), str(tmp_path / "png" / "{stem}.png")]
    rows = rayspin.dask.batch(folder / "ct/*.h5", out, "cgls", kind="ct", client=client, iterations=3)
    assert [row["result"] for row in rows] == ["reconstructed"] * 2 and len(rows[0]["files"]) == 2
    alone = ct.recon(folder / "ct/c1.h5", "cgls", iterations=3, **CPU).volume
    expect_near(np.load(tmp_path / "ct/c1.npy"), alone)
    assert names(tmp_path / "png") == ["c0.png", "c1.png"] and "c1.json" in names(tmp_path / "ct")


def test_a_worker_that_is_killed_costs_no_image(folder, tmp_path):
    out, scans = tmp_path / "out", tmp_path / "scans"
    scans.mkdir()
    for number in range(12):
        os.symlink(folder / "scans" / f"s{number % 6}.h5", scans / f"s{number}.h5")
    call = {"method": "cg-sense", "iterations": 400, "tolerance": 0.0}
    with started() as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(WORKERS, timeout=60)
        processes = client.run(os.getpid)

        def kill():
            while not list(out.glob("*.json")):
                time.sleep(0.005)
            os.kill(next(iter(processes.values())), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        rows = rayspin.dask.batch(scans / "*.h5", str(out / "{stem}.npy"), client=client, **call)
        killer.join()
        # The scan of the killed worker runs again, and may find what was written just before.
        found = [row["result"] for row in rows]
        assert found.count("reconstructed") >= 11 and found.count("failed") == 0 and len(found) == 12, rows
        # What the killed process left beside an image goes when the image is made again, or is hidden.
        for name in names(out):
            if name.startswith("."):
                (out / name).unlink()
        expect_whole(out, 12)
        rows = rayspin.dask.batch(scans / "*.h5", str(out / "{stem}.npy"), client=client, **call)
        assert {row["result"] for row in rows} == {"there before"}
    alone = rayspin.recon(scans / "s7.h5", "cg-sense", iterations=400, tolerance=0.0, **CPU).image
    expect_near(np.squeeze(np.load(out / "s7.npy")), np.squeeze(alone))


def test_a_task_that_runs_twice_writes_once(folder, tmp_path):
    # The scheduler takes a worker for lost, which goes on: the second one waits, and finds the image.
    image = tmp_path / "a.npy"
    command = ["rayspin.dask.batch", "test"]
    rows = []

    def run():
        options = {"iterations": 30, "tolerance": 0.0}
        scan = str(folder / "scans/s0.h5")
        rows.append(_worker.reconstruct(scan, [str(image)], "mri", "cg-sense", "cpu", options, command, 30.0))

    twice = [threading.Thread(target=run) for _ in range(3)]
    for thread in twice:
        thread.start()
    for thread in twice:
        thread.join()
    assert sorted(row["result"] for row in rows) == ["reconstructed", "there before", "there before"], rows
    assert names(tmp_path) == ["a.json", "a.npy"]
    # Where the other one never ends, this one does.
    held = rayspin._rayspin.claim([image])
    image.unlink()
    row = _worker.reconstruct(str(folder / "scans/s0.h5"), [str(image)], "mri", None, "cpu", {}, command, 0.3)
    assert row["result"] == "failed" and "another process has been writing it" in row["why"] and row["again"]
    held.release()
    assert names(tmp_path) == ["a.json"]


def test_a_worker_without_its_card_gets_no_more_scans(folder, tmp_path):
    # Its environment names a card that the driver does not have.
    with started([{"CUDA_VISIBLE_DEVICES": "0"}, {}, {}]) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(3, timeout=60)
        broken = next(a for a, card in client.run(os.getenv, "CUDA_VISIBLE_DEVICES").items() if card)
        if rayspin._rayspin.gpus():
            pytest.skip("this machine has a card")
        rows = rayspin.dask.batch(folder / "scans/s*.h5", str(tmp_path / "a/{stem}.npy"), "gridding", client=client)
        assert {row["result"] for row in rows} == {"reconstructed"}
        assert broken not in {row["worker"] for row in rows}
        image = rayspin.dask.recon(folder / "slices.h5", "gridding", client=client, parts=5).image
        assert image.shape == (5, 32, 32)
        # Nobody else can help: one line says why.
        with pytest.raises(TimeoutError, match="no worker with a processor that works: 6 of 6 tasks are left; .*cuda.* does not work: "):
            rayspin.dask.batch(folder / "scans/s*.h5", str(tmp_path / "b/{stem}.npy"), "gridding", client=client, device="cuda:7")
    assert not (tmp_path / "b").exists() or names(tmp_path / "b") == []


def test_a_cluster_without_workers_ends_the_call(folder, tmp_path):
    with started([{}, {}]) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        call = {"client": client, "timeout": 2.0, "iterations": 400, "tolerance": 0.0}

        def shrink():
            while not list(tmp_path.glob("*.json")):
                time.sleep(0.005)
            cluster.scale(0)

        shrinking = threading.Thread(target=shrink)
        shrinking.start()
        start = time.monotonic()
        # A worker may take the result of its task along; its image is there.
        with pytest.raises(TimeoutError, match="the cluster has no worker for 2 s: [1-6] of 6 tasks are left"):
            rayspin.dask.batch(folder / "scans/s*.h5", str(tmp_path / "{stem}.npy"), "cg-sense", **call)
        shrinking.join()
        assert time.monotonic() - start < 60
        with pytest.raises(TimeoutError, match="no worker for 0.5 s"):
            rayspin.dask.recon(folder / "slices.h5", client=client, timeout=0.5)
        # Workers that come later are settled, too, and take up what is left.
        cluster.scale(1)
        rows = rayspin.dask.batch(folder / "scans/s0.h5", str(tmp_path / "{stem}.npy"), "gridding", client=client)
        assert rows[0]["result"] == "reconstructed"
        assert list(client.run(lambda: rayspin._worker.DEVICES).values())[0]


def test_a_result_that_its_worker_takes_along_is_made_again(folder, tmp_path, monkeypatch):
    with started([{}]) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(1, timeout=60)
        fetch, seen = rayspin.dask._result, []

        def late(future, patience):
            if not seen:
                cluster.scale(0)
                while future.status == "finished":
                    time.sleep(0.01)
                cluster.scale(1)
            seen.append(fetch(future, patience))
            return seen[-1]

        monkeypatch.setattr(rayspin.dask, "_result", late)
        rows = rayspin.dask.batch(folder / "scans/s0.h5", str(tmp_path / "{stem}.npy"), "gridding", client=client)
        assert seen[0] is rayspin.dask._GONE and len(seen) > 1
        # Its image is on the disk since the first time.
        assert rows[0]["result"] == "there before", rows


@pytest.mark.parametrize("fetching", [False, True])
def test_a_result_that_its_worker_takes_along_is_not_waited_for(folder, tmp_path, monkeypatch, fetching):
    # The worker leaves between the end of its task and the fetch, or during the fetch.
    with started([{}]) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(1, timeout=60)
        fetch, seen = rayspin.dask._result, []

        class Fetched:
            """A future that is finished when it is looked at, and lost when it is fetched."""

            status = "finished"

            def __init__(self, future):
                self.result = future.result

        def late(future, patience):
            cluster.scale(0)
            while future.status == "finished":
                time.sleep(0.01)
            seen.append(fetch(Fetched(future) if fetching else future, patience))
            return seen[-1]

        monkeypatch.setattr(rayspin.dask, "_result", late)
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="the cluster has no worker for 1 s: 1 of 1 tasks are left"):
            rayspin.dask.batch(folder / "scans/s0.h5", str(tmp_path / "{stem}.npy"), "gridding", client=client, timeout=1.0)
        assert seen and all(result is rayspin.dask._GONE for result in seen) and len(seen) < 9
        assert time.monotonic() - start < 60


def test_slices_of_a_scan_make_one_image(client, folder):
    call = {"iterations": 5}
    whole = rayspin.recon(folder / "slices.h5", "cg-sense", **call, **CPU)
    for scan, parts in [(folder / "slices.h5", None), (rayspin.read_scan(folder / "slices.h5"), 2), (folder / "slices.h5", 1)]:
        found = rayspin.dask.recon(scan, "cg-sense", client=client, parts=parts, **call)
        expect_near(found.image, whole.image)
        np.testing.assert_allclose(found.maps, whole.maps, rtol=0, atol=1e-4)
        assert (found.spacing_mm, found.directions) == (whole.spacing_mm, whole.directions)
        np.testing.assert_allclose(found.position_mm, whole.position_mm, atol=1e-4)
        assert len(found.stacks) == 1 and len(found.residuals) == len(whole.residuals)
        # What is told at the end counts the images of a part.
        told = {note for note in whole.notes if " stopped after " not in note}
        assert found.method == "cg-sense" and told and told <= set(found.notes)
    some = rayspin.dask.recon(folder / "slices.h5", "cg-sense", client=client, slices=[3, 1], **call)
    expect_near(some.image, whole.image[[1, 3]])
    series = rayspin.dask.recon(folder / "series.h5", "gridding", client=client)
    expect_near(series.image, rayspin.recon(folder / "series.h5", "gridding", **CPU).image)
    with pytest.raises(ValueError, match='lambda_: expected a number, because workers compute slices apart, found "auto"'):
        rayspin.dask.recon(folder / "slices.h5", "cg-sense", client=client, lambda_="auto")
    with pytest.raises(ValueError, match="iterations: expected"):
        rayspin.dask.recon(folder / "slices.h5", "cg-sense", client=client, iterations=-1)
    with pytest.raises(FileNotFoundError):
        rayspin.dask.recon(folder / "gone.h5", client=client)


def test_recon_hands_its_slices_to_a_client(client, folder, tmp_path, monkeypatch):
    path, heard = folder / "slices.h5", []
    whole = rayspin.recon(path, "cg-sense", iterations=5, **CPU)
    found = rayspin.recon(path, "cg-sense", client=client, iterations=5, progress=lambda *step: heard.append(step))
    assert heard[-1] == ("tasks", 4, 4)
    expect_near(found.image, whole.image)
    np.testing.assert_allclose(found.maps, whole.maps, rtol=0, atol=1e-4)
    assert isinstance(found, rayspin.Reconstruction) and found.record["parameters"]["parts"] == 4
    held = rayspin.recon(rayspin.read_scan(path), "cg-sense", client=client, iterations=5, keep_maps=False, device="cpu")
    expect_near(held.image, whole.image)
    assert held.maps is None
    # Names of files hold in the folders of workers, arrays arrive, and a number twice is one slice.
    monkeypatch.chdir(tmp_path)
    np.save("maps.npy", whole.maps)
    for maps in ("maps.npy", pathlib.Path("maps.npy"), whole.maps):
        given = rayspin.recon(path, "cg-sense", client=client, iterations=5, maps=maps, slices=np.array([3, 1, 1]), cache="kernels")
        expect_near(given.image, rayspin.recon(path, "cg-sense", iterations=5, maps=whole.maps, slices=[1, 3], **CPU).image)
    assert names(tmp_path) == ["kernels", "maps.npy"]
    basis = rayspin.recon(folder / "series.h5", client=client, basis="svd:1", echo_times_ms=[10, 20, 30, 40])
    expect_near(basis.image, rayspin.recon(folder / "series.h5", basis="svd:1", echo_times_ms=[10, 20, 30, 40], **CPU).image)


def test_what_a_client_does_not_take_is_refused(client, folder, tmp_path):
    path = folder / "slices.h5"
    for options, error, words in [
        ({"client": 3}, TypeError, "client: expected a distributed.Client, found int"),
        ({"parts": 2}, TypeError, "parts: rayspin.recon has no such keyword; rayspin.dask.recon has it"),
        ({"timeout": 2.0}, TypeError, "timeout: rayspin.recon has no such keyword"),
        ({"iteration": 3}, TypeError, "iteration: no parameter of method cg-sense"),
        ({"lambda_": "auto"}, ValueError, "lambda_: expected a number, because workers compute slices apart"),
        ({"progress": 3}, TypeError, "progress: expected a function"),
        ({"memory": 1000}, ValueError, "memory: expected at least"),
        ({"device": "cuda:5,7"}, TimeoutError, "no worker with a processor that works.*cuda:5,7 does not work"),
    ]:
        with pytest.raises(error, match=words):
            rayspin.recon(path, "cg-sense", **{"client": client, **options})
    with pytest.raises(TypeError, match="scan: expected a rayspin.Scan"):
        rayspin.recon(3, client=client)
    for call in (rayspin.plan, rayspin.images, ct.recon):
        with pytest.raises(TypeError, match="client"):
            call(path, client=client)
    (tmp_path / "distributed.py").write_text("raise ImportError('none here')")
    text = f"import rayspin; rayspin.recon({str(path)!r}, client=3)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1 and "pip install 'dask[distributed]'" in done.stderr


def test_the_plan_says_the_shape_of_the_image(folder):
    for name, options in [
        ("slices.h5", {}),
        ("slices.h5", {"slices": [1, 2]}),
        ("series.h5", {}),
        ("series.h5", {"matrix": (16, 16)}),
        ("golden.h5", {"window": 20, "stride": 10}),
        ("scans/s0.h5", {}),
    ]:
        for scan in (folder / name, rayspin.read_scan(folder / name)):
            plan, found = rayspin.plan(scan, "gridding", **options, **CPU), rayspin.recon(scan, "gridding", **options, **CPU)
            assert plan["shape"] == found.image.shape and plan["volumes"] == found.volumes, (name, options)
            assert plan["slices"] == found.image.shape[-3]
    volume = simulate.mri(matrix=(12, 12, 12), coils=2, dims=3).scan
    plan = rayspin.plan(volume, "cartesian", **CPU)
    assert (plan["slices"], plan["shape"]) == (1, rayspin.recon(volume, "cartesian", **CPU).image.shape)
    assert rayspin.plan(volume, "cartesian", combine="none", **CPU)["shape"] is None
    lines = simulate.ct(matrix=(16, 16, 8), views=8, lines=True).scan
    assert ct.plan(lines, **CPU)["shape"] == ct.recon(lines, **CPU).volume.shape


@pytest.mark.parametrize(
    "name,options,weight",
    # The weight refers to the eigenvalue of the first volume, which windows over other readouts have not in common.
    [("series.h5", {}, {}), ("golden.h5", {"window": 20, "stride": 10}, {"lambda_": 0.0})],
)
@pytest.mark.parametrize("chunk", [1, 3])
def test_a_series_is_a_lazy_array(client, folder, name, options, weight, chunk):
    path, call = folder / name, {"iterations": 4, **options, **weight}
    images = rayspin.dask.series(path, "cg-sense", chunk=chunk, **call)
    assert isinstance(images, dask.array.Array) and images.dtype == np.complex64
    maps = rayspin.recon(path, "cg-sense", iterations=1, **options, **CPU).maps
    given = rayspin.dask.series(path, "cg-sense", chunk=chunk, maps=maps, **call)
    whole = rayspin.recon(path, "cg-sense", maps=maps, **call, **CPU).image
    assert given.shape == images.shape == whole.shape and given.chunks[0][0] == chunk
    found = given.compute()
    expect_near(found, whole)
    # A block is computed alone, and maps of the first block do for all.
    expect_near(given[-1].compute(), whole[-1])
    assert np.linalg.norm(abs(images.compute()) - abs(whole)) < 0.3 * np.linalg.norm(whole)
    named = pytest.importorskip("xarray")
    labelled = rayspin.dask.series(path, "gridding", xarray=True, **options)
    assert isinstance(labelled, named.DataArray) and labelled.dims == ("volume", "z", "y", "x")
    assert list(labelled.coords["repetition"].values) == list(range(len(whole)))
    assert float(abs(labelled).mean().compute()) > 0


def test_what_is_no_series_is_refused(folder):
    for name, options, words in [
        ("scans/s0.h5", {}, "a series of several volumes"),
        ("series.h5", {"method": "low-rank-sparse"}, "makes them together"),
        ("series.h5", {"chunk": 0}, "chunk: expected"),
    ]:
        with pytest.raises(ValueError, match=words):
            rayspin.dask.series(folder / name, **options)


def test_lazy_samples_become_lazy_images(client, folder):
    xarray = pytest.importorskip("xarray")
    scan = rayspin.read_scan(folder / "series.h5")
    frames = [scan.arrays(number) for number in range(4)]
    samples, points = np.stack([one for one, _ in frames]), frames[0][1]
    blocks = dask.array.from_array(samples, chunks=(2, 1, -1))
    call = {"shape": (24, 24), "units": "cycles/fov", "iterations": 3}
    images = rayspin.dask.frames(blocks, points, "cg-sense", **call)
    assert images.shape == (4, 1, 24, 24) and images.chunks[0] == (2, 2)
    for number, image in enumerate(images.compute()):
        mine = rayspin.Scan.from_arrays(samples[number], points, shape=(24, 24), units="cycles/fov")
        alone = rayspin.recon(mine, "cg-sense", iterations=3, **CPU).image
        expect_near(image, alone)
    labelled = xarray.DataArray(blocks, dims=("time", "coil", "sample"), coords={"time": [0.5, 1, 1.5, 2]})
    named = rayspin.dask.frames(labelled, points, "gridding", shape=(24, 24), units="cycles/fov")
    assert named.dims == ("time", "z", "y", "x") and list(named.coords["time"].values) == [0.5, 1, 1.5, 2]
    assert named.compute().shape == (4, 1, 24, 24)
    grid = np.fft.fftshift(np.fft.fft2(np.ones((3, 2, 8, 8)))).astype(np.complex64)
    assert rayspin.dask.frames(dask.array.from_array(grid), method="cartesian").compute().shape == (3, 1, 8, 8)
    with pytest.raises(TypeError, match="samples: expected a dask.array"):
        rayspin.dask.frames(samples, points, shape=(24, 24))
    with pytest.raises(ValueError, match="shape: expected"):
        rayspin.dask.frames(blocks, points)


def test_workers_take_their_cards_and_their_share_of_the_cores(client):
    place = _worker.place
    cores = rayspin.threads()
    assert place(0, 1, {}, 0, False) == ("cpu", cores)
    assert place(1, 2, {}, 0, False) == ("cpu", max(1, cores // 2))
    assert place(3, 4 * cores, {}, 8, False) == ("cuda:3", 1)
    assert place(5, 8, {}, 4, False)[0] == "cuda:1"
    assert place(2, 4, {"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, 4, False)[0] == "cuda:2"
    assert place(3, 4, {"CUDA_VISIBLE_DEVICES": "6"}, 1, False)[0] == "cuda:0"
    # dask-cuda puts the card of the worker first.
    assert place(2, 4, {"CUDA_VISIBLE_DEVICES": "2,3,0,1"}, 4, True)[0] == "cuda:0"
    assert place(0, 1, {"CUDA_VISIBLE_DEVICES": "-1"}, 0, False)[0] == "cpu"
    # A card that is gone is no reason to compute on the CPU.
    assert place(0, 1, {"CUDA_VISIBLE_DEVICES": "0"}, 0, False)[0] == "cuda:0"
    found = client.run(lambda: (rayspin.threads(), dict(rayspin._worker.DEVICES)))
    assert len(found) == WORKERS
    for address, (threads, devices) in found.items():
        assert threads == max(1, cores // WORKERS)
        assert list(devices) == [address]


def test_large_arrays_travel_out_of_band():
    made = simulate.mri(matrix=(64, 64), coils=4, trajectory="radial")
    lines = simulate.ct(geometry="parallel", matrix=(64, 64), views=60)
    found = rayspin.recon(made.scan, "cg-sense", iterations=2, **CPU)
    volume = ct.recon(lines.scan, "fbp", **CPU)
    image = rayspin.Image(np.ones((8, 64, 64), np.complex64))
    for one, size in [
        (made.scan, made.scan.arrays()[0].nbytes),
        (lines.scan, 60 * 64 * 4),
        (found, found.image.nbytes + found.maps.nbytes),
        (volume, volume.volume.nbytes),
        (image, image.data.nbytes),
    ]:
        buffers = []
        text = pickle.dumps(one, protocol=5, buffer_callback=buffers.append)
        assert sum(buffer.raw().nbytes for buffer in buffers) >= size and len(text) < 60_000, type(one)
        header, frames = serialize(one, serializers=["pickle"])
        assert len(frames) > 1 and len(frames[0]) < 60_000, type(one)
        assert repr(deserialize(header, frames)) == repr(one)


def test_what_cannot_be_a_batch_is_refused(client, folder, tmp_path):
    out = str(tmp_path / "{stem}.npy")
    for files, to, options, error, words in [
        (folder / "scans/*.dat", out, {}, ValueError, "files: expected scans, found none of "),
        ([], out, {}, ValueError, "files: expected scans, found none"),
        (folder / "scans/s*.h5", str(tmp_path / "a.npy"), {}, ValueError, "out: expected an image for each scan"),
        (folder / "scans/s*.h5", [], {}, ValueError, "out: expected the name of an image"),
        (folder / "scans/s*.h5", out, {"kind": "pet"}, ValueError, "kind: expected"),
        (folder / "scans/s*.h5", out, {"client": 3}, TypeError, "client: expected a distributed.Client, found int"),
        (folder / "scans/s*.h5", out, {"maps": object()}, TypeError, "options: expected numbers"),
    ]:
        with pytest.raises(error, match=words):
            rayspin.dask.batch(files, to, **{"client": client, **options})
    with pytest.warns(RuntimeWarning, match="6 of 6 scans failed.*iteration"):
        rows = rayspin.dask.batch(folder / "scans/s*.h5", out, "cg-sense", client=client, iteration=3)
    assert {row["worker"] is not None and row["result"] for row in rows} == {"failed"} and names(tmp_path) == []
    # A file of another program stays.
    (tmp_path / "s0.json").write_text('{"of": "a user"}')
    with pytest.warns(RuntimeWarning, match="expected the record of a run"):
        rayspin.dask.batch(folder / "scans/s0.h5", out, "gridding", client=client)
    assert names(tmp_path) == ["s0.json"] and json.loads((tmp_path / "s0.json").read_text()) == {"of": "a user"}


def test_without_dask_the_import_says_what_to_install(tmp_path):
    (tmp_path / "distributed.py").write_text("raise ImportError('none here')")
    text = "import rayspin, sys; assert 'dask' not in sys.modules; import rayspin.dask"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1 and "pip install 'dask[distributed]'" in done.stderr
