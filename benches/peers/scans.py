"""Every real scan beside independent implementations: SigPy, and BART where a `bart` is on the PATH.

    python benches/peers/scans.py [folder]

All programs get Rayspin's sensitivity maps and minimise the same objective with the same weight, so that what differs is
the transforms and the solvers. For each image: NRMSE and correlation of magnitudes with Rayspin's after one complex scale
factor, the relative residual |F S x - d| / |d| evaluated with FINUFFT in double precision, and the mean magnitude outside the
body over that inside ("streaks"), the body being where a smoothed image of all programs exceeds a tenth of its maximum.

Prints the table, and writes it with the pictures side by side to FOLDER/index.html (default out/peers).
"""

import base64
import html
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import finufft
import numpy as np
import PIL.Image
import scipy.ndimage
import sigpy as sp
import sigpy.mri as mr

import cardiac

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = cardiac.DATA / "mri"
RAYSPIN = os.environ.get("RAYSPIN", str(ROOT / "target" / "release" / "rayspin"))
THREADS = 2


class Scan:
    """Samples [coil, ...] with a trajectory [..., (y, x)] in cycles per field of view, or on the grid with a mask."""

    def __init__(self, file, shape, data, coordinates=None):
        self.file, self.shape, self.data, self.coordinates = str(DATA / file), shape, data, coordinates
        self.mask = None if coordinates is not None else (np.abs(data).sum(0) > 0)

    def predict(self, maps, image):
        coils = (maps * image).astype(np.complex128)
        if self.mask is not None:
            return sp.fft(coils, axes=(-2, -1), norm=None) * self.mask
        x = [2 * np.pi * self.coordinates[..., d].ravel().astype(np.float64) / self.shape[d] for d in (0, 1)]
        return finufft.nufft2d2(*x, coils, eps=1e-12, isign=-1).reshape(self.data.shape)

    def residual(self, maps, image):
        predicted, data = self.predict(maps, image).ravel(), self.data.astype(np.complex128).ravel()
        scale = np.vdot(predicted, data) / np.vdot(predicted, predicted)
        return np.linalg.norm(scale * predicted - data) / np.linalg.norm(data)


def radial():
    trajectory, data = cardiac.read(str(DATA / "cardiac_radial_12ch.h5"))
    return Scan("cardiac_radial_12ch.h5", (256, 256), data, np.ascontiguousarray(trajectory[..., ::-1]))


def spiral():
    import ismrmrd

    with ismrmrd.Dataset(str(DATA / "spiral_jemris_1ch.h5"), "dataset", mode="r") as dataset:
        readouts = [dataset.read_acquisition(i) for i in range(dataset.number_of_acquisitions())]
    # The first readout is a dummy.
    longest = max(r.data.shape[1] for r in readouts)
    readouts = [
        r for r in readouts if r.data.shape[1] == longest and r.traj.shape[0] == longest and np.any(r.traj)
    ]
    data = np.stack([r.data for r in readouts], axis=1).astype(np.complex64)
    trajectory = np.stack([r.traj[:, 1::-1] for r in readouts]).astype(np.float32)
    return Scan("spiral_jemris_1ch.h5", (220, 220), data, np.ascontiguousarray(trajectory))


def brain():
    header = (DATA / "brain_cartesian_8ch.hdr").read_text().splitlines()
    dims = [int(n) for n in header[1].split()]
    samples = np.fromfile(DATA / "brain_cartesian_8ch.cfl", np.complex64).reshape(dims, order="F")
    data = np.ascontiguousarray(np.moveaxis(np.squeeze(samples), -1, 0))
    return Scan("brain_cartesian_8ch.cfl", data.shape[1:], data)


