"""Ctrl-C and exceptions of `progress=` end every long call, and what they end is not returned."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import rayspin
from rayspin import ct, linop, simulate
from rayspin.nufft import Plan

CPU = {"device": "cpu"}
RNG = np.random.default_rng(8)


def projector():
    rays = ct.Geometry.cone(
        np.linspace(0, 6, 300), 48, 400, source_to_axis_mm=500.0, axis_to_detector_mm=300.0
    )
    return ct.Projector(rays, ct.Grid((200, 300, 300), 1.0), **CPU)


def forward():
    made, volume = projector(), np.ones((200, 300, 300), np.float32)
    return lambda: made.forward(volume)


def adjoint():
    made, lines = projector(), np.ones((300, 48, 400), np.float32)
    return lambda: made.adjoint(lines)


def sums():
    # Sixteen cores take less than 0.2 s for 300,000 points.
    made = linop.nudft(RNG.uniform(-64, 64, (3_000_000, 2)), (300, 300), **CPU)
    image = np.ones((300, 300), np.complex64)
    return lambda: made(image)


def plan():
    made = Plan(1, (64, 64, 64), eps=1e-12, **CPU)
    made.setpts(*RNG.uniform(-3, 3, (3, 200_000)))
    data = np.ones((24, 200_000), complex)
    return lambda: made.execute(data)


def sirt():
    scan = simulate.ct(geometry="fan", matrix=(48, 48), views=40, lines=True).scan
    return lambda: ct.recon(scan, "sirt", iterations=10_000, **CPU)


def simulated_mri():
    named = {"dims": 3, "matrix": (48, 48, 48), "coils": 8, "trajectory": "kooshball", "shots": 9000}
    return lambda: simulate.mri(**named)


def simulated_ct():
    named = {"geometry": "cone", "matrix": (128, 128, 64), "views": 200, "rays": 8, "lines": True}
    return lambda: simulate.ct(**named)


def truth():
    # Few samples of many voxels.
    return lambda: simulate.mri(dims=3, matrix=(160, 160, 160), coils=8, trajectory="kooshball", shots=2)


@pytest.mark.parametrize("make", [forward, adjoint, sums, plan, sirt, simulated_mri, simulated_ct, truth])
def test_ctrl_c_ends_long_calls(make):
    call = make()
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.2, send)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    # The calls take far longer.
    assert time.monotonic() - sent[0] < 3
    timer.join()


def test_a_handler_that_raises_nothing_lets_the_call_go_on():
    made, heard = linop.nudft(RNG.uniform(-8, 8, (20_000, 2)), (100, 100), **CPU), []
    image = RNG.normal(size=(100, 100)).astype(np.complex64)
    expected = made(image)
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        while not heard:
            np.testing.assert_array_equal(made(image), expected)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_operators_and_plans_work_on_after_an_interruption():
    made = linop.nudft(RNG.uniform(-64, 64, (100_000, 2)), (256, 256), **CPU)
    image = RNG.normal(size=(256, 256)).astype(np.complex64)
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            made(image)
    timer.join()
    small = linop.nudft(RNG.uniform(-4, 4, (50, 2)), (8, 8), **CPU)
    x, y = np.ones((8, 8), np.complex64), np.ones(50, np.complex64)
    assert np.isclose(np.vdot(small(x), y), np.vdot(x, small.H(y)), rtol=1e-4)


@pytest.mark.parametrize("method", ["fbp", "fdk", "cgls"])
def test_an_exception_of_progress_is_raised_at_every_call(method):
    named = {"geometry": "fan", "matrix": (16, 16)} if method == "fbp" else {"geometry": "cone", "matrix": (16, 16, 9)}
    scan = simulate.ct(**named, views=12, lines=True).scan
    heard = []
    ct.recon(scan, method, progress=lambda *one: heard.append(one), **CPU)
    for last in range(1, len(heard) + 1):
        count = iter(range(1, 1000))

        def stop(*_, count=count, last=last):
            if next(count) == last:
                raise LookupError(last)

        with pytest.raises(LookupError):
            ct.recon(scan, method, progress=stop, **CPU)


def test_the_first_call_of_a_process_may_be_interrupted():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
                import os, signal, threading
                import rayspin
                signal.signal(signal.SIGINT, signal.default_int_handler)
                threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                try:
                    while True:
                        rayspin.simulate.mri(matrix=(64, 64), trajectory="radial", shots=400)
                except KeyboardInterrupt:
                    print("interrupted")
                """
            ),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "interrupted\n" and "panicked" not in done.stderr, done


def test_threads_that_files_are_read_on_have_a_limit():
    code = "import warnings; warnings.simplefilter('error'); import rayspin"
    for threads, words in [("100000", "at most 4 a core"), ("2", "")]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "RAYON_NUM_THREADS": threads},
        )
        assert words in done.stderr and (done.returncode == 0) == (not words), done
