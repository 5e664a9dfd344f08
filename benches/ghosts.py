"""Ghosts of real echo-planar scans: Rayspin's images beside a plain correction in NumPy.

    python benches/ghosts.py [FOLDER FOR PICTURES]

Runs the release build (or $RAYSPIN) on the scans of $RAYSPIN_DATA (or ../shared/data). NumPy takes samples to x by sums over their
places, finds a constant and a slope between lines of the two directions in a scan without phase encoding or in reference readouts, and
takes both off every other line. The ghost is the object moved by half the field of view (by its parts in scans of several shots), less the
object: the ratio is the mean magnitude there over the mean in the object. Both images have one mask. The scans of MIRT have no
reference: their mask is the file's, and the reference image of MIRT (`xref_cg`, from a scan that is not echo-planar) stands for NumPy's.
"""

import lzma
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
RAYSPIN = os.environ.get("RAYSPIN", str(ROOT / "target" / "release" / "rayspin"))
DATA = pathlib.Path(os.environ.get("RAYSPIN_DATA", ROOT.parent / "shared" / "data")) / "mri"
REVERSE, REFERENCE = 1 << 21, 1 << 23


def rayspin(*words):
    subprocess.run([RAYSPIN, *map(str, words), "-q", "--device", "cpu"], check=True, stdout=subprocess.DEVNULL)


def unpacked(name, folder):
    target = folder / name
    target.write_bytes(lzma.decompress((DATA / "twix" / f"{name}.xz").read_bytes()))
    return target


def readouts(scan, folder):
    """Readouts of an ISMRMRD file, in time: samples [readout, coil, sample], flags, line; and the header."""
    converted = folder / "converted.h5"
    rayspin("convert", scan, converted)
    with h5py.File(converted) as file:
        own = file["dataset/data"][:]
        xml = file["dataset/xml"][0].decode()
    heads = own["head"]
    samples = np.array([
        one.view(np.complex64).reshape(head["active_channels"], -1) for head, one in zip(heads, own["data"])
    ])
    return samples.astype(complex), heads["flags"], heads["idx"]["kspace_encode_step_1"].astype(int), xml


def along_trapezoid(rise, flat, fall, start, dwell, samples):
    """The area of a trapezoid of height 1 until the middle of each sample, from the middle of the area."""
    time = start + dwell * (np.arange(samples) + 0.5)
    up, top = np.clip(time, 0, rise), np.clip(time - rise, 0, flat)
    down = np.clip(time - rise - flat, 0, fall)
    area = up**2 / (2 * rise) + top + down - down**2 / (2 * fall)
    return area - (rise / 2 + flat + fall / 2) / 2


def places_of(sequence):
    """Where the samples of the first readout of a Pulseq sequence lie along x, in cycles/m."""
    text = sequence.read_text()
    rows = lambda name: [line.split() for line in text.split(f"[{name}]\n")[1].split("\n\n")[0].splitlines()]
    block = next(row for row in rows("BLOCKS") if row[6] != "0")
    _, amplitude, rise, flat, fall, delay = next([float(word) for word in row] for row in rows("TRAP") if row[0] == block[3])
    _, samples, dwell, start = next([float(word) for word in row[:4]] for row in rows("ADC") if row[0] == block[6])
    return abs(amplitude) * 1e-6 * along_trapezoid(rise, flat, fall, start - delay, dwell * 1e-3, int(samples))


def to_x(samples, places, backwards, pixels):
    """Readouts along x: Σ w d e^{i2πkx/n}, w the distance of samples."""
    x = np.arange(pixels) - pixels // 2
    own = np.where(backwards[:, None, None], samples[..., ::-1], samples) * np.abs(np.gradient(places))
    return own @ np.exp(2j * np.pi * np.outer(places, x) / pixels)


