"""TIFF stacks and NeXus files of other programs, in a folder: write makes them, check reads what Rayspin wrote."""

import lzma
import os
import pathlib
import sys

import h5py
import numpy as np
import tifffile


def number(z, y, x):
    return 100 * z + 10 * y + x


def volume(kind):
    return np.fromfunction(number, (3, 4, 5)).astype(kind)


def nxtomo(path, units, keys, where):
    """Images 0, 1, … hold 1000 + number; flat fields 4000, dark fields 100."""
    images = np.zeros((len(keys), 2, 6), np.uint16)
    for at, key in enumerate(keys):
        images[at] = {0: 1000 + 10 * at + np.arange(6), 1: 4000, 2: 100, 3: 7}[key]
    angles = np.linspace(0, 180, len(keys))
    with h5py.File(path, "w") as file:
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        if where == "subentry":
            entry = entry.create_group("tomo_entry")
            entry.attrs["NX_class"] = "NXsubentry"
        entry["definition"] = "NXtomo"
        detector = entry.create_group("instrument/detector")
        detector["data"] = images
        detector["image_key"] = np.array(keys, np.int32)
        entry["sample/rotation_angle"] = np.deg2rad(angles) if units == "rad" else angles
        entry["sample/rotation_angle"].attrs["units"] = units