class Rayspin:
    """One run of the program and what it says of it."""

    def __init__(self, scan, words, maps):
        with tempfile.TemporaryDirectory() as folder:
            image, record = f"{folder}/image.npy", f"{folder}/record.json"
            command = [RAYSPIN, "recon", "mri", scan.file, "-o", image, "--record", record, "--quiet"]
            command += ["--threads", str(THREADS), *words]
            if len(scan.data) > 1:
                command += ["--save-maps", f"{folder}/maps.npy"] if maps is None else []
            if maps is not None:
                np.save(f"{folder}/given.npy", maps)
                command += ["--maps", f"{folder}/given.npy"]
            subprocess.run(command, check=True)
            self.image = np.squeeze(np.load(image))
            self.record = json.loads(pathlib.Path(record).read_text())
            self.maps = maps
            if maps is None:
                one = np.ones((1, *scan.shape), np.complex64)
                self.maps = np.squeeze(np.load(f"{folder}/maps.npy")) if len(scan.data) > 1 else one
        self.seconds = self.record["total_seconds"]
        parameters = self.record["parameters"]
        self.eigenvalue = parameters["largest eigenvalue"]
        # Rayspin's image is N times the one that solves F rho = d.
        brightness = parameters.get("image scale", float(np.prod(scan.shape))) / float(np.prod(scan.shape))
        self.weight = parameters["lambda"] * self.eigenvalue * brightness


def in_peers_units(scan, weight, power):
    """The weight of a penalty of degree `power` in the image, for peers whose transforms are scaled by 1/sqrt(voxels).

    Theirs is |A x - d|^2/2 with x = sqrt(N) rho; Rayspin's is |F rho - d|^2/2 off the grid and 1/N of that on it.
    """
    voxels = float(np.prod(scan.shape))
    return weight * voxels ** (0 if scan.mask is not None else -1) * voxels ** (1 - power / 2)


def sigpy_image(scan, maps, method, weight, iterations):
    options = {"coord": scan.coordinates, "show_pbar": False, "max_iter": iterations}
    data = scan.data
    if method == "cg-sense":
        app = mr.app.SenseRecon(data, maps, lamda=in_peers_units(scan, weight, 2), **options)
    elif method == "wavelet":
        lamda = in_peers_units(scan, weight, 1)
        app = mr.app.L1WaveletRecon(data, maps, lamda, wave_name="db2", **options)
    else:
        app = mr.app.TotalVariationRecon(data, maps, in_peers_units(scan, weight, 1), **options)
    return app.run()


def bart_image(scan, maps, method, weight, iterations):
    with tempfile.TemporaryDirectory() as folder:
        tool = cardiac.Bart.__new__(cardiac.Bart)
        tool.folder, tool.pics, tool.environment = folder, [], os.environ | {"OMP_NUM_THREADS": str(THREADS)}
        tool.write("maps", maps.transpose(2, 1, 0)[:, :, None])
        words = []
        if scan.mask is None:
            coordinates = np.zeros((*scan.coordinates.shape[:-1], 3), np.complex64)
            coordinates[..., :2] = scan.coordinates[..., ::-1]
            tool.write("trajectory", coordinates.transpose(2, 1, 0))
            tool.write("kspace", scan.data.transpose(2, 1, 0)[None])
            words = ["-t", "trajectory"]
        else:
            tool.write("kspace", scan.data.transpose(2, 1, 0)[:, :, None])
        # Without rescaling of the data, so that the weight means the same.
        words += ["-w", 1, "-i", iterations]
        if method == "cg-sense":
            words += ["-l2", "-r", in_peers_units(scan, weight, 2)]
        else:
            # FISTA for the wavelet; ADMM, BART's choice, for total variation.
            words += ["-R", f"{'W' if method == 'wavelet' else 'T'}:3:0:{in_peers_units(scan, weight, 1)}"]
            words += ["-e"] if method == "wavelet" else []
        tool.run("pics", *words, "kspace", "maps", "image")
        return np.fromfile(f"{folder}/image.cfl", np.complex64).reshape(scan.shape)


CASES = [
    (
        "Heart, 25 radial spokes, 12 coils",
        radial,
        "cg-sense",
        ["--iterations", "15"],
        {"SigPy": 15, "BART": 15},
    ),
    ("Heart, 25 radial spokes, 12 coils", radial, "tv", [], {"SigPy": 300, "BART": 100}),
    ("Heart, 25 radial spokes, 12 coils", radial, "wavelet", [], {"SigPy": 150, "BART": 150}),
    (
        "Head, Poisson disc, 12.4 %, 8 coils",
        brain,
        "cg-sense",
        ["--iterations", "30", "--tolerance", "0"],
        {"SigPy": 30, "BART": 30},
    ),
    ("Head, Poisson disc, 12.4 %, 8 coils", brain, "wavelet", [], {"SigPy": 150, "BART": 150}),
    ("Head, Poisson disc, 12.4 %, 8 coils", brain, "tv", [], {"SigPy": 300, "BART": 100}),
    ("Head, 15 spirals, 1 coil", spiral, "cg-sense", ["--iterations", "20", "--tolerance", "0"], {"SigPy": 20, "BART": 20}),
]