def phase_of(lines, backwards):
    """The constant and the slope of reversed lines over the others, of all coils together."""
    x = np.arange(lines.shape[-1]) - lines.shape[-1] // 2
    products = np.zeros(lines.shape[-1], complex)
    for before, own, after, reversed in zip(lines, lines[1:], lines[2:], backwards[1:]):
        pair = np.sum(own * np.conj((before + after) / 2), 0)
        products += pair if reversed else np.conj(pair)
    slope = np.angle(np.sum(products[1:] * np.conj(products[:-1])))
    constant = np.angle(np.sum(products * np.exp(-1j * slope * x)))
    weight = np.abs(products)
    for _ in range(5):
        left = np.angle(products * np.exp(-1j * (constant + slope * x)))
        matrix = [[np.sum(weight), np.sum(weight * x)], [np.sum(weight * x), np.sum(weight * x * x)]]
        more = np.linalg.solve(matrix, [np.sum(weight * left), np.sum(weight * x * left)])
        constant, slope = constant + more[0], slope + more[1]
    return constant, slope


def image_of(lines, backwards, steps, phase, count):
    """The image, with a phase taken off reversed lines: the root of the sum of squares of coils."""
    x = np.arange(lines.shape[-1]) - lines.shape[-1] // 2
    constant, slope = phase
    turned = np.where(backwards[:, None, None], lines * np.exp(-1j * (constant + slope * x)), lines)
    y = np.arange(count) - count // 2
    coils = np.einsum("yk,kcx->cyx", np.exp(2j * np.pi * np.outer(y, steps) / count), turned)
    return np.sqrt(np.sum(np.abs(coils) ** 2, 0))