def write(folder):
    tifffile.imwrite(folder / "big_endian.tif", volume(np.uint16), byteorder=">", photometric="minisblack")
    tifffile.imwrite(folder / "deflate.tif", volume(np.float32), compression="zlib", photometric="minisblack")
    tifffile.imwrite(folder / "predicted.tif", volume(np.uint16), compression="zlib", predictor=2, photometric="minisblack")
    tifffile.imwrite(folder / "bigtiff.tif", volume(np.float64), bigtiff=True, photometric="minisblack")
    tifffile.imwrite(folder / "tiled.tif", volume(np.uint8), tile=(16, 16), photometric="minisblack")
    tifffile.imwrite(folder / "signed.tif", volume(np.int16) - 200, photometric="minisblack")
    tifffile.imwrite(folder / "imagej.tif", volume(np.float32), imagej=True, metadata={"axes": "ZYX"})
    # As ImageJ writes stacks beyond 4 GB: one page is described, the others follow it.
    with tifffile.TiffWriter(folder / "imagej_one_page.tif", byteorder=">") as file:
        description = "ImageJ=1.53t\nimages=3\nslices=3\n"
        file.write(volume(np.uint16)[0], contiguous=True, description=description, metadata=None, photometric="minisblack")
    with open(folder / "imagej_one_page.tif", "ab") as file:
        offset = tifffile.TiffFile(folder / "imagej_one_page.tif").pages[0].dataoffsets[0]
        assert offset + 40 == os.path.getsize(folder / "imagej_one_page.tif"), "the page's numbers are not last"
        file.write(volume(np.uint16)[1:].astype(">u2").tobytes())
    (folder / "pages").mkdir()
    for z, page in enumerate(volume(np.uint16)):
        tifffile.imwrite(folder / "pages" / f"im2_{5 * z + 8}.tif", page, photometric="minisblack")
    tifffile.imwrite(folder / "colour.tif", np.zeros((4, 5, 3), np.uint8), photometric="rgb")
    with tifffile.TiffWriter(folder / "uneven.tif") as file:
        file.write(np.zeros((4, 5), np.uint8), photometric="minisblack")
        file.write(np.zeros((4, 6), np.uint8), photometric="minisblack")
    pixels = {"resolution": (1 / 2.5, 1 / 5.0), "photometric": "minisblack"}
    tifffile.imwrite(folder / "micron.tif", volume(np.float32), imagej=True, metadata={"axes": "ZYX", "unit": "um"}, **pixels)
    size = {"PhysicalSizeX": 0.25, "PhysicalSizeXUnit": "nm", "PhysicalSizeY": 0.5}
    tifffile.imwrite(folder / "physical.ome.tif", volume(np.float32), metadata={"axes": "ZYX", **size}, photometric="minisblack")
    tifffile.imwrite(folder / "printer.tif", volume(np.float32), resolution=(300, 300), resolutionunit="INCH", photometric="minisblack")
    tifffile.imwrite(folder / "centimetre.tif", volume(np.float32), resolution=(1234, 1234), resolutionunit="CENTIMETER", photometric="minisblack")
    # What a stack states beside its pages.
    wide = np.fromfunction(number, (16, 16, 16)).astype(np.uint16)
    tifffile.imwrite(folder / "planes.tif", wide, volumetric=True, tile=(16, 16, 16), photometric="minisblack")
    for kind in ["u1", "u2", "i4", "f4", "f8"]:
        tifffile.imwrite(folder / f"first_page_{kind}.tif", volume(kind), truncate=True, photometric="minisblack")
    tifffile.imwrite(folder / "first_page_packed.tif", volume("u2"), photometric="minisblack", compression="zlib")
    one = tifffile.TiffFile(folder / "first_page_packed.tif").pages[0].asarray()
    text = '{"shape": [3, 4, 5], "truncated": true}'
    tifffile.imwrite(folder / "first_page_packed.tif", one, photometric="minisblack", compression="zlib", description=text, metadata=None)
    four = np.arange(2 * 3 * 4 * 5, dtype=np.uint16).reshape(2, 3, 4, 5)
    tifffile.imwrite(folder / "times.tif", four, imagej=True, metadata={"axes": "TZYX"})
    tifffile.imwrite(folder / "channels.tif", four.swapaxes(0, 1), imagej=True, metadata={"axes": "ZCYX"})
    tifffile.imwrite(folder / "channels.ome.tif", four, metadata={"axes": "CZYX"}, photometric="minisblack")
    tifffile.imwrite(folder / "shaped.tif", four, photometric="minisblack")
    steps = {"axes": "ZYX", "PhysicalSizeX": 40, "PhysicalSizeY": 0.05, "PhysicalSizeYUnit": "mm", "PhysicalSizeZ": 300}
    tifffile.imwrite(folder / "steps.ome.tif", volume(np.float32), metadata=steps, photometric="minisblack")
    tifffile.imwrite(folder / "steps.tif", volume(np.float32), imagej=True, metadata={"axes": "ZYX", "unit": "mm", "spacing": 0.7}, resolution=(4, 8))
    tifffile.imwrite(folder / "millimetre.tif", volume(np.float32), resolution=(5, 4), resolutionunit=4, photometric="minisblack")
    tifffile.imwrite(folder / "hundred.tif", volume(np.float32), resolution=(100, 100), resolutionunit="CENTIMETER", photometric="minisblack")
    # Numbers that are shown dark, in all layouts; and pages that belong to others.
    for kind in ["u1", "i2", "u2", "u4", "i8", "f2", "f4", "f8"]:
        for at, layout in enumerate([{"byteorder": ">"}, {"bigtiff": True, "byteorder": ">"}, {"tile": (16, 16)}, {"compression": "zlib"}]):
            tifffile.imwrite(folder / f"white_{kind}_{at}.tif", volume(kind), photometric="miniswhite", **layout)
    for kind in ["u2", "i4"]:
        tifffile.imwrite(folder / f"white_{kind}_4.tif", volume(kind), photometric="miniswhite", compression="zlib", predictor=2)
    with tifffile.TiffWriter(folder / "thumbnails.tif") as file:
        file.write(np.zeros((2, 2, 3), np.uint8), photometric="rgb", subfiletype=1, metadata=None)
        for page in volume(np.uint16):
            file.write(page, photometric="miniswhite", subifds=1, metadata=None)
            file.write(page[::2, ::2], photometric="minisblack", subfiletype=1, metadata=None)
        file.write(np.zeros((4, 5), np.uint8), photometric="minisblack", subfiletype=1, metadata=None)
    tifffile.imwrite(folder / "palette.tif", volume(np.uint8)[0], photometric="palette", colormap=np.zeros((3, 256), np.uint16))
    calibrated = "ImageJ=1.53\ncf=0\nc0=-32768.0\nc1=1.0\n"
    turned = [(274, "H", 1, 3, True)]
    tifffile.imwrite(
        folder / "calibrated.tif", volume(np.uint16)[:1], photometric="minisblack", description=calibrated, metadata=None, extratags=turned
    )
    nxtomo(folder / "degrees.nxs", "degrees", [2, 1, 1, 0, 0, 3, 0, 0, 1], "entry")
    nxtomo(folder / "radian.h5", "rad", [0, 0, 1, 2, 0], "subentry")
    data = os.environ.get("RAYSPIN_DATA")
    scan = pathlib.Path(data or pathlib.Path(__file__).parents[2] / "../shared/data") / "ct/chip_tomo.txrm.xz"
    if scan.is_file():
        (folder / "chip.txrm").write_bytes(lzma.decompress(scan.read_bytes()))


def check(folder):
    found = tifffile.imread(folder / "ours.tif")
    assert found.dtype == np.float32 and np.array_equal(found, volume(np.float32)), found


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
