"""What happens to the interpreter: its end during a run, and two copies of the module in one process."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import rayspin


def python(code, **named):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, **named
    )


def test_the_interpreter_ends_during_runs():
    # Threads of daemons are in solvers, with functions of Python's in between, when the main thread ends.
    done = python(
        """
        import threading, time
        import numpy as np
        from rayspin import linop, solve
        from rayspin.nufft import Plan

        op = linop.custom(lambda x: x, lambda x: x, (64,), (64,), dtype="float64", device="cpu")
        slow = linop.diagonal(np.linspace(1, 2, 64), device="cpu") @ op
        plan = Plan(2, (128, 128), dtype="complex64", eps=1e-4, device="cpu")
        plan.setpts(np.linspace(-3, 3, 10000), np.linspace(3, -3, 10000))
        image = np.ones((8, 128, 128), np.complex64)
        started = threading.Barrier(4)

        def iterate():
            started.wait()
            while True:
                solve.cg(slow, np.ones(64), iterations=10**6, tolerance=0, callback=lambda *step: None)

        def transform():
            started.wait()
            while True:
                plan.execute(image)

        for work in (iterate, iterate, transform):
            threading.Thread(target=work, daemon=True).start()
        started.wait()
        time.sleep(0.3)
        """
    )
    assert done.returncode == 0 and "panicked" not in done.stderr, done


def test_two_copies_of_the_module_work_side_by_side(tmp_path):
    here = pathlib.Path(rayspin.__file__).parent
    shutil.copytree(here, tmp_path / "other_rayspin", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (tmp_path / "other_rayspin").glob("*.py"):
        path.write_text(path.read_text().replace("rayspin.", "other_rayspin."))
    done = python(
        """
        import numpy as np
        import rayspin
        import other_rayspin

        points = np.linspace(-3, 3, 40)
        found = []
        for package in (rayspin, other_rayspin):
            plan = package.nufft.Plan(1, 16, device="cpu")
            plan.setpts(points)
            found.append(plan.execute(np.ones(40, complex)))
        np.testing.assert_array_equal(*found)
        mine = rayspin.linop.identity((3,), device="cpu")
        try:
            mine + other_rayspin.linop.identity((3,), device="cpu")
        except TypeError:
            print("refused")
        """,
        cwd=tmp_path,
    )
    assert done.returncode == 0 and done.stdout == "refused\n", done


def test_the_compiler_of_a_package_is_named(tmp_path):
    for folder in ("nvidia/cuda_nvrtc/lib", "nvidia/cu13/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "libnvrtc.so.12").touch()
    done = python(
        "import rayspin, os; print(os.environ['RAYSPIN_CUDA_PATH'])",
        env={"PYTHONPATH": str(tmp_path), "RAYSPIN_CUDA_PATH": "/opt/mine"},
    )
    mine = f"/opt/mine:{tmp_path}/nvidia/cu13/lib:{tmp_path}/nvidia/cuda_nvrtc/lib"
    # The environment's own packages may follow.
    assert done.stdout.startswith(mine), done


def threads_of(text, **environment):
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_threads_are_limited():
    assert threads_of("import rayspin; print(rayspin.threads())", RAYSPIN_THREADS="1") == ("1", "")
    text = "import rayspin; rayspin.set_threads(1); rayspin.set_threads(2); print(rayspin.threads())"
    assert threads_of(text, RAYSPIN_THREADS="3")[0] == "2"
    for wrong in ("0", "many", "1000000"):
        said = threads_of("import rayspin", RAYSPIN_THREADS=wrong)[1]
        assert "RAYSPIN_THREADS: expected a number from 1 to" in said and f"found {wrong}" in said
    text = """
import rayspin
for wrong in (0, -1, 10**6):
    try:
        rayspin.set_threads(wrong)
    except ValueError as error:
        assert "threads: expected a number from 1" in str(error)
    else:
        raise SystemExit("taken")
rayspin.set_threads(1)
assert rayspin.threads() == 1
rayspin.fft((4, 4), device="cpu")
rayspin.set_threads(1)
try:
    rayspin.set_threads(2)
except RuntimeError as error:
    print(error)
"""
    assert "threads that have started already is 1" in threads_of(text)[0]
    arrays = "import numpy as np, rayspin; rayspin.Scan.from_arrays([np.ones(9).tolist()], np.eye(9, 2), shape=(8, 8), units='cycles/fov')"
    limited = f"{arrays}; import os; print(len(os.listdir('/proc/self/task')))"
    few, many = (int(threads_of(limited, RAYSPIN_THREADS=count, OPENBLAS_NUM_THREADS="1")[0]) for count in ("1", "4"))
    assert few < many