def ghost(image, mask, shots=1):
    parts = [np.roll(mask, part * len(mask) // (2 * shots), 0) for part in range(1, 2 * shots)]
    region = np.any(parts, 0) & ~mask
    magnitude = np.abs(image)
    return magnitude[region].mean() / magnitude[mask].mean()


def reconstructed(folder, scan, *options):
    image = folder / "image.npy"
    rayspin("recon", "mri", scan, "-o", image, *options)
    return np.squeeze(np.load(image))


def of_pulseq(name, reference, first, step, folder):
    scan, sequence = unpacked(f"{name}.dat", folder), unpacked(f"{name}.seq", folder)
    pixels = 96
    places = 0.22 * places_of(sequence)
    backwards = np.arange(96) % 2 == 1
    samples, *_ = readouts(unpacked(f"{reference}.dat", folder), folder)
    phase = phase_of(to_x(samples, places, backwards, pixels), backwards)
    samples, *_ = readouts(scan, folder)
    lines, steps = to_x(samples, places, backwards, pixels), first + step * np.arange(96)
    images = [image_of(lines, backwards, steps, own, 96) for own in ((0, 0), phase)]
    return images, reconstructed(folder, scan, "--sequence", sequence)


def of_siemens(name, folder):
    scan = unpacked(name, folder)
    samples, flags, steps, xml = readouts(scan, folder)
    number = lambda key: float(re.search(f"<name>{key}</name>\\s*<value>(.*?)<", xml)[1])
    ramps = [number(key) for key in ("rampUpTime", "flatTopTime", "rampDownTime", "acqDelayTime", "dwellTime")]
    area = along_trapezoid(*ramps, samples.shape[-1])
    # Samples cover the encoded field of view, which is twice the image's.
    whole = ramps[4] * samples.shape[-1]
    ends = along_trapezoid(*ramps[:3], ramps[3] - whole / 2, whole, 2)
    places = area / (ends[1] - ends[0]) * samples.shape[-1] / 2
    backwards = flags & REVERSE != 0
    lines = to_x(samples, places, backwards, 80)
    of_image = flags & REFERENCE == 0
    phase = phase_of(lines[~of_image], backwards[~of_image])
    make = lambda own: image_of(lines[of_image], backwards[of_image], steps[of_image] - 40, own, 80)
    return [make((0, 0)), make(phase)], scan


def of_mirt(name, file, folder, template):
    """An echo-planar scan of MIRT as an ISMRMRD file: its readouts are the lines of a grid."""
    samples = file[f"y{name}"][:]
    samples = (samples["real"] + 1j * samples["imag"]).reshape(64, 1, 64)
    x, y = 24 * file[f"k{name}"][:].reshape(2, 64, 64)
    backwards, steps = x[:, 1] < x[:, 0], np.rint(y[:, 0]).astype(int)
    with h5py.File(template) as other:
        kind = other["dataset/data"].dtype
        blank = other["dataset/data"][0]
    rows = np.empty(64, kind)
    for index, (row, reversed, step) in enumerate(zip(samples, backwards, steps)):
        head = blank["head"].copy()
        head["flags"] = REVERSE if reversed else 0
        head["number_of_samples"], head["active_channels"], head["available_channels"] = 64, 1, 1
        head["center_sample"], head["trajectory_dimensions"], head["scan_counter"] = 32, 0, index
        for counter in head["idx"].dtype.names:
            head["idx"][counter] = 0
        head["idx"]["kspace_encode_step_1"] = step + 32
        rows[index] = (head, np.zeros(0, np.float32), row[0].astype(np.complex64).view(np.float32))
    space = "<matrixSize><x>64</x><y>64</y><z>1</z></matrixSize><fieldOfView_mm><x>240</x><y>240</y><z>5</z></fieldOfView_mm>"
    xml = (
        '<?xml version="1.0"?><ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD"><experimentalConditions>'
        "<H1resonanceFrequency_Hz>128000000</H1resonanceFrequency_Hz></experimentalConditions><encoding>"
        f"<encodedSpace>{space}</encodedSpace><reconSpace>{space}</reconSpace><encodingLimits><kspace_encoding_step_1>"
        "<minimum>0</minimum><maximum>63</maximum><center>32</center></kspace_encoding_step_1></encodingLimits>"
        "<trajectory>epi</trajectory></encoding></ismrmrdHeader>"
    )
    scan = folder / f"{name}.h5"
    with h5py.File(scan, "w") as made:
        made.create_dataset("dataset/data", data=rows, maxshape=(None,))
        made.create_dataset("dataset/xml", data=[xml], dtype=h5py.string_dtype("ascii"))
    lines = to_x(samples, x[0], backwards, 64)
    return image_of(lines, backwards, steps, (0, 0), 64), scan


def main():
    pictures = []

    def row(name, mask, raw, plain, own, shots=1):
        ratios = [ghost(image, mask, shots) for image in (raw, plain, own)]
        print(f"| {name} | {ratios[0]:.4f} | {ratios[1]:.5f} | {ratios[2]:.5f} | {ratios[2] / ratios[1]:.4f} |", flush=True)
        level = lambda image: np.abs(image) / np.percentile(np.abs(image), 99)
        pictures.append((name, np.hstack([level(image) for image in (raw, plain, own)])))

    print("| scan | ghost/object without correction | NumPy | Rayspin | Rayspin/NumPy |\n|---|---|---|---|---|")
    mask_of = lambda image: np.abs(image) > 0.2 * np.percentile(np.abs(image), 99)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, reference, first, step in [
            ("04_03_basic_epi_96x96_peplus", "04_03_basic_epi_96x96_pe0", 47, -1),
            ("04_03_basic_epi_96x96_peminus", "04_03_basic_epi_96x96_pe0", -47, 1),
            ("04_03_ramp_sampling_epi_96x96_peplus", "04_03_ramp_sampling_epi_96x96_pe0", 47, -1),
        ]:
            (raw, plain), own = of_pulseq(name, reference, first, step, folder)
            row(f"{name}, entropy", mask_of(plain), raw, plain, own)
        (raw, plain), scan = of_siemens("epi_ve11.dat", folder)
        for choice in ("readouts", "entropy"):
            own = reconstructed(folder, scan, "--epi-reference", choice)
            row(f"epi_ve11, {choice}", mask_of(plain), raw, plain, own)
        with h5py.File(DATA / "mat" / "epi_phantom_1ch_v73.mat") as file:
            mask = file["mask_obj"][:].astype(bool)
            best = file["xref_cg"][:]
            best = best["real"] + 1j * best["imag"]
            for name, shots in (("ss", 1), ("s2", 2), ("s4", 4)):
                raw, scan = of_mirt(name, file, folder, folder / "converted.h5")
                own = reconstructed(folder, scan)
                row(f"MIRT {name}, entropy (beside its reference image)", mask, raw, best, own, shots)
    if len(sys.argv) > 1:
        from PIL import Image

        for name, picture in pictures:
            path = pathlib.Path(sys.argv[1]) / f"{re.sub('[^a-z0-9]+', '_', name.lower())}.png"
            Image.fromarray((np.clip(picture, 0, 1) ** 0.5 * 255).astype(np.uint8)).resize((picture.shape[1] * 4, picture.shape[0] * 4)).save(path)


main()
