"""CT, metrics and pictures on a GPU, with arrays of torch and CuPy. Skipped without torch and a GPU."""

import numpy as np
import pytest

from rayspin import ct, metrics, render, simulate

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

ANGLES = np.linspace(0, 2 * np.pi, 90, endpoint=False)
RAYS = ct.Geometry.cone(ANGLES, 40, 64, 2.0, source_to_axis_mm=300, axis_to_detector_mm=300)


@pytest.fixture(scope="module")
def case():
    grid = RAYS.grid()
    volume = np.random.default_rng(2).uniform(0, 0.02, grid.shape).astype(np.float32)
    projectors = [ct.Projector(RAYS, grid, device=device) for device in ("cuda", "cpu")]
    return *projectors, volume, projectors[1].forward(volume)


def close(found, expected):
    return np.linalg.norm(found - expected) < 1e-4 * np.linalg.norm(expected)


def test_projections_of_torch_stay_on_the_gpu(case):
    project, on_cpu, volume, expected = case
    assert close(project.forward(volume), expected)
    given = torch.from_numpy(volume).cuda()
    found = project.forward(given)
    assert isinstance(found, torch.Tensor) and found.is_cuda and close(found.cpu().numpy(), expected)
    out = torch.full_like(found, float("nan"))
    assert project.forward(given, out=out) is out and close(out.cpu().numpy(), expected)
    back = project.adjoint(found)
    assert close(back.cpu().numpy(), on_cpu.adjoint(expected))
    left, right = torch.vdot(found.double().ravel(), found.double().ravel()), torch.vdot(given.double().ravel(), back.double().ravel())
    assert abs(left - right) < 1e-5 * left


def test_projections_of_cupy_stay_on_the_gpu(case):
    cupy = pytest.importorskip("cupy")
    project, _, volume, expected = case
    found = project.forward(cupy.asarray(volume))
    assert isinstance(found, cupy.ndarray) and close(cupy.asnumpy(found), expected)


def test_what_a_gpu_lacks_is_refused(case):
    project, on_cpu, volume, _ = case
    given = torch.from_numpy(volume).cuda()
    for call, error, words in [
        (lambda: ct.Projector(RAYS, RAYS.grid(), device="cuda", dtype="float64"), ValueError, "device='cpu'"),
        (lambda: on_cpu.forward(given), TypeError, "expected an array on cpu"),
        (lambda: project.forward(given.double()), TypeError, "float32"),
        (lambda: project.forward(given.transpose(1, 2)), ValueError, "contiguous"),
    ]:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize("method,named", [(None, {}), ("cgls", {"iterations": 5}), ("os-sart", {"iterations": 2})])
def test_volumes_are_those_of_the_cpu(case, method, named):
    lines = torch.from_numpy(case[3]).cuda()
    scan = ct.Scan.from_arrays(lines, RAYS)
    found, expected = (ct.recon(scan, method, device=device, **named).volume for device in ("cuda", "cpu"))
    assert np.linalg.norm(found - expected) < 1e-3 * np.linalg.norm(expected)


def test_metrics_take_arrays_of_a_gpu(case):
    volume = torch.from_numpy(case[2]).cuda()
    assert metrics.compare(volume * 1.5, case[2]).nrmse == pytest.approx(0.5)
    assert metrics.nrmse(volume + 1j * volume, volume) == pytest.approx(1.0)


def test_pictures_are_those_of_the_cpu():
    made = simulate.ct(matrix=(48, 48, 32), views=1, detector=(4, 4), lines=True)
    for draw in (render.drr, render.mip):
        found, expected = (
            draw(made.truth, made.grid.spacing_mm, size=128, view="left", device=device) for device in ("cuda", "cpu")
        )
        assert close(found, expected) and expected.max() > 0.01
    found, expected = (
        render.surface(made.truth, made.grid.spacing_mm, size=128, device=device).astype(int) for device in ("cuda", "cpu")
    )
    assert np.abs(found - expected).mean() < 0.5 and expected.max() > 100