def fitted(image, reference):
    """Both magnitudes, the image after the complex factor that fits it best."""
    scale = np.vdot(image, reference) / np.vdot(image, image)
    return np.abs(scale * image), np.abs(reference)


def picture(values, white):
    grey = np.clip(values / white, 0, 1) * 255
    file = io.BytesIO()
    PIL.Image.fromarray(grey.astype(np.uint8)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .2rem .8rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid #8886 }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: 1rem }
figure { margin: 0 } img { width: 100%; image-rendering: pixelated }
div.wide { overflow-x: auto }
"""


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.path.relpath(ROOT / "out" / "peers"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = str(THREADS)
    body, scans, maps = [], {}, {}
    columns = ["program", "seconds", "iterations", "residual", "streaks", "NRMSE to Rayspin", "correlation"]
    for title, load, method, words, peers in CASES:
        if load not in scans:
            scans[load] = load()
        scan = scans[load]
        name = "ls" if method == "cg-sense" and len(scan.data) == 1 else method
        ours = Rayspin(scan, ["--method", name, *words], maps.get(load) if len(scan.data) > 1 else None)
        maps.setdefault(load, ours.maps)
        images = {"Rayspin": (ours.image, ours.seconds, ours.record["parameters"]["iterations"])}
        for peer, iterations in peers.items():
            if peer == "BART" and not shutil.which("bart"):
                continue
            run = sigpy_image if peer == "SigPy" else bart_image
            seconds, image = cardiac.timed(lambda: run(scan, maps[load], method, ours.weight, iterations))
            images[peer] = (image, seconds, iterations)
        smooth = sum(
            scipy.ndimage.gaussian_filter(fitted(image, ours.image)[0], 6) for image, _, _ in images.values()
        )
        body_mask = smooth > 0.1 * smooth.max()
        rows, figures = [], []
        white = np.percentile(np.abs(ours.image), 99.5)
        for peer, (image, seconds, iterations) in images.items():
            own, reference = fitted(image, ours.image)
            rows.append(
                [
                    peer,
                    f"{seconds:.2f}",
                    str(iterations),
                    f"{scan.residual(maps[load], image):.4f}",
                    f"{own[~body_mask].mean() / own[body_mask].mean():.4f}",
                    f"{np.linalg.norm(own - reference) / np.linalg.norm(reference):.4f}",
                    f"{np.corrcoef(own.ravel(), reference.ravel())[0, 1]:.5f}",
                ]
            )
            figures.append((peer, picture(own, white)))
            if peer != "Rayspin":
                figures.append((f"{peer} − Rayspin, ×10", picture(np.abs(own - reference), white / 10)))
        print(f"\n{title}: {name}")
        for row in [columns, *rows]:
            print("".join(f"{cell:>18}" for cell in row), flush=True)
        cells = "".join(f"<tr>{''.join(f'<td>{html.escape(c)}</td>' for c in row)}</tr>" for row in rows)
        heads = "".join(f"<th>{c}</th>" for c in columns)
        shown = "".join(
            f'<figure><img alt="{n}" src="data:image/png;base64,{p}"><figcaption>{n}</figcaption></figure>'
            for n, p in figures
        )
        body.append(
            f'<h2>{title}: {name}</h2><div class="row">{shown}</div>'
            f'<div class="wide"><table><tr>{heads}</tr>{cells}</table></div>'
        )
    intro = html.escape(__doc__.split("\n\n")[2].replace("\n", " "))
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Rayspin and its peers</title><style>{STYLE}</style><h1>Rayspin and its peers</h1><p>{intro}</p>"
        + "".join(body)
    )
    (folder / "index.html").write_text(page)
    print(f"\nthe pictures: {folder / 'index.html'}")


if __name__ == "__main__":
    main()
