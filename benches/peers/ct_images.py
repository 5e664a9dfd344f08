"""Reconstructions of Rayspin, scikit-image, ASTRA (CPU), mbirjax and RTK from the same line integrals, beside the truth.

    cargo build --release -p rayspin-cli
    python -m pip install h5py scikit-image astra-toolbox mbirjax itk-rtk     # wheels; not in requirements.txt
    python benches/peers/ct_images.py [rounds]

A slice of 511 x 511 from 720 parallel views, and 128 cubed voxels from 360 views of a cone beam, as `rayspin simulate ct --lines` writes
them (2 x 2 rays a pixel). Each program runs with its defaults for this method and one Ram-Lak window, on all threads that it uses. Times:
peers from arrays in memory to arrays in memory, after one run to warm up, median of the rounds; Rayspin from file to file, its start included.
RMSE is over the circle inscribed in the slices, relative to the truth's RMS there, after the best factor (mbirjax and scikit-image have
other units). Images are turned and mirrored to the truth's orientation.
"""

import importlib.metadata
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

RAYSPIN = pathlib.Path(__file__).resolve().parents[2] / "target" / "release" / "rayspin"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3


def rayspin(*arguments):
    subprocess.run([RAYSPIN, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compared(image, truth):
    """Correlation and relative RMSE in the best of the orientations of slices and of their order."""
    n = truth.shape[-1]
    at = np.arange(n) - (n - 1) / 2
    circle = np.broadcast_to(np.hypot(at[:, None], at[None, :]) < 0.47 * n, truth.shape)
    wanted = truth[circle]
    best = (-2.0, 0.0)
    for stack in (image, image[::-1]) if image.ndim == 3 else (image,):
        for mirrored in (stack, stack.swapaxes(-1, -2)):
            for turns in range(4):
                found = np.rot90(mirrored, turns, axes=(-2, -1))[circle]
                factor = (found @ wanted) / (found @ found)
                rmse = np.linalg.norm(factor * found - wanted) / np.linalg.norm(wanted)
                best = max(best, (np.corrcoef(found, wanted)[0, 1], rmse))
    return best


def report(name, version, work, truth):
    image = np.asarray(work(), np.float64)
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    correlation, rmse = compared(image.reshape(truth.shape), truth)
    print(f"  {name:28} {version:10} {statistics.median(times):8.3f} s   correlation {correlation:.4f}   RMSE {rmse:.4f}", flush=True)


def ours(folder, method, scan):
    def work():
        rayspin("recon", "ct", scan, "-m", method, "-o", folder / "image.npy", "--device", "cpu", "--no-record", "-q")
        return np.load(folder / "image.npy").real

    return work


def parallel(folder):
    scan, truth = folder / "p.h5", folder / "p.npy"
    rayspin("simulate", "ct", "-g", "parallel", "--matrix", "511,511", "--fov", "511", "--views", "720", "--lines", "-o", scan, "--truth", truth)
    lines = h5py.File(scan)["exchange/data"][:, 0, :]
    degrees = h5py.File(scan)["exchange/theta"][:]
    truth = np.load(truth).real.reshape(511, 511)
    print("511 x 511 from 720 parallel views")
    for method in ("fbp", "fourier"):
        report(f"Rayspin {method}, file to file", "", ours(folder, method, scan), truth)

    from skimage.transform import iradon

    sinogram = lines.T.astype(np.float64)
    version = importlib.metadata.version
    report("scikit-image iradon", version("scikit-image"), lambda: iradon(sinogram, degrees, filter_name="ramp", circle=True), truth)

    import astra

    rays = astra.create_proj_geom("parallel", 1.0, 511, np.deg2rad(degrees))
    slices = astra.create_vol_geom(511, 511)
    projector = astra.create_projector("linear", rays, slices)

    def fbp():
        data = astra.data2d.create("-sino", rays, lines)
        image = astra.data2d.create("-vol", slices)
        config = astra.astra_dict("FBP")
        config.update(ProjectorId=projector, ProjectionDataId=data, ReconstructionDataId=image)
        algorithm = astra.algorithm.create(config)
        astra.algorithm.run(algorithm)
        found = astra.data2d.get(image)
        astra.algorithm.delete(algorithm)
        astra.data2d.delete([data, image])
        return found

    report("ASTRA FBP, CPU, linear", version("astra-toolbox"), fbp, truth)

    import mbirjax

    model = mbirjax.ParallelBeamModel((720, 1, 511), np.deg2rad(degrees))
    model.set_params(recon_shape=(511, 511, 1), verbose=0)
    values = lines[:, None, :]
    report("mbirjax fbp_recon, CPU", version("mbirjax"), lambda: np.asarray(model.fbp_recon(values)), truth)


def cone(folder):
    scan, truth = folder / "c.h5", folder / "c.npy"
    rayspin("simulate", "ct", "--lines", "-o", scan, "--truth", truth)
    file = h5py.File(scan)
    lines, angles = file["exchange/data"][:], file["exchange/theta"][:]
    truth = np.load(truth).real.reshape(128, 128, 128)
    print("128 cubed from 360 views of a cone beam")
    report("Rayspin fdk, file to file", "", ours(folder, "fdk", scan), truth)
    pitch = 2.0 * 256 / 128

    import itk
    from itk import RTK as rtk

    itk.MultiThreaderBase.SetGlobalDefaultNumberOfThreads(os.cpu_count())
    image = itk.Image[itk.F, 3]
    projections = itk.image_from_array(np.ascontiguousarray(lines))
    projections.SetSpacing([pitch, pitch, 1.0])
    projections.SetOrigin([-0.5 * 127 * pitch, -0.5 * 127 * pitch, 0.0])
    geometry = rtk.ThreeDCircularProjectionGeometry.New()
    for angle in angles:
        geometry.AddProjection(600.0, 1200.0, float(angle))

    def fdk():
        start = rtk.ConstantImageSource[image].New()
        start.SetOrigin([-127.0] * 3)
        start.SetSpacing([2.0] * 3)
        start.SetSize([128] * 3)
        start.SetConstant(0.0)
        method = rtk.FDKConeBeamReconstructionFilter[image].New()
        method.SetInput(0, start.GetOutput())
        method.SetInput(1, projections)
        method.SetGeometry(geometry)
        method.Update()
        # RTK turns around y.
        return itk.array_from_image(method.GetOutput()).swapaxes(0, 1)

    report("RTK FDK, CPU", importlib.metadata.version("itk-rtk"), fdk, truth)

    import mbirjax

    model = mbirjax.ConeBeamModel((360, 128, 128), np.deg2rad(angles), source_detector_dist=1200.0 / pitch, source_iso_dist=600.0 / pitch)
    model.set_params(recon_shape=(128, 128, 128), delta_voxel=0.5, verbose=0)
    report(
        "mbirjax fdk_recon, CPU",
        importlib.metadata.version("mbirjax"),
        lambda: np.asarray(model.fdk_recon(lines)).transpose(2, 0, 1),
        truth,
    )


def main():
    print(f"{os.cpu_count()} threads, {ROUNDS} rounds", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        parallel(pathlib.Path(folder))
        cone(pathlib.Path(folder))


if __name__ == "__main__":
    main()
