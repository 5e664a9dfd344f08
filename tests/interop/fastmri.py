"""Files as fastMRI lays them out, with its own reconstruction in NumPy: centred orthonormal FFT, root of the sum of squares over
coils, centre crop. The header is ISMRMRD's, with the sizes of a knee: readouts of twice the field of view, and lines padded with zeros."""

import pathlib
import sys

import h5py
import numpy as np

SLICES, COILS, ROWS, COLUMNS, CROP = 3, 4, 64, 44, (32, 32)
MEASURED = 40

HEADER = """<?xml version="1.0" encoding="utf-8"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<acquisitionSystemInformation><systemVendor>SIEMENS</systemVendor><receiverChannels>{coils}</receiverChannels></acquisitionSystemInformation>
<experimentalConditions><H1resonanceFrequency_Hz>123000000</H1resonanceFrequency_Hz></experimentalConditions>
<encoding>
<encodedSpace><matrixSize><x>{rows}</x><y>{columns}</y><z>1</z></matrixSize>
<fieldOfView_mm><x>280</x><y>{encoded}</y><z>4.5</z></fieldOfView_mm></encodedSpace>
<reconSpace><matrixSize><x>{crop[0]}</x><y>{crop[1]}</y><z>1</z></matrixSize>
<fieldOfView_mm><x>140</x><y>140</y><z>4.5</z></fieldOfView_mm></reconSpace>
<encodingLimits>
<kspace_encoding_step_1><minimum>0</minimum><maximum>{last}</maximum><center>{centre}</center></kspace_encoding_step_1>
<slice><minimum>0</minimum><maximum>{last_slice}</maximum><center>0</center></slice>
</encodingLimits>
<trajectory>cartesian</trajectory>
</encoding>
</ismrmrdHeader>"""


def header(coils, rows=ROWS, columns=COLUMNS, measured=MEASURED, crop=CROP, slices=SLICES):
    encoded = 280 / rows * columns
    return HEADER.format(
        rows=rows, columns=columns, coils=coils, crop=crop, encoded=encoded, last=measured - 1, centre=measured // 2, last_slice=slices - 1
    )


def fft2c(x):
    axes = (-2, -1)
    return np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(x, axes), norm="ortho"), axes)


def ifft2c(k):
    axes = (-2, -1)
    return np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(k, axes), norm="ortho"), axes)


def centre_crop(image, shape):
    first, second = [(have - want) // 2 for have, want in zip(image.shape[-2:], shape)]
    return image[..., first : first + shape[0], second : second + shape[1]]


def objects(slices=SLICES, coils=COILS, rows=ROWS, columns=COLUMNS):
    """Coil images [slice, coil, row, column] without any symmetry, which would hide an exchange of axes."""
    row, column = np.meshgrid(np.linspace(-2, 2, rows, False), np.linspace(-1.375, 1.375, columns, False), indexing="ij")
    images = np.zeros((slices, coils, rows, columns), complex)
    for s in range(slices):
        body = ((row / 0.85) ** 2 + (column / 0.6) ** 2 < 1) * (1 + 0.5 * (row > 0.2) + 0.3 * s * (column > 0.1))
        for c in range(coils):
            far = (row - np.cos(c)) ** 2 + (column - np.sin(c)) ** 2
            images[s, c] = body * np.exp(-far / 2 + 1j * (row * c + column))
    return images


def padded(kspace, measured=MEASURED):
    """Zeros beyond the lines that were measured, as fastMRI has them."""
    columns = kspace.shape[-1]
    left = columns // 2 - measured // 2
    kspace[..., :left] = 0
    kspace[..., left + measured :] = 0
    return kspace


def rss(images, axis=1):
    return np.sqrt((abs(images) ** 2).sum(axis))


def put(path, kspace, images, with_header=True, mask=None, crop=CROP):
    coils = kspace.shape[1] if kspace.ndim == 4 else 1
    with h5py.File(path, "w") as file:
        file["kspace"] = (kspace if mask is None else kspace * mask).astype("c8")
        if with_header:
            file["ismrmrd_header"] = header(coils, kspace.shape[-2], kspace.shape[-1], crop=crop, slices=len(kspace))
        for name, image in images.items():
            file[name] = image.astype("f4")
        if mask is not None:
            file["mask"] = mask
            file.attrs["acceleration"] = 4
        file.attrs["acquisition"] = "CORPD_FBK"
        file.attrs["patient_id"] = "0f1e2d3c"
        file.attrs["max"] = max([1.0] + [float(image.max()) for image in images.values()])
        file.attrs["norm"] = 1.0


def write(folder):
    kspace = padded(fft2c(objects()))
    crops = centre_crop(ifft2c(kspace), CROP)
    put(folder / "multicoil.h5", kspace, {"reconstruction_rss": rss(crops)})
    np.save(folder / "rss.npy", rss(crops).astype("f4"))
    put(folder / "singlecoil.h5", kspace[:, 0], {"reconstruction_esc": abs(crops[:, 0]), "reconstruction_rss": rss(crops)})
    np.save(folder / "esc.npy", abs(crops[:, 0]).astype("f4"))
    mask = np.arange(COLUMNS) % 4 == 1
    mask[COLUMNS // 2 - 3 : COLUMNS // 2 + 3] = True
    put(folder / "test.h5", kspace, {}, mask=mask)
    np.save(folder / "test.npy", rss(centre_crop(ifft2c(kspace * mask), CROP)).astype("f4"))
    put(folder / "short_mask.h5", kspace, {}, mask=np.ones(COLUMNS, bool))
    with h5py.File(folder / "short_mask.h5", "r+") as file:
        del file["mask"]
        file["mask"] = mask[1:]
    # fastMRI's own tests write no header.
    put(folder / "no_header.h5", kspace, {"reconstruction_rss": rss(crops)}, with_header=False)


def samples(sources):
    """A small file for tests of damaged files, which the sources hold."""
    kspace = fft2c(objects(1, 2, 8, 6))
    crops = centre_crop(ifft2c(kspace), (4, 4))
    with h5py.File(sources / "fastmri/samples/small.h5", "w", libver="latest") as file:
        file["kspace"] = kspace.astype("c8")
        file["ismrmrd_header"] = header(2, 8, 6, 6, (4, 4), 1)
        file["reconstruction_rss"] = rss(crops).astype("f4")
        file["mask"] = np.array([True, True, True, True, True, False])
        file.attrs["acquisition"] = "AXT2"


if __name__ == "__main__":
    {"write": write, "samples": samples}[sys.argv[1]](pathlib.Path(sys.argv[2]))
